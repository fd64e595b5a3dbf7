//! A system whose paths are judged: a run, or a file of predictions by other programs.

use super::JudgeError;
use crate::ask::Model;
use crate::graph::{Compression, Direction, EntityId, Graph, Link, Names, Query, RelationId, Triple};
use crate::progress::Progress;
use crate::reason::Hop;
use crate::run::Checksum;
use serde::Deserialize;
use std::collections::{HashMap, HashSet};
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// The longest line, the same limit as for other files.
const LONGEST_LINE: u64 = 16 << 20;

/// A system whose paths are judged.
pub struct Contender {
    /// The name of the system.
    pub name: String,
    source: Source,
}

enum Source {
    Run(Box<Model>),
    /// For each true answer of the validation split in the file, its path.
    File(HashMap<(Query, EntityId), Vec<Hop>>),
}

/// A line of `predict --file`, as far as a study needs it.
#[derive(Deserialize)]
struct PredictedLine {
    subject: String,
    relation: String,
    #[serde(default)]
    inverse: bool,
    answers: Vec<PredictedAnswer>,
}

#[derive(Deserialize)]
struct PredictedAnswer {
    entity: String,
    /// Where the path begins, if not at the subject.
    from_id: Option<String>,
    #[serde(default)]
    path: Vec<PredictedStep>,
}

#[derive(Deserialize)]
struct PredictedStep {
    relation: String,
    #[serde(default)]
    inverse: bool,
    entity: String,
}

/// A query with one of its true answers, and a path that leads there.
type FoundPath = ((Query, EntityId), Vec<Hop>);

impl Contender {
    /// A run.
    ///
    /// # Errors
    /// If it has learnt the validation split, from which studies are drawn.
    pub fn run(name: impl Into<String>, model: Model) -> Result<Self, JudgeError> {
        model.expect_valid_unlearnt()?;
        Ok(Self { name: name.into(), source: Source::Run(Box::new(model)) })
    }

    /// The predictions in a file of JSON lines as `predict --file` writes them, over the data of `model`: `subject`,
    /// `relation` and `answers`, each with `entity` and `path`. Only the first `within` answers of a line count.
    ///
    /// # Errors
    /// If it cannot be read, a name is unknown, or a path that would be shown is not in the graph.
    pub fn file(
        name: impl Into<String>,
        path: &Path,
        model: &Model,
        within: Option<usize>,
    ) -> Result<Self, JudgeError> {
        let reader = Foreign { path, names: model.names(), graph: model.graph() };
        let wanted: HashSet<Triple> = model.dataset().known.valid.iter().copied().collect();
        let paths = reader.read(&wanted, within.unwrap_or(usize::MAX))?;
        Ok(Self { name: name.into(), source: Source::File(paths) })
    }

    /// The run, if it is one.
    pub fn model(&self) -> Option<&Model> {
        match &self.source {
            Source::Run(model) => Some(model),
            Source::File(_) => None,
        }
    }

    /// The best path to the tail of each of `triples`, from its head and without hops that stay; `None` if the tail
    /// is not among the first `within` candidates, or its reason is not such a path.
    ///
    /// # Errors
    /// If the reasoner fails or the user interrupts.
    pub(super) fn paths(
        &self,
        triples: &[Triple],
        within: Option<usize>,
        workers: usize,
        progress: &dyn Progress,
    ) -> Result<Vec<Option<Vec<Hop>>>, JudgeError> {
        let asked: Vec<(Query, EntityId)> =
            triples.iter().map(|&triple| Query::of(triple, Direction::Forward)).collect();
        match &self.source {
            Source::File(paths) => Ok(asked.iter().map(|fact| paths.get(fact).cloned()).collect()),
            Source::Run(model) => {
                let reasons = model.reasons_for(&asked, within, workers, progress)?;
                let path = |(&(query, answer), ways): (&(Query, EntityId), Vec<crate::reason::Reasoned>)| {
                    let paths = ways.into_iter().filter(|way| way.start == query.subject);
                    let walked = |way: crate::reason::Reasoned| -> Vec<Hop> {
                        let moves = way.path.into_iter().filter(|hop| hop.link != Link::NO_OP);
                        moves.map(|hop| Hop { scores: None, ..hop }).collect()
                    };
                    { paths.map(walked) }.find(|path| path.last().is_some_and(|hop| hop.target == answer))
                };
                Ok(asked.iter().zip(reasons).map(path).collect())
            }
        }
    }
}

