//! The two networks: vectors of the relations given the query's relation, then scores of the entities.
//!
//! *Relation network.* The start vector stands at the query's link, zero at all others. In every layer a link gets
//! ten sums over its neighbours in the relation graph (one for every kind of edge), each times a weight of its
//! kind; these, the state and the start go through a linear map, layer normalisation and a ReLU, and are added to the
//! state. `z[l]` is the vector of link `l`, given the query's link.
//!
//! *Entity network.* A propagator ([`propagate`](crate::propagate)) whose weights of link `l` in a layer are
//! `MLP([z[l] ; z[query]])`, and whose start vector is a linear map of `z[query]`.
//!
//! No parameter belongs to a relation or an entity, so the same weights answer over any graph. The first network
//! depends on the query's link alone, so it runs once for every *distinct* link of a batch.

mod start;

use super::UniversalError;
use super::relations::RelationGraph;
use super::settings::UniversalSettings;
use crate::propagate::{Area, FrontierBound, LayerInputs, Rows};
use crate::tensor::{
    Activation, Device, EdgeIndex, Indices, Initial, Messages, ParameterId, Parameters, ReachQuery,
    ScoredRows, SparseMatrix, Tape, Tensor, UpdateWeights, Var,
};

/// Kinds of edges between links.
pub(super) const KINDS: usize = 10;
/// Width of the hidden layer of the score.
const HIDDEN: usize = UniversalSettings::HIDDEN;
/// Aggregates of an entity's messages: mean, maximum, minimum, standard deviation.
const AGGREGATES: usize = 4;

/// A relation graph on a device. Cheap to clone.
#[derive(Clone)]
pub(super) struct Relations {
    links: usize,
    heads: SparseMatrix,
    pairs: SparseMatrix,
}

impl Relations {
    pub(super) fn new(device: &Device, graph: &RelationGraph) -> Result<Relations, UniversalError> {
        let links = graph.links();
        let matrix = |from: &super::LinkMatrix| {
            SparseMatrix::new(device, links, &from.starts, &from.links, &from.weights)
        };
        Ok(Relations { links, heads: matrix(&graph.heads)?, pairs: matrix(&graph.pairs)? })
    }
}

impl Relations {
    /// The row of every link's inverse, in `blocks` blocks of all links. Links come in pairs, so it is the row beside.
    fn inverses(&self, device: &Device, blocks: usize) -> Result<Indices, UniversalError> {
        let rows: Vec<u32> = (0..(blocks * self.links) as u32).map(|row| row ^ 1).collect();
        Ok(Indices::new(device, &rows)?)
    }
}

struct RelationLayer {
    /// `[10 width, 1]`: a weight for every kind and column.
    kinds: ParameterId,
    /// `[10 width, width]` for the sums over neighbours, `[2 width, width]` for state and start, and a bias.
    mixed: ParameterId,
    own: ParameterId,
    bias: ParameterId,
    scale: ParameterId,
    shift: ParameterId,
}

struct EntityLayer {
    /// The perceptron that makes the weights of the links: `[2 width, 2 width]`, `[2 width, width]`, and biases.
    link_hidden: ParameterId,
    link_hidden_bias: ParameterId,
    link_out: ParameterId,
    link_out_bias: ParameterId,
    own: ParameterId,
    mixed: ParameterId,
    bias: ParameterId,
    scale: ParameterId,
    shift: ParameterId,
}

/// The parameters of both networks among those of a model.
pub(super) struct Network {
    width: usize,
    whole: bool,
    /// `[1, width]`: what the query's link starts with.
    start: ParameterId,
    relation_layers: Vec<RelationLayer>,
    /// `[width, width]` and a bias: from the query's vector to what its subject starts with.
    query: ParameterId,
    query_bias: ParameterId,
    entity_layers: Vec<EntityLayer>,
    /// The perceptron of the score: `[width, hidden]` for states and for queries, a bias, `[1, hidden]`.
    of_state: ParameterId,
    of_query: ParameterId,
    hidden_bias: ParameterId,
    to_score: ParameterId,
}

/// The links of a batch of queries: each distinct one once.
pub(super) struct AskedLinks {
    /// The distinct links, in order of first appearance.
    pub(super) distinct: Vec<u32>,
    /// For each query, the place of its link among them; `None` if every query has its own, in order.
    places: Option<Vec<u32>>,
}

