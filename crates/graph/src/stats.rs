//! The figures of a data set: sizes, degrees, and how much of the test split the graph already links.

use super::{Dataset, EntityId, FactCounts, Findings, Graph, RelationProfile};
use serde::Serialize;

/// Mean and median of a count over all entities of the graph.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The mean.
    pub mean: f64,
    /// The median; the mean of the middle two if there is an even number of entities.
    pub median: f64,
}

/// What `stats` reports. The names are a contract with users' scripts.
///
/// Degrees and `test_unseen` are counted in the graph that test queries are answered on, which for a data set with a
/// graph of its own includes the validation split ([`Known::for_test`](super::Known::for_test)).
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// Entities of all splits.
    pub entities: usize,
    /// Relations of all splits, inverses not counted.
    pub relations: usize,
    /// How many facts the user gave, and how many of them are learnt from.
    pub counts: FactCounts,
    /// Distinct facts of the graph.
    pub facts: usize,
    /// Distinct training queries.
    pub train: usize,
    /// Distinct validation triples.
    pub valid: usize,
    /// Distinct test triples.
    pub test: usize,
    /// Entities that have an edge in the graph.
    pub entities_in_graph: usize,
    /// Edges an entity has, inverse edges included.
    pub degree: Spread,
    /// Distinct links (relations in either direction) an entity has.
    pub relation_degree: Spread,
    /// Distinct neighbours an entity has.
    pub entity_degree: Spread,
    /// Test triples, those left out included, with an entity that is not in the graph.
    pub test_unseen: usize,
    /// Test triples left out because the graph does not have their entities.
    pub test_left_out: usize,
    /// Test triples whose two entities some edge of the graph already joins.
    pub test_linked: usize,
    /// What was understood of the files beyond plain triples, in sentences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub understood: Vec<String>,
    /// What was odd in the files.
    #[serde(flatten)]
    pub findings: Findings,
    /// A profile of each relation over all splits, most facts first.
    pub relation_table: Vec<RelationProfile>,
}

impl Statistics {
    /// Counts `dataset`.
    pub fn new(dataset: &Dataset) -> Self {
        let walked = dataset.graph();
        let graph = dataset.graph_of(&dataset.known.for_test());
        let linked: Vec<EntityId> = linked_entities(&graph).collect();
        let spread = |count: &dyn Fn(EntityId) -> usize| spread(linked.iter().map(|&e| count(e)).collect());
        let joined = |a: EntityId, b: EntityId| {
            // Both ends have the edge; searching from the hub would scan its row for each of its triples.
            let mut ends = [a, b];
            ends.sort_by_key(|&end| walked.edges(end).len());
            walked.edges(ends[0]).iter().any(|edge| edge.target == ends[1])
        };
        Self {
            entities: graph.entities(),
            relations: graph.relations(),
            counts: dataset.counts(&walked),
            facts: dataset.known.facts.len(),
            train: dataset.known.queries.len(),
            valid: dataset.known.valid.len(),
            test: dataset.test.len(),
            entities_in_graph: linked_entities(&walked).count(),
            degree: spread(&|e| graph.edges(e).len()),
            relation_degree: spread(&|e| graph.edges(e).chunk_by(|a, b| a.link == b.link).count()),
            entity_degree: spread(&|e| {
                let mut targets: Vec<EntityId> = graph.edges(e).iter().map(|edge| edge.target).collect();
                targets.sort_unstable();
                targets.dedup();
                targets.len()
            }),
            test_unseen: dataset.findings.test_unseen,
            test_left_out: dataset.test_left_out.len(),
            test_linked: dataset.test.iter().filter(|t| joined(t.head, t.tail)).count(),
            understood: dataset.understood.clone(),
            findings: dataset.findings,
            relation_table: RelationProfile::all(dataset),
        }
    }
}

fn linked_entities(graph: &Graph) -> impl Iterator<Item = EntityId> + '_ {
    (0..graph.entities() as u32).map(EntityId).filter(|&entity| !graph.edges(entity).is_empty())
}

fn spread(mut counts: Vec<usize>) -> Spread {
    if counts.is_empty() {
        return Spread { mean: 0.0, median: 0.0 };
    }
    counts.sort_unstable();
    let mean = counts.iter().sum::<usize>() as f64 / counts.len() as f64;
    let median = (counts[(counts.len() - 1) / 2] + counts[counts.len() / 2]) as f64 / 2.0;
    Spread { mean, median }
}
