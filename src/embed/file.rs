//! Embeddings in safetensors files: the weights under readable names, with the names of their rows.
//!
//! `entities` is `[entities, width]`, `relations` is `[3 + 2 × relations, width]`: three reserved rows, then each
//! relation followed by its inverse. The metadata has the names as JSON lists (`entities`, `relations`) and the
//! settings as TOML (`settings`). Rows are found by name, so a file works with any data set whose entities and
//! relations it contains. Files made by other programs may omit all metadata if their rows are in the order of the
//! data set, and may have `relations` as `[2 × relations, width]`: all relations, then all inverses.

use super::NetworkError;
use super::embedding::{Calibration, Embedding};
use super::model::Size;
use super::settings::{ModelKind, Settings};
use crate::graph::{Link, Names, RelationId, Vocabulary};
use crate::tensor::{Archive, Device};
use std::borrow::Cow;
use std::collections::HashMap;
use std::path::Path;

const SETTINGS: &str = "settings";
const ENTITIES: &str = "entities";
const RELATIONS: &str = "relations";
const SCALE: &str = "calibration.scale";
const SHIFT: &str = "calibration.shift";
const MADE_BY: &str = "made_by";
/// The longest list of names in a header. Readers of the format refuse headers of more than 100 MB.
const LONGEST_TEXT: usize = 32 << 20;

