//! Layers of a bounded frontier against those of everything, and against a naive aggregation in double precision.

use std::sync::Arc;

use super::super::tests::{Plain, ask};
use crate::{
    Device, Frontier, FrontierStep, Gradients, Initial, Messages, ParameterId, Parameters, Reach, ReachQuery,
    Tape, Tensor, UpdateWeights, Var, Without,
};
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

const LAYERS: usize = 3;

/// Three queries, two of them with edges removed.
fn asks(plain: &Plain) -> Vec<ReachQuery> {
    let (first, middle) = (plain.edges[0], plain.edges[plain.edges.len() / 2]);
    vec![
        ask(5),
        ReachQuery { start: first.0, without: Some(Without { node: first.2, kind: Some(first.1) }) },
        ReachQuery { start: middle.0, without: Some(Without { node: middle.2, kind: None }) },
    ]
}

/// The weights of a network of one kind of layer.
fn parameters(device: &Device, plain: &Plain, queries: usize, width: usize, shared: bool) -> Parameters {
    let mut parameters = Parameters::new(device, 5);
    let kinds = if shared { (plain.kinds, width) } else { (queries, plain.kinds * width) };
    let shapes =
        [kinds, (queries, width), (width, width), (4 * width, 3 * width), (1, width), (1, width), (1, width)];
    for (at, (rows, columns)) in shapes.into_iter().enumerate() {
        parameters.dense(&format!("input {at}"), rows, columns, Initial::Normal(0.3)).unwrap();
    }
    parameters
}

/// The states after all layers, each made by `layer` from its number, the messages and the weights.
fn propagated(
    tape: &mut Tape,
    parameters: &Parameters,
    mut layer: impl FnMut(&mut Tape, usize, Messages, UpdateWeights) -> Var,
) -> Var {
    let x: Vec<Var> = parameters.ids().map(|id| tape.parameter(id)).collect();
    let weights = UpdateWeights { own: x[2], mixed: x[3], bias: x[4], scale: x[5], shift: x[6] };
    let mut state = x[1];
    for number in 1..=LAYERS {
        let messages = Messages { passed: state, weights: x[0], start: x[1] };
        state = layer(tape, number, messages, weights);
    }
    state
}

/// The states without and with a gradient, and the gradients of all weights.
fn outcome(
    parameters: &Parameters,
    mut layer: impl FnMut(&mut Tape, usize, Messages, UpdateWeights) -> Var,
) -> (Vec<Vec<u32>>, Vec<Vec<f32>>) {
    let bits = |values: Vec<f32>| values.into_iter().map(f32::to_bits).collect::<Vec<u32>>();
    let mut tape = Tape::inference(parameters);
    let plain = propagated(&mut tape, parameters, &mut layer);
    let plain = bits(tape.value(plain).to_vec().unwrap());
    let mut gradients = Gradients::new(parameters);
    let mut tape = Tape::training(parameters, 1);
    let states = propagated(&mut tape, parameters, layer);
    let [rows, columns] = tape.shape(states);
    let factors = Initial::Uniform(1.0).values(rows, columns, 9, "factors");
    let factors = Tensor::new(parameters.device(), &factors, rows, columns).unwrap();
    let loss = tape.weighted_sum(states, &factors).unwrap();
    let states = bits(tape.value(states).to_vec().unwrap());
    tape.backward(loss, &mut gradients).unwrap();
    let gradients = parameters.ids().map(|id| gradients.of(id).unwrap()).collect();
    (vec![plain, states], gradients)
}

/// The same by a frontier of `most` rows, whose priorities are drawn at random.
fn by_frontier(
    parameters: &Parameters,
    plain: &Plain,
    asks: &[ReachQuery],
    most: usize,
) -> (Vec<Vec<u32>>, Vec<Vec<f32>>, usize) {
    let edge_index = plain.edge_index(parameters.device());
    let (mut frontier, mut random) = (None, ChaCha8Rng::seed_from_u64(0));
    let mut rows = 0;
    let (states, gradients) = outcome(parameters, |tape, number, messages, weights| {
        if number == 1 {
            frontier = Some((Frontier::new(&edge_index, asks, most).unwrap(), Vec::new()));
            random = ChaCha8Rng::seed_from_u64(7);
        }
        let (frontier, priorities) = frontier.as_mut().unwrap();
        let step = frontier.grow(priorities).unwrap();
        *priorities = (0..step.updates()).map(|_| (random.next_u64() % 1000) as f32 - 500.0).collect();
        rows = frontier.rows();
        tape.frontier_layer(messages, weights, &step, 0.0).unwrap().all
    });
    (states, gradients, rows)
}

