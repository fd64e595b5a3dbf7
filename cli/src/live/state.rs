//! What holds now, as it follows from the log.
//!
//! A fact holds if it was added, or accepted by more reviewers than rejected it; of adding, removing and accepting, what
//! was said last counts. It is false as long as more reviewers reject than accept it. With equally many, the reviewers
//! are undecided and their verdicts change nothing; [`State::disputed`] counts such facts.

use super::event::{Event, Fact, Kind, Said};
use ruleguider::ask::{AddedFact, Edits, LearntEdits, NamedFact};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// A reviewer's verdict that was not taken back.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Accept, reject or unsure.
    pub kind: Kind,
    pub note: Option<String>,
    pub seq: i64,
    pub time_ms: i64,
}

/// What was said about one fact and still counts.
#[derive(Clone, Debug, Default)]
pub struct About {
    /// Whether it was added (or removed) last, and when.
    stated: Option<(bool, i64)>,
    confidence: Option<f64>,
    source: Option<String>,
    /// By reviewer.
    pub verdicts: BTreeMap<Arc<str>, Verdict>,
}

/// What follows about one fact.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing: it is a fact if the graph has it.
    AsBefore,
    /// It is a fact.
    Holds,
    /// It is no fact.
    Gone,
    /// It is known to be false.
    Rejected,
}

/// All that was said, by fact.
#[derive(Default)]
pub struct State {
    facts: HashMap<Fact, About>,
}

impl About {
    /// How many accept it, and how many reject it.
    pub fn votes(&self) -> (usize, usize) {
        let count = |kind| self.verdicts.values().filter(|verdict| verdict.kind == kind).count();
        (count(Kind::Accept), count(Kind::Reject))
    }

    /// What follows.
    pub fn standing(&self) -> Standing {
        let (accept, reject) = self.votes();
        if reject > accept {
            return Standing::Rejected;
        }
        let accepts = self.verdicts.values().filter(|verdict| verdict.kind == Kind::Accept);
        let accepted = accepts.map(|verdict| (true, verdict.seq)).max_by_key(|one| one.1);
        let accepted = accepted.filter(|_| accept > reject);
        match self.stated.into_iter().chain(accepted).max_by_key(|one| one.1) {
            None => Standing::AsBefore,
            Some((true, _)) => Standing::Holds,
            Some((false, _)) => Standing::Gone,
        }
    }

    /// Who states it: its source, or those who accept it.
    fn sources(&self) -> Option<String> {
        let accepts = self.verdicts.iter().filter(|(_, verdict)| verdict.kind == Kind::Accept);
        let all: Vec<&str> =
            self.source.as_deref().into_iter().chain(accepts.map(|(who, _)| &**who)).collect();
        (!all.is_empty()).then(|| all.join("|"))
    }
}

impl State {
    /// What follows from these entries.
    #[cfg(test)]
    pub fn of(events: impl IntoIterator<Item = Event>) -> Self {
        let mut state = Self::default();
        events.into_iter().for_each(|event| state.apply(event));
        state
    }

    /// What follows from one more entry.
    pub fn apply(&mut self, event: Event) {
        let Event { seq, said: Said { kind, fact, confidence, source, note }, who, time_ms } = event;
        let about = self.facts.entry(fact).or_default();
        match kind {
            Kind::Add => {
                about.stated = Some((true, seq));
                (about.confidence, about.source) = (confidence, source);
            }
            Kind::Remove => about.stated = Some((false, seq)),
            Kind::Undo => drop(about.verdicts.remove(&who)),
            Kind::Accept | Kind::Reject | Kind::Unsure => {
                about.verdicts.insert(who, Verdict { kind, note, seq, time_ms });
            }
        }
    }

    /// What was said about `fact`.
    pub fn about(&self, fact: &Fact) -> Option<&About> {
        self.facts.get(fact)
    }

    /// Whether `said` by `who` would change anything.
    pub fn is_new(&self, said: &Said, who: &str) -> bool {
        let about = self.facts.get(&said.fact);
        match said.kind {
            Kind::Add => about.is_none_or(|about| {
                about.stated.is_none_or(|stated| !stated.0)
                    || (about.confidence, &about.source) != (said.confidence, &said.source)
                    || about.standing() != Standing::Holds
            }),
            Kind::Remove => about.is_none_or(|about| about.standing() != Standing::Gone),
            Kind::Undo => about.is_some_and(|about| about.verdicts.contains_key(who)),
            kind => about
                .and_then(|about| about.verdicts.get(who))
                .is_none_or(|verdict| (verdict.kind, &verdict.note) != (kind, &said.note)),
        }
    }

