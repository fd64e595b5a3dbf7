//! Mining against brute force on small graphs, and the promises of anytime mining.

use super::*;
use crate::clause::{Counts, Rule, Shape};
use crate::frontier::tests::{ends, graph, holds};
use proptest::prelude::*;
use ruleguider_graph::EntityId;
use ruleguider_support::progress::Silent;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::atomic::AtomicUsize;

const ENTITIES: u32 = 6;
const RELATIONS: u32 = 2;

fn all_options(distinct: bool) -> MineOptions {
    MineOptions {
        types: vec![RuleType::Cyclic, RuleType::Acyclic, RuleType::Zero],
        budget: MiningBudget::Seconds(1000.0),
        min_support: 1,
        min_confidence: 0.0,
        max_bodies: usize::MAX,
        distinct,
        ..MineOptions::default()
    }
}

fn paths(longest: usize) -> Vec<Vec<Link>> {
    let links = (3..3 + 2 * RELATIONS).map(Link);
    let mut all: Vec<Vec<Link>> = vec![Vec::new()];
    let mut last = all.clone();
    for _ in 0..longest {
        last = last.iter().flat_map(|p| links.clone().map(move |link| [&p[..], &[link]].concat())).collect();
        all.extend(last.clone());
    }
    all
}

/// Every rule with a correct prediction, found by enumerating the groundings of every body.
fn naive(graph: &Graph, options: &MineOptions) -> BTreeMap<Rule, (u64, u64)> {
    let entities = (0..ENTITIES).map(EntityId);
    let heads = (3..3 + 2 * RELATIONS).map(Link);
    let distinct = options.distinct;
    let mut rules = BTreeMap::new();
    for body in paths(options.max_length) {
        let pairs: Vec<(EntityId, EntityId)> = entities
            .clone()
            .flat_map(|x| ends(graph, x, &body, distinct).into_iter().map(move |y| (x, y)))
            .collect();
        for head in heads.clone() {
            if !body.is_empty() && head.direction() == Direction::Forward && body != [head] {
                let correct = pairs.iter().filter(|(x, y)| graph.contains(*x, head, *y)).count();
                rules.insert(Rule::cyclic(head, &body), (pairs.len() as u64, correct as u64));
            }
            if body.len() > options.max_acyclic_length {
                continue;
            }
            for answer in entities.clone() {
                let ends = entities.clone().map(Some).chain([None]);
                for end in ends.filter(|end| end.is_none() || !body.is_empty()) {
                    let shape = Shape::Constant { answer, end };
                    let selected: Vec<EntityId> =
                        entities.clone().filter(|&x| holds(graph, x, &body, end, answer, distinct)).collect();
                    let correct = selected.iter().filter(|&&x| graph.contains(x, head, answer)).count();
                    let mut predicted = selected.len();
                    if body.is_empty() {
                        let facts = graph.pairs(head).pairs();
                        predicted = facts.filter(|(x, y)| !distinct || x != y).count();
                    }
                    if !(body == [head] && end == Some(answer)) {
                        let rule = Rule { head, body: body.clone().into(), shape };
                        rules.insert(rule, (predicted as u64, correct as u64));
                    }
                }
            }
        }
    }
    rules.retain(|_, counts| counts.1 > 0);
    rules
}

fn found(mined: &Mined) -> BTreeMap<Rule, (u64, u64)> {
    let each = mined.rules.iter();
    let rules: BTreeMap<Rule, (u64, u64)> =
        each.map(|s| (s.rule.clone(), (s.counts.predicted, s.counts.correct))).collect();
    assert_eq!(rules.len(), mined.rules.len(), "a rule was found twice");
    rules
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn all_rules_are_found_with_the_counts_of_brute_force(
        facts in prop::collection::vec((0..ENTITIES, 0..RELATIONS, 0..ENTITIES), 1..22),
        distinct in any::<bool>(),
    ) {
        let graph = graph(&facts, ENTITIES as usize, RELATIONS as usize);
        let options = all_options(distinct);
        let mined = mine(&graph, &options, &Silent).unwrap();
        prop_assert!(mined.rules.iter().all(|scored| !scored.counts.sampled));
        prop_assert_eq!(found(&mined), naive(&graph, &options));
        let rules: Vec<Rule> = mined.rules.iter().map(|scored| scored.rule.clone()).collect();
        let counts: Vec<Counts> = mined.rules.iter().map(|scored| scored.counts).collect();
        prop_assert_eq!(crate::count_rules(&graph, &rules, distinct), counts);
        prop_assert_eq!(mined.saturation, 1.0);
    }

    #[test]
    fn what_walks_nominate_has_the_counts_of_brute_force_at_any_length(
        facts in prop::collection::vec((0..ENTITIES, 0..RELATIONS, 0..ENTITIES), 1..14),
        distinct in any::<bool>(),
    ) {
        let graph = graph(&facts, ENTITIES as usize, RELATIONS as usize);
        let options = MineOptions {
            max_length: 4,
            max_acyclic_length: 2,
            budget: MiningBudget::Samples(2000),
            ..all_options(distinct)
        };
        let all = naive(&graph, &options);
        let mined = mine(&graph, &options, &Silent).unwrap();
        for (rule, counts) in found(&mined) {
            prop_assert_eq!(all.get(&rule), Some(&counts), "{:?}", rule);
        }
    }
}

