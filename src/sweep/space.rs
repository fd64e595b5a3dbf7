//! A search space: the settings to search, and their values.
//!
//! Written as TOML, with the keys of a configuration. A list holds the values to try; bounds give a range:
//!
//! ```toml
//! [walk]
//! hops = [2, 3]
//! entropy = { from = 0.0, to = 0.1 }
//! learning_rate = { from = 0.0003, to = 0.003, scale = "log", steps = 4 }
//! ```
//!
//! `scale` is `linear` or `log`; `steps` is how many values a grid tries within the bounds, both included. A setting that
//! is a whole number is drawn as one.

use super::SweepError;
use crate::config::{Config, Layer, SettingsError, System};
use crate::run::member;
use crate::suggest::nearest;
use std::collections::BTreeMap;
use std::path::Path;
use toml::Value;

/// The default number of values that a grid tries within bounds.
const STEPS: usize = 3;
/// The significant digits of a number that is drawn: more would suggest a precision that no search has.
const DIGITS: i32 = 4;
/// The keys of bounds.
const PARTS: [&str; 4] = ["from", "to", "scale", "steps"];

/// The built-in spaces, each with its name: those of the members.
fn built_in() -> impl Iterator<Item = (&'static str, &'static str)> {
    member::all().into_iter().filter_map(|member| member.space())
}

/// What a setting may be.
#[derive(Clone, Debug, PartialEq)]
pub enum Domain {
    /// One of these.
    Values(Vec<Value>),
    /// A number within bounds.
    Bounds {
        /// The lowest.
        from: f64,
        /// The highest.
        to: f64,
        /// Whether numbers are spread on a logarithmic scale.
        log: bool,
        /// How many of them a grid tries.
        steps: usize,
        /// Whether it is a whole number.
        whole: bool,
    },
}

/// A setting that is searched.
#[derive(Clone, Debug, PartialEq)]
pub struct Dimension {
    /// The setting's dotted key.
    pub key: String,
    /// What it may be.
    pub domain: Domain,
}

/// The settings that are searched, by key.
#[derive(Clone, Debug, PartialEq)]
pub struct Space {
    /// The name of the space, or of its file.
    pub name: String,
    /// The settings, in the order of their keys.
    pub dimensions: Vec<Dimension>,
}

/// Bounds while they are parsed, with the place where they were given.
#[derive(Default)]
struct Given<'a> {
    place: &'a str,
    parts: BTreeMap<&'a str, &'a Value>,
}

