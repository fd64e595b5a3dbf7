//! The DATA argument that most verbs take, and reading what it names.

use crate::arguments::Common;
use crate::awaited::Awaited;
use crate::console::Console;
use anyhow::{Context, bail, ensure};
use ruleguider::ask::{Model, OpenOptions};
use ruleguider::graph::{
    Dataset, FileKind, Findings, GraphError, ReadOptions, SplitShares, glance, read, stamp,
};
use ruleguider::progress::Progress;
use ruleguider::run::Source;
use std::path::{Path, PathBuf};

/// The argument that stands for stdin.
const STDIN: &str = "-";

/// Where the data is and how to read it.
#[derive(clap::Args, Clone, Debug)]
pub struct Data {
    /// A folder with train, valid, test (and optionally graph, entity_labels.tsv, relation_labels.tsv), or one file of
    /// triples; - for stdin
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
    /// Whether a TSV or CSV file begins with a header [default: if its first line names the columns]
    #[arg(long, value_name = "true|false")]
    pub header: Option<bool>,
    #[command(flatten)]
    pub format: FormatChoice,
}

/// The format, where the ending of a file does not tell it.
#[derive(clap::Args, Clone, Copy, Debug)]
pub struct FormatChoice {
    /// The format, as a file extension: tsv, csv.gz, nt, parquet [default: from the file name; tsv for stdin]
    #[arg(long = "format", value_name = "EXTENSION", value_parser = FileKind::named)]
    pub kind: Option<FileKind>,
}

/// Where the data of a run is, and whether it answers on other data.
#[derive(clap::Args, Clone, Debug)]
pub struct DataOfRun {
    /// The path of the run's data, if it has moved
    #[arg(long, value_name = "DATA")]
    data: Option<PathBuf>,
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
        let model = OpenOptions { data: self.data.clone(), on, ..options }.open(run)?;
        if let (Some(on), Some(path)) = (model.on(), &self.on) {
            note_odd(path, &model.dataset().findings, common);
            let console = Console::new(common);
            on.notes().iter().for_each(|note| console.note(note));
        }
        Ok(model)
    }
}

impl Reading {
    /// These arguments as the library's options.
    pub fn options(&self, common: &Common) -> ReadOptions {
        ReadOptions {
            shares: self.shares.unwrap_or_default(),
            seed: common.seed,
            header: self.header,
            format: self.format.kind,
            incomplete: false,
        }
    }
}

impl Data {
    /// Reads the data set and prints on stderr what was odd in it.
    pub fn read(&self, common: &Common) -> anyhow::Result<Dataset> {
        self.read_with(&self.options.options(common), common)
    }

    /// A glance at the files of this data, if one can be trusted.
    pub fn glance(&self, common: &Common) -> Option<String> {
        glance(&self.path, &self.options.options(common))
    }

    /// What tells this data from other data without a look at it: its place and how it is read. Data from stdin has none.
    pub fn identity(&self, common: &Common) -> Option<String> {
        let options = self.options.options(common);
        let place = std::fs::canonicalize(&self.path).unwrap_or_else(|_| self.path.clone());
        (self.path != Path::new(STDIN)).then(|| format!("{place:?} {options:?}"))
    }

    /// A stamp that identifies this data without parsing it. Data from stdin has none.
    pub fn stamp(&self, common: &Common) -> anyhow::Result<String> {
        ensure!(self.path != Path::new(STDIN), "--index: expected data in files, found stdin");
        Ok(stamp(&self.path, &self.options.options(common))?)
    }

    /// The same for data that may lack some splits.
    pub fn read_incomplete(&self, common: &Common) -> anyhow::Result<Dataset> {
        self.read_with(&ReadOptions { incomplete: true, ..self.options.options(common) }, common)
    }

    fn read_with(&self, options: &ReadOptions, common: &Common) -> anyhow::Result<Dataset> {
        let place = Place::of(&self.path, self.options.format, common)?;
        let dataset = read(place.path(), options).map_err(|error| place.named(error))?;
        note_odd(&self.path, &dataset.findings, common);
        Ok(dataset)
    }
}

/// Where data is read from: a file or folder, or a file that stdin was written to.
pub enum Place {
    /// As the user named it.
    Named(PathBuf),
    /// What came from stdin; removed at the end.
    Spooled {
        /// The folder of the file, which goes with it.
        _folder: tempfile::TempDir,
        /// The file.
        file: PathBuf,
    },
}

impl Place {
    /// The place that a user calls `path`. Stdin is spooled to a file first: some formats need seeking, and a run reads
    /// its data more than once.
    pub fn of(path: &Path, format: FormatChoice, common: &Common) -> anyhow::Result<Self> {
        if path != Path::new(STDIN) {
            return Ok(Place::Named(path.to_owned()));
        }
        let console = Console::with_interrupt(common);
        let ending = format.kind.map_or_else(|| "tsv".to_owned(), FileKind::ending);
        let folder = tempfile::Builder::new()
            .prefix("ruleguider-")
            .tempdir()
            .context("creating a temporary folder for stdin")?;
        let file = folder.path().join(format!("stdin.{ending}"));
        let mut out = std::fs::File::create(&file).with_context(|| file.display().to_string())?;
        let read = std::io::copy(&mut Awaited::stdin(&console), &mut out).context("stdin: cannot be read")?;
        ensure!(!console.interrupted(), "interrupted");
        if read == 0 {
            bail!("stdin: expected triples, found nothing");
        }
        Ok(Place::Spooled { _folder: folder, file })
    }

    /// The path to read from.
    pub fn path(&self) -> &Path {
        match self {
            Place::Named(path) => path,
            Place::Spooled { file, .. } => file,
        }
    }

    /// Whether it came from stdin.
    pub fn is_spooled(&self) -> bool {
        matches!(self, Place::Spooled { .. })
    }

    /// `error`, with the place as the user named it.
    pub fn named(&self, mut error: GraphError) -> GraphError {
        let about = match &mut error {
            GraphError::Io { path, .. } | GraphError::Line { path, .. } | GraphError::File { path, .. } => {
                path
            }
            GraphError::Data(_) => return error,
        };
        if self.is_spooled() && about == self.path() {
            *about = PathBuf::from("stdin");
        }
        error
    }
}

/// Prints on stderr what was odd in `path`, if anything.
pub fn note_odd(path: &Path, findings: &Findings, common: &Common) {
    if let Some(odd) = describe(findings) {
        Console::new(common).note(&format_args!("{}: {odd}", path.display()));
    }
}

/// What was odd, in words; `None` if nothing was.
fn describe(findings: &Findings) -> Option<String> {
    let said: Vec<String> = [
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
    (!said.is_empty()).then(|| said.join("; "))
}
