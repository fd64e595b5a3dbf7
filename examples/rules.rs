//! Mines rules from a graph, applies them to its test split, and prints the best of them.
//!
//!     cargo run --release --example rules -- data/wn18rr

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::eval::{Protocol, Split, evaluate_split};
use ruleguider::generate::demonstration;
use ruleguider::graph::{self, ReadOptions};
use ruleguider::progress::Silent;
use ruleguider::rule::{ApplyOptions, MineOptions, RuleReasoner, UNSEEN, mine, rule_text};
use std::error::Error;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let dataset = match std::env::args().nth(1) {
        Some(path) => graph::read(Path::new(&path), &ReadOptions::default())?,
        None => demonstration(),
    };
    let graph = dataset.graph();
    let mined = mine(&graph, &MineOptions::default(), &Silent)?;
    for scored in mined.rules.iter().take(5) {
        println!("{:.2}  {}", scored.counts.confidence(UNSEEN), rule_text(&scored.rule, &dataset.names));
    }
    println!("{} rules", mined.rules.len());

    let reasoner = RuleReasoner::new(&graph, mined.rules, ApplyOptions::default());
    let report = evaluate_split(&reasoner, &dataset, Split::Test, &graph, Protocol::default(), &Silent)?;
    println!("{report}");
    Ok(())
}
