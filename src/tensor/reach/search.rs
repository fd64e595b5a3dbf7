//! The search of one query over the mesh.

use super::{Extent, ReachQuery};
use crate::tensor::mesh::Edges;

/// What one query reaches: nodes by (steps, node), and how much of the lists each step needs.
pub(super) struct Reached {
    pub(super) nodes: Vec<u32>,
    pub(super) steps: Vec<Extent>,
}

/// The search of one query: the step at which each node was reached.
#[derive(Clone)]
pub(super) struct Search {
    step_of: Vec<u8>,
    /// The nodes that were reached last.
    frontier: Vec<u32>,
}

impl Search {
    pub(super) fn new(edges: &Edges, ask: &ReachQuery) -> Search {
        let mut step_of = vec![u8::MAX; edges.nodes];
        step_of[ask.start as usize] = 0;
        Search { step_of, frontier: vec![ask.start] }
    }

    /// Extends the search from `passing` (or from all nodes reached last) to the nodes reached at `step`.
    pub(super) fn go_on(&mut self, edges: &Edges, ask: &ReachQuery, step: usize, passing: Option<&[u32]>) {
        let outgoing =
            |nodes: &[u32]| nodes.iter().map(|&node| edges.edges_of(node as usize).len()).sum::<usize>();
        // If most nodes are reached, it is less work to check whether an unreached node has a reached neighbour.
        self.frontier = match passing {
            None if outgoing(&self.frontier) > edges.others.host.len() / 4 => {
                self.look_back(edges, ask, step)
            }
            None => {
                let frontier = std::mem::take(&mut self.frontier);
                self.look_ahead(edges, ask, step, &frontier)
            }
            Some(passing) => self.look_ahead(edges, ask, step, passing),
        };
    }

    /// Visits the edges of reached nodes.
    fn look_ahead(&mut self, edges: &Edges, ask: &ReachQuery, step: usize, passing: &[u32]) -> Vec<u32> {
        let mut next = Vec::new();
        for &node in passing {
            let concerned = ask.concerns(node);
            for edge in edges.edges_of(node as usize) {
                let other = edges.others.host[edge];
                let gone = || concerned && ask.misses(node, edges.links.host[edge], other);
                if self.step_of[other as usize] == u8::MAX && !gone() {
                    self.step_of[other as usize] = step as u8;
                    next.push(other);
                }
            }
        }
        next
    }

    /// Visits the edges of unreached nodes, each until one leads to a reached node.
    fn look_back(&mut self, edges: &Edges, ask: &ReachQuery, step: usize) -> Vec<u32> {
        let mut next = Vec::new();
        for node in 0..edges.nodes {
            if self.step_of[node] != u8::MAX {
                continue;
            }
            let concerned = ask.concerns(node as u32);
            let is_reached = |edge: usize| {
                let other = edges.others.host[edge];
                (self.step_of[other as usize] as usize) < step
                    && !(concerned && ask.misses(node as u32, edges.links.host[edge], other))
            };
            if edges.edges_of(node).any(is_reached) {
                self.step_of[node] = step as u8;
                next.push(node as u32);
            }
        }
        next
    }

    /// The nodes by (step, node): one pass over all nodes counts the rows of each step, a second one orders them.
    pub(super) fn reached(&self, edges: &Edges, layers: usize) -> Reached {
        let mut steps = vec![Extent::default(); layers + 1];
        for (node, &step) in self.step_of.iter().enumerate() {
            if step != u8::MAX {
                steps[step as usize].add(Extent::of_node(edges, node));
            }
        }
        let firsts = steps.iter().scan(0, |total, step| Some(std::mem::replace(total, *total + step.rows)));
        let mut next: Vec<usize> = firsts.collect();
        let mut nodes = vec![0; steps.iter().map(|step| step.rows).sum()];
        for (node, &step) in self.step_of.iter().enumerate() {
            if step != u8::MAX {
                nodes[next[step as usize]] = node as u32;
                next[step as usize] += 1;
            }
        }
        Reached { nodes, steps }
    }
}
