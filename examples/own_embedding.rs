//! An embedding model of your own in a blend: TransE (Bordes et al. 2013), where an entity plus a link is near the answer.
//! The rules give the candidates and the reasons; how much the vectors count is fitted on the validation split.
//!
//!     cargo run --release --example own_embedding

#![allow(clippy::print_stdout, reason = "a program prints")]

use rand::{RngExt, SeedableRng};
use ruleguider::config::{Config, System};
use ruleguider::graph::{Direction, EntityId, Query, Triple};
use ruleguider::reason::{ByScore, Explains};
use ruleguider::run::member::{Member, register};
use ruleguider::run::{Artifacts, Finished, Material, RunError, write_whole};
use ruleguider::{Error, Learn};
use std::sync::Arc;

const FILE: &str = "transe.json";
type Vectors = [Vec<[f32; 24]>; 2];

/// How far the subject plus the link is from an entity, in each dimension.
fn gap([entities, links]: &Vectors, query: Query, entity: usize) -> [f32; 24] {
    let (subject, link) = (entities[query.subject.index()], links[query.link.index()]);
    std::array::from_fn(|at| subject[at] + link[at] - entities[entity][at])
}

fn score(vectors: &Vectors, query: Query, entity: usize) -> f32 {
    -gap(vectors, query, entity).iter().map(|one| one * one).sum::<f32>()
}

struct TransE;

impl Member for TransE {
    fn name(&self) -> &'static str {
        "transe"
    }
    fn system(&self) -> Option<System> {
        Some(System::Further("transe"))
    }
    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        let (facts, graph) = (&artifacts.learnable.known.facts, &artifacts.learnable.graph);
        let mut random = rand_chacha::ChaCha8Rng::seed_from_u64(1);
        let mut drawn = |rows| (0..rows).map(|_| random.random()).collect();
        let mut vectors: Vectors = [drawn(graph.entities()), drawn(graph.links())];
        let sides = |fact: &Triple| [Direction::Forward, Direction::Inverse].map(|way| Query::of(*fact, way));
        for (query, answer) in (0..100).flat_map(|_| facts.iter().flat_map(sides)) {
            let other = random.random_range(0..graph.entities());
            // The answer comes nearer and another entity goes away, until it is far enough.
            if score(&vectors, query, answer.index()) < score(&vectors, query, other) + 1.0 {
                for (entity, rate) in [(answer.index(), 0.05), (other, -0.05)] {
                    for (at, off) in gap(&vectors, query, entity).into_iter().enumerate() {
                        vectors[0][query.subject.index()][at] -= rate * off;
                        vectors[1][query.link.index()][at] -= rate * off;
                        vectors[0][entity][at] += rate * off;
                    }
                }
            }
        }
        write_whole(&material.directory.file(FILE), |out| Ok(serde_json::to_writer(out, &vectors)?))?;
        Ok(Finished { files: vec![FILE.to_owned()], ..Finished::default() })
    }
    fn reasoner(&self, artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        let scored = |vectors: Vectors| {
            let score = move |query, entity: EntityId| score(&vectors, query, entity.index());
            Arc::new(ByScore::new(artifacts.learnable.graph.clone(), score)) as Arc<dyn Explains>
        };
        Ok(artifacts.json(FILE)?.map(scored))
    }
    fn knows_entities(&self, _: &Config) -> Option<&'static str> {
        Some("TransE")
    }
}

fn main() -> Result<(), Error> {
    register(&TransE);
    let blend = ["system=blend", "blend.with_walker=false", "blend.with_embedding=false"].into_iter();
    let learn = blend.fold(Learn::demonstration().set("blend.also=['transe']"), Learn::set);
    println!("test MRR {:.3}", learn.out("runs/transe").run()?.results()?.report.figures.mrr);
    Ok(())
}
