//! Finding what a person means by a name: an id, a label, a relation or its inverse, and what was nearly meant; and
//! naming entities so that a person knows which is meant.

use super::AskError;
use crate::graph::{Direction, EntityId, Link, Names, RelationId};
use std::collections::{HashMap, HashSet};

/// How many names a message suggests at most.
const SUGGESTED: usize = 5;
/// So many relations are listed where none is nearly called like what was typed.
const LISTED: usize = 12;
/// Names less alike than this are not worth suggesting.
const ALIKE: f64 = 0.55;

/// Names as people type them.
pub struct Lookup<'a> {
    names: &'a Names,
    /// Entities by their label in lower case.
    by_label: HashMap<String, Vec<EntityId>>,
}

impl<'a> Lookup<'a> {
    /// A lookup in `names`.
    pub fn new(names: &'a Names) -> Self {
        let mut by_label: HashMap<String, Vec<EntityId>> = HashMap::new();
        for (&entity, label) in &names.labels {
            by_label.entry(label.to_lowercase()).or_default().push(entity);
        }
        for entities in by_label.values_mut() {
            entities.sort_unstable();
        }
        Self { names, by_label }
    }

    /// The entity called `text`: by its id, else by its label, in any case.
    ///
    /// # Errors
    /// If there is none, with names that are nearly the same; or if several have that label, with their ids.
    pub fn entity(&self, text: &str) -> Result<EntityId, AskError> {
        if let Some(id) = self.names.entities.get(text) {
            return Ok(EntityId(id));
        }
        let folded = text.to_lowercase();
        let found: &[EntityId] = match self.by_label.get(&folded) {
            Some(found) => found,
            None => &self.by_folded_name(&folded),
        };
        let exact: Vec<EntityId> =
            found.iter().copied().filter(|&entity| self.names.label(entity) == text).collect();
        match (found, &exact[..]) {
            (&[entity], _) | (_, &[entity]) => Ok(entity),
            ([], _) => {
                let everything = (0..self.names.entities.len() as u32).map(EntityId);
                let spellings = everything.flat_map(|entity| {
                    let label = self.names.labels.get(&entity).map(String::as_str);
                    [Some(self.names.entity(entity)), label].into_iter().flatten()
                });
                Err(unknown("an entity", text, &nearest(text, spellings)))
            }
            (several, _) => {
                let ids: Vec<&str> =
                    several.iter().take(12).map(|&entity| self.names.entity(entity)).collect();
                let more = if several.len() > ids.len() { ", …" } else { "" };
                Err(AskError::Name(format!(
                    "`{text}` is the label of {} entities; say which by its id: {}{more}",
                    several.len(),
                    ids.join(", ")
                )))
            }
        }
    }

    fn by_folded_name(&self, folded: &str) -> Vec<EntityId> {
        let everything = self.names.entities.iter().zip(0..);
        everything.filter(|(name, _)| name.to_lowercase() == folded).map(|(_, id)| EntityId(id)).collect()
    }

    /// The relation called `text`, in any case or by a last part that no other relation has, or the inverse of
    /// one: `~parent_of`, `parent_of^-1` or `parent_of⁻¹`.
    ///
    /// # Errors
    /// If there is none, with names that are nearly the same; or if several end like that.
    pub fn link(&self, text: &str) -> Result<Link, AskError> {
        // A relation may be called like an inverse; its own name comes first.
        if let Some(id) = self.names.relations.get(text) {
            return Ok(Link::forward(RelationId(id)));
        }
        let inverse =
            text.strip_prefix('~').or_else(|| text.strip_suffix("^-1")).or_else(|| text.strip_suffix("⁻¹"));
        let (name, direction) = match inverse {
            Some(name) => (name, Direction::Inverse),
            None => (text, Direction::Forward),
        };
        Ok(Link::new(self.relation(name)?, direction))
    }

    fn relation(&self, text: &str) -> Result<RelationId, AskError> {
        if let Some(id) = self.names.relations.get(text) {
            return Ok(RelationId(id));
        }
        let all = || self.names.relations.iter().zip((0..).map(RelationId));
        let folded = text.to_lowercase();
        // Case does not matter, nor do marks before the name: `hypernym` is `_hypernym`.
        let bare =
            |name: &str| name.to_lowercase().trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned();
        let same: Vec<_> =
            all().filter(|(name, _)| name.to_lowercase() == folded || bare(name) == folded).collect();
        let ends = |name: &str| {
            let name = name.to_lowercase();
            let before = name.strip_suffix(&folded).and_then(|before| before.chars().last());
            before.is_some_and(|character| !character.is_alphanumeric())
        };
        let found = if same.is_empty() { all().filter(|(name, _)| ends(name)).collect() } else { same };
        match &found[..] {
            [(_, relation)] => Ok(*relation),
            [] => Err(self.unknown_relation(text)),
            several => {
                let names: Vec<&str> = several.iter().take(12).map(|(name, _)| *name).collect();
                Err(AskError::Name(format!(
                    "`{text}` could be {} relations; say which: {}",
                    several.len(),
                    names.join(", ")
                )))
            }
        }
    }

    /// "There is no such relation", with the nearest, or with all if they are few.
    fn unknown_relation(&self, text: &str) -> AskError {
        let relations = &self.names.relations;
        let nearest = nearest(text, relations.iter());
        if nearest.is_empty() && (1..=LISTED).contains(&relations.len()) {
            let all: Vec<&str> = relations.iter().collect();
            let all = all.join(", ");
            return AskError::Name(format!(
                "the graph has never seen a relation `{text}`; its relations are {all}"
            ));
        }
        unknown("a relation", text, &nearest)
    }
}

