//! Whether an entity is of a kind that a side of a relation has: by its types, and by the relations that it has.
//!
//! For a link `q` and a type `t`, let `n` be the entities of `t` and `k` those of them that are answers of `q`; `π` is
//! the share of answers among all entities. With one pseudo-count, the evidence of `t` is the log-odds ratio
//!
//! ```text
//! ln ((k + π) / (n + 1)) − ln π
//! ```
//!
//! which is 0 for a type without members. The candidate itself is counted in neither, so a fact is no evidence for
//! itself. Of an entity's types only the most specific ones count, and the one that fits best decides; entities
//! without types are a kind of their own. The relations that an entity has are a soft type: the mean of the same
//! ratio over them. Tables are made on first use, for each link.

use crate::config::TypesMode;
use crate::graph::{Edge, EntityId, Graph, Link, Names, TypeId};
use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, OnceLock};

/// The type of entities that have none.
const UNTYPED: u32 = u32::MAX;
/// The relation whose objects are types: that an entity has a type is what is asked for.
const RDF_TYPE: &str = "http://www.w3.org/1999/02/22-rdf-syntax-ns#type";

/// The kinds of entities on each side of each relation.
pub struct Kinds {
    graph: Arc<Graph>,
    names: Arc<Names>,
    mode: TypesMode,
    members: OnceLock<Members>,
    sides: Vec<OnceLock<Side>>,
}

/// Which entities have which types.
struct Members {
    /// Entity and type, sorted: the types that no other type of the entity is a kind of.
    specific: Vec<[u32; 2]>,
    /// The same with all types that these are kinds of.
    all: Vec<[u32; 2]>,
    /// How many entities each type has.
    sizes: HashMap<u32, u32>,
    /// How many entities have a type.
    typed: u32,
}

/// What a link leads to.
struct Side {
    /// How many entities.
    answers: u32,
    /// How many of each type.
    typed: HashMap<u32, u32>,
    /// The types that are declared for it, with their kinds; `None` if none is.
    declared: Option<BTreeSet<TypeId>>,
    /// By link: the evidence that an entity with it gives, if it is no answer itself, and if it is one.
    linked: Vec<[f32; 2]>,
}

impl Kinds {
    /// The kinds of the entities of `graph`.
    pub fn new(graph: &Arc<Graph>, names: &Arc<Names>, mode: TypesMode) -> Self {
        let sides = (0..graph.links()).map(|_| OnceLock::new()).collect();
        Self { graph: Arc::clone(graph), names: Arc::clone(names), mode, members: OnceLock::new(), sides }
    }

    /// Whether they are evidence for answers.
    pub fn are_used(&self) -> bool {
        self.mode != TypesMode::Off
    }

    /// Whether candidates of other kinds are no candidates.
    pub fn are_strict(&self) -> bool {
        self.mode == TypesMode::Strict && !self.names.types.is_empty()
    }

    /// How many entities there are.
    pub(super) fn entities(&self) -> usize {
        self.graph.entities()
    }

    /// How well the types and the relations of `entity` fit what `link` leads to; 0 says nothing.
    pub fn fit(&self, link: Link, entity: EntityId) -> [f32; 2] {
        if link.is_reserved() || self.is_type_relation(link) {
            return [0.0; 2];
        }
        let side = self.side(link);
        if side.answers == 0 {
            return [0.0; 2];
        }
        let is_answer = self.is_answer(link, entity);
        [self.by_types(side, entity, is_answer), self.by_relations(side, link, entity, is_answer)]
    }

    /// Whether `entity` has a type that is declared for what `link` leads to or, if none is declared, one that an answer
    /// beside it has.
    pub fn admits(&self, link: Link, entity: EntityId) -> bool {
        if link.is_reserved() || self.is_type_relation(link) {
            return true;
        }
        let side = self.side(link);
        let members = self.members();
        if let Some(declared) = &side.declared {
            return members.all_types(entity).any(|of| declared.contains(&TypeId(of)));
        }
        let mut types = members.types(entity);
        let own = u32::from(self.is_answer(link, entity));
        // A relation without other answers says nothing.
        side.answers == own || types.any(|of| side.typed.get(&of).is_some_and(|&with| with > own))
    }

