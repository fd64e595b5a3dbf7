//! Embeddings in safetensors files: the weights under readable names, the names of their rows beside them.
//!
//! `entities` is `[entities, width]`, `relations` is `[3 + 2 × relations, width]`: three reserved rows, then each
//! relation and its inverse in turn. The metadata has the names as JSON lists (`entities`, `relations`) and the
//! settings as TOML (`settings`). Rows are found by name, so a file serves any data set whose entities and
//! relations it has. Files made elsewhere may leave all metadata out if their rows are in the order of the data
//! set, and may have `relations` as `[2 × relations, width]`: all relations, then all inverses.

use super::EmbedError;
use super::embedding::{Calibration, Embedding};
use super::model::Size;
use super::settings::{ModelKind, Settings};
use crate::graph::{Link, Names, RelationId, Vocabulary};
use crate::tensor::{Archive, Device};
use std::collections::HashMap;
use std::path::Path;

const SETTINGS: &str = "settings";
const ENTITIES: &str = "entities";
const RELATIONS: &str = "relations";
const SCALE: &str = "calibration.scale";
const SHIFT: &str = "calibration.shift";
const MADE_BY: &str = "made_by";

impl Embedding {
    /// Writes weights, names and settings, with `notes` (key and text) as metadata; to a temporary file that is
    /// renamed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path, names: &Names, notes: &[(&str, String)]) -> Result<(), EmbedError> {
        let mut archive = Archive::new();
        self.parameters.store(&mut archive)?;
        let list = |names: &Vocabulary| {
            serde_json::to_string(&names.iter().collect::<Vec<_>>()).expect("texts are valid JSON")
        };
        archive.set_metadata(ENTITIES, &list(&names.entities));
        archive.set_metadata(RELATIONS, &list(&names.relations));
        archive.set_metadata(SETTINGS, &self.settings.to_toml());
        archive.set_metadata(SCALE, &self.calibration.scale.to_string());
        archive.set_metadata(SHIFT, &self.calibration.shift.to_string());
        archive.set_metadata(MADE_BY, concat!("ruleguider ", env!("CARGO_PKG_VERSION")));
        for (key, text) in notes {
            archive.set_metadata(key, text);
        }
        Ok(archive.write(path)?)
    }

    /// Makes the model what it is after it has been saved and read again: reserved links, which are never asked about
    /// and are not kept, all get the first row. A walker that starts from its vectors is then the same whether the
    /// model stayed in memory or was read by a resumed run.
    ///
    /// # Errors
    /// If the device fails.
    pub fn settle(&mut self) -> Result<(), EmbedError> {
        let table = self.model.tables().relations;
        let [_, width] = self.parameters.value(table).shape();
        let mut values = self.parameters.value(table).to_vec()?;
        let (first, others) = values.split_at_mut(width);
        others.chunks_mut(width).take(Link::RESERVED - 1).for_each(|row| row.copy_from_slice(first));
        Ok(self.parameters.set(table, &values)?)
    }

    /// Reads weights for the entities and relations of `names`. A file without settings of its own, made
    /// elsewhere, is read as a model of kind `otherwise`.
    ///
    /// # Errors
    /// If the file cannot be read, lacks an entity or relation of `names`, or its shapes do not fit.
    pub fn load(
        path: &Path,
        names: &Names,
        otherwise: ModelKind,
        device: &Device,
    ) -> Result<Self, EmbedError> {
        let archive = Archive::read(path)?;
        let wrong = |why: String| EmbedError::Weights { path: path.to_owned(), why };
        let settings = match archive.metadata(SETTINGS) {
            Some(text) => Settings::from_toml(text, &path.display().to_string())?,
            None => guessed(&archive, otherwise).map_err(wrong)?,
        };
        let size = Size { entities: names.entities.len(), relations: names.relations.len() };
        let mut embedding = Embedding::new(&settings, size, device, 0)?;
        let rows = Rows::new(&archive, names).map_err(wrong)?;
        for id in embedding.parameters.ids() {
            let name = embedding.parameters.name(id).to_owned();
            let shape = embedding.parameters.value(id).shape();
            let values = match name.as_str() {
                "entities" | "entity_bias" => rows.entities(&archive, &name, shape),
                "relations" => rows.relations(&archive, shape),
                _ => archive.values(&name, shape).map(<[f32]>::to_vec).map_err(|error| error.to_string()),
            };
            embedding.parameters.set(id, &values.map_err(wrong)?)?;
        }
        if archive.metadata(SCALE).is_some() {
            embedding.calibration =
                Calibration { scale: archive.number(SCALE)?, shift: archive.number(SHIFT)? };
        }
        Ok(embedding)
    }
}

