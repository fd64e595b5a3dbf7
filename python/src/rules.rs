//! Rules: mined, read, applied, and as a table.

use crate::error::{chosen, raised, wrong};
use crate::graph::Graph;
use crate::job::work;
use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use ruleguider::ask::{AppliedRules, AskError, DrawnRule, NameIndex, Naming};
use ruleguider::eval::{Protocol, Split, Unseen};
use ruleguider::graph::{DataFile, Dataset, Link, Names, RelationId};
use ruleguider::report::figure;
use ruleguider::rule::{
    ApplyOptions, Confidence, MineOptions, MiningBudget, RuleFile, ScoredRule, UNSEEN, write_lines,
    write_rules,
};
use ruleguider::shard::Shard;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// The most rules that a picture shows.
const DRAWN: usize = 12;

/// Rules over the names of a graph, the most confident first where they were mined.
#[pyclass(frozen, module = "ruleguider._ruleguider")]
pub struct Rules {
    pub rules: Arc<[ScoredRule]>,
    pub names: Arc<Names>,
    naming: OnceLock<Naming>,
    /// The share of the counting that was done before mining ended, if the rules were mined.
    saturation: Option<f64>,
}

impl Rules {
    /// `rules` over `names`.
    pub fn new(rules: Arc<[ScoredRule]>, names: &Arc<Names>) -> Self {
        Self { rules, names: Arc::clone(names), naming: OnceLock::new(), saturation: None }
    }

    fn drawn(&self, scored: &ScoredRule) -> DrawnRule {
        DrawnRule::new(scored, &self.names, self.naming.get_or_init(|| Naming::new(&self.names)))
    }

    fn some(&self, kept: impl Fn(&ScoredRule) -> bool) -> Self {
        let rules = self.rules.iter().filter(|scored| kept(scored)).cloned().collect();
        Self::new(rules, &self.names)
    }
}

#[pymethods]
impl Rules {
    /// Reads a file in AnyBURL's format.
    #[staticmethod]
    fn read(py: Python<'_>, path: PathBuf, graph: &Graph) -> PyResult<Self> {
        let names = Arc::clone(&graph.dataset.names);
        let rules = work(py, None, move |_| Ok(RuleFile::read(&path, &names)?.rules))?;
        Ok(Self::new(rules.into(), &graph.dataset.names))
    }

    fn __len__(&self) -> usize {
        self.rules.len()
    }

    /// The rule of this number, as JSON.
    fn get(&self, index: usize) -> PyResult<String> {
        let scored = self.rules.get(index).ok_or_else(|| PyIndexError::new_err("no such rule"))?;
        Ok(serde_json::to_string(&self.drawn(scored)).expect("a rule is plain data"))
    }

    #[getter]
    fn saturation(&self) -> Option<f64> {
        self.saturation
    }

    /// Those from one number to another.
    fn slice(&self, start: usize, stop: usize, step: usize) -> Self {
        let end = stop.min(self.rules.len()).max(start);
        let rules = self.rules[start.min(end)..end].iter().step_by(step).cloned().collect();
        Self::new(rules, &self.names)
    }

    /// Those for one relation, and with at least this confidence.
    fn select(&self, head: Option<&str>, min_confidence: f64) -> PyResult<Self> {
        let head = head.map(|head| relation(&self.names, head)).transpose().map_err(raised)?;
        Ok(self.some(|scored| {
            head.is_none_or(|head| scored.rule.relation() == head)
                && scored.counts.confidence(UNSEEN) >= min_confidence
        }))
    }

    /// The rules as the columns of a table.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let drawn: Vec<DrawnRule> = self.rules.iter().map(|scored| self.drawn(scored)).collect();
        let kind = |rule: &DrawnRule| format!("{:?}", rule.rule_type).to_lowercase();
        let columns = PyDict::new(py);
        columns.set_item("relation", PyList::new(py, drawn.iter().map(|rule| &*rule.relation))?)?;
        columns.set_item("rule", PyList::new(py, drawn.iter().map(|rule| &*rule.rule.text))?)?;
        columns.set_item("type", PyList::new(py, drawn.iter().map(kind))?)?;
        columns.set_item("length", PyList::new(py, drawn.iter().map(|rule| rule.path.len()))?)?;
        columns.set_item("confidence", PyList::new(py, drawn.iter().map(|rule| rule.rule.confidence))?)?;
        columns.set_item("correct", PyList::new(py, drawn.iter().map(|rule| rule.rule.correct))?)?;
        columns.set_item("predicted", PyList::new(py, drawn.iter().map(|rule| rule.rule.predicted))?)?;
        columns.set_item("sampled", PyList::new(py, drawn.iter().map(|rule| rule.sampled))?)?;
        Ok(columns)
    }

    /// Writes them in AnyBURL's format.
    fn save(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let (rules, names) = (Arc::clone(&self.rules), Arc::clone(&self.names));
        work(py, None, move |_| Ok(write_rules(&path, &rules, &names)?))
    }

    /// The rules as the lines of a rule file, and the names that they are written with, to be sent to other processes.
    fn pack<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let mut lines = Vec::new();
        write_lines(&mut lines, &self.rules, &self.names)?;
        let names = DataFile::to_bytes(&Dataset { names: Arc::clone(&self.names), ..Dataset::default() });
        Ok((PyBytes::new(py, &lines), PyBytes::new(py, &names)))
    }

    /// The rules that were packed.
    #[staticmethod]
    fn unpack(py: Python<'_>, rules: Vec<u8>, names: Vec<u8>) -> PyResult<Self> {
        let (rules, names) = work(py, None, move |_| {
            let names = DataFile::of_bytes("packed rules", &names)?.dataset.names;
            let read = RuleFile::read_from(&mut rules.as_slice(), Path::new("packed rules"), &names)?;
            Ok((read.rules, names))
        })?;
        Ok(Self::new(rules.into(), &names))
    }

    /// A picture for a notebook.
    fn html(&self, plain: &str) -> String {
        let drawn: Vec<DrawnRule> = self.rules.iter().take(DRAWN).map(|scored| self.drawn(scored)).collect();
        figure::rules(&drawn, self.rules.len(), plain)
    }
}

