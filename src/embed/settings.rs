//! What can be chosen about an embedding model and its training: plain values with documented defaults, read
//! from TOML, unknown keys refused.

use super::EmbedError;
use serde::{Deserialize, Serialize};

/// The most numbers in an embedding, and examples in a batch: more would not fit into any memory.
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
    /// The relation turns the head towards the tail.
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
        known.ok_or_else(|| format!("`{text}` is no model; use distmult, complex, conve or rotate"))
    }
}

/// What a query's scores of all entities are compared with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Loss {
    /// Binary cross-entropy with every entity: each score is a yes or no. Scores are log-odds as they stand.
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
    /// It does not.
    Constant,
    /// Along half a cosine from its full value to a hundredth of it at the last of `epochs`.
    #[default]
    Cosine,
    /// Multiplied by `decay` after every epoch.
    Exponential,
}

/// All settings. `Settings::default()` is ComplEx with the published loss, yes and no for every answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// Which model.
    pub model: ModelKind,
    /// Numbers in an embedding; complex ones for ComplEx and RotatE.
    pub dimension: usize,
    /// What is minimised.
    pub loss: Loss,
    /// What one training example is.
    pub example: TrainingExample,
    /// The part of a label that is spread over all entities (binary loss).
    pub label_smoothing: f64,
    /// The weight of the sum of cubed moduli of the embeddings of a batch.
    pub n3: f64,
    /// Dropout of the subject's embedding (ConvE: of the stacked image).
    pub dropout_entity: f64,
    /// Dropout of the relation's embedding; not for ConvE.
    pub dropout_relation: f64,
    /// Dropout of the query before it meets the entities.
    pub dropout_hidden: f64,
    /// Dropout of the entities that the query meets.
    pub dropout_table: f64,
    /// Dropout of ConvE's feature maps.
    pub dropout_feature: f64,
    /// Whether every entity has a bias of its own: how often it is an answer at all.
    pub entity_bias: bool,
    /// The deviation of the first values of all embeddings; 0 takes √(2 / (rows + columns)).
    pub initial: f64,
    /// ConvE: rows of an embedding folded into an image; must divide `dimension`.
    pub image_rows: usize,
    /// ConvE: how many filters.
    pub filters: usize,
    /// ConvE: height and width of a filter.
    pub kernel: usize,
    /// Examples in a step.
    pub batch: usize,
    /// Epochs at most.
    pub epochs: usize,
    /// The epochs of the training for the test figure of a data set whose validation facts are learnt as well
    /// then: chosen before, without them. 0 finds the number by a first training that keeps them apart.
    pub final_epochs: usize,
    /// Adam's η at the start.
    pub learning_rate: f64,
    /// How η changes.
    pub schedule: Schedule,
    /// What η is multiplied by after an epoch of the exponential schedule.
    pub decay: f64,
    /// Adam's ε. The binary loss is a mean over all entities, so its slopes are of this size.
    pub epsilon: f64,
    /// The norm to which the gradients of a step are cut; 0 does not cut.
    pub clip: f64,
    /// Epochs between two looks at the validation split.
    pub evaluate_every: usize,
    /// Looks without a better validation MRR after which training stops.
    pub patience: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            model: ModelKind::ComplEx,
            dimension: 200,
            loss: Loss::Binary,
            example: TrainingExample::Query,
            label_smoothing: 0.1,
            n3: 0.0,
            dropout_entity: 0.3,
            dropout_relation: 0.3,
            dropout_hidden: 0.0,
            dropout_table: 0.3,
            dropout_feature: 0.2,
            entity_bias: false,
            initial: 0.0,
            image_rows: 10,
            filters: 32,
            kernel: 3,
            batch: 512,
            epochs: 100,
            final_epochs: 0,
            learning_rate: 0.003,
            schedule: Schedule::Cosine,
            decay: 0.995,
            epsilon: 1e-8,
            clip: 0.0,
            evaluate_every: 10,
            patience: 6,
        }
    }
}

