//! Mining with choices made on the validation split: whether to try longer bodies, and which predictions a confidence
//! counts.
//!
//! Whether long bodies help is a property of the graph: on some graphs they find answers that short ones cannot reach,
//! on others they hold by chance. So once all short ones are counted and time is left, they are tried one length at a
//! time, and kept if they improve the ranking of the validation split noticeably.

use super::RunError;
use crate::eval::{EvalError, Protocol, Side, Truth, evaluate};
use crate::graph::{Graph, Known, evenly};
use crate::progress::Progress;
use crate::rule::{
    ApplyOptions, Confidence, KeptRules, MineOptions, Mined, MiningBudget, RuleReasoner, RuleType,
    ScoredRule, mine, over_known, sort_by_confidence, weigh_by_confidence,
};
use std::fmt::Display;
use std::sync::Arc;
use std::time::Instant;

/// The most validation triples that a length is judged by. The standard error of a difference between two sets of
/// rules that share most of their answers is far below that of either.
const JUDGED_BY: usize = 3000;
/// The longest body that is tried.
const LONGEST: usize = 5;
/// The share of the time that must be left to try another length.
const WORTHWHILE: f64 = 0.05;
/// The gain in MRR from which on a length is kept: longer bodies make every answer slower, and a smaller gain is within
/// chance.
const GAIN: f64 = 0.001;
/// How much longer judging may take with another length; that much time is reserved for it.
const LONGER_TO_JUDGE: f64 = 2.0;

/// What to mine, and which choices the validation split makes.
pub struct Mining<'a> {
    /// The graph.
    pub graph: &'a Arc<Graph>,
    /// What is known beside the graph: how certain its facts are, and what is false.
    pub known: &'a Known,
    /// What is mined, and how.
    pub options: &'a MineOptions,
    /// How rules will be applied.
    pub apply: &'a ApplyOptions,
    /// The data with the validation split, whose facts are not in `graph`; `None` if they are learnt and cannot decide
    /// anything.
    pub judged_by: Option<&'a Known>,
    /// Whether longer bodies are tried in the time that is left.
    pub longer: bool,
    /// Which predictions a confidence counts; all of them if the validation split should decide but there is none.
    pub confidence: Confidence,
}

impl Mining<'_> {
    /// Finds the rules, and whether their confidence is the PCA confidence. If the user interrupts, returns the rules
    /// found so far, with their counts so far.
    ///
    /// # Errors
    /// If the options make no sense or ranking fails.
    pub fn mine(&self, progress: &dyn Progress) -> Result<(Mined, bool), RunError> {
        let began = Instant::now();
        let mut mined = self.mined(self.options, progress)?;
        let judge = self.judged_by.filter(|known| !known.valid.is_empty()).map(|known| Judge {
            known,
            graph: self.graph,
            apply: self.apply,
            progress,
        });
        if self.longer
            && let (MiningBudget::Seconds(seconds), Some(judge)) = (self.options.budget, &judge)
        {
            self.go_longer(&mut mined, judge, &Clock { began, seconds })?;
        }
        if mined.interrupted || mined.rules.is_empty() {
            return Ok((mined, false));
        }
        match (self.confidence, &judge) {
            (Confidence::Standard, _) | (Confidence::Validation, None) => Ok((mined, false)),
            (Confidence::Pca, _) => self.over_known(mined, None, progress),
            (Confidence::Validation, Some(judge)) => self.over_known(mined, Some(judge), progress),
        }
    }

    /// The rules that `options` find, counted by the confidences of facts if there are any.
    fn mined(&self, options: &MineOptions, progress: &dyn Progress) -> Result<Mined, RunError> {
        let mined = mine(self.graph, options, progress)?;
        Ok(weighed(self.graph, mined, self.known, options, progress))
    }

    /// Adds longer cyclic bodies, one length after the other, as long as there is time and they rank better.
    fn go_longer(&self, mined: &mut Mined, judge: &Judge<'_>, clock: &Clock) -> Result<(), RunError> {
        let options = self.options;
        let mut before = None;
        for length in options.max_length + 1..=LONGEST {
            let stops = mined.interrupted || mined.saturation < 1.0 || judge.progress.time_is_up();
            if stops || !clock.enough(clock.left()) || !options.types.contains(&RuleType::Cyclic) {
                break;
            }
            let judged = match before {
                Some(judged) => Some(judged),
                None => judge.mrr(&mined.rules)?,
            };
            let Some((figure, took)) = judged else {
                mined.interrupted = true;
                break;
            };
            let to_mine = clock.left() - LONGER_TO_JUDGE * took;
            if !clock.enough(to_mine) {
                break;
            }
            let longer = MineOptions {
                types: vec![RuleType::Cyclic],
                min_length: length,
                max_length: length,
                budget: MiningBudget::Seconds(to_mine),
                ..options.clone()
            };
            let found = self.mined(&longer, judge.progress)?;
            let mut rules = mined.rules.clone();
            rules.extend(found.rules);
            sort_by_confidence(&mut rules, options.unseen);
            let Some((reached, took)) = judge.mrr(&rules)? else {
                mined.interrupted = true;
                break;
            };
            let [was, is] = [figure, reached].map(|figure| 100.0 * figure);
            let helps = reached >= figure + GAIN;
            let kept = if helps { "kept" } else { "left out" };
            judge.say(&format_args!("bodies of {length} links: validation MRR {was:.1} → {is:.1}, {kept}"));
            mined.interrupted |= found.interrupted;
            if !helps {
                break;
            }
            mined.rules = rules;
            mined.saturation = mined.saturation.min(found.saturation);
            before = Some((reached, took));
        }
        Ok(())
    }

    /// The same rules with PCA confidence, unless `judge` finds that they rank better without it.
    fn over_known(
        &self,
        mined: Mined,
        judge: Option<&Judge<'_>>,
        progress: &dyn Progress,
    ) -> Result<(Mined, bool), RunError> {
        let stopped = |mined| Ok((Mined { interrupted: true, ..mined }, false));
        let MineOptions { distinct, unseen, .. } = *self.options;
        let over = || progress.interrupted();
        let negatives = &self.known.negatives;
        let Some(pca) = over_known(self.graph, &mined.rules, negatives, (distinct, unseen), &over) else {
            return stopped(mined);
        };
        if let Some(judge) = judge {
            let Some((all, _)) = judge.mrr(&mined.rules)? else { return stopped(mined) };
            let Some((known, _)) = judge.mrr(&pca)? else { return stopped(mined) };
            let which = if known > all { "PCA" } else { "standard" };
            let [standard, of_known] = [all, known].map(|figure| 100.0 * figure);
            judge.say(&format_args!(
                "validation MRR {standard:.2} with standard confidence, {of_known:.2} with PCA confidence; using {which}"
            ));
            if known <= all {
                return Ok((mined, false));
            }
        }
        Ok((Mined { rules: pca, ..mined }, true))
    }
}

