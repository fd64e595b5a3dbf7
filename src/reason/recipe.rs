//! The weights of a blend and their file format.

use super::fit::{Features, FittedWeights, WIDTH};
use crate::config::{BlendConfig, BlendWeights, MOST_FURTHER};
use crate::graph::{Direction, Link, Names, RelationId};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, HashMap};

/// The probability assumed for a candidate that a member does not list, if weights are given and not fitted: below that
/// of listed candidates (the hundredth answer of rules or walker has about a hundredth of the mass), above zero.
pub(super) const ABSENT: f64 = 1e-4;

/// The indices of the features in [`Features`].
pub(super) const RULES: usize = 0;
pub(super) const RULES_ABSENT: usize = 1;
pub(super) const RULES_SURE: usize = 2;
pub(super) const WALKER: usize = 3;
pub(super) const WALKER_ABSENT: usize = 4;
pub(super) const EMBEDDING: usize = 5;
pub(super) const PROPAGATOR: usize = 6;
pub(super) const LINKED: usize = 7;
pub(super) const LINKED_BACK: usize = 8;
pub(super) const TAKEN: usize = 9;
pub(super) const FREQUENCY: usize = 10;
pub(super) const TYPES: usize = 11;
pub(super) const RELATIONS: usize = 12;
/// The feature of the first further member.
pub(super) const FURTHER: usize = 13;
/// The weight of a further member if none is fitted.
const FURTHER_WEIGHT: f64 = 0.5;

/// The weight of each feature of a candidate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Written")]
pub struct FeatureWeights {
    /// The logarithm of the rules' score.
    pub rules: f64,
    /// That no rule lists it.
    pub rules_absent: f64,
    /// How sure the rules are: minus the logarithm of one minus their score. By noisy-or, confidences add up here.
    pub rules_sure: f64,
    /// The logarithm of the walker's probability among its answers.
    pub walker: f64,
    /// That the walker did not reach it.
    pub walker_absent: f64,
    /// The logarithm of the embedding model's softmax over all entities.
    pub embedding: f64,
    /// The same for the propagator.
    pub propagator: f64,
    /// That the graph already links it to the subject, by any relation.
    pub linked: f64,
    /// That the relation asked for links it to the subject in the other direction.
    pub linked_back: f64,
    /// That it is an answer of this relation for another subject in the graph.
    pub taken: f64,
    /// The logarithm of how often it is such an answer, plus one.
    pub frequency: f64,
    /// How well its types fit this side of the relation: a log-odds ratio.
    #[serde(skip_serializing_if = "is_zero")]
    pub types: f64,
    /// The same for the relations that it has.
    #[serde(skip_serializing_if = "is_zero")]
    pub relations: f64,
    /// The logarithm of the softmax of each further member, by name.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub further: BTreeMap<String, f64>,
}

impl FeatureWeights {
    /// As a row of features; `further` are the names of the further members, in the order of their features.
    pub(super) fn row(&self, further: &[&str]) -> Features {
        let Self { rules, rules_absent, rules_sure, walker, walker_absent, embedding, propagator, .. } = self;
        let Self { linked, linked_back, taken, frequency, types, relations, .. } = self;
        let mut row = [0.0; WIDTH];
        row[RULES..=RULES_SURE].copy_from_slice(&[*rules, *rules_absent, *rules_sure]);
        row[WALKER..=PROPAGATOR].copy_from_slice(&[*walker, *walker_absent, *embedding, *propagator]);
        row[LINKED..=FREQUENCY].copy_from_slice(&[*linked, *linked_back, *taken, *frequency]);
        row[TYPES..=RELATIONS].copy_from_slice(&[*types, *relations]);
        for (at, name) in further.iter().take(MOST_FURTHER).enumerate() {
            row[FURTHER + at] = self.further.get(*name).copied().unwrap_or(0.0);
        }
        row
    }

    pub(super) fn of_row(row: &Features, further: &[&str]) -> Self {
        Self {
            rules: row[RULES],
            rules_absent: row[RULES_ABSENT],
            rules_sure: row[RULES_SURE],
            walker: row[WALKER],
            walker_absent: row[WALKER_ABSENT],
            embedding: row[EMBEDDING],
            propagator: row[PROPAGATOR],
            linked: row[LINKED],
            linked_back: row[LINKED_BACK],
            taken: row[TAKEN],
            frequency: row[FREQUENCY],
            types: row[TYPES],
            relations: row[RELATIONS],
            further: further.iter().zip(&row[FURTHER..]).map(|(name, w)| ((*name).to_owned(), *w)).collect(),
        }
    }
}

