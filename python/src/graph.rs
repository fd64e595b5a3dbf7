//! `Graph`: triples from a file, from ids or from names, with their splits.

use crate::error::{raised, wrong};
use crate::ids::numbered;
use crate::job::work;
use crate::view::View;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyInt, PySequence, PyString};
use ruleguider::graph::{
    DataFile, Dataset, Division, EntityId, GraphError, MemoryTriples, ReadOptions, SplitShares, Triple,
    Vocabulary, read,
};
use ruleguider::report::figure;
use ruleguider::run::Source;
use std::path::PathBuf;
use std::sync::Arc;

/// An array of triple ids, one row per triple.
type Ids<'py> = Bound<'py, PyAny>;
/// Heads, relations and tails.
type Columns<'py> = [Bound<'py, PySequence>; 3];

/// A data set: names, facts, and what is held out of them.
#[pyclass(frozen, module = "ruleguider._ruleguider")]
pub struct Graph {
    pub source: Source,
    pub dataset: Dataset,
}

/// How triples without splits are divided, if at all.
pub fn division(split: Option<[f64; 3]>, seed: u64) -> PyResult<Option<Division>> {
    let Some([train, valid, test]) = split else { return Ok(None) };
    let shares: SplitShares = format!("{train},{valid},{test}").parse().map_err(wrong)?;
    Ok(Some(Division { shares, seed }))
}

fn made(py: Python<'_>, name: String, triples: MemoryTriples, division: Option<Division>) -> PyResult<Graph> {
    let dataset = work(py, None, move |_| Ok(triples.into_dataset(division)?))?;
    Ok(Graph { source: Source::Memory { name }, dataset })
}

#[pymethods]
impl Graph {
    /// Reads a folder of splits or a file of triples. With a name it is a temporary file of what was in memory.
    #[staticmethod]
    #[pyo3(signature = (path, split, seed, header, name))]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        split: Option<[f64; 3]>,
        seed: u64,
        header: Option<bool>,
        name: Option<String>,
    ) -> PyResult<Self> {
        let division = division(split, seed)?;
        let (source, dataset) = work(py, None, move |_| {
            // Without a division a file is read as a whole, and need not have splits.
            let whole = division.is_none() && !path.is_dir() && !DataFile::is_one(&path);
            let shares = match division {
                Some(division) => division.shares,
                None if whole => SplitShares::WHOLE,
                None => SplitShares::default(),
            };
            let incomplete = whole || (name.is_some() && division.is_none());
            let options = ReadOptions { shares, seed, header, incomplete, ..ReadOptions::default() };
            let source = match name {
                Some(name) => Source::Memory { name },
                None => Source::of(&path, &options)?,
            };
            let dataset = read(&path, &options)?;
            // Read again, the file would be divided.
            let source = if whole { Source::Memory { name: source.name() } } else { source };
            Ok((source, dataset))
        })?;
        Ok(Self { source, dataset })
    }

    /// The built-in demonstration graph.
    #[staticmethod]
    fn demonstration() -> Self {
        Self { source: Source::Demonstration, dataset: ruleguider::generate::demonstration() }
    }

    /// The graph that was packed, called `name`.
    #[staticmethod]
    fn unpack(py: Python<'_>, name: String, bytes: PyBackedBytes) -> PyResult<Self> {
        let dataset = work(py, None, move |_| Ok(DataFile::of_bytes("a packed graph", &bytes)?.dataset))?;
        Ok(Self { source: Source::Memory { name }, dataset })
    }

    /// All of it as bytes, to be sent to other processes.
    fn pack<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let dataset = self.dataset.clone();
        let bytes = work(py, None, move |_| Ok(DataFile::to_bytes(&dataset)))?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Triples of ids.
    #[staticmethod]
    #[pyo3(signature = (name, train, valid, test, entities, relations, split, seed))]
    #[allow(clippy::too_many_arguments)]
    fn from_ids(
        py: Python<'_>,
        name: String,
        train: Ids<'_>,
        valid: Option<Ids<'_>>,
        test: Option<Ids<'_>>,
        entities: Option<Bound<'_, PySequence>>,
        relations: Option<Bound<'_, PySequence>>,
        split: Option<[f64; 3]>,
        seed: u64,
    ) -> PyResult<Self> {
        let division = division(split, seed)?;
        let train = numbered(&train)?;
        let [valid, test] = [valid, test].map(|ids| ids.as_ref().map(numbered).transpose());
        let (valid, test) = (valid?, test?);
        let [entities, relations] = [("entities", entities), ("relations", relations)]
            .map(|(what, names)| names.as_ref().map(|names| vocabulary(what, names)).transpose());
        let (entities, relations) = (entities?, relations?);
        let triples =
            work(py, None, move |_| Ok(MemoryTriples::numbered(train, valid, test, entities, relations)?))?;
        made(py, name, triples, division)
    }

    /// Triples of names, as columns of heads, relations and tails.
    #[staticmethod]
    #[pyo3(signature = (name, train, valid, test, split, seed))]
    fn from_names(
        py: Python<'_>,
        name: String,
        train: Columns<'_>,
        valid: Option<Columns<'_>>,
        test: Option<Columns<'_>>,
        split: Option<[f64; 3]>,
        seed: u64,
    ) -> PyResult<Self> {
        let division = division(split, seed)?;
        let mut triples = MemoryTriples::default();
        triples.train = named(&mut triples, "train", &train)?;
        triples.valid = valid.map(|columns| named(&mut triples, "valid", &columns)).transpose()?;
        triples.test = test.map(|columns| named(&mut triples, "test", &columns)).transpose()?;
        made(py, name, triples, division)
    }

    /// The same graph with readable labels for some entities; how many of the labels belong to none is the second.
    fn with_labels(&self, labels: Vec<(String, String)>) -> (Self, usize) {
        let mut dataset = self.dataset.clone();
        let names = Arc::make_mut(&mut dataset.names);
        let mut unused = 0;
        for (name, label) in labels {
            match names.entities.get(&name) {
                Some(id) => names.labels.insert(EntityId(id), label),
                None => unused += 1,
            }
        }
        // Reading the file again would lose the labels.
        (Self { source: Source::Memory { name: self.source.name() }, dataset }, unused)
    }

    /// What it is called.
    #[getter]
    fn name(&self) -> String {
        self.source.name()
    }

    /// How many entities, relations, facts, validation and test triples there are.
    #[getter]
    fn sizes(&self) -> (usize, usize, usize, usize, usize) {
        let Dataset { names, known, test, .. } = &self.dataset;
        (names.entities.len(), names.relations.len(), known.facts.len(), known.valid.len(), test.len())
    }

    /// The names of entities, in the order of their ids.
    #[getter]
    fn entities(&self) -> Vec<&str> {
        self.dataset.names.entities.iter().collect()
    }

    /// The names of relations, in the order of their ids.
    #[getter]
    fn relations(&self) -> Vec<&str> {
        self.dataset.names.relations.iter().collect()
    }

    /// The ids of the triples of a split.
    fn triples(&self, split: &str) -> PyResult<View> {
        let Dataset { known, test, .. } = &self.dataset;
        Ok(View::triples(match split {
            "train" => known.facts.clone(),
            "valid" => known.valid.clone(),
            "test" => test.clone(),
            other => return Err(wrong(format!("split: expected train, valid or test, found `{other}`"))),
        }))
    }

    /// Figures about it, as JSON.
    fn statistics(&self, py: Python<'_>) -> PyResult<String> {
        let dataset = self.dataset.clone();
        let statistics = work(py, None, move |_| Ok(ruleguider::graph::Statistics::new(&dataset)))?;
        Ok(serde_json::to_string(&statistics).expect("plain data"))
    }

    /// A picture for a notebook.
    fn html(&self, py: Python<'_>, plain: String) -> PyResult<String> {
        let dataset = self.dataset.clone();
        work(py, None, move |_| Ok(figure::graph(&dataset, &plain)))
    }
}

