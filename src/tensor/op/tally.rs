//! What a node's edges alone say for it: each query adds `weight × log(1 + edges)` to the score of every node, where the
//! edges are those that lead to the node by the kind that the query asks for. It is the only part of a score that
//! differs between nodes that nothing reaches.

use std::sync::Arc;

use crate::tensor::cuda::launch::{BLOCK, arguments};
use crate::tensor::device::Backend;
use crate::tensor::error::{Result, expect_shape};
use crate::tensor::reach::Reach;
use crate::tensor::tape::{Flow, Operation, Tape, Var};
use crate::tensor::value::{Indices, Tensor};

/// Blocks of threads for each query.
const BLOCKS: usize = 16;

// The pieces of a kind are sorted by node: the first piece of a node counts for all of them.
pub(crate) const KERNELS: &str = r#"
struct Tally { u32 link, from, end; };
__device__ __forceinline__ Tally tally_of(const Net& net, u32 kind) {
    u32 link = kind ^ 1u;
    Tally tally = { link, net.chunk_starts[net.kind_chunks[link]], net.chunk_starts[net.kind_chunks[link + 1]] };
    return tally;
}
__device__ float tallied(const Net& net, const Tally& tally, u32 query, u32 at) {
    u32 node = net.kind_nodes[at], count = 0;
    if (at > tally.from && net.kind_nodes[at - 1] == node) return 0.0f;
    Gap gap = gap_of(net, query, node);
    for (; at < tally.end && net.kind_nodes[at] == node; at++) {
        u32 piece = net.piece_starts[node] + net.kind_pieces[at], from = net.piece_edges[piece], end = net.piece_edges[piece + 1];
        if (gap.to == NONE) count += end - from;
        else for (u32 e = from; e < end; e++) count += !is_gone(gap, tally.link, net.others[e]);
    }
    return logf(1.0f + (float)count);
}
extern "C" __global__ void tally(const Net* nets, const float* weights, const u32* kinds, float* out) {
    const Net& net = *nets;
    u32 query = blockIdx.y;
    Tally tally = tally_of(net, kinds[query]);
    for (u32 at = tally.from + THREAD; at < tally.end; at += gridDim.x * blockDim.x) {
        float value = tallied(net, tally, query, at);
        if (value > 0.0f) out[(u64)query * net.nodes + net.kind_nodes[at]] += weights[query] * value;
    }
}
// A block for each query.
extern "C" __global__ void tally_back(const Net* nets, const float* gradient, const u32* kinds, float* derivative) {
    const Net& net = *nets;
    u32 query = blockIdx.x;
    Tally tally = tally_of(net, kinds[query]);
    float sum = 0.0f;
    for (u32 at = tally.from + threadIdx.x; at < tally.end; at += blockDim.x)
        sum += gradient[(u64)query * net.nodes + net.kind_nodes[at]] * tallied(net, tally, query, at);
    sum = block_sum(sum);
    if (threadIdx.x == 0) derivative[query] = sum;
}
"#;

struct Tally {
    scores: Var,
    weights: Var,
    output: Var,
    kinds: Indices,
    reach: Arc<Reach>,
}

impl Tape<'_> {
    /// `scores`, a matrix of queries × nodes, plus what the edges of every node say for it: `weights` has a number for
    /// each query, `kinds` the kind that it asks for.
    pub fn tally(&mut self, scores: Var, weights: Var, kinds: &Indices, reach: &Arc<Reach>) -> Result<Var> {
        const NAME: &str = "tally";
        let (count, nodes) = (reach.queries(), reach.mesh.nodes());
        let shape = self.input(NAME, scores)?.shape();
        expect_shape(shape == [count, nodes], NAME, "scores and nodes", &shape, &[count, nodes])?;
        let shape = self.input(NAME, weights)?.shape();
        expect_shape(shape == [count, 1], NAME, "weights and queries", &shape, &[count, 1])?;
        expect_shape(kinds.len() == count, NAME, "kinds and queries", &[kinds.len()], &[count])?;
        kinds.expect_below(reach.mesh.kinds(), NAME)?;
        let mut out = self.at(scores).buffer().duplicate()?;
        let values = self.at(weights).buffer();
        match self.device().backend() {
            Backend::Cpu(cpu) => {
                let (values, kinds) = (values.host(), kinds.buffer().host());
                cpu.rows(out.host_mut(), nodes.max(1), |first, out| {
                    for (query, out) in (first..).zip(out.chunks_exact_mut(nodes.max(1))) {
                        let each = |node: usize, tally: f32| out[node] += values[query] * tally;
                        reach.each_tally(query, kinds[query], each);
                    }
                });
            }
            Backend::Cuda(cuda) => {
                let arguments = arguments![reach.descriptor.as_ref(), values, kinds.buffer(), &mut out];
                cuda.blocks("tally", (BLOCKS, count), BLOCK, arguments)?;
            }
        }
        let output = Tensor::of(out, count, nodes);
        let (kinds, reach) = (kinds.clone(), reach.clone());
        Ok(self.record(output, &[scores, weights], |output| Tally { scores, weights, output, kinds, reach }))
    }
}

