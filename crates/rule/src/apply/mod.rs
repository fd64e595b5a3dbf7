//! Answering queries by rules alone.

mod aggregate;
mod base;
mod explain;
mod fire;
mod frequency;
mod predictions;
#[cfg(test)]
mod tests;

pub use aggregate::{Aggregate, RuleAnswer, UNPREDICTED};
pub use explain::{FiredRule, Firings};
pub use predictions::write_predictions;

use super::clause::{ScoredRule, Shape, UNSEEN};
use super::reach::Reach;
use aggregate::{Board, Rest};
use base::RuleBase;
use fire::Firer;
use frequency::Frequency;
use rayon::prelude::*;
use ruleguider_graph::{Answers, Crowd, CrowdedAnswers, Reasoner, ReasonerError, Scored};
use ruleguider_graph::{EntityId, Graph, Link, Query};
use ruleguider_support::settings::{WrongValue, number, whole};
use std::sync::{Arc, Mutex, PoisonError};

/// The longest body of a cyclic rule whose confidence is not reduced: by default AnyBURL mines no longer ones.
const USUAL_LENGTH: usize = 3;
/// The most that a rule's certainty counts: that of a confidence of one minus a millionth.
const SUREST: f64 = 13.8;
/// The most answers listed for a batch of queries: half a gigabyte.
const LISTED: usize = 1 << 25;

/// How rules are applied.
#[derive(Clone, Debug)]
pub struct ApplyOptions {
    /// How the confidences of the rules that predict an entity are combined into its score.
    pub aggregate: Aggregate,
    /// How many rules an entity's noisy-or uses.
    pub noisy_or_rules: usize,
    /// How many answers are wanted per query. Later answers, and entities that no rule predicts, share the last
    /// places.
    pub top: usize,
    /// The smoothing constant p_c of the confidence, `correct / (predicted + p_c)`.
    pub unseen: f64,
    /// The factor on the confidence of a rule with an open end (AC2): such rules use little of the subject.
    pub open_weight: f64,
    /// The factor on the confidence of a zero rule: such rules use nothing of the subject.
    pub zero_weight: f64,
    /// The factor on the confidence of a cyclic rule for every link of its body beyond the third: among very many long
    /// bodies some hold by chance.
    pub long_weight: f64,
    /// Whether the variables of a rule bind distinct entities (object identity).
    pub distinct: bool,
    /// Whether ties are broken by how often an entity answers such a query in the graph. Entities that no rule
    /// predicts are ties too: they follow after all others, the most frequent first.
    pub by_frequency: bool,
}

impl Default for ApplyOptions {
    fn default() -> Self {
        Self {
            aggregate: Aggregate::default(),
            noisy_or_rules: 7,
            top: 100,
            unseen: UNSEEN,
            open_weight: 0.1,
            zero_weight: 0.01,
            long_weight: 0.5,
            distinct: true,
            by_frequency: true,
        }
    }
}

impl ApplyOptions {
    /// Whether the options are valid for any rules and graph.
    ///
    /// # Errors
    /// If an option is not valid; the message names it.
    pub fn check(&self) -> Result<(), WrongValue> {
        whole("noisy_or_rules", self.noisy_or_rules, 1..)?;
        whole("top", self.top, 1..)?;
        number("unseen", self.unseen, 0.0..)?;
        number("open_weight", self.open_weight, 0.0..=1.0)?;
        number("zero_weight", self.zero_weight, 0.0..=1.0)?;
        number("long_weight", self.long_weight, 0.0..=1.0)
    }

    /// The confidence with which `scored` is applied: smoothed and weighted by its shape.
    pub fn confidence(&self, scored: &ScoredRule) -> f64 {
        let weight = match scored.rule.shape {
            Shape::Constant { .. } if scored.rule.body.is_empty() => self.zero_weight,
            Shape::Constant { end: None, .. } => self.open_weight,
            Shape::Cyclic => {
                let beyond = scored.rule.body.len().saturating_sub(USUAL_LENGTH);
                self.long_weight.powi(i32::try_from(beyond).unwrap_or(i32::MAX))
            }
            Shape::Constant { .. } => 1.0,
        };
        weight * scored.counts.confidence(self.unseen)
    }
}

