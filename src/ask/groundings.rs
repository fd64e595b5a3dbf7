//! The groundings of a rule: all paths along which it leads from a subject.

use super::answer::{PathStep, RuleSummary};
use super::{AskError, Model};
use crate::graph::{Direction, EntityId, Link, Query};
use crate::progress::Progress;
use crate::reason::Hop;
use crate::rule::{ApplyOptions, Grounding, Rule, Shape, parse_rule};
use crate::run::RunError;
use serde::Serialize;
use std::ops::Range;

/// The most entities that a search tries: a rule may have far too many groundings to list.
const TRIES: usize = 5_000_000;
/// Groundings between two checks whether to stop.
const LOOK_EVERY: usize = 1024;

/// The groundings of a rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Groundings {
    /// The rule.
    #[serde(flatten)]
    pub rule: RuleSummary,
    /// The label of the entity where all paths begin.
    pub from: String,
    /// The id of that entity.
    pub from_id: String,
    /// The paths, in the order of their entities' numbers.
    pub paths: Vec<Vec<PathStep>>,
    /// Whether there are more of them, or the search gave up early.
    pub more: bool,
    /// Where the next page begins, if there are more.
    pub next: Option<usize>,
}

impl Model {
    /// The paths along which the rule with the text `rule` leads from `subject` to `object`, or anywhere without one;
    /// of these, those with an index in `page`. `inverse` asks for heads.
    ///
    /// # Errors
    /// If this run has no such rule, the rule is not about these entities, or `progress` says to stop.
    pub fn groundings(
        &self,
        rule: &str,
        subject: EntityId,
        object: Option<EntityId>,
        inverse: bool,
        page: Range<usize>,
        progress: &dyn Progress,
    ) -> Result<Groundings, AskError> {
        let (names, graph) = (self.names(), self.graph());
        let wanted = parse_rule(rule, names)
            .map_err(|what| AskError::name(format!("`{rule}` is not a rule over this graph: {what}"), &[]))?;
        let places = self.rules_by_head().get(&wanted.relation()).map_or(&[][..], Vec::as_slice);
        let known =
            places.iter().map(|&place| &self.rules()[place as usize]).find(|known| known.rule == wanted);
        let Some(known) = known else {
            return Err(AskError::name(format!("this run has no rule `{rule}`"), &[]));
        };
        let direction = if inverse { Direction::Inverse } else { Direction::Forward };
        let query = Query { subject, link: Link::new(wanted.relation(), direction) };
        let Some((start, body, end)) = walked(&wanted, query, object) else {
            let message = format!("the rule `{rule}` does not apply to {}", names.entity(subject));
            return Err(AskError::Cannot(message));
        };
        let (mut paths, mut more, mut stopped, mut seen) = (Vec::new(), false, false, 0);
        let mut search = Grounding {
            targets: |entity, link| graph.targets(entity, link),
            distinct: ApplyOptions::default().distinct,
            avoid: wanted.shape.constant().filter(|_| ApplyOptions::default().distinct),
            tries: TRIES,
        };
        search.each(start, &body, end, &mut |trail| {
            stopped = seen % LOOK_EVERY == LOOK_EVERY - 1 && progress.interrupted();
            more = seen >= page.end;
            if page.contains(&seen) && !stopped {
                let hop = |(&link, &target): (&Link, &EntityId)| Hop { link, target, scores: None };
                let hops: Vec<Hop> = body.iter().zip(&trail[1..]).map(hop).collect();
                paths.push(self.steps(start, &hops));
            }
            seen += 1;
            !more && !stopped
        });
        if stopped || progress.interrupted() {
            return Err(RunError::Interrupted.into());
        }
        Ok(Groundings {
            rule: RuleSummary::new(known, names, self.naming()),
            from: names.label(start).to_owned(),
            from_id: names.entity(start).to_owned(),
            paths,
            more: more || search.tries == 0,
            next: more.then_some(page.end),
        })
    }
}

/// Where the body of `rule` begins for `query`, its links, and where it has to end; `None` if the rule does not apply
/// to the query.
fn walked(
    rule: &Rule,
    query: Query,
    object: Option<EntityId>,
) -> Option<(EntityId, Vec<Link>, Option<EntityId>)> {
    match rule.shape {
        Shape::Cyclic if rule.head == query.link => Some((query.subject, rule.body.to_vec(), object)),
        Shape::Cyclic => Some((query.subject, rule.reversed().body.to_vec(), object)),
        Shape::Constant { answer, end } if rule.head == query.link => {
            object.is_none_or(|object| object == answer).then(|| (query.subject, rule.body.to_vec(), end))
        }
        // Asked from the constant: the body begins at the answer.
        Shape::Constant { answer, end } => {
            (answer == query.subject).then_some(())?;
            Some((object?, rule.body.to_vec(), end))
        }
    }
}