fn hub() -> Plain {
    let spokes = (1..900u32).map(|node| (node, 2 * (node % 2), 0));
    Plain::new(1000, 4, spokes.chain([(5, 0, 7), (7, 2, 9), (0, 2, 0), (9, 0, 950), (950, 2, 951)]))
}

#[test]
fn a_frontier_of_all_nodes_gives_the_bits_of_everything() {
    let device = Device::cpu(2).unwrap();
    for (plain, width, shared) in [
        (Plain::random(3, 40, 6, 90), 37, false),
        (Plain::random(4, 40, 6, 300), 20, true),
        (hub(), 32, false),
    ] {
        let all = asks(&plain);
        for asks in [&all[..], &all[1..2], &[]] {
            let parameters = parameters(&device, &plain, asks.len(), width, shared);
            let reach = Arc::new(Reach::new(&plain.edge_index(&device), asks, LAYERS).unwrap());
            let (states, gradients) = outcome(&parameters, |tape, number, messages, weights| {
                tape.propagate_layer(messages.passed, messages, weights, (&reach, number), 0.0).unwrap()
            });
            let (ours, our_gradients, rows) = by_frontier(&parameters, &plain, asks, plain.nodes);
            assert_eq!(rows, reach.rows(LAYERS));
            assert_eq!(ours, states);
            for (ours, theirs) in our_gradients.iter().zip(&gradients) {
                let largest = theirs.iter().fold(1.0f32, |most, x| most.max(x.abs()));
                let same = |(x, y): (&f32, &f32)| (x - y).abs() < 1e-4 * largest;
                assert!(ours.iter().zip(theirs).all(same), "{ours:?}, not {theirs:?}");
            }
        }
    }
}

#[test]
fn a_bounded_frontier_is_the_same_on_any_number_of_threads() {
    let plain = Plain::random(9, 400, 6, 3000);
    let run = |threads: usize| {
        let device = Device::cpu(threads).unwrap();
        let parameters = parameters(&device, &plain, 3, 33, false);
        let (states, gradients, rows) = by_frontier(&parameters, &plain, &asks(&plain), 20);
        let bits = |list: &Vec<f32>| list.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
        (states, gradients.iter().map(bits).collect::<Vec<_>>(), rows)
    };
    let (one, two) = (run(1), run(2));
    assert_eq!(one, two);
    assert!(one.2 < 3 * 400, "something is left out");
}

/// A graph in which every node has eight edges, and one has a thousand.
fn even(nodes: u32) -> Plain {
    let ring = (0..nodes).flat_map(|node| (1..5).map(move |step| (node, 0, (node + step * step) % nodes)));
    Plain::new(nodes as usize, 4, ring.chain((1..=1000).map(|step| (0, 2, step * 3 % nodes))))
}

#[test]
fn the_work_is_bounded_and_does_not_grow_with_the_graph() {
    let device = Device::cpu(1).unwrap();
    let work = |nodes: u32| {
        let edge_index = even(nodes).edge_index(&device);
        let mut frontier = Frontier::new(&edge_index, &[ask(3), ask(0)], 25).unwrap();
        let mut priorities = Vec::new();
        let mut each = Vec::new();
        for _ in 0..8 {
            let step = frontier.grow(&priorities).unwrap();
            priorities = (0..step.updates()).map(|at| (at * 37 % 11) as f32).collect();
            each.push((step.messages(), step.updates()));
        }
        assert_eq!(each.iter().map(|step| step.0).sum::<usize>(), frontier.messages());
        each
    };
    for nodes in [4_000, 40_000] {
        for (messages, updates) in work(nodes) {
            assert!(
                messages <= 2 * 25 * 9 && updates <= 2 * 3 * 25,
                "{messages} messages, {updates} updates"
            );
        }
    }
}

#[test]
fn the_table_of_nodes_is_clean_when_it_is_used_again() {
    let device = Device::cpu(1).unwrap();
    let plain = even(4_000);
    let edge_index = plain.edge_index(&device);
    let grown = || {
        let mut frontier = Frontier::new(&edge_index, &[ask(0)], 10).unwrap();
        (0..4).for_each(|_| drop(frontier.grow(&vec![1.0; frontier.updates()]).unwrap()));
        (frontier.touched(0).to_vec(), frontier.messages())
    };
    let first = grown();
    assert!(first.0.len() > 30);
    assert_eq!(grown(), first);
}

