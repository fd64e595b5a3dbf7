//! The DATA argument that most verbs take, and reading what it names.

use crate::arguments::Common;
use crate::awaited::Awaited;
use crate::console::Console;
#[cfg(feature = "rdf")]
use crate::endpoint;
use anyhow::{Context, bail, ensure};
use ruleguider::ask::{Model, OpenOptions, instant};
#[cfg(feature = "rdf")]
use ruleguider::graph::sparql::is_endpoint;
use ruleguider::graph::{
    ColumnChoice, Conflicts, Dataset, FileKind, Findings, GraphError, Literals, ReadOptions, SplitShares,
    Time, ending_of_rows, read,
};
use ruleguider::progress::Progress;
use ruleguider::run::Source;
use ruleguider::shown::Shown;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// The argument that stands for stdin.
const STDIN: &str = "-";

/// Where the data is and how to read it.
#[derive(clap::Args, Clone, Debug)]
pub struct Data {
    /// A folder with train, valid, test (and optionally graph, entity_labels.tsv, relation_labels.tsv), one file of
    /// triples, - for stdin, or a SPARQL endpoint: sparql+http://127.0.0.1:7878/query
    #[arg(value_name = "DATA")]
    pub path: PathBuf,
    #[command(flatten)]
    pub options: Reading,
}

/// How to read, wherever the data is.
#[derive(clap::Args, Clone, Debug)]
pub struct Reading {
    /// How to divide a single file into train, valid and test [default: 0.8,0.1,0.1]
    #[arg(long = "split", value_name = "TRAIN,VALID,TEST")]
    pub shares: Option<SplitShares>,
    /// Hold out the facts of this day and later, by the time that a column gives; the facts before it are learnt from
    #[arg(long, value_name = "DATE", conflicts_with = "shares")]
    pub split_time: Option<Time>,
    #[command(flatten)]
    pub form: Form,
}

/// What the files are.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Form {
    /// Whether a TSV or CSV file begins with a header [default: if its first line names the columns]
    #[arg(long, value_name = "true|false")]
    pub header: Option<bool>,
    /// Which columns of a table are what, by name or number: subject=drug,relation=effect,object=disease; also
    /// confidence, source, negative, time, subject_type, object_label … [default: by the names of the columns]
    #[arg(long, value_name = "PART=COLUMN,…")]
    pub columns: Option<ColumnChoice>,
    /// What literals of RDF are: apart, as labels and attributes of entities, or keep, as entities [default: apart; keep
    /// for convert, which loses nothing]
    #[arg(long, value_name = "apart|keep")]
    pub literals: Option<Literals>,
    /// Read only this named graph of RDF data, or of a SPARQL endpoint
    #[arg(long = "graph", value_name = "IRI")]
    pub named_graph: Option<String>,
    /// What becomes of a fact that is also known to be false: error, drop (it is neither), facts (it is a fact) or
    /// negatives (it is false) [default: error]
    #[arg(long, value_name = "error|drop|facts|negatives")]
    pub conflicts: Option<Conflicts>,
    /// Ask a SPARQL endpoint by the query in this file, a SELECT of subject, predicate and object or a CONSTRUCT, instead
    /// of for all its statements
    #[arg(long, value_name = "FILE")]
    pub query: Option<PathBuf>,
    #[command(flatten)]
    pub format: FormatChoice,
}

/// The format, where the ending of a file does not tell it.
#[derive(clap::Args, Clone, Copy, Debug, Default)]
pub struct FormatChoice {
    /// The format, as a file extension: tsv, csv.gz, nt, parquet [default: from the file name; tsv for stdin]
    #[arg(long = "format", value_name = "EXTENSION", value_parser = FileKind::named)]
    pub kind: Option<FileKind>,
}

/// Whether a run answers on other data than its own.
#[derive(clap::Args, Clone, Debug)]
pub struct DataOfRun {
    /// Answer on another graph with the same relations, or on a new version of the graph; models that are tied to the
    /// run's own entities are left out
    #[arg(long, value_name = "DATA")]
    on: Option<PathBuf>,
}

impl DataOfRun {
    /// Opens `run` with the rest of `options`, and prints on stderr what is left out on another graph; a single file of
    /// triples is divided by `shares`.
    pub fn open(
        &self,
        run: &Path,
        options: OpenOptions,
        shares: SplitShares,
        common: &Common,
    ) -> anyhow::Result<Model> {
        let reading = ReadOptions { shares, seed: common.seed, ..ReadOptions::default() };
        let on = self.on.as_ref().map(|path| Source::of(path, &reading)).transpose()?;
        let model = OpenOptions { on, ..options }.open(run)?;
        if let (Some(on), Some(path)) = (model.on(), &self.on) {
            note_odd(path, &model.dataset().findings, common);
            let console = Console::new(common);
            on.notes().iter().for_each(|note| console.note(note));
        }
        if let Some(change) = model.source_change() {
            Console::new(common).note(&change);
        }
        Ok(model)
    }
}

