//! What an update has learnt from edits, so that it can be taken back.
//!
//! A run that has learnt edits has them in its data: an accepted fact is a fact like any other there. If the verdict is
//! taken back afterwards, the edits that follow from the log say nothing about the fact any more. So the run keeps, for
//! each fact that was edited, what the data said about it before the first edit, and [`LearntEdits::restored`] gives the
//! edits that lead back to that.

use super::{AddedFact, Edits, NamedFact};
use crate::graph::{Dataset, EntityId, Note, RelationId, Triple};
use crate::run::{RunDirectory, RunError};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashSet};
use std::path::Path;

/// The file of a run.
const FILE: &str = "edits.json";

/// What the data said about a fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Before {
    /// Nothing, or it was held out.
    Absent,
    /// That it is true.
    True { confidence: Option<f32>, source: Option<String>, time: Option<String> },
    /// That it is false.
    False,
}

/// The facts of a run that were edited before it was learnt, and what its data said about them before that.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LearntEdits(BTreeMap<NamedFact, Before>);

impl LearntEdits {
    /// Those of the run at `path`; none if it was not learnt from edits.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn read(path: &Path) -> Result<Self, RunError> {
        let directory = RunDirectory::look_at(path)?;
        let Some(text) = directory.read(FILE)? else { return Ok(Self::default()) };
        let kept: Vec<(NamedFact, Before)> = serde_json::from_str(&text)
            .map_err(|wrong| RunError::Broken { path: directory.file(FILE), what: wrong.to_string() })?;
        Ok(Self(kept.into_iter().collect()))
    }

    /// Keeps them with a run.
    pub(super) fn write(&self, directory: &RunDirectory) -> Result<(), RunError> {
        let kept: Vec<(&NamedFact, &Before)> = self.0.iter().collect();
        let text = serde_json::to_string(&kept).expect("names and numbers are JSON");
        directory.write(FILE, text.as_bytes())
    }

    /// Those of a run that learns `dataset` with `edits`, where `dataset` has learnt `self` already.
    pub(super) fn and(mut self, edits: &Edits, dataset: &Dataset) -> Self {
        let (known, names) = (&dataset.known, &dataset.names);
        let facts: HashSet<&Triple> = known.facts.iter().collect();
        let before = |[head, relation, tail]: &NamedFact| {
            let triple = Triple {
                head: EntityId(names.entities.get(head)?),
                relation: RelationId(names.relations.get(relation)?),
                tail: EntityId(names.entities.get(tail)?),
            };
            if facts.contains(&triple) {
                let Note { confidence, source, time } = known.notes.of(triple);
                let [source, time] = [source, time].map(|text| text.map(str::to_owned));
                return Some(Before::True { confidence, source, time });
            }
            known.negatives.contains(&triple).then_some(Before::False)
        };
        for fact in edits.facts() {
            if !self.0.contains_key(fact) {
                self.0.insert(fact.clone(), before(fact).unwrap_or(Before::Absent));
            }
        }
        self
    }

    /// The edits after which the data say about these facts what they said before, where `is_open` says that no edit does.
    pub fn restored(&self, is_open: impl Fn(&NamedFact) -> bool) -> Edits {
        let mut edits = Edits::default();
        for (fact, before) in self.0.iter().filter(|(fact, _)| is_open(fact)) {
            let fact = fact.clone();
            match before {
                Before::Absent => edits.removed.push(fact),
                Before::False => edits.rejected.push(fact),
                Before::True { confidence, source, time } => edits.added.push(AddedFact {
                    fact,
                    confidence: *confidence,
                    source: source.clone(),
                    time: time.clone(),
                }),
            }
        }
        edits
    }

    /// Whether the data said, before the first edit, that `fact` is false; `None` if it was never edited.
    pub fn was_false(&self, fact: &NamedFact) -> Option<bool> {
        self.0.get(fact).map(|before| *before == Before::False)
    }

    /// Whether the run has learnt what was said about `fact`.
    pub fn has(&self, fact: &NamedFact) -> bool {
        self.0.contains_key(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{Edited, Learn, Model};
    use crate::generate::family;
    use crate::run::Source;
    use crate::tensor::Device;

    fn has(model: &Model, [head, relation, tail]: &NamedFact) -> bool {
        model.predict(head, relation, 10).is_ok_and(|found| found.known_ids.contains(tail))
    }

    fn predicts(model: &Model, [head, relation, tail]: &NamedFact) -> bool {
        model.predict(head, relation, 1000).unwrap().answers.iter().any(|answer| answer.entity == *tail)
    }

    #[test]
    fn what_was_learnt_is_taken_back_and_the_data_say_what_they_said_before() {
        let folder = tempfile::tempdir().unwrap();
        let data = family(60, 1).dataset;
        let first = folder.path().join("first");
        let device = || Device::cpu(1).unwrap();
        let source = || Source::Memory { name: "family".to_owned() };
        let quick = |learn: Learn| learn.device(device()).set("system=rules").set("rules.samples=4000");
        let learn = quick(Learn::from_dataset(source(), data)).out(&first);
        let base = learn.run().unwrap();
        let names = base.names();
        let named = |fact: &Triple| {
            [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)]
                .map(str::to_owned)
        };
        let stated = named(&base.dataset().known.facts[0]);
        let mut suggested =
            base.dataset().known.facts.iter().rev().map(named).filter_map(|[head, relation, _]| {
                let answer = base.predict(&head, &relation, 1).unwrap().answers.into_iter().next()?;
                Some([head, relation, answer.entity])
            });
        let accepted = suggested.next().unwrap();
        let refused = suggested.find(|other| *other != accepted).unwrap();
        drop(suggested);
        let edits = Edits {
            added: vec![AddedFact { fact: accepted.clone(), ..AddedFact::default() }],
            rejected: vec![refused.clone(), stated.clone()],
            ..Edits::default()
        };
        let second = folder.path().join("second");
        let model = Learn::demonstration().device(device()).update(&first).edits(edits.clone()).out(&second);
        let model = model.run().unwrap();
        assert!(has(&model, &accepted) && !has(&model, &stated) && !predicts(&model, &refused));
        let learnt = LearntEdits::read(&second).unwrap();
        assert!([&accepted, &refused, &stated].into_iter().all(|fact| learnt.has(fact)));
        assert_eq!(LearntEdits::read(&first).unwrap(), LearntEdits::default());
        // Everything is taken back: the served run, and one that learns again, are as if nothing had been said.
        let back = learnt.restored(|_| true);
        let Edited { model: served, .. } = model.with_edits(&back).unwrap();
        let third = folder.path().join("third");
        let again = Learn::demonstration().device(device()).update(&second).edits(back).out(&third);
        for model in [&served, &again.run().unwrap()] {
            assert!(!has(model, &accepted) && has(model, &stated));
            // Whether it is predicted again is up to the rules that were learnt meanwhile; nothing denies it.
            assert!(model.dataset().known.negatives.is_empty());
            assert_eq!(model.graph().facts(), base.graph().facts());
        }
        // The run that learnt the way back still knows it.
        assert_eq!(LearntEdits::read(&third).unwrap(), learnt);
        // Only what nothing else is said about is restored.
        assert_eq!(learnt.restored(|fact| *fact == stated).added[0].fact, stated);
    }
}
