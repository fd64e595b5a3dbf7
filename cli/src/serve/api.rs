//! The routes that answer questions. Each reads its parameters, has a worker ask the model, and sends JSON.

use super::batch;
use super::state::{Run, Shared};
use crate::http::{Deadline, Problem, json_response};
use axum::extract::{FromRequestParts, Path, Query as QueryString, State};
use axum::http::request::Parts;
use axum::http::{HeaderValue, header};
use axum::response::Response;
use ruleguider::ask::{
    AnswersAmong, CompleteOptions, HeldOutFacts, MAX_PATHS, MissingFact, MissingFacts, Model, NamedItem,
};
use ruleguider::graph::{EntityId, Link, Query, RelationId};
use ruleguider::reason::PathLimits;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::sync::Arc;

/// The most items of a list that one request gets.
pub const MOST: usize = 1000;
/// The most missing facts of a relation that can be paged through.
pub const MISSING: usize = 5000;

/// Parameters of a query string; invalid ones are a [`Problem`].
pub struct Parameters<T>(pub T);

impl<T: DeserializeOwned, S: Sync> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        let read = QueryString::<T>::try_from_uri(&parts.uri);
        read.map(|QueryString(read)| Self(read)).map_err(|wrong| {
            let what = wrong.body_text();
            Problem::bad_request(in_words(
                what.strip_prefix("Failed to deserialize query string: ").unwrap_or(&what),
            ))
        })
    }
}

/// What the parser of a query string says, for people.
fn in_words(message: &str) -> String {
    let number = |rest: &str| {
        rest.contains("invalid digit") || rest.contains("number") || rest.contains("empty string")
    };
    match (message.strip_prefix("missing field `"), message.split_once(": ")) {
        (Some(name), _) => format!("the parameter `{} is missing", name),
        (None, Some((name, rest))) if number(rest) && !name.contains(' ') => {
            format!("{name}: expected a whole number that is not negative")
        }
        _ => message.replacen("unknown field", "there is no parameter", 1),
    }
}

/// `asked`, or `usual` by default; refused if it is above the limit.
pub fn at_most(asked: Option<usize>, usual: usize, name: &str) -> Result<usize, Problem> {
    match asked.unwrap_or(usual) {
        wanted @ 1..=MOST => Ok(wanted),
        wanted => Err(Problem::bad_request(format!("{name}: expected 1 to {MOST}, found {wanted}"))),
    }
}

/// `asked`, which has to be a number that others can be compared with.
fn comparable(asked: f64, name: &str) -> Result<f64, Problem> {
    match asked.is_nan() {
        true => Err(Problem::bad_request(format!("{name}: expected a number, found {asked}"))),
        false => Ok(asked),
    }
}

/// Has a worker ask the model of the run called `name`.
pub(super) async fn ask<T: Serialize>(
    shared: &Shared,
    name: &str,
    question: impl FnOnce(&Model, &Deadline) -> Result<T, ruleguider::ask::AskError> + Send + 'static,
) -> Result<Response, Problem> {
    let (model, gate) = (Arc::clone(&shared.run(name)?.model), Arc::clone(&shared.gate));
    let work = move |deadline: &Deadline| {
        let answer = question(&model, deadline).map_err(|error| gate.problem(error))?;
        gate.json(&answer)
    };
    Ok(json_response(shared.gate.run(work).await?))
}

/// The link that `relation` and `inverse` mean together.
pub fn directed(link: Link, inverse: bool) -> Link {
    if inverse { link.reversed() } else { link }
}

/// Parameters of `GET suggest`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SuggestParams {
    #[serde(default)]
    q: String,
    #[serde(default)]
    kind: Kind,
    limit: Option<usize>,
}

#[derive(Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Kind {
    #[default]
    Entity,
    Relation,
    Any,
}

