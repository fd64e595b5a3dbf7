//! RDF in and out: which name a term gets, and which term a name becomes.
//!
//! An IRI is its own name; a blank node is `_:id`; a literal is its N-Triples text, quotes included. Names that
//! are none of these (an arbitrary string out of a TSV) are written as IRIs under [`NAME_PREFIX`] with the
//! characters an IRI cannot hold escaped, and read back as they were. Named graphs are not kept apart, but one of them
//! can be read alone. Nodes that a file leaves without any id (`[]` in Turtle) are numbered in the order of their
//! appearance. What is no statement about two entities (labels, literals, domains, annotations of statements) goes
//! beside the facts.

use super::bounded::{Bounded, Excess, LONGEST, LONGEST_IN_WORDS};
use super::columns::{Part, plain_name};
use super::facts::Facts;
use super::{Builder, Literals, ReadOptions, ntriples, table};
use crate::format::Compression;
use crate::{Direction, GraphError, Note, Triple};
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::io::{BufRead, Read};
use std::path::Path;
use std::str::FromStr;

/// The prefix of names that are not IRIs themselves.
pub(crate) const NAME_PREFIX: &str = "urn:ruleguider:";

/// Reads all of `source` into `builder`.
pub(super) fn read(
    path: &Path,
    source: Box<dyn Read + Send>,
    format: RdfFormat,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    builder.is_rdf = true;
    if matches!(format, RdfFormat::NTriples | RdfFormat::NQuads) {
        return ntriples::read(path, source, format, options, builder);
    }
    read_alone(path, source, format, options, builder)
}

/// Reads a file of any format on one thread.
pub(super) fn read_alone(
    path: &Path,
    source: Box<dyn Read + Send>,
    format: RdfFormat,
    options: &ReadOptions,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    let (source, place) = Bounded::new(source, format == RdfFormat::RdfXml);
    let source = std::io::BufReader::with_capacity(1 << 16, source);
    let mut statements = RdfParser::from_format(format).for_reader(source);
    let mut reader = Reader::new(path, format, builder);
    let mut other_graphs = 0usize;
    for quad in statements.by_ref() {
        let quad = quad.map_err(|error| parse_error(path, place.line(), error))?;
        place.statement_ended();
        if let Some(graph) = &options.named_graph
            && !matches!(&quad.graph_name, GraphName::NamedNode(node) if node.as_str() == graph)
        {
            other_graphs += 1;
            continue;
        }
        reader
            .take(&quad, options.literals)
            .map_err(|(expected, found)| GraphError::line(path, place.line(), expected, found))?;
    }
    let facts = reader.finish().map_err(|(expected, found)| GraphError::file(path, expected, found))?;
    for (prefix, iri) in statements.prefixes() {
        builder.prefixes.add(prefix, iri);
    }
    if other_graphs > 0 {
        builder.understood.push(format!("{other_graphs} statements of other named graphs are left out."));
    }
    Ok(facts)
}

const RDFS: &str = "http://www.w3.org/2000/01/rdf-schema#";
const SCHEMA: [&str; 2] = ["http://schema.org/", "https://schema.org/"];
pub(super) const RDF: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#";
const DATATYPES: &str = "http://www.w3.org/2001/XMLSchema#";

/// What a relation says that is no fact about two entities.
enum Meaning {
    /// A label; a lower rank counts more.
    Label(u8),
    KindOf,
    Declares(Direction),
    Reifies,
    /// It names one of the three parts of an `rdf:Statement`.
    PartOfStatement(usize),
    Other,
}

