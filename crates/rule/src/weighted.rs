//! Counts of rules over facts that are not certain.
//!
//! A prediction is as certain as the best way in which the body leads to it, and a way as certain as the product of the
//! confidences of its facts. With `w` for that, a rule has
//!
//! ```text
//! predicted = Σ w(x, y)        correct = Σ w(x, y) · c(x, head, y)
//! ```
//!
//! over all pairs that it predicts, rounded to whole predictions. Where a body starts from many entities, the share of
//! the certain counts that is left is estimated from some of them.

use super::Map;
use super::clause::{Counts, Rule, ScoredRule, Shape, sort_by_confidence};
use super::reach::Reach;
use rayon::prelude::*;
use ruleguider_graph::{Direction, EntityId, Graph, Link, Notes, Triple, evenly};
use std::sync::Arc;

/// About how many entities a share is estimated from.
const SOURCES: usize = 1024;
/// The number of steps from one entity after which a body has too many ways; its counts stay as they are.
const STEPS: usize = 1_000_000;

/// Which rules are kept.
#[derive(Clone, Copy, Debug)]
pub struct KeptRules {
    /// Whether the variables of a rule bind distinct entities (object identity).
    pub distinct: bool,
    /// The smoothing constant of the confidence.
    pub unseen: f64,
    /// The minimum number of correct predictions.
    pub min_support: u64,
    /// The minimum confidence.
    pub min_confidence: f64,
}

/// `rules` counted by the confidences of the facts of `graph`, in their new order, without those that are no longer worth
/// keeping. `None` once `over` returns true.
pub fn weigh_by_confidence(
    graph: &Arc<Graph>,
    rules: &[ScoredRule],
    notes: &Notes,
    kept: KeptRules,
    over: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<ScoredRule>> {
    let reach = Reach::unless(graph, kept.distinct, over)?;
    let mut order: Vec<usize> = (0..rules.len()).collect();
    order.par_sort_unstable_by(|&a, &b| group_of(&rules[a].rule).cmp(&group_of(&rules[b].rule)));
    let same = |&a: &usize, &b: &usize| group_of(&rules[a].rule) == group_of(&rules[b].rule);
    let groups: Vec<&[usize]> = order.chunk_by(same).collect();
    let weigh = |group: &&[usize]| {
        let rules: Vec<&ScoredRule> = group.iter().map(|&place| &rules[place]).collect();
        let weigher = Weigher { reach: &reach, notes };
        if over() { Vec::new() } else { weigher.counts(&rules) }
    };
    let counted: Vec<Vec<Counts>> = groups.par_iter().map(weigh).collect();
    let mut weighed = rules.to_vec();
    for (&place, counts) in groups.iter().zip(counted).flat_map(|(group, counts)| group.iter().zip(counts)) {
        weighed[place].counts = counts;
    }
    weighed.retain(|ScoredRule { counts, .. }| {
        counts.correct >= kept.min_support.max(1) && counts.confidence(kept.unseen) >= kept.min_confidence
    });
    sort_by_confidence(&mut weighed, kept.unseen);
    (!over()).then_some(weighed)
}

/// Rules whose predictions are as certain: they have the same body and, if it ends in a constant, name the same entities.
fn group_of(rule: &Rule) -> (&[Link], Option<(EntityId, Option<EntityId>)>) {
    match rule.shape {
        Shape::Cyclic => (&rule.body, None),
        Shape::Constant { answer, end } => (&rule.body, Some((answer, end))),
    }
}

/// Weighs the predictions of rules.
struct Weigher<'a> {
    reach: &'a Reach,
    notes: &'a Notes,
}

/// Sums over predictions, counted and weighed.
#[derive(Clone, Copy, Default)]
struct Sums {
    predicted: u64,
    correct: u64,
    weighed: f64,
    right: f64,
}

impl Sums {
    fn add(&mut self, weight: f64, head: Option<f64>) {
        self.predicted += 1;
        self.weighed += weight;
        if let Some(confidence) = head {
            self.correct += 1;
            self.right += weight * confidence;
        }
    }

    /// The counts of a rule of which these predictions are all, or a sample.
    fn of(self, Counts { predicted, correct, sampled }: Counts, estimated: bool) -> Counts {
        let share = |part: f64, all: u64, count: u64| match all {
            0 => count,
            _ if !estimated && !sampled => part.round() as u64,
            _ => (count as f64 * part / all as f64).round() as u64,
        };
        let correct = share(self.right, self.correct, correct);
        let predicted = share(self.weighed, self.predicted, predicted).max(correct);
        Counts { predicted, correct, sampled: sampled || estimated }
    }
}

