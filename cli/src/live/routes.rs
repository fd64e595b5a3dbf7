//! The routes under `/api/v1/{run}/live`.
//!
//! A request that writes is refused if it comes from a page of another site, or if its token allows less. Its body is one
//! JSON object, or one a line. Everything is checked before anything is written.

use super::event::{Event, Fact, Kind, Said};
use super::log::Keyed;
use super::review;
use super::served::{Live, unkept};
use super::state::About;
use super::tokens::{Role, is_name};
use super::written::{self, Form};
use crate::http::{self, Problem, json_response};
use crate::serve::{Parameters, Shared, at_most};
use axum::Router;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use ruleguider::ask::Model;
use ruleguider::run::Checksum;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::sync::Arc;

/// The largest body.
const LARGEST: usize = 48 << 20;
/// The most facts of a request.
const MOST: usize = 100_000;
/// The longest name, note, source or key, in bytes.
const LONGEST: usize = 4096;

/// The routes.
pub fn router() -> Router<Arc<Shared>> {
    Router::new()
        .route("/", get(standing))
        .route("/facts", post(add).delete(remove))
        .route("/changes", get(changes))
        .route("/verdicts", post(decide).get(verdicts))
        .route("/queue", get(review::queue))
        .route("/agreement", get(review::agreement))
        .route("/reload", post(reload))
}

/// A fact in a body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenFact {
    subject: String,
    relation: String,
    object: String,
    confidence: Option<f64>,
    source: Option<String>,
}

/// A verdict in a body.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct GivenVerdict {
    subject: String,
    relation: String,
    object: String,
    verdict: String,
    note: Option<String>,
    who: Option<String>,
}

/// The live part of the run called `name`.
pub(super) fn live_of(shared: &Shared, name: &str) -> Result<Arc<Live>, Problem> {
    shared.run(name)?;
    let live = shared.live.as_ref().filter(|live| live.is_of(name));
    live.cloned().ok_or_else(|| {
        let detail = format!("the run `{name}` is read-only; start the server with --live FILE to write");
        Problem::new(axum::http::StatusCode::FORBIDDEN, "read-only", detail)
    })
}

/// Refuses requests from pages of other sites: a browser says where a page comes from.
fn check_origin(shared: &Shared, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let origin = origin.to_str().unwrap_or_default();
    let own = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let place = origin.split_once("://").map_or("", |(_, place)| place);
    if (!own.is_empty() && place.eq_ignore_ascii_case(own)) || shared.frame.cors.as_deref() == Some(origin) {
        return Ok(());
    }
    let detail =
        format!("a page of `{origin}` may not write here; start the server with --cors {origin} to allow it");
    Err(Problem::new(axum::http::StatusCode::FORBIDDEN, "other-origin", detail))
}

/// A request that may write: who sends it, its idempotency key and its body.
struct Admitted {
    live: Arc<Live>,
    who: Arc<str>,
    keyed: Option<Keyed>,
    body: Vec<u8>,
    /// What the body takes in memory.
    _charge: http::Charge,
}

async fn admitted(shared: &Shared, run: &str, role: Role, request: Request) -> Result<Admitted, Problem> {
    let live = live_of(shared, run)?;
    check_origin(shared, request.headers())?;
    let who = live.admit(request.headers(), role)?;
    let key = request.headers().get("idempotency-key").map(|key| key.to_str().unwrap_or_default().to_owned());
    if key.as_ref().is_some_and(|key| key.is_empty() || key.len() > 200) {
        return Err(Problem::bad_request("Idempotency-Key: expected 1 to 200 plain characters"));
    }
    let what = format!("{} {}", request.method(), request.uri());
    let kinds = ["application/json", "application/x-ndjson"];
    let (body, charge) = http::read_bytes(&shared.gate, request, &kinds, LARGEST).await?;
    let keyed = key.map(|key| Keyed { key, sum: Checksum::of(&(what, &body)).to_string() });
    Ok(Admitted { live, who, keyed, body, _charge: charge })
}

