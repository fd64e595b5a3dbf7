//! All ways by which a rule leads from a subject: its groundings.

use super::answer::{PathStep, RuleSummary, steps};
use super::{AskError, Model};
use crate::graph::{Direction, EntityId, Link, Query};
use crate::progress::Progress;
use crate::reason::Hop;
use crate::rule::{ApplyOptions, Grounding, Rule, Shape, parse_rule};
use crate::run::RunError;
use serde::Serialize;
use std::ops::Range;

/// Entities that are tried before a search gives up: a rule may have more groundings than anybody can wait for.
const TRIES: usize = 5_000_000;
/// Groundings between two looks at whether to stop.
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
    /// Whether there are more of them, or the search ended before it had looked everywhere.
    pub more: bool,
    /// How many there are up to the end of this page, if there are more.
    pub next: Option<usize>,
}

impl Model {
    /// The paths by which the rule that is written as `rule` leads from `subject` to `object`, or anywhere, and of these
    /// the ones whose places are in `page`; `inverse` asks for heads.
    ///
    /// # Errors
    /// If this run has no such rule, it is not about these entities, or `progress` says to stop.
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
            .map_err(|what| AskError::name(format!("`{rule}` is no rule over this graph: {what}"), &[]))?;
        let places = self.rules_by_head().get(&wanted.relation()).map_or(&[][..], Vec::as_slice);
        let known =
            places.iter().map(|&place| &self.rules()[place as usize]).find(|known| known.rule == wanted);
        let Some(known) = known else {
            return Err(AskError::name(format!("this run has no rule `{rule}`"), &[]));
        };
        let direction = if inverse { Direction::Inverse } else { Direction::Forward };
        let query = Query { subject, link: Link::new(wanted.relation(), direction) };
        let Some((start, body, end)) = walked(&wanted, query, object) else {
            let message = format!("the rule `{rule}` says nothing about {}", names.entity(subject));
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
                paths.push(steps(&hops, names));
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

/// Where the body of `rule` begins for `query`, its links, and where it has to end; none if the rule is not about it.
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
