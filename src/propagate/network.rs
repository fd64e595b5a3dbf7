//! One network: which parameters it has, and the forward pass from a batch of queries to the scores of all entities.
//!
//! This is NBFNet (Zhu et al., 2021); a bounded frontier makes it a variant of A*Net (Zhu et al., 2023). States exist only
//! for the entities where messages have arrived.
//!
//! ```text
//! start   h⁰[subject] = embedding of the query's link; every other entity has no state yet
//! layer   hᵗ[e] = update(hᵗ⁻¹[e], aggregate over edges (s, k, e) of hᵗ⁻¹[s] ⊙ weights[k])
//! score   perceptron(h[e], query), for each e that was reached; all others share one score
//! ```
//!
//! Weights belong to relations, never to entities, which is why a network answers over entities it has not seen. The
//! update adds to the old state, so a layer that finds nothing leaves an entity as it is.

use super::settings::{InitialWeights, MessageAggregate, PropagateSettings};
use super::{NetworkError, StepPart};
use crate::tensor::{
    Activation, Device, EdgeIndex, Gradients, Indices, Initial, Messages, ParameterId, Parameters, Reach,
    ReachQuery, Tape, Tensor, UpdateWeights, Var,
};
use std::sync::Arc;
use std::time::Instant;

/// Aggregates of a row: mean, maximum, minimum, standard deviation.
const AGGREGATES: usize = 4;
/// Width of a gate's hidden layer.
const GATE: usize = 5;
/// Queries that a GPU answers at once.
pub(super) const CUDA_BATCH: usize = 64;
/// The most multiplications of a layer over all entities for that many queries that are done in full precision: rounding
/// would save a GPU a tenth of a millisecond. What counts is the graph, not how many are asked at once: answers must not
/// depend on other queries.
const EXACT: usize = 1 << 31;

/// The weights of a link in one layer.
enum LinkWeights {
    /// `[links, width]`, the same for all queries.
    Plain(ParameterId),
    /// A linear map of the query: `[width, links × width]` and a bias.
    OfQuery(ParameterId, ParameterId),
}

struct Layer {
    links: LinkWeights,
    own: ParameterId,
    mixed: ParameterId,
    bias: ParameterId,
    scale: ParameterId,
    shift: ParameterId,
    /// Where messages are gated: `[width, 5]` of the sender and of the query, `[links, 5]`, and `[1, 5]` to the gate.
    gate: Option<[ParameterId; 4]>,
    /// Where the frontier is bounded: `[width, 1]` and a bias, the priority of passing on.
    priority: Option<(ParameterId, ParameterId)>,
}

/// The parameters of one network among those of a propagator.
pub(super) struct Network {
    dropout: f32,
    frontier: usize,
    /// Whether entities that no path has reached have states too.
    whole: bool,
    /// `[links, width]`: what each query starts with.
    query: ParameterId,
    layers: Vec<Layer>,
    /// The perceptron: `[width, hidden]` for states and for queries, a bias, and `[1, hidden]` to the score.
    of_state: ParameterId,
    of_query: ParameterId,
    hidden_bias: ParameterId,
    to_score: ParameterId,
    /// `[links, links + 2]`: what the links of an entity that no path reaches are worth, if that counts.
    prior: Option<ParameterId>,
}

