//! An answer with its reason: the path that leads to it and the rule that the path follows, in ids, as JSON with
//! names, and in plain words.

use crate::graph::{Direction, EntityId, Link, Names, Query};
use crate::rule::{ScoredRule, UNSEEN, rule_text};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// One step of a path: which link was walked and where it led.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// The link.
    pub link: Link,
    /// Where it led.
    pub target: EntityId,
    /// The log-probabilities of the relation agent and of the entity agent, where agents walked.
    pub scores: Option<[f64; 2]>,
}

/// An answer and why it was given.
#[derive(Clone, Debug, PartialEq)]
pub struct Reasoned {
    /// The answer.
    pub entity: EntityId,
    /// How good it is; scores of one system and one query compare.
    pub score: f64,
    /// Where the path begins: at the subject, unless it is a rule about the answer that says so.
    pub start: EntityId,
    /// The path that speaks for the answer; empty where the reason is no path.
    pub path: Vec<Hop>,
    /// The rule that says so, if there is one.
    pub rule: Option<ScoredRule>,
}

/// An answer as scripts read it. The names of the fields are a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The entity, by its id.
    pub entity: String,
    /// Its label, or its id where it has none.
    pub label: String,
    /// How good the answer is.
    pub score: f64,
    /// The label of the entity where the path begins: the subject, or the answer where the rule is about it.
    pub from: String,
    /// The path that speaks for the answer.
    pub path: Vec<Step>,
    /// The rule that the path follows.
    pub rule: Option<RuleSaid>,
}

/// One step of a path as scripts read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The relation's name.
    pub relation: String,
    /// Whether it was walked from tail to head.
    pub inverse: bool,
    /// Where it led, by id.
    pub entity: String,
    /// The label of that entity, or its id where it has none.
    pub label: String,
    /// The relation agent's log-probability of the relation, where agents walked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_score: Option<f64>,
    /// The entity agent's log-probability of the entity, where agents walked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_score: Option<f64>,
}

/// A rule as scripts read it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleSaid {
    /// `head <= body`, in AnyBURL's notation.
    pub text: String,
    /// `correct / (predicted + 5)`.
    pub confidence: f64,
    /// How many of its predictions are facts of the graph.
    pub correct: u64,
    /// How many predictions it makes in the graph.
    pub predicted: u64,
}

impl RuleSaid {
    /// `scored` with its names.
    pub fn new(scored: &ScoredRule, names: &Names) -> Self {
        Self {
            text: rule_text(&scored.rule, names),
            confidence: scored.counts.confidence(UNSEEN),
            correct: scored.counts.correct,
            predicted: scored.counts.predicted,
        }
    }
}

impl Answer {
    /// `reasoned` with its names. Steps that stay where they are say nothing and are left out.
    pub fn new(reasoned: &Reasoned, names: &Names) -> Self {
        Self {
            entity: names.entity(reasoned.entity).to_owned(),
            label: names.label(reasoned.entity).to_owned(),
            score: reasoned.score,
            from: names.label(reasoned.start).to_owned(),
            path: steps(&reasoned.path, names),
            rule: reasoned.rule.as_ref().map(|rule| RuleSaid::new(rule, names)),
        }
    }
}

/// `path` with its names, without the hops that stay where they are.
pub fn steps(path: &[Hop], names: &Names) -> Vec<Step> {
    path.iter()
        .filter_map(|hop| {
            Some(Step {
                relation: names.relation(hop.link.relation()?).to_owned(),
                inverse: hop.link.direction() == Direction::Inverse,
                entity: names.entity(hop.target).to_owned(),
                label: names.label(hop.target).to_owned(),
                relation_score: hop.scores.map(|scores| scores[0]),
                entity_score: hop.scores.map(|scores| scores[1]),
            })
        })
        .collect()
}

/// `Ada —parent_of→ Ben ←sibling_of— Cleo`: a path in plain words.
pub fn path_in_words(subject: &str, path: &[Step]) -> String {
    let mut said = subject.to_owned();
    for Step { relation, inverse, label, .. } in path {
        // Writing to a string cannot fail.
        let _ = match inverse {
            false => write!(said, " —{relation}→ {label}"),
            true => write!(said, " ←{relation}— {label}"),
        };
    }
    said
}

