//! The time that a run may take, and how its stages share it.
//!
//! A stage gets its planned share of the time left when it begins, after reserving what the ranking at the end needs. A
//! stage that ends early leaves its time to later ones, and one that was planned too short does not take theirs. A
//! stage that runs out of time ends with the best it has; it is finished, not interrupted.

use super::{Resources, Stage};
use crate::progress::{Metric, Progress};
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::{Mutex, PoisonError};

/// The largest share of the time reserved for ranking. Chosen by hand, as is the smallest: time reserved but not needed
/// is lost for learning.
const MOST_FOR_RANKING: f64 = 0.3;
/// The smallest share reserved: files are read and written between the stages, too.
const LEAST_FOR_RANKING: f64 = 0.05;
/// Estimates are easily off by this factor.
const DOUBT: f64 = 2.0;
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
    pub planned: BTreeMap<Stage, f64>,
    /// About how many seconds the ranking takes.
    pub ranking: f64,
}

impl TimeBudget {
    /// The seconds of `stage`, the first of `ahead`, after `spent` seconds.
    fn share(&self, ahead: &[Stage], spent: f64) -> f64 {
        let seconds = self.resources.seconds();
        let aside = seconds * (DOUBT * self.ranking / seconds).clamp(LEAST_FOR_RANKING, MOST_FOR_RANKING);
        let left = (seconds - aside - spent).max(0.0);
        let planned = |stage: &Stage| self.planned.get(stage).copied().unwrap_or(0.0).max(A_STAGE);
        let all: f64 = ahead.iter().map(planned).sum();
        ahead.first().map_or(0.0, |stage| left * planned(stage) / all)
    }
}

/// A [`Progress`] that knows when the time of a stage is up.
pub struct Timed<'a> {
    inner: &'a dyn Progress,
    budget: Option<&'a TimeBudget>,
    clock: &'a (dyn Fn() -> f64 + Sync),
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Seconds that finished stages took in earlier invocations.
    before: f64,
    /// When the current stage has to end, by the clock.
    until: Option<f64>,
    /// Whether the stage has been told to end.
    told: bool,
}

impl<'a> Timed<'a> {
    /// `clock` tells the seconds since the budget began; without a budget time is never up.
    pub fn new(
        inner: &'a dyn Progress,
        budget: Option<&'a TimeBudget>,
        clock: &'a (dyn Fn() -> f64 + Sync),
    ) -> Self {
        Self { inner, budget, clock, state: Mutex::default() }
    }

    /// The first stage of `ahead` begins.
    pub fn begin_stage(&self, ahead: &[Stage]) {
        let now = (self.clock)();
        let mut state = self.lock();
        let spent = now + state.before;
        state.until = self.budget.map(|budget| now + budget.share(ahead, spent));
        state.told = false;
    }

    /// The stage is over; whether it ended because its time was up.
    pub fn end_stage(&self) -> bool {
        let mut state = self.lock();
        state.until = None;
        state.told
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
        self.inner.begin(stage, unit, total);
    }

    fn advance(&self, done: u64, figures: &dyn Display) {
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

    const STAGES: [Stage; 4] = [Stage::Embeddings, Stage::Rules, Stage::Pretraining, Stage::Training];

    fn budget() -> TimeBudget {
        let planned = STAGES.into_iter().zip([30.0, 10.0, 10.0, 50.0]).collect();
        let resources = Resources { minutes: 110.0 / 60.0, threads: 2, cuda: false };
        TimeBudget { resources, began: std::time::Instant::now(), planned, ranking: 5.0 }
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
        assert!((ends[3].0 - 77.0).abs() <= 1.0, "{ends:?}");
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
