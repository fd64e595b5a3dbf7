//! What can go wrong with a search. Messages say how to fix it.

use crate::config::ConfigError;
use crate::run::RunError;
use crate::settings::SettingsError;
use std::path::PathBuf;

/// Why a search failed.
#[derive(Debug, thiserror::Error)]
pub enum SweepError {
    /// A space or a setting that cannot be taken.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// A configuration that cannot be taken.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// What was asked for cannot be done.
    #[error("{0}")]
    Cannot(String),
    /// A folder in which another search was begun.
    #[error(
        "{}: was begun with another {what} ({before}; now {now}); choose another folder, or ask for the same",
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

    /// Whether what was asked for is at fault, and not what happened on the way.
    pub fn is_mistake(&self) -> bool {
        match self {
            SweepError::Run(error) => error.is_mistake(),
            _ => true,
        }
    }
}
