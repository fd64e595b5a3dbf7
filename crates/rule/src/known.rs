//! Confidence under the partial completeness assumption (PCA): if no fact of a relation is known for an entity, its
//! missing facts say nothing, so predictions about it count neither for nor against a rule.
//!
//! The share of predictions about entities with known facts is estimated from a sample of the entities that a body
//! starts from if there are many: a sum over all of them would cost as much as mining.

use super::Map;
use super::clause::{Counts, Rule, RuleType, ScoredRule, Shape, sort_by_confidence};
use super::frontier::{Frontier, Marks, Places};
use super::ground::Grounding;
use super::reach::Reach;
use super::recount::select;
use rayon::prelude::*;
use ruleguider_graph::{Direction, EntityId, Graph, Link, Triple, evenly};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// About how many entities a share is estimated from. The standard error is at most 3 %.
const SOURCES: usize = 256;
/// The number of steps after which one entity has too many paths; the share of such a body is taken to be 1.
const STEPS: u64 = 1_000_000;

/// Which of a rule's predictions its confidence counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Confidence {
    /// All predictions.
    #[default]
    Standard,
    /// Those about entities for which the relation is known at all (PCA).
    Pca,
    /// Whichever of the two ranks the validation split better.
    Validation,
}

/// `rules` counting only predictions about entities for which `graph` knows the relation (PCA), in their new order.
/// `negatives`, facts that are known to be false, ascending, are known, too: what a rule predicts of them is wrong.
/// `None` once `over` returns true.
pub fn over_known(
    graph: &Arc<Graph>,
    rules: &[ScoredRule],
    negatives: &[Triple],
    (distinct, unseen): (bool, f64),
    over: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<ScoredRule>> {
    let reach = Reach::unless(graph, distinct, over)?;
    let mut order: Vec<usize> = (0..rules.len()).collect();
    order.par_sort_unstable_by(|&a, &b| group_of(&rules[a].rule).cmp(&group_of(&rules[b].rule)));
    let same = |&a: &usize, &b: &usize| group_of(&rules[a].rule) == group_of(&rules[b].rule);
    let groups: Vec<&[usize]> = order.chunk_by(same).collect();
    let new = || Shares {
        frontier: Frontier::default(),
        places: Places::with_limit(graph.entities(), STEPS),
        marks: Marks::new(graph.entities()),
        over,
    };
    let counted: Vec<Vec<(usize, Counts)>> = groups
        .par_iter()
        .map_init(new, |shares, group| if over() { Vec::new() } else { shares.counts(&reach, rules, group) })
        .collect();
    let mut known = rules.to_vec();
    for (place, counts) in counted.into_iter().flatten() {
        known[place].counts = counts;
    }
    if !negatives.is_empty() {
        let denied = Denied { reach: &reach, negatives };
        known.par_iter_mut().zip(rules).for_each(|(rule, before)| {
            let most = before.counts.predicted;
            rule.counts.predicted = (rule.counts.predicted + denied.predicted_by(&rule.rule)).min(most);
        });
    }
    sort_by_confidence(&mut known, unseen);
    (!over()).then_some(known)
}

/// Rules whose shares are computed together: cyclic rules with the same prefix, others with the same body.
fn group_of(rule: &Rule) -> (RuleType, usize, &[Link], Option<EntityId>) {
    match (rule.shape, &*rule.body) {
        (Shape::Cyclic, [prefix @ .., _]) if !prefix.is_empty() => {
            (RuleType::Cyclic, prefix.len() + 1, prefix, None)
        }
        (Shape::Cyclic, body) => (RuleType::Cyclic, 1, body, None),
        (Shape::Constant { end, .. }, body) => (RuleType::Acyclic, body.len(), body, end),
    }
}

/// Whether `entity` has any fact with `link`, including a link to itself, which [`Reach`] leaves out.
fn is_known(reach: &Reach, link: Link, entity: EntityId) -> bool {
    !reach.graph().targets(entity, link).is_empty()
}

/// Facts that are known to be false.
struct Denied<'a> {
    reach: &'a Reach,
    negatives: &'a [Triple],
}