impl Weigher<'_> {
    /// The counts of rules of one group.
    fn counts(&self, rules: &[&ScoredRule]) -> Vec<Counts> {
        let rule = &rules[0].rule;
        let (sources, estimated) = self.sources(rule);
        let mut sums = vec![Sums::default(); rules.len()];
        for source in sources {
            let Some(ends) = self.ends(rule, source) else {
                return rules.iter().map(|rule| rule.counts).collect();
            };
            for (end, weight) in ends {
                for (sums, rule) in sums.iter_mut().zip(rules) {
                    let (x, y) = rule.rule.predicts(source, end);
                    sums.add(weight, self.confidence(x, rule.rule.head, y));
                }
            }
        }
        sums.iter().zip(rules).map(|(sums, rule)| sums.of(rule.counts, estimated)).collect()
    }

    /// The entities from which ways are followed, and whether these are some of them.
    fn sources(&self, rule: &Rule) -> (Vec<EntityId>, bool) {
        let first = match (rule.shape, rule.body.first()) {
            (Shape::Constant { end: Some(end), .. }, Some(_)) => return (vec![end], false),
            (_, Some(&first)) => first,
            // A rule without a body predicts its answer for whatever has the relation.
            (_, None) => rule.head,
        };
        let all = self.reach.sources(first);
        let some = evenly(all, SOURCES);
        let estimated = some.len() < all.len();
        (some, estimated)
    }

    /// Where the ways of a rule from `source` end, each with the certainty of the best way; a body that has to end in a
    /// constant is followed from there. `None` if there are too many ways.
    fn ends(&self, rule: &Rule, source: EntityId) -> Option<Map<EntityId, f64>> {
        let (path, without) = match rule.shape {
            Shape::Cyclic => (rule.body.to_vec(), None),
            Shape::Constant { answer, end: Some(_) } => {
                (rule.body.iter().rev().map(|link| link.reversed()).collect(), Some(answer))
            }
            Shape::Constant { answer, end: None } => (rule.body.to_vec(), Some(answer)),
        };
        let mut way = Way {
            weigher: self,
            trail: vec![source],
            without: without.filter(|_| self.reach.distinct()),
            best: Map::default(),
            steps: 0,
        };
        // What leads to a constant may begin in the answer: only other variables are bound to other entities.
        let anywhere = matches!(rule.shape, Shape::Constant { end: None, .. });
        let begins_in_answer = anywhere && way.without == Some(source);
        if !begins_in_answer {
            way.follow(&path, 1.0);
        }
        if way.steps > STEPS {
            return None;
        }
        if anywhere {
            // Wherever it leads, what is predicted is about the source.
            let best = way.best.values().copied().reduce(f64::max);
            return Some(best.map(|best| (source, best)).into_iter().collect());
        }
        Some(way.best)
    }

    /// How certain it is that `link` leads from `source` to `target`; `None` if it does not.
    fn confidence(&self, source: EntityId, link: Link, target: EntityId) -> Option<f64> {
        let stated = self.reach.graph().contains(source, link, target);
        stated.then(|| self.of_fact(source, link, target))
    }

    fn of_fact(&self, source: EntityId, link: Link, target: EntityId) -> f64 {
        let Some(relation) = link.relation() else { return 1.0 };
        let fact = match link.direction() {
            Direction::Forward => Triple { head: source, relation, tail: target },
            Direction::Inverse => Triple { head: target, relation, tail: source },
        };
        f64::from(self.notes.confidence(fact))
    }
}

impl Rule {
    /// The pair that a way from `source` to `end` predicts.
    fn predicts(&self, source: EntityId, end: EntityId) -> (EntityId, EntityId) {
        match self.shape {
            Shape::Cyclic => (source, end),
            Shape::Constant { answer, .. } => (end, answer),
        }
    }
}

/// All ways from an entity, one after the other.
struct Way<'a> {
    weigher: &'a Weigher<'a>,
    trail: Vec<EntityId>,
    /// An entity that no way may visit.
    without: Option<EntityId>,
    best: Map<EntityId, f64>,
    steps: usize,
}

