//! One batch of REINFORCE: walks, their rewards, and the gradient.
//!
//! Each query has `K` rollouts. The loss is `−(1/N) Σ (R − b) Σ_t (log P^R + log P^E)` over the `N` walks, with `log
//! P^R` over all relations and `log P^E` over all open candidates of the state, regardless of action dropout, minus
//! `β/T` times the mean entropy of the entity agent. `R − b` may be normalised over the batch.
//!
//! Walks share states (see [`layer`](super::layer)), unless the settings keep them apart: each distinct state goes
//! through the networks once. After every hop the sampled actions are copied to the host, which finds the distinct
//! states of the next hop; nothing else leaves the device before the rewards are known.
//!
//! ```text
//!            hop 1          hop 2              reward         weight
//! walk 1   s ─ r ─▶ a     a ─ q ─▶ target      R = 1          −(R − b) / N
//! walk 2   s ─ r ─▶ a     a ─ p ─▶ x           R = soft(x)    …
//! walk 3   s ─ p ─▶ c     c ─ ∅ ─▶ c           R = soft(c)    …
//!          one state      two states: a and c are each computed once
//! loss  =  Σ over hops and walks: weight · (log P^R + log P^E)
//! ```
//!
//! Rewards are constants: the gradient goes through the log-probabilities alone, and walks that share a state add up
//! there when it is gathered backward.

use super::NetworkError;
use super::config::{Baseline, MOST_HOPS, WalkConfig};
use super::layer::{Layer, Move, Stand};
use super::measure::{BatchPart, Watch};
use super::network::{Choices, Memory, Network};
use super::reward::{Teacher, ask_soft};
use super::world::{Ask, World};
use crate::graph::{EntityId, Link};
use crate::tensor::{Choosing, Indices, NOTHING, Tape, Tensor, Var, choose};
use rayon::prelude::*;

/// Which of the two phases of learning a batch belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Stage 3: the relation agent alone, on rule rewards; entities are drawn uniformly.
    Pretrain,
    /// Stage 4: all agents, on the full reward.
    Joint,
}

/// Scripted actions instead of sampled ones: for every hop and walk a link and an entity.
pub(super) type Script = Vec<Vec<(u32, u32)>>;

/// Marks a walk whose end gets no soft reward.
const NO_FACT: u32 = u32::MAX;

/// One hop as the loss sees it.
struct Hop {
    relation_log_probs: Option<Var>,
    action_log_probs: Option<Var>,
    entropy: Option<Var>,
    heads: Indices,
    links: Indices,
    places: Indices,
    /// Walks in each entity state.
    crowd: Vec<f32>,
}

/// The state of all walks before a hop, and the agents' memory of the previous hop.
struct Scene {
    layer: Layer,
    stands: Vec<Stand>,
    memory: Option<Memory>,
}

/// Finished walks: the `rollouts` of each query are adjacent.
struct Walks {
    hops: Vec<Hop>,
    ends: Vec<u32>,
    paths: Vec<[Link; MOST_HOPS]>,
}

/// How the walks of a batch went, summed over walks.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Tally {
    pub(super) walks: f64,
    pub(super) reward: f64,
    pub(super) hits: f64,
    pub(super) rules: f64,
}

/// A batch before its backward pass.
pub(super) struct Episode {
    pub(super) loss: Var,
    pub(super) tally: Tally,
    /// The mean entropy per hop of the agent that chooses entities, on the device; none in pre-training.
    pub(super) entropy: Option<Tensor>,
}

/// Everything a batch needs.
#[derive(Clone, Copy)]
pub(super) struct Lesson<'a> {
    pub(super) config: &'a WalkConfig,
    pub(super) world: &'a World,
    pub(super) network: &'a Network,
    pub(super) teacher: Teacher<'a>,
    pub(super) phase: Phase,
    pub(super) moment: Moment,
}

/// The parts of the loss that change during training.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Moment {
    /// The moving average of the mean reward of earlier batches.
    pub(super) average: f32,
    /// β.
    pub(super) entropy: f32,
}

impl Moment {
    /// After `step` joint batches, with this moving average of the reward.
    pub(super) fn of(config: &WalkConfig, step: u64, average: f32) -> Self {
        Self { average, entropy: config.entropy_at(step) }
    }
}

