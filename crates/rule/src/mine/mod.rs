//! The miner: finds rules and counts what they predict, good ones first.
//!
//! Cyclic bodies of one and two links are counted exhaustively. Longer ones are counted prefix by prefix (all last
//! links and all heads in one pass, see [`count`](super::count)), in order of expected yield per work, which random
//! walks estimate. Rules with constants are counted body by body, again with all heads in one pass. Mining ends when
//! everything has been counted, when the time is up, or when the user interrupts; the rules found so far are kept. If
//! the budget is a number of samples or saturation instead of seconds, the result depends only on the graph, the
//! options and the seed; then several processes can share the counting ([`mine_shard`]).

mod acyclic;
mod cyclic;
mod nominate;
mod order;
mod select;
mod shares;
#[cfg(test)]
mod tests;
mod trial;

pub(super) use acyclic::adds;
pub use select::Keep;
pub(super) use shares::Sum;
pub use shares::{PartialBody, PartialTally};

use super::RuleError;
use super::clause::{RuleType, ScoredRule, UNSEEN, sort_by_confidence};
use super::count::{Scratch, Worth};
use super::reach::Reach;
use super::text::LONGEST_BODY;
use ruleguider_graph::shard::Shard;
use ruleguider_graph::{Direction, Graph, Link, RelationId};
use ruleguider_support::progress::Progress;
use ruleguider_support::settings::{WrongValue, expect, number, whole};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::Bound;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// About how long the final sort takes per rule. This time is reserved, so that sorting ends when the time is up.
const SORTING: Duration = Duration::from_nanos(400);

/// Items of a long list between two looks at the clock.
const BETWEEN_LOOKS: usize = 1 << 14;

/// The largest shares of the remaining time for short cyclic bodies and after that for short bodies with constants, so
/// that in a large graph no family of rules is left out.
const SHORT_CYCLIC: f64 = 0.3;
const SHORT_ACYCLIC: f64 = 0.5;

/// The share of the time that one prefix may take, if time is the limit.
const SHARE_OF_TIME: f64 = 1.0 / 32.0;

/// About how many groundings one thread counts in a second: 50 million on a laptop's core.
const COUNTED_PER_SECOND: f64 = 5e7;

/// How long to mine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MiningBudget {
    /// Until this many seconds have passed or everything has been counted.
    Seconds(f64),
    /// Counts what this many random walks nominate; repeatable.
    Samples(u64),
    /// Until everything has been counted, however long that takes; repeatable.
    Saturation,
}

/// What to mine, and how.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MineOptions {
    /// The families of rules to look for.
    pub types: Vec<RuleType>,
    /// The shortest body of a cyclic rule.
    pub min_length: usize,
    /// The longest body of a cyclic rule.
    pub max_length: usize,
    /// The longest body of a rule with constants.
    pub max_acyclic_length: usize,
    /// How long to mine.
    pub budget: MiningBudget,
    /// The seed of all random walks.
    pub seed: u64,
    /// The minimum number of correct predictions of a rule.
    pub min_support: u64,
    /// The minimum confidence of a rule.
    pub min_confidence: f64,
    /// The smoothing constant p_c of the confidence.
    pub unseen: f64,
    /// Whether the variables of a rule bind distinct entities (object identity).
    pub distinct: bool,
    /// The relations to mine rules for; all if empty.
    pub heads: Vec<RelationId>,
    /// For every link and constant, how many rules with a body of one link are kept, and how many with a longer one.
    pub max_bodies: usize,
    /// Which of these rules are kept.
    pub keep: Keep,
    /// If the bodies with one prefix have more groundings than this, they are counted from a sample. If the time is
    /// short, fewer are enough for that.
    pub max_groundings: u64,
}

impl Default for MineOptions {
    fn default() -> Self {
        Self {
            types: vec![RuleType::Cyclic],
            min_length: 1,
            max_length: 3,
            max_acyclic_length: 1,
            budget: MiningBudget::Seconds(10.0),
            seed: 1,
            min_support: 2,
            min_confidence: 0.001,
            unseen: UNSEEN,
            distinct: true,
            heads: Vec::new(),
            max_bodies: 20,
            keep: Keep::default(),
            max_groundings: 1_000_000_000,
        }
    }
}

