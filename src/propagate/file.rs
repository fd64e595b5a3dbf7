//! Propagators in safetensors files: the weights under readable names, the names of the relations beside them.
//!
//! No weight belongs to an entity, so a file serves every graph whose relations it has. The weights of relations are
//! found by name.

use super::networks::Networks;
use super::settings::PropagateSettings;
use super::{NetworkError, Propagator};
use crate::graph::{Graph, Names};
use crate::tensor::{Archive, Device};
use std::path::Path;

const SETTINGS: &str = "settings";
const RELATIONS: &str = "relations";
const MADE_BY: &str = "made_by";

impl Propagator {
    /// Writes weights, settings and the names of the relations, atomically.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path, names: &Names) -> Result<(), NetworkError> {
        let mut archive = Archive::new();
        self.networks.parameters.store(&mut archive)?;
        let text = |error: serde_json::Error| NetworkError::Unsuitable { why: error.to_string() };
        let relations: Vec<&str> = names.relations.iter().collect();
        archive.set_metadata(RELATIONS, &serde_json::to_string(&relations).map_err(text)?);
        archive.set_metadata(SETTINGS, &serde_json::to_string(&self.settings).map_err(text)?);
        archive.set_metadata(MADE_BY, concat!("ruleguider ", env!("CARGO_PKG_VERSION")));
        Ok(archive.write(path)?)
    }

    /// Reads weights for the relations of `names` and puts them on `graph`.
    ///
    /// # Errors
    /// If the file cannot be read, was not made by [`Propagator::save`], or lacks a relation of `names`.
    pub fn load(path: &Path, names: &Names, graph: &Graph, device: &Device) -> Result<Self, NetworkError> {
        Self::from_archive(&Archive::read(path)?, path, names, graph, device)
    }

    /// As [`load`](Self::load), from an archive that is already in memory; `path` is the file's name in messages.
    ///
    /// # Errors
    /// If it was not made by [`Propagator::save`], or lacks a relation of `names`.
    pub fn from_archive(
        archive: &Archive,
        path: &Path,
        names: &Names,
        graph: &Graph,
        device: &Device,
    ) -> Result<Self, NetworkError> {
        let wrong = |why: String| NetworkError::Weights { path: path.to_owned(), why };
        let note = |key: &str| {
            archive
                .metadata(key)
                .ok_or_else(|| wrong(format!("has no `{key}`; was it written by a propagator?")))
        };
        let settings: PropagateSettings =
            serde_json::from_str(note(SETTINGS)?).map_err(|error| wrong(error.to_string()))?;
        let stored: Vec<String> =
            serde_json::from_str(note(RELATIONS)?).map_err(|error| wrong(error.to_string()))?;
        // `weights = "auto"` is resolved by the number of relations in the file, and stays so on other graphs.
        let settings = settings.settled(stored.len());
        let mut kinds = Vec::new();
        for name in names.relations.iter() {
            let place = stored.iter().position(|other| other == name);
            let place = place.ok_or_else(|| {
                wrong(format!("was not trained for the relation `{name}`; train on a graph that has it"))
            })?;
            kinds.extend([2 * place, 2 * place + 1]);
        }
        let mut networks = Networks::new(&settings, names.relations.len(), device, 0)?;
        for id in networks.parameters.ids() {
            let name = networks.parameters.name(id).to_owned();
            let [rows, columns] = networks.parameters.value(id).shape();
            let values = match () {
                // A row and a column per link, and columns of no link.
                () if Networks::plain(&name) == "score.prior" => {
                    let wide = 2 * stored.len() + columns - kinds.len();
                    let all = archive.values(&name, [2 * stored.len(), wide])?;
                    let places: Vec<usize> = kinds.iter().copied().chain(2 * stored.len()..wide).collect();
                    let row = |kind: &usize| &all[kind * wide..(kind + 1) * wide];
                    kinds.iter().flat_map(|kind| places.iter().map(move |&place| row(kind)[place])).collect()
                }
                // One row per link: query embeddings, plain weights and the gates' link weights.
                () if Networks::plain(&name) == "query"
                    || name.ends_with(".gate.links")
                    || (name.ends_with(".links") && columns == settings.width) =>
                {
                    let all = archive.values(&name, [2 * stored.len(), columns])?;
                    kinds
                        .iter()
                        .flat_map(|kind| &all[kind * columns..(kind + 1) * columns])
                        .copied()
                        .collect()
                }
                () if name.ends_with(".links") || name.ends_with(".links_bias") => {
                    let width = settings.width;
                    let all = archive.values(&name, [rows, 2 * stored.len() * width])?;
                    let row = |row: usize| {
                        let row = &all[row * 2 * stored.len() * width..][..2 * stored.len() * width];
                        kinds.iter().flat_map(move |kind| &row[kind * width..(kind + 1) * width])
                    };
                    (0..rows).flat_map(row).copied().collect()
                }
                () => archive.values(&name, [rows, columns])?.to_vec(),
            };
            networks.parameters.set(id, &values)?;
        }
        Propagator::of(settings, networks, graph)
    }
}
