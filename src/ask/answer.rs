//! An answer with its reason: the path that leads to it and the rule that the path follows, as JSON with names, and in
//! plain words.

use super::sentence::{fact_sentence, reason_sentence, rule_sentence};
use super::{Contribution, Naming, StepNote};
use crate::graph::{Direction, Names, Query};
use crate::reason::{Hop, Reasoned, ScoreWithout};
use crate::rule::{ScoredRule, Shape, UNSEEN, rule_calling, rule_text};
use serde::{Deserialize, Serialize};
use std::fmt::{self, Write};

/// An answer as scripts see it. The names of the fields are a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Answer {
    /// The entity, by its id.
    pub entity: String,
    /// Its label, or its id if it has none.
    pub label: String,
    /// The score of the answer.
    pub score: f64,
    /// The calibrated probability: the share of such answers that turn out to be held-out facts.
    #[serde(default)]
    pub probability: Probability,
    /// Whether the probability is rough: calibrated on too little.
    #[serde(default, skip_serializing_if = "is_false")]
    pub probability_rough: bool,
    /// Why it was given.
    #[serde(flatten)]
    pub reason: Reason,
    /// The score of a typical candidate of the same query; absent where the score was not decomposed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub typical: Option<f64>,
    /// What the score came from: with `typical`, the shares add up to it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub because: Vec<Contribution>,
    /// The split that has this fact, if it is one of the data that was held out.
    #[serde(default)]
    pub held_out: Option<HeldOut>,
}

/// Why an answer was given: a path, and the rule that it follows. Shown as text it is one line.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reason {
    /// The label of the entity where the path begins: the subject, or the answer if the rule is about the answer.
    pub from: String,
    /// The id of that entity.
    #[serde(default)]
    pub from_id: String,
    /// The reason in a sentence: the path, and how often the rule was right. Empty if there is neither.
    #[serde(default)]
    pub sentence: String,
    /// The path that supports the answer.
    pub path: Vec<PathStep>,
    /// The rule that the path follows.
    pub rule: Option<RuleSummary>,
    /// The propagator's score of the answer with and without this path; only in explanations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub propagator: Option<ScoreWithout>,
}

impl Reason {
    /// The reason in one line; `name` gives the display name for a label and an id.
    fn line(&self, name: &dyn Fn(&str, &str) -> String) -> String {
        let path = match self.path.is_empty() {
            true => String::new(),
            false => path_line(&name(&self.from, &self.from_id), &self.path, name),
        };
        match &self.rule {
            Some(rule) if path.is_empty() => rule.in_words(),
            Some(rule) => format!("{path}   {}", rule.in_words()),
            None => path,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.line(&|label, _| label.to_owned()))
    }
}

/// A calibrated probability, where the model has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Probability(pub Option<f64>);

impl fmt::Display for Probability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(probability) => fmt::Display::fmt(&probability, f),
            None => f.pad("–"),
        }
    }
}

impl Probability {
    /// For people: `0.412`, or with one digit that counts (`~0.4`, `~0.03`) if it is rough; `None` where there is none.
    pub fn in_words(self, rough: bool) -> Option<String> {
        self.0.map(|share| match share {
            share if !rough => format!("{share:.3}"),
            // "~0.0" would read as impossible.
            share if share < 0.0005 => "<0.001".to_owned(),
            share if share < 0.0095 => format!("~{share:.3}"),
            share if share < 0.095 => format!("~{share:.2}"),
            share => format!("~{share:.1}"),
        })
    }
}

/// For fields that are left out unless they are true.
pub(super) fn is_false(value: &bool) -> bool {
    !value
}

/// A held-out split: its facts are in the data but not in the graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum HeldOut {
    /// Training queries, where the graph is a file of its own that lacks them.
    Train,
    /// The validation split, used for tuning.
    Valid,
    /// The test split, used for evaluation.
    Test,
}

impl HeldOut {
    /// The split that has the fact, as in JSON.
    pub fn split(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Valid => "valid",
            Self::Test => "test",
        }
    }

    /// What the fact was held out for.
    pub fn purpose(self) -> &'static str {
        match self {
            Self::Train => "training",
            Self::Valid => "validation",
            Self::Test => "test",
        }
    }
}

/// One step of a path as scripts see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PathStep {
    /// The relation's name.
    pub relation: String,
    /// Its label, where it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_label: Option<String>,
    /// Whether it was walked from tail to head.
    pub inverse: bool,
    /// Where it led, by id.
    pub entity: String,
    /// The label of that entity, or its id if it has none.
    pub label: String,
    /// The relation agent's log-probability of the relation, where agents walked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relation_score: Option<f64>,
    /// The entity agent's log-probability of the entity, where agents walked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub entity_score: Option<f64>,
    /// What the data say about this fact, if anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<StepNote>,
}

