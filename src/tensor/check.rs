//! The check that every operation passes: gradients against central differences, one thread against two.
//!
//! A [`Case`] is an operation with inputs of some size. Small cases are differentiated numerically; large ones
//! are run on different devices and compared.
#![cfg(test)]

use super::*;

type Build = fn(&mut Tape, &[Var], usize) -> Result<Var>;

/// An operation to be checked: the shapes of its inputs at a scale, and how to apply it to them.
pub(super) struct Case {
    pub(super) name: &'static str,
    inputs: fn(usize) -> Vec<(usize, usize)>,
    build: Build,
}

/// What a case gave: the output and the gradient of each input.
pub(super) struct Outcome {
    pub(super) output: Vec<f32>,
    pub(super) gradients: Vec<Vec<f32>>,
}

impl Case {
    fn parameters(&self, device: &Device, scale: usize) -> Result<Parameters> {
        let mut parameters = Parameters::new(device, 11);
        for (index, (rows, columns)) in (self.inputs)(scale).into_iter().enumerate() {
            parameters.table(&format!("input {index}"), rows, columns, Initial::Uniform(0.8))?;
        }
        for (name, value) in [("mean", Initial::Zeros), ("variance", Initial::Ones)] {
            parameters.statistic(name, 4, 1, value)?;
        }
        Ok(parameters)
    }

    /// The loss: the output weighted by fixed numbers between -1 and 1.
    fn loss(&self, tape: &mut Tape, parameters: &Parameters, scale: usize) -> Result<(Var, Var)> {
        let vars: Vec<Var> = parameters.ids().map(|id| tape.parameter(id)).collect();
        let output = (self.build)(tape, &vars, scale)?;
        let [rows, columns] = tape.shape(output);
        let weights = Initial::Uniform(1.0).values(rows, columns, 5, "weights");
        let weights = Tensor::new(parameters.device(), &weights, rows, columns)?;
        Ok((output, tape.weighted_sum(output, &weights)?))
    }

    pub(super) fn run(&self, device: &Device, scale: usize) -> Result<Outcome> {
        let parameters = self.parameters(device, scale)?;
        let mut gradients = Gradients::new(&parameters);
        let mut tape = Tape::training(&parameters, 3);
        let (output, loss) = self.loss(&mut tape, &parameters, scale)?;
        let output = tape.value(output).to_vec()?;
        tape.backward(loss, &mut gradients)?;
        let gradients = parameters.ids().map(|id| gradients.of(id)).collect::<Result<_>>()?;
        Ok(Outcome { output, gradients })
    }

    /// Compares the gradient with central differences of the loss.
    fn check_gradient(&self) -> Result<()> {
        const STEP: f32 = 1e-2;
        let device = Device::cpu(1)?;
        let outcome = self.run(&device, 1)?;
        let mut parameters = self.parameters(&device, 1)?;
        let steep = |gradient: &Vec<f32>| gradient.iter().any(|derivative| derivative.abs() > 1e-3);
        assert!(outcome.gradients.iter().any(steep), "{}: the gradient is too small to check", self.name);
        for id in parameters.ids() {
            if parameters.kind(id) == Kind::Statistic {
                continue;
            }
            let values = parameters.value(id).to_vec()?;
            for index in (0..values.len()).step_by(1 + values.len() / 60) {
                let mut at = |offset: f32| -> Result<f64> {
                    let mut moved = values.clone();
                    moved[index] += offset;
                    parameters.set(id, &moved)?;
                    let mut tape = Tape::training(&parameters, 3);
                    let (_, loss) = self.loss(&mut tape, &parameters, 1)?;
                    let loss = tape.value(loss).number()?;
                    Ok(f64::from(loss))
                };
                let (above, here, below) = (at(STEP)?, at(0.0)?, at(-STEP)?);
                let derivative = (above - below) / f64::from(2.0 * STEP);
                let ours = f64::from(outcome.gradients[id.0 as usize][index]);
                // A loss in single precision is known to so much, and so is a difference of two.
                let rounding = 4.0 * f64::from(f32::EPSILON) * above.abs().max(below.abs()) / f64::from(STEP);
                let agrees = |derivative: f64| {
                    let allowed = 2e-3 + 1e-2 * derivative.abs().max(ours.abs()) + rounding;
                    (derivative - ours).abs() <= allowed
                };
                // Where a ReLU bends within the step, only the side away from the bend tells.
                let sides = [above - here, here - below].map(|side| side / f64::from(STEP));
                assert!(
                    agrees(derivative) || sides.into_iter().any(agrees),
                    "{}: input {} element {index}: {ours} but differences say {derivative}, the loss being {above}",
                    self.name,
                    id.0
                );
            }
            parameters.set(id, &values)?;
        }
        Ok(())
    }
}

