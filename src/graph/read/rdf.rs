//! RDF in and out: which name a term gets, and which term a name becomes.
//!
//! An IRI is its own name; a blank node is `_:id`; a literal is its N-Triples text, quotes included. Names that
//! are none of these (an arbitrary string out of a TSV) are written as IRIs under [`NAME_PREFIX`] with the
//! characters an IRI cannot hold escaped, and read back as they were. Named graphs are not kept apart. Nodes that
//! a file leaves without any id (`[]` in Turtle) are numbered in the order of their appearance.

use super::Builder;
use super::bounded::{Bounded, Excess, LONGEST, LONGEST_IN_WORDS};
use super::facts::Facts;
use crate::graph::GraphError;
use oxrdf::{BlankNode, Literal, NamedNode, NamedOrBlankNode, Term};
use oxrdfio::{RdfFormat, RdfParseError, RdfParser};
use std::io::Read;
use std::path::Path;
use std::str::FromStr;

/// The prefix of names that are not IRIs themselves.
pub(in crate::graph) const NAME_PREFIX: &str = "urn:ruleguider:";

/// Reads all of `source` into `builder`.
pub(super) fn read(
    path: &Path,
    source: impl Read,
    format: RdfFormat,
    builder: &mut Builder,
) -> Result<Facts, GraphError> {
    let mut facts = Facts::default();
    let (source, place) = Bounded::new(source, format == RdfFormat::RdfXml);
    let statements =
        RdfParser::from_format(format).for_reader(std::io::BufReader::with_capacity(1 << 16, source));
    for quad in statements {
        let quad = quad.map_err(|error| parse_error(path, place.line(), error))?;
        place.statement_ended();
        let subject = match &quad.subject {
            NamedOrBlankNode::NamedNode(node) => iri_name(node),
            NamedOrBlankNode::BlankNode(node) => blank_name(node, format, builder),
        };
        let object = match &quad.object {
            Term::NamedNode(node) => iri_name(node),
            Term::BlankNode(node) => blank_name(node, format, builder),
            Term::Literal(literal) => literal.to_string(),
        };
        let relation = iri_name(&quad.predicate);
        let fields = [subject.as_str(), &relation, &object];
        if fields.iter().any(|name| name.len() > LONGEST) {
            let expected = format!("names of at most {LONGEST_IN_WORDS}");
            return Err(GraphError::line(path, place.line(), expected, "a longer one"));
        }
        builder.take_fact(fields, &mut facts);
    }
    Ok(facts)
}

/// `line` is how far the file was read; it is used if the parser gives no position (a stream that breaks off).
fn parse_error(path: &Path, line: u64, error: RdfParseError) -> GraphError {
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
pub(in crate::graph) fn node(name: &str) -> NamedOrBlankNode {
    // A blank node id with a colon can be constructed, but no parser reads it.
    let id = name.strip_prefix("_:").filter(|id| !id.contains(':'));
    match id.and_then(|id| BlankNode::new(id).ok()) {
        Some(blank) => blank.into(),
        None => named_node(name).into(),
    }
}

/// The term of a name as an object.
pub(in crate::graph) fn term(name: &str) -> Term {
    match name.starts_with('"').then(|| Literal::from_str(name)) {
        Some(Ok(literal)) => literal.into(),
        _ => node(name).into(),
    }
}

/// The IRI of a name, escaped under [`NAME_PREFIX`] if it is not an IRI itself.
pub(in crate::graph) fn named_node(name: &str) -> NamedNode {
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