fn relation(names: &Arc<Names>, text: &str) -> Result<RelationId, AskError> {
    if let Some(id) = names.relations.get(text) {
        return Ok(RelationId(id));
    }
    let link: Link = NameIndex::new(names).link(text)?;
    link.relation().ok_or_else(|| AskError::Cannot(format!("`{text}` is not a relation of the graph")))
}

/// What to mine and how. What is `None` is as the library has it.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub struct Mining {
    types: Option<Vec<String>>,
    seconds: Option<f64>,
    samples: Option<u64>,
    saturate: bool,
    max_length: Option<usize>,
    max_acyclic_length: Option<usize>,
    min_support: Option<u64>,
    min_confidence: Option<f64>,
    unseen: Option<f64>,
    object_identity: bool,
    heads: Vec<String>,
    max_bodies: Option<usize>,
    max_groundings: Option<u64>,
    confidence: Option<String>,
    learn_valid: bool,
    seed: u64,
}

impl Mining {
    fn options(&self, names: &Arc<Names>) -> PyResult<MineOptions> {
        let usual = MineOptions::default();
        let named = |words: &Vec<String>| words.iter().map(|word| chosen("types", word)).collect();
        let heads: Result<_, AskError> = self.heads.iter().map(|head| relation(names, head)).collect();
        let budget = match (self.seconds, self.samples, self.saturate) {
            (Some(seconds), None, false) => MiningBudget::Seconds(seconds),
            (None, Some(samples), false) => MiningBudget::Samples(samples),
            (None, None, true) => MiningBudget::Saturation,
            (None, None, false) => usual.budget,
            _ => return Err(wrong("seconds, samples and saturate: give one of them")),
        };
        Ok(MineOptions {
            types: self.types.as_ref().map_or(Ok(usual.types), named)?,
            min_length: usual.min_length,
            max_length: self.max_length.unwrap_or(usual.max_length),
            max_acyclic_length: self.max_acyclic_length.unwrap_or(usual.max_acyclic_length),
            budget,
            seed: self.seed,
            min_support: self.min_support.unwrap_or(usual.min_support),
            min_confidence: self.min_confidence.unwrap_or(usual.min_confidence),
            unseen: self.unseen.unwrap_or(usual.unseen),
            distinct: self.object_identity,
            heads: heads.map_err(raised)?,
            max_bodies: self.max_bodies.unwrap_or(usual.max_bodies),
            keep: usual.keep,
            max_groundings: self.max_groundings.unwrap_or(usual.max_groundings),
        })
    }

    /// The data to mine.
    fn dataset(&self, graph: &Graph) -> Dataset {
        let mut dataset = graph.dataset.clone();
        if self.learn_valid {
            dataset.known = dataset.known.with_valid_learnt();
        }
        dataset
    }
}

/// Finds rules.
#[pyfunction]
#[pyo3(signature = (graph, mining, bars))]
pub fn mine(
    py: Python<'_>,
    graph: &Graph,
    mining: Mining,
    bars: Option<Bound<'_, PyAny>>,
) -> PyResult<Rules> {
    let names = &graph.dataset.names;
    let (options, dataset) = (mining.options(names)?, mining.dataset(graph));
    let confidence =
        mining.confidence.as_ref().map_or(Ok(Confidence::default()), |word| chosen("confidence", word))?;
    if confidence == Confidence::Validation && mining.learn_valid {
        return Err(wrong(
            "confidence: validation cannot be used if the validation split is learnt; give standard or pca",
        ));
    }
    let mined = work(py, bars.as_ref(), move |progress| {
        let apply =
            ApplyOptions { unseen: options.unseen, distinct: options.distinct, ..ApplyOptions::default() };
        let by_validation = ruleguider::run::Mining {
            graph: &dataset.graph(),
            known: &dataset.known,
            options: &options,
            apply: &apply,
            judged_by: (!mining.learn_valid).then_some(&dataset.known),
            longer: mining.max_length.is_none(),
            confidence,
        };
        Ok(by_validation.mine(progress)?.0)
    })?;
    Ok(Rules { saturation: Some(mined.saturation), ..Rules::new(mined.rules.into(), names) })
}