/// The aggregates of a step in double precision, from its lists alone.
fn naive(step: &FrontierStep, inputs: &[Vec<f64>; 3], width: usize, weight_step: usize) -> Vec<f64> {
    let [state, weights, start] = inputs;
    let mut out = Vec::new();
    for index in 0..step.updates() {
        let query = step.receiver_query(index);
        let own = match step.starts[query] as usize == index {
            true => start[query * width..(query + 1) * width].to_vec(),
            false => vec![0.0; width],
        };
        let mut messages = vec![own];
        for at in step.messages_of(index) {
            let sender = step.senders[at];
            let state = &state[sender.row as usize * width..];
            let weight = &weights[query * weight_step + sender.kind as usize * width..];
            messages.push((0..width).map(|column| state[column] * weight[column]).collect());
        }
        // Silent neighbours send zeros.
        messages.resize(step.degree(index) as usize, vec![0.0; width]);
        let count = messages.len() as f64;
        let column = |at: usize| messages.iter().map(move |message| message[at]);
        let mean = |at: usize| column(at).sum::<f64>() / count;
        let deviation = |at: usize| {
            (column(at).map(|x| x * x).sum::<f64>() / count - mean(at) * mean(at)).max(1e-6).sqrt()
        };
        out.extend((0..width).map(mean));
        out.extend((0..width).map(|at| column(at).fold(f64::NEG_INFINITY, f64::max)));
        out.extend((0..width).map(|at| column(at).fold(f64::INFINITY, f64::min)));
        out.extend((0..width).map(deviation));
    }
    out
}

#[test]
fn messages_and_their_derivatives_are_those_of_the_naive_way() {
    let device = Device::cpu(2).unwrap();
    for (seed, width, shared) in [(1u64, 3usize, true), (2, 37, false), (3, 32, false)] {
        let plain = Plain::random(seed, 60, 6, 250);
        let asks = asks(&plain);
        let mut frontier = Frontier::new(&plain.edge_index(&device), &asks, 6).unwrap();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        let mut step = frontier.grow(&[]).unwrap();
        for _ in 0..2 {
            let priorities: Vec<f32> = (0..step.updates()).map(|_| (random.next_u64() % 99) as f32).collect();
            step = frontier.grow(&priorities).unwrap();
        }
        let mut parameters = Parameters::new(&device, seed);
        let kinds = if shared { (plain.kinds, width) } else { (asks.len(), plain.kinds * width) };
        let shapes = [(step.before, width), kinds, (asks.len(), width)];
        let ids: Vec<ParameterId> = shapes
            .into_iter()
            .zip(["state", "weights", "start"])
            .map(|((rows, columns), name)| {
                parameters.dense(name, rows, columns, Initial::Normal(1.0)).unwrap()
            })
            .collect();
        let mut gradients = Gradients::new(&parameters);
        let mut tape = Tape::training(&parameters, 1);
        let x: Vec<Var> = ids.iter().map(|id| tape.parameter(*id)).collect();
        let out = tape.propagate_frontier(x[0], x[1], x[2], &step).unwrap();
        let output = tape.value(out).to_vec().unwrap();
        let factors = Initial::Uniform(1.0).values(step.updates(), 4 * width, 9, "factors");
        let weights = Tensor::new(&device, &factors, step.updates(), 4 * width).unwrap();
        let loss = tape.weighted_sum(out, &weights).unwrap();
        tape.backward(loss, &mut gradients).unwrap();
        let value = |at: usize| -> Vec<f64> {
            parameters.value(ids[at]).to_vec().unwrap().into_iter().map(f64::from).collect()
        };
        let exact = [value(0), value(1), value(2)];
        let weight_step = if shared { 0 } else { plain.kinds * width };
        let expected = naive(&step, &exact, width, weight_step);
        assert_eq!(output.len(), expected.len());
        for (ours, theirs) in output.iter().zip(&expected) {
            assert!((f64::from(*ours) - theirs).abs() < 2e-3 * theirs.abs().max(1.0), "{ours}, not {theirs}");
        }
        let loss = |inputs: &[Vec<f64>; 3]| -> f64 {
            let output = naive(&step, inputs, width, weight_step);
            output.iter().zip(&factors).map(|(x, factor)| x * f64::from(*factor)).sum()
        };
        let here = loss(&exact);
        let (mut checked, mut bent) = (0, 0);
        for (which, &id) in ids.iter().enumerate() {
            let derivatives = gradients.of(id).unwrap();
            for at in (0..derivatives.len()).step_by(1 + derivatives.len() / 60) {
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
                assert!((ours - up).abs() < 5e-3 * (1.0 + up.abs()), "{which}, {at}: {ours}, not {up}");
            }
        }
        assert!(checked > 60 && bent * 5 <= checked, "{bent} of {checked} elements are at a bend");
    }
}
