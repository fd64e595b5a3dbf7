//! Facts of the graph that the rest speaks against: [`Model::doubt`].
//!
//! Every fact is asked with itself taken out of the graph, and with a few others, since facts are taken out in groups.
//! What a member has learnt about an entity by name it has learnt from the fact itself, so members that know entities
//! have no say, unless there is no other. How plausible a fact is follows from what both of its ends say, by a regression
//! on validation facts, which nobody has learnt, and false facts of the right types.

use super::classify::{average_precision, precision_first};
use super::list::stated;
use super::verdict::features;
use super::view::{BOTH_ENDS, End, View};
use crate::ask::complete::is_json_lines;
use crate::ask::elsewhere::for_another_graph;
use crate::ask::{Answer, AskError, Model, Probability};
use crate::eval::Reasoner;
use crate::eval::calibration::usual_answers;
use crate::graph::{
    Cell, CellKind, Direction, EntityId, Query, RelationId, TableColumn, Triple, mixed, write_packed,
    write_table,
};
use crate::progress::Progress;
use crate::run::RunError;
use crate::tensor::logsumexp;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use std::fmt;
use std::path::Path;

/// A relation whose queries have at most this many answers on average says who else the answer is.
const FUNCTIONAL: f64 = 1.5;

/// Which facts to doubt.
#[derive(Clone, Debug)]
pub struct DoubtOptions {
    /// Only facts of these relations; of all if there are none.
    pub relations: Vec<RelationId>,
    /// How many facts are reported, worst first.
    pub top: usize,
    /// How many threads answer batches in parallel; 0 for one.
    pub workers: usize,
    /// Facts that are known to be false, to measure by.
    pub errors: Option<Vec<Triple>>,
}

impl Default for DoubtOptions {
    fn default() -> Self {
        Self { relations: Vec::new(), top: 100, workers: 0, errors: None }
    }
}

/// The facts that the rest of the graph speaks against.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Doubts {
    /// The worst first.
    pub facts: Vec<DoubtedFact>,
    /// How many facts were asked.
    pub asked: usize,
    /// Members that had no say because they know entities by name.
    pub members_left_out: Vec<String>,
    /// How well false facts were found, if some are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub figures: Option<DoubtFigures>,
}

/// A fact of the graph and what speaks against it. The names of the fields are a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoubtedFact {
    /// The subject, by id.
    pub subject: String,
    /// The relation.
    pub relation: String,
    /// The object, by id.
    pub object: String,
    /// The label of the subject, or its id if it has none.
    #[serde(default)]
    pub subject_label: String,
    /// The label of the relation, or its name.
    #[serde(default)]
    pub relation_label: String,
    /// The label of the object.
    #[serde(default)]
    pub object_label: String,
    /// How plausible it is by all others, from 0 to 1.
    pub plausibility: f64,
    /// The rank of the object without the fact, and without other facts of the graph.
    pub rank_tail: f64,
    /// The rank of the subject.
    pub rank_head: f64,
    /// What still supports it, in one line; empty if nothing does.
    pub support: String,
    /// What others answer instead where a query usually has one answer, the likelier end first.
    pub counter_evidence: Vec<CounterEvidence>,
}

/// An answer that others give instead of one end of a doubted fact.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CounterEvidence {
    /// Whether it is about the subject; else about the object.
    pub head: bool,
    /// The answer, with its reason.
    #[serde(flatten)]
    pub answer: Answer,
    /// The same in one line.
    pub words: String,
}

/// How well known false facts were found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DoubtFigures {
    /// How many of the facts asked are false.
    pub errors: usize,
    /// Of what doubt finds.
    pub doubt: DetectionFigures,
    /// Of the embedding model's own scores of the facts, if there is one.
    pub embedding: Option<DetectionFigures>,
    /// Of any order: the share of false facts.
    pub random: f64,
}

/// How good an order of facts is in which false ones should come first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DetectionFigures {
    /// The share of false facts among the first in a hundred.
    pub precision_first_percent: f64,
    /// The area under the curve of precision and recall.
    pub average_precision: f64,
}

