//! The settings of an embedding model and its training: plain values with documented defaults, read from TOML;
//! unknown keys are refused.

use super::NetworkError;
use crate::settings::{Layer, WrongValue, expect, number, whole};
use serde::{Deserialize, Serialize};
use std::ops::Bound;

/// The largest dimension of an embedding and the largest batch: more would not fit into any memory.
const WIDEST: usize = 1 << 16;

/// Which model scores a triple.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ModelKind {
    /// `Σ h·r·t`: symmetric, the simplest.
    DistMult,
    /// `Re Σ h·r·conj(t)` over complex numbers.
    #[default]
    ComplEx,
    /// A convolution over head and relation, then a product with the tail.
    ConvE,
    /// The relation rotates the head towards the tail.
    RotatE,
}

impl ModelKind {
    /// All of them.
    pub const ALL: [ModelKind; 4] =
        [ModelKind::DistMult, ModelKind::ComplEx, ModelKind::ConvE, ModelKind::RotatE];

    /// The name in files, on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            ModelKind::DistMult => "distmult",
            ModelKind::ComplEx => "complex",
            ModelKind::ConvE => "conve",
            ModelKind::RotatE => "rotate",
        }
    }
}

impl std::str::FromStr for ModelKind {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = ModelKind::ALL.into_iter().find(|kind| kind.name() == text);
        known.ok_or_else(|| format!("unknown model `{text}`; use distmult, complex, conve or rotate"))
    }
}

/// The training loss over a query's scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// Binary cross-entropy over all entities. Scores are log-odds.
    #[default]
    Binary,
    /// Cross-entropy of the softmax over all entities.
    Softmax,
}

/// What one training example is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TrainingExample {
    /// A distinct query with all of its answers.
    #[default]
    Query,
    /// A fact in one direction: a query with one of its answers.
    Fact,
}

/// How the learning rate changes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Schedule {
    /// The learning rate is constant.
    Constant,
    /// Half a cosine, from the full value to a hundredth of it at the last of `epochs`.
    #[default]
    Cosine,
    /// Multiplied by `decay` after every epoch.
    Exponential,
}

/// The floor that label smoothing gives every entity (binary loss): targets are `(1 − s) y + floor / entities`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum LabelFloor {
    /// As much as smoothing takes from the labels: the floor is `s`.
    #[default]
    Smoothed,
    /// One, however much smoothing takes, as in MultiHop's published code.
    One,
}

/// Where dropout is applied to ConvE's image.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ImageDropout {
    /// After normalisation, as ConvE's authors do.
    #[default]
    After,
    /// Before normalisation, on the embeddings, as in MultiHop's published code.
    Before,
}

