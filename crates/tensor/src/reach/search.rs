//! The search of one query over the edge index.

use super::{Extent, Missing, ReachQuery};
use crate::edge_index::Edges;

/// What one query reaches: nodes by (steps, node), and how much of the lists each step needs.
pub(super) struct Reached {
    pub(super) nodes: Vec<u32>,
    pub(super) steps: Vec<Extent>,
}

/// The step of a node that is not reached.
const UNREACHED: u8 = u8::MAX;

/// The search of one query: the step at which each node was reached.
pub(super) struct Search {
    step_of: Vec<u8>,
    /// The nodes that were reached last.
    frontier: Vec<u32>,
    /// How much of the lists the nodes of each step need.
    steps: Vec<Extent>,
}

impl Search {
    pub(super) fn new(edges: &Edges, ask: &ReachQuery) -> Search {
        let mut step_of = vec![UNREACHED; edges.nodes];
        step_of[ask.start as usize] = 0;
        let steps = vec![Extent::of_node(edges, ask.start as usize)];
        Search { step_of, frontier: vec![ask.start], steps }
    }

    /// A search that has every node: the start at step 0, all others at step 1.
    pub(super) fn whole(edges: &Edges, ask: &ReachQuery, layers: usize) -> Search {
        let mut search = Search::new(edges, ask);
        if layers > 0 {
            let mut others = Extent::default();
            for node in (0..edges.nodes).filter(|&node| node != ask.start as usize) {
                search.step_of[node] = 1;
                others.add(Extent::of_node(edges, node));
            }
            search.steps.push(others);
            search.steps.resize(layers + 1, Extent::default());
        }
        search
    }

    /// Extends the search from the nodes reached last to those reached at `step`.
    pub(super) fn go_on(&mut self, edges: &Edges, missing: Missing, step: usize) {
        let outgoing =
            |nodes: &[u32]| nodes.iter().map(|&node| edges.edges_of(node as usize).len()).sum::<usize>();
        // If most nodes are reached, it is less work to check whether an unreached node has a reached neighbour.
        let frontier = std::mem::take(&mut self.frontier);
        self.frontier = match outgoing(&frontier) > edges.others.host.len() / 4 {
            true => self.look_back(edges, missing, step),
            false => self.look_ahead(edges, missing, step, &frontier),
        };
        let mut sum = Extent::default();
        self.frontier.iter().for_each(|&node| sum.add(Extent::of_node(edges, node as usize)));
        self.steps.push(sum);
    }

    /// Visits the edges of reached nodes.
    fn look_ahead(&mut self, edges: &Edges, missing: Missing, step: usize, passing: &[u32]) -> Vec<u32> {
        let mut next = Vec::new();
        for &node in passing {
            let concerned = missing.concerns(node);
            for edge in edges.edges_of(node as usize) {
                let other = edges.others.host[edge];
                let gone = || concerned && missing.misses(node, edges.links.host[edge], other);
                if self.step_of[other as usize] == UNREACHED && !gone() {
                    self.step_of[other as usize] = step as u8;
                    next.push(other);
                }
            }
        }
        next
    }

    /// Visits the edges of unreached nodes, each until one leads to a reached node.
    fn look_back(&mut self, edges: &Edges, missing: Missing, step: usize) -> Vec<u32> {
        let mut next = Vec::new();
        for node in 0..edges.nodes {
            if self.step_of[node] != UNREACHED {
                continue;
            }
            let concerned = missing.concerns(node as u32);
            let is_reached = |edge: usize| {
                let other = edges.others.host[edge];
                (self.step_of[other as usize] as usize) < step
                    && !(concerned && missing.misses(node as u32, edges.links.host[edge], other))
            };
            if edges.edges_of(node).any(is_reached) {
                self.step_of[node] = step as u8;
                next.push(node as u32);
            }
        }
        next
    }

    /// The nodes by (step, node). The pass over all nodes does not branch: which of them are reached is hard to predict.
    pub(super) fn reached(&self) -> Reached {
        let total: usize = self.steps.iter().map(|step| step.rows).sum();
        let mut next = [0; UNREACHED as usize + 1];
        let mut first = 0;
        for (next, step) in next.iter_mut().zip(&self.steps) {
            *next = first;
            first += step.rows;
        }
        // What is not reached is written behind the others, over and over.
        next[UNREACHED as usize] = total;
        let mut nodes = vec![0; total + 1];
        for (node, &step) in (0..).zip(&self.step_of) {
            let place = &mut next[step as usize];
            nodes[*place] = node;
            *place += usize::from(step != UNREACHED);
        }
        nodes.truncate(total);
        Reached { nodes, steps: self.steps.clone() }
    }
}
