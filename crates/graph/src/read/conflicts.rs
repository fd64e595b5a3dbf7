//! Facts that are also known to be false: refused with the place of both, or settled as the user wants it.

use super::folder;
use super::{Builder, ReadOptions};
use crate::{Array, Dataset, GraphError, Known, Names, Triple};
use serde::{Deserialize, Serialize};
use std::collections::{HashMap, HashSet};
use std::path::Path;
use std::str::FromStr;

/// What becomes of a fact that is also among the negatives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Conflicts {
    /// An error that names both lines.
    #[default]
    Error,
    /// It is neither a fact nor known to be false.
    Drop,
    /// It is a fact.
    Facts,
    /// It is known to be false.
    Negatives,
}

impl FromStr for Conflicts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "error" => Ok(Self::Error),
            "drop" => Ok(Self::Drop),
            "facts" => Ok(Self::Facts),
            "negatives" => Ok(Self::Negatives),
            _ => Err(format!("expected error, drop, facts or negatives, found {text}")),
        }
    }
}

impl Builder {
    /// Divides the negatives by their split, after conflicts with facts are settled.
    pub(super) fn place_negatives(&mut self, dataset: &mut Dataset) -> Result<(), GraphError> {
        if self.negatives.is_empty() {
            return Ok(());
        }
        self.settle(dataset)?;
        let mut of: [Vec<Triple>; 3] = Default::default();
        for (split, fact, ..) in &self.negatives {
            of[*split].push(*fact);
        }
        for split in &mut of {
            split.sort_unstable();
            split.dedup();
        }
        let [negatives, valid_negatives, test_negatives] = of.map(Into::into);
        (dataset.known.negatives, dataset.known.valid_negatives) = (negatives, valid_negatives);
        dataset.test_negatives = test_negatives;
        Ok(())
    }

    /// Leaves nothing both stated and denied.
    fn settle(&mut self, dataset: &mut Dataset) -> Result<(), GraphError> {
        let by_fact: HashMap<Triple, (&Path, u64)> =
            self.negatives.iter().map(|(_, fact, path, line)| (*fact, (path.as_path(), *line))).collect();
        let Known { facts, queries, valid, .. } = &dataset.known;
        let splits: [&[Triple]; 5] = [facts, queries, valid, &dataset.test, &dataset.test_left_out];
        let mut both = HashSet::new();
        for fact in splits.into_iter().flatten() {
            let Some((path, line)) = by_fact.get(fact) else { continue };
            if self.conflicts == Conflicts::Error {
                return Err(self.conflict(&dataset.names, *fact, path, *line));
            }
            both.insert(*fact);
        }
        if both.is_empty() {
            return Ok(());
        }
        if matches!(self.conflicts, Conflicts::Drop | Conflicts::Facts) {
            self.negatives.retain(|(_, fact, ..)| !both.contains(fact));
        }
        if matches!(self.conflicts, Conflicts::Drop | Conflicts::Negatives) {
            leave_out(dataset, &both);
        }
        let became = match self.conflicts {
            Conflicts::Facts => "are taken as facts",
            Conflicts::Negatives => "are taken as false",
            Conflicts::Error | Conflicts::Drop => "are left out",
        };
        self.understood.push(format!("{} facts that are also known to be false {became}.", both.len()));
        Ok(())
    }

    /// The error that `fact` is stated and denied.
    fn conflict(&self, names: &Names, fact: Triple, path: &Path, line: u64) -> GraphError {
        let words = [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)];
        let options = |of: &Path| {
            let read = self.files.iter().find(|(path, _)| path == of);
            read.map_or_else(ReadOptions::default, |(_, options)| options.clone())
        };
        let line = if line > 0 { Some(line) } else { folder::line_of(path, words, &options(path)) };
        let elsewhere = self.files.iter().map(|(path, _)| path.as_path()).filter(|other| *other != path);
        let stated = elsewhere.chain([path]).find_map(|other| {
            let found = folder::line_of(other, words, &options(other))
                .filter(|found| other != path || Some(*found) != line)?;
            Some(format!(" in {}:{found}", other.display()))
        });
        let expected =
            "a fact that is known to be false (--conflicts drop, facts or negatives settles such conflicts)";
        let found = format!("{}, which is stated as a fact{}", words.join(" "), stated.unwrap_or_default());
        match line {
            Some(line) => GraphError::line(path, line, expected, found),
            None => GraphError::file(path, expected, found),
        }
    }
}

/// Takes `facts` out of every split.
fn leave_out(dataset: &mut Dataset, facts: &HashSet<Triple>) {
    let without = |split: &Array<Triple>| -> Array<Triple> {
        split.iter().filter(|fact| !facts.contains(fact)).copied().collect()
    };
    let known = &mut dataset.known;
    let own_graph = known.has_own_graph();
    known.queries = without(&known.queries);
    // Where the queries are the facts, they share their memory.
    known.facts = if own_graph { without(&known.facts) } else { known.queries.clone() };
    known.valid = without(&known.valid);
    dataset.test = without(&dataset.test);
    dataset.test_left_out = without(&dataset.test_left_out);
}
