//! The operations along the edges of an edge index, over a small graph with a hub, a ring and nodes without edges.

use super::cases::indices;
use super::{Case, apart};
use crate::*;

/// Operations along the edges of an edge index.
pub(super) const PROPAGATION: &[Case] = &[
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
        name: "gate",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 5), (4, 5), (ASKED, 5), (1, 5)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let of_query = apart(tape, x[2], 3.0)?;
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
            tape.update(x[0], x[1], weights, &reach.updated_rows(2), 0.3)
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
            tape.update(x[0], x[1], weights, &reach.updated_rows(2), 0.0)
        },
    },
    Case {
        name: "update with degrees",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 40), (sizes[1], 8), (40, 40), (8, 120), (1, 40), (1, 40), (1, 40)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let shift = apart(tape, x[6], 8.0)?;
            let weights = UpdateWeights { own: x[2], mixed: x[3], bias: x[4], scale: x[5], shift };
            tape.update(x[0], x[1], weights, &reach.updated_rows(2), 0.3)
        },
    },
    Case {
        name: "update without degrees",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[0], 40), (sizes[1], 8), (40, 40), (8, 40), (1, 40), (1, 40), (1, 40)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let shift = apart(tape, x[6], 8.0)?;
            let weights = UpdateWeights { own: x[2], mixed: x[3], bias: x[4], scale: x[5], shift };
            tape.update(x[0], x[1], weights, &reach.updated_rows(2), 0.3)
        },
    },
    Case {
        name: "mlp_score, scatter_nodes and softmax_loss",
        inputs: |n| {
            let sizes = crossing_sizes(n);
            vec![(sizes[1], 9), (ASKED, 9), (1, 9)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            // Rows that all pass the same columns would leave no derivative of what is asked: a softmax does not see it.
            let (hidden, asked) = (apart(tape, x[0], 4.0)?, apart(tape, x[1], 2.0)?);
            let scores = tape.mlp_score(hidden, asked, x[2], &reach.scored_rows())?;
            let all = tape.scatter_nodes(scores, &reach.scored_rows())?;
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
    Case {
        name: "tally",
        inputs: |n| {
            let nodes =
                crossing(&Device::cpu(1).expect("a CPU"), n).expect("a edge_index").edge_index.nodes();
            vec![(ASKED, nodes), (ASKED, 6)]
        },
        build: |tape, x, n| {
            let reach = crossing(tape.device(), n)?;
            let scores = tape.tally(x[0], x[1], &reach)?;
            tape.multiply(scores, scores)
        },
    },
];

/// The number of queries of [`crossing`].
const ASKED: usize = 3;

/// What three queries reach in two layers over `9 n` nodes: a hub that every third node is linked to, a ring of the
/// others by another kind, and nodes without edges. Two queries have edges removed.
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
    let edge_index = EdgeIndex::new(device, 4, starts, links, others)?;
    let asks = [
        ReachQuery { start: 0, without: None },
        ReachQuery { start: 1, without: Some(Without { node: 2, kind: Some(2) }) },
        ReachQuery { start: 3, without: Some(Without { node: 0, kind: None }) },
    ];
    Ok(std::sync::Arc::new(Reach::new(&edge_index, &asks, 2)?))
}

/// The number of rows of [`crossing`] after its first and its second layer, and of pieces after its first.
fn crossing_sizes(n: usize) -> [usize; 3] {
    let reach =
        crossing(&Device::cpu(1).expect("one thread can be had"), n).expect("the edge_index is whole");
    [reach.rows(1), reach.rows(2), reach.extents[1].pieces]
}
