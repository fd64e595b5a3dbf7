//! The manifest of a run directory: its data, seed and version.
//!
//! A run is only ever resumed with the data it was started with; its settings may change, and then the stages that
//! depend on them run again.

use super::directory::{CONFIG, MANIFEST, RunDirectory};
use super::{Checksum, RunError, snapshot};
use crate::graph::{self, Dataset, FileKind, GraphError, ReadOptions, SplitShares};
use crate::plan::Resources;
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

/// The layout of run directories; raised when an older program could not read a newer one, or the reverse.
const LAYOUT: u32 = 1;

/// Stands in for the path of data that came through a pipe.
const PIPE: &str = "-";

/// Where data comes from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The built-in demonstration graph.
    Demonstration,
    /// Triples that were in memory: the run keeps its own copy.
    Kept {
        /// What they are called.
        name: String,
    },
    /// A folder of splits or a file of triples.
    Path {
        /// Where it was when the run began.
        path: PathBuf,
        /// How a single file is divided, as `train,valid,test`.
        shares: [f64; 3],
        /// The seed of that division.
        seed: u64,
        /// Whether a `.csv` begins with a header.
        header: Option<bool>,
        /// The ending that names the format, where those of the files do not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// Whether the run answers from its own copy: the data came through a pipe, or its splits are those of an
        /// earlier run.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        kept: bool,
    },
}

impl Source {
    /// The data at `path`, read with `options`. The path is stored as absolute, so that the run can be used from any
    /// folder.
    ///
    /// # Errors
    /// If there is nothing at `path`.
    pub fn of(path: &Path, options: &ReadOptions) -> Result<Self, RunError> {
        let path = path.canonicalize().map_err(RunError::reading(path))?;
        let SplitShares { train, valid, test } = options.shares;
        Ok(Source::Path {
            path,
            shares: [train, valid, test],
            seed: options.seed,
            header: options.header,
            format: options.format.map(FileKind::ending),
            kept: false,
        })
    }

    /// The same data, received through a pipe: it can only be read back from the run.
    #[must_use]
    pub fn piped(mut self) -> Self {
        if let Source::Path { path, .. } = &mut self {
            *path = PathBuf::from(PIPE);
        }
        self.kept()
    }

    /// The same data, of which the run has its own copy.
    #[must_use]
    pub fn kept(mut self) -> Self {
        if let Source::Path { kept, .. } = &mut self {
            *kept = true;
        }
        self
    }

    /// Whether the run that learnt from it answers from its own copy.
    pub(super) fn is_kept(&self) -> bool {
        match self {
            Source::Demonstration => false,
            Source::Kept { .. } => true,
            // Runs of versions without updates only have the path to tell.
            Source::Path { path, kept, .. } => *kept || path == Path::new(PIPE),
        }
    }

    /// Reads it.
    ///
    /// # Errors
    /// If it cannot be read, or only the run has a copy.
    pub fn read(&self) -> Result<Dataset, RunError> {
        match (self, self.place()?) {
            (Source::Kept { name }, _) => {
                Err(GraphError::Data(format!("{name} was in memory and can only be read from its run"))
                    .into())
            }
            (_, Some((path, options))) => Ok(graph::read(path, &options)?),
            (_, None) => Ok(crate::generate::demonstration()),
        }
    }

    /// Reads it as the successor of `before`. Also returns how many validation and test facts are left out because they
    /// were learnt before.
    ///
    /// # Errors
    /// If it cannot be read.
    pub fn read_after(&self, before: &Dataset) -> Result<(Dataset, usize), RunError> {
        match self.place()? {
            Some((path, options)) => Ok(graph::read_after(path, &options, before)?),
            None => Ok((self.read()?, 0)),
        }
    }

    /// Where it is and how it is read; `None` for the built-in graph.
    fn place(&self) -> Result<Option<(&Path, ReadOptions)>, RunError> {
        let Source::Path { path, shares: [train, valid, test], seed, header, format, .. } = self else {
            return Ok(None);
        };
        let shares = SplitShares { train: *train, valid: *valid, test: *test };
        let kind = format.as_deref().map(FileKind::named).transpose();
        let format = kind.map_err(GraphError::Data)?;
        Ok(Some((path, ReadOptions { shares, seed: *seed, header: *header, format, incomplete: false })))
    }

    /// A short name: the folder's, or the file's without its endings.
    pub fn name(&self) -> String {
        match self {
            Source::Demonstration => "demonstration".to_owned(),
            Source::Path { path, .. } if path == Path::new(PIPE) => "stdin".to_owned(),
            Source::Kept { name } => name.clone(),
            Source::Path { path, .. } => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() { name } else { name.split('.').next().unwrap_or_default().to_owned() }
            }
        }
    }
}

