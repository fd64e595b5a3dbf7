//! The figures of a run as `evaluate` reports them: ranks, the reliability of probabilities, and what was evaluated.

use super::{AskError, Faithfulness, Model, OtherGraph};
use crate::eval::calibration::Reliability;
use crate::eval::{
    Evaluation, Figures, Protocol, RankRow, Ranked, Report, Situation, Split, Truth, evaluate_among,
    of_relations, rank_relations, situations, strata,
};
use crate::graph::{Direction, EntityId, Link, RelationId};
use crate::progress::Progress;
use crate::run::RunError;
use crate::shard::Shard;
use crate::shown::Shown;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

/// The figures of a run on a split. As JSON its keys are a contract with scripts; as text it is for people.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Evaluated {
    /// The ranking figures.
    #[serde(flatten)]
    pub report: Report,
    /// The reliability of the probabilities, if there are any.
    pub calibration: Option<Reliability>,
    /// The same ranks with every fact counted by its confidence; absent if all are certain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by_confidence: Option<Figures>,
    /// The figures among entities whose types fit, beside those among all, if they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typed: Option<TypedFigures>,
    /// Whether the reasons shown are the cause of the answers, if that was asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub faithfulness: Option<Faithfulness>,
    /// What was evaluated.
    #[serde(flatten)]
    pub about: AboutEvaluation,
}

/// What is evaluated beside the ranks; by default nothing.
#[derive(Clone, Debug, Default)]
pub struct EvaluateOptions {
    /// Only facts of these relations; all facts if there are none.
    pub relations: Vec<RelationId>,
    /// Figures by situation.
    pub strata: bool,
    /// The reliability of probabilities, if the run has any.
    pub calibration: bool,
}

/// Figures among the entities whose types fit: those that `types.mode = "strict"` would leave. The target is always among
/// them.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypedFigures {
    /// The ranking figures.
    #[serde(flatten)]
    pub figures: Figures,
    /// How many entities are candidates of a query in the mean, other true answers included.
    pub mean_candidates: f64,
    /// How many targets are of another type.
    pub of_other_types: usize,
}

/// What an evaluation is of.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AboutEvaluation {
    /// The split.
    pub split: Split,
    /// The relations that were asked for; empty for all.
    pub only: Vec<String>,
    /// The seed of the run.
    pub seed: u64,
    /// The version of the program.
    pub version: String,
    /// The graph that was evaluated on, if it is not the run's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<OtherGraph>,
    /// The labels of the relations that were asked for.
    #[serde(skip)]
    pub labels: Vec<String>,
    /// Why there are no probabilities.
    #[serde(skip)]
    pub no_probability: Option<String>,
}

/// The rank of every query of an evaluation, as the columns of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RankColumns {
    /// The subjects, by id.
    pub subject: Vec<String>,
    /// The relations.
    pub relation: Vec<String>,
    /// Whether the head was asked for.
    pub inverse: Vec<bool>,
    /// The true answers that were ranked, by id.
    pub answer: Vec<String>,
    /// Their filtered ranks, from 1; ties can put them between two places.
    pub rank: Vec<f64>,
    /// How many other candidates have their score.
    pub ties: Vec<u64>,
    /// Among how many entities they were ranked: all but the query's other true answers.
    pub candidates: Vec<usize>,
    /// Whether the link leads to many.
    pub to_many: Vec<bool>,
    /// The situations, if they were asked for.
    #[serde(flatten)]
    pub situations: Option<SituationColumns>,
}

/// The [situation](Situation) of every query, as columns.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct SituationColumns {
    /// The edges of the shortest path from the subject to the answer; none if it has more than six, or there is none.
    pub distance: Vec<Option<u8>>,
    /// Whether the graph has the answer with this link from another subject.
    pub seen: Vec<bool>,
    /// How many edges the subject has.
    pub degree: Vec<usize>,
    /// How many rules predict the answer; none in a run without rules.
    pub rules: Vec<Option<usize>>,
}

impl SituationColumns {
    fn of(situations: &[Situation]) -> Self {
        Self {
            distance: situations.iter().map(|one| one.distance).collect(),
            seen: situations.iter().map(|one| one.seen).collect(),
            degree: situations.iter().map(|one| one.degree).collect(),
            rules: situations.iter().map(|one| one.rules).collect(),
        }
    }
}

