//! `embed`: trains an embedding model, or takes one from a file, and evaluates it.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::Data;
use crate::protocol::Ranking;
use crate::usage;
use anyhow::Context;
use ruleguider::embed::{
    EmbedError, Embedding, ModelKind, Settings, Size, Stop, Summary, Task, Trained, epochs_wanted, preset,
    suited, train,
};
use ruleguider::eval::{EvalError, Report, Split, evaluate_split};
use ruleguider::graph::{Dataset, Known};
use ruleguider::report::reproduce::{RowResult, keep};
use ruleguider::tensor::Device;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::{Path, PathBuf};

/// Arguments of `embed`.
#[derive(clap::Args)]
#[command(
    after_help = "Settings come from configs/embed/ for the benchmark graphs, by the name of the data folder, and are chosen by
the number of entities for other data; --config and --set change them. Interrupted, the same command goes on
from its checkpoint, which stands with the learning curves (metrics.jsonl) in FILE.training/.

Examples:
  ruleguider embed data/wn18rr --model complex --out complex.safetensors
  ruleguider embed my_triples.tsv --model rotate --set epochs=30 --set dimension=100 --out rotate.safetensors
  ruleguider embed data/umls --model distmult --weights trained_elsewhere.safetensors --json"
)]
pub struct Embed {
    #[command(flatten)]
    data: Data,
    /// Which model: distmult, complex, conve or rotate
    #[arg(long, value_name = "MODEL", default_value = "complex")]
    model: ModelKind,
    /// Where the weights go (safetensors, with the names of entities and relations)
    #[arg(long, value_name = "FILE", required_unless_present = "weights")]
    out: Option<PathBuf>,
    /// A TOML file of settings instead of the built-in ones
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Change one setting, such as epochs=30; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Evaluate these weights, trained here or elsewhere, instead of training
    #[arg(long, value_name = "FILE", conflicts_with_all = ["config", "set"])]
    weights: Option<PathBuf>,
    /// Keep the result as JSON in this folder, and make the table embeddings.md there anew
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    ranking: Ranking,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Output<'a> {
    #[serde(flatten)]
    report: &'a Report,
    #[serde(flatten)]
    details: &'a Map<String, Value>,
}

impl Embed {
    /// Trains or loads, then evaluates.
    pub fn run(&self, common: &Common) -> anyhow::Result<Outcome> {
        let dataset = self.data.read(common)?;
        let console = Console::with_interrupt(common);
        let device = common.device()?;
        let known = dataset.known.for_test();
        let settings = self.settings(dataset.names.entities.len())?;
        let (embedding, summary) = match &self.weights {
            Some(path) => (Embedding::load(path, &dataset.names, self.model, &device)?, None),
            None => match self.train(common, &settings, &dataset, &known, &device, &console) {
                Ok(trained) => (trained.embedding, Some(trained.summary)),
                Err(EmbedError::Interrupted { epoch }) => {
                    console
                        .note(&format_args!("stopped in epoch {epoch}; the same command goes on from there"));
                    return Ok(Outcome::Interrupted);
                }
                Err(error) => return Err(error.into()),
            },
        };
        if let Some(path) = self.out.as_ref() {
            let summary = serde_json::to_string(&summary)?;
            embedding.save(path, &dataset.names, &[("training", summary)])?;
        }
        let report = match self.evaluate(&embedding, &dataset, &known, &console) {
            Err(EvalError::Interrupted) => return Ok(Outcome::Interrupted),
            other => other?,
        };
        let details = details(&embedding, summary.as_ref(), &device)?;
        if let Some(folder) = &self.results {
            self.keep(folder, common, &embedding, &report, summary.clone())?;
        }
        if common.json {
            console::print_json(&Output { report: &report, details: &details })?;
        } else {
            console::print(&format_args!("{}{}", report, lines(&details)))?;
        }
        Ok(Outcome::Done)
    }

    /// From the file that was named; else those of the benchmark graph of this name; else what suits a graph of this size.
    fn settings(&self, entities: usize) -> anyhow::Result<Settings> {
        let model = format!("model=\"{}\"", self.model.name());
        let changes: Vec<String> = std::iter::once(model).chain(self.set.iter().cloned()).collect();
        if let Some(path) = &self.config {
            let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
            return Settings::from_toml(&text, &changes).with_context(|| path.display().to_string());
        }
        let text = match preset(&self.dataset_name(), self.model) {
            Some(text) => text.to_owned(),
            None => suited(self.model, entities).to_toml(),
        };
        Ok(Settings::from_toml(&text, &changes)?)
    }

