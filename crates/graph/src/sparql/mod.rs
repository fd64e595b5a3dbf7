//! Reads a graph from a SPARQL endpoint, page by page, into a file that is then read as any other.
//!
//! The graph is asked for relation by relation, each ordered and in pages; a query of the user's own in pages as well. What
//! has come is on the disk with a note of how far it goes, so that the same request goes on where an earlier one ended. One
//! request is made at a time, with a pause as long as the endpoint took for the last one.

mod http;
mod page;
mod query;

use super::GraphError;
use http::{Address, Response};
use query::Paging;
use ruleguider_support::aside::write_aside;
use ruleguider_support::fnv::fnv;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// What an address of an endpoint begins with.
pub const SCHEME: &str = "sparql+http";
/// Statements or rows a page.
const PAGE: u64 = 10_000;
/// The longest pause between two requests.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest that an endpoint may ask to wait.
const LONGEST_WAIT: Duration = Duration::from_secs(600);
/// How often a request is redirected.
const REDIRECTIONS: usize = 5;

/// An endpoint, and what is asked of it.
#[derive(Clone, Debug)]
pub struct Endpoint {
    /// As the user wrote it.
    shown: String,
    url: String,
    /// Only this named graph.
    graph: Option<String>,
    /// A query of the user's own.
    query: Option<String>,
}

/// How a request is repeated that fails.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// How often.
    pub retries: u32,
    /// How long before the first time; twice as long before each further one.
    pub wait: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self { retries: 5, wait: Duration::from_millis(250) }
    }
}

/// How far the reading of an endpoint has come.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    /// Whether everything has come.
    pub complete: bool,
    /// How many pages have come.
    pub pages: u64,
    /// How many statements or rows they had.
    pub rows: u64,
    /// How many rows were no statements.
    pub left_out: u64,
    /// How long the file was.
    bytes: u64,
    /// The relations to ask for; `None` until they are known, and with a query of the user's own.
    relations: Option<Vec<String>>,
    /// The first of them that is not complete.
    relation: usize,
    /// How many rows of it, or of the query, have come.
    offset: u64,
}

/// Where statements are kept: `$XDG_CACHE_HOME/ruleguider/sparql`, or under `~/.cache`.
///
/// # Errors
/// If the environment names no such folder.
pub fn cache() -> Result<PathBuf, GraphError> {
    let given = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let home = || given("HOME").map(|home| home.join(".cache"));
    let folder = given("XDG_CACHE_HOME").or_else(home);
    let expected = "expected a folder for what is fetched: set XDG_CACHE_HOME or HOME";
    Ok(folder.ok_or_else(|| GraphError::Data(expected.to_owned()))?.join("ruleguider/sparql"))
}

/// Whether `path` is the address of an endpoint.
pub fn is_endpoint(path: &Path) -> bool {
    path.to_str().is_some_and(|text| text.starts_with(SCHEME))
}

impl Endpoint {
    /// The endpoint at `address`, such as `sparql+http://127.0.0.1:7878/query`; of one named graph, or by a query.
    ///
    /// # Errors
    /// If the address is none, needs TLS, or the query is neither SELECT nor CONSTRUCT.
    pub fn new(address: &Path, graph: Option<String>, query: Option<String>) -> Result<Self, GraphError> {
        let shown = address.to_string_lossy().into_owned();
        let url = shown.strip_prefix("sparql+").unwrap_or(&shown).to_owned();
        let wrong = |expected: &str, found: &str| GraphError::file(address, expected, found);
        if url.starts_with("https:") {
            let dump = "http without TLS; fetch an https endpoint with curl and read the file: curl -H 'Accept: \
                        application/n-triples' --data-urlencode 'query=CONSTRUCT WHERE { ?s ?p ?o }' URL > data.nt";
            return Err(wrong(dump, "https"));
        }
        if Address::of(&url).is_none() {
            return Err(wrong("an address like sparql+http://127.0.0.1:7878/query", &shown));
        }
        if let Some(query) = &query
            && Paging::of(query).is_none()
        {
            return Err(wrong("a query that is a SELECT or CONSTRUCT", query));
        }
        if graph.is_some() && query.is_some() {
            return Err(wrong("a named graph or a query (which can name graphs itself)", "both"));
        }
        if let Some(graph) = &graph
            && oxrdf::NamedNode::new(graph).is_err()
        {
            return Err(wrong("an IRI as the named graph", graph));
        }
        Ok(Self { shown, url, graph, query })
    }