impl PathStep {
    /// The display name of the relation: its label, or its name if it has none.
    pub fn relation_shown(&self) -> &str {
        self.relation_label.as_deref().unwrap_or(&self.relation)
    }
}

/// A rule as scripts see it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RuleSummary {
    /// `head <= body`, in AnyBURL's notation.
    pub text: String,
    /// `correct / predicted`.
    pub confidence: f64,
    /// `correct / (predicted + 5)`, by which rules are compared: a rule with few predictions is less sure.
    #[serde(default)]
    pub smoothed: f64,
    /// How many of its predictions are facts of the graph.
    pub correct: u64,
    /// How many predictions it makes in the graph.
    pub predicted: u64,
    /// The rule in a sentence.
    #[serde(default)]
    pub sentence: String,
    /// The same as `text`, with entities and relations by their labels.
    #[serde(default)]
    pub label: String,
    /// Whether it contains constants: then its path need not lead from the subject to the answer.
    #[serde(default)]
    pub constants: bool,
}

impl RuleSummary {
    /// `scored` with its names.
    pub fn new(scored: &ScoredRule, names: &Names, naming: &Naming) -> Self {
        let rule = &scored.rule;
        let label = rule_calling(rule, names, |entity| naming.of(entity, names));
        Self {
            text: rule_text(rule, names),
            confidence: scored.counts.confidence(0.0),
            smoothed: scored.counts.confidence(UNSEEN),
            sentence: rule_sentence(rule, names, naming),
            correct: scored.counts.correct,
            predicted: scored.counts.predicted,
            label: match rule.body.is_empty() {
                true => format!("{} for every X", label.trim_end_matches([' ', '<', '='])),
                false => label,
            },
            constants: rule.shape != Shape::Cyclic,
        }
    }

    /// Its confidence, and its text if the path does not show the rule.
    pub fn in_words(&self) -> String {
        let Self { confidence, correct, predicted, label, constants, .. } = self;
        let text = if *constants { format!("{label}; ") } else { String::new() };
        format!("[rule: {text}confidence {confidence:.3}, {correct} of {predicted} true]")
    }
}

impl Answer {
    /// `reasoned` with its names; `held_out` is the split that has it. NO_OP steps are left out.
    pub fn new(reasoned: &Reasoned, held_out: Option<HeldOut>, names: &Names, naming: &Naming) -> Self {
        Self {
            entity: names.entity(reasoned.entity).to_owned(),
            label: names.label(reasoned.entity).to_owned(),
            score: reasoned.score,
            probability: Probability::default(),
            probability_rough: false,
            reason: Reason {
                from: names.label(reasoned.start).to_owned(),
                from_id: names.entity(reasoned.start).to_owned(),
                sentence: reason_sentence(reasoned, names, naming),
                path: steps(&reasoned.path, names),
                rule: reasoned.rule.as_ref().map(|rule| RuleSummary::new(rule, names, naming)),
                propagator: None,
            },
            typical: None,
            because: Vec::new(),
            held_out,
        }
    }

    /// The same with what its score came from: a typical candidate's score, and the members' shares.
    pub(super) fn because(self, (typical, because): (f64, Vec<Contribution>)) -> Self {
        Self { typical: Some(typical), because, ..self }
    }

    /// Its probability for people, where there is one.
    pub fn probability_in_words(&self) -> Option<String> {
        self.probability.in_words(self.probability_rough)
    }

    /// The display name of the answer.
    pub fn name(&self, naming: &Naming) -> String {
        naming.name(&self.label, &self.entity)
    }

    /// Its path in plain words; empty if there is none.
    pub fn path_in_words(&self, naming: &Naming) -> String {
        let Reason { from, from_id, path, .. } = &self.reason;
        match path.is_empty() {
            true => String::new(),
            false => path_in_words(&naming.name(from, from_id), path, naming),
        }
    }

    /// Its reason in a sentence.
    pub fn reason_in_words(&self) -> String {
        self.about_itself().unwrap_or_else(|| self.reason.sentence.clone())
    }

    /// Its reason as a path and a clause in one line, with unambiguous names for entities.
    pub fn reason_in_clauses(&self, naming: &Naming) -> String {
        self.about_itself().unwrap_or_else(|| self.reason.line(&|label, id| naming.name(label, id)))
    }