impl AskedLinks {
    pub(super) fn new(links: &[u32]) -> AskedLinks {
        let (mut distinct, mut places) = (Vec::new(), Vec::new());
        for link in links {
            let place = distinct.iter().position(|other| other == link).unwrap_or_else(|| {
                distinct.push(*link);
                distinct.len() - 1
            });
            places.push(place as u32);
        }
        let places = (distinct.len() < links.len()).then_some(places);
        AskedLinks { distinct, places }
    }
}

/// What the relation network says about a batch: the vectors of all links and of the queries' own.
#[derive(Clone, Copy)]
struct LinkStates {
    /// `[distinct × links, width]`.
    all: Var,
    /// `[distinct, width]`, and the same repeated for every link, `[distinct × links, width]`.
    asked: Var,
    asked_by_row: Var,
}

impl Network {
    /// Adds the parameters of the networks.
    pub(super) fn new(
        settings: &UniversalSettings,
        parameters: &mut Parameters,
    ) -> Result<Network, UniversalError> {
        let width = settings.width;
        let of = |inputs: usize| Initial::Uniform((inputs as f32).sqrt().recip());
        let mut dense = |name: &str, rows: usize, columns: usize, initial: Initial| {
            parameters.dense(name, rows, columns, initial)
        };
        let start = dense("relation.start", 1, width, Initial::Normal(0.5))?;
        let mut relation_layers = Vec::new();
        for layer in 1..=settings.relation_layers {
            let inputs = (KINDS + 2) * width;
            let mut dense = |name: &str, rows, columns, initial| {
                dense(&format!("relation.{layer}.{name}"), rows, columns, initial)
            };
            relation_layers.push(RelationLayer {
                kinds: dense("kinds", KINDS * width, 1, Initial::Normal(0.3))?,
                mixed: dense("mixed", KINDS * width, width, of(inputs))?,
                own: dense("own", 2 * width, width, of(inputs))?,
                bias: dense("bias", 1, width, of(inputs))?,
                scale: dense("scale", 1, width, Initial::Ones)?,
                shift: dense("shift", 1, width, Initial::Zeros)?,
            });
        }
        let query = dense("query", width, width, of(width))?;
        let query_bias = dense("query_bias", 1, width, of(width))?;
        let mut entity_layers = Vec::new();
        for layer in 1..=settings.layers {
            let mut dense = |name: &str, rows, columns, initial| {
                dense(&format!("entity.{layer}.{name}"), rows, columns, initial)
            };
            entity_layers.push(EntityLayer {
                link_hidden: dense("link.hidden", 2 * width, 2 * width, of(2 * width))?,
                link_hidden_bias: dense("link.hidden_bias", 1, 2 * width, of(2 * width))?,
                link_out: dense("link.out", 2 * width, width, of(2 * width))?,
                link_out_bias: dense("link.out_bias", 1, width, of(2 * width))?,
                own: dense("own", width, width, of(width))?,
                mixed: dense("mixed", AGGREGATES * width, 3 * width, of(AGGREGATES * width))?,
                bias: dense("bias", 1, width, of(width))?,
                scale: dense("scale", 1, width, Initial::Ones)?,
                shift: dense("shift", 1, width, Initial::Zeros)?,
            });
        }
        Ok(Network {
            width,
            whole: settings.whole,
            start,
            relation_layers,
            query,
            query_bias,
            entity_layers,
            of_state: dense("score.state", width, HIDDEN, of(2 * width))?,
            of_query: dense("score.query", width, HIDDEN, of(2 * width))?,
            hidden_bias: dense("score.bias", 1, HIDDEN, of(2 * width))?,
            to_score: dense("score.weights", 1, HIDDEN, of(HIDDEN))?,
        })
    }

    /// The number of entity layers.
    pub(super) fn depth(&self) -> usize {
        self.entity_layers.len()
    }

    /// The area that queries over `edge_index` are answered over.
    pub(super) fn area(
        &self,
        edge_index: &EdgeIndex,
        asks: &[ReachQuery],
        frontier: FrontierBound,
    ) -> Result<Area, UniversalError> {
        Ok(Area::new(edge_index, asks, (self.depth(), self.whole, frontier))?)
    }