impl MineOptions {
    /// Whether the options are valid for any graph.
    ///
    /// # Errors
    /// If an option is not valid; the message names it.
    pub fn check(&self) -> Result<(), WrongValue> {
        whole("max_length", self.max_length, 1..=LONGEST_BODY)?;
        whole("max_acyclic_length", self.max_acyclic_length, 1..=LONGEST_BODY)?;
        if let MiningBudget::Seconds(seconds) = self.budget {
            number("seconds", seconds, (Bound::Excluded(0.0), Bound::Unbounded))?;
        }
        whole("max_groundings", self.max_groundings, 1..)?;
        number("unseen", self.unseen, 0.0..)?;
        number("min_confidence", self.min_confidence, 0.0..=1.0)
    }

    /// Whether they are valid for this graph too.
    pub(super) fn check_with(&self, graph: &Graph) -> Result<(), WrongValue> {
        self.check()?;
        if let Some(relation) = self.heads.iter().find(|relation| relation.index() >= graph.relations()) {
            let expected = format!("relation ids below {}", graph.relations());
            expect(false, "heads", &expected, relation.0)?;
        }
        Ok(())
    }

    /// The groundings from which on the bodies with one prefix are counted from a sample: as many as `max_groundings`
    /// says, or as one thread counts in a small share of the time. In a graph with hubs, a single prefix would otherwise
    /// take all of it.
    fn groundings_in_time(&self) -> u64 {
        match self.budget {
            MiningBudget::Seconds(seconds) => {
                self.max_groundings.min((seconds * SHARE_OF_TIME * COUNTED_PER_SECOND) as u64).max(1)
            }
            MiningBudget::Samples(_) | MiningBudget::Saturation => self.max_groundings,
        }
    }

    /// Checks that the result depends only on the graph and the options.
    pub(super) fn check_repeatable(&self) -> Result<(), WrongValue> {
        let MiningBudget::Seconds(seconds) = self.budget else { return Ok(()) };
        let repeatable = "a number of samples, or mining to saturation (a time limit is not repeatable)";
        expect(false, "seconds", repeatable, seconds)
    }
}

/// The result of mining.
#[derive(Clone, Debug)]
pub struct Mined {
    /// The rules, the most confident first.
    pub rules: Vec<ScoredRule>,
    /// The share of what was to be counted (all short bodies, and those that random walks nominated) that was
    /// counted: the minimum over families and lengths. 1 if nothing was left to do.
    pub saturation: f64,
    /// Whether the user interrupted.
    pub interrupted: bool,
}

impl Mined {
    /// How many rules of each family there are.
    pub fn by_type(&self, of: RuleType) -> usize {
        self.rules.iter().filter(|scored| scored.rule.rule_type() == of).count()
    }
}

/// The result of one of several processes.
#[derive(Clone, Debug)]
pub struct MinedShard {
    /// The rules that it counted alone, the most confident first.
    pub mined: Mined,
    /// Its counts of bodies that it shares with others.
    pub partial: Vec<PartialTally>,
}

/// Finds rules in `graph`.
///
/// # Errors
/// If the options are not valid, such as a length of 0.
pub fn mine(graph: &Arc<Graph>, options: &MineOptions, progress: &dyn Progress) -> Result<Mined, RuleError> {
    Ok(mine_part(graph, options, Shard::WHOLE, progress)?.mined)
}

/// Finds the rules in `graph` that `shard` has to count. All shards together find what [`mine`] finds.
///
/// # Errors
/// If the options are not valid, or if the result would depend on the clock.
pub fn mine_shard(
    graph: &Arc<Graph>,
    options: &MineOptions,
    shard: Shard,
    progress: &dyn Progress,
) -> Result<MinedShard, RuleError> {
    options.check_repeatable()?;
    mine_part(graph, options, shard, progress)
}