/// The first run among `contenders`; the study uses its data and names.
///
/// # Errors
/// If there is none, or runs over different data.
pub(super) fn first_run(contenders: &[Contender]) -> Result<&Model, JudgeError> {
    let mut runs = contenders.iter().filter_map(Contender::model);
    let first = runs.next().ok_or_else(|| {
        JudgeError::Systems("expected at least one run directory: it has the facts and labels".to_owned())
    })?;
    let sum = |model: &Model| Checksum::of_known(model.names(), &model.dataset().known);
    let of_first = sum(first);
    match runs.find(|run| sum(run) != of_first) {
        None => Ok(first),
        Some(other) => Err(JudgeError::OtherData {
            path: other.directory().path().to_owned(),
            first: first.directory().path().to_owned(),
        }),
    }
}

/// Reads foreign predictions.
struct Foreign<'a> {
    path: &'a Path,
    names: &'a Names,
    graph: &'a Graph,
}

impl Foreign<'_> {
    fn read(
        &self,
        wanted: &HashSet<Triple>,
        within: usize,
    ) -> Result<HashMap<(Query, EntityId), Vec<Hop>>, JudgeError> {
        let unreadable = |source| JudgeError::Unreadable { path: self.path.to_owned(), source };
        let file = std::fs::File::open(self.path).map_err(unreadable)?;
        let mut input = BufReader::new(Compression::of(self.path).unpack(file).map_err(unreadable)?);
        let (mut paths, mut text) = (HashMap::new(), String::new());
        for line in 1.. {
            text.clear();
            if (&mut input).take(LONGEST_LINE).read_line(&mut text).map_err(unreadable)? == 0 {
                break;
            }
            if text.trim().is_empty() {
                continue;
            }
            let found = self.line(&text, wanted, within);
            let found = found.map_err(|message| JudgeError::Malformed {
                path: self.path.to_owned(),
                line,
                message,
            })?;
            for (fact, path) in found {
                // Of duplicate queries, the first counts.
                paths.entry(fact).or_insert(path);
            }
        }
        Ok(paths)
    }

    /// The paths of one line to true answers.
    fn line(&self, text: &str, wanted: &HashSet<Triple>, within: usize) -> Result<Vec<FoundPath>, String> {
        let line: PredictedLine = serde_json::from_str(text)
            .map_err(|error| format!("expected a prediction as `predict --file` writes it: {error}"))?;
        let (head, relation) = (self.entity(&line.subject)?, self.relation(&line.relation)?);
        let mut found = Vec::new();
        if line.inverse {
            return Ok(found);
        }
        for answer in line.answers.iter().take(within) {
            let tail = self.entity(&answer.entity)?;
            let begins = answer.from_id.as_ref().is_none_or(|from| *from == line.subject);
            if !begins || answer.path.is_empty() || !wanted.contains(&Triple { head, relation, tail }) {
                continue;
            }
            let query = Query { subject: head, link: Link::forward(relation) };
            found.push(((query, tail), self.hops(head, tail, answer)?));
        }
        Ok(found)
    }

    fn hops(&self, head: EntityId, tail: EntityId, answer: &PredictedAnswer) -> Result<Vec<Hop>, String> {
        let mut here = head;
        let mut hops = Vec::with_capacity(answer.path.len());
        for step in &answer.path {
            let direction = if step.inverse { Direction::Inverse } else { Direction::Forward };
            let link = Link::new(self.relation(&step.relation)?, direction);
            let target = self.entity(&step.entity)?;
            if !self.graph.contains(here, link, target) {
                let (from, relation) = (self.names.entity(here), &step.relation);
                let sign = if step.inverse { "~" } else { "" };
                return Err(format!(
                    "the path to {} has a step that is not a fact of the graph: {from} {sign}{relation} {}",
                    answer.entity, step.entity
                ));
            }
            hops.push(Hop { link, target, scores: None });
            here = target;
        }
        match here == tail {
            true => Ok(hops),
            false => Err(format!("the path to {} ends at {}", answer.entity, self.names.entity(here))),
        }
    }

    fn entity(&self, name: &str) -> Result<EntityId, String> {
        let id = self.names.entities.get(name).map(EntityId);
        id.ok_or_else(|| format!("the data does not have an entity `{name}`"))
    }

    fn relation(&self, name: &str) -> Result<RelationId, String> {
        let id = self.names.relations.get(name).map(RelationId);
        id.ok_or_else(|| format!("the data does not have a relation `{name}`"))
    }
}
