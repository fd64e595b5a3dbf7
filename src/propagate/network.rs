//! One network: which parameters it has, and the forward pass from a batch of queries to the scores of all entities.
//!
//! This is NBFNet (Zhu et al., 2021). States exist only for the entities where messages have arrived. With a bounded
//! frontier only the most promising of them pass messages on, as in A*Net (Zhu et al., 2023); how promising one is, is the
//! score that it would have as an answer. So the same weights serve every frontier.
//!
//! ```text
//! start   h⁰[subject] = embedding of the query's link; every other entity has no state yet
//! layer   hᵗ[e] = update(hᵗ⁻¹[e], aggregate over edges (s, k, e) of hᵗ⁻¹[s] ⊙ weights[k])
//! score   perceptron(h[e], query), for each e that was reached; all others share one score
//! ```
//!
//! Weights belong to relations, never to entities, which is why a network answers over entities it has not seen. The
//! update adds to the old state, so a layer that finds nothing leaves an entity as it is.

use super::rows::{Area, LayerInputs, Rows};
use super::settings::{FrontierBound, MessageAggregate, PropagateSettings};
use super::{NetworkError, StepPart};
use crate::tensor::{
    Activation, Device, EdgeIndex, Gradients, Indices, Initial, Messages, ParameterId, Parameters, Reach,
    ReachQuery, ScoredRows, Tape, Tensor, UpdateWeights, Var,
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
}

/// The parameters of one network among those of a propagator.
pub(super) struct Network {
    dropout: f32,
    /// Weights serve any frontier, so this may change.
    pub(super) frontier: FrontierBound,
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
        Ok(Network { dropout, frontier, query, layers, of_state, of_query, hidden_bias, to_score, prior })
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
        rows: &mut Rows,
    ) -> Result<Var, NetworkError> {
        let links = self.link_weights(tape, number, start)?;
        let update = self.update_weights(tape, number);
        // As one operation, because the aggregates of a row are four times as wide as its state: without a gradient the
        // CPU takes them through block by block, and they never exist for all rows at once.
        if self.layers[number - 1].gate.is_none() {
            let messages = Messages { passed: state, weights: links, start };
            let inputs = LayerInputs { number, messages, update, dropout: self.dropout };
            return rows.layer(tape, inputs, |tape, states, rows| self.row_scores(tape, states, rows));
        }
        let reach = rows.all("a gated sum")?;
        let aggregates = self.aggregates(tape, number, (state, links, start), reach)?;
        Ok(tape.update(state, aggregates, update, &reach.updated_rows(number), self.dropout)?)
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

    /// The area that queries are answered over.
    pub(super) fn area(&self, edge_index: &EdgeIndex, asks: &[ReachQuery]) -> Result<Area, NetworkError> {
        Ok(Area::new(edge_index, asks, (self.depth(), false, self.frontier))?)
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

    /// The score of every row from its state, followed by one for the entities without a row of each query.
    fn row_scores(
        &self,
        tape: &mut Tape,
        (state, start): (Var, Var),
        rows: &ScoredRows,
    ) -> Result<Var, NetworkError> {
        let [of_state, of_query, bias, to_score] =
            [self.of_state, self.of_query, self.hidden_bias, self.to_score].map(|id| tape.parameter(id));
        // The perceptron over [state | query], with its first layer split: a product per row and one per query.
        let hidden = tape.linear(&[state], of_state, None, Activation::Identity, 0.0)?; // [rows, hidden]
        let asked = tape.linear(&[start], of_query, Some(bias), Activation::Identity, 0.0)?; // [queries, hidden]
        Ok(tape.mlp_score(hidden, asked, to_score, rows)?) // [rows + queries]
    }

    /// The score of every entity from the last states, `[queries, entities]`.
    fn score(
        &self,
        tape: &mut Tape,
        states: (Var, Var),
        links: &Indices,
        rows: &Rows,
    ) -> Result<Var, NetworkError> {
        let scored = rows.scored()?;
        let scores = self.row_scores(tape, states, &scored)?;
        let scores = tape.scatter_nodes(scores, &scored)?; // [queries, entities]
        let Some(prior) = self.prior else { return Ok(scores) };
        let prior = tape.parameter(prior);
        let weights = tape.gather(prior, links, 0.0)?; // [queries, links + 2]
        Ok(tape.tally(scores, weights, rows.all("a prior")?)?)
    }

    /// The scores of all entities for queries by `links`, on a tape that may train: `[queries, entities]`.
    pub(super) fn scores(
        &self,
        tape: &mut Tape,
        links: &Indices,
        rows: &mut Rows,
    ) -> Result<Var, NetworkError> {
        let start = self.start(tape, links)?;
        let mut state = start;
        for number in 1..=self.layers.len() {
            state = self.layer(tape, number, (state, start), rows)?;
        }
        self.score(tape, (state, start), links, rows)
    }

    /// The same without gradients; a layer's buffers are freed once the next layer is done.
    pub(super) fn answers(
        &self,
        parameters: &Parameters,
        links: &Indices,
        area: &Area,
    ) -> Result<(Tensor, Rows), NetworkError> {
        let exact = self.is_exact(parameters, area.nodes());
        let new_tape = || Tape::inference(parameters).exact(exact);
        let mut rows = area.rows()?;
        let mut tape = new_tape();
        let start = self.start(&mut tape, links)?;
        let start = tape.value(start);
        let mut state = start.clone();
        // A tape keeps what it computed until it is dropped: with one per layer, memory is that of the widest layer.
        for number in 1..=self.layers.len() {
            let mut tape = new_tape();
            let vars = (tape.constant(state)?, tape.constant(start.clone())?);
            let next = self.layer(&mut tape, number, vars, &mut rows)?;
            state = tape.value(next);
        }
        let mut tape = new_tape();
        let vars = (tape.constant(state)?, tape.constant(start)?);
        let scores = self.score(&mut tape, vars, links, &rows)?;
        Ok((tape.value(scores), rows))
    }

    /// Whether answers over a graph of so many entities are computed in full precision. Training does not mind rounded factors,
    /// but in a small graph many entities have nearly the same score.
    fn is_exact(&self, parameters: &Parameters, entities: usize) -> bool {
        // The weights of all layers have the same shape.
        let [rows, columns] = parameters.value(self.layers[0].mixed).shape();
        CUDA_BATCH * entities * rows * columns <= EXACT
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
            let next = tape.update(old, values, update, &reach.updated_rows(number), self.dropout)?;
            times[3] += clock.lap(device)?;
            state = tape.value(next);
            let total = tape.mean(next)?;
            tape.backward(total, &mut gradients)?;
            times[4] += clock.lap(device)?;
        }
        let mut clock = Clock::new(device)?;
        let mut rows = Rows::All(reach.clone());
        let mut tape = Tape::training(parameters, seed);
        let vars = (tape.constant(state)?, tape.constant(start.clone())?);
        let scores = self.score(&mut tape, vars, links, &rows)?;
        times[5] += clock.lap(device)?;
        let none = Indices::new(device, &[])?;
        let targets = Indices::new(device, &vec![0; links.len()])?;
        let loss = tape.softmax_loss(scores, &targets, &none)?;
        tape.backward(loss, &mut gradients)?;
        times[6] += clock.lap(device)?;
        let mut tape = Tape::training(parameters, seed);
        let scores = self.scores(&mut tape, links, &mut rows)?;
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