/// A list of `len` indices below `limit`, with repetitions.
fn indices(device: &Device, len: usize, limit: usize) -> Result<Indices> {
    let list: Vec<u32> = (0..len).map(|index| ((index * 7 + index / 3) % limit) as u32).collect();
    Indices::new(device, &list)
}

/// `count` segments of 0 to 4 elements.
fn segments(device: &Device, count: usize) -> Result<Segments> {
    Segments::from_lengths(device, (0..count).map(|index| (index * 3 + index / 5) % 5))
}

fn total(count: usize) -> usize {
    (0..count).map(|index| (index * 3 + index / 5) % 5).sum()
}

/// A mask that closes every third element.
fn closed(device: &Device, len: usize) -> Result<Indices> {
    Indices::new(device, &(0..len).map(|index| u32::from(index % 3 == 1)).collect::<Vec<_>>())
}

fn labels(device: &Device, queries: usize, rows: usize) -> Result<Labels> {
    let lists = (0..queries).map(|query| (0..query % 4).map(move |index| (query * 5 + index * 3) % rows));
    let lists: Vec<Vec<usize>> = lists
        .map(|list| {
            let mut list: Vec<usize> = list.collect();
            list.sort_unstable();
            list.dedup();
            list
        })
        .collect();
    let flat: Vec<u32> = lists.iter().flatten().map(|row| *row as u32).collect();
    let segments = Segments::from_lengths(device, lists.iter().map(Vec::len))?;
    Ok(Labels { rows: Indices::new(device, &flat)?, segments })
}

const SMALL_IMAGE: Image = Image { channels: 2, height: 5, width: 6, kernel_height: 3, kernel_width: 2 };

