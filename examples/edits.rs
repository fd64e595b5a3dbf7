//! Answers on a graph that changes: facts are added and taken back, and nothing is trained again.
//!
//!     cargo run --release --example edits

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::ask::{AddedFact, Edits};
use ruleguider::{Error, Learn, Model};

/// The best answers to who is a cousin of somebody.
fn cousins(model: &Model, of: &str) -> Result<Vec<String>, Error> {
    Ok(model.predict(of, "cousin_of", 3)?.answers.into_iter().map(|answer| answer.label).collect())
}

fn main() -> Result<(), Error> {
    let model = Learn::demonstration().set("system=rules").out("runs/rules").run()?;
    let somebody = "Ilse_Hagenthal";
    println!("before: {:?}", cousins(&model, somebody)?);

    // Somebody whom the graph did not have becomes a sibling.
    let fact = ["Newborn", "sibling_of", somebody].map(str::to_owned);
    let added = AddedFact { fact, source: Some("registry".to_owned()), ..AddedFact::default() };
    let edited = model.with_edits(&Edits { added: vec![added], ..Edits::default() })?;
    println!("the newborn's: {:?}", cousins(&edited.model, "Newborn")?);
    println!("the model itself has not changed: {:?}", cousins(&model, somebody)?);
    Ok(())
}
