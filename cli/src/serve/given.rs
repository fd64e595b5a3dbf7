//! Given facts: `POST score`, `POST explain`, and the relations between two entities. Bodies are bounded as for
//! `POST predict`, and a request has as many facts as the time limit of one answer lets through.

use super::api::{Parameters, ask, at_most};
use super::state::Shared;
use crate::http::{AtMost, Deadline, Problem, read_json};
use axum::extract::{Path, Request, State};
use axum::response::Response;
use ruleguider::ask::{MAX_PATHS, Model, ScoreOptions, Threshold};
use serde::Deserialize;
use serde_json::json;
use std::sync::Arc;

/// The largest body that is read.
const LARGEST: usize = 1 << 20;
/// The most facts of a request.
const MOST_FACTS: usize = 1000;

/// A fact, by names.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Fact {
    subject: String,
    relation: String,
    object: String,
}

/// The body of `POST score`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScoreParams {
    facts: AtMost<Fact, MOST_FACTS>,
    /// `auto`, or a probability; none by default.
    threshold: Option<GivenThreshold>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum GivenThreshold {
    Named(String),
    Probability(f64),
}

/// The body of `POST explain`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ExplainParams {
    facts: AtMost<Fact, MOST_FACTS>,
    reasons: Option<usize>,
}

/// The names of the facts, if there are not too many.
fn names_of(facts: AtMost<Fact, MOST_FACTS>) -> Result<Vec<[String; 3]>, Problem> {
    let facts = facts.all("facts")?;
    Ok(facts.into_iter().map(|Fact { subject, relation, object }| [subject, relation, object]).collect())
}

/// Scores given facts.
pub async fn score(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    shared.run(&run)?;
    let ScoreParams { facts, threshold } = read_json(&shared.gate, request, LARGEST).await?;
    let facts = names_of(facts)?;
    let threshold = match threshold {
        None => Threshold::Never,
        Some(GivenThreshold::Named(name)) if name == "auto" => Threshold::Auto,
        Some(GivenThreshold::Probability(least)) if (0.0..=1.0).contains(&least) => {
            Threshold::Probability(least)
        }
        Some(_) => return Err(Problem::bad_request("threshold: expected \"auto\" or a number from 0 to 1")),
    };
    let answer = move |model: &Model, deadline: &Deadline| {
        let options = ScoreOptions { threshold, ..ScoreOptions::default() };
        Ok(json!({"facts": model.score(&facts, &options, deadline)?}))
    };
    ask(&shared, &run, answer).await
}

/// Explains given facts: a row a reason.
pub async fn explain(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    shared.run(&run)?;
    let ExplainParams { facts, reasons } = read_json(&shared.gate, request, LARGEST).await?;
    let (facts, most) = (names_of(facts)?, at_most(reasons, MAX_PATHS, "reasons")?);
    let answer = move |model: &Model, deadline: &Deadline| {
        Ok(json!({"reasons": model.explain_many(&facts, most, 1, deadline)?}))
    };
    ask(&shared, &run, answer).await
}

/// Parameters of `GET relations`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RelationsParams {
    subject: String,
    object: String,
    top: Option<usize>,
}

/// The relations between two entities.
pub async fn relations(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(RelationsParams { subject, object, top }): Parameters<RelationsParams>,
) -> Result<Response, Problem> {
    let top = at_most(top, 10, "top")?;
    let answer = move |model: &Model, deadline: &Deadline| {
        let (subject, object) = (model.index().entity(&subject)?, model.index().entity(&object)?);
        model.relations_between(subject, object, top, 1, deadline)
    };
    ask(&shared, &run, answer).await
}
