//! Stages as resumable steps: which are finished, from which inputs, with which files.
//!
//! A stage is skipped if its record has the same inputs and every file it made is unchanged. Otherwise it runs again; a
//! damaged file is reported, never trusted.

use super::directory::{RunDirectory, STAGES};
use super::{Checksum, MemberReport, RunError, sealed, unsealed};
use crate::memory;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// The record of a finished stage.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageRecord {
    /// The checksum of everything that the stage depended on.
    pub inputs: Checksum,
    /// The files it made, with their checksums.
    pub files: BTreeMap<String, Checksum>,
    /// How long it took, over all invocations.
    pub seconds: f64,
    /// The peak memory of the process during the stage's last invocation; absent if the system does not report it.
    pub peak_memory_mb: Option<f64>,
    /// The stage's own figures.
    pub figures: MemberReport,
    /// Why it ended before it was done, if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<String>,
    /// The seconds that the whole run was given; none if it could take as long as it liked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub within: Option<f64>,
    /// Whether the stage is stale: the run was restarted with other settings and has not revalidated it yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stale: bool,
}

impl StageRecord {
    /// Whether a run that is given `seconds` would make the same.
    fn suits(&self, seconds: Option<f64>) -> bool {
        self.cut.is_none() || self.within == seconds
    }
}

/// The stages of one run directory.
pub struct Stages<'a> {
    directory: &'a RunDirectory,
    records: BTreeMap<String, StageRecord>,
    /// The seconds that the run is given.
    within: Option<f64>,
}

/// Why a stage has to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It does not: it is finished.
    Finished,
    /// It was never finished.
    Unfinished,
    /// It was finished from other inputs.
    Outdated,
    /// This file of it is missing or has changed since the stage wrote it.
    Damaged(String),
}

/// What a finished stage returns.
#[derive(Clone, Debug, Default)]
pub struct Finished {
    /// The names of the files it made in the run directory.
    pub files: Vec<String>,
    /// Its figures.
    pub figures: MemberReport,
    /// Seconds that all invocations of this stage took together, where the stage keeps count.
    pub seconds: Option<f64>,
}

impl<'a> Stages<'a> {
    /// The stages of `directory`. A damaged list counts as empty: the stages then run again.
    ///
    /// # Errors
    /// If the list cannot be read.
    pub fn of(directory: &'a RunDirectory) -> Result<Self, RunError> {
        let text = directory.read(STAGES)?.and_then(|text| unsealed(&text));
        let records = text.and_then(|text| serde_json::from_str(&text).ok());
        Ok(Self { directory, records: records.unwrap_or_default(), within: None })
    }

    /// The same, if the run is given this many seconds. A stage that was cut short is not finished where there is another
    /// time for it; any other is what more time would make, too.
    pub(crate) fn within(self, seconds: Option<f64>) -> Self {
        Self { within: seconds, ..self }
    }

    /// The record of a finished stage.
    pub fn record(&self, stage: &str) -> Option<&StageRecord> {
        self.records.get(stage)
    }

    /// All records, by the name of the stage.
    pub fn records(&self) -> &BTreeMap<String, StageRecord> {
        &self.records
    }

    /// The checksums of the files that `stage` made; none if it has not run.
    pub fn files_of(&self, stage: &str) -> Vec<Checksum> {
        self.records.get(stage).map_or_else(Vec::new, |record| record.files.values().cloned().collect())
    }

    /// Whether `stage` has to run, its inputs being `inputs`.
    ///
    /// # Errors
    /// If a file exists but cannot be read.
    pub fn standing(&self, stage: &str, inputs: &Checksum) -> Result<Standing, RunError> {
        let Some(record) = self.records.get(stage) else { return Ok(Standing::Unfinished) };
        if record.inputs != *inputs || !record.suits(self.within) {
            return Ok(Standing::Outdated);
        }
        for (file, sum) in &record.files {
            if !self.is_whole(file, sum)? {
                return Ok(Standing::Damaged(file.clone()));
            }
        }
        Ok(Standing::Finished)
    }

