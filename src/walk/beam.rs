//! Beam search: the best paths of many queries at once.
//!
//! A path's score is the sum of both agents' log-probabilities over its hops. After every hop but the last the best
//! `beam` paths of each query are kept; on the last hop the best path of each entity is kept, and the best `beam`
//! entities are the answers, scored by that path or (`pool = "sum"`) by all paths found to it. Paths of equal score
//! keep the order in which they were found, which depends on the query alone, so batches and threads do not change an
//! answer.
//!
//! ```text
//! hop 0        hop 1                    hop 2 (last)
//! subject ─┬─▶ a  −0.1   keep the best  ─┬─▶ x  −0.9   keep the best path of each entity,
//!          ├─▶ b  −0.7   `beam` paths    ├─▶ y  −1.0   then the best `beam` entities
//!          └─▶ c  −2.3 ✗                 └─▶ x  −1.8 ✗
//! ```
//!
//! A path is not stored as such: every hop keeps, for each of its paths, the index of the path that it continues. The
//! answers are read back along these indices at the end.
//!
//! As in training, paths share states: an entity state is computed once for all paths that visited the same
//! entities. Networks run on the device; their log-probabilities come back to the host, which selects.

use super::config::Pool;
use super::layer::{Layer, Move, Stand};
use super::network::Choices;
use super::world::{Ask, Candidates};
use super::{NetworkError, Walker};
use crate::graph::{EntityId, Link, Query};
use crate::tensor::Tape;
use rayon::prelude::*;
use serde::Serialize;

/// One hop of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WalkStep {
    /// The link walked; NO_OP for staying.
    pub link: Link,
    /// Where it led.
    pub entity: EntityId,
    /// The relation agent's log-probability of the link; 0 with a single agent.
    pub relation_score: f32,
    /// The entity agent's log-probability of the entity; with a single agent, of the whole action.
    pub entity_score: f32,
}

/// An answer with the best path that leads to it.
#[derive(Clone, Debug, PartialEq)]
pub struct WalkedAnswer {
    /// The entity that the path ends in.
    pub entity: EntityId,
    /// The sum of the scores of its steps; with pooled paths, the logarithm of the sum over all paths found.
    pub score: f32,
    /// The path, one step per hop.
    pub path: Vec<WalkStep>,
}

impl WalkedAnswer {
    /// The links of the path, in the form in which rules are looked up.
    pub fn links(&self) -> Vec<Link> {
        self.path.iter().map(|step| step.link).collect()
    }
}

/// The work of a beam search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BeamWork {
    /// Entity states that went through the networks.
    pub states: usize,
    /// Candidates that were scored.
    pub candidates: usize,
}

/// The answers of each query, and the work it took.
type Searched = (Vec<Vec<WalkedAnswer>>, BeamWork);

/// Queries without a target, as at inference.
fn asks(queries: &[Query]) -> Vec<Ask> {
    queries.iter().map(|&query| Ask { query, target: None }).collect()
}

/// A partial path. `before` is its index among the paths of the previous hop.
#[derive(Clone, Copy)]
struct Found {
    score: f32,
    before: u32,
    place: u32,
}

/// The paths after one hop, grouped by query, best first.
struct Paths {
    /// Where each query's paths start.
    starts: Vec<u32>,
    stands: Vec<Stand>,
    scores: Vec<f32>,
    before: Vec<u32>,
    steps: Vec<WalkStep>,
}

/// The log-probabilities of a hop, on the host.
struct LogProbs<'a> {
    relations: Option<Vec<f32>>,
    actions: Vec<f32>,
    links: usize,
    candidates: &'a Candidates,
}

impl LogProbs<'_> {
    fn step(&self, stand: Stand, place: usize) -> WalkStep {
        let link = self.candidates.links[place];
        let relation = |table: &Vec<f32>| table[stand.head as usize * self.links + link as usize];
        WalkStep {
            link: Link(link),
            entity: EntityId(self.candidates.targets[place]),
            relation_score: self.relations.as_ref().map_or(0.0, relation),
            entity_score: self.actions[place],
        }
    }

    fn score(&self, stand: Stand, place: usize) -> f32 {
        let step = self.step(stand, place);
        step.relation_score + step.entity_score
    }
}

impl Walker {
    /// The answers of every query with their best paths, best first. A query's own subject may be among them (by
    /// staying); known training answers are not if the settings mask them.
    ///
    /// # Errors
    /// If the device fails.
    pub fn answers(&self, queries: &[Query]) -> Result<Vec<Vec<WalkedAnswer>>, NetworkError> {
        self.answers_counted(queries).map(|(answers, _)| answers)
    }