/// Answers queries by applying rules to a graph. Facts of the graph are not among the answers.
pub struct RuleReasoner {
    reach: Reach,
    base: Arc<RuleBase>,
    options: ApplyOptions,
    /// By link: how often each entity is an answer. Empty if frequencies are not used.
    frequencies: Vec<Frequency>,
    /// Scratch memory that no thread is using.
    idle: Mutex<Vec<(Board, Firer)>>,
}

impl RuleReasoner {
    /// A reasoner that applies `rules` to `graph`, with options that pass their [check](ApplyOptions::check).
    pub fn new(graph: &Arc<Graph>, rules: impl Into<Arc<[ScoredRule]>>, options: ApplyOptions) -> Self {
        let base = RuleBase::new(rules.into(), graph.links(), &options);
        Self::with_base(Arc::new(base), graph, options)
    }

    /// The same rules applied to another graph with the same entities and relations.
    pub fn over(&self, graph: &Arc<Graph>) -> Self {
        Self::with_base(Arc::clone(&self.base), graph, self.options.clone())
    }

    fn with_base(base: Arc<RuleBase>, graph: &Arc<Graph>, options: ApplyOptions) -> Self {
        let reach = Reach::new(graph, options.distinct);
        let links = (0..graph.links() as u32).map(Link).filter(|_| options.by_frequency);
        let frequencies = links.map(|link| Frequency::new(&reach, link)).collect();
        Self { reach, base, options, frequencies, idle: Mutex::default() }
    }

    /// The answers of one query, best first.
    pub fn answer_one(&self, query: Query) -> Vec<Scored> {
        self.ranked(query).iter().map(|ranked| ranked.scored).collect()
    }

    /// The answers of one query, best first, each with its most confident rule.
    pub fn ranked(&self, query: Query) -> Vec<RuleAnswer> {
        self.answer_beside(query, self.reach.graph().targets(query.subject, query.link))
    }

    /// The same for ranking alone: many that are equally frequent, and the last that are wanted, are a crowd.
    pub fn ranked_with_crowd(&self, query: Query) -> (Vec<RuleAnswer>, Option<Crowd>) {
        self.answer_fully(query, self.reach.graph().targets(query.subject, query.link), Rest::Crowd)
    }

    /// The same as `ranked`, but `None` once `over` returns true. Without the `rest` only what rules predict: beside a hub, all its
    /// neighbours may be equally frequent, and then all are listed together.
    pub fn ranked_unless(
        &self,
        query: Query,
        rest: bool,
        over: &(dyn Fn() -> bool + Sync),
    ) -> Option<Vec<RuleAnswer>> {
        let known = self.reach.graph().targets(query.subject, query.link);
        let rest = if rest { Rest::Listed } else { Rest::LeftOut };
        let answers =
            self.with_scratch(|board, firer| self.answer_with(query, known, rest, (board, firer), over));
        answers.map(|(listed, _)| listed)
    }

    /// Combines the `confidences` of the rules that predict an entity, in descending order, into a score; `None` if
    /// there are none.
    pub fn aggregated(&self, confidences: impl Iterator<Item = f64>) -> Option<f64> {
        self.options.aggregate.of(confidences, self.options.noisy_or_rules)
    }

    /// The rule with index `rule`.
    pub fn rule(&self, rule: u32) -> &ScoredRule {
        &self.base.rules[rule as usize]
    }

    /// The confidence with which the rule with index `rule` is applied.
    pub fn confidence(&self, rule: u32) -> f64 {
        self.options.confidence(&self.base.rules[rule as usize])
    }

