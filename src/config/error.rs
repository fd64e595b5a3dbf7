//! What can be wrong with a configuration.

use super::SettingsError;

/// Why a configuration was rejected.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// An invalid setting, or a settings file that cannot be read.
    #[error(transparent)]
    Settings(#[from] SettingsError),
    /// An unknown configuration.
    #[error("{0}")]
    Unknown(String),
}
