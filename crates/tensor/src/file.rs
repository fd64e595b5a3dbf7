//! Weight files: the `safetensors` format, with readable names and a version.
//!
//! An [`Archive`] is a set of named matrices and short texts in memory. [`Parameters::store`] and
//! [`Adam::store`](super::Adam::store) fill it; other modules may add their own texts (names of entities, settings).
//! Files written by other programs can be read too, as long as the matrices are `f32` or `f16`. Values are `f32` in
//! memory; a file takes half the space where they are [stored in `f16`](Archive::in_half_precision).

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;
use std::sync::Arc;

use safetensors::tensor::{Dtype, SafeTensors};
use serde_json::{Value, json};

use super::error::{Result, TensorError};
use super::half;
use super::parameters::{ParameterId, Parameters};
use ruleguider_support::aside::write_aside;

/// The version of the layout that this code writes.
const VERSION: &str = "1";
const VERSION_KEY: &str = "ruleguider.version";
/// The checksum of everything else in the file. Files written by other programs have none.
const CHECKSUM_KEY: &str = "ruleguider.checksum";

/// Values that are converted and written at once.
const WRITTEN_AT_ONCE: usize = 1 << 16;

enum Content {
    Values {
        shape: Vec<usize>,
        values: Arc<Vec<f32>>,
    },
    /// Values that `f16` can represent, written as such.
    Halves {
        shape: Vec<usize>,
        values: Arc<Vec<f32>>,
    },
    Indices(Vec<u32>),
}

impl Content {
    /// Its entry in the header of a file whose matrices so far take `begin` bytes.
    fn entry(&self, begin: usize) -> Value {
        let (kind, shape) = match self {
            Content::Values { shape, .. } => (Dtype::F32, shape.clone()),
            Content::Halves { shape, .. } => (Dtype::F16, shape.clone()),
            Content::Indices(values) => (Dtype::U32, vec![values.len()]),
        };
        json!({ "dtype": kind, "shape": shape, "data_offsets": [begin, begin + self.bytes()] })
    }

    fn bytes(&self) -> usize {
        match self {
            Content::Values { values, .. } => 4 * values.len(),
            Content::Halves { values, .. } => 2 * values.len(),
            Content::Indices(values) => 4 * values.len(),
        }
    }

    fn write(&self, out: &mut (dyn Write + Send)) -> io::Result<()> {
        match self {
            Content::Values { values, .. } => write_words(out, values, |value| value.to_le_bytes()),
            Content::Halves { values, .. } => {
                let bytes: Vec<[u8; 2]> =
                    values.iter().map(|&value| half::bits(value).to_le_bytes()).collect();
                out.write_all(bytes.as_flattened())
            }
            Content::Indices(values) => write_words(out, values, |value| value.to_le_bytes()),
        }
    }
}

fn write_words<T>(
    out: &mut (dyn Write + Send),
    values: &[T],
    bytes: impl Fn(&T) -> [u8; 4],
) -> io::Result<()> {
    values.chunks(WRITTEN_AT_ONCE).try_for_each(|some| {
        let some: Vec<[u8; 4]> = some.iter().map(&bytes).collect();
        out.write_all(some.as_flattened())
    })
}

/// Named matrices and texts, to be written to or read from one file.
#[derive(Default)]
pub struct Archive {
    contents: BTreeMap<String, Content>,
    metadata: BTreeMap<String, String>,
}

impl Archive {
    /// An empty archive.
    pub fn new() -> Archive {
        Archive::default()
    }

    /// Adds a matrix. Values that are kept elsewhere too can be shared.
    pub fn insert(&mut self, name: &str, shape: [usize; 2], values: impl Into<Arc<Vec<f32>>>) -> Result<()> {
        let values = values.into();
        if values.len() != shape[0] * shape[1] {
            let why = format!("{} values do not make a {} × {} matrix", values.len(), shape[0], shape[1]);
            return Err(TensorError::Parameter { name: name.to_string(), why });
        }
        self.contents.insert(name.to_string(), Content::Values { shape: shape.to_vec(), values });
        Ok(())
    }

    /// The same archive with all matrices rounded to `f16`, which a file then holds.
    #[must_use]
    pub fn in_half_precision(mut self) -> Archive {
        for content in self.contents.values_mut() {
            if let Content::Values { shape, values } = content {
                let rounded = values.iter().map(|&value| half::value(half::bits(value))).collect();
                *content = Content::Halves { shape: std::mem::take(shape), values: Arc::new(rounded) };
            }
        }
        self
    }

    /// Adds a list of indices.
    pub fn insert_indices(&mut self, name: &str, values: Vec<u32>) -> Result<()> {
        self.contents.insert(name.to_string(), Content::Indices(values));
        Ok(())
    }

    /// Sets a text.
    pub fn set_metadata(&mut self, key: &str, text: &str) {
        self.metadata.insert(key.to_string(), text.to_string());
    }

    /// The metadata text with this key.
    pub fn metadata(&self, key: &str) -> Option<&str> {
        self.metadata.get(key).map(String::as_str)
    }