    fn about_itself(&self) -> Option<String> {
        let Reason { from_id, path, rule, .. } = &self.reason;
        (path.is_empty() && rule.is_none() && self.entity == *from_id)
            .then(|| "itself: many facts of this relation lead from an entity to itself".to_owned())
    }
}

/// `path` with its names, without the hops that stay where they are.
pub fn steps(path: &[Hop], names: &Names) -> Vec<PathStep> {
    path.iter()
        .filter_map(|hop| {
            let relation = hop.link.relation()?;
            Some(PathStep {
                relation: names.relation(relation).to_owned(),
                relation_label: names.relation_labels.get(relation).map(str::to_owned),
                inverse: hop.link.direction() == Direction::Inverse,
                entity: names.entity(hop.target).to_owned(),
                label: names.label(hop.target).to_owned(),
                relation_score: hop.scores.map(|scores| scores[0]),
                entity_score: hop.scores.map(|scores| scores[1]),
                note: None,
            })
        })
        .collect()
}

/// `Ada —parent_of→ Ben ←sibling_of— Cleo`: a path in plain words.
pub fn path_in_words(from: &str, path: &[PathStep], naming: &Naming) -> String {
    path_line(from, path, &|label, id| naming.name(label, id))
}

fn path_line(from: &str, path: &[PathStep], name: &dyn Fn(&str, &str) -> String) -> String {
    let mut line = from.to_owned();
    for step in path {
        let (relation, name) = (step.relation_shown(), name(&step.label, &step.entity));
        // Writing to a string cannot fail.
        let _ = match step.inverse {
            false => write!(line, " —{relation}→ {name}"),
            true => write!(line, " ←{relation}— {name}"),
        };
        if let Some(note) = &step.note {
            let _ = write!(line, " {note}");
        }
    }
    line
}

