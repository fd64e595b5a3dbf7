//! What a search may see: data without a test split, and the configuration that it starts from.

use super::SweepError;
use crate::config::{self, Config, Layer, System};
use crate::embed::ModelKind;
use crate::eval::Side;
use crate::graph::{self, Dataset, GraphError, ReadOptions};
use crate::plan::{GraphSize, Resources, choose};
use crate::run::{RunError, Source};
use crate::suggest::nearest;
use std::path::Path;

/// Data without a test split. The test split cannot be reached from here, so settings chosen with this data cannot have
/// seen test facts.
#[derive(Clone, Debug)]
pub struct Tuning {
    name: String,
    dataset: Dataset,
}

impl Tuning {
    /// The data at `path`; its test split is not read.
    ///
    /// # Errors
    /// If it cannot be read, or has no validation split.
    pub fn read(path: &Path, options: &ReadOptions) -> Result<Self, SweepError> {
        let name = Source::of(path, options)?.name();
        let dataset = graph::read_known(path, options).map_err(RunError::from)?;
        Self::checked(name, dataset)
    }

    /// The part of `dataset`, called `name`, that settings may be chosen by.
    ///
    /// # Errors
    /// If it has no validation split.
    pub fn of(name: &str, dataset: &Dataset) -> Result<Self, SweepError> {
        Self::checked(name.to_owned(), dataset.without_test())
    }

    fn checked(name: String, dataset: Dataset) -> Result<Self, SweepError> {
        if dataset.known.valid.is_empty() {
            let message = format!("{name} has no validation split, by which settings are chosen; give one");
            return Err(RunError::from(GraphError::Data(message)).into());
        }
        Ok(Self { name, dataset })
    }

    /// The name of the data.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The data; its test split is empty.
    pub fn dataset(&self) -> &Dataset {
        &self.dataset
    }
}

/// The resources that networks are sized for if there are no tuned settings: fixed, so that a search can resume on
/// another machine.
const PLANNED_FOR: Resources = Resources { minutes: 10.0, threads: 2, cuda: false };

/// The configuration of `system` on `data`: a file, a built-in one (`umls/propagator`, or `propagator` on data called
/// `umls`), or for the user's own data `walker`, `propagator`, `embedding`, `blend`, `rules` or an embedding model,
/// sized as `run` does.
///
/// # Errors
/// If there is none, with the nearest name.
pub fn system(system: &str, data: &Tuning) -> Result<Config, SweepError> {
    let of_data = format!("{}/{system}", data.name);
    let built_in = config::names().find(|name| *name == system || *name == of_data);
    if built_in.is_some() || Path::new(system).is_file() {
        return Ok(config::named(built_in.unwrap_or(system), &Config::default())?);
    }
    let planned = choose(&GraphSize::of(&data.dataset, Side::Both), &PLANNED_FOR).config;
    let setting = match system {
        _ if System::named(system).is_some() => vec![format!("system={system}")],
        _ if ModelKind::ALL.iter().any(|model| model.name() == system) => {
            vec!["system=embedding".to_owned(), format!("embed.model={system}")]
        }
        _ => return Err(unknown(system, data)),
    };
    Ok(planned.with(&Layer::from_pairs(setting.iter().map(String::as_str))?)?)
}

fn unknown(system: &str, data: &Tuning) -> SweepError {
    let own = System::all();
    let own = own.iter().map(|system| system.name());
    let models = ModelKind::ALL.map(ModelKind::name);
    let of_data = config::names().filter_map(|name| name.strip_prefix(&format!("{}/", data.name)));
    let known: Vec<&str> = own.chain(models).chain(of_data).collect();
    let remedy = match nearest(system, known.iter().copied()).first() {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => format!("there are {}, or a file of settings", known.join(", ")),
    };
    SweepError::Cannot(format!("{system}: no system of that name for {}; {remedy}", data.name))
}
