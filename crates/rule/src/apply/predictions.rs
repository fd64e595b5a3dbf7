//! Prediction files as AnyBURL writes them: three lines per triple, with the best answers at both of its ends.

use super::RuleReasoner;
use crate::RuleError;
use rayon::prelude::*;
use ruleguider_graph::Scored;
use ruleguider_graph::{Direction, Names, Query, Triple, write_packed};
use ruleguider_support::progress::Progress;
use std::fmt::Write as _;
use std::io;
use std::path::Path;

/// How many triples are answered before they are written.
const BATCH: usize = 2048;

/// Writes the best answers of both queries of every triple: `h r t`, then `Heads: e<TAB>score<TAB>…` and `Tails: …`.
/// Facts of the graph are not among the answers; held-out facts are, because they are unknown here.
///
/// Returns false, and writes nothing, if the user interrupts.
///
/// # Errors
/// If the file cannot be written.
pub fn write_predictions(
    path: &Path,
    triples: &[Triple],
    reasoner: &RuleReasoner,
    names: &Names,
    progress: &dyn Progress,
) -> Result<bool, RuleError> {
    let mut stopped = false;
    progress.begin("predicting", "triples", Some(triples.len() as u64));
    let written = write_packed(path, |out| {
        let mut done = 0;
        for batch in triples.chunks(BATCH) {
            if progress.interrupted() {
                stopped = true;
                return Err(io::ErrorKind::Interrupted.into());
            }
            let texts: Vec<String> =
                batch.par_iter().map(|&triple| predictions(triple, reasoner, names)).collect();
            for text in texts {
                out.write_all(text.as_bytes())?;
            }
            done += batch.len() as u64;
            progress.advance(done, &"");
        }
        Ok(())
    });
    match written {
        _ if stopped => progress.end(&"interrupted"),
        Ok(()) => progress.end(&format_args!("{} triples", triples.len())),
        Err(source) => return Err(RuleError::Unwritable { path: path.to_owned(), source }),
    }
    Ok(!stopped)
}

fn predictions(triple: Triple, reasoner: &RuleReasoner, names: &Names) -> String {
    let Triple { head, relation, tail } = triple;
    let mut text = format!("{} {} {}\n", names.entity(head), names.relation(relation), names.entity(tail));
    for (direction, title) in [(Direction::Inverse, "Heads:"), (Direction::Forward, "Tails:")] {
        let (query, _) = Query::of(triple, direction);
        text.push_str(title);
        text.push(' ');
        for Scored { entity, score } in reasoner.answer_one(query) {
            // Writing to a string cannot fail.
            let _ = write!(text, "{}\t{score}\t", names.entity(entity));
        }
        text.push('\n');
    }
    text
}
