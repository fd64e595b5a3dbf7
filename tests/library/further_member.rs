//! A member that the library does not know: declared in this file alone, it is trained, resumed, updated, trained again on
//! all facts, searched over, reported with its curves, asked on another graph, and blended with the rules.
//!
//! It is a toy: it counts how often two links in a row lead from the subject to an answer.

#![allow(clippy::unwrap_used)] // A member that fails is a test that fails.

use ruleguider::ask::{Model, OpenOptions};
use ruleguider::config::{Config, System};
use ruleguider::cost::{GraphSize, Resources};
use ruleguider::eval::{Answers, Reasoner, ReasonerError, Scored};
use ruleguider::graph::{Edge, EntityId, Graph, Link, Query, ReadOptions, SplitShares, write_dataset};
use ruleguider::progress::{Metric, Progress, Silent};
use ruleguider::reason::{Candidate, Evidence, Explains, Found, Hop, Reasoned};
use ruleguider::report::page::{ReportedRun, page};
use ruleguider::run::member::{Cost, Epochs, Member, register};
use ruleguider::run::{
    Artifacts, BestEpoch, Finished, Material, MemberReport, RunError, Source, write_whole,
};
use ruleguider::sweep::{Search, Space, Sweep, Tuning, Workers, system};
use ruleguider::tensor::{Device, DeviceChoice};
use ruleguider::{Learn, generate};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, HashMap};
use std::fmt::Display;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const NAME: &str = "two-hops";
const FILE: &str = "two-hops.json";

/// How often a pair of links leads to an answer by a third: by `[link asked, first, second]`.
type Weights = BTreeMap<String, f64>;

struct TwoHops;

impl TwoHops {
    fn setting(config: &Config, key: &str) -> f64 {
        let value = config.members.get(NAME).and_then(|settings| settings.get(key));
        value.and_then(|value| value.as_float().or_else(|| Some(value.as_integer()? as f64))).unwrap()
    }
}

impl Member for TwoHops {
    fn name(&self) -> &'static str {
        NAME
    }

    fn system(&self) -> Option<System> {
        Some(System::Further(NAME))
    }

    fn defaults(&self) -> toml::Table {
        toml::Table::from_iter([("epochs".to_owned(), 5.into()), ("rate".to_owned(), 0.5.into())])
    }

    fn settings(&self, config: &Config) -> Value {
        json!(config.members[NAME])
    }

    fn cost(&self, _config: &Config, size: &GraphSize, _resources: &Resources) -> Cost {
        Cost::new(1e-6 * size.facts as f64, 1e-6 * size.facts as f64)
    }

    fn train(&self, artifacts: &mut Artifacts, material: &Material<'_>) -> Result<Finished, RunError> {
        let (epochs, rate) =
            (Self::setting(&artifacts.config, "epochs") as u64, Self::setting(&artifacts.config, "rate"));
        let shares = shares(&artifacts.learnable.graph);
        let checkpoint = material.checkpoints(NAME)?.join("weights.json");
        let read = std::fs::read_to_string(&checkpoint).ok();
        let (mut done, mut weights): (u64, Weights) =
            read.map_or_else(Default::default, |text| serde_json::from_str(&text).unwrap());
        while done < epochs {
            if material.progress.interrupted() {
                return Err(RunError::Interrupted);
            }
            let mut loss = 0.0;
            for (key, share) in &shares {
                let weight = weights.entry(key.clone()).or_default();
                *weight += rate * (share - *weight);
                loss += (share - *weight).abs();
            }
            done += 1;
            let figures = Map::from_iter([("loss".to_owned(), json!(loss))]);
            // The name that a trainer gives itself does not matter.
            let metric = Metric { stage: "my trainer".to_owned(), step: done, seconds: done as f64, figures };
            material.progress.record(&metric);
            write_whole(&checkpoint, |out| Ok(serde_json::to_writer(out, &(done, &weights))?))?;
        }
        write_whole(&material.directory.file(FILE), |out| Ok(serde_json::to_writer(out, &weights)?))?;
        artifacts.put(NAME, weights);
        let best = Some(BestEpoch { epoch: 3, mrr: None });
        let figures = MemberReport { epochs: Some(epochs as usize), best, ..MemberReport::default() };
        Ok(Finished { files: vec![FILE.to_owned()], figures, seconds: None })
    }

    fn epochs(&self, config: &Config) -> Option<Epochs> {
        Some(Epochs { epochs: Self::setting(config, "epochs") as usize, validate_every: 1 })
    }

    fn settle(&self, config: &mut Config, outcome: &MemberReport) {
        let settings = config.members.get_mut(NAME).unwrap();
        settings.insert("epochs".to_owned(), (outcome.best_epoch().unwrap() as i64).into());
    }

    fn shorten(&self, config: &mut Config, outcome: &MemberReport) {
        self.settle(config, outcome);
        config.members.get_mut(NAME).unwrap().insert("rate".to_owned(), 0.25.into());
    }

    fn reasoner(&self, artifacts: &Artifacts) -> Result<Option<Arc<dyn Explains>>, RunError> {
        let weights = artifacts.get(NAME, || Ok(artifacts.json::<Weights>(FILE)?.unwrap_or_default()))?;
        Ok(Some(Arc::new(ByTwoHops { graph: artifacts.learnable.graph.clone(), weights })))
    }

    fn space(&self) -> Option<(&'static str, &'static str)> {
        Some(("two-hops", "members.two-hops.rate = [0.3, 0.9]\n"))
    }
}