/// All operations that have a gradient.
pub(super) const CASES: &[Case] = &[
    Case { name: "relu", inputs: |n| vec![(7 * n, 5)], build: |tape, x, _| tape.relu(x[0]) },
    Case { name: "sigmoid", inputs: |n| vec![(7 * n, 5)], build: |tape, x, _| tape.sigmoid(x[0]) },
    Case { name: "scale", inputs: |n| vec![(7 * n, 5)], build: |tape, x, _| tape.scale(x[0], -2.5) },
    Case { name: "dropout", inputs: |n| vec![(7 * n, 5)], build: |tape, x, _| tape.dropout(x[0], 0.4) },
    Case { name: "add", inputs: |n| vec![(7 * n, 5); 2], build: |tape, x, _| tape.add(x[0], x[1]) },
    Case { name: "multiply", inputs: |n| vec![(7 * n, 5); 2], build: |tape, x, _| tape.multiply(x[0], x[1]) },
    Case {
        name: "multiply with itself",
        inputs: |n| vec![(7 * n, 5)],
        build: |tape, x, _| tape.multiply(x[0], x[0]),
    },
    Case { name: "row_dot", inputs: |n| vec![(7 * n, 35); 2], build: |tape, x, _| tape.row_dot(x[0], x[1]) },
    Case {
        name: "concatenate",
        inputs: |n| vec![(3 * n, 2), (3 * n, 5), (3 * n, 1)],
        build: |tape, x, _| tape.concatenate(&x[..3]),
    },
    Case {
        name: "gather",
        inputs: |n| vec![(9 * n, 5)],
        build: |tape, x, n| {
            let rows = indices(tape.device(), 20 * n, 9 * n)?;
            tape.gather(x[0], &rows, 0.3)
        },
    },
    Case {
        name: "gather of a variable, twice",
        inputs: |n| vec![(9 * n, 5)],
        build: |tape, x, n| {
            let state = tape.sigmoid(x[0])?;
            let (some, others) = (indices(tape.device(), 20 * n, 9 * n)?, indices(tape.device(), 20 * n, 5)?);
            let (left, right) = (tape.gather(state, &some, 0.0)?, tape.gather(state, &others, 0.0)?);
            tape.multiply(left, right)
        },
    },
    Case {
        name: "linear",
        inputs: |n| vec![(6 * n, 3), (6 * n, 5), (8, 7), (1, 7)],
        build: |tape, x, _| tape.linear(&[x[0], x[1]], x[2], Some(x[3]), Activation::Relu, 0.3),
    },
    Case {
        name: "linear without bias",
        inputs: |n| vec![(6 * n, 3), (3, 70)],
        build: |tape, x, _| tape.linear(&[x[0]], x[1], None, Activation::Identity, 0.2),
    },
    Case {
        name: "lstm",
        inputs: |n| vec![(5 * n, 3), (5 * n, 4), (5 * n, 4), (3, 16), (4, 16), (1, 16)],
        build: |tape, x, _| {
            let weights = LstmWeights { input: x[3], hidden: x[4], bias: x[5] };
            let state = LstmState { hidden: x[1], cell: x[2] };
            let state = tape.lstm(x[0], Some(state), None, weights)?;
            tape.multiply(state.hidden, state.cell)
        },
    },
    Case {
        name: "lstm from parents",
        inputs: |n| vec![(4 * n, 3), (9 * n, 3), (3, 16), (4, 16), (1, 16)],
        build: |tape, x, n| {
            let weights = LstmWeights { input: x[2], hidden: x[3], bias: x[4] };
            let state = tape.lstm(x[0], None, None, weights)?;
            let parents = indices(tape.device(), 9 * n, 4 * n)?;
            let state = tape.lstm(x[1], Some(state), Some(&parents), weights)?;
            Ok(state.hidden)
        },
    },
    Case {
        name: "gather_dot",
        inputs: |n| vec![(8 * n, 37), (11, 37)],
        build: |tape, x, n| {
            let segments = segments(tape.device(), 8 * n)?;
            let rows = indices(tape.device(), segments.total(), 11)?;
            tape.gather_dot(x[0], x[1], &rows, &segments, 0.0)
        },
    },
    Case {
        name: "gather_dot with dropout",
        inputs: |n| vec![(8 * n, 37), (11, 37)],
        build: |tape, x, n| {
            let segments = segments(tape.device(), 8 * n)?;
            let rows = indices(tape.device(), segments.total(), 11)?;
            tape.gather_dot(x[0], x[1], &rows, &segments, 0.3)
        },
    },
    Case {
        name: "segment_log_softmax and entropy",
        inputs: |n| vec![(total(9 * n), 1)],
        build: |tape, x, n| {
            let segments = segments(tape.device(), 9 * n)?;
            let closed = closed(tape.device(), segments.total())?;
            let log_probs = tape.segment_log_softmax(x[0], &segments, Some(&closed))?;
            tape.segment_entropy(log_probs, &segments)
        },
    },
    Case {
        name: "segment_log_softmax and pick",
        inputs: |n| vec![(total(9 * n), 1)],
        build: |tape, x, n| {
            let segments = segments(tape.device(), 9 * n)?;
            let log_probs = tape.segment_log_softmax(x[0], &segments, None)?;
            let positions = indices(tape.device(), 30 * n, segments.total())?;
            tape.pick(log_probs, &positions)
        },
    },
    Case {
        name: "segment_log_sum_exp",
        inputs: |n| vec![(total(9 * n), 1)],
        build: |tape, x, n| {
            let starts: Vec<u32> = segments(tape.device(), 9 * n)?.starts().to_vec();
            // Only whole segments of more than one element, so that none is closed entirely.
            let mut starts: Vec<u32> = starts.into_iter().step_by(3).collect();
            let all = total(9 * n) as u32;
            if starts.last() != Some(&all) {
                starts.push(all);
            }
            let segments = Segments::from_starts(tape.device(), starts)?;
            let closed = closed(tape.device(), segments.total())?;
            tape.segment_log_sum_exp(x[0], &segments, Some(&closed))
        },
    },
    Case {
        name: "against, log_softmax and pick_pairs",
        inputs: |n| vec![(5 * n, 6), (9, 6), (9, 1)],
        build: |tape, x, n| {
            let scores = tape.against(x[0], x[1], Some(x[2]), 0.2)?;
            let log_probs = tape.log_softmax(scores, 2)?;
            let rows = indices(tape.device(), 14 * n, 5 * n)?;
            let columns: Vec<u32> = (0..14 * n).map(|index| 2 + (index * 3 % 7) as u32).collect();
            let columns = Indices::new(tape.device(), &columns)?;
            tape.pick_pairs(log_probs, &rows, &columns)
        },
    },
    Case {
        name: "complex_product",
        inputs: |n| vec![(5 * n, 6); 2],
        build: |tape, x, _| tape.complex_product(x[0], x[1]),
    },
    Case {
        name: "rotate",
        inputs: |n| vec![(5 * n, 6), (5 * n, 3)],
        build: |tape, x, _| tape.rotate(x[0], x[1]),
    },
    Case { name: "mean", inputs: |n| vec![(5 * n, 6)], build: |tape, x, _| tape.mean(x[0]) },
    Case {
        name: "add_weighted_sum",
        inputs: |n| vec![(5 * n, 6), (7 * n, 1)],
        build: |tape, x, _| {
            let mut total = None;
            for input in [x[0], x[1], x[0]] {
                let [rows, columns] = tape.shape(input);
                let weights = Initial::Uniform(1.0).values(rows, columns, 8, "terms");
                let weights = Tensor::new(tape.device(), &weights, rows, columns)?;
                total = Some(tape.add_weighted_sum(total, input, &weights)?);
            }
            Ok(total.expect("there are three terms"))
        },
    },
    Case {
        name: "cubed_norm",
        inputs: |n| vec![(5 * n, 6)],
        build: |tape, x, _| tape.cubed_norm(x[0], false, 0.3),
    },
    Case {
        name: "cubed_norm, complex",
        inputs: |n| vec![(5 * n, 6)],
        build: |tape, x, _| tape.cubed_norm(x[0], true, 0.3),
    },
    Case {
        name: "binary_loss_against_all",
        inputs: |n| vec![(6, 5), (13 * n, 5), (13 * n, 1)],
        build: |tape, x, n| {
            let labels = labels(tape.device(), 6, 13 * n)?;
            let smoothing = Smoothing::even(0.1);
            let loss = tape.binary_loss_against_all(x[0], x[1], Some(x[2]), &labels, smoothing, 0.2)?;
            tape.scale(loss, 20.0)
        },
    },
    Case {
        name: "binary_loss_against_all, a floor of one",
        inputs: |n| vec![(6, 5), (13 * n, 5), (13 * n, 1)],
        build: |tape, x, n| {
            let labels = labels(tape.device(), 6, 13 * n)?;
            let smoothing = Smoothing { taken: 0.1, floor: 1.0 };
            let loss = tape.binary_loss_against_all(x[0], x[1], Some(x[2]), &labels, smoothing, 0.2)?;
            tape.scale(loss, 20.0)
        },
    },
    Case {
        name: "softmax_loss_against_all",
        inputs: |n| vec![(6, 5), (13 * n, 5), (13 * n, 1)],
        build: |tape, x, n| {
            let labels = labels(tape.device(), 6, 13 * n)?;
            let loss = tape.softmax_loss_against_all(x[0], x[1], Some(x[2]), &labels, 0.2)?;
            tape.scale(loss, 20.0)
        },
    },
    Case {
        name: "convolve",
        inputs: |n| vec![(3 * n, 60), (4, 12), (4, 1)],
        build: |tape, x, _| tape.convolve(x[0], x[1], Some(x[2]), SMALL_IMAGE),
    },
    Case {
        name: "batch_norm",
        inputs: |n| vec![(5 * n, 12), (4, 1), (4, 1)],
        build: |tape, x, _| {
            let at = ParameterId;
            let normalisation = Normalisation { scale: at(1), shift: at(2), mean: at(3), variance: at(4) };
            tape.batch_norm(x[0], 4, normalisation)
        },
    },
    Case {
        name: "propagate, weights of the query",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 7), (ASKED, 4 * 7), (ASKED, 7)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            tape.propagate(x[0], x[1], x[2], &reach, 2)
        },
    },
    Case {
        name: "propagate, weights of all",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 40), (4, 40), (ASKED, 40)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            tape.propagate(x[0], x[1], x[2], &reach, 2)
        },
    },
    Case {
        name: "gate, bends",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 5), (4, 5), (ASKED, 5), (1, 5)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            tape.gate(x[0], x[1], x[2], x[3], (&reach, 2))
        },
    },
    Case {
        name: "gate where nothing is cut off",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 5), (4, 5), (ASKED, 5), (1, 5)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let far = tape.constant(Tensor::new(tape.device(), &[3.0; ASKED * 5], ASKED, 5)?)?;
            let of_query = tape.add(x[2], far)?;
            tape.gate(x[0], x[1], of_query, x[3], (&reach, 2))
        },
    },
    Case {
        name: "gated_sum, weights of the query",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 7), (ASKED, 4 * 7), (ASKED, 7), (sizes[2], 1)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            tape.gated_sum(x[0], x[1], x[2], x[3], (&reach, 2))
        },
    },
    Case {
        name: "gated_sum, weights of all",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 40), (4, 40), (ASKED, 40), (sizes[2], 1)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            tape.gated_sum(x[0], x[1], x[2], x[3], (&reach, 2))
        },
    },
    Case {
        name: "update with degrees, bends",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 5), (sizes[1], 8), (5, 5), (8, 15), (1, 5), (1, 5), (1, 5)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let weights = UpdateWeights { own: x[2], mixed: x[3], bias: x[4], scale: x[5], shift: x[6] };
            tape.update(x[0], x[1], weights, (&reach, 2), 0.3)
        },
    },
    Case {
        name: "update without degrees, bends",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 40), (sizes[1], 8), (40, 40), (8, 40), (1, 40), (1, 40), (1, 40)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let weights = UpdateWeights { own: x[2], mixed: x[3], bias: x[4], scale: x[5], shift: x[6] };
            tape.update(x[0], x[1], weights, (&reach, 2), 0.0)
        },
    },
    Case {
        name: "update where nothing is cut off",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 40), (sizes[1], 8), (40, 40), (8, 120), (1, 40), (1, 40), (1, 40)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let far = tape.constant(Tensor::new(tape.device(), &[20.0; 40], 1, 40)?)?;
            let shift = tape.add(x[6], far)?;
            let weights = UpdateWeights { own: x[2], mixed: x[3], bias: x[4], scale: x[5], shift };
            tape.update(x[0], x[1], weights, (&reach, 2), 0.3)
        },
    },
    Case {
        name: "update without degrees where nothing is cut off",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 40), (sizes[1], 8), (40, 40), (8, 40), (1, 40), (1, 40), (1, 40)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let far = tape.constant(Tensor::new(tape.device(), &[20.0; 40], 1, 40)?)?;
            let shift = tape.add(x[6], far)?;
            let weights = UpdateWeights { own: x[2], mixed: x[3], bias: x[4], scale: x[5], shift };
            tape.update(x[0], x[1], weights, (&reach, 2), 0.3)
        },
    },
    Case {
        name: "judge, spread and softmax_loss",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[1], 9), (ASKED, 9), (1, 9)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let scores = tape.judge(x[0], x[1], x[2], &reach)?;
            let all = tape.spread(scores, &reach)?;
            let [rows, columns] = tape.shape(all);
            let targets = indices(tape.device(), rows, columns)?;
            let right = targets.to_vec()?;
            let places =
                (0..rows * columns).filter(|at| at % 5 == 1 && right[at / columns] as usize != at % columns);
            let closed = Indices::new(tape.device(), &places.map(|at| at as u32).collect::<Vec<_>>())?;
            let loss = tape.softmax_loss(all, &targets, &closed)?;
            tape.scale(loss, 20.0)
        },
    },
];

