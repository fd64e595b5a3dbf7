//! The rules that a generated family obeys, and how often each holds.
//!
//! The counts are exact and come from the whole world, before anything is left out of it: `predicted` are
//! the distinct pairs (X, Y) that the body reaches, `correct` those of them for which the head is true.
//! Different variables stand for different entities, as in AnyBURL. A fact is left out of `train` with a
//! probability that depends on its relation alone, so in `train` a rule is expected to hold with
//! `confidence × kept`, where `kept` is the share of the head's facts that stay.

use super::kin::{Facts, Kin, Pairs, bits};
use crate::{Direction, Link, RelationId, Vocabulary};
use Direction::{Forward, Inverse};
use Kin::{AuntOf, CousinOf, Gender, GrandparentOf, LivesIn, ParentOf, SiblingOf, SpouseOf, UncleOf};

/// A rule that holds in the generated world, with its counts in the whole world.
#[derive(Clone, Debug, PartialEq)]
pub struct PlantedRule {
    /// The relation that the rule predicts.
    pub head: RelationId,
    /// The links that lead from X to Y, one to three.
    pub body: Vec<Link>,
    /// The rule in AnyBURL's syntax: `grandparent_of(X,Y) <= parent_of(X,A), parent_of(A,Y)`.
    pub text: String,
    /// How many pairs of the whole world the body reaches.
    pub predicted: u64,
    /// For how many of them the head is true.
    pub correct: u64,
    /// The probability with which a fact of the head relation stays in `train`.
    pub kept: f64,
}

impl PlantedRule {
    /// The share of the predicted pairs of the whole world for which the head is true.
    pub fn confidence(&self) -> f64 {
        self.correct as f64 / (self.predicted.max(1)) as f64
    }

    /// The expected share of predicted pairs among the facts of `train`, from which some are left out. The actual
    /// share depends on which ones.
    pub fn expected_in_train(&self) -> f64 {
        self.confidence() * self.kept
    }
}

/// A rule in terms of relations that have no ids yet.
pub(super) struct Template {
    pub(super) head: Kin,
    pub(super) body: &'static [(Kin, Direction)],
}

/// Every planted rule. Those with a confidence below one are the interesting ones: a sibling of a parent is
/// an uncle or an aunt, not all parents are married, and not everyone lives where their family does.
pub(super) const TEMPLATES: [Template; 32] = [
    Template { head: SpouseOf, body: &[(SpouseOf, Inverse)] },
    Template { head: SpouseOf, body: &[(ParentOf, Forward), (ParentOf, Inverse)] },
    Template { head: SpouseOf, body: &[(GrandparentOf, Forward), (GrandparentOf, Inverse)] },
    Template { head: SiblingOf, body: &[(SiblingOf, Inverse)] },
    Template { head: SiblingOf, body: &[(ParentOf, Inverse), (ParentOf, Forward)] },
    Template { head: SiblingOf, body: &[(SiblingOf, Forward), (SiblingOf, Forward)] },
    Template { head: SiblingOf, body: &[(GrandparentOf, Inverse), (GrandparentOf, Forward)] },
    Template { head: ParentOf, body: &[(SpouseOf, Forward), (ParentOf, Forward)] },
    Template { head: ParentOf, body: &[(ParentOf, Forward), (SiblingOf, Forward)] },
    Template { head: GrandparentOf, body: &[(ParentOf, Forward), (ParentOf, Forward)] },
    Template { head: GrandparentOf, body: &[(SpouseOf, Forward), (GrandparentOf, Forward)] },
    Template { head: GrandparentOf, body: &[(GrandparentOf, Forward), (SiblingOf, Forward)] },
    Template { head: GrandparentOf, body: &[(GrandparentOf, Forward), (CousinOf, Forward)] },
    Template { head: UncleOf, body: &[(SiblingOf, Forward), (ParentOf, Forward)] },
    Template { head: UncleOf, body: &[(SpouseOf, Forward), (AuntOf, Forward)] },
    Template { head: UncleOf, body: &[(UncleOf, Forward), (SiblingOf, Forward)] },
    Template { head: UncleOf, body: &[(ParentOf, Forward), (CousinOf, Forward)] },
    Template { head: AuntOf, body: &[(SiblingOf, Forward), (ParentOf, Forward)] },
    Template { head: AuntOf, body: &[(SpouseOf, Forward), (UncleOf, Forward)] },
    Template { head: AuntOf, body: &[(AuntOf, Forward), (SiblingOf, Forward)] },
    Template { head: AuntOf, body: &[(ParentOf, Forward), (CousinOf, Forward)] },
    Template { head: CousinOf, body: &[(CousinOf, Inverse)] },
    Template { head: CousinOf, body: &[(ParentOf, Inverse), (SiblingOf, Forward), (ParentOf, Forward)] },
    Template { head: CousinOf, body: &[(SiblingOf, Forward), (CousinOf, Forward)] },
    Template { head: CousinOf, body: &[(UncleOf, Inverse), (ParentOf, Forward)] },
    Template { head: CousinOf, body: &[(AuntOf, Inverse), (ParentOf, Forward)] },
    Template { head: LivesIn, body: &[(SpouseOf, Forward), (LivesIn, Forward)] },
    Template { head: LivesIn, body: &[(ParentOf, Inverse), (LivesIn, Forward)] },
    Template { head: LivesIn, body: &[(ParentOf, Forward), (LivesIn, Forward)] },
    Template { head: LivesIn, body: &[(SiblingOf, Forward), (LivesIn, Forward)] },
    Template { head: Gender, body: &[(UncleOf, Forward), (UncleOf, Inverse), (Gender, Forward)] },
    Template { head: Gender, body: &[(AuntOf, Forward), (AuntOf, Inverse), (Gender, Forward)] },
];

