//! Why an answer is predicted: the rules that fire, each with one way to ground it.

use super::RuleReasoner;
use crate::graph::{EntityId, Link, Query};
use crate::rule::clause::{ScoredRule, Shape};

/// A rule that predicts an answer, and entities that satisfy its body.
#[derive(Clone, Debug, PartialEq)]
pub struct Reason<'r> {
    /// The rule, as it stands in the file.
    pub rule: &'r ScoredRule,
    /// Its smoothed confidence.
    pub confidence: f64,
    /// The links of the body, as they are walked along the grounding.
    pub path: Vec<Link>,
    /// The entities along the path, one more than it has links. For a cyclic rule it leads from the subject of
    /// the query to the answer; for others from the entity that the rule's variable stands for.
    pub grounding: Vec<EntityId>,
}

impl RuleReasoner<'_> {
    /// The rules that predict `answer` for `query`, the most confident first.
    pub fn explain(&self, query: Query, answer: EntityId) -> Vec<Reason<'_>> {
        let link = &self.base.links[query.link.index()];
        let mut reasons: Vec<Reason<'_>> = Vec::new();
        let mut add = |rule: u32, confidence: f64, start: EntityId, path: &[Link], end: Option<EntityId>| {
            let mut grounding = vec![start];
            if self.ground(&mut grounding, path, end) {
                let rule = &self.base.rules[rule as usize];
                reasons.push(Reason { rule, confidence, path: path.to_vec(), grounding });
            }
        };
        for path in &link.paths {
            let mut body = link.prefixes[path.prefix as usize].to_vec();
            body.push(path.last);
            add(path.rule, path.confidence, query.subject, &body, Some(answer));
        }
        if !self.options.distinct || answer != query.subject {
            for (&(body, end), fixed) in &link.fixed {
                for fixed in fixed.iter().filter(|fixed| fixed.answer == answer) {
                    add(fixed.rule, fixed.confidence, query.subject, &link.bodies[body as usize], end);
                }
            }
            for &(confidence, rule) in link.about.get(&query.subject).into_iter().flatten() {
                let body = &self.base.rules[rule as usize].rule;
                if let Shape::Constant { end, .. } = body.shape {
                    add(rule, confidence, answer, &body.body, end);
                }
            }
        }
        reasons.sort_by(|a, b| {
            b.confidence.total_cmp(&a.confidence).then_with(|| a.rule.rule.cmp(&b.rule.rule))
        });
        reasons
    }

    /// Continues `trail` along `path` to `end` (anywhere if there is none); false, and as before, if there is no
    /// way.
    fn ground(&self, trail: &mut Vec<EntityId>, path: &[Link], end: Option<EntityId>) -> bool {
        let Some((&link, rest)) = path.split_first() else { return true };
        let targets = self.reach.targets(link, trail[trail.len() - 1]);
        let choice = match end.filter(|_| rest.is_empty()) {
            Some(end) => match targets.binary_search(&end) {
                Ok(place) => &targets[place..=place],
                Err(_) => &[],
            },
            None => targets,
        };
        for &target in choice {
            if self.options.distinct && trail.contains(&target) {
                continue;
            }
            trail.push(target);
            if self.ground(trail, rest, end) {
                return true;
            }
            trail.pop();
        }
        false
    }
}
