//! Writes a world to files clan by clan, in memory that does not grow with the size of the world.
//!
//! Everything is written aside and moved in at the end, so the folder never has files of two worlds
//! ([`Staged`]).

use super::kin::Kin;
use super::planted::{self, Counts};
use super::{ClanFacts, Fact, LEAST_PEOPLE, Layout, PlantedRule};
use crate::{GraphError, Staged, Vocabulary, is_free};
use rayon::prelude::*;
use ruleguider_support::progress::Progress;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// How many clans are in memory at a time. They are generated in parallel and written in order.
const CLANS_AT_A_TIME: u64 = 512;
/// The files of a written world, to which every clan adds a [`Text`]; the rules follow at the end.
const FILES: [&str; 4] = ["train.tsv", "valid.tsv", "test.tsv", "entity_labels.tsv"];
const RULES_FILE: &str = "planted_rules.tsv";

/// The most people: entities have 32-bit ids.
const MOST_PEOPLE: u64 = u32::MAX as u64;

/// What was written.
#[derive(Clone, Debug, PartialEq)]
pub struct Written {
    /// People in the world.
    pub people: u64,
    /// Facts in `train`.
    pub train: u64,
    /// Facts in `valid`.
    pub valid: u64,
    /// Facts in `test`.
    pub test: u64,
    /// True facts that are in no split.
    pub left_out: u64,
    /// The planted rules; relation ids follow the order of their appearance in `train`.
    pub rules: Vec<PlantedRule>,
}

/// Writes the world of `people` people with this seed into the folder `out`: `train.tsv`, `valid.tsv`,
/// `test.tsv`, `entity_labels.tsv`, their checksums in `splits.sha256`, and `planted_rules.tsv` in AnyBURL's format.
///
/// A folder that is not empty is refused unless `force`, which replaces those six files and touches no
/// other. `None` if `progress` was interrupted; then nothing is left behind.
pub fn write(
    people: u64,
    seed: u64,
    out: &Path,
    force: bool,
    progress: &dyn Progress,
) -> Result<Option<Written>, GraphError> {
    if people < LEAST_PEOPLE {
        return Err(GraphError::Data(format!("a family has at least {LEAST_PEOPLE} people, not {people}")));
    }
    if people > MOST_PEOPLE {
        return Err(GraphError::Data(format!("a family has at most {MOST_PEOPLE} people, not {people}")));
    }
    refuse_if_occupied(out, force)?;
    let staged = Staged::within(out)?;
    let written = write_files(Layout { people, seed }, staged.path(), progress);
    let written = written.map_err(|error| staged.named(error))?;
    if written.is_some() {
        staged.commit(|_| false)?;
    }
    Ok(written)
}

fn refuse_if_occupied(out: &Path, force: bool) -> Result<(), GraphError> {
    let occupied = |expected, found| Err(GraphError::file(out, expected, found));
    match is_free(out) {
        Ok(false) if !force => occupied("a new or empty folder, unless overwriting is forced", "files in it"),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            occupied("a new or empty folder", "a file")
        }
        Err(error) => Err(GraphError::writing(out)(error)),
    }
}

fn write_files(
    layout: Layout,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<Option<Written>, GraphError> {
    let mut files = Vec::with_capacity(FILES.len());
    for name in FILES {
        files.push(Output::create(folder.join(name))?);
    }
    let mut counts = planted::no_counts();
    let mut relations = Vocabulary::new();
    let mut written =
        Written { people: layout.people, train: 0, valid: 0, test: 0, left_out: 0, rules: Vec::new() };
    progress.begin("generating", "people", Some(layout.people));
    for first in (0..layout.clans()).step_by(CLANS_AT_A_TIME as usize) {
        let last = layout.clans().min(first + CLANS_AT_A_TIME);
        let round: Vec<Text> =
            (first..last).into_par_iter().map(|clan| Text::of(&layout.clan(clan))).collect();
        for clan in &round {
            for (file, text) in files.iter_mut().zip(&clan.files) {
                file.write(text)?;
            }
            written.train += clan.train;
            written.valid += clan.valid;
            written.test += clan.test;
            written.left_out += clan.left_out;
            planted::add(&mut counts, &clan.counts);
            clan.first_relations.iter().for_each(|kin| _ = relations.intern(kin.name()));
        }
        if progress.interrupted() {
            return Ok(None);
        }
        let people = (u128::from(layout.people) * u128::from(last) / u128::from(layout.clans())) as u64;
        progress.advance(people, &format_args!("{} facts", written.train + written.valid + written.test));
    }
    written.rules = planted::rules(&counts, &relations);
    let mut rules = Output::create(folder.join(RULES_FILE))?;
    rules.write(&written.rules.iter().map(rule_line).collect::<String>())?;
    files.push(rules);
    files.into_iter().try_for_each(Output::finish)?;
    progress.end(&format_args!(
        "{} people, {} train, {} valid, {} test facts",
        written.people, written.train, written.valid, written.test
    ));
    Ok(Some(written))
}

/// The line `predicted<TAB>correct<TAB>confidence<TAB>rule`, with counts from the whole world.
fn rule_line(rule: &PlantedRule) -> String {
    format!("{}\t{}\t{:.6}\t{}\n", rule.predicted, rule.correct, rule.confidence(), rule.text)
}

/// The lines of one clan for each of [`FILES`].
struct Text {
    files: [String; FILES.len()],
    train: u64,
    valid: u64,
    test: u64,
    left_out: u64,
    counts: Counts,
    /// The relations of its `train`, in order of first appearance.
    first_relations: Vec<Kin>,
}

impl Text {
    fn of(clan: &ClanFacts) -> Self {
        let mut labels = String::new();
        for (name, label) in clan.names.iter().zip(&clan.labels) {
            writeln!(labels, "{name}\t{label}").expect("writing to a string cannot fail");
        }
        let mut first_relations: Vec<Kin> = Vec::new();
        for fact in &clan.train {
            if !first_relations.contains(&fact.kin) {
                first_relations.push(fact.kin);
            }
        }
        let lines = |facts: &[Fact]| lines(&clan.names, facts);
        Self {
            files: [lines(&clan.train), lines(&clan.valid), lines(&clan.test), labels],
            train: clan.train.len() as u64,
            valid: clan.valid.len() as u64,
            test: clan.test.len() as u64,
            left_out: clan.left_out,
            counts: clan.counts,
            first_relations,
        }
    }
}

fn lines(names: &[String], facts: &[Fact]) -> String {
    let mut text = String::with_capacity(48 * facts.len());
    for fact in facts {
        text.push_str(&names[usize::from(fact.head)]);
        text.push('\t');
        text.push_str(fact.kin.name());
        text.push('\t');
        text.push_str(&names[usize::from(fact.tail)]);
        text.push('\n');
    }
    text
}

/// A file being written.
struct Output {
    path: PathBuf,
    file: BufWriter<File>,
}

impl Output {
    fn create(path: PathBuf) -> Result<Self, GraphError> {
        let file = File::create_new(&path).map_err(GraphError::writing(&path))?;
        Ok(Self { path, file: BufWriter::with_capacity(1 << 20, file) })
    }

    fn write(&mut self, text: &str) -> Result<(), GraphError> {
        self.file.write_all(text.as_bytes()).map_err(GraphError::writing(&self.path))
    }

    fn finish(self) -> Result<(), GraphError> {
        let file =
            self.file.into_inner().map_err(|error| GraphError::writing(&self.path)(error.into_error()))?;
        file.sync_all().map_err(GraphError::writing(&self.path))
    }
}
