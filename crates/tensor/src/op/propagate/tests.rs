//! The aggregation against a naive one in double precision, on small random meshes and on strange ones.

use std::sync::Arc;

use crate::{
    Device, EdgeIndex, Gradients, Initial, Messages, ParameterId, Parameters, Reach, ReachQuery, Result,
    Tape, Tensor, UpdateWeights, Without,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// A graph as a plain list of edges, both directions.
pub(super) struct Plain {
    pub(super) nodes: usize,
    pub(super) kinds: usize,
    pub(super) edges: Vec<(u32, u32, u32)>,
}

impl Plain {
    pub(super) fn new(nodes: usize, kinds: usize, facts: impl IntoIterator<Item = (u32, u32, u32)>) -> Plain {
        let both = facts.into_iter().flat_map(|(from, kind, to)| [(from, kind, to), (to, kind ^ 1, from)]);
        let mut edges: Vec<_> = both.collect();
        edges.sort_unstable();
        edges.dedup();
        Plain { nodes, kinds, edges }
    }

    pub(super) fn random(seed: u64, nodes: usize, kinds: usize, facts: usize) -> Plain {
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut draw = |below: usize| (random.next_u64() % below as u64) as u32;
        Plain::new(nodes, kinds, (0..facts).map(|_| (draw(nodes), 2 * draw(kinds / 2), draw(nodes))))
    }

    pub(super) fn edge_index(&self, device: &Device) -> EdgeIndex {
        let starts = (0..=self.nodes as u32)
            .map(|node| self.edges.partition_point(|edge| edge.0 < node) as u32)
            .collect();
        let (links, others) = self.edges.iter().map(|edge| (edge.1, edge.2)).unzip();
        EdgeIndex::new(device, self.kinds, starts, links, others).unwrap()
    }

    fn is_gone(ask: &ReachQuery, (from, kind, to): (u32, u32, u32)) -> bool {
        ask.without.is_some_and(|without| {
            let forward = from == ask.start && to == without.node && without.kind.is_none_or(|it| it == kind);
            let back =
                to == ask.start && from == without.node && without.kind.is_none_or(|it| it ^ 1 == kind);
            forward || back
        })
    }

    /// The nodes within `steps` steps.
    fn reached(&self, ask: &ReachQuery, steps: usize) -> Vec<bool> {
        let mut reached = vec![false; self.nodes];
        reached[ask.start as usize] = true;
        for _ in 0..steps {
            let before = reached.clone();
            for &edge in self.edges.iter().filter(|edge| !Self::is_gone(ask, **edge)) {
                reached[edge.2 as usize] |= before[edge.0 as usize];
            }
        }
        reached
    }

    /// The aggregates `[mean | max | min | deviation]` of every node for one query, given the state of every node.
    fn aggregate(
        &self,
        ask: &ReachQuery,
        state: &[Vec<f64>],
        weights: &[Vec<f64>],
        start: &[f64],
    ) -> Vec<Vec<f64>> {
        let width = start.len();
        (0..self.nodes as u32)
            .map(|node| {
                let own = if node == ask.start { start.to_vec() } else { vec![0.0; width] };
                let coming = self.edges.iter().filter(|edge| edge.2 == node && !Self::is_gone(ask, **edge));
                let messages: Vec<Vec<f64>> = coming
                    .map(|edge| {
                        let pair = state[edge.0 as usize].iter().zip(&weights[edge.1 as usize]);
                        pair.map(|(state, weight)| state * weight).collect()
                    })
                    .chain([own])
                    .collect();
                let column = |at: usize| messages.iter().map(move |message| message[at]);
                let count = messages.len() as f64;
                let mean = |at: usize| column(at).sum::<f64>() / count;
                let deviation = |at: usize| {
                    let variance = column(at).map(|x| x * x).sum::<f64>() / count - mean(at) * mean(at);
                    variance.max(1e-6).sqrt()
                };
                let most = |at: usize| column(at).fold(f64::NEG_INFINITY, f64::max);
                let least = |at: usize| column(at).fold(f64::INFINITY, f64::min);
                (0..width)
                    .map(mean)
                    .chain((0..width).map(most))
                    .chain((0..width).map(least))
                    .chain((0..width).map(deviation))
                    .collect()
            })
            .collect()
    }
}

/// Output, derivatives of the three inputs, and the inputs themselves.
type Outcome = (Vec<f32>, [Vec<f32>; 3], [Vec<f32>; 3]);

/// A problem: a graph, queries, and the inputs of one layer.
struct Problem {
    plain: Plain,
    asks: Vec<ReachQuery>,
    layer: usize,
    width: usize,
    shared: bool,
}

impl Problem {
    fn parameters(&self, device: &Device, reach: &Reach) -> Parameters {
        let mut parameters = Parameters::new(device, 5);
        let (count, kinds, width) = (self.asks.len(), self.plain.kinds, self.width);
        let weights = if self.shared { (kinds, width) } else { (count, kinds * width) };
        parameters.dense("state", reach.rows(self.layer - 1), width, Initial::Normal(1.0)).unwrap();
        parameters.dense("weights", weights.0, weights.1, Initial::Normal(1.0)).unwrap();
        parameters.dense("start", count, width, Initial::Normal(1.0)).unwrap();
        parameters
    }

    fn reach(&self, device: &Device) -> Arc<Reach> {
        Arc::new(Reach::new(&self.plain.edge_index(device), &self.asks, self.layer).unwrap())
    }

    /// Output, derivatives of the three inputs, and the inputs themselves.
    fn run(&self, device: &Device) -> Result<Outcome> {
        let reach = self.reach(device);
        let parameters = self.parameters(device, &reach);
        let ids: Vec<ParameterId> = parameters.ids().collect();
        let mut gradients = Gradients::new(&parameters);
        let mut tape = Tape::training(&parameters, 1);
        let vars: Vec<_> = ids.iter().map(|id| tape.parameter(*id)).collect();
        let out = tape.propagate(vars[0], vars[1], vars[2], &reach, self.layer)?;
        let [rows, columns] = tape.shape(out);
        let factors = Initial::Uniform(1.0).values(rows, columns, 9, "factors");
        let loss = tape.weighted_sum(out, &Tensor::new(device, &factors, rows, columns)?)?;
        let output = tape.value(out).to_vec()?;
        tape.backward(loss, &mut gradients)?;
        let list =
            |at: usize| -> Result<_> { Ok((gradients.of(ids[at])?, parameters.value(ids[at]).to_vec()?)) };
        let (a, b, c) = (list(0)?, list(1)?, list(2)?);
        Ok((output, [a.0, b.0, c.0], [a.1, b.1, c.1]))
    }

    /// The same output computed naively, from inputs in double precision; rows in the order of `reach`.
    fn naive(&self, rows: &[(usize, usize)], before: usize, inputs: &[Vec<f64>; 3]) -> Vec<f64> {
        let (width, kinds) = (self.width, self.plain.kinds);
        let mut by_query = Vec::new();
        for (query, ask) in self.asks.iter().enumerate() {
            let mut state = vec![vec![0.0; width]; self.plain.nodes];
            for (row, &(owner, node)) in rows[..before].iter().enumerate() {
                if owner == query {
                    state[node] = inputs[0][row * width..(row + 1) * width].to_vec();
                }
            }
            let first = if self.shared { 0 } else { query * kinds * width };
            let weights: Vec<Vec<f64>> =
                (0..kinds).map(|kind| inputs[1][first + kind * width..][..width].to_vec()).collect();
            by_query.push(self.plain.aggregate(ask, &state, &weights, &inputs[2][query * width..][..width]));
        }
        rows.iter().flat_map(|&(query, node)| by_query[query][node].clone()).collect()
    }

    fn check(&self, device: &Device) {
        let reach = self.reach(device);
        let list = |list: &crate::Indices| list.to_vec().unwrap();
        let rows: Vec<(usize, usize)> = list(&reach.row_queries)
            .into_iter()
            .zip(list(&reach.row_nodes))
            .map(|(query, node)| (query as usize, node as usize))
            .collect();
        for (query, ask) in self.asks.iter().enumerate() {
            for steps in 0..=self.layer {
                let reached = self.plain.reached(ask, steps);
                let ours = rows[..reach.rows(steps)].iter().filter(|row| row.0 == query);
                assert!(ours.clone().all(|row| reached[row.1]));
                assert_eq!(ours.count(), reached.iter().filter(|it| **it).count());
            }
        }
        let (output, derivatives, inputs) = self.run(device).unwrap();
        let exact = inputs.map(|list| list.into_iter().map(f64::from).collect::<Vec<f64>>());
        let before = reach.rows(self.layer - 1);
        let expected = self.naive(&rows, before, &exact);
        assert_eq!(output.len(), expected.len());
        for (ours, theirs) in output.iter().zip(&expected) {
            assert!(
                (f64::from(*ours) - theirs).abs() < 2e-3 * theirs.abs().max(1.0),
                "{ours} against {theirs}"
            );
        }
        let factors = Initial::Uniform(1.0).values(rows.len(), 4 * self.width, 9, "factors");
        let loss = |inputs: &[Vec<f64>; 3]| -> f64 {
            let output = self.naive(&rows, before, inputs);
            output.iter().zip(&factors).map(|(x, factor)| x * f64::from(*factor)).sum()
        };
        let here = loss(&exact);
        let (mut checked, mut bent) = (0, 0);
        for (which, derivatives) in derivatives.iter().enumerate() {
            for at in (0..derivatives.len()).step_by(1 + derivatives.len() / 40) {
                let moved = |offset: f64| {
                    let mut inputs = exact.clone();
                    inputs[which][at] += offset;
                    loss(&inputs)
                };
                let (up, down) = ((moved(1e-6) - here) / 1e-6, (here - moved(-1e-6)) / 1e-6);
                // At a kink (two equal messages, a deviation at its minimum) the derivative is not unique.
                if (up - down).abs() > 1e-3 * (1.0 + up.abs()) {
                    bent += 1;
                    continue;
                }
                checked += 1;
                let ours = f64::from(derivatives[at]);
                assert!(
                    (ours - up).abs() < 5e-3 * (1.0 + up.abs()),
                    "input {which}, element {at}: {ours}, not {up}"
                );
            }
        }
        assert!(bent * 5 <= checked, "{bent} of {checked} elements are at a bend");
    }
}

pub(super) fn ask(start: u32) -> ReachQuery {
    ReachQuery { start, without: None }
}

#[test]
fn random_meshes_aggregate_as_the_naive_way_does() {
    for device in crate::check::devices() {
        for seed in 0..12u64 {
            let (nodes, facts) = (3 + seed as usize * 2, 4 + seed as usize * 6);
            let plain = Plain::random(seed, nodes, 6, facts);
            let first = plain.edges[seed as usize % plain.edges.len()];
            let second = plain.edges[plain.edges.len() / 2];
            let asks = vec![
                ask(0),
                ReachQuery { start: first.0, without: Some(Without { node: first.2, kind: Some(first.1) }) },
                ReachQuery { start: second.0, without: Some(Without { node: second.2, kind: None }) },
                ask(0),
            ];
            let (layer, width) = (1 + seed as usize % 3, [3, 32, 37][seed as usize % 3]);
            Problem { plain, asks, layer, width, shared: seed % 2 == 0 }.check(&device);
        }
    }
}

#[test]
fn a_layer_without_a_gradient_is_the_same_as_its_two_parts() {
    let hub = (1..900u32).map(|node| (node, 2 * (node % 2), 0)).chain([(5, 0, 7), (7, 2, 9)]);
    let hub = || Plain::new(1000, 4, hub.clone());
    for device in crate::check::devices() {
        without_a_gradient(&device, &Plain::random(3, 40, 6, 90), 37);
        without_a_gradient(&device, &Plain::random(4, 40, 6, 300), 20);
        without_a_gradient(&device, &hub(), 32);
        without_a_gradient(&device, &hub(), 64);
    }
}

/// Compares a layer on a tape that records nothing with one on a tape that does.
fn without_a_gradient(device: &Device, plain: &Plain, width: usize) {
    let layer = 2;
    let first = plain.edges[0];
    let asks = vec![
        ask(5),
        ReachQuery { start: first.0, without: Some(Without { node: first.2, kind: Some(first.1) }) },
        ask(999 % plain.nodes as u32),
    ];
    let reach = Arc::new(Reach::new(&plain.edge_index(device), &asks, layer).unwrap());
    let mut parameters = Parameters::new(device, 5);
    let shapes = [
        (reach.rows(1), width),
        (asks.len(), plain.kinds * width),
        (asks.len(), width),
        (width, width),
        (4 * width, 3 * width),
        (1, width),
        (1, width),
        (1, width),
    ];
    for (at, (rows, columns)) in shapes.into_iter().enumerate() {
        parameters.dense(&format!("input {at}"), rows, columns, Initial::Normal(0.3)).unwrap();
    }
    let ids: Vec<ParameterId> = parameters.ids().collect();
    let run = |mut tape: Tape| {
        let x: Vec<_> = ids.iter().map(|id| tape.parameter(*id)).collect();
        let messages = Messages { passed: x[0], weights: x[1], start: x[2] };
        let weights = UpdateWeights { own: x[3], mixed: x[4], bias: x[5], scale: x[6], shift: x[7] };
        let out = tape.propagate_layer(x[0], messages, weights, (&reach, layer), 0.0).unwrap();
        tape.value(out).to_vec().unwrap()
    };
    let (whole, parts) = (run(Tape::inference(&parameters)), run(Tape::training(&parameters, 1)));
    assert_eq!(whole.len(), parts.len());
    for (left, right) in whole.iter().zip(&parts) {
        assert!((left - right).abs() < 1e-4 * (1.0 + right.abs()), "{left} and {right}");
    }
}

#[test]
fn one_kind_isolated_nodes_and_loops_are_no_exception() {
    for device in crate::check::devices() {
        let plain = Plain::new(6, 2, [(0, 0, 1), (1, 0, 1), (1, 0, 2), (2, 0, 0)]);
        let own_loop = ReachQuery { start: 1, without: Some(Without { node: 1, kind: Some(0) }) };
        let asks = vec![ask(0), ask(5), own_loop];
        Problem { plain, asks, layer: 2, width: 4, shared: true }.check(&device);
        // No edges at all: only the starts are reached, and they receive no messages but their own start.
        let empty = Problem {
            plain: Plain::new(3, 2, []),
            asks: vec![ask(2), ask(2)],
            layer: 1,
            width: 4,
            shared: false,
        };
        let (output, derivatives, inputs) = empty.run(&device).unwrap();
        assert_eq!(output[..4], inputs[2][..4], "the mean is the start");
        assert!(derivatives[1].iter().all(|derivative| *derivative == 0.0));
        let none = Problem { asks: Vec::new(), ..empty };
        assert!(none.run(&device).unwrap().0.is_empty());
    }
}

#[test]
fn a_hub_is_the_same_on_any_number_of_threads_and_as_the_naive_way_has_it() {
    let facts = (1..2000u32).map(|node| (node, 2 * (node % 2), 0)).chain([(5, 0, 7), (7, 2, 9)]);
    let plain = || Plain::new(2000, 4, facts.clone());
    let asks = vec![ask(5), ReachQuery { start: 0, without: Some(Without { node: 7, kind: None }) }];
    let problem = Problem { plain: plain(), asks, layer: 2, width: 3, shared: false };
    let bits = |list: &[f32]| list.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    let (one, two) = (Device::cpu(1).unwrap(), Device::cpu(2).unwrap());
    let (left, right) = (problem.run(&one).unwrap(), problem.run(&two).unwrap());
    assert_eq!(bits(&left.0), bits(&right.0));
    left.1.iter().zip(&right.1).for_each(|(left, right)| assert_eq!(bits(left), bits(right)));
    for device in crate::check::devices() {
        problem.check(&device);
    }
}

#[test]
fn a_hub_of_a_million_edges_sums_to_what_it_should() {
    const LEAVES: u32 = 1_000_000;
    for device in crate::check::devices() {
        // Sorted by node: the hub with all its edges, then every leaf with one.
        let starts: Vec<u32> = [0].into_iter().chain((0..=LEAVES).map(|node| LEAVES + node)).collect();
        let links = [0u32, 1].into_iter().flat_map(|kind| vec![kind; LEAVES as usize]).collect();
        let others: Vec<u32> = (1..=LEAVES).chain(vec![0; LEAVES as usize]).collect();
        let edge_index = EdgeIndex::new(&device, 2, starts, links, others).unwrap();
        let reach = Arc::new(Reach::new(&edge_index, &[ask(0)], 2).unwrap());
        assert_eq!((reach.rows(1), reach.rows(2)), (LEAVES as usize + 1, LEAVES as usize + 1));
        let mut parameters = Parameters::new(&device, 1);
        let state: Vec<f32> = (0..=LEAVES).map(|row| (row % 8) as f32).collect();
        let weights = parameters.dense("weights", 2, 1, Initial::Ones).unwrap();
        let start = parameters.dense("start", 1, 1, Initial::Zeros).unwrap();
        let own = parameters.dense("state", LEAVES as usize + 1, 1, Initial::Zeros).unwrap();
        parameters.set(own, &state).unwrap();
        let mut gradients = Gradients::new(&parameters);
        let mut tape = Tape::training(&parameters, 1);
        let (own, weights, start) = (tape.parameter(own), tape.parameter(weights), tape.parameter(start));
        let out = tape.propagate(own, weights, start, &reach, 2).unwrap();
        let hub = &tape.value(out).to_vec().unwrap()[..4];
        let sum: f64 = state[1..].iter().map(|x| f64::from(*x)).sum();
        assert!((f64::from(hub[0]) - sum / f64::from(LEAVES + 1)).abs() < 1e-4, "{hub:?}");
        assert_eq!(hub[1..3], [7.0, 0.0]);
        let loss = tape.mean(out).unwrap();
        tape.backward(loss, &mut gradients).unwrap();
        assert!(
            gradients
                .of(parameters.find("state").unwrap())
                .unwrap()
                .iter()
                .all(|derivative| derivative.is_finite())
        );
    }
}

#[test]
fn hidden_edges_are_the_same_as_edges_that_are_not_there() {
    for device in crate::check::devices() {
        let plain = Plain::random(5, 60, 4, 150);
        let edge_index = plain.edge_index(&device);
        let gone: Vec<(u32, u32, u32)> = plain.edges.iter().copied().step_by(9).collect();
        let (first, second) = gone.split_at(gone.len() / 2);
        let hidden = edge_index.hiding(first).unwrap().hiding(second).unwrap();
        let asks = [ask(3), ReachQuery { start: 7, without: Some(Without { node: 9, kind: None }) }];
        let [left, right] = [hidden, edge_index.without(&gone).unwrap()].map(|edge_index| {
            let reach = Arc::new(Reach::new(&edge_index, &asks, 3).unwrap());
            let rows = reach.rows(2);
            let mut parameters = Parameters::new(&device, 3);
            let given = [("state", rows), ("weights", 4), ("start", 2)]
                .map(|(name, rows)| parameters.dense(name, rows, 5, Initial::Normal(1.0)).unwrap());
            let mut gradients = Gradients::new(&parameters);
            let mut tape = Tape::training(&parameters, 1);
            let [state, weights, start] = given.map(|id| tape.parameter(id));
            let out = tape.propagate(state, weights, start, &reach, 3).unwrap();
            let values = tape.value(out).to_vec().unwrap();
            let loss = tape.mean(out).unwrap();
            tape.backward(loss, &mut gradients).unwrap();
            let derivatives = given.map(|id| gradients.of(id).unwrap());
            (rows, reach.row_degrees.to_vec().unwrap(), values, derivatives)
        });
        assert!(left.0 > 20);
        assert_eq!(left, right);
    }
}