    /// The state of all links before the first layer: the start vector at the asked link of each block, zero
    /// elsewhere. `[distinct × links, width]`.
    fn relation_start(&self, tape: &mut Tape, links: usize, asked: &[u32]) -> Result<Var, UniversalError> {
        let mut marks = vec![0.0; asked.len() * links];
        asked.iter().enumerate().for_each(|(block, &link)| marks[block * links + link as usize] = 1.0);
        let marks = Tensor::vector(tape.device(), &marks)?;
        let (marks, start) = (tape.constant(marks)?, tape.parameter(self.start));
        Ok(tape.linear(&[marks], start, None, Activation::Identity, 0.0)?)
    }

    /// One layer of the relation network, `[distinct × links, width]`.
    fn relation_layer(
        &self,
        tape: &mut Tape,
        layer: &RelationLayer,
        (state, start): (Var, Var),
        (relations, inverses): (&Relations, &Indices),
    ) -> Result<Var, UniversalError> {
        let [rows, width] = tape.shape(state);
        // Sums over heads of `a` are products with the state, over tails of `a` with the state of the inverses; sums
        // at the tails of `b` are those at the heads of its inverse. So one matrix serves eight kinds.
        let inverse = tape.gather(state, inverses, 0.0)?;
        let both = tape.concatenate(&[state, inverse])?; // [rows, 2 width]
        let at_heads = tape.sparse_product(&relations.heads, both)?; // [2 rows, 2 width]
        let at_heads = tape.reshape(at_heads, rows, 4 * width)?; // shares, then yes or no; of heads, then of tails
        let at_tails = tape.gather(at_heads, inverses, 0.0)?;
        let of_pairs = tape.sparse_product(&relations.pairs, state)?; // [2 rows, width]
        let of_pairs = tape.reshape(of_pairs, rows, 2 * width)?;
        let [kinds, mixed, own, bias, scale, shift] =
            [layer.kinds, layer.mixed, layer.own, layer.bias, layer.scale, layer.shift]
                .map(|id| tape.parameter(id));
        // A weight of a kind's column is a factor on the row of the map that the column is multiplied by.
        let mixed = tape.scale_rows(mixed, kinds)?; // [10 width, width]
        let sums = tape.linear(&[at_heads, at_tails, of_pairs], mixed, None, Activation::Identity, 0.0)?;
        let kept = tape.linear(&[state, start], own, Some(bias), Activation::Identity, 0.0)?;
        let sum = tape.add(sums, kept)?; // [rows, width]
        Ok(tape.residual_norm(sum, state, scale, shift)?)
    }

    /// The vectors of all links given each of the `asked` ones: `[distinct × links, width]`.
    fn links(&self, tape: &mut Tape, relations: &Relations, asked: &[u32]) -> Result<Var, UniversalError> {
        let inverses = relations.inverses(tape.device(), asked.len())?;
        let start = self.relation_start(tape, relations.links, asked)?;
        let mut state = start;
        for layer in &self.relation_layers {
            state = self.relation_layer(tape, layer, (state, start), (relations, &inverses))?;
        }
        Ok(state)
    }

    /// The same without gradients; a layer's buffers are freed once the next layer is done.
    pub(super) fn link_vectors(
        &self,
        parameters: &Parameters,
        relations: &Relations,
        asked: &[u32],
    ) -> Result<Tensor, UniversalError> {
        // In full precision: there is little to multiply, and everything else depends on it.
        let new_tape = || Tape::inference(parameters).exact(true);
        let inverses = relations.inverses(parameters.device(), asked.len())?;
        let mut tape = new_tape();
        let start = self.relation_start(&mut tape, relations.links, asked)?;
        let start = tape.value(start);
        let mut state = start.clone();
        for layer in &self.relation_layers {
            let mut tape = new_tape();
            let vars = (tape.constant(state)?, tape.constant(start.clone())?);
            let next = self.relation_layer(&mut tape, layer, vars, (relations, &inverses))?;
            state = tape.value(next);
        }
        Ok(state)
    }

