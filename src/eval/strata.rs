//! Figures by situation: how far the answer is from the subject, whether it was seen with the relation, how much is known of
//! the subject, how many rules predict it.
//!
//! A mean over all queries hides that some of them ask for what lies beside the subject and others for what nothing leads
//! to. A [`Situation`] is that of a query and its true answer in the graph that was answered on; it knows no model, except
//! for the number of rules, which a caller may add.

use super::{Figures, Ranked};
use crate::graph::{EntityId, Graph, Query};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The longest distance that is told from none: as many hops as a propagator has layers by default, so that what is farther
/// is out of its reach.
pub const FARTHEST: u8 = 2 * HALF;
/// How far one end looks.
const HALF: u8 = 3;

/// The situation of a query and its answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Situation {
    /// How many edges the shortest path from the subject to the answer has; absent if it has more than [`FARTHEST`], or
    /// there is none.
    pub distance: Option<u8>,
    /// Whether the graph has the answer as one to another question with the same link.
    pub seen: bool,
    /// How many edges the subject has.
    pub degree: usize,
    /// How many rules predict the answer, if that was counted.
    pub rules: Option<usize>,
}

/// The figures of the queries in one situation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Stratum {
    /// What divides the queries: `distance`, `seen`, `degree` or `rules`.
    pub by: String,
    /// Which of its values.
    pub value: String,
    /// Their figures.
    #[serde(flatten)]
    pub figures: Figures,
}

impl Stratum {
    /// What its value is said of, as the heading above those of one division.
    pub fn about(&self) -> &'static str {
        match self.by.as_str() {
            "distance" => "from the subject to the answer",
            "seen" => "the answer was seen",
            "degree" => "the subject has",
            _ => "the answer is predicted by",
        }
    }
}

/// The situations of all queries, in their order.
pub fn situations(graph: &Graph, asked: &[Ranked]) -> Vec<Situation> {
    let mut order: Vec<u32> = (0..asked.len() as u32).collect();
    order.sort_unstable_by_key(|&at| asked[at as usize].query.subject);
    let by_subject: Vec<&[u32]> =
        order.chunk_by(|&a, &b| asked[a as usize].query.subject == asked[b as usize].query.subject).collect();
    let new = || [Nearby::new(graph), Nearby::new(graph)];
    let mut found: Vec<(u32, Situation)> = by_subject
        .par_iter()
        .map_init(new, |[nearby, other], group| {
            let subject = asked[group[0] as usize].query.subject;
            nearby.spread(graph, subject);
            let mut of = |&at: &u32| {
                let Ranked { query, target, .. } = asked[at as usize];
                (at, situation(graph, nearby.distance(graph, target, other), query, target))
            };
            group.iter().map(&mut of).collect::<Vec<_>>()
        })
        .flatten_iter()
        .collect();
    found.sort_unstable_by_key(|(at, _)| *at);
    found.into_iter().map(|(_, situation)| situation).collect()
}

fn situation(graph: &Graph, distance: Option<u8>, query: Query, target: EntityId) -> Situation {
    Situation {
        distance,
        seen: !graph.adjacency().edges_by(target, query.link.reversed()).is_empty(),
        degree: graph.edges(query.subject).len(),
        rules: None,
    }
}

const UNREACHED: u8 = u8::MAX;

/// The entities near a subject. Three hops from here and three from the other end make six: two balls are walked instead of
/// one whose radius is twice as large.
struct Nearby {
    /// By entity: at most [`HALF`], or unreached.
    hops: Vec<u8>,
    /// Which entities are not unreached, the nearest first.
    reached: Vec<EntityId>,
}

impl Nearby {
    fn new(graph: &Graph) -> Self {
        Self { hops: vec![UNREACHED; graph.entities()], reached: Vec::new() }
    }

    fn spread(&mut self, graph: &Graph, subject: EntityId) {
        self.begin(subject);
        let mut from = 0;
        for _ in 0..HALF {
            from = self.step(graph, from);
        }
    }

