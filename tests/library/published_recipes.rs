//! Every published recipe, made small, learns on the demonstration graph and is ranked.

use ruleguider::eval::{Protocol, Split};
use ruleguider::progress::Silent;
use ruleguider::tensor::Device;
use ruleguider::{Learn, Model};

/// Settings that leave a recipe what it is and make it take a second.
const SMALL: [&str; 15] = [
    "embed.dimension=20",
    "embed.image_rows=4",
    "embed.filters=4",
    "embed.epochs=4",
    "embed.final_epochs=4",
    "embed.evaluate_every=2",
    "rules.samples=2000",
    "walk.dimension=8",
    "walk.history=8",
    "walk.layers=1",
    "walk.rollouts=4",
    "walk.beam=16",
    "walk.pretrain_epochs=0.5",
    "walk.epochs=1",
    "walk.validate_every=1",
];

/// The model, and the folder that it lives in.
fn learnt(recipe: &str, more: &[&str]) -> (Model, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("a folder for the run");
    let learn = Learn::demonstration().config(recipe).out(folder.path().join("run"));
    let learn = learn.device(Device::cpu(1).expect("a thread"));
    let learn = SMALL.iter().chain(more).fold(learn, |learn, setting| learn.set(*setting));
    (learn.run().unwrap_or_else(|error| panic!("{recipe}: {error}")), folder)
}

#[test]
fn conve_and_multihop_as_published_learn() {
    for recipe in ["fb15k-237/conve-published", "fb15k-237/multihop-complex-published"] {
        let (model, _folder) = learnt(recipe, &[]);
        let valid = model.evaluate(Split::Valid, Protocol::default(), &Silent).unwrap().figures;
        assert!(valid.queries > 0 && valid.mrr > 0.0, "{recipe}: {valid:?}");
        assert!(
            model.evaluate_trained_valid(Protocol::default(), &Silent).unwrap().is_none(),
            "it was not trained on the validation split"
        );
    }
}

#[test]
fn minerva_as_published_takes_its_steps() {
    for recipe in ["nell-995/minerva-published", "wn18rr/minerva-published", "fb15k-237/minerva-published"] {
        let (model, _folder) = learnt(recipe, &["walk.steps=9"]);
        let curves = model.metrics().unwrap();
        let trained: Vec<_> = curves.iter().filter(|metric| metric.stage == "training").collect();
        assert!(!trained.is_empty(), "{recipe}");
        assert!(model.results().unwrap().report.figures.mrr > 0.0, "{recipe}");
    }
}

#[test]
fn a_development_figure_comes_in_three_ways() {
    let of = |way: &str| learnt(&format!("nell-995/ruleguider-complex-valid-{way}"), &[]);
    let (unknown, _folder) = of("unknown");
    assert!(unknown.evaluate_trained_valid(Protocol::default(), &Silent).unwrap().is_none());
    assert!(unknown.evaluate(Split::Valid, Protocol::default(), &Silent).is_ok());
    for way in ["queries", "graph"] {
        let (model, _folder) = of(way);
        let error = model.evaluate(Split::Valid, Protocol::default(), &Silent).unwrap_err();
        assert!(error.to_string().contains("valid"), "{error}");
        let [apart, filtered] = model.evaluate_trained_valid(Protocol::default(), &Silent).unwrap().unwrap();
        let count = model.dataset().known.valid.len();
        assert_eq!((apart.figures.queries, filtered.figures.queries), (count, count), "{way}");
        assert!(apart.figures.mrr > 0.0 && filtered.figures.mrr >= apart.figures.mrr, "{way}");
    }
    // What is only trained on is no fact to walk on.
    let facts = |way: &str| of(way).0.graph().facts();
    assert_eq!(facts("queries"), unknown.graph().facts());
    assert!(facts("graph") > unknown.graph().facts());
}
