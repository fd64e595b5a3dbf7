//! The DATA argument that most verbs take, and reading what it names.

use crate::arguments::Common;
use crate::console::Console;
use ruleguider::ask::{Model, OpenOptions};
use ruleguider::graph::{Dataset, Findings, ReadOptions, SplitShares, read};
use ruleguider::run::Source;
use std::path::{Path, PathBuf};

/// Where the data is and how to read it.
#[derive(clap::Args, Clone, Debug)]
pub struct Data {
    /// A folder with train, valid, test (and optionally graph, entity_labels.tsv, relation_labels.tsv), or one file of triples
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
}

/// Where the data of a run is, and whether it answers on other data.
#[derive(clap::Args, Clone, Debug)]
pub struct DataOfRun {
    /// Where the data of the run is now, if it has moved
    #[arg(long, value_name = "DATA")]
    data: Option<PathBuf>,
    /// Answer on another graph with the same relations, or on the graph as it is now; what knows entities by name is left out
    #[arg(long, value_name = "DATA")]
    on: Option<PathBuf>,
}

impl DataOfRun {
    /// Opens `run` with the rest of `options`, and prints on stderr what stays behind on another graph; a single file of
    /// triples is divided by `shares`.
    pub fn open(
        &self,
        run: &Path,
        options: OpenOptions,
        shares: SplitShares,
        common: &Common,
    ) -> anyhow::Result<Model> {
        let reading = ReadOptions { shares, seed: common.seed, header: None };
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
    /// The same as the library takes it.
    pub fn options(&self, common: &Common) -> ReadOptions {
        ReadOptions { shares: self.shares.unwrap_or_default(), seed: common.seed, header: self.header }
    }
}

impl Data {
    /// Reads the data set and prints on stderr what was odd in it.
    pub fn read(&self, common: &Common) -> anyhow::Result<Dataset> {
        let dataset = read(&self.path, &self.options.options(common))?;
        note_odd(&self.path, &dataset.findings, common);
        Ok(dataset)
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
        (findings.headers, "headers left out (first lines that name the columns)"),
        (findings.duplicates, "duplicate lines left out"),
        (findings.valid_in_train, "validation facts that training has too"),
        (findings.test_in_train, "test facts that training has too"),
        (findings.test_in_valid, "test facts that validation has too"),
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