impl Network {
    /// Adds the parameters of a network; their names begin with `prefix`.
    pub(super) fn new(
        settings: &PropagateSettings,
        relations: usize,
        parameters: &mut Parameters,
        prefix: &str,
    ) -> Result<Self, NetworkError> {
        let (width, hidden, links) = (settings.width, settings.hidden, 2 * relations);
        let of = |inputs: usize| Initial::Uniform((inputs as f32).sqrt().recip());
        let (depth, mixed) = match settings.aggregate {
            MessageAggregate::Pna => (AGGREGATES * width, 3 * width),
            MessageAggregate::Gated => (width, width),
        };
        let mut dense = |name: &str, rows: usize, columns: usize, initial: Initial| {
            parameters.dense(&format!("{prefix}{name}"), rows, columns, initial)
        };
        let query = dense("query", links, width, Initial::Normal(1.0))?;
        let mut layers = Vec::new();
        let kinds = links;
        for layer in 1..=settings.layers {
            let mut dense = |name: &str, rows: usize, columns: usize, initial: Initial| {
                dense(&format!("layer.{layer}.{name}"), rows, columns, initial)
            };
            let links = match settings.weights_of_query(relations) {
                true => LinkWeights::OfQuery(
                    dense("links", width, links * width, of(width))?,
                    dense("links_bias", 1, links * width, of(width))?,
                ),
                false => LinkWeights::Plain(dense("links", links, width, Initial::Normal(0.5))?),
            };
            layers.push(Layer {
                links,
                own: dense("own", width, width, of(width))?,
                mixed: dense("mixed", depth, mixed, of(depth))?,
                bias: dense("bias", 1, width, of(width))?,
                scale: dense("scale", 1, width, Initial::Ones)?,
                shift: dense("shift", 1, width, Initial::Zeros)?,
                gate: match settings.aggregate {
                    MessageAggregate::Pna => None,
                    MessageAggregate::Gated => Some([
                        dense("gate.state", width, GATE, of(width))?,
                        dense("gate.query", width, GATE, of(width))?,
                        dense("gate.links", kinds, GATE, Initial::Normal(0.5))?,
                        dense("gate.weights", 1, GATE, of(GATE))?,
                    ]),
                },
                priority: match settings.frontier {
                    0 => None,
                    _ => Some((
                        dense("priority", width, 1, of(width))?,
                        dense("priority_bias", 1, 1, Initial::Ones)?,
                    )),
                },
            });
        }
        let of_state = dense("score.state", width, hidden, of(2 * width))?;
        let of_query = dense("score.query", width, hidden, of(2 * width))?;
        let hidden_bias = dense("score.bias", 1, hidden, of(2 * width))?;
        let to_score = dense("score.weights", 1, hidden, of(hidden))?;
        let prior = match settings.prior {
            true => Some(dense("score.prior", links, links + 2, Initial::Zeros)?),
            false => None,
        };
        if let Some(prior) = prior {
            parameters.set(prior, &first_prior(links))?;
        }
        let (dropout, frontier) = (settings.dropout as f32, settings.frontier);
        let whole = settings.start == InitialWeights::Universal;
        Ok(Network {
            dropout,
            frontier,
            whole,
            query,
            layers,
            of_state,
            of_query,
            hidden_bias,
            to_score,
            prior,
        })
    }

    /// The queries' embeddings, `[queries, width]`, which are also the states before the first layer: rows begin with
    /// the queries' subjects.
    fn start(&self, tape: &mut Tape, links: &Indices) -> Result<Var, NetworkError> {
        let table = tape.parameter(self.query);
        Ok(tape.gather(table, links, 0.0)?)
    }

    /// The states after layer `number` (from 1), `[rows, width]`.
    fn layer(
        &self,
        tape: &mut Tape,
        number: usize,
        (state, start): (Var, Var),
        reach: &mut Arc<Reach>,
    ) -> Result<Var, NetworkError> {
        let links = self.link_weights(tape, number, start)?;
        // What a row sends may differ from what it is: with a bounded frontier most rows send nothing and stay.
        let passed = match self.layers[number - 1].priority {
            Some(priority) => self.pass_on(tape, priority, state, reach)?,
            None => state,
        };
        let reach = &*reach;
        let weights = self.update_weights(tape, number);
        // As one operation, because the aggregates of a row are four times as wide as its state: without a gradient the
        // CPU takes them through block by block, and they never exist for all rows at once.
        if self.layers[number - 1].gate.is_none() {
            let messages = Messages { passed, weights: links, start };
            return Ok(tape.propagate_layer(state, messages, weights, (reach, number), self.dropout)?);
        }
        let aggregates = self.aggregates(tape, number, (passed, links, start), reach)?;
        Ok(tape.update(state, aggregates, weights, (reach, number), self.dropout)?)
    }

