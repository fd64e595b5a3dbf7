//! Reads N-Triples and N-Quads in [blocks](super::blocks) on all cores.
//!
//! A statement of the usual form is cut at its delimiters, and a name is checked once per block. Whatever is not of that
//! form (a triple term, an escape in an IRI, a comment behind a statement, an error) goes to oxttl's parser, line by line,
//! so that nothing is read, refused or reported in another way than by that parser alone.

use super::blocks::{self, Blocks, InTurn, LocalNames};
use super::bounded::{LONGEST, LONGEST_IN_WORDS};
use super::rdf::{Kind, NAME_PREFIX, RDF, Reader, kind_of, parse_error};
use super::statement::{Object, Statement};
use super::{Builder, Facts, Literals, ReadOptions};
use crate::vocabulary::hash_name;
use crate::{GraphError, Triple};
use memchr::{memchr, memchr_iter};
use oxrdf::{GraphName, NamedNodeRef, Quad};
use oxrdfio::{RdfFormat, RdfParser};
use std::borrow::Cow;
use std::io::{self, Read};
use std::path::Path;

/// What the lines of a file are read with.
struct How {
    format: RdfFormat,
    literals: Literals,
    named_graph: Option<String>,
}

/// Reads all of `source` into `builder`.
pub(super) fn read(
    path: &Path,
    source: Box<dyn Read + Send>,
    format: RdfFormat,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    let how = How { format, literals: options.literals, named_graph: options.named_graph.clone() };
    let reader = Reader::new(path, format, builder);
    let merge = Merge { path, how: &how, reader, lines: 0, other_graphs: 0, error: None };
    let merge = blocks::read_all(Blocks::of(source), &how, merge);
    if let Some(error) = merge.error {
        return Err(error);
    }
    let other_graphs = merge.other_graphs;
    let facts = merge.reader.finish().map_err(|(expected, found)| GraphError::file(path, expected, found))?;
    if other_graphs > 0 {
        builder.understood.push(format!("{other_graphs} statements of other named graphs are left out."));
    }
    Ok(facts)
}

/// A statement of a block; names, relations and values by their numbers there.
struct Op {
    line: u32,
    subject: u32,
    relation: u32,
    object: u32,
    what: What,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    /// A fact about two entities.
    Fact,
    /// The object is a value; whether in English or no language.
    Value {
        plain: bool,
    },
    /// The same, but the relation means something of its own.
    SpecialFact,
    SpecialValue {
        plain: bool,
    },
    /// `subject` is its number among the lines that the parser has read.
    Odd,
}

/// A line that was left to the parser.
enum Odd<'b> {
    Read(Vec<Quad>),
    /// It will be parsed again where its number is known.
    Bad(&'b [u8]),
    TooLong,
}

/// The statements of a block.
struct Parsed<'b> {
    names: LocalNames<'b>,
    /// Whether the name with this number is one that the parser accepts.
    is_good: Vec<bool>,
    relations: LocalNames<'b>,
    /// What the relation with this number means; `None` if the parser does not accept it.
    kinds: Vec<Option<Kind>>,
    values: Vec<(u64, Cow<'b, str>)>,
    ops: Vec<Op>,
    odd: Vec<Odd<'b>>,
    lines: u64,
    other_graphs: usize,
    /// The last IRI of a datatype or graph that was accepted.
    last: &'b str,
}

impl<'b> Parsed<'b> {
    fn new(how: &How, block: &'b [u8]) -> Self {
        let statements = block.len() / 96;
        let mut parsed = Self {
            names: LocalNames::default(),
            is_good: Vec::new(),
            relations: LocalNames::default(),
            kinds: Vec::new(),
            values: Vec::new(),
            ops: Vec::with_capacity(statements),
            odd: Vec::new(),
            lines: 0,
            other_graphs: 0,
            last: "",
        };
        let text = std::str::from_utf8(block).ok();
        let mut start = 0;
        while start < block.len() {
            let end = memchr(b'\n', &block[start..]).map_or(block.len(), |newline| start + newline);
            let line = match text {
                Some(text) => Some(&text[start..end]),
                None => std::str::from_utf8(&block[start..end]).ok(),
            };
            let taken = (end - start <= LONGEST).then(|| line.and_then(|line| parsed.line(how, line)));
            match taken {
                Some(Some(())) => {}
                Some(None) => parsed.leave_to_parser(how, &block[start..end]),
                None => parsed.push_odd(Odd::TooLong),
            }
            parsed.lines += 1;
            start = end + 1;
        }
        parsed
    }

