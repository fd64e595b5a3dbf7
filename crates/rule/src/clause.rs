//! What a rule is, and its confidence.
//!
//! Every rule is a *body*, a path of links walked from the rule's variable, under a *head*, the link that the
//! body implies. A head query and a tail query ask the same rule from its two ends, so a cyclic rule can be
//! [`reversed`](Rule::reversed); its canonical form, the one that is written, has a forward head.

use rayon::prelude::*;
use ruleguider_graph::{Direction, EntityId, Link, RelationId};
use serde::{Deserialize, Serialize};

/// The default of the smoothing constant p_c: the number of unseen predictions assumed to be wrong. The same as
/// AnyBURL's default.
pub const UNSEEN: f64 = 5.0;

/// `head <= body`, in one of the shapes that the miner knows.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Rule {
    /// The implied link, from the variable at which the body begins to the answer.
    pub head: Link,
    /// The links of the body, as they are walked from that variable.
    pub body: Box<[Link]>,
    /// The term at the other end of head and body.
    pub shape: Shape,
}

/// The terms at the far ends of head and body.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Shape {
    /// `h(X,Y) <= b(X,A), …, c(B,Y)`: head and body end in the same variable.
    Cyclic,
    /// `h(X,answer) <= b(X,A), …`: the head ends in a constant. The body ends in the constant `end` (AC1) or
    /// in a variable of its own (AC2); without a body this is a zero rule. Under object identity no variable binds
    /// `answer`: otherwise the fact itself would ground `h(X,answer) <= h(X,A)`.
    Constant {
        /// The constant that the rule predicts for every entity that has the body.
        answer: EntityId,
        /// The constant at the end of the body, if there is one.
        end: Option<EntityId>,
    },
}

impl Shape {
    /// The constant of the head, if it has one.
    pub fn constant(&self) -> Option<EntityId> {
        match self {
            Shape::Cyclic => None,
            Shape::Constant { answer, .. } => Some(*answer),
        }
    }
}

/// The three families of rules, which are mined and counted separately.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RuleType {
    /// A path that closes on the head: it joins the two variables of the head.
    Cyclic,
    /// A path from one variable to a constant or to an unbound variable.
    Acyclic,
    /// No body: a constant that is a frequent answer.
    Zero,
}

/// What a rule predicts in the graph, and how much of it is true.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Counts {
    /// Distinct pairs that the body predicts.
    pub predicted: u64,
    /// Those of them that are facts.
    pub correct: u64,
    /// Whether the two were estimated from a sample of the groundings instead of counted.
    pub sampled: bool,
}

/// A rule with its counts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct ScoredRule {
    /// The rule.
    pub rule: Rule,
    /// How often it predicts, and how often correctly.
    pub counts: Counts,
}

impl Rule {
    /// The cyclic rule `head <= body`, reversed if necessary so that its head is forward.
    pub fn cyclic(head: Link, body: &[Link]) -> Self {
        let rule = Rule { head, body: body.into(), shape: Shape::Cyclic };
        if head.direction() == Direction::Inverse { rule.reversed() } else { rule }
    }

    /// The same cyclic rule asked from its other end; other rules have only one end and are returned unchanged.
    pub fn reversed(&self) -> Self {
        match self.shape {
            Shape::Cyclic => Rule {
                head: self.head.reversed(),
                body: reversed_path(&self.body).into(),
                shape: Shape::Cyclic,
            },
            Shape::Constant { .. } => self.clone(),
        }
    }

    /// Which family the rule belongs to.
    pub fn rule_type(&self) -> RuleType {
        match self.shape {
            Shape::Cyclic => RuleType::Cyclic,
            Shape::Constant { .. } if self.body.is_empty() => RuleType::Zero,
            Shape::Constant { .. } => RuleType::Acyclic,
        }
    }

    /// The relation of the head.
    ///
    /// # Panics
    /// If the head is a reserved link, which no miner or parser produces.
    pub fn relation(&self) -> RelationId {
        self.head.relation().expect("the head of a rule is a relation, not a reserved link")
    }
}

/// `path` walked from its end to its beginning.
pub fn reversed_path(path: &[Link]) -> Vec<Link> {
    path.iter().rev().map(|link| link.reversed()).collect()
}

impl Counts {
    /// Exact counts.
    pub fn exact(predicted: u64, correct: u64) -> Self {
        Self { predicted, correct, sampled: false }
    }

    /// `correct / (predicted + unseen)`; 0 if nothing was correct.
    pub fn confidence(&self, unseen: f64) -> f64 {
        if self.correct == 0 { 0.0 } else { self.correct as f64 / (self.predicted as f64 + unseen) }
    }
}

/// Good rules first: by confidence, then support, then the rule itself, so that the order is total.
pub fn sort_by_confidence(rules: &mut [ScoredRule], unseen: f64) {
    rules.par_sort_unstable_by(|a, b| {
        (b.counts.confidence(unseen).total_cmp(&a.counts.confidence(unseen)))
            .then(b.counts.correct.cmp(&a.counts.correct))
            .then_with(|| a.rule.cmp(&b.rule))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(relation: u32, direction: Direction) -> Link {
        Link::new(RelationId(relation), direction)
    }

    #[test]
    fn a_cyclic_rule_is_canonical_with_a_forward_head() {
        let inverse = link(0, Direction::Inverse);
        let body = [link(1, Direction::Forward), link(2, Direction::Inverse)];
        let rule = Rule::cyclic(inverse, &body);
        assert_eq!(rule.head, link(0, Direction::Forward));
        assert_eq!(*rule.body, [link(2, Direction::Forward), link(1, Direction::Inverse)]);
        assert_eq!(rule.reversed(), Rule { head: inverse, body: body.into(), shape: Shape::Cyclic });
    }

    #[test]
    fn confidence_is_smoothed() {
        assert_eq!(Counts::exact(15, 10).confidence(UNSEEN), 0.5);
        assert_eq!(Counts::default().confidence(0.0), 0.0);
    }
}
