//! What an endpoint answers: a page of statements, in RDF or as rows of variables, as lines of N-Triples or N-Quads.

use super::super::read::columns_by_role;
use oxrdf::{BlankNode, GraphName, Literal, NamedNode, NamedOrBlankNode, Quad, Term};
use oxrdfio::{RdfFormat, RdfParser, RdfSerializer};
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;

/// What a page may be.
pub(super) const ACCEPT: &str = "application/n-triples, application/sparql-results+json, text/turtle;q=0.8, \
                                 application/rdf+xml;q=0.5";

/// A page.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    /// How many statements or rows it has.
    pub(super) rows: u64,
    /// How many rows are no statement: an unbound variable, a literal as the subject.
    pub(super) left_out: u64,
    /// Its statements, a line each.
    pub(super) lines: Vec<u8>,
}

/// Reads a page. Blank nodes get the `number` of the page, because another page may use the same names for others; the
/// statements are of `graph`, if one is asked for.
///
/// # Errors
/// If it is none; says what was expected and what was found.
pub(super) fn read(
    content_type: &str,
    body: &[u8],
    number: u64,
    graph: Option<&str>,
) -> Result<Page, [String; 2]> {
    let expected = || "statements (N-Triples, Turtle, RDF/XML) or rows of SPARQL in JSON".to_owned();
    let quads = match content_type {
        "application/sparql-results+json" | "application/json" => return rows(body, number, graph),
        "application/n-triples" | "text/plain" | "" => RdfFormat::NTriples,
        "text/turtle" | "application/x-turtle" => RdfFormat::Turtle,
        "application/rdf+xml" | "application/xml" | "text/xml" => RdfFormat::RdfXml,
        other => return Err([expected(), other.to_owned()]),
    };
    let mut page = Writer::new(number, graph);
    for quad in RdfParser::from_format(quads).for_slice(body) {
        let quad = quad.map_err(|error| [expected(), format!("an error: {error}")])?;
        page.rows += 1;
        page.write(quad.subject, quad.predicate, quad.object)
            .map_err(|error| [expected(), error.to_string()])?;
    }
    page.end().map_err(|error| [expected(), error.to_string()])
}

struct Writer {
    rows: u64,
    left_out: u64,
    number: u64,
    graph: GraphName,
    out: oxrdfio::WriterQuadSerializer<Vec<u8>>,
}

impl Writer {
    fn new(number: u64, graph: Option<&str>) -> Self {
        let format = if graph.is_some() { RdfFormat::NQuads } else { RdfFormat::NTriples };
        let out = RdfSerializer::from_format(format).for_writer(Vec::new());
        let graph = graph.map_or(GraphName::DefaultGraph, |iri| NamedNode::new_unchecked(iri).into());
        Self { rows: 0, left_out: 0, number, graph, out }
    }

    fn write(&mut self, subject: NamedOrBlankNode, predicate: NamedNode, object: Term) -> io::Result<()> {
        let subject = match subject {
            NamedOrBlankNode::BlankNode(node) => self.own(&node).into(),
            named => named,
        };
        let object = match object {
            Term::BlankNode(node) => self.own(&node).into(),
            other => other,
        };
        let graph_name = self.graph.clone();
        self.out.serialize_quad(&Quad { subject, predicate, object, graph_name })
    }

    /// A blank node of this page. Labels of other characters than letters and digits can be made that no parser of
    /// N-Triples reads, such as those with a colon.
    fn own(&self, node: &BlankNode) -> BlankNode {
        let (number, label) = (self.number, node.as_str());
        BlankNode::new_unchecked(match label.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            true => format!("page{number}x{label}"),
            false => format!("page{number}h{}", hexed(label)),
        })
    }

    fn end(self) -> io::Result<Page> {
        Ok(Page { rows: self.rows, left_out: self.left_out, lines: self.out.finish()? })
    }
}

/// The answer to a SELECT, as far as it is used.
#[derive(Deserialize)]
struct Answer {
    head: Head,
    results: Results,
}

#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    vars: Vec<String>,
}

#[derive(Deserialize)]
struct Results {
    bindings: Vec<BTreeMap<String, Value>>,
}

#[derive(Deserialize)]
struct Value {
    #[serde(rename = "type")]
    kind: String,
    value: serde_json::Value,
    #[serde(rename = "xml:lang")]
    language: Option<String>,
    datatype: Option<String>,
}

impl Value {
    /// The term that it is; `None` if it is none of RDF 1.1.
    fn term(&self) -> Option<Term> {
        let text = self.value.as_str()?;
        Some(match self.kind.as_str() {
            "uri" => NamedNode::new(text).ok()?.into(),
            "bnode" => BlankNode::new(text).unwrap_or_else(|_| BlankNode::new_unchecked(hexed(text))).into(),
            "literal" | "typed-literal" => match (&self.language, &self.datatype) {
                (Some(language), _) => Literal::new_language_tagged_literal(text, language).ok()?.into(),
                (None, Some(datatype)) => {
                    Literal::new_typed_literal(text, NamedNode::new(datatype).ok()?).into()
                }
                (None, None) => Literal::new_simple_literal(text).into(),
            },
            _ => return None,
        })
    }
}

/// A name of letters and digits for any text.
fn hexed(text: &str) -> String {
    text.bytes().map(|byte| format!("{byte:02x}")).collect()
}