    /// Marks the stages `names` as stale, because some of their inputs may have changed: their files are not used until
    /// the run has revalidated them. They are kept, in case they are still valid.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn mark_stale<'n>(&mut self, names: impl IntoIterator<Item = &'n str>) -> Result<(), RunError> {
        for name in names {
            if let Some(record) = self.records.get_mut(name) {
                record.stale = true;
            }
        }
        self.write()
    }

    /// Marks `stage` as revalidated: the run found it finished.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn confirm(&mut self, stage: &str) -> Result<(), RunError> {
        let was_stale = self.records.get_mut(stage).is_some_and(|record| std::mem::take(&mut record.stale));
        if was_stale { self.write() } else { Ok(()) }
    }

    /// Records why `stage`, which has run, ended before it was done.
    ///
    /// # Errors
    /// If the list cannot be written.
    pub fn cut(&mut self, stage: &str, why: &str) -> Result<(), RunError> {
        if let Some(record) = self.records.get_mut(stage) {
            record.cut = Some(why.to_owned());
        }
        self.write()
    }

    /// Runs `work` as `stage` and records that it is finished.
    ///
    /// # Errors
    /// If the work fails or the record cannot be written.
    pub fn run(
        &mut self,
        stage: &str,
        inputs: &Checksum,
        work: impl FnOnce() -> Result<Finished, RunError>,
    ) -> Result<&StageRecord, RunError> {
        // The old record is removed first: if the work is killed halfway, it must not vouch for new files.
        if self.records.remove(stage).is_some() {
            self.write()?;
        }
        let began = Instant::now();
        memory::restart_peak();
        let Finished { files, figures, seconds } = work()?;
        let sums: Result<BTreeMap<String, Checksum>, RunError> = files
            .into_iter()
            .map(|file| Checksum::of_file(&self.directory.file(&file)).map(|sum| (file, sum)))
            .collect();
        let record = StageRecord {
            inputs: inputs.clone(),
            files: sums?,
            seconds: seconds.unwrap_or(0.0).max(began.elapsed().as_secs_f64()),
            peak_memory_mb: memory::peak_mb(),
            figures,
            cut: None,
            within: self.within,
            stale: false,
        };
        self.records.insert(stage.to_owned(), record);
        self.write()?;
        Ok(&self.records[stage])
    }

    /// Takes `stage` over from a run in the folder `siblings` that finished it from the same inputs, unless it is
    /// finished here. Returns the run it was taken from. Errors in other runs are ignored.
    ///
    /// # Errors
    /// If a file cannot be written.
    pub fn adopt(
        &mut self,
        stage: &str,
        inputs: &Checksum,
        siblings: &Path,
    ) -> Result<Option<PathBuf>, RunError> {
        if self.standing(stage, inputs)? == Standing::Finished {
            return Ok(None);
        }
        let Ok(entries) = std::fs::read_dir(siblings) else { return Ok(None) };
        let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
        paths.sort();
        for path in paths.into_iter().filter(|path| path != self.directory.path()) {
            let Some((record, files)) = finished_by(&path, stage, inputs) else { continue };
            if !record.suits(self.within) {
                continue;
            }
            for (file, content) in &files {
                self.directory.write(file, content)?;
            }
            self.records.insert(stage.to_owned(), StageRecord { stale: false, ..record });
            // The other run may have changed these files meanwhile.
            if self.standing(stage, inputs)? == Standing::Finished {
                self.write()?;
                return Ok(Some(path));
            }
            self.records.remove(stage);
        }
        Ok(None)
    }

    /// The record of a stage that must be finished. Its files exist; their checksums are verified when they are read
    /// ([`Artifacts::expecting`](super::Artifacts::expecting)).
    ///
    /// # Errors
    /// If the stage is not finished or one of its files is missing.
    pub fn expect_finished(&self, stage: &str) -> Result<&StageRecord, RunError> {
        let Some(record) = self.records.get(stage).filter(|record| !record.stale) else {
            return Err(RunError::Missing {
                path: self.directory.path().to_owned(),
                what: format!("finished stage `{stage}`"),
                remedy: "run the same `ruleguider run` again to finish it".to_owned(),
            });
        };
        let gone = record.files.keys().map(|file| self.directory.file(file)).find(|path| !path.exists());
        gone.map_or(Ok(record), |path| Err(RunError::changed(path)))
    }

    /// The same, for files that will be read by other code: verifies their checksums now.
    ///
    /// # Errors
    /// If the stage is not finished, or one of its files is missing or has changed since the stage wrote it.
    pub fn expect_whole(&self, stage: &str) -> Result<&StageRecord, RunError> {
        let record = self.expect_finished(stage)?;
        for (file, sum) in &record.files {
            if !self.is_whole(file, sum)? {
                return Err(RunError::changed(self.directory.file(file)));
            }
        }
        Ok(record)
    }

    fn is_whole(&self, file: &str, sum: &Checksum) -> Result<bool, RunError> {
        let path = self.directory.file(file);
        Ok(path.exists() && Checksum::of_file(&path)? == *sum)
    }

    fn write(&self) -> Result<(), RunError> {
        let text = serde_json::to_string_pretty(&self.records).expect("records are plain data");
        self.directory.write(STAGES, sealed(&text).as_bytes())
    }
}

