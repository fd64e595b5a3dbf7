//! What the edges of a node say for it where nothing reaches it: every query has a weighted sum of the logarithms of how many
//! edges of each kind such a node has, of its share of the nodes that it is linked with, and of whether it has no edges.
//!
//! The sums are levelled before they are added to the scores, so that a softmax gives these nodes together what it gave
//! them before, and only divides it among them. Nodes that are reached keep their scores and their probabilities.

use std::sync::Arc;

use crate::cuda::launch::{BLOCK, arguments};
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::memory::Buffer;
use crate::reach::Reach;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// Weights of a query beside those of the kinds: of the share, and of having no edges.
const BESIDE: usize = 2;

struct Tally {
    scores: Var,
    weights: Var,
    output: Var,
    /// What was added to the scores.
    told: Buffer<f32>,
    reach: Arc<Reach>,
}

impl Tape<'_> {
    /// `scores`, a matrix of queries × nodes, plus what the edges of every node say for it that nothing reaches.
    /// `weights` has a row for each query: a number for each kind of edges, one for the share, one for no edges.
    pub fn tally(&mut self, scores: Var, weights: Var, reach: &Arc<Reach>) -> Result<Var> {
        const NAME: &str = "tally";
        let (count, nodes, columns) =
            (reach.queries(), reach.edge_index.nodes(), reach.edge_index.kinds() + BESIDE);
        let shape = self.input(NAME, scores)?.shape();
        expect_shape(shape == [count, nodes], NAME, "scores and nodes", &shape, &[count, nodes])?;
        let shape = self.input(NAME, weights)?.shape();
        expect_shape(shape == [count, columns], NAME, "weights and kinds", &shape, &[count, columns])?;
        let mut out = self.at(scores).buffer().duplicate()?;
        let mut told = self.device().allocate::<f32>(count * nodes)?;
        let values = self.at(weights).buffer();
        let shares = reach.edge_index.0.shares()?;
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (values, shares) = (values.host(), shares.host());
                cpu.zip([(out.host_mut(), nodes), (told.host_mut(), nodes)], 1, |query, [out, told]| {
                    let weights = &values[query * columns..(query + 1) * columns];
                    told.fill(0.0);
                    reach.each_tally(query, shares, |node, at, value| told[node] += weights[at] * value);
                    let unreached = || reach.unreached(query);
                    let largest = unreached().map(|node| told[node]).fold(f32::NEG_INFINITY, f32::max);
                    let sum: f32 = unreached().map(|node| (told[node] - largest).exp()).sum();
                    let level = largest + (sum / unreached().count() as f32).ln();
                    for node in unreached() {
                        told[node] -= level;
                        out[node] += told[node];
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let rows = reach.rows(reach.layers());
                let arguments =
                    arguments![reach.descriptor.as_ref(), values, shares, rows, &mut told, &mut out];
                cuda.blocks("tally", (count, 1), 1024, arguments)?;
            }
        }
        let output = Tensor::of(out, count, nodes);
        let reach = reach.clone();
        Ok(self.record(output, &[scores, weights], |output| Tally { scores, weights, output, told, reach }))
    }
}

impl Operation for Tally {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let reach = &self.reach;
        if flow.wants(self.weights) {
            let columns = reach.edge_index.kinds() + BESIDE;
            let mut part = flow.device().allocate::<f32>(reach.queries() * columns)?;
            let shares = reach.edge_index.0.shares()?;
            match flow.device().backend() {
                Backend::Cpu(cpu) => {
                    let (gradient, told) = (gradient.host(), self.told.host());
                    let (shares, nodes) = (shares.host(), reach.edge_index.nodes());
                    cpu.rows(part.host_mut(), columns, |first, part| {
                        for (query, part) in (first..).zip(part.chunks_exact_mut(columns)) {
                            let row = query * nodes..(query + 1) * nodes;
                            let (gradient, told) = (&gradient[row.clone()], &told[row]);
                            let sum: f32 = reach.unreached(query).map(|node| gradient[node]).sum();
                            let mean = sum / reach.unreached(query).count() as f32;
                            part.fill(0.0);
                            reach.each_tally(query, shares, |node, at, value| {
                                part[at] += (gradient[node] - told[node].exp() * mean) * value;
                            });
                        }
                    });
                }
                Backend::Cuda(cuda) => {
                    let (rows, net) = (reach.rows(reach.layers()), reach.descriptor.as_ref());
                    let mut slopes = self.told.duplicate()?;
                    let arguments = arguments![net, &gradient, rows, &mut slopes];
                    cuda.blocks("tally_slopes", (reach.queries(), 1), 1024, arguments)?;
                    let arguments = arguments![net, &slopes, shares, rows, &mut part];
                    cuda.blocks("tally_back", (columns, reach.queries()), BLOCK, arguments)?;
                }
            }
            flow.add(self.weights, part)?;
        }
        flow.add(self.scores, gradient)
    }
}

