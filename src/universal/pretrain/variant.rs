//! Variants of a graph: what one turn trains on.
//!
//! A handful of graphs is soon learnt by heart, their few relations above all. So every turn has its own variant of a
//! graph: maybe the surroundings of some entities instead of the whole, maybe some of its relations only, maybe with
//! relations that are two in one or the halves of one. From every variant a share of the facts is left out, and what
//! is asked for is among these. So neither the edges nor the comparison of relations knows an answer, as in use.

use super::settings::Variety;
use crate::graph::{Direction, EntityId, Graph, Link, Query, Triple};
use crate::universal::relations::RelationGraph;
use rand::seq::SliceRandom;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::collections::{HashMap, VecDeque};

/// The fewest entities of the surroundings that make a variant.
const SMALLEST_PART: usize = 300;
/// How many neighbours of an entity belong to the surroundings at most.
const FAN: usize = 12;
/// With fewer facts, a change is not made.
const FEWEST_FACTS: usize = 200;
/// The fewest relations that are left of a graph.
const FEWEST_RELATIONS: usize = 3;
/// At most this share of the relations is merged, and of the others split.
const RECUT: f64 = 0.5;
/// How often a variant is drawn again because none of its facts can be asked for.
const ATTEMPTS: u64 = 8;

/// Facts by number.
#[derive(Clone, Debug, Default)]
pub(super) struct Facts {
    pub(super) entities: usize,
    pub(super) relations: usize,
    pub(super) facts: Vec<Triple>,
}

/// A graph, and what is asked over it.
pub(super) struct Variant {
    pub(super) graph: Graph,
    pub(super) relations: RelationGraph,
    /// Queries with one answer each; none of these facts is in the graph.
    pub(super) asked: Vec<(Query, EntityId)>,
    /// All answers of each query.
    answers: HashMap<Query, Vec<EntityId>>,
}

impl Variant {
    /// Variant `number` of `facts`, with at most `most` queries. `graph` is that of the facts.
    pub(super) fn new(
        (facts, graph): (&Facts, &Graph),
        variety: &Variety,
        most: usize,
        (seed, number): (u64, u64),
    ) -> Option<Variant> {
        (0..ATTEMPTS).find_map(|attempt| {
            let mut random = ChaCha8Rng::seed_from_u64(seed);
            random.set_stream(number * ATTEMPTS + attempt);
            let drawn = facts.varied(graph, variety, &mut random);
            Some(drawn.divided(variety.thin, most, &mut random)).filter(|one| !one.asked.is_empty())
        })
    }

    /// The other answers of `query`.
    pub(super) fn others(&self, query: Query, answer: EntityId) -> impl Iterator<Item = EntityId> {
        self.answers[&query].iter().copied().filter(move |&other| other != answer)
    }
}

impl Facts {
    /// A graph that differs from this one as often and as much as `variety` says.
    fn varied(&self, graph: &Graph, variety: &Variety, random: &mut ChaCha8Rng) -> Facts {
        let mut varied = self.clone();
        let mut change = |share: f64, changed: &dyn Fn(&Facts, &mut ChaCha8Rng) -> Facts| {
            if random.random_bool(share) {
                let changed = changed(&varied, random);
                if changed.facts.len() >= FEWEST_FACTS {
                    varied = changed;
                }
            }
        };
        if self.entities > SMALLEST_PART {
            change(variety.part, &|facts, random| facts.part(graph, random));
        }
        change(variety.relations, &Facts::with_some_relations);
        change(variety.recut, &Facts::recut);
        varied.renumbered()
    }

    /// The facts among the surroundings of some entities; how many is drawn by order of magnitude.
    fn part(&self, graph: &Graph, random: &mut ChaCha8Rng) -> Facts {
        let (least, most) = ((SMALLEST_PART as f64).ln(), (self.entities as f64).ln());
        let size = random.random_range(least..most).exp() as usize;
        let inside = surroundings(graph, size, random);
        let facts = self.facts.iter().copied();
        let facts = facts.filter(|fact| inside[fact.head.index()] && inside[fact.tail.index()]).collect();
        Facts { facts, ..*self }
    }

    fn with_some_relations(&self, random: &mut ChaCha8Rng) -> Facts {
        let mut order: Vec<usize> = (0..self.relations).collect();
        order.shuffle(random);
        let kept = (random.random_range(0.2..1.0) * self.relations as f64) as usize;
        let mut keep = vec![false; self.relations];
        order.iter().take(kept.max(FEWEST_RELATIONS)).for_each(|&relation| keep[relation] = true);
        let facts = self.facts.iter().copied().filter(|fact| keep[fact.relation.index()]).collect();
        Facts { facts, ..*self }
    }

