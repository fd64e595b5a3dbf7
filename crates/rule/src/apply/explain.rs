//! Why an answer is predicted: the rules that fire, each with one grounding.

use super::RuleReasoner;
use super::base::Fixed;
use super::fire::{Go, Listener};
use crate::clause::{Rule, ScoredRule, Shape};
use crate::ground::Grounding;
use ruleguider_graph::{EntityId, Link, Query};
use std::cmp::Ordering;

/// The most entities that are tried to find more groundings than one.
const TRIES: usize = 1_000_000;

/// A rule that predicts an answer, and entities that satisfy its body.
#[derive(Clone, Debug, PartialEq)]
pub struct FiredRule<'r> {
    /// The rule, as in the file.
    pub rule: &'r ScoredRule,
    /// Its smoothed confidence.
    pub confidence: f64,
    /// The links of the body, in the order of the grounding.
    pub path: Vec<Link>,
    /// The entities along the path, one more than it has links. For a cyclic rule the path leads from the subject of
    /// the query to the answer; for other rules it starts at the entity bound to the rule's variable.
    pub grounding: Vec<EntityId>,
}

/// All rules that predict an answer, the most confident first, as confidence and index of the rule.
pub type Firings = Vec<(f64, u32)>;

/// Collects the rules that predict one entity.
struct About {
    answer: EntityId,
    confidence: f64,
    firings: Firings,
}

impl Listener for About {
    fn confidence(&mut self, confidence: f64, _rules: usize) -> Go {
        self.confidence = confidence;
        Go::On
    }

    fn predicted(&mut self, entity: EntityId, rule: u32) {
        if entity == self.answer {
            self.firings.push((self.confidence, rule));
        }
    }
}

/// A rule that would predict an answer if its body held.
struct Candidate<'b> {
    rule: u32,
    confidence: f64,
    /// The entity where the body begins.
    start: EntityId,
    /// The body; the last link of a cyclic rule is separate.
    body: (&'b [Link], Option<Link>),
    /// The entity where it has to end; `None` for any.
    end: Option<EntityId>,
    /// The constant of the head, if it has one.
    constant: Option<EntityId>,
}

impl Candidate<'_> {
    /// The most confident first, ties in input order, like the paths of a link.
    fn order(&self, other: &Self) -> Ordering {
        other.confidence.total_cmp(&self.confidence).then(self.rule.cmp(&other.rule))
    }
}

impl RuleReasoner {
    /// All rules that predict `answer` for `query`; `None` once `over` returns true. All rules are fired together,
    /// which is faster than searching a grounding for each.
    pub fn firings(
        &self,
        query: Query,
        answer: EntityId,
        over: &(dyn Fn() -> bool + Sync),
    ) -> Option<Firings> {
        let mut about = About { answer, confidence: 0.0, firings: Vec::new() };
        let in_time =
            self.with_scratch(|_, firer| firer.fire(&self.base, &self.reach, query, &mut about, over));
        in_time.then_some(about.firings)
    }

