//! Our scores against those of `benches/universal_reference.py`, and what weights and answers guarantee.

use super::*;
use crate::graph::{Direction, Graph, Link, Query, ReadOptions, Triple, read_file};
use crate::tensor::Device;
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Deserialize)]
struct Expected {
    entities: Vec<String>,
    answers: Vec<ExpectedAnswer>,
}

#[derive(Deserialize)]
struct ExpectedAnswer {
    entity: String,
    relation: String,
    inverse: bool,
    scores: Vec<f32>,
}

fn fixture(name: &str, ending: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/universal").join(format!("{name}.{ending}"))
}

fn devices() -> Vec<Device> {
    [Device::cpu(2).unwrap()].into_iter().chain(Device::cuda_exact(0).ok()).collect()
}

#[test]
fn scores_are_those_of_the_reference() {
    for device in devices() {
        let universal = Arc::new(Universal::load(&fixture("prototype", "safetensors"), &device).unwrap());
        for name in ["family", "random", "hub"] {
            let (names, facts, _) = read_file(&fixture(name, "tsv"), &ReadOptions::default()).unwrap();
            let graph = Graph::new(names.entities.len(), names.relations.len(), &facts);
            let reasoner = UniversalReasoner::new(universal.clone(), &graph).unwrap();
            let expected = std::fs::read_to_string(fixture(name, "json")).unwrap();
            let expected: Expected = serde_json::from_str(&expected).unwrap();
            let entity = |name: &String| crate::graph::EntityId(names.entities.get(name).unwrap());
            let queries: Vec<Query> = expected
                .answers
                .iter()
                .map(|answer| {
                    let relation = crate::graph::RelationId(names.relations.get(&answer.relation).unwrap());
                    let direction = if answer.inverse { Direction::Inverse } else { Direction::Forward };
                    Query { subject: entity(&answer.entity), link: Link::new(relation, direction) }
                })
                .collect();
            let together = reasoner.scores(&queries).unwrap();
            for (index, answer) in expected.answers.iter().enumerate() {
                let row = &together[index * graph.entities()..][..graph.entities()];
                let alone = reasoner.scores(&queries[index..=index]).unwrap();
                for (name, &score) in expected.entities.iter().zip(&answer.scores) {
                    let at = entity(name).index();
                    let close = |ours: f32| (ours - score).abs() <= 1e-4 * score.abs().max(1.0);
                    assert!(close(row[at]), "{device}: query {index}, {name}: {} but {score}", row[at]);
                    assert!(close(alone[at]), "{device}: query {index} alone, {name}: {}", alone[at]);
                }
            }
        }
    }
}

