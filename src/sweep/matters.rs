//! Which settings mattered: how much of the variance of the MRR each setting explains by itself.
//!
//! The measure is the correlation ratio η² (eta squared): trials are grouped by the setting's value, numbers within bounds
//! into three groups of equal size, and η² is the share of the variance that lies between the groups. With few trials
//! chance alone explains (groups − 1) / (trials − 1) on average, which is reported beside it.

use super::search::Point;
use super::space::{Dimension, Domain, Space};
use serde::Serialize;
use toml::Value;

/// Groups of numbers within bounds.
const GROUPS: usize = 3;

/// Trials with similar values of a setting.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ValueGroup {
    /// The value, or the range of values.
    pub values: String,
    /// How many trials.
    pub trials: usize,
    /// Their mean MRR on the validation split.
    pub mrr: f64,
}

/// How much a setting mattered.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Mattered {
    /// The setting.
    pub setting: String,
    /// η²: the share of the variance of the MRR that lies between the groups, from 0 to 1.
    pub explained: f64,
    /// The expected η² by chance.
    pub by_chance: f64,
    /// The groups, in the order of their values.
    pub groups: Vec<ValueGroup>,
}

/// What mattered among trials with an MRR, the most important first. Empty for fewer than four trials, or if all are
/// equal.
pub(crate) fn mattered(space: &Space, trials: &[(&Point, f64)]) -> Vec<Mattered> {
    let mean = |figures: &[f64]| figures.iter().sum::<f64>() / figures.len() as f64;
    let figures: Vec<f64> = trials.iter().map(|(_, mrr)| *mrr).collect();
    let overall = mean(&figures);
    let total: f64 = figures.iter().map(|mrr| (mrr - overall).powi(2)).sum();
    if trials.len() < 4 || total <= 0.0 {
        return Vec::new();
    }
    let of = |dimension: &Dimension| {
        let groups = grouped(dimension, trials);
        let between: f64 =
            groups.iter().map(|(_, figures)| figures.len() as f64 * (mean(figures) - overall).powi(2)).sum();
        let by_chance = (groups.len() - 1) as f64 / (trials.len() - 1) as f64;
        let group = |(values, figures): (String, Vec<f64>)| {
            let (trials, mrr) = (figures.len(), mean(&figures));
            ValueGroup { values, trials, mrr }
        };
        Mattered {
            setting: dimension.key.clone(),
            explained: (between / total).min(1.0),
            by_chance,
            groups: groups.into_iter().map(group).collect(),
        }
    };
    let mut all: Vec<Mattered> = space.dimensions.iter().map(of).collect();
    all.sort_by(|a, b| b.explained.total_cmp(&a.explained).then_with(|| a.setting.cmp(&b.setting)));
    all
}

/// The MRRs in groups by value, each group with its name; no group is empty.
fn grouped(dimension: &Dimension, trials: &[(&Point, f64)]) -> Vec<(String, Vec<f64>)> {
    let value = |point: &Point| point.get(&dimension.key).cloned();
    let valued: Vec<(Value, f64)> =
        trials.iter().filter_map(|(point, mrr)| Some((value(point)?, *mrr))).collect();
    match &dimension.domain {
        Domain::Values(values) => values
            .iter()
            .map(|known| {
                let of = valued.iter().filter(|(value, _)| value == known);
                (known.to_string(), of.map(|(_, mrr)| *mrr).collect())
            })
            .filter(|(_, figures): &(_, Vec<f64>)| !figures.is_empty())
            .collect(),
        domain @ Domain::Bounds { .. } => {
            let mut placed: Vec<(f64, String, f64)> = valued
                .iter()
                .filter_map(|(value, mrr)| Some((domain.place(value)?, value.to_string(), *mrr)))
                .collect();
            placed.sort_by(|a, b| a.0.total_cmp(&b.0));
            thirds(&placed)
        }
    }
}

/// Groups of equal size; equal values stay together.
fn thirds(placed: &[(f64, String, f64)]) -> Vec<(String, Vec<f64>)> {
    let size = placed.len().div_ceil(GROUPS).max(1);
    let mut groups: Vec<&[(f64, String, f64)]> = Vec::new();
    let mut rest = placed;
    while !rest.is_empty() {
        let mut end = size.min(rest.len());
        while end < rest.len() && rest[end].0 == rest[end - 1].0 {
            end += 1;
        }
        let (group, others) = rest.split_at(end);
        groups.push(group);
        rest = others;
    }
    let named = |group: &&[(f64, String, f64)]| {
        let (first, last) = (&group[0].1, &group[group.len() - 1].1);
        let name = if first == last { first.clone() } else { format!("{first} – {last}") };
        (name, group.iter().map(|(_, _, mrr)| *mrr).collect())
    };
    groups.iter().map(named).collect()
}
