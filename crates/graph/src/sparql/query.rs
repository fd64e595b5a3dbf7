//! The queries that an endpoint is asked.

/// How a query of the user's own is asked in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Paging {
    /// A SELECT: a row a statement.
    Rows,
    /// A CONSTRUCT: a solution may be several statements.
    Template,
    /// It has a LIMIT of its own, and is asked once.
    Whole,
}

impl Paging {
    /// How `query` is asked; `None` if it is neither SELECT nor CONSTRUCT.
    pub(super) fn of(query: &str) -> Option<Self> {
        let words = words(query);
        let form = words.iter().find_map(|word| match word.as_str() {
            "SELECT" => Some(Self::Rows),
            "CONSTRUCT" => Some(Self::Template),
            "ASK" | "DESCRIBE" | "INSERT" | "DELETE" | "LOAD" | "CLEAR" | "DROP" => Some(Self::Whole),
            _ => None,
        })?;
        let is_read = words.iter().any(|word| word == "SELECT" || word == "CONSTRUCT");
        let has_limit = words.iter().any(|word| word == "LIMIT" || word == "OFFSET");
        match form {
            Self::Whole => None,
            _ if !is_read => None,
            _ if has_limit => Some(Self::Whole),
            form => Some(form),
        }
    }

    /// The page of `query` that begins behind `offset` solutions.
    pub(super) fn page(self, query: &str, limit: u64, offset: u64) -> String {
        match self {
            Self::Whole => query.to_owned(),
            // A comment may end the query.
            Self::Rows | Self::Template => format!("{query}\nLIMIT {limit} OFFSET {offset}"),
        }
    }
}

/// The words of a query in capitals, without comments, strings, IRIs, variables and prefixed names.
fn words(query: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut rest = query;
    while let Some(first) = rest.chars().next() {
        let skipped = match first {
            '#' => rest.find('\n').unwrap_or(rest.len()),
            '<' => iri(rest),
            '"' | '\'' => string(rest, first),
            '?' | '$' | ':' | '@' => first.len_utf8() + word(&rest[first.len_utf8()..]),
            _ if first.is_alphanumeric() || first == '_' => {
                let length = word(rest);
                // `select:name` is a name.
                if !rest[length..].starts_with(':') {
                    words.push(rest[..length].to_ascii_uppercase());
                }
                length
            }
            _ => first.len_utf8(),
        };
        rest = &rest[skipped..];
    }
    words
}

fn word(text: &str) -> usize {
    text.find(|letter: char| !(letter.is_alphanumeric() || letter == '_' || letter == '-'))
        .unwrap_or(text.len())
}

/// The length of an IRI, or of a single `<` that compares.
fn iri(text: &str) -> usize {
    let end = text.find(['>', ' ', '\n', '\t']).unwrap_or(0);
    if text[end..].starts_with('>') { end + 1 } else { 1 }
}

/// The length of a string that begins with `quote`, which may stand there three times.
fn string(text: &str, quote: char) -> usize {
    let long: String = std::iter::repeat_n(quote, 3).collect();
    let mark = if text.starts_with(&long) { &long[..] } else { &long[..1] };
    let mut at = mark.len();
    while let Some(letter) = text[at..].chars().next() {
        if text[at..].starts_with(mark) {
            return at + mark.len();
        }
        at += letter.len_utf8();
        if letter == '\\' {
            at += text[at..].chars().next().map_or(0, char::len_utf8);
        }
    }
    text.len()
}

/// The relations of a graph.
pub(super) fn relations(graph: Option<&str>) -> String {
    format!("SELECT DISTINCT ?p WHERE {}", within(graph, "?s ?p ?o"))
}

/// A page of the statements with one relation.
pub(super) fn page(relation: &str, graph: Option<&str>, limit: u64, offset: u64) -> String {
    let pattern = within(graph, &format!("?s <{relation}> ?o"));
    format!("CONSTRUCT {{ ?s <{relation}> ?o }} WHERE {pattern} ORDER BY ?s ?o LIMIT {limit} OFFSET {offset}")
}

fn within(graph: Option<&str>, pattern: &str) -> String {
    match graph {
        Some(graph) => format!("{{ GRAPH <{graph}> {{ {pattern} }} }}"),
        None => format!("{{ {pattern} }}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_of_a_query_is_seen_through_comments_strings_and_names() {
        for (query, expected) in [
            ("SELECT ?s ?p ?o WHERE { ?s ?p ?o }", Some(Paging::Rows)),
            (
                "# CONSTRUCT\nprefix select: <http://x/CONSTRUCT>\nselect * { ?limit select:ask ?o }",
                Some(Paging::Rows),
            ),
            (
                "CONSTRUCT { ?s a \"LIMIT\" } WHERE { SELECT ?s { ?s ?p 'it\\'s LIMIT' FILTER(?p<3) } }",
                Some(Paging::Template),
            ),
            ("select ?s ?p ?o { ?s ?p ?o } limit 5", Some(Paging::Whole)),
            ("construct { ?s ?p \"\"\"a \" LIMIT\"\"\" } { ?s ?p ?o } OFFSET 2", Some(Paging::Whole)),
            ("ASK { ?s ?p ?o }", None),
            ("DELETE WHERE { ?s ?p ?o }", None),
            ("", None),
        ] {
            assert_eq!(Paging::of(query), expected, "{query}");
        }
        assert_eq!(Paging::Rows.page("SELECT * {} # all", 10, 20), "SELECT * {} # all\nLIMIT 10 OFFSET 20");
        assert_eq!(
            page("http://x/r", Some("http://x/g"), 5, 10),
            "CONSTRUCT { ?s <http://x/r> ?o } WHERE { GRAPH <http://x/g> { ?s <http://x/r> ?o } } ORDER BY ?s ?o LIMIT 5 OFFSET 10"
        );
    }
}
