//! The propagator's reasons on a family, whose true rules are known: the best path of a right answer follows one of them,
//! and the answer's score hangs on that path.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use ruleguider::eval::Reasoner;
use ruleguider::generate::{Family, family};
use ruleguider::graph::{Direction, EntityId, Graph, Link, Query, RelationId, Triple};
use ruleguider::progress::Silent;
use ruleguider::propagate::{PropagateSettings, PropagateTask, Propagator, train};
use ruleguider::reason::{ByPropagator, Candidate, Evidence, Explains, Hop, PathRuleIndex};
use ruleguider::rule::{MineOptions, MiningBudget, Rule, RuleType, Shape, count_rules, mine};
use ruleguider::tensor::Device;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The longest path that counts.
const LAYERS: usize = 3;

/// The bodies that imply each link: the planted rules in both directions, what follows by putting the body of one rule in
/// place of a link of another, and what has no exception in the whole family. Relations that a planted rule says to be
/// symmetric have one link.
struct TrueRules {
    whole: Arc<Graph>,
    symmetric: HashSet<RelationId>,
    bodies: HashSet<(Link, Vec<Link>)>,
}

impl TrueRules {
    fn of(family: &Family) -> Self {
        let itself = |head: RelationId, body: &[Link]| body == [Link::inverse_of(head)];
        let symmetric =
            family.rules.iter().filter(|rule| itself(rule.head, &rule.body)).map(|rule| rule.head).collect();
        let whole = family.dataset.everything().graph();
        let mut rules = TrueRules { whole, symmetric, bodies: HashSet::new() };
        let mut planted: HashMap<Link, HashSet<Vec<Link>>> = HashMap::new();
        for rule in &family.rules {
            let backwards: Vec<Link> = rule.body.iter().rev().map(|link| link.reversed()).collect();
            for (head, body) in
                [(Link::forward(rule.head), rule.body.clone()), (Link::inverse_of(rule.head), backwards)]
            {
                planted.entry(rules.one(head)).or_default().insert(rules.all(&body));
            }
        }
        let mut open: Vec<(Link, Vec<Link>)> = planted
            .iter()
            .flat_map(|(&head, bodies)| bodies.iter().map(move |body| (head, body.clone())))
            .collect();
        while let Some((head, body)) = open.pop() {
            if body.len() > LAYERS || !rules.bodies.insert((head, body.clone())) {
                continue;
            }
            for (place, link) in body.iter().enumerate() {
                for other in planted.get(link).into_iter().flatten() {
                    let (before, after) = (&body[..place], &body[place + 1..]);
                    open.push((head, [before, other, after].concat()));
                }
            }
        }
        rules
    }

    fn one(&self, link: Link) -> Link {
        let relation = link.relation().unwrap();
        if self.symmetric.contains(&relation) { Link::forward(relation) } else { link }
    }

    fn all(&self, body: &[Link]) -> Vec<Link> {
        body.iter().map(|&link| self.one(link)).collect()
    }

    fn explain(&self, query: Query, path: &[Hop]) -> bool {
        let links: Vec<Link> = path.iter().map(|hop| hop.link).collect();
        let rule = Rule { head: query.link, body: links.as_slice().into(), shape: Shape::Cyclic };
        let counts = count_rules(&self.whole, &[rule], true)[0];
        let never_fails = counts.predicted > 0 && counts.correct == counts.predicted;
        never_fails || self.bodies.contains(&(self.one(query.link), self.all(&links)))
    }
}

fn trained(family: &Family, device: &Device) -> Propagator {
    let names = &family.dataset.names;
    let settings = PropagateSettings {
        layers: LAYERS,
        width: 16,
        hidden: 16,
        epochs: 3,
        epoch_queries: 2000,
        learning_rate: 5e-3,
        warm_up: 20,
        validation_queries: 50,
        ..PropagateSettings::default()
    };
    let task = PropagateTask {
        known: &family.dataset.known,
        size: (names.entities.len(), names.relations.len()),
        settings: &settings,
        seed: 1,
        device,
        folder: None,
        warm: None,
        initial: None,
    };
    train(task, &Silent).unwrap().propagator
}

/// The queries of the test split whose answer ranks first among what the graph does not have.
fn right_answers(propagator: &Propagator, graph: &Graph, test: &[Triple]) -> Vec<(Query, EntityId)> {
    let asked = [Direction::Forward, Direction::Inverse];
    let asked: Vec<(Query, EntityId)> =
        test.iter().flat_map(|&fact| asked.map(|direction| Query::of(fact, direction))).collect();
    let right = |&&(query, target): &&(Query, EntityId)| {
        let answers = propagator.answer(&[query]).unwrap();
        let known = graph.targets(query.subject, query.link);
        let best = answers.best(0, known.len() + 1).into_iter().find(|one| !known.contains(&one.entity));
        best.is_some_and(|best| best.entity == target)
    };
    asked.iter().filter(right).copied().collect()
}

/// The facts of a path from `subject`.
fn facts(subject: EntityId, path: &[Hop]) -> Vec<(EntityId, Link, EntityId)> {
    let mut from = subject;
    path.iter().map(|hop| (std::mem::replace(&mut from, hop.target), hop.link, hop.target)).collect()
}

/// A walk of as many hops as `path` from the same subject, drawn by `dice`, that is not `path`.
fn other_walk(graph: &Graph, subject: EntityId, path: &[Hop], dice: &mut u64) -> Vec<Hop> {
    loop {
        let mut here = subject;
        let walk: Vec<Hop> = (0..path.len())
            .map(|_| {
                *dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                let edges = graph.edges(here);
                let edge = edges[(*dice >> 33) as usize % edges.len()];
                here = edge.target;
                Hop { link: edge.link, target: here, scores: None }
            })
            .collect();
        if walk != path {
            return walk;
        }
    }
}

#[test]
fn the_best_path_follows_a_true_rule_and_the_score_hangs_on_it() {
    let family = family(150, 4);
    let device = Device::cpu(2).unwrap();
    let (graph, rules) = (family.dataset.graph(), TrueRules::of(&family));
    let options = MineOptions {
        types: vec![RuleType::Cyclic],
        budget: MiningBudget::Samples(100_000),
        ..MineOptions::default()
    };
    let mined = mine(&graph, &options, &Silent).unwrap().rules;
    let propagator = Arc::new(trained(&family, &device));
    let reasoner = ByPropagator::new(propagator.clone(), &graph, PathRuleIndex::new(&mined).into());
    let test = &family.dataset.test;
    let right = right_answers(&propagator, &graph, test);
    assert!(right.len() >= test.len(), "{} of {} are right", right.len(), 2 * test.len());
    let (mut by_rule, mut by_rule_at_random, mut lower, mut dice) = (0, 0, 0, 7);
    for &(query, entity) in &right {
        let candidate = Candidate { entity, score: 0.0, evidence: Evidence::default() };
        let best = reasoner.reasons(query, &candidate, 1).unwrap().remove(0).path;
        by_rule += usize::from(rules.explain(query, &best));
        let other = other_walk(&graph, query.subject, &best, &mut dice);
        by_rule_at_random += usize::from(rules.explain(query, &other));
        let without =
            |path: &[Hop]| propagator.score_without(query, entity, &facts(query.subject, path)).unwrap();
        lower += usize::from(without(&best) < without(&other));
    }
    let of = right.len();
    let message =
        format!("{by_rule} follow a rule ({by_rule_at_random} walks at random), {lower} fall more, of {of}");
    println!("{message}");
    assert!(10 * by_rule >= 9 * of && 10 * lower >= 9 * of && 2 * by_rule_at_random < by_rule, "{message}");
}
