//! Aggregates all rules that predict an entity into one score.

use super::fire::{Go, Listener};
use super::frequency::Frequency;
use ruleguider_graph::Scored;
use ruleguider_graph::{Crowd, EntityId};
use serde::{Deserialize, Serialize};

/// How the confidences of the rules that predict an entity are combined into its score.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Aggregate {
    /// By the best rule; ties by the second best, and so on.
    MaxPlus,
    /// By the best rule alone.
    Max,
    /// `1 − Π (1 − confidence)` over the best `k` rules.
    #[default]
    NoisyOr,
}

impl Aggregate {
    /// The score of an entity predicted by rules with these confidences, in descending order; `None` if there are
    /// none. Noisy-or uses only the first `rules`.
    pub(super) fn of(self, mut confidences: impl Iterator<Item = f64>, rules: usize) -> Option<f64> {
        let best = confidences.next()?;
        Some(match self {
            Aggregate::Max | Aggregate::MaxPlus => best,
            Aggregate::NoisyOr => {
                let others = confidences.take(rules.max(1) - 1);
                1.0 - others.fold(1.0 - best, |miss, confidence| miss * (1.0 - confidence))
            }
        })
    }
}

/// The bits of a max-plus key that hold the rank of its equivalence class.
const CLASS_BITS: u32 = 32;
const FREE_BITS: u32 = 128 - CLASS_BITS;

/// The upper bound on scores of entities that no rule predicts, so that they rank below every predicted one.
pub const UNPREDICTED: f64 = 1e-9;

/// The scores of one query while its rules fire: scratch memory of one thread.
pub(super) struct Board {
    aggregate: Aggregate,
    /// How many answers are wanted.
    top: usize,
    /// How many rules an entity's noisy-or uses.
    rules: u16,
    seen: Vec<EntityId>,
    cells: Vec<Cell>,
    /// The rules that the scores of all entities are made of, each with the place of the one before it that predicts the
    /// same entity, or its own place if it is the first.
    trail: Vec<(u32, u32)>,
    confidence: f64,
    /// Max-plus: the bit at which a rule of the current confidence counts.
    shift: u32,
    since_check: usize,
}

/// The state of one entity.
#[derive(Clone, Copy, Default)]
struct Cell {
    /// Max-plus: the binary number whose digits say which rules fired, best rule first.
    key: u128,
    /// The best confidence; for noisy-or, one minus the score so far.
    best: f64,
    /// How many rules fired; [`KNOWN`] if the entity is a known answer.
    fired: u16,
    /// Its last rule in the trail; the first is the most confident.
    last: u32,
}

/// An answer as the board ranks it.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleAnswer {
    /// The entity and its score.
    pub scored: Scored,
    /// The indices of the rules that its score is made of, the most confident first; empty if no rule predicts it.
    pub rules: Box<[u32]>,
}

impl RuleAnswer {
    /// Whether a rule predicts it; otherwise it is listed because it is frequent.
    pub fn is_predicted(&self) -> bool {
        self.scored.score > UNPREDICTED
    }
}

/// What becomes of entities that no rule predicts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rest {
    LeftOut,
    /// They are listed, the most frequent first.
    Listed,
    /// The same, but many that are equally frequent, after which nothing is wanted, are a crowd.
    Crowd,
}

/// Marks a known answer, which is excluded.
const KNOWN: u16 = u16::MAX;

impl Board {
    pub(crate) fn new(entities: usize, aggregate: Aggregate, top: usize, rules: usize) -> Self {
        Self {
            aggregate,
            top,
            rules: u16::try_from(rules).unwrap_or(KNOWN - 1).min(KNOWN - 1),
            seen: Vec::new(),
            cells: vec![Cell::default(); entities],
            trail: Vec::new(),
            confidence: 0.0,
            shift: FREE_BITS,
            since_check: 0,
        }
    }