    /// Takes a line of the usual form; `None` if it is of another.
    fn line(&mut self, how: &How, line: &'b str) -> Option<()> {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let line = line.trim_start_matches([' ', '\t']);
        if memchr(b'\r', line.as_bytes()).is_some() {
            return None;
        }
        if line.is_empty() || line.starts_with('#') {
            return Some(());
        }
        let Statement { subject, relation, object, graph } =
            Statement::of(line, how.format == RdfFormat::NQuads)?;
        if let Some(graph) = graph {
            self.is_iri(graph)?;
        }
        if let Object::Literal { datatype: Some(datatype), .. } = &object {
            self.is_iri(datatype)?;
        }
        let relation = self.relation(relation)?;
        let subject = self.name(subject)?;
        let kind = self.kinds[relation as usize]?;
        let (object, what) = match object {
            Object::Name(name) => {
                let is_special = kind == Kind::Special
                    || (kind == Kind::Type && name.strip_prefix(RDF) == Some("Statement"));
                (self.name(name)?, if is_special { What::SpecialFact } else { What::Fact })
            }
            Object::Literal { written, .. } if how.literals == Literals::Keep => {
                (self.kept(written)?, What::Fact)
            }
            Object::Literal { value, plain, .. } => {
                self.values.push((hash_name(&value), value));
                let place = (self.values.len() - 1) as u32;
                let is_special = kind == Kind::Special;
                (place, if is_special { What::SpecialValue { plain } } else { What::Value { plain } })
            }
        };
        if how.named_graph.is_some() && how.named_graph.as_deref() != graph {
            self.other_graphs += 1;
            return Some(());
        }
        let line = self.lines as u32;
        self.ops.push(Op { line, subject, relation, object, what });
        Some(())
    }

    /// The number of an entity's name, if it needs no parser.
    fn name(&mut self, name: &'b str) -> Option<u32> {
        let number = self.names.number(name);
        if number as usize == self.is_good.len() {
            self.is_good.push(name.starts_with("_:") || is_own_name(name));
        }
        self.is_good[number as usize].then_some(number)
    }

    /// The number of a literal that is an entity, as it is written, if the parser would write it so.
    fn kept(&mut self, written: &'b str) -> Option<u32> {
        let is_same = written.bytes().all(|byte| (b' '..0x7f).contains(&byte) && byte != b'\\');
        let has_type = memchr_iter(b'^', written.as_bytes()).next().is_some();
        let number = (is_same && !has_type && !written.bytes().any(|byte| byte == b'@'))
            .then(|| self.names.number(written))?;
        if number as usize == self.is_good.len() {
            self.is_good.push(true);
        }
        Some(number)
    }

    fn relation(&mut self, name: &'b str) -> Option<u32> {
        let number = self.relations.number(name);
        if number as usize == self.kinds.len() {
            self.kinds.push(is_own_name(name).then(|| kind_of(name)));
        }
        self.kinds[number as usize].map(|_| number)
    }

    /// Whether the parser accepts an IRI that is no name, such as that of a datatype.
    fn is_iri(&mut self, text: &'b str) -> Option<()> {
        if text == self.last {
            return Some(());
        }
        let is_good = text.starts_with("_:") || (NamedNodeRef::new(text).is_ok() && !text.starts_with(RDF));
        if is_good {
            self.last = text;
        }
        is_good.then_some(())
    }

    fn leave_to_parser(&mut self, how: &How, line: &'b [u8]) {
        let quads: Result<Vec<Quad>, _> = RdfParser::from_format(how.format).for_slice(line).collect();
        match quads {
            Ok(quads) if quads.is_empty() => {}
            Ok(quads) => self.push_odd(Odd::Read(quads)),
            Err(_) => self.push_odd(Odd::Bad(line)),
        }
    }