/// The two-hop paths from `start`.
fn paths(graph: &Graph, start: EntityId) -> impl Iterator<Item = [Edge; 2]> {
    let onwards = |&first: &Edge| graph.edges(first.target).iter().map(move |&second| [first, second]);
    graph.edges(start).iter().flat_map(onwards).filter(move |path| path[1].target != start)
}

fn key(asked: Link, path: [Edge; 2]) -> String {
    format!("{} {} {}", asked.0, path[0].link.0, path[1].link.0)
}

/// The share of the pairs joined by two links in a row that are joined by a third as well.
fn shares(graph: &Graph) -> Weights {
    let mut bodies: HashMap<[Link; 2], f64> = HashMap::new();
    let mut hits: HashMap<(String, [Link; 2]), f64> = HashMap::new();
    for start in (0..graph.entities() as u32).map(EntityId) {
        for path in paths(graph, start) {
            let body = path.map(|edge| edge.link);
            *bodies.entry(body).or_default() += 1.0;
            for edge in graph.edges(start).iter().filter(|edge| edge.target == path[1].target) {
                *hits.entry((key(edge.link, path), body)).or_default() += 1.0;
            }
        }
    }
    hits.into_iter().map(|((key, body), count)| (key, count / bodies[&body])).collect()
}

struct ByTwoHops {
    graph: Arc<Graph>,
    weights: Arc<Weights>,
}

impl ByTwoHops {
    /// The best path to every entity within two hops.
    fn best(&self, query: Query) -> BTreeMap<EntityId, (f64, [Edge; 2])> {
        let mut best: BTreeMap<EntityId, (f64, [Edge; 2])> = BTreeMap::new();
        for path in paths(&self.graph, query.subject) {
            let Some(&weight) = self.weights.get(&key(query.link, path)) else { continue };
            let kept = best.entry(path[1].target).or_insert((weight, path));
            if weight > kept.0 {
                *kept = (weight, path);
            }
        }
        best
    }
}

impl Reasoner for ByTwoHops {
    fn answer(&self, queries: &[Query]) -> Result<Answers, ReasonerError> {
        let listed = |query: &Query| {
            let best = self.best(*query).into_iter();
            best.map(|(entity, (score, _))| Scored { entity, score }).collect()
        };
        Ok(Answers::Listed(queries.iter().map(listed).collect()))
    }
}

impl Explains for ByTwoHops {
    fn reasoner(&self) -> &dyn Reasoner {
        self
    }

    fn search(&self, queries: &[Query], _: usize, _: &dyn Progress) -> Result<Vec<Found>, ReasonerError> {
        let found = |&query: &Query| {
            let facts = self.graph.targets(query.subject, query.link);
            let new = self.best(query).into_iter().filter(|(entity, _)| !facts.contains(entity));
            let mut candidates: Vec<Candidate> = new
                .map(|(entity, (score, _))| Candidate { entity, score, evidence: Evidence::default() })
                .collect();
            candidates.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.entity.cmp(&b.entity)));
            Found { query, candidates }
        };
        Ok(queries.iter().map(found).collect())
    }

    fn reasons(&self, query: Query, candidate: &Candidate, _: usize) -> Result<Vec<Reasoned>, ReasonerError> {
        let best = self.best(query).remove(&candidate.entity);
        let hop = |edge: Edge| Hop { link: edge.link, target: edge.target, scores: None };
        let reasoned = |(score, path): (f64, [Edge; 2])| Reasoned {
            entity: candidate.entity,
            score,
            start: query.subject,
            path: path.map(hop).to_vec(),
            rule: None,
            without: None,
        };
        Ok(best.map(reasoned).into_iter().collect())
    }
}

/// Stops when it is asked for the `n`th time.
struct StopsAt(AtomicUsize);

impl Progress for StopsAt {
    fn begin(&self, _: &str, _: &str, _: Option<u64>) {}
    fn advance(&self, _: u64, _: &dyn Display) {}
    fn end(&self, _: &dyn Display) {}
    fn interrupted(&self) -> bool {
        self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)).is_err()
    }
}

fn learn(out: &Path) -> Learn {
    register(&TwoHops);
    let learn = Learn::demonstration().out(out).set("system=two-hops");
    learn.device(Device::cpu(2).unwrap())
}

/// What a run keeps of the member.
fn weights(out: &Path) -> String {
    std::fs::read_to_string(out.join(FILE)).unwrap()
}

