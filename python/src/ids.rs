//! Ids of triples from NumPy's memory, read in place.
#![allow(unsafe_code)]

use crate::error::wrong;
use pyo3::prelude::*;
use ruleguider::graph::Triple;

/// The triples of a contiguous array of 64-bit integers of shape (n, 3).
///
/// # Errors
/// If the array has another type or layout, or a number is not a valid id.
pub fn numbered(array: &Bound<'_, PyAny>) -> PyResult<Vec<Triple>> {
    let interface = array.getattr("__array_interface__")?;
    let shape: Vec<usize> = interface.get_item("shape")?.extract()?;
    let kind: String = interface.get_item("typestr")?.extract()?;
    let strides = interface.get_item("strides")?;
    if shape.len() != 2 || shape[1] != 3 || kind != "<i8" || !strides.is_none() {
        return Err(wrong(format!(
            "expected a contiguous array of 64-bit ids of shape (n, 3), found {kind} {shape:?}"
        )));
    }
    if shape[0] == 0 {
        return Ok(Vec::new());
    }
    let (address, _): (usize, bool) = interface.get_item("data")?.extract()?;
    // SAFETY: NumPy describes its own memory: this many integers, aligned, alive as long as the array, which is
    // borrowed. No Python code writes to it while this thread holds the interpreter's lock, and a number that other
    // code does change is checked like any other.
    let ids = unsafe { std::slice::from_raw_parts(address as *const i64, 3 * shape[0]) };
    let fact = |row: &[i64]| -> Option<Triple> {
        // The largest `u32` is not an id: the number of ids must fit, too.
        let id = |at: usize| u32::try_from(row[at]).ok().filter(|&id| id != u32::MAX);
        Some(Triple::new(id(0)?, id(1)?, id(2)?))
    };
    let facts: Option<Vec<Triple>> = ids.chunks_exact(3).map(fact).collect();
    facts.ok_or_else(|| {
        let found = ids.iter().find(|id| !(0..i64::from(u32::MAX)).contains(*id));
        wrong(format!("expected ids from 0 to {}, found {}", u32::MAX - 1, found.unwrap_or(&0)))
    })
}