/// The first file of a run directory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    layout: u32,
    /// The version of the program that made it.
    pub version: String,
    /// The seed of every random choice.
    pub seed: u64,
    /// Where the data came from.
    pub data: Source,
    /// The checksum of the data, as it was parsed.
    pub checksum: Checksum,
    /// The resources its settings were planned with, if they were planned.
    #[serde(default, rename = "means", skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// If all facts were learnt, none held out: the checksum of the stages of the first run, whose settings, blend
    /// weights and calibration it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub everything_after: Option<Checksum>,
    /// The checksum of its settings as they were written; runs of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub config: Option<Checksum>,
    /// The names of its relations, by which it can answer on another graph; runs of older versions have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub relations: Option<Vec<String>>,
}

impl Manifest {
    /// The manifest of a run over the data with this checksum, with this version of the program.
    pub fn new(data: Source, checksum: Checksum, seed: u64) -> Self {
        let version = crate::VERSION.to_owned();
        Self {
            layout: LAYOUT,
            version,
            seed,
            data,
            checksum,
            resources: None,
            everything_after: None,
            config: None,
            relations: None,
        }
    }

    /// The settings of the run, as they were written.
    ///
    /// # Errors
    /// If the file is missing or has changed since: other settings would give other answers.
    pub fn settings(&self, directory: &RunDirectory) -> Result<String, RunError> {
        let broken = |what: &str| RunError::Broken { path: directory.file(CONFIG), what: what.to_owned() };
        let text = directory.read(CONFIG)?.ok_or_else(|| broken("is missing"))?;
        match &self.config {
            Some(sum) if *sum != Checksum::of(&text) => Err(broken("has changed since it was written")),
            _ => Ok(text),
        }
    }

    /// Reads the manifest of a run.
    ///
    /// # Errors
    /// If there is none, it is broken, or its layout is another than this program's.
    pub fn read(directory: &RunDirectory) -> Result<Self, RunError> {
        let path = directory.path().to_owned();
        let Some(text) = directory.read(MANIFEST)? else {
            return Err(RunError::NotARun { path, file: MANIFEST });
        };
        #[derive(Deserialize)]
        struct Outline {
            layout: u32,
            version: String,
        }
        let broken = |error: serde_json::Error| RunError::Broken {
            path: directory.file(MANIFEST),
            what: format!("is damaged, or not a file of a run ({error})"),
        };
        let outline: Outline = serde_json::from_str(&text).map_err(broken)?;
        if outline.layout != LAYOUT {
            return Err(RunError::Mismatch {
                path,
                made: format!("by version {} (layout {})", outline.version, outline.layout),
                now: format!("version {} (layout {LAYOUT})", crate::VERSION),
                remedy: "use that version, or another folder",
            });
        }
        serde_json::from_str(&text).map_err(broken)
    }

    /// The resources that the run at `path` was planned with; `None` if there is no run, or it was not planned.
    pub fn resources_of(path: &Path) -> Option<Resources> {
        Self::read(&RunDirectory::look_at(path).ok()?).ok()?.resources
    }

    /// The manifest of the run in `directory` that this one resumes, if there is one.
    ///
    /// # Errors
    /// If the run there was made from other data or by an incompatible version.
    pub fn resumes(&self, directory: &RunDirectory) -> Result<Option<Self>, RunError> {
        if !directory.file(MANIFEST).exists() {
            return Ok(None);
        }
        let before = Self::read(directory)?;
        let remedy = "choose another folder for other data, another seed or other shares";
        before.expect_same_data(directory.path(), &self.data, &self.checksum, remedy)?;
        Ok(Some(before))
    }