    /// How much of an entity's score comes from each of the rules that it is [made of](RuleAnswer::rules): fractions that
    /// add up to 1. By noisy-or the certainties `−ln(1 − confidence)` of the rules add up; otherwise the score is the first
    /// rule's.
    pub fn fractions(&self, rules: &[u32]) -> Vec<f64> {
        let certainty = |&rule: &u32| (-(-self.confidence(rule)).ln_1p()).clamp(f64::MIN_POSITIVE, SUREST);
        let certainties: Vec<f64> = match self.options.aggregate {
            Aggregate::NoisyOr => rules.iter().map(certainty).collect(),
            Aggregate::Max | Aggregate::MaxPlus => {
                (0..rules.len()).map(|place| f64::from(u8::from(place == 0))).collect()
            }
        };
        let total: f64 = certainties.iter().sum();
        certainties.into_iter().map(|one| one / total).collect()
    }

    /// The graph that the rules are applied to.
    pub fn graph(&self) -> &Graph {
        self.reach.graph()
    }

    /// The same, excluding the `known` answers.
    fn answer_beside(&self, query: Query, known: &[EntityId]) -> Vec<RuleAnswer> {
        self.answer_fully(query, known, Rest::Listed).0
    }

    /// The same in full time, with what becomes of the rest.
    fn answer_fully(&self, query: Query, known: &[EntityId], rest: Rest) -> (Vec<RuleAnswer>, Option<Crowd>) {
        let answers =
            self.with_scratch(|board, firer| self.answer_with(query, known, rest, (board, firer), &|| false));
        answers.unwrap_or_default()
    }

    /// Runs `work` with scratch memory that no other thread is using.
    fn with_scratch<T>(&self, work: impl FnOnce(&mut Board, &mut Firer) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = idle().pop();
        let (mut board, mut firer) = waiting.unwrap_or_else(|| self.scratch());
        let done = work(&mut board, &mut firer);
        idle().push((board, firer));
        done
    }

    fn scratch(&self) -> (Board, Firer) {
        let entities = self.reach.graph().entities();
        let ApplyOptions { aggregate, top, noisy_or_rules, .. } = self.options;
        (Board::new(entities, aggregate, top, noisy_or_rules), Firer::new(entities))
    }

    fn answer_with(
        &self,
        query: Query,
        known: &[EntityId],
        rest: Rest,
        (board, firer): (&mut Board, &mut Firer),
        over: &(dyn Fn() -> bool + Sync),
    ) -> Option<(Vec<RuleAnswer>, Option<Crowd>)> {
        board.begin(known);
        let in_time = firer.fire(&self.base, &self.reach, query, board, over);
        let frequency = self.options.by_frequency.then(|| &self.frequencies[query.link.index()]);
        let barred = self.options.distinct.then_some(query.subject);
        // Finishing clears the board, even if the answers are not used.
        let answers = board.finish(known, barred, frequency, rest);
        in_time.then_some(answers)
    }
}

impl Reasoner for RuleReasoner {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let lists = queries.par_iter().with_max_len(64).map(|&query| self.answer_one(query)).collect();
        Ok(Answers::Listed(lists))
    }

    fn answer_with_crowds(&self, queries: &[Query]) -> Result<Option<Vec<CrowdedAnswers>>, ReasonerError> {
        let one = |&query: &Query| {
            let (listed, crowd) = self.ranked_with_crowd(query);
            (listed.iter().map(|answer| answer.scored).collect(), crowd)
        };
        Ok(Some(queries.par_iter().with_max_len(64).map(one).collect()))
    }

    fn answer_for_fact(&self, query: Query, fact: EntityId) -> Result<Option<Vec<Scored>>, ReasonerError> {
        let mut known = self.reach.graph().targets(query.subject, query.link).to_vec();
        known.retain(|&entity| entity != fact);
        Ok(Some(self.answer_beside(query, &known).iter().map(|ranked| ranked.scored).collect()))
    }

    /// Tied entities are listed together, and on a sparse graph most entities may be tied.
    fn batch(&self) -> usize {
        (LISTED / self.reach.graph().entities().max(1)).clamp(64, 16384)
    }
}
