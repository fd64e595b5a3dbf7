//! `Graph`: triples from a file, from ids or from names, with their splits.

use crate::error::{raised, wrong};
use crate::ids::numbered;
use crate::job::work;
use crate::view::View;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyInt, PySequence, PyString};
use ruleguider::graph::sparql::{Endpoint, Patience, cache, is_endpoint};
use ruleguider::graph::{
    ColumnChoice, DataFile, Dataset, Division, EntityId, GraphError, MemoryTriples, ReadOptions, SplitShares,
    Time, Triple, Vocabulary, divided_by_time, read,
};
use ruleguider::report::figure;
use ruleguider::run::Source;
use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::str::FromStr;
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

/// How files are read, beside how they are divided.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Reading {
    header: Option<bool>,
    columns: Option<String>,
    graph: Option<String>,
    literals: Option<String>,
    conflicts: Option<String>,
    split_time: Option<String>,
    /// What an endpoint is asked.
    query: Option<String>,
}

/// The value of the argument `name`, if it was given.
fn parsed<T: FromStr<Err = String>>(name: &str, given: Option<&String>) -> PyResult<Option<T>> {
    given.map(|text| text.parse().map_err(|error| wrong(format!("{name}: {error}")))).transpose()
}

impl Reading {
    fn options(&self) -> PyResult<ReadOptions> {
        let since = parsed("split_time", self.split_time.as_ref())?;
        Ok(ReadOptions {
            shares: SplitShares { since, ..SplitShares::default() },
            header: self.header,
            columns: parsed::<ColumnChoice>("columns", self.columns.as_ref())?,
            named_graph: self.graph.clone(),
            literals: parsed("literals", self.literals.as_ref())?.unwrap_or_default(),
            conflicts: parsed("conflicts", self.conflicts.as_ref())?.unwrap_or_default(),
            ..ReadOptions::default()
        })
    }

    /// The file to read for `path`: that of an endpoint has what came from it.
    fn place<'p>(&self, path: &'p Path) -> Result<Cow<'p, Path>, GraphError> {
        if !is_endpoint(path) {
            return Ok(Cow::Borrowed(path));
        }
        let endpoint = Endpoint::new(path, self.graph.clone(), self.query.clone())?;
        endpoint.fetch(&cache()?, Patience::default(), &mut |_| {}).map(Cow::Owned)
    }
}

fn made(py: Python<'_>, name: String, triples: MemoryTriples, division: Option<Division>) -> PyResult<Graph> {
    let dataset = work(py, None, move |_| Ok(triples.into_dataset(division)?))?;
    Ok(Graph { source: Source::Memory { name }, dataset })
}

#[pymethods]
impl Graph {
    /// Reads a folder of splits, a file of triples or an endpoint. With a name it is a temporary file of what was in memory.
    #[staticmethod]
    #[pyo3(signature = (path, split, seed, reading, name))]
    fn read(
        py: Python<'_>,
        path: PathBuf,
        split: Option<[f64; 3]>,
        seed: u64,
        reading: Reading,
        name: Option<String>,
    ) -> PyResult<Self> {
        let (division, options) = (division(split, seed)?, reading.options()?);
        let (source, dataset) = work(py, None, move |_| {
            let path = reading.place(&path)?;
            let by_time = options.shares.since.is_some();
            // Without a division all facts are read as a whole unless they have splits, which they need not have.
            let whole = division.is_none() && !by_time && !DataFile::is_one(&path);
            let shares = match division {
                _ if by_time => options.shares,
                Some(division) => division.shares,
                None if whole => SplitShares::WHOLE,
                None => SplitShares::default(),
            };
            let options = ReadOptions { shares, seed, incomplete: whole, ..options };
            let source = match name {
                Some(name) => Source::Memory { name },
                None => Source::of(&path, &options)?,
            };
            let dataset = read(&path, &options)?;
            // Read again, it would be divided.
            let source = if whole && dataset.known.valid.is_empty() {
                Source::Memory { name: source.name() }
            } else {
                source
            };
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

    /// The same graph, divided by when its facts were stated.
    fn by_time(&self, py: Python<'_>, since: String) -> PyResult<Self> {
        let since: Time = since.parse().map_err(|error| wrong(format!("split_time: {error}")))?;
        let (whole, source) = (self.dataset.clone(), Source::Memory { name: self.source.name() });
        let dataset = work(py, None, move |_| {
            let divided = divided_by_time(&whole, since);
            Ok(divided.map_err(|[expected, found]| {
                GraphError::Data(format!("split_time: expected {expected}, found {found}"))
            })?)
        })?;
        Ok(Self { source, dataset })
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

/// The columns of a table that a user chose: those of subject, relation (if it has one) and object, and the columns that say
/// something beside facts, each with what it is.
#[pyfunction]
#[allow(clippy::type_complexity)]
pub fn chosen_columns(
    choice: String,
    columns: Vec<String>,
) -> PyResult<((usize, Option<usize>, usize), Vec<(usize, &'static str)>)> {
    let columns: Vec<&str> = columns.iter().map(String::as_str).collect();
    let choice: ColumnChoice = parsed("columns", Some(&choice))?.expect("a choice was given");
    let chosen =
        ruleguider::graph::chosen_columns(&choice, &columns).map_err(|error| raised(error.into()))?;
    Ok(((chosen.subject, chosen.relation, chosen.object), chosen.beside))
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
