//! What the data say about the facts of a path: a source, a time, a confidence at every hop that has one.

use super::{Answer, Model, PathStep};
use crate::graph::{EntityId, Note, RelationId, Triple};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What the data say about a fact, as scripts see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepNote {
    /// How certain the fact is, in (0, 1].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confidence: Option<f32>,
    /// Where it comes from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// When it holds or was stated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
}

impl StepNote {
    /// `note` for scripts; `None` if it says nothing.
    fn of(note: Note<'_>) -> Option<Self> {
        let Note { confidence, source, time } = note;
        let (source, time) = (source.map(str::to_owned), time.map(str::to_owned));
        (!note.is_empty()).then_some(Self { confidence, source, time })
    }
}

impl fmt::Display for StepNote {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let confidence = self.confidence.map(|confidence| format!("confidence {confidence}"));
        let parts: Vec<&str> =
            [&self.source, &self.time, &confidence].into_iter().flatten().map(String::as_str).collect();
        write!(f, "[{}]", parts.join(", "))
    }
}

impl Model {
    /// The same answer with what the data say about the facts of its path.
    pub(super) fn noted(&self, mut answer: Answer) -> Answer {
        if self.dataset().known.notes.is_empty() {
            return answer;
        }
        let mut from = self.names().entities.get(&answer.reason.from_id).map(EntityId);
        for step in &mut answer.reason.path {
            let to = self.names().entities.get(&step.entity).map(EntityId);
            step.note = from.zip(to).and_then(|(from, to)| self.note_of(from, step, to));
            from = to;
        }
        answer
    }

    fn note_of(&self, from: EntityId, step: &PathStep, to: EntityId) -> Option<StepNote> {
        let relation = RelationId(self.names().relations.get(&step.relation)?);
        let (head, tail) = if step.inverse { (to, from) } else { (from, to) };
        StepNote::of(self.dataset().note(Triple { head, relation, tail }))
    }
}

#[cfg(test)]
mod tests {
    use crate::ask::instant;
    use crate::graph::{Note, NotesBuilder};
    use crate::progress::Silent;
    use crate::run::Source;
    use crate::tensor::Device;

    #[test]
    fn every_hop_of_a_reason_has_its_source() {
        let mut dataset = crate::generate::demonstration().everything();
        let mut notes = NotesBuilder::default();
        for (fact, number) in dataset.known.facts.iter().zip(0..) {
            let source = format!("page {number}");
            notes.add(*fact, Note { source: Some(&source), ..Note::default() });
        }
        dataset.known.notes = notes.finish();
        let folder = tempfile::tempdir().unwrap();
        let source = Source::Memory { name: "noted".to_owned() };
        let facts = dataset.known.facts.clone();
        let run = folder.path().join("run");
        let model = instant(source, dataset, &run, &Device::cpu(1).unwrap(), 1, &Silent).unwrap();
        let answers = model.predict("Ilse_Hagenthal", "cousin_of", 5).unwrap().answers;
        let mut hops = 0;
        for answer in answers {
            let mut from = answer.reason.from_id.clone();
            for step in &answer.reason.path {
                let (head, tail) = if step.inverse { (&step.entity, &from) } else { (&from, &step.entity) };
                let names = model.names();
                let is_it = |fact: &crate::graph::Triple| {
                    (names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail))
                        == (head.as_str(), step.relation.as_str(), tail.as_str())
                };
                let number = facts.iter().position(is_it).unwrap();
                let note = step.note.as_ref().unwrap();
                assert_eq!(note.source, Some(format!("page {number}")));
                assert!(answer.path_in_words(model.naming()).contains(&format!("[page {number}]")));
                from = step.entity.clone();
                hops += 1;
            }
        }
        assert!(hops > 2);
    }
}
