//! The policy networks: the agents' parameters and action probabilities.
//!
//! Two agents, each with its own LSTM and head:
//! - relation agent: `h^R = LSTM(h^R, r)`, `log P^R = log softmax(R · W₁ ReLU(W₂ [h^R; r_q]))` over all links
//!   but PAD and START;
//! - entity agent: `h^E = LSTM(h^E, e)`, `log P^E = log softmax(E_t · W₃ ReLU(W₄ [e_t; h^E; e_s; r_q]))` over
//!   the open candidates of the state.
//!
//! A single agent has one LSTM over `[r; e]` and scores `[R; E]_t · W₃ ReLU(W₄ [e_t; h; r_q])`.
//!
//! This module knows no graph and samples nothing: it takes layers of states and lists of candidates.

use super::config::{Agents, WalkConfig};
use super::layer::Layer;
use super::world::{Ask, Candidates};
use crate::tensor::{
    Activation, Indices, Initial, LstmState, LstmWeights, ParameterId, Parameters, Result, Segments, Tape,
    Var,
};

/// Links that no agent may draw: PAD and START, the first two rows of the relation table.
const NEVER_DRAWN: usize = 2;

struct LstmLayer {
    input: ParameterId,
    hidden: ParameterId,
    bias: ParameterId,
    peepholes: Option<ParameterId>,
}

struct Linear {
    weight: ParameterId,
    bias: ParameterId,
}

/// An agent: its memory and the two layers of its head. A single agent's head has two outputs: one is compared
/// with the relation of an action, one with its entity.
struct Agent {
    memory: Vec<LstmLayer>,
    first: Linear,
    second: Linear,
    against_relations: Option<Linear>,
}

/// The handles of all parameters of a walker.
pub(super) struct Network {
    agents: Agents,
    entities: ParameterId,
    relations: ParameterId,
    relation_agent: Option<Agent>,
    entity_agent: Agent,
    embedding_dropout: f32,
    hidden_dropout: f32,
    /// The activation of the last layer of each head.
    output: Activation,
}

/// What the agents remember in every state of a layer: the states of their LSTMs, layer by layer.
pub(super) struct Memory {
    relation: Vec<LstmState>,
    entity: Vec<LstmState>,
    /// The embedding (with dropout) of the entity of each state.
    here: Var,
}

/// The candidates of a layer on the device.
pub(super) struct Choices {
    pub(super) segments: Segments,
    pub(super) links: Indices,
    targets: Indices,
}

impl Choices {
    pub(super) fn new(tape: &Tape, candidates: &Candidates) -> Result<Choices> {
        let device = tape.device();
        Ok(Choices {
            links: Indices::of_draft(&candidates.links)?,
            targets: Indices::of_draft(&candidates.targets)?,
            segments: Segments::from_starts(device, candidates.starts.clone())?,
        })
    }
}

impl Network {
    /// Adds the parameters of a walker over this many entities and links.
    pub(super) fn new(
        parameters: &mut Parameters,
        config: &WalkConfig,
        entities: usize,
        links: usize,
    ) -> Result<Network> {
        let (width, history) = (config.dimension, config.history);
        let initial = if config.entity_embeddings { Initial::XavierNormal } else { Initial::Zeros };
        let entity_table = parameters.table("entities", entities, width, initial)?;
        parameters.freeze(entity_table, !config.entity_embeddings);
        let relation_table = parameters.dense("relations", links, width, Initial::XavierNormal)?;
        let agent = |parameters: &mut Parameters, name: &str, input, head: [usize; 3], pair| {
            let agent = Agent::new(parameters, name, config, input, head, pair)?;
            agent.open_forget_gates(parameters, history, config.forget_bias).map(|()| agent)
        };
        let (relation_agent, entity_agent) = match config.agents {
            Agents::Two => {
                let by_relation = [history + width, width, width];
                let by_entity = [3 * width + history, width, width];
                let relation_agent = agent(parameters, "relation_agent", width, by_relation, false)?;
                (Some(relation_agent), agent(parameters, "entity_agent", width, by_entity, false)?)
            }
            Agents::Single => {
                let head = [2 * width + history, 2 * width, width];
                (None, agent(parameters, "agent", 2 * width, head, true)?)
            }
        };
        Ok(Network {
            agents: config.agents,
            entities: entity_table,
            relations: relation_table,
            relation_agent,
            entity_agent,
            embedding_dropout: config.embedding_dropout,
            hidden_dropout: config.hidden_dropout,
            output: if config.output_relu { Activation::Relu } else { Activation::Identity },
        })
    }

    /// The embeddings of the entities.
    pub(super) fn entity_table(&self) -> ParameterId {
        self.entities
    }