    /// The aggregated messages of every row: `[rows, 4 width]`, or `[rows, width]` where messages are gated.
    fn aggregates(
        &self,
        tape: &mut Tape,
        number: usize,
        (state, links, start): (Var, Var, Var),
        reach: &Arc<Reach>,
    ) -> Result<Var, NetworkError> {
        let Some(gate) = self.layers[number - 1].gate else {
            return Ok(tape.propagate(state, links, start, reach, number)?);
        };
        let [of_state, of_query, of_links, weights] = gate.map(|id| tape.parameter(id));
        // A gate is a small perceptron over (sender, query, link). Its first layer is a sum of three products, so each
        // is made once per row, query and link, and not once per message.
        let of_state = tape.linear(&[state], of_state, None, Activation::Identity, 0.0)?; // [rows, 5]
        let of_query = tape.linear(&[start], of_query, None, Activation::Identity, 0.0)?; // [queries, 5]
        let gates = tape.gate(of_state, of_links, of_query, weights, (reach, number))?; // [pieces, 1]
        Ok(tape.gated_sum(state, links, start, gates, (reach, number))?)
    }

    /// The messages of a bounded frontier: state times priority for the most promising rows, zero for the others. The
    /// reach grows by one layer. Choosing the rows needs the priorities on the host.
    fn pass_on(
        &self,
        tape: &mut Tape,
        (weights, bias): (ParameterId, ParameterId),
        state: Var,
        reach: &mut Arc<Reach>,
    ) -> Result<Var, NetworkError> {
        let device = tape.device();
        let [rows, width] = tape.shape(state);
        let (weights, bias) = (tape.parameter(weights), tape.parameter(bias));
        let priority = tape.linear(&[state], weights, Some(bias), Activation::Identity, 0.0)?; // [rows, 1]
        let priority = tape.sigmoid(priority)?;
        // Which rows pass is no differentiable choice. The priority learns because it also scales what is passed.
        let passing = most_promising(&tape.value(priority).to_vec()?, reach.row_queries(), self.frontier);
        // The priority repeated in every column, by a product with ones.
        let ones = tape.constant(Tensor::new(device, &vec![1.0; width], 1, width)?)?;
        let factors = tape.linear(&[priority], ones, None, Activation::Identity, 0.0)?; // [rows, width]
        let mut passed = tape.multiply(state, factors)?;
        if passing.iter().any(|pass| !pass) {
            let mask: Vec<f32> = passing
                .iter()
                .flat_map(|&pass| std::iter::repeat_n(f32::from(u8::from(pass)), width))
                .collect();
            let mask = tape.constant(Tensor::new(device, &mask, rows, width)?)?;
            passed = tape.multiply(passed, mask)?;
        }
        *reach = Arc::new(reach.grown(&passing)?);
        Ok(passed)
    }

    /// The reach of the queries: all layers at once, or with a bounded frontier the subjects only, to be grown layer
    /// by layer.
    pub(super) fn reach(&self, edge_index: &EdgeIndex, asks: &[ReachQuery]) -> Result<Reach, NetworkError> {
        Ok(match self.frontier {
            0 if self.whole => Reach::whole(edge_index, asks, self.depth())?,
            0 => Reach::new(edge_index, asks, self.depth())?,
            _ => Reach::start(edge_index, asks)?,
        })
    }

    /// The weights of all links in a layer: `[links, width]`, or `[queries, links × width]`.
    fn link_weights(&self, tape: &mut Tape, number: usize, start: Var) -> Result<Var, NetworkError> {
        Ok(match self.layers[number - 1].links {
            LinkWeights::Plain(weights) => tape.parameter(weights),
            LinkWeights::OfQuery(weights, bias) => {
                let (weights, bias) = (tape.parameter(weights), tape.parameter(bias));
                tape.linear(&[start], weights, Some(bias), Activation::Identity, 0.0)?
            }
        })
    }

