//! Given facts of the demonstration graph and of generated families.

use super::view::View;
use super::*;
use crate::ask::{Learn, Model, merge};
use crate::eval::{Protocol, Side, Split};
use crate::graph::{Dataset, Direction, Query, Triple};
use crate::progress::{Progress, Silent};
use crate::run::Source;
use crate::shard::Shard;
use crate::tensor::Device;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

/// A run over the demonstration graph that answers by rules and an embedding, shared by all tests.
pub(super) fn model() -> &'static Model {
    static MADE: OnceLock<(tempfile::TempDir, Model)> = OnceLock::new();
    let (_, model) = MADE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let learn = Learn::demonstration().out(folder.path().join("run")).device(Device::cpu(1).unwrap());
        let settings = ["system=blend", "blend.with_walker=false", "blend.with_propagator=false"];
        let learn = settings.iter().fold(learn, |learn, setting| learn.set(*setting));
        let model = learn.set("rules.samples=2000").set("embed.epochs=8").run().unwrap();
        (folder, model)
    });
    model
}

pub(super) fn named(model: &Model, fact: &Triple) -> [String; 3] {
    let names = model.names();
    [names.entity(fact.head), names.relation(fact.relation), names.entity(fact.tail)].map(str::to_owned)
}

fn options(threshold: Threshold) -> ScoreOptions {
    ScoreOptions { threshold, negatives: None, workers: 2 }
}

#[test]
fn what_follows_from_the_rules_alone_is_made_once_for_all_views() {
    let model = model();
    let whole = model.artifacts.path_rules().unwrap();
    let taken_out = &model.artifacts.learnable.known.facts[..3];
    let view = View::whole(model).unwrap().without(taken_out).unwrap();
    assert!(Arc::ptr_eq(&whole, &view.artifacts.unwrap().path_rules().unwrap()));
}

#[test]
fn a_score_agrees_with_predict_explain_and_evaluate() {
    let model = model();
    let facts: Vec<[String; 3]> = model.dataset().test.iter().map(|fact| named(model, fact)).collect();
    let rows = model.score(&facts, &options(Threshold::Never), &Silent).unwrap();
    let mut compared = 0;
    for row in rows.iter().step_by(7) {
        let predicted = model.predict(&row.subject, &row.relation, usize::MAX).unwrap();
        let Some(answer) = predicted.answers.iter().find(|answer| answer.entity == row.object) else {
            continue;
        };
        let close = |a: Option<f64>, b: Option<f64>| (a.unwrap() - b.unwrap()).abs() < 1e-6;
        assert!(close(row.probability.0, answer.probability.0), "{row:?} {answer:?}");
        assert_eq!(row.reason, answer.reason);
        assert!(close(row.typical, answer.typical));
        assert_eq!(row.because.len(), answer.because.len());
        for (own, predicted) in row.because.iter().zip(&answer.because) {
            assert_eq!(own.member, predicted.member);
            // Only lists of answers and explanations have the similar cases of an embedding model.
            assert!(own.words == predicted.words || (own.member == "embedding" && own.words.is_empty()));
            // Scores of networks are single floats, which differ by how many queries are asked at once, times a weight.
            assert!((own.share - predicted.share).abs() < 1e-5, "{own:?} {predicted:?}");
        }
        let shares: f64 = row.because.iter().map(|one| one.share).sum();
        assert!(close(row.score, row.typical.map(|typical| typical + shares)), "{row:?}");
        let explained = model.explain(&row.subject, &row.relation, &row.object).unwrap();
        assert!(close(row.probability.0, explained.answers[0].probability.0));
        compared += 1;
    }
    assert!(compared > 10, "{compared}");
    let protocol = Protocol { side: Side::Both, ..Protocol::default() };
    let report = model.evaluate(Split::Test, protocol, &Silent).unwrap();
    let ranks = rows.iter().flat_map(|row| [row.rank_tail.unwrap(), row.rank_head.unwrap()]);
    let mrr = ranks.map(|rank| 1.0 / rank).sum::<f64>() / (2 * rows.len()) as f64;
    let expected = serde_json::to_value(&report).unwrap()["mrr"].as_f64().unwrap();
    assert!((mrr - expected).abs() < 1e-6, "{mrr} {expected}");
    assert!(rows.iter().all(|row| row.is_true.is_none() && row.plausibility.is_none()));
}

