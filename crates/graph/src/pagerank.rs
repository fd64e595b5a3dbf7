//! PageRank on the graph with inverse edges: which neighbours to keep when there are too many.

use super::{Adjacency, EntityId};
use rayon::prelude::*;

/// The damping factor: the probability of following an edge instead of jumping anywhere.
const DAMPING: f64 = 0.85;
/// Power iteration stops when the ranks change by less than this in total.
const TOLERANCE: f64 = 1e-10;
const MAX_ITERATIONS: usize = 200;

/// The PageRank of every entity; the sum is 1. Entities without edges spread their rank evenly.
pub fn pagerank(adjacency: &Adjacency) -> Vec<f64> {
    let entities = adjacency.entities();
    let degree = |entity: u32| adjacency.edges(EntityId(entity)).len() as f64;
    let mut rank = vec![1.0 / entities as f64; entities];
    let mut share = vec![0.0; entities];
    for _ in 0..MAX_ITERATIONS {
        // Edges are symmetric, so what an entity receives over an edge is what the edge's target sends over the
        // reverse edge. Every entity can therefore gather for itself, and the order of additions does not depend on
        // the threads.
        share.par_iter_mut().enumerate().for_each(|(entity, share)| {
            let degree = degree(entity as u32);
            *share = if degree > 0.0 { rank[entity] / degree } else { 0.0 };
        });
        let lost: f64 = (0..entities).filter(|&e| degree(e as u32) == 0.0).map(|e| rank[e]).sum();
        let everywhere = (1.0 - DAMPING + DAMPING * lost) / entities as f64;
        let next: Vec<f64> = (0..entities as u32)
            .into_par_iter()
            .map(|entity| {
                let edges = adjacency.edges(EntityId(entity));
                everywhere + DAMPING * edges.iter().map(|edge| share[edge.target.index()]).sum::<f64>()
            })
            .collect();
        let moved: f64 = next.iter().zip(&rank).map(|(new, old)| (new - old).abs()).sum();
        rank = next;
        if moved < TOLERANCE {
            break;
        }
    }
    rank
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Triple;

    /// The definition: a dense matrix, applied many times.
    fn naive(entities: usize, facts: &[Triple]) -> Vec<f64> {
        let mut matrix = vec![vec![0.0; entities]; entities];
        for fact in facts {
            matrix[fact.head.index()][fact.tail.index()] += 1.0;
            matrix[fact.tail.index()][fact.head.index()] += 1.0;
        }
        for row in &mut matrix {
            let sum: f64 = row.iter().sum();
            let out = |x: f64| if sum > 0.0 { x / sum } else { 1.0 / entities as f64 };
            row.iter_mut().for_each(|x| *x = out(*x));
        }
        let mut rank = vec![1.0 / entities as f64; entities];
        for _ in 0..500 {
            rank = (0..entities)
                .map(|to| {
                    let incoming: f64 = (0..entities).map(|from| rank[from] * matrix[from][to]).sum();
                    0.15 / entities as f64 + 0.85 * incoming
                })
                .collect();
        }
        rank
    }

    #[test]
    fn ranks_are_those_of_the_definition() {
        let facts: Vec<Triple> = [(0, 0, 1), (0, 1, 1), (1, 0, 2), (3, 0, 1), (4, 1, 4)]
            .map(|(h, r, t)| Triple::new(h, r, t))
            .to_vec();
        let ranks = pagerank(&Adjacency::new(6, &[&facts]));
        for (ours, theirs) in ranks.iter().zip(naive(6, &facts)) {
            assert!((ours - theirs).abs() < 1e-8, "{ours} {theirs}");
        }
        assert!((ranks.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    }
}