    /// Writes it into `directory`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&self, directory: &RunDirectory) -> Result<(), RunError> {
        let text = serde_json::to_vec_pretty(self).expect("a manifest is plain data");
        directory.write(MANIFEST, &text)
    }

    /// Reads the data of the run again, from where it was or from `elsewhere`. Also returns the checksum of its
    /// [`Known`](crate::graph::Known).
    ///
    /// # Errors
    /// If it cannot be read or has changed.
    pub fn dataset(
        &self,
        directory: &Path,
        elsewhere: Option<&Path>,
    ) -> Result<(Dataset, Checksum), RunError> {
        let mut data = self.data.clone();
        match (&mut data, elsewhere) {
            (Source::Path { path, .. }, Some(other)) => *path = other.to_owned(),
            (Source::Kept { name }, Some(_)) => {
                let message =
                    format!("this run has its own copy of its data ({name}); another path cannot be given");
                return Err(GraphError::Data(message).into());
            }
            _ => {}
        }
        if let Source::Path { path, .. } = &data
            && elsewhere.is_none()
            && !data.is_kept()
            && !path.exists()
        {
            return Err(RunError::Missing {
                path: directory.to_owned(),
                what: format!("data at {} any more", path.display()),
                remedy: "give its new path".to_owned(),
            });
        }
        let dataset =
            if data.is_kept() && elsewhere.is_none() { self.kept(directory)? } else { data.read()? };
        let dataset = if self.everything_after.is_some() { dataset.everything() } else { dataset };
        let remedy = "restore it, give its path if it has moved, answer on the new data, or update the run";
        let known = Checksum::of_known(&dataset.names, &dataset.known);
        self.expect_same_data(directory, &data, &Checksum::of_dataset(&dataset, &known), remedy)?;
        Ok((dataset, known))
    }

    /// The data that the run at `directory` was made from, read from the run's own copy.
    ///
    /// # Errors
    /// If it has none, or the file is damaged.
    pub fn kept(&self, directory: &Path) -> Result<Dataset, RunError> {
        let kept = snapshot::read(&RunDirectory::look_at(directory)?)?;
        kept.filter(|kept| snapshot::sum(kept) == self.checksum).ok_or_else(|| RunError::Missing {
            path: directory.to_owned(),
            what: "copy of the data it was made from".to_owned(),
            remedy: "run the same `ruleguider run` again to make it".to_owned(),
        })
    }

    fn expect_same_data(
        &self,
        directory: &Path,
        data: &Source,
        sum: &Checksum,
        remedy: &'static str,
    ) -> Result<(), RunError> {
        if self.checksum == *sum {
            return Ok(());
        }
        let said = |source: &Source, sum: &Checksum| match source {
            Source::Demonstration => format!("the demonstration graph ({})", sum.short()),
            Source::Kept { name } => format!("{name} in memory ({})", sum.short()),
            // A folder has splits of its own.
            Source::Path { path, .. } if path.is_dir() => format!("{} ({})", path.display(), sum.short()),
            Source::Path { path, shares: [train, valid, test], seed, .. } => {
                let path = path.display();
                format!("{path} split {train},{valid},{test} by seed {seed} ({})", sum.short())
            }
        };
        Err(RunError::Mismatch {
            path: directory.to_owned(),
            made: format!("from {}", said(&self.data, &self.checksum)),
            now: said(data, sum),
            remedy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sum(dataset: &Dataset) -> Checksum {
        Checksum::of_dataset(dataset, &Checksum::of_known(&dataset.names, &dataset.known))
    }

    fn begun(folder: &Path) -> (RunDirectory, Manifest) {
        let directory = RunDirectory::work_in(folder).unwrap();
        let manifest = Manifest::new(Source::Demonstration, sum(&crate::generate::demonstration()), 1);
        assert_eq!(manifest.resumes(&directory).unwrap(), None);
        manifest.write(&directory).unwrap();
        (directory, manifest)
    }

    #[test]
    fn a_run_goes_on_with_its_own_data_only() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, manifest) = begun(folder.path());
        assert_eq!(manifest.resumes(&directory).unwrap().as_ref(), Some(&manifest));
        assert!(manifest.dataset(folder.path(), None).is_ok());
        let mut other = crate::generate::demonstration();
        other.test = other.test[1..].into();
        let error = Manifest::new(Source::Demonstration, sum(&other), 1).resumes(&directory).unwrap_err();
        let said = error.to_string();
        assert!(said.contains("was made from the demonstration graph"), "{said}");
        assert!(
            said.ends_with("choose another folder for other data, another seed or other shares"),
            "{said}"
        );
    }

    #[test]
    fn a_run_of_another_layout_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, _) = begun(folder.path());
        directory.write(MANIFEST, br#"{"layout": 99, "version": "9.1.0"}"#).unwrap();
        let error = Manifest::read(&directory).unwrap_err().to_string();
        assert!(error.contains("was made by version 9.1.0 (layout 99), now it is version"), "{error}");
        directory.write(MANIFEST, b"{\"lay").unwrap();
        let error = Manifest::read(&directory).unwrap_err().to_string();
        assert!(error.contains("run.json: is damaged"), "{error}");
    }

    #[test]
    fn a_source_is_named_by_its_folder_or_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("my_triples.tsv.gz");
        std::fs::write(&file, "").unwrap();
        let source = Source::of(&file, &ReadOptions::default()).unwrap();
        assert_eq!(source.name(), "my_triples");
        assert!(Source::of(&folder.path().join("none"), &ReadOptions::default()).is_err());
    }
}
