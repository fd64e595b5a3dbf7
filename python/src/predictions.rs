//! Answers: one prediction as JSON, and many of them, converted on access.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use ruleguider::Model;
use ruleguider::ask::{Answer, HeldOut, Prediction};
use serde::Serialize;
use std::sync::Arc;

/// An answer with its reason in one line.
#[derive(Serialize)]
pub struct Worded<'a> {
    #[serde(flatten)]
    answer: &'a Answer,
    reason: String,
}

impl<'a> Worded<'a> {
    /// `answer`, with the model's display names.
    pub fn new(answer: &'a Answer, model: &Model) -> Self {
        Self { answer, reason: answer.reason_in_words(model.naming()) }
    }
}

/// A prediction as JSON, with every answer's reason in words.
pub fn json(prediction: &Prediction, model: &Model) -> String {
    #[derive(Serialize)]
    struct Said<'a> {
        subject: &'a str,
        relation: &'a str,
        inverse: bool,
        answers: Vec<Worded<'a>>,
        known: &'a [String],
        known_ids: &'a [String],
    }
    let Prediction { subject, relation, inverse, answers, known, known_ids, .. } = prediction;
    let answers = answers.iter().map(|answer| Worded::new(answer, model)).collect();
    let said = Said { subject, relation, inverse: *inverse, answers, known, known_ids };
    serde_json::to_string(&said).expect("a prediction is plain data")
}

/// The answers to many queries, in their order.
#[pyclass(frozen, module = "ruleguider._ruleguider")]
pub struct Predictions {
    pub model: Arc<Model>,
    pub all: Vec<Arc<Prediction>>,
}

#[pymethods]
impl Predictions {
    fn __len__(&self) -> usize {
        self.all.len()
    }

    /// The answers to the query of this number, as JSON.
    fn get(&self, index: usize) -> PyResult<String> {
        let prediction = self.all.get(index).ok_or_else(|| PyIndexError::new_err("no such prediction"))?;
        Ok(json(prediction, &self.model))
    }

    /// All answers as the columns of one table, a row each.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let rows = || {
            self.all.iter().zip(0u64..).flat_map(|(prediction, query)| {
                prediction
                    .answers
                    .iter()
                    .zip(1u64..)
                    .map(move |(answer, place)| (query, prediction, place, answer))
            })
        };
        let columns = PyDict::new(py);
        let naming = self.model.naming();
        columns.set_item("query", PyList::new(py, rows().map(|row| row.0))?)?;
        columns.set_item("subject", PyList::new(py, rows().map(|row| &*row.1.subject))?)?;
        columns.set_item("relation", PyList::new(py, rows().map(|row| &*row.1.relation))?)?;
        columns.set_item("inverse", PyList::new(py, rows().map(|row| row.1.inverse))?)?;
        columns.set_item("rank", PyList::new(py, rows().map(|row| row.2))?)?;
        columns.set_item("entity", PyList::new(py, rows().map(|row| &*row.3.entity))?)?;
        columns.set_item("label", PyList::new(py, rows().map(|row| &*row.3.label))?)?;
        columns.set_item("probability", PyList::new(py, rows().map(|row| row.3.probability.0))?)?;
        columns.set_item("score", PyList::new(py, rows().map(|row| row.3.score))?)?;
        let rule = |row: (u64, &'_ Arc<Prediction>, u64, &'_ Answer)| {
            row.3.reason.rule.as_ref().map(|rule| (rule.text.clone(), rule.confidence))
        };
        columns.set_item("rule", PyList::new(py, rows().map(|row| rule(row).map(|rule| rule.0)))?)?;
        columns.set_item("confidence", PyList::new(py, rows().map(|row| rule(row).map(|rule| rule.1)))?)?;
        let held = |answer: &Answer| answer.held_out.map(HeldOut::split);
        columns.set_item("held_out", PyList::new(py, rows().map(|row| held(row.3)))?)?;
        columns.set_item("reason", PyList::new(py, rows().map(|row| row.3.reason_in_words(naming)))?)?;
        Ok(columns)
    }
}