    /// The embeddings of the links.
    pub(super) fn relation_table(&self) -> ParameterId {
        self.relations
    }

    /// Freezes or unfreezes the relation agent and the relation embeddings it scores against.
    pub(super) fn freeze_relation_agent(&self, parameters: &mut Parameters, frozen: bool) {
        let Some(agent) = &self.relation_agent else { return };
        for id in agent.parameters().chain([self.relations]) {
            parameters.freeze(id, frozen);
        }
    }

    /// The memory of every state of `layer`, which follows `before`. `entities` is false in pre-training, where
    /// the entity agent takes no part.
    pub(super) fn remember(
        &self,
        tape: &mut Tape,
        layer: &Layer,
        before: Option<&Memory>,
        entities: bool,
    ) -> Result<Memory> {
        let (entity_table, relation_table) = (tape.parameter(self.entities), tape.parameter(self.relations));
        let relation = match &self.relation_agent {
            Some(agent) => {
                let links = Indices::new(tape.device(), &layer.history_links)?;
                let input = tape.gather(relation_table, &links, self.embedding_dropout)?; // [histories, d]
                agent.remember(tape, input, before.map(|memory| &memory.relation), &layer.history_parents)?
            }
            None => Vec::new(),
        };
        if !entities {
            return Ok(Memory { relation, entity: Vec::new(), here: entity_table });
        }
        let at = Indices::new(tape.device(), &layer.entities)?;
        let here = tape.gather(entity_table, &at, self.embedding_dropout)?; // [states, d]
        let input = match self.agents {
            Agents::Two => here,
            Agents::Single => {
                let links = Indices::new(tape.device(), &layer.links)?;
                let by = tape.gather(relation_table, &links, self.embedding_dropout)?; // [states, d]
                tape.concatenate(&[by, here])?
            }
        };
        let before = before.map(|memory| &memory.entity);
        let entity = self.entity_agent.remember(tape, input, before, &layer.parents)?;
        Ok(Memory { relation, entity, here })
    }

    /// `log P^R`, a row for each head of `layer` and a column for each link; none with a single agent.
    pub(super) fn relation_log_probs(
        &self,
        tape: &mut Tape,
        layer: &Layer,
        memory: &Memory,
    ) -> Result<Option<Var>> {
        let Some(agent) = &self.relation_agent else { return Ok(None) };
        let table = tape.parameter(self.relations);
        let histories = Indices::new(tape.device(), &layer.head_histories)?;
        let queries = Indices::new(tape.device(), &layer.head_queries)?;
        let history = tape.gather(top(&memory.relation), &histories, 0.0)?; // [heads, h]
        let query = tape.gather(table, &queries, self.embedding_dropout)?; // [heads, d]
        let hidden = agent.first.apply(tape, &[history, query], Activation::Relu, self.hidden_dropout)?;
        let state = agent.second.apply(tape, &[hidden], self.output, self.hidden_dropout)?; // [heads, d]
        let scores = tape.against(state, table, None, self.embedding_dropout)?; // [heads, links]
        tape.log_softmax(scores, NEVER_DRAWN).map(Some)
    }

    /// `log P^E` of every candidate (with a single agent, the log-probability of every action).
    pub(super) fn action_log_probs(
        &self,
        tape: &mut Tape,
        asks: &[Ask],
        layer: &Layer,
        memory: &Memory,
        choices: &Choices,
    ) -> Result<Var> {
        let (entity_table, relation_table) = (tape.parameter(self.entities), tape.parameter(self.relations));
        let of_items = |value: &dyn Fn(&Ask) -> u32| -> Vec<u32> {
            layer.items.iter().map(|&item| value(&asks[item as usize])).collect()
        };
        let queries = Indices::new(tape.device(), &of_items(&|ask| ask.query.link.0))?;
        let query = tape.gather(relation_table, &queries, self.embedding_dropout)?; // [states, d]
        let mut inputs = vec![memory.here, top(&memory.entity)];
        if self.agents == Agents::Two {
            let subjects = Indices::new(tape.device(), &of_items(&|ask| ask.query.subject.0))?;
            inputs.push(tape.gather(entity_table, &subjects, self.embedding_dropout)?); // [states, d]
        }
        inputs.push(query);
        let agent = &self.entity_agent;
        let hidden = agent.first.apply(tape, &inputs, Activation::Relu, self.hidden_dropout)?;
        let state = agent.second.apply(tape, &[hidden], self.output, self.hidden_dropout)?; // [states, d]
        let Choices { segments, links, targets } = choices;
        let mut scores = tape.gather_dot(state, entity_table, targets, segments, self.embedding_dropout)?;
        if let Some(part) = &agent.against_relations {
            let state = part.apply(tape, &[hidden], self.output, self.hidden_dropout)?; // [states, d]
            let more = tape.gather_dot(state, relation_table, links, segments, self.embedding_dropout)?;
            scores = tape.add(scores, more)?;
        }
        tape.segment_log_softmax(scores, segments, None)
    }
}

