//! Rows of the paper's tables from the configurations that come with the program, kept as JSON and shown beside
//! the published figures.
//!
//! A row is a data set and a system. Its result is an object of `results/<dataset>-<system>.json`, one for each seed;
//! `results/tables.md` is rebuilt from all of them.

use super::embedding_table::embedding_table;
use super::tables::tables;
use crate::ask::RunReport;
use crate::config::{ConfigError, System, names};
use crate::embed;
use crate::eval::{Figures, Report};
use crate::run::member::{EMBEDDINGS, PRETRAINING, TRAINING};
use crate::run::{EmbedReport, RunError, write_whole};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A row of the tables.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Row {
    /// The data set.
    pub dataset: String,
    /// The system, by the name of its configuration.
    pub system: String,
}

/// Data sets whose rows are evaluated on another graph: the same relations over unseen entities, in the folder of the
/// same name with `-ind` (Teru et al., *Inductive relation prediction by subgraph reasoning*, 2020).
const INDUCTIVE: [&str; 3] = ["wn18rr-v1", "fb237-v1", "nell-v1"];

impl Row {
    /// The data that it is evaluated on, if that is not the data it is trained on.
    pub fn on(&self) -> Option<String> {
        INDUCTIVE.contains(&self.dataset.as_str()).then(|| format!("{}-ind", self.dataset))
    }
}

/// The rows that `dataset` and `system` name; without them, all.
///
/// # Errors
/// If there is no such row.
pub fn rows(dataset: Option<&str>, system: Option<&str>) -> Result<Vec<Row>, ConfigError> {
    let all: Vec<Row> = names()
        .filter_map(|name| name.split_once('/'))
        .map(|(dataset, system)| Row { dataset: dataset.to_owned(), system: system.to_owned() })
        .collect();
    let fits = |row: &&Row| {
        dataset.is_none_or(|wanted| row.dataset == wanted) && system.is_none_or(|wanted| row.system == wanted)
    };
    let chosen: Vec<Row> = all.iter().filter(fits).cloned().collect();
    if chosen.is_empty() {
        let known = |of: fn(&Row) -> &str| {
            let mut names: Vec<&str> = all.iter().map(of).collect();
            names.sort_unstable();
            names.dedup();
            names.join(", ")
        };
        return Err(ConfigError::Unknown(format!(
            "no configuration for {} {}; data sets: {}; systems: {}",
            dataset.unwrap_or("any data set"),
            system.unwrap_or("any system"),
            known(|row| &row.dataset),
            known(|row| &row.system)
        )));
    }
    Ok(chosen)
}

/// One result, as stored. The names of the fields are a contract.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RowResult {
    /// The data set.
    pub dataset: String,
    /// The system.
    pub system: String,
    /// Which split was ranked.
    pub split: String,
    /// The seed.
    pub seed: u64,
    /// The version of the program.
    pub version: String,
    /// The device it was trained on.
    pub device: String,
    /// The settings, resolved, as TOML.
    pub config: String,
    /// The figures.
    #[serde(flatten)]
    pub report: Report,
    /// The MRR with ties ranked as in the published code.
    pub mrr_published_ties: Option<f64>,
    /// The figures of the queries of both directions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub both: Option<Figures>,
    /// The figures on the validation split, where it is not learnt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<Figures>,
    /// The same, filtered by test answers as well, as published figures are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_as_published: Option<Figures>,
    /// The figures on a validation split that the walker was trained on, each fact queried under the masks of training.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_taught: Option<Figures>,
    /// The same, filtered by test answers as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid_taught_as_published: Option<Figures>,
    /// How many parameters the walker has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<u64>,
    /// Seconds of each stage.
    pub stage_seconds: BTreeMap<String, f64>,
    /// The share of queries for which the top answer's path is a rule.
    pub rule_share: Option<f64>,
    /// The same at the end of pre-training, on the validation split.
    pub rule_share_pretraining: Option<f64>,
    /// The training summary of the embedding model, if the system is an embedding model alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub training: Option<embed::Summary>,
    /// The command that reproduces the result, if it is not `reproduce`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
}