/// The answer and its reason: `Ada is a parent of Cleo, likely: Ada is …; this held in 93 of 95 such cases (0.979)`.
pub fn in_words(query: Query, answer: &Answer, names: &Names, naming: &Naming) -> String {
    let fact = fact_sentence(query, &answer.name(naming), names, naming);
    // Below even odds, the answer is called a guess.
    let doubtful = answer.reason.rule.as_ref().is_some_and(|rule| rule.confidence < 0.5);
    let how = if doubtful { "the best guess" } else { "likely" };
    match answer.reason_in_words() {
        reason if reason.is_empty() => format!("{fact}, {how}"),
        reason => format!("{fact}, {how}: {reason}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{EntityId, Link, RelationId};
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
            without: None,
        };
        let naming = Naming::new(&names);
        let answer = Answer::new(&reasoned, None, &names, &naming);
        let query = Query { subject: EntityId(0), link: Link::forward(parent) };
        let message = "Ada is a parent of Cleo, likely: Ada is a parent of Ben, and Cleo is a sibling of Ben; \
             this held in 93 of 95 such cases (0.979)";
        assert_eq!(
            answer.reason_in_clauses(&naming),
            "Ada —parent_of→ Ben ←sibling_of— Cleo   [rule: confidence 0.979, 93 of 95 true]"
        );
        assert_eq!(in_words(query, &answer, &names, &naming), message);
        let rule = answer.reason.rule.as_ref().unwrap();
        assert_eq!(rule.text, "parent_of(X,Y) <= parent_of(X,A), sibling_of(Y,A)");
        let doubted = RuleSummary { confidence: 0.3, ..rule.clone() };
        let reason = Reason { rule: Some(doubted), ..answer.reason.clone() };
        let doubted = Answer { reason, ..answer.clone() };
        assert!(
            in_words(query, &doubted, &names, &naming)
                .starts_with("Ada is a parent of Cleo, the best guess: Ada ")
        );
        let head_query = Query { subject: EntityId(0), link: Link::inverse_of(parent) };
        let reason =
            Reason { path: Vec::new(), rule: None, sentence: String::new(), ..answer.reason.clone() };
        let bare = Answer { reason, ..answer };
        assert_eq!(in_words(head_query, &bare, &names, &naming), "Cleo is a parent of Ada, likely");
    }

    #[test]
    fn the_keys_are_those_that_scripts_read() {
        let names = names();
        let hop = Hop { link: Link::inverse_of(RelationId(0)), target: EntityId(1), scores: None };
        let rule = Rule::cyclic(Link::forward(RelationId(0)), &[Link::forward(RelationId(1))]);
        let rule = Some(ScoredRule { rule, counts: Counts::exact(5, 5) });
        let answer = Answer::new(
            &Reasoned {
                entity: EntityId(1),
                score: 0.5,
                start: EntityId(2),
                path: vec![hop],
                rule,
                without: None,
            },
            Some(HeldOut::Test),
            &names,
            &Naming::default(),
        );
        let json = serde_json::to_value(&answer).unwrap();
        let expected = serde_json::json!({
            "entity": "ben", "label": "Ben", "score": 0.5, "probability": null, "from": "Cleo", "from_id": "cleo",
            "sentence": "Ben is linked to Cleo; this held in 5 of 5 such cases (1.000)",
            "path": [{"relation": "parent_of", "inverse": true, "entity": "ben", "label": "Ben"}],
            "rule": {
                "text": "parent_of(X,Y) <= sibling_of(X,Y)", "confidence": 1.0, "smoothed": 0.5, "correct": 5, "predicted": 5,
                "sentence": "if X is linked to Y, then X is linked to Y",
                "label": "parent_of(X,Y) <= sibling_of(X,Y)", "constants": false,
            },
            "held_out": "test",
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn relations_are_shown_by_their_labels_and_keep_their_names_for_scripts() {
        let mut names = names();
        names.relation_labels.insert(RelationId(0), "is parent of".to_owned());
        let [parent, sibling] = [0, 1].map(RelationId);
        let body = [Link::inverse_of(parent), Link::forward(sibling)];
        let hop = |link, target| Hop { link, target: EntityId(target), scores: None };
        let rule =
            ScoredRule { rule: Rule::cyclic(Link::forward(parent), &body), counts: Counts::exact(15, 10) };
        let reasoned = Reasoned {
            entity: EntityId(2),
            score: 0.5,
            start: EntityId(0),
            path: vec![hop(body[0], 1), hop(body[1], 2)],
            rule: Some(rule),
            without: None,
        };
        let naming = Naming::new(&names);
        let answer = Answer::new(&reasoned, None, &names, &naming);
        let query = Query { subject: EntityId(0), link: Link::forward(parent) };
        let path = "Ada ←is parent of— Ben —sibling_of→ Cleo";
        assert_eq!(
            in_words(query, &answer, &names, &naming),
            "Ada is parent of Cleo, likely: Ben is parent of Ada and is a sibling of Cleo; \
             this held in 10 of 15 such cases (0.667)"
        );
        assert!(answer.reason.to_string().starts_with(path), "{}", answer.reason);
        let rule = answer.reason.rule.as_ref().unwrap();
        assert_eq!(rule.text, "parent_of(X,Y) <= parent_of(A,X), sibling_of(A,Y)");
        assert_eq!(rule.label, "is parent of(X,Y) <= is parent of(A,X), sibling_of(A,Y)");
        let json = serde_json::to_value(&answer.reason.path).unwrap();
        assert_eq!(json[0]["relation"], "parent_of");
        assert_eq!(json[0]["relation_label"], "is parent of");
        assert_eq!(json[1].get("relation_label"), None);
    }

    #[test]
    fn a_rule_with_constants_is_said_itself_with_labels() {
        let names = names();
        let [parent, sibling] = [0, 1].map(RelationId);
        let message = |body: &[Link], end: Option<u32>| {
            let shape = Shape::Constant { answer: EntityId(2), end: end.map(EntityId) };
            let rule = Rule { head: Link::forward(parent), body: body.into(), shape };
            let scored = ScoredRule { rule, counts: Counts::exact(3, 2) };
            RuleSummary::new(&scored, &names, &Naming::new(&names))
        };
        let rule = message(&[Link::forward(sibling)], Some(1));
        assert_eq!(rule.text, "parent_of(X,cleo) <= sibling_of(X,ben)");
        let words = "[rule: parent_of(X,Cleo) <= sibling_of(X,Ben); confidence 0.667, 2 of 3 true]";
        assert_eq!(rule.in_words(), words);
        let zero = message(&[], None);
        assert_eq!((&*zero.label, &*zero.text), ("parent_of(X,Cleo) for every X", "parent_of(X,cleo) <= "));
    }

    #[test]
    fn entities_of_one_label_are_told_apart() {
        let mut names = names();
        names.labels.insert(EntityId(1), "Ada".to_owned());
        let naming = Naming::new(&names);
        let hop = Hop { link: Link::forward(RelationId(0)), target: EntityId(1), scores: None };
        let start = EntityId(0);
        let reasoned =
            Reasoned { entity: EntityId(1), score: 0.5, start, path: vec![hop], rule: None, without: None };
        let answer = Answer::new(&reasoned, None, &names, &naming);
        assert_eq!(answer.path_in_words(&naming), "Ada [ada] —parent_of→ Ada [ben]");
    }
}