    /// The options that change settings, as they were given.
    fn changes(&self) -> String {
        let file = self.config.iter().map(|path| format!(" --config {}", path.display()));
        file.chain(self.set.iter().map(|set| format!(" --set {set}"))).collect()
    }

    fn dataset_name(&self) -> String {
        let path = self.data.path.canonicalize().unwrap_or_else(|_| self.data.path.clone());
        path.file_name().map_or_else(String::new, |name| name.to_string_lossy().to_lowercase())
    }

    /// One training; two for a data set that hands its validation facts over for the test figure, unless the
    /// number of epochs is settled: the first finds it, the second learns from everything.
    fn train(
        &self,
        common: &Common,
        settings: &Settings,
        dataset: &Dataset,
        known: &Known,
        device: &Device,
        console: &Console,
    ) -> Result<Trained, EmbedError> {
        let size = Size { entities: dataset.names.entities.len(), relations: dataset.names.relations.len() };
        let out = self.out.as_deref().unwrap_or(Path::new("embedding.safetensors"));
        let mut folder = out.as_os_str().to_owned();
        folder.push(".training");
        let folder = PathBuf::from(folder);
        let whole = Task {
            known: &dataset.known,
            size,
            settings,
            stop: Stop::Validation,
            seed: common.seed,
            device,
            folder: Some(&folder),
        };
        if !dataset.known.has_own_graph() {
            return train(whole, console);
        }
        let epochs = match settings.final_epochs {
            0 => epochs_wanted(Task { folder: Some(&folder.join("choosing")), ..whole }, console)?,
            epochs => epochs,
        };
        train(Task { known, stop: Stop::After(epochs), ..whole }, console)
    }

    fn evaluate(
        &self,
        embedding: &Embedding,
        dataset: &Dataset,
        known: &Known,
        console: &Console,
    ) -> Result<Report, EvalError> {
        let graph = dataset.graph_of(known);
        evaluate_split(embedding, dataset, Split::Test, &graph, self.ranking.protocol(), console)
    }

    fn keep(
        &self,
        folder: &Path,
        common: &Common,
        embedding: &Embedding,
        report: &Report,
        training: Option<Summary>,
    ) -> anyhow::Result<()> {
        let (dataset, model, seed) = (self.dataset_name(), embedding.settings().model.name(), common.seed);
        let seconds = training.as_ref().map(|training| ("embeddings".to_owned(), training.training_seconds));
        let result = RowResult {
            command: Some(format!(
                "ruleguider embed data/{dataset} --model {model} --seed {seed}{} --out {model}.safetensors",
                self.changes()
            )),
            dataset,
            system: model.to_owned(),
            split: "test".to_owned(),
            seed,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            device: embedding.device().to_string(),
            config: embedding.settings().to_toml(),
            report: report.clone(),
            mrr_published_ties: None,
            both: None,
            valid: None,
            valid_as_published: None,
            parameters: None,
            stage_seconds: seconds.into_iter().collect(),
            rule_share: None,
            rule_share_pretraining: None,
            training,
        };
        keep(folder, &result)?;
        Ok(())
    }
}

fn details(
    embedding: &Embedding,
    summary: Option<&Summary>,
    device: &Device,
) -> anyhow::Result<Map<String, Value>> {
    let mut details = Map::new();
    details.insert("model".to_owned(), embedding.settings().model.name().into());
    details.insert("device".to_owned(), device.to_string().into());
    details.insert("cpu_seconds".to_owned(), usage::cpu_seconds().into());
    details.insert("peak_memory_mb".to_owned(), usage::peak_memory_mb().into());
    if let Some(summary) = summary {
        let Value::Object(summary) = serde_json::to_value(summary)? else { return Ok(details) };
        details.extend(summary);
    }
    Ok(details)
}

/// The details for people: a line each.
fn lines(details: &Map<String, Value>) -> String {
    let shown = |value: &Value| match value {
        Value::Number(number) => {
            number.as_f64().map_or_else(|| number.to_string(), |x| format!("{}", (x * 1e3).round() / 1e3))
        }
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let simple = details.iter().filter(|(_, value)| !value.is_object() && !value.is_null());
    let lines: Vec<String> =
        simple.map(|(key, value)| format!("{:<18}{}", key.replace('_', " "), shown(value))).collect();
    lines.join("\n")
}
