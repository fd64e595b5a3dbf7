//! What can go wrong in a run. Messages say how to fix it.

use crate::graph::GraphError;
use crate::rule::RuleError;
use std::io;
use std::path::{Path, PathBuf};

/// Why a run failed.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// The settings.
    #[error(transparent)]
    Config(#[from] crate::config::ConfigError),
    /// The settings that were given over those of a configuration.
    #[error(transparent)]
    Settings(#[from] crate::settings::SettingsError),
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
    /// Another process works in the run directory.
    #[error("{}: another run is using this folder; wait for it, or choose another folder", path.display())]
    Locked {
        /// The run directory.
        path: PathBuf,
    },
    /// A question to an unfinished run whose directory another process holds.
    #[error("{}: is still being made; try again when its `ruleguider run` has ended", path.display())]
    BeingMade {
        /// The run directory.
        path: PathBuf,
    },
    /// A folder that is not a run directory.
    #[error("{}: not a run directory (it has no {file}); learning from data creates one", path.display())]
    NotARun {
        /// The folder.
        path: PathBuf,
        /// The file that every run directory has.
        file: &'static str,
    },
    /// A folder with other things in it.
    #[error("{}: holds files but no run; choose an empty or a new folder", path.display())]
    Occupied {
        /// The folder.
        path: PathBuf,
    },
    /// A run directory that was made from other inputs than it is now used with.
    #[error("{}: was made {made}, now it is {now}; {remedy}", path.display())]
    Mismatch {
        /// The run directory.
        path: PathBuf,
        /// What it was made from, or by which version.
        made: String,
        /// What it is used with now.
        now: String,
        /// What to do.
        remedy: &'static str,
    },
    /// A file of a run that is not what a stage wrote.
    #[error("{}: {what}; run the same `ruleguider run` again to recreate it", path.display())]
    Broken {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// Something that a run does not have (yet).
    #[error("{}: has no {what}; {remedy}", path.display())]
    Missing {
        /// The run directory.
        path: PathBuf,
        /// What was wanted.
        what: String,
        /// How to get it.
        remedy: String,
    },
    /// The user interrupted; finished work is kept.
    #[error("interrupted; run the same command again to resume")]
    Interrupted,
    /// The data.
    #[error(transparent)]
    Graph(#[from] GraphError),
    /// The rules.
    #[error(transparent)]
    Rule(#[from] RuleError),
    /// A network: an embedding model, a walker or a propagator.
    #[error(transparent)]
    Network(crate::train::NetworkError),
    /// The universal propagator.
    #[error(transparent)]
    Universal(#[from] crate::universal::UniversalError),
    /// A training, or its records.
    #[error(transparent)]
    Train(crate::train::TrainError),
    /// The device.
    #[error(transparent)]
    Tensor(#[from] crate::tensor::TensorError),
    /// The ranking.
    #[error(transparent)]
    Eval(crate::eval::EvalError),
    /// A reasoner could not answer.
    #[error("answering failed")]
    Reasoner(#[source] crate::eval::ReasonerError),
}

impl RunError {
    /// Whether the request is at fault, rather than a failure while serving it.
    pub fn is_mistake(&self) -> bool {
        match self {
            RunError::Config(_) | RunError::Settings(_) | RunError::NotARun { .. } => true,
            RunError::Occupied { .. } | RunError::Mismatch { .. } => true,
            RunError::Io { action, .. } => *action == "read",
            RunError::Graph(GraphError::Io { action, .. }) => *action == "read",
            RunError::Graph(_) => true,
            RunError::Rule(error) => !matches!(error, RuleError::Unwritable { .. }),
            _ => false,
        }
    }

    /// A file of a run that is missing or has changed since a stage wrote it.
    pub(crate) fn changed(path: PathBuf) -> RunError {
        RunError::Broken { path, what: "is missing or has changed since it was written".to_owned() }
    }

    /// An I/O error while reading `path`.
    pub(crate) fn reading(path: &Path) -> impl FnOnce(io::Error) -> RunError {
        let path = path.to_owned();
        move |source| RunError::Io { path, action: "read", source }
    }

    /// An I/O error while writing `path`.
    pub(crate) fn writing(path: &Path) -> impl FnOnce(io::Error) -> RunError {
        let path = path.to_owned();
        move |source| RunError::Io { path, action: "written", source }
    }
}

impl From<crate::eval::EvalError> for RunError {
    fn from(error: crate::eval::EvalError) -> Self {
        match error {
            crate::eval::EvalError::Interrupted => RunError::Interrupted,
            other => RunError::Eval(other),
        }
    }
}

impl From<crate::train::NetworkError> for RunError {
    fn from(error: crate::train::NetworkError) -> Self {
        match error {
            crate::train::NetworkError::Train(error) => error.into(),
            other => RunError::Network(other),
        }
    }
}

impl From<crate::train::TrainError> for RunError {
    fn from(error: crate::train::TrainError) -> Self {
        match error {
            crate::train::TrainError::Interrupted { .. } => RunError::Interrupted,
            other => RunError::Train(other),
        }
    }
}