/// Queries of [`crossing`].
const ASKED: usize = 3;

/// What three queries reach in two layers over `9 n` nodes: a hub that every third node is linked to, a ring of the
/// others by another kind, and nodes without edges. Two queries have edges taken out.
fn crossing(device: &Device, n: usize) -> Result<std::sync::Arc<Reach>> {
    let nodes = 9 * n;
    let mut edges = Vec::new();
    let mut link = |from: usize, kind: u32, to: usize| {
        edges.push((from as u32, kind, to as u32));
        edges.push((to as u32, kind ^ 1, from as u32));
    };
    for node in 1..nodes - 1 {
        if node % 3 == 0 {
            link(0, 0, node);
        } else {
            link(node, 2, (node + 1) % (nodes - 1));
        }
    }
    edges.sort_unstable();
    edges.dedup();
    let starts = (0..=nodes as u32).map(|node| edges.partition_point(|edge| edge.0 < node) as u32).collect();
    let (links, others) = edges.iter().map(|edge| (edge.1, edge.2)).unzip();
    let mesh = Mesh::new(device, 4, starts, links, others)?;
    let asks = [
        Ask { start: 0, without: None },
        Ask { start: 1, without: Some(Without { node: 2, kind: Some(2) }) },
        Ask { start: 3, without: Some(Without { node: 0, kind: None }) },
    ];
    Ok(std::sync::Arc::new(Reach::new(&mesh, &asks, 2)?))
}

