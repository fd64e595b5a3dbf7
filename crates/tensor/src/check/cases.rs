//! The operations that have a gradient, each with its inputs and a function that applies it.

use super::{Case, apart};
use crate::*;

/// All operations that have a gradient.
pub(super) const CASES: &[Case] = &[
    Case {
        name: "relu",
        inputs: |n| vec![(7 * n, 5)],
        build: |tape, x, _| {
            let x = apart(tape, x[0], 1.0)?;
            tape.relu(x)
        },
    },
    Case { name: "relu, bends", inputs: |n| vec![(7 * n, 5)], build: |tape, x, _| tape.relu(x[0]) },
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
        name: "scale_rows",
        inputs: |n| vec![(7 * n, 35), (7 * n, 1)],
        build: |tape, x, _| tape.scale_rows(x[0], x[1]),
    },
    Case {
        name: "reshape",
        inputs: |n| vec![(6 * n, 5)],
        build: |tape, x, n| {
            let halves = tape.reshape(x[0], 3 * n, 10)?;
            tape.multiply(halves, halves)
        },
    },
    Case {
        name: "sparse_product",
        inputs: |n| vec![(15 * n, 40)],
        build: |tape, x, n| {
            // Three blocks; row `r` has `r % 4` entries, so that some are empty.
            let (mut starts, mut places, mut values) = (vec![0], Vec::new(), Vec::new());
            for row in 0..7 * n {
                for entry in 0..row % 4 {
                    places.push(((row * 3 + entry * 7) % (5 * n)) as u32);
                    values.push(0.5 + entry as f32);
                }
                starts.push(places.len() as u32);
            }
            let matrix = SparseMatrix::new(tape.device(), 5 * n, &starts, &places, &values)?;
            let product = tape.sparse_product(&matrix, x[0])?;
            tape.multiply(product, product)
        },
    },
    Case {
        name: "residual_norm",
        inputs: |n| vec![(6 * n, 40), (6 * n, 40), (1, 40), (1, 40)],
        build: |tape, x, _| {
            let shift = apart(tape, x[3], 8.0)?;
            tape.residual_norm(x[0], x[1], x[2], shift)
        },
    },
    Case {
        name: "residual_norm, bends",
        inputs: |n| vec![(6 * n, 5), (6 * n, 5), (1, 5), (1, 5)],
        build: |tape, x, _| tape.residual_norm(x[0], x[1], x[2], x[3]),
    },
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
        build: |tape, x, _| {
            let bias = apart(tape, x[3], 6.0)?;
            tape.linear(&[x[0], x[1]], x[2], Some(bias), Activation::Relu, 0.3)
        },
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
            let weights = LstmWeights { input: x[3], hidden: x[4], bias: x[5], peepholes: None };
            let state = LstmState { hidden: x[1], cell: x[2] };
            let state = tape.lstm(x[0], Some(state), None, weights)?;
            tape.multiply(state.hidden, state.cell)
        },
    },
    Case {
        name: "lstm from parents",
        inputs: |n| vec![(4 * n, 3), (9 * n, 3), (3, 16), (4, 16), (1, 16)],
        build: |tape, x, n| {
            let weights = LstmWeights { input: x[2], hidden: x[3], bias: x[4], peepholes: None };
            let state = tape.lstm(x[0], None, None, weights)?;
            let parents = indices(tape.device(), 9 * n, 4 * n)?;
            let state = tape.lstm(x[1], Some(state), Some(&parents), weights)?;
            Ok(state.hidden)
        },
    },
    Case {
        name: "lstm with peepholes",
        inputs: |n| vec![(5 * n, 3), (5 * n, 4), (5 * n, 4), (3, 16), (4, 16), (1, 16), (1, 12)],
        build: |tape, x, _| {
            let weights = LstmWeights { input: x[3], hidden: x[4], bias: x[5], peepholes: Some(x[6]) };
            let state = LstmState { hidden: x[1], cell: x[2] };
            let state = tape.lstm(x[0], Some(state), None, weights)?;
            tape.multiply(state.hidden, state.cell)
        },
    },
    Case {
        name: "lstm with peepholes from parents",
        inputs: |n| vec![(4 * n, 3), (9 * n, 3), (3, 16), (4, 16), (1, 16), (1, 12)],
        build: |tape, x, n| {
            let weights = LstmWeights { input: x[2], hidden: x[3], bias: x[4], peepholes: Some(x[5]) };
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
        name: "segment_log_softmax and gather_elements",
        inputs: |n| vec![(total(9 * n), 1)],
        build: |tape, x, n| {
            let segments = segments(tape.device(), 9 * n)?;
            let log_probs = tape.segment_log_softmax(x[0], &segments, None)?;
            let positions = indices(tape.device(), 30 * n, segments.total())?;
            tape.gather_elements(log_probs, &positions)
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
        name: "against, log_softmax and gather_pairs",
        inputs: |n| vec![(5 * n, 6), (9, 6), (9, 1)],
        build: |tape, x, n| {
            let scores = tape.against(x[0], x[1], Some(x[2]), 0.2)?;
            let log_probs = tape.log_softmax(scores, 2)?;
            let rows = indices(tape.device(), 14 * n, 5 * n)?;
            let columns: Vec<u32> = (0..14 * n).map(|index| 2 + (index * 3 % 7) as u32).collect();
            let columns = Indices::new(tape.device(), &columns)?;
            tape.gather_pairs(log_probs, &rows, &columns)
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
];

/// A list of `len` indices below `limit`, with repetitions.
pub(super) fn indices(device: &Device, len: usize, limit: usize) -> Result<Indices> {
    let list: Vec<u32> = (0..len).map(|index| ((index * 7 + index / 3) % limit) as u32).collect();
    Indices::new(device, &list)
}

/// `count` segments of 0 to 4 elements.
pub(super) fn segments(device: &Device, count: usize) -> Result<Segments> {
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