    /// Nothing but `entity`, which is no hop away.
    fn begin(&mut self, entity: EntityId) {
        for entity in self.reached.drain(..) {
            self.hops[entity.index()] = UNREACHED;
        }
        self.hops[entity.index()] = 0;
        self.reached.push(entity);
    }

    /// Adds the neighbours of those reached from place `from` on, and returns where they begin.
    fn step(&mut self, graph: &Graph, from: usize) -> usize {
        let to = self.reached.len();
        for place in from..to {
            let entity = self.reached[place];
            let hops = self.hops[entity.index()] + 1;
            for edge in graph.edges(entity) {
                let known = &mut self.hops[edge.target.index()];
                if *known == UNREACHED {
                    *known = hops;
                    self.reached.push(edge.target);
                }
            }
        }
        to
    }

    /// How far `target` is; `other` is scratch memory. The first entity from there that is near the subject is at the end
    /// of a shortest path: those before it are farther from the subject than [`HALF`], so it is at just that distance.
    fn distance(&self, graph: &Graph, target: EntityId, other: &mut Nearby) -> Option<u8> {
        if self.hops[target.index()] != UNREACHED {
            return Some(self.hops[target.index()]);
        }
        other.begin(target);
        let mut from = 0;
        for hops in 1..=HALF {
            let to = other.step(graph, from);
            if other.reached[to..].iter().any(|entity| self.hops[entity.index()] != UNREACHED) {
                return Some(HALF + hops);
            }
            from = to;
        }
        None
    }
}

