//! The served run and its changes: written first, shown by the next question.

use super::event::{Fact, Kind, Said};
use super::log::{Keyed, Log};
use super::review::Pools;
use super::state::{Standing, State};
use super::tokens::{Role, Tokens};
use crate::http::Problem;
use crate::serve::{Run, Slot, folder_of};
use anyhow::Context;
use axum::http::{HeaderMap, StatusCode, header};
use ruleguider::ask::{LearntEdits, Model, OpenOptions};
use ruleguider::graph::{EntityId, Link, RelationId, Triple};
use rusqlite::ErrorCode;
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;

/// The most new names that a reply lists.
const LISTED: usize = 20;
/// Who writes where there are no tokens.
pub const LOCAL: &str = "local";

/// The log and what follows from it, which change together.
pub struct Kept {
    pub log: Log,
    pub state: State,
}

/// The run without edits, and what it has learnt of earlier ones.
#[derive(Clone)]
struct Base {
    model: Arc<Model>,
    learnt: Arc<LearntEdits>,
    /// The name of its folder.
    folder: Arc<str>,
}

impl Base {
    fn of(model: Arc<Model>) -> anyhow::Result<Self> {
        let learnt = Arc::new(LearntEdits::read(model.run_path())?);
        let folder = folder_of(&model);
        Ok(Self { model, learnt, folder })
    }

    /// Whether the data say that `fact` is false. What earlier verdicts taught the run is not said by the data.
    fn denies(&self, [subject, relation, object]: &Fact) -> bool {
        let (names, data) = (self.model.names(), self.model.dataset());
        let ids = [names.entities.get(subject), names.relations.get(relation), names.entities.get(object)];
        let [Some(head), Some(relation_id), Some(tail)] = ids else { return false };
        let fact = [subject, relation, object].map(|name| name.to_string());
        let negatives = [&data.known.negatives, &data.known.valid_negatives, &data.test_negatives];
        let triple = Triple::new(head, relation_id, tail);
        let is_false = || negatives.iter().any(|sorted| sorted.binary_search(&triple).is_ok());
        self.learnt.was_false(&fact).unwrap_or_else(is_false)
    }
}

/// Changes to the run of a slot.
pub struct Live {
    slot: Arc<Slot>,
    kept: Mutex<Kept>,
    base: RwLock<Base>,
    /// Held while the served model is rebuilt.
    rebuilding: Mutex<()>,
    /// Where another run may be.
    folder: PathBuf,
    options: OpenOptions,
    tokens: Option<Tokens>,
    /// The last entry of the log, and the last one that answers are made from.
    written: AtomicI64,
    shown: watch::Sender<i64>,
    changed: SyncSender<()>,
    /// How many facts no member can use yet.
    waiting: AtomicUsize,
    /// Why the last change is not shown, if it is not.
    failure: Mutex<Option<String>>,
    /// Held while a request is parsed and written.
    turn: Arc<tokio::sync::Mutex<()>>,
    /// How many runs have taken over.
    generation: AtomicU64,
    pools: Pools,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Live {
    /// The run of `slot`, at `path`, with the changes of `log`; from now on they are followed.
    ///
    /// # Errors
    /// If the log cannot be read, or the model cannot be edited.
    pub fn open(
        slot: &Arc<Slot>,
        path: &Path,
        log: Log,
        tokens: Option<Tokens>,
        options: OpenOptions,
    ) -> anyhow::Result<Arc<Self>> {
        let mut state = State::default();
        log.each(0, usize::MAX, |event| state.apply(event)).context("reading the live facts")?;
        let (changed, changes) = sync_channel(1);
        let whole = path.canonicalize().with_context(|| path.display().to_string())?;
        let live = Arc::new(Self {
            slot: Arc::clone(slot),
            written: AtomicI64::new(log.last()),
            kept: Mutex::new(Kept { log, state }),
            base: RwLock::new(Base::of(Arc::clone(&slot.now().model))?),
            rebuilding: Mutex::default(),
            folder: whole.parent().unwrap_or(&whole).to_owned(),
            options,
            tokens,
            shown: watch::Sender::new(0),
            changed,
            waiting: AtomicUsize::new(0),
            failure: Mutex::default(),
            turn: Arc::default(),
            generation: AtomicU64::new(0),
            pools: Pools::default(),
        });
        live.rebuild(&live.data())?;
        let follower = Arc::clone(&live);
        std::thread::Builder::new().name("live".to_owned()).spawn(move || follower.follow(&changes))?;
        Ok(live)
    }

    /// Whether changes are to the run called `name`.
    pub fn is_of(&self, name: &str) -> bool {
        self.slot.name == name
    }

    /// The log and its state.
    pub fn kept(&self) -> MutexGuard<'_, Kept> {
        lock(&self.kept)
    }