/// Whether a data set is answered at once, without a run.
#[derive(clap::Args, Clone, Debug)]
pub struct Instant {
    /// Take a data set instead of a run and answer by weights that were trained on other graphs; there are
    /// no verdicts
    #[arg(long, conflicts_with = "on")]
    instant: bool,
    #[command(flatten)]
    weights: Weights,
}

/// The weights of the universal propagator.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct Weights {
    /// Weights of the universal propagator, as `pretrain` makes them, instead of those of the program
    #[arg(long = "weights", value_name = "FILE")]
    pub weights: Option<PathBuf>,
}

impl Instant {
    /// Whether it was asked for.
    pub fn is_wanted(&self) -> bool {
        self.instant
    }

    /// A model of the data set at `path` and the folder it works in; `None` if a run is wanted, or the user interrupts.
    pub fn open(
        &self,
        path: &Path,
        common: &Common,
        console: &Console,
    ) -> anyhow::Result<Option<(tempfile::TempDir, Model)>> {
        if !self.instant {
            ensure!(self.weights.weights.is_none(), "--weights needs --instant: a run has its own");
            return Ok(None);
        }
        let options = Reading { shares: Some(SplitShares::WHOLE), split_time: None, form: Form::default() };
        instant_model(&Data { path: path.to_owned(), options }, &self.weights, common, console)
    }
}

/// A model that answers over all facts of `data` at once, and the folder it works in; `None` if the user interrupts.
pub fn instant_model(
    data: &Data,
    weights: &Weights,
    common: &Common,
    console: &Console,
) -> anyhow::Result<Option<(tempfile::TempDir, Model)>> {
    let dataset = data.read_incomplete(common)?.everything();
    let name = data.path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    let folder = tempfile::tempdir().context("creating a temporary folder")?;
    let quiet = ruleguider::progress::Quiet(console as &dyn Progress);
    let source = Source::Memory { name };
    let (weights, device) = (weights.weights.as_deref(), common.device()?);
    match instant(source, dataset, folder.path(), weights, &device, common.seed, &quiet) {
        Err(error) if error.is_interrupted() => Ok(None),
        model => Ok(Some((folder, model?))),
    }
}

impl Reading {
    /// How a single file is divided.
    pub fn shares(&self) -> SplitShares {
        SplitShares { since: self.split_time, ..self.shares.unwrap_or_default() }
    }

    /// Whether the user said how to divide it.
    pub fn divides(&self) -> bool {
        self.shares.is_some() || self.split_time.is_some()
    }

    /// These arguments as the library's options.
    pub fn options(&self, common: &Common) -> ReadOptions {
        ReadOptions {
            shares: self.shares(),
            seed: common.seed,
            header: self.form.header,
            format: self.form.format.kind,
            columns: self.form.columns.clone(),
            literals: self.form.literals.unwrap_or_default(),
            named_graph: self.form.named_graph.clone(),
            conflicts: self.form.conflicts.unwrap_or_default(),
            incomplete: false,
        }
    }
}

impl Data {
    /// Reads the data set and prints on stderr what was odd in it.
    pub fn read(&self, common: &Common) -> anyhow::Result<Dataset> {
        self.read_with(&self.options.options(common), common)
    }

    /// The same for data that may lack some splits.
    pub fn read_incomplete(&self, common: &Common) -> anyhow::Result<Dataset> {
        self.read_with(&ReadOptions { incomplete: true, ..self.options.options(common) }, common)
    }

    fn read_with(&self, options: &ReadOptions, common: &Common) -> anyhow::Result<Dataset> {
        let place = Place::of(&self.path, &self.options.form, common)?;
        let dataset = read(place.path(), options).map_err(|error| place.named(error))?;
        note_odd(&self.path, &dataset.findings, common);
        Ok(dataset)
    }
}

/// Where data is read from: a file or folder, or a file that stdin was written to.
pub enum Place {
    /// As the user named it.
    Named(PathBuf),
    /// What came from stdin or another pipe; removed at the end.
    Spooled {
        /// The folder of the file, which goes with it.
        _folder: tempfile::TempDir,
        /// The file.
        file: PathBuf,
        /// Where it came from, as the user knows it.
        origin: PathBuf,
    },
}

