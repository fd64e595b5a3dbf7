//! Which facts that one asks for stand in the graphs that weights were trained on.
//!
//! Benchmarks are cut from the same few sources, so a figure of weights that have seen its facts says less than one of
//! weights that have not. Names are compared without case, punctuation and the namespace of an IRI; graphs that call the
//! same thing by other names are not seen to overlap.

use super::corpus::{name_of, read_data};
use super::settings::PretrainSettings;
use crate::fnv::fnv;
use crate::graph::{Dataset, Triple};
use crate::universal::UniversalError;
use serde::Serialize;
use std::collections::HashSet;
use std::path::Path;

/// How many of a graph's facts were trained on.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Overlap {
    /// The graph that is asked about.
    pub graph: String,
    /// The facts that were looked for: its test split, or all of them if it has none.
    pub facts: usize,
    /// How many of them are facts of a training graph.
    pub seen: usize,
    /// How many have a pair that some fact of a training graph links, in either direction.
    pub linked: usize,
    /// The same for each training graph by itself.
    pub by_graph: Vec<GraphOverlap>,
}

/// How many facts one training graph has.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct GraphOverlap {
    /// The training graph.
    pub graph: String,
    /// How many of the facts it has.
    pub seen: usize,
    /// How many pairs of the facts it links.
    pub linked: usize,
}

/// Looks for the facts of `asked` in the graphs that `settings` train on; their paths are relative to `data`.
///
/// # Errors
/// If a graph cannot be read.
pub fn overlap(settings: &PretrainSettings, data: &Path, asked: &Path) -> Result<Overlap, UniversalError> {
    let dataset = read_data(asked)?;
    let whole = dataset.everything();
    let facts = if dataset.test.is_empty() { &whole.known.facts } else { &dataset.test };
    let wanted: Vec<Prints> = prints(&dataset, facts).collect();
    let (mut seen, mut linked) = (vec![false; wanted.len()], vec![false; wanted.len()]);
    let mut by_graph = Vec::new();
    for spec in &settings.train {
        let trained = read_data(&data.join(&spec.path))?;
        let (mut known, mut pairs) = (HashSet::new(), HashSet::new());
        for print in prints(&trained, &trained.known.facts) {
            known.insert(print.fact);
            pairs.insert(print.pair);
        }
        let mut here = GraphOverlap { graph: name_of(&spec.path), seen: 0, linked: 0 };
        for (at, print) in wanted.iter().enumerate() {
            if known.contains(&print.fact) {
                (seen[at], here.seen) = (true, here.seen + 1);
            }
            if pairs.contains(&print.pair) {
                (linked[at], here.linked) = (true, here.linked + 1);
            }
        }
        by_graph.push(here);
    }
    let count = |marks: &[bool]| marks.iter().filter(|mark| **mark).count();
    let (seen, linked) = (count(&seen), count(&linked));
    Ok(Overlap { graph: name_of(asked), facts: wanted.len(), seen, linked, by_graph })
}

/// What a fact is recognised by.
struct Prints {
    /// Head, relation and tail.
    fact: u64,
    /// Head and tail, in either order.
    pair: u64,
}

fn prints<'a>(dataset: &'a Dataset, facts: &'a [Triple]) -> impl Iterator<Item = Prints> + 'a {
    let entities: Vec<u64> = dataset.names.entities.iter().map(print_of).collect();
    let relations: Vec<u64> = dataset.names.relations.iter().map(print_of).collect();
    facts.iter().map(move |fact| {
        let [head, tail] = [fact.head, fact.tail].map(|entity| entities[entity.index()]);
        let mixed =
            |parts: &[u64]| fnv(&parts.iter().flat_map(|part| part.to_le_bytes()).collect::<Vec<u8>>());
        Prints {
            fact: mixed(&[head, relations[fact.relation.index()], tail]),
            pair: mixed(&[head.min(tail), head.max(tail)]),
        }
    })
}

/// A name without its namespace, case and punctuation, as a number.
fn print_of(name: &str) -> u64 {
    let inner = name.trim_start_matches('<').trim_end_matches('>');
    let local = match inner.contains("://") {
        // A relation of Freebase is a path, which is its name.
        true => inner.rsplit(['#', '/']).find(|part| !part.is_empty()).unwrap_or(inner),
        false => inner,
    };
    let plain: String =
        local.chars().filter(|char| char.is_alphanumeric()).flat_map(char::to_lowercase).collect();
    // Names of punctuation alone are told apart as they are.
    fnv(if plain.is_empty() { local.as_bytes() } else { plain.as_bytes() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn facts_are_recognised_under_other_spellings_and_counted_once() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("one/train.tsv", "New_York\tlies_in\tUSA\nParis\tlies in\tFrance\n");
        write("two/train.tsv", "new york\tLies-In\tusa\nBerlin\tcapital of\tGermany\n");
        let test = "http://x.org/new_york\tlies_in\thttp://x.org/USA\n\
            http://x.org/Germany\thas_capital\thttp://x.org/Berlin\nRome\tlies_in\tItaly\n";
        write("asked/train.tsv", "Paris\tlies_in\tFrance\n");
        write("asked/test.tsv", test);
        write("c.toml", "[[train]]\npath = \"one\"\n[[train]]\npath = \"two\"\n");
        let settings = PretrainSettings::read(&folder.path().join("c.toml")).unwrap();
        let found = overlap(&settings, folder.path(), &folder.path().join("asked")).unwrap();
        assert_eq!((found.facts, found.seen, found.linked), (3, 1, 2));
        let by_graph: Vec<_> = found.by_graph.iter().map(|one| (&*one.graph, one.seen, one.linked)).collect();
        assert_eq!(by_graph, [("one", 1, 1), ("two", 1, 2)]);
        // Without a test split, all facts are looked for.
        let found = overlap(&settings, folder.path(), &folder.path().join("one")).unwrap();
        assert_eq!((found.facts, found.seen), (2, 2));
    }
}
