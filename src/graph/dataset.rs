//! A data set: names, what may be learnt from, and the test split that nothing but evaluation sees.

use super::{Adjacency, EntityId, Graph, RelationId, Triple, Vocabulary};
use std::collections::HashMap;
use std::sync::Arc;

/// The names behind the ids, and the labels people read instead of them.
#[derive(Clone, Default)]
pub struct Names {
    /// Entity names; ids of entities of the graph come first.
    pub entities: Vocabulary,
    /// Relation names.
    pub relations: Vocabulary,
    /// Readable labels, for entities that have one.
    pub labels: HashMap<EntityId, String>,
}

impl Names {
    /// The name of an entity, as it stands in the data.
    pub fn entity(&self, id: EntityId) -> &str {
        self.entities.name(id.0)
    }

    /// The name of a relation, as it stands in the data.
    pub fn relation(&self, id: RelationId) -> &str {
        self.relations.name(id.0)
    }

    /// The label of an entity, or its name where it has none.
    pub fn label(&self, id: EntityId) -> &str {
        self.labels.get(&id).map_or_else(|| self.entity(id), String::as_str)
    }
}

/// What training, mining and tuning may see. The test split is not in here, so no stage can look at it.
#[derive(Clone, Default)]
pub struct Known {
    /// The facts to walk on, to mine rules from and to train embeddings on; distinct.
    pub facts: Arc<[Triple]>,
    /// The queries the walker trains on. The same as `facts` (and sharing its memory) unless the data set
    /// has a graph larger than its set of training queries.
    pub queries: Arc<[Triple]>,
    /// What is tuned on.
    pub valid: Arc<[Triple]>,
}

impl Known {
    /// The same with the validation split moved into facts and training queries: what the final figure of
    /// a data set such as NELL-995 is trained on, once every setting has been chosen without it.
    pub fn with_valid_learnt(&self) -> Known {
        let join = |split: &Arc<[Triple]>| {
            let mut all = split.to_vec();
            let known: std::collections::HashSet<Triple> = all.iter().copied().collect();
            all.extend(self.valid.iter().filter(|triple| !known.contains(triple)));
            Arc::from(all)
        };
        let facts: Arc<[Triple]> = join(&self.facts);
        let queries = if Arc::ptr_eq(&self.facts, &self.queries) { facts.clone() } else { join(&self.queries) };
        Known { facts, queries, valid: self.valid.clone() }
    }
}

/// Everything that was read.
#[derive(Clone, Default)]
pub struct Dataset {
    /// Names of all entities and relations, those of the test split included.
    pub names: Names,
    /// What may be learnt from.
    pub known: Known,
    /// What is evaluated on, and used for nothing else.
    pub test: Arc<[Triple]>,
}

impl Dataset {
    /// The facts as a graph over all entities and relations.
    pub fn graph(&self) -> Graph {
        Graph::new(self.names.entities.len(), self.names.relations.len(), &self.known.facts)
    }

    /// All true answers of every query, in any split: what filtered ranking takes out. For evaluation only.
    pub fn answers(&self) -> Adjacency {
        let Known { facts, queries, valid } = &self.known;
        Adjacency::new(self.names.entities.len(), &[facts, queries, valid, &self.test])
    }
}
