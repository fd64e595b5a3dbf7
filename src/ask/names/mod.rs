//! Name lookup: ids, labels, relations and their inverses, completion and suggestions; and unambiguous display names.

mod complete;
mod naming;

pub use complete::Completion;
pub use naming::Naming;

use super::AskError;
use crate::graph::{Direction, EntityId, Graph, Link, Names, Query, RelationId, Vocabulary};
use crate::shown::shortened;
use crate::suggest::{fold, nearest};
use complete::{Sorted, nearly};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// How many relations an error lists when none is similar to what was typed.
const LISTED: usize = 12;
/// How many entities an error suggests by similar words.
const SUGGESTED: usize = 5;

/// What a name may stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NamedItem {
    /// An entity.
    Entity(EntityId),
    /// A relation.
    Relation(RelationId),
}

/// Names as people type them. Accents and case are ignored if there is no exact match.
pub struct NameIndex {
    names: Arc<Names>,
    /// Entities by their folded labels, computed when the first text is no id.
    by_label: OnceLock<HashMap<String, Vec<EntityId>>>,
    /// Entities and relations for completion, computed on first use.
    sorted: [OnceLock<Sorted>; 2],
}

impl NameIndex {
    /// An index of `names`.
    pub fn new(names: &Arc<Names>) -> Self {
        Self {
            names: Arc::clone(names),
            by_label: OnceLock::new(),
            sorted: [OnceLock::new(), OnceLock::new()],
        }
    }

    /// The entity called `text`: by its id, which may be abbreviated (`ex:ada`), else by its label, in any case.
    ///
    /// # Errors
    /// If there is none, with similar names; or if several have that label, with their ids.
    pub fn entity(&self, text: &str) -> Result<EntityId, AskError> {
        if let Some(id) = self.id_in(&self.names.entities, text) {
            return Ok(EntityId(id));
        }
        let folded = fold(text);
        let found: &[EntityId] = match self.by_label().get(&folded) {
            // Names without letters or digits fold to nothing, which is no name that anybody types.
            _ if folded.is_empty() => &[],
            Some(found) => found,
            None => &self.by_folded_name(&folded),
        };
        let exact: Vec<EntityId> =
            found.iter().copied().filter(|&entity| self.names.label(entity) == text).collect();
        match (found, &exact[..]) {
            (&[entity], _) | (_, &[entity]) => Ok(entity),
            ([], _) => {
                let spellings = entity_names(&self.names).map(|(_, name)| name);
                let mut near = nearest(text, spellings);
                if near.is_empty() {
                    // No name is similar as a whole; one may have similar words.
                    let alike = self.sorted_entities().completions(text, SUGGESTED, |_| 0);
                    near =
                        alike.iter().take(SUGGESTED).map(|one| self.names.label(EntityId(one.id))).collect();
                }
                Err(unknown("an entity", text, &near))
            }
            (several, _) => {
                let ids: Vec<&str> =
                    several.iter().take(12).map(|&entity| self.names.entity(entity)).collect();
                let more = if several.len() > ids.len() { ", …" } else { "" };
                let text = shortened(text);
                let message = format!(
                    "`{text}` is the label of {} entities; use an id: {}{more}",
                    several.len(),
                    ids.join(", ")
                );
                Err(AskError::name(message, &ids))
            }
        }
    }

    fn by_label(&self) -> &HashMap<String, Vec<EntityId>> {
        self.by_label.get_or_init(|| {
            let mut by_label: HashMap<String, Vec<EntityId>> = HashMap::new();
            for (entity, label) in self.names.labels.iter() {
                by_label.entry(fold(label)).or_default().push(entity);
            }
            for entities in by_label.values_mut() {
                entities.sort_unstable();
            }
            by_label
        })
    }

    /// The id of `text`, or of the IRI that it abbreviates.
    fn id_in(&self, vocabulary: &Vocabulary, text: &str) -> Option<u32> {
        let expanded = || vocabulary.get(&self.names.prefixes.expand(text)?);
        vocabulary.get(text).or_else(expanded)
    }

    fn sorted_entities(&self) -> &Sorted {
        self.sorted[0].get_or_init(|| Sorted::new(entity_names(&self.names)))
    }

    fn by_folded_name(&self, folded: &str) -> Vec<EntityId> {
        let everything = self.names.entities.iter().zip(0..);
        everything.filter(|(name, _)| fold(name) == folded).map(|(_, id)| EntityId(id)).collect()
    }

    /// The entities that may be meant by `typed`, at most `limit`, and whether there are more: those whose name starts
    /// with it, then those with a word that does, the ones with most edges in `graph` first; then names that contain it,
    /// and if there are none of all these, names with similar words.
    pub fn complete_entity(&self, typed: &str, graph: &Graph, limit: usize) -> (Vec<Completion>, bool) {
        let names = &*self.names;
        let edges = |id| graph.edges(EntityId(id)).len();
        let mut found = self.sorted_entities().completions(typed, limit, edges);
        if found.is_empty() {
            found = nearly(typed, entity_names(names));
        }
        cut(found, limit)
    }