/// Completions of what was typed.
pub async fn suggest(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(SuggestParams { q, kind, limit }): Parameters<SuggestParams>,
) -> Result<Response, Problem> {
    let limit = at_most(limit, 10, "limit")?;
    let answer = move |model: &Model, _: &Deadline| {
        let (index, graph, names) = (model.index(), model.graph(), model.names());
        let (found, more) = match kind {
            Kind::Entity => {
                let (found, more) = index.complete_entity(&q, graph, limit);
                (found.iter().map(|found| NamedItem::Entity(EntityId(found.id))).collect(), more)
            }
            Kind::Relation => {
                let (found, more) = index.complete_relation(&q, graph, limit);
                (found.iter().map(|found| NamedItem::Relation(RelationId(found.id))).collect(), more)
            }
            Kind::Any => index.complete_any(&q, graph, limit),
        };
        let item = |named: &NamedItem| match *named {
            NamedItem::Entity(entity) => json!({
                "kind": "entity", "id": names.entity(entity), "label": names.label(entity),
                "degree": graph.edges(entity).len(),
            }),
            NamedItem::Relation(relation) => json!({
                "kind": "relation", "id": names.relation(relation), "label": names.relation_label(relation),
                "degree": graph.pairs(Link::forward(relation)).len(),
            }),
        };
        let items: Vec<_> = found.iter().map(item).collect();
        Ok(json!({"items": items, "more": more}))
    };
    ask(&shared, &run, answer).await
}

/// Parameters of `GET overview`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverviewParams {
    questions: Option<usize>,
    relations: Option<usize>,
}

/// What the run is about.
pub async fn overview(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(OverviewParams { questions, relations }): Parameters<OverviewParams>,
) -> Result<Response, Problem> {
    let (questions, relations) = (at_most(questions, 3, "questions")?, at_most(relations, 60, "relations")?);
    ask(&shared, &run, move |model, _| model.overview(questions, relations)).await
}

/// Parameters of `GET predict`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PredictParams {
    subject: String,
    relation: String,
    #[serde(default)]
    inverse: bool,
    top: Option<usize>,
    /// Whether answers that were held out are among them.
    #[serde(default)]
    held_out: HeldOutAnswers,
    /// Types of entities that may be answers, and of those that may not.
    among: Option<String>,
    not_among: Option<String>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum HeldOutAnswers {
    #[default]
    Show,
    Hide,
}

/// The answers to a query.
pub async fn predict(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(PredictParams { subject, relation, inverse, top, held_out, among, not_among }): Parameters<
        PredictParams,
    >,
) -> Result<Response, Problem> {
    let top = at_most(top, 10, "top")?;
    let hide = held_out == HeldOutAnswers::Hide;
    if among.is_some() || not_among.is_some() || hide {
        return ask(&shared, &run, move |model, deadline| {
            let link = directed(model.index().link(&relation)?, inverse);
            let query = Query { subject: model.index().entity(&subject)?, link };
            let among = model.answers_of_types(among.as_deref(), not_among.as_deref())?;
            // As many more as there are to be left out, so that there are `top` without them.
            let asked = if hide { top.saturating_add(model.held_out_count(query)) } else { top };
            let mut answers = model.predict_many_among(&[query], (asked, &among), 1, 0, deadline)?;
            let found = Arc::unwrap_or_clone(answers.remove(0));
            Ok(if hide { found.without_held_out(top) } else { found })
        })
        .await;
    }
    let run = shared.run(&run)?;
    let query = named(&shared, &run, subject, relation, inverse).await?;
    Ok(json_response(batch::predict(&shared.gate, &run, query, top).await?))
}

/// The query with these names. Exact names are looked up directly; other matches are searched for by a worker.
async fn named(
    shared: &Shared,
    run: &Arc<Run>,
    subject: String,
    relation: String,
    inverse: bool,
) -> Result<Query, Problem> {
    let names = run.model.names();
    let exact = names.entities.get(&subject).zip(names.relations.get(&relation));
    if let Some((entity, relation)) = exact {
        let link = directed(Link::forward(RelationId(relation)), inverse);
        return Ok(Query { subject: EntityId(entity), link });
    }
    let model = Arc::clone(&run.model);
    shared
        .gate
        .run(move |_| {
            let Query { subject, link } = model.query(&subject, &relation)?;
            Ok(Query { subject, link: directed(link, inverse) })
        })
        .await
}