    /// The run as it answers now.
    pub fn now(&self) -> Arc<Run> {
        self.slot.now()
    }

    /// Waits until no other request is written.
    pub async fn turn(&self) -> tokio::sync::OwnedMutexGuard<()> {
        Arc::clone(&self.turn).lock_owned().await
    }

    /// Which run changes are to: others have other numbers.
    pub fn generation(&self) -> u64 {
        self.generation.load(Ordering::Acquire)
    }

    fn data(&self) -> Base {
        self.base.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The run without edits, its number, and what it has learnt of earlier ones.
    pub fn base(&self) -> (u64, Arc<Model>, Arc<LearntEdits>) {
        // A run takes over together with its number.
        let base = self.base.read().unwrap_or_else(PoisonError::into_inner);
        (self.generation(), Arc::clone(&base.model), Arc::clone(&base.learnt))
    }

    /// What was found for earlier requests.
    pub fn pools(&self) -> &Pools {
        &self.pools
    }

    /// How many facts wait for the next learning, and why the last change is not shown, if it is not.
    pub fn standing(&self) -> (usize, Option<String>) {
        (self.waiting.load(Ordering::Relaxed), lock(&self.failure).clone())
    }

    /// Rebuilds the served model after changes, many at once if they come faster.
    fn follow(&self, changes: &Receiver<()>) {
        while changes.recv().is_ok() {
            let _alone = lock(&self.rebuilding);
            if let Err(error) = self.rebuild(&self.data()) {
                let why = format!("{error:#}");
                // Not stdout, which has the address only.
                crate::console::log(&format_args!("live: the last changes are kept but not shown: {why}"));
                *lock(&self.failure) = Some(why);
                self.shown.send_replace(self.written.load(Ordering::Acquire));
            }
        }
    }

    fn rebuild(&self, base: &Base) -> anyhow::Result<()> {
        let (edits, seq) = {
            let kept = self.kept();
            (kept.state.edits_since(&base.learnt), kept.log.last())
        };
        let edited = base.model.with_edits(&edits)?;
        self.waiting.store(edited.waiting, Ordering::Relaxed);
        let run = Run::new(self.slot.name.clone(), Arc::new(edited.model))?;
        self.slot.swap(run.after(seq, &base.folder));
        *lock(&self.failure) = None;
        self.shown.send_replace(seq);
        Ok(())
    }

    /// Whether everything that was written is in the answers.
    pub fn is_caught_up(&self) -> bool {
        *self.shown.borrow() >= self.written.load(Ordering::Acquire)
    }

    /// Returns once everything that was written before is in the answers.
    ///
    /// # Errors
    /// If that takes longer than `timeout`.
    pub async fn caught_up(&self, timeout: Duration) -> Result<(), Problem> {
        let wanted = self.written.load(Ordering::Acquire);
        let mut shown = self.shown.subscribe();
        match tokio::time::timeout(timeout, shown.wait_for(|&shown| shown >= wanted)).await {
            Ok(_) => Ok(()),
            Err(_) => Err(Problem::timeout(timeout.as_secs_f64())),
        }
    }

    /// Answers by the run in the folder `name`, beside the one that was served first, or by the same run read again.
    /// Requests in progress finish on the old one.
    ///
    /// # Errors
    /// If there is no finished run. Then nothing changes.
    pub fn reload(&self, name: Option<&str>) -> anyhow::Result<PathBuf> {
        let path = match name {
            Some(name) => self.folder.join(name),
            None => self.data().model.run_path().to_owned(),
        };
        let next = Base::of(Arc::new(self.options.open(&path)?))?;
        let _alone = lock(&self.rebuilding);
        self.rebuild(&next)?;
        let mut base = self.base.write().unwrap_or_else(PoisonError::into_inner);
        *base = next;
        self.generation.fetch_add(1, Ordering::Release);
        Ok(path)
    }

    /// Who asks, if their token allows `role`. Without tokens, everyone on this machine may do everything.
    ///
    /// # Errors
    /// If there is no token, an unknown one, or one with a lesser role.
    pub fn admit(&self, headers: &HeaderMap, role: Role) -> Result<Arc<str>, Problem> {
        let Some(tokens) = &self.tokens else { return Ok(LOCAL.into()) };
        let stranger = |detail: &str| Problem::new(StatusCode::UNAUTHORIZED, "no-token", detail);
        let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
        let Some((scheme, token)) = sent.and_then(|value| value.split_once(' ')) else {
            return Err(stranger("this server needs a token: send it as `Authorization: Bearer TOKEN`"));
        };
        let holder = tokens.holder(token.trim()).filter(|_| scheme.eq_ignore_ascii_case("bearer"));
        match holder {
            None => Err(stranger("this token is not known; ask whoever runs the server for another")),
            Some(holder) if holder.role < role => Err(Problem::new(
                StatusCode::FORBIDDEN,
                "role",
                format!(
                    "the token of {} has the role {}, and this needs {}",
                    holder.name,
                    holder.role.name(),
                    role.name()
                ),
            )),
            Some(holder) => Ok(Arc::clone(&holder.name)),
        }
    }

    /// Whether writing needs a token.
    pub fn has_tokens(&self) -> bool {
        self.tokens.is_some()
    }

    /// Writes `said` by `who`, all or nothing, and returns the reply. It is on the disk then.
    ///
    /// # Errors
    /// If a fact is in conflict with what holds, or the log cannot be written.
    pub fn write(&self, said: Vec<Said>, who: &Arc<str>, keyed: Option<&Keyed>) -> Result<String, Problem> {
        let now = self.now();
        let mut kept = self.kept();
        if let Some(keyed) = keyed
            && let Some((sum, reply)) = kept.log.answered(who, &keyed.key).map_err(unkept)?
        {
            let other = "this idempotency key was used for another request; use a new one";
            return match sum == keyed.sum {
                true => Ok(reply),
                false => Err(Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "key-reused", other)),
            };
        }
        let base = self.data();
        for said in &said {
            check(&kept.state, said, &now.model, &base)?;
        }
        let given = said.len();
        let new: Vec<Said> = said.into_iter().filter(|said| kept.state.is_new(said, who)).collect();
        let changed = new.len();
        let [entities, relations] = new_names(&new, &now.model);
        let reply = |sequence: i64| {
            json!({
                "sequence": sequence, "changed": changed, "unchanged": given - changed,
                "new_entities": entities, "new_relations": relations,
            })
            .to_string()
        };
        let (events, reply) = kept.log.append(new, who, keyed, reply).map_err(unkept)?;
        events.into_iter().for_each(|event| kept.state.apply(event));
        self.written.store(kept.log.last(), Ordering::Release);
        drop(kept);
        if changed > 0 {
            // One wish that waits is enough for all.
            let _ = self.changed.try_send(());
        }
        Ok(reply)
    }
}