impl DetectionFigures {
    /// Of `scores`, lowest first, each with whether the fact is false.
    fn of(mut scores: Vec<(f64, bool)>) -> Self {
        scores.sort_by(|a, b| a.0.total_cmp(&b.0));
        Self {
            precision_first_percent: precision_first(&scores, scores.len().div_ceil(100)),
            average_precision: average_precision(&scores),
        }
    }
}

impl fmt::Display for DoubtFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let one = |f: &mut fmt::Formatter<'_>, name: &str, figures: &DetectionFigures| {
            let DetectionFigures { precision_first_percent, average_precision } = figures;
            write!(f, "\n{name:10} precision of the first 1 %: {precision_first_percent:.3}")?;
            write!(f, ", average precision {average_precision:.3}")
        };
        write!(f, "{} false facts", self.errors)?;
        one(f, "doubt", &self.doubt)?;
        if let Some(embedding) = &self.embedding {
            one(f, "embedding", embedding)?;
        }
        write!(f, "\nrandom     {:.3} for both", self.random)
    }
}

impl Doubts {
    /// Writes the facts in the format that the extension of `out` names; `.jsonl` has all fields.
    ///
    /// # Errors
    /// If the file cannot be written, or its ending is not known.
    pub fn write(&self, out: &Path) -> Result<(), AskError> {
        if !is_json_lines(out) {
            let mut rows = self.facts.iter().map(|fact| Ok(fact.clone().cells()));
            write_table(out, &DoubtedFact::COLUMNS, &mut rows)?;
            return Ok(());
        }
        let written = write_packed(out, |file| {
            for fact in &self.facts {
                serde_json::to_writer(&mut *file, fact)?;
                file.write_all(b"\n")?;
            }
            Ok(())
        });
        written.map_err(|error| RunError::writing(out)(error).into())
    }
}

impl DoubtedFact {
    /// The columns of a table of doubted facts.
    pub const COLUMNS: [TableColumn; 8] = [
        TableColumn::new("subject", CellKind::Text),
        TableColumn::new("relation", CellKind::Text),
        TableColumn::new("object", CellKind::Text),
        TableColumn::required("plausibility", CellKind::Number),
        TableColumn::required("rank_tail", CellKind::Number),
        TableColumn::required("rank_head", CellKind::Number),
        TableColumn::new("support", CellKind::Text),
        TableColumn::new("counter_evidence", CellKind::Text),
    ];

    /// It as a row of that table.
    pub fn cells(self) -> Vec<Cell> {
        let against: Vec<String> = self.counter_evidence.into_iter().map(|one| one.words).collect();
        vec![
            Cell::Text(self.subject),
            Cell::Text(self.relation),
            Cell::Text(self.object),
            Cell::Number(self.plausibility),
            Cell::Number(self.rank_tail),
            Cell::Number(self.rank_head),
            Cell::Text(self.support),
            Cell::Text(against.join("; ")),
        ]
    }
}

/// The order of facts: the least plausible first.
fn order(a: &(f64, DoubtedFact), b: &(f64, DoubtedFact)) -> std::cmp::Ordering {
    let names = |fact: &DoubtedFact| [fact.subject.clone(), fact.relation.clone(), fact.object.clone()];
    a.0.total_cmp(&b.0).then_with(|| names(&a.1).cmp(&names(&b.1)))
}