    /// The vectors of all links, ready for the entity network.
    fn link_states(
        &self,
        tape: &mut Tape,
        all: Var,
        links: usize,
        asked: &[u32],
    ) -> Result<LinkStates, UniversalError> {
        let device = tape.device();
        let own: Vec<u32> = (0..).zip(asked).map(|(block, &link)| block * links as u32 + link).collect();
        let asked_by_row: Vec<u32> =
            (0..asked.len() as u32).flat_map(|block| std::iter::repeat_n(block, links)).collect();
        let own = tape.gather(all, &Indices::new(device, &own)?, 0.0)?; // [distinct, width]
        let asked_by_row = tape.gather(own, &Indices::new(device, &asked_by_row)?, 0.0)?;
        Ok(LinkStates { all, asked: own, asked_by_row })
    }

    /// What the queries start with, `[queries, width]`.
    fn query_start(
        &self,
        tape: &mut Tape,
        asked: Var,
        places: Option<&Indices>,
    ) -> Result<Var, UniversalError> {
        let (query, bias) = (tape.parameter(self.query), tape.parameter(self.query_bias));
        let start = tape.linear(&[asked], query, Some(bias), Activation::Identity, 0.0)?; // [distinct, width]
        Ok(match places {
            Some(places) => tape.gather(start, places, 0.0)?,
            None => start,
        })
    }

    /// The weights of all links in a layer, `[queries, links × width]`.
    fn link_weights(
        &self,
        tape: &mut Tape,
        layer: &EntityLayer,
        states: LinkStates,
        places: Option<&Indices>,
    ) -> Result<Var, UniversalError> {
        let [hidden, hidden_bias, out, out_bias] =
            [layer.link_hidden, layer.link_hidden_bias, layer.link_out, layer.link_out_bias]
                .map(|id| tape.parameter(id));
        let inputs = [states.all, states.asked_by_row];
        let hidden = tape.linear(&inputs, hidden, Some(hidden_bias), Activation::Relu, 0.0)?;
        let weights = tape.linear(&[hidden], out, Some(out_bias), Activation::Identity, 0.0)?;
        let ([rows, width], [distinct, _]) = (tape.shape(weights), tape.shape(states.asked));
        let weights = tape.reshape(weights, distinct, rows / distinct.max(1) * width)?;
        Ok(match places {
            Some(places) => tape.gather(weights, places, 0.0)?,
            None => weights,
        })
    }

    /// The states after entity layer `number` (from 1), `[rows, width]`.
    fn entity_layer(
        &self,
        tape: &mut Tape,
        number: usize,
        (state, start): (Var, Var),
        links: Var,
        rows: &mut Rows,
    ) -> Result<Var, UniversalError> {
        let layer = &self.entity_layers[number - 1];
        let [own, mixed, bias, scale, shift] =
            [layer.own, layer.mixed, layer.bias, layer.scale, layer.shift].map(|id| tape.parameter(id));
        let update = UpdateWeights { own, mixed, bias, scale, shift };
        let messages = Messages { passed: state, weights: links, start };
        let inputs = LayerInputs { number, messages, update, dropout: 0.0 };
        rows.layer(tape, inputs, |tape, states, rows| self.row_scores(tape, states, rows))
    }

    /// The score of every row from its state, followed by one for the entities without a row of each query. Scores have
    /// no common offset: a softmax or a ranking does not see one.
    fn row_scores(
        &self,
        tape: &mut Tape,
        (state, start): (Var, Var),
        rows: &ScoredRows,
    ) -> Result<Var, UniversalError> {
        let [of_state, of_query, bias, to_score] =
            [self.of_state, self.of_query, self.hidden_bias, self.to_score].map(|id| tape.parameter(id));
        let hidden = tape.linear(&[state], of_state, None, Activation::Identity, 0.0)?; // [rows, hidden]
        let asked = tape.linear(&[start], of_query, Some(bias), Activation::Identity, 0.0)?; // [queries, hidden]
        Ok(tape.mlp_score(hidden, asked, to_score, rows)?) // [rows + queries]
    }

    /// The score of every entity from the last states, `[queries, entities]`.
    fn score(&self, tape: &mut Tape, states: (Var, Var), rows: &Rows) -> Result<Var, UniversalError> {
        let scored = rows.scored()?;
        let scores = self.row_scores(tape, states, &scored)?;
        Ok(tape.scatter_nodes(scores, &scored)?)
    }