    /// Prepares the board for a query whose `known` answers are excluded.
    pub(crate) fn begin(&mut self, known: &[EntityId]) {
        self.shift = FREE_BITS;
        self.since_check = 0;
        self.trail.clear();
        for entity in known {
            self.cells[entity.index()].fired = KNOWN;
        }
    }

    /// Returns the best answers in descending order and clears the board. If `frequency` is given, it breaks ties. It
    /// also ranks the `rest`, entities that no rule predicts, except `barred`, as long as more answers are wanted.
    pub(crate) fn finish(
        &mut self,
        known: &[EntityId],
        barred: Option<EntityId>,
        frequency: Option<&Frequency>,
        rest: Rest,
    ) -> (Vec<RuleAnswer>, Option<Crowd>) {
        let mut answers = self.ranked(frequency);
        let mut crowd = None;
        for equal in frequency.filter(|_| rest != Rest::LeftOut).into_iter().flat_map(Frequency::classes) {
            let Some(wanted) = self.top.checked_sub(answers.len()).filter(|&wanted| wanted > 0) else {
                break;
            };
            let free = |entity: &&EntityId| self.cells[entity.index()].fired == 0 && Some(**entity) != barred;
            let scored = |&entity: &EntityId| (entity, equal.share * UNPREDICTED, equal.share);
            let listed = equal.ids().iter().filter(free).map(scored);
            if rest == Rest::Crowd && equal.ids().len() > self.top {
                // Nothing is listed after a crowd, so it has to be the last that is wanted. The first shows its score.
                let others = self.seen.iter().chain(known).copied().chain(barred).collect();
                let all = equal.crowd(others);
                if all.size() >= wanted {
                    self.list(&mut answers, listed.take(1));
                    crowd = answers.pop().map(|first| all.with_score(first.scored.score));
                    break;
                }
            }
            self.list(&mut answers, listed);
        }
        for entity in self.seen.drain(..).chain(known.iter().copied()) {
            self.cells[entity.index()] = Cell::default();
        }
        (answers, crowd)
    }

    fn ranked(&self, frequency: Option<&Frequency>) -> Vec<RuleAnswer> {
        let rank = |&entity: &EntityId| {
            let cell = &self.cells[entity.index()];
            let score = if self.aggregate == Aggregate::NoisyOr { 1.0 - cell.best } else { cell.best };
            (entity, score, (cell.key, score, frequency.map_or(0, |frequency| frequency.of(entity))))
        };
        let mut ranked: Vec<(EntityId, f64, (u128, f64, u32))> = self.seen.iter().map(rank).collect();
        ranked.sort_unstable_by(|(a, _, x), (b, _, y)| {
            y.0.cmp(&x.0).then(y.1.total_cmp(&x.1)).then(y.2.cmp(&x.2)).then(a.cmp(b))
        });
        let mut answers = Vec::with_capacity(ranked.len().min(self.top));
        self.list(&mut answers, ranked.into_iter());
        answers
    }

    /// Appends entities in the order of their rank, each with its score, until enough are listed. Tied entities are
    /// listed together or not at all, with equal scores. Where scores alone would not give the order, they are
    /// lowered by the smallest possible amount.
    fn list<R: PartialEq>(
        &self,
        answers: &mut Vec<RuleAnswer>,
        ranked: impl Iterator<Item = (EntityId, f64, R)>,
    ) {
        let mut last: Option<R> = None;
        for (entity, score, rank) in ranked {
            let equal = last.as_ref() == Some(&rank);
            let score = match answers.last() {
                Some(before) if equal => before.scored.score,
                Some(before) if before.scored.score <= score => before.scored.score.next_down(),
                _ => score,
            };
            if answers.len() >= self.top && !equal {
                break;
            }
            let rules = self.rules_of(&self.cells[entity.index()]);
            answers.push(RuleAnswer { scored: Scored { entity, score }, rules });
            last = Some(rank);
        }
    }

