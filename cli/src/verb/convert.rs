//! `convert`: between the formats that can be read.

use crate::arguments::Common;
use crate::console::Console;
use crate::data::{Data, Place, Reading, note_odd};
use crate::{Outcome, console};
use anyhow::{bail, ensure};
use ruleguider::graph::{
    self, DATA_FILE_ENDING, DataFile, Dataset, ENDINGS, FileKind, Literals, Triple, lost_in, read_undivided,
    write_dataset, write_undivided,
};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Arguments of `convert`.
#[derive(clap::Args)]
#[command(
    after_help = "A file is converted to a file, a folder of splits to a folder of splits. With --split, a file is converted \
to a folder with the splits that `run` makes with the same shares and seed.
A name that ends in .rg is a data file: the graph with its splits, indexed. Every command opens it at once, without parsing.

Examples:
  ruleguider convert triples.nt.gz triples.tsv
  ruleguider convert data/wn18rr wn18rr-rdf --to ttl
  ruleguider convert graph.csv graph.tsv.zst
  ruleguider convert graph.csv graph-split --split 0.8,0.1,0.1
  ruleguider convert data/wn18rr wn18rr.rg
  gunzip -c dump.nt.gz | grep -v '#' | ruleguider convert - graph.parquet --format nt"
)]
pub struct Convert {
    /// A file of triples, or a folder of splits; - for stdin
    #[arg(value_name = "IN")]
    input: PathBuf,
    /// Where to write; the extension of a file sets its format
    #[arg(value_name = "OUT")]
    output: PathBuf,
    /// The extension of the files in a folder, such as tsv, csv.gz, nt.zst, parquet
    #[arg(long, default_value = "tsv")]
    to: String,
    /// Overwrite existing files; files of another data set in the folder are removed
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    reading: Reading,
}

#[derive(Serialize)]
struct Converted {
    entities: usize,
    relations: usize,
    facts: usize,
}

impl Converted {
    fn of(dataset: &Dataset) -> Self {
        let known = &dataset.known;
        let graph: &[Triple] = if known.has_own_graph() { &known.facts } else { &[] };
        Self {
            entities: dataset.names.entities.len(),
            relations: dataset.names.relations.len(),
            facts: graph.len() + known.queries.len() + known.valid.len() + dataset.test.len(),
        }
    }
}

impl Convert {
    /// How to read. What is converted is every statement, unless the user says otherwise.
    fn reading(&self) -> Reading {
        let mut reading = self.reading.clone();
        reading.form.literals.get_or_insert(Literals::Keep);
        reading
    }

    /// Reads one format, writes the other.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        ensure!(
            self.force || is_free(&self.output),
            "{}: already exists; --force overwrites it",
            self.output.display()
        );
        ensure!(
            !is_same(&self.input, &self.output),
            "{}: is the input; choose another output",
            self.output.display()
        );
        let divided = self.reading.divides();
        ensure!(
            !divided || !self.input.is_dir(),
            "{}: already has splits; --split divides a single file",
            self.input.display()
        );
        ensure!(
            !divided || FileKind::of(&self.output).is_none(),
            "{}: looks like a file name; --split writes a folder",
            self.output.display()
        );
        let has_splits = divided || self.input.is_dir() || DataFile::is_one(&self.input);
        let converted = match FileKind::of(&self.output) {
            _ if self.output.extension().is_some_and(|ending| ending == DATA_FILE_ENDING) => {
                self.data_file(common)?
            }
            None if has_splits => self.folder(common)?,
            Some(_) if self.input.is_dir() => self.folder(common)?,
            _ => self.file(common)?,
        };
        if common.json {
            console::print_json(&converted)?;
        } else {
            let Converted { entities, relations, facts } = converted;
            let place = self.output.display();
            console::print(&format_args!(
                "{place}: {facts} facts, {entities} entities, {relations} relations"
            ))?;
        }
        Ok(Outcome::Done)
    }

    /// Writes what other verbs would read as a data file, splits included.
    fn data_file(&self, common: &Common) -> anyhow::Result<Converted> {
        let dataset = Data { path: self.input.clone(), options: self.reading() }.read(common)?;
        DataFile::write(&self.output, &dataset, None)?;
        Ok(Converted::of(&dataset))
    }

    fn folder(&self, common: &Common) -> anyhow::Result<Converted> {
        if FileKind::of(Path::new(&format!("split.{}", self.to))).is_none() {
            bail!("--to {}: expected one of the extensions {ENDINGS}", self.to);
        }
        let dataset = Data { path: self.input.clone(), options: self.reading() }.read(common)?;
        write_dataset(&self.output, &self.to, &dataset)?;
        note_lost(lost_in(Path::new(&format!("split.{}", self.to)), &dataset, true), common);
        Ok(Converted::of(&dataset))
    }

    fn file(&self, common: &Common) -> anyhow::Result<Converted> {
        // The extension of the output is checked before a large input is read.
        FileKind::expect(&self.output)?;
        let place = Place::of(&self.input, &self.reading.form, common)?;
        let read = read_undivided(place.path(), &self.reading().options(common));
        let dataset = read.map_err(|error| place.named(error))?;
        note_odd(&self.input, &dataset.findings, common);
        write_undivided(&self.output, &dataset)?;
        note_lost(lost_in(&self.output, &dataset, false), common);
        let (names, facts) = (&dataset.names, dataset.known.facts.len());
        Ok(Converted { entities: names.entities.len(), relations: names.relations.len(), facts })
    }
}

/// Says once, on stderr, what the output does not keep.
fn note_lost(lost: Option<String>, common: &Common) {
    if let Some(lost) = lost {
        Console::new(common).note(&format_args!("not kept: {lost}; a data file (.rg) keeps everything"));
    }
}

/// Whether both are the same place. The input must not be overwritten: the splits that are read leave out repeated
/// lines, unused labels and other formats.
fn is_same(one: &Path, other: &Path) -> bool {
    matches!((one.canonicalize(), other.canonicalize()), (Ok(one), Ok(other)) if one == other)
}

/// Whether there is nothing at `path`, or an empty folder.
fn is_free(path: &Path) -> bool {
    graph::is_free(path).unwrap_or_else(|_| !path.exists())
}
