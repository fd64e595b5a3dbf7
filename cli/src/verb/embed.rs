//! `embed`: trains an embedding model, or takes one from a file, and evaluates it.

use crate::Outcome;
use crate::arguments::Common;
use crate::console::{self, Console};
use crate::data::Data;
use crate::protocol::{Extent, Ranking};
use crate::usage;
use ruleguider::embed::{ModelKind, Settings, chosen};
use ruleguider::eval::{Report, Side};
use ruleguider::report::reproduce::{RowResult, keep};
use ruleguider::run::{EmbedReport, EmbedSource, EmbedSpec, RunError, embed};
use ruleguider::settings::Layer;
use serde::Serialize;
use serde_json::{Map, Value};
use std::path::PathBuf;

/// Arguments of `embed`.
#[derive(clap::Args)]
#[command(
    after_help = "Settings come from configs/embed/ for the benchmark graphs, by the name of the data folder, and are chosen by \
the number of entities for other data; --config and --set change them. If interrupted, run the same command again \
to resume from its checkpoint, which is in FILE.training/ with the learning curves (metrics.jsonl).

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
    /// The file to write the weights to (safetensors, with the names of entities and relations)
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
    /// Save the result as JSON in this folder, and rebuild the table embeddings.md there
    #[arg(long, value_name = "DIR")]
    results: Option<PathBuf>,
    #[command(flatten)]
    ranking: Ranking,
    #[command(flatten)]
    extent: Extent,
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
        let source = match &self.weights {
            Some(path) => EmbedSource::Weights(path.clone(), self.model),
            None => EmbedSource::Training(self.settings(dataset.names.entities.len())?),
        };
        let spec = EmbedSpec {
            source,
            out: self.out.clone(),
            seed: common.seed,
            device: common.device()?,
            protocol: self.extent.of(self.ranking.protocol(Side::Tail)),
        };
        let embedded = match embed(&spec, &dataset, &console) {
            Err(RunError::Interrupted) => {
                console.note(&"stopped; run the same command again to resume");
                return Ok(Outcome::Interrupted);
            }
            other => other?,
        };
        if let Some(folder) = &self.results {
            let (dataset, changes) = (self.dataset_name(), self.changes());
            keep(folder, &RowResult::of_embedding(&embedded, &dataset, common.seed, &changes))?;
        }
        let details = details(&embedded)?;
        if common.json {
            console::print_json(&Output { report: &embedded.report, details: &details })?;
        } else {
            console::print(&format_args!("{}{}", embedded.report, lines(&details)))?;
        }
        Ok(Outcome::Done)
    }

    fn settings(&self, entities: usize) -> anyhow::Result<Settings> {
        let own = self.config.as_deref().map(Layer::read).transpose()?;
        let changes = Layer::from_pairs(self.set.iter().map(String::as_str))?;
        Ok(chosen(self.model, &self.dataset_name(), entities, own, changes)?)
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
}

fn details(embedded: &EmbedReport) -> anyhow::Result<Map<String, Value>> {
    let EmbedReport { embedding, summary, .. } = embedded;
    let mut details = Map::new();
    details.insert("model".to_owned(), embedding.settings().model.name().into());
    details.insert("device".to_owned(), embedding.device().to_string().into());
    details.insert("cpu_seconds".to_owned(), usage::cpu_seconds().into());
    details.insert("peak_memory_mb".to_owned(), usage::peak_memory_mb().into());
    if let Some(summary) = summary {
        let Value::Object(summary) = serde_json::to_value(summary)? else { return Ok(details) };
        details.extend(summary);
    }
    Ok(details)
}

/// The details as text, one per line.
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