/// The objects of a body.
fn objects<T: DeserializeOwned>(body: &[u8]) -> Result<Vec<T>, Problem> {
    let mut all = Vec::new();
    for object in serde_json::Deserializer::from_slice(body).into_iter::<T>() {
        if all.len() == MOST {
            let detail = format!("more than {MOST} objects; send them in several requests");
            return Err(Problem::new(axum::http::StatusCode::PAYLOAD_TOO_LARGE, "too-large", detail));
        }
        let wrong = |error| Problem::bad_request(format!("object {} of the body: {error}", all.len() + 1));
        all.push(object.map_err(wrong)?);
    }
    match all.is_empty() {
        true => Err(Problem::bad_request("the body is empty: expected a JSON object, or one a line")),
        false => Ok(all),
    }
}

/// Checks a text of the object numbered `at`.
fn check_text(at: usize, field: &str, text: &str, may_have_lines: bool) -> Result<(), Problem> {
    let wrong = |what: String| Err(Problem::bad_request(format!("object {}: {field}: {what}", at + 1)));
    let control = |letter: char| letter.is_control() && !(may_have_lines && "\n\t\r".contains(letter));
    if text.trim().is_empty() {
        return wrong("is empty".to_owned());
    }
    if text.len() > LONGEST {
        return wrong(format!("has {} bytes, expected at most {LONGEST}", text.len()));
    }
    if text.chars().any(control) {
        return wrong("has a control character".to_owned());
    }
    Ok(())
}

/// Writes what `parse` finds in the body, which is checked on a thread of its own.
async fn write(
    shared: &Shared,
    admitted: Admitted,
    parse: impl FnOnce(&Live, &[u8], &mut Arc<str>) -> Result<Vec<Said>, Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let _place = shared.gate.enter()?;
    // Parsed, a body takes several times its size, so one is parsed at a time. The log has one writer anyway.
    let turn = shared.gate.in_time(async { Ok(admitted.live.turn().await) }).await?;
    let work = move || {
        let _turn = turn;
        let Admitted { live, mut who, keyed, body, _charge } = admitted;
        let said = parse(&live, &body, &mut who)?;
        live.write(said, &who, keyed.as_ref())
    };
    // Not stopped once it has begun: a client that is gone may ask for it again by its key.
    let reply = tokio::task::spawn_blocking(work).await.map_err(|_| http::failed())??;
    Ok(uncached(json_response(reply)))
}

