//! What can go wrong with a search. Messages say how to fix it.

use crate::config::ConfigError;
use crate::run::RunError;
use crate::settings::SettingsError;
use std::path::PathBuf;

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// An invalid space or setting.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An invalid configuration.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What was asked for cannot be done.
    #[error("{0}")]
    Cannot(String),
    /// A folder that belongs to another search.
    #[error(
        "{}: was started with another {what} ({before}; now {now}); choose another folder, or use the same {what}",
        path.display()
    )]
    Mismatch {
        /// The folder.
        path: PathBuf,
        /// What differs.
        what: &'static str,
        /// What it was.
        before: String,
        /// What it is now.
        now: String,
    },
    /// The data, a file or a device.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl SweepError {
    /// Whether the user interrupted; everything is kept.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, SweepError::Run(RunError::Interrupted))
    }

    /// Whether the request is at fault, rather than a failure while serving it.
    pub fn is_mistake(&self) -> bool {
        match self {
            SweepError::Run(error) => error.is_mistake(),
            _ => true,
        }
    }
}
