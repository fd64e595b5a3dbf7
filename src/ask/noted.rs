//! What the data say about the facts of a path: a source, a time, a confidence at every hop that has one.

use super::answer::steps;
use super::{Answer, Model, PathStep};
use crate::graph::{EntityId, Link, Note, RelationId, Triple};
use crate::reason::Hop;
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
    pub(super) fn of(note: Note<'_>) -> Option<Self> {
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
        let reason = &mut answer.reason;
        if let Some(start) = self.names().entities.get(&reason.from_id).map(EntityId) {
            self.note_steps(start, &mut reason.path);
        }
        if !reason.sentence.is_empty() {
            reason.sentence += &sources_in_words(&reason.path);
        }
        answer
    }

    /// A path with its names, and with what the data say about its facts.
    pub(super) fn steps(&self, start: EntityId, path: &[Hop]) -> Vec<PathStep> {
        let mut steps = steps(path, self.names());
        self.note_steps(start, &mut steps);
        steps
    }

    /// What the data say about the fact that `link` leads from one entity to another by.
    pub(super) fn note_of(&self, from: EntityId, link: Link, to: EntityId) -> Option<StepNote> {
        if self.dataset().known.notes.is_empty() {
            return None;
        }
        let relation = link.relation()?;
        let (head, tail) = if link == Link::forward(relation) { (from, to) } else { (to, from) };
        StepNote::of(self.dataset().note(Triple { head, relation, tail }))
    }

    fn note_steps(&self, start: EntityId, path: &mut [PathStep]) {
        if self.dataset().known.notes.is_empty() {
            return;
        }
        let mut from = Some(start);
        for step in path {
            let to = self.names().entities.get(&step.entity).map(EntityId);
            let relation = self.names().relations.get(&step.relation).map(RelationId);
            let link = relation.map(if step.inverse { Link::inverse_of } else { Link::forward });
            step.note = from.zip(to).zip(link).and_then(|((from, to), link)| self.note_of(from, link, to));
            from = to;
        }
    }
}

/// The most sources that a sentence names.
const NAMED: usize = 3;

/// `; sources: PMID:1, PMID:2`: where the facts of a path come from; empty if nothing says so.
fn sources_in_words(path: &[PathStep]) -> String {
    let mut sources: Vec<&str> = Vec::new();
    let given = path.iter().filter_map(|step| step.note.as_ref()?.source.as_deref());
    for source in given.flat_map(|all| all.split('|')) {
        if !sources.contains(&source) {
            sources.push(source);
        }
    }
    let listed = sources[..sources.len().min(NAMED)].join(", ");
    match sources.len() {
        0 => String::new(),
        1 => format!("; source: {listed}"),
        2..=NAMED => format!("; sources: {listed}"),
        more => format!("; sources: {listed} and {} more", more - NAMED),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::instant;
    use crate::graph::NotesBuilder;
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
        let model = instant(source, dataset, &run, None, &Device::cpu(1).unwrap(), 1, &Silent).unwrap();
        let answers = model.predict("Ilse_Hagenthal", "cousin_of", 5).unwrap().answers;
        let mut hops = 0;
        for answer in answers {
            let mut from = answer.reason.from_id.clone();
            for step in &answer.reason.path {
                let (head, tail) = if step.inverse { (&step.entity, &from) } else { (&from, &step.entity) };
                let names = model.names();
                let is_it = |fact: &Triple| {
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
            let source = answer.reason.path[0].note.as_ref().unwrap().source.clone().unwrap();
            let said = answer.reason_in_words();
            assert!(said.contains("; source") && said.contains(&source), "{said}");
        }
        assert!(hops > 2);
        let of = model.facts_of(EntityId(0), None, 0, 3).facts.items;
        assert!(of.len() > 1 && of.iter().all(|fact| fact.note.is_some()));
    }

    #[test]
    fn a_sentence_names_a_few_sources_once() {
        let step = |source: &str| PathStep {
            relation: String::new(),
            relation_label: None,
            inverse: false,
            entity: String::new(),
            label: String::new(),
            relation_score: None,
            entity_score: None,
            note: StepNote::of(Note { source: Some(source), ..Note::default() }),
        };
        let said =
            |sources: &[&str]| sources_in_words(&sources.iter().map(|one| step(one)).collect::<Vec<_>>());
        assert_eq!(said(&[]), "");
        assert_eq!(said(&["a", "a"]), "; source: a");
        assert_eq!(said(&["a|b", "c"]), "; sources: a, b, c");
        assert_eq!(said(&["a|b", "c|a|d", "e"]), "; sources: a, b, c and 2 more");
    }
}