fn meaning(relation: &str) -> Meaning {
    if let Some(name) = relation.strip_prefix(RDFS) {
        return match name {
            "label" => Meaning::Label(0),
            "subClassOf" => Meaning::KindOf,
            "domain" => Meaning::Declares(Direction::Forward),
            "range" => Meaning::Declares(Direction::Inverse),
            _ => Meaning::Other,
        };
    }
    if let Some(name) = relation.strip_prefix(RDF) {
        return match name {
            "reifies" => Meaning::Reifies,
            "subject" => Meaning::PartOfStatement(0),
            "predicate" => Meaning::PartOfStatement(1),
            "object" => Meaning::PartOfStatement(2),
            _ => Meaning::Other,
        };
    }
    if let Some(name) = SCHEMA.iter().find_map(|schema| relation.strip_prefix(schema)) {
        return match name {
            "name" => Meaning::Label(2),
            "domainIncludes" => Meaning::Declares(Direction::Forward),
            "rangeIncludes" => Meaning::Declares(Direction::Inverse),
            _ => Meaning::Other,
        };
    }
    match relation {
        "http://www.w3.org/2004/02/skos/core#prefLabel" => Meaning::Label(1),
        "http://xmlns.com/foaf/0.1/name" => Meaning::Label(3),
        _ => Meaning::Other,
    }
}

/// How a relation is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It states facts and attributes.
    Plain,
    /// Literals are labels.
    Label(u8),
    /// `rdf:type`.
    Type,
    /// It may say something about relations, types or statements.
    Special,
}

/// How the relation with this IRI is read.
pub(super) fn kind_of(relation: &str) -> Kind {
    match meaning(relation) {
        Meaning::Label(rank) => Kind::Label(rank),
        Meaning::Other if relation == super::finish::RDF_TYPE => Kind::Type,
        Meaning::Other if annotated(relation).is_none() => Kind::Plain,
        _ => Kind::Special,
    }
}

/// What is said about statements, by the names of the nodes that stand for them.
#[derive(Default)]
struct Annotations {
    statements: HashMap<String, Triple>,
    /// The parts of each `rdf:Statement` that are known so far.
    parts: HashMap<String, [Option<String>; 3]>,
    /// Statements that are annotated as false.
    denied: Vec<Triple>,
    /// What was said about nodes before it was known that they stand for a statement.
    waiting: Vec<(String, String, Value)>,
    /// The relations of annotations that say nothing that is kept of facts, and how many there are of each.
    left_out: BTreeMap<String, usize>,
}

/// The object of a statement: a name or a literal.
enum Value {
    Name(String),
    Literal(String),
}

/// The facts of one file.
pub(super) struct Reader<'b> {
    path: &'b Path,
    format: RdfFormat,
    pub(super) builder: &'b mut Builder,
    pub(super) facts: Facts,
    annotations: Annotations,
}

impl<'b> Reader<'b> {
    pub(super) fn new(path: &'b Path, format: RdfFormat, builder: &'b mut Builder) -> Self {
        Self { path, format, builder, facts: Facts::default(), annotations: Annotations::default() }
    }

    pub(super) fn take(&mut self, quad: &Quad, literals: Literals) -> Result<(), (String, String)> {
        let subject = match &quad.subject {
            NamedOrBlankNode::NamedNode(node) => iri_name(node),
            NamedOrBlankNode::BlankNode(node) => blank_name(node, self.format, self.builder),
        };
        let relation = iri_name(&quad.predicate);
        let (object, plain) = match &quad.object {
            Term::NamedNode(node) => (iri_name(node), None),
            Term::BlankNode(node) => (blank_name(node, self.format, self.builder), None),
            Term::Literal(literal) if literals == Literals::Keep => (literal.to_string(), None),
            Term::Literal(literal) => {
                let is_english = |language: &str| language == "en" || language.starts_with("en-");
                (literal.value().to_owned(), Some(literal.language().is_none_or(is_english)))
            }
            Term::Triple(triple) => return self.take_statement(subject, &relation, triple),
        };
        self.take_named(&subject, &relation, &object, plain, literals)
    }

    /// Whether anything stands for a statement so far.
    pub(super) fn has_statements(&self) -> bool {
        !(self.annotations.statements.is_empty() && self.annotations.parts.is_empty())
    }