/// The output of the last LSTM layer.
fn top(states: &[LstmState]) -> Var {
    states.last().expect("an LSTM has at least one layer").hidden
}

impl Agent {
    /// Initialises the forget-gate biases of all layers to `bias`.
    fn open_forget_gates(&self, parameters: &mut Parameters, history: usize, bias: f32) -> Result<()> {
        let forget = history..2 * history; // the second of four gates, see `tape.lstm`
        let start: Vec<f32> =
            (0..4 * history).map(|gate| if forget.contains(&gate) { bias } else { 0.0 }).collect();
        self.memory.iter().try_for_each(|layer| parameters.set(layer.bias, &start))
    }

    fn new(
        parameters: &mut Parameters,
        name: &str,
        config: &WalkConfig,
        input: usize,
        [inputs, hidden, outputs]: [usize; 3],
        pair: bool,
    ) -> Result<Agent> {
        let memory = (0..config.layers)
            .map(|layer| {
                let width = if layer == 0 { input } else { config.history };
                LstmLayer::new(parameters, &format!("{name}.lstm.{layer}"), config, width)
            })
            .collect::<Result<_>>()?;
        let mut linear = |part: &str, rows, columns| {
            let weight =
                parameters.dense(&format!("{name}.{part}.weight"), rows, columns, Initial::XavierUniform)?;
            Ok(Linear {
                weight,
                bias: parameters.dense(&format!("{name}.{part}.bias"), 1, columns, Initial::Zeros)?,
            })
        };
        let first = linear("head.first", inputs, hidden)?;
        let second = linear("head.second", hidden, outputs)?;
        let against_relations = if pair { Some(linear("head.relations", hidden, outputs)?) } else { None };
        Ok(Agent { memory, first, second, against_relations })
    }

    fn remember(
        &self,
        tape: &mut Tape,
        mut input: Var,
        before: Option<&Vec<LstmState>>,
        parents: &[u32],
    ) -> Result<Vec<LstmState>> {
        let parents = match before {
            Some(_) => Some(Indices::new(tape.device(), parents)?),
            None => None,
        };
        let mut states = Vec::with_capacity(self.memory.len());
        for (index, layer) in self.memory.iter().enumerate() {
            let weights = LstmWeights {
                input: tape.parameter(layer.input),
                hidden: tape.parameter(layer.hidden),
                bias: tape.parameter(layer.bias),
                peepholes: layer.peepholes.map(|peepholes| tape.parameter(peepholes)),
            };
            let state = tape.lstm(input, before.map(|states| states[index]), parents.as_ref(), weights)?;
            input = state.hidden;
            states.push(state);
        }
        Ok(states)
    }

    fn parameters(&self) -> impl Iterator<Item = ParameterId> + '_ {
        let memory = self.memory.iter().flat_map(LstmLayer::parameters);
        let head = [Some(&self.first), Some(&self.second), self.against_relations.as_ref()];
        memory.chain(head.into_iter().flatten().flat_map(|linear| [linear.weight, linear.bias]))
    }
}

impl LstmLayer {
    fn new(parameters: &mut Parameters, name: &str, config: &WalkConfig, width: usize) -> Result<LstmLayer> {
        let history = config.history;
        let mut part = |part: &str, rows, columns, initial| {
            parameters.dense(&format!("{name}.{part}"), rows, columns, initial)
        };
        // TensorFlow's start of a vector, which it takes for a square matrix; three gates have one each.
        let peephole = Initial::Uniform((6.0 / (2 * history) as f32).sqrt());
        Ok(LstmLayer {
            input: part("input", width, 4 * history, Initial::XavierNormal)?,
            hidden: part("hidden", history, 4 * history, Initial::XavierNormal)?,
            bias: part("bias", 1, 4 * history, Initial::Zeros)?,
            peepholes: config.peepholes.then(|| part("peepholes", 1, 3 * history, peephole)).transpose()?,
        })
    }

    fn parameters(&self) -> impl Iterator<Item = ParameterId> {
        [self.input, self.hidden, self.bias].into_iter().chain(self.peepholes)
    }
}

impl Linear {
    fn apply(&self, tape: &mut Tape, inputs: &[Var], activation: Activation, dropout: f32) -> Result<Var> {
        let (weight, bias) = (tape.parameter(self.weight), tape.parameter(self.bias));
        tape.linear(inputs, weight, Some(bias), activation, dropout)
    }
}
