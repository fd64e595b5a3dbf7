//! What can be wrong with data. Messages say how to fix it.

use ruleguider_support::shown::{Shown, shortened};
use std::io;
use std::path::{Path, PathBuf};

/// Why data could not be read or written. Every message names the file, the line where there is one, and
/// what was expected there.
#[derive(Debug, thiserror::Error)]
pub enum GraphError {
    /// An I/O error.
    #[error("{}: cannot be {action}", path.display())]
    Io {
        /// The file or folder.
        path: PathBuf,
        /// `read`, `written`, …
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// A line that does not follow its format.
    #[error("{}:{line}: expected {expected}, found {found}", path.display())]
    Line {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1.
        line: u64,
        /// What was expected there.
        expected: String,
        /// What was found.
        found: String,
    },
    /// A file that is wrong as a whole.
    #[error("{}: expected {expected}, found {found}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// What it should be.
        expected: String,
        /// What it is.
        found: String,
    },
    /// A problem with the data that no single file is responsible for.
    #[error("{0}")]
    Data(String),
}

impl GraphError {
    /// An I/O error while reading `path`.
    pub(super) fn reading(path: &Path) -> impl FnOnce(io::Error) -> GraphError {
        let path = path.to_owned();
        move |source| GraphError::Io { path, action: "read", source }
    }

    /// An I/O error while writing `path`.
    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> GraphError {
        let path = path.to_owned();
        move |source| GraphError::Io { path, action: "written", source }
    }

    /// An I/O error while removing `path`.
    pub(super) fn removing(path: &Path) -> impl FnOnce(io::Error) -> GraphError {
        let path = path.to_owned();
        move |source| GraphError::Io { path, action: "removed", source }
    }

    /// Line `line` of `path` is not what was expected.
    pub(super) fn line(
        path: &Path,
        line: u64,
        expected: impl Into<String>,
        found: impl Into<String>,
    ) -> GraphError {
        let [expected, found] = [expected.into(), found.into()].map(|text| on_a_line(&text));
        GraphError::Line { path: path.to_owned(), line, expected, found }
    }

    /// `path` as a whole is not what was expected.
    pub fn file(path: &Path, expected: impl Into<String>, found: impl Into<String>) -> GraphError {
        GraphError::File { path: path.to_owned(), expected: expected.into(), found: on_a_line(&found.into()) }
    }
}

/// A text of a file as a part of a message: short, and without what would break the line.
fn on_a_line(text: &str) -> String {
    Shown(shortened(text)).to_string()
}
