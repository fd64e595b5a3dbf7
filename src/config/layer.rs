//! Settings as they are given: TOML text or `key=value`, one layer over another, each setting with its place.
//!
//! A layer knows nothing of what the settings mean. [`Layer::over`] puts it over any plain struct that can be
//! written as TOML: the struct's own fields are the known keys, and a key that is not among them, or a value
//! that does not fit its field, is an error that names the key, its place and the nearest known key.

use super::ConfigError;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::path::Path;
use toml::de::{DeTable, DeValue};
use toml::{Table, Value};

/// Names further apart than this share of the longer one are not worth suggesting.
const ALIKE: f64 = 0.6;

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
    /// If the file cannot be read or is no TOML.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let text = std::fs::read_to_string(path)
            .map_err(|source| ConfigError::Io { path: path.to_owned(), source })?;
        Self::parse(&text, &path.display().to_string())
    }

    /// The settings of TOML text; `name` stands for its file in messages.
    ///
    /// # Errors
    /// If the text is no TOML.
    pub fn parse(text: &str, name: &str) -> Result<Self, ConfigError> {
        let place = |at: usize| format!("{name}:{}", text[..at].matches('\n').count() + 1);
        let wrong = |error: toml::de::Error| ConfigError::Setting {
            place: place(error.span().map_or(0, |span| span.start)),
            message: error.message().replace('\n', ", "),
        };
        let spans = DeTable::parse(text).map_err(wrong)?;
        let values: Table = toml::from_str(text).map_err(wrong)?;
        let mut layer = Layer::default();
        layer.add_table("", &values, spans.get_ref(), &place);
        Ok(layer)
    }

    /// `key=value` settings. A value that is no TOML is taken as text, so that quotes are not needed.
    ///
    /// # Errors
    /// If there is no `=` in one of them.
    pub fn from_pairs<'a>(pairs: impl IntoIterator<Item = &'a str>) -> Result<Self, ConfigError> {
        let mut layer = Layer::default();
        for pair in pairs {
            let place = pair.to_owned();
            let Some((key, text)) = pair.split_once('=') else {
                let message = "expected key=value, such as walk.lambda=0.1".to_owned();
                return Err(ConfigError::Setting { place, message });
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

    /// The text that this layer gives for `key`, if it does.
    pub(super) fn text(&self, key: &str) -> Option<&str> {
        let last = self.settings.iter().rev().find(|setting| setting.key == key)?;
        last.value.as_str()
    }

    /// Takes out the setting `base`, by which a file begins from another one: its value and its place.
    ///
    /// # Errors
    /// If the value is no text.
    pub(super) fn split_base(mut self) -> Result<(Self, Option<(String, String)>), ConfigError> {
        let Some(at) = self.settings.iter().position(|setting| setting.key == "base") else {
            return Ok((self, None));
        };
        let Setting { value, place, .. } = self.settings.remove(at);
        match value {
            Value::String(base) => Ok((self, Some((base, place)))),
            other => {
                let message = format!("`base`: expected the name of a configuration, found {other}");
                Err(ConfigError::Setting { place, message })
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

    /// `base` with this layer's settings in place of its own. Every setting is also tried alone, so that the one
    /// to blame is known if `check` has something against all of them together.
    ///
    /// # Errors
    /// If a key is unknown or a value does not fit.
    pub fn over<T>(&self, base: &T, check: fn(&T) -> Result<(), String>) -> Result<T, ConfigError>
    where
        T: Serialize + DeserializeOwned,
    {
        let known = Table::try_from(base).expect("a configuration is plain fields, which TOML can hold");
        let mut all = known.clone();
        let mut blamed = None;
        for Setting { key, value, place } in &self.settings {
            let wrong = |message: String| ConfigError::Setting { place: place.clone(), message };
            let slot = find(&mut all, key)
                .ok_or_else(|| wrong(format!("unknown setting `{key}`{}", suggestion(key, &keys(&known)))))?;
            if slot.is_table() {
                return Err(wrong(format!(
                    "`{key}` is a group of settings, not one; {}",
                    members(key, &known)
                )));
            }
            if slot.is_str() && !value.is_str() {
                return Err(wrong(format!("`{key}`: expected a word such as {slot}, found {value}")));
            }
            *slot = value.clone();
            let mut alone = known.clone();
            *find(&mut alone, key).expect("found in a table of the same keys") = value.clone();
            let tried: T = Value::Table(alone)
                .try_into()
                .map_err(|error: toml::de::Error| wrong(format!("`{key}`: {}", in_words(error.message()))))?;
            if let (Err(message), None) = (check(&tried), &blamed) {
                blamed = Some(wrong(message));
            }
        }
        let result: T = Value::Table(all).try_into().map_err(|error: toml::de::Error| {
            let message = in_words(error.message());
            ConfigError::Setting { place: "configuration".to_owned(), message }
        })?;
        let last = || self.settings.last().map_or("configuration", |last| &last.place).to_owned();
        match check(&result) {
            Ok(()) => Ok(result),
            Err(message) => Err(blamed.unwrap_or_else(|| ConfigError::Setting { place: last(), message })),
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

/// `; did you mean …?` with the nearest known key: as a whole, or by its last part alone.
fn suggestion(key: &str, known: &[String]) -> String {
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    let likeness = |candidate: &String| {
        let whole = strsim::normalized_damerau_levenshtein(key, candidate);
        let part = strsim::normalized_damerau_levenshtein(&last(key), &last(candidate));
        // A misplaced key is as likely as a misspelt one, but never more likely than one spelt right as a whole.
        whole.max(0.95 * part)
    };
    let best =
        known.iter().map(|candidate| (likeness(candidate), candidate)).max_by(|a, b| a.0.total_cmp(&b.0));
    match best {
        Some((likeness, nearest)) if likeness >= ALIKE => format!("; did you mean `{nearest}`?"),
        _ => {
            let mut groups: Vec<&str> = known.iter().filter_map(|key| Some(key.split_once('.')?.0)).collect();
            groups.dedup();
            format!("; settings are grouped under {}", groups.join(", "))
        }
    }
}

/// What the deserialiser says, with the names of Rust's types put in words.
fn in_words(message: &str) -> String {
    let mut said = message.trim().replace('\n', ", ");
    for (kind, words) in [
        ("expected f64", "expected a number"),
        ("expected f32", "expected a number"),
        ("expected u64", "expected a whole number, 0 or more"),
        ("expected u32", "expected a whole number, 0 or more"),
        ("expected usize", "expected a whole number, 0 or more"),
        ("expected a boolean", "expected true or false"),
        ("invalid type: ", "found "),
        ("invalid value: ", "found "),
    ] {
        said = said.replace(kind, words);
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;
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

    fn check(plain: &Plain) -> Result<(), String> {
        if plain.walk.lambda > 1.0 {
            Err(format!("`walk.lambda`: expected at most 1, found {}", plain.walk.lambda))
        } else {
            Ok(())
        }
    }

    #[track_caller]
    fn refused(text: &str, said: &str) {
        let error = Layer::parse(text, "a.toml").and_then(|layer| layer.over(&plain(), check)).unwrap_err();
        assert_eq!(error.to_string(), said);
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
    fn what_is_wrong_is_named_with_its_place() {
        refused("\n[walk]\nlamda = 1", "a.toml:3: unknown setting `walk.lamda`; did you mean `walk.lambda`?");
        refused("lambda = 1", "a.toml:1: unknown setting `lambda`; did you mean `walk.lambda`?");
        refused("[wolk]\nbatch = 1", "a.toml:2: unknown setting `wolk.batch`; did you mean `walk.batch`?");
        refused("[x]\nqqq = 1", "a.toml:2: unknown setting `x.qqq`; settings are grouped under walk");
        refused(
            "walk = 3",
            "a.toml:1: `walk` is a group of settings, not one; it has walk.batch, walk.freeze, walk.lambda",
        );
        refused(
            "[walk]\nlambda = 'high'",
            "a.toml:2: `walk.lambda`: found string \"high\", expected a number",
        );
        refused(
            "[walk]\nbatch = -1",
            "a.toml:2: `walk.batch`: found integer `-1`, expected a whole number, 0 or more",
        );
        refused("[walk]\nlambda = 2.0", "a.toml:2: `walk.lambda`: expected at most 1, found 2");
        refused(
            "system = 'rule'",
            "a.toml:1: `system`: unknown variant `rule`, expected `rules` or `walker`",
        );
        refused("[walk]\nlambda = 1\nlambda = 2", "a.toml:3: duplicate key");
        refused("[walk\n", "a.toml:1: unclosed table, expected `]`");
    }

    #[test]
    fn set_needs_an_equals_sign_and_is_its_own_place() {
        let error = Layer::from_pairs(["walk.lambda"]).unwrap_err();
        assert_eq!(error.to_string(), "walk.lambda: expected key=value, such as walk.lambda=0.1");
        let error = Layer::from_pairs(["walk.lambda=x"]).unwrap().over(&plain(), check).unwrap_err();
        assert_eq!(error.to_string(), "walk.lambda=x: `walk.lambda`: found string \"x\", expected a number");
    }
}