    /// As [`answers`](Self::answers), but returns `None` as soon as `over` returns true; it is called before every
    /// hop.
    ///
    /// # Errors
    /// If the device fails.
    pub fn answers_unless(
        &self,
        queries: &[Query],
        over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Vec<Vec<WalkedAnswer>>>, NetworkError> {
        Ok(self.search_unless(&asks(queries), over)?.map(|(answers, _)| answers))
    }

    /// As [`answers`](Self::answers), with the work it took.
    ///
    /// # Errors
    /// If the device fails.
    pub fn answers_counted(&self, queries: &[Query]) -> Result<Searched, NetworkError> {
        self.search(&asks(queries))
    }

    /// Searches for `asks`. One with a target is searched under the same masks as in training.
    pub(super) fn search(&self, asks: &[Ask]) -> Result<Searched, NetworkError> {
        Ok(self.search_unless(asks, &|| false)?.unwrap_or_default())
    }

    fn search_unless(
        &self,
        asks: &[Ask],
        over: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<Searched>, NetworkError> {
        let mut tape = Tape::inference(&self.parameters);
        let (mut layer, stands) = Layer::first(asks);
        let mut memory = None;
        let mut work = BeamWork::default();
        let mut all: Vec<Paths> = Vec::with_capacity(self.config.hops);
        let mut paths = Paths::first(stands);
        for hop in 0..self.config.hops {
            if over() {
                return Ok(None);
            }
            let last = hop + 1 == self.config.hops;
            // One row per distinct state, not per path.
            let now = self.network.remember(&mut tape, &layer, memory.as_ref(), true)?;
            let candidates = self.world.candidates(asks, &layer, last);
            work.states += layer.states();
            work.candidates += candidates.total();
            let choices = Choices::new(&tape, &candidates)?;
            let relations = self.network.relation_log_probs(&mut tape, &layer, &now)?;
            let actions = self.network.action_log_probs(&mut tape, asks, &layer, &now, &choices)?;
            // Selection is branching and sorting, which the host does better; these two copies are all that it needs.
            let relations = relations.map(|log_probs| tape.value(log_probs).to_vec()).transpose()?;
            let actions = tape.value(actions).to_vec()?;
            let log_probs =
                LogProbs { relations, actions, links: self.world.links(), candidates: &candidates };
            let next = self.select(&paths, &log_probs, last);
            all.push(std::mem::replace(&mut paths, next));
            // The last hop needs no states after it: nothing goes on from there.
            if !last {
                let moves: Vec<Move> = paths
                    .before
                    .iter()
                    .zip(&paths.steps)
                    .map(|(&before, step)| Move {
                        from: all[hop].stands[before as usize],
                        link: step.link.0,
                        target: step.entity.0,
                    })
                    .collect();
                (layer, paths.stands) = layer.after(self.config.agents, asks, &moves);
                memory = Some(now);
            }
        }
        all.push(paths);
        Ok(Some((read_back(&all), work)))
    }

    /// The best continuations of every query's paths.
    fn select(&self, paths: &Paths, log_probs: &LogProbs, last: bool) -> Paths {
        let beam = self.config.beam;
        // The table by entity is as long as the graph, so each thread has one and keeps it from query to query.
        let entities = if last { self.world.entities() } else { 0 };
        let selected: Vec<Vec<Found>> = (0..paths.queries())
            .into_par_iter()
            .map_init(
                || BestOf::new(entities, self.config.pool),
                |best_of, query| {
                    let range = paths.of(query);
                    if last {
                        best_of.entities(paths, range, log_probs, beam)
                    } else {
                        best(paths, range, log_probs, beam)
                    }
                },
            )
            .collect();
        let mut next = Paths::default();
        for found in selected {
            for Found { score, before, place } in found {
                next.scores.push(score);
                next.before.push(before);
                next.steps.push(log_probs.step(paths.stands[before as usize], place as usize));
            }
            next.starts.push(next.scores.len() as u32);
        }
        next
    }
}

impl Default for Paths {
    fn default() -> Self {
        Paths {
            starts: vec![0],
            stands: Vec::new(),
            scores: Vec::new(),
            before: Vec::new(),
            steps: Vec::new(),
        }
    }
}

impl Paths {
    fn first(stands: Vec<Stand>) -> Paths {
        let starts = (0..=stands.len() as u32).collect();
        Paths { starts, scores: vec![0.0; stands.len()], stands, ..Paths::default() }
    }

    fn queries(&self) -> usize {
        self.starts.len() - 1
    }

    fn of(&self, query: usize) -> std::ops::Range<usize> {
        self.starts[query] as usize..self.starts[query + 1] as usize
    }
}

/// Best first; among equals the one found first.
fn better(a: &Found, b: &Found) -> std::cmp::Ordering {
    b.score.total_cmp(&a.score).then(a.before.cmp(&b.before)).then(a.place.cmp(&b.place))
}

/// Keeps the best `count`, in order.
fn keep(found: &mut Vec<Found>, count: usize) {
    if found.len() > count {
        found.select_nth_unstable_by(count, better);
        found.truncate(count);
    }
    found.sort_unstable_by(better);
}

/// The best `count` continuations of some paths. Log-probabilities are at most 0, so a path that is already behind the
/// `count`-th best continuation is skipped.
fn best(paths: &Paths, range: std::ops::Range<usize>, log_probs: &LogProbs, count: usize) -> Vec<Found> {
    let mut found: Vec<Found> = Vec::new();
    let mut bar = f32::NEG_INFINITY;
    for before in range {
        let (stand, score) = (paths.stands[before], paths.scores[before]);
        // Paths come best first, and a continuation only loses: all that follow are behind, too.
        if score < bar {
            break;
        }
        for place in log_probs.candidates.list(stand.state) {
            let score = score + log_probs.score(stand, place);
            if score >= bar {
                found.push(Found { score, before: before as u32, place: place as u32 });
            }
        }
        // Selecting at twice the size costs a constant for each continuation, and raises the bar for those to come.
        if found.len() >= 2 * count {
            keep(&mut found, count);
            bar = found[count - 1].score;
        }
    }
    keep(&mut found, count);
    found
}

/// The best path to each entity. The table by entity is reused from query to query.
struct BestOf {
    /// The place in `found` of each entity's best path, or `NONE`.
    places: Vec<u32>,
    found: Vec<(u32, Found)>,
    /// The sum of the probabilities of each entity's paths, in the order of `found`, if paths are pooled.
    sums: Option<Vec<f64>>,
}

const NONE: u32 = u32::MAX;

impl BestOf {
    fn new(entities: usize, pool: Pool) -> Self {
        let sums = (pool == Pool::Sum).then(Vec::new);
        Self { places: vec![NONE; entities], found: Vec::new(), sums }
    }

    fn entities(
        &mut self,
        paths: &Paths,
        range: std::ops::Range<usize>,
        log_probs: &LogProbs,
        count: usize,
    ) -> Vec<Found> {
        for before in range {
            let (stand, score) = (paths.stands[before], paths.scores[before]);
            for place in log_probs.candidates.list(stand.state) {
                let target = log_probs.candidates.targets[place];
                let score = score + log_probs.score(stand, place);
                let new = Found { score, before: before as u32, place: place as u32 };
                let known = self.places[target as usize];
                // Strictly better replaces: of equal paths the one found first stays, whatever the batch.
                match known {
                    NONE => {
                        self.places[target as usize] = self.found.len() as u32;
                        self.found.push((target, new));
                    }
                    at if score > self.found[at as usize].1.score => self.found[at as usize].1 = new,
                    _ => {}
                }
                if let Some(sums) = &mut self.sums {
                    let probability = f64::from(score).exp();
                    if known == NONE { sums.push(probability) } else { sums[known as usize] += probability }
                }
            }
        }
        let mut best = Vec::with_capacity(self.found.len());
        for (at, (target, mut found)) in self.found.drain(..).enumerate() {
            // Only the entries that were used are reset: the table is as long as the graph.
            self.places[target as usize] = NONE;
            // Where the probabilities underflow, the score of the best path is kept.
            if let Some(sum) = self.sums.as_ref().map(|sums| sums[at]).filter(|sum| *sum > 0.0) {
                found.score = sum.ln() as f32;
            }
            best.push(found);
        }
        self.sums.iter_mut().for_each(Vec::clear);
        keep(&mut best, count);
        best
    }
}

/// The answers with their whole paths, traced back through the hops.
fn read_back(hops: &[Paths]) -> Vec<Vec<WalkedAnswer>> {
    let last = &hops[hops.len() - 1];
    (0..last.queries())
        .into_par_iter()
        .map(|query| {
            let answer = |end: usize| {
                let mut path = Vec::with_capacity(hops.len() - 1);
                let mut at = end;
                for hop in hops[1..].iter().rev() {
                    path.push(hop.steps[at]);
                    at = hop.before[at] as usize;
                }
                path.reverse();
                WalkedAnswer { entity: last.steps[end].entity, score: last.scores[end], path }
            };
            last.of(query).map(answer).collect()
        })
        .collect()
}
