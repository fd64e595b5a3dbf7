//! A walker: its settings, its environment and its weights.

use super::NetworkError;
use super::config::{Pool, WalkConfig};
use super::network::Network;
use super::world::World;
use crate::graph::{Graph, Known};
use crate::tensor::{Activation, Archive, Device, Initial, Parameters, Tape, Tensor, TensorError};
use std::path::Path;

/// The root mean square of embeddings that come from another model. Large compared with Adam's steps, so that they are
/// not overwritten before the agents learn to use them, yet small enough not to decide the first choices. Between 0.1
/// and 1.0, 0.2 to 0.3 was best on the validation splits of Kinship and FB15k-237 (results/NOTES.md).
const START_SIZE: f64 = 0.25;

const CONFIG_KEY: &str = "walk.config";

/// Agents that walk a graph. Made by [`Walker::new`], trained by [`train`](super::train()), asked by
/// [`Walker::answers`].
pub struct Walker {
    pub(super) config: WalkConfig,
    pub(super) world: World,
    pub(super) network: Network,
    pub(super) parameters: Parameters,
}

impl Walker {
    /// An untrained walker; its initial weights come from `seed`.
    ///
    /// # Errors
    /// If a setting is impossible or the device has too little memory.
    pub fn new(
        config: &WalkConfig,
        graph: &Graph,
        known: &Known,
        device: &Device,
        seed: u64,
    ) -> Result<Self, NetworkError> {
        config.check()?;
        let world = World::new(graph, known, config).near(device);
        let mut parameters = Parameters::new(device, seed);
        let network = Network::new(&mut parameters, config, world.entities(), world.links())?;
        Ok(Self { config: config.clone(), world, network, parameters })
    }

    /// Initialises the embeddings of entities and links from another model, a row for each, instead of at random.
    /// Projections for vectors of another width are drawn from `seed`.
    ///
    /// # Errors
    /// If there are not as many rows as entities or links, or the device fails.
    pub fn start_from(&mut self, entities: &Tensor, links: &Tensor, seed: u64) -> Result<(), NetworkError> {
        let tables = [(self.network.entity_table(), entities), (self.network.relation_table(), links)];
        for (table, vectors) in tables {
            let values = carried_over(vectors, self.config.dimension, seed)?;
            self.parameters.set(table, &values)?;
        }
        Ok(())
    }

    /// Its settings.
    pub fn config(&self) -> &WalkConfig {
        &self.config
    }

    /// How many parameters it has.
    pub fn parameter_count(&self) -> usize {
        let Self { config, world, parameters, .. } = self;
        let unlearnt = if config.entity_embeddings { 0 } else { world.entities() * config.dimension };
        parameters.len() - unlearnt
    }

    /// Changes how many paths beam search keeps, and how the paths to one entity are pooled into its score.
    ///
    /// # Errors
    /// If no beam can be that wide.
    pub fn set_search(&mut self, beam: usize, pool: Pool) -> Result<(), NetworkError> {
        let config = WalkConfig { beam, pool, ..self.config.clone() };
        config.check()?;
        self.config = config;
        Ok(())
    }

    /// Writes weights and settings to one file.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), NetworkError> {
        let mut archive = Archive::new();
        self.store(&mut archive)?;
        Ok(archive.write(path)?)
    }

    /// A walker from a file that [`save`](Self::save) wrote, in the world of `graph` and `known`. One without entity
    /// embeddings walks any graph with the same relations.
    ///
    /// # Errors
    /// If the file cannot be read, belongs to another graph, or has other relations.
    pub fn read(path: &Path, graph: &Graph, known: &Known, device: &Device) -> Result<Self, NetworkError> {
        Self::from_archive(&Archive::read(path)?, path, graph, known, device)
    }

    /// As [`read`](Self::read), from an archive that is already in memory; `path` is the file's name in messages.
    ///
    /// # Errors
    /// If it belongs to another graph, or has other relations.
    pub fn from_archive(
        archive: &Archive,
        path: &Path,
        graph: &Graph,
        known: &Known,
        device: &Device,
    ) -> Result<Self, NetworkError> {
        let broken = |why: String| NetworkError::Weights { path: path.to_path_buf(), why };
        let text = archive.metadata(CONFIG_KEY).ok_or_else(|| broken("it does not hold a walker".into()))?;
        let config: WalkConfig = serde_json::from_str(text).map_err(|error| broken(error.to_string()))?;
        let mut walker = Self::new(&config, graph, known, device, 0)?;
        // Without entity embeddings the table is all zeros and has as many rows as this graph has entities.
        let unlearnt = (!config.entity_embeddings).then(|| walker.network.entity_table());
        for id in walker.parameters.ids().filter(|id| Some(*id) != unlearnt) {
            walker.parameters.load_one(id, archive)?;
        }
        Ok(walker)
    }

    /// Loads the weights of a walker of the same shape from a file that [`save`](Self::save) wrote.
    ///
    /// # Errors
    /// If the file cannot be read or belongs to another graph or shape.
    pub fn go_on_from(&mut self, path: &Path) -> Result<(), NetworkError> {
        Ok(self.parameters.load(&Archive::read(path)?)?)
    }

    /// Loads the weights of a walker of the same shape that was trained on an earlier version of the graph, from a file
    /// that [`save`](Self::save) wrote. Row `i` of the entity embeddings comes from row `entities[i]` of the file, if
    /// there is one; links likewise.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn take_over(
        &mut self,
        path: &Path,
        entities: &[Option<u32>],
        links: &[Option<u32>],
    ) -> Result<(), NetworkError> {
        let archive = Archive::read(path)?;
        let tables = [(self.network.entity_table(), entities), (self.network.relation_table(), links)];
        for id in self.parameters.ids() {
            // Weights of another shape cannot be loaded; the current ones stay.
            let _ = match tables.iter().find(|(table, _)| *table == id) {
                Some((_, rows)) => self.parameters.take_rows(id, &archive, rows)?,
                None => self.parameters.take_whole(id, &archive)?,
            };
        }
        Ok(())
    }

    /// Puts weights and settings into an archive.
    pub(super) fn store(&self, archive: &mut Archive) -> Result<(), NetworkError> {
        let config = serde_json::to_string(&self.config).expect("settings are plain data");
        archive.set_metadata(CONFIG_KEY, &config);
        Ok(self.parameters.store(archive)?)
    }
}

/// `vectors` as rows of `dimension` numbers, rescaled to [`START_SIZE`]. Vectors of another width are projected at
/// random, which nearly preserves products and distances.
fn carried_over(vectors: &Tensor, dimension: usize, seed: u64) -> Result<Vec<f32>, TensorError> {
    let mut values = if vectors.columns() == dimension {
        vectors.to_vec()?
    } else {
        let mut drawn = Parameters::new(vectors.device(), seed);
        let directions = drawn.dense("directions", vectors.columns(), dimension, Initial::Normal(1.0))?;
        let mut tape = Tape::inference(&drawn);
        let (rows, directions) = (tape.constant(vectors.clone())?, tape.parameter(directions));
        let products = tape.linear(&[rows], directions, None, Activation::Identity, 0.0)?; // [rows, dimension]
        tape.value(products).to_vec()?
    };
    let squares: f64 = values.iter().map(|&x| f64::from(x).powi(2)).sum();
    let size = (squares / values.len().max(1) as f64).sqrt();
    let scale = if size > 0.0 { START_SIZE / size } else { 1.0 };
    values.iter_mut().for_each(|x| *x *= scale as f32);
    Ok(values)
}