impl Operation for Tally {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let gradient = flow.output(self.output)?;
        let (reach, kinds) = (&self.reach, self.kinds.buffer());
        if flow.wants(self.weights) {
            let mut part = flow.device().allocate::<f32>(reach.queries())?;
            match flow.device().backend() {
                Backend::Cpu(cpu) => {
                    let (gradient, kinds, nodes) = (gradient.host(), kinds.host(), reach.mesh.nodes());
                    cpu.rows(part.host_mut(), 1, |first, part| {
                        for (query, part) in (first..).zip(part) {
                            let gradient = &gradient[query * nodes..(query + 1) * nodes];
                            *part = 0.0;
                            reach.each_tally(query, kinds[query], |node, tally| {
                                *part += gradient[node] * tally
                            });
                        }
                    });
                }
                Backend::Cuda(cuda) => {
                    let arguments = arguments![reach.descriptor.as_ref(), &gradient, kinds, &mut part];
                    cuda.blocks("tally_back", (reach.queries(), 1), 1024, arguments)?;
                }
            }
            flow.add(self.weights, part)?;
        }
        flow.add(self.scores, gradient)
    }
}

impl Reach {
    /// Visits the nodes that edges of `kind` lead to, each with the logarithm of one more than there are, without those
    /// that are removed for the query.
    fn each_tally(&self, query: usize, kind: u32, mut visit: impl FnMut(usize, f32)) {
        let (edges, ask, link) = (&*self.mesh.0, &self.asks[query], kind ^ 1);
        let chunk =
            |kind: u32| edges.chunk_starts.host[edges.kind_chunks.host[kind as usize] as usize] as usize;
        let pieces = chunk(link)..chunk(link + 1);
        let nodes = &edges.kind_nodes.host[pieces.clone()];
        let mut numbers = edges.kind_pieces.host[pieces].iter();
        for same in nodes.chunk_by(|one, next| one == next) {
            let node = same[0];
            let mut count = 0;
            for number in numbers.by_ref().take(same.len()) {
                let piece = (edges.piece_starts.host[node as usize] + number) as usize;
                let span = edges.piece_edges.host[piece] as usize..edges.piece_edges.host[piece + 1] as usize;
                count += match ask.concerns(node) {
                    true => span.filter(|&edge| !ask.misses(node, link, edges.others.host[edge])).count(),
                    false => span.len(),
                };
            }
            visit(node as usize, (1.0 + count as f32).ln());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::check::devices;
    use crate::tensor::{Mesh, Parameters, ReachQuery, Without};

    #[test]
    fn edges_are_counted_by_kind_and_without_what_is_removed() {
        for device in devices() {
            // Node 0 leads to nodes 1 to 300 by kind 0, node 1 to node 2 by kinds 0 and 2; node 301 has no edges.
            let mut facts: Vec<(u32, u32, u32)> = (1..=300).map(|node| (0, 0, node)).collect();
            facts.extend([(1, 0, 2), (1, 2, 2)]);
            let mut edges: Vec<_> =
                facts.iter().flat_map(|&(from, kind, to)| [(from, kind, to), (to, kind ^ 1, from)]).collect();
            edges.sort_unstable();
            let starts = (0..=302).map(|node| edges.partition_point(|edge| edge.0 < node) as u32).collect();
            let (links, others) = edges.iter().map(|&(_, kind, to)| (kind, to)).unzip();
            let mesh = Mesh::new(&device, 4, starts, links, others).unwrap();
            let asks = [
                ReachQuery { start: 0, without: None },
                ReachQuery { start: 1, without: Some(Without { node: 2, kind: Some(0) }) },
                ReachQuery { start: 2, without: Some(Without { node: 0, kind: None }) },
                ReachQuery { start: 301, without: None },
            ];
            let reach = Arc::new(Reach::new(&mesh, &asks, 1).unwrap());
            let kinds = [0, 0, 1, 3];
            let parameters = Parameters::new(&device, 1);
            let mut tape = Tape::inference(&parameters);
            let scores = tape.constant(Tensor::new(&device, &[5.0; 4 * 302], 4, 302).unwrap()).unwrap();
            let weights = [1.0, 2.0, -1.0, 0.5];
            let given = tape.constant(Tensor::vector(&device, &weights).unwrap()).unwrap();
            let kinds_there = Indices::new(&device, &kinds).unwrap();
            let out = tape.tally(scores, given, &kinds_there, &reach).unwrap();
            let found = tape.value(out).to_vec().unwrap();
            for (query, ask) in asks.iter().enumerate() {
                for node in 0..302 {
                    let leads = |&&(from, kind, to): &&(u32, u32, u32)| {
                        to == node && kind == kinds[query] && !ask.misses(from, kind, to)
                    };
                    let count = edges.iter().filter(leads).count();
                    let expected = 5.0 + weights[query] * (1.0 + count as f32).ln();
                    let found = found[query * 302 + node as usize];
                    assert!((found - expected).abs() < 1e-5, "{query}, {node}: {found}, not {expected}");
                }
            }
            let wrong = Indices::new(&device, &[0, 0, 0, 4]).unwrap();
            assert!(tape.tally(scores, given, &wrong, &reach).is_err());
            assert!(tape.tally(given, given, &kinds_there, &reach).is_err());
        }
    }
}