/// A text that [`Embedding::save`] wrote into a file's metadata, if the file is there and has it.
pub fn note(path: &Path, key: &str) -> Option<String> {
    Archive::read(path).ok()?.metadata(key).map(str::to_owned)
}

/// Settings that fit the shapes of a file that has none.
fn guessed(archive: &Archive, model: ModelKind) -> Result<Settings, String> {
    let shape = archive.shape(ENTITIES).filter(|shape| shape.len() == 2);
    let width = shape.ok_or("no matrix named `entities` is in the file")?[1];
    let settings = Settings::of(model);
    let dimension = match model {
        ModelKind::ComplEx | ModelKind::RotatE => width / 2,
        ModelKind::DistMult | ModelKind::ConvE => width,
    };
    Ok(Settings { dimension, ..settings })
}

/// Which row of the file each entity and relation of the data set has.
struct Rows {
    entities: Option<Vec<usize>>,
    relations: Vec<usize>,
    /// How many relations the file has.
    relations_in_file: usize,
}

impl Rows {
    fn new(archive: &Archive, names: &Names) -> Result<Self, String> {
        let list = |key: &str| -> Result<Option<Vec<String>>, String> {
            let Some(text) = archive.metadata(key) else { return Ok(None) };
            serde_json::from_str(text)
                .map(Some)
                .map_err(|_| format!("metadata `{key}` is no JSON list of names"))
        };
        let (entities, relations) = (list(ENTITIES)?, list(RELATIONS)?);
        let relations_in_file = relations.as_ref().map_or(names.relations.len(), Vec::len);
        Ok(Rows {
            entities: entities.map(|list| places(&list, &names.entities, "entity")).transpose()?,
            relations: match relations {
                Some(list) => places(&list, &names.relations, "relation")?,
                None => (0..names.relations.len()).collect(),
            },
            relations_in_file,
        })
    }

    fn entities(&self, archive: &Archive, name: &str, [rows, width]: [usize; 2]) -> Result<Vec<f32>, String> {
        let in_file = self
            .entities
            .as_ref()
            .map_or(Some(rows), |_| archive.shape(name).and_then(|shape| shape.first().copied()));
        let found =
            archive.values(name, [in_file.unwrap_or(rows), width]).map_err(|error| error.to_string())?;
        match &self.entities {
            None => Ok(found.to_vec()),
            Some(places) => picked(found, width, places.iter().copied(), name),
        }
    }

    fn relations(&self, archive: &Archive, [_, width]: [usize; 2]) -> Result<Vec<f32>, String> {
        let count = self.relations_in_file;
        let in_file = archive.shape(RELATIONS).and_then(|shape| shape.first().copied());
        let own_layout = in_file != Some(2 * count);
        let rows = if own_layout { Link::count(count) } else { 2 * count };
        let found = archive.values(RELATIONS, [rows, width]).map_err(|error| error.to_string())?;
        let row_of = |relation: usize, inverse: usize| match own_layout {
            true => Link::forward(RelationId(relation as u32)).index() + inverse,
            false => relation + inverse * count,
        };
        // Reserved links are never queried, so the first row serves for them.
        let reserved = std::iter::repeat_n(0, Link::RESERVED);
        let places = self.relations.iter().flat_map(|&relation| [row_of(relation, 0), row_of(relation, 1)]);
        picked(found, width, reserved.chain(places), RELATIONS)
    }
}