    /// Where its statements are kept under `folder`. The name of a file of N-Quads says which endpoint it is of.
    pub fn file(&self, folder: &Path) -> PathBuf {
        let what = format!("{} {:?} {:?}", self.url, self.graph, self.query);
        let host = self.url.trim_start_matches("http://").split('/').next().unwrap_or_default();
        let host: String =
            host.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        let ending = if self.graph.is_some() { "nq" } else { "nt" };
        folder.join(format!("{host}_{:016x}.{ending}", fnv(what.as_bytes())))
    }

    /// Reads everything into [`file`](Self::file), or what an earlier call has left to read. `said` hears how far it has
    /// come, before the first page and after each.
    ///
    /// # Errors
    /// If the endpoint fails again and again, answers something else, or the file cannot be written. What has come stays.
    pub fn fetch(
        &self,
        folder: &Path,
        patience: Patience,
        said: &mut dyn FnMut(&Fetched),
    ) -> Result<PathBuf, GraphError> {
        fs::create_dir_all(folder).map_err(GraphError::writing(folder))?;
        let file = self.file(folder);
        let mut spool = Spool::open(&file)?;
        said(&spool.fetched);
        while !spool.fetched.complete {
            let began = Instant::now();
            self.step(&mut spool, patience).map_err(|failure| self.failed(failure, &spool.fetched))?;
            said(&spool.fetched);
            if !spool.fetched.complete {
                sleep(began.elapsed().min(PAUSE));
            }
        }
        Ok(file)
    }

    fn failed(&self, failure: Failure, so_far: &Fetched) -> GraphError {
        let Failure([expected, found]) = failure;
        let Fetched { pages, rows, .. } = so_far;
        let expected = format!(
            "{expected} (so far {rows} statements in {pages} pages have come; the same command goes on from there)"
        );
        GraphError::file(Path::new(&self.shown), expected, found)
    }

    /// Makes one request.
    fn step(&self, spool: &mut Spool, patience: Patience) -> Result<(), Failure> {
        let Fetched { relations, relation, offset, pages, .. } = &spool.fetched;
        let asked = match (&self.query, relations) {
            (Some(query), _) => match Paging::of(query) {
                Some(paging) => paging.page(query, PAGE, *offset),
                None => return Err(Failure(["a SELECT or CONSTRUCT".to_owned(), query.clone()])),
            },
            (None, None) => query::relations(self.graph.as_deref()),
            (None, Some(all)) => match all.get(*relation) {
                Some(one) => query::page(one, self.graph.as_deref(), PAGE, *offset),
                None => return spool.complete().map_err(Failure::of_file),
            },
        };
        let is_list = self.query.is_none() && relations.is_none();
        let accept = if is_list { "application/sparql-results+json" } else { page::ACCEPT };
        let (number, graph) = (*pages, self.graph.as_deref());
        // A page that is broken may be whole the next time.
        let read = |response: &Response| match is_list {
            true => page::iris(&response.content_type, &response.body, "p").map(Came::Relations),
            false => page::read(&response.content_type, &response.body, number, graph).map(Came::Page),
        };
        match self.ask(&asked, accept, patience, read)? {
            Came::Relations(mut all) => {
                all.sort_unstable();
                all.dedup();
                spool.fetched.relations = Some(all);
                spool.note().map_err(Failure::of_file)
            }
            Came::Page(page) => {
                let is_single = self.query.as_deref().and_then(Paging::of) == Some(Paging::Whole);
                let step = match self.query.as_deref().and_then(Paging::of) {
                    // A solution of a template may be several statements, or none.
                    Some(Paging::Template) => PAGE,
                    _ => page.rows,
                };
                spool.take(&page, step, is_single).map_err(Failure::of_file)
            }
        }
    }

    /// Asks until there is an answer that `read` understands.
    fn ask<T>(
        &self,
        query: &str,
        accept: &str,
        patience: Patience,
        read: impl Fn(&Response) -> Result<T, [String; 2]>,
    ) -> Result<T, Failure> {
        let mut wait = patience.wait;
        let mut tries = 0;
        loop {
            let tried = self.try_once(query, accept).and_then(|response| {
                read(&response).map_err(|failure| Trouble { failure, again: true, wait: None })
            });
            let trouble = match tried {
                Ok(read) => return Ok(read),
                Err(trouble) => trouble,
            };
            if !trouble.again || tries == patience.retries {
                let [expected, found] = trouble.failure;
                let times = if tries > 0 { format!(", {} times", tries + 1) } else { String::new() };
                return Err(Failure([expected, format!("{found}{times}")]));
            }
            tries += 1;
            sleep(trouble.wait.unwrap_or(wait));
            wait *= 2;
        }
    }