/// For every link, whether it may be a head.
pub(super) fn wanted_heads(options: &MineOptions, links: usize) -> Vec<bool> {
    let mut heads = vec![options.heads.is_empty(); links];
    for &relation in &options.heads {
        for direction in [Direction::Forward, Direction::Inverse] {
            heads[Link::new(relation, direction).index()] = true;
        }
    }
    heads
}

impl MineOptions {
    /// The thresholds for keeping a rule, in a graph with this many links.
    pub(super) fn worth(&self, links: usize) -> Worth {
        Worth {
            support: self.min_support,
            confidence: self.min_confidence,
            unseen: self.unseen,
            heads: wanted_heads(self, links),
        }
    }
}

fn mine_part(
    graph: &Arc<Graph>,
    options: &MineOptions,
    shard: Shard,
    progress: &dyn Progress,
) -> Result<MinedShard, RuleError> {
    options.check_with(graph)?;
    let deadline = match options.budget {
        // A deadline beyond the clock's range is no deadline.
        MiningBudget::Seconds(seconds) => {
            let time = Duration::try_from_secs_f64(seconds).ok();
            time.and_then(|time| Instant::now().checked_add(time))
        }
        MiningBudget::Samples(_) | MiningBudget::Saturation => None,
    };
    let watch = Watch::new(deadline, progress);
    progress.begin("mining", "prefixes", None);
    let Some(reach) = Reach::unless(graph, options.distinct, &|| watch.over()) else {
        progress.end(&watch.figures(0.0));
        let mined = Mined { rules: Vec::new(), saturation: 0.0, interrupted: progress.interrupted() };
        return Ok(MinedShard { mined, partial: Vec::new() });
    };
    Ok(mine_in(&reach, options, shard, &watch))
}

fn mine_in(reach: &Reach, options: &MineOptions, shard: Shard, watch: &Watch<'_>) -> MinedShard {
    let worth = options.worth(reach.graph().links());
    let partial = Mutex::default();
    let miner = Miner {
        reach,
        options,
        max_groundings: options.groundings_in_time(),
        worth: &worth,
        watch,
        shard,
        partial: &partial,
        scratch: &Mutex::default(),
    };
    let wants = |of: RuleType| options.types.contains(&of);
    let mut rules = Vec::new();
    let mut saturation = 1.0_f64;
    let mut take = |(found, share): (Vec<ScoredRule>, f64)| {
        rules.extend(found);
        saturation = saturation.min(share);
    };
    if wants(RuleType::Zero) {
        take(miner.zero());
    }
    let longer = wants(RuleType::Cyclic) && options.max_length > cyclic::SHORT
        || wants(RuleType::Acyclic) && options.max_acyclic_length > 1;
    if wants(RuleType::Cyclic) {
        watch.allot(if longer || wants(RuleType::Acyclic) { SHORT_CYCLIC } else { 1.0 });
        take(miner.short_cyclic());
    }
    if wants(RuleType::Acyclic) {
        watch.allot(if longer { SHORT_ACYCLIC } else { 1.0 });
        take(miner.short_acyclic());
    }
    watch.allot(1.0);
    if wants(RuleType::Cyclic) {
        take(miner.long_cyclic());
    }
    if wants(RuleType::Acyclic) && options.max_acyclic_length > 1 {
        take(miner.long_acyclic());
    }
    sort_by_confidence(&mut rules, options.unseen);
    watch.progress.end(&watch.figures(saturation));
    let mined = Mined { rules, saturation, interrupted: watch.progress.interrupted() };
    let mut partial = partial.into_inner().unwrap_or_else(PoisonError::into_inner);
    // A prefix may have been divided into several pieces of the same part; threads finish them in any order.
    partial.sort_unstable_by(|a, b| (&a.prefix, &a.bodies).cmp(&(&b.prefix, &b.bodies)));
    MinedShard { mined, partial }
}

/// Everything that the stages of mining share.
#[derive(Clone, Copy)]
struct Miner<'a> {
    reach: &'a Reach,
    options: &'a MineOptions,
    max_groundings: u64,
    worth: &'a Worth,
    watch: &'a Watch<'a>,
    /// The shard whose work is done.
    shard: Shard,
    /// Counts of bodies that several shards share.
    partial: &'a Mutex<Vec<PartialTally>>,
    /// Scratch memory that no thread uses at the moment.
    scratch: &'a Mutex<Vec<Scratch>>,
}