/// All settings. `Settings::default()` is ComplEx with the published loss, binary cross-entropy.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Which model.
    pub model: ModelKind,
    /// The dimension of an embedding; complex numbers for ComplEx and RotatE.
    pub dimension: usize,
    /// What is minimised.
    pub loss: Loss,
    /// What one training example is.
    pub example: TrainingExample,
    /// Softmax: how many entities are drawn per step as negatives. Queries are compared with these and with all
    /// answers of the batch; 0 compares them with all entities.
    pub negatives: usize,
    /// The part of a label that is spread over all entities (binary loss).
    pub label_smoothing: f64,
    /// The floor that label smoothing gives every entity (binary loss).
    pub label_floor: LabelFloor,
    /// The weight of the sum of cubed moduli of the embeddings of a batch.
    pub n3: f64,
    /// Dropout of the subject's embedding (ConvE: of the stacked image).
    pub dropout_entity: f64,
    /// Dropout of the relation's embedding; not for ConvE.
    pub dropout_relation: f64,
    /// Dropout of the query before it is compared with the entities.
    pub dropout_hidden: f64,
    /// Dropout on the entities that the query is compared with, one mask per step.
    pub dropout_table: f64,
    /// Dropout of ConvE's feature maps.
    pub dropout_feature: f64,
    /// Whether every entity has its own bias, which can express how often it is an answer at all.
    pub entity_bias: bool,
    /// The standard deviation of the initial embeddings; 0 takes √(2 / (rows + columns)).
    pub initial: f64,
    /// ComplEx: the standard deviation of the initial imaginary parts; 0 takes that of the real parts. 1 in MultiHop's
    /// published code, which leaves them as PyTorch makes them.
    pub initial_imaginary: f64,
    /// ConvE: rows of an embedding folded into an image; must divide `dimension`.
    pub image_rows: usize,
    /// ConvE: how many filters.
    pub filters: usize,
    /// ConvE: height and width of a filter.
    pub kernel: usize,
    /// ConvE: whether dropout on the image comes before or after its normalisation.
    pub image_dropout: ImageDropout,
    /// ConvE: whether the feature maps are normalised.
    pub feature_norm: bool,
    /// Examples in a step.
    pub batch: usize,
    /// The maximum number of epochs.
    pub epochs: usize,
    /// The epochs of the final training of a data set whose validation facts are then learnt as well; chosen without
    /// them. 0 finds the number by a first training that holds them out.
    pub final_epochs: usize,
    /// Adam's initial learning rate η.
    pub learning_rate: f64,
    /// How η changes.
    pub schedule: Schedule,
    /// The factor on η after every epoch of the exponential schedule.
    pub decay: f64,
    /// Adam's ε. The binary loss is a mean over all entities, so its gradients are of this size.
    pub epsilon: f64,
    /// The norm to which the gradients of a step are clipped; 0 for no clipping.
    pub clip: f64,
    /// Epochs between two validations.
    pub evaluate_every: usize,
    /// The maximum number of validation triples to rank, evenly spread; 0 for all.
    pub validation_queries: usize,
    /// Validations without a better MRR after which training stops.
    pub patience: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            model: ModelKind::ComplEx,
            dimension: 200,
            loss: Loss::Binary,
            example: TrainingExample::Query,
            negatives: 0,
            label_smoothing: 0.1,
            label_floor: LabelFloor::Smoothed,
            n3: 0.0,
            dropout_entity: 0.3,
            dropout_relation: 0.3,
            dropout_hidden: 0.0,
            dropout_table: 0.3,
            dropout_feature: 0.2,
            entity_bias: false,
            initial: 0.0,
            initial_imaginary: 0.0,
            image_rows: 10,
            filters: 32,
            kernel: 3,
            image_dropout: ImageDropout::After,
            feature_norm: true,
            batch: 512,
            epochs: 100,
            final_epochs: 0,
            learning_rate: 0.003,
            schedule: Schedule::Cosine,
            decay: 0.995,
            epsilon: 1e-8,
            clip: 0.0,
            evaluate_every: 10,
            validation_queries: 0,
            patience: 6,
        }
    }
}

impl Settings {
    /// The default settings of a model.
    pub fn of(model: ModelKind) -> Self {
        let general = Settings { model, ..Settings::default() };
        match model {
            ModelKind::ConvE => {
                Settings { dropout_hidden: 0.3, dropout_table: 0.0, entity_bias: true, ..general }
            }
            ModelKind::RotatE => Settings {
                loss: Loss::Softmax,
                example: TrainingExample::Fact,
                dropout_entity: 0.0,
                dropout_relation: 0.0,
                dropout_table: 0.0,
                initial: 0.1,
                ..general
            },
            ModelKind::DistMult | ModelKind::ComplEx => general,
        }
    }

    /// Settings from TOML text; missing keys keep the defaults of the model. `name` is the file's name in messages.
    ///
    /// # Errors
    /// If a key is unknown, a value has the wrong type, or the values do not fit together.
    pub fn from_toml(text: &str, name: &str) -> Result<Self, NetworkError> {
        Self::from_layer(&Layer::parse(text, name)?)
    }

    /// The settings of `layer` over the defaults of the model that it names.
    ///
    /// # Errors
    /// If a key is unknown, a value has the wrong type, or the values do not fit together.
    pub fn from_layer(layer: &Layer) -> Result<Self, NetworkError> {
        // The layer itself refuses an unknown model and reports its position.
        let model = layer.text("model").and_then(|name| name.parse().ok()).unwrap_or_default();
        Ok(layer.over(&Settings::of(model), Settings::check)?)
    }

