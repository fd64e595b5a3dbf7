//! Display names of entities, and phrases of relations.

use crate::ask::phrase::Phrases;
use crate::graph::{EntityId, Names};
use std::collections::HashSet;

/// Display names and phrases: labels, with ids where several entities share a label.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// Labels of several entities, in lower case.
    shared: HashSet<String>,
    phrases: Phrases,
}

impl Naming {
    /// The display names of the entities of `names`.
    pub fn new(names: &Names) -> Self {
        Self { shared: names.labels.shared(), phrases: Phrases::new(names) }
    }

    /// How facts of each relation are said.
    pub fn phrases(&self) -> &Phrases {
        &self.phrases
    }

    /// The display name of the entity with this label and id.
    pub fn name(&self, label: &str, id: &str) -> String {
        match !self.shared.is_empty() && self.shared.contains(&label.to_lowercase()) {
            true => format!("{label} [{id}]"),
            false => label.to_owned(),
        }
    }

    /// The display name of `entity`.
    pub fn of(&self, entity: EntityId, names: &Names) -> String {
        self.name(names.label(entity), names.entity(entity))
    }
}