    /// Takes a statement by its names. If the object is the text of a literal, `plain` says whether that is in English or
    /// in no language.
    pub(super) fn take_named(
        &mut self,
        subject: &str,
        relation: &str,
        object: &str,
        plain: Option<bool>,
        literals: Literals,
    ) -> Result<(), (String, String)> {
        if [subject, relation, object].iter().any(|name| name.len() > LONGEST) {
            return Err((format!("names of at most {LONGEST_IN_WORDS}"), "a longer one".to_owned()));
        }
        if literals == Literals::Keep {
            self.builder.take_fact([subject, relation, object], &mut self.facts);
            return Ok(());
        }
        if self.part_of_statement(subject, relation, object, plain.is_some())
            || self.annotation(subject, relation, object)?
        {
            return Ok(());
        }
        let waits = annotated(relation).is_some()
            && (subject.starts_with("_:") || self.annotations.parts.contains_key(subject));
        let wait = |value: Value| (subject.to_owned(), relation.to_owned(), value);
        let about = &mut self.builder.about;
        match (meaning(relation), plain) {
            (Meaning::Label(rank), Some(plain)) => {
                // A label in another language is better than none.
                about.label_of_rank(subject, object, if plain { rank } else { rank + 10 });
            }
            (_, Some(_)) if waits => {
                self.annotations.waiting.push(wait(Value::Literal(object.to_owned())));
            }
            (_, Some(_)) => about.attribute(subject, relation, object),
            (Meaning::Declares(_), None) if object.starts_with(DATATYPES) => {}
            (Meaning::Declares(side), None) => about.declare(subject, side, object),
            (Meaning::KindOf, None) => {
                about.kind_of(subject, object);
                self.builder.take_fact([subject, relation, object], &mut self.facts);
            }
            (_, None) if waits => {
                self.annotations.waiting.push(wait(Value::Name(object.to_owned())));
            }
            (_, None) => self.builder.take_fact([subject, relation, object], &mut self.facts),
        }
        Ok(())
    }

    /// A node that stands for a statement. Other relations to statements are nothing that facts can say.
    fn take_statement(
        &mut self,
        node: String,
        relation: &str,
        statement: &oxrdf::Triple,
    ) -> Result<(), (String, String)> {
        if !matches!(meaning(relation), Meaning::Reifies) {
            *self.annotations.left_out.entry(relation.to_owned()).or_default() += 1;
            return Ok(());
        }
        let subject = match &statement.subject {
            NamedOrBlankNode::NamedNode(node) => iri_name(node),
            NamedOrBlankNode::BlankNode(node) => blank_name(node, self.format, self.builder),
        };
        let object = match &statement.object {
            Term::NamedNode(node) => iri_name(node),
            Term::BlankNode(node) => blank_name(node, self.format, self.builder),
            // Of a literal there is no fact.
            Term::Literal(_) | Term::Triple(_) => return Ok(()),
        };
        let fact = self.builder.fact([&subject, &iri_name(&statement.predicate), &object]);
        self.annotations.statements.insert(node, fact);
        Ok(())
    }

    /// Takes what is said about a statement; `false` if `node` does not stand for one.
    fn annotation(&mut self, node: &str, relation: &str, value: &str) -> Result<bool, (String, String)> {
        if self.annotations.statements.is_empty() {
            return Ok(false);
        }
        let Some(&fact) = self.annotations.statements.get(node) else { return Ok(false) };
        // How far the file was read does not tell where this is.
        let at = |(expected, found): (String, String)| (expected, format!("{found} ({node} {relation})"));
        let note = match annotated(relation) {
            Some(Part::Confidence) => {
                Note { confidence: Some(table::confidence(value).map_err(at)?), ..Note::default() }
            }
            Some(Part::Time) => Note { time: Some(table::time(value).map_err(at)?), ..Note::default() },
            Some(Part::Source) if !value.starts_with("_:") => Note { source: Some(value), ..Note::default() },
            Some(Part::Negative) => {
                if table::truth(value).map_err(at)? {
                    self.annotations.denied.push(fact);
                }
                return Ok(true);
            }
            _ => {
                *self.annotations.left_out.entry(relation.to_owned()).or_default() += 1;
                return Ok(true);
            }
        };
        self.builder.notes.add(fact, note);
        Ok(true)
    }

