//! The time that a run may take, and how its stages share it.
//!
//! What is fitted to the trained members (the blend's weights, the probabilities) and the ranking at the end have their
//! time kept for them. A trained member gets its planned share of the rest, and more if the later ones can do without it:
//! it is cut only if they would have less than twice what was planned. A stage that ends early leaves its time to later
//! ones. A stage that runs out of time ends with the best it has; it is finished, not interrupted.
//!
//! What was planned is corrected by what was measured: fitting the blend asks as the calibration and the ranking do, so
//! its pace is theirs.

use super::Resources;
use crate::progress::{Metric, Progress};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

/// The largest share of the time reserved for ranking, which ranks a sample if it needs more. Chosen by hand, as is the
/// smallest: time reserved but not needed is lost for learning.
const MOST_FOR_RANKING: f64 = 0.2;
/// The smallest share reserved: files are read and written between the stages, too.
const LEAST_FOR_RANKING: f64 = 0.05;
/// Estimates are easily off by this factor, and by this one where the pace of queries was measured.
const DOUBT: f64 = 2.0;
const MEASURED_DOUBT: f64 = 1.5;
/// The smallest share of the time that is kept for each stage that is fitted to the others, and the largest for all.
const KEPT: [f64; 2] = [0.06, 0.4];
/// How far a measured pace may correct an estimate. Chosen by hand: beyond this something else was measured.
const PACES: [f64; 2] = [0.05, 20.0];
/// The minimum estimate of a stage, in seconds. An estimate of milliseconds is more easily wrong by a factor of a
/// hundred than one of minutes, since load on the machine alone can cost that much, and a stage should not be cut short
/// for it.
const A_STAGE: f64 = 1.0;

/// How long a run may take, and what was planned.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeBudget {
    /// The resources it was planned with, including the total time.
    pub resources: Resources,
    /// When it began, on the run's clock: reading the data may have come before.
    pub began: std::time::Instant,
    /// About how many seconds each stage takes.
    pub planned: BTreeMap<&'static str, f64>,
    /// The stages that are fitted to the others, whose time is kept for them.
    pub kept: Vec<&'static str>,
    /// Stages that come after all of this run's.
    pub later: Vec<&'static str>,
    /// About how many seconds the ranking takes.
    pub ranking: f64,
    /// How long a query takes, relative to what was planned, where it was measured already; else 1.
    pub pace: f64,
}

impl TimeBudget {
    /// The same on a machine that takes `pace` times as long as estimated.
    pub fn at_pace(self, pace: f64) -> Self {
        Self { pace, ..self }
    }

    /// The seconds of the first stage of `ahead`, after `spent` seconds. `pace` is how long a query takes, relative to
    /// what was planned.
    fn share(&self, ahead: &[&'static str], spent: f64, pace: f64) -> f64 {
        let Some((first, later)) = ahead.split_first() else { return 0.0 };
        let seconds = self.resources.seconds();
        let ranking = pace * self.ranking;
        let doubt = if pace == 1.0 { DOUBT } else { MEASURED_DOUBT };
        let aside = seconds * (doubt * ranking / seconds).clamp(LEAST_FOR_RANKING, MOST_FOR_RANKING);
        let left = (seconds - aside - spent).max(0.0);
        let later = || later.iter().chain(&self.later);
        let of = |kept: bool| later().filter(move |stage| self.keeps(stage) == kept);
        let sum = |kept: bool| of(kept).map(|stage| self.needed(stage, pace)).sum::<f64>();
        let (left, later) = match self.keeps(first) {
            true => (left, sum(true)),
            false => ((left - sum(true).min(KEPT[1] * seconds)).max(0.0), sum(false)),
        };
        let first = self.needed(first, pace);
        (left * first / (first + later)).max(left - DOUBT * later)
    }

    fn keeps(&self, stage: &str) -> bool {
        self.kept.contains(&stage)
    }

    /// About how many seconds `stage` takes.
    fn needed(&self, stage: &str, pace: f64) -> f64 {
        let planned = self.planned.get(stage).copied().unwrap_or(0.0);
        match self.keeps(stage) {
            true => (pace * planned).max(A_STAGE).max(KEPT[0] * self.resources.seconds()),
            false => planned.max(A_STAGE),
        }
    }
}

/// A [`Progress`] that knows when the time of a stage is up.
pub struct Timed<'a> {
    inner: &'a dyn Progress,
    budget: Option<&'a TimeBudget>,
    clock: &'a (dyn Fn() -> f64 + Sync),
    state: Mutex<State>,
}