impl Embedding {
    /// Writes weights, names and settings, with `notes` (key and text) as metadata; to a temporary file that is
    /// renamed.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path, names: &Names, notes: &[(&str, String)]) -> Result<(), NetworkError> {
        let mut archive = Archive::new();
        self.parameters.store(&mut archive)?;
        let list = |names: &Vocabulary| {
            serde_json::to_string(&names.iter().collect::<Vec<_>>()).expect("texts are valid JSON")
        };
        put_text(&mut archive, ENTITIES, &list(&names.entities))?;
        put_text(&mut archive, RELATIONS, &list(&names.relations))?;
        archive.set_metadata(SETTINGS, &self.settings.to_toml());
        archive.set_metadata(SCALE, &self.calibration.scale.to_string());
        archive.set_metadata(SHIFT, &self.calibration.shift.to_string());
        archive.set_metadata(MADE_BY, concat!("ruleguider ", env!("CARGO_PKG_VERSION")));
        for (key, text) in notes {
            archive.set_metadata(key, text);
        }
        Ok(archive.write(path)?)
    }

    /// Makes the model what it would be after saving and loading: reserved links, which are never queried and not
    /// stored, all get the first row. A walker initialised from these vectors is then the same whether the model
    /// stayed in memory or was loaded by a resumed run.
    ///
    /// # Errors
    /// If the device fails.
    pub fn settle(&mut self) -> Result<(), NetworkError> {
        let table = self.model.tables().relations;
        let [_, width] = self.parameters.value(table).shape();
        let mut values = self.parameters.value(table).to_vec()?;
        let (first, others) = values.split_at_mut(width);
        others.chunks_mut(width).take(Link::RESERVED - 1).for_each(|row| row.copy_from_slice(first));
        Ok(self.parameters.set(table, &values)?)
    }

    /// Reads weights for the entities and relations of `names`. A file without settings, made by another program, is
    /// read as a model of kind `otherwise`.
    ///
    /// # Errors
    /// If the file cannot be read, lacks an entity or relation of `names`, or its shapes do not fit.
    pub fn load(
        path: &Path,
        names: &Names,
        otherwise: ModelKind,
        device: &Device,
    ) -> Result<Self, NetworkError> {
        Self::from_archive(&Archive::read(path)?, path, names, otherwise, device)
    }

    /// As [`load`](Self::load), from an archive that is already read; `path` is the file's name in messages.
    ///
    /// # Errors
    /// If it lacks an entity or relation of `names`, or its shapes do not fit.
    pub fn from_archive(
        archive: &Archive,
        path: &Path,
        names: &Names,
        otherwise: ModelKind,
        device: &Device,
    ) -> Result<Self, NetworkError> {
        let wrong = |why: String| NetworkError::Weights { path: path.to_owned(), why };
        let settings = match archive.metadata(SETTINGS) {
            Some(text) => Settings::from_toml(text, &path.display().to_string())?,
            None => guessed(archive, otherwise).map_err(wrong)?,
        };
        let size = Size { entities: names.entities.len(), relations: names.relations.len() };
        let mut embedding = Embedding::new(&settings, size, device, 0)?;
        let rows = Rows::new(archive, names).map_err(wrong)?;
        for id in embedding.parameters.ids() {
            let name = embedding.parameters.name(id).to_owned();
            let shape = embedding.parameters.value(id).shape();
            let values = match name.as_str() {
                "entities" | "entity_bias" => rows.entities(archive, &name, shape),
                "relations" => rows.relations(archive, shape),
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

impl Embedding {
    /// Initialises this model from one in a file: takes the rows of the entities and relations of `names` that the
    /// file has, and all other weights of the same shape. Other weights stay as they are. Returns how many entities
    /// the file has.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub fn take_over(&mut self, path: &Path, names: &Names) -> Result<usize, NetworkError> {
        let archive = Archive::read(path)?;
        let wrong = |why: String| NetworkError::Weights { path: path.to_owned(), why };
        let known = |key: &str| -> Result<HashMap<String, u32>, NetworkError> {
            let text = text(&archive, key).map_err(wrong)?;
            let text = text.ok_or_else(|| wrong(format!("does not have the names of {key}")))?;
            let list: Vec<String> = serde_json::from_str(&text)
                .map_err(|_| wrong(format!("metadata `{key}` is not a JSON list of names")))?;
            Ok(list.into_iter().zip(0..).collect())
        };
        let (entities, relations) = (known(ENTITIES)?, known(RELATIONS)?);
        let of_entities: Vec<Option<u32>> =
            names.entities.iter().map(|name| entities.get(name).copied()).collect();
        let links = names.relations.iter().flat_map(|name| {
            let place = relations.get(name).map(|&place| Link::forward(RelationId(place)).0);
            [place, place.map(|place| place + 1)]
        });
        let of_links: Vec<Option<u32>> = std::iter::repeat_n(None, Link::RESERVED).chain(links).collect();
        for id in self.parameters.ids() {
            // Embeddings of another width cannot be reused; these weights stay as they are.
            let _ = match self.parameters.name(id) {
                "entities" | "entity_bias" => self.parameters.take_rows(id, &archive, &of_entities)?,
                "relations" => self.parameters.take_rows(id, &archive, &of_links)?,
                _ => self.parameters.take_whole(id, &archive)?,
            };
        }
        Ok(of_entities.iter().flatten().count())
    }
}

/// A note that [`Embedding::save`] wrote into a file's metadata, if the file exists and has it.
pub fn note(path: &Path, key: &str) -> Option<String> {
    Archive::read(path).ok()?.metadata(key).map(str::to_owned)
}

/// Stores a text in the metadata. A text too long for a header is stored as a tensor instead, four bytes to a number,
/// under the same name with `.text` appended; the metadata then has its length.
fn put_text(archive: &mut Archive, key: &str, text: &str) -> Result<(), NetworkError> {
    if text.len() <= LONGEST_TEXT {
        archive.set_metadata(key, text);
        return Ok(());
    }
    let word = |bytes: &[u8]| {
        let mut word = [0; 4];
        word[..bytes.len()].copy_from_slice(bytes);
        u32::from_le_bytes(word)
    };
    archive.set_metadata(&format!("{key}.text"), &text.len().to_string());
    Ok(archive.insert_indices(&format!("{key}.text"), text.as_bytes().chunks(4).map(word).collect())?)
}

/// The text that [`put_text`] stored.
fn text<'a>(archive: &'a Archive, key: &str) -> Result<Option<Cow<'a, str>>, String> {
    if let Some(text) = archive.metadata(key) {
        return Ok(Some(text.into()));
    }
    let place = format!("{key}.text");
    if !archive.contains(&place) {
        return Ok(None);
    }
    let length: usize = archive.number(&place).map_err(|error| error.to_string())?;
    let words = archive.indices(&place, length.div_ceil(4)).map_err(|error| error.to_string())?;
    let mut bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(length);
    let text = String::from_utf8(bytes).map_err(|_| format!("`{place}` is not UTF-8"))?;
    Ok(Some(text.into()))
}

