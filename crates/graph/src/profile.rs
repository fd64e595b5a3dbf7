//! A profile of each relation of a data set: how often it is used, whether a subject has one object and an object one
//! subject, and which relations have the same facts, in the same direction or inverted.

use super::{Adjacency, Dataset, Direction, Edge, EntityId, Link, RelationId, TypeId};
use rayon::prelude::*;
use serde::Serialize;
use std::collections::HashMap;

/// A relation is functional if at least this share of its subjects has exactly one object.
const ONE: f64 = 0.95;
/// Two relations are related if at least this share of the facts of one is in the other.
const RELATED: f64 = 0.5;
/// At least this many facts have to be shared, or all of them if there are fewer: less may be coincidence.
const SHARED: usize = 3;
/// A relation implies another if at least this share of its facts is in the other, and the reverse does not hold.
const IMPLIES: f64 = 0.9;
/// So many entities are looked at, spread evenly, to see whether relations are transitive, and so many paths of each.
const LOOKED_AT: usize = 20_000;
const MOST_PATHS: usize = 256;
/// Two entities joined by more links than this are skipped: every link would be compared with every other.
const MOST_LINKS: usize = 256;
/// So many types are listed of each side of a relation.
const MOST_TYPES: usize = 5;

/// One relation over all splits. The field names are a contract with users' scripts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelationProfile {
    /// Its name.
    pub relation: String,
    /// Its label, or its name where it has none.
    pub label: String,
    /// Distinct facts in all splits.
    pub facts: usize,
    /// Distinct heads.
    pub subjects: usize,
    /// Distinct tails.
    pub objects: usize,
    /// The share of subjects that have exactly one object.
    pub one_object: f64,
    /// The share of objects that have exactly one subject.
    pub one_subject: f64,
    /// Whether nearly every subject has exactly one object.
    pub functional: bool,
    /// Whether nearly every object has exactly one subject.
    pub inverse_functional: bool,
    /// The share of its facts `(x, y)`, `x` and `y` different, for which `(y, x)` is a fact too.
    pub symmetric: f64,
    /// The share of its paths of two facts, `(x, y)` and `(y, z)` with three different entities, for which `(x, z)` is a
    /// fact too; in a large graph, of a sample.
    pub transitive: f64,
    /// Facts that lead from an entity to itself.
    pub reflexive: usize,
    /// The types of its subjects, the most frequent first; at most five.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub subject_types: Vec<TypeCount>,
    /// The same of its objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub object_types: Vec<TypeCount>,
    /// Other relations that contain many of its facts inverted, the closest first.
    pub inverse_of: Vec<RelatedRelation>,
    /// Other relations that contain many of its facts, the closest first.
    pub same_as: Vec<RelatedRelation>,
}

/// A type of the entities on one side of a relation.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TypeCount {
    /// The label of the type, or its name where it has none.
    #[serde(rename = "type")]
    pub of: String,
    /// How many of the entities have it.
    pub entities: usize,
}

/// Another relation with the same pairs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RelatedRelation {
    /// Its name.
    pub relation: String,
    /// How many facts they share.
    pub shared: usize,
    /// The share of this relation's facts that are shared.
    pub share: f64,
    /// The share of the other relation's facts that are shared.
    pub share_of_other: f64,
    /// How the two are related.
    pub how: Likeness,
}

/// How a relation is related to another, whose facts may be taken inverted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    /// Many facts of at least one are in the other.
    Same,
    /// Nearly all of its facts are in the other, which has more.
    Implies,
    /// Nearly all facts of the other are in it, which has more.
    ImpliedBy,
}

impl Likeness {
    fn of(share: f64, share_of_other: f64) -> Self {
        match (share >= IMPLIES, share_of_other >= IMPLIES) {
            (true, false) => Self::Implies,
            (false, true) => Self::ImpliedBy,
            _ => Self::Same,
        }
    }
}

/// How many facts two relations share; the second with its direction.
type Shared = HashMap<(RelationId, Link), usize>;

