//! A model of your own as a member of a run: it ranks the entities that are two hops away by the number of ways there.
//! Training, resuming, figures, probabilities and reasons come by themselves.
//!
//!     cargo run --release --example own_member

#![allow(clippy::print_stdout, reason = "a program prints")]

use ruleguider::config::{Config, System};
use ruleguider::cost::{GraphSize, Resources};
use ruleguider::eval::{Answers, Reasoner, ReasonerError, Scored};
use ruleguider::graph::{Edge, EntityId, Graph, Query};
use ruleguider::progress::Progress;
use ruleguider::reason::{Candidate, Evidence, Explains, Found, Hop, Reasoned};
use ruleguider::run::member::{Cost, Member, register};
use ruleguider::run::{Artifacts, Finished, Material, MemberReport, RunError};
use ruleguider::{Error, Learn};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

struct Ways;

impl Member for Ways {
    fn name(&self) -> &'static str {
        "ways"
    }
    fn system(&self) -> Option<System> {
        Some(System::Further("ways"))
    }
    fn settings(&self, _: &Config) -> Value {
        json!({})
    }
    fn cost(&self, _: &Config, size: &GraphSize, _: &Resources) -> Cost {
        Cost::new(0.0, 1e-6 * size.facts as f64)
    }
    fn train(&self, _: &mut Artifacts, _: &Material<'_>) -> Result<Finished, RunError> {
        Ok(Finished { files: Vec::new(), figures: MemberReport::default(), seconds: None })
    }
    fn reasoner(&self, artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        Ok(Some(Arc::new(ByWays(artifacts.learnable.graph.clone()))))
    }
}

struct ByWays(Arc<Graph>);

impl ByWays {
    /// How many ways lead to every entity two hops away, and one of them.
    fn ways(&self, query: Query) -> BTreeMap<EntityId, (f64, [Edge; 2])> {
        let mut ways = BTreeMap::new();
        for &first in self.0.edges(query.subject) {
            for &second in self.0.edges(first.target).iter().filter(|edge| edge.target != query.subject) {
                ways.entry(second.target).or_insert((0.0, [first, second])).0 += 1.0;
            }
        }
        ways
    }
}

impl Reasoner for ByWays {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let listed = |&query: &Query| {
            self.ways(query).into_iter().map(|(entity, (score, _))| Scored { entity, score }).collect()
        };
        Ok(Answers::Listed(queries.iter().map(listed).collect()))
    }
}

impl Explains for ByWays {
    fn reasoner(&self) -> &dyn Reasoner {
        self
    }
    fn search(&self, queries: &[Query], _: usize, _: &dyn Progress) -> Result<Vec<Found>, ReasonerError> {
        let found = |&query: &Query| {
            let known = self.0.targets(query.subject, query.link);
            let new = self.ways(query).into_iter().filter(|(entity, _)| !known.contains(entity));
            let candidate = |(entity, (score, _))| Candidate { entity, score, evidence: Evidence::default() };
            let mut candidates: Vec<Candidate> = new.map(candidate).collect();
            candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entity.cmp(&b.entity)));
            Found { query, candidates }
        };
        Ok(queries.iter().map(found).collect())
    }
    fn reasons(&self, query: Query, answer: &Candidate, _: usize) -> Result<Vec<Reasoned>, ReasonerError> {
        let hop = |edge: Edge| Hop { link: edge.link, target: edge.target, scores: None };
        let reasoned = |(score, path): (f64, [Edge; 2])| Reasoned {
            entity: answer.entity,
            score,
            start: query.subject,
            path: path.map(hop).to_vec(),
            rule: None,
            without: None,
        };
        Ok(self.ways(query).remove(&answer.entity).map(reasoned).into_iter().collect())
    }
}

fn main() -> Result<(), Error> {
    register(&Ways);
    let model = Learn::demonstration().set("system=ways").out("runs/ways").run()?;
    println!("test MRR {:.3}", model.results()?.report.figures.mrr);
    let test = model.dataset().test[0];
    let (subject, relation) = (model.names().entity(test.head), model.names().relation(test.relation));
    for answer in model.predict(subject, relation, 3)?.answers {
        println!("{} {:.2}  {}", answer.label, answer.score, answer.reason);
    }
    Ok(())
}
