//! The manifest of a run directory: its data, seed and version.
//!
//! A run is only ever resumed with the data it was started with; its settings may change, and then the stages that
//! depend on them run again.

use super::directory::{CONFIG, DATA, MANIFEST, RunDirectory};
use super::{Checksum, RunError};
use crate::cost::Resources;
use crate::graph::{
    self, Conflicts, DataFile, DataSums, Dataset, Division, FileKind, GraphError, Literals, Names,
    ReadOptions, SplitShares,
};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

/// The layout of run directories; raised when an older program could not read a newer one, or the reverse.
const LAYOUT: u32 = 1;

/// Where data comes from. A run answers from its own [data file](DataFile), so this says where new data may be found,
/// and what the data is called.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// The built-in demonstration graph.
    Demonstration,
    /// Triples that were in memory or came through a pipe.
    Memory {
        /// What they are called.
        name: String,
    },
    /// A folder of splits or a file of triples.
    Path {
        /// Where it was when the run began.
        path: PathBuf,
        /// How a single file is divided, as `train,valid,test`.
        shares: [f64; 3],
        /// The day from which facts are held out, if a single file is divided by time.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        split_time: Option<String>,
        /// The seed of that division.
        seed: u64,
        /// Whether a `.csv` begins with a header.
        header: Option<bool>,
        /// The ending that names the format, where those of the files do not.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// Which columns were chosen.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        columns: Option<String>,
        /// What literals of RDF are.
        #[serde(default, skip_serializing_if = "is_default")]
        literals: Literals,
        /// The named graph that is read alone.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        named_graph: Option<String>,
        /// What becomes of facts that are also known to be false.
        #[serde(default, skip_serializing_if = "is_default")]
        conflicts: Conflicts,
        /// Whether a validation or test split that a folder lacks is drawn from its training facts.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        fills_splits: bool,
    },
}

impl Source {
    /// The data at `path`, read with `options`. The path is stored as absolute, so that the run can be used from any
    /// folder.
    ///
    /// # Errors
    /// If there is nothing at `path`.
    pub fn of(path: &Path, options: &ReadOptions) -> Result<Self, RunError> {
        let given = path;
        let path = given.canonicalize().map_err(RunError::reading(given))?;
        if !path.is_dir() && !path.is_file() {
            let expected = "a file or a folder, which can be read more than once";
            return Err(GraphError::file(given, expected, "a pipe or a device").into());
        }
        let SplitShares { train, valid, test, since } = options.shares;
        Ok(Source::Path {
            path,
            shares: [train, valid, test],
            split_time: since.map(|since| since.to_string()),
            seed: options.seed,
            header: options.header,
            format: options.format.map(FileKind::ending),
            columns: options.columns.as_ref().map(ToString::to_string),
            literals: options.literals,
            fills_splits: options.incomplete,
            named_graph: options.named_graph.clone(),
            conflicts: options.conflicts,
        })
    }

    /// Reads it.
    ///
    /// # Errors
    /// If it cannot be read, or only the run has a copy.
    pub fn read(&self) -> Result<Dataset, RunError> {
        match (self, self.place()?) {
            (Source::Memory { name }, _) => {
                Err(GraphError::Data(format!("{name} was in memory and can only be read from its run"))
                    .into())
            }
            (_, Some((path, options))) => {
                let dataset = graph::read(path, &options)?;
                let ReadOptions { shares, seed, incomplete, .. } = options;
                match incomplete {
                    true => Ok(graph::with_all_splits(dataset, Division { shares, seed })?),
                    false => Ok(dataset),
                }
            }
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
        let Source::Path {
            path,
            shares: [train, valid, test],
            split_time,
            seed,
            header,
            format,
            columns,
            literals,
            named_graph,
            conflicts,
            fills_splits,
        } = self
        else {
            return Ok(None);
        };
        let since = split_time.as_deref().map(str::parse).transpose().map_err(GraphError::Data)?;
        let shares = SplitShares { train: *train, valid: *valid, test: *test, since };
        let kind = format.as_deref().map(FileKind::named).transpose();
        let format = kind.map_err(GraphError::Data)?;
        let columns = columns.as_deref().map(str::parse).transpose().map_err(GraphError::Data)?;
        let options = ReadOptions {
            shares,
            seed: *seed,
            header: *header,
            format,
            columns,
            literals: *literals,
            named_graph: named_graph.clone(),
            conflicts: *conflicts,
            incomplete: *fills_splits,
        };
        Ok(Some((path, options)))
    }

    /// A short name: the folder's, or the file's without its endings.
    pub fn name(&self) -> String {
        match self {
            Source::Demonstration => "demonstration".to_owned(),
            Source::Memory { name } => name.clone(),
            Source::Path { path, .. } => {
                let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                if path.is_dir() { name } else { name.split('.').next().unwrap_or_default().to_owned() }
            }
        }
    }
}

/// Whether an option is what it is by default.
fn is_default<T: Default + PartialEq>(option: &T) -> bool {
    *option == T::default()
}

/// How a file of the source looked when it was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct SourceFile {
    name: String,
    bytes: u64,
    /// Since 1970.
    modified_nanoseconds: u128,
}

