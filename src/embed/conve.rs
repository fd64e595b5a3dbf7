//! ConvE: subject and relation, each reshaped into rows, are stacked into an image; filters run over it, a linear layer
//! maps the feature maps back to an embedding, and that is compared with the entities.
//!
//! `score(s, r, e) = ReLU(norm(W · vec(ReLU(norm(filters ∗ norm([s; r])))))) · e + bias(e)`
//!
//! Two published versions differ in where dropout is applied to the image and in whether the filters' features are
//! normalised; both are settings.

use super::model::{Model, Size, Space, Tables, bias, initial};
use super::settings::{ImageDropout, Settings};
use crate::tensor::{
    Activation, Image, Indices, Initial, Normalisation, ParameterId, Parameters, Result, Tape, Var,
};

/// The model's parameters, sizes and dropout rates.
pub(super) struct ConvE {
    tables: Tables,
    image: Image,
    filters: ParameterId,
    filter_bias: ParameterId,
    weight: ParameterId,
    weight_bias: ParameterId,
    of_image: Normalisation,
    of_features: Option<Normalisation>,
    of_query: Normalisation,
    filter_count: usize,
    dimension: usize,
    /// Dropout of the embeddings, before they are normalised as an image.
    dropout_embedding: f32,
    /// Dropout of the normalised image.
    dropout_image: f32,
    dropout_feature: f32,
    dropout_hidden: f32,
}

impl ConvE {
    /// Adds the tables, the filters and the linear layer.
    pub(super) fn new(settings: &Settings, size: Size, parameters: &mut Parameters) -> Result<Self> {
        let &Settings { dimension, image_rows, filters: filter_count, kernel, .. } = settings;
        let entities = parameters.table("entities", size.entities, dimension, initial(settings))?;
        let relations = parameters.table("relations", size.links(), dimension, initial(settings))?;
        let bias = bias(settings, size, parameters)?;
        let image = Image {
            channels: 1,
            height: 2 * image_rows,
            width: dimension / image_rows,
            kernel_height: kernel,
            kernel_width: kernel,
        };
        // The usual initialisation of such layers: uniform within 1 / √inputs.
        let within = |inputs: usize| Initial::Uniform(1.0 / (inputs as f32).sqrt());
        let (taps, features) = (image.taps(), filter_count * image.places());
        let dropout = settings.dropout_entity as f32;
        let (dropout_embedding, dropout_image) = match settings.image_dropout {
            ImageDropout::Before => (dropout, 0.0),
            ImageDropout::After => (0.0, dropout),
        };
        Ok(ConvE {
            tables: Tables { entities, relations, bias, space: Space::Product, complex: false },
            image,
            filters: parameters.dense("filters", filter_count, taps, within(taps))?,
            filter_bias: parameters.dense("filter_bias", filter_count, 1, within(taps))?,
            weight: parameters.dense("weight", features, dimension, within(features))?,
            weight_bias: parameters.dense("weight_bias", 1, dimension, within(features))?,
            of_image: normalisation(parameters, "image_norm", 1)?,
            of_features: match settings.feature_norm {
                true => Some(normalisation(parameters, "feature_norm", filter_count)?),
                false => None,
            },
            of_query: normalisation(parameters, "query_norm", dimension)?,
            filter_count,
            dimension,
            dropout_embedding,
            dropout_image,
            dropout_feature: settings.dropout_feature as f32,
            dropout_hidden: settings.dropout_hidden as f32,
        })
    }
}

fn normalisation(parameters: &mut Parameters, name: &str, channels: usize) -> Result<Normalisation> {
    let part = |part: &str| format!("{name}.{part}");
    Ok(Normalisation {
        scale: parameters.dense(&part("scale"), channels, 1, Initial::Ones)?,
        shift: parameters.dense(&part("shift"), channels, 1, Initial::Zeros)?,
        mean: parameters.statistic(&part("mean"), channels, 1, Initial::Zeros)?,
        variance: parameters.statistic(&part("variance"), channels, 1, Initial::Ones)?,
    })
}

impl Model for ConvE {
    fn tables(&self) -> Tables {
        self.tables
    }

    fn query(&self, tape: &mut Tape, subjects: &Indices, links: &Indices) -> Result<Var> {
        let (entities, relations) =
            (tape.parameter(self.tables.entities), tape.parameter(self.tables.relations));
        let subject = tape.gather(entities, subjects, self.dropout_embedding)?; // [queries, dimension]
        let relation = tape.gather(relations, links, self.dropout_embedding)?; // [queries, dimension]
        let image = tape.concatenate(&[subject, relation])?; // [queries, 2 rows × columns]
        let image = tape.batch_norm(image, 1, self.of_image)?;
        let image = tape.dropout(image, self.dropout_image)?;
        let (filters, filter_bias) = (tape.parameter(self.filters), tape.parameter(self.filter_bias));
        let mut features = tape.convolve(image, filters, Some(filter_bias), self.image)?; // [queries, filters × places]
        if let Some(of_features) = self.of_features {
            features = tape.batch_norm(features, self.filter_count, of_features)?;
        }
        let features = tape.relu(features)?;
        let features = tape.dropout(features, self.dropout_feature)?;
        let (weight, bias) = (tape.parameter(self.weight), tape.parameter(self.weight_bias));
        let query =
            tape.linear(&[features], weight, Some(bias), Activation::Identity, self.dropout_hidden)?; // [queries, dimension]
        let query = tape.batch_norm(query, self.dimension, self.of_query)?;
        tape.relu(query)
    }
}