    /// The rules that an entity's score is made of, the most confident first.
    fn rules_of(&self, cell: &Cell) -> Box<[u32]> {
        let mut rules = Vec::with_capacity(usize::from(cell.fired.min(self.rules)));
        let mut next = (cell.fired > 0).then_some(cell.last);
        while let Some(place) = next {
            let (rule, before) = self.trail[place as usize];
            rules.push(rule);
            next = (before != place).then_some(before);
        }
        rules.reverse();
        rules.into()
    }

    /// Replaces the keys by the ranks of their classes, which frees the lower bits. Returns true if the order of the
    /// wanted answers is final.
    fn compact(&mut self) -> bool {
        let Self { seen, cells, .. } = self;
        seen.sort_unstable_by(|a, b| cells[b.index()].key.cmp(&cells[a.index()].key));
        let settled = seen.len() > self.top
            && seen[..=self.top].windows(2).all(|two| cells[two[0].index()].key != cells[two[1].index()].key);
        let mut class = 0u128;
        let mut last = 0;
        for entity in seen.iter().rev() {
            let cell = &mut cells[entity.index()];
            if class == 0 || cell.key != last {
                class += 1;
                last = cell.key;
            }
            cell.key = class << FREE_BITS;
        }
        self.shift = FREE_BITS;
        settled
    }

    /// Noisy-or: whether the wanted answers have all their rules and no other entity can overtake them.
    fn noisy_or_settled(&self) -> bool {
        if self.seen.len() <= self.top {
            return false;
        }
        let miss = |entity: &EntityId| self.cells[entity.index()].best;
        let mut complete: Vec<f64> = (self.seen.iter())
            .filter(|entity| self.cells[entity.index()].fired >= self.rules)
            .map(miss)
            .collect();
        if complete.len() < self.top {
            return false;
        }
        let (_, &mut worst, _) = complete.select_nth_unstable_by(self.top - 1, f64::total_cmp);
        let least =
            |cell: &Cell| cell.best * (1.0 - self.confidence).powi(i32::from(self.rules - cell.fired));
        let newcomer = (1.0 - self.confidence).powi(i32::from(self.rules));
        let mut unfinished =
            self.seen.iter().map(|entity| &self.cells[entity.index()]).filter(|cell| cell.fired < self.rules);
        newcomer > worst && unfinished.all(|cell| least(cell) > worst)
    }
}

impl Listener for Board {
    fn confidence(&mut self, confidence: f64, rules: usize) -> Go {
        self.confidence = confidence;
        let settled = match self.aggregate {
            Aggregate::Max => self.seen.len() > self.top,
            Aggregate::MaxPlus => {
                let bits = usize::BITS - rules.leading_zeros();
                let settled = self.shift < bits && self.compact();
                self.shift -= bits;
                settled
            }
            Aggregate::NoisyOr => {
                self.since_check += rules;
                let due = self.since_check >= 64;
                if due {
                    self.since_check = 0;
                }
                due && self.noisy_or_settled()
            }
        };
        if settled { Go::Stop } else { Go::On }
    }

    #[inline]
    fn predicted(&mut self, entity: EntityId, rule: u32) {
        let cell = &mut self.cells[entity.index()];
        if cell.fired == KNOWN {
            return;
        }
        if cell.fired == 0 {
            self.seen.push(entity);
            cell.best = if self.aggregate == Aggregate::NoisyOr { 1.0 } else { self.confidence };
        }
        match self.aggregate {
            Aggregate::Max => {}
            Aggregate::MaxPlus => cell.key += 1 << self.shift,
            Aggregate::NoisyOr if cell.fired < self.rules => cell.best *= 1.0 - self.confidence,
            Aggregate::NoisyOr => return,
        }
        if cell.fired < self.rules {
            let place = self.trail.len() as u32;
            self.trail.push((rule, if cell.fired == 0 { place } else { cell.last }));
            cell.last = place;
        }
        cell.fired = (cell.fired + 1).min(KNOWN - 1);
    }
}