/// A graph with more structure than a random one: two relations that usually compose to a third.
fn composed() -> Arc<Graph> {
    let mut facts = Vec::new();
    for i in 0..400u32 {
        facts.push((i, 0, (i * 7 + 1) % 400));
        facts.push((i, 1, (i * 3 + 2) % 400));
        if i % 5 != 0 {
            facts.push((i, 2, ((i * 7 + 1) * 3 + 2) % 400));
        }
        facts.push((i, 3, 400 + i % 20));
    }
    graph(&facts, 420, 4)
}

#[test]
fn samples_make_mining_repeatable_whatever_the_threads() {
    let graph = composed();
    let options =
        MineOptions { max_acyclic_length: 2, budget: MiningBudget::Samples(3000), ..all_options(true) };
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| mine(&graph, &options, &Silent).unwrap().rules)
    };
    let one = run(1);
    assert!(one.len() > 100);
    assert_eq!(one, run(2));
    assert_eq!(one, run(3));
}

#[test]
fn sampled_counts_are_marked_and_right_in_the_mean() {
    let graph = composed();
    let body = [Link(3), Link(5)];
    let rule = Rule::cyclic(Link(7), &body);
    let exact = mine(&graph, &all_options(true), &Silent).unwrap();
    let truth = exact.rules.iter().find(|scored| scored.rule == rule).unwrap().counts;
    assert!(!truth.sampled && truth.correct > 300);
    let seeds = 40;
    let mut sums = [0.0; 2];
    for seed in 0..seeds {
        let options =
            MineOptions { types: vec![RuleType::Cyclic], seed, max_groundings: 800, ..all_options(true) };
        let mined = mine(&graph, &options, &Silent).unwrap();
        let Counts { predicted, correct, sampled } =
            mined.rules.iter().find(|scored| scored.rule == rule).unwrap().counts;
        assert!(sampled);
        sums[0] += predicted as f64 / seeds as f64;
        sums[1] += correct as f64 / seeds as f64;
    }
    for (mean, exact) in sums.into_iter().zip([truth.predicted, truth.correct]) {
        assert!((mean / exact as f64 - 1.0).abs() < 0.1, "{mean} instead of {exact}");
    }
}

#[test]
fn a_hub_does_not_take_all_the_time() {
    // All of 40,000 entities are linked to one value, which makes 1.6 billion pairs. The first 200 have two more
    // relations, of which one follows from the other, and are linked in a row.
    let hub = 40_000;
    let to_hub = (0..hub).map(|entity| (entity, 0, hub));
    let others = (0..200).flat_map(|i| [(i, 1, i + 200), (i, 2, i + 200), (i, 3, i + 1)]);
    let graph = graph(&to_hub.chain(others).collect::<Vec<_>>(), hub as usize + 1, 4);
    let options = MineOptions { budget: MiningBudget::Seconds(3.0), min_support: 2, ..all_options(true) };
    let mined = mine(&graph, &options, &Silent).unwrap();
    let planted = Rule::cyclic(Link(7), &[Link(5)]);
    assert!(mined.rules.iter().any(|scored| scored.rule == planted && !scored.counts.sampled));
    assert!(mined.by_type(RuleType::Acyclic) > 0 && mined.by_type(RuleType::Zero) > 0);
    assert!(mined.rules.iter().any(|scored| scored.rule.body.len() == 3), "longer bodies had no time");
}

#[test]
fn only_rules_that_are_wanted_are_kept() {
    let graph = composed();
    let options = MineOptions {
        heads: vec![RelationId(2)],
        min_support: 300,
        min_confidence: 0.5,
        types: vec![RuleType::Cyclic],
        ..all_options(true)
    };
    let mined = mine(&graph, &options, &Silent).unwrap();
    assert!(!mined.rules.is_empty());
    for ScoredRule { rule, counts } in &mined.rules {
        assert!(
            rule.relation() == RelationId(2) && counts.correct >= 300 && counts.confidence(UNSEEN) >= 0.5
        );
    }
    let capped = MineOptions {
        types: vec![RuleType::Acyclic],
        max_bodies: 1,
        keep: Keep::Adding,
        ..all_options(true)
    };
    let capped = mine(&graph, &capped, &Silent).unwrap();
    let mut constants: Vec<_> = capped.rules.iter().map(|s| (s.rule.head, s.rule.shape)).collect();
    let answer =
        |shape: &Shape| if let Shape::Constant { answer, .. } = shape { Some(*answer) } else { None };
    constants.sort_unstable();
    assert!(constants.windows(2).all(|two| (two[0].0, answer(&two[0].1)) != (two[1].0, answer(&two[1].1))));
}