    /// The type of `entity` that fits `link` best, with how many of its entities beside this one are answers, and how
    /// many there are; `None` without types.
    pub fn best_type(&self, link: Link, entity: EntityId) -> Option<(TypeId, u32, u32)> {
        if self.names.types.is_empty() || link.is_reserved() || self.is_type_relation(link) {
            return None;
        }
        let (side, own) = (self.side(link), u32::from(self.is_answer(link, entity)));
        let members = self.members();
        let counted = members.types(entity).filter(|&of| of != UNTYPED).map(|of| {
            let with = side.typed.get(&of).map_or(0, |with| with - own);
            (TypeId(of), with, members.size(of) - 1)
        });
        let share = |&(_, with, all): &(TypeId, u32, u32)| f64::from(with) / f64::from(all.max(1));
        counted.max_by(|a, b| share(a).total_cmp(&share(b)).then(b.0.cmp(&a.0)))
    }

    fn by_types(&self, side: &Side, entity: EntityId, is_answer: bool) -> f32 {
        if self.names.types.is_empty() {
            return 0.0;
        }
        let (members, own) = (self.members(), u32::from(is_answer));
        let entities = self.graph.entities() as u32;
        let of_type = |of: u32| {
            let all = if of == UNTYPED { entities - members.typed } else { members.size(of) };
            let with = side.typed.get(&of).copied().unwrap_or(0) - own;
            evidence(with, all - 1, side.answers - own, entities - 1)
        };
        members.types(entity).map(of_type).fold(f32::NEG_INFINITY, f32::max)
    }

    fn by_relations(&self, side: &Side, link: Link, entity: EntityId, is_answer: bool) -> f32 {
        let (mut sum, mut count) = (0.0, 0.0);
        let mut edges = self.graph.edges(entity);
        while let Some(first) = edges.first() {
            // That it is an answer itself is a feature of its own.
            if first.link != link.reversed() {
                sum += side.linked[first.link.index()][usize::from(is_answer)];
                count += 1.0;
            }
            edges = &edges[run_length(edges)..];
        }
        if count > 0.0 { sum / count } else { 0.0 }
    }

    fn is_answer(&self, link: Link, entity: EntityId) -> bool {
        self.graph.pairs(link.reversed()).sources.binary_search(&entity).is_ok()
    }

    fn is_type_relation(&self, link: Link) -> bool {
        !self.names.types.is_empty()
            && link.relation().is_some_and(|relation| self.names.relation(relation) == RDF_TYPE)
    }

    fn members(&self) -> &Members {
        self.members.get_or_init(|| Members::of(&self.names))
    }

    fn side(&self, link: Link) -> &Side {
        self.sides[link.index()].get_or_init(|| self.counted(link))
    }

    fn counted(&self, link: Link) -> Side {
        let answers = self.graph.pairs(link.reversed()).sources;
        let (mut typed, mut with) = (HashMap::new(), vec![0u32; self.graph.links()]);
        let types = (!self.names.types.is_empty()).then(|| self.members());
        for &answer in answers {
            if let Some(members) = types {
                members.all_types(answer).for_each(|of| *typed.entry(of).or_insert(0) += 1);
            }
            let mut edges = self.graph.edges(answer);
            while let Some(first) = edges.first() {
                with[first.link.index()] += 1;
                edges = &edges[run_length(edges)..];
            }
        }
        let (answers, entities) = (answers.len() as u32, self.graph.entities() as u32);
        let linked = with.iter().enumerate().map(|(at, &with)| {
            let all = self.graph.pairs(Link(at as u32)).sources.len() as u32;
            // Only entities that have the link look here, so it has at least one beside the entity or it alone.
            [0, 1].map(|own| match all {
                0 => 0.0,
                _ => evidence(with.saturating_sub(own), all - 1, answers.saturating_sub(own), entities - 1),
            })
        });
        Side { answers, typed, declared: self.declared(link), linked: linked.collect() }
    }