impl FeatureWeights {
    /// Whether the member called `name` has a weight.
    pub fn has(&self, name: &str) -> bool {
        let weights = match name {
            "rules" => [self.rules, self.rules_absent, self.rules_sure],
            "walker" => [self.walker, self.walker_absent, 0.0],
            "embedding" => [self.embedding, 0.0, 0.0],
            "propagator" => [self.propagator, 0.0, 0.0],
            "types" => [self.types, self.relations, 0.0],
            other => [self.further.get(other).copied().unwrap_or(0.0), 0.0, 0.0],
        };
        weights.iter().any(|weight| *weight != 0.0)
    }
}

impl FeatureWeights {
    /// The weights of a blend of rules and the universal propagator where none can be fitted, and what fitted ones are held
    /// to. They were fitted to 150 held-out facts of each of 13 graphs, without any features of how frequent a candidate is;
    /// weights that were fitted without a graph rank its facts better than the propagator alone on 12 of the 13, by 2 MRR
    /// on average:
    /// `cargo bench --bench instant -- choose/* mitre-attack umls kinship family-220 family-320`
    pub fn of_many_graphs() -> Self {
        Self {
            rules: 0.10,
            rules_absent: -0.75,
            rules_sure: 0.95,
            linked: 0.46,
            linked_back: 1.03,
            further: [("universal".to_owned(), 0.94)].into(),
            ..Self::default()
        }
    }
}

impl From<BlendWeights> for FeatureWeights {
    fn from(given: BlendWeights) -> Self {
        let BlendWeights { rules, walker, embedding, propagator } = given;
        Self {
            rules,
            rules_absent: rules * ABSENT.ln(),
            walker,
            walker_absent: walker * ABSENT.ln(),
            embedding,
            propagator,
            ..Self::default()
        }
    }
}

// Signature of serde.
#[allow(clippy::trivially_copy_pass_by_ref)]
fn is_zero(weight: &f64) -> bool {
    *weight == 0.0
}

/// Weights in the file format. Runs of version 0.1 have three of them, and a member that does not list a candidate
/// counts as [`ABSENT`].
#[derive(Deserialize)]
#[serde(default, deny_unknown_fields)]
#[derive(Default)]
struct Written {
    rules: f64,
    rules_absent: Option<f64>,
    rules_sure: f64,
    walker: f64,
    walker_absent: Option<f64>,
    embedding: f64,
    propagator: f64,
    linked: f64,
    linked_back: f64,
    taken: f64,
    frequency: f64,
    types: f64,
    relations: f64,
    further: BTreeMap<String, f64>,
}

impl From<Written> for FeatureWeights {
    fn from(written: Written) -> Self {
        let Written { rules, rules_sure, walker, embedding, propagator, .. } = written;
        let Written { linked, linked_back, taken, frequency, types, relations, further, .. } = written;
        Self {
            rules,
            rules_absent: written.rules_absent.unwrap_or(rules * ABSENT.ln()),
            rules_sure,
            walker,
            walker_absent: written.walker_absent.unwrap_or(walker * ABSENT.ln()),
            embedding,
            propagator,
            linked,
            linked_back,
            taken,
            frequency,
            types,
            relations,
            further,
        }
    }
}

/// The weights of a blend, as stored in a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Recipe {
    /// For tail queries of relations without weights of their own.
    pub general: FeatureWeights,
    /// The same for head queries; if absent, those of tail queries apply.
    #[serde(default)]
    pub general_head: Option<FeatureWeights>,
    /// By relation and by the end asked for (`tail`, `head`).
    pub relations: BTreeMap<String, BTreeMap<String, FeatureWeights>>,
    /// The MRR that each member adds to the others, on validation queries that the weights were not fitted to; empty
    /// where none were fitted.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub adds: BTreeMap<String, f64>,
    /// The standard errors of these figures.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, f64>,
}

impl Recipe {
    /// The same weights for every query.
    pub fn of(general: BlendWeights) -> Self {
        Self {
            general: general.into(),
            general_head: None,
            relations: BTreeMap::new(),
            adds: BTreeMap::new(),
            errors: BTreeMap::new(),
        }
    }