/// How the files at `path` look now; `None` if there are none, or the system does not tell.
fn source_files(path: &Path) -> Option<Vec<SourceFile>> {
    let looked = |path: &Path| -> Option<SourceFile> {
        let about = path.metadata().ok()?;
        let modified = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
        let name = path.file_name()?.to_string_lossy().into_owned();
        Some(SourceFile { name, bytes: about.len(), modified_nanoseconds: modified.as_nanos() })
    };
    if !path.is_dir() {
        return looked(path).map(|file| vec![file]);
    }
    let entries = std::fs::read_dir(path).ok()?;
    let files = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| graph::is_part(path));
    let mut files = files.map(|path| looked(&path)).collect::<Option<Vec<SourceFile>>>()?;
    files.sort_by(|a, b| a.name.cmp(&b.name));
    Some(files)
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<Resources>,
    /// If all facts were learnt, none held out: the checksum of the stages of the first run, whose settings, blend
    /// weights and calibration it uses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub everything_after: Option<Checksum>,
    /// The checksum of its settings as they were written.
    pub config: Checksum,
    /// Size and time of change of the files that the data was read from, as far as the system tells.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    source_files: Option<Vec<SourceFile>>,
}

impl Manifest {
    /// The manifest of a run over the data with this checksum, by settings with the checksum `config`, with this version
    /// of the program.
    pub fn new(data: Source, checksum: Checksum, config: Checksum, seed: u64) -> Self {
        let version = crate::VERSION.to_owned();
        let source_files = match &data {
            Source::Path { path, .. } => source_files(path),
            _ => None,
        };
        Self {
            layout: LAYOUT,
            version,
            seed,
            data,
            checksum,
            resources: None,
            everything_after: None,
            config,
            source_files,
        }
    }

