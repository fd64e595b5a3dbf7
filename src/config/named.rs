//! The built-in configurations: the files of `configs/`, one for each system and data set.
//!
//! A file may inherit from another one: `base = "wn18rr/ruleguider-complex"` starts from that file's settings.

use super::{Config, ConfigError, Layer, SettingsError};
use crate::embed::{self, ModelKind, Settings};
use crate::suggest::nearest;
use std::path::Path;

/// A built-in configuration.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Named {
    /// `dataset/system`, or one word.
    pub name: &'static str,
    text: &'static str,
}

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        &[$(Named { name: $name, text: include_str!(concat!("../../configs/", $name, ".toml")) }),*]
    };
}

/// All of them.
const ALL: &[Named] = files![
    "demonstration",
    "wn18rr/blend",
    "wn18rr/complex",
    "wn18rr/conve",
    "wn18rr/distmult",
    "wn18rr/minerva",
    "wn18rr/minerva-published",
    "wn18rr/multihop-complex",
    "wn18rr/multihop-conve",
    "wn18rr/rotate",
    "wn18rr/ruleguider-complex-freeze",
    "wn18rr/ruleguider-complex-no",
    "wn18rr/ruleguider-complex-single",
    "wn18rr/ruleguider-complex-threshold-0",
    "wn18rr/ruleguider-complex-threshold-005",
    "wn18rr/ruleguider-complex-threshold-010",
    "wn18rr/ruleguider-complex-rescored",
    "wn18rr/ruleguider-complex",
    "wn18rr/ruleguider-conve",
    "wn18rr/ruleguider-propagator",
    "wn18rr/propagator",
    "wn18rr/rules-cyclic",
    "nell-995/blend",
    "nell-995/complex",
    "nell-995/conve",
    "nell-995/distmult",
    "nell-995/minerva",
    "nell-995/minerva-published",
    "nell-995/multihop-complex",
    "nell-995/multihop-conve",
    "nell-995/rotate",
    "nell-995/ruleguider-complex-freeze",
    "nell-995/ruleguider-complex-no",
    "nell-995/ruleguider-complex-single",
    "nell-995/ruleguider-complex-valid-unknown",
    "nell-995/ruleguider-complex-valid-queries",
    "nell-995/ruleguider-complex-valid-graph",
    "nell-995/ruleguider-complex-rescored",
    "nell-995/ruleguider-complex",
    "nell-995/ruleguider-conve",
    "nell-995/ruleguider-propagator",
    "nell-995/propagator",
    "nell-995/rules-cyclic",
    "fb15k-237/blend",
    "fb15k-237/complex",
    "fb15k-237/conve",
    "fb15k-237/conve-published",
    "fb15k-237/distmult",
    "fb15k-237/minerva",
    "fb15k-237/minerva-published",
    "fb15k-237/multihop-complex",
    "fb15k-237/multihop-complex-published",
    "fb15k-237/multihop-conve",
    "fb15k-237/rotate",
    "fb15k-237/ruleguider-complex-freeze",
    "fb15k-237/ruleguider-complex-no",
    "fb15k-237/ruleguider-complex-single",
    "fb15k-237/ruleguider-complex-rescored",
    "fb15k-237/ruleguider-complex",
    "fb15k-237/ruleguider-conve-rescored",
    "fb15k-237/ruleguider-conve",
    "fb15k-237/ruleguider-propagator",
    "fb15k-237/propagator",
    "fb15k-237/rules-cyclic",
    "umls/blend",
    "umls/complex",
    "umls/ruleguider-complex",
    "umls/ruleguider-propagator",
    "umls/propagator",
    "umls/rules-cyclic",
    "kinship/blend",
    "kinship/complex",
    "kinship/ruleguider-complex",
    "kinship/propagator",
    "kinship/rules-cyclic",
    "wn18rr-v1/blend",
    "wn18rr-v1/propagator",
    "wn18rr-v1/rules-cyclic",
    "fb237-v1/blend",
    "fb237-v1/propagator",
    "fb237-v1/rules-cyclic",
    "nell-v1/blend",
    "nell-v1/propagator",
    "nell-v1/rules-cyclic",
];

/// The names of all built-in configurations.
pub fn names() -> impl Iterator<Item = &'static str> {
    ALL.iter().map(|named| named.name)
}

/// The configuration called `name`: a file, or a built-in one.
///
/// # Errors
/// If there is neither, with the nearest name; or if it cannot be read.
pub fn named(name: &str, base: &Config) -> Result<Config, ConfigError> {
    let path = Path::new(name);
    if path.is_file() {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Io { path: path.to_owned(), source })?;
        return layered(&text, name, base, 0);
    }
    match ALL.iter().find(|known| known.name == name) {
        Some(known) => layered(known.text, &format!("configs/{name}.toml"), base, 0),
        None => Err(unknown(name)),
    }
}

