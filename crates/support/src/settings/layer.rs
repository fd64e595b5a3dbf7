//! Settings as given: TOML text or `key=value`, one layer over another, each setting with its place.
//!
//! A layer knows nothing of what the settings mean. [`Layer::over`] puts it over any plain struct that can be
//! written as TOML: the struct's own fields are the known keys, and a key that is not among them, or a value
//! that does not fit its field, is an error that names the key, its place and the nearest known key.

use super::WrongValue;
use crate::suggest::nearest_key;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// Why settings were rejected.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// An unknown setting, or a value of the wrong type or out of range.
    #[error("{place}: {message}")]
    Setting {
        /// Where it was given: `file:line`, or `key=value`.
        place: String,
        /// What is wrong with it.
        message: String,
    },
    /// A settings file that cannot be read.
    #[error("{}: cannot be read", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
}

/// A value with its dotted key and the place where it was given.
#[derive(Clone, Debug, PartialEq)]
struct Setting {
    key: String,
    value: Value,
    place: String,
}

/// Some settings, in the order in which they were given.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Layer {
    settings: Vec<Setting>,
}

impl Layer {
    /// The settings of a TOML file.
    ///
    /// # Errors
    /// If the file cannot be read or is not valid TOML.
    pub fn read(path: &Path) -> Result<Self, SettingsError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Io { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// The settings of TOML text; `name` is the file's name in messages.
    ///
    /// # Errors
    /// If the text is not valid TOML.
    pub fn parse(text: &str, name: &str) -> Result<Self, SettingsError> {
        let place = |at: usize| format!("{name}:{}", text[..at].matches('\n').count() + 1);
        let wrong = |error: toml::de::Error| SettingsError::Setting {
            place: place(error.span().map_or(0, |span| span.start)),
            message: error.message().replace('\n', ", "),
        };
        let spans = DeTable::parse(text).map_err(wrong)?;
        let values: Table = toml::from_str(text).map_err(wrong)?;
        let mut layer = Layer::default();
        layer.add_table("", &values, spans.get_ref(), &place);
        Ok(layer)
    }

    /// `key=value` settings. A value that is not valid TOML is taken as text, so that quotes are not needed.
    ///
    /// # Errors
    /// If there is no `=` in one of them.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<Self, SettingsError> {
        let mut layer = Layer::default();
        for pair in pairs {
            let place = pair.to_owned();
            let Some((key, text)) = pair.split_once('=') else {
                let message = "expected key=value, such as walk.lambda=0.1".to_owned();
                return Err(SettingsError::Setting { place, message });
            };
            let text = text.trim();
            let parsed = toml::from_str::<Table>(&format!("value = {text}")).ok();
            let value = match parsed.and_then(|mut table| table.remove("value")) {
                Some(value) => value,
                None => Value::String(text.to_owned()),
            };
            layer.settings.push(Setting { key: key.trim().to_owned(), value, place });
        }
        Ok(layer)
    }

    /// The settings of a JSON object: groups as objects within it, or dotted keys. `place` is where they were given, in
    /// messages.
    ///
    /// # Errors
    /// If it is no object, or a value is one that no setting has.
    pub fn from_json(settings: &serde_json::Value, place: &str) -> Result<Self, SettingsError> {
        let wrong = |message: String| SettingsError::Setting { place: place.to_owned(), message };
        let serde_json::Value::Object(settings) = settings else {
            return Err(wrong(format!("expected an object with settings by key, found {settings}")));
        };
        let mut layer = Layer::default();
        let mut open: Vec<(String, &serde_json::Value)> =
            settings.iter().rev().map(|(key, value)| (key.clone(), value)).collect();
        while let Some((key, value)) = open.pop() {
            if let serde_json::Value::Object(group) = value {
                open.extend(group.iter().rev().map(|(name, value)| (format!("{key}.{name}"), value)));
                continue;
            }
            let value = Value::try_from(value)
                .map_err(|_| wrong(format!("`{key}`: expected a value that TOML can hold, found {value}")))?;
            layer.settings.push(Setting { key, value, place: place.to_owned() });
        }
        Ok(layer)
    }