impl Model {
    /// Ranks the true answers of a split; also returns the rank of every query, in the order of the split.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate).
    pub fn evaluate_each(
        &self,
        split: Split,
        protocol: Protocol,
        options: &EvaluateOptions,
        progress: &dyn Progress,
    ) -> Result<(Evaluated, RankColumns), AskError> {
        self.expect_rankable(split)?;
        let EvaluateOptions { relations, strata: by_situation, calibration } = options;
        let (reasoner, dataset, graph) = (self.reasoner().reasoner(), self.dataset(), self.graph());
        let (rows, evaluation) =
            rank_relations(reasoner, dataset, split, relations, graph, protocol, Shard::WHOLE, progress)?;
        let mut columns = self.rank_columns(split, &rows, &evaluation);
        let name = |relation| self.names().relation(relation).to_owned();
        let mut report = Report::of(&rows, protocol, evaluation.totals, name);
        if *by_situation {
            let asked: Vec<Ranked> = rows.iter().map(|row| evaluation.ranks[row.at]).collect();
            let found = self.situations(&asked, progress)?;
            let ranks: Vec<(Situation, f64)> =
                found.iter().zip(&rows).map(|(of, row)| (*of, row.rank)).collect();
            report.strata = Some(strata(&ranks));
            columns.situations = Some(SituationColumns::of(&found));
        }
        let calibration = match calibration {
            true => self.reliability_of(split, relations, progress)?,
            false => None,
        };
        let about = self.about(split, relations)?;
        let by_confidence = self.by_confidence(split, &evaluation);
        let evaluated =
            Evaluated { report, calibration, by_confidence, typed: None, faithfulness: None, about };
        Ok((evaluated, columns))
    }

    fn rank_columns(&self, split: Split, rows: &[RankRow], evaluation: &Evaluation) -> RankColumns {
        let (names, answers) = (self.names(), split.answers(self.dataset()));
        let mut columns = RankColumns::default();
        for row in rows {
            let Ranked { query, target, tied, .. } = evaluation.ranks[row.at];
            columns.subject.push(names.entity(query.subject).to_owned());
            columns.relation.push(names.relation(row.relation).to_owned());
            columns.inverse.push(query.link.direction() == Direction::Inverse);
            columns.answer.push(names.entity(target).to_owned());
            columns.rank.push(row.rank);
            columns.ties.push(tied);
            let others = answers.edges_by(query.subject, query.link).len().saturating_sub(1);
            columns.candidates.push(answers.entities() - others);
            columns.to_many.push(row.to_many);
        }
        columns
    }

    /// The situations of these queries, with the number of rules that predict the answer.
    fn situations(&self, asked: &[Ranked], progress: &dyn Progress) -> Result<Vec<Situation>, AskError> {
        progress.begin("situations", "queries", Some(asked.len() as u64));
        let mut found = situations(self.graph(), asked);
        if !self.rules().is_empty() {
            let applied = self.artifacts.applied()?;
            let count = |(situation, one): (&mut Situation, &Ranked)| {
                let stop = || progress.interrupted();
                let firings = applied.rules().firings(one.query, one.target, &stop);
                situation.rules = Some(firings.ok_or(RunError::Interrupted)?.len());
                Ok::<(), AskError>(())
            };
            found.par_iter_mut().zip(asked).try_for_each(count)?;
        }
        progress.end(&format_args!("{} queries", found.len()));
        Ok(found)
    }