/// Parameters of `GET explain`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExplainParams {
    subject: String,
    relation: String,
    object: String,
    #[serde(default)]
    inverse: bool,
}

/// Why, or why not.
pub async fn explain(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(ExplainParams { subject, relation, object, inverse }): Parameters<ExplainParams>,
) -> Result<Response, Problem> {
    let answer = move |model: &Model, deadline: &Deadline| {
        let Query { subject, link } = model.query(&subject, &relation)?;
        let object = model.index().entity(&object)?;
        model.explain_query(Query { subject, link: directed(link, inverse) }, object, MAX_PATHS, deadline)
    };
    ask(&shared, &run, answer).await
}

/// Parameters of `GET reasons`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReasonsParams {
    subject: String,
    relation: String,
    object: String,
    #[serde(default)]
    inverse: bool,
    #[serde(default)]
    after: usize,
    limit: Option<usize>,
}

/// All rules that predict an answer, and the answer without each of them.
pub async fn reasons(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(ReasonsParams { subject, relation, object, inverse, after, limit }): Parameters<ReasonsParams>,
) -> Result<Response, Problem> {
    let limit = at_most(limit, 20, "limit")?;
    let answer = move |model: &Model, deadline: &Deadline| {
        let Query { subject, link } = model.query(&subject, &relation)?;
        let (query, object) =
            (Query { subject, link: directed(link, inverse) }, model.index().entity(&object)?);
        model.rules_for(query, object, after, limit, deadline)
    };
    ask(&shared, &run, answer).await
}

/// Parameters of `GET entity`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EntityParams {
    id: String,
    relation: Option<String>,
    #[serde(default)]
    inverse: bool,
    #[serde(default)]
    after: usize,
    limit: Option<usize>,
}

/// The facts of an entity.
pub async fn entity(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(EntityParams { id, relation, inverse, after, limit }): Parameters<EntityParams>,
) -> Result<Response, Problem> {
    let limit = at_most(limit, 100, "limit")?;
    let answer = move |model: &Model, _: &Deadline| {
        let entity = model.index().entity(&id)?;
        let link = relation.map(|relation| model.index().link(&relation)).transpose()?;
        Ok(model.facts_of(entity, link.map(|link| directed(link, inverse)), after, limit))
    };
    ask(&shared, &run, answer).await
}

/// Parameters of `GET rules`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RulesParams {
    head: String,
    #[serde(default)]
    min_confidence: f64,
    #[serde(default)]
    after: usize,
    limit: Option<usize>,
}

/// The rules that predict a relation, and how it is used.
pub async fn rules(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(RulesParams { head, min_confidence, after, limit }): Parameters<RulesParams>,
) -> Result<Response, Problem> {
    let limit = at_most(limit, 50, "limit")?;
    let min_confidence = comparable(min_confidence, "min_confidence")?;
    let answer = move |model: &Model, _: &Deadline| {
        let head = model.relation(&head)?;
        let (figures, rules) = (model.relation_use(head), model.rules_of(head, min_confidence, after, limit));
        Ok(json!({"relation": figures, "rules": rules}))
    };
    ask(&shared, &run, answer).await
}

/// Parameters of `GET groundings`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GroundingsParams {
    rule: String,
    subject: String,
    object: Option<String>,
    #[serde(default)]
    inverse: bool,
    #[serde(default)]
    after: usize,
    limit: Option<usize>,
}