    /// One setting, given at `place`.
    pub fn one(key: &str, value: Value, place: &str) -> Self {
        Layer { settings: vec![Setting { key: key.to_owned(), value, place: place.to_owned() }] }
    }

    /// Every setting in order: its dotted key, its value, and where it was given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Value, &str)> {
        self.settings.iter().map(|Setting { key, value, place }| (key.as_str(), value, place.as_str()))
    }

    /// These settings, then those of `over`, which take precedence.
    pub fn followed_by(mut self, over: Layer) -> Self {
        self.settings.extend(over.settings);
        self
    }

    /// The text that this layer sets for `key`, if any.
    pub fn text(&self, key: &str) -> Option<&str> {
        let last = self.settings.iter().rev().find(|setting| setting.key == key)?;
        last.value.as_str()
    }

    /// Removes the setting `base`, with which a file inherits from another one: its value and its place.
    ///
    /// # Errors
    /// If the value is no text.
    pub fn split_base(mut self) -> Result<(Self, Option<(String, String)>), SettingsError> {
        let Some(at) = self.settings.iter().position(|setting| setting.key == "base") else {
            return Ok((self, None));
        };
        let Setting { value, place, .. } = self.settings.remove(at);
        match value {
            Value::String(base) => Ok((self, Some((base, place)))),
            other => {
                let message = format!("`base`: expected the name of a configuration, found {other}");
                Err(SettingsError::Setting { place, message })
            }
        }
    }

    fn add_table(
        &mut self,
        prefix: &str,
        values: &Table,
        spans: &DeTable<'_>,
        place: &dyn Fn(usize) -> String,
    ) {
        for (name, spanned) in spans {
            let key = if prefix.is_empty() {
                name.get_ref().to_string()
            } else {
                format!("{prefix}.{}", name.get_ref())
            };
            match (&values[name.get_ref().as_ref()], spanned.get_ref()) {
                (Value::Table(values), DeValue::Table(spans)) => self.add_table(&key, values, spans, place),
                (value, _) => {
                    let place = place(name.span().start);
                    self.settings.push(Setting { key, value: value.clone(), place });
                }
            }
        }
    }

    /// `base` with this layer's settings in place of its own. Every setting is also tried alone, so that the error
    /// names the offending one if `check` rejects all of them together.
    ///
    /// # Errors
    /// If a key is unknown or a value does not fit.
    pub fn over<T>(&self, base: &T, check: fn(&T) -> Result<(), WrongValue>) -> Result<T, SettingsError>
    where
        T: Serialize + DeserializeOwned,
    {
        let known = Table::try_from(base).expect("a configuration is plain fields, which TOML can hold");
        let mut all = known.clone();
        let mut blamed = None;
        for Setting { key, value, place } in &self.settings {
            let wrong = |message: String| SettingsError::Setting { place: place.clone(), message };
            let slot = find(&mut all, key)
                .ok_or_else(|| wrong(format!("unknown setting `{key}`{}", suggestion(key, &keys(&known)))))?;
            if slot.is_table() {
                return Err(wrong(format!(
                    "`{key}` is a group of settings, not a setting; {}",
                    members(key, &known)
                )));
            }
            let misfit = |expected: &str| {
                let (key, expected, found) = (key.clone(), expected.to_owned(), value.to_string());
                wrong(WrongValue { key, expected, found }.to_string())
            };
            // Some settings are a word or a number; of the others it is said which kind they are.
            let word = (slot.is_str() && !value.is_str()).then(|| format!("a word such as {slot}"));
            *slot = value.clone();
            let mut alone = known.clone();
            *find(&mut alone, key).expect("found in a table of the same keys") = value.clone();
            let tried: T = Value::Table(alone).try_into().map_err(|error: toml::de::Error| {
                match (&word, in_words(error.message()).rsplit_once(", expected ")) {
                    (Some(word), _) => misfit(word),
                    (None, Some((_, expected))) => misfit(expected),
                    (None, None) => wrong(format!("`{key}`: {}", in_words(error.message()))),
                }
            })?;
            if let (Err(error), None) = (check(&tried), &blamed) {
                blamed = Some(wrong(error.to_string()));
            }
        }
        let result: T = Value::Table(all).try_into().map_err(|error: toml::de::Error| {
            let message = in_words(error.message());
            SettingsError::Setting { place: "configuration".to_owned(), message }
        })?;
        let last = || self.settings.last().map_or("configuration", |last| &last.place).to_owned();
        match check(&result) {
            Ok(()) => Ok(result),
            Err(error) => Err(blamed.unwrap_or_else(|| {
                let message = error.to_string();
                SettingsError::Setting { place: last(), message }
            })),
        }
    }
}