#[test]
fn a_fact_of_the_graph_is_asked_with_itself_taken_out() {
    let model = model();
    let fact = model.dataset().known.facts.iter().find(|fact| {
        let row = model.score(&[named(model, fact)], &options(Threshold::Never), &Silent).unwrap().remove(0);
        assert!(row.known);
        !row.words.is_empty()
    });
    let fact = *fact.expect("most facts of a family follow from others");
    let view = View::whole(model).unwrap().without(&[fact]).unwrap();
    let (query, object) = Query::of(fact, Direction::Forward);
    assert!(model.graph().contains(query.subject, query.link, object));
    assert!(!view.graph.contains(query.subject, query.link, object));
    assert_eq!(view.graph.facts() + 1, model.graph().facts());
    let row = model.score(&[named(model, &fact)], &options(Threshold::Never), &Silent).unwrap().remove(0);
    // No reason uses the fact itself, or facts that the graph does not have.
    let names = model.names();
    let reason = row.reason;
    let mut at = reason.from_id.clone();
    for step in &reason.path {
        let ends = if step.inverse { (&step.entity, &at) } else { (&at, &step.entity) };
        let ids = [ends.0, ends.1].map(|name| crate::graph::EntityId(names.entities.get(name).unwrap()));
        let relation = crate::graph::RelationId(names.relations.get(&step.relation).unwrap());
        let hop = Triple { head: ids[0], relation, tail: ids[1] };
        assert_ne!(hop, fact);
        let (query, object) = Query::of(hop, Direction::Forward);
        assert!(view.graph.contains(query.subject, query.link, object));
        at.clone_from(&step.entity);
    }
}

#[test]
fn verdicts_tell_true_facts_from_false_ones() {
    let model = model();
    let figures = model.classify(Split::Test, &options(Threshold::Auto), &Silent).unwrap();
    let [accuracy, auc] = [figures.accuracy, figures.auc].map(Option::unwrap);
    assert!(accuracy > 0.85 && auc > 0.9, "{figures}");
    // The same facts in a list with labels give the same verdicts.
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("labelled.tsv");
    let facts: Vec<String> =
        model.dataset().test.iter().map(|fact| named(model, fact).join("\t") + "\t1").collect();
    fs::write(&file, facts.join("\n")).unwrap();
    let out = folder.path().join("scored.jsonl");
    let scored = model.score_file(&file, &options(Threshold::Auto), &out, &Silent).unwrap();
    let recall = scored.classification.unwrap().recall.unwrap();
    assert!((recall - figures.recall.unwrap()).abs() < 1e-9);
    // False facts that are true by the list's own word are a mistake.
    let wrong = ScoreOptions { negatives: Some(file), ..options(Threshold::Auto) };
    let message = model.score(&[], &wrong, &Silent).unwrap_err();
    assert!(message.is_mistake() && message.to_string().contains("labelled true"), "{message}");
}

/// Verdicts are fitted with the false facts that the data give, as with the same ones in a file, and not with drawn ones.
#[test]
fn verdicts_are_fitted_with_the_false_facts_of_the_data() {
    let whole = model().dataset();
    let facts: Vec<Triple> = whole.known.valid.to_vec();
    // False facts that are easy to tell: an end that is never at this side of the relation.
    let wrong = |(at, fact): (usize, &Triple)| {
        let tail = crate::graph::EntityId((at * 31 % whole.names.entities.len()) as u32);
        Triple { tail, ..*fact }
    };
    let answers = whole.answers();
    let is_false = |fact: &Triple| {
        let (query, object) = Query::of(*fact, Direction::Forward);
        let edges = answers.edges_by(query.subject, query.link);
        fact.head != fact.tail && edges.binary_search_by_key(&object, |edge| edge.target).is_err()
    };
    let mut falses: Vec<Triple> = facts.iter().enumerate().map(wrong).filter(is_false).collect();
    falses.sort_unstable();
    falses.dedup();
    assert!(falses.len() > 50, "{}", falses.len());
    let folder = tempfile::tempdir().unwrap();
    let learnt = |name: &str, dataset: Dataset| {
        let learn = Learn::from_dataset(Source::Memory { name: name.to_owned() }, dataset);
        let learn = learn.out(folder.path().join(name)).device(Device::cpu(1).unwrap());
        learn.set("system=rules").set("rules.samples=500").run().unwrap()
    };
    let mut given = whole.clone();
    given.known.valid_negatives = falses.clone().into();
    let (with, without) = (learnt("with", given), learnt("without", whole.clone()));
    let file = folder.path().join("negatives.tsv");
    let lines: Vec<String> = falses.iter().map(|fact| named(&without, fact).join("\t")).collect();
    fs::write(&file, lines.join("\n")).unwrap();
    let tested: Vec<[String; 3]> = whole.test.iter().map(|fact| named(&without, fact)).collect();
    let fitted = |model: &Model, negatives: Option<PathBuf>| -> Vec<(Option<f64>, Option<bool>)> {
        let options = ScoreOptions { negatives, ..options(Threshold::Auto) };
        let rows = model.score(&tested, &options, &Silent).unwrap();
        rows.iter().map(|row| (row.plausibility, row.is_true)).collect()
    };
    let by_data = fitted(&with, None);
    assert_eq!(by_data, fitted(&with, Some(file)), "the file has the same facts");
    let by_drawn = fitted(&without, None);
    assert_ne!(by_data, by_drawn);
    // Beside false facts that are easy to tell, true ones are easy, too.
    let accepted =
        |rows: &[(Option<f64>, Option<bool>)]| rows.iter().filter(|row| row.1 == Some(true)).count();
    assert!(accepted(&by_data) * 10 > tested.len() * 8, "{} of {}", accepted(&by_data), tested.len());
}

