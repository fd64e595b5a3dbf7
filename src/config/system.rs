//! Which reasoner answers.

use super::further;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::fmt;

/// Which reasoner answers. Decides which members a run trains.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum System {
    /// The walker: RuleGuider, or, depending on its settings, MultiHop or MINERVA.
    #[default]
    Walker,
    /// The rules alone.
    Rules,
    /// The embedding model alone.
    Embedding,
    /// The propagator alone.
    Propagator,
    /// Rules, walker, embedding model and propagator together, or those of them that the blend's settings enable.
    Blend,
    /// A further member alone, by name.
    Further(&'static str),
}

impl System {
    /// All of them, further members last.
    pub fn all() -> Vec<System> {
        let own = [Self::Walker, Self::Rules, Self::Embedding, Self::Propagator, Self::Blend];
        own.into_iter().chain(further().iter().map(|member| Self::Further(member.name))).collect()
    }

    /// The name in settings.
    pub fn name(self) -> &'static str {
        match self {
            Self::Walker => "walker",
            Self::Rules => "rules",
            Self::Embedding => "embedding",
            Self::Propagator => "propagator",
            Self::Blend => "blend",
            Self::Further(name) => name,
        }
    }

    /// The system called `name`.
    pub fn named(name: &str) -> Option<Self> {
        Self::all().into_iter().find(|system| system.name() == name)
    }
}

impl fmt::Display for System {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for System {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for System {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        Self::named(&name).ok_or_else(|| {
            let known: Vec<String> = Self::all().iter().map(|system| format!("`{system}`")).collect();
            de::Error::custom(format!("unknown variant `{name}`, expected one of {}", known.join(", ")))
        })
    }
}