impl Settings {
    /// The defaults of a model.
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

    /// Settings from TOML text; keys that are not there keep the defaults of the model, and `changes`
    /// (`key=value`, the value as in TOML; quotes of a text may be left out) count more than the text.
    ///
    /// # Errors
    /// If a key is unknown, a value has the wrong type, or the values do not fit together.
    pub fn from_toml(text: &str, changes: &[String]) -> Result<Self, EmbedError> {
        let wrong = |why: String| EmbedError::Settings { why };
        let mut table: toml::Table =
            text.parse().map_err(|error: toml::de::Error| wrong(one_line(&error.to_string())))?;
        for change in changes {
            let (key, value) = parse_change(change)?;
            table.insert(key, value);
        }
        let model = match table.get("model") {
            None => ModelKind::default(),
            Some(name) => name
                .as_str()
                .ok_or_else(|| wrong("model: expected a text".to_owned()))?
                .parse()
                .map_err(|why| wrong(format!("model: {why}")))?,
        };
        let mut whole = toml::Table::try_from(Settings::of(model)).expect("settings are plain values");
        for (key, value) in table {
            match whole.get_mut(&key) {
                Some(place) => *place = fitted(&key, value, place)?,
                None => return Err(wrong(unknown_key(&key, whole.keys().map(String::as_str)))),
            }
        }
        let settings: Settings =
            whole.try_into().map_err(|error: toml::de::Error| wrong(one_line(&error.to_string())))?;
        settings.check().map_err(wrong)?;
        Ok(settings)
    }

    /// The same as TOML text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are plain values")
    }

    /// Whether the values make sense by themselves and together.
    ///
    /// # Errors
    /// What does not, by its key.
    pub fn check(&self) -> Result<(), String> {
        let at_least_one = [
            ("dimension", self.dimension),
            ("batch", self.batch),
            ("epochs", self.epochs),
            ("evaluate_every", self.evaluate_every),
            ("patience", self.patience),
            ("image_rows", self.image_rows),
            ("filters", self.filters),
            ("kernel", self.kernel),
        ];
        let shares = [
            ("dropout_entity", self.dropout_entity),
            ("dropout_relation", self.dropout_relation),
            ("dropout_hidden", self.dropout_hidden),
            ("dropout_table", self.dropout_table),
            ("dropout_feature", self.dropout_feature),
            ("label_smoothing", self.label_smoothing),
        ];
        let mut why = None;
        for (key, value) in at_least_one {
            if value == 0 {
                why = Some(format!("{key}: must be at least 1"));
            }
        }
        for (key, value) in [("dimension", self.dimension), ("batch", self.batch)] {
            if value > WIDEST {
                why = Some(format!("{key}: must be at most {WIDEST}"));
            }
        }
        for (key, value) in shares {
            if !(0.0..1.0).contains(&value) {
                why = Some(format!("{key}: {value} is not between 0 and 1"));
            }
        }
        if !(self.learning_rate > 0.0 && self.learning_rate.is_finite()) {
            why = Some(format!("learning_rate: {} is not above 0", self.learning_rate));
        }
        if self.model == ModelKind::ConvE {
            let width = self.dimension / self.image_rows.max(1);
            if !self.dimension.is_multiple_of(self.image_rows.max(1)) {
                why = Some(format!(
                    "image_rows: {} does not divide dimension {}",
                    self.image_rows, self.dimension
                ));
            } else if self.kernel > width || self.kernel > 2 * self.image_rows {
                why = Some(format!(
                    "kernel: {} is larger than the image, {} × {width}",
                    self.kernel,
                    2 * self.image_rows
                ));
            }
        }
        why.map_or(Ok(()), Err)
    }
}

