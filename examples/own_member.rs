//! A model of your own as a member of a run: it ranks the entities that are two hops away by the number of ways there.
//! Training, resuming, figures, probabilities and reasons come by themselves.
//!
//!     cargo run --release --example own_member

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::config::System;
use ruleguider::eval::{Answers, Reasoner, ReasonerError, Scored};
use ruleguider::graph::{Edge, Graph, Query};
use ruleguider::progress::Progress;
use ruleguider::reason::{Candidate, Explains, Found, Hop, Reasoned};
use ruleguider::run::member::{Member, register};
use ruleguider::run::{Artifacts, Finished, Material, RunError};
use ruleguider::{Error, Learn};
use std::sync::Arc;

struct Ways;

impl Member for Ways {
    fn name(&self) -> &'static str {
        "ways"
    }
    fn system(&self) -> Option<System> {
        Some(System::Further("ways"))
    }
    fn train(&self, _: &mut Artifacts, _: &Material<'_>) -> Result<Finished, RunError> {
        Ok(Finished::default())
    }
    fn reasoner(&self, artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        Ok(Some(Arc::new(ByWays(artifacts.learnable.graph.clone()))))
    }
}

struct ByWays(Arc<Graph>);

impl ByWays {
    /// The ways of two hops.
    fn ways(&self, query: Query) -> impl Iterator<Item = [Edge; 2]> {
        let onwards = |&first: &Edge| self.0.edges(first.target).iter().map(move |&second| [first, second]);
        self.0.edges(query.subject).iter().flat_map(onwards).filter(move |way| way[1].target != query.subject)
    }
}

impl Reasoner for ByWays {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let listed = |&query: &Query| {
            let mut counts = std::collections::BTreeMap::new();
            self.ways(query).for_each(|way| *counts.entry(way[1].target).or_insert(0.0) += 1.0);
            counts.into_iter().map(|(entity, score)| Scored { entity, score }).collect()
        };
        Ok(Answers::Listed(queries.iter().map(listed).collect()))
    }
}

impl Explains for ByWays {
    fn reasoner(&self) -> &dyn Reasoner {
        self
    }
    fn search(&self, queries: &[Query], _: usize, _: &dyn Progress) -> Result<Vec<Found>, ReasonerError> {
        Ok(Found::beside(&self.0, queries, &self.answer(queries)?))
    }
    fn reasons(&self, query: Query, answer: &Candidate, most: usize) -> Result<Vec<Reasoned>, ReasonerError> {
        let (entity, score, start) = (answer.entity, answer.score, query.subject);
        let ways = self.ways(query).filter(|way| way[1].target == entity).take(most);
        let paths = ways.map(|way| way.map(Hop::from).to_vec());
        Ok(paths.map(|path| Reasoned { entity, score, start, path, rule: None, without: None }).collect())
    }
}

fn main() -> Result<(), Error> {
    register(&Ways);
    let model = Learn::demonstration().set("system=ways").out("runs/ways").run()?;
    println!("test MRR {:.3}", model.results()?.report.figures.mrr);
    for answer in model.predict("Ilse_Hagenthal", "cousin_of", 3)?.answers {
        println!("{} {:.2}  {}", answer.label, answer.score, answer.reason);
    }
    Ok(())
}