#[test]
fn weights_survive_a_file() {
    let device = Device::cpu(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let settings = UniversalSettings { width: 8, layers: 2, relation_layers: 1, whole: false };
    let universal = Universal::new(&settings, &device, 5).unwrap();
    for (precision, tolerance) in [(StoredPrecision::Full, 0.0), (StoredPrecision::Half, 1e-3)] {
        let path = folder.path().join("weights.safetensors");
        universal.save(&path, precision).unwrap();
        let read = Universal::load(&path, &device).unwrap();
        assert_eq!(read.settings(), &settings);
        for id in universal.parameters.ids() {
            let [old, new] = [&universal, &read].map(|one| one.parameters.value(id).to_vec().unwrap());
            // Near zero, 16 bits have a fixed spacing.
            let close = |(old, new): (&f32, &f32)| (old - new).abs() <= tolerance * (old.abs() + 1e-4);
            assert!(old.iter().zip(&new).all(close));
        }
    }
    let wrong = Universal::from_bytes(b"nothing", Path::new("x"), &device).err().unwrap();
    assert!(wrong.to_string().starts_with("x"), "{wrong}");
    let prototype = Universal::load(&fixture("prototype", "safetensors"), &device).unwrap();
    assert_eq!(prototype.parameters(), 174_016, "those of the prototype but for the last bias");
}

#[test]
fn a_graph_without_facts_or_relations_is_answered_too() {
    let device = Device::cpu(1).unwrap();
    let universal = Arc::new(Universal::shipped(&device).unwrap());
    let empty = UniversalReasoner::new(universal.clone(), &Graph::new(3, 0, &[])).unwrap();
    assert_eq!(empty.scores(&[]).unwrap(), Vec::<f32>::new());
    let single = UniversalReasoner::new(universal, &Graph::new(3, 1, &[])).unwrap();
    let query = Query { subject: crate::graph::EntityId(1), link: Link(3) };
    let scores = single.scores(&[query]).unwrap();
    assert!(scores.len() == 3 && scores.iter().all(|score| score.is_finite()));
}

#[test]
fn a_relation_graph_stays_sparse_with_200_000_relations_around_one_hub() {
    const RELATIONS: u32 = 200_000;
    // All of them share their head, so that a dense relation graph would have 4 × 10¹⁰ entries.
    let facts: Vec<Triple> = (0..RELATIONS).map(|at| Triple::new(0, at, 1 + at % 1000)).collect();
    let graph = Graph::new(1001, RELATIONS as usize, &facts);
    let links = RelationGraph::new(&graph);
    for matrix in [&links.heads, &links.pairs] {
        let widest = matrix.starts.windows(2).map(|row| row[1] - row[0]).max().unwrap();
        assert!(widest as usize <= 2 * neighbours(links.links()), "{widest} neighbours");
        assert!(matrix.links.len() < 16_000_000, "{} entries", matrix.links.len());
    }
    let universal = Arc::new(Universal::shipped(&Device::cpu(1).unwrap()).unwrap());
    let reasoner = UniversalReasoner::new(universal, &graph).unwrap();
    let (query, _) = Query::of(facts[7], Direction::Forward);
    let scores = reasoner.scores(&[query]).unwrap();
    assert!(scores.len() == 1001 && scores.iter().all(|score| score.is_finite()));
}

/// Writes a small graph for training: people with children and grandchildren.
fn write_graph(path: &Path) {
    let mut text = String::new();
    for person in 0..40 {
        let mut say = |relation: &str, other: usize| text += &format!("p{person}\t{relation}\tp{other}\n");
        for child in [2 * person + 1, 2 * person + 2].into_iter().filter(|&child| child < 40) {
            say("parent_of", child);
            [2 * child + 1, 2 * child + 2]
                .into_iter()
                .filter(|&other| other < 40)
                .for_each(|other| say("grandparent_of", other));
        }
        if person % 2 == 1 {
            say("sibling_of", person + 1);
        }
    }
    std::fs::write(path, text).unwrap();
}

#[test]
fn training_lowers_the_loss_and_goes_on_from_its_checkpoint() {
    let folder = tempfile::tempdir().unwrap();
    let device = Device::cpu(2).unwrap();
    write_graph(&folder.path().join("people.tsv"));
    let settings: PretrainSettings = toml::from_str(
        r#"
        minutes = 0.1
        learning_rate = 0.005
        warm_up = 10
        turn = 4
        network = { width = 16, layers = 3, relation_layers = 2 }
        train = [{ path = "people.tsv", batch = 8 }]
        ranked = [{ path = "people.tsv" }]
        "#,
    )
    .unwrap();
    let out = folder.path().join("made.safetensors");
    let task = PretrainTask {
        settings: &settings,
        data: folder.path(),
        minutes: Some(0.02),
        weights: None,
        out: Some(&out),
        resume: false,
        seed: 1,
        device: &device,
    };
    let first = pretrain(task, &crate::progress::Silent).unwrap();
    assert!(first.steps > 0 && first.minutes >= 0.02 && first.ranked[0].figures.queries > 0);
    let second =
        pretrain(PretrainTask { resume: true, minutes: None, ..task }, &crate::progress::Silent).unwrap();
    assert!(second.steps > first.steps && second.minutes >= 0.1 && second.minutes < 0.2);
    assert!(second.losses[0].1 < 3.0, "the loss of a guess among 40 is 3.7, not {:?}", second.losses);
    let again =
        pretrain(PretrainTask { minutes: Some(0.0), weights: Some(&out), ..task }, &crate::progress::Silent);
    let difference = again.unwrap().ranked[0].figures.mrr - second.ranked[0].figures.mrr;
    assert!(difference.abs() < 0.02, "the written weights are those that were trained, but for rounding");
    let wrong: Result<PretrainSettings, _> = toml::from_str("epochs = 3");
    assert!(wrong.unwrap_err().to_string().contains("epochs"));
}