    /// The same for relations, the ones with most facts in `graph` first.
    pub fn complete_relation(&self, typed: &str, graph: &Graph, limit: usize) -> (Vec<Completion>, bool) {
        let names = &*self.names;
        let sorted = self.sorted[1].get_or_init(|| Sorted::new(relation_names(names)));
        let facts = |id| graph.pairs(Link::forward(RelationId(id))).len();
        let mut found = sorted.completions(typed, limit, facts);
        if found.is_empty() {
            found = nearly(typed, relation_names(names));
        }
        cut(found, limit)
    }

    /// What may be meant by `typed`, entities and relations together, at most `limit`, and whether there are more.
    /// Relations that begin with it come first, since there are few of them, and so do those that are only similar to it
    /// if all entities are, too; the others come last.
    pub fn complete_any(&self, typed: &str, graph: &Graph, limit: usize) -> (Vec<NamedItem>, bool) {
        let (relations, more_relations) = self.complete_relation(typed, graph, limit);
        let (entities, more_entities) = self.complete_entity(typed, graph, limit);
        let (names, folded) = (&self.names, fold(typed));
        let has = |found: &Completion| {
            let entity = EntityId(found.id);
            [names.entity(entity), names.label(entity)].iter().any(|name| fold(name).contains(&folded))
        };
        let guessed = !entities.iter().any(has);
        let begins = |found: &Completion| {
            let relation = RelationId(found.id);
            [names.relation(relation), names.relation_label(relation)]
                .iter()
                .any(|name| fold(name).starts_with(&folded))
        };
        let (first, last): (Vec<_>, Vec<_>) =
            relations.into_iter().partition(|found| guessed || begins(found));
        let room = limit.div_ceil(3).max(limit.saturating_sub(entities.len()));
        let relation = |found: &Completion| NamedItem::Relation(RelationId(found.id));
        let entity = |found: &Completion| NamedItem::Entity(EntityId(found.id));
        let all: Vec<NamedItem> = (first.iter().take(room).map(relation))
            .chain(entities.iter().map(entity))
            .chain(last.iter().map(relation))
            .collect();
        let more = more_relations || more_entities || all.len() > limit || first.len() > room;
        (all.into_iter().take(limit).collect(), more)
    }

