//! The policy for one walk at a time, in `f64`, straight from the formulas.

use crate::graph::{Edge, EntityId, Link};
use crate::tensor::Parameters;
use crate::walk::world::Ask;
use crate::walk::{Agents, Walker};

/// The weights of a walker by name.
pub(super) struct Slow<'a> {
    walker: &'a Walker,
    parameters: &'a Parameters,
}

/// One agent's memory: `(h, c)` for each layer.
type Memory = Vec<(Vec<f64>, Vec<f64>)>;

impl<'a> Slow<'a> {
    pub(super) fn new(walker: &'a Walker) -> Self {
        Self { walker, parameters: &walker.parameters }
    }

    fn weight(&self, name: &str) -> (Vec<f64>, usize) {
        let value = self.parameters.value(self.parameters.find(name).unwrap_or_else(|| panic!("no {name}")));
        (value.to_vec().unwrap().into_iter().map(f64::from).collect(), value.columns())
    }

    fn row(&self, name: &str, row: u32) -> Vec<f64> {
        let (values, width) = self.weight(name);
        values[row as usize * width..(row as usize + 1) * width].to_vec()
    }

    fn product(&self, input: &[f64], weight: &str) -> Vec<f64> {
        let (values, width) = self.weight(weight);
        assert_eq!(values.len(), width * input.len(), "{weight}");
        (0..width)
            .map(|column| (0..input.len()).map(|row| input[row] * values[row * width + column]).sum())
            .collect()
    }

    fn linear(&self, input: &[f64], name: &str) -> Vec<f64> {
        let product = self.product(input, &format!("{name}.weight"));
        product.iter().zip(self.row(&format!("{name}.bias"), 0)).map(|(x, b)| x + b).collect()
    }

    fn lstm(&self, agent: &str, input: Vec<f64>, before: Option<&Memory>) -> Memory {
        let sigmoid = |x: f64| 1.0 / (1.0 + (-x).exp());
        let width = self.walker.config.history;
        let mut input = input;
        let mut memory = Vec::new();
        for layer in 0..self.walker.config.layers {
            let zeros = (vec![0.0; width], vec![0.0; width]);
            let (hidden, cell) = before.map_or(&zeros, |before| &before[layer]);
            let by_input = self.product(&input, &format!("{agent}.lstm.{layer}.input"));
            let by_hidden = self.product(hidden, &format!("{agent}.lstm.{layer}.hidden"));
            let bias = self.row(&format!("{agent}.lstm.{layer}.bias"), 0);
            let gates: Vec<f64> = (0..4 * width).map(|k| by_input[k] + by_hidden[k] + bias[k]).collect();
            let gate = |part: usize, k: usize| gates[part * width + k];
            let peepholes = match self.walker.config.peepholes {
                true => self.row(&format!("{agent}.lstm.{layer}.peepholes"), 0),
                false => vec![0.0; 3 * width],
            };
            let sees = |part: usize, k: usize, memory: &[f64]| peepholes[part * width + k] * memory[k];
            let new: Vec<f64> = (0..width)
                .map(|k| {
                    let enter = sigmoid(gate(0, k) + sees(0, k, cell));
                    let forget = sigmoid(gate(1, k) + sees(1, k, cell));
                    forget * cell[k] + enter * gate(2, k).tanh()
                })
                .collect();
            input = (0..width).map(|k| sigmoid(gate(3, k) + sees(2, k, &new)) * new[k].tanh()).collect();
            memory.push((input.clone(), new));
        }
        memory
    }

    fn head(&self, agent: &str, part: &str, input: &[f64]) -> Vec<f64> {
        let hidden: Vec<f64> =
            self.linear(input, &format!("{agent}.head.first")).iter().map(|x| x.max(0.0)).collect();
        let output = self.linear(&hidden, &format!("{agent}.head.{part}"));
        let least = if self.walker.config.output_relu { 0.0 } else { f64::NEG_INFINITY };
        output.iter().map(|x| x.max(least)).collect()
    }