    /// The facts that reviewers have verdicts on, by the time of the last one, the newest first.
    pub fn reviewed(&self) -> Vec<(&Fact, &About)> {
        let mut all: Vec<(&Fact, &About)> =
            self.facts.iter().filter(|(_, about)| !about.verdicts.is_empty()).collect();
        let last = |about: &About| about.verdicts.values().map(|verdict| verdict.seq).max();
        all.sort_unstable_by_key(|(_, about)| std::cmp::Reverse(last(about)));
        all
    }

    /// How many facts have as many reviewers for as against them.
    pub fn disputed(&self) -> usize {
        let votes = self.facts.values().map(About::votes);
        votes.filter(|(accept, reject)| accept == reject && *accept > 0).count()
    }

    /// How the graph differs from the one that was learnt.
    pub fn edits(&self) -> Edits {
        let mut edits = Edits::default();
        let mut order: Vec<(&Fact, &About, Standing)> =
            self.facts.iter().map(|(fact, about)| (fact, about, about.standing())).collect();
        // The order decides the ids of new names, which must not depend on the table.
        order.sort_unstable_by_key(|(fact, ..)| *fact);
        for (fact, about, standing) in order {
            let fact: NamedFact = fact.each_ref().map(|name| name.to_string());
            match standing {
                Standing::AsBefore => {}
                Standing::Holds => edits.added.push(AddedFact {
                    fact,
                    confidence: about.confidence.map(|confidence| confidence as f32),
                    source: about.sources(),
                    time: None,
                }),
                Standing::Gone => edits.removed.push(fact),
                Standing::Rejected => edits.rejected.push(fact),
            }
        }
        edits
    }

    /// The same where the run has `learnt` earlier changes: what follows no longer is taken back. Facts that were never
    /// spoken of here were learnt from another log, and stay.
    pub fn edits_since(&self, learnt: &LearntEdits) -> Edits {
        let is_open = |fact: &NamedFact| {
            let fact = fact.each_ref().map(|name| Arc::from(name.as_str()));
            self.about(&fact).is_some_and(|about| about.standing() == Standing::AsBefore)
        };
        self.edits().and(learnt.restored(is_open))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What follows from these entries about one fact, given as `who kind`.
    fn standing(entries: &[&str]) -> (Standing, usize, Edits) {
        let fact: Fact = ["Ada", "knows", "Ben"].map(Arc::from);
        let event = |(at, entry): (usize, &&str)| {
            let (who, kind) = entry.split_once(' ').unwrap();
            let kind = Kind::named(kind).unwrap();
            let said = Said { kind, fact: fact.clone(), confidence: None, source: None, note: None };
            Event { seq: at as i64 + 1, said, who: who.into(), time_ms: 0 }
        };
        let state = State::of(entries.iter().enumerate().map(event));
        let about = state.about(&fact).map_or(Standing::AsBefore, About::standing);
        (about, state.disputed(), state.edits())
    }

    #[test]
    fn what_was_said_last_counts_and_reviewers_are_outvoted_never_overruled() {
        for (entries, expected) in [
            (&["a add"][..], Standing::Holds),
            (&["a add", "a remove"], Standing::Gone),
            (&["a accept"], Standing::Holds),
            (&["a accept", "a remove"], Standing::Gone),
            (&["a remove", "b accept"], Standing::Holds),
            (&["a reject"], Standing::Rejected),
            (&["a add", "b reject"], Standing::Rejected),
            (&["a reject", "a undo"], Standing::AsBefore),
            (&["a add", "a reject", "a undo"], Standing::Holds),
            (&["a reject", "a accept"], Standing::Holds),
            (&["a unsure"], Standing::AsBefore),
            (&["a accept", "b reject"], Standing::AsBefore),
            (&["a add", "b accept", "c reject"], Standing::Holds),
            (&["a accept", "b reject", "c reject"], Standing::Rejected),
        ] {
            let (found, _, edits) = standing(entries);
            assert_eq!(found, expected, "{entries:?}");
            let counts = (edits.added.len(), edits.removed.len(), edits.rejected.len());
            let one = |standing| usize::from(expected == standing);
            assert_eq!(counts, (one(Standing::Holds), one(Standing::Gone), one(Standing::Rejected)));
        }
        assert_eq!(standing(&["a accept", "b reject"]).1, 1);
        let (_, _, edits) = standing(&["a accept", "b accept"]);
        assert_eq!(edits.added[0].source.as_deref(), Some("a|b"), "its reviewers are its source");
    }
}