    /// Ranks the true answers of a split, only those of `relations` unless that is empty, and checks probabilities.
    ///
    /// # Errors
    /// Those of [`evaluate`](Self::evaluate).
    pub fn evaluated(
        &self,
        split: Split,
        relations: &[RelationId],
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<Evaluated, AskError> {
        let options = EvaluateOptions { relations: relations.to_vec(), strata: false, calibration: true };
        Ok(self.evaluate_each(split, protocol, &options, progress)?.0)
    }

    /// The figures of an evaluation with every fact counted by its confidence; `None` if all facts are certain.
    fn by_confidence(&self, split: Split, evaluation: &Evaluation) -> Option<Figures> {
        let notes = match split {
            Split::Test => &self.dataset().test_notes,
            Split::Valid | Split::ValidAsPublished => &self.dataset().known.notes,
        };
        let ranked = evaluation.ranks.iter().filter(|ranked| !ranked.rank.is_nan());
        let weighed = ranked.map(|&Ranked { query, target, rank, .. }| {
            let fact = query.fact(target);
            (rank, fact.map_or(1.0, |fact| f64::from(notes.confidence(fact))))
        });
        notes.has_confidence().then(|| Figures::weighed(weighed))
    }

    /// The figures of a split among the entities whose types fit the relation asked for.
    ///
    /// # Errors
    /// If the data have no types, and those of [`evaluate`](Self::evaluate).
    pub fn evaluated_among_types(
        &self,
        split: Split,
        relations: &[RelationId],
        protocol: Protocol,
        progress: &dyn Progress,
    ) -> Result<TypedFigures, AskError> {
        self.expect_rankable(split)?;
        if self.names().types.is_empty() {
            return Err(AskError::Cannot(
                "the data have no types, so all entities are candidates".to_owned(),
            ));
        }
        let (dataset, graph, kinds) = (self.dataset(), self.graph(), self.artifacts.kinds());
        let answers = split.answers(dataset);
        let asked = protocol.sample(of_relations(split.triples(dataset), relations), graph.entities());
        let entities = (0..graph.entities() as u32).map(EntityId);
        let links: BTreeSet<Link> = protocol.side.asked(&asked).map(|(query, _)| query.link).collect();
        let others: BTreeMap<Link, Arc<[EntityId]>> = links
            .into_iter()
            .map(|link| (link, entities.clone().filter(|&entity| !kinds.admits(link, entity)).collect()))
            .collect();
        let evaluation = evaluate_among(
            self.reasoner().reasoner(),
            &asked,
            Truth { graph, answers: &answers },
            protocol,
            Shard::WHOLE,
            &|link| others.get(&link).cloned(),
            progress,
        )?;
        let ranked = || evaluation.ranks.iter().filter(|ranked| !ranked.rank.is_nan());
        let left =
            |ranked: &Ranked| graph.entities() - others.get(&ranked.query.link).map_or(0, |of| of.len());
        let is_other = |ranked: &&Ranked| !kinds.admits(ranked.query.link, ranked.target);
        Ok(TypedFigures {
            figures: evaluation.figures(),
            mean_candidates: ranked().map(left).sum::<usize>() as f64 / ranked().count().max(1) as f64,
            of_other_types: ranked().filter(is_other).count(),
        })
    }

    pub(super) fn about(&self, split: Split, relations: &[RelationId]) -> Result<AboutEvaluation, AskError> {
        let names = self.names();
        Ok(AboutEvaluation {
            split,
            only: relations.iter().map(|&relation| names.relation(relation).to_owned()).collect(),
            seed: self.seed(),
            version: crate::VERSION.to_owned(),
            on: self.on().cloned(),
            labels: relations.iter().map(|&relation| names.relation_label(relation).to_owned()).collect(),
            no_probability: self.why_no_probability()?,
        })
    }
}

impl fmt::Display for TypedFigures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { figures, mean_candidates, of_other_types } = self;
        let [mrr, first, third, tenth] =
            [figures.mrr, figures.hits_at_1, figures.hits_at_3, figures.hits_at_10]
                .map(|share| 100.0 * share);
        write!(f, "Among entities whose types fit, {mean_candidates:.0} a query: ")?;
        write!(f, "MRR {mrr:.1}, hits@1 {first:.1}, hits@3 {third:.1}, hits@10 {tenth:.1}")?;
        match of_other_types {
            0 => Ok(()),
            1 => f.write_str("; 1 target is of another type"),
            others => write!(f, "; {others} targets are of other types"),
        }
    }
}

impl fmt::Display for Evaluated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let AboutEvaluation { split, seed, version, on, labels, no_probability, .. } = &self.about;
        f.write_str(match split {
            Split::Test => "Test split, filtered",
            Split::Valid => "Validation split, filtered without test answers",
            Split::ValidAsPublished => "Validation split, filtered",
        })?;
        if let Some(on) = on {
            write!(f, ", on {}", on.data)?;
        }
        if !labels.is_empty() {
            write!(f, ", only {}", Shown(labels.join(", ")))?;
        }
        write!(f, ", seed {seed}, version {version}:\n{}", self.report.to_string().trim_end())?;
        match (&self.calibration, no_probability) {
            (Some(calibration), _) => {
                let fitted = if *split == Split::Test { "" } else { " (they were fitted to this split)" };
                write!(f, "\n\n{}{fitted}", calibration.to_string().trim_end())
            }
            (None, Some(why)) => write!(f, "\n\n{why}"),
            (None, None) => Ok(()),
        }?;
        if let Some(Figures { mrr, hits_at_1, hits_at_10, .. }) = &self.by_confidence {
            let share = |figure: &f64| 100.0 * figure;
            write!(
                f,
                "\n\nEvery fact counted by its confidence: MRR {:.1}, hits@1 {:.1}, hits@10 {:.1}",
                share(mrr),
                share(hits_at_1),
                share(hits_at_10)
            )?;
        }
        if let Some(typed) = &self.typed {
            write!(f, "\n\n{typed}")?;
        }
        self.faithfulness.iter().try_for_each(|faithfulness| write!(f, "\n\n{faithfulness}"))
    }
}
