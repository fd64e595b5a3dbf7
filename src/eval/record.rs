//! Results that are kept: one JSON file a result, and the table that a folder of them makes.
//!
//! A record says what was evaluated, how it came about, and the figures. The Markdown table is made from the
//! files alone, so it can never say anything else than they do.

use super::Report;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// One result, as it stands in `results/*.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// The data set, by the name of its folder.
    pub dataset: String,
    /// What answered: `complex`, `rules-cyclic`, `ruleguider-complex`, …
    pub system: String,
    /// Which split was ranked.
    pub split: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// The version of this program.
    pub version: String,
    /// The command that makes the result again.
    pub command: String,
    /// The resolved configuration.
    pub config: Value,
    /// The figures.
    #[serde(flatten)]
    pub report: Report,
    /// Whatever else the system has to say about itself, such as `training_seconds` and `device`.
    pub details: Map<String, Value>,
}

/// What can go wrong with records.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file or folder could not be read or written.
    #[error("{}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// The system's answer.
        source: std::io::Error,
    },
    /// A file holds something else than records.
    #[error("{}: no result: {why}; remove the file or make it anew", path.display())]
    Content {
        /// Which one.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
}

impl Record {
    /// Writes the record as `DATASET-SYSTEM.json` into `folder`, aside first, then in place of an older one.
    ///
    /// # Errors
    /// If the folder or the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, RecordError> {
        let path = folder.join(format!("{}-{}.json", self.dataset, self.system));
        let text = serde_json::to_string_pretty(self).expect("plain values") + "\n";
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
        write_whole(&path, &text)?;
        Ok(path)
    }

    /// Writes the record into `folder` and makes the table `table` there anew from all records that `belongs`
    /// takes. Several processes may do so at once: each waits for the one before.
    ///
    /// # Errors
    /// If the folder cannot be read or written, or holds something else than results.
    pub fn keep(
        &self,
        folder: &Path,
        table: &str,
        title: &str,
        belongs: &dyn Fn(&Record) -> bool,
        published: &dyn Fn(&str, &str) -> Option<PublishedFigures>,
    ) -> Result<(), RecordError> {
        std::fs::create_dir_all(folder).map_err(failed(folder))?;
        let lock = folder.join(".lock");
        let held = std::fs::File::create(&lock).map_err(failed(&lock))?;
        held.lock().map_err(failed(&lock))?;
        self.write(folder)?;
        let records: Vec<Record> = Record::read_all(folder)?.into_iter().filter(belongs).collect();
        write_whole(&folder.join(table), &markdown(title, &records, published))
    }

    /// All records of the `.json` files in `folder`, each an object or a list of objects, in the order of the
    /// file names.
    ///
    /// # Errors
    /// If a file cannot be read or holds something else.
    pub fn read_all(folder: &Path) -> Result<Vec<Record>, RecordError> {
        let listing = std::fs::read_dir(folder).map_err(failed(folder))?;
        let mut paths: Vec<PathBuf> = listing
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
            .collect();
        paths.sort();
        let mut all = Vec::new();
        for path in paths {
            let text = std::fs::read_to_string(&path).map_err(failed(&path))?;
            let wrong = |error: serde_json::Error| RecordError::Content {
                path: path.clone(),
                why: error.to_string(),
            };
            match serde_json::from_str(&text).map_err(wrong)? {
                list @ Value::Array(_) => {
                    all.extend(serde_json::from_value::<Vec<Record>>(list).map_err(wrong)?)
                }
                one => all.push(serde_json::from_value(one).map_err(wrong)?),
            }
        }
        Ok(all)
    }

    fn number(&self, key: &str) -> Option<f64> {
        self.details.get(key).and_then(Value::as_f64)
    }
}

/// Writes `text` beside `path` first, so that no half file is ever there.
fn write_whole(path: &Path, text: &str) -> Result<(), RecordError> {
    let beside = path.with_extension("partial");
    std::fs::write(&beside, text).map_err(failed(&beside))?;
    std::fs::rename(&beside, path).map_err(failed(path))
}

fn failed(path: &Path) -> impl Fn(std::io::Error) -> RecordError {
    move |source| RecordError::File { path: path.to_owned(), source }
}

/// Published figures in per cent: Hits@1, Hits@10 and MRR.
pub type PublishedFigures = [Option<f64>; 3];

