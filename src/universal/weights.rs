//! A set of weights: made anew, read from a file, or those that come with the program.
//!
//! A file is `safetensors` with readable names and, as a text, the [`UniversalSettings`]. Matrices may be stored in
//! `f32` or `f16`; they are `f32` in memory.

use super::UniversalError;
use super::network::Network;
use super::settings::UniversalSettings;
use crate::fnv::fnv;
use crate::tensor::{Archive, Device, Parameters};
use std::path::Path;

const SETTINGS: &str = "settings";
const MADE_BY: &str = "made_by";

/// The weights that come with the program.
static SHIPPED: &[u8] = include_bytes!("../../weights/universal.safetensors");
/// Their name in messages.
const SHIPPED_NAME: &str = "weights/universal.safetensors";

/// How weights are stored in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StoredPrecision {
    /// As they are, in `f32`.
    Full,
    /// Rounded to `f16`: half the size.
    Half,
}

/// The weights of a universal propagator, on a device. They belong to no graph; see
/// [`UniversalReasoner`](super::UniversalReasoner).
pub struct Universal {
    pub(super) settings: UniversalSettings,
    pub(super) network: Network,
    pub(super) parameters: Parameters,
}

impl Universal {
    /// Random weights, drawn from `seed`.
    ///
    /// # Errors
    /// If a setting is out of range, or the device fails.
    pub fn new(settings: &UniversalSettings, device: &Device, seed: u64) -> Result<Self, UniversalError> {
        settings.check()?;
        let mut parameters = Parameters::new(device, seed);
        let network = Network::new(settings, &mut parameters)?;
        Ok(Universal { settings: settings.clone(), network, parameters })
    }

    /// The weights that come with the program.
    ///
    /// # Errors
    /// If the device fails.
    pub fn shipped(device: &Device) -> Result<Self, UniversalError> {
        Universal::from_bytes(SHIPPED, Path::new(SHIPPED_NAME), device)
    }

    /// What tells the weights that come with this version of the program from others.
    pub fn shipped_fingerprint() -> u64 {
        fnv(SHIPPED)
    }

    /// The weights in the bytes of a file; `path` is its name in messages.
    ///
    /// # Errors
    /// If the bytes are not such a file, or the device fails.
    pub fn from_bytes(bytes: &[u8], path: &Path, device: &Device) -> Result<Self, UniversalError> {
        Universal::from_archive(&Archive::parse(bytes, path)?, path, device)
    }

    /// Reads weights from a file.
    ///
    /// # Errors
    /// If the file cannot be read or holds something else, or the device fails.
    pub fn load(path: &Path, device: &Device) -> Result<Self, UniversalError> {
        Universal::from_archive(&Archive::read(path)?, path, device)
    }

    /// As [`load`](Self::load), from an archive in memory.
    ///
    /// # Errors
    /// If it holds something else, or the device fails.
    pub fn from_archive(archive: &Archive, path: &Path, device: &Device) -> Result<Self, UniversalError> {
        let wrong = |why: String| UniversalError::Weights { path: path.to_owned(), why };
        let settings = archive.metadata(SETTINGS).ok_or_else(|| {
            wrong(format!("has no `{SETTINGS}`; give a file that `ruleguider pretrain` has written"))
        })?;
        let settings: UniversalSettings =
            serde_json::from_str(settings).map_err(|error| wrong(error.to_string()))?;
        let mut universal = Universal::new(&settings, device, 0)?;
        universal.parameters.load(archive)?;
        Ok(universal)
    }

    /// Weights and settings as an archive.
    ///
    /// # Errors
    /// If the device fails.
    pub fn to_archive(&self) -> Result<Archive, UniversalError> {
        let mut archive = Archive::new();
        self.parameters.store(&mut archive)?;
        let settings = serde_json::to_string(&self.settings).expect("numbers and names");
        archive.set_metadata(SETTINGS, &settings);
        archive.set_metadata(MADE_BY, concat!("ruleguider ", env!("CARGO_PKG_VERSION")));
        Ok(archive)
    }

    /// Writes weights and settings, atomically.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn save(&self, path: &Path, precision: StoredPrecision) -> Result<(), UniversalError> {
        let archive = self.to_archive()?;
        let archive = match precision {
            StoredPrecision::Full => archive,
            StoredPrecision::Half => archive.in_half_precision(),
        };
        Ok(archive.write(path)?)
    }

    /// Its size.
    pub fn settings(&self) -> &UniversalSettings {
        &self.settings
    }

    /// The number of parameters.
    pub fn parameters(&self) -> usize {
        self.parameters.len()
    }

    /// The device that holds them.
    pub fn device(&self) -> &Device {
        self.parameters.device()
    }
}
