//! Cuts a line of N-Triples or N-Quads into its terms, if it is of the usual form.

use super::rdf::RDF;
use memchr::memchr2;
use std::borrow::Cow;

/// A statement by its terms. IRIs are not checked.
#[derive(Debug, PartialEq)]
pub(super) struct Statement<'l> {
    /// An IRI, or a blank node with its `_:`.
    pub(super) subject: &'l str,
    pub(super) relation: &'l str,
    pub(super) object: Object<'l>,
    pub(super) graph: Option<&'l str>,
}

#[derive(Debug, PartialEq)]
pub(super) enum Object<'l> {
    Name(&'l str),
    Literal {
        /// Its text, without escapes.
        value: Cow<'l, str>,
        /// The term as it stands in the line.
        written: &'l str,
        /// Whether it is in English or in no language.
        plain: bool,
        datatype: Option<&'l str>,
    },
}

impl<'l> Statement<'l> {
    /// The only statement of `line`, in which nothing follows its dot; `None` if the line needs a parser.
    pub(super) fn of(line: &'l str, may_have_graph: bool) -> Option<Self> {
        let mut rest = Rest { line, at: 0 };
        let subject = rest.name()?;
        rest.blanks();
        let relation = rest.iri()?;
        rest.blanks();
        let object = match rest.peek()? {
            b'"' => rest.literal()?,
            _ => Object::Name(rest.name()?),
        };
        rest.blanks();
        let graph = match rest.peek()? {
            b'.' => None,
            _ if may_have_graph => Some(rest.name()?),
            _ => return None,
        };
        rest.blanks();
        rest.expect(b'.')?;
        rest.blanks();
        (rest.at == line.len()).then_some(Self { subject, relation, object, graph })
    }
}

/// What is left of a line.
struct Rest<'l> {
    line: &'l str,
    at: usize,
}

impl<'l> Rest<'l> {
    fn peek(&self) -> Option<u8> {
        self.line.as_bytes().get(self.at).copied()
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        let is_there = self.peek() == Some(byte);
        self.at += usize::from(is_there);
        is_there.then_some(())
    }