/// `key=value` with the value as TOML, or as a bare text.
fn parse_change(change: &str) -> Result<(String, toml::Value), EmbedError> {
    let (key, value) = change
        .split_once('=')
        .ok_or_else(|| EmbedError::Settings { why: format!("`{change}`: expected key=value") })?;
    let (key, value) = (key.trim().to_owned(), value.trim());
    let parsed =
        format!("value = {value}").parse::<toml::Table>().ok().and_then(|mut table| table.remove("value"));
    Ok((key, parsed.unwrap_or_else(|| toml::Value::String(value.to_owned()))))
}

/// `value` if it is of the same type as the default it replaces; a whole number may stand for a fraction.
fn fitted(key: &str, value: toml::Value, default: &toml::Value) -> Result<toml::Value, EmbedError> {
    match (&value, default) {
        (toml::Value::Integer(whole), toml::Value::Float(_)) => Ok(toml::Value::Float(*whole as f64)),
        _ if value.same_type(default) => Ok(value),
        _ => Err(EmbedError::Settings {
            why: format!("{key}: expected {} (as in {default}), found {value}", kind_of(default)),
        }),
    }
}

fn kind_of(value: &toml::Value) -> &'static str {
    match value {
        toml::Value::Integer(_) => "a whole number",
        toml::Value::Float(_) => "a number",
        toml::Value::Boolean(_) => "true or false",
        _ => "a text",
    }
}

/// Says that a key is unknown, and which known one was probably meant.
fn unknown_key<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> String {
    let nearest = known.max_by(|a, b| strsim::jaro_winkler(key, a).total_cmp(&strsim::jaro_winkler(key, b)));
    match nearest {
        Some(nearest) => format!("unknown key `{key}`; did you mean `{nearest}`?"),
        None => format!("unknown key `{key}`"),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn complaint(text: &str, changes: &[&str]) -> String {
        let changes: Vec<String> = changes.iter().map(|change| (*change).to_owned()).collect();
        Settings::from_toml(text, &changes).unwrap_err().to_string()
    }

    #[test]
    fn what_is_not_said_keeps_the_defaults_of_the_model() {
        for model in ModelKind::ALL {
            let text = format!("model = \"{}\"", model.name());
            assert_eq!(Settings::from_toml(&text, &[]).unwrap(), Settings::of(model));
            let written = Settings::of(model).to_toml();
            assert_eq!(Settings::from_toml(&written, &[]).unwrap(), Settings::of(model));
        }
    }

    #[test]
    fn changes_count_more_than_the_text() {
        let changes = ["epochs=7", "loss=softmax", "n3 = 1", "schedule=\"constant\""].map(str::to_owned);
        let settings = Settings::from_toml("epochs = 3\nbatch = 64", &changes).unwrap();
        assert_eq!((settings.epochs, settings.batch, settings.n3), (7, 64, 1.0));
        assert_eq!((settings.loss, settings.schedule), (Loss::Softmax, Schedule::Constant));
    }

    #[test]
    fn a_wrong_setting_names_itself_and_the_remedy() {
        assert_eq!(
            complaint("learningrate = 0.1", &[]),
            "settings: unknown key `learningrate`; did you mean `learning_rate`?"
        );
        assert_eq!(
            complaint("", &["epochs=many"]),
            "settings: epochs: expected a whole number (as in 100), found \"many\""
        );
        assert_eq!(complaint("", &["epochs"]), "settings: `epochs`: expected key=value");
        assert_eq!(complaint("batch = 0", &[]), "settings: batch: must be at least 1");
        assert_eq!(
            complaint("dropout_table = 1.5", &[]),
            "settings: dropout_table: 1.5 is not between 0 and 1"
        );
        assert!(complaint("model = \"transe\"", &[]).contains("use distmult, complex, conve or rotate"));
        assert!(complaint("loss = \"hinge\"", &[]).contains("unknown variant `hinge`"));
        assert!(complaint("epochs = = 3", &[]).contains("line 1"));
        assert!(
            complaint("model = \"conve\"\nimage_rows = 7", &[]).contains("does not divide dimension 200")
        );
    }
}