    fn push_odd(&mut self, odd: Odd<'b>) {
        let (line, subject) = (self.lines as u32, self.odd.len() as u32);
        self.odd.push(odd);
        self.ops.push(Op { line, subject, relation: 0, object: 0, what: What::Odd });
    }
}

/// Whether an IRI is accepted by the parser and is its own name.
fn is_own_name(iri: &str) -> bool {
    NamedNodeRef::new(iri).is_ok() && !iri.starts_with(NAME_PREFIX)
}

/// A number that is not given yet.
const NONE: u32 = u32::MAX;

/// The numbers of the names of a block in the tables of all, given when a name is first needed.
struct Numbers {
    entities: Vec<u32>,
    things: Vec<u32>,
    relations: Vec<u32>,
    attributes: Vec<u32>,
}

/// The statements so far.
struct Merge<'a> {
    path: &'a Path,
    how: &'a How,
    reader: Reader<'a>,
    lines: u64,
    other_graphs: usize,
    error: Option<GraphError>,
}

impl InTurn for Merge<'_> {
    type How = How;
    type Parsed<'b> = Parsed<'b>;

    fn parse<'b>(how: &How, block: &'b [u8]) -> Parsed<'b> {
        Parsed::new(how, block)
    }

    fn take(&mut self, mut parsed: Parsed<'_>, trouble: Option<io::Error>) -> bool {
        self.other_graphs += parsed.other_graphs;
        let (names, relations) = (parsed.names.names.len(), parsed.relations.names.len());
        let mut numbers = Numbers {
            entities: vec![NONE; names],
            things: vec![NONE; names],
            relations: vec![NONE; relations],
            attributes: vec![NONE; relations],
        };
        let ops = std::mem::take(&mut parsed.ops);
        // A line that is cut off by an error is not reported as malformed.
        let lines = parsed.lines;
        let whole = |op: &Op| trouble.is_none() || u64::from(op.line) + 1 < lines;
        for op in ops.iter().filter(|op| whole(op)) {
            if let Err(error) = self.op(op, &parsed, &mut numbers) {
                self.error = Some(error);
                return false;
            }
        }
        if let Some(trouble) = trouble {
            let (line, found) = (self.lines + parsed.lines.max(1), format!("an error: {trouble}"));
            self.error = Some(GraphError::line(self.path, line, "more of the file", found));
        }
        self.lines += parsed.lines;
        self.error.is_none()
    }
}