fn find<'a>(table: &'a mut Table, key: &str) -> Option<&'a mut Value> {
    match key.split_once('.') {
        None => table.get_mut(key),
        Some((group, rest)) => match table.get_mut(group)? {
            Value::Table(table) => find(table, rest),
            _ => None,
        },
    }
}

/// All keys of single settings, dotted.
fn keys(table: &Table) -> Vec<String> {
    let mut found = Vec::new();
    for (name, value) in table {
        match value {
            Value::Table(group) => found.extend(keys(group).into_iter().map(|key| format!("{name}.{key}"))),
            _ => found.push(name.clone()),
        }
    }
    found
}

fn members(group: &str, known: &Table) -> String {
    let prefix = format!("{group}.");
    let inside: Vec<String> = keys(known).into_iter().filter(|key| key.starts_with(&prefix)).collect();
    format!("it has {}", inside.join(", "))
}

/// `; did you mean …?` with the nearest known key, or the list of groups.
fn suggestion(key: &str, known: &[String]) -> String {
    match nearest_key(key, known.iter().map(String::as_str)) {
        Some(nearest) => format!("; did you mean `{nearest}`?"),
        None => {
            let mut groups: Vec<&str> = known.iter().filter_map(|key| Some(key.split_once('.')?.0)).collect();
            groups.dedup();
            match groups.is_empty() {
                true => format!("; the settings are {}", known.join(", ")),
                false => format!("; settings are grouped under {}", groups.join(", ")),
            }
        }
    }
}

