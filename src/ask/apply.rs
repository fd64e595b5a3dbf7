//! Rules by themselves: ranking a split of a data set by rules alone, and rules as they are drawn.

use super::answer::{PathStep, RuleSummary};
use super::{AskError, Naming};
use crate::eval::{Protocol, Report, Split, evaluate_split};
use crate::graph::{Dataset, Direction, EntityId, Graph, Names};
use crate::progress::Progress;
use crate::rule::{ApplyOptions, RuleReasoner, RuleType, ScoredRule, Shape, write_predictions};
use crate::run::RunError;
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;

/// Rules, applied to the graph on which a split is answered.
pub struct AppliedRules<'a> {
    dataset: &'a Dataset,
    split: Split,
    graph: Arc<Graph>,
    reasoner: RuleReasoner,
}

impl<'a> AppliedRules<'a> {
    /// `rules` for the queries of `split`. For test queries the graph includes the validation facts if `learn_valid`
    /// says so, or if the data set has a graph of its own.
    ///
    /// # Errors
    /// If the options are invalid, or the split would be part of the graph.
    pub fn new(
        dataset: &'a Dataset,
        rules: impl Into<Arc<[ScoredRule]>>,
        options: ApplyOptions,
        split: Split,
        learn_valid: bool,
    ) -> Result<Self, AskError> {
        options.check().map_err(crate::rule::RuleError::from)?;
        let known = match split {
            Split::Test if learn_valid => dataset.known.with_valid_learnt(),
            Split::Test => dataset.known.for_test(),
            Split::Valid | Split::ValidAsPublished if learn_valid => {
                let message = "validation facts that are learnt cannot be evaluated; drop one of the two";
                return Err(AskError::Cannot(message.to_owned()));
            }
            Split::Valid | Split::ValidAsPublished => dataset.known.clone(),
        };
        let graph = dataset.graph_of(&known);
        let reasoner = RuleReasoner::new(&graph, rules, options);
        Ok(Self { dataset, split, graph, reasoner })
    }

    /// Ranks the true answers of the split.
    ///
    /// # Errors
    /// If the user interrupts.
    pub fn evaluate(&self, protocol: Protocol, progress: &dyn Progress) -> Result<Report, AskError> {
        // The work of rules does not grow with the number of entities, by which a split is sampled.
        let protocol = Protocol { all: true, ..protocol };
        Ok(evaluate_split(&self.reasoner, self.dataset, self.split, &self.graph, protocol, progress)?)
    }

    /// Writes the best answers at both ends of every triple of the split, in AnyBURL's format.
    ///
    /// # Errors
    /// If the file cannot be written or the user interrupts.
    pub fn write_predictions(&self, path: &Path, progress: &dyn Progress) -> Result<(), AskError> {
        let triples = self.split.triples(self.dataset);
        match write_predictions(path, triples, &self.reasoner, &self.dataset.names, progress)? {
            true => Ok(()),
            false => Err(RunError::Interrupted.into()),
        }
    }
}

/// A rule with its body as a path, whose entities are variables and constants.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DrawnRule {
    /// The rule.
    #[serde(flatten)]
    pub rule: RuleSummary,
    /// The relation that it predicts.
    pub relation: String,
    /// Its rule type.
    #[serde(rename = "type")]
    pub rule_type: RuleType,
    /// Whether its counts were estimated from a sample.
    pub sampled: bool,
    /// The variable where the body begins.
    pub from: String,
    /// The same variable.
    pub from_id: String,
    /// The body.
    pub path: Vec<PathStep>,
    /// The predicted entity: a variable, or the constant of a rule that has one.
    pub goal: String,
}