    /// Takes what an `rdf:Statement` is made of; `false` if that is something else.
    fn part_of_statement(&mut self, node: &str, relation: &str, value: &str, is_literal: bool) -> bool {
        if relation == super::finish::RDF_TYPE && !is_literal && value.strip_prefix(RDF) == Some("Statement")
        {
            if !self.annotations.statements.contains_key(node) {
                self.annotations.parts.entry(node.to_owned()).or_default();
            }
            return true;
        }
        // Nearly all relations are others, and are seen to be by their last letters.
        let Meaning::PartOfStatement(place) = meaning(relation) else { return false };
        // Of a literal there is no fact, and what is said about it is no note.
        let parts = self.annotations.parts.entry(node.to_owned()).or_default();
        parts[place] = Some(if is_literal { String::new() } else { value.to_owned() });
        if let [Some(subject), Some(relation), Some(object)] = parts
            && [&*subject, &*relation, &*object].iter().all(|part| !part.is_empty())
        {
            let fact = self.builder.fact([subject, relation, object]);
            self.annotations.parts.remove(node);
            self.annotations.statements.insert(node.to_owned(), fact);
        }
        true
    }

    /// The facts, when all statements are taken.
    pub(super) fn finish(mut self) -> Result<Facts, (String, String)> {
        self.annotations_without_a_fact()?;
        self.say_what_is_left_out();
        self.take_negatives();
        Ok(self.facts)
    }

    /// Statements that are annotated as false are no facts, even if they are stated.
    fn take_negatives(&mut self) {
        if self.annotations.denied.is_empty() {
            return;
        }
        let denied: HashSet<Triple> = self.annotations.denied.drain(..).collect();
        self.facts.retain(|fact| !denied.contains(fact));
        let mut denied: Vec<Triple> = denied.into_iter().collect();
        denied.sort_unstable();
        let path = self.path;
        self.builder.negatives.extend(denied.into_iter().map(|fact| (0, fact, path.to_owned(), 0)));
    }

    /// What waited for a node to stand for a statement, and waits no more.
    fn annotations_without_a_fact(&mut self) -> Result<(), (String, String)> {
        for (node, relation, value) in std::mem::take(&mut self.annotations.waiting) {
            let text = match &value {
                Value::Name(text) | Value::Literal(text) => text,
            };
            if self.annotation(&node, &relation, text)? {
                continue;
            }
            match value {
                Value::Name(object) => self.builder.take_fact([&node, &relation, &object], &mut self.facts),
                Value::Literal(text) => self.builder.about.attribute(&node, &relation, &text),
            }
        }
        Ok(())
    }

    fn say_what_is_left_out(&mut self) {
        let incomplete = self.annotations.parts.len();
        if incomplete > 0 {
            self.builder.understood.push(format!(
                "{incomplete} of rdf:Statement are left out, which lack a part or are about a literal."
            ));
        }
        let left_out = &self.annotations.left_out;
        if !left_out.is_empty() {
            let relations: Vec<&str> = left_out.keys().map(String::as_str).collect();
            self.builder.understood.push(format!(
                "{} annotations of facts are left out, which are no confidence, source, time or negation ({}).",
                left_out.values().sum::<usize>(),
                super::finish::shortened(&relations)
            ));
        }
    }
}

/// What a relation says about a statement: by the last word of its IRI, as columns by their names.
fn annotated(relation: &str) -> Option<Part> {
    let word = relation.rsplit(['/', '#', ':']).next()?;
    match word {
        "wasDerivedFrom" => Some(Part::Source),
        _ => Part::beside(&plain_name(word))
            .filter(|part| matches!(part, Part::Confidence | Part::Source | Part::Time | Part::Negative)),
    }
}

/// `line` is how far the file was read; it is used if the parser gives no position (a stream that breaks off).
pub(super) fn parse_error(path: &Path, line: u64, error: RdfParseError) -> GraphError {
    let (line, expected, found) = match error {
        RdfParseError::Syntax(error) => {
            let line = error.location().map_or(line, |range| range.start.line + 1);
            (line, "an RDF statement".to_owned(), format!("an error: {error}"))
        }
        RdfParseError::Io(error) => match error.get_ref().and_then(|inner| inner.downcast_ref::<Excess>()) {
            Some(excess) => (line, excess.expected.clone(), excess.found.to_owned()),
            None => (line, "more of the file".to_owned(), format!("an error: {error}")),
        },
    };
    GraphError::line(path, line, expected, found.replace('\n', " "))
}