    fn declared(&self, link: Link) -> Option<BTreeSet<TypeId>> {
        let types = &self.names.types;
        // What a link leads to is where its reverse starts.
        let (relation, side) = (link.relation()?, link.reversed().direction());
        let declared: BTreeSet<TypeId> =
            types.declared(relation, side).flat_map(|of| types.kinds(of)).collect();
        (!declared.is_empty()).then_some(declared)
    }
}

impl Members {
    fn of(names: &Names) -> Self {
        let types = &names.types;
        let mut ancestors: HashMap<TypeId, Vec<u32>> = HashMap::new();
        let (mut all, mut stated): (Vec<[u32; 2]>, Vec<[u32; 2]>) = (Vec::new(), Vec::new());
        for (entity, of) in types.iter() {
            let with_parents = ancestors
                .entry(of)
                .or_insert_with(|| types.with_ancestors(of).into_iter().map(|of| of.0).collect());
            all.extend(with_parents.iter().map(|&of| [entity.0, of]));
            stated.push([entity.0, of.0]);
        }
        all.sort_unstable();
        all.dedup();
        let (mut sizes, mut both): (HashMap<u32, u32>, HashMap<[u32; 2], u32>) = Default::default();
        for of_entity in all.chunk_by(|a, b| a[0] == b[0]) {
            of_entity.iter().for_each(|pair| *sizes.entry(pair[1]).or_insert(0) += 1);
        }
        for of_entity in stated.chunk_by(|a, b| a[0] == b[0]).filter(|types| types.len() > 1) {
            let pairs = of_entity.iter().flat_map(|a| of_entity.iter().map(move |b| [a[1], b[1]]));
            pairs.filter(|pair| pair[0] != pair[1]).for_each(|pair| *both.entry(pair).or_insert(0) += 1);
        }
        // A type that has every entity of a smaller one says no more about these, whether that is declared or not.
        let is_general = |wide: u32, of_entity: &[[u32; 2]]| {
            of_entity.iter().any(|&[_, narrow]| {
                narrow != wide
                    && sizes[&wide] > sizes[&narrow]
                    && (ancestors[&TypeId(narrow)].contains(&wide)
                        || both.get(&[narrow, wide]) == Some(&sizes[&narrow]))
            })
        };
        let specific = stated
            .chunk_by(|a, b| a[0] == b[0])
            .flat_map(|of_entity| of_entity.iter().filter(|pair| !is_general(pair[1], of_entity)))
            .copied()
            .collect();
        let typed = stated.chunk_by(|a, b| a[0] == b[0]).count() as u32;
        Self { specific, all, sizes, typed }
    }

    /// The most specific types of `entity`; if it has none, that.
    fn types(&self, entity: EntityId) -> impl Iterator<Item = u32> {
        or_untyped(&self.specific, entity)
    }

    fn all_types(&self, entity: EntityId) -> impl Iterator<Item = u32> {
        or_untyped(&self.all, entity)
    }

    fn size(&self, of: u32) -> u32 {
        self.sizes.get(&of).copied().unwrap_or(0)
    }
}

/// The second ids of the pairs of `entity`; [`UNTYPED`] if there are none.
fn or_untyped(pairs: &[[u32; 2]], entity: EntityId) -> impl Iterator<Item = u32> {
    let from = pairs.partition_point(|pair| pair[0] < entity.0);
    let own = pairs[from..].iter().take_while(move |pair| pair[0] == entity.0).map(|pair| pair[1]);
    let none = pairs.get(from).is_none_or(|pair| pair[0] != entity.0);
    own.chain(none.then_some(UNTYPED))
}

/// The log-odds ratio of a kind with `all` entities, `with` of which are among the `answers` of all `entities`.
fn evidence(with: u32, all: u32, answers: u32, entities: u32) -> f32 {
    if answers == 0 {
        return 0.0;
    }
    let share = f64::from(answers) / f64::from(entities);
    (((f64::from(with) + share) / (f64::from(all) + 1.0)).ln() - share.ln()) as f32
}

