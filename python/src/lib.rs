//! The compiled half of the Python package `ruleguider`: wrappers around the library's front door, no logic of its own.
//!
//! The Python side (`ruleguider/`) turns users' inputs into paths, arrays and lists, and results into small classes.
//! Results cross as JSON with the keys of the command line; triples, ids and embeddings are shared memory. [`job`] runs
//! the work: without the interpreter's lock, stopped by Ctrl-C, safe from panics and forks.

mod error;
mod graph;
mod ids;
mod job;
mod model;
mod predictions;
mod rules;
mod view;

use pyo3::prelude::*;

#[pymodule]
mod _ruleguider {
    use super::*;

    #[pymodule_export]
    use error::Error;
    #[pymodule_export]
    use graph::{Graph, beside_columns, chosen_columns, triple_columns};
    #[pymodule_export]
    use job::{finish, panic_for_tests};
    #[pymodule_export]
    use model::{Model, explanation_html, export_rdf, facts_html, prediction_html};
    #[pymodule_export]
    use predictions::Predictions;
    #[pymodule_export]
    use rules::{Rules, apply, is_whole, merge, mine, mine_shard};
    #[pymodule_export]
    use view::View;

    /// The version of the library.
    #[pymodule_export]
    const VERSION: &str = ruleguider::VERSION;

    /// The command line; the exit code. The first argument is the name of the program.
    #[pyfunction]
    fn command(py: Python<'_>, arguments: Vec<std::ffi::OsString>) -> u8 {
        py.detach(|| ruleguider_cli::run(&arguments))
    }
}
