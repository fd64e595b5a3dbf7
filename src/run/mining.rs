//! Mining that the validation split decides about: whether to go on with longer bodies, and what a confidence counts.
//!
//! Whether long bodies help is a property of the graph: on one they find what short ones cannot reach, on another they
//! hold by chance. So they are tried where all short ones are counted before the time is up, one length after the other,
//! and kept if the rules with them rank the validation split better than those without.

use super::RunError;
use crate::eval::{EvalError, Protocol, Side, Truth, evaluate};
use crate::graph::{Graph, Known, evenly};
use crate::progress::Progress;
use crate::rule::{
    ApplyOptions, Confidence, MineOptions, Mined, MiningBudget, RuleReasoner, RuleType, ScoredRule, mine,
    over_known, sort_by_confidence,
};
use std::sync::Arc;
use std::time::Instant;

/// The validation triples that a length is judged by, at most. The standard error of a difference between two sets of
/// rules that share most of their answers is far below that of either.
const JUDGED_BY: usize = 3000;
/// The longest body that is tried.
const LONGEST: usize = 5;
/// The part of the time that has to be left for another length.
const WORTHWHILE: f64 = 0.05;
/// How much longer than before judging may take with another length, for which that much time is set aside.
const LONGER_TO_JUDGE: f64 = 2.0;

/// Mines as `options` say, and then longer cyclic bodies in the time that is left. `known` has the validation split, whose
/// facts are not in `graph`; `apply` is how rules will be applied.
///
/// # Errors
/// If the options make no sense or ranking fails.
pub fn mine_by_validation(
    known: &Known,
    graph: &Arc<Graph>,
    options: &MineOptions,
    apply: &ApplyOptions,
    progress: &dyn Progress,
) -> Result<Mined, RunError> {
    let began = Instant::now();
    let mut mined = mine(graph, options, progress)?;
    let MiningBudget::Seconds(seconds) = options.budget else { return Ok(mined) };
    let left = || seconds - began.elapsed().as_secs_f64();
    let judge = Judge { known, graph, apply, progress };
    let mut before = None;
    for length in options.max_length + 1..=LONGEST {
        let stops = mined.interrupted || mined.saturation < 1.0 || progress.time_is_up();
        let enough = |left: f64| left > WORTHWHILE * seconds;
        if stops || !enough(left()) || !options.types.contains(&RuleType::Cyclic) || known.valid.is_empty() {
            break;
        }
        let judged = match before {
            Some(judged) => Some(judged),
            None => judge.mrr(&mined.rules)?,
        };
        let Some((figure, took)) = judged else { return Ok(Mined { interrupted: true, ..mined }) };
        let to_mine = left() - LONGER_TO_JUDGE * took;
        if !enough(to_mine) {
            break;
        }
        let budget = MiningBudget::Seconds(to_mine);
        let longer = MineOptions {
            types: vec![RuleType::Cyclic],
            min_length: length,
            max_length: length,
            budget,
            ..options.clone()
        };
        let found = mine(graph, &longer, progress)?;
        let mut rules = mined.rules.clone();
        rules.extend(found.rules);
        sort_by_confidence(&mut rules, options.unseen);
        let Some((reached, took)) = judge.mrr(&rules)? else {
            return Ok(Mined { interrupted: true, ..mined });
        };
        progress.begin("mining", "", None);
        let [was, is] = [figure, reached].map(|figure| 100.0 * figure);
        let kept = if reached > figure { "kept" } else { "left out" };
        progress.end(&format_args!("bodies of {length} links: validation MRR {was:.1} to {is:.1}, {kept}"));
        mined.interrupted |= found.interrupted;
        if reached <= figure {
            break;
        }
        mined.rules = rules;
        mined.saturation = mined.saturation.min(found.saturation);
        before = Some((reached, took));
    }
    Ok(mined)
}

/// Rules whose confidence counts what `confidence` says, and whether that is only what is known (PCA). Which of the two
/// ranks the validation split better is asked where it is to decide and there is such a split.
///
/// # Errors
/// If ranking fails, or the user interrupts.
pub fn by_confidence(
    (known, graph): (&Known, &Arc<Graph>),
    rules: Vec<ScoredRule>,
    (options, apply): (&MineOptions, &ApplyOptions),
    confidence: Confidence,
    progress: &dyn Progress,
) -> Result<(Vec<ScoredRule>, bool), RunError> {
    let undecided = confidence == Confidence::Validation && known.valid.is_empty();
    if confidence == Confidence::Standard || undecided || rules.is_empty() {
        return Ok((rules, false));
    }
    let of = (options.distinct, options.unseen);
    let over = || progress.interrupted();
    let pca = over_known(graph, &rules, of, &over).ok_or(RunError::Interrupted)?;
    if confidence == Confidence::Pca {
        return Ok((pca, true));
    }
    let judge = Judge { known, graph, apply, progress };
    let mrr = |rules: &[ScoredRule]| Ok::<f64, RunError>(judge.mrr(rules)?.ok_or(RunError::Interrupted)?.0);
    let [all, known] = [mrr(&rules)?, mrr(&pca)?];
    progress.begin("mining", "", None);
    let [standard, of_known] = [all, known].map(|figure| 100.0 * figure);
    let which = if known > all { "PCA" } else { "standard" };
    progress.end(&format_args!(
        "validation MRR {standard:.2} by standard confidence, {of_known:.2} by PCA confidence; {which} it is"
    ));
    Ok(if known > all { (pca, true) } else { (rules, false) })
}

/// Ranks the validation split by rules.
struct Judge<'a> {
    known: &'a Known,
    graph: &'a Arc<Graph>,
    apply: &'a ApplyOptions,
    progress: &'a dyn Progress,
}

impl Judge<'_> {
    /// The MRR of both directions, and the seconds that it took; `None` if the user interrupts.
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