/// Rows of [`crossing`] after its first and its second layer, and pieces after its first.
fn crossing_sizes(n: usize) -> [usize; 3] {
    let reach = crossing(&Device::cpu(1).expect("one thread can be had"), n).expect("the mesh is whole");
    [reach.rows(1), reach.rows(2), reach.extents[1].pieces]
}

/// The largest difference, relative to the largest value.
fn difference(left: &[f32], right: &[f32]) -> f32 {
    assert_eq!(left.len(), right.len());
    let finite = |value: f32| if value == f32::NEG_INFINITY { -1e3 } else { value };
    let apart = left.iter().zip(right).map(|(&x, &y)| (finite(x) - finite(y)).abs()).fold(0.0, f32::max);
    assert!(left.iter().zip(right).all(|(x, y)| !(x.is_nan() || y.is_nan())), "a value is not a number");
    apart / left.iter().map(|&x| finite(x).abs()).fold(1e-6, f32::max)
}

/// The CUDA devices to check, exact and TF32, each with the error it may make; none where there is no device.
pub(super) fn cuda_devices() -> Vec<(Device, f32)> {
    match (Device::cuda_exact(0), Device::cuda(0)) {
        (Ok(exact), Ok(fast)) => vec![(exact, 1e-4), (fast, 2e-3)],
        (Err(error), _) | (_, Err(error)) => {
            assert!(matches!(error, TensorError::NoCuda { .. }), "{error}");
            crate::skip::skip(crate::skip::Need::Cuda, error);
            Vec::new()
        }
    }
}

