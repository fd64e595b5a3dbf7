//! `Model`: learnt or opened, and queried.

use crate::error::{chosen, raised, wrong};
use crate::graph::{Graph, division};
use crate::job::{wait_for_ending, work};
use crate::predictions::{Predictions, json};
use crate::rules::{Rules, protocol, split_of};
use crate::view::View;
use pyo3::prelude::*;
use ruleguider::ask::{
    AddedFact, AnswersAmong, AskError, CompleteOptions, DoubtOptions, Edits, EntityChoice, EvaluateOptions,
    Explanation, ExportFormat, HeldOutFacts, INSTANT, MissingFact, OpenOptions, Prediction, ScoreOptions,
    Threshold, export,
};
use ruleguider::config::Layer;
use ruleguider::eval::Protocol;
use ruleguider::graph::{Link, Query, RdfStyle};
use ruleguider::report::figure;
use ruleguider::run::{Manifest, RunDirectory, Source};
use ruleguider::shard::Shard;
use ruleguider::tensor::{Device, DeviceChoice};
use ruleguider::{Learn, Model as Learnt};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A fact that is added, with its confidence and source.
type Added = ([String; 3], Option<f32>, Option<String>);
/// Facts that are added, removed and rejected.
type EditLists = (Vec<Added>, Vec<[String; 3]>, Vec<[String; 3]>);

/// Some entities: a type or a file, or one by one.
#[derive(FromPyObject)]
enum Entities {
    Called(String),
    Each(Vec<String>),
}

impl From<Entities> for EntityChoice {
    fn from(given: Entities) -> Self {
        match given {
            Entities::Called(name) => EntityChoice::Called(name),
            Entities::Each(names) => EntityChoice::Each(names),
        }
    }
}

/// What paths of reasons pass, what they do not pass, and how many facts they have at most.
type OnPath = (Vec<String>, Vec<String>, Option<usize>);

/// Which answers are wanted: among which entities, not among which, and by which paths.
#[derive(FromPyObject)]
struct Wanted(Option<Entities>, Option<Entities>, OnPath);

/// Which facts are wanted: about which subjects and objects, and by which paths.
#[derive(FromPyObject)]
struct WantedFacts(Option<Entities>, Option<Entities>, OnPath);

impl Wanted {
    fn of(self, model: &Learnt) -> Result<AnswersAmong, AskError> {
        let Wanted(among, not_among, (through, without, max_hops)) = self;
        let [among, not_among] = [among, not_among].map(|given| given.map(EntityChoice::from));
        let entities = model.answers_chosen(among.as_ref(), not_among.as_ref())?;
        Ok(entities.by_paths(model.path_limits(&through, &without, max_hops)?))
    }
}

fn edits_of((added, removed, rejected): EditLists) -> PyResult<Edits> {
    let one = |(at, (fact, confidence, source)): (usize, Added)| match confidence {
        Some(share) if !(share > 0.0 && share <= 1.0) => {
            Err(wrong(format!("fact {at}: expected a confidence above 0 and at most 1, found {share}")))
        }
        _ => Ok(AddedFact { fact, confidence, source, time: None }),
    };
    let added = added.into_iter().enumerate().map(one).collect::<PyResult<_>>()?;
    Ok(Edits { added, removed, rejected })
}

/// A trained model, ready to answer, from many threads at once.
#[pyclass(frozen, module = "ruleguider._ruleguider")]
pub struct Model {
    model: Arc<Learnt>,
}

/// The device of the user's choice.
fn device(
    choice: &str,
    threads: Option<usize>,
) -> PyResult<impl FnOnce() -> Result<Device, AskError> + Send + 'static> {
    let choice: DeviceChoice = choice.parse().map_err(wrong)?;
    if threads == Some(0) {
        return Err(wrong("threads: expected at least 1, found 0"));
    }
    Ok(move || Ok(Device::choose(choice, threads.unwrap_or_else(rayon::current_num_threads))?))
}

fn text(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("results are plain data")
}