    /// The relation called `text`, in any case or by a last part that no other relation has, or the inverse of
    /// one: `~parent_of`, `parent_of^-1` or `parent_of⁻¹`.
    ///
    /// # Errors
    /// If there is none, with similar names; or if several match.
    pub fn link(&self, text: &str) -> Result<Link, AskError> {
        // A relation's own name may look like an inverse; the exact name wins.
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

    /// The query of one line of a query file, `SUBJECT<TAB>RELATION`.
    ///
    /// # Errors
    /// If the line is malformed or has an unknown name: the reason in words.
    pub fn query(&self, line: &[u8]) -> Result<Query, String> {
        let line = std::str::from_utf8(line).map_err(|_| "expected UTF-8, found other bytes".to_owned())?;
        let fields: Vec<&str> = line.split('\t').collect();
        let [subject, relation] = fields[..] else {
            return Err(match fields.len() {
                1 => "expected SUBJECT<TAB>RELATION, found no tab".to_owned(),
                found => format!("expected 2 fields, SUBJECT<TAB>RELATION, found {found}"),
            });
        };
        let subject = self.entity(subject).map_err(|error| error.to_string())?;
        let link = self.link(relation).map_err(|error| error.to_string())?;
        Ok(Query { subject, link })
    }

    /// What else `text` may mean as a relation, if one relation is named like the inverse of another.
    pub fn other_meaning(&self, text: &str) -> Option<String> {
        let own = |name: &&str| self.names.relations.get(name).is_some();
        let relation = text.strip_prefix('~').filter(own)?;
        own(&text).then(|| {
            let (text, relation) = (shortened(text), shortened(relation));
            format!("`{text}` is a relation of its own here; the inverse of `{relation}` is `{relation}^-1`")
        })
    }

    fn relation(&self, text: &str) -> Result<RelationId, AskError> {
        if let Some(id) = self.id_in(&self.names.relations, text) {
            return Ok(RelationId(id));
        }
        let all = || relation_names(&self.names).map(|(id, name)| (name, RelationId(id)));
        let folded = fold(text);
        // Case does not matter, nor do marks before the name: `hypernym` is `_hypernym`.
        let bare = |name: &str| fold(name).trim_start_matches(|c: char| !c.is_alphanumeric()).to_owned();
        if folded.is_empty() {
            return Err(AskError::name("expected the name of a relation, found nothing".to_owned(), &[]));
        }
        let same: Vec<_> = all().filter(|(name, _)| fold(name) == folded || bare(name) == folded).collect();
        let ends = |name: &str| {
            let name = fold(name);
            let before = name.strip_suffix(&folded).and_then(|before| before.chars().last());
            before.is_some_and(|character| !character.is_alphanumeric())
        };
        let mut found = if same.is_empty() { all().filter(|(name, _)| ends(name)).collect() } else { same };
        // A relation may match by both its name and its label.
        found.dedup_by_key(|(_, relation)| *relation);
        match &found[..] {
            [(_, relation)] => Ok(*relation),
            [] => Err(self.unknown_relation(text)),
            several => {
                let names: Vec<&str> = several.iter().take(12).map(|(name, _)| *name).collect();
                let text = shortened(text);
                let message =
                    format!("`{text}` matches {} relations; use one of: {}", several.len(), names.join(", "));
                Err(AskError::name(message, &names))
            }
        }
    }

    /// "There is no such relation", with the nearest, or with all if they are few.
    fn unknown_relation(&self, text: &str) -> AskError {
        let relations = &self.names.relations;
        let nearest = nearest(text, relation_names(&self.names).map(|(_, name)| name));
        if nearest.is_empty() && (1..=LISTED).contains(&relations.len()) {
            let all: Vec<&str> = relations.iter().collect();
            let (listed, text) = (all.join(", "), shortened(text));
            let message = format!("the graph does not have a relation `{text}`; its relations are {listed}");
            return AskError::name(message, &all);
        }
        unknown("a relation", text, &nearest)
    }
}

/// Every entity with its label and its id.
fn entity_names(names: &Names) -> impl Iterator<Item = (u32, &str)> + Clone {
    (0..names.entities.len() as u32).flat_map(|id| {
        let label = names.labels.get(EntityId(id));
        label.into_iter().chain([names.entity(EntityId(id))]).map(move |name| (id, name))
    })
}

/// Every relation with its label and its name.
fn relation_names(names: &Names) -> impl Iterator<Item = (u32, &str)> + Clone {
    (0..names.relations.len() as u32).flat_map(|id| {
        let label = names.relation_labels.get(RelationId(id));
        label.into_iter().chain([names.relation(RelationId(id))]).map(move |name| (id, name))
    })
}

fn cut(mut found: Vec<Completion>, limit: usize) -> (Vec<Completion>, bool) {
    let more = found.len() > limit;
    found.truncate(limit);
    (found, more)
}

/// "There is no such thing", with the `nearest` names.
fn unknown(what: &str, text: &str, nearest: &[&str]) -> AskError {
    let text = shortened(text);
    let near: Vec<_> = nearest.iter().map(|name| shortened(name)).collect();
    let message = match &near[..] {
        [] => format!("the graph does not have {what} `{text}`, nor one with a similar name"),
        [only] => format!("the graph does not have {what} `{text}`; did you mean `{only}`?"),
        _ => format!("the graph does not have {what} `{text}`; did you mean one of {}?", near.join(", ")),
    };
    AskError::name(message, nearest)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names() -> Arc<Names> {
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
        names.into()
    }

    #[track_caller]
    fn refused(text: &str, entity: bool, reported: &str) {
        let names = names();
        let index = NameIndex::new(&names);
        let error = if entity { index.entity(text).map(|_| ()) } else { index.link(text).map(|_| ()) };
        assert_eq!(error.unwrap_err().to_string(), reported);
    }

    #[test]
    fn ids_come_before_labels_and_case_comes_last() {
        let names = names();
        let index = NameIndex::new(&names);
        assert_eq!(index.entity("p2").unwrap(), EntityId(1));
        assert_eq!(index.entity("ada lovelace").unwrap(), EntityId(0));
        assert_eq!(index.entity("ben").unwrap(), EntityId(2));
        assert_eq!(index.entity("rome").unwrap(), EntityId(4));
    }

    #[test]
    fn an_abbreviated_id_is_an_id_whatever_the_label() {
        let mut names = Names::default();
        names.prefixes.add("ex", "http://example.org/");
        let ada = EntityId(names.entities.intern("http://example.org/ada"));
        names.labels.insert(ada, "Ada Lovelace".to_owned());
        names.entities.intern("ex:eve");
        names.entities.intern("http://example.org/eve");
        let knows = RelationId(names.relations.intern("http://example.org/knows"));
        names.relation_labels.insert(knows, "is acquainted with".to_owned());
        let index = NameIndex::new(&names.into());
        assert_eq!(index.entity("ex:ada").unwrap(), ada);
        // The name of an entity as it is comes before what it may abbreviate.
        assert_eq!(index.entity("ex:eve").unwrap(), EntityId(1));
        assert_eq!(index.link("ex:knows").unwrap(), Link::forward(knows));
        assert_eq!(index.link("~ex:knows").unwrap(), Link::inverse_of(knows));
        assert!(index.entity("ex:bob").is_err() && index.entity("other:ada").is_err());
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
        refused("Ben", true, "`Ben` is the label of 3 entities; use an id: p2, p3, q4");
        refused(
            "Ada Lovelase",
            true,
            "the graph does not have an entity `Ada Lovelase`; did you mean `Ada Lovelace`?",
        );
        // No name is similar as a whole, but one has the word.
        refused(
            "Lovelaec",
            true,
            "the graph does not have an entity `Lovelaec`; did you mean `Ada Lovelace`?",
        );
        refused(
            "Zanzibar",
            true,
            "the graph does not have an entity `Zanzibar`, nor one with a similar name",
        );
        refused(
            "parentof",
            false,
            "the graph does not have a relation `parentof`; did you mean `parent_of`?",
        );
        refused(
            "weight",
            false,
            "the graph does not have a relation `weight`; its relations are parent_of, \
             /people/person/place_of_birth, /film/film/place_of_birth, /film/genre",
        );
        refused(
            "place_of_birth",
            false,
            "`place_of_birth` matches 2 relations; use one of: /people/person/place_of_birth, /film/film/place_of_birth",
        );
    }

    #[test]
    fn one_box_finds_entities_and_relations() {
        let names = names();
        let graph = Graph::new(5, 4, &[]);
        let found = |typed: &str, limit| NameIndex::new(&names).complete_any(typed, &graph, limit).0;
        assert_eq!(found("parent", 5), [NamedItem::Relation(RelationId(0))]);
        assert_eq!(found("Lovelaec", 5), [NamedItem::Entity(EntityId(0))]);
        // "be" begins three entities and no relation.
        assert_eq!(found("be", 2), [NamedItem::Entity(EntityId(1)), NamedItem::Entity(EntityId(2))]);
        // "p": one relation begins with it, three have a word that does; entities stand between them.
        let all = found("p", 10);
        assert_eq!(all[0], NamedItem::Relation(RelationId(0)));
        assert_eq!(all[1..3], [1, 2].map(|id| NamedItem::Entity(EntityId(id - 1))));
        assert!(all[4..].iter().all(|one| matches!(one, NamedItem::Relation(_))) && all.len() > 5, "{all:?}");
        assert_eq!(found("zzzz", 5), []);
        // Misspelt: the relation comes before entities that are no better guesses.
        assert_eq!(found("parnt", 5)[0], NamedItem::Relation(RelationId(0)));
    }

    #[test]
    fn a_long_name_is_not_repeated_whole() {
        let (names, long) = (names(), "x".repeat(100_000));
        let lookup = NameIndex::new(&names);
        for reported in [lookup.entity(&long).unwrap_err(), lookup.link(&long).unwrap_err()] {
            let reported = reported.to_string();
            assert!(
                reported.starts_with("the graph does not have") && reported.len() < 1000,
                "{}",
                reported.len()
            );
        }
    }

    #[test]
    fn a_relation_called_like_an_inverse_is_itself_and_that_is_said() {
        let names =
            Names { relations: ["inv", "~inv", "~only"].into_iter().collect(), ..Names::default() }.into();
        let lookup = NameIndex::new(&names);
        assert_eq!(lookup.link("~inv").unwrap(), Link::forward(RelationId(1)));
        assert_eq!(lookup.link("inv^-1").unwrap(), Link::inverse_of(RelationId(0)));
        assert_eq!(lookup.link("~~inv").unwrap(), Link::inverse_of(RelationId(1)));
        let reported = "`~inv` is a relation of its own here; the inverse of `inv` is `inv^-1`";
        assert_eq!(lookup.other_meaning("~inv").as_deref(), Some(reported));
        for clear in ["inv", "~only", "~~inv", "nothing"] {
            assert_eq!(lookup.other_meaning(clear), None, "{clear}");
        }
    }

    #[test]
    fn a_relation_has_an_inverse_and_a_last_part() {
        let names = names();
        let index = NameIndex::new(&names);
        let inverse = Link::inverse_of(RelationId(0));
        for text in ["~parent_of", "parent_of^-1", "PARENT_OF⁻¹"] {
            assert_eq!(index.link(text).unwrap(), inverse, "{text}");
        }
        assert_eq!(index.link("parent_of").unwrap(), Link::forward(RelationId(0)));
        assert_eq!(index.link("genre").unwrap(), Link::forward(RelationId(3)));
        let relations = ["_part", "_has_part"].into_iter().collect();
        let names = Arc::new(Names { relations, ..Names::default() });
        assert_eq!(NameIndex::new(&names).link("part").unwrap(), Link::forward(RelationId(0)));
    }
}