/// Every device there is: the CPU, and CUDA where it can be used.
pub(super) fn devices() -> Vec<Device> {
    let cuda = cuda_devices().into_iter().map(|(device, _)| device);
    [Device::cpu(1).unwrap()].into_iter().chain(cuda).collect()
}

#[test]
fn gradients_agree_with_differences() {
    // Messages bend (maximum, minimum, a deviation at its least) within a step of the differences: they are checked
    // beside their operation, in double precision and with a smaller step. So do sums that are cut off at
    // zero; other cases have them away from it.
    let bends = |case: &&Case| case.name.starts_with("propagate,") || case.name.ends_with("bends");
    for case in CASES.iter().filter(|case| !bends(case)) {
        case.check_gradient().unwrap_or_else(|error| panic!("{}: {error}", case.name));
    }
}

fn expect_same_bits(case: &Case, left: &Outcome, right: &Outcome) {
    let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&left.output), bits(&right.output), "{}", case.name);
    for (input, (left, right)) in left.gradients.iter().zip(&right.gradients).enumerate() {
        assert_eq!(bits(left), bits(right), "{}: gradient of input {input}", case.name);
    }
}

#[test]
fn one_thread_and_two_give_the_same_bits() {
    let (one, two) = (Device::cpu(1).unwrap(), Device::cpu(2).unwrap());
    for case in CASES {
        expect_same_bits(case, &case.run(&one, 400).unwrap(), &case.run(&two, 400).unwrap());
    }
}

