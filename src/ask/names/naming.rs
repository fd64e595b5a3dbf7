//! Display names of entities, and phrases of relations.

use crate::ask::phrase::Phrases;
use crate::graph::{EntityId, Names};
use foldhash::fast::FixedState;
use std::collections::HashSet;
use std::hash::BuildHasher;

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
        Self { shared: shared(names), phrases: Phrases::new(names) }
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

/// The labels of several entities, in lower case. A graph may have millions of labels, hardly any of them twice, so they
/// are compared by their hashes first: eight bytes each, and no copy of their text.
fn shared(names: &Names) -> HashSet<String> {
    let hasher = FixedState::with_seed(0);
    let hash = |label: &str| hasher.hash_one(label.to_lowercase());
    let mut hashes: Vec<u64> = names.labels.iter().map(|(_, label)| hash(label)).collect();
    hashes.sort_unstable();
    let repeated = hashes.windows(2).filter(|pair| pair[0] == pair[1]).map(|pair| pair[0]);
    let repeated: HashSet<u64> = repeated.collect();
    let mut seen = HashSet::new();
    let mut shared = HashSet::new();
    for (_, label) in names.labels.iter().filter(|_| !repeated.is_empty()) {
        if repeated.contains(&hash(label))
            && let Some(again) = seen.replace(label.to_lowercase())
        {
            shared.insert(again);
        }
    }
    shared
}