impl RelationProfile {
    /// The profiles of all relations of `dataset`, most facts first.
    pub fn all(dataset: &Dataset) -> Vec<Self> {
        let answers = dataset.answers();
        let counts = Counts::of(&answers, Link::count(dataset.names.relations.len()));
        let relations = (0..dataset.names.relations.len() as u32).map(RelationId);
        let types = types_of_links(dataset, &answers);
        let mut related: HashMap<RelationId, Vec<(Link, usize)>> = HashMap::new();
        for (&(relation, link), &shared) in &counts.shared {
            related.entry(relation).or_default().push((link, shared));
        }
        let mut all: Vec<Self> = relations
            .map(|relation| {
                let related = related.get(&relation).map_or(&[][..], Vec::as_slice);
                let of = |link: Link| types.get(&link).cloned().unwrap_or_default();
                Self {
                    subject_types: of(Link::forward(relation)),
                    object_types: of(Link::inverse_of(relation)),
                    ..counts.profile(dataset, relation, related)
                }
            })
            .collect();
        all.sort_by_key(|profile| std::cmp::Reverse(profile.facts));
        all
    }
}

/// The most frequent types of the entities from which each link leads.
fn types_of_links(dataset: &Dataset, answers: &Adjacency) -> HashMap<Link, Vec<TypeCount>> {
    let types = &dataset.names.types;
    let mut counts: HashMap<Link, HashMap<TypeId, usize>> = HashMap::new();
    if types.typed() == 0 {
        return HashMap::new();
    }
    for entity in (0..answers.entities() as u32).map(EntityId) {
        let of = types.each_of(entity);
        for run in answers.edges(entity).chunk_by(|a, b| a.link == b.link) {
            let counted = counts.entry(run[0].link).or_default();
            of.iter().for_each(|&of| *counted.entry(of).or_default() += 1);
        }
    }
    let listed = |counts: HashMap<TypeId, usize>| {
        let mut all: Vec<(TypeId, usize)> = counts.into_iter().collect();
        all.sort_by_key(|&(of, entities)| (std::cmp::Reverse(entities), types.height(of), of));
        all.truncate(MOST_TYPES);
        all.into_iter().map(|(of, entities)| TypeCount { of: types.label(of).to_owned(), entities }).collect()
    };
    counts.into_iter().map(|(link, counts)| (link, listed(counts))).collect()
}

/// What is counted over all entities.
struct Counts {
    /// For each link: its sources, the sources with exactly one target, its pairs, and its pairs of an entity with
    /// itself.
    links: Vec<[usize; 4]>,
    shared: Shared,
    /// For each link: paths of two of its facts, and those that a third closes.
    paths: Vec<[usize; 2]>,
    /// One in so many entities is looked at for those.
    one_in: u32,
}

impl Counts {
    fn of(answers: &Adjacency, links: usize) -> Self {
        let one_in = answers.entities().div_ceil(LOOKED_AT).max(1) as u32;
        let none = || Counts {
            links: vec![[0; 4]; links],
            shared: Shared::new(),
            paths: vec![[0; 2]; links],
            one_in,
        };
        let entities = (0..answers.entities() as u32).into_par_iter().with_min_len(1024).map(EntityId);
        let count = |mut counts: Counts, entity| {
            counts.add(answers, entity);
            counts
        };
        entities.fold(none, count).reduce(none, Counts::and)
    }

    fn add(&mut self, answers: &Adjacency, entity: EntityId) {
        let edges = answers.edges(entity);
        for run in edges.chunk_by(|a, b| a.link == b.link) {
            let own = run.iter().filter(|edge| edge.target == entity).count();
            let counted = &mut self.links[run[0].link.index()];
            for (sum, more) in counted.iter_mut().zip([1, usize::from(run.len() == 1), run.len(), own]) {
                *sum += more;
            }
            if run[0].link.direction() == Direction::Forward && entity.0.is_multiple_of(self.one_in) {
                self.follow(answers, entity, run);
            }
        }
        let mut by_target = edges.to_vec();
        by_target.sort_unstable_by_key(|edge| (edge.target, edge.link));
        for joined in by_target.chunk_by(|a, b| a.target == b.target) {
            if joined[0].target == entity || joined.len() > MOST_LINKS {
                continue;
            }
            for edge in joined.iter().filter(|edge| edge.link.direction() == Direction::Forward) {
                let Some(relation) = edge.link.relation() else { continue };
                for other in joined.iter().filter(|other| other.link != edge.link) {
                    *self.shared.entry((relation, other.link)).or_default() += 1;
                }
            }
        }
    }

    /// Counts the paths of two facts that begin at `entity` with a fact of `run`, which are all of one relation.
    fn follow(&mut self, answers: &Adjacency, entity: EntityId, run: &[Edge]) {
        let link = run[0].link;
        let [paths, closed] = &mut self.paths[link.index()];
        let mut left = MOST_PATHS;
        for middle in run.iter().map(|edge| edge.target).filter(|&middle| middle != entity) {
            for end in answers.edges_by(middle, link).iter().map(|edge| edge.target) {
                if end == entity || end == middle {
                    continue;
                }
                *paths += 1;
                *closed += usize::from(run.binary_search_by_key(&end, |edge| edge.target).is_ok());
                left -= 1;
                if left == 0 {
                    return;
                }
            }
        }
    }