#[test]
fn a_hundred_thousand_rows_give_the_same_bits_too() {
    let (one, two) = (Device::cpu(1).unwrap(), Device::cpu(2).unwrap());
    for case in CASES.iter().filter(|case| !case.name.contains("all") && case.name != "convolve") {
        let rows = (case.inputs)(1)[0].0;
        let scale = 100_000usize.div_ceil(rows);
        expect_same_bits(case, &case.run(&one, scale).unwrap(), &case.run(&two, scale).unwrap());
    }
}

#[test]
fn cuda_agrees_with_the_cpu() {
    let cpu = Device::cpu(1).unwrap();
    for (cuda, tolerance) in cuda_devices() {
        let mut failures = Vec::new();
        // Rounding to TF32 takes some sums to the other side of a bend, where the derivative is another.
        let exact = tolerance < 1e-3;
        for case in CASES.iter().filter(|case| exact || !case.name.ends_with("bends")) {
            for scale in [1, 40, 700] {
                let (left, right) = (case.run(&cpu, scale).unwrap(), case.run(&cuda, scale).unwrap());
                let again = case.run(&cuda, scale).unwrap();
                expect_same_bits(case, &right, &again);
                let worst = left
                    .gradients
                    .iter()
                    .zip(&right.gradients)
                    .map(|(left, right)| difference(left, right))
                    .fold(difference(&left.output, &right.output), f32::max);
                eprintln!("{cuda}, {}, scale {scale}: {worst:.1e}", case.name);
                if worst > tolerance {
                    failures.push(format!("{} at scale {scale}: {worst:.1e} > {tolerance:.0e}", case.name));
                }
            }
        }
        assert!(failures.is_empty(), "{cuda}: {failures:#?}");
    }
}

#[test]
fn draws_on_cuda_are_those_on_the_cpu() {
    let draw = |device: &Device| -> Result<Vec<u32>> {
        let count = 3000;
        let segments = segments(device, count)?;
        let total = segments.total();
        let scores = Tensor::vector(device, &Initial::Normal(1.0).values(total, 1, 9, "scores"))?;
        let groups = Tensor::new(device, &Initial::Normal(1.0).values(7, 3, 9, "groups"), 7, 3)?;
        // Elements of one group stand together.
        let thirds = segments.starts().windows(2).flat_map(|bounds| {
            let len = bounds[1] - bounds[0];
            (0..len).map(move |at| 3 * at / len)
        });
        let group_of = Indices::new(device, &thirds.collect::<Vec<u32>>())?;
        let (from, rows) = (indices(device, 2 * count, count)?, indices(device, 2 * count, 7)?);
        let choosing = Choosing {
            groups: Some(&groups),
            scores: Some(&scores),
            group_of: &group_of,
            segments: &segments,
            drop_groups: 0.3,
            drop: 0.2,
            key: Key::new(4, 4),
        };
        choose(choosing, &from, &rows)?.to_vec()
    };
    let drawn = draw(&Device::cpu(1).unwrap()).unwrap();
    for (cuda, _) in cuda_devices() {
        let others = draw(&cuda).unwrap();
        let same = drawn.iter().zip(&others).filter(|(left, right)| left == right).count();
        assert!(same * 1000 >= drawn.len() * 999, "{same} of {} draws are the same", drawn.len());
    }
}