/// The groundings of a rule.
pub async fn groundings(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(GroundingsParams { rule, subject, object, inverse, after, limit }): Parameters<
        GroundingsParams,
    >,
) -> Result<Response, Problem> {
    let page = after..after.saturating_add(at_most(limit, 20, "limit")?);
    let answer = move |model: &Model, deadline: &Deadline| {
        let subject = model.index().entity(&subject)?;
        let object = object.map(|object| model.index().entity(&object)).transpose()?;
        model.groundings(&rule, subject, object, inverse, page, deadline)
    };
    ask(&shared, &run, answer).await
}

/// Parameters of `GET facts`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MissingFactsParams {
    relation: String,
    #[serde(default)]
    inverse: bool,
    #[serde(default)]
    min_probability: f64,
    #[serde(default)]
    held_out: HeldOutFacts,
    #[serde(default)]
    after: usize,
    limit: Option<usize>,
}

/// The missing facts of a relation, best first.
pub async fn facts(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    Parameters(MissingFactsParams { relation, inverse, min_probability, held_out, after, limit }): Parameters<
        MissingFactsParams,
    >,
) -> Result<Response, Problem> {
    let (limit, run) = (at_most(limit, 50, "limit")?, shared.run(&run)?);
    let min_probability = comparable(min_probability, "min_probability")?;
    let missing = facts_missing(&shared, &run, relation, inverse, held_out, after > 0).await?;
    let likely = |fact: &MissingFact| fact.probability.0.unwrap_or(1.0) >= min_probability;
    let facts = &missing.facts[..missing.facts.partition_point(likely)];
    let from = after.min(facts.len());
    let to = (from + limit).min(facts.len());
    let next = (to < facts.len()).then_some(to);
    let found = json!({
        "items": &facts[from..to], "total": facts.len(), "next": next,
        "recovered": missing.recovered.recovered, "hidden": missing.recovered.hidden, "tied": missing.tied,
        "asked": missing.asked, "subjects": missing.subjects,
    });
    let mut response = json_response(shared.gate.json(&found)?);
    if missing.asked < missing.subjects {
        // The list is incomplete: with more time there would be others.
        response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    }
    Ok(response)
}

async fn facts_missing(
    shared: &Shared,
    run: &Arc<Run>,
    relation: String,
    inverse: bool,
    held_out: HeldOutFacts,
    further: bool,
) -> Result<Arc<MissingFacts>, Problem> {
    let _place = shared.gate.enter()?;
    let (model, deadline) = (Arc::clone(&run.model), Deadline::new(shared.gate.timeout()));
    let found = async {
        let work = move |_: &Deadline| Ok(directed(model.index().link(&relation)?, inverse));
        let link = shared.gate.run_until(deadline.clone(), work).await?;
        missing(shared, run, (link, held_out), further, deadline).await
    };
    shared.gate.in_time(found).await
}

/// The missing facts from the cache, or found now. `deadline` is that of the whole request.
async fn missing(
    shared: &Shared,
    run: &Arc<Run>,
    (link, held_out): (Link, HeldOutFacts),
    further: bool,
    deadline: Deadline,
) -> Result<Arc<MissingFacts>, Problem> {
    let _looking = run.looking.lock().await;
    if let Some(found) = run.missing.get((link, held_out), further) {
        return Ok(found);
    }
    let (model, gate) = (Arc::clone(&run.model), Arc::clone(&shared.gate));
    let found = shared
        .gate
        .run_until(deadline, move |deadline| {
            let (links, workers) = (vec![link], gate.workers());
            let (top, min_probability) = (Some(MISSING), None);
            let [subjects, objects] = [(); 2].map(|()| AnswersAmong::default());
            let paths = PathLimits::default();
            let options =
                CompleteOptions { links, top, min_probability, held_out, subjects, objects, paths, workers };
            model.missing_facts(&options, deadline).map_err(|error| gate.problem(error))
        })
        .await?;
    let found = Arc::new(found);
    run.missing.keep((link, held_out), &found);
    Ok(found)
}