/// Interrupts after it has been polled a given number of times.
struct Impatient {
    asked: AtomicUsize,
    patience: usize,
}

impl Impatient {
    fn after(patience: usize) -> Self {
        Self { asked: AtomicUsize::new(0), patience }
    }
}

impl Progress for Impatient {
    fn begin(&self, _: &str, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64, _: &dyn Display) {}
    fn end(&self, _: &dyn Display) {}
    fn interrupted(&self) -> bool {
        self.asked.fetch_add(1, Ordering::Relaxed) > self.patience
    }
}

#[test]
fn what_was_cut_short_does_not_say_that_all_is_counted() {
    let graph = composed();
    for (of, max_length, max_acyclic_length) in [
        (RuleType::Cyclic, 2, 1),
        (RuleType::Cyclic, 3, 1),
        (RuleType::Acyclic, 1, 1),
        (RuleType::Acyclic, 1, 2),
    ] {
        let options = MineOptions { types: vec![of], max_length, max_acyclic_length, ..all_options(true) };
        for patience in [0, 20] {
            let mined = mine(&graph, &options, &Impatient::after(patience)).unwrap();
            assert!(mined.interrupted && mined.saturation < 1.0, "{of:?}: {}", mined.saturation);
        }
        let patient = mine(&graph, &options, &Impatient::after(1_000_000)).unwrap();
        assert!(!patient.interrupted, "{of:?}: nothing is left to find, and it went on");
        assert_eq!(patient.saturation, 1.0);
    }
}

#[test]
fn what_costs_too_much_to_list_is_asked_for_one_by_one() {
    let graph = composed();
    let options = all_options(true);
    let reach = Reach::new(&graph, true);
    let worth = Worth { support: 1, confidence: 0.0, unseen: UNSEEN, heads: vec![true; graph.links()] };
    let check = |progress: &dyn Progress, test: &dyn Fn(Miner<'_>)| {
        let watch = Watch::new(None, progress);
        let partial = Mutex::default();
        let shard = Shard::WHOLE;
        test(Miner {
            reach: &reach,
            options: &options,
            max_groundings: options.groundings_in_time(),
            worth: &worth,
            watch: &watch,
            shard,
            partial: &partial,
            scratch: &Mutex::default(),
        });
    };
    check(&Silent, &|miner| {
        let costs = miner.costs(usize::MAX).unwrap();
        let most = costs.len();
        assert!(miner.costs(most).is_some() && miner.costs(most - 1).is_none());
        let links: Vec<Link> = reach.links().collect();
        for (&first, &second) in links.iter().flat_map(|first| links.iter().map(move |last| (first, last))) {
            let listed = costs.get(&(first, second)).copied().unwrap_or(0);
            assert_eq!(miner.cost(first, second), listed, "{first:?} {second:?}");
        }
        let listed = miner.count_long(3, Some(&costs)).0;
        let asked = miner.count_long(3, None).0;
        assert_eq!(listed.len(), asked.len());
        assert!(listed.iter().all(|scored| asked.contains(scored)));
    });
    check(&Impatient::after(100), &|miner| assert!(miner.costs(usize::MAX).is_none()));
}

#[test]
fn an_interruption_keeps_what_was_found() {
    let graph = composed();
    let options = MineOptions { types: vec![RuleType::Cyclic], ..all_options(true) };
    let all = mine(&graph, &options, &Silent).unwrap();
    let some = mine(&graph, &options, &Impatient::after(30)).unwrap();
    assert!(some.interrupted && !all.interrupted);
    assert!(!some.rules.is_empty() && some.rules.len() < all.rules.len());
    assert!(some.rules.iter().all(|scored| all.rules.contains(scored)), "half-counted rules were kept");
}

#[test]
fn senseless_options_are_refused() {
    let graph = composed();
    for options in [
        MineOptions { max_length: 0, ..MineOptions::default() },
        MineOptions { max_acyclic_length: 99, ..MineOptions::default() },
        MineOptions { budget: MiningBudget::Seconds(-1.0), ..MineOptions::default() },
        MineOptions { budget: MiningBudget::Seconds(f64::NAN), ..MineOptions::default() },
        MineOptions { heads: vec![RelationId(77)], ..MineOptions::default() },
        MineOptions { min_confidence: 2.0, ..MineOptions::default() },
        MineOptions { min_confidence: f64::NAN, ..MineOptions::default() },
        MineOptions { unseen: -3.0, ..MineOptions::default() },
        MineOptions { max_groundings: 0, ..MineOptions::default() },
    ] {
        assert!(matches!(mine(&graph, &options, &Silent), Err(RuleError::Option { .. })));
    }
}

#[test]
fn a_time_that_no_clock_can_show_is_no_limit() {
    let options =
        MineOptions { budget: MiningBudget::Seconds(1e30), max_length: 1, ..MineOptions::default() };
    assert!(!mine(&composed(), &options, &Silent).unwrap().rules.is_empty());
}