impl Model {
    /// The facts of the graph that all others speak against, worst first, each with what they say instead.
    ///
    /// # Errors
    /// If the validation split has been learnt or is empty, so that nothing tells how plausible a fact is; if the reasoner
    /// fails, or the user interrupts.
    pub fn doubt(&self, options: &DoubtOptions, progress: &dyn Progress) -> Result<Doubts, AskError> {
        self.expect_valid_unlearnt()?;
        let workers = options.workers.max(1);
        let (view, members_left_out) = self.impartial()?;
        let verdicts = self.verdicts_of(&view, None, workers, progress)?.ok_or_else(|| {
            let message = "facts cannot be doubted without validation facts, by which plausible ones are told from others; \
                 learn with a validation split";
            AskError::Cannot(message.to_owned())
        })?;
        let facts = self.facts_to_doubt(options);
        let truth = self.dataset.known.answers(self.graph().entities());
        let (mut worst, mut scores): (Vec<(f64, DoubtedFact)>, Vec<f64>) = (Vec::new(), Vec::new());
        progress.begin("doubting", "facts", Some(facts.len() as u64));
        for group in self.groups_to_take_out(&facts) {
            let without = view.without(group)?;
            let ends = without.judge(group, BOTH_ENDS, &truth, workers, progress)?;
            let plausible: Vec<f64> =
                ends.iter().map(|ends| verdicts.plausibility(&features(&without.graph, ends))).collect();
            // Reasons take longer than scores, so they are looked for only where they may be reported.
            let least = worst.get(options.top.wrapping_sub(1)).map_or(f64::INFINITY, |last| last.0);
            let mut places: Vec<usize> = (0..group.len()).filter(|&at| plausible[at] <= least).collect();
            places.sort_by(|&a, &b| plausible[a].total_cmp(&plausible[b]));
            places.truncate(options.top);
            let doubted: Result<Vec<(f64, DoubtedFact)>, AskError> = places
                .par_iter()
                .map(|&at| Ok((plausible[at], self.doubted(&without, group[at], &ends[at], plausible[at])?)))
                .collect();
            worst.extend(doubted?);
            worst.sort_by(order);
            worst.truncate(options.top);
            scores.extend(plausible);
            progress.advance(scores.len() as u64, &"");
        }
        progress.end(&format_args!("{} facts asked", facts.len()));
        let figures = match &options.errors {
            Some(errors) => Some(self.detection(&facts, &scores, errors)?),
            None => None,
        };
        let facts = worst.into_iter().map(|(_, fact)| fact).collect();
        Ok(Doubts { facts, asked: scores.len(), members_left_out, figures })
    }

    /// A view in which members that know entities by name have no say, and what these are called. If nobody else can
    /// answer, the model as it is.
    fn impartial(&self) -> Result<(View<'_>, Vec<String>), AskError> {
        let whole = View::whole(self)?;
        match for_another_graph(self.config().clone()) {
            Ok((config, left_out)) if !left_out.is_empty() => {
                let view = whole.with_settings(config)?;
                Ok((view, left_out.into_iter().map(str::to_owned).collect()))
            }
            _ => Ok((View { embedding: None, ..whole }, Vec::new())),
        }
    }

    /// The facts that are asked, mixed, so that facts that are taken out together have little to do with each other.
    fn facts_to_doubt(&self, options: &DoubtOptions) -> Vec<Triple> {
        let wanted =
            |fact: &Triple| options.relations.is_empty() || options.relations.contains(&fact.relation);
        let all = self.artifacts.learnable.known.facts.iter().copied().enumerate();
        let mut keyed: Vec<(u64, Triple)> = all
            .filter(|(_, fact)| wanted(fact))
            .map(|(place, fact)| (mixed(self.seed() ^ mixed(place as u64)), fact))
            .collect();
        keyed.sort_unstable_by_key(|one| one.0);
        keyed.into_iter().map(|one| one.1).collect()
    }

