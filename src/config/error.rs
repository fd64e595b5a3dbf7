//! What can be wrong with settings.

use std::path::PathBuf;

/// Why settings could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A setting that is not known, not of the right kind, or out of range.
    #[error("{place}: {message}")]
    Setting {
        /// Where it was given: `file:line`, or `key=value`.
        place: String,
        /// What is wrong with it.
        message: String,
    },
    /// A file of settings that cannot be read.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A configuration that does not come with the program.
    #[error("{0}")]
    Unknown(String),
}
