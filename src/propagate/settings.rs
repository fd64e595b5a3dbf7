//! Settings of a propagator and its training: plain values with documented defaults; unknown keys are refused.

use crate::settings::{WrongValue, expect, number, whole};
use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use std::ops::Bound;

/// The widest state that the kernels hold.
const WIDEST: usize = 256;
/// The most layers: an entity's distance from the subject is kept in a byte.
const DEEPEST: usize = 64;
/// The most networks that are averaged.
const MOST_NETWORKS: usize = 64;
/// Up to this many relations, each layer has plain weights for every link; beyond, they come from the query.
const FEW_RELATIONS: usize = 20;

/// How the messages that reach an entity are aggregated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum MessageAggregate {
    /// Mean, maximum, minimum and standard deviation, each also scaled by the entity's degree.
    #[default]
    Pna,
    /// The sum of the messages, each times a gate computed from its sender, its link and the query.
    Gated,
}

/// Where the weights of the links come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RelationWeights {
    /// From the query where relations are many, plain where they are few.
    #[default]
    Auto,
    /// A linear map of the query's embedding in every layer.
    Query,
    /// Parameters of every layer, the same for all queries.
    Plain,
}

/// What is taken out of the graph for a training query.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Removal {
    /// All links of the pair if validation pairs are (almost) never linked in the graph, else the fact alone.
    #[default]
    Auto,
    /// The fact that is asked for, in both directions.
    Fact,
    /// Every link between subject and answer.
    Pair,
}

/// Which weights a training starts from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum InitialWeights {
    /// Random ones.
    #[default]
    Random,
    /// Those of the universal propagator, fitted to the relations of the graph. The network has their size and gives
    /// every entity a state, and the weights of the links come from the query.
    Universal,
}

/// Which entities pass messages on in a layer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrontierBound {
    /// All that messages have reached: `"all"`.
    #[default]
    All,
    /// At most so many of each query: a number.
    Most(usize),
}

impl Serialize for FrontierBound {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::All => serializer.serialize_str("all"),
            Self::Most(most) => serializer.serialize_u64(*most as u64),
        }
    }
}

impl<'de> Deserialize<'de> for FrontierBound {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Words;
        impl de::Visitor<'_> for Words {
            type Value = FrontierBound;

            fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                out.write_str("`all` or a whole number of entities")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<FrontierBound, E> {
                match text {
                    "all" => Ok(FrontierBound::All),
                    _ => Err(E::invalid_value(de::Unexpected::Str(text), &self)),
                }
            }

            fn visit_u64<E: de::Error>(self, most: u64) -> Result<FrontierBound, E> {
                // Earlier versions wrote 0 for all.
                Ok(match most {
                    0 => FrontierBound::All,
                    _ => FrontierBound::Most(usize::try_from(most).unwrap_or(usize::MAX)),
                })
            }

            fn visit_i64<E: de::Error>(self, most: i64) -> Result<FrontierBound, E> {
                match u64::try_from(most) {
                    Ok(most) => self.visit_u64(most),
                    Err(_) => Err(E::invalid_value(de::Unexpected::Signed(most), &self)),
                }
            }
        }
        deserializer.deserialize_any(Words)
    }
}

