//! `doubt`: facts of the graph that the rest speaks against.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::DataOfRun;
use ruleguider::ask::{DoubtOptions, DoubtedFact, Doubts, Model, OpenOptions};
use ruleguider::graph::{NamedRow, NamedRows, RelationId, RowColumn, SplitShares, Triple};
use ruleguider::shown::Shown;
use std::fmt;
use std::path::{Path, PathBuf};

/// Arguments of `doubt`.
#[derive(clap::Args)]
#[command(
    after_help = "Every fact of the graph is asked with itself taken out, from both ends. The least plausible come first, each \
with what still supports it and with the answers that others give instead. What an embedding has learnt about an entity \
by name it has learnt from the fact itself, so such members have no say unless there is no other. The run needs \
validation facts that it has not learnt. With --errors, a list of facts that are known to be false, the figures say \
how well they are found.

Examples:
  ruleguider doubt runs/demonstration
  ruleguider doubt runs/umls --relation affects --top 20 --json
  ruleguider doubt runs/umls --top 1000 --out doubtful.jsonl
  ruleguider doubt runs/umls-errors --errors data/umls-errors/errors.tsv"
)]
pub struct Doubt {
    /// A run directory
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Only facts of this relation; may be given several times [default: all relations]
    #[arg(long, value_name = "RELATION")]
    relation: Vec<String>,
    /// How many facts to report
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    top: u32,
    /// The file to write the facts to: .tsv, .csv, .jsonl or .parquet [default: stdout]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// A file of facts that are known to be false, to measure how well they are found
    #[arg(long, value_name = "FILE")]
    errors: Option<PathBuf>,
    #[command(flatten)]
    data: DataOfRun,
}

impl Doubt {
    /// Asks all facts and prints the worst.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let device = common.device_for_many()?;
        let workers = device.workers();
        let options = OpenOptions { device: Some(device), first: true, ..OpenOptions::DEFAULT };
        let model = self.data.open(&self.run, options, SplitShares::WHOLE, common)?;
        let console = Console::with_interrupt(common);
        let relations: Result<Vec<RelationId>, _> =
            self.relation.iter().map(|name| model.relation(name)).collect();
        let options = DoubtOptions {
            relations: relations?,
            top: self.top as usize,
            workers,
            errors: self.errors.as_deref().map(|path| facts_of(path, &model)).transpose()?,
        };
        let doubts = match model.doubt(&options, &console) {
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            doubts => doubts?,
        };
        if let Some(out) = &self.out {
            doubts.write(out)?;
        }
        if common.json {
            console::print_json(&doubts)?;
        } else {
            console::print(&DoubtTable { doubts: &doubts, listed: self.out.is_none() })?;
        }
        Ok(if doubts.facts.is_empty() { Outcome::Negative } else { Outcome::Done })
    }
}

/// The facts in a file, all of them known by name.
fn facts_of(path: &Path, model: &Model) -> anyhow::Result<Vec<Triple>> {
    const COLUMNS: &[RowColumn] = &[
        RowColumn { names: &["subject", "head"], required: true },
        RowColumn { names: &["relation", "predicate"], required: true },
        RowColumn { names: &["object", "tail"], required: true },
    ];
    let mut rows = NamedRows::open(path, COLUMNS)?;
    let mut facts = Vec::new();
    loop {
        let block = rows.next_block(4096)?;
        if block.is_empty() {
            return Ok(facts);
        }
        for NamedRow { number, fields } in block {
            let fact = fields.map_err(anyhow::Error::msg).and_then(|fields| {
                let name = |at: usize| fields.get(at).cloned().flatten().unwrap_or_default();
                let index = model.index();
                let (head, tail) = (index.entity(&name(0))?, index.entity(&name(2))?);
                Ok(Triple { head, relation: model.relation(&name(1))?, tail })
            });
            facts.push(fact.map_err(|error| error.context(format!("{}:{number}", path.display())))?);
        }
    }
}

/// The doubted facts as text.
struct DoubtTable<'a> {
    doubts: &'a Doubts,
    listed: bool,
}

impl fmt::Display for DoubtTable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Doubts { facts, asked, members_left_out, figures } = self.doubts;
        write!(f, "{asked} facts asked, each taken out of the graph")?;
        if !members_left_out.is_empty() {
            write!(f, ", without {}", members_left_out.join(" and "))?;
        }
        for (place, fact) in facts.iter().enumerate().filter(|_| self.listed) {
            let DoubtedFact { subject, relation, object, plausibility, rank_tail, rank_head, .. } = fact;
            let (subject, relation, object) = (Shown(subject), Shown(relation), Shown(object));
            write!(f, "\n{:3}  {subject} —{relation}→ {object}", place + 1)?;
            write!(
                f,
                "   plausibility {plausibility:.4}, rank of the object {rank_tail}, of the subject {rank_head}"
            )?;
            if !fact.support.is_empty() {
                write!(f, "\n     for it: {}", Shown(&fact.support))?;
            }
            for against in &fact.counter_evidence {
                write!(f, "\n     instead: {}", Shown(&against.words))?;
            }
        }
        match figures {
            Some(figures) => write!(f, "\n{figures}"),
            None => Ok(()),
        }
    }
}