/// The epochs that its curve has.
fn curve(model: &Model) -> Vec<u64> {
    let own = model.metrics().unwrap().into_iter().filter(|metric| metric.stage == NAME);
    own.map(|metric| metric.step).collect()
}

#[test]
fn it_is_trained_resumed_and_reported() {
    let folder = tempfile::tempdir().unwrap();
    let [whole, resumed] = ["whole", "resumed"].map(|name| folder.path().join(name));
    let model = learn(&whole).run().unwrap();
    let results = model.results().unwrap().clone();
    assert!(results.report.figures.mrr > 0.3, "{}", results.report.figures.mrr);
    assert_eq!(results.stages[NAME].figures.epochs, Some(5));

    let mut stopped = 0;
    for asks in (0..).map(|round: usize| round * round) {
        match learn(&resumed).prepare().unwrap().run(&StopsAt(asks.into())) {
            Ok(_) => break,
            Err(error) => assert!(error.is_interrupted(), "{error}"),
        }
        stopped += 1;
    }
    assert!(stopped > 2);
    assert_eq!(weights(&resumed), weights(&whole));
    let resumed = Model::open(&resumed).unwrap();
    assert_eq!(curve(&resumed), [1, 2, 3, 4, 5]);

    let metrics = resumed.metrics().unwrap();
    let report = resumed.results().unwrap().clone();
    let html = page(&[ReportedRun { model: resumed, report, metrics }]).unwrap();
    assert!(html.contains("two-hops: loss") || html.contains("loss: two-hops"), "no curve in the report");
    let answer = model.predict("Ada", "uncle_of", 3);
    assert!(answer.is_ok() || matches!(answer, Err(ref error) if error.is_mistake()));
}

#[test]
fn it_is_updated_and_learns_all_facts() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let model = learn(&out).learn_all(true).run().unwrap();
    let second = model.results().unwrap().learnt_everything.as_ref().unwrap().stages[NAME].figures.epochs;
    assert_eq!(second, Some(3), "as many as were best");
    drop(model);
    let data = folder.path().join("data");
    write_dataset(&data, "tsv", &generate::demonstration()).unwrap();
    let updated = folder.path().join("updated");
    let update = Learn::new(&data).update(&out).out(&updated).device(Device::cpu(2).unwrap()).run().unwrap();
    let report = update.results().unwrap();
    assert_eq!(report.stages[NAME].figures.epochs, Some(3));
    assert!(std::fs::read_to_string(updated.join("config.toml")).unwrap().contains("rate = 0.25"));
}

#[test]
fn it_is_searched_over() {
    register(&TwoHops);
    let folder = tempfile::tempdir().unwrap();
    let data = Tuning::of("family", &generate::demonstration()).unwrap();
    let base = system(NAME, &data).unwrap();
    assert_eq!(base.system, System::Further(NAME));
    let space = Space::named(Space::of(base.system).unwrap(), &base).unwrap();
    let workers = Workers { at_once: 1, threads: 2, device: DeviceChoice::Cpu };
    let out = folder.path().join("sweep");
    let (search, minutes) = (Search::Grid, None);
    let sweep = Sweep {
        data,
        system: NAME.to_owned(),
        base,
        space,
        search,
        trials: 2,
        minutes,
        seed: 1,
        workers,
        out,
    };
    let report = sweep.run(&Silent).unwrap();
    assert!(report.complete && report.trials.len() == 2 && report.best.is_some());
}

#[test]
fn it_answers_on_another_graph_and_in_a_blend() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("run");
    let also = "blend.also=[\"two-hops\"]";
    let only = ["system=blend", "blend.with_walker=false", "blend.with_embedding=false", also];
    let blend = only.into_iter().fold(learn(&out), |learn, setting| learn.set(setting));
    let blend = blend.set("blend.with_propagator=false").set("rules.samples=300");
    let model = blend.run().unwrap();
    let stages = &model.results().unwrap().stages;
    assert!([NAME, "rules", "blending"].iter().all(|name| stages.contains_key(*name)), "{stages:?}");
    let recipe = std::fs::read_to_string(out.join("blend.json")).unwrap();
    assert!(recipe.contains("\"two-hops\""), "{recipe}");

    let other = folder.path().join("other");
    write_dataset(&other, "tsv", &generate::family(100, 7).dataset).unwrap();
    let shares = ReadOptions { shares: SplitShares::WHOLE, ..ReadOptions::default() };
    let on = Some(Source::of(&other, &shares).unwrap());
    let elsewhere = OpenOptions { on, ..OpenOptions::DEFAULT }.open(&out).unwrap();
    assert!(elsewhere.on().unwrap().members_left_out.is_empty());
    let subject = elsewhere.names().entity(EntityId(0)).to_owned();
    let relation = elsewhere.names().relation(ruleguider::graph::RelationId(0)).to_owned();
    elsewhere.predict(&subject, &relation, 5).unwrap();
}
