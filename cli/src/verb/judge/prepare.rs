//! `judge prepare`: draws a study.

use super::systems::Systems;
use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::judge::{Store, expect_new};
use ruleguider::judge::{Study, draw};
use serde_json::json;
use std::path::PathBuf;

/// Arguments of `judge prepare`.
#[derive(clap::Args)]
#[command(
    after_help = "Facts are drawn from the validation split in a random order set by --seed. A fact is used if both systems have a path \
to the true answer; the study has each system's best path. Facts with identical paths are left out and counted. The study \
has the labels of entities and relations, but no scores and no rules. More than two systems are compared in pairs. The \
same systems and the same seed give the same study. Exit code 1 if there is nothing to judge.

Examples:
  ruleguider judge prepare runs/ours runs/theirs --triples 300 --seed 1 --out study.db
  ruleguider judge prepare runs/ours other-program.jsonl --names 'Ours,Other program' --within 10 --out study.db"
)]
pub struct Prepare {
    #[command(flatten)]
    systems: Systems,
    /// The file to write the study to
    #[arg(long, value_name = "FILE", default_value = "study.db")]
    out: PathBuf,
}

impl Prepare {
    /// Draws and writes a study, and prints a summary.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        expect_new(&self.out)?;
        let console = Console::with_interrupt(common);
        let contenders = self.systems.open(2, common)?;
        let study = match draw(&contenders, &self.systems.options(common)?, &console) {
            Err(error) if error.is_interrupted() => return Ok(Outcome::Interrupted),
            study => study?,
        };
        let some = !study.items.is_empty();
        if some {
            Store::create(&self.out, &study)?;
        }
        if let Some(short) = study.pairs.iter().find(|pair| pair.items < self.systems.triples as usize) {
            let [first, second] = short.systems.map(|system| &study.systems[system]);
            console.note(&format_args!(
                "the validation split has only {} facts that {first} and {second} explain with different paths",
                short.items
            ));
        }
        self.print(&study, common)?;
        Ok(if some { Outcome::Done } else { Outcome::Negative })
    }

    fn print(&self, study: &Study, common: &Common) -> anyhow::Result<()> {
        if common.json {
            return console::print_json(&json!({
                "study": self.out, "dataset": study.dataset, "seed": study.seed, "systems": study.systems,
                "pairs": study.pairs, "items": study.items.len(),
            }));
        }
        for pair in &study.pairs {
            let [first, second] = pair.systems.map(|system| &study.systems[system]);
            console::print(&format_args!(
                "{first} and {second}: {} facts to judge of {} looked at; {} left out with identical paths, {} that one or both \
                 do not explain",
                pair.items, pair.looked_at, pair.identical, pair.unanswered
            ))?;
        }
        if !study.items.is_empty() {
            console::print(&format_args!("next: ruleguider judge serve {} --judges 3", self.out.display()))?;
        }
        Ok(())
    }
}
