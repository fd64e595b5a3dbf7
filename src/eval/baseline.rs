//! Baselines: figures that need no model, beside which those of a model can be judged.
//!
//! *Popularity* ranks the candidates of a query by how many known facts of the relation have them as an answer.
//! *Similar subjects* ranks them by the answers of those subjects that share most facts with the one asked about, each
//! subject counted by how much it shares. Both see what was learnt from and nothing else, and the queries, the filter
//! and the ties are those of the evaluation beside which they stand.

use super::ranking::{Place, rank_all_listed, rank_among_counts};
use super::{Ranked, Scored, Ties, Truth};
use crate::graph::{Adjacency, Direction, Edge, EntityId, Graph, Link, Query, Triple};
use rayon::prelude::*;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A fact that more subjects share than this says little about any of them; hubs would also take long.
const SHARED_BY: usize = 256;
/// How many similar subjects are looked at.
const SUBJECTS: usize = 50;
/// The weight of a shared fact is this divided by the number of subjects that share it, as a whole number: sums of whole
/// numbers do not depend on their order.
const SHARED: u32 = 1 << 24;

/// The known facts, as the baselines count them.
pub struct Baselines<'a> {
    known: Cow<'a, Adjacency>,
    /// For each link, how often each of its answers is one, most often first.
    counts: BTreeMap<Link, Vec<u32>>,
}

/// The rank of a target by each baseline.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct BaselineRanks {
    pub popularity: f64,
    pub similar: f64,
}

impl<'a> Baselines<'a> {
    /// What is known: the facts of `graph`, and of `queries` if a data set keeps the facts that are learnt apart from its
    /// graph.
    pub fn new(graph: &'a Graph, queries: &[Triple]) -> Self {
        let stated = |fact: &Triple| graph.contains(fact.head, Link::forward(fact.relation), fact.tail);
        let known = match queries.iter().all(stated) {
            true => Cow::Borrowed(graph.adjacency()),
            false => {
                let facts: Vec<Triple> = facts(graph).collect();
                Cow::Owned(Adjacency::new(graph.entities(), &[&facts, queries]))
            }
        };
        let mut counts: BTreeMap<Link, Vec<u32>> = BTreeMap::new();
        for entity in (0..known.entities() as u32).map(EntityId) {
            for run in known.edges(entity).chunk_by(|a, b| a.link == b.link) {
                // An edge away from an entity is one towards it in the other direction.
                counts.entry(run[0].link.reversed()).or_default().push(run.len() as u32);
            }
        }
        counts.values_mut().for_each(|counts| counts.sort_unstable_by(|a, b| b.cmp(a)));
        Self { known, counts }
    }

    /// The ranks of those `asked` whose own rank is known, in their order; `None` for the others.
    pub(super) fn ranks(&self, asked: &[Ranked], truth: Truth<'_>, ties: Ties) -> Vec<Option<BaselineRanks>> {
        let mut order: Vec<usize> = (0..asked.len()).filter(|&at| !asked[at].rank.is_nan()).collect();
        order.sort_by_key(|&at| (asked[at].query.link, asked[at].query.subject));
        let of_query = |group: &[usize]| -> Vec<(usize, BaselineRanks)> {
            let query = asked[group[0]].query;
            let similar = self.similar(query);
            let others = truth.answers.edges_by(query.subject, query.link);
            let targets: Vec<EntityId> = group.iter().map(|&at| asked[at].target).collect();
            let similar = rank_all_listed(&similar, self.known.entities(), others, &targets, ties);
            let similar = similar.map_or_else(|| vec![f64::NAN; group.len()], ranks_of);
            let popularity = self.popularity(query, &targets, others, ties);
            let ranks = popularity.into_iter().zip(similar);
            let ranks = ranks.map(|(popularity, similar)| BaselineRanks { popularity, similar });
            group.iter().copied().zip(ranks).collect()
        };
        let groups: Vec<&[usize]> = order.chunk_by(|&a, &b| asked[a].query == asked[b].query).collect();
        let found: Vec<Vec<(usize, BaselineRanks)>> = groups.into_par_iter().map(of_query).collect();
        let mut ranks = vec![None; asked.len()];
        found.into_iter().flatten().for_each(|(at, rank)| ranks[at] = Some(rank));
        ranks
    }

    /// How many known facts have `entity` as an answer over `link`.
    fn count(&self, link: Link, entity: EntityId) -> u32 {
        self.known.edges_by(entity, link.reversed()).len() as u32
    }