    /// The metadata text with this key, as a number.
    pub fn number<N: std::str::FromStr>(&self, key: &str) -> Result<N> {
        let text = self.metadata(key).ok_or_else(|| missing(key, "is not in the file's metadata"))?;
        text.parse().map_err(|_| missing(key, &format!("`{text}` is not a number")))
    }

    /// The names of all matrices and lists.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.contents.keys().map(String::as_str)
    }

    /// Whether there is a matrix or list of this name.
    pub fn contains(&self, name: &str) -> bool {
        self.contents.contains_key(name)
    }

    /// The shape of a matrix, as it was written.
    pub fn shape(&self, name: &str) -> Option<Vec<usize>> {
        match self.contents.get(name)? {
            Content::Values { shape, .. } | Content::Halves { shape, .. } => Some(shape.clone()),
            Content::Indices(values) => Some(vec![values.len()]),
        }
    }

    /// The values of a matrix, which must have this shape (a vector may be a row or a column).
    pub fn values(&self, name: &str, shape: [usize; 2]) -> Result<&[f32]> {
        match self.contents.get(name) {
            Some(Content::Values { shape: found, values } | Content::Halves { shape: found, values }) => {
                let squeeze =
                    |sides: &[usize]| sides.iter().copied().filter(|&side| side != 1).collect::<Vec<_>>();
                if squeeze(found) != squeeze(&shape) {
                    return Err(missing(
                        name,
                        &format!("has shape {found:?} in the file, but {shape:?} is needed"),
                    ));
                }
                Ok(values)
            }
            Some(Content::Indices(_)) => Err(missing(name, "is a list of indices, not a matrix")),
            None => Err(missing(name, "is not in the file")),
        }
    }

    /// The values of a list, which must have this length.
    pub fn indices(&self, name: &str, len: usize) -> Result<&[u32]> {
        match self.contents.get(name) {
            Some(Content::Indices(values)) if values.len() == len => Ok(values),
            Some(_) => Err(missing(name, &format!("is not a list of {len} indices"))),
            None => Err(missing(name, "is not in the file")),
        }
    }

    /// Writes a temporary file and renames it, so that no reader sees a partial file. Matrices go straight to the
    /// file: those of a large graph are tens of gigabytes, too many to hold twice.
    pub fn write(&self, path: &Path) -> Result<()> {
        // Matrices first, as other programs write them; either in the order of their names.
        let is_list = |content: &Content| matches!(content, Content::Indices(_));
        let mut contents: Vec<_> = self.contents.iter().collect();
        contents.sort_by_key(|(_, content)| is_list(content));
        let header = self.header(&contents);
        let written = write_aside(path, |out| {
            out.write_all(&(header.len() as u64).to_le_bytes())?;
            out.write_all(&header)?;
            contents.iter().try_for_each(|(_, content)| content.write(out))
        });
        written.map_err(|error| failed(path, error))
    }

    /// The header of a file with `contents`. Its keys are sorted, so that the same weights give the same file.
    fn header(&self, contents: &[(&String, &Content)]) -> Vec<u8> {
        let mut metadata = self.metadata.clone();
        metadata.insert(VERSION_KEY.to_string(), VERSION.to_string());
        metadata.insert(CHECKSUM_KEY.to_string(), self.checksum());
        let mut entries = BTreeMap::from([("__metadata__", json!(metadata))]);
        let mut begin = 0;
        for (name, content) in contents {
            entries.insert(name, content.entry(begin));
            begin += content.bytes();
        }
        let mut header = serde_json::to_vec(&entries).expect("plain values");
        // The matrices must begin at a multiple of eight bytes.
        header.resize(header.len().next_multiple_of(8), b' ');
        header
    }

    /// Reads a file that this or another program wrote.
    pub fn read(path: &Path) -> Result<Archive> {
        let data = std::fs::read(path).map_err(|error| failed(path, error))?;
        Self::parse(&data, path)
    }

    /// Reads an archive from `source`; `path` is the file's name in messages.
    pub fn read_from(source: &mut dyn Read, path: &Path) -> Result<Archive> {
        let mut data = Vec::new();
        source.read_to_end(&mut data).map_err(|error| failed(path, error))?;
        Self::parse(&data, path)
    }

    /// Reads an archive from the bytes of a file; `path` is its name in messages.
    pub fn parse(data: &[u8], path: &Path) -> Result<Archive> {
        let (_, header) = SafeTensors::read_metadata(data).map_err(|error| failed(path, error))?;
        let mut archive = Archive::new();
        for (key, text) in header.metadata().iter().flatten() {
            archive.set_metadata(key, text);
        }
        if let Some(version) = archive.metadata.remove(VERSION_KEY).filter(|version| version != VERSION) {
            return Err(failed(
                path,
                format!("written in layout {version}, but this program reads layout {VERSION}"),
            ));
        }
        let tensors = SafeTensors::deserialize(data).map_err(|error| failed(path, error))?;
        for (name, view) in tensors.iter() {
            let words = view.data().as_chunks::<4>().0.iter();
            let content = match view.dtype() {
                Dtype::F32 => Content::Values {
                    shape: view.shape().to_vec(),
                    values: Arc::new(words.map(|word| f32::from_le_bytes(*word)).collect()),
                },
                Dtype::F16 => {
                    let words = view.data().as_chunks::<2>().0.iter();
                    let values = words.map(|word| half::value(u16::from_le_bytes(*word))).collect();
                    Content::Halves { shape: view.shape().to_vec(), values: Arc::new(values) }
                }
                Dtype::U32 => Content::Indices(words.map(|word| u32::from_le_bytes(*word)).collect()),
                other => {
                    return Err(failed(
                        path,
                        format!("`{name}` holds {other:?}, but only F32, F16 and U32 can be read"),
                    ));
                }
            };
            archive.contents.insert(name.to_string(), content);
        }
        match archive.metadata.remove(CHECKSUM_KEY) {
            Some(sum) if sum != archive.checksum() => {
                Err(failed(path, "the file is damaged: its content is not what was written"))
            }
            _ => Ok(archive),
        }
    }

    /// A checksum of every name, text, shape and value; it detects accidental damage, not attacks.
    fn checksum(&self) -> String {
        let mut sum = 0x9e37_79b9_7f4a_7c15u64;
        let mut add = |word: u64| sum = (sum ^ word).wrapping_mul(0xff51_afd7_ed55_8ccd).rotate_left(29);
        let texts =
            self.metadata.iter().filter(|(key, _)| ![VERSION_KEY, CHECKSUM_KEY].contains(&key.as_str()));
        for text in texts.flat_map(|(key, text)| [key, text]).chain(self.contents.keys()) {
            add(text.len() as u64);
            text.bytes().for_each(|byte| add(u64::from(byte)));
        }
        for content in self.contents.values() {
            match content {
                Content::Values { shape, values } | Content::Halves { shape, values } => {
                    shape.iter().for_each(|&side| add(side as u64));
                    values.iter().for_each(|value| add(u64::from(value.to_bits())));
                }
                Content::Indices(values) => values.iter().for_each(|&value| add(u64::from(value))),
            }
        }
        format!("{sum:016x}")
    }
}