/// The same rules, counted by the confidences of facts if `known` has any; if the user interrupts, as they were.
fn weighed(
    graph: &Arc<Graph>,
    mined: Mined,
    known: &Known,
    options: &MineOptions,
    progress: &dyn Progress,
) -> Mined {
    if !known.notes.has_confidence() {
        return mined;
    }
    let MineOptions { distinct, unseen, min_support, min_confidence, .. } = *options;
    let kept = KeptRules { distinct, unseen, min_support, min_confidence };
    let over = || progress.interrupted();
    match weigh_by_confidence(graph, &mined.rules, &known.notes, kept, &over) {
        Some(rules) => Mined { rules, ..mined },
        None => Mined { interrupted: true, ..mined },
    }
}

/// The time available for mining.
struct Clock {
    began: Instant,
    seconds: f64,
}

impl Clock {
    fn left(&self) -> f64 {
        self.seconds - self.began.elapsed().as_secs_f64()
    }

    /// Whether another length is worth starting with `left` seconds left.
    fn enough(&self, left: f64) -> bool {
        left > WORTHWHILE * self.seconds
    }
}

/// Ranks the validation split by rules.
struct Judge<'a> {
    known: &'a Known,
    graph: &'a Arc<Graph>,
    apply: &'a ApplyOptions,
    progress: &'a dyn Progress,
}

impl Judge<'_> {
    fn say(&self, what: &dyn Display) {
        self.progress.begin("mining", "", None);
        self.progress.end(what);
    }

    /// The MRR over both directions, and the seconds it took; `None` if the user interrupts.
    fn mrr(&self, rules: &[ScoredRule]) -> Result<Option<(f64, f64)>, RunError> {
        let began = Instant::now();
        let reasoner = RuleReasoner::new(self.graph, rules, self.apply.clone());
        let answers = self.known.answers(self.graph.entities());
        let truth = Truth { graph: self.graph, answers: &answers };
        let protocol = Protocol { side: Side::Both, ..Protocol::default() };
        let some = evenly(&self.known.valid, JUDGED_BY);
        match evaluate(&reasoner, &some, truth, protocol, self.progress) {
            Err(EvalError::Interrupted) => Ok(None),
            evaluated => Ok(Some((evaluated?.mrr(), began.elapsed().as_secs_f64()))),
        }
    }
}