impl Space {
    /// The names of the built-in spaces.
    pub fn names() -> impl Iterator<Item = &'static str> {
        built_in().map(|(name, _)| name)
    }

    /// The name of the built-in space for `system`.
    ///
    /// # Errors
    /// If it has none.
    pub fn of(system: System) -> Result<&'static str, SweepError> {
        let own = member::of_system(system).and_then(|member| member.space());
        own.map(|(name, _)| name).ok_or_else(|| {
            let names: Vec<&str> = Self::names().collect();
            let what = "this system has no space of its own; name one";
            SweepError::Cannot(format!("{what}: {}, or a file", names.join(", ")))
        })
    }

    /// The space called `name`, a file or a built-in one, over the configuration `base`.
    ///
    /// # Errors
    /// If there is neither, a key is unknown, or a value is invalid.
    pub fn named(name: &str, base: &Config) -> Result<Self, SweepError> {
        if let Some((known, text)) = built_in().find(|(known, _)| *known == name) {
            return Self::parse(text, &format!("configs/space/{known}.toml"), base)
                .map(|space| Self { name: (*known).to_owned(), ..space });
        }
        let path = Path::new(name);
        if path.is_file() {
            let text = std::fs::read_to_string(path)
                .map_err(|source| SettingsError::Io { path: path.to_owned(), source })?;
            return Self::parse(&text, name, base);
        }
        let remedy = match nearest(name, Self::names()).first() {
            Some(nearest) => format!("did you mean `{nearest}`?"),
            None => format!("the named ones are {}", Self::names().collect::<Vec<_>>().join(", ")),
        };
        Err(SweepError::Cannot(format!("{name}: no such file, and no space of that name; {remedy}")))
    }

    /// The space that TOML text describes, over the configuration `base`; `name` is the file's name in messages.
    ///
    /// # Errors
    /// If a key is unknown, or a value is invalid.
    pub fn parse(text: &str, name: &str, base: &Config) -> Result<Self, SweepError> {
        let layer = Layer::parse(text, name)?;
        let mut dimensions = BTreeMap::new();
        let mut bounds: BTreeMap<&str, Given<'_>> = BTreeMap::new();
        for (key, value, place) in layer.iter() {
            match (key.rsplit_once('.'), value) {
                // A setting may itself be called `steps`.
                (Some((key_of_part, part)), value)
                    if PARTS.contains(&part) && setting(key, base).is_none() =>
                {
                    let given =
                        bounds.entry(key_of_part).or_insert_with(|| Given { place, ..Given::default() });
                    given.parts.insert(part, value);
                }
                (_, Value::Array(values)) => {
                    dimensions.insert(key.to_owned(), listed(key, values, place, base)?);
                }
                _ => {
                    // An unknown key is reported, with the nearest known one, before any problem with its value.
                    base.with(&Layer::one(key, value.clone(), place))?;
                    let what = "expected a list of values or { from = …, to = … }";
                    return Err(wrong(place, format!("`{key}`: {what}, found {value}")).into());
                }
            }
        }
        for (key, given) in bounds {
            dimensions.insert(key.to_owned(), given.domain(key, base)?);
        }
        if dimensions.is_empty() {
            let what =
                "expected settings with their values or bounds, such as walk.hops = [2, 3]; found none";
            return Err(wrong(name, what.to_owned()).into());
        }
        let dimensions = dimensions.into_iter().map(|(key, domain)| Dimension { key, domain }).collect();
        Ok(Self { name: name.to_owned(), dimensions })
    }

    /// A description of each dimension, which must not change when a search resumes.
    pub fn described(&self) -> BTreeMap<String, String> {
        self.dimensions
            .iter()
            .map(|dimension| (dimension.key.clone(), dimension.domain.to_string()))
            .collect()
    }
}

fn wrong(place: &str, message: String) -> SettingsError {
    SettingsError::Setting { place: place.to_owned(), message }
}

/// A list of values, each valid for the setting by itself.
fn listed(key: &str, values: &[Value], place: &str, base: &Config) -> Result<Domain, SweepError> {
    let mut taken: Vec<Value> = Vec::new();
    for value in values {
        fits(key, value, place, base)?;
        if taken.contains(value) {
            return Err(wrong(place, format!("`{key}`: {value} is listed twice")).into());
        }
        taken.push(value.clone());
    }
    if taken.is_empty() {
        return Err(wrong(place, format!("`{key}`: expected at least one value, found none")).into());
    }
    Ok(Domain::Values(taken))
}

/// Whether the setting `key` may have this value. A value that is valid only together with other settings is checked
/// with them later.
fn fits(key: &str, value: &Value, place: &str, base: &Config) -> Result<(), SweepError> {
    let tried = base.with(&Layer::one(key, value.clone(), place));
    Ok(tried.map(|_| ())?)
}

