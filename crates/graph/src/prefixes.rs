//! Prefixes of IRIs: `schema:name` instead of `http://schema.org/name`.
//!
//! The prefixes of the files come first, then those that everybody uses the same way.

use serde::{Deserialize, Serialize};

/// Prefixes that have one meaning everywhere.
const KNOWN: [(&str, &str); 16] = [
    ("rdf", "http://www.w3.org/1999/02/22-rdf-syntax-ns#"),
    ("rdfs", "http://www.w3.org/2000/01/rdf-schema#"),
    ("owl", "http://www.w3.org/2002/07/owl#"),
    ("xsd", "http://www.w3.org/2001/XMLSchema#"),
    ("skos", "http://www.w3.org/2004/02/skos/core#"),
    ("foaf", "http://xmlns.com/foaf/0.1/"),
    ("dcterms", "http://purl.org/dc/terms/"),
    ("prov", "http://www.w3.org/ns/prov#"),
    ("schema", "https://schema.org/"),
    ("sdo", "http://schema.org/"),
    ("wd", "http://www.wikidata.org/entity/"),
    ("wdt", "http://www.wikidata.org/prop/direct/"),
    ("dbr", "http://dbpedia.org/resource/"),
    ("dbo", "http://dbpedia.org/ontology/"),
    ("obo", "http://purl.obolibrary.org/obo/"),
    ("biolink", "https://w3id.org/biolink/vocab/"),
];

/// The prefixes of a data set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Prefixes(Vec<(String, String)>);

impl Prefixes {
    /// Whether the data have none of their own.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Those of the data: prefixes and what they stand for.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(prefix, iri)| (prefix.as_str(), iri.as_str()))
    }

    /// Adds a prefix of the data. The first meaning of a prefix stays.
    pub fn add(&mut self, prefix: &str, iri: &str) {
        if !iri.is_empty() && !self.0.iter().any(|(known, _)| known == prefix) {
            self.0.push((prefix.to_owned(), iri.to_owned()));
        }
    }

    /// `iri` with a prefix, if one fits: the longest, so that the rest is short. The rest of an abbreviated name is a
    /// single word, and reads back as `iri`.
    pub fn shorten(&self, iri: &str) -> Option<String> {
        if !iri.contains(':') {
            return None;
        }
        let fitting = self.all().filter_map(|(prefix, start)| {
            let rest = iri.strip_prefix(start)?;
            let is_word = !rest.is_empty() && !rest.contains(['/', '#', '?', ':']);
            is_word.then_some((start.len(), prefix, rest))
        });
        let (_, prefix, rest) = fitting.max_by_key(|found| found.0)?;
        let short = format!("{prefix}:{rest}");
        (self.expand(&short).as_deref() == Some(iri)).then_some(short)
    }

    /// What an abbreviated name stands for, if its prefix is known.
    pub fn expand(&self, name: &str) -> Option<String> {
        let (prefix, rest) = name.split_once(':')?;
        let (_, start) = self.all().find(|(known, _)| *known == prefix)?;
        (!rest.starts_with("//")).then(|| format!("{start}{rest}"))
    }

    fn all(&self) -> impl Iterator<Item = (&str, &str)> {
        self.iter().chain(KNOWN)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_abbreviation_reads_back_as_what_it_stands_for() {
        let mut prefixes = Prefixes::default();
        for (prefix, iri) in [
            ("ex", "http://example.org/"),
            ("exp", "http://example.org/people/"),
            ("ex", "http://other.org/"),
            ("schema", "http://own.org/"),
            ("", "http://empty.org/"),
        ] {
            prefixes.add(prefix, iri);
        }
        for (iri, short) in [
            ("http://example.org/people/ada", Some("exp:ada")),
            ("http://example.org/thing", Some("ex:thing")),
            ("http://www.w3.org/2004/02/skos/core#broader", Some("skos:broader")),
            ("http://empty.org/x", Some(":x")),
            ("http://example.org/a/b", None),
            // The data give this prefix another meaning.
            ("https://schema.org/name", None),
            ("http://nowhere.org/x", None),
            ("Ada Lovelace", None),
        ] {
            assert_eq!(prefixes.shorten(iri).as_deref(), short, "{iri}");
            if let Some(short) = short {
                assert_eq!(prefixes.expand(short).as_deref(), Some(iri));
            }
        }
        assert_eq!((prefixes.expand("http://x"), prefixes.expand("GO:0001")), (None, None));
    }
}