impl DrawnRule {
    /// `scored` with its names.
    pub fn new(scored: &ScoredRule, names: &Names, naming: &Naming) -> Self {
        let rule = &scored.rule;
        let constant = |id: EntityId| (names.entity(id).to_owned(), naming.of(id, names));
        let variable = |letter: u8| (char::from(letter).to_string(), char::from(letter).to_string());
        // The same letters as in the rule's text.
        let inner = |step: usize| variable(b'A' + u8::try_from(step.min(22)).unwrap_or(22));
        let last = rule.body.len().saturating_sub(1);
        let (start, goal, end) = match rule.shape {
            Shape::Cyclic => (b'X', variable(b'Y'), variable(b'Y')),
            Shape::Constant { answer, end } => {
                let start = if rule.head.direction() == Direction::Forward { b'X' } else { b'Y' };
                (start, constant(answer), end.map_or_else(|| inner(last), constant))
            }
        };
        let steps = rule.body.iter().enumerate().filter_map(|(at, link)| {
            let relation = link.relation()?;
            let (entity, label) = if at == last { end.clone() } else { inner(at) };
            Some(PathStep {
                relation: names.relation(relation).to_owned(),
                relation_label: names.relation_labels.get(relation).map(str::to_owned),
                inverse: link.direction() == Direction::Inverse,
                entity,
                label,
                relation_score: None,
                entity_score: None,
                note: None,
            })
        });
        Self {
            rule: RuleSummary::new(scored, names, naming),
            relation: names.relation(rule.relation()).to_owned(),
            rule_type: rule.rule_type(),
            sampled: scored.counts.sampled,
            from: variable(start).1,
            from_id: variable(start).0,
            path: steps.collect(),
            goal: goal.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{Link, RelationId};
    use crate::progress::Silent;
    use crate::rule::{Counts, MineOptions, MiningBudget, Rule, mine};

    #[test]
    fn the_path_of_a_rule_has_the_letters_of_its_text() {
        let names = Names {
            entities: ["ann", "bob"].into_iter().collect(),
            relations: ["knows", "likes"].into_iter().collect(),
            ..Names::default()
        };
        let [knows, likes] = [0, 1].map(|id| Link::forward(RelationId(id)));
        let drawn = |rule: Rule| {
            let scored = ScoredRule { rule, counts: Counts::exact(3, 2) };
            DrawnRule::new(&scored, &names, &Naming::new(&names))
        };
        let reported = |rule: &DrawnRule| {
            let steps = rule.path.iter().map(|step| format!("{} {}", step.relation, step.entity));
            format!("{} {} -> {}", rule.from, steps.collect::<Vec<_>>().join(" "), rule.goal)
        };
        let cyclic = drawn(Rule::cyclic(knows, &[likes, knows.reversed()]));
        assert_eq!(cyclic.rule.text, "knows(X,Y) <= likes(X,A), knows(Y,A)");
        assert_eq!(reported(&cyclic), "X likes A knows Y -> Y");
        let shape = Shape::Constant { answer: EntityId(1), end: None };
        let open = drawn(Rule { head: knows.reversed(), body: [likes].into(), shape });
        assert_eq!(open.rule.text, "knows(bob,Y) <= likes(Y,A)");
        assert_eq!(reported(&open), "Y likes A -> bob");
    }

    #[test]
    fn a_split_is_ranked_by_rules_alone_and_never_by_itself() {
        let dataset = crate::generate::demonstration();
        let options = MineOptions { budget: MiningBudget::Samples(1000), ..MineOptions::default() };
        let rules: Arc<[ScoredRule]> = mine(&dataset.graph(), &options, &Silent).unwrap().rules.into();
        let apply = |split, learn_valid| {
            AppliedRules::new(&dataset, rules.clone(), ApplyOptions::default(), split, learn_valid)
        };
        let report = apply(Split::Test, false).unwrap().evaluate(Protocol::default(), &Silent).unwrap();
        assert!(report.figures.mrr > 0.5, "{}", report.figures.mrr);
        assert!(matches!(apply(Split::Valid, true), Err(AskError::Cannot(_))));
        let wrong = ApplyOptions { top: 0, ..ApplyOptions::default() };
        assert!(AppliedRules::new(&dataset, rules.clone(), wrong, Split::Test, false).is_err());
    }
}