/// The deserialiser's message, with Rust type names in plain words.
fn in_words(message: &str) -> String {
    let mut plain = message.trim().replace('\n', ", ");
    for (kind, words) in [
        ("expected f64", "expected a number"),
        ("expected f32", "expected a number"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected u32", "expected a whole number, 0 or more"),
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected a boolean", "expected true or false"),
    ] {
        plain = plain.replace(kind, words);
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::number;
    use serde::Deserialize;

    #[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
    struct Plain {
        system: Kind,
        walk: Walk,
    }

    #[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
    struct Walk {
        lambda: f64,
        batch: u64,
        freeze: bool,
    }

    #[derive(Serialize, Deserialize, Debug, PartialEq, Clone)]
    #[serde(rename_all = "kebab-case")]
    enum Kind {
        Rules,
        Walker,
    }

    fn plain() -> Plain {
        Plain { system: Kind::Walker, walk: Walk { lambda: 0.5, batch: 7, freeze: false } }
    }

    fn check(plain: &Plain) -> Result<(), WrongValue> {
        number("walk.lambda", plain.walk.lambda, ..=1.0)
    }

    #[track_caller]
    fn refused(text: &str, reported: &str) {
        let error = Layer::parse(text, "a.toml").and_then(|layer| layer.over(&plain(), check)).unwrap_err();
        assert_eq!(error.to_string(), reported);
    }

    #[test]
    fn a_layer_replaces_what_it_names() {
        let layer =
            Layer::parse("system = 'rules'\n[walk]\nlambda = 1 # whole numbers are numbers\n", "a").unwrap();
        let under = layer.over(&plain(), check).unwrap();
        let expected = Plain { system: Kind::Rules, walk: Walk { lambda: 1.0, ..plain().walk } };
        assert_eq!(under, expected);
        let set = Layer::from_pairs(["walk.batch=9", "system=walker", "walk.freeze = true"]).unwrap();
        let over = set.over(&under, check).unwrap();
        let expected = Plain { system: Kind::Walker, walk: Walk { lambda: 1.0, batch: 9, freeze: true } };
        assert_eq!(over, expected);
    }

    #[test]
    fn json_is_taken_like_toml() {
        let over = |json| Layer::from_json(&json, "config").and_then(|layer| layer.over(&plain(), check));
        let taken =
            over(serde_json::json!({"system": "rules", "walk": {"lambda": 1}, "walk.batch": 9})).unwrap();
        let walk = Walk { lambda: 1.0, batch: 9, ..plain().walk };
        assert_eq!(taken, Plain { system: Kind::Rules, walk });
        let refused = |json| over(json).unwrap_err().to_string();
        let misspelt = refused(serde_json::json!({"walk": {"lamda": 1}}));
        assert_eq!(misspelt, "config: unknown setting `walk.lamda`; did you mean `walk.lambda`?");
        assert!(
            refused(serde_json::json!({"walk": {"batch": null}})).contains("`walk.batch`: expected a value")
        );
        assert!(
            refused(serde_json::json!([1])).contains("expected an object with settings by key, found [1]")
        );
    }

    #[test]
    fn of_two_layers_the_later_counts() {
        let text = Layer::parse("[walk]\nlambda = 2.0\nbatch = 3", "a").unwrap();
        let both = text.followed_by(Layer::from_pairs(["walk.lambda=0.25"]).unwrap());
        let taken = both.over(&plain(), check).unwrap();
        assert_eq!((taken.walk.lambda, taken.walk.batch), (0.25, 3));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        refused("\n[walk]\nlamda = 1", "a.toml:3: unknown setting `walk.lamda`; did you mean `walk.lambda`?");
        refused("lambda = 1", "a.toml:1: unknown setting `lambda`; did you mean `walk.lambda`?");
        refused("[wolk]\nbatch = 1", "a.toml:2: unknown setting `wolk.batch`; did you mean `walk.batch`?");
        refused("[x]\nqqq = 1", "a.toml:2: unknown setting `x.qqq`; settings are grouped under walk");
        refused(
            "walk = 3",
            "a.toml:1: `walk` is a group of settings, not a setting; it has walk.batch, walk.freeze, walk.lambda",
        );
        refused("[walk]\nlambda = 'high'", "a.toml:2: `walk.lambda`: expected a number, found \"high\"");
        refused("[walk]\nbatch = -1", "a.toml:2: `walk.batch`: expected a whole number, 0 or more, found -1");
        refused("[walk]\nlambda = 2.0", "a.toml:2: `walk.lambda`: expected a number up to 1, found 2");
        refused("system = 'rule'", "a.toml:1: `system`: expected `rules` or `walker`, found \"rule\"");
        refused("[walk]\nlambda = 1\nlambda = 2", "a.toml:3: duplicate key");
        refused("[walk\n", "a.toml:1: unclosed table, expected `]`");
    }

    #[test]
    fn set_needs_an_equals_sign_and_is_its_own_place() {
        let error = Layer::from_pairs(["walk.lambda"]).unwrap_err();
        assert_eq!(error.to_string(), "walk.lambda: expected key=value, such as walk.lambda=0.1");
        let error = Layer::from_pairs(["walk.lambda=x"]).unwrap().over(&plain(), check).unwrap_err();
        assert_eq!(error.to_string(), "walk.lambda=x: `walk.lambda`: expected a number, found \"x\"");
    }
}
