//! Answers over a graph at once, by weights that were trained on other graphs; nothing is learnt here.
//!
//!     cargo run --release --example instant -- my_triples.tsv "Some Entity" some_relation

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::ask::instant;
use ruleguider::generate::demonstration;
use ruleguider::graph::{self, ReadOptions};
use ruleguider::progress::Silent;
use ruleguider::run::Source;
use ruleguider::tensor::Device;
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let dataset = match arguments.first() {
        Some(path) => graph::read(Path::new(path), &ReadOptions::default())?,
        None => demonstration(),
    };
    // Without a question, one about a fact that was held out; the graph to ask is all of the data without it.
    let asked = dataset.test.first().copied().or(dataset.known.facts.first().copied()).ok_or("no facts")?;
    let subject = arguments.get(1).cloned().unwrap_or_else(|| dataset.names.entity(asked.head).to_owned());
    let relation =
        arguments.get(2).cloned().unwrap_or_else(|| dataset.names.relation(asked.relation).to_owned());

    let folder = tempfile::tempdir()?; // Files of the model, as long as it is in use.
    let source = Source::Memory { name: "graph".to_owned() };
    let model = instant(source, dataset, folder.path(), None, &Device::cpu(2)?, 1, &Silent)?;
    println!("{subject} {relation} ?");
    for answer in model.predict(&subject, &relation, 5)?.answers {
        println!("  {:.2} {}  {}", answer.score, answer.label, answer.reason);
    }
    Ok(())
}