/// Settings that fit the shapes of a file without settings.
fn guessed(archive: &Archive, model: ModelKind) -> Result<Settings, String> {
    let shape = archive.shape(ENTITIES).filter(|shape| shape.len() == 2);
    let width = shape.ok_or("the file has no matrix named `entities`")?[1];
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
            let Some(text) = text(archive, key)? else { return Ok(None) };
            serde_json::from_str(&text)
                .map(Some)
                .map_err(|_| format!("metadata `{key}` is not a JSON list of names"))
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
        // Reserved links are never queried, so they can use the first row.
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
            format!(
                "has no {what} named `{name}`: it was trained on another data set; train a model on this one"
            )
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
        embedding.scores(&[Query { subject: EntityId(subject), link }]).unwrap().to_vec().unwrap()
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
            assert!(error.to_string().contains("has no entity named `d`"), "{error}");
        }
    }

    #[test]
    fn names_too_long_for_a_header_are_kept_beside_the_matrices() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("long.safetensors");
        for length in [LONGEST_TEXT, LONGEST_TEXT + 1, LONGEST_TEXT + 2] {
            let long = "é".repeat(length / 2) + &"x".repeat(length % 2);
            let mut archive = Archive::new();
            put_text(&mut archive, ENTITIES, &long).unwrap();
            assert_eq!(archive.metadata(ENTITIES).is_none(), length > LONGEST_TEXT);
            archive.write(&path).unwrap();
            assert!(text(&Archive::read(&path).unwrap(), ENTITIES).unwrap().unwrap() == long);
        }
        assert_eq!(text(&Archive::new(), ENTITIES).unwrap(), None);
    }

    #[test]
    fn what_is_known_is_taken_over_and_what_is_new_stays_fresh() {
        let device = Device::cpu(1).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.safetensors");
        for model in ModelKind::ALL {
            let settings = Settings { dimension: 20, image_rows: 4, filters: 2, ..Settings::of(model) };
            let then = names(&["a", "b", "c"], &["r", "s"]);
            let made = Embedding::new(&settings, Size { entities: 3, relations: 2 }, &device, 5).unwrap();
            made.save(&path, &then, &[]).unwrap();
            let now = names(&["d", "c", "a"], &["s", "t"]);
            let fresh = || Embedding::new(&settings, Size { entities: 3, relations: 2 }, &device, 6).unwrap();
            let mut warm = fresh();
            assert_eq!(warm.take_over(&path, &now).unwrap(), 2);
            let (before, after) =
                (made.entity_vectors().to_vec().unwrap(), warm.entity_vectors().to_vec().unwrap());
            let width = before.len() / 3;
            let row = |values: &[f32], at: usize| values[at * width..(at + 1) * width].to_vec();
            assert_eq!((row(&after, 1), row(&after, 2)), (row(&before, 2), row(&before, 0)));
            assert_eq!(row(&after, 0), row(&fresh().entity_vectors().to_vec().unwrap(), 0));
            // (a, s, ?): the scores of c and a are unchanged.
            let (was, is) = (
                scores(&made, 0, Link::forward(RelationId(1))),
                scores(&warm, 2, Link::forward(RelationId(0))),
            );
            assert_eq!([is[1], is[2]], [was[2], was[0]], "{}", model.name());
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