    /// The settings of the run, as they were written.
    ///
    /// # Errors
    /// If the file is missing or has changed since: other settings would give other answers.
    pub fn settings(&self, directory: &RunDirectory) -> Result<String, RunError> {
        let broken = |what: &str| RunError::Broken { path: directory.file(CONFIG), what: what.to_owned() };
        let text = directory.read(CONFIG)?.ok_or_else(|| broken("is missing"))?;
        match self.config == Checksum::of(&text) {
            true => Ok(text),
            false => Err(broken("has changed since it was written")),
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

    /// Writes the data file of the run in `directory`, unless it is there already with the same labels, attributes and
    /// prefixes. `known` is the checksum of the learnable part.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn keep_data(
        &self,
        directory: &RunDirectory,
        dataset: &Dataset,
        known: &Checksum,
    ) -> Result<(), RunError> {
        // These are not part of the checksum, because nothing is learnt from them.
        let reads_alike = |names: &Names| {
            let now = &dataset.names;
            names.labels == now.labels
                && names.relation_labels == now.relation_labels
                && names.relation_phrases == now.relation_phrases
                && names.types.labels == now.types.labels
                && names.attributes == now.attributes
                && names.prefixes == now.prefixes
        };
        if self.dataset(directory).is_ok_and(|(kept, _)| reads_alike(&kept.names)) {
            return Ok(());
        }
        let sums = DataSums { known: known.to_string(), whole: self.checksum.to_string() };
        Ok(DataFile::write(&directory.file(DATA), dataset, Some(&sums))?)
    }

    /// The data of the run in `directory`, mapped. Also returns the checksum of its
    /// [`Known`](crate::graph::Known).
    ///
    /// # Errors
    /// If the data file is missing, damaged, or that of another run.
    pub fn dataset(&self, directory: &RunDirectory) -> Result<(Dataset, Checksum), RunError> {
        let path = directory.file(DATA);
        if !path.exists() {
            return Err(RunError::Missing {
                path: directory.path().to_owned(),
                what: format!("data file {DATA}"),
                remedy: "run the same `ruleguider run` again to make it".to_owned(),
            });
        }
        let DataFile { dataset, sums } = DataFile::open(&path)?;
        match sums.filter(|sums| sums.whole == self.checksum.to_string()) {
            Some(sums) => Ok((dataset, Checksum::from_text(sums.known))),
            None => Err(RunError::Broken { path, what: "is the data file of another run".to_owned() }),
        }
    }

    /// What to tell the user if the source of the data has changed since it was read; the run answers from its own
    /// copy all the same.
    pub fn source_change(&self) -> Option<String> {
        let Source::Path { path, .. } = &self.data else { return None };
        let files = self.source_files.as_ref()?;
        let now = source_files(path)?;
        (now != *files).then(|| {
            format!(
                "{} has changed since this run was made; answers are from the data as it was \
                 (`ruleguider run --update` learns the changes)",
                path.display()
            )
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
        let message = |source: &Source, sum: &Checksum| match source {
            Source::Demonstration => format!("the demonstration graph ({})", sum.short()),
            Source::Memory { name } => format!("{name} in memory ({})", sum.short()),
            // A folder has splits of its own.
            Source::Path { path, .. } if path.is_dir() => format!("{} ({})", path.display(), sum.short()),
            Source::Path { path, split_time: Some(day), .. } => {
                format!("{} split at {day} ({})", path.display(), sum.short())
            }
            Source::Path { path, shares: [train, valid, test], seed, .. } => {
                let path = path.display();
                format!("{path} split {train},{valid},{test} by seed {seed} ({})", sum.short())
            }
        };
        Err(RunError::Mismatch {
            path: directory.to_owned(),
            made: format!("from {}", message(&self.data, &self.checksum)),
            now: message(data, sum),
            remedy,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{AttributesBuilder, EntityId};

    fn sum(dataset: &Dataset) -> Checksum {
        Checksum::of_dataset(dataset, &Checksum::of_known(&dataset.names, &dataset.known))
    }

    fn begun(folder: &Path) -> (RunDirectory, Manifest) {
        let directory = RunDirectory::work_in(folder).unwrap();
        let manifest = Manifest::new(
            Source::Demonstration,
            sum(&crate::generate::demonstration()),
            Checksum::of(&""),
            1,
        );
        assert_eq!(manifest.resumes(&directory).unwrap(), None);
        manifest.write(&directory).unwrap();
        (directory, manifest)
    }

    #[test]
    fn a_run_goes_on_with_its_own_data_only() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, manifest) = begun(folder.path());
        assert_eq!(manifest.resumes(&directory).unwrap().as_ref(), Some(&manifest));
        let data = crate::generate::demonstration();
        let known = Checksum::of_known(&data.names, &data.known);
        assert!(manifest.dataset(&directory).is_err());
        manifest.keep_data(&directory, &data, &known).unwrap();
        assert_eq!(manifest.dataset(&directory).unwrap().1, known);
        let mut other = crate::generate::demonstration();
        other.test = other.test[1..].into();
        let error = Manifest::new(Source::Demonstration, sum(&other), Checksum::of(&""), 1)
            .resumes(&directory)
            .unwrap_err();
        let message = error.to_string();
        assert!(message.contains("was made from the demonstration graph"), "{message}");
        assert!(
            message.ends_with("choose another folder for other data, another seed or other shares"),
            "{message}"
        );
    }

    #[test]
    fn what_the_checksum_leaves_out_is_kept_anew_when_it_changes() {
        let folder = tempfile::tempdir().unwrap();
        let (directory, manifest) = begun(folder.path());
        let data = crate::generate::demonstration();
        let known = Checksum::of_known(&data.names, &data.known);
        let with = |change: &dyn Fn(&mut Names)| {
            let mut names = Names::clone(&data.names);
            change(&mut names);
            Dataset { names: names.into(), ..data.clone() }
        };
        let entity = EntityId(0);
        let mut attributes = AttributesBuilder::default();
        attributes.add(entity, "born", "1901");
        let attributes = attributes.finish();
        let changed = [
            with(&|_| ()),
            with(&|names| names.attributes = attributes.clone()),
            with(&|names| names.prefixes.add("ex", "http://example.org/")),
            with(&|names| names.labels = [(entity, "Somebody".to_owned())].into_iter().collect()),
        ];
        for (at, data) in changed.iter().enumerate() {
            manifest.keep_data(&directory, data, &known).unwrap();
            let kept = manifest.dataset(&directory).unwrap().0.names;
            let alike = |other: &&Dataset| {
                let names = &other.names;
                (&kept.labels, &kept.attributes, &kept.prefixes)
                    == (&names.labels, &names.attributes, &names.prefixes)
            };
            assert_eq!(changed.iter().position(|other| alike(&other)), Some(at));
        }
        // What has not changed is not written again.
        let written = || directory.file(DATA).metadata().unwrap().modified().unwrap();
        let before = written();
        manifest.keep_data(&directory, &changed[3], &known).unwrap();
        assert_eq!(written(), before);
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