/// The rows of a SELECT as statements: of the variables called so, or of the first three.
fn rows(body: &[u8], number: u64, graph: Option<&str>) -> Result<Page, [String; 2]> {
    let expected = || "rows of SPARQL in JSON".to_owned();
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| [expected(), format!("an error: {error}")])?;
    let vars: Vec<&str> = answer.head.vars.iter().map(String::as_str).collect();
    let by_name = columns_by_role(vars.iter().copied()).map(|places| places.map(|place| vars[place]));
    let Some([subject, predicate, object]) = by_name.or_else(|| vars.first_chunk().copied()) else {
        let expected = "three variables: subject, predicate and object".to_owned();
        return Err([expected, if vars.is_empty() { "none".to_owned() } else { vars.join(", ") }]);
    };
    let mut page = Writer::new(number, graph);
    for row in &answer.results.bindings {
        page.rows += 1;
        let term = |variable: &str| row.get(variable).and_then(Value::term);
        let subject = term(subject).and_then(|term| NamedOrBlankNode::try_from(term).ok());
        let predicate = term(predicate).and_then(|term| NamedNode::try_from(term).ok());
        match (subject, predicate, term(object)) {
            (Some(subject), Some(predicate), Some(object)) => {
                page.write(subject, predicate, object).map_err(|error| [expected(), error.to_string()])?;
            }
            _ => page.left_out += 1,
        }
    }
    page.end().map_err(|error| [expected(), error.to_string()])
}

/// The IRIs of one variable of a SELECT.
///
/// # Errors
/// As [`read`].
pub(super) fn iris(content_type: &str, body: &[u8], variable: &str) -> Result<Vec<String>, [String; 2]> {
    let expected = || "rows of SPARQL in JSON".to_owned();
    if !content_type.ends_with("json") {
        return Err([expected(), content_type.to_owned()]);
    }
    let answer: Answer =
        serde_json::from_slice(body).map_err(|error| [expected(), format!("an error: {error}")])?;
    let iri = |row: &BTreeMap<String, Value>| match row.get(variable)?.term()? {
        Term::NamedNode(node) => Some(node.into_string()),
        _ => None,
    };
    Ok(answer.results.bindings.iter().filter_map(iri).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(page: &Page) -> Vec<&str> {
        std::str::from_utf8(&page.lines).unwrap().lines().collect()
    }

    #[test]
    fn statements_are_lines_and_blank_nodes_belong_to_their_page() {
        let turtle = b"@prefix ex: <http://x.org/> . ex:a ex:r _:b1 . _:b1 ex:says \"hi\"@en .";
        let page = read("text/turtle", turtle, 7, None).unwrap();
        assert_eq!(
            lines(&page),
            ["<http://x.org/a> <http://x.org/r> _:page7xb1 .", "_:page7xb1 <http://x.org/says> \"hi\"@en ."]
        );
        let nt = b"<http://x.org/a> <http://x.org/r> <http://x.org/b> .\n";
        let page = read("application/n-triples", nt, 0, Some("http://x.org/g")).unwrap();
        assert_eq!(lines(&page), ["<http://x.org/a> <http://x.org/r> <http://x.org/b> <http://x.org/g> ."]);
        let [_, found] = read("text/html", b"<p>sorry", 0, None).unwrap_err();
        assert_eq!(found, "text/html");
        let [_, found] =
            read("text/plain", b"<http://x.org/a> <http://x.org/r> <http://x.o", 0, None).unwrap_err();
        assert!(found.starts_with("an error: "), "{found}");
    }

    #[test]
    fn rows_are_statements_by_the_names_of_their_variables() {
        let json = br#"{"head":{"vars":["object","subject","weight","predicate"]},"results":{"bindings":[
            {"subject":{"type":"uri","value":"http://x.org/a"},"predicate":{"type":"uri","value":"http://x.org/r"},
             "object":{"type":"literal","value":"1.5","datatype":"http://www.w3.org/2001/XMLSchema#decimal"}},
            {"subject":{"type":"literal","value":"no"},"predicate":{"type":"uri","value":"http://x.org/r"}},
            {"subject":{"type":"bnode","value":"t0"},"predicate":{"type":"uri","value":"http://x.org/r"},
             "object":{"type":"uri","value":"http://x.org/b"}}]}}"#;
        let page = read("application/sparql-results+json", json, 2, None).unwrap();
        assert_eq!((page.rows, page.left_out), (3, 1));
        assert_eq!(
            lines(&page),
            [
                "<http://x.org/a> <http://x.org/r> \"1.5\"^^<http://www.w3.org/2001/XMLSchema#decimal> .",
                "_:page2xt0 <http://x.org/r> <http://x.org/b> ."
            ]
        );
        // A label that no parser of N-Triples reads.
        let odd =
            br#"{"head":{"vars":["s","p","o"]},"results":{"bindings":[{"s":{"type":"bnode","value":"a:b"},
            "p":{"type":"uri","value":"http://x.org/r"},"o":{"type":"uri","value":"http://x.org/b"}}]}}"#;
        let page = read("application/json", odd, 3, None).unwrap();
        assert_eq!(lines(&page), ["_:page3h613a62 <http://x.org/r> <http://x.org/b> ."]);
        let two = br#"{"head":{"vars":["a","b"]},"results":{"bindings":[]}}"#;
        assert_eq!(read("application/json", two, 0, None).unwrap_err()[1], "a, b");
    }
}
