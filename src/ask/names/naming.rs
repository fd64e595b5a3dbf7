//! Display names of entities.

use crate::graph::{EntityId, Names};
use std::collections::HashSet;

/// Display names: labels, with ids where several entities share a label.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// Labels of several entities, in lower case.
    shared: HashSet<String>,
}

impl Naming {
    /// The display names of the entities of `names`.
    pub fn new(names: &Names) -> Self {
        let mut seen: HashSet<String> = HashSet::with_capacity(names.labels.len());
        let mut shared = HashSet::new();
        for label in names.labels.values() {
            if let Some(again) = seen.replace(label.to_lowercase()) {
                shared.insert(again);
            }
        }
        Self { shared }
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