    /// The ranks of `targets` by popularity; `others` are the true answers. Sorted counts stand for all entities, so that it
    /// takes no time that grows with their number.
    fn popularity(&self, query: Query, targets: &[EntityId], others: &[Edge], ties: Ties) -> Vec<f64> {
        let (link, entities) = (query.link, self.known.entities());
        if ties == Ties::Published {
            // Its order of ties goes by the ids of all entities.
            let all = (0..entities as u32).map(EntityId).map(|entity| (entity, self.count(link, entity)));
            let listed = all.filter(|(_, count)| *count > 0);
            let listed: Vec<Scored> =
                listed.map(|(entity, count)| Scored { entity, score: f64::from(count) }).collect();
            let ranks = rank_all_listed(&listed, entities, others, targets, ties);
            return ranks.map_or_else(|| vec![f64::NAN; targets.len()], ranks_of);
        }
        let counts = self.counts.get(&link).map_or(&[][..], Vec::as_slice);
        let count = |entity: EntityId| self.count(link, entity);
        rank_among_counts(counts, entities, count, others, targets, ties)
    }

    /// The answers of the subjects that are most similar to the one asked about, with their scores. A fact that few share
    /// counts more than one that many share.
    fn similar(&self, query: Query) -> Vec<Scored> {
        let mut shared = Vec::new();
        for edge in self.known.edges(query.subject) {
            let subjects = self.known.edges_by(edge.target, edge.link.reversed());
            if subjects.len() <= SHARED_BY {
                let weight = f64::from(SHARED / subjects.len() as u32);
                shared.extend(subjects.iter().map(|other| Scored { entity: other.target, score: weight }));
            }
        }
        let mut subjects = summed(shared);
        let answers = |subject: EntityId| self.known.edges_by(subject, query.link);
        subjects.retain(|other| other.entity != query.subject && !answers(other.entity).is_empty());
        subjects.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entity.cmp(&b.entity)));
        subjects.truncate(SUBJECTS);
        let of_subject = |other: &Scored| {
            let score = other.score;
            answers(other.entity).iter().map(move |edge| Scored { entity: edge.target, score })
        };
        summed(subjects.iter().flat_map(of_subject).collect())
    }
}

/// The facts of a graph.
fn facts(graph: &Graph) -> impl Iterator<Item = Triple> + '_ {
    (0..graph.entities() as u32).map(EntityId).flat_map(move |head| {
        let forward = graph.edges(head).iter().filter(|edge| edge.link.direction() == Direction::Forward);
        forward
            .filter_map(move |edge| Some(Triple { head, relation: edge.link.relation()?, tail: edge.target }))
    })
}

/// The sum of the scores of each entity, by id.
fn summed(mut scores: Vec<Scored>) -> Vec<Scored> {
    scores.sort_unstable_by_key(|scored| scored.entity);
    let same = scores.chunk_by(|a, b| a.entity == b.entity);
    same.map(|run| Scored { entity: run[0].entity, score: run.iter().map(|scored| scored.score).sum() })
        .collect()
}

fn ranks_of(places: Vec<Place>) -> Vec<f64> {
    places.into_iter().map(|place| place.rank).collect()
}

#[cfg(test)]
mod tests {
    use super::super::ranking::{rank_dense, rank_listed};
    use super::super::{Protocol, Side};
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    const ENTITIES: u32 = 9;
    const ALL: [Ties; 4] = [Ties::Realistic, Ties::Optimistic, Ties::Pessimistic, Ties::Published];

    fn triples(set: &BTreeSet<(u32, u32, u32)>) -> Vec<Triple> {
        set.iter().map(|&(head, relation, tail)| Triple::new(head, relation, tail)).collect()
    }

    /// All facts in the direction of a query: subject, relation, answer.
    fn turned(facts: &[Triple], direction: Direction) -> Vec<(u32, u32, u32)> {
        let turn = |fact: &Triple| match direction {
            Direction::Forward => (fact.head.0, fact.relation.0, fact.tail.0),
            Direction::Inverse => (fact.tail.0, fact.relation.0, fact.head.0),
        };
        facts.iter().map(turn).collect()
    }

    /// How often each entity answers `relation`, counted fact by fact.
    fn popularity(facts: &[Triple], relation: u32, direction: Direction) -> Vec<f32> {
        let answers = |entity| {
            turned(facts, direction).iter().filter(|fact| (fact.1, fact.2) == (relation, entity)).count()
        };
        (0..ENTITIES).map(|entity| answers(entity) as f32).collect()
    }