    /// The rules that predict `answer` for `query`, the most confident first.
    pub fn explain(&self, query: Query, answer: EntityId) -> Vec<FiredRule<'_>> {
        self.explain_briefly(query, answer, usize::MAX)
    }

    /// The `most` most confident rules that predict `answer` for `query`. Rules are grounded in order of confidence,
    /// so that a few reasons cost little.
    pub fn explain_briefly(&self, query: Query, answer: EntityId, most: usize) -> Vec<FiredRule<'_>> {
        let link = &self.base.links[query.link.index()];
        let mut paths = link.paths.iter().map(|path| Candidate {
            rule: path.rule,
            confidence: path.confidence,
            start: query.subject,
            body: (&link.prefixes[path.prefix as usize], Some(path.last)),
            end: Some(answer),
            constant: None,
        });
        let mut others = self.with_constants(query, answer).into_iter();
        // Both lists are sorted, so they can be merged lazily.
        let (mut path, mut other) = (paths.next(), others.next());
        let candidates = std::iter::from_fn(|| match (&path, &other) {
            (Some(one), Some(two)) if two.order(one).is_lt() => std::mem::replace(&mut other, others.next()),
            (None, _) => std::mem::replace(&mut other, others.next()),
            _ => std::mem::replace(&mut path, paths.next()),
        });
        candidates.filter_map(|candidate| self.grounded(&candidate)).take(most).collect()
    }

    /// How the rule with index `rule` predicts `answer` for `query`; `None` if it does not.
    pub fn explain_by(&self, query: Query, answer: EntityId, rule: u32) -> Option<FiredRule<'_>> {
        self.explain_all(query, answer, rule, 1).into_iter().next()
    }

    /// All ways in which the rule with index `rule` predicts `answer` for `query`, `most` at most; none if it does not.
    pub fn explain_all(&self, query: Query, answer: EntityId, rule: u32, most: usize) -> Vec<FiredRule<'_>> {
        let scored = &self.base.rules[rule as usize];
        let Rule { head, body, shape } = &scored.rule;
        let turned;
        let bound = match *shape {
            Shape::Cyclic if *head == query.link => Some((query.subject, &body[..], Some(answer))),
            Shape::Cyclic => {
                turned = scored.rule.reversed();
                (turned.head == query.link).then_some((query.subject, &turned.body[..], Some(answer)))
            }
            Shape::Constant { answer: constant, end } if *head == query.link && constant == answer => {
                Some((query.subject, &body[..], end))
            }
            Shape::Constant { answer: constant, end } => {
                let asked_back = *head == query.link.reversed() && constant == query.subject;
                asked_back.then_some((answer, &body[..], end))
            }
        };
        let Some((start, body, end)) = bound else { return Vec::new() };
        let (confidence, constant) = (self.options.confidence(scored), shape.constant());
        self.groundings(&Candidate { rule, confidence, start, body: (body, None), end, constant }, most)
    }

    fn grounded(&self, candidate: &Candidate<'_>) -> Option<FiredRule<'_>> {
        self.groundings(candidate, 1).into_iter().next()
    }

    /// The groundings of a rule, `most` at most.
    fn groundings(&self, candidate: &Candidate<'_>, most: usize) -> Vec<FiredRule<'_>> {
        let (first, last) = candidate.body;
        let path: Vec<Link> = first.iter().copied().chain(last).collect();
        let mut search = Grounding {
            targets: |entity, link| self.reach.targets(link, entity),
            distinct: self.options.distinct,
            avoid: candidate.constant.filter(|_| self.options.distinct),
            tries: if most == 1 { usize::MAX } else { TRIES },
        };
        let (rule, confidence) = (&self.base.rules[candidate.rule as usize], candidate.confidence);
        let mut found = Vec::new();
        search.each(candidate.start, &path, candidate.end, &mut |trail| {
            found.push(FiredRule { rule, confidence, path: path.clone(), grounding: trail.to_vec() });
            found.len() < most
        });
        found
    }

    /// The rules with constants that would predict `answer` for `query`, the most confident first.
    fn with_constants(&self, query: Query, answer: EntityId) -> Vec<Candidate<'_>> {
        let link = &self.base.links[query.link.index()];
        let mut candidates: Vec<Candidate<'_>> = Vec::new();
        if self.options.distinct && answer == query.subject {
            return candidates;
        }
        // The rules of `link` about `constant`, with bodies that begin at `start`.
        let about = |link: Link, constant: EntityId, start: EntityId| {
            let rules = self.base.links[link.index()].about.of(constant);
            rules.iter().filter_map(move |&(confidence, rule)| match &self.base.rules[rule as usize].rule {
                Rule { body, shape: Shape::Constant { end, .. }, .. } => {
                    let (body, constant) = ((&body[..], None), Some(constant));
                    Some(Candidate { rule, confidence, start, body, end: *end, constant })
                }
                _ => None,
            })
        };
        // Rules that predict the answer for every entity with their body: seen from the other end, they are about the
        // answer.
        candidates.extend(about(query.link.reversed(), answer, query.subject));
        candidates.extend(about(query.link, query.subject, answer));
        // Rules without a body have no grounding.
        let empty = (0..).zip(&link.bodies).find(|(_, body)| body.is_empty());
        let zero = empty.map_or(&[][..], |(body, _)| link.fixed.of((body, None)));
        for &Fixed { rule, confidence, .. } in zero.iter().filter(|fixed| fixed.answer == answer) {
            let start = query.subject;
            let body = (&[][..], None);
            candidates.push(Candidate { rule, confidence, start, body, end: None, constant: Some(answer) });
        }
        candidates.sort_by(Candidate::order);
        candidates
    }
}