impl Way<'_> {
    fn follow(&mut self, rest: &[Link], weight: f64) {
        let here = self.trail[self.trail.len() - 1];
        let Some((&link, rest)) = rest.split_first() else {
            let best = self.best.entry(here).or_insert(0.0);
            *best = best.max(weight);
            return;
        };
        let Weigher { reach, .. } = self.weigher;
        for &next in reach.targets(link, here) {
            self.steps += 1;
            if self.steps > STEPS {
                return;
            }
            if reach.distinct() && (self.trail.contains(&next) || self.without == Some(next)) {
                continue;
            }
            self.trail.push(next);
            self.follow(rest, weight * self.weigher.of_fact(here, link, next));
            self.trail.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{MineOptions, MiningBudget, RuleType, UNSEEN, mine};
    use proptest::prelude::*;
    use ruleguider_graph::{Note, NotesBuilder};
    use ruleguider_support::progress::Silent;
    use std::collections::BTreeMap;

    const ENTITIES: u32 = 7;

    /// Every assignment of a body's variables, with the product of its facts' confidences.
    fn groundings(
        graph: &Graph,
        notes: &Notes,
        body: &[Link],
        trail: &[EntityId],
        weight: f64,
    ) -> Vec<(Vec<EntityId>, f64)> {
        let Some((&link, rest)) = body.split_first() else { return vec![(trail.to_vec(), weight)] };
        let here = trail[trail.len() - 1];
        let mut all = Vec::new();
        for edge in graph.edges(here).iter().filter(|edge| edge.link == link && !trail.contains(&edge.target))
        {
            let relation = link.relation().unwrap();
            let (head, tail) = match link.direction() {
                Direction::Forward => (here, edge.target),
                Direction::Inverse => (edge.target, here),
            };
            let certain = f64::from(notes.confidence(Triple { head, relation, tail }));
            let longer = [trail, &[edge.target]].concat();
            all.extend(groundings(graph, notes, rest, &longer, weight * certain));
        }
        all
    }

    /// The weighed counts of a rule, over all assignments one by one.
    fn naive(graph: &Graph, notes: &Notes, rule: &Rule) -> [f64; 2] {
        let mut best: BTreeMap<(EntityId, EntityId), f64> = BTreeMap::new();
        for x in (0..ENTITIES).map(EntityId) {
            for (trail, weight) in groundings(graph, notes, &rule.body, &[x], 1.0) {
                let last = trail[trail.len() - 1];
                let pair = match rule.shape {
                    Shape::Cyclic => (x, last),
                    Shape::Constant { answer, end } => {
                        let variables = &trail[..trail.len() - usize::from(end.is_some())];
                        if end.is_some_and(|end| end != last) || variables.contains(&answer) {
                            continue;
                        }
                        (x, answer)
                    }
                };
                let kept = best.entry(pair).or_insert(0.0);
                *kept = kept.max(weight);
            }
        }
        let weigher = Weigher { reach: &Reach::new(&Arc::new(graph.clone()), true), notes };
        let right = best.iter().filter_map(|(&(x, y), weight)| {
            weigher.confidence(x, rule.head, y).map(|confidence| weight * confidence)
        });
        [best.values().sum(), right.sum()]
    }

    fn facts() -> impl Strategy<Value = Vec<(Triple, f32)>> {
        let fact = (0..ENTITIES, 0u32..2, 0..ENTITIES, 1u32..=4);
        let fact = fact.prop_map(|(h, r, t, quarter)| (Triple::new(h, r, t), quarter as f32 / 4.0));
        prop::collection::vec(fact, 1..25)
    }

    proptest! {
        #[test]
        fn rules_count_by_the_product_of_their_facts(facts in facts()) {
            let triples: Vec<Triple> = facts.iter().map(|fact| fact.0).collect();
            let graph = Arc::new(Graph::new(ENTITIES as usize, 2, &triples));
            let mut notes = NotesBuilder::default();
            facts.iter().for_each(|&(fact, certain)| {
                notes.add(fact, Note { confidence: Some(certain), ..Note::default() });
            });
            let notes = notes.finish();
            let options = MineOptions {
                types: vec![RuleType::Cyclic, RuleType::Acyclic],
                budget: MiningBudget::Saturation,
                max_acyclic_length: 2,
                min_support: 1,
                min_confidence: 0.0,
                ..MineOptions::default()
            };
            let mined = mine(&graph, &options, &Silent).expect("mined").rules;
            let kept = KeptRules { distinct: true, unseen: UNSEEN, min_support: 0, min_confidence: 0.0 };
            let weighed = weigh_by_confidence(&graph, &mined, &notes, kept, &|| false).expect("nobody stops it");
            for rule in &mined {
                let [predicted, correct] = naive(&graph, &notes, &rule.rule).map(|sum| sum.round() as u64);
                let found = weighed.iter().find(|one| one.rule == rule.rule);
                if correct == 0 {
                    prop_assert!(found.is_none(), "{:?}", rule);
                    continue;
                }
                let counts = found.expect("it is still right somewhere").counts;
                prop_assert!(counts.predicted.abs_diff(predicted) <= 1, "{counts:?} {predicted} {rule:?}");
                prop_assert!(counts.correct.abs_diff(correct) <= 1, "{counts:?} {correct} {rule:?}");
            }
            // Without confidences nothing changes.
            let same = weigh_by_confidence(&graph, &mined, &Notes::default(), kept, &|| false).unwrap();
            prop_assert_eq!(same, mined);
        }
    }
}