#[test]
fn an_index_outside_its_table_is_an_error_on_every_device_and_in_every_build() {
    for device in devices() {
        let mut parameters = Parameters::new(&device, 1);
        let table = parameters.table("table", 5, 3, Initial::Ones).unwrap();
        let mut tape = Tape::inference(&parameters);
        let table = tape.parameter(table);
        let outside = |list: &Indices, tape: &mut Tape| {
            let error = tape.gather(table, list, 0.0).unwrap_err();
            assert!(matches!(error, TensorError::Index { rows: 5, .. }), "{device}: {error}");
            error.to_string()
        };
        let said = outside(&Indices::new(&device, &[0, 4, 5, 1]).unwrap(), &mut tape);
        assert_eq!(said, "gather: index 5 at position 2 is outside a table of 5 rows");
        let mut draft = Draft::new(&device, 70_000);
        draft.values_mut().fill(4);
        tape.gather(table, &Indices::of_draft(&draft).unwrap(), 0.0).unwrap();
        let mut draft = Draft::new(&device, 70_000);
        draft.values_mut().fill(0);
        draft.values_mut()[69_999] = 7;
        outside(&Indices::of_draft(&draft).unwrap(), &mut tape);
        // Lists that the device has made: owners of seven segments, and a draw from an empty one.
        let segments = Segments::from_lengths(&device, [1, 0, 1, 1, 1, 1, 1]).unwrap();
        let owners = segments.owners().unwrap();
        outside(&owners, &mut tape);
        let choosing = Choosing {
            groups: None,
            scores: None,
            group_of: &Indices::new(&device, &[0; 6]).unwrap(),
            segments: &segments,
            drop_groups: 0.0,
            drop: 0.0,
            key: Key::new(1, 1),
        };
        let from = |segment: u32| Indices::new(&device, &[segment]).unwrap();
        let drawn = |segment| choose(choosing, &from(segment), &from(segment)).unwrap();
        outside(&drawn(1), &mut tape);
        let row = tape.gather(table, &drawn(2), 0.0).unwrap();
        assert_eq!(tape.value(row).to_vec().unwrap(), [1.0; 3]);
        let labels = Labels {
            rows: Indices::new(&device, &[9]).unwrap(),
            segments: Segments::from_lengths(&device, [1]).unwrap(),
        };
        let loss = tape.softmax_loss_against_all(row, table, None, &labels, 0.0);
        assert!(matches!(loss, Err(TensorError::Index { index: 9, .. })), "{device}");
    }
}

#[test]
fn a_device_may_be_dropped_on_another_thread_and_opened_again() {
    for round in 0..3u32 {
        for device in devices() {
            let list = Indices::new(&device, &[round; 1000]).unwrap();
            assert_eq!(list.to_vec().unwrap(), [round; 1000]);
            std::thread::spawn(move || drop((list, device))).join().unwrap();
        }
    }
}

#[test]
fn segments_longer_than_32_bits_are_an_error() {
    let device = Device::cpu(1).unwrap();
    let error = Segments::from_lengths(&device, [1, u32::MAX as usize]).unwrap_err();
    assert!(matches!(error, TensorError::TooLarge { operation: "segments", .. }), "{error}");
}