struct State {
    /// Seconds that finished stages took in earlier invocations.
    before: f64,
    /// The current stage, and when it began, by the clock.
    stage: Option<(&'static str, f64)>,
    /// When the current stage has to end, by the clock.
    until: Option<f64>,
    /// Whether the stage has been told to end.
    told: bool,
    /// The queries that the stage has answered, how many there are, and when it began to.
    asked: Option<Answering>,
    /// How long a query takes, relative to what was planned; 1 until it is measured.
    pace: f64,
    /// How many seconds a query takes.
    query_seconds: Option<f64>,
}

/// The queries of a stage.
struct Answering {
    done: u64,
    total: Option<u64>,
    began: f64,
}

impl<'a> Timed<'a> {
    /// `clock` tells the seconds since the budget began; without a budget time is never up.
    pub fn new(
        inner: &'a dyn Progress,
        budget: Option<&'a TimeBudget>,
        clock: &'a (dyn Fn() -> f64 + Sync),
    ) -> Self {
        let state = State {
            before: 0.0,
            stage: None,
            until: None,
            told: false,
            asked: None,
            pace: budget.map_or(1.0, |budget| budget.pace),
            query_seconds: None,
        };
        Self { inner, budget, clock, state: Mutex::new(state) }
    }

    /// The first stage of `ahead` begins.
    pub fn begin_stage(&self, ahead: &[&'static str]) {
        let now = (self.clock)();
        let mut state = self.lock();
        let spent = now + state.before;
        state.until = self.budget.map(|budget| now + budget.share(ahead, spent, state.pace));
        state.stage = ahead.first().map(|stage| (*stage, now));
        (state.told, state.asked) = (false, None);
    }

    /// The stage is over; whether it ended because its time was up.
    pub fn end_stage(&self) -> bool {
        let now = (self.clock)();
        let mut state = self.lock();
        state.until = None;
        let (stage, asked) = (state.stage.take(), state.asked.take());
        if let (Some(budget), Some((stage, began)), Some(asked)) = (self.budget, stage, asked)
            && asked.done > 0
            && budget.keeps(stage)
        {
            state.query_seconds = Some((now - asked.began) / asked.done as f64);
            let planned = budget.planned.get(stage).copied().unwrap_or(0.0);
            if let Some(total) = asked.total.filter(|_| planned > 0.0) {
                let whole = (asked.began - began) + (now - asked.began) * total as f64 / asked.done as f64;
                state.pace = (whole / planned).clamp(PACES[0], PACES[1]);
            }
        }
        state.told
    }

    /// How many seconds a query takes, as measured by the last stage that asked any.
    pub fn query_seconds(&self) -> Option<f64> {
        self.lock().query_seconds
    }

    /// How long a query takes, relative to what was planned.
    pub fn pace(&self) -> f64 {
        self.lock().pace
    }

    /// Records that a stage was finished in an earlier invocation and took `seconds`.
    pub fn taken_before(&self, seconds: f64) {
        self.lock().before += seconds;
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Progress for Timed<'_> {
    fn begin(&self, stage: &str, unit: &str, total: Option<u64>) {
        if unit == "queries" {
            let began = (self.clock)();
            self.lock().asked = Some(Answering { done: 0, total, began });
        }
        self.inner.begin(stage, unit, total);
    }

    fn advance(&self, done: u64, figures: &dyn Display) {
        if let Some(asked) = &mut self.lock().asked {
            asked.done = done;
        }
        self.inner.advance(done, figures);
    }

    fn end(&self, summary: &dyn Display) {
        self.inner.end(summary);
    }

    fn record(&self, metric: &Metric) {
        self.inner.record(metric);
    }

    fn interrupted(&self) -> bool {
        self.inner.interrupted()
    }

    fn seconds_left(&self) -> Option<f64> {
        let own = self.lock().until.map(|until| (until - (self.clock)()).max(0.0));
        own.into_iter().chain(self.inner.seconds_left()).min_by(f64::total_cmp)
    }

    fn time_is_up(&self) -> bool {
        let mut state = self.lock();
        let up = state.until.is_some_and(|until| (self.clock)() >= until);
        // The caller's deadline may be earlier than the run's own budget.
        let up = up || self.inner.time_is_up();
        state.told |= up;
        up
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::progress::Silent;

    const STAGES: [&str; 4] = ["embeddings", "rules", "pretraining", "training"];

    fn budget() -> TimeBudget {
        let planned = STAGES.into_iter().zip([30.0, 10.0, 10.0, 50.0]).collect();
        let resources = Resources { minutes: 110.0 / 60.0, threads: 2, cuda: false };
        let began = std::time::Instant::now();
        TimeBudget { resources, began, planned, kept: Vec::new(), later: Vec::new(), ranking: 5.0, pace: 1.0 }
    }

    /// Runs the stages on a simulated clock, each until it is told to stop or is done.
    fn sitting(budget: &TimeBudget, needs: [f64; 4]) -> Vec<(f64, bool)> {
        let now = Mutex::new(0.0);
        let clock = || *now.lock().unwrap();
        let timed = Timed::new(&Silent, Some(budget), &clock);
        let mut ends = Vec::new();
        for (at, need) in needs.into_iter().enumerate() {
            timed.begin_stage(&STAGES[at..]);
            let began = clock();
            while clock() < began + need && !timed.time_is_up() {
                *now.lock().unwrap() += 0.25;
            }
            ends.push((clock(), timed.end_stage()));
        }
        ends
    }

    #[test]
    fn a_stage_gets_its_part_of_what_is_left() {
        let ends = sitting(&budget(), [1e9; 4]);
        assert_eq!(ends, [(30.0, true), (40.0, true), (50.0, true), (100.0, true)]);
        // Time that a stage leaves unused goes to later stages; the total is never exceeded.
        let ends = sitting(&budget(), [2.0, 1.0, 1e9, 1e9]);
        assert_eq!(ends[1], (3.0, false));
        assert!(ends[2].1 && ends[2].0 > 18.0 && ends[3] == (100.0, true), "{ends:?}");
        let ends = sitting(&budget(), [1.0; 4]);
        assert_eq!(ends[3], (4.0, false));
    }

    #[test]
    fn nothing_is_cut_while_later_stages_hold_time_that_they_do_not_need() {
        // Planned for 30 s, but it takes 70: the others would still have twice what they need.
        let planned = STAGES.into_iter().zip([30.0, 2.0, 2.0, 8.0]).collect();
        let ends = sitting(&TimeBudget { planned, ..budget() }, [74.0, 4.0, 4.0, 1e9]);
        assert_eq!(ends, [(74.0, false), (78.0, false), (82.0, false), (100.0, true)]);
    }

    #[test]
    fn what_is_fitted_has_its_time_whatever_the_others_take() {
        let planned = STAGES.into_iter().zip([90.0, 90.0, 10.0, 8.0]).collect();
        let kept = vec!["pretraining", "training"];
        let budget = TimeBudget { planned, kept, ..budget() };
        let ends = sitting(&budget, [1e9, 1e9, 9.0, 1e9]);
        assert_eq!(ends, [(41.0, true), (82.0, true), (91.0, false), (100.0, true)]);
    }

    #[test]
    fn what_comes_after_the_run_has_its_part_of_the_time() {
        let alone = TimeBudget { later: STAGES[2..].to_vec(), ..budget() };
        assert_eq!(alone.share(&STAGES[..2], 0.0, 1.0), budget().share(&STAGES, 0.0, 1.0));
        assert_eq!(alone.share(&STAGES[1..2], 30.0, 1.0), budget().share(&STAGES[1..], 30.0, 1.0));
    }

    #[test]
    fn what_asks_later_goes_by_the_pace_that_was_measured() {
        let now = Mutex::new(0.0);
        let clock = || *now.lock().unwrap();
        let planned = STAGES.into_iter().zip([10.0, 10.0, 8.0, 8.0]).collect();
        let kept = vec!["pretraining", "training"];
        let budget = TimeBudget { planned, kept, ranking: 3.0, ..budget() };
        let timed = Timed::new(&Silent, Some(&budget), &clock);
        assert_eq!(timed.query_seconds(), None);
        timed.begin_stage(&STAGES[2..]);
        timed.begin("blending", "queries", Some(100));
        *now.lock().unwrap() += 8.0;
        timed.advance(50, &"");
        assert!(!timed.end_stage());
        assert_eq!(timed.query_seconds(), Some(0.16));
        // Twice as slow as planned: 9 of the 110 s are kept for the ranking, not 6.
        timed.begin_stage(&STAGES[3..]);
        *now.lock().unwrap() = 100.9;
        assert!(!timed.time_is_up());
        *now.lock().unwrap() = 101.1;
        assert!(timed.time_is_up() && timed.end_stage());
    }

    #[test]
    fn an_estimate_of_milliseconds_is_not_taken_at_its_word() {
        let planned = STAGES.into_iter().zip([1e-3, 60.0, 1e-3, 1e-3]).collect();
        let ends = sitting(&TimeBudget { planned, ..budget() }, [1.5, 1.0, 1e9, 1.0]);
        assert_eq!(ends[0], (1.5, false));
        assert!(ends[2].1 && ends[2].0 > 40.0 && !ends[3].1, "{ends:?}");
    }

    #[test]
    fn ranking_keeps_its_time_but_not_all_of_it() {
        let greedy = TimeBudget { ranking: 1e6, ..budget() };
        let ends = sitting(&greedy, [1e9; 4]);
        assert!((ends[3].0 - 88.0).abs() <= 1.0, "{ends:?}");
    }

    #[test]
    fn earlier_sittings_count_and_without_a_budget_time_is_never_up() {
        let clock = || 3.0;
        let budget = budget();
        let timed = Timed::new(&Silent, Some(&budget), &clock);
        timed.taken_before(200.0);
        timed.begin_stage(&STAGES[3..]);
        assert!(timed.time_is_up() && timed.end_stage());
        assert!(!timed.time_is_up(), "between stages there is nothing to stop");
        let free = Timed::new(&Silent, None, &clock);
        free.begin_stage(&STAGES);
        assert!(!free.time_is_up() && !free.end_stage());
    }
}