/// Added to the standard deviation before dividing by it: the rewards of a batch may all be equal.
const SAME: f32 = 1e-6;

impl Lesson<'_> {
    /// Walks for every ask and records the loss on `tape`.
    pub(super) fn episode(
        &self,
        tape: &mut Tape,
        asks: &[Ask],
        script: Option<&Script>,
        watch: &mut Watch,
    ) -> Result<Episode, NetworkError> {
        let walks = self.walk(tape, asks, script, watch)?;
        let (rewards, tally) = self.rewards(asks, &walks)?;
        watch.lap(BatchPart::Rewards)?;
        let (loss, entropy) = self.loss(tape, &walks, &self.weights(&rewards))?;
        Ok(Episode { loss, tally, entropy })
    }

    fn walk(
        &self,
        tape: &mut Tape,
        asks: &[Ask],
        script: Option<&Script>,
        watch: &mut Watch,
    ) -> Result<Walks, NetworkError> {
        let (rollouts, hops) = (self.config.rollouts, self.config.hops);
        let (layer, stands) = match self.config.share_states {
            true => {
                let (layer, first) = Layer::first(asks);
                let stands = first.iter().flat_map(|&stand| std::iter::repeat_n(stand, rollouts));
                (layer, stands.collect::<Vec<Stand>>())
            }
            false => Layer::first_apart(asks, rollouts),
        };
        let mut walks = Walks {
            hops: Vec::with_capacity(hops),
            ends: Vec::new(),
            paths: vec![[Link::NO_OP; MOST_HOPS]; stands.len()],
        };
        let mut scene = Scene { layer, stands, memory: None };
        for hop in 0..hops {
            let last = hop + 1 == hops;
            let (record, moves) =
                self.hop(tape, asks, &mut scene, last, script.map(|script| &script[hop]), watch)?;
            walks.hops.push(record);
            walks.paths.iter_mut().zip(&moves).for_each(|(path, step)| path[hop] = Link(step.link));
            if last {
                walks.ends = moves.iter().map(|step| step.target).collect();
            } else {
                (scene.layer, scene.stands) = match self.config.share_states {
                    true => scene.layer.after(self.config.agents, asks, &moves),
                    false => scene.layer.after_apart(asks, &moves),
                };
            }
            watch.lap(BatchPart::Sharing)?;
        }
        Ok(walks)
    }

    /// One hop of all walks: the candidates of every state, their log-probabilities, and the actions taken.
    fn hop(
        &self,
        tape: &mut Tape,
        asks: &[Ask],
        scene: &mut Scene,
        last: bool,
        script: Option<&Vec<(u32, u32)>>,
        watch: &mut Watch,
    ) -> Result<(Hop, Vec<Move>), NetworkError> {
        let Scene { layer, stands, memory } = scene;
        let joint = self.phase == Phase::Joint;
        let now = self.network.remember(tape, layer, memory.as_ref(), joint)?;
        watch.lap(BatchPart::Memory)?;
        let candidates = self.world.candidates(asks, layer, last);
        watch.size(layer, candidates.total());
        let choices = Choices::new(tape, &candidates)?;
        watch.lap(BatchPart::Candidates)?;
        let relation_log_probs = self.network.relation_log_probs(tape, layer, &now)?;
        let action_log_probs = match joint {
            true => Some(self.network.action_log_probs(tape, asks, layer, &now, &choices)?),
            false => None,
        };
        let entropy = action_log_probs
            .map(|log_probs| tape.segment_entropy(log_probs, &choices.segments))
            .transpose()?;
        watch.lap(BatchPart::LogProbs)?;
        let heads: Vec<u32> = stands.iter().map(|stand| stand.head).collect();
        let heads = Indices::new(tape.device(), &heads)?;
        let places = match script {
            Some(actions) => scripted(actions, stands, &candidates),
            None => self.draw(tape, stands, &heads, relation_log_probs, action_log_probs, &choices)?,
        };
        watch.lap(BatchPart::Draws)?;
        let step = |(&from, &place): (&Stand, &u32)| {
            let place = place as usize;
            Move { from, link: candidates.links[place], target: candidates.targets[place] }
        };
        let moves: Vec<Move> = stands.iter().zip(&places).map(step).collect();
        let mut crowd = vec![0.0; layer.states()];
        stands.iter().for_each(|stand| crowd[stand.state as usize] += 1.0);
        let taken: Vec<u32> = moves.iter().map(|step| step.link).collect();
        let links = Indices::new(tape.device(), &taken)?;
        let places = Indices::new(tape.device(), &places)?;
        *memory = Some(now);
        Ok((Hop { relation_log_probs, action_log_probs, entropy, heads, links, places, crowd }, moves))
    }

    fn draw(
        &self,
        tape: &mut Tape,
        stands: &[Stand],
        heads: &Indices,
        relation_log_probs: Option<Var>,
        action_log_probs: Option<Var>,
        choices: &Choices,
    ) -> Result<Vec<u32>, NetworkError> {
        let states =
            Indices::new(tape.device(), &stands.iter().map(|stand| stand.state).collect::<Vec<_>>())?;
        let (groups, scores) = (
            relation_log_probs.map(|log_probs| tape.value(log_probs)),
            action_log_probs.map(|log_probs| tape.value(log_probs)),
        );
        let choosing = Choosing {
            groups: groups.as_ref(),
            scores: scores.as_ref(),
            group_of: &choices.links,
            segments: &choices.segments,
            drop_groups: self.config.relation_dropout,
            drop: self.config.entity_dropout,
            key: tape.key(),
        };
        let places = choose(choosing, &states, heads)?.to_vec()?;
        debug_assert!(!places.contains(&NOTHING), "while training every state has an action");
        Ok(places)
    }

    /// The reward of every walk.
    fn rewards(&self, asks: &[Ask], walks: &Walks) -> Result<(Vec<f32>, Tally), NetworkError> {
        let (rollouts, hops) = (self.config.rollouts, self.config.hops);
        let rules = self.teacher.rules;
        let mut by_rules = vec![0.0f32; walks.paths.len()];
        // Lookups are bound by memory latency, so several threads do them.
        let queries = by_rules.par_chunks_mut(rollouts).zip(walks.paths.par_chunks(rollouts)).zip(asks);
        queries.with_min_len(16).for_each(|((rewards, paths), ask)| {
            let confidence = |path: &[Link; MOST_HOPS]| rules.confidence(ask.query.link, &path[..hops]);
            rewards.iter_mut().zip(paths).for_each(|(reward, path)| *reward = confidence(path));
        });
        let mut tally = Tally { walks: by_rules.len() as f64, ..Tally::default() };
        tally.rules = by_rules.iter().filter(|&&reward| reward > 0.0).count() as f64;
        let rewards = match self.phase {
            Phase::Pretrain => by_rules,
            Phase::Joint => {
                let (by_ends, hits) = self.end_rewards(asks, walks)?;
                tally.hits = hits as f64;
                let lambda = self.config.lambda;
                by_rules.iter().zip(by_ends).map(|(rule, end)| lambda * rule + (1.0 - lambda) * end).collect()
            }
        };
        tally.reward = rewards.iter().map(|&reward| f64::from(reward)).sum();
        Ok((rewards, tally))
    }

    /// `R_h` of every walk, and how many reached their target.
    fn end_rewards(&self, asks: &[Ask], walks: &Walks) -> Result<(Vec<f32>, usize), NetworkError> {
        let ends = &walks.ends;
        let mut rewards = vec![0.0f32; ends.len()];
        let mut facts: Vec<(EntityId, Link, EntityId)> = Vec::new();
        let mut fact_of = vec![NO_FACT; ends.len()];
        let mut hits = 0;
        let rollouts = self.config.rollouts;
        let soft = self.teacher.soft.filter(|_| self.config.soft_reward);
        // The soft reward is asked once for each end of a query, of which its walks have few.
        let mut seen: Vec<(u32, u32)> = Vec::new();
        for (item, ask) in asks.iter().enumerate() {
            seen.clear();
            for walk in item * rollouts..(item + 1) * rollouts {
                let end = ends[walk];
                if Some(EntityId(end)) == ask.target {
                    rewards[walk] = 1.0;
                    hits += 1;
                } else if soft.is_some() {
                    let known = seen.iter().find(|(other, _)| *other == end);
                    let fact = known.map(|&(_, fact)| fact).unwrap_or_else(|| {
                        // Masked ends are never candidates; only a walk without an alternative can have stayed in one.
                        let stayed = walks.paths[walk][self.config.hops - 1] == Link::NO_OP;
                        let closed = stayed && self.world.is_closed_end(ask, EntityId(end));
                        let fact = if closed { NO_FACT } else { facts.len() as u32 };
                        if !closed {
                            facts.push((ask.query.subject, ask.query.link, EntityId(end)));
                        }
                        seen.push((end, fact));
                        fact
                    });
                    fact_of[walk] = fact;
                }
            }
        }
        if let Some(soft) = soft.filter(|_| !facts.is_empty()) {
            let values = ask_soft(soft, &facts)?;
            for (reward, &fact) in rewards.iter_mut().zip(&fact_of).filter(|(_, fact)| **fact != NO_FACT) {
                *reward = values[fact as usize];
            }
        }
        Ok((rewards, hits))
    }

    /// `−(R − b) / N` of every walk: the weight of its log-probabilities in the loss.
    fn weights(&self, rewards: &[f32]) -> Vec<f32> {
        let count = rewards.len().max(1) as f32;
        let less = rewards.chunks(self.config.rollouts).flat_map(|of_query| {
            let baseline = self.baseline(of_query);
            of_query.iter().map(move |reward| reward - baseline)
        });
        let mut less: Vec<f32> = less.collect();
        if self.config.normalise_rewards {
            normalise(&mut less);
        }
        less.iter().map(|less| -less / count).collect()
    }

    /// The baseline for the rewards of a query's walks.
    fn baseline(&self, of_query: &[f32]) -> f32 {
        match self.config.baseline {
            Baseline::None => 0.0,
            // The mean of the query's own walks: easy queries, where all are right, then teach nothing.
            Baseline::Query => of_query.iter().sum::<f32>() / of_query.len() as f32,
            Baseline::Moving => self.moment.average,
        }
    }

    fn loss(
        &self,
        tape: &mut Tape,
        walks: &Walks,
        weights: &[f32],
    ) -> Result<(Var, Option<Tensor>), NetworkError> {
        let weights = Tensor::vector(tape.device(), weights)?;
        let (mut loss, mut entropy) = (None, None);
        for hop in &walks.hops {
            if let Some(log_probs) = hop.relation_log_probs {
                let picked = tape.gather_pairs(log_probs, &hop.heads, &hop.links)?; // [walks]
                loss = Some(tape.add_weighted_sum(loss, picked, &weights)?);
            }
            if let Some(log_probs) = hop.action_log_probs {
                let picked = tape.gather_elements(log_probs, &hop.places)?; // [walks]
                loss = Some(tape.add_weighted_sum(loss, picked, &weights)?);
            }
            if let Some(of_states) = hop.entropy {
                // The mean over walks and hops: a state counts as often as walks are in it.
                let share = 1.0 / (self.config.hops as f32 * weights.rows().max(1) as f32);
                let crowd: Vec<f32> = hop.crowd.iter().map(|walks| walks * share).collect();
                let crowd = Tensor::vector(tape.device(), &crowd)?;
                entropy = Some(tape.add_weighted_sum(entropy, of_states, &crowd)?);
            }
        }
        if let Some(entropy) = entropy.filter(|_| self.moment.entropy > 0.0) {
            let term = tape.scale(entropy, -self.moment.entropy)?;
            loss = Some(match loss {
                Some(loss) => tape.add(loss, term)?,
                None => term,
            });
        }
        let loss = match loss {
            Some(loss) => loss,
            None => tape.constant(Tensor::zeros(tape.device(), 1, 1)?)?,
        };
        Ok((loss, entropy.map(|entropy| tape.value(entropy))))
    }
}

/// Normalises values to mean 0 and standard deviation 1.
fn normalise(values: &mut [f32]) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
    let variance = values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
    let (mean, deviation) = (mean as f32, variance.sqrt() as f32 + SAME);
    values.iter_mut().for_each(|x| *x = (*x - mean) / deviation);
}

/// The places of scripted actions in the action lists of the walks' states.
fn scripted(actions: &[(u32, u32)], stands: &[Stand], lists: &super::world::Candidates) -> Vec<u32> {
    let place = |(&(link, target), stand): (&(u32, u32), &Stand)| {
        let mut list = lists.list(stand.state);
        let found = list.find(|&at| (lists.links[at], lists.targets[at]) == (link, target));
        found.expect("a script takes only open actions") as u32
    };
    actions.iter().zip(stands).map(place).collect()
}
