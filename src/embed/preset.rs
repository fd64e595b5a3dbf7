//! Settings that reach the published figures, one file for each model and benchmark graph, compiled into the program;
//! and settings for graphs without tuned ones.

use super::NetworkError;
use super::settings::{Loss, ModelKind, Settings, TrainingExample};
use crate::settings::Layer;

macro_rules! presets {
    ($($dataset:literal: $($model:literal),+;)+) => {
        &[$($(($dataset, $model, include_str!(concat!("../../configs/embed/", $dataset, "-", $model, ".toml")))),+),+]
    };
}

/// A graph with at least this many entities is large. Settings were measured below 3,000 entities (UMLS, Kinship,
/// families) and from 14,541 on (FB15k-237, WN18RR, NELL-995), see results/NOTES.md, *Your own graph*; nothing was
/// measured in between.
pub const LARGE: usize = 10_000;
/// A graph with fewer entities is small: UMLS, Kinship and a family of 400, for which a dimension of 64 was enough
/// (results/NOTES.md, the table of `embed` on graphs of less than 10,000 entities).
const SMALL: usize = 1000;

/// From this many entities on, an epoch against all entities takes 50 times as many multiply-adds as one against a
/// sample.
const VERY_LARGE: usize = 100_000;
/// Entities drawn per step: as many as the batch of a large graph has answers.
const NEGATIVES: usize = 1024;

/// Data set, model, text.
const PRESETS: &[(&str, &str, &str)] = presets! {
    "wn18rr": "distmult", "complex", "conve", "rotate";
    "fb15k-237": "distmult", "complex", "conve", "rotate";
    "nell-995": "distmult", "complex", "conve", "rotate";
};

/// The settings file for a model on a data set of this name, if there is one.
pub fn preset(dataset: &str, model: ModelKind) -> Option<&'static str> {
    PRESETS.iter().find(|(d, m, _)| *d == dataset && *m == model.name()).map(|(_, _, text)| *text)
}

/// The data sets and models that have presets.
pub fn presets() -> impl Iterator<Item = (&'static str, ModelKind, Settings)> {
    PRESETS.iter().map(|(dataset, model, text)| {
        let settings = Settings::from_toml(text, dataset).expect("a test reads every preset");
        (*dataset, model.parse().expect("the table above names models"), settings)
    })
}

/// Settings of a model for a graph of this many entities without tuned settings. A softmax over all entities for
/// every fact learns better, and in far fewer epochs, than the binary loss, on small and large graphs. The values are
/// those compared in results/NOTES.md (*Your own graph*; N3 of RotatE above it).
pub fn suited(model: ModelKind, entities: usize) -> Settings {
    let own = match model {
        ModelKind::DistMult | ModelKind::ComplEx => Settings {
            dropout_entity: 0.0,
            dropout_relation: 0.0,
            dropout_table: 0.0,
            n3: if entities < LARGE { 0.02 } else { 0.05 },
            ..Settings::of(model)
        },
        ModelKind::RotatE => {
            Settings { n3: if entities < LARGE { 0.05 } else { 0.4 }, ..Settings::of(model) }
        }
        ModelKind::ConvE => Settings::of(model),
    };
    let general = Settings { loss: Loss::Softmax, example: TrainingExample::Fact, ..own };
    match entities {
        0..SMALL => Settings { dimension: 64, image_rows: 8, batch: 256, learning_rate: 0.01, ..general },
        SMALL..LARGE => Settings { dimension: 100, batch: 512, learning_rate: 0.01, ..general },
        LARGE..VERY_LARGE => Settings { batch: 1024, epochs: 30, evaluate_every: 5, ..general },
        _ => sampled(Settings { batch: 1024, epochs: 30, evaluate_every: 5, ..general }),
    }
}

/// What of the settings that [suit](suited) `model` differs from those that suit ComplEx, for which plans are made:
/// `key=value`, the model first.
pub fn unlike_complex(model: ModelKind, entities: usize) -> Vec<String> {
    let [own, usual] = [model, ModelKind::ComplEx].map(|model| suited(model, entities).to_toml());
    let usual: Vec<&str> = usual.lines().collect();
    let differs = own.lines().filter(|line| !usual.contains(line));
    differs.filter_map(|line| line.split_once(" = ")).map(|(key, value)| format!("{key}={value}")).collect()
}

/// The same settings against a sample of the entities. This many validation triples give a good enough estimate, and
/// ranking them costs little compared with such epochs.
pub fn sampled(settings: Settings) -> Settings {
    Settings { negatives: NEGATIVES, validation_queries: 2000, ..settings }
}

/// The settings to train `model` with: `own` if given, else the preset for the benchmark graph called `dataset`, else
/// what suits a graph of this many entities; in each case with `changes` applied.
///
/// # Errors
/// As [`Settings::from_layer`].
pub fn chosen(
    model: ModelKind,
    dataset: &str,
    entities: usize,
    own: Option<Layer>,
    changes: Layer,
) -> Result<Settings, NetworkError> {
    let named = format!("model=\"{}\"", model.name());
    let changes = Layer::from_pairs([named.as_str()])?.followed_by(changes);
    let base = match (own, preset(dataset, model)) {
        (Some(own), _) => own,
        (None, Some(text)) => Layer::parse(text, dataset)?,
        (None, None) => Layer::parse(&suited(model, entities).to_toml(), "settings")?,
    };
    Settings::from_layer(&base.followed_by(changes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_model_brings_what_suits_it() {
        assert_eq!(unlike_complex(ModelKind::ComplEx, 500), [""; 0]);
        let rotate = unlike_complex(ModelKind::RotatE, 500);
        for pair in ["model=\"rotate\"", "n3=0.05"] {
            assert!(rotate.iter().any(|own| own == pair), "{rotate:?}");
        }
        let complex = Layer::parse(&suited(ModelKind::ComplEx, 500).to_toml(), "a").unwrap();
        let changes = Layer::from_pairs(rotate.iter().map(String::as_str)).unwrap();
        let made = Settings::from_layer(&complex.followed_by(changes)).unwrap();
        assert_eq!(made, suited(ModelKind::RotatE, 500));
    }

    #[test]
    fn what_suits_a_graph_makes_sense_for_every_model_and_size() {
        for (_, model, _) in presets() {
            for entities in [1, 999, 1000, 9_999, 10_000, 1_000_000] {
                let settings = suited(model, entities);
                assert_eq!(settings.check(), Ok(()), "{} of {entities}", model.name());
                assert_eq!((settings.model, settings.loss), (model, Loss::Softmax));
            }
        }
    }

    #[test]
    fn what_somebody_wrote_counts_before_presets_and_changes_before_all() {
        let set = |pairs: &[&str]| Layer::from_pairs(pairs.iter().copied()).unwrap();
        let model = ModelKind::RotatE;
        let tuned = chosen(model, "wn18rr", 40_943, None, set(&["epochs=3"])).unwrap();
        let preset = Settings::from_toml(preset("wn18rr", model).unwrap(), "a").unwrap();
        assert_eq!(tuned, Settings { epochs: 3, ..preset });
        let untuned = chosen(model, "mine", 500, None, Layer::default()).unwrap();
        assert_eq!(untuned, suited(model, 500));
        let own = Layer::parse("epochs = 5\nbatch = 9", "a").unwrap();
        let own = chosen(model, "wn18rr", 40_943, Some(own), set(&["batch=7"])).unwrap();
        assert_eq!(own, Settings { epochs: 5, batch: 7, ..Settings::of(model) });
    }

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