impl Miner<'_> {
    /// The `items` that belong to this shard.
    fn own<T>(&self, items: Vec<T>, cost: impl Fn(&T) -> u64) -> Vec<T> {
        if self.shard == Shard::WHOLE {
            return items;
        }
        let costs: Vec<u64> = items.iter().map(cost).collect();
        let own = shares::own(self.shard, &costs);
        items.into_iter().zip(own).filter_map(|(item, own)| own.then_some(item)).collect()
    }

    /// `items` until the time is up.
    fn while_in_time<'a, T>(&'a self, items: impl Iterator<Item = T> + 'a) -> impl Iterator<Item = T> + 'a {
        let looked = |(at, item): (usize, T)| (at % BETWEEN_LOOKS > 0 || !self.watch.over()).then_some(item);
        items.enumerate().map_while(looked)
    }

    /// The share of `all` that was `counted`. If the time was up before there was anything to count, it is 0.
    fn share(&self, counted: usize, all: usize) -> f64 {
        match all {
            0 => f64::from(u8::from(!self.watch.over())),
            all => counted as f64 / all as f64,
        }
    }
}

/// Checks the deadline and interruption, and counts progress.
struct Watch<'a> {
    began: Instant,
    deadline: Option<Instant>,
    /// When the current stage has to end, in nanoseconds after the beginning.
    stage: AtomicU64,
    progress: &'a dyn Progress,
    /// Rules found: cyclic, acyclic, zero.
    found: [AtomicU64; 3],
    /// Prefixes of cyclic bodies counted.
    counted: AtomicU64,
}

impl<'a> Watch<'a> {
    fn new(deadline: Option<Instant>, progress: &'a dyn Progress) -> Self {
        let found = [const { AtomicU64::new(0) }; 3];
        let (began, stage) = (Instant::now(), AtomicU64::new(u64::MAX));
        Self { began, deadline, stage, progress, found, counted: AtomicU64::new(0) }
    }

    /// Gives what follows this share of the remaining time, if time is limited.
    fn allot(&self, share: f64) {
        let Some(deadline) = self.deadline else { return };
        let left = deadline.saturating_duration_since(Instant::now());
        let until = (self.began.elapsed() + left.mul_f64(share)).as_nanos();
        self.stage.store(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Whether it is time to stop.
    fn over(&self) -> bool {
        self.progress.interrupted()
            || self.progress.time_is_up()
            || self.deadline.is_some_and(|deadline| Instant::now() + self.sorting() >= deadline)
            || self.began.elapsed().as_nanos() >= u128::from(self.stage.load(Ordering::Relaxed))
    }

    /// How long sorting the rules found so far will take.
    fn sorting(&self) -> Duration {
        let found: u64 = self.found.iter().map(|count| count.load(Ordering::Relaxed)).sum();
        SORTING * u32::try_from(found).unwrap_or(u32::MAX)
    }

    fn note(&self, of: RuleType, rules: usize) {
        self.found[of as usize].fetch_add(rules as u64, Ordering::Relaxed);
    }

    /// Records that one more prefix has been counted, and the share of its length's nominations that is now done.
    fn advance(&self, saturation: f64) {
        let counted = self.counted.fetch_add(1, Ordering::Relaxed) + 1;
        self.progress.advance(counted, &self.figures(saturation));
    }

    fn figures(&self, saturation: f64) -> Figures {
        Figures { found: self.found.each_ref().map(|count| count.load(Ordering::Relaxed)), saturation }
    }
}

/// The number of rules by type and the saturation, for display.
struct Figures {
    found: [u64; 3],
    saturation: f64,
}

impl fmt::Display for Figures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [cyclic, acyclic, zero] = self.found;
        write!(f, "{cyclic} cyclic, {acyclic} acyclic, {zero} zero rules")?;
        write!(f, ", saturation {:.1} %", 100.0 * self.saturation)
    }
}
