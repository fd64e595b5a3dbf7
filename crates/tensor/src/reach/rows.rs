//! What an operation on rows needs to know of them, whichever way they were reached.

use super::Reach;
use crate::value::Indices;

/// The rows that are scored, and the nodes they stand for. Cheap to clone.
#[derive(Clone)]
pub struct ScoredRows {
    pub(crate) queries: usize,
    /// How many nodes the graph has, reached or not.
    pub(crate) nodes: usize,
    pub(crate) row_nodes: Indices,
    pub(crate) row_queries: Indices,
    /// Where stretches of rows of one query start and, after all rows, one for each query (one entry more).
    pub(crate) runs: Indices,
    /// The row of every (query, node), which CUDA looks up. A bounded frontier, which is not for CUDA, has none.
    pub(crate) places: Option<Indices>,
}

impl ScoredRows {
    /// How many rows there are.
    pub fn rows(&self) -> usize {
        self.row_queries.len()
    }
}

/// The rows that a layer updates. Cheap to clone.
#[derive(Clone)]
pub struct UpdatedRows {
    /// How many have a state before the layer. They come first.
    pub(crate) before: usize,
    pub(crate) rows: usize,
    /// The number of each row's edges, plus one for the start.
    pub(crate) degrees: Indices,
    /// What the logarithm of a degree is compared with.
    pub(crate) mean_log: f32,
}

impl Reach {
    /// The rows of the last layer.
    pub fn scored_rows(&self) -> ScoredRows {
        ScoredRows {
            queries: self.queries(),
            nodes: self.nodes(),
            row_nodes: self.row_nodes.clone(),
            row_queries: self.row_queries.clone(),
            runs: self.runs.clone(),
            places: Some(self.places.clone()),
        }
    }

    /// The rows of layer `layer`, from 1.
    pub fn updated_rows(&self, layer: usize) -> UpdatedRows {
        UpdatedRows {
            before: self.rows(layer - 1),
            rows: self.rows(layer),
            degrees: self.row_degrees.clone(),
            mean_log: self.edge_index.0.mean_log,
        }
    }
}