    /// Merges some relations in twos and splits some others: by pair, by head or by tail.
    fn recut(&self, random: &mut ChaCha8Rng) -> Facts {
        let mut order: Vec<u32> = (0..self.relations as u32).collect();
        order.shuffle(random);
        let mut some = || (random.random_range(0.0..RECUT) * self.relations as f64) as usize;
        let (merged, split) = (some() / 2 * 2, some());
        let (merged, rest) = order.split_at(merged);
        let mut cuts: Vec<Cut> = (0..self.relations as u32).map(Cut::Whole).collect();
        for pair in merged.chunks_exact(2) {
            cuts[pair[0] as usize] = Cut::Whole(pair[1]);
        }
        for (other, &relation) in (self.relations as u32..).zip(rest.iter().take(split)) {
            let by = [[true, true], [true, false], [false, true]][random.random_range(0..3)];
            cuts[relation as usize] = Cut::Halves { relation, other, by };
        }
        let seed = random.random();
        let recut = |fact: &Triple| {
            Triple::new(fact.head.0, cuts[fact.relation.index()].relation(fact, seed), fact.tail.0)
        };
        let mut facts: Vec<Triple> = self.facts.iter().map(recut).collect();
        facts.sort_unstable();
        facts.dedup();
        Facts { entities: self.entities, relations: self.relations + split, facts }
    }

    /// The same with entities and relations that have facts only.
    fn renumbered(mut self) -> Facts {
        let mut entities = Numbers::new(self.entities);
        let mut relations = Numbers::new(self.relations);
        for fact in &mut self.facts {
            let (head, tail) = (entities.of(fact.head.0), entities.of(fact.tail.0));
            *fact = Triple::new(head, relations.of(fact.relation.0), tail);
        }
        Facts { entities: entities.used as usize, relations: relations.used as usize, facts: self.facts }
    }

    /// Leaves out a share of the facts, `thin` at most, and asks for some of these.
    fn divided(mut self, thin: f64, most: usize, random: &mut ChaCha8Rng) -> Variant {
        self.facts.shuffle(random);
        let share = random.random_range(Variety::THINNEST..=thin);
        let left_out = ((share * self.facts.len() as f64).ceil() as usize).min(self.facts.len());
        let (left_out, kept) = self.facts.split_at(left_out);
        let graph = Graph::new(self.entities, self.relations, kept);
        // What no edge tells anything about cannot be answered.
        let known = |fact: &&Triple| {
            [fact.head, fact.tail].iter().all(|&entity| !graph.edges(entity).is_empty())
                && !graph.pairs(Link::forward(fact.relation)).is_empty()
        };
        let both = |fact: &Triple| [Direction::Forward, Direction::Inverse].map(|way| Query::of(*fact, way));
        let mut asked: Vec<_> = left_out.iter().filter(known).flat_map(both).collect();
        asked.shuffle(random);
        asked.truncate(most);
        let mut answers: HashMap<Query, Vec<EntityId>> =
            asked.iter().map(|&(query, _)| (query, Vec::new())).collect();
        for (query, answer) in self.facts.iter().flat_map(both) {
            if let Some(answers) = answers.get_mut(&query) {
                answers.push(answer);
            }
        }
        Variant { relations: RelationGraph::new(&graph), graph, asked, answers }
    }
}

/// What becomes of a relation.
#[derive(Clone, Copy)]
enum Cut {
    Whole(u32),
    /// Some facts go to another relation, by their head, their tail or both.
    Halves {
        relation: u32,
        other: u32,
        by: [bool; 2],
    },
}

impl Cut {
    fn relation(self, fact: &Triple, seed: u64) -> u32 {
        match self {
            Cut::Whole(relation) => relation,
            Cut::Halves { relation, other, by } => {
                let ends = [fact.head.0, fact.tail.0];
                let mixed =
                    ends.into_iter().zip(by).filter(|&(_, counts)| counts).fold(seed, |mixed, (end, _)| {
                        let mixed = (mixed ^ u64::from(end)).wrapping_mul(0xff51_afd7_ed55_8ccd);
                        mixed ^ (mixed >> 32)
                    });
                if mixed & 1 == 0 { relation } else { other }
            }
        }
    }
}

/// New numbers for those that are used, in order of first use.
struct Numbers {
    numbers: Vec<u32>,
    used: u32,
}

impl Numbers {
    fn new(count: usize) -> Numbers {
        Numbers { numbers: vec![u32::MAX; count], used: 0 }
    }

    fn of(&mut self, old: u32) -> u32 {
        let number = &mut self.numbers[old as usize];
        if *number == u32::MAX {
            *number = self.used;
            self.used += 1;
        }
        *number
    }
}