impl Reach {
    /// The nodes that a query does not reach.
    fn unreached(&self, query: usize) -> impl Iterator<Item = usize> {
        let (nodes, rows) = (self.edge_index.nodes(), self.rows(self.layers()));
        let places = &self.places.buffer().host()[query * nodes..(query + 1) * nodes];
        (0..nodes).filter(move |&node| places[node] as usize >= rows)
    }

    /// Visits every node that a query does not reach with what its edges say: the place of the weight, and by what it
    /// is multiplied. Edges that are removed for the query do not count.
    fn each_tally(&self, query: usize, shares: &[f32], mut visit: impl FnMut(usize, usize, f32)) {
        let (edges, missing) = (&*self.edge_index.0, self.missing(query));
        for node in self.unreached(query) {
            let (mut edge, mut alone) = (edges.edges_of(node).start, true);
            for same in edges.links.host[edges.edges_of(node)].chunk_by(|one, next| one == next) {
                let left = |&edge: &usize| !missing.misses(node as u32, same[0], edges.others.host[edge]);
                let count = match missing.concerns(node as u32) {
                    true => (edge..edge + same.len()).filter(left).count(),
                    false => same.len(),
                };
                edge += same.len();
                if count > 0 {
                    visit(node, same[0] as usize, (1.0 + count as f32).ln());
                    alone = false;
                }
            }
            match alone {
                true => visit(node, edges.kinds + 1, 1.0),
                false => visit(node, edges.kinds, shares[node]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::devices;
    use crate::{EdgeIndex, Parameters, ReachQuery, Without};

    #[test]
    fn edges_count_where_nothing_reaches() {
        for device in devices() {
            // Node 0 leads to nodes 1 to 300 by kind 0, node 1 to node 2 by kinds 0 and 2; nodes 301 and 302 have each other,
            // node 303 has no edges.
            let mut facts: Vec<(u32, u32, u32)> = (1..=300).map(|node| (0, 0, node)).collect();
            facts.extend([(1, 0, 2), (1, 2, 2), (301, 2, 302)]);
            let mut edges: Vec<_> =
                facts.iter().flat_map(|&(from, kind, to)| [(from, kind, to), (to, kind ^ 1, from)]).collect();
            edges.sort_unstable();
            let starts = (0..=304).map(|node| edges.partition_point(|edge| edge.0 < node) as u32).collect();
            let (links, others) = edges.iter().map(|&(_, kind, to)| (kind, to)).unzip();
            let edge_index = EdgeIndex::new(&device, 4, starts, links, others).unwrap();
            let asks = [
                ReachQuery { start: 301, without: None },
                ReachQuery { start: 1, without: Some(Without { node: 2, kind: Some(0) }) },
                ReachQuery { start: 7, without: Some(Without { node: 0, kind: None }) },
                ReachQuery { start: 302, without: Some(Without { node: 301, kind: None }) },
                ReachQuery { start: 303, without: None },
            ];
            let reach = Arc::new(Reach::new(&edge_index, &asks, 1).unwrap());
            let places = reach.places.to_vec().unwrap();
            let parameters = Parameters::new(&device, 1);
            let mut tape = Tape::inference(&parameters);
            let scores = tape.constant(Tensor::new(&device, &[5.0; 5 * 304], 5, 304).unwrap()).unwrap();
            let weights: Vec<f32> = (0..5 * 6).map(|at| (at as f32 * 0.7).sin()).collect();
            let given = tape.constant(Tensor::new(&device, &weights, 5, 6).unwrap()).unwrap();
            let out = tape.tally(scores, given, &reach).unwrap();
            let found = tape.value(out).to_vec().unwrap();
            for (query, ask) in asks.iter().enumerate() {
                let weights = &weights[query * 6..][..6];
                let told = |node: u32| {
                    let here =
                        |&&(from, kind, to): &&(u32, u32, u32)| from == node && !ask.misses(from, kind, to);
                    let mut counts = [0.0f32; 4];
                    edges.iter().filter(here).for_each(|edge| counts[edge.1 as usize] += 1.0);
                    let of_kinds: f32 = (0..4).map(|kind| weights[kind] * (1.0 + counts[kind]).ln()).sum();
                    let share = if node > 300 { 0.5 } else { 1.0 / 301.0 };
                    of_kinds + if counts == [0.0; 4] { weights[5] } else { weights[4] * share }
                };
                let is_reached = |node: u32| places[query * 304 + node as usize] != u32::MAX;
                let told: Vec<(u32, f32)> =
                    (0..304).filter(|&node| !is_reached(node)).map(|node| (node, told(node))).collect();
                let sum: f32 = told.iter().map(|(_, told)| told.exp()).sum();
                let mut expected = vec![5.0; 304];
                for &(node, value) in &told {
                    expected[node as usize] += value - (sum / told.len() as f32).ln();
                }
                for (node, (found, expected)) in found[query * 304..].iter().zip(expected).enumerate() {
                    assert!((found - expected).abs() < 1e-4, "{query}, {node}: {found}, not {expected}");
                }
            }
            assert!(tape.tally(given, given, &reach).is_err());
            assert!(tape.tally(scores, scores, &reach).is_err());
        }
    }
}