    fn update_weights(&self, tape: &mut Tape, number: usize) -> UpdateWeights {
        let layer = &self.layers[number - 1];
        let [own, mixed, bias, scale, shift] =
            [layer.own, layer.mixed, layer.bias, layer.scale, layer.shift].map(|id| tape.parameter(id));
        UpdateWeights { own, mixed, bias, scale, shift }
    }

    /// The score of every entity from the last states, `[queries, entities]`.
    fn score(
        &self,
        tape: &mut Tape,
        (state, start): (Var, Var),
        links: &Indices,
        reach: &Arc<Reach>,
    ) -> Result<Var, NetworkError> {
        let [of_state, of_query, bias, to_score] =
            [self.of_state, self.of_query, self.hidden_bias, self.to_score].map(|id| tape.parameter(id));
        // The perceptron over [state | query], with its first layer split: a product per row and one per query.
        let hidden = tape.linear(&[state], of_state, None, Activation::Identity, 0.0)?; // [rows, hidden]
        let asked = tape.linear(&[start], of_query, Some(bias), Activation::Identity, 0.0)?; // [queries, hidden]
        let scores = tape.mlp_score(hidden, asked, to_score, reach)?; // [rows + queries]
        let scores = tape.scatter_nodes(scores, reach)?; // [queries, entities]
        let Some(prior) = self.prior else { return Ok(scores) };
        let prior = tape.parameter(prior);
        let weights = tape.gather(prior, links, 0.0)?; // [queries, links + 2]
        Ok(tape.tally(scores, weights, reach)?)
    }

    /// The scores of all entities for queries by `links`, on a tape that may train: `[queries, entities]`.
    pub(super) fn scores(
        &self,
        tape: &mut Tape,
        links: &Indices,
        reach: &mut Arc<Reach>,
    ) -> Result<Var, NetworkError> {
        let start = self.start(tape, links)?;
        let mut state = start;
        for number in 1..=self.layers.len() {
            state = self.layer(tape, number, (state, start), reach)?;
        }
        self.score(tape, (state, start), links, reach)
    }

    /// The same without gradients; a layer's buffers are freed once the next layer is done.
    pub(super) fn answers(
        &self,
        parameters: &Parameters,
        links: &Indices,
        mut reach: Arc<Reach>,
    ) -> Result<Tensor, NetworkError> {
        let exact = self.is_exact(parameters, &reach);
        let new_tape = || Tape::inference(parameters).exact(exact);
        let mut tape = new_tape();
        let start = self.start(&mut tape, links)?;
        let start = tape.value(start);
        let mut state = start.clone();
        // A tape keeps what it computed until it is dropped: with one per layer, memory is that of the widest layer.
        for number in 1..=self.layers.len() {
            let mut tape = new_tape();
            let vars = (tape.constant(state)?, tape.constant(start.clone())?);
            let next = self.layer(&mut tape, number, vars, &mut reach)?;
            state = tape.value(next);
        }
        let mut tape = new_tape();
        let vars = (tape.constant(state)?, tape.constant(start)?);
        let scores = self.score(&mut tape, vars, links, &reach)?;
        Ok(tape.value(scores))
    }

    /// Whether answers over the graph of `reach` are computed in full precision. Training does not mind rounded factors,
    /// but in a small graph many entities have nearly the same score.
    fn is_exact(&self, parameters: &Parameters, reach: &Reach) -> bool {
        // The weights of all layers have the same shape.
        let [rows, columns] = parameters.value(self.layers[0].mixed).shape();
        CUDA_BATCH * reach.nodes() * rows * columns <= EXACT
    }