impl RowResult {
    /// The result of a run, for `row`.
    pub fn new(row: &Row, run: &RunReport, config: String, device: String) -> Self {
        let share = run.stages.get(PRETRAINING).and_then(|stage| stage.figures.rule_share);
        let parameters =
            run.stages.get(TRAINING).and_then(|stage| stage.figures.parameters).map(|count| count as u64);
        let trained = run.stages.get(EMBEDDINGS).filter(|_| run.system == System::Embedding);
        let training = trained.and_then(|stage| stage.figures.read_as().ok());
        Self {
            dataset: row.dataset.clone(),
            system: row.system.clone(),
            split: "test".to_owned(),
            seed: run.seed,
            version: run.version.clone(),
            device,
            config,
            report: run.report.clone(),
            mrr_published_ties: None,
            both: None,
            valid: None,
            valid_as_published: None,
            valid_taught: None,
            valid_taught_as_published: None,
            parameters,
            stage_seconds: run.stages.iter().map(|(name, stage)| (name.clone(), stage.seconds)).collect(),
            // A blend's is that of its walker, which has a row of its own.
            rule_share: run.rule_share.filter(|_| run.system == System::Walker),
            rule_share_pretraining: share,
            training,
            command: None,
        }
    }

    /// The same with the figures on another graph.
    pub fn asked_on(self, report: Report) -> Self {
        Self { report, rule_share: None, ..self }
    }

    /// The result of an embedding model by itself, trained on `dataset`. `changes` are the command-line options that
    /// changed its settings, as given.
    pub fn of_embedding(embedded: &EmbedReport, dataset: &str, seed: u64, changes: &str) -> Self {
        let EmbedReport { embedding, summary, report } = embedded;
        let model = embedding.settings().model.name();
        let seconds = summary.iter().map(|training| (EMBEDDINGS.to_owned(), training.training_seconds));
        Self {
            dataset: dataset.to_owned(),
            system: model.to_owned(),
            split: "test".to_owned(),
            seed,
            version: crate::VERSION.to_owned(),
            device: embedding.device().to_string(),
            config: embedding.settings().to_toml(),
            report: report.clone(),
            mrr_published_ties: None,
            both: None,
            valid: None,
            valid_as_published: None,
            valid_taught: None,
            valid_taught_as_published: None,
            parameters: None,
            stage_seconds: seconds.collect(),
            rule_share: None,
            rule_share_pretraining: None,
            training: summary.clone(),
            command: Some(format!(
                "ruleguider embed data/{dataset} --model {model} --seed {seed}{changes} --out {model}.safetensors"
            )),
        }
    }
}

/// Adds `result` to those in `folder`, replacing one of the same row, split and seed, and rebuilds the tables. Several
/// processes may do so at once: a lock serialises them.
///
/// # Errors
/// If the folder cannot be read or written.
pub fn keep(folder: &Path, result: &RowResult) -> Result<PathBuf, RunError> {
    std::fs::create_dir_all(folder).map_err(RunError::writing(folder))?;
    let lock = folder.join(".lock");
    let held = std::fs::File::create(&lock).map_err(RunError::writing(&lock))?;
    held.lock().map_err(RunError::writing(&lock))?;
    let path = folder.join(format!("{}-{}.json", result.dataset, result.system));
    let mut results = if path.exists() { read(&path)? } else { Vec::new() };
    results.retain(|other| (other.seed, &other.split) != (result.seed, &result.split));
    results.push(result.clone());
    results.sort_by(|a, b| (&a.split, a.seed).cmp(&(&b.split, b.seed)));
    let text = serde_json::to_vec_pretty(&results).expect("results are plain data");
    write_whole(&path, |out| out.write_all(&text))?;
    write_tables(folder)?;
    Ok(path)
}

/// Rebuilds the tables of `folder` from the results in it, and returns those.
///
/// # Errors
/// If the folder cannot be read or written.
pub fn write_tables(folder: &Path) -> Result<Vec<RowResult>, RunError> {
    let all = read_all(folder)?;
    write_whole(&folder.join("tables.md"), |out| out.write_all(tables(&all).as_bytes()))?;
    if let Some(text) = embedding_table(&all) {
        write_whole(&folder.join("embeddings.md"), |out| out.write_all(text.as_bytes()))?;
    }
    Ok(all)
}