/// Everything that can be chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PropagateSettings {
    /// How many times messages are passed on: the longest path that counts.
    pub layers: usize,
    /// Numbers in the state of an entity, at most 256.
    pub width: usize,
    /// Width of the perceptron that scores, at most 256.
    pub hidden: usize,
    /// Networks that are trained side by side from different initial weights and whose scores are averaged. Several cost
    /// that many times as much, and only validation tells whether they pay: on some small graphs by a point, on others
    /// not at all.
    pub networks: usize,
    /// How messages are aggregated.
    pub aggregate: MessageAggregate,
    /// Where the weights of the links come from.
    pub weights: RelationWeights,
    /// Which weights training starts from.
    pub start: InitialWeights,
    /// The most entities per query that pass messages on in a layer, or `all`. Those with the best scores so far do. With
    /// a number the cost follows the question instead of the graph. Weights can be asked with any frontier, whichever
    /// they were trained with, but a narrow one may rank much worse: compare on the validation split. A number needs the
    /// CPU.
    pub frontier: FrontierBound,
    /// Whether entities that no path reaches are told apart by their links: how many they have of each relation, whether
    /// they belong to a small part of the graph, or have none. Those that a path reaches are judged by paths alone.
    pub prior: bool,
    /// Share of each new state that is dropped in training.
    pub dropout: f64,
    /// What is taken out of the graph for a training query.
    pub removal: Removal,
    /// Share of the training facts that are taken out of the graph together and asked for while they are missing, as
    /// validation facts are; 0 takes out the query's own fact alone. With 0 a network memorises a small graph and
    /// recognises the gap that the missing fact leaves.
    pub hold_out: f64,
    /// The most facts that are taken out together, whatever their share: large graphs need no more.
    pub hold_out_most: usize,
    /// Queries in a training step.
    pub batch: usize,
    /// Epochs of training.
    pub epochs: usize,
    /// Training queries in an epoch; 0 for all facts in both directions.
    pub epoch_queries: usize,
    /// The peak learning rate, reached after the warm-up; a half cosine then decays it to a fiftieth.
    pub learning_rate: f64,
    /// Warm-up steps, in which the learning rate rises.
    pub warm_up: u64,
    /// The largest norm of the gradients; 0 for no limit.
    pub clip: f64,
    /// Epochs between two validations.
    pub validate_every: usize,
    /// The most validation triples used, in both directions; 0 for all.
    pub validation_queries: usize,
    /// Validations without a better MRR after which training ends; 0 for never.
    pub patience: usize,
}

impl Default for PropagateSettings {
    fn default() -> Self {
        PropagateSettings {
            layers: 6,
            width: 32,
            hidden: 64,
            networks: 1,
            aggregate: MessageAggregate::default(),
            weights: RelationWeights::default(),
            start: InitialWeights::default(),
            frontier: FrontierBound::All,
            prior: false,
            dropout: 0.0,
            removal: Removal::default(),
            hold_out: 0.1,
            hold_out_most: 3000,
            batch: 16,
            epochs: 10,
            epoch_queries: 0,
            learning_rate: 2e-3,
            warm_up: 200,
            clip: 1.0,
            validate_every: 1,
            validation_queries: 1000,
            patience: 0,
        }
    }
}

impl PropagateSettings {
    /// Whether the values make sense.
    ///
    /// # Errors
    /// The key, what was expected and what was found.
    pub fn check(&self) -> Result<(), WrongValue> {
        whole("layers", self.layers, 1..=DEEPEST)?;
        whole("width", self.width, 1..=WIDEST)?;
        whole("hidden", self.hidden, 1..=WIDEST)?;
        whole("networks", self.networks, 1..=MOST_NETWORKS)?;
        let fits =
            self.aggregate == MessageAggregate::Pna && self.weights != RelationWeights::Plain && !self.prior;
        let expected = "`random` with another aggregate than pna, plain weights or a prior";
        expect(fits || self.start == InitialWeights::Random, "start", expected, "universal")?;
        let everywhere = self.aggregate == MessageAggregate::Pna && !self.prior;
        let expected = "`all` with another aggregate than pna or a prior";
        expect(everywhere || self.frontier == FrontierBound::All, "frontier", expected, "a number")?;
        whole("batch", self.batch, 1..)?;
        whole("epochs", self.epochs, 1..)?;
        whole("validate_every", self.validate_every, 1..)?;
        number("dropout", self.dropout, 0.0..1.0)?;
        number("hold_out", self.hold_out, 0.0..=0.5)?;
        whole("hold_out_most", self.hold_out_most, 1..)?;
        let above_zero = (Bound::Excluded(0.0), Bound::Included(f64::MAX));
        number("learning_rate", self.learning_rate, above_zero)?;
        number("clip", self.clip, 0.0..=f64::MAX)
    }

    /// The same settings with `weights = "auto"` resolved for this many relations.
    pub(super) fn settled(mut self, relations: usize) -> PropagateSettings {
        self.weights = match self.weights_of_query(relations) {
            true => RelationWeights::Query,
            false => RelationWeights::Plain,
        };
        self
    }

    /// Whether the weights of the links come from the query, for this many relations.
    pub fn weights_of_query(&self, relations: usize) -> bool {
        match self.weights {
            RelationWeights::Auto => relations > FEW_RELATIONS || self.start == InitialWeights::Universal,
            RelationWeights::Query => true,
            RelationWeights::Plain => false,
        }
    }
}