/// What entities are called: by their labels, and by their ids as well where several have the same label.
#[derive(Clone, Debug, Default)]
pub struct Naming {
    /// Labels of several entities, in lower case.
    shared: HashSet<String>,
}

impl Naming {
    /// What the entities of `names` are called.
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

    /// What the entity with this label and id is called.
    pub fn name(&self, label: &str, id: &str) -> String {
        match !self.shared.is_empty() && self.shared.contains(&label.to_lowercase()) {
            true => format!("{label} [{id}]"),
            false => label.to_owned(),
        }
    }

    /// What `entity` of `names` is called.
    pub fn of(&self, entity: EntityId, names: &Names) -> String {
        self.name(names.label(entity), names.entity(entity))
    }
}

/// "There is no such thing", with the `nearest` names there are.
fn unknown(what: &str, text: &str, nearest: &[&str]) -> AskError {
    AskError::Name(match nearest {
        [] => format!("the graph has never seen {what} `{text}`, nor anything nearly so called"),
        [only] => format!("the graph has never seen {what} `{text}`; did you mean `{only}`?"),
        _ => format!("the graph has never seen {what} `{text}`; did you mean one of {}?", nearest.join(", ")),
    })
}

/// The names most like `text`, if any is.
fn nearest<'a>(text: &str, names: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let folded = text.to_lowercase();
    let mut alike: Vec<(f64, &str)> = names
        .map(|name| (likeness(&folded, &name.to_lowercase()), name))
        .filter(|(likeness, _)| *likeness >= ALIKE)
        .collect();
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(b.1)));
    alike.dedup_by_key(|(_, name)| *name);
    alike.into_iter().take(SUGGESTED).map(|(_, name)| name).collect()
}

/// How alike two names are, from 0 to 1. Cheap for names of very different lengths, which most are.
fn likeness(a: &str, b: &str) -> f64 {
    let (short, long) = (a.len().min(b.len()), a.len().max(b.len()));
    if long == 0 {
        return 1.0;
    }
    // A name that holds what was typed is near, however long it is; one that is held, if it is most of it.
    if short >= 4 && (b.contains(a) || (2 * short > long && a.contains(b))) {
        return 0.8 + 0.2 * short as f64 / long as f64;
    }
    if (short as f64) < ALIKE * long as f64 {
        return 0.0;
    }
    strsim::normalized_damerau_levenshtein(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Names {
        let mut names = Names::default();
        for (name, label) in
            [("p1", "Ada Lovelace"), ("p2", "Ben"), ("p3", "ben"), ("q4", "Ben"), ("Rome", "")]
        {
            let id = EntityId(names.entities.intern(name));
            if !label.is_empty() {
                names.labels.insert(id, label.to_owned());
            }
        }
        for name in ["parent_of", "/people/person/place_of_birth", "/film/film/place_of_birth", "/film/genre"]
        {
            names.relations.intern(name);
        }
        names
    }

    #[track_caller]
    fn refused(text: &str, entity: bool, said: &str) {
        let names = names();
        let lookup = Lookup::new(&names);
        let error = if entity { lookup.entity(text).map(|_| ()) } else { lookup.link(text).map(|_| ()) };
        assert_eq!(error.unwrap_err().to_string(), said);
    }

    #[test]
    fn ids_come_before_labels_and_case_comes_last() {
        let names = names();
        let lookup = Lookup::new(&names);
        assert_eq!(lookup.entity("p2").unwrap(), EntityId(1));
        assert_eq!(lookup.entity("ada lovelace").unwrap(), EntityId(0));
        assert_eq!(lookup.entity("ben").unwrap(), EntityId(2));
        assert_eq!(lookup.entity("rome").unwrap(), EntityId(4));
    }

    #[test]
    fn a_label_of_several_is_said_with_the_id() {
        let names = names();
        let naming = Naming::new(&names);
        let called = |id: u32| naming.of(EntityId(id), &names);
        assert_eq!(
            (0..5).map(called).collect::<Vec<_>>(),
            ["Ada Lovelace", "Ben [p2]", "ben [p3]", "Ben [q4]", "Rome"]
        );
    }

    #[test]
    fn what_is_not_there_is_nearly_there() {
        refused("Ben", true, "`Ben` is the label of 3 entities; say which by its id: p2, p3, q4");
        refused(
            "Ada Lovelase",
            true,
            "the graph has never seen an entity `Ada Lovelase`; did you mean `Ada Lovelace`?",
        );
        refused(
            "Zanzibar",
            true,
            "the graph has never seen an entity `Zanzibar`, nor anything nearly so called",
        );
        refused(
            "parentof",
            false,
            "the graph has never seen a relation `parentof`; did you mean `parent_of`?",
        );
        refused(
            "weight",
            false,
            "the graph has never seen a relation `weight`; its relations are parent_of, \
             /people/person/place_of_birth, /film/film/place_of_birth, /film/genre",
        );
        refused(
            "place_of_birth",
            false,
            "`place_of_birth` could be 2 relations; say which: /people/person/place_of_birth, /film/film/place_of_birth",
        );
    }

    #[test]
    fn a_relation_has_an_inverse_and_a_last_part() {
        let names = names();
        let lookup = Lookup::new(&names);
        let inverse = Link::inverse_of(RelationId(0));
        for text in ["~parent_of", "parent_of^-1", "PARENT_OF⁻¹"] {
            assert_eq!(lookup.link(text).unwrap(), inverse, "{text}");
        }
        assert_eq!(lookup.link("parent_of").unwrap(), Link::forward(RelationId(0)));
        assert_eq!(lookup.link("genre").unwrap(), Link::forward(RelationId(3)));
        let names = Names { relations: ["_part", "_has_part"].into_iter().collect(), ..Names::default() };
        assert_eq!(Lookup::new(&names).link("part").unwrap(), Link::forward(RelationId(0)));
    }
}