impl Model {
    /// How queries are asked and ranked; without a direction, as the run was.
    fn protocol(
        &self,
        direction: Option<&str>,
        ties: &str,
        leave_out_unseen: bool,
        all_queries: bool,
    ) -> PyResult<Protocol> {
        let given = protocol(direction.unwrap_or("both"), ties, leave_out_unseen, all_queries)?;
        let side = if direction.is_some() { given.side } else { self.model.config().eval.direction };
        Ok(Protocol { side, ..given })
    }
}

#[pymethods]
impl Model {
    /// Learns from `graph`, or resumes the run at `out`. A graph without splits is divided by `split` where it is to go on
    /// from the run `update`.
    #[staticmethod]
    #[pyo3(signature = (graph, minutes, out, seed, config, settings, device, threads, tensorboard, update, split,
        learn_all, instant, embedding, bars))]
    #[allow(clippy::too_many_arguments)]
    fn learn(
        py: Python<'_>,
        graph: &Graph,
        minutes: Option<f64>,
        out: Option<PathBuf>,
        seed: u64,
        config: Option<String>,
        settings: Option<&str>,
        device: &str,
        threads: Option<usize>,
        tensorboard: bool,
        update: Option<PathBuf>,
        split: Option<[f64; 3]>,
        learn_all: bool,
        instant: bool,
        embedding: Option<&str>,
        bars: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        // Before a large graph is read.
        out.as_deref().map_or(Ok(()), |out| expect_seed(out, seed)).map_err(raised)?;
        if minutes.is_some_and(|minutes| !(minutes > 0.0 && minutes.is_finite())) {
            return Err(wrong("minutes: expected a number of minutes above 0"));
        }
        let device = self::device(device, threads)?;
        let mut learn = Learn::from_dataset(graph.source.clone(), graph.dataset.clone());
        learn = learn.seed(seed).tensorboard(tensorboard).learn_all(learn_all);
        learn = update.into_iter().fold(learn, Learn::update);
        learn =
            division(split, seed)?.into_iter().fold(learn, |learn, division| learn.split(division.shares));
        learn = minutes.into_iter().fold(learn, Learn::minutes);
        learn = out.into_iter().fold(learn, Learn::out);
        learn = config.into_iter().fold(learn, Learn::config);
        if let Some(name) = embedding {
            learn = learn.embedding(chosen("model", name)?);
        }
        if instant {
            learn = INSTANT.into_iter().fold(learn, Learn::set);
        }
        if let Some(settings) = settings {
            let settings =
                serde_json::from_str(settings).map_err(|error| wrong(format!("config: {error}")))?;
            let layer = Layer::from_json(&settings, "config").map_err(|error| raised(error.into()))?;
            learn = learn.settings(layer).map_err(raised)?;
        }
        wait_for_ending(py)?;
        let model = work(py, bars.as_ref(), move |progress| {
            let learning = learn.device(device()?).prepare()?;
            expect_seed(&learning.spec().out, seed)?;
            learning.run(progress)
        })?;
        Ok(Self { model: Arc::new(model) })
    }

    /// A model of `graph` that answers at once, by weights trained on other graphs; its files are in `out`.
    #[staticmethod]
    fn instant(
        py: Python<'_>,
        graph: &Graph,
        out: PathBuf,
        device: &str,
        threads: Option<usize>,
    ) -> PyResult<Self> {
        let device = self::device(device, threads)?;
        let (source, dataset) = (graph.source.clone(), graph.dataset.everything());
        let model = work(py, None, move |progress| {
            ruleguider::ask::instant(source, dataset, &out, None, &device()?, 1, progress)
        })?;
        Ok(Self { model: Arc::new(model) })
    }

    /// Learns what the run at `run` holds and edits of it, into the folder `out`.
    #[staticmethod]
    #[pyo3(signature = (run, edits, minutes, out, seed, device, threads, learn_all, bars))]
    #[allow(clippy::too_many_arguments)]
    fn update(
        py: Python<'_>,
        run: PathBuf,
        edits: EditLists,
        minutes: Option<f64>,
        out: Option<PathBuf>,
        seed: u64,
        device: &str,
        threads: Option<usize>,
        learn_all: bool,
        bars: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let (device, edits) = (self::device(device, threads)?, edits_of(edits)?);
        let learn = Learn::demonstration().update(run).edits(edits).seed(seed).learn_all(learn_all);
        let learn = minutes.into_iter().fold(learn, Learn::minutes);
        let learn = out.into_iter().fold(learn, Learn::out);
        wait_for_ending(py)?;
        let model =
            work(py, bars.as_ref(), move |progress| learn.device(device()?).prepare()?.run(progress))?;
        Ok(Self { model: Arc::new(model) })
    }

    /// The same model on its graph with edits; how many of the added facts wait for the next learning is the second.
    fn with_edits(&self, py: Python<'_>, edits: EditLists) -> PyResult<(Self, usize)> {
        let (model, edits) = (Arc::clone(&self.model), edits_of(edits)?);
        let edited = work(py, None, move |_| model.with_edits(&edits))?;
        Ok((Self { model: Arc::new(edited.model) }, edited.waiting))
    }

    /// The seed of its run.
    #[getter]
    fn seed(&self) -> u64 {
        self.model.seed()
    }

    /// Opens the run at `path`.
    #[staticmethod]
    #[pyo3(signature = (path, device, threads, beam))]
    fn open(
        py: Python<'_>,
        path: PathBuf,
        device: &str,
        threads: Option<usize>,
        beam: Option<usize>,
    ) -> PyResult<Self> {
        let device = self::device(device, threads)?;
        let model = work(py, None, move |_| {
            OpenOptions { device: Some(device()?), beam, ..OpenOptions::DEFAULT }.open(path)
        })?;
        Ok(Self { model: Arc::new(model) })
    }

    /// The answers to a query, as JSON.
    fn predict(
        &self,
        py: Python<'_>,
        subject: String,
        relation: String,
        top: usize,
        wanted: Wanted,
    ) -> PyResult<String> {
        let model = Arc::clone(&self.model);
        work(py, None, move |_| {
            let query = model.query(&subject, &relation)?;
            let found = model.predict_among(query, top, &wanted.of(&model)?)?;
            Ok(json(&found, &found.answers, None, &model))
        })
    }

    /// The answers to many queries.
    fn predict_many(
        &self,
        py: Python<'_>,
        queries: Vec<(String, String)>,
        top: usize,
        reasons: bool,
        wanted: Wanted,
        bars: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Predictions> {
        let model = Arc::clone(&self.model);
        let all = work(py, bars.as_ref(), move |progress| {
            let (among, workers) = (wanted.of(&model)?, model.device().workers());
            let asked = queries.iter().zip(0usize..).map(|((subject, relation), place)| {
                model.query(subject, relation).map_err(|error| at(place, error))
            });
            let queries: Vec<Query> = asked.collect::<Result<_, _>>()?;
            progress.begin("predicting", "queries", Some(queries.len() as u64));
            let all = match reasons {
                true => model.predict_many_among(&queries, (top, &among), workers, 0, progress)?,
                false => model.rank_many(&queries, (top, &among), workers, progress)?,
            };
            progress.end(&format_args!("{} queries", all.len()));
            Ok(all)
        })?;
        Ok(Predictions { model: Arc::clone(&self.model), all })
    }

    /// Why, or why not, as JSON.
    fn explain(&self, py: Python<'_>, subject: String, relation: String, object: String) -> PyResult<String> {
        let model = Arc::clone(&self.model);
        work(py, None, move |_| {
            let why = model.explain(&subject, &relation, &object)?;
            Ok(json(&why, &why.answers, why.instead.as_ref(), &model))
        })
    }

    /// The missing facts, as JSON; with `out` they are written there, and the JSON says how many.
    #[pyo3(signature = (relations, top, min_probability, held_out, wanted, out, bars))]
    #[allow(clippy::too_many_arguments)]
    fn complete(
        &self,
        py: Python<'_>,
        relations: Vec<String>,
        top: Option<usize>,
        min_probability: Option<f64>,
        held_out: &str,
        wanted: WantedFacts,
        out: Option<PathBuf>,
        bars: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        if min_probability.is_some_and(|least| !(0.0..=1.0).contains(&least)) {
            return Err(wrong("min_probability: expected a number from 0 to 1"));
        }
        let held_out = chosen("held_out", held_out)?;
        wait_for_ending(py)?;
        let model = Arc::clone(&self.model);
        work(py, bars.as_ref(), move |progress| {
            let options = complete_options(&model, &relations, top, min_probability, held_out, wanted)?;
            Ok(match out {
                Some(out) => text(&model.complete(&options, &out, progress)?),
                None => text(&model.missing_facts(&options, progress)?),
            })
        })
    }

    /// Given facts with their scores, as JSON. `threshold` is `auto`, a probability, or none.
    #[pyo3(signature = (facts, threshold, bars))]
    fn score(
        &self,
        py: Python<'_>,
        facts: Vec<[String; 3]>,
        threshold: Option<&str>,
        bars: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let threshold = match threshold {
            None => Threshold::Never,
            Some("auto") => Threshold::Auto,
            Some(share) => match share.parse() {
                Ok(share) if (0.0..=1.0).contains(&share) => Threshold::Probability(share),
                _ => return Err(wrong("threshold: expected \"auto\" or a number from 0 to 1")),
            },
        };
        let model = Arc::clone(&self.model);
        work(py, bars.as_ref(), move |progress| {
            let options = ScoreOptions { threshold, negatives: None, workers: model.device().workers() };
            Ok(text(&model.score(&facts, &options, progress)?))
        })
    }

    /// The reasons for given facts, as JSON: a row a reason.
    #[pyo3(signature = (facts, reasons, bars))]
    fn explain_many(
        &self,
        py: Python<'_>,
        facts: Vec<[String; 3]>,
        reasons: usize,
        bars: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let model = Arc::clone(&self.model);
        work(py, bars.as_ref(), move |progress| {
            Ok(text(&model.explain_many(&facts, reasons, model.device().workers(), progress)?))
        })
    }

    /// The relations between two entities, as JSON.
    fn relations(&self, py: Python<'_>, subject: String, object: String, top: usize) -> PyResult<String> {
        let model = Arc::clone(&self.model);
        work(py, None, move |_| Ok(text(&model.relations(&subject, &object, top)?)))
    }

    /// The facts that the rest of the graph speaks against, as JSON.
    #[pyo3(signature = (relations, top, bars))]
    fn doubt(
        &self,
        py: Python<'_>,
        relations: Vec<String>,
        top: usize,
        bars: Option<Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let model = Arc::clone(&self.model);
        work(py, bars.as_ref(), move |progress| {
            let relations = relations.iter().map(|name| model.relation(name)).collect::<Result<_, _>>()?;
            let options = DoubtOptions { relations, top, workers: model.device().workers(), errors: None };
            Ok(text(&model.doubt(&options, progress)?))
        })
    }

    /// The ranking figures of a split, and the ranks as columns, as JSON.
    #[pyo3(signature = (split, direction, ties, leave_out_unseen, all_queries, strata, calibration, faithfulness, bars))]
    #[allow(clippy::too_many_arguments)]
    fn evaluate(
        &self,
        py: Python<'_>,
        split: &str,
        direction: Option<&str>,
        ties: &str,
        leave_out_unseen: bool,
        all_queries: bool,
        strata: bool,
        calibration: bool,
        faithfulness: Option<usize>,
        bars: Option<Bound<'_, PyAny>>,
    ) -> PyResult<(String, String)> {
        let split = split_of(split)?;
        let protocol = self.protocol(direction, ties, leave_out_unseen, all_queries)?;
        let model = Arc::clone(&self.model);
        work(py, bars.as_ref(), move |progress| {
            let device = model.device().clone();
            device.inside(|| {
                let options = EvaluateOptions { relations: Vec::new(), strata, calibration };
                let (mut evaluated, ranks) = model.evaluate_each(split, protocol, &options, progress)?;
                if let Some(queries) = faithfulness {
                    evaluated.faithfulness = model.faithfulness(queries, progress)?;
                }
                Ok((text(&evaluated), text(&ranks)))
            })
        })
    }

    /// Answers a part of a file of queries, into the file `out`; what became of it, as JSON.
    fn predict_shard(
        &self,
        py: Python<'_>,
        queries: PathBuf,
        top: usize,
        wanted: Wanted,
        shard: &str,
        out: PathBuf,
    ) -> PyResult<String> {
        let (model, shard) = (Arc::clone(&self.model), part(shard)?);
        work(py, None, move |progress| {
            let (among, workers) = (wanted.of(&model)?, model.device().workers());
            Ok(text(&model.predict_shard(&queries, (top, &among), shard, workers, &out, progress)?))
        })
    }

    /// Ranks a part of a split, into the file `out`; what became of it, as JSON.
    #[pyo3(signature = (split, direction, ties, leave_out_unseen, all_queries, shard, out))]
    #[allow(clippy::too_many_arguments)]
    fn evaluate_shard(
        &self,
        py: Python<'_>,
        split: &str,
        direction: Option<&str>,
        ties: &str,
        leave_out_unseen: bool,
        all_queries: bool,
        shard: &str,
        out: PathBuf,
    ) -> PyResult<String> {
        let split = split_of(split)?;
        let protocol = self.protocol(direction, ties, leave_out_unseen, all_queries)?;
        let (model, shard) = (Arc::clone(&self.model), part(shard)?);
        work(py, None, move |progress| {
            let device = model.device().clone();
            device.inside(|| Ok(text(&model.evaluate_shard(split, &[], protocol, shard, &out, progress)?)))
        })
    }

    /// Completes a part of the graph, into the file `out`; what became of it, as JSON.
    #[pyo3(signature = (relations, top, min_probability, held_out, wanted, shard, out))]
    #[allow(clippy::too_many_arguments)]
    fn complete_shard(
        &self,
        py: Python<'_>,
        relations: Vec<String>,
        top: Option<usize>,
        min_probability: Option<f64>,
        held_out: &str,
        wanted: WantedFacts,
        shard: &str,
        out: PathBuf,
    ) -> PyResult<String> {
        let held_out = chosen("held_out", held_out)?;
        let (model, shard) = (Arc::clone(&self.model), part(shard)?);
        work(py, None, move |progress| {
            let options = complete_options(&model, &relations, top, min_probability, held_out, wanted)?;
            Ok(text(&model.complete_shard(&options, shard, &out, progress)?))
        })
    }

    /// Its rules.
    fn rules(&self) -> Rules {
        Rules::new(self.model.rules().into(), self.model.names())
    }

    /// The vectors of entities.
    fn entity_embeddings(&self, py: Python<'_>) -> PyResult<View> {
        self.vectors(py, |embedding| (embedding.entity_vectors(), 0, 1))
    }

    /// The vectors of relations; `inverse` for those of their inverses.
    fn relation_embeddings(&self, py: Python<'_>, inverse: bool) -> PyResult<View> {
        self.vectors(py, move |embedding| {
            // After the reserved links, every relation has two rows.
            (embedding.link_vectors(), Link::RESERVED + usize::from(inverse), 2)
        })
    }

    /// The biases of entities, if the embedding model has them.
    fn entity_biases(&self, py: Python<'_>) -> PyResult<Option<View>> {
        let model = Arc::clone(&self.model);
        work(py, None, move |_| {
            let biases = model.embedding()?.and_then(|embedding| embedding.entity_biases());
            Ok(biases.map(|biases| View::rows(biases, 0, 1)).transpose()?)
        })
    }

    /// The settings of the embedding model, and the map from its scores to log-odds, as JSON; null without one.
    fn embedding(&self, py: Python<'_>) -> PyResult<String> {
        let model = Arc::clone(&self.model);
        work(py, None, move |_| {
            let about = |embedding: Arc<ruleguider::embed::Embedding>| {
                let mut about = serde_json::to_value(embedding.settings()).expect("settings are plain data");
                let [scale, shift] = embedding.log_odds();
                about["log_odds"] = serde_json::json!({ "scale": scale, "shift": shift });
                about
            };
            Ok(text(&model.embedding()?.map(about)))
        })
    }

    /// What it was learnt from.
    #[getter]
    fn graph(&self) -> PyResult<Graph> {
        let name = self.model.results().map_err(raised)?.dataset.clone();
        Ok(Graph { source: Source::Memory { name }, dataset: self.model.dataset().clone() })
    }

    /// The run directory.
    #[getter]
    fn path(&self) -> PathBuf {
        self.model.directory().path().to_owned()
    }

    /// The results of the run, as JSON.
    #[getter]
    fn results(&self) -> PyResult<String> {
        Ok(text(self.model.results().map_err(raised)?))
    }

    /// Its settings, as JSON.
    #[getter]
    fn config(&self) -> String {
        text(self.model.config())
    }

    /// Its learning curves, as JSON.
    #[getter]
    fn metrics(&self) -> PyResult<String> {
        Ok(text(&self.model.metrics().map_err(raised)?))
    }

    /// Where its tensors live.
    #[getter]
    fn device(&self) -> String {
        self.model.device().to_string()
    }
}

