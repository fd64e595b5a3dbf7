//! Errors: `ValueError` where the arguments are at fault, `ruleguider.Error` for everything else, with the library's line.

use pyo3::exceptions::{PyException, PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use ruleguider::ask::AskError;
use serde::de::DeserializeOwned;
use std::error::Error as _;

pyo3::create_exception!(
    ruleguider,
    Error,
    PyException,
    "Learning or answering failed for a reason other than wrong arguments."
);

/// The exception for an error of the library: the error and its causes in one line.
pub fn raised(error: AskError) -> PyErr {
    if error.is_interrupted() {
        return PyKeyboardInterrupt::new_err(error.to_string());
    }
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let text = error.to_string();
        if !line.contains(&text) {
            line.push_str(": ");
            line.push_str(&text);
        }
        cause = error.source();
    }
    if error.is_mistake() { PyValueError::new_err(line) } else { Error::new_err(line) }
}

/// A `ValueError`.
pub fn wrong(message: impl Into<String>) -> PyErr {
    PyValueError::new_err(message.into())
}

/// Parses the value `word` of the argument `name`.
pub fn chosen<T: DeserializeOwned>(name: &str, word: &str) -> PyResult<T> {
    serde_json::from_value(serde_json::Value::String(word.to_owned()))
        .map_err(|error| wrong(format!("{name}: {error}")))
}
