//! Settings that reach the published figures, one file for each model and benchmark graph, built into the
//! program so that it finds them from anywhere.

use super::settings::{ModelKind, Settings};

macro_rules! presets {
    ($($dataset:literal: $($model:literal),+;)+) => {
        &[$($(($dataset, $model, include_str!(concat!("../../configs/embed/", $dataset, "-", $model, ".toml")))),+),+]
    };
}

/// Data set, model, text.
const PRESETS: &[(&str, &str, &str)] = presets! {
    "wn18rr": "distmult", "complex", "conve", "rotate";
    "fb15k-237": "distmult", "complex", "conve", "rotate";
    "nell-995": "distmult", "complex", "conve", "rotate";
};

/// The text of the settings for a model on a data set of this name, if there are any.
pub fn preset(dataset: &str, model: ModelKind) -> Option<&'static str> {
    PRESETS.iter().find(|(d, m, _)| *d == dataset && *m == model.name()).map(|(_, _, text)| *text)
}

/// The data sets and models that have settings of their own.
pub fn presets() -> impl Iterator<Item = (&'static str, ModelKind, Settings)> {
    PRESETS.iter().map(|(dataset, model, text)| {
        let settings = Settings::from_toml(text, &[]).expect("a test reads every preset");
        (*dataset, model.parse().expect("the table above names models"), settings)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_is_about_its_model_and_whole() {
        let mut count = 0;
        for (dataset, model, settings) in presets() {
            assert_eq!(settings.model, model, "{dataset}");
            assert_eq!(settings.dimension, 200, "{dataset} {}", model.name());
            assert!(preset(dataset, model).is_some());
            count += 1;
        }
        assert_eq!(count, 12);
        assert_eq!(preset("wn18", ModelKind::ComplEx), None);
    }
}