impl Model {
    fn vectors(
        &self,
        py: Python<'_>,
        rows: impl FnOnce(&ruleguider::embed::Embedding) -> (ruleguider::tensor::Tensor, usize, usize)
        + Send
        + 'static,
    ) -> PyResult<View> {
        let model = Arc::clone(&self.model);
        work(py, None, move |_| {
            let none = || AskError::Cannot("this run has trained no embedding model".to_owned());
            let embedding = model.embedding()?.ok_or_else(none)?;
            let (matrix, first, step) = rows(&embedding);
            Ok(View::rows(matrix, first, step)?)
        })
    }
}

/// A finished run is not replaced by one with another seed without a word.
fn expect_seed(out: &Path, seed: u64) -> Result<(), AskError> {
    let directory = out.is_dir().then(|| RunDirectory::look_at(out).ok()).flatten();
    match directory.and_then(|directory| Manifest::read(&directory).ok()) {
        Some(earlier) if earlier.seed != seed => Err(AskError::Cannot(format!(
            "out: {} has the run of seed {}; choose another folder for seed {seed}, or remove it",
            out.display(),
            earlier.seed
        ))),
        _ => Ok(()),
    }
}

fn part(shard: &str) -> PyResult<Shard> {
    shard.parse().map_err(|error: String| wrong(error))
}

