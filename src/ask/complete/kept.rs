//! Which facts of a completion are written, and how many of the held-out ones it has found.
//!
//! Facts that the user gave and that were held out are not new: by default they are counted and not written. They stay in
//! blocks and parts, so that the count does not depend on how the work was cut.

use super::row::{MissingFact, RankedFact};
use crate::ask::HeldOut;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::io;
use std::str::FromStr;

/// What happens to facts that the data has and the graph does not, because they were held out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldOutFacts {
    /// They are counted.
    #[default]
    Hide,
    /// They are written too, marked.
    Show,
    /// Only they are written.
    Only,
}

impl HeldOutFacts {
    /// Whether a fact is written, given the split that holds it out.
    pub fn shows(self, held_out: Option<HeldOut>) -> bool {
        match self {
            Self::Hide => held_out.is_none(),
            Self::Show => true,
            Self::Only => held_out.is_some(),
        }
    }

    /// Whether a fact is written or counted.
    pub(super) fn needs(self, held_out: Option<HeldOut>) -> bool {
        self.shows(held_out) || held_out == Some(HeldOut::Test)
    }
}

impl FromStr for HeldOutFacts {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "hide" => Ok(Self::Hide),
            "show" => Ok(Self::Show),
            "only" => Ok(Self::Only),
            other => Err(format!("expected hide, show or only, found {other}")),
        }
    }
}

/// How many of the facts that nothing was learnt or tuned from are among those found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recovered {
    /// How many are at least as probable as the facts that were asked for.
    pub recovered: u64,
    /// How many test facts there are of the relations asked.
    pub hidden: u64,
}

impl fmt::Display for Recovered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [recovered, hidden] = [self.recovered, self.hidden].map(crate::shown::grouped);
        write!(f, "recovered {recovered} of the {hidden} facts hidden from it")
    }
}

/// Which rows are kept: the best `most` of those shown, and the others that come before the last of them.
#[derive(Clone, Copy)]
pub(crate) struct Kept {
    /// Which are shown.
    pub held_out: HeldOutFacts,
    /// How many of those.
    pub most: usize,
}

impl Kept {
    /// The rows that are kept of sorted `rows`.
    pub(crate) fn of<'a>(
        self,
        rows: impl Iterator<Item = io::Result<RankedFact>> + 'a,
    ) -> impl Iterator<Item = io::Result<RankedFact>> + 'a {
        let mut left = self.most;
        rows.map_while(move |row| {
            if left == 0 {
                return None;
            }
            if row.as_ref().is_ok_and(|row| self.held_out.shows(row.1.held_out)) {
                left -= 1;
            }
            Some(row)
        })
    }

    /// Those of them that are shown; `found` gets the held-out ones.
    pub(crate) fn shown<'a>(
        self,
        rows: impl Iterator<Item = io::Result<RankedFact>> + 'a,
        found: &'a mut Counted,
    ) -> impl Iterator<Item = io::Result<RankedFact>> + 'a {
        self.of(rows).filter_map(move |row| match row {
            Ok(row) => {
                found.add(&row.1);
                let shown = self.held_out.shows(row.1.held_out);
                if shown {
                    found.tied.add(&row.1);
                }
                shown.then_some(Ok(row))
            }
            error => Some(error),
        })
    }
}

/// How many of the first facts that are shown have the probability of the best one. Probabilities rise in steps, so there
/// may be many; they are in the order of their scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tied {
    /// The best probability, as bits.
    best: Option<u64>,
    /// How many have it.
    pub count: u64,
    over: bool,
}

impl Tied {
    /// Adds the next fact.
    fn add(&mut self, fact: &MissingFact) {
        let Some(bits) = fact.probability.0.map(f64::to_bits) else { return };
        self.over |= *self.best.get_or_insert(bits) != bits;
        self.count += u64::from(!self.over);
    }
}

/// What is counted while rows are shown: the test facts among them, each once, though it may be the answer to a tail query
/// and to a head query; and ties for the best.
#[derive(Default)]
pub(crate) struct Counted {
    facts: HashSet<[String; 3]>,
    /// Ties among the facts that are shown.
    pub tied: Tied,
}

impl Counted {
    fn add(&mut self, MissingFact { head, relation, tail, held_out, .. }: &MissingFact) {
        if *held_out == Some(HeldOut::Test) {
            self.facts.insert([head.clone(), relation.clone(), tail.clone()]);
        }
    }

    /// How many they are of the `hidden` ones.
    pub(crate) fn of(&self, hidden: u64) -> Recovered {
        Recovered { recovered: self.facts.len() as u64, hidden }
    }
}