pub(super) fn uncached(mut response: Response) -> Response {
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// `POST facts`.
async fn add(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let admitted = admitted(&shared, &run, Role::Write, request).await?;
    let parse = |_: &Live, body: &[u8], _: &mut Arc<str>| {
        let facts = objects::<GivenFact>(body)?.into_iter().enumerate();
        let one = |(at, given): (usize, GivenFact)| {
            let GivenFact { subject, relation, object, confidence, source } = given;
            for (field, name) in [("subject", &subject), ("relation", &relation), ("object", &object)] {
                check_text(at, field, name, false)?;
            }
            source.as_deref().map_or(Ok(()), |source| check_text(at, "source", source, false))?;
            if confidence.is_some_and(|confidence| !(confidence > 0.0 && confidence <= 1.0)) {
                let detail = format!("object {}: confidence: expected more than 0, at most 1", at + 1);
                return Err(Problem::bad_request(detail));
            }
            let fact = [subject, relation, object].map(Arc::from);
            Ok(Said { kind: Kind::Add, fact, confidence, source, note: None })
        };
        facts.map(one).collect()
    };
    write(&shared, admitted, parse).await
}

/// `DELETE facts`.
async fn remove(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let admitted = admitted(&shared, &run, Role::Write, request).await?;
    let parse = |_: &Live, body: &[u8], _: &mut Arc<str>| {
        let one = |given: GivenFact| {
            let GivenFact { subject, relation, object, source, .. } = given;
            let fact = [subject, relation, object].map(Arc::from);
            Said { kind: Kind::Remove, fact, confidence: None, source, note: None }
        };
        Ok(objects(body)?.into_iter().map(one).collect())
    };
    write(&shared, admitted, parse).await
}

/// `POST verdicts`.
async fn decide(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let admitted = admitted(&shared, &run, Role::Review, request).await?;
    let (timeout, runtime) = (shared.gate.timeout(), tokio::runtime::Handle::current());
    let parse = move |live: &Live, body: &[u8], who: &mut Arc<str>| {
        let given = objects::<GivenVerdict>(body)?;
        *who = reviewer(&given, live, who)?;
        let named = |model: &Model| -> Result<Vec<Said>, Problem> {
            given.iter().enumerate().map(|(at, given)| verdict(at, given, model)).collect()
        };
        let found = named(&live.now().model);
        if found.is_ok() || live.is_caught_up() {
            return found;
        }
        // A name that is not known may be that of a fact that is written and not shown yet.
        runtime.block_on(live.caught_up(timeout))?;
        named(&live.now().model)
    };
    write(&shared, admitted, parse).await
}

/// The one reviewer of all verdicts: the holder of the token, or who the body names where there are no tokens.
fn reviewer(given: &[GivenVerdict], live: &Live, who: &Arc<str>) -> Result<Arc<str>, Problem> {
    let mut named = given.iter().enumerate().filter_map(|(at, given)| Some((at, given.who.as_deref()?)));
    let Some((first, name)) = named.next() else { return Ok(Arc::clone(who)) };
    let wrong =
        |at: usize, what: String| Err(Problem::bad_request(format!("object {}: who: {what}", at + 1)));
    if live.has_tokens() && name != &**who {
        return wrong(first, format!("the token is that of {who}, found {name:?}"));
    }
    if !is_name(name) {
        return wrong(first, "expected letters, digits, `-`, `_`, `.` or `@`".to_owned());
    }
    match named.find(|(_, other)| *other != name) {
        Some((at, _)) => wrong(at, "expected one reviewer a request".to_owned()),
        None if given.iter().any(|given| given.who.is_none()) => {
            wrong(first, "expected in every object, or in none".to_owned())
        }
        None => Ok(name.into()),
    }
}

fn verdict(at: usize, given: &GivenVerdict, model: &Model) -> Result<Said, Problem> {
    let GivenVerdict { subject, relation, object, verdict, note, .. } = given;
    let kind = Kind::named(verdict).filter(|kind| !matches!(kind, Kind::Add | Kind::Remove));
    let kind = kind.ok_or_else(|| {
        let expected = "expected accept, reject, unsure, or undo to take a verdict back";
        Problem::bad_request(format!("object {}: verdict: {expected}; found {verdict:?}", at + 1))
    })?;
    note.as_deref().map_or(Ok(()), |note| check_text(at, "note", note, true))?;
    // By id or label; a verdict is about what is known.
    let names = model.names();
    let entity = |name: &str| -> Result<Arc<str>, Problem> {
        match names.entities.get(name) {
            Some(_) => Ok(name.into()),
            None => Ok(names.entity(model.index().entity(name)?).into()),
        }
    };
    let relation: Arc<str> = match names.relations.get(relation) {
        Some(_) => relation.as_str().into(),
        None => names.relation(model.relation(relation)?).into(),
    };
    let fact = [entity(subject)?, relation, entity(object)?];
    Ok(Said { kind, fact, confidence: None, source: None, note: note.clone() })
}

/// `GET live`: what holds now.
async fn standing(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let live = live_of(&shared, &run)?;
    let who = live.admit(&headers, Role::Read)?;
    let now = live.now();
    let (waiting, failure) = live.standing();
    let (sequence, reviewed, disputed, edits) = {
        let kept = live.kept();
        let edits = kept.state.edits();
        (kept.log.last(), kept.state.reviewed().len(), kept.state.disputed(), edits)
    };
    let may = |role| live.admit(&headers, role).is_ok();
    let found = json!({
        "who": &*who, "may_review": may(Role::Review), "may_write": may(Role::Write),
        "sequence": sequence, "shown": now.overlay,
        "run": &*now.folder,
        "added": edits.added.len(), "removed": edits.removed.len(), "rejected": edits.rejected.len(),
        "waiting": waiting, "reviewed": reviewed, "disputed": disputed, "failure": failure,
    });
    Ok(uncached(json_response(shared.gate.json(&found)?)))
}

/// Parameters of `GET changes`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ChangesParams {
    #[serde(default)]
    after: u32,
    limit: Option<usize>,
}