    /// Appends the seconds of each part of a step: messages and updates of all layers in the forward pass, then each
    /// part again with its backward pass.
    pub(super) fn timed(
        &self,
        parameters: &Parameters,
        links: &Indices,
        reach: &Arc<Reach>,
        seed: u64,
        parts: &mut Vec<StepPart>,
    ) -> Result<(), NetworkError> {
        let device = parameters.device();
        let mut times = [0.0f64; 8];
        let mut gradients = Gradients::new(parameters);
        let mut tape = Tape::inference(parameters);
        let start = self.start(&mut tape, links)?;
        let start = tape.value(start);
        let mut state = start.clone();
        for number in 1..=self.layers.len() {
            let mut clock = Clock::new(device)?;
            let mut tape = Tape::training(parameters, seed);
            let begin = tape.constant(start.clone())?;
            let weights = self.link_weights(&mut tape, number, begin)?;
            times[0] += clock.lap(device)?;
            let old = tape.constant(state.clone())?;
            let messages = self.aggregates(&mut tape, number, (old, weights, begin), reach)?;
            times[1] += clock.lap(device)?;
            let values = tape.value(messages);
            let total = tape.mean(messages)?;
            clock.lap(device)?;
            tape.backward(total, &mut gradients)?;
            times[2] += clock.lap(device)?;
            let mut tape = Tape::training(parameters, seed);
            let (old, values) = (tape.constant(state.clone())?, tape.constant(values)?);
            let update = self.update_weights(&mut tape, number);
            let next = tape.update(old, values, update, (reach, number), self.dropout)?;
            times[3] += clock.lap(device)?;
            state = tape.value(next);
            let total = tape.mean(next)?;
            tape.backward(total, &mut gradients)?;
            times[4] += clock.lap(device)?;
        }
        let mut clock = Clock::new(device)?;
        let mut tape = Tape::training(parameters, seed);
        let vars = (tape.constant(state)?, tape.constant(start.clone())?);
        let scores = self.score(&mut tape, vars, links, reach)?;
        times[5] += clock.lap(device)?;
        let none = Indices::new(device, &[])?;
        let targets = Indices::new(device, &vec![0; links.len()])?;
        let loss = tape.softmax_loss(scores, &targets, &none)?;
        tape.backward(loss, &mut gradients)?;
        times[6] += clock.lap(device)?;
        let mut tape = Tape::training(parameters, seed);
        let scores = self.scores(&mut tape, links, &mut reach.clone())?;
        let loss = tape.softmax_loss(scores, &targets, &none)?;
        tape.backward(loss, &mut gradients)?;
        times[7] += clock.lap(device)?;
        let names = [
            "weights of the links",
            "messages",
            "messages, backward",
            "update",
            "update, backward",
            "scores",
            "loss, both backward",
            "all of it, rows apart",
        ];
        parts.extend(names.into_iter().zip(times));
        Ok(())
    }

    pub(super) fn depth(&self) -> usize {
        self.layers.len()
    }
}

/// The prior before training: an answer to as many facts of the relation as possible. Of relations whose answers are
/// always reached, nothing else is ever learnt.
fn first_prior(links: usize) -> Vec<f32> {
    let mut weights = vec![0.0; links * (links + 2)];
    (0..links).for_each(|link| weights[link * (links + 2) + (link ^ 1)] = 1.0);
    weights
}

/// Which rows pass messages on: for each query the `most` of highest priority, ties to the earlier row.
fn most_promising(priorities: &[f32], queries: &[u32], most: usize) -> Vec<bool> {
    let count = queries.iter().max().map_or(0, |last| *last as usize + 1);
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); count];
    for (row, &query) in queries[..priorities.len()].iter().enumerate() {
        rows[query as usize].push(row as u32);
    }
    let mut passing = vec![false; priorities.len()];
    for mut rows in rows {
        if rows.len() > most {
            let better = |left: &u32, right: &u32| {
                priorities[*right as usize].total_cmp(&priorities[*left as usize]).then(left.cmp(right))
            };
            rows.select_nth_unstable_by(most, better);
            rows.truncate(most);
        }
        rows.into_iter().for_each(|row| passing[row as usize] = true);
    }
    passing
}

/// Measures the seconds between two points, synchronising with the device at each.
struct Clock(Instant);

impl Clock {
    fn new(device: &Device) -> Result<Clock, NetworkError> {
        device.synchronise()?;
        Ok(Clock(Instant::now()))
    }

    fn lap(&mut self, device: &Device) -> Result<f64, NetworkError> {
        device.synchronise()?;
        let seconds = self.0.elapsed().as_secs_f64();
        self.0 = Instant::now();
        Ok(seconds)
    }
}
