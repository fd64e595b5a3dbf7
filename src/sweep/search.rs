//! Which points of a space are tried, and when the worse ones are stopped.

use super::space::{Dimension, Space};
use crate::config::{Config, Layer};
use crate::fnv::Fnv;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use toml::Value;

/// How a space is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Search {
    /// Every combination of a few values of each setting; if there are more than trials, a sample drawn by the seed.
    Grid,
    /// Points drawn by the seed.
    #[default]
    Random,
    /// Points drawn by the seed; the worse half is repeatedly stopped, and the better half continues.
    Halving,
}

impl Search {
    /// The name in files and on the screen.
    pub fn name(self) -> &'static str {
        match self {
            Search::Grid => "grid",
            Search::Random => "random",
            Search::Halving => "halving",
        }
    }
}

impl std::str::FromStr for Search {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = [Search::Grid, Search::Random, Search::Halving];
        let found = known.into_iter().find(|search| search.name() == text);
        found.ok_or_else(|| format!("unknown search `{text}`; use grid, random or halving"))
    }
}

/// The searched settings of one trial, by key.
pub type Point = BTreeMap<String, Value>;

/// The points of a search.
#[derive(Clone, Debug, PartialEq)]
pub struct Points {
    /// The points, trial by trial.
    pub points: Vec<Point>,
    /// How many points the grid has in all; `None` where there is no grid.
    pub grid: Option<u128>,
    /// Points that were drawn but left out because their settings are incompatible.
    pub unfit: usize,
}

/// Draws per trial before a space counts as exhausted: small ones run out of distinct points.
const DRAWS: u64 = 200;

impl Points {
    /// At most `trials` points of `space` for trials over `base`. Each depends only on the seed and its own number, so
    /// that a search with more trials begins with the same points.
    pub fn of(space: &Space, search: Search, trials: usize, seed: u64, base: &Config) -> Points {
        match search {
            Search::Grid => grid(space, trials, seed, base),
            Search::Random | Search::Halving => random(space, trials, seed, base),
        }
    }
}

/// `point` as settings over a configuration.
pub(crate) fn layer(point: &Point) -> Layer {
    let one = |(key, value): (&String, &Value)| Layer::one(key, value.clone(), &format!("{key}={value}"));
    point.iter().map(one).fold(Layer::default(), Layer::followed_by)
}

fn random(space: &Space, trials: usize, seed: u64, base: &Config) -> Points {
    let mut found = Points { points: Vec::new(), grid: None, unfit: 0 };
    'trials: for trial in 0..trials as u64 {
        for draw in 0..DRAWS {
            let value = |dimension: &Dimension| {
                (dimension.key.clone(), dimension.domain.at(uniform(seed, trial, draw, &dimension.key)))
            };
            let point: Point = space.dimensions.iter().map(value).collect();
            if found.points.contains(&point) {
                continue;
            }
            if base.with(&layer(&point)).is_err() {
                found.unfit += 1;
                continue;
            }
            found.points.push(point);
            continue 'trials;
        }
    }
    found
}

fn grid(space: &Space, trials: usize, seed: u64, base: &Config) -> Points {
    let axes: Vec<(&str, Vec<Value>)> =
        space.dimensions.iter().map(|dimension| (dimension.key.as_str(), dimension.domain.grid())).collect();
    let size = axes.iter().map(|(_, values)| values.len() as u128).product::<u128>();
    let point = |mut number: u128| -> Point {
        // The last setting changes fastest.
        let mut point = Point::new();
        for (key, values) in axes.iter().rev() {
            let count = values.len() as u128;
            point.insert((*key).to_owned(), values[(number % count) as usize].clone());
            number /= count;
        }
        point
    };
    let mut numbers: Vec<u128> = Vec::new();
    let mut found = Points { points: Vec::new(), grid: Some(size), unfit: 0 };
    if size <= trials as u128 {
        numbers.extend(0..size);
    }
    let mut draw = 0;
    while numbers.len() < trials && (numbers.len() as u128) < size {
        // Two draws of 53 bits: a grid may have more points than one draw can distinguish.
        let [high, low] = [0, 1].map(|half| uniform(seed, draw, half, "grid"));
        let number = ((high + low * f64::EPSILON) * size as f64) as u128 % size;
        draw += 1;
        if !numbers.contains(&number) {
            numbers.push(number);
        }
    }
    numbers.sort_unstable();
    for number in numbers {
        let point = point(number);
        match base.with(&layer(&point)) {
            Ok(_) => found.points.push(point),
            Err(_) => found.unfit += 1,
        }
    }
    found
}

/// A number in `[0, 1)` that depends on these arguments only.
fn uniform(seed: u64, trial: u64, draw: u64, key: &str) -> f64 {
    let mut sum = Fnv::new();
    for number in [seed, trial, draw] {
        sum.add(&number.to_le_bytes());
    }
    sum.add(key.as_bytes());
    // The finaliser of SplitMix64: every bit of the hash affects every bit of the number.
    let mut bits = sum.value();
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^= bits >> 31;
    (bits >> 11) as f64 / (1u64 << 53) as f64
}

/// One rung of a search: how many trials reach it, and the fraction of their epochs they have trained at its end.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// How many trials.
    pub trials: usize,
    /// The fraction of the epochs; 1 in the last rung.
    pub part: f64,
}

impl Rung {
    /// The rungs of a search with `trials` trials, each validated `validations` times. Only halving has more than one:
    /// every rung has half the trials of the previous one and trains them twice as long, and the first rung includes at
    /// least one validation.
    pub fn of(search: Search, trials: usize, validations: usize) -> Vec<Rung> {
        let count = match search {
            Search::Halving => trials.max(1).ilog2().min(validations.max(1).ilog2()) + 1,
            Search::Grid | Search::Random => 1,
        };
        (0..count)
            .map(|rung| Rung {
                trials: trials.div_ceil(1 << rung),
                part: 0.5f64.powi((count - 1 - rung) as i32),
            })
            .collect()
    }

    /// After how many of `epochs` it ends; `None` for the last rung, which trains to the end.
    pub fn epochs(&self, epochs: usize) -> Option<usize> {
        (self.part < 1.0).then(|| ((epochs as f64 * self.part).ceil() as usize).max(1))
    }
}