/// `Ada —parent_of→ Ben —sibling_of→ Cleo ⇒ Ada parent_of Cleo is likely, rule confidence 0.93`.
pub fn in_words(query: Query, answer: &Answer, names: &Names) -> String {
    let subject = names.label(query.subject);
    let mut said = match answer.path.is_empty() {
        true => format!("{subject} ⇒ "),
        false => format!("{} ⇒ ", path_in_words(&answer.from, &answer.path)),
    };
    let relation = query.link.relation().map_or("?", |relation| names.relation(relation));
    let _ = match query.link.direction() {
        Direction::Forward => write!(said, "{subject} {relation} {}", answer.label),
        Direction::Inverse => write!(said, "{} {relation} {subject}", answer.label),
    };
    // What a rule gives less than even odds is the best there is, not more.
    let doubtful = answer.rule.as_ref().is_some_and(|rule| rule.confidence < 0.5);
    said.push_str(if doubtful { " is the best guess" } else { " is likely" });
    if let Some(rule) = &answer.rule {
        let _ = write!(said, ", rule confidence {:.2}", rule.confidence);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::RelationId;
    use crate::rule::{Counts, Rule};

    fn names() -> Names {
        let mut names = Names::default();
        for name in ["ada", "ben", "cleo"] {
            let id = EntityId(names.entities.intern(name));
            let label = name[..1].to_uppercase() + &name[1..];
            names.labels.insert(id, label);
        }
        names.relations = ["parent_of", "sibling_of"].into_iter().collect();
        names
    }

    #[test]
    fn a_path_is_said_in_plain_words() {
        let names = names();
        let [parent, sibling] = [0, 1].map(RelationId);
        let body = [Link::forward(parent), Link::inverse_of(sibling)];
        let counts = Counts::exact(95, 93);
        let reasoned = Reasoned {
            entity: EntityId(2),
            score: 0.93,
            start: EntityId(0),
            path: vec![
                Hop { link: body[0], target: EntityId(1), scores: None },
                Hop { link: body[1], target: EntityId(2), scores: None },
                Hop { link: Link::NO_OP, target: EntityId(2), scores: None },
            ],
            rule: Some(ScoredRule { rule: Rule::cyclic(Link::forward(parent), &body), counts }),
        };
        let answer = Answer::new(&reasoned, &names);
        let query = Query { subject: EntityId(0), link: Link::forward(parent) };
        let said =
            "Ada —parent_of→ Ben ←sibling_of— Cleo ⇒ Ada parent_of Cleo is likely, rule confidence 0.93";
        assert_eq!(in_words(query, &answer, &names), said);
        let rule = answer.rule.as_ref().unwrap();
        assert_eq!(rule.text, "parent_of(X,Y) <= parent_of(X,A), sibling_of(Y,A)");
        let doubted = RuleSaid { confidence: 0.3, ..rule.clone() };
        let doubted = Answer { rule: Some(doubted), ..answer.clone() };
        assert!(in_words(query, &doubted, &names).ends_with("is the best guess, rule confidence 0.30"));
        let head_query = Query { subject: EntityId(0), link: Link::inverse_of(parent) };
        let bare = Answer { path: Vec::new(), rule: None, ..answer };
        assert_eq!(in_words(head_query, &bare, &names), "Ada ⇒ Cleo parent_of Ada is likely");
    }

    #[test]
    fn the_keys_are_those_that_scripts_read() {
        let names = names();
        let hop = Hop { link: Link::inverse_of(RelationId(0)), target: EntityId(1), scores: None };
        let rule = Rule::cyclic(Link::forward(RelationId(0)), &[Link::forward(RelationId(1))]);
        let rule = Some(ScoredRule { rule, counts: Counts::exact(5, 5) });
        let answer = Answer::new(
            &Reasoned { entity: EntityId(1), score: 0.5, start: EntityId(2), path: vec![hop], rule },
            &names,
        );
        let json = serde_json::to_value(&answer).unwrap();
        let expected = serde_json::json!({
            "entity": "ben", "label": "Ben", "score": 0.5, "from": "Cleo",
            "path": [{"relation": "parent_of", "inverse": true, "entity": "ben", "label": "Ben"}],
            "rule": {"text": "parent_of(X,Y) <= sibling_of(X,Y)", "confidence": 0.5, "correct": 5, "predicted": 5},
        });
        assert_eq!(json, expected);
    }
}