    /// The settings as TOML text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are plain values")
    }

    /// How many of this many entities the queries of a step are compared with.
    pub fn compared(&self, entities: usize) -> usize {
        if self.negatives == 0 { entities } else { entities.min(self.negatives + self.batch) }
    }

    /// Multiply-adds of an epoch over this many facts: both queries of each are compared with entities, forward and
    /// twice backward.
    pub fn multiply_adds(&self, entities: usize, facts: usize) -> f64 {
        3.0 * 2.0 * facts as f64 * (self.compared(entities) * self.width()) as f64
    }

    /// Numbers of an entity's vector.
    pub fn width(&self) -> usize {
        match self.model {
            ModelKind::ComplEx | ModelKind::RotatE => 2 * self.dimension,
            ModelKind::DistMult | ModelKind::ConvE => self.dimension,
        }
    }

    /// Whether the values make sense by themselves and together.
    ///
    /// # Errors
    /// If one does not; the error names its key.
    pub fn check(&self) -> Result<(), WrongValue> {
        for (key, value, most) in [
            ("dimension", self.dimension, WIDEST),
            ("batch", self.batch, WIDEST),
            ("epochs", self.epochs, usize::MAX),
            ("evaluate_every", self.evaluate_every, usize::MAX),
            ("patience", self.patience, usize::MAX),
            ("image_rows", self.image_rows, usize::MAX),
            ("filters", self.filters, usize::MAX),
            ("kernel", self.kernel, usize::MAX),
        ] {
            whole(key, value, 1..=most)?;
        }
        for (key, value) in [
            ("dropout_entity", self.dropout_entity),
            ("dropout_relation", self.dropout_relation),
            ("dropout_hidden", self.dropout_hidden),
            ("dropout_table", self.dropout_table),
            ("dropout_feature", self.dropout_feature),
            ("label_smoothing", self.label_smoothing),
        ] {
            number(key, value, 0.0..1.0)?;
        }
        number("initial_imaginary", self.initial_imaginary, 0.0..)?;
        number("epsilon", self.epsilon, (Bound::Excluded(0.0), Bound::Unbounded))?;
        number("decay", self.decay, (Bound::Excluded(0.0), Bound::Included(1.0)))?;
        number("learning_rate", self.learning_rate, (Bound::Excluded(0.0), Bound::Unbounded))?;
        let drawn = self.negatives > 0;
        expect(
            !drawn || self.loss == Loss::Softmax,
            "negatives",
            "0 where `loss` is binary",
            self.negatives,
        )?;
        if self.model == ModelKind::ConvE { self.check_image() } else { Ok(()) }
    }

    /// Whether ConvE's image can be made, and a filter fits into it.
    fn check_image(&self) -> Result<(), WrongValue> {
        let (rows, width) = (2 * self.image_rows, self.dimension / self.image_rows);
        let divisor = format!("a number that divides dimension {}", self.dimension);
        expect(self.dimension.is_multiple_of(self.image_rows), "image_rows", &divisor, self.image_rows)?;
        let within = format!("a number within the image, {rows} × {width}");
        expect(self.kernel <= width && self.kernel <= rows, "kernel", &within, self.kernel)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str) -> String {
        Settings::from_toml(text, "a.toml").unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_said_keeps_the_defaults_of_the_model() {
        for model in ModelKind::ALL {
            let text = format!("model = \"{}\"", model.name());
            assert_eq!(Settings::from_toml(&text, "a").unwrap(), Settings::of(model));
            let written = Settings::of(model).to_toml();
            assert_eq!(Settings::from_toml(&written, "a").unwrap(), Settings::of(model));
        }
    }

    #[test]
    fn changes_count_more_than_the_text() {
        let text = Layer::parse("epochs = 3\nbatch = 64", "a").unwrap();
        let changes = Layer::from_pairs(["epochs=7", "loss=softmax", "n3 = 1", "schedule=\"constant\""]);
        let settings = Settings::from_layer(&text.followed_by(changes.unwrap())).unwrap();
        assert_eq!((settings.epochs, settings.batch, settings.n3), (7, 64, 1.0));
        assert_eq!((settings.loss, settings.schedule), (Loss::Softmax, Schedule::Constant));
    }

    #[test]
    fn a_wrong_setting_names_itself_and_the_remedy() {
        for (text, message) in [
            ("learningrate = 0.1", "a.toml:1: unknown setting `learningrate`; did you mean `learning_rate`?"),
            ("\nbatch = 0", "a.toml:2: `batch`: expected a whole number from 1 to 65536, found 0"),
            ("kernel = 0", "a.toml:1: `kernel`: expected a whole number, 1 or more, found 0"),
            ("epochs = 'many'", "a.toml:1: `epochs`: expected a whole number, 0 or more, found \"many\""),
            (
                "dropout_table = 1.5",
                "a.toml:1: `dropout_table`: expected a number from 0 to below 1, found 1.5",
            ),
            ("loss = 'hinge'", "a.toml:1: `loss`: expected `binary` or `softmax`, found \"hinge\""),
            (
                "model = 'transe'",
                "a.toml:1: `model`: expected one of `distmult`, `complex`, `conve`, `rotate`, found \"transe\"",
            ),
            (
                "model = 'conve'\nimage_rows = 7",
                "a.toml:2: `image_rows`: expected a number that divides dimension 200, found 7",
            ),
            (
                "model = 'conve'\nkernel = 30",
                "a.toml:2: `kernel`: expected a number within the image, 20 × 20, found 30",
            ),
        ] {
            assert_eq!(complaint(text), message);
        }
        assert!(complaint("epochs = = 3").starts_with("a.toml:1: "));
    }
}