/// The line of a file with one statement per line that states the fact with these names.
pub(super) fn line_of(
    path: &Path,
    compression: Compression,
    format: RdfFormat,
    [head, relation, tail]: [&str; 3],
) -> Option<u64> {
    if !matches!(format, RdfFormat::NTriples | RdfFormat::NQuads) {
        return None;
    }
    let source = std::io::BufReader::new(compression.open(path).ok()?);
    let wanted = (node(head), named_node(relation), term(tail));
    for (line, number) in source.lines().zip(1..) {
        let line = line.ok()?;
        // A line is parsed if it may be the one.
        if !line.contains(wanted.1.as_str()) {
            continue;
        }
        let found = RdfParser::from_format(format).for_slice(line.as_bytes()).next();
        if let Some(Ok(quad)) = found
            && (quad.subject, quad.predicate, quad.object) == wanted
        {
            return Some(number);
        }
    }
    None
}

/// The name of a blank node. If the file gives no id, the parser draws a random one of 128 bits, and the name would
/// change with every read. Formats with one statement per line have no such nodes.
fn blank_name(node: &BlankNode, format: RdfFormat, builder: &mut Builder) -> String {
    let id = node.as_ref().unique_id().filter(|&id| id > u128::from(u64::MAX));
    match id {
        Some(id) if !matches!(format, RdfFormat::NTriples | RdfFormat::NQuads) => {
            let next = builder.anonymous.len() + 1;
            format!("_:anonymous{}", builder.anonymous.entry(id).or_insert(next))
        }
        _ => node.to_string(),
    }
}

fn iri_name(node: &NamedNode) -> String {
    match node.as_str().strip_prefix(NAME_PREFIX).and_then(unescape) {
        Some(name) => name,
        None => node.as_str().to_owned(),
    }
}

/// The node of a name as a relation or a subject.
pub(crate) fn node(name: &str) -> NamedOrBlankNode {
    // A blank node id with a colon can be constructed, but no parser reads it.
    let id = name.strip_prefix("_:").filter(|id| !id.contains(':'));
    match id.and_then(|id| BlankNode::new(id).ok()) {
        Some(blank) => blank.into(),
        None => named_node(name).into(),
    }
}

/// The term of a name as an object.
pub(crate) fn term(name: &str) -> Term {
    match name.starts_with('"').then(|| Literal::from_str(name)) {
        Some(Ok(literal)) => literal.into(),
        _ => node(name).into(),
    }
}

/// The IRI of a name, escaped under [`NAME_PREFIX`] if it is not an IRI itself.
pub(crate) fn named_node(name: &str) -> NamedNode {
    match NamedNode::new(name) {
        Ok(node) if !name.starts_with(NAME_PREFIX) => node,
        _ => NamedNode::new_unchecked(format!("{NAME_PREFIX}{}", escape(name))),
    }
}

fn escape(name: &str) -> String {
    let mut escaped = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            escaped.push(byte as char);
        } else {
            escaped.push_str(&format!("%{byte:02X}"));
        }
    }
    escaped
}

fn unescape(escaped: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(escaped.len());
    let mut rest = escaped.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digits = [rest.next()?, rest.next()?];
            bytes.push(u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_name_survives_as_a_node(name in "\\PC{1,12}") {
            let back = iri_name(&named_node(&name));
            prop_assert_eq!(back, name);
        }
    }

    #[test]
    fn terms_keep_their_kind() {
        assert_eq!(term("_:b1").to_string(), "_:b1");
        assert_eq!(term("_:b:1").to_string(), "<urn:ruleguider:_%3Ab%3A1>");
        assert_eq!(term("\"five\"@en").to_string(), "\"five\"@en");
        assert_eq!(term("http://example.org/a").to_string(), "<http://example.org/a>");
        assert_eq!(term("Ada Lovelace").to_string(), "<urn:ruleguider:Ada%20Lovelace>");
    }
}