/// File names with their contents.
type Contents = Vec<(String, Vec<u8>)>;

/// The record and the files of `stage` of the run at `path`, if it finished it from `inputs`.
fn finished_by(path: &Path, stage: &str, inputs: &Checksum) -> Option<(StageRecord, Contents)> {
    let sibling = RunDirectory::look_at(path).ok()?;
    let stages = Stages::of(&sibling).ok()?;
    let record = stages.records.get(stage).filter(|record| record.inputs == *inputs)?.clone();
    let content = |file: &String| Some((file.clone(), std::fs::read(sibling.file(file)).ok()?));
    let files: Option<Contents> = record.files.keys().map(content).collect();
    Some((record, files?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_runs_when_it_must() {
        let folder = tempfile::tempdir().unwrap();
        let directory = RunDirectory::work_in(folder.path()).unwrap();
        let (inputs, others) = (Checksum::of(&"these"), Checksum::of(&"those"));
        let mut stages = Stages::of(&directory).unwrap();
        assert_eq!(stages.standing("rules", &inputs).unwrap(), Standing::Unfinished);
        let work = || {
            directory.write("rules.tsv", b"1\t1\t1\tr(X,Y) <= s(X,Y)\n")?;
            Ok(Finished {
                files: vec!["rules.tsv".to_owned()],
                figures: MemberReport::default(),
                seconds: Some(7.0),
            })
        };
        assert!(stages.run("rules", &inputs, work).unwrap().seconds >= 7.0);
        let read_again = Stages::of(&directory).unwrap();
        assert_eq!(read_again.records(), stages.records());
        assert_eq!(read_again.standing("rules", &inputs).unwrap(), Standing::Finished);
        assert_eq!(read_again.standing("rules", &others).unwrap(), Standing::Outdated);
        std::fs::write(directory.file("rules.tsv"), "1\t1\t1\tr(X,Y) <= ").unwrap();
        let damaged = Standing::Damaged("rules.tsv".to_owned());
        assert_eq!(read_again.standing("rules", &inputs).unwrap(), damaged);
        assert!(read_again.expect_finished("rules").is_ok() && read_again.expect_whole("rules").is_err());
        std::fs::remove_file(directory.file("rules.tsv")).unwrap();
        let message = read_again.expect_finished("rules").unwrap_err().to_string();
        assert!(
            message.contains("rules.tsv: is missing or has changed since it was written; run the same"),
            "{message}"
        );
    }

    #[test]
    fn stale_stages_cannot_be_used_and_is_not_lost() {
        let folder = tempfile::tempdir().unwrap();
        let directory = RunDirectory::work_in(folder.path()).unwrap();
        let inputs = Checksum::of(&"these");
        let mut stages = Stages::of(&directory).unwrap();
        stages.run("rules", &inputs, || Ok(Finished::default())).unwrap();
        stages.mark_stale(["rules", "training"]).unwrap();
        let mut read_again = Stages::of(&directory).unwrap();
        let message = read_again.expect_finished("rules").unwrap_err().to_string();
        assert!(message.contains("finished stage `rules`"), "{message}");
        assert_eq!(read_again.standing("rules", &inputs).unwrap(), Standing::Finished);
        read_again.confirm("rules").unwrap();
        assert!(Stages::of(&directory).unwrap().expect_finished("rules").is_ok());
    }

    #[test]
    fn a_stage_is_taken_over_from_a_run_with_the_same_inputs() {
        let folder = tempfile::tempdir().unwrap();
        let [one, two] = ["one", "two"].map(|name| RunDirectory::work_in(&folder.path().join(name)).unwrap());
        one.write(super::super::directory::MANIFEST, b"{}").unwrap();
        let inputs = Checksum::of(&0);
        let work = || {
            one.write("rules.tsv", b"rules")?;
            Ok(Finished { files: vec!["rules.tsv".to_owned()], ..Finished::default() })
        };
        Stages::of(&one).unwrap().run("rules", &inputs, work).unwrap();
        let mut stages = Stages::of(&two).unwrap();
        assert_eq!(stages.adopt("rules", &Checksum::of(&1), folder.path()).unwrap(), None);
        assert_eq!(stages.adopt("rules", &inputs, folder.path()).unwrap().as_deref(), Some(one.path()));
        assert_eq!(stages.standing("rules", &inputs).unwrap(), Standing::Finished);
        assert_eq!(two.read("rules.tsv").unwrap().as_deref(), Some("rules"));
        assert_eq!(stages.adopt("rules", &inputs, folder.path()).unwrap(), None);
        // A file that has changed is not taken over.
        std::fs::write(one.file("rules.tsv"), "other rules").unwrap();
        let three = RunDirectory::work_in(&folder.path().join("three")).unwrap();
        two.write(super::super::directory::MANIFEST, b"{}").unwrap();
        std::fs::write(two.file("rules.tsv"), "other rules").unwrap();
        assert_eq!(Stages::of(&three).unwrap().adopt("rules", &inputs, folder.path()).unwrap(), None);
    }

    #[test]
    fn only_a_stage_that_was_cut_short_depends_on_the_time() {
        let folder = tempfile::tempdir().unwrap();
        let directory = RunDirectory::work_in(folder.path()).unwrap();
        let inputs = Checksum::of(&0);
        let within = |seconds| Stages::of(&directory).unwrap().within(seconds);
        let mut stages = within(Some(60.0));
        stages.run("a", &inputs, || Ok(Finished::default())).unwrap();
        stages.run("b", &inputs, || Ok(Finished::default())).unwrap();
        stages.cut("b", "out of time").unwrap();
        for (seconds, b) in
            [(Some(60.0), Standing::Finished), (Some(90.0), Standing::Outdated), (None, Standing::Outdated)]
        {
            assert_eq!(within(seconds).standing("a", &inputs).unwrap(), Standing::Finished);
            assert_eq!(within(seconds).standing("b", &inputs).unwrap(), b);
        }
    }

    #[test]
    fn a_failed_stage_is_not_finished() {
        let folder = tempfile::tempdir().unwrap();
        let directory = RunDirectory::work_in(folder.path()).unwrap();
        let inputs = Checksum::of(&0);
        let mut stages = Stages::of(&directory).unwrap();
        stages.run("a", &inputs, || Ok(Finished::default())).unwrap();
        assert!(stages.run("a", &inputs, || Err(RunError::Interrupted)).is_err());
        assert_eq!(Stages::of(&directory).unwrap().standing("a", &inputs).unwrap(), Standing::Unfinished);
    }
}
