//! Answers straight from a graph: the universal propagator and a second of rule mining, nothing trained.

use super::{AskError, Model};
use crate::config::{Config, Layer};
use crate::eval::Side;
use crate::eval::calibration::{Calibration, Judged, TOP, observe};
use crate::graph::{Adjacency, Array, Dataset, Known, Query, Triple, evenly};
use crate::progress::{Progress, Quiet};
use crate::run::{self, RunSpec, Source};
use crate::shard::Shard;
use crate::tensor::Device;
use std::collections::HashSet;
use std::path::Path;

/// The facts that rough probabilities are fitted to: at most, at least, and about how many facts of the graph all queries
/// for them may visit together, which bounds the time.
const ROUGH_MOST: usize = 64;
const ROUGH_LEAST: usize = 8;
const ROUGH_WORK: usize = 600_000;
/// Of a graph with fewer facts, at most this part of them is taken away.
const ROUGH_PART: usize = 4;

/// The settings of instant answers. Rules are mined so that a path can be shown with the rule that it follows.
pub const INSTANT: [&str; 5] =
    ["system=universal", "rules.seconds=0.6", "rules.longer=false", "rules.max_length=2", "rules.top=50"];

/// A model that answers over `dataset` at once; its files are in the folder `out`, which must stay while it is in use.
/// All facts of the data may be its graph: no split is needed. Without a validation split probabilities are rough: fitted
/// to a few facts, asked for on the graph without them ([`Model::why_rough`]). The weights are those of the program, or
/// those of a file that `pretrain` made.
///
/// # Errors
/// If the folder cannot be worked in, the weights cannot be read, or the user interrupts.
pub fn instant(
    source: Source,
    dataset: Dataset,
    out: &Path,
    weights: Option<&Path>,
    device: &Device,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Model, AskError> {
    let weights = weights.map(with_weights);
    let spec = RunSpec {
        source,
        out: out.to_owned(),
        config: Config::default().with(&Layer::from_pairs(INSTANT.into_iter().chain(weights.as_deref()))?)?,
        seed,
        device: device.clone(),
        tensorboard: false,
        name: None,
        siblings: None,
        budget: None,
        first: None,
        warm: None,
        until: None,
        ahead: false,
        fresh: Vec::new(),
    };
    device.inside(|| {
        let learnt = run::learn(&spec, &dataset, progress)?;
        let mut model = Model::new(learnt.directory, dataset, learnt.artifacts, seed)?;
        if model.dataset().known.valid.is_empty() {
            model.calibrate_roughly(progress)?;
        }
        Ok(model)
    })
}

/// The setting by which the universal propagator takes its weights from `file`.
pub fn with_weights(file: &Path) -> String {
    format!("members.universal.weights={}", toml::Value::from(file.to_string_lossy().into_owned()))
}

impl Model {
    /// Replaces the probabilities of a run of the universal propagator by rough ones, fitted to the graph that it answers
    /// on; there are none if nothing can be taken away from the graph and be found again.
    pub(super) fn calibrate_roughly(&mut self, progress: &dyn Progress) -> Result<(), AskError> {
        let rough = self.rough_calibration(progress)?;
        let why =
            |facts| format!("calibration was fitted to only {facts} facts, each taken away and asked for");
        self.set_rough(rough.as_ref().map(|(calibration, facts)| (calibration, why(*facts))));
        Ok(())
    }

    /// A calibration on an even sample of the facts, each asked for at both ends on the graph without the sample, as
    /// queries that have an answer to find; also how many facts these are. `None` if there are no answers at all.
    fn rough_calibration(&self, progress: &dyn Progress) -> Result<Option<(Calibration, usize)>, AskError> {
        let dataset = self.dataset();
        let facts = &dataset.known.facts;
        let affordable = (ROUGH_WORK / facts.len().max(1)).clamp(ROUGH_LEAST, ROUGH_MOST);
        let sample = evenly(facts, affordable.min(facts.len() / ROUGH_PART).max(1));
        if sample.len() == facts.len() {
            return Ok(None);
        }
        let gone: HashSet<&Triple> = sample.iter().collect();
        let rest: Array<Triple> = facts.iter().filter(|fact| !gone.contains(fact)).copied().collect();
        let known = Known { queries: rest.clone(), facts: rest, ..Known::default() };
        let graph = dataset.graph_of(&known);
        let reasoner = self.artifacts.universal_on(&graph)?;
        let truth = Adjacency::new(graph.entities(), &[&sample]);
        let mut queries: Vec<(Query, f64)> =
            Side::Both.asked(&sample).map(|(query, _)| (query, 1.0)).collect();
        queries.sort_unstable_by_key(|(query, _)| (query.link, query.subject));
        queries.dedup_by_key(|(query, _)| *query);
        let notes = dataset.known.notes.has_confidence().then_some(&dataset.known.notes);
        let denied = [&dataset.known.negatives[..], &dataset.known.valid_negatives[..]];
        let judged = Judged { graph: &graph, taken_out: None, truth: &truth, hides: false, notes, denied };
        let outcomes = observe(&reasoner, &queries, judged, TOP, Shard::WHOLE, &Quiet(progress))?;
        Ok(Calibration::fit(&outcomes.into(), &dataset.names).map(|calibration| (calibration, sample.len())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ask::{ExportFormat, ReasonRow, ScoreOptions, ScoredTriple, Threshold, export};
    use crate::graph::{Cell, RdfStyle};
    use crate::progress::Silent;

    #[test]
    fn a_graph_without_splits_is_answered_at_once_with_paths() {
        let folder = tempfile::tempdir().unwrap();
        let whole = crate::generate::family(120, 5).dataset.everything();
        let source = Source::Memory { name: "family".to_owned() };
        let device = Device::cpu(1).unwrap();
        let held = whole.known.facts[0];
        let mut dataset = whole.clone();
        // One fact is taken out and asked for.
        dataset.known.facts = whole.known.facts[1..].into();
        dataset.known.queries = dataset.known.facts.clone();
        let model = instant(source, dataset, folder.path(), None, &device, 1, &Silent).unwrap();
        let (subject, relation) = (whole.names.entity(held.head), whole.names.relation(held.relation));
        let prediction = model.predict(subject, relation, 10).unwrap();
        assert!(!prediction.answers.is_empty());
        let first = &prediction.answers[0];
        assert!(!first.reason.path.is_empty(), "an answer has a path");
        // Probabilities are rough, say so, and follow the order.
        assert!(prediction.answers.iter().all(|answer| answer.probability_rough));
        assert!(model.why_rough().unwrap().contains("only 64 facts"));
        let likely: Vec<f64> =
            prediction.answers.iter().map(|answer| answer.probability.0.unwrap()).collect();
        assert!(likely.is_sorted_by(|a, b| a >= b) && likely.iter().all(|share| (0.0..=1.0).contains(share)));
        // So do those of given facts, in every form.
        let given = [subject, relation, &first.entity].map(str::to_owned);
        let options = ScoreOptions { threshold: Threshold::Never, ..ScoreOptions::default() };
        let scored = model.score(std::slice::from_ref(&given), &options, &Silent).unwrap().remove(0);
        let explained = model.explain_many(&[given], 1, 1, &Silent).unwrap().remove(0);
        let relations = model.relations(subject, &first.entity, 100).unwrap();
        let related = relations.answers.iter().find(|answer| answer.relation == relation).unwrap();
        assert!(scored.probability_rough && explained.probability_rough && related.probability_rough);
        assert!(model.explain(subject, relation, &first.entity).unwrap().probability_rough);
        let last = |mut cells: Vec<Cell>| cells.pop().unwrap();
        for (columns, cells) in [
            (&ScoredTriple::COLUMNS[..], scored.clone().cells()),
            (&ReasonRow::COLUMNS[..], explained.clone().cells()),
        ] {
            assert_eq!((columns.len(), columns.last().unwrap().name), (cells.len(), "probability_rough"));
            assert_eq!(last(cells), Cell::Truth(true));
        }
        // And those that are exported.
        let lines = folder.path().join("scored.jsonl");
        std::fs::write(&lines, serde_json::to_string(&scored).unwrap()).unwrap();
        let exported = |format, name: &str, file: &str| {
            export(&lines, format, &folder.path().join(name)).unwrap();
            std::fs::read_to_string(folder.path().join(file)).unwrap()
        };
        let rdf = exported(ExportFormat::Rdf(RdfStyle::Star), "scored.nt", "scored.nt");
        assert!(rdf.contains("<urn:x-ruleguider:probabilityRough> \"true\""), "{rdf}");
        let drawn = exported(ExportFormat::Graphml, "scored.graphml", "scored.graphml");
        assert!(drawn.contains("<data key=\"probability_rough\">true</data>"), "{drawn}");
        for (format, name, file) in [
            (ExportFormat::Neo4j, "neo4j", "neo4j/relationships.csv"),
            (ExportFormat::Kgx, "kgx", "kgx/edges.tsv"),
        ] {
            let table = exported(format, name, file);
            let lines: Vec<&str> = table.lines().collect();
            assert!(lines[0].contains("probability_rough"), "{table}");
            assert!(lines[1].trim_end_matches(['\t', ',']).ends_with("true"), "{table}");
        }
    }
}