/// Which missing facts are asked for.
fn complete_options(
    model: &Learnt,
    relations: &[String],
    top: Option<usize>,
    min_probability: Option<f64>,
    held_out: HeldOutFacts,
    WantedFacts(subjects, objects, (through, without, max_hops)): WantedFacts,
) -> Result<CompleteOptions, AskError> {
    let links: Vec<Link> = relations.iter().map(|name| model.index().link(name)).collect::<Result<_, _>>()?;
    let min_probability = match min_probability {
        None => model.usual_probability(top)?,
        given => given,
    };
    let workers = model.device().workers();
    let ends = |given: Option<Entities>| model.answers_chosen(given.map(EntityChoice::from).as_ref(), None);
    let (subjects, objects) = (ends(subjects)?, ends(objects)?);
    let paths = model.path_limits(&through, &without, max_hops)?;
    Ok(CompleteOptions { links, top, min_probability, held_out, subjects, objects, paths, workers })
}

/// Adds the number of the query to an error.
fn at(place: usize, error: AskError) -> AskError {
    match error {
        AskError::Name { message, suggestions } => {
            AskError::Name { message: format!("query {place}: {message}"), suggestions }
        }
        other => other,
    }
}

fn parsed<T: serde::de::DeserializeOwned>(json: &str) -> PyResult<T> {
    serde_json::from_str(json).map_err(|error| wrong(error.to_string()))
}

/// Writes the JSON objects of the file `lines` to `out` as RDF: every fact reified, with what is known about it.
#[pyfunction]
pub fn export_rdf(py: Python<'_>, lines: PathBuf, out: PathBuf) -> PyResult<()> {
    work(py, None, move |_| export(&lines, ExportFormat::Rdf(RdfStyle::Reified), &out).map(drop))
}

/// A picture of a prediction for a notebook.
#[pyfunction]
pub fn prediction_html(json: &str, plain: &str) -> PyResult<String> {
    Ok(figure::prediction(&parsed::<Prediction>(json)?, plain))
}

/// A picture of an explanation for a notebook.
#[pyfunction]
pub fn explanation_html(json: &str, plain: &str) -> PyResult<String> {
    Ok(figure::explanation(&parsed::<Explanation>(json)?, plain))
}

/// A picture of the first of `total` missing facts for a notebook.
#[pyfunction]
pub fn facts_html(json: &str, total: usize, plain: &str) -> PyResult<String> {
    Ok(figure::facts(&parsed::<Vec<MissingFact>>(json)?, total, plain))
}