    fn try_once(&self, query: &str, accept: &str) -> Result<Response, Trouble> {
        let fatal = |found: String| Trouble {
            failure: ["an endpoint that answers over http".to_owned(), found],
            again: false,
            wait: None,
        };
        let mut url = self.url.clone();
        for _ in 0..=REDIRECTIONS {
            let address = Address::of(&url).ok_or_else(|| fatal(format!("a redirection to {url}")))?;
            let response = address.post(query, accept).map_err(|error| Trouble {
                failure: ["an answer of the endpoint".to_owned(), format!("an error: {error}")],
                again: true,
                wait: None,
            })?;
            match (response.status, &response.location) {
                (200, _) => return Ok(response),
                (301 | 302 | 307 | 308, Some(location)) => url.clone_from(location),
                (status, _) => {
                    let text =
                        String::from_utf8_lossy(&response.body[..response.body.len().min(200)]).into_owned();
                    let wait =
                        response.retry_after.map(|seconds| Duration::from_secs(seconds).min(LONGEST_WAIT));
                    return Err(Trouble {
                        failure: [
                            "an answer of the endpoint".to_owned(),
                            format!("HTTP {status} {}", text.trim()),
                        ],
                        again: status >= 500 || status == 429 || status == 408,
                        wait,
                    });
                }
            }
        }
        Err(fatal(format!("a redirection to {url}, after {REDIRECTIONS} others")))
    }
}

enum Came {
    Relations(Vec<String>),
    Page(page::Page),
}

/// Why a request failed, and whether to repeat it.
struct Trouble {
    failure: [String; 2],
    again: bool,
    wait: Option<Duration>,
}

/// What was expected and what was found.
struct Failure([String; 2]);

impl Failure {
    fn of_file(error: io::Error) -> Self {
        Self(["a folder in which the statements can be kept".to_owned(), format!("an error: {error}")])
    }
}

/// The file of statements, and beside it how far it goes.
struct Spool {
    file: File,
    note: PathBuf,
    fetched: Fetched,
}

impl Spool {
    fn open(path: &Path) -> Result<Self, GraphError> {
        let note = path.with_extension("json");
        let fetched: Fetched =
            fs::read(&note).ok().and_then(|text| serde_json::from_slice(&text).ok()).unwrap_or_default();
        let open = || -> io::Result<(File, Fetched)> {
            let file = OpenOptions::new().create(true).append(true).open(path)?;
            // A page that was cut off is asked for again. A file that is too short is none of ours.
            match file.metadata()?.len() >= fetched.bytes {
                true if fetched.complete => Ok((file, fetched)),
                true => file.set_len(fetched.bytes).map(|()| (file, fetched)),
                false => file.set_len(0).map(|()| (file, Fetched::default())),
            }
        };
        let (file, fetched) = open().map_err(GraphError::writing(path))?;
        Ok(Self { file, note, fetched })
    }

    /// Adds a page; an empty one ends the relation, or all.
    fn take(&mut self, page: &page::Page, step: u64, is_last: bool) -> io::Result<()> {
        self.file.write_all(&page.lines)?;
        self.file.sync_data()?;
        let fetched = &mut self.fetched;
        fetched.bytes += page.lines.len() as u64;
        fetched.pages += 1;
        fetched.rows += page.rows;
        fetched.left_out += page.left_out;
        fetched.offset += step;
        if page.rows == 0 {
            (fetched.relation, fetched.offset) = (fetched.relation + 1, 0);
        }
        match fetched.relations.is_none() && (page.rows == 0 || is_last) {
            true => self.complete(),
            false => self.note(),
        }
    }

    fn complete(&mut self) -> io::Result<()> {
        self.fetched.complete = true;
        self.note()
    }

    fn note(&mut self) -> io::Result<()> {
        let text = serde_json::to_vec(&self.fetched)?;
        write_aside(&self.note, |out| out.write_all(&text))
    }
}

/// Reads the answer of an endpoint from `bytes`, as the fuzzer does: how many lines of statements it is.
///
/// # Errors
/// If it is no answer; says why.
#[doc(hidden)]
pub fn read_answer(bytes: &[u8]) -> Result<usize, String> {
    let response = Response::read(bytes).map_err(|error| error.to_string())?;
    let read = page::read(&response.content_type, &response.body, 1, None);
    let page = read.map_err(|[expected, found]| format!("expected {expected}, found {found}"))?;
    let again = page::read("application/n-triples", &page.lines, 2, None);
    let again = again.map_err(|[_, found]| format!("cannot be read again: {found}"));
    let lines = memchr::memchr_iter(b'\n', &page.lines).count();
    assert_eq!(again.map(|again| again.rows), Ok(lines as u64), "what was written is read again");
    Ok(lines)
}

#[cfg(test)]
mod tests;