impl Denied<'_> {
    /// How many of them `rule` predicts about entities for which its relation is not known.
    fn predicted_by(&self, rule: &Rule) -> u64 {
        let Some(relation) = rule.head.relation() else { return 0 };
        let ends = |fact: &Triple| match rule.head.direction() {
            Direction::Forward => (fact.head, fact.tail),
            Direction::Inverse => (fact.tail, fact.head),
        };
        let of_relation = self.negatives.iter().filter(|fact| fact.relation == relation).map(ends);
        let unknown = of_relation.filter(|&(x, _)| !is_known(self.reach, rule.head, x));
        unknown.filter(|&(x, y)| self.is_predicted(rule, x, y)).count() as u64
    }

    fn is_predicted(&self, rule: &Rule, x: EntityId, y: EntityId) -> bool {
        let targets = |entity, link| self.reach.targets(link, entity);
        let leads = |end, avoid| {
            let distinct = self.reach.distinct();
            Grounding { targets, distinct, avoid, tries: STEPS as usize }.find(x, &rule.body, end).is_some()
        };
        match rule.shape {
            Shape::Cyclic => leads(Some(y), None),
            // Without a body there is nothing to be predicted about an entity of which nothing is known.
            Shape::Constant { answer, end } => {
                answer == y && !rule.body.is_empty() && leads(end, Some(answer))
            }
        }
    }
}

/// The state of one thread that computes shares.
struct Shares<'a> {
    frontier: Frontier,
    places: Places<'static>,
    marks: Marks,
    over: &'a (dyn Fn() -> bool + Sync),
}

/// The number of predictions about entities for which the relation is known, and of all predictions.
#[derive(Clone, Copy, Default)]
struct Share {
    known: u64,
    all: u64,
}

impl Share {
    /// The counts of a rule if this share of its predictions counts. Correct predictions always count.
    fn of(self, Counts { predicted, correct, sampled }: Counts, estimated: bool) -> Counts {
        if self.all == 0 || self.known == self.all {
            return Counts { predicted, correct, sampled };
        }
        let share = self.known as f64 / self.all as f64;
        let predicted = ((predicted as f64 * share).round() as u64).max(correct);
        Counts { predicted, correct, sampled: sampled || estimated }
    }
}