/// Which of a table's columns are heads, relations and tails.
#[pyfunction]
pub fn triple_columns(columns: Vec<String>) -> PyResult<[usize; 3]> {
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    ruleguider::graph::triple_columns(&columns).map_err(|error| raised(error.into()))
}

/// The columns of a table that say something beside its facts, each with what it is.
#[pyfunction]
pub fn beside_columns(columns: Vec<String>) -> Vec<(usize, &'static str)> {
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    ruleguider::graph::beside_columns(&columns)
}

/// Triples from columns of names.
fn named(triples: &mut MemoryTriples, split: &str, columns: &Columns<'_>) -> PyResult<Vec<Triple>> {
    let rows = columns[0].len()?;
    let mut facts = Vec::with_capacity(rows);
    for row in 0..rows {
        let place = |error: &dyn std::fmt::Display| wrong(format!("{split}, row {row}: {error}"));
        let [head, relation, tail] = columns.each_ref().map(|column| {
            let item = column.get_item(row)?;
            text(&item).map_err(|error| place(&error))
        });
        let (head, relation, tail) = (head?, relation?, tail?);
        let words = [head.to_str()?, relation.to_str()?, tail.to_str()?];
        facts.push(triples.number(words).map_err(|error: GraphError| place(&error))?);
    }
    Ok(facts)
}

/// A name: text, or a whole number as text.
fn text<'py>(item: &Bound<'py, PyAny>) -> Result<Bound<'py, PyString>, String> {
    if let Ok(text) = item.cast::<PyString>() {
        return Ok(text.clone());
    }
    // NumPy numbers are integers if they have `__index__`.
    let index = item.call_method0("__index__").ok().filter(|index| index.is_instance_of::<PyInt>());
    match index.and_then(|index| index.str().ok()) {
        Some(text) => Ok(text),
        None => {
            let kind = item.get_type().name().map_or_else(|_| "?".to_owned(), |name| name.to_string());
            Err(format!("expected a name (text or a whole number), found {kind} {item}"))
        }
    }
}

/// The names of ids.
fn vocabulary(what: &str, names: &Bound<'_, PySequence>) -> PyResult<Vocabulary> {
    let mut all: Vec<String> = Vec::with_capacity(names.len()?);
    for name in names.try_iter()? {
        all.push(text(&name?).map_err(|error| wrong(format!("{what}: {error}")))?.to_string());
    }
    Vocabulary::distinct(all.iter().map(String::as_str)).map_err(|error| wrong(format!("{what}: {error}")))
}