/// How many pairs each template predicts, and how many of them are correct.
pub(super) type Counts = [(u64, u64); TEMPLATES.len()];

/// The counts before any clan is counted.
pub(super) fn no_counts() -> Counts {
    [(0, 0); TEMPLATES.len()]
}

/// Adds the counts of one more clan.
pub(super) fn add(counts: &mut Counts, clan: &Counts) {
    for ((predicted, correct), of_clan) in counts.iter_mut().zip(clan) {
        *predicted += of_clan.0;
        *correct += of_clan.1;
    }
}

/// Counts every template in one clan's whole world.
pub(super) fn count(world: &Facts) -> Counts {
    std::array::from_fn(|i| {
        let predicted = reached(world, TEMPLATES[i].body);
        (u64::from(predicted.len()), u64::from(predicted.common(world.forward(TEMPLATES[i].head))))
    })
}

/// The pairs that the templates derive from `facts`, by relation.
pub(super) fn derived(facts: &Facts) -> Vec<Pairs> {
    let mut derived = vec![Pairs::EMPTY; Kin::ALL.len()];
    for template in &TEMPLATES {
        derived[template.head as usize].add_all(&reached(facts, template.body));
    }
    derived
}

/// The pairs that a body reaches by paths that visit no entity twice.
fn reached(facts: &Facts, body: &[(Kin, Direction)]) -> Pairs {
    let mut pairs = Pairs::EMPTY;
    for source in 0..super::kin::LIMIT {
        pairs.add_row(source, follow(facts, body, source, 1 << source));
    }
    pairs
}

fn follow(facts: &Facts, body: &[(Kin, Direction)], from: usize, visited: u128) -> u128 {
    let (&(kin, direction), rest) = body.split_first().expect("a body has at least one atom");
    let pairs = match direction {
        Forward => facts.forward(kin),
        Inverse => facts.inverse(kin),
    };
    let next = pairs.row(from) & !visited;
    if rest.is_empty() {
        return next;
    }
    bits(next).fold(0, |all, entity| all | follow(facts, rest, entity, visited | 1 << entity))
}

/// The templates as rules over the ids of `relations`; rules with a relation that has no id are left out.
pub(super) fn rules(counts: &Counts, relations: &Vocabulary) -> Vec<PlantedRule> {
    let id = |kin: Kin| relations.get(kin.name()).map(RelationId);
    let with_ids = TEMPLATES.iter().zip(counts).filter_map(|(template, &(predicted, correct))| {
        let body = template.body.iter().map(|&(kin, way)| Some(Link::new(id(kin)?, way)));
        Some(PlantedRule {
            head: id(template.head)?,
            body: body.collect::<Option<_>>()?,
            text: text(template),
            predicted,
            correct,
            kept: 1.0 - f64::from(template.head.held_per_mille()) / 1000.0,
        })
    });
    with_ids.collect()
}

fn text(template: &Template) -> String {
    let variables: &[&str] = match template.body.len() {
        1 => &["X", "Y"],
        2 => &["X", "A", "Y"],
        _ => &["X", "A", "B", "Y"],
    };
    let atoms = template.body.iter().zip(variables.windows(2)).map(|(&(kin, way), ends)| match way {
        Forward => format!("{}({},{})", kin.name(), ends[0], ends[1]),
        Inverse => format!("{}({},{})", kin.name(), ends[1], ends[0]),
    });
    format!("{}(X,Y) <= {}", template.head.name(), atoms.collect::<Vec<_>>().join(", "))
}