impl Shares<'_> {
    /// The counts of a group of rules, by their indices.
    fn counts(&mut self, reach: &Reach, rules: &[ScoredRule], group: &[usize]) -> Vec<(usize, Counts)> {
        let (of, _, _, end) = group_of(&rules[group[0]].rule);
        // A rule without a body predicts exactly for the entities for which its relation is known, so its counts do
        // not change.
        let Some((&last, prefix)) = rules[group[0]].rule.body.split_last() else { return Vec::new() };
        if of == RuleType::Cyclic {
            return self.cyclic(reach, rules, group, prefix);
        }
        let selected = match (prefix, end) {
            ([], Some(end)) => reach.targets(last.reversed(), end).to_vec(),
            ([], None) => reach.sources(last).to_vec(),
            _ => select(reach, prefix, last, end),
        };
        let some = evenly(&selected, SOURCES);
        let estimated = some.len() < selected.len();
        let mut shares: Map<Link, Share> = Map::default();
        let counts = |&place: &usize| {
            let ScoredRule { rule, counts } = &rules[place];
            let share = shares.entry(rule.head).or_insert_with(|| {
                let known = some.iter().filter(|&&entity| is_known(reach, rule.head, entity)).count();
                Share { known: known as u64, all: some.len() as u64 }
            });
            (place, share.of(*counts, estimated))
        };
        group.iter().map(counts).collect()
    }

    /// The same for cyclic rules whose bodies are `prefix` and one more link.
    fn cyclic(
        &mut self,
        reach: &Reach,
        rules: &[ScoredRule],
        group: &[usize],
        prefix: &[Link],
    ) -> Vec<(usize, Counts)> {
        let last = |place: usize| rules[place].rule.body[prefix.len()];
        let mut shares = vec![Share::default(); group.len()];
        let first = prefix.first().copied().unwrap_or_else(|| last(group[0]));
        let mut by_last: Vec<usize> = (0..group.len()).collect();
        by_last.sort_unstable_by_key(|&rule| last(group[rule]));
        let sources = reach.sources(first);
        let some = evenly(sources, SOURCES);
        let estimated = some.len() < sources.len();
        for source in some {
            self.frontier.walk(reach, source, prefix, &mut self.places);
            let too_many = prefix.len() > 2 && self.places.has_given_up();
            if too_many || (self.over)() {
                return Vec::new();
            }
            for same in by_last.chunk_by(|&a, &b| last(group[a]) == last(group[b])) {
                let mut ends = 0;
                self.frontier.step(reach, last(group[same[0]]), &mut self.marks, |_| ends += 1);
                for &rule in same.iter().filter(|_| ends > 0) {
                    let known = is_known(reach, rules[group[rule]].rule.head, source);
                    shares[rule].all += ends;
                    shares[rule].known += if known { ends } else { 0 };
                }
            }
        }
        let counts = |(&place, share): (&usize, Share)| (place, share.of(rules[place].counts, estimated));
        group.iter().zip(shares).map(counts).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MineOptions, MiningBudget, UNSEEN, count_rules, mine};
    use proptest::prelude::*;
    use ruleguider_graph::{RelationId, Triple};
    use ruleguider_support::progress::Silent;

    /// The number of predictions of a rule about entities for which its relation is known, found one by one.
    fn naive(graph: &Arc<Graph>, rule: &Rule) -> u64 {
        let known = |x: EntityId| graph.edges(x).iter().any(|edge| edge.link == rule.head);
        let entities = || (0..graph.entities() as u32).map(EntityId);
        let leads = |x: EntityId, y: EntityId| trails(graph, &rule.body, &mut vec![x], Some(y));
        match rule.shape {
            Shape::Cyclic => {
                let pairs = entities().flat_map(|x| entities().map(move |y| (x, y)));
                pairs.filter(|&(x, y)| known(x) && leads(x, y)).count() as u64
            }
            Shape::Constant { .. } => unreachable!("only cyclic rules are mined here"),
        }
    }

    /// Whether a path by `links` leads from the trail to `end` without visiting an entity twice.
    fn trails(graph: &Graph, links: &[Link], trail: &mut Vec<EntityId>, end: Option<EntityId>) -> bool {
        let here = trail[trail.len() - 1];
        let Some((&link, rest)) = links.split_first() else { return end.is_none_or(|end| end == here) };
        graph.targets(here, link).to_vec().into_iter().any(|next| {
            if trail.contains(&next) {
                return false;
            }
            trail.push(next);
            let found = trails(graph, rest, trail, end);
            trail.pop();
            found
        })
    }

    fn triple(head: u32, relation: u32, tail: u32) -> Triple {
        Triple { head: EntityId(head), relation: RelationId(relation), tail: EntityId(tail) }
    }

    fn graphs() -> impl Strategy<Value = Arc<Graph>> {
        let triple =
            (0u32..12, 0u32..3, 0u32..12).prop_map(|(head, relation, tail)| triple(head, relation, tail));
        prop::collection::vec(triple, 1..50).prop_map(|triples| Arc::new(Graph::new(12, 3, &triples)))
    }

    proptest! {
        #[test]
        fn only_predictions_about_known_subjects_count(graph in graphs()) {
            let options = MineOptions {
                budget: MiningBudget::Saturation,
                min_support: 1,
                min_confidence: 0.0,
                ..MineOptions::default()
            };
            let mined = mine(&graph, &options, &Silent).expect("mined").rules;
            let known = over_known(&graph, &mined, &[], (true, UNSEEN), &|| false).expect("nobody stops it");
            prop_assert_eq!(known.len(), mined.len());
            for ScoredRule { rule, counts } in &known {
                prop_assert_eq!(counts.predicted, naive(&graph, rule), "{:?}", rule);
                let standard = count_rules(&graph, std::slice::from_ref(rule), true)[0];
                prop_assert!(counts.predicted <= standard.predicted && counts.correct == standard.correct);
            }
        }
    }

    #[test]
    fn missing_facts_about_the_unknown_do_not_count_against_a_rule_with_constants() {
        // Of 40 people who live in c (4), the faith of 10 is known, the same for all (5); another 10 live elsewhere.
        let lives = (10..50).map(|person| triple(person, 0, 4));
        let faith = (10..20).chain(50..60).map(|person| triple(person, 1, 5));
        let graph = Arc::new(Graph::new(60, 2, &lives.chain(faith).collect::<Vec<_>>()));
        let rule = Rule {
            head: Link::forward(RelationId(1)),
            body: [Link::forward(RelationId(0))].into(),
            shape: Shape::Constant { answer: EntityId(5), end: Some(EntityId(4)) },
        };
        let counts = count_rules(&graph, std::slice::from_ref(&rule), true)[0];
        assert_eq!(counts, Counts::exact(40, 10));
        let rules = [ScoredRule { rule, counts }];
        let known = over_known(&graph, &rules, &[], (true, UNSEEN), &|| false).expect("nobody stops it");
        assert_eq!(known[0].counts, Counts::exact(10, 10));
        assert!(over_known(&graph, &rules, &[], (true, UNSEEN), &|| true).is_none());
    }

    #[test]
    fn what_is_known_to_be_false_counts_against_a_rule() {
        // All who live in c (4) have faith 5, as far as is known: 10 of 40. Of two others it is denied.
        let lives = (10..50).map(|person| triple(person, 0, 4));
        let faith = (10..20).map(|person| triple(person, 1, 5));
        let graph = Arc::new(Graph::new(60, 2, &lives.chain(faith).collect::<Vec<_>>()));
        let rule = Rule {
            head: Link::forward(RelationId(1)),
            body: [Link::forward(RelationId(0))].into(),
            shape: Shape::Constant { answer: EntityId(5), end: Some(EntityId(4)) },
        };
        let rules = [ScoredRule { counts: count_rules(&graph, std::slice::from_ref(&rule), true)[0], rule }];
        // The third is about somebody whose faith is known; the last is about somebody who lives elsewhere.
        let negatives = [triple(30, 1, 5), triple(31, 1, 5), triple(12, 1, 6), triple(55, 1, 5)];
        let known = over_known(&graph, &rules, &negatives, (true, UNSEEN), &|| false).unwrap();
        assert_eq!(known[0].counts, Counts::exact(12, 10));
    }

    proptest! {
        #[test]
        fn what_is_denied_and_predicted_is_found_one_by_one(
            graph in graphs(),
            denied in prop::collection::vec((0u32..12, 0u32..3, 0u32..12), 0..12),
        ) {
            let mut negatives: Vec<Triple> = denied.into_iter().map(|(h, r, t)| triple(h, r, t)).collect();
            negatives.retain(|fact| !graph.contains(fact.head, Link::forward(fact.relation), fact.tail));
            negatives.sort_unstable();
            negatives.dedup();
            let options = MineOptions {
                budget: MiningBudget::Saturation,
                min_support: 1,
                min_confidence: 0.0,
                ..MineOptions::default()
            };
            let mined = mine(&graph, &options, &Silent).expect("mined").rules;
            let known = over_known(&graph, &mined, &negatives, (true, UNSEEN), &|| false).unwrap();
            for ScoredRule { rule, counts } in &known {
                let added = negatives.iter().filter(|fact| {
                    let here = fact.relation == rule.relation();
                    let (x, y) = match rule.head.direction() {
                        Direction::Forward => (fact.head, fact.tail),
                        Direction::Inverse => (fact.tail, fact.head),
                    };
                    here && graph.targets(x, rule.head).is_empty()
                        && trails(&graph, &rule.body, &mut vec![x], Some(y))
                });
                prop_assert_eq!(counts.predicted, naive(&graph, rule) + added.count() as u64, "{:?}", rule);
            }
        }
    }
}