/// The table of `records`, each beside what `published` knows for its data set and system.
fn markdown(
    title: &str,
    records: &[Record],
    published: &dyn Fn(&str, &str) -> Option<PublishedFigures>,
) -> String {
    let mut text = format!(
        "# {title}\n\nMade by `ruleguider` from the JSON files beside it. Filtered; per cent; published figures \
         (test, tail) in parentheses where there are any.\n\n\
         | data | system | Hits@1 | Hits@3 | Hits@5 | Hits@10 | MRR | queries (left out) | direction, ties | \
         training | an epoch | device |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n"
    );
    for record in records {
        let Report { figures, left_out, direction, ties, .. } = &record.report;
        let [h1, h10, mrr] = published(&record.dataset, &record.system).unwrap_or_default();
        let beside = |ours: f64, theirs: Option<f64>| match theirs {
            Some(theirs) => format!("{:.1} ({theirs:.1})", 100.0 * ours),
            None => format!("{:.1}", 100.0 * ours),
        };
        let seconds = |key: &str| record.number(key).map_or("–".to_owned(), |s| format!("{s:.2} s"));
        let device = record.details.get("device").and_then(Value::as_str).unwrap_or("–");
        let word = |value: &dyn std::fmt::Debug| format!("{value:?}").to_lowercase();
        writeln!(
            text,
            "| {} | {} | {} | {:.1} | {:.1} | {} | {} | {} ({left_out}) | {}, {} | {} | {} | {device} |",
            record.dataset,
            record.system,
            beside(figures.hits_at_1, h1),
            100.0 * figures.hits_at_3,
            100.0 * figures.hits_at_5,
            beside(figures.hits_at_10, h10),
            beside(figures.mrr, mrr),
            figures.queries,
            word(direction),
            word(ties),
            seconds("training_seconds"),
            seconds("epoch_seconds"),
        )
        .expect("a text takes whatever is written");
    }
    text += "\nCommands:\n\n";
    for record in records {
        let Record { dataset, system, command, version, seed, .. } = record;
        writeln!(text, "- {dataset}, {system} (version {version}, seed {seed}): `{command}`")
            .expect("a text takes whatever is written");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eval::{Figures, Side, Ties};

    fn record(system: &str) -> Record {
        let figures = Figures {
            queries: 200,
            hits_at_1: 0.4512,
            hits_at_3: 0.5,
            hits_at_5: 0.52,
            hits_at_10: 0.5766,
            mrr: 0.4939,
            mean_rank: 80.5,
        };
        let report = Report {
            figures,
            left_out: 3,
            direction: Side::Tail,
            ties: Ties::Realistic,
            seconds: 1.5,
            to_one: figures,
            to_many: figures,
            relations: Vec::new(),
        };
        let details = serde_json::json!({"training_seconds": 12.345, "device": "cpu (2 threads)"});
        Record {
            dataset: "wn18rr".to_owned(),
            system: system.to_owned(),
            split: "test".to_owned(),
            seed: 1,
            version: "0.1.0".to_owned(),
            command: format!("ruleguider embed data/wn18rr --model {system}"),
            config: serde_json::json!({"n3": 0.1}),
            report,
            details: details.as_object().unwrap().clone(),
        }
    }

    #[test]
    fn what_was_written_is_read_and_makes_the_table() {
        let folder = tempfile::tempdir().unwrap();
        let results = folder.path().join("results");
        let list = vec![record("rules-cyclic"), record("blend")];
        std::fs::create_dir_all(&results).unwrap();
        std::fs::write(results.join("more.json"), serde_json::to_string(&list).unwrap()).unwrap();
        let published =
            |_: &str, system: &str| (system == "complex").then_some([Some(41.5), None, Some(43.4)]);
        let belongs = |record: &Record| ["complex", "distmult"].contains(&record.system.as_str());
        for system in ["distmult", "complex"] {
            record(system).keep(&results, "embeddings.md", "Embeddings", &belongs, &published).unwrap();
        }
        let all = Record::read_all(&results).unwrap();
        assert_eq!(all, [record("rules-cyclic"), record("blend"), record("complex"), record("distmult")]);
        let text = std::fs::read_to_string(results.join("embeddings.md")).unwrap();
        let row = "| wn18rr | complex | 45.1 (41.5) | 50.0 | 52.0 | 57.7 | 49.4 (43.4) | 200 (3) | tail, realistic \
                   | 12.35 s | – | cpu (2 threads) |\n";
        assert!(text.contains(row), "{text}");
        assert!(
            text.contains("- wn18rr, distmult (version 0.1.0, seed 1): `ruleguider embed data/wn18rr"),
            "{text}"
        );
        assert!(!text.contains("blend"), "{text}");
    }

    #[test]
    fn a_file_that_is_no_result_is_named() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("odd.json"), "{\"dataset\": 3}").unwrap();
        let error = Record::read_all(folder.path()).unwrap_err().to_string();
        assert!(error.contains("odd.json: no result"), "{error}");
    }
}