    /// The scores of all entities for queries by `links`, on a tape that may train: `[queries, entities]`.
    pub(super) fn scores(
        &self,
        tape: &mut Tape,
        relations: &Relations,
        links: &[u32],
        rows: &mut Rows,
    ) -> Result<Var, UniversalError> {
        let asked = AskedLinks::new(links);
        let places = asked.places.as_ref().map(|places| Indices::new(tape.device(), places)).transpose()?;
        let all = self.links(tape, relations, &asked.distinct)?;
        let states = self.link_states(tape, all, relations.links, &asked.distinct)?;
        let start = self.query_start(tape, states.asked, places.as_ref())?;
        let mut state = start;
        for (index, layer) in self.entity_layers.iter().enumerate() {
            let weights = self.link_weights(tape, layer, states, places.as_ref())?;
            state = self.entity_layer(tape, index + 1, (state, start), weights, rows)?;
        }
        self.score(tape, (state, start), rows)
    }

    /// The same on a tape whose gradients are asked for at the edges alone, from the vectors of the links. No gradient goes
    /// to what makes the weights of links: with many relations that would take most of the time and the memory.
    pub(super) fn traced_scores(
        &self,
        tape: &mut Tape,
        parameters: &Parameters,
        (all, asked): (Tensor, &AskedLinks),
        rows: &mut Rows,
    ) -> Result<Var, UniversalError> {
        let device = parameters.device();
        let places = asked.places.as_ref().map(|places| Indices::new(device, places)).transpose()?;
        let links = all.rows() / asked.distinct.len().max(1);
        let mut aside = Tape::inference(parameters).exact(true);
        let all = aside.constant(all)?;
        let states = self.link_states(&mut aside, all, links, &asked.distinct)?;
        let own = tape.constant(aside.value(states.asked))?;
        let states = [states.all, states.asked, states.asked_by_row].map(|var| aside.value(var));
        let start = self.query_start(tape, own, places.as_ref())?;
        let mut state = start;
        for (index, layer) in self.entity_layers.iter().enumerate() {
            let mut aside = Tape::inference(parameters).exact(true);
            let [all, asked, asked_by_row] = states.clone().map(|state| aside.constant(state));
            let states = LinkStates { all: all?, asked: asked?, asked_by_row: asked_by_row? };
            let weights = self.link_weights(&mut aside, layer, states, places.as_ref())?;
            let weights = tape.constant(aside.value(weights))?;
            state = self.entity_layer(tape, index + 1, (state, start), weights, rows)?;
        }
        self.score(tape, (state, start), rows)
    }

    /// The scores without gradients, from the vectors that [`Network::links`] gives for the distinct links; a layer's
    /// buffers are freed once the next layer is done.
    pub(super) fn answers(
        &self,
        parameters: &Parameters,
        (all, asked): (Tensor, &AskedLinks),
        area: &Area,
        exact: bool,
    ) -> Result<(Tensor, Rows), UniversalError> {
        let mut rows = area.rows()?;
        let new_tape = || Tape::inference(parameters).exact(exact);
        let device = parameters.device();
        let places = asked.places.as_ref().map(|places| Indices::new(device, places)).transpose()?;
        let links = all.rows() / asked.distinct.len().max(1);
        let mut tape = new_tape();
        let all = tape.constant(all)?;
        let states = self.link_states(&mut tape, all, links, &asked.distinct)?;
        let start = self.query_start(&mut tape, states.asked, places.as_ref())?;
        let start = tape.value(start);
        let states = [states.all, states.asked, states.asked_by_row].map(|var| tape.value(var));
        let mut state = start.clone();
        for (index, layer) in self.entity_layers.iter().enumerate() {
            let mut tape = new_tape();
            let [all, asked, asked_by_row] = states.clone().map(|state| tape.constant(state));
            let states = LinkStates { all: all?, asked: asked?, asked_by_row: asked_by_row? };
            let weights = self.link_weights(&mut tape, layer, states, places.as_ref())?;
            let vars = (tape.constant(state)?, tape.constant(start.clone())?);
            let next = self.entity_layer(&mut tape, index + 1, vars, weights, &mut rows)?;
            state = tape.value(next);
        }
        let mut tape = new_tape();
        let vars = (tape.constant(state)?, tape.constant(start)?);
        let scores = self.score(&mut tape, vars, &rows)?;
        Ok((tape.value(scores), rows))
    }

    /// The width of states.
    pub(super) fn width(&self) -> usize {
        self.width
    }
}