/// A file layered over its base. Where an embedding model has its own settings for the file's data set
/// (`configs/embed`), the file starts from those.
fn layered(text: &str, file: &str, base: &Config, depth: usize) -> Result<Config, ConfigError> {
    let (layer, from) = Layer::parse(text, file)?.split_base()?;
    let dataset =
        file.strip_prefix("configs/").and_then(|rest| rest.split_once('/')).map(|(dataset, _)| dataset);
    let under = |config: &Config| match dataset.and_then(|dataset| preset_for(dataset, &layer)) {
        Some(embed) => Config { embed, ..config.clone() }.with(&layer),
        None => config.with(&layer),
    };
    let Some((from, place)) = from else { return under(base) };
    let wrong = |message: String| ConfigError::from(SettingsError::Setting { place: place.clone(), message });
    if depth > 4 {
        return Err(wrong("these configurations inherit from each other in a cycle".to_owned()));
    }
    let known = ALL.iter().find(|known| known.name == from);
    let known = known.ok_or_else(|| wrong(unknown(&from).to_string()))?;
    under(&layered(known.text, &format!("configs/{from}.toml"), base, depth + 1)?)
}

/// The settings of the embedding model that `layer` chooses on `dataset`, if it chooses one that has any.
fn preset_for(dataset: &str, layer: &Layer) -> Option<Settings> {
    let model: ModelKind = layer.text("embed.model")?.parse().ok()?;
    let text = embed::preset(dataset, model)?;
    Some(Settings::from_toml(text, dataset).expect("a test reads every preset"))
}

fn unknown(name: &str) -> ConfigError {
    let nearest = nearest(name, names());
    let remedy = match nearest.first() {
        Some(nearest) => format!("did you mean `{nearest}`?"),
        None => "configurations have names such as `demonstration` and `wn18rr/blend`".to_owned(),
    };
    let message = format!("no such file, and no configuration of that name; {remedy}");
    SettingsError::Setting { place: name.to_owned(), message }.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_configuration_can_be_read() {
        for name in names() {
            named(name, &Config::default()).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn every_file_is_built_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("configs");
        let mut files = Vec::new();
        for folder in std::fs::read_dir(&root).unwrap().map(|entry| entry.unwrap().path()) {
            let dataset = folder.file_name().unwrap().to_string_lossy().into_owned();
            if folder.is_dir() && !["embed", "space"].contains(&dataset.as_str()) {
                for file in std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()) {
                    files.push(format!("{dataset}/{}", file.file_stem().unwrap().to_string_lossy()));
                }
            }
        }
        for file in &files {
            assert!(names().any(|name| name == file), "{file} is not built in");
        }
    }

    #[test]
    fn an_embedding_model_begins_from_its_own_settings() {
        let config = named("wn18rr/ruleguider-conve", &Config::default()).unwrap();
        let preset = embed::preset("wn18rr", ModelKind::ConvE).unwrap();
        assert_eq!(config.embed, Settings::from_toml(preset, "wn18rr").unwrap());
        assert_eq!(config.walk.lambda, 0.65);
        let minerva = named("fb15k-237/minerva", &Config::default()).unwrap();
        assert_eq!(
            (minerva.walk.lambda, minerva.walk.soft_reward, minerva.walk.bandwidth),
            (0.0, false, 400)
        );
    }

    #[test]
    fn an_unknown_name_has_a_neighbour() {
        let error = named("demonstratoin", &Config::default()).unwrap_err().to_string();
        assert!(error.ends_with("; did you mean `demonstration`?"), "{error}");
        let error = named("Zanzibar", &Config::default()).unwrap_err().to_string();
        assert!(error.ends_with("such as `demonstration` and `wn18rr/blend`"), "{error}");
    }

    #[test]
    fn a_file_begins_from_another() {
        let text = "base = \"demonstration\"\n[rules]\nthreshold = 0.05\n";
        let config = layered(text, "mine.toml", &Config::default(), 0).unwrap();
        assert_eq!(config.rules.threshold, 0.05);
        let demonstration = named("demonstration", &Config::default()).unwrap();
        assert_eq!(config.rules.samples, demonstration.rules.samples);
        let error = layered("\nbase = \"x\"", "mine.toml", &Config::default(), 0).unwrap_err().to_string();
        assert!(error.starts_with("mine.toml:2: x: no such file"), "{error}");
    }
}