/// Reads the run again whenever the process gets SIGHUP. At a terminal, that ends it, as ever.
#[cfg(unix)]
pub async fn reload_on_hangup(live: Arc<Live>) {
    use std::io::IsTerminal;
    use tokio::signal::unix::{SignalKind, signal};
    if std::io::stderr().is_terminal() {
        return;
    }
    let Ok(mut hangup) = signal(SignalKind::hangup()) else { return };
    while hangup.recv().await.is_some() {
        let again = Arc::clone(&live);
        match tokio::task::spawn_blocking(move || again.reload(None)).await {
            Ok(Ok(_)) => crate::console::log(&"live: the run was read again"),
            Ok(Err(error)) => crate::console::log(&format_args!("live: nothing has changed: {error:#}")),
            Err(_) => crate::console::log(&"live: nothing has changed: reading the run failed"),
        }
    }
}

/// Refuses to add what is rejected or false by the data, and to remove what is no fact.
fn check(state: &State, said: &Said, model: &Model, base: &Base) -> Result<(), Problem> {
    let standing = state.about(&said.fact).map_or(Standing::AsBefore, super::state::About::standing);
    let [subject, relation, object] = &said.fact;
    let refused = |status, kind, what: &str| {
        let detail = format!("`{subject}` `{relation}` `{object}` {what}. Nothing of this request was kept");
        Err(Problem::new(status, kind, detail))
    };
    match (said.kind, standing) {
        (Kind::Add, Standing::Rejected) => {
            let remedy = "was rejected by reviewers; take the verdict back first";
            refused(StatusCode::CONFLICT, "rejected", remedy)
        }
        (Kind::Add, Standing::AsBefore | Standing::Gone) if base.denies(&said.fact) => {
            let remedy = "is false by the data of the run; if it is true, let a reviewer accept it";
            refused(StatusCode::CONFLICT, "known-false", remedy)
        }
        (Kind::Remove, Standing::AsBefore) if !is_fact(model, &said.fact) => {
            refused(StatusCode::NOT_FOUND, "no-fact", "is no fact")
        }
        _ => Ok(()),
    }
}