/// `size` entities around one that is drawn, or around several where that one has not so many: from each, some of its
/// neighbours are visited.
fn surroundings(graph: &Graph, size: usize, random: &mut ChaCha8Rng) -> Vec<bool> {
    let mut inside = vec![false; graph.entities()];
    let (mut found, mut waiting) = (0, VecDeque::new());
    let mut order: Vec<u32> = (0..graph.entities() as u32).collect();
    order.shuffle(random);
    let mut others = order.into_iter().map(EntityId);
    while found < size {
        let Some(entity) = waiting.pop_front().or_else(|| others.next()) else { break };
        if !inside[entity.index()] {
            inside[entity.index()] = true;
            found += 1;
        }
        let edges = graph.edges(entity);
        for _ in 0..FAN.min(edges.len()) {
            let target = edges[random.random_range(0..edges.len())].target;
            if !inside[target.index()] && found < size {
                inside[target.index()] = true;
                found += 1;
                waiting.push_back(target);
            }
        }
    }
    inside
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn facts(entities: u32, relations: u32, count: u32) -> Facts {
        let mut random = ChaCha8Rng::seed_from_u64(5);
        let mut draw = |of: u32| random.random_range(0..of);
        let mut facts: Vec<Triple> =
            (0..count).map(|_| Triple::new(draw(entities), draw(relations), draw(entities))).collect();
        facts.sort_unstable();
        facts.dedup();
        Facts { entities: entities as usize, relations: relations as usize, facts }
    }

    fn variants(facts: &Facts, variety: &Variety) -> Vec<Variant> {
        let graph = Graph::new(facts.entities, facts.relations, &facts.facts);
        (0..20).map(|number| Variant::new((facts, &graph), variety, 64, (3, number)).unwrap()).collect()
    }

    #[test]
    fn what_is_asked_for_is_not_in_the_graph_and_can_be_answered() {
        let variety = Variety { thin: 0.4, part: 0.5, relations: 0.5, recut: 0.5 };
        for variant in variants(&facts(900, 8, 5000), &variety) {
            assert!(!variant.asked.is_empty() && variant.asked.len() <= 64);
            for &(query, answer) in &variant.asked {
                assert!(!variant.graph.contains(query.subject, query.link, answer));
                assert!(!variant.graph.edges(query.subject).is_empty());
                assert!(!variant.graph.edges(answer).is_empty());
                let known = variant.graph.targets(query.subject, query.link);
                let others: HashSet<EntityId> = variant.others(query, answer).collect();
                assert!(known.iter().all(|other| others.contains(other)) && !others.contains(&answer));
            }
        }
    }

    #[test]
    fn variants_differ_in_size_and_relations_and_have_no_gaps() {
        let whole = facts(900, 8, 5000);
        let variety = Variety { thin: 0.3, part: 0.5, relations: 0.5, recut: 0.5 };
        let variants = variants(&whole, &variety);
        let sizes: HashSet<usize> = variants.iter().map(|one| one.graph.entities()).collect();
        let relations: HashSet<usize> = variants.iter().map(|one| one.graph.relations()).collect();
        assert!(sizes.len() > 3 && relations.len() > 3, "{sizes:?} {relations:?}");
        assert!(relations.iter().any(|&count| count > 8), "{relations:?}");
        assert!(variants.iter().all(|one| one.graph.entities() <= 900));
    }

    #[test]
    fn without_variety_only_the_facts_left_out_differ() {
        let whole = facts(900, 8, 5000);
        let plain = Variety { thin: 0.1, part: 0.0, relations: 0.0, recut: 0.0 };
        for variant in variants(&whole, &plain) {
            let edges: usize = (0..variant.graph.entities() as u32)
                .map(|entity| variant.graph.edges(EntityId(entity)).len())
                .sum();
            assert!(edges / 2 >= whole.facts.len() * 9 / 10 - 1 && edges / 2 < whole.facts.len());
            assert_eq!(variant.graph.relations(), 8);
        }
    }

    #[test]
    fn a_relation_that_is_split_by_head_keeps_the_facts_of_a_head_together() {
        let cut = Cut::Halves { relation: 0, other: 1, by: [true, false] };
        let halves: HashSet<u32> = (0..50).map(|head| cut.relation(&Triple::new(head, 0, 1), 9)).collect();
        assert_eq!(halves.len(), 2);
        for head in 0..50 {
            let of = |tail| cut.relation(&Triple::new(head, 0, tail), 9);
            assert!((0..20).all(|tail| of(tail) == of(0)));
        }
    }

    #[test]
    fn too_few_facts_have_no_variant() {
        let one = Facts { entities: 2, relations: 1, facts: vec![Triple::new(0, 0, 1)] };
        let graph = Graph::new(2, 1, &one.facts);
        assert!(Variant::new((&one, &graph), &Variety::default(), 8, (1, 0)).is_none());
    }
}