/// All results of a folder. Files of other tools are skipped.
///
/// # Errors
/// If the folder cannot be read.
pub fn read_all(folder: &Path) -> Result<Vec<RowResult>, RunError> {
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(RunError::reading(folder))? {
        let path = entry.map_err(RunError::reading(folder))?.path();
        if path.extension().is_some_and(|ending| ending == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths.iter().filter_map(|path| read(path).ok()).flatten().collect())
}

fn read(path: &Path) -> Result<Vec<RowResult>, RunError> {
    let text = std::fs::read_to_string(path).map_err(RunError::reading(path))?;
    serde_json::from_str(&text).map_err(|error| RunError::Broken {
        path: path.to_owned(),
        what: format!("is not a list of results ({error})"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Figures, Side, Ties};

    fn result(seed: u64, mrr: f64) -> RowResult {
        let figures = Figures { queries: 3134, hits_at_1: 0.443, mrr, ..Figures::default() };
        let report = Report {
            sampled_from: None,
            figures,
            left_out: 0,
            direction: Side::Tail,
            ties: Ties::Realistic,
            seconds: 1.0,
            tails: None,
            heads: None,
            to_one: figures,
            to_many: figures,
            relations: Vec::new(),
            baseline: None,
            strata: None,
        };
        RowResult {
            dataset: "wn18rr".to_owned(),
            system: "ruleguider-complex".to_owned(),
            split: "test".to_owned(),
            seed,
            version: "0.1.0".to_owned(),
            device: "cpu".to_owned(),
            config: String::new(),
            report,
            mrr_published_ties: Some(0.5),
            both: Some(figures),
            valid: Some(figures),
            valid_as_published: None,
            valid_taught: None,
            valid_taught_as_published: None,
            parameters: Some(7),
            stage_seconds: BTreeMap::from([("rules".to_owned(), 9.0)]),
            rule_share: Some(0.5),
            rule_share_pretraining: None,
            training: None,
            command: None,
        }
    }

    #[test]
    fn rows_are_chosen_by_data_set_and_system() {
        assert_eq!(rows(Some("wn18rr"), Some("minerva")).unwrap().len(), 1);
        assert_eq!(rows(Some("wn18rr"), None).unwrap().len(), 21);
        let inductive = rows(Some("nell-v1"), Some("propagator")).unwrap();
        assert_eq!(inductive[0].on().as_deref(), Some("nell-v1-ind"));
        assert_eq!(rows(Some("wn18rr"), Some("blend")).unwrap()[0].on(), None);
        assert!(rows(None, None).unwrap().len() >= 42);
        let message = rows(Some("wn18rr"), Some("minerwa")).unwrap_err().to_string();
        assert!(message.contains("no configuration for wn18rr minerwa; data sets:"), "{message}");
    }

    #[test]
    fn results_are_kept_by_seed_and_stand_beside_the_published() {
        let folder = tempfile::tempdir().unwrap();
        keep(folder.path(), &result(1, 0.10)).unwrap();
        keep(folder.path(), &result(2, 0.50)).unwrap();
        let path = keep(folder.path(), &result(1, 0.48)).unwrap();
        let kept: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(kept.as_array().unwrap().len(), 2);
        for key in ["dataset", "system", "split", "seed", "version", "config", "hits@1", "mrr", "queries"] {
            assert!(kept[0].get(key).is_some(), "{key}");
        }
        let tables = std::fs::read_to_string(folder.path().join("tables.md")).unwrap();
        for row in [
            "| ruleguider-complex | 44.3 | 0.0 | 0.0 | 49.0 | 1.4 | 50.0 | 44.3 / 52.4 / 55.5 / 48.0 | 3134 (0) | 1, 2 | cpu, 0.1.0 |",
            "| wn18rr | ruleguider-complex | 44.3 | 0.0 | 0.0 | 49.0 | – | 43.7 / 50.2 / 53.0 / 47.0 | 3134 | 1, 2 |",
            "| wn18rr | ruleguider-complex | – | 50.0 | 69.2 → 40.7 |",
            "| wn18rr | ruleguider-complex | – | 9 | – | – | – | – | – | 1 | 10 | 7 |",
        ] {
            assert!(tables.contains(row), "{row}\n{tables}");
        }
        // Files of other tools are ignored.
        std::fs::write(folder.path().join("other.json"), "{}").unwrap();
        keep(folder.path(), &result(3, 0.5)).unwrap();
    }
}