/// Whether the graph of `model` has `fact`.
pub fn is_fact(model: &Model, [subject, relation, object]: &Fact) -> bool {
    let names = model.names();
    let ids = [names.entities.get(subject), names.relations.get(relation), names.entities.get(object)];
    let [Some(subject), Some(relation), Some(object)] = ids else { return false };
    model.graph().contains(EntityId(subject), Link::forward(RelationId(relation)), EntityId(object))
}

/// The first names of entities and of relations that the model has not met.
fn new_names(said: &[Said], model: &Model) -> [Vec<String>; 2] {
    let (names, mut new) = (model.names(), [Vec::new(), Vec::new()]);
    for Said { fact: [subject, relation, object], .. } in said {
        let places = [
            (0, subject, names.entities.get(subject)),
            (1, relation, names.relations.get(relation)),
            (0, object, names.entities.get(object)),
        ];
        for (kind, name, known) in places {
            let list: &mut Vec<String> = &mut new[kind];
            if known.is_none() && list.len() < LISTED && list.iter().all(|other| **other != **name) {
                list.push(name.to_string());
            }
        }
    }
    new
}

/// The log cannot be read or written: nothing of the request was kept.
pub fn unkept(error: rusqlite::Error) -> Problem {
    let (status, kind, remedy) = match error.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => {
            (StatusCode::INSUFFICIENT_STORAGE, "disk-full", "the disk is full; make room and send it again")
        }
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "locked",
            "another program has locked the file of live facts; send it again",
        ),
        Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
            (StatusCode::INSUFFICIENT_STORAGE, "not-writable", "the file of live facts cannot be written")
        }
        _ => (StatusCode::INTERNAL_SERVER_ERROR, "not-kept", "the file of live facts failed"),
    };
    Problem::new(status, kind, format!("nothing was kept: {remedy} ({error})"))
}