/// A division of the queries: its name, and the value of a situation, in an order. `None` if it was not looked for.
type Division = (&'static str, fn(&Situation) -> Option<(usize, String)>);

const DIVISIONS: [Division; 4] = [
    ("distance", |of| {
        Some(match of.distance {
            Some(0) => (0, "the subject itself".to_owned()),
            Some(1) => (1, "1 hop".to_owned()),
            Some(hops) => (usize::from(hops), format!("{hops} hops")),
            None => (usize::MAX, format!("more than {FARTHEST} hops, or no path")),
        })
    }),
    ("seen", |of| {
        Some(if of.seen { (0, "with this relation".to_owned()) } else { (1, "never with it".to_owned()) })
    }),
    ("degree", |of| Some(bucket(of.degree, &[1, 4, 16, 64], "edges"))),
    ("rules", |of| Some(bucket(of.rules?, &[1, 2, 10, 100], "rules"))),
];

/// The bucket of `count`, where `starts` are the lowest numbers of all buckets but that of zero.
fn bucket(count: usize, starts: &[usize], what: &str) -> (usize, String) {
    let place = starts.partition_point(|&start| start <= count);
    let name = match (place, starts.get(place)) {
        (0, _) => format!("no {what}"),
        (_, Some(&2)) => format!("1 {}", what.trim_end_matches('s')),
        (_, Some(next)) => format!("{} to {} {what}", starts[place - 1], next - 1),
        (_, None) => format!("{} {what} or more", starts[place - 1]),
    };
    (place, name)
}

/// The figures of the ranks of each situation.
pub fn strata(ranks: &[(Situation, f64)]) -> Vec<Stratum> {
    let mut all = Vec::new();
    for (by, value) in DIVISIONS {
        let mut groups: std::collections::BTreeMap<(usize, String), Vec<f64>> = Default::default();
        for (situation, rank) in ranks {
            if let Some(group) = value(situation) {
                groups.entry(group).or_default().push(*rank);
            }
        }
        all.extend(groups.into_iter().map(|((_, value), ranks)| Stratum {
            by: by.to_owned(),
            value,
            figures: Figures::of(ranks),
        }));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Link, RelationId, Triple};
    use proptest::prelude::*;

    fn ranked(subject: u32, target: u32) -> Ranked {
        let query = Query { subject: EntityId(subject), link: Link::forward(RelationId(0)) };
        Ranked { query, target: EntityId(target), rank: 1.0, tied: 0 }
    }

    /// Shortest paths by Floyd and Warshall.
    fn distances(entities: usize, facts: &[Triple]) -> Vec<Vec<usize>> {
        let far = usize::MAX / 4;
        let mut all = vec![vec![far; entities]; entities];
        for fact in facts {
            all[fact.head.index()][fact.tail.index()] = 1;
            all[fact.tail.index()][fact.head.index()] = 1;
        }
        for (entity, row) in all.iter_mut().enumerate() {
            row[entity] = 0;
        }
        for middle in 0..entities {
            for from in 0..entities {
                for to in 0..entities {
                    all[from][to] = all[from][to].min(all[from][middle] + all[middle][to]);
                }
            }
        }
        all
    }

    proptest! {
        #[test]
        fn distances_are_those_of_all_shortest_paths(
            facts in prop::collection::vec((0u32..12, 0u32..2, 0u32..12), 0..16),
            asked in prop::collection::vec((0u32..12, 0u32..12), 1..40),
        ) {
            let facts: Vec<Triple> = facts.iter().map(|&(h, r, t)| Triple::new(h, r, t)).collect();
            let graph = Graph::new(12, 2, &facts);
            let slow = distances(12, &facts);
            let asked: Vec<Ranked> = asked.into_iter().map(|(from, to)| ranked(from, to)).collect();
            for (one, found) in asked.iter().zip(situations(&graph, &asked)) {
                let (from, to) = (one.query.subject.index(), one.target.index());
                let expected = Some(slow[from][to]).filter(|&hops| hops <= usize::from(FARTHEST));
                prop_assert_eq!(found.distance.map(usize::from), expected);
                let seen = facts.iter().any(|fact| fact.relation == RelationId(0) && fact.tail == one.target);
                prop_assert_eq!(found.seen, seen);
                prop_assert_eq!(found.degree, graph.edges(one.query.subject).len());
            }
        }
    }

    #[test]
    fn what_six_layers_reach_is_told_from_what_they_do_not() {
        let chain: Vec<Triple> = (0..9).map(|at| Triple::new(at, 0, at + 1)).collect();
        let graph = Graph::new(10, 1, &chain);
        let asked: Vec<Ranked> = (0..10).map(|to| ranked(0, to)).collect();
        let found: Vec<Option<u8>> = situations(&graph, &asked).iter().map(|of| of.distance).collect();
        assert_eq!(found[..7], [0, 1, 2, 3, 4, 5, 6].map(Some));
        assert_eq!(found[7..], [None; 3]);
    }

    #[test]
    fn every_division_has_all_queries_and_values_are_in_order() {
        let of = |distance, seen, degree, rules| Situation { distance, seen, degree, rules };
        let ranks = [
            (of(Some(2), true, 3, Some(0)), 1.0),
            (of(None, false, 70, Some(1)), 9.0),
            (of(Some(1), true, 0, Some(12)), 2.0),
        ];
        let found = strata(&ranks);
        let values = |by: &str| -> Vec<(String, usize)> {
            let those = found.iter().filter(|one| one.by == by);
            those.map(|one| (one.value.clone(), one.figures.queries)).collect()
        };
        let expected = |of: &[(&str, usize)]| -> Vec<(String, usize)> {
            of.iter().map(|&(value, queries)| (value.to_owned(), queries)).collect()
        };
        let distances = [("1 hop", 1), ("2 hops", 1), ("more than 6 hops, or no path", 1)];
        assert_eq!(values("distance"), expected(&distances));
        assert_eq!(values("seen"), expected(&[("with this relation", 2), ("never with it", 1)]));
        let degrees = [("no edges", 1), ("1 to 3 edges", 1), ("64 edges or more", 1)];
        assert_eq!(values("degree"), expected(&degrees));
        assert_eq!(values("rules"), expected(&[("no rules", 1), ("1 rule", 1), ("10 to 99 rules", 1)]));
        let none = strata(&[(Situation::default(), 1.0)]);
        assert!(none.iter().all(|one| one.by != "rules"), "they were not counted");
    }
}
