//! An embedding model by itself, without a run directory: trained or loaded, saved, and evaluated.

use super::RunError;
use crate::embed::{self, Embedding, ModelKind, Settings, Size, Stop, Summary, Task, TrainedEmbedding};
use crate::eval::{Protocol, Report, Split, evaluate_split};
use crate::graph::Dataset;
use crate::progress::Progress;
use crate::tensor::Device;
use crate::train::{self, Recording};
use std::path::{Path, PathBuf};

/// Where the model comes from.
#[derive(Clone, Debug)]
pub enum EmbedSource {
    /// It is trained with these settings.
    Training(Settings),
    /// It is read from a file, which need not name its model.
    Weights(PathBuf, ModelKind),
}

/// What to do.
#[derive(Clone, Debug)]
pub struct EmbedSpec {
    /// Where the model comes from.
    pub source: EmbedSource,
    /// Where it is written. During training, the checkpoint and the learning curves (`metrics.jsonl`) are in a folder
    /// of this name plus `.training`, from which an interrupted training resumes.
    pub out: Option<PathBuf>,
    /// The seed of every random choice.
    pub seed: u64,
    /// The device of its tensors.
    pub device: Device,
    /// How the test split is asked and ranked.
    pub protocol: Protocol,
}

/// The result.
pub struct EmbedReport {
    /// The model.
    pub embedding: Embedding,
    /// How it was trained, if it was.
    pub summary: Option<Summary>,
    /// The figures on the test split.
    pub report: Report,
}

/// Does what `spec` asks for with the learnable part of `dataset`. A data set with a graph of its own adds its
/// validation facts once the number of epochs has been found without them.
///
/// # Errors
/// If training or loading fails, a file cannot be written, or the user interrupts; then the same call resumes.
pub fn embed(spec: &EmbedSpec, dataset: &Dataset, progress: &dyn Progress) -> Result<EmbedReport, RunError> {
    let known = dataset.known.for_test();
    let folder = spec.out.as_deref().map(training_folder);
    let (embedding, summary) = match &spec.source {
        EmbedSource::Weights(path, model) => {
            (Embedding::load(path, &dataset.names, *model, &spec.device)?, None)
        }
        EmbedSource::Training(settings) => {
            let size =
                Size { entities: dataset.names.entities.len(), relations: dataset.names.relations.len() };
            let task = Task {
                known: &dataset.known,
                size,
                settings,
                stop: Stop::Validation,
                seed: spec.seed,
                device: &spec.device,
                folder: folder.as_deref(),
                warm: None,
            };
            let whole = dataset.known.has_own_graph().then_some(&known);
            let TrainedEmbedding { embedding, summary } = match &folder {
                Some(folder) => {
                    let recording = Recording::new(&folder.join("metrics.jsonl"), progress);
                    let trained = embed::learn(task, whole, &recording)?;
                    recording.finish()?;
                    trained
                }
                None => embed::learn(task, whole, progress)?,
            };
            (embedding, Some(summary))
        }
    };
    if let Some(path) = &spec.out {
        let summary = serde_json::to_string(&summary).expect("a summary is plain data");
        embedding.save(path, &dataset.names, &[("training", summary)])?;
    }
    if let Some(folder) = &folder {
        train::forget(folder);
    }
    let graph = dataset.graph_of(&known);
    let report = evaluate_split(&embedding, dataset, Split::Test, &graph, spec.protocol, progress)?;
    Ok(EmbedReport { embedding, summary, report })
}

fn training_folder(out: &Path) -> PathBuf {
    let mut name = out.as_os_str().to_owned();
    name.push(".training");
    name.into()
}
