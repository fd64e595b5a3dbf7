//! Answers: one prediction as JSON, and many of them, converted on access.

use pyo3::exceptions::PyIndexError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use ruleguider::Model;
use ruleguider::ask::{Answer, HeldOut, Prediction};
use serde::Serialize;
use serde_json::Value;
use std::sync::Arc;

/// Adds the reason in one line to the JSON of an answer.
fn add_reason(data: &mut Value, answer: &Answer, _model: &Model) {
    data["reason"] = answer.reason_in_words().into();
}

/// A result as JSON, with the reason of each of its answers in one line. The library's own type is written as a whole: a
/// key that it gets cannot be missing here.
pub fn json(result: &impl Serialize, answers: &[Answer], instead: Option<&Answer>, model: &Model) -> String {
    let mut data = serde_json::to_value(result).expect("results are plain data");
    for (at, answer) in answers.iter().enumerate() {
        add_reason(&mut data["answers"][at], answer, model);
    }
    if let Some(answer) = instead {
        add_reason(&mut data["instead"], answer, model);
    }
    data.to_string()
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
        Ok(json(&**prediction, &prediction.answers, None, &self.model))
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
        let _naming = self.model.naming();
        columns.set_item("query", PyList::new(py, rows().map(|row| row.0))?)?;
        columns.set_item("subject", PyList::new(py, rows().map(|row| &*row.1.subject))?)?;
        columns.set_item("relation", PyList::new(py, rows().map(|row| &*row.1.relation))?)?;
        columns.set_item("inverse", PyList::new(py, rows().map(|row| row.1.inverse))?)?;
        columns.set_item("rank", PyList::new(py, rows().map(|row| row.2))?)?;
        columns.set_item("entity", PyList::new(py, rows().map(|row| &*row.3.entity))?)?;
        columns.set_item("label", PyList::new(py, rows().map(|row| &*row.3.label))?)?;
        columns.set_item("probability", PyList::new(py, rows().map(|row| row.3.probability.0))?)?;
        columns.set_item("probability_rough", PyList::new(py, rows().map(|row| row.3.probability_rough))?)?;
        columns.set_item("score", PyList::new(py, rows().map(|row| row.3.score))?)?;
        let rule = |row: (u64, &'_ Arc<Prediction>, u64, &'_ Answer)| {
            row.3.reason.rule.as_ref().map(|rule| (rule.text.clone(), rule.confidence))
        };
        columns.set_item("rule", PyList::new(py, rows().map(|row| rule(row).map(|rule| rule.0)))?)?;
        columns.set_item("confidence", PyList::new(py, rows().map(|row| rule(row).map(|rule| rule.1)))?)?;
        let held = |answer: &Answer| answer.held_out.map(HeldOut::split);
        columns.set_item("held_out", PyList::new(py, rows().map(|row| held(row.3)))?)?;
        columns.set_item("reason", PyList::new(py, rows().map(|row| row.3.reason_in_words()))?)?;
        Ok(columns)
    }
}
