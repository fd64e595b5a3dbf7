//! Judges facts that somebody proposes: a probability, ranks from both ends, and the best reason.
//!
//!     cargo run --release --example score

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::ask::ScoreOptions;
use ruleguider::progress::Silent;
use ruleguider::{Error, Learn};

fn main() -> Result<(), Error> {
    let model = Learn::demonstration().set("system=rules").out("runs/rules").run()?;

    // A fact that was held out, the same with another object, and one about nobody.
    let (names, test) = (model.names(), model.dataset().test[0]);
    let [subject, relation, object] =
        [names.entity(test.head), names.relation(test.relation), names.entity(test.tail)].map(str::to_owned);
    let wrong = names.entity(model.dataset().test[1].tail).to_owned();
    let proposed = [
        [subject.clone(), relation.clone(), object],
        [subject, relation.clone(), wrong],
        ["Nobody".to_owned(), relation.clone(), "Someone".to_owned()],
    ];
    for row in model.score(&proposed, &ScoreOptions::default(), &Silent)? {
        println!("{} {} {}", row.subject, row.relation, row.object);
        match &row.error {
            Some(error) => println!("  {error}"),
            None => println!("  probability {:.2}, rank of the object {:?}", row.probability, row.rank_tail),
        }
    }
    Ok(())
}
