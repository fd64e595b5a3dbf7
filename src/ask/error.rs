//! What can go wrong with a question.

use crate::run::RunError;

/// Why a question, or the learning before it, came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// A name that the data does not have, or that several have.
    #[error("{0}")]
    Name(String),
    /// The run.
    #[error(transparent)]
    Run(#[from] RunError),
}

impl AskError {
    /// Whether the user stopped it.
    pub fn is_interrupted(&self) -> bool {
        matches!(self, AskError::Run(RunError::Interrupted))
    }
}

/// What can go wrong below comes through the run.
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
    crate::embed::EmbedError,
    crate::eval::EvalError,
    crate::graph::GraphError,
    crate::rule::RuleError,
    crate::tensor::TensorError,
    crate::walk::WalkError,
);

impl From<crate::eval::ReasonerError> for AskError {
    fn from(error: crate::eval::ReasonerError) -> Self {
        AskError::Run(RunError::Reasoner(error))
    }
}