    fn and(mut self, other: Counts) -> Self {
        for (sum, more) in self.paths.iter_mut().zip(other.paths) {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        for (sum, more) in self.links.iter_mut().zip(other.links) {
            sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
        }
        other.shared.into_iter().for_each(|(pair, more)| *self.shared.entry(pair).or_default() += more);
        self
    }

    fn profile(&self, dataset: &Dataset, relation: RelationId, related: &[(Link, usize)]) -> RelationProfile {
        let names = &dataset.names;
        let (forward, inverse) = (Link::forward(relation), Link::inverse_of(relation));
        let [subjects, single_objects, facts, reflexive] = self.links[forward.index()];
        let [objects, single_subjects, ..] = self.links[inverse.index()];
        let share = |part: usize, of: usize| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        let (one_object, one_subject) = (share(single_objects, subjects), share(single_subjects, objects));
        let others = |direction: Direction| {
            let mut found: Vec<RelatedRelation> = Vec::new();
            for &(link, shared) in related.iter().filter(|(link, _)| link.direction() == direction) {
                let other = link.relation().expect("an edge of the graph has a relation");
                let in_other = self.links[Link::forward(other).index()][2];
                let (of_this, of_other) = (share(shared, facts), share(shared, in_other));
                let related = RelatedRelation {
                    relation: names.relation(other).to_owned(),
                    shared,
                    share: of_this,
                    share_of_other: of_other,
                    how: Likeness::of(of_this, of_other),
                };
                let enough =
                    shared >= SHARED.min(facts) && related.share.max(related.share_of_other) >= RELATED;
                if other != relation && enough {
                    found.push(related);
                }
            }
            found.sort_by(|a, b| b.shared.cmp(&a.shared).then_with(|| a.relation.cmp(&b.relation)));
            found
        };
        let turned = related.iter().find(|(link, _)| *link == inverse).map_or(0, |(_, shared)| *shared);
        RelationProfile {
            relation: names.relation(relation).to_owned(),
            label: names.relation_label(relation).to_owned(),
            facts,
            subjects,
            objects,
            one_object,
            one_subject,
            functional: one_object >= ONE,
            inverse_functional: one_subject >= ONE,
            symmetric: share(turned, facts - reflexive),
            transitive: {
                let [paths, closed] = self.paths[forward.index()];
                share(closed, paths)
            },
            reflexive,
            subject_types: Vec::new(),
            object_types: Vec::new(),
            inverse_of: others(Direction::Inverse),
            same_as: others(Direction::Forward),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Known, Names, Triple};
    use std::sync::Arc;

    fn profiles(
        relations: &[&str],
        facts: &[(u32, u32, u32)],
        test: &[(u32, u32, u32)],
    ) -> Vec<RelationProfile> {
        let list = |facts: &[(u32, u32, u32)]| -> crate::Array<Triple> {
            facts.iter().map(|&(head, relation, tail)| Triple::new(head, relation, tail)).collect()
        };
        let (facts, entities) = (list(facts), (0..30).map(|id| id.to_string()).collect::<Vec<_>>());
        RelationProfile::all(&Dataset {
            names: Arc::new(Names {
                entities: entities.iter().map(String::as_str).collect(),
                relations: relations.iter().copied().collect(),
                ..Names::default()
            }),
            known: Known { queries: facts.clone(), facts, ..Known::default() },
            test: list(test),
            ..Dataset::default()
        })
    }

    #[test]
    fn a_relation_its_inverse_and_its_double_are_recognised() {
        let mut facts = Vec::new();
        for child in 0..10 {
            facts.extend([(child, 0, 20 + child % 3), (20 + child % 3, 1, child)]);
            facts.push((child, 2, (child + 5) % 10));
            if child < 6 {
                facts.push((child, 3, 20 + child % 3));
            }
        }
        let found = profiles(&["child_of", "parent_of", "twin_of", "son_of"], &facts, &[(9, 3, 20)]);
        let named = |name: &str| found.iter().find(|profile| profile.relation == name).unwrap();
        let child = named("child_of");
        assert_eq!((child.facts, child.subjects, child.objects), (10, 10, 3));
        assert!(child.functional && !child.inverse_functional && child.symmetric == 0.0);
        let parent = &child.inverse_of[0];
        assert_eq!((parent.relation.as_str(), parent.shared, parent.share), ("parent_of", 10, 1.0));
        assert_eq!(child.inverse_of.len(), 1);
        assert!(named("parent_of").inverse_functional && !named("parent_of").functional);
        let twins = named("twin_of");
        assert_eq!((twins.symmetric, twins.functional, twins.inverse_functional), (1.0, true, true));
        // The test split counts too: the seventh son.
        let son = named("son_of");
        assert_eq!((son.facts, son.same_as[0].relation.as_str(), son.same_as[0].share), (7, "child_of", 1.0));
        assert_eq!(child.same_as[0].share_of_other, 1.0);
        assert_eq!((son.same_as[0].how, child.same_as[0].how), (Likeness::Implies, Likeness::ImpliedBy));
        assert_eq!(parent.how, Likeness::Same);
    }

    #[test]
    fn a_relation_is_as_transitive_as_its_paths_are_closed() {
        // A chain of five with all shortcuts, and one of three with none.
        let chain = (0..5).flat_map(|from| (from + 1..5).map(move |to| (from, 0, to)));
        let facts: Vec<(u32, u32, u32)> =
            chain.chain([(10, 1, 11), (11, 1, 12), (11, 1, 10), (12, 1, 12)]).collect();
        let found = profiles(&["before", "next"], &facts, &[]);
        assert_eq!((found[0].transitive, found[1].transitive), (1.0, 0.0));
        let open = profiles(&["before"], &[(0, 0, 1), (1, 0, 2), (0, 0, 2), (2, 0, 3)], &[]);
        // 0–1–2 is closed; 0–2–3 and 1–2–3 are not.
        assert_eq!(open[0].transitive, 1.0 / 3.0);
    }

    #[test]
    fn types_count_their_kinds() {
        let mut types = crate::TypesBuilder::default();
        (0..3).for_each(|id| types.add(EntityId(id), "Novel"));
        types.add(EntityId(3), "Book");
        types.add_parent("Novel", "Book");
        types.add_parent("Book", "Work");
        let facts = [(0, 0, 9), (1, 0, 9), (2, 0, 9), (3, 0, 9)].map(|(h, r, t)| Triple::new(h, r, t));
        let entities: Vec<String> = (0..10).map(|id| id.to_string()).collect();
        let found = RelationProfile::all(&Dataset {
            names: Arc::new(Names {
                entities: entities.iter().map(String::as_str).collect(),
                relations: ["by"].into_iter().collect(),
                types: types.finish(),
                ..Names::default()
            }),
            known: Known { facts: facts.into(), ..Known::default() },
            ..Dataset::default()
        });
        let of: Vec<(&str, usize)> =
            found[0].subject_types.iter().map(|one| (&*one.of, one.entities)).collect();
        assert_eq!(of, [("Book", 4), ("Work", 4), ("Novel", 3)]);
    }

    #[test]
    fn a_relation_has_types_on_both_sides() {
        let mut types = crate::TypesBuilder::default();
        (0..3).for_each(|id| types.add(EntityId(id), "Drug"));
        types.add(EntityId(2), "Protein");
        types.add(EntityId(9), "Disease");
        let facts = [(0, 0, 9), (1, 0, 9), (2, 0, 9), (2, 0, 8)].map(|(h, r, t)| Triple::new(h, r, t));
        let entities: Vec<String> = (0..10).map(|id| id.to_string()).collect();
        let found = RelationProfile::all(&Dataset {
            names: Arc::new(Names {
                entities: entities.iter().map(String::as_str).collect(),
                relations: ["treats"].into_iter().collect(),
                types: types.finish(),
                ..Names::default()
            }),
            known: Known { facts: facts.into(), ..Known::default() },
            ..Dataset::default()
        });
        let of = |of: &str, entities| TypeCount { of: of.to_owned(), entities };
        assert_eq!(found[0].subject_types, [of("Drug", 3), of("Protein", 1)]);
        assert_eq!(found[0].object_types, [of("Disease", 1)]);
    }

    #[test]
    fn one_entity_and_a_relation_without_facts_have_a_profile() {
        let found = profiles(&["knows", "never"], &[(0, 0, 0)], &[]);
        let knows = &found[0];
        assert_eq!((knows.facts, knows.subjects, knows.objects, knows.reflexive), (1, 1, 1, 1));
        assert_eq!((knows.symmetric, knows.functional), (0.0, true));
        assert_eq!((found[1].facts, found[1].functional), (0, false));
    }
}
