//! SPARQL endpoints as DATA: their statements are kept in the user's cache folder and read from there.

use crate::arguments::Common;
use crate::console::Console;
use crate::data::Form;
use anyhow::Context;
use ruleguider::graph::sparql::{Endpoint, Fetched, Patience, cache};
use std::path::{Path, PathBuf};

/// Pages between two lines that say how far it has come.
const PAGES_A_LINE: u64 = 10;

/// The file with all statements of the endpoint at `address`, after those that are missing have come.
pub fn fetched(address: &Path, form: &Form, common: &Common) -> anyhow::Result<PathBuf> {
    let query = form.query.as_ref().map(|path| {
        std::fs::read_to_string(path).with_context(|| format!("{}: cannot be read", path.display()))
    });
    let endpoint = Endpoint::new(address, form.named_graph.clone(), query.transpose()?)?;
    let folder = cache()?;
    let file = endpoint.file(&folder);
    let console = Console::new(common);
    let mut is_first = true;
    let mut said = |fetched: &Fetched| {
        let Fetched { complete, pages, rows, left_out, .. } = fetched;
        let (place, name) = (file.display(), address.display());
        match (is_first, complete) {
            (true, true) => {
                console.note(&format_args!(
                    "{name}: the {rows} statements that came earlier; remove {place} to ask again"
                ));
            }
            (true, false) if *pages > 0 => {
                console.note(&format_args!("{name}: goes on after {rows} statements"))
            }
            (false, true) => {
                let odd = if *left_out > 0 {
                    format!("; {left_out} rows are no statements")
                } else {
                    String::new()
                };
                console.note(&format_args!("{name}: {rows} statements, kept in {place}{odd}"));
            }
            (false, false) if *pages > 0 && pages % PAGES_A_LINE == 0 => {
                console.note(&format_args!("{name}: {rows} statements so far"));
            }
            _ => {}
        }
        is_first = false;
    };
    Ok(endpoint.fetch(&folder, Patience::default(), &mut said)?)
}