    /// The weights if none are fitted: those of the settings; of rules and universal propagator alone, those that were
    /// fitted over many graphs.
    pub fn given(blend: &BlendConfig) -> Self {
        let recipe = Self::of(blend.weights());
        match blend.is_rules_and_universal() {
            true => Self { general: FeatureWeights::of_many_graphs(), ..recipe },
            false => recipe.with_further(blend.also.iter().map(String::as_str)),
        }
    }

    /// The same with the further members called `names`.
    pub fn with_further<'n>(mut self, names: impl IntoIterator<Item = &'n str>) -> Self {
        self.general.further.extend(names.into_iter().map(|name| (name.to_owned(), FURTHER_WEIGHT)));
        self
    }

    /// A recipe from the weights fitted to tail and to head queries.
    pub(super) fn fitted(
        tail: &FittedWeights,
        head: &FittedWeights,
        names: &Names,
        further: &[&str],
    ) -> Self {
        let mut relations: BTreeMap<String, BTreeMap<String, FeatureWeights>> = BTreeMap::new();
        for (side, fitted) in [("tail", tail), ("head", head)] {
            for (link, row) in &fitted.own {
                let Some(relation) = link.relation() else { continue };
                let place = relations.entry(names.relation(relation).to_owned()).or_default();
                place.insert(side.to_owned(), FeatureWeights::of_row(row, further));
            }
        }
        let [general, general_head] =
            [tail, head].map(|fitted| FeatureWeights::of_row(&fitted.common, further));
        Self {
            general,
            general_head: Some(general_head),
            relations,
            adds: BTreeMap::new(),
            errors: BTreeMap::new(),
        }
    }

    /// The weights by link.
    pub(super) fn by_link(&self, names: &Names, further: &[&str]) -> WeightsByLink {
        let mut own = HashMap::new();
        for (relation, directions) in &self.relations {
            let Some(id) = names.relations.get(relation) else { continue };
            for (direction, weights) in directions {
                let direction = if direction == "head" { Direction::Inverse } else { Direction::Forward };
                own.insert(Link::new(RelationId(id), direction), weights.row(further));
            }
        }
        let head = self.general_head.as_ref().unwrap_or(&self.general);
        WeightsByLink { general: [self.general.row(further), head.row(further)], own }
    }
}

/// The weights of a blend, by the link asked for.
pub(super) struct WeightsByLink {
    general: [Features; 2],
    own: HashMap<Link, Features>,
}

impl WeightsByLink {
    pub(crate) fn of(&self, link: Link) -> &Features {
        let general = &self.general[usize::from(link.direction() == Direction::Inverse)];
        self.own.get(&link).unwrap_or(general)
    }
}

/// The score of a candidate with these features.
pub(super) fn score(features: &[f32; WIDTH], weights: &Features) -> f64 {
    features.iter().zip(weights).map(|(&x, w)| f64::from(x) * w).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_of_earlier_runs_are_still_read() {
        let old = r#"{"general": {"rules": 0.5, "walker": 0.2, "embedding": 0.3}, "relations": {}}"#;
        let recipe: Recipe = serde_json::from_str(old).unwrap();
        let given = BlendWeights { rules: 0.5, walker: 0.2, embedding: 0.3, propagator: 0.0 };
        assert_eq!(recipe, Recipe::of(given));
        assert_eq!(recipe.general.rules_absent, 0.5 * 1e-4f64.ln());
    }

    #[test]
    fn a_recipe_survives_being_written() {
        let names = Names { relations: ["a", "b"].into_iter().collect(), ..Names::default() };
        let row = |first: f64| -> Features { std::array::from_fn(|i| first + i as f64) };
        let link = Link::inverse_of(RelationId(1));
        let tail = FittedWeights { common: row(1.0), own: BTreeMap::new() };
        let head = FittedWeights { common: row(2.0), own: BTreeMap::from([(link, row(3.0))]) };
        let recipe = Recipe::fitted(&tail, &head, &names, &["x", "y", "z"]);
        let written = serde_json::to_string(&recipe).unwrap();
        let read: Recipe = serde_json::from_str(&written).unwrap();
        assert_eq!(read, recipe);
        let by_link = read.by_link(&names, &["x", "y", "z"]);
        assert_eq!(by_link.of(link), &row(3.0));
        assert_eq!(by_link.of(Link::inverse_of(RelationId(0))), &row(2.0));
        assert_eq!(by_link.of(Link::forward(RelationId(1))), &row(1.0));
    }
}