    /// For every action that is open after `path`: `log P^R` (0 with a single agent) and `log P^E`.
    pub(super) fn log_probs(&self, ask: &Ask, path: &[Edge], open: &[Edge]) -> Vec<(f64, f64)> {
        let start = Edge { link: Link::START, target: ask.query.subject };
        let visited = || std::iter::once(&start).chain(path);
        let here = path.last().map_or(ask.query.subject, |edge| edge.target);
        let entity = |entity: EntityId| self.row("entities", entity.0);
        let relation = |link: Link| self.row("relations", link.0);
        let memory_of = |agent: &str, input: &dyn Fn(&Edge) -> Vec<f64>| {
            visited().fold(None, |before: Option<Memory>, edge| {
                Some(self.lstm(agent, input(edge), before.as_ref()))
            })
        };
        let top = |memory: Option<Memory>| memory.unwrap().pop().unwrap().0;
        let query = relation(ask.query.link);
        let by_action = |scores: Vec<f64>| log_softmax(&scores);
        if self.walker.config.agents == Agents::Single {
            let both = |edge: &Edge| [relation(edge.link), entity(edge.target)].concat();
            let state = [entity(here), top(memory_of("agent", &both)), query].concat();
            let (by_entity, by_relation) =
                (self.head("agent", "second", &state), self.head("agent", "relations", &state));
            let score =
                |edge: &Edge| dot(&by_entity, &entity(edge.target)) + dot(&by_relation, &relation(edge.link));
            return by_action(open.iter().map(score).collect())
                .into_iter()
                .map(|log_prob| (0.0, log_prob))
                .collect();
        }
        let history = top(memory_of("relation_agent", &|edge| relation(edge.link)));
        let state = self.head("relation_agent", "second", &[history, query.clone()].concat());
        let links = self.walker.world.links() as u32;
        let all = log_softmax(&(2..links).map(|link| dot(&state, &relation(Link(link)))).collect::<Vec<_>>());
        let history = top(memory_of("entity_agent", &|edge| entity(edge.target)));
        let state = [entity(here), history, entity(ask.query.subject), query].concat();
        let state = self.head("entity_agent", "second", &state);
        let by_entity = by_action(open.iter().map(|edge| dot(&state, &entity(edge.target))).collect());
        open.iter().zip(by_entity).map(|(edge, log_prob)| (all[edge.link.index() - 2], log_prob)).collect()
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len());
    a.iter().zip(b).map(|(x, y)| x * y).sum()
}

fn log_softmax(scores: &[f64]) -> Vec<f64> {
    let total = scores.iter().map(|score| score.exp()).sum::<f64>().ln();
    scores.iter().map(|score| score - total).collect()
}

/// The open actions after `path`, by looking at every edge of the graph.
pub(super) fn open(small: &super::Small, ask: &Ask, path: &[Edge], last: bool) -> Vec<Edge> {
    let here = path.last().map_or(ask.query.subject, |edge| edge.target);
    let is_answer = |entity: EntityId| {
        let facts = small.known.facts.iter().chain(small.known.queries.iter());
        facts.copied().any(|fact| {
            fact.head == ask.query.subject
                && Link::forward(fact.relation) == ask.query.link
                && fact.tail == entity
                || fact.tail == ask.query.subject
                    && Link::inverse_of(fact.relation) == ask.query.link
                    && fact.head == entity
        })
    };
    let stay = Edge { link: Link::NO_OP, target: here };
    let mut edges = vec![stay];
    for fact in small.known.facts.iter() {
        if fact.head == here {
            edges.push(Edge { link: Link::forward(fact.relation), target: fact.tail });
        }
        if fact.tail == here {
            edges.push(Edge { link: Link::inverse_of(fact.relation), target: fact.head });
        }
    }
    edges[1..].sort();
    if let Some(target) = ask.target {
        edges.retain(|edge| {
            let asked = here == ask.query.subject && edge.link == ask.query.link && edge.target == target;
            let inverse =
                here == target && edge.link == ask.query.link.reversed() && edge.target == ask.query.subject;
            !asked && !inverse
        });
    }
    if last {
        edges.retain(|edge| Some(edge.target) == ask.target || !is_answer(edge.target));
    }
    if edges.is_empty() && ask.target.is_some() { vec![stay] } else { edges }
}
