//! What can be wrong with a configuration.

use super::SettingsError;

/// Why a configuration could not be taken.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// A setting that cannot be taken, or a file of settings that cannot be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An unknown configuration.
    #[error("{0}")]
    Unknown(String),
}