impl Place {
    /// The place that a user calls `path`. Stdin and other pipes are spooled to a file first: some formats need seeking,
    /// data is read more than once, and a pipe gives it once.
    pub fn of(path: &Path, form: &Form, common: &Common) -> anyhow::Result<Self> {
        #[cfg(feature = "rdf")]
        if is_endpoint(path) {
            return Ok(Place::Named(endpoint::fetched(path, form, common)?));
        }
        ensure!(
            form.query.is_none(),
            "--query asks a SPARQL endpoint (sparql+http://…), and {} is none",
            path.display()
        );
        let stdin = path == Path::new(STDIN);
        if !stdin && !is_pipe(path) {
            return Ok(Place::Named(path.to_owned()));
        }
        let origin = if stdin { PathBuf::from("stdin") } else { path.to_owned() };
        let name = origin.display().to_string();
        let console = Console::with_interrupt(common);
        let kind = form.format.kind.or_else(|| FileKind::of(path));
        let ending = kind.map_or_else(|| "tsv".to_owned(), FileKind::ending);
        let folder = tempfile::Builder::new()
            .prefix("ruleguider-")
            .tempdir()
            .with_context(|| format!("creating a temporary folder for {name}"))?;
        let file = folder.path().join(format!("stdin.{ending}"));
        let mut out = std::fs::File::create(&file).with_context(|| file.display().to_string())?;
        let mut input =
            if stdin { Awaited::stdin(&console) } else { Awaited::pipe(path.to_owned(), &console) };
        let read = std::io::copy(&mut input, &mut out).with_context(|| format!("{name}: cannot be read"))?;
        ensure!(!console.interrupted(), "interrupted");
        if read == 0 {
            bail!("{name}: expected triples, found nothing");
        }
        Ok(Place::Spooled { _folder: folder, file, origin })
    }

    /// The path to read from.
    pub fn path(&self) -> &Path {
        match self {
            Place::Named(path) => path,
            Place::Spooled { file, .. } => file,
        }
    }

    /// `error`, with the place as the user named it.
    pub fn named(&self, mut error: GraphError) -> GraphError {
        let about = match &mut error {
            GraphError::Io { path, .. } | GraphError::Line { path, .. } | GraphError::File { path, .. } => {
                path
            }
            GraphError::Data(_) => return error,
        };
        if let Place::Spooled { file, origin, .. } = self
            && about == file
        {
            about.clone_from(origin);
        }
        error
    }
}

/// Whether `path` stands for stdin or is another pipe, which can be read once.
pub fn is_stream(path: &Path) -> bool {
    path == Path::new(STDIN) || is_pipe(path)
}

/// What comes through stdin or another pipe, until the user interrupts.
pub fn stream<'a>(path: &Path, console: &'a Console) -> Awaited<'a> {
    match path == Path::new(STDIN) {
        true => Awaited::stdin(console),
        false => Awaited::pipe(path.to_owned(), console),
    }
}

/// A list of names: a file, or what came through a pipe, in a file that is removed at the end.
pub struct List {
    file: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl List {
    /// The list that a user calls `path`. What comes through a pipe is written to a file, for work that is resumed.
    pub fn of(path: &Path, common: &Common) -> anyhow::Result<Self> {
        if !is_stream(path) {
            return Ok(Self { file: path.to_owned(), _folder: None });
        }
        let console = Console::with_interrupt(common);
        let name = path.display().to_string();
        let unreadable = || format!("{name}: cannot be read");
        let mut input = BufReader::new(stream(path, &console));
        let ending = ending_of_rows(input.fill_buf().with_context(unreadable)?);
        let folder = tempfile::Builder::new().prefix("ruleguider-").tempdir();
        let folder = folder.with_context(|| format!("creating a temporary folder for {name}"))?;
        let file = folder.path().join(format!("list.{ending}"));
        let mut out = std::fs::File::create(&file).with_context(|| file.display().to_string())?;
        std::io::copy(&mut input, &mut out).with_context(unreadable)?;
        ensure!(!console.interrupted(), "interrupted");
        Ok(Self { file, _folder: Some(folder) })
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.file
    }
}

/// Whether `path` is a named pipe, or what a shell gives for `<(command)`.
fn is_pipe(path: &Path) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::FileTypeExt;
        std::fs::metadata(path).is_ok_and(|about| about.file_type().is_fifo())
    }
    #[cfg(not(unix))]
    {
        let _ = path;
        false
    }
}

/// Prints on stderr what was odd in `path`, if anything.
pub fn note_odd(path: &Path, findings: &Findings, common: &Common) {
    if let Some(odd) = describe(findings) {
        Console::new(common).note(&format_args!("{}: {odd}", path.display()));
    }
}

/// Prints on stderr what was understood of the data beyond plain triples, if anything.
pub fn note_understood(dataset: &Dataset, common: &Common) {
    if !dataset.understood.is_empty() {
        Console::new(common).note(&Shown(dataset.understood.join(" ")));
    }
}

/// What was odd, in words; `None` if nothing was.
fn describe(findings: &Findings) -> Option<String> {
    let notes: Vec<String> = [
        (findings.headers, "header lines left out (they name the columns)"),
        (findings.duplicates, "duplicate lines left out"),
        (findings.valid_in_train, "validation facts that are also training facts"),
        (findings.test_in_train, "test facts that are also training facts"),
        (findings.test_in_valid, "test facts that are also validation facts"),
        (findings.valid_unseen, "validation facts with an entity that is not in the graph"),
        (findings.test_unseen, "test facts with an entity that is not in the graph"),
        (findings.labels_unused, "labels of entities that no split mentions"),
    ]
    .iter()
    .filter(|(count, _)| *count > 0)
    .map(|(count, what)| format!("{count} {what}"))
    .collect();
    (!notes.is_empty()).then(|| notes.join("; "))
}
