//! What can go wrong with a question.

use crate::run::RunError;
use crate::shard::ShardError;
use std::path::PathBuf;

/// Why learning or answering failed.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// An unknown or ambiguous name.
    #[error("{message}")]
    Name {
        /// What is wrong with it.
        message: String,
        /// Names that the user may have meant.
        suggestions: Vec<String>,
    },
    /// A question that this run cannot answer.
    #[error("{0}")]
    Cannot(String),
    /// The validation split was asked for, and has been learnt from.
    #[error(
        "{}: this run has learnt its validation facts, so ranking them is meaningless; learn with `data.learn_valid = \"never\"` to keep them apart",
        path.display()
    )]
    ValidLearnt {
        /// The run directory.
        path: PathBuf,
    },
    /// Parts of a work.
    #[error(transparent)]
    Shard(Box<ShardError>),
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
}

// Boxed, because it is much larger than all the others.
impl From<ShardError> for AskError {
    fn from(error: ShardError) -> Self {
        AskError::Shard(Box::new(error))
    }
}

impl AskError {
    pub(super) fn name(message: String, suggestions: &[&str]) -> Self {
        AskError::Name { message, suggestions: suggestions.iter().map(|&name| name.to_owned()).collect() }
    }

    /// Whether the request is at fault, rather than a failure while serving it: a wrong name, setting or path, or
    /// unreadable data.
    pub fn is_mistake(&self) -> bool {
        match self {
            AskError::Name { .. } | AskError::Cannot(_) | AskError::ValidLearnt { .. } => true,
            AskError::Shard(error) => !matches!(**error, ShardError::Unwritable { .. }),
            AskError::Run(error) => error.is_mistake(),
        }
    }

    /// Whether the user stopped it.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, AskError::Run(RunError::Interrupted))
    }
}

/// Errors of the modules below are wrapped as errors of the run.
macro_rules! through_run {
    ($($error:ty),* $(,)?) => {$(
        impl From<$error> for AskError {
            fn from(error: $error) -> Self {
                AskError::Run(error.into())
            }
        }
    )*};
}

through_run!(
    crate::config::ConfigError,
    crate::eval::EvalError,
    crate::graph::GraphError,
    crate::rule::RuleError,
    crate::settings::SettingsError,
    crate::tensor::TensorError,
    crate::train::NetworkError,
);

impl From<crate::eval::ReasonerError> for AskError {
    fn from(error: crate::eval::ReasonerError) -> Self {
        match error.is::<crate::progress::Interrupted>() {
            true => AskError::Run(RunError::Interrupted),
            false => AskError::Run(RunError::Reasoner(error)),
        }
    }
}