impl Given<'_> {
    fn domain(&self, key: &str, base: &Config) -> Result<Domain, SweepError> {
        let refused = |message: String| SweepError::from(wrong(self.place, format!("`{key}`: {message}")));
        let number = |part: &str| match self.parts.get(part) {
            Some(value) => {
                fits(key, value, self.place, base)?;
                let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64));
                number.ok_or_else(|| refused(format!("expected a number as `{part}`, found {value}")))
            }
            None => Err(refused("expected both `from` and `to`".to_owned())),
        };
        let (from, to) = (number("from")?, number("to")?);
        let log = match self.parts.get("scale").map(|scale| scale.as_str()) {
            None | Some(Some("linear")) => false,
            Some(Some("log")) => true,
            Some(_) => return Err(refused("expected `linear` or `log` as `scale`".to_owned())),
        };
        let steps = match self.parts.get("steps").map(|steps| steps.as_integer()) {
            None => STEPS,
            Some(Some(steps @ 2..=1000)) => steps as usize,
            Some(_) => return Err(refused("expected a whole number from 2 to 1000 as `steps`".to_owned())),
        };
        if from >= to {
            return Err(refused(format!("expected `from` below `to`, found {from} and {to}")));
        }
        if log && from <= 0.0 {
            return Err(refused(format!("a logarithmic scale begins above 0, found {from}")));
        }
        let whole = setting(key, base).is_some_and(|value| value.is_integer());
        Ok(Domain::Bounds { from, to, log, steps, whole })
    }
}

/// The value of a setting in `base`; `None` if there is no such setting.
fn setting(key: &str, base: &Config) -> Option<Value> {
    let table = Value::try_from(base).expect("a configuration is plain fields, which TOML can hold");
    let found = key.split('.').try_fold(&table, |group, name| group.get(name));
    found.filter(|value| !value.is_table()).cloned()
}

impl Domain {
    /// The value at `place`, in `[0, 1)`.
    pub fn at(&self, place: f64) -> Value {
        match self {
            Domain::Values(values) => {
                let index = ((place * values.len() as f64) as usize).min(values.len() - 1);
                values[index].clone()
            }
            Domain::Bounds { from, to, log: false, whole: true, .. } => {
                Value::Integer((from + place * (to - from + 1.0)).floor().min(*to) as i64)
            }
            _ => self.between(place),
        }
    }

    /// The value at this fraction of the range between the bounds, both included.
    fn between(&self, part: f64) -> Value {
        let Domain::Bounds { from, to, log, whole, .. } = *self else { return self.at(part) };
        let number = match log {
            true => (from.ln() + part * (to.ln() - from.ln())).exp(),
            false => from + part * (to - from),
        };
        match whole {
            true => Value::Integer(number.round().clamp(from, to) as i64),
            false => Value::Float(rounded(number).clamp(from, to)),
        }
    }

    /// The values that a grid tries.
    pub fn grid(&self) -> Vec<Value> {
        match self {
            Domain::Values(values) => values.clone(),
            Domain::Bounds { steps, .. } => {
                let mut values: Vec<Value> =
                    (0..*steps).map(|at| self.between(at as f64 / (*steps - 1) as f64)).collect();
                values.dedup();
                values
            }
        }
    }

    /// The position of a value between 0 and 1, for plots. Values of a list are equally spaced.
    pub fn place(&self, value: &Value) -> Option<f64> {
        match self {
            Domain::Values(values) => {
                let at = values.iter().position(|known| known == value)?;
                Some(if values.len() == 1 { 0.5 } else { at as f64 / (values.len() - 1) as f64 })
            }
            Domain::Bounds { from, to, log, .. } => {
                let number = value.as_float().or_else(|| value.as_integer().map(|whole| whole as f64))?;
                Some(match log {
                    true => (number.ln() - from.ln()) / (to.ln() - from.ln()),
                    false => (number - from) / (to - from),
                })
            }
        }
    }
}

impl std::fmt::Display for Domain {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Domain::Values(values) => {
                let values: Vec<String> = values.iter().map(Value::to_string).collect();
                write!(f, "{}", values.join(", "))
            }
            Domain::Bounds { from, to, log, steps, whole } => {
                let kind = if *whole { " whole" } else { "" };
                write!(f, "{from} to {to},{kind} {}", if *log { "logarithmic" } else { "linear" })?;
                if *steps == STEPS { Ok(()) } else { write!(f, ", {steps} steps") }
            }
        }
    }
}

/// `number` to a few significant digits.
fn rounded(number: f64) -> f64 {
    format!("{number:.*e}", (DIGITS - 1) as usize).parse().unwrap_or(number)
}
