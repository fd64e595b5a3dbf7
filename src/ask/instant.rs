//! Answers straight from a graph: the universal propagator and what a second of rule mining finds, nothing trained.

use super::probability::Rough;
use super::{AskError, Model};
use crate::config::{Config, Layer};
use crate::eval::Side;
use crate::eval::calibration::{Calibration, Calibrator, Judged, TOP, observe};
use crate::graph::{Adjacency, Array, Dataset, Known, Query, Triple, evenly};
use crate::progress::{Progress, Quiet};
use crate::run::{self, Learnable, RunSpec, Source};
use crate::shard::Shard;
use crate::tensor::Device;
use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

/// The facts that rough probabilities are fitted to: at most, at least, and about how many facts of the graph all queries
/// for them may visit together, which bounds the time. If the fewest would visit more than the limit, there are none.
const ROUGH_MOST: usize = 64;
const ROUGH_LEAST: usize = 8;
const ROUGH_WORK: usize = 600_000;
const ROUGH_LIMIT: usize = 6_000_000;
/// The vectors of the relations, which are computed for every relation and direction asked for, take as long a relation as
/// visiting so many facts.
const RELATION_WORK: usize = 12;
/// With more than this part of the facts taken away, rules are mined again without them, which takes no time then.
const MINED_AGAIN: usize = 50;
/// Of a graph with fewer facts, at most this part of them is taken away.
const ROUGH_PART: usize = 4;

/// The settings of instant answers: a blend of the universal propagator and short rules. Its weights were fitted over many
/// graphs; they are fitted again where there is a validation split.
pub const INSTANT: [&str; 11] = [
    "system=blend",
    "blend.with_walker=false",
    "blend.with_embedding=false",
    "blend.with_propagator=false",
    "blend.also=[\"universal\"]",
    "blend.validation_queries=300",
    "rules.types=[\"cyclic\"]",
    "rules.seconds=0.6",
    "rules.longer=false",
    "rules.max_length=2",
    "rules.top=50",
];

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
    /// Replaces the probabilities by rough ones, fitted to the graph that it answers on; there are none if nothing can be
    /// taken away from the graph and be found again.
    pub(super) fn calibrate_roughly(&mut self, progress: &dyn Progress) -> Result<(), AskError> {
        let rough = self.rough(&self.dataset().known.facts, progress)?;
        (self.calibrator, self.why_rough) = rough.map(|Rough { calibrator, why }| (calibrator, why)).unzip();
        Ok(())
    }

    /// Fits rough probabilities to the facts of relations that the run has not learnt, if there are any.
    pub(super) fn calibrate_not_learnt(&mut self, progress: &dyn Progress) -> Result<(), AskError> {
        let Some(learnt) = self.artifacts.learnable.learnt_beside_others() else { return Ok(()) };
        let facts = self.dataset().known.facts.iter().copied();
        let facts: Vec<Triple> = facts.filter(|fact| fact.relation.index() >= learnt).collect();
        self.not_learnt = self.rough(&facts, progress)?;
        if let Some(on) = &mut self.on {
            on.rough = self.not_learnt.as_ref().map(|rough| rough.why.clone());
        }
        Ok(())
    }

    /// About how many facts of the graph the queries for both ends of one of them visit.
    fn rough_work(&self) -> usize {
        let graph = self.graph();
        (graph.facts() + RELATION_WORK * graph.relations()).max(1)
    }

    /// Whether the graph is small enough for rough probabilities.
    pub(super) fn can_afford_rough(&self) -> bool {
        ROUGH_LEAST * self.rough_work() <= ROUGH_LIMIT
    }

    /// Probabilities that are fitted to an even sample of `facts`, each asked for at both ends on the graph without the
    /// sample, as queries that have an answer to find. `None` if there are no answers at all, or it would take too long.
    fn rough(&self, facts: &[Triple], progress: &dyn Progress) -> Result<Option<Rough>, AskError> {
        let dataset = self.dataset();
        let affordable = (ROUGH_WORK / self.rough_work()).clamp(ROUGH_LEAST, ROUGH_MOST);
        let sample = evenly(facts, affordable.min(facts.len() / ROUGH_PART).max(1));
        if sample.len() == facts.len() || !self.can_afford_rough() {
            return Ok(None);
        }
        let gone: HashSet<&Triple> = sample.iter().collect();
        let rest: Array<Triple> =
            dataset.known.facts.iter().filter(|fact| !gone.contains(fact)).copied().collect();
        let known = Known { queries: rest.clone(), facts: rest, ..Known::default() };
        let graph = dataset.graph_of(&known);
        let before = &self.artifacts.learnable;
        let without = self.artifacts.on(Learnable { graph: Arc::clone(&graph), known, ..before.clone() });
        // Rules that were counted on few facts know those that are taken away.
        let few = sample.len() * MINED_AGAIN > dataset.known.facts.len() && self.on.is_none();
        let without = if few { without.with_own_rules(self.seed, &Quiet(progress))? } else { without };
        let reasoner = without.reasoner()?;
        let truth = Adjacency::new(graph.entities(), &[&sample]);
        let mut queries: Vec<(Query, f64)> =
            Side::Both.asked(&sample).map(|(query, _)| (query, 1.0)).collect();
        queries.sort_unstable_by_key(|(query, _)| (query.link, query.subject));
        queries.dedup_by_key(|(query, _)| *query);
        let notes = dataset.known.notes.has_confidence().then_some(&dataset.known.notes);
        let denied = [&dataset.known.negatives[..], &dataset.known.valid_negatives[..]];
        let judged = Judged { graph: &graph, taken_out: None, truth: &truth, hides: false, notes, denied };
        let outcomes = observe(reasoner.reasoner(), &queries, judged, TOP, Shard::WHOLE, &Quiet(progress))?;
        let fitted = Calibration::fit(&outcomes.into(), &dataset.names);
        let facts = match sample.len() {
            1 => "one fact,".to_owned(),
            count => format!("{count} facts, each"),
        };
        Ok(fitted.map(|calibration| Rough {
            calibrator: Calibrator::new(&calibration, &dataset.names),
            why: format!("calibration was fitted to only {facts} taken away and asked for"),
        }))
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