#[test]
fn an_unknown_name_is_a_row_with_suggestions() {
    let model = model();
    let known = named(model, &model.dataset().test[0]);
    let [subject, relation, object] = known.clone();
    let misspelt = format!("{subject}e");
    let facts =
        [known, [misspelt.clone(), relation.clone(), object.clone()], [subject, "x".repeat(40), object]];
    let rows = model.score(&facts, &options(Threshold::Probability(0.5)), &Silent).unwrap();
    assert!(rows[0].error.is_none() && rows[0].is_true.is_some());
    assert!(rows[1].error.as_ref().unwrap().contains("did you mean"), "{:?}", rows[1]);
    assert!(rows[1].suggestions.contains(&facts[0][0]) && rows[1].subject == misspelt);
    assert!(rows[2].error.is_some() && rows[2].rank_tail.is_none() && rows[2].is_true.is_none());
}

/// Interrupts the work once it has advanced a number of times.
struct StopsAfter(AtomicUsize);

impl Progress for StopsAfter {
    fn begin(&self, _stage: &str, _unit: &str, _total: Option<u64>) {}
    fn advance(&self, _done: u64, _figures: &dyn Display) {
        let left = self.0.load(Ordering::Relaxed);
        self.0.store(left.saturating_sub(1), Ordering::Relaxed);
    }
    fn end(&self, _summary: &dyn Display) {}
    fn interrupted(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

#[test]
fn a_file_is_the_same_in_parts_and_after_interruptions() {
    let model = model();
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mut lines: Vec<String> = { model.dataset().test.iter().cycle().take(5000) }
        .map(|fact| named(model, fact).join("\t"))
        .collect();
    lines[100] = "nobody\tcousin_of\tno one".to_owned();
    lines[3000] = "a line without tabs".to_owned();
    fs::write(path("list.tsv"), lines.join("\n")).unwrap();
    let options = options(Threshold::Auto);
    for ending in ["tsv", "jsonl.gz", "csv", "parquet"] {
        let whole = path(&format!("whole.{ending}"));
        let scored = model.score_file(&path("list.tsv"), &options, &whole, &Silent).unwrap();
        assert_eq!((scored.facts, scored.errors), (4998, 2));
        if ending == "tsv" {
            let resumed = path("resumed.tsv");
            let stops = StopsAfter(AtomicUsize::new(2));
            let error = model.score_file(&path("list.tsv"), &options, &resumed, &stops).unwrap_err();
            assert!(error.is_interrupted() && !resumed.exists(), "{error}");
            model.score_file(&path("list.tsv"), &options, &resumed, &Silent).unwrap();
            assert_eq!(fs::read(&resumed).unwrap(), fs::read(&whole).unwrap());
            let text = fs::read_to_string(&whole).unwrap();
            assert_eq!(text.lines().count(), 5001);
            assert!(text.lines().nth(101).unwrap().starts_with("nobody\tcousin_of\tno one\t"), "{text}");
        }
        if ending == "csv" {
            continue;
        }
        let part = |index: u64| -> PathBuf {
            let out = path(&format!("{index}.shard.zst"));
            let shard = Shard::new(index, 3).unwrap();
            model.score_shard(&path("list.tsv"), &options, shard, &out, &Silent).unwrap();
            out
        };
        let merged = path(&format!("merged.{ending}"));
        merge(&[part(3), part(1), part(2)], Some(&merged)).unwrap();
        assert_eq!(fs::read(&merged).unwrap(), fs::read(&whole).unwrap(), "{ending}");
    }
    let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().contains("blocks")), "{left:?}");
    let message = model.score_file(&path("list.tsv"), &options, Path::new("out.docx"), &Silent).unwrap_err();
    assert!(message.to_string().contains("one of the extensions"), "{message}");
}