/// The log after a number.
async fn changes(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    headers: HeaderMap,
    Parameters(ChangesParams { after, limit }): Parameters<ChangesParams>,
) -> Result<Response, Problem> {
    let live = live_of(&shared, &run)?;
    live.admit(&headers, Role::Read)?;
    let limit = at_most(limit, 100, "limit")?;
    let gate = Arc::clone(&shared.gate);
    let work = move |_: &http::Deadline| {
        let (events, last) = {
            let kept = live.kept();
            (kept.log.after(i64::from(after), limit).map_err(unkept)?, kept.log.last())
        };
        let items: Vec<_> = events.iter().map(Event::sent).collect();
        let next = events.last().map_or(i64::from(after), |event| event.seq);
        gate.json(&json!({"items": items, "next": next, "last": last}))
    };
    Ok(uncached(json_response(shared.gate.run(work).await?)))
}

/// Parameters of `GET verdicts`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct VerdictsParams {
    #[serde(default)]
    format: Form,
}

/// All verdicts that count: a document by fact for the page, or a file.
async fn verdicts(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    headers: HeaderMap,
    Parameters(VerdictsParams { format }): Parameters<VerdictsParams>,
) -> Result<Response, Problem> {
    let live = live_of(&shared, &run)?;
    live.admit(&headers, Role::Read)?;
    let gate = Arc::clone(&shared.gate);
    let work = move |_: &http::Deadline| {
        let (kept, now) = (live.kept(), live.now());
        if format != Form::Json {
            return Ok(axum::body::Bytes::from(written::verdicts(&kept.state, format)));
        }
        let items: Vec<Value> =
            kept.state.reviewed().into_iter().map(|(fact, about)| shown(fact, about, &now.model)).collect();
        gate.json(&json!({"items": items, "sequence": kept.log.last()}))
    };
    let bytes = shared.gate.run(work).await?;
    let kind = [(header::CONTENT_TYPE, format.media_type())];
    Ok(uncached((kind, bytes).into_response()))
}

/// A fact with its verdicts, as the page shows it.
fn shown(fact: &Fact, about: &About, model: &Model) -> Value {
    let names = model.names();
    let label = |name: &str| {
        let id = names.entities.get(name).map(ruleguider::graph::EntityId);
        id.map_or_else(|| name.to_owned(), |id| names.label(id).to_owned())
    };
    let verdicts: Vec<Value> = about
        .verdicts
        .iter()
        .map(|(who, verdict)| {
            json!({
                "who": &**who, "verdict": verdict.kind.name(), "note": verdict.note,
                "time": super::event::utc(verdict.time_ms),
            })
        })
        .collect();
    let [subject, relation, object] = fact;
    json!({
        "subject": &**subject, "relation": &**relation, "object": &**object,
        "subject_label": label(subject), "object_label": label(object),
        "outcome": written::outcome(about), "verdicts": verdicts,
    })
}

/// The body of `POST reload`.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reload {
    run: Option<String>,
}

/// Answers by another run from now on.
async fn reload(
    State(shared): State<Arc<Shared>>,
    Path(run): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let Admitted { live, who, body, .. } = admitted(&shared, &run, Role::Admin, request).await?;
    let Reload { run } = serde_json::from_slice(&body).map_err(|wrong| {
        Problem::bad_request(format!("the body: {wrong}; expected {{}} or {{\"run\": NAME}}"))
    })?;
    let plain = |name: &str| !name.is_empty() && !name.starts_with('.') && !name.contains(['/', '\\', '\0']);
    if run.as_deref().is_some_and(|name| !plain(name)) {
        return Err(Problem::bad_request("run: expected the name of a folder beside the run that is served"));
    }
    let work = move || live.reload(run.as_deref());
    let loaded = tokio::task::spawn_blocking(work).await.map_err(|_| http::failed())?;
    let path = loaded.map_err(|error| {
        let detail = format!("nothing has changed: {error:#}");
        Problem::new(axum::http::StatusCode::UNPROCESSABLE_ENTITY, "cannot", detail)
    })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    crate::console::log(&format_args!("live: {who} loaded the run {}", ruleguider::shown::Shown(&name)));
    Ok(uncached(json_response(json!({"run": name}).to_string())))
}
