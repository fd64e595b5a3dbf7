//! Parts of an evaluation: the ranks of some batches, and the verdicts on the probabilities of others.

use crate::ask::evaluated::{AboutEvaluation, Evaluated};
use crate::ask::{AskError, Model};
use crate::eval::calibration::{Reliability, TOP, Verdicts};
use crate::eval::{Protocol, RankRow, Report, Split, Totals, rank_relations};
use crate::graph::RelationId;
use crate::progress::Progress;
use crate::shard::{Parts, Shard, ShardError};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The inputs of ranks beside the run, and the texts of their report.
#[derive(Serialize, Deserialize)]
pub(super) struct RankSettings {
    about: AboutEvaluation,
    /// Fields that the JSON of a report leaves out.
    labels: Vec<String>,
    no_probability: Option<String>,
    protocol: Protocol,
    calibrated: bool,
    /// The names of all relations.
    relations: Vec<String>,
}

/// A row of a part.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum RankPart {
    /// The rank of a query.
    Rank(RankRow),
    /// The outcomes of the probabilities of a query's answers, with the number of the query.
    Verdicts(usize, Verdicts),
    /// The totals, once per part.
    Done(Totals),
}

impl Model {
    pub(super) fn rank_settings(
        &self,
        split: Split,
        relations: &[RelationId],
        protocol: Protocol,
    ) -> Result<RankSettings, AskError> {
        let about = self.about(split, relations)?;
        Ok(RankSettings {
            labels: about.labels.clone(),
            no_probability: about.no_probability.clone(),
            about,
            protocol,
            calibrated: self.calibrator.is_some(),
            relations: self.names().relations.iter().map(str::to_owned).collect(),
        })
    }

    pub(super) fn rank_rows(
        &self,
        split: Split,
        relations: &[RelationId],
        protocol: Protocol,
        shard: Shard,
        progress: &dyn Progress,
    ) -> Result<Vec<RankPart>, AskError> {
        let (reasoner, graph) = (self.reasoner.reasoner(), self.graph());
        let (ranks, evaluation) =
            rank_relations(reasoner, &self.dataset, split, relations, graph, protocol, shard, progress)?;
        let mut rows: Vec<RankPart> = ranks.into_iter().map(RankPart::Rank).collect();
        if let Some(calibrator) = &self.calibrator {
            let outcomes = self.outcomes(split, relations, None, shard, progress)?;
            let batch = reasoner.batch().max(1);
            rows.extend(outcomes.iter().enumerate().filter_map(|(item, outcome)| {
                Some(RankPart::Verdicts(shard.place(item, batch), calibrator.verdicts(outcome)?))
            }));
        }
        rows.push(RankPart::Done(evaluation.totals));
        Ok(rows)
    }
}

/// The figures of all parts. The seconds are those of all parts together.
pub(super) fn merge_ranks(parts: Parts) -> Result<Evaluated, AskError> {
    let settings: RankSettings = parts.header().settings(parts.path())?;
    let (mut ranks, mut verdicts) = (Vec::new(), BTreeMap::new());
    let mut totals = Totals::default();
    for part in parts.into_parts() {
        let path = part.path().to_owned();
        for row in part.rows::<RankPart>() {
            match row? {
                RankPart::Rank(row) if row.relation.index() >= settings.relations.len() => {
                    let what = format!("query {} is of a relation that it does not list", row.at);
                    return Err(ShardError::Damaged { path, what }.into());
                }
                RankPart::Verdicts(query, of) if of.relation.index() >= settings.relations.len() => {
                    let what =
                        format!("the verdicts on query {query} are of a relation that it does not list");
                    return Err(ShardError::Damaged { path, what }.into());
                }
                RankPart::Rank(row) => ranks.push(row),
                RankPart::Verdicts(query, of) => drop(verdicts.insert(query, of)),
                RankPart::Done(part) => {
                    totals = Totals {
                        seconds: totals.seconds + part.seconds,
                        baseline_seconds: totals.baseline_seconds + part.baseline_seconds,
                        ..part
                    }
                }
            }
        }
    }
    ranks.sort_unstable_by_key(|row| row.at);
    let RankSettings { about, labels, no_probability, protocol, calibrated, relations } = settings;
    let name = |relation: RelationId| relations[relation.index()].clone();
    let report = Report::of(&ranks, protocol, totals, name);
    let calibration =
        calibrated.then(|| Reliability::of(&verdicts.into_values().collect::<Vec<Verdicts>>(), TOP, name));
    let about = AboutEvaluation { labels, no_probability, ..about };
    Ok(Evaluated { report, calibration, by_confidence: None, typed: None, faithfulness: None, about })
}
