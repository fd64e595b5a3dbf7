//! The one language of settings: how they are given, and how an invalid one is refused.
//!
//! A [`Layer`] is TOML text or `key=value` settings, each with its place. It is put over any plain struct of settings;
//! an unknown key is refused with the nearest known one. [`whole`], [`number`] and [`expect`] check one value; all of
//! them refuse it in the same words: ``` `walk.layers`: expected a whole number from 1 to 16, found 0 ```.
//!
//! This module does not know any setting. Every module declares its own, with their defaults and ranges.

mod layer;
mod value;

pub use layer::{Layer, SettingsError};
pub use value::{WrongValue, expect, number, whole};