    fn doubted(
        &self,
        view: &View<'_>,
        fact: Triple,
        ends: &[End; 2],
        plausibility: f64,
    ) -> Result<DoubtedFact, AskError> {
        let names = self.names();
        let support = super::score::best_reason(view, ends)?;
        let mut against = Vec::new();
        for end in ends {
            // Where a query usually has several answers, another one says nothing against this one.
            if usual_answers(&view.graph, end.query.link) > FUNCTIONAL {
                continue;
            }
            let Some((rival, probability)) = &end.rival else { continue };
            let Some(reasoned) = view.reasoner.reasons(end.query, rival, 1)?.into_iter().next() else {
                continue;
            };
            // Only a rival that is before the fact speaks against it.
            if end.candidate.as_ref().is_some_and(|own| own.score >= rival.score) {
                continue;
            }
            against.push((
                *probability,
                self.counter_evidence(end.query, rival.entity, &reasoned, *probability),
            ));
        }
        against.sort_by(|a, b| b.0.0.unwrap_or(0.0).total_cmp(&a.0.0.unwrap_or(0.0)));
        Ok(DoubtedFact {
            subject: names.entity(fact.head).to_owned(),
            relation: names.relation(fact.relation).to_owned(),
            object: names.entity(fact.tail).to_owned(),
            subject_label: names.label(fact.head).to_owned(),
            relation_label: names.relation_label(fact.relation).to_owned(),
            object_label: names.label(fact.tail).to_owned(),
            plausibility,
            rank_tail: ends[0].place,
            rank_head: ends[1].place,
            support: support.map_or_else(String::new, |answer| answer.reason_in_words()),
            counter_evidence: against.into_iter().map(|(_, one)| one).collect(),
        })
    }

    fn counter_evidence(
        &self,
        query: Query,
        entity: EntityId,
        reasoned: &crate::reason::Reasoned,
        probability: Probability,
    ) -> CounterEvidence {
        let (names, naming) = (self.names(), self.naming());
        let answer = self.named(query, reasoned, probability);
        let relation = query.link.relation();
        let fact = stated(query.subject, query.link, entity);
        let text = format!(
            "{} —{}→ {}",
            naming.of(fact.head, names),
            relation.map_or("", |relation| names.relation_label(relation)),
            naming.of(fact.tail, names)
        );
        let words = format!("{text}, because {}", answer.reason_in_words());
        CounterEvidence { head: query.link.direction() == Direction::Inverse, answer, words }
    }

    /// How well the order of `scores` finds `errors` among `facts`.
    fn detection(
        &self,
        facts: &[Triple],
        scores: &[f64],
        errors: &[Triple],
    ) -> Result<DoubtFigures, AskError> {
        let errors: HashSet<Triple> = errors.iter().copied().collect();
        let labelled = |scores: &[f64]| -> Vec<(f64, bool)> {
            scores.iter().zip(facts).map(|(&score, fact)| (score, errors.contains(fact))).collect()
        };
        let found = facts.iter().filter(|fact| errors.contains(fact)).count();
        if found == 0 {
            let message = "none of the facts given as false is a fact of the graph that was asked";
            return Err(AskError::Cannot(message.to_owned()));
        }
        let by_embedding = self.embedding_scores(facts)?;
        Ok(DoubtFigures {
            errors: found,
            doubt: DetectionFigures::of(labelled(scores)),
            embedding: by_embedding.map(|scores| DetectionFigures::of(labelled(&scores))),
            random: found as f64 / facts.len() as f64,
        })
    }

    /// The embedding model's own opinion of facts: the mean of the logarithms of its softmax at both ends.
    fn embedding_scores(&self, facts: &[Triple]) -> Result<Option<Vec<f64>>, AskError> {
        let Some(embedding) = self.embedding()? else { return Ok(None) };
        let mut scores = Vec::with_capacity(facts.len());
        for batch in facts.chunks((embedding.batch() / 2).max(1)) {
            let ends: Vec<(Query, EntityId)> =
                batch.iter().flat_map(|&fact| BOTH_ENDS.map(|way| Query::of(fact, way))).collect();
            let rows = embedding.scores(&ends.iter().map(|end| end.0).collect::<Vec<_>>())?;
            let rows = rows.on_host()?;
            let of_end = |(row, (_, object)): (&[f32], &(Query, EntityId))| {
                f64::from(row[object.index()]) - logsumexp(row)
            };
            let of_ends: Vec<f64> =
                rows.par_chunks_exact(embedding.size().entities).zip(&ends).map(of_end).collect();
            scores.extend(of_ends.chunks_exact(2).map(|both| (both[0] + both[1]) / 2.0));
        }
        Ok(Some(scores))
    }
}