/// Finds the rules of a part, into the file `out`; what became of it, as JSON.
#[pyfunction]
#[pyo3(signature = (graph, mining, shard, out, bars))]
pub fn mine_shard(
    py: Python<'_>,
    graph: &Graph,
    mining: Mining,
    shard: &str,
    out: PathBuf,
    bars: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let shard: Shard = shard.parse().map_err(|error: String| wrong(error))?;
    let (options, dataset) = (mining.options(&graph.dataset.names)?, mining.dataset(graph));
    work(py, bars.as_ref(), move |progress| {
        let made = ruleguider::ask::mine_shard(&dataset, &options, shard, &out, progress)?;
        Ok(serde_json::to_string(&made).expect("a report is plain data"))
    })
}

/// Whether a file is a whole part.
#[pyfunction]
pub fn is_whole(py: Python<'_>, part: PathBuf) -> PyResult<bool> {
    work(py, None, move |_| Ok(ruleguider::shard::is_whole(&part)))
}

/// Puts the parts of a work together; what came of it, as JSON.
#[pyfunction]
pub fn merge(py: Python<'_>, parts: Vec<PathBuf>, out: Option<PathBuf>) -> PyResult<String> {
    work(py, None, move |_| {
        let merged = ruleguider::ask::merge(&parts, out.as_deref())?;
        Ok(serde_json::to_string(&merged).expect("plain data"))
    })
}

/// Ranks a split by rules alone; the figures as JSON.
#[pyfunction]
#[pyo3(signature = (graph, rules, split, direction, ties, leave_out_unseen, aggregate, noisy_or_rules, top, unseen,
    open_weight, zero_weight, long_weight, object_identity, by_frequency, learn_valid, predictions, bars))]
#[allow(clippy::too_many_arguments)]
pub fn apply(
    py: Python<'_>,
    graph: &Graph,
    rules: &Rules,
    split: &str,
    direction: &str,
    ties: &str,
    leave_out_unseen: bool,
    aggregate: Option<&str>,
    noisy_or_rules: Option<usize>,
    top: Option<usize>,
    unseen: Option<f64>,
    open_weight: Option<f64>,
    zero_weight: Option<f64>,
    long_weight: Option<f64>,
    object_identity: bool,
    by_frequency: bool,
    learn_valid: bool,
    predictions: Option<PathBuf>,
    bars: Option<Bound<'_, PyAny>>,
) -> PyResult<String> {
    let usual = ApplyOptions::default();
    let options = ApplyOptions {
        aggregate: aggregate.map_or(Ok(usual.aggregate), |word| chosen("aggregate", word))?,
        noisy_or_rules: noisy_or_rules.unwrap_or(usual.noisy_or_rules),
        top: top.unwrap_or(usual.top),
        unseen: unseen.unwrap_or(usual.unseen),
        open_weight: open_weight.unwrap_or(usual.open_weight),
        zero_weight: zero_weight.unwrap_or(usual.zero_weight),
        long_weight: long_weight.unwrap_or(usual.long_weight),
        distinct: object_identity,
        by_frequency,
    };
    let (split, protocol) = (split_of(split)?, protocol(direction, ties, leave_out_unseen, true)?);
    if !Arc::ptr_eq(&rules.names, &graph.dataset.names) {
        return Err(wrong("these rules belong to another graph; save them and read them with this one"));
    }
    let (dataset, rules) = (graph.dataset.clone(), Arc::clone(&rules.rules));
    work(py, bars.as_ref(), move |progress| {
        let applied = AppliedRules::new(&dataset, rules, options, split, learn_valid)?;
        let report = applied.evaluate(protocol, progress)?;
        if let Some(path) = predictions {
            applied.write_predictions(&path, progress)?;
        }
        Ok(serde_json::to_string(&report).expect("a report is plain data"))
    })
}

/// The split that users name; the third kind of ranking is for published figures alone.
pub fn split_of(word: &str) -> PyResult<Split> {
    match word {
        "test" => Ok(Split::Test),
        "valid" => Ok(Split::Valid),
        _ => Err(wrong(format!("split: expected `test` or `valid`, found `{word}`"))),
    }
}

/// How queries are asked and ranked.
pub fn protocol(direction: &str, ties: &str, leave_out_unseen: bool, all: bool) -> PyResult<Protocol> {
    Ok(Protocol {
        side: chosen("direction", direction)?,
        ties: chosen("ties", ties)?,
        unseen: if leave_out_unseen { Unseen::LeaveOut } else { Unseen::Keep },
        all,
        most: None,
    })
}