    fn blanks(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t')) {
            self.at += 1;
        }
    }

    fn name(&mut self) -> Option<&'l str> {
        match self.peek()? {
            b'<' => self.iri(),
            b'_' => self.blank_node(),
            _ => None,
        }
    }

    fn iri(&mut self) -> Option<&'l str> {
        self.expect(b'<')?;
        let rest = &self.line.as_bytes()[self.at..];
        let end = memchr2(b'>', b'\\', rest).filter(|&end| rest[end] == b'>')?;
        let iri = &self.line[self.at..self.at + end];
        self.at += end + 1;
        Some(iri)
    }

    /// A blank node of letters and digits, with a blank behind it.
    fn blank_node(&mut self) -> Option<&'l str> {
        let text = &self.line[self.at..];
        let label = text.strip_prefix("_:")?;
        let length = label.bytes().take_while(u8::is_ascii_alphanumeric).count();
        let is_ended = matches!(label.as_bytes().get(length), Some(b' ' | b'\t'));
        if length == 0 || !is_ended {
            return None;
        }
        self.at += 2 + length;
        Some(&text[..2 + length])
    }

    fn literal(&mut self) -> Option<Object<'l>> {
        let start = self.at;
        self.expect(b'"')?;
        let value = self.text()?;
        let (mut plain, mut datatype) = (true, None);
        match self.peek()? {
            b'@' => {
                self.at += 1;
                plain = self.language()?;
            }
            b'^' => {
                self.at += 1;
                self.expect(b'^')?;
                let iri = self.iri()?;
                // A few of them may not be given to a literal like this.
                datatype = Some(iri).filter(|iri| !iri.starts_with(RDF));
                datatype?;
            }
            _ => {}
        }
        Some(Object::Literal { value, written: &self.line[start..self.at], plain, datatype })
    }

    /// The text up to the closing quote, which is passed.
    fn text(&mut self) -> Option<Cow<'l, str>> {
        let mut whole: Option<String> = None;
        loop {
            let rest = &self.line.as_bytes()[self.at..];
            let end = memchr2(b'"', b'\\', rest)?;
            let piece = &self.line[self.at..self.at + end];
            self.at += end + 1;
            if rest[end] == b'"' {
                return Some(match whole {
                    Some(whole) => Cow::Owned(whole + piece),
                    None => Cow::Borrowed(piece),
                });
            }
            let whole = whole.get_or_insert_default();
            whole.push_str(piece);
            whole.push(self.escaped()?);
        }
    }

    /// The character behind a backslash.
    fn escaped(&mut self) -> Option<char> {
        let letter = self.peek()?;
        self.at += 1;
        let digits = match letter {
            b't' => return Some('\t'),
            b'b' => return Some('\u{8}'),
            b'n' => return Some('\n'),
            b'r' => return Some('\r'),
            b'f' => return Some('\u{c}'),
            b'"' | b'\'' | b'\\' => return Some(letter as char),
            b'u' => 4,
            b'U' => 8,
            _ => return None,
        };
        let number = self.line.get(self.at..self.at + digits)?;
        if !number.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        self.at += digits;
        char::from_u32(u32::from_str_radix(number, 16).ok()?)
    }

    /// Whether a usual tag of a language, such as `de` or `en-GB`, is English.
    fn language(&mut self) -> Option<bool> {
        let text = &self.line.as_bytes()[self.at..];
        let length = text.iter().take_while(|&&byte| byte.is_ascii_alphanumeric() || byte == b'-').count();
        let tag = &self.line[self.at..self.at + length];
        let (language, region) = tag.split_once('-').unwrap_or((tag, "GB"));
        let is_usual = |part: &str, lengths: std::ops::RangeInclusive<usize>| {
            lengths.contains(&part.len()) && part.bytes().all(|letter| letter.is_ascii_alphabetic())
        };
        if !is_usual(language, 2..=3) || !is_usual(region, 2..=2) {
            return None;
        }
        self.at += length;
        Some(language.eq_ignore_ascii_case("en"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use oxrdf::{GraphName, NamedNodeRef, NamedOrBlankNode, Term};
    use oxrdfio::{RdfFormat, RdfParser};
    use proptest::prelude::*;

    /// What the parser reads, as far as it is of the form that is cut here.
    fn parsed(line: &str, format: RdfFormat) -> Option<[String; 4]> {
        let mut quads = RdfParser::from_format(format).for_slice(line.as_bytes());
        let quad = quads.next()?.ok()?;
        if quads.next().is_some() {
            return None;
        }
        let subject = match &quad.subject {
            NamedOrBlankNode::NamedNode(node) => node.as_str().to_owned(),
            NamedOrBlankNode::BlankNode(node) => node.to_string(),
        };
        let object = match &quad.object {
            Term::NamedNode(node) => node.as_str().to_owned(),
            Term::BlankNode(node) => node.to_string(),
            Term::Literal(literal) => {
                let plain = literal.language().is_none_or(|tag| tag == "en" || tag.starts_with("en-"));
                format!("{plain} {}", literal.value())
            }
            Term::Triple(_) => return None,
        };
        let graph = match &quad.graph_name {
            GraphName::NamedNode(node) => node.as_str().to_owned(),
            GraphName::BlankNode(node) => node.to_string(),
            GraphName::DefaultGraph => String::new(),
        };
        Some([subject, quad.predicate.as_str().to_owned(), object, graph])
    }

    fn cut(line: &str, format: RdfFormat) -> Option<[String; 4]> {
        let statement = Statement::of(line, format == RdfFormat::NQuads)?;
        let (object, datatype) = match statement.object {
            Object::Name(name) => (name.to_owned(), None),
            Object::Literal { value, plain, datatype, .. } => (format!("{plain} {value}"), datatype),
        };
        let good = |name: &str| name.starts_with("_:") || NamedNodeRef::new(name).is_ok();
        let names = [Some(statement.subject), Some(statement.relation), datatype, statement.graph];
        // Names are checked by the reader, once a block.
        let is_good = names.into_iter().flatten().all(good) && (object.contains(' ') || good(&object));
        let [subject, relation] = [statement.subject, statement.relation].map(str::to_owned);
        is_good.then(|| [subject, relation, object, statement.graph.unwrap_or_default().to_owned()])
    }

    proptest! {
        /// What is cut is what the parser reads; what it does not read is not cut.
        #[test]
        fn lines_are_cut_as_they_are_parsed(
            subject in "(<http://[a-c/#?%\\[é{ ]{1,5}>|_:[a-c0-9.]{1,3}|<a>)",
            relation in "(<http://r/[a-c]>|<urn:x:[%é]>|_:p)",
            object in "(<http://[a-c#]{1,4}>|_:[0-9a-f]{1,4}|\"[a-cé ]{0,3}(\\\\[tbnrf\"'\\\\x]|\\\\u00[0-9a-g]{2}|\\\\U0001F60[0-9]|\\\\uD800)?[a-c#.]?\"(@en|@de|@en-GB|@zh-Hant|@x|@EN-us|@en--ltr|\\^\\^<http://t/[a-b]>|\\^\\^<t>|\\^\\^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>)?|5)",
            gap in "[ \t]{0,2}",
            graph in "(|<http://g/[ab]>|_:g|\"g\")",
            end in "( ?\\. ?| ?\\.| \\. # x|\\. <a> |)",
            quads in any::<bool>(),
        ) {
            let format = if quads { RdfFormat::NQuads } else { RdfFormat::NTriples };
            let line = format!("{subject}{gap}{relation}{gap}{object}{gap}{graph}{end}");
            let (ours, theirs) = (cut(&line, format), parsed(&line, format));
            if ours.is_some() {
                prop_assert_eq!(&ours, &theirs, "{}", line);
            }
        }
    }

    #[test]
    fn the_usual_forms_need_no_parser() {
        for line in [
            "<http://a> <http://r> <http://b> .",
            "<http://a> <http://r> _:b2 .",
            "_:b1\t<http://r>\t\"a \\\"quoted\\\" text\\u00e9\"@en-GB\t.",
            "<http://a><http://r>\"5\"^^<http://www.w3.org/2001/XMLSchema#integer>.",
        ] {
            let theirs = parsed(line, RdfFormat::NTriples);
            assert!(theirs.is_some() && cut(line, RdfFormat::NTriples) == theirs, "{line}");
        }
        let line = "<http://a> <http://r> \"b\" <http://g> .";
        assert_eq!(cut(line, RdfFormat::NQuads), parsed(line, RdfFormat::NQuads));
        assert_eq!(cut(line, RdfFormat::NTriples), None);
    }
}