/// The index of each name of `wanted` in `list`.
fn places(list: &[String], wanted: &Vocabulary, what: &str) -> Result<Vec<usize>, String> {
    let known: HashMap<&str, usize> =
        list.iter().enumerate().map(|(row, name)| (name.as_str(), row)).collect();
    let place = |name: &str| {
        known.get(name).copied().ok_or_else(|| {
            format!("knows no {what} named `{name}`: it was made from another data set; train one for this")
        })
    };
    wanted.iter().map(place).collect()
}

fn picked(
    values: &[f32],
    width: usize,
    rows: impl Iterator<Item = usize>,
    name: &str,
) -> Result<Vec<f32>, String> {
    let mut picked = Vec::new();
    for row in rows {
        let from = values.get(row * width..(row + 1) * width);
        picked.extend_from_slice(from.ok_or_else(|| format!("`{name}` has no row {row}"))?);
    }
    Ok(picked)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{EntityId, Query};

    fn names(entities: &[&str], relations: &[&str]) -> Names {
        Names {
            entities: entities.iter().copied().collect(),
            relations: relations.iter().copied().collect(),
            ..Names::default()
        }
    }

    fn scores(embedding: &Embedding, subject: u32, link: Link) -> Vec<f32> {
        embedding.scores(&[Query { subject: EntityId(subject), link }]).unwrap()
    }

    #[test]
    fn rows_are_found_by_name() {
        let device = Device::cpu(1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        for model in ModelKind::ALL {
            let settings = Settings { dimension: 20, image_rows: 4, filters: 2, ..Settings::of(model) };
            let first = names(&["a", "b", "c"], &["r", "s"]);
            let made = Embedding::new(&settings, Size { entities: 3, relations: 2 }, &device, 5).unwrap();
            made.save(&path, &first, &[("note", "kept".to_owned())]).unwrap();
            assert_eq!(note(&path, "note").as_deref(), Some("kept"));
            let turned =
                Embedding::load(&path, &names(&["c", "a"], &["s"]), ModelKind::ComplEx, &device).unwrap();
            assert_eq!(turned.settings(), &settings);
            let s_inverse = Link::inverse_of(RelationId(1));
            let before = scores(&made, 0, s_inverse);
            let after = scores(&turned, 1, Link::inverse_of(RelationId(0)));
            assert_eq!(after, [before[2], before[0]], "{}", model.name());
            let error = Embedding::load(&path, &names(&["d"], &[]), model, &device).err().unwrap();
            assert!(error.to_string().contains("knows no entity named `d`"), "{error}");
        }
    }

    #[test]
    fn plain_matrices_made_elsewhere_are_read_in_the_order_of_the_data() {
        let device = Device::cpu(1).unwrap();
        let path = tempfile::tempdir().unwrap().path().join("elsewhere.safetensors");
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        let mut archive = Archive::new();
        archive.insert("entities", [3, 2], vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        // Two relations, then their inverses.
        archive.insert("relations", [4, 2], vec![1.0, 0.0, 0.0, 1.0, 10.0, 0.0, 0.0, 10.0]).unwrap();
        archive.write(&path).unwrap();
        let names = names(&["a", "b", "c"], &["r", "s"]);
        let embedding = Embedding::load(&path, &names, ModelKind::DistMult, &device).unwrap();
        assert_eq!(scores(&embedding, 0, Link::forward(RelationId(0))), [1.0, 3.0, 5.0]);
        assert_eq!(scores(&embedding, 0, Link::inverse_of(RelationId(1))), [40.0, 80.0, 120.0]);
        let more = Names { entities: ["a", "b", "c", "d"].into_iter().collect(), ..names };
        let error = Embedding::load(&path, &more, ModelKind::DistMult, &device).err().unwrap();
        assert!(error.to_string().contains("entities"), "{error}");
    }
}