impl Parameters {
    /// Stores every parameter in an archive under its name.
    pub fn store(&self, archive: &mut Archive) -> Result<()> {
        for entry in &self.entries {
            archive.insert(&entry.name, entry.value.shape(), entry.value.to_vec()?)?;
        }
        Ok(())
    }

    /// Loads every parameter from an archive; a missing name or a different shape is an error.
    pub fn load(&mut self, archive: &Archive) -> Result<()> {
        self.ids().try_for_each(|id| self.load_one(id, archive))
    }

    /// Loads one parameter from an archive.
    ///
    /// # Errors
    /// If it is missing or has a different shape.
    pub fn load_one(&mut self, id: ParameterId, archive: &Archive) -> Result<()> {
        let (name, shape) = (self.name(id).to_string(), self.entry(id).value.shape());
        self.set(id, archive.values(&name, shape)?)
    }
}

fn missing(name: &str, why: &str) -> TensorError {
    TensorError::Parameter { name: name.to_string(), why: why.to_string() }
}

fn failed(path: &Path, why: impl std::fmt::Display) -> TensorError {
    TensorError::File { path: path.to_path_buf(), why: why.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_archive_is_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let bytes = |name: &str| {
            let mut archive = Archive::new();
            archive.insert("weights", [1, 2], vec![0.5, -1.0]).unwrap();
            for key in ["a", "b", "c", "d", "e"] {
                archive.set_metadata(key, "text");
            }
            archive.write(&folder.path().join(name)).unwrap();
            std::fs::read(folder.path().join(name)).unwrap()
        };
        let first = bytes("0");
        assert!((1..8).all(|number| bytes(&number.to_string()) == first));
        let read = Archive::read(&folder.path().join("0")).unwrap();
        assert_eq!(read.values("weights", [1, 2]).unwrap(), [0.5, -1.0]);
        assert_eq!(read.metadata("d"), Some("text"));
    }

    #[test]
    fn matrices_are_written_in_half_precision_and_read_as_they_were_rounded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("halves");
        let mut archive = Archive::new();
        archive.insert("weights", [1, 3], vec![0.5, 0.1, -3.0]).unwrap();
        archive.insert_indices("list", vec![7]).unwrap();
        archive.in_half_precision().write(&path).unwrap();
        let read = Archive::read(&path).unwrap();
        assert_eq!(read.values("weights", [1, 3]).unwrap(), [0.5, 0.099_975_586, -3.0]);
        assert_eq!(read.indices("list", 1).unwrap(), [7]);
        let mut again = Archive::new();
        again.insert("weights", [1, 3], read.values("weights", [1, 3]).unwrap().to_vec()).unwrap();
        again.insert_indices("list", vec![7]).unwrap();
        let other = folder.path().join("again");
        again.in_half_precision().write(&other).unwrap();
        assert_eq!(std::fs::read(path).unwrap(), std::fs::read(other).unwrap(), "rounded only once");
    }
}