    /// The score of each entity by the subjects that share facts with `subject`, which are so few that none is left out.
    fn similar(facts: &[Triple], subject: u32, relation: u32, direction: Direction) -> Vec<f64> {
        let facts = facts.iter().map(|fact| (fact.head.0, fact.relation.0, fact.tail.0));
        let facts: BTreeSet<(u32, u32, u32)> = facts.collect();
        let mut scores = vec![0.0; ENTITIES as usize];
        for other in (0..ENTITIES).filter(|&other| other != subject) {
            let mut shared = 0;
            for way in [true, false] {
                let has = |who: u32, relation: u32, what: u32| {
                    facts.contains(&if way { (who, relation, what) } else { (what, relation, who) })
                };
                for (relation, what) in (0..2).flat_map(|r| (0..ENTITIES).map(move |what| (r, what))) {
                    if has(subject, relation, what) && has(other, relation, what) {
                        let all = (0..ENTITIES).filter(|&who| has(who, relation, what)).count();
                        shared += SHARED / all as u32;
                    }
                }
            }
            for answer in 0..ENTITIES {
                let fact = match direction {
                    Direction::Forward => (other, relation, answer),
                    Direction::Inverse => (answer, relation, other),
                };
                scores[answer as usize] += if facts.contains(&fact) { f64::from(shared) } else { 0.0 };
            }
        }
        scores
    }

    proptest! {
        #[test]
        fn both_rank_as_a_naive_count_does(
            graph in prop::collection::btree_set((0..ENTITIES, 0..2u32, 0..ENTITIES), 0..30),
            apart in prop::collection::btree_set((0..ENTITIES, 0..2u32, 0..ENTITIES), 0..4),
            test in prop::collection::btree_set((0..ENTITIES, 0..2u32, 0..ENTITIES), 1..6),
        ) {
            let (known, apart, test) = (triples(&graph), triples(&apart), triples(&test));
            let graph = Graph::new(ENTITIES as usize, 2, &known);
            let answers = Adjacency::new(ENTITIES as usize, &[&known, &apart, &test]);
            let truth = Truth { graph: &graph, answers: &answers };
            let all: Vec<Triple> = known.iter().chain(&apart).copied().collect::<BTreeSet<_>>().into_iter().collect();
            let baselines = Baselines::new(&graph, &apart);
            let ranked = |(query, target)| Ranked { query, target, rank: 1.0, tied: 0 };
            let asked: Vec<Ranked> = Side::Both.asked(&test).map(ranked).collect();
            for ties in ALL {
                let ranks = baselines.ranks(&asked, truth, ties);
                for (&Ranked { query, target, .. }, found) in asked.iter().zip(ranks) {
                    let others = answers.edges_by(query.subject, query.link);
                    let (relation, direction) = (query.link.relation().unwrap().0, query.link.direction());
                    let found = found.unwrap();
                    let scores = popularity(&all, relation, direction);
                    let listed: Vec<Scored> = scores.iter().zip(0..).filter(|(score, _)| **score > 0.0)
                        .map(|(&score, id)| Scored { entity: EntityId(id), score: score.into() }).collect();
                    // What nobody has as an answer is not listed; only the published order of ties tells the difference.
                    let expected = match ties {
                        Ties::Published => rank_listed(&listed, ENTITIES as usize, others, target, ties),
                        _ => rank_dense(&scores, others, target, ties),
                    };
                    prop_assert_eq!(Some(found.popularity), expected.map(|place| place.rank), "popularity, {:?}", ties);
                    if ties != Ties::Published {
                        let scores = similar(&all, query.subject.0, relation, direction);
                        let all: Vec<Scored> = scores.iter().zip(0..)
                            .map(|(&score, id)| Scored { entity: EntityId(id), score }).collect();
                        let expected = rank_listed(&all, ENTITIES as usize, others, target, ties);
                        prop_assert_eq!(Some(found.similar), expected.map(|place| place.rank), "similar, {:?}", ties);
                    }
                }
            }
        }
    }

    #[test]
    fn what_another_part_ranks_has_no_rank_here() {
        let facts = [Triple::new(0, 0, 1)];
        let graph = Graph::new(2, 1, &facts);
        let truth = Truth { graph: &graph, answers: &Adjacency::new(2, &[&facts]) };
        let (query, target) = Query::of(facts[0], Direction::Forward);
        let asked = [1.0, f64::NAN].map(|rank| Ranked { query, target, rank, tied: 0 });
        let ranks = Baselines::new(&graph, &facts).ranks(&asked, truth, Protocol::default().ties);
        assert_eq!(ranks[0], Some(BaselineRanks { popularity: 1.0, similar: 1.5 }));
        assert_eq!(ranks[1], None);
    }
}