impl Merge<'_> {
    fn op(&mut self, op: &Op, parsed: &Parsed<'_>, numbers: &mut Numbers) -> Result<(), GraphError> {
        let line = self.lines + u64::from(op.line) + 1;
        let path = self.path;
        let bad = |(expected, found): (String, String)| GraphError::line(path, line, expected, found);
        if op.what == What::Odd {
            return self.odd(&parsed.odd[op.subject as usize], line);
        }
        // Where statements are annotated, any subject may be a node that stands for one.
        let by_name = self.reader.has_statements();
        match op.what {
            What::Fact if !by_name => {
                self.fact(op, parsed, numbers);
                Ok(())
            }
            What::Value { plain } if !by_name => {
                self.value(op, plain, parsed, numbers);
                Ok(())
            }
            What::Fact | What::SpecialFact => {
                let [subject, object] =
                    [op.subject, op.object].map(|name| parsed.names.names[name as usize].name);
                let relation = parsed.relations.names[op.relation as usize].name;
                self.reader.take_named(subject, relation, object, None, self.how.literals).map_err(bad)
            }
            What::Value { plain } | What::SpecialValue { plain } => {
                let subject = parsed.names.names[op.subject as usize].name;
                let relation = parsed.relations.names[op.relation as usize].name;
                let value = &parsed.values[op.object as usize].1;
                self.reader.take_named(subject, relation, value, Some(plain), self.how.literals).map_err(bad)
            }
            What::Odd => Ok(()),
        }
    }

    fn fact(&mut self, op: &Op, parsed: &Parsed<'_>, numbers: &mut Numbers) {
        let names = &mut self.reader.builder.names;
        let mut entity = |local: u32| {
            let known = &mut numbers.entities[local as usize];
            if *known == NONE {
                let name = &parsed.names.names[local as usize];
                *known = names.entities.intern_hashed(name.hash, name.name);
            }
            *known
        };
        let head = entity(op.subject);
        let relation = &mut numbers.relations[op.relation as usize];
        if *relation == NONE {
            let name = &parsed.relations.names[op.relation as usize];
            *relation = names.relations.intern_hashed(name.hash, name.name);
        }
        let fact = Triple::new(head, *relation, entity(op.object));
        self.reader.facts.push(fact, names.entities.len());
    }

    fn value(&mut self, op: &Op, plain: bool, parsed: &Parsed<'_>, numbers: &mut Numbers) {
        let about = &mut self.reader.builder.about;
        let thing = &mut numbers.things[op.subject as usize];
        if *thing == NONE {
            let name = &parsed.names.names[op.subject as usize];
            *thing = about.thing(name.hash, name.name);
        }
        let (hash, value) = &parsed.values[op.object as usize];
        if let Some(Kind::Label(rank)) = parsed.kinds[op.relation as usize] {
            about.label_of_thing(*thing, value, if plain { rank } else { rank + 10 });
            return;
        }
        let attribute = &mut numbers.attributes[op.relation as usize];
        if *attribute == NONE {
            *attribute = about.attribute_name(parsed.relations.names[op.relation as usize].name);
        }
        about.attribute_of_thing(*thing, *attribute, (*hash, value));
    }

    fn odd(&mut self, odd: &Odd<'_>, line: u64) -> Result<(), GraphError> {
        let bad = |(expected, found): (String, String)| GraphError::line(self.path, line, expected, found);
        match odd {
            Odd::Read(quads) => {
                for quad in quads {
                    let is_other = self.how.named_graph.as_ref().is_some_and(|graph| {
                        !matches!(&quad.graph_name, GraphName::NamedNode(node) if node.as_str() == graph)
                    });
                    if is_other {
                        self.other_graphs += 1;
                        continue;
                    }
                    self.reader.take(quad, self.how.literals).map_err(bad)?;
                }
                Ok(())
            }
            Odd::TooLong => {
                Err(bad((format!("a statement of at most {LONGEST_IN_WORDS}"), "more".to_owned())))
            }
            Odd::Bad(text) => {
                // The parser counts the lines before this one, so that it names the right one.
                let before = io::repeat(b'\n').take(line - 1);
                let parser = RdfParser::from_format(self.how.format);
                let error = parser.for_reader(before.chain(*text)).find_map(Result::err);
                Err(match error {
                    Some(error) => parse_error(self.path, line, error),
                    None => bad(("an RDF statement".to_owned(), "another line".to_owned())),
                })
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::rdf;
    use super::*;
    use proptest::prelude::*;

    /// Everything that a file says, or the error, read by all threads or by the parser alone.
    fn read_as(text: &[u8], format: RdfFormat, options: &ReadOptions, alone: bool) -> Result<String, String> {
        let path = Path::new("x.nq");
        let mut builder = Builder { is_rdf: true, ..Builder::default() };
        let source: Box<dyn Read + Send> = Box::new(io::Cursor::new(text.to_vec()));
        let facts = match alone {
            true => rdf::read_alone(path, source, format, options, &mut builder),
            false => read(path, source, format, options, &mut builder),
        };
        let (facts, _) = facts.map_err(|error| error.to_string())?.into_parts();
        let (said, negatives) = (builder.understood.clone(), builder.negatives.len());
        let parts = [facts, Vec::new(), Vec::new()];
        let names = std::mem::take(&mut builder.names);
        let all = crate::memory::divided(names, parts, 0);
        let dataset = builder.finish(all).map_err(|error| error.to_string())?;
        let names = &dataset.names;
        let entities: Vec<(&str, &str)> = (0..names.entities.len() as u32)
            .map(crate::EntityId)
            .map(|id| (names.entity(id), names.label(id)))
            .collect();
        let attributes: Vec<_> = names.attributes.iter().collect();
        Ok(format!(
            "{:?} {entities:?} {attributes:?} {:?} {said:?} {negatives} {:?}",
            &dataset.known.facts[..],
            dataset.known.notes,
            names.relations.iter().collect::<Vec<_>>()
        ))
    }

    const RDFS_LABEL: &str = "<http://www.w3.org/2000/01/rdf-schema#label>";

    fn line() -> impl Strategy<Value = String> {
        let node = "(<http://x/[a-d]>|_:[ab]1|<urn:ruleguider:a%20b>|<http://x/é>|<http://x/\\\\u0061>)";
        let relation = format!(
            "(<http://x/r[12]>|{RDFS_LABEL}|<http://x/confidence>|<{RDF}type>|<{RDF}subject>|<{RDF}predicate>|<{RDF}object>|<http://www.w3.org/2000/01/rdf-schema#subClassOf>)"
        );
        let literal = "\"(0\\.5|[a-cé]{0,2}(\\\\n|\\\\u00e9)?)\"(@en|@de|@zh-Hant|\\^\\^<http://t/a>)?";
        let object = format!(
            "({node}|{literal}|<{RDF}Statement>|<<\\( <http://x/a> <http://x/r1> <http://x/b> \\)>>)"
        );
        let usual = format!("{node} {relation} {object} (<http://g/[ab]> )?\\.");
        let reifies =
            format!("_:[ab]1 <{RDF}reifies> <<\\( <http://x/[ab]> <http://x/r1> <http://x/b> \\)>> \\.");
        prop_oneof![
            20 => usual.prop_map_regex(),
            2 => reifies.prop_map_regex(),
            1 => Just("# comment".to_owned()),
            1 => Just("  ".to_owned()),
            1 => Just("<http://x/a> <http://x/r1> <http://x/b> . # behind".to_owned()),
        ]
    }

    trait OfRegex {
        fn prop_map_regex(&self) -> proptest::string::RegexGeneratorStrategy<String>;
    }

    impl OfRegex for String {
        fn prop_map_regex(&self) -> proptest::string::RegexGeneratorStrategy<String> {
            proptest::string::string_regex(self).expect("a pattern")
        }
    }

    proptest! {
        /// A file says the same whether all threads read it or the parser alone, with the same ids.
        #[test]
        fn all_threads_read_what_the_parser_reads(
            lines in prop::collection::vec(line(), 0..25),
            end in "(\n|\r\n)",
            wrong in prop::option::weighted(0.2, "(<a> <b>|x|<http://x/a> <http://x/b c> <http://x/d> \\.|\"a)"),
            keep in any::<bool>(),
            graph in prop::option::of("http://g/[ab]"),
        ) {
            let mut lines = lines;
            lines.extend(wrong);
            let text = lines.join(&end);
            let literals = if keep { Literals::Keep } else { Literals::Apart };
            let options = ReadOptions { literals, named_graph: graph, ..ReadOptions::default() };
            for format in [RdfFormat::NQuads, RdfFormat::NTriples] {
                let [ours, theirs] = [false, true].map(|alone| read_as(text.as_bytes(), format, &options, alone));
                match (ours, theirs) {
                    // How far the file was read is not where an annotation is wrong.
                    (Err(ours), Err(theirs)) if ours.contains("a confidence above") => {
                        prop_assert!(theirs.contains("a confidence above"), "{}", text);
                    }
                    (ours, theirs) => prop_assert_eq!(ours, theirs, "{}", text),
                }
            }
        }
    }

    #[test]
    fn a_bad_line_far_down_is_named_by_its_number() {
        let mut text =
            "<http://x/a> <http://x/r> \"a long text, so that there are several blocks\" .\n".repeat(100_000);
        text.push_str("<http://x/a> <http://x/r> .\n");
        text.push_str(&"<http://x/a> <http://x/r> <http://x/b> .\n".repeat(100_000));
        let options = ReadOptions::default();
        let [ours, theirs] = [false, true]
            .map(|alone| read_as(text.as_bytes(), RdfFormat::NTriples, &options, alone).unwrap_err());
        assert_eq!(ours, theirs);
        assert!(ours.starts_with("x.nq:100001: expected an RDF statement, found an error:"), "{ours}");
        let bytes = [b"<http://x/a> <http://x/r> \"".as_slice(), b"\xff\" .\n"].concat();
        let [ours, theirs] = [false, true].map(|alone| read_as(&bytes, RdfFormat::NTriples, &options, alone));
        assert!(ours.is_err() && ours == theirs, "{ours:?} {theirs:?}");
    }
}
