//! Learns from a file of triples (or, without one, from the built-in family) and asks a question.
//!
//!     cargo run --release --example ask
//!     cargo run --release --example ask -- my_triples.tsv "Some Entity" some_relation

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::{Error, Learn, Model};

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let model: Model = match arguments.first() {
        Some(data) => Learn::new(data).minutes(2.0).out("runs/example").run()?,
        None => Learn::demonstration().out("runs/example-family").run()?,
    };
    println!("test MRR {:.3}", model.results()?.report.figures.mrr);

    // Without a question, one of the test split.
    let test = model.dataset().test[0];
    let names = model.names();
    let subject = arguments.get(1).map_or_else(|| names.entity(test.head), String::as_str);
    let relation = arguments.get(2).map_or_else(|| names.relation(test.relation), String::as_str);

    println!("{subject} {relation} ?");
    let answers = model.predict(subject, relation, 5)?.answers;
    for answer in &answers {
        println!("  {} {:.2} {}", answer.label, answer.probability, answer.reason);
    }
    if let Some(best) = answers.first() {
        let why = model.explain(subject, relation, &best.entity)?;
        println!("{} is in place {:?}; rules that predict it:", best.label, why.rank);
        for grounded in &why.rules {
            println!("  {:.2} {}", grounded.rule.confidence, grounded.rule.label);
        }
    }
    Ok(())
}