/// How many of the first `edges` have the same link: a hub may have a million of one.
fn run_length(edges: &[Edge]) -> usize {
    match edges {
        [first, second, ..] if first.link == second.link => {
            edges.partition_point(|edge| edge.link == first.link)
        }
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Direction, RelationId, Triple, TypesBuilder};
    use rand::{Rng, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    const ENTITIES: u32 = 12;
    const RELATIONS: u32 = 3;
    const TYPES: [&str; 4] = ["a", "b", "c", "d"];

    /// A drawn graph over entities with drawn types: a and b are kinds of c; nothing is said about d.
    fn drawn(random: &mut ChaCha8Rng, declares: bool) -> (Arc<Graph>, Arc<Names>) {
        let mut one_of = |most: u32| random.next_u32() % most;
        let facts: Vec<Triple> =
            (0..25).map(|_| Triple::new(one_of(ENTITIES), one_of(RELATIONS), one_of(ENTITIES))).collect();
        let mut types = TypesBuilder::default();
        for entity in (0..ENTITIES).map(EntityId) {
            for _ in 0..one_of(3) {
                types.add(entity, TYPES[one_of(4) as usize]);
            }
        }
        types.add_parent("a", "c");
        types.add_parent("b", "c");
        if declares {
            types.declare(RelationId(0), Direction::Inverse, "c");
        }
        let names = Names {
            relations: ["r", "s", "t"].into_iter().collect(),
            types: types.finish(),
            ..Names::default()
        };
        (Arc::new(Graph::new(ENTITIES as usize, RELATIONS as usize, &facts)), Arc::new(names))
    }

    fn is_answer(graph: &Graph, link: Link, entity: u32) -> bool {
        graph.edges(EntityId(entity)).iter().any(|edge| edge.link == link.reversed())
    }

    /// The evidence of a kind, counted one by one over all entities but one.
    fn naive(graph: &Graph, link: Link, but: u32, has: impl Fn(u32) -> bool) -> f64 {
        let others = || (0..ENTITIES).filter(|&entity| entity != but);
        let answers = others().filter(|&entity| is_answer(graph, link, entity)).count() as f64;
        let share = answers / others().count() as f64;
        let all = others().filter(|&entity| has(entity)).count() as f64;
        let with = others().filter(|&entity| has(entity) && is_answer(graph, link, entity)).count() as f64;
        if answers == 0.0 { 0.0 } else { ((with + share) / (all + 1.0)).ln() - share.ln() }
    }

    fn links() -> impl Iterator<Item = Link> {
        (0..RELATIONS).flat_map(|id| [Link::forward(RelationId(id)), Link::inverse_of(RelationId(id))])
    }

    #[test]
    fn the_fit_is_that_of_counting_one_by_one() {
        let mut random = ChaCha8Rng::seed_from_u64(3);
        let (mut typed, mut linked) = (0, 0);
        for _ in 0..20 {
            let (graph, names) = drawn(&mut random, false);
            let types = &names.types;
            let kinds = Kinds::new(&graph, &names, TypesMode::Soft);
            let all_of = |entity: u32| types.all_of(EntityId(entity));
            for (link, entity) in links().flat_map(|link| (0..ENTITIES).map(move |entity| (link, entity))) {
                let [by_types, by_relations] = kinds.fit(link, EntityId(entity)).map(f64::from);
                // c is of no use beside a or b, and types that happen to have all entities of another neither.
                let stated: Vec<TypeId> = types.of(EntityId(entity)).collect();
                let size = |of: &TypeId| (0..ENTITIES).filter(|&other| all_of(other).contains(of)).count();
                let has_all_of = |wide: &TypeId, narrow: &TypeId| {
                    let states = |other: &u32, of: &TypeId| types.of(EntityId(*other)).any(|one| one == *of);
                    let both = (0..ENTITIES).filter(|other| states(other, narrow) && states(other, wide));
                    let is_kind = types.with_ancestors(*narrow).contains(wide);
                    size(wide) > size(narrow) && (is_kind || both.count() == size(narrow))
                };
                let specific =
                    stated.iter().filter(|wide| !stated.iter().any(|narrow| has_all_of(wide, narrow)));
                let best = specific
                    .map(|of| naive(&graph, link, entity, |other| all_of(other).contains(of)))
                    .reduce(f64::max);
                let untyped = || naive(&graph, link, entity, |other| all_of(other).is_empty());
                let expected = best.unwrap_or_else(untyped);
                assert!((by_types - expected).abs() < 1e-5, "{by_types} {expected}");
                typed += usize::from(expected != 0.0);
                let has =
                    |other: u32, by: Link| graph.edges(EntityId(other)).iter().any(|edge| edge.link == by);
                let own: Vec<Link> = links().filter(|&by| by != link.reversed() && has(entity, by)).collect();
                let sum: f64 =
                    own.iter().map(|&by| naive(&graph, link, entity, |other| has(other, by))).sum();
                let expected = if own.is_empty() { 0.0 } else { sum / own.len() as f64 };
                assert!((by_relations - expected).abs() < 1e-5, "{by_relations} {expected}");
                linked += usize::from(expected != 0.0);
            }
        }
        assert!(typed > 500 && linked > 500, "{typed} {linked}");
    }

    #[test]
    fn strict_candidates_are_of_a_declared_type_or_of_one_that_occurs() {
        let mut random = ChaCha8Rng::seed_from_u64(4);
        let mut refused = 0;
        for _ in 0..20 {
            let (graph, names) = drawn(&mut random, true);
            let types = &names.types;
            let kinds = Kinds::new(&graph, &names, TypesMode::Strict);
            assert!(kinds.are_strict());
            let link = Link::forward(RelationId(0));
            let c = types.find("c").unwrap();
            for entity in (0..ENTITIES).map(EntityId) {
                assert_eq!(kinds.admits(link, entity), types.all_of(entity).contains(&c), "declared");
                // The other end is not declared.
                let back = link.reversed();
                let other_answers: Vec<u32> = (0..ENTITIES)
                    .filter(|&other| other != entity.0 && is_answer(&graph, back, other))
                    .collect();
                let has = |of: TypeId| {
                    other_answers.iter().any(|&other| types.all_of(EntityId(other)).contains(&of))
                };
                let untyped =
                    || other_answers.iter().any(|&other| types.of(EntityId(other)).next().is_none());
                let stated: Vec<TypeId> = types.of(entity).collect();
                let admitted = kinds.admits(back, entity);
                let occurs = if stated.is_empty() { untyped() } else { stated.iter().any(|&of| has(of)) };
                // A general type may occur where the specific one of the entity does not.
                assert!(!admitted || occurs || other_answers.is_empty(), "{admitted} {stated:?}");
                refused += usize::from(!admitted);
                if other_answers.is_empty() || (stated.len() < 2 && occurs) {
                    assert!(admitted);
                }
            }
        }
        assert!(refused > 10, "{refused}");
        let (graph, _) = drawn(&mut random, true);
        let kinds = Kinds::new(&graph, &Arc::default(), TypesMode::Strict);
        assert!(!kinds.are_strict(), "without types nothing is left out");
    }

    #[test]
    fn having_a_type_is_no_evidence_for_having_it() {
        let mut types = TypesBuilder::default();
        types.add(EntityId(0), "Drug");
        let names =
            Names { relations: [RDF_TYPE].into_iter().collect(), types: types.finish(), ..Names::default() };
        let graph = Arc::new(Graph::new(3, 1, &[Triple::new(0, 0, 2)]));
        let kinds = Kinds::new(&graph, &Arc::new(names), TypesMode::Strict);
        let asked = Link::inverse_of(RelationId(0));
        assert_eq!(kinds.fit(asked, EntityId(0)), [0.0; 2]);
        assert!(kinds.admits(asked, EntityId(1)));
    }
}
