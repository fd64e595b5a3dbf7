//! Answering on another graph than the one that was learnt from: the same relations over other entities, or the graph as
//! it is now.
//!
//! Rules, a propagator and a walker without entity embeddings know relations alone, and so can answer there. An
//! embedding model, and a walker with entity embeddings, cannot: they are left out, and a blend uses the remaining
//! members. Relations get the ids that they have in the run. Others come after them if a member answers queries of any
//! relation, which then answers theirs alone; if none does, their facts are left out and counted.

use super::AskError;
use crate::config::{Config, LearnValid, System};
use crate::graph::{Dataset, Names, OtherRelations};
use crate::run::Source;
use crate::run::member;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The most names that a note lists.
const LISTED: usize = 3;

/// What is left out when a run answers on another graph.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OtherGraph {
    /// The name of the other data.
    pub data: String,
    /// Members of the run that depend on its entities and cannot answer there.
    pub members_left_out: Vec<String>,
    /// Rules that name an entity which the other graph lacks.
    pub rules_left_out: usize,
    /// Relations of the other graph that the run has never seen.
    pub relations_left_out: Vec<String>,
    /// The facts of those relations, in any split.
    pub facts_left_out: usize,
    /// Relations of the other graph that the run has never seen and yet answers, by one member alone.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub relations_not_learnt: Vec<String>,
    /// The facts of those relations, in any split.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub facts_not_learnt: usize,
    /// Why the probabilities of their answers are rough; `None` if they have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rough: Option<String>,
}

// Signature of serde.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(count: &usize) -> bool {
    *count == 0
}

impl OtherGraph {
    /// What users should know about answers on this graph, one sentence each.
    pub fn notes(&self) -> Vec<String> {
        let Self { data, members_left_out, rules_left_out, relations_left_out, facts_left_out, .. } = self;
        let mut notes = Vec::new();
        for member in members_left_out {
            notes.push(format!(
                "on {data}: {member} left out, because it only knows the entities of its own graph"
            ));
        }
        if *rules_left_out > 0 {
            let rules = if *rules_left_out == 1 { "rule" } else { "rules" };
            notes.push(format!("on {data}: {rules_left_out} {rules} left out, because they name entities that it does not have"));
        }
        if !relations_left_out.is_empty() {
            let count = relations_left_out.len();
            let relations = if count == 1 { "relation" } else { "relations" };
            let listed = listed(relations_left_out.iter().map(String::as_str));
            notes.push(format!(
                "on {data}: {facts_left_out} facts left out, of {count} {relations} that the run has not learnt: {listed}"
            ));
        }
        notes.extend(self.note_of_not_learnt());
        notes
    }

    fn note_of_not_learnt(&self) -> Option<String> {
        let Self { data, relations_not_learnt, facts_not_learnt, rough, .. } = self;
        let count = relations_not_learnt.len();
        let [relations, facts] = [(count, "relation"), (*facts_not_learnt, "fact")]
            .map(|(count, word)| format!("{count} {word}{}", if count == 1 { "" } else { "s" }));
        let probabilities = match rough {
            Some(why) => format!("probabilities are rough there: {why}"),
            None => "there are no probabilities there".to_owned(),
        };
        let listed = listed(relations_not_learnt.iter().map(String::as_str));
        (count > 0).then(|| {
            format!(
                "on {data}: {relations} that the run has not learnt ({facts}): {listed}; the universal propagator answers \
                 there alone, and {probabilities}"
            )
        })
    }
}

/// `config` without the members that cannot answer on another graph, and their names. Whether the run has learnt its
/// validation facts says nothing about those of the other graph: they stay held out.
///
/// # Errors
/// If no member is left to answer.
pub(super) fn for_another_graph(mut config: Config) -> Result<(Config, Vec<&'static str>), AskError> {
    config.data.learn_valid = LearnValid::Auto;
    let mut left_out = Vec::new();
    for member in member::all() {
        let (Some(system), Some(called)) = (member.system(), member.knows_entities(&config)) else {
            continue;
        };
        if config.includes(system) {
            config.exclude(system);
            left_out.push(called);
        }
    }
    let answers = config.system == System::Blend && config.gives_answers();
    let alone = left_out.last().filter(|_| !answers);
    match alone {
        Some(member) => Err(AskError::Cannot(format!(
            "this run answers with {member}, which only knows the entities of its own graph; \
             learn rules or a propagator to answer on another graph"
        ))),
        None => Ok((config, left_out)),
    }
}

/// The data at `source`, with the relation ids of the run that learnt from `own`.
///
/// # Errors
/// If it cannot be read, or has no relation of the run.
pub(super) fn other_data(
    source: &Source,
    own: &Dataset,
    config: &Config,
) -> Result<(Dataset, OtherRelations), AskError> {
    let given = source.read()?;
    // Some members need no relation to be known.
    if !member::knows_relations(config) {
        return Ok((given, OtherRelations::default()));
    }
    let relations = &own.names.relations;
    if member::of_any_relation(config).is_some() {
        return Ok(given.with_relations_first(relations));
    }
    let (dataset, other) = given.with_relations(relations);
    if dataset.known.facts.is_empty() {
        let (theirs, ours) = (listed(given.names.relations.iter()), listed(relations.iter()));
        return Err(AskError::Cannot(format!(
            "{}: has no fact of a relation that the run has learnt; it has {theirs}, the run {ours}",
            source.name()
        )));
    }
    Ok((dataset, other))
}

/// `names` with the first `count` relations alone.
pub(super) fn with_first_relations(names: &Names, count: usize) -> Arc<Names> {
    Arc::new(Names { relations: names.relations.iter().take(count).collect(), ..names.clone() })
}

/// The first few of `names`.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let mut names: Vec<String> = names.take(LISTED + 1).map(|name| format!("`{name}`")).collect();
    if names.len() > LISTED {
        names[LISTED] = "…".to_owned();
    }
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}
