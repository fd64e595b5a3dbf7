//! What the models share: a query vector is compared with every entity's vector.
//!
//! A model turns `(subject, link)` into a query vector and says how it is compared with entities. The scores of all
//! entities, the scores of single triples and the losses follow from that, and are the same code for all models. Head
//! queries are queries by the inverse link, which has its own embedding.

use super::examples::Batch;
use super::settings::{LabelFloor, Loss, ModelKind, Settings};
use super::{complex, conve, distmult, rotate};
use crate::graph::Link;
use crate::tensor::{Indices, Initial, ParameterId, Parameters, Result, Smoothing, Tape, Tensor, Var};

/// How a query is compared with an entity `e`. If the entities have biases, `e`'s own is added to the score.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Space {
    /// `query · e`.
    Product,
    /// `2 query · e − |e|²`, which is `|query|² − |query − e|²`: the negative squared distance, up to a term that is
    /// the same for all entities.
    Distance,
}

/// The tables that every model has.
#[derive(Clone, Copy, Debug)]
pub(super) struct Tables {
    /// `[entities, width]`.
    pub(super) entities: ParameterId,
    /// `[links, …]`, reserved links included, so that a link's number is its row.
    pub(super) relations: ParameterId,
    /// `[entities, 1]`, if entities have a bias.
    pub(super) bias: Option<ParameterId>,
    /// How queries are compared with entities.
    pub(super) space: Space,
    /// Whether a row of `entities` holds complex numbers.
    pub(super) complex: bool,
}

/// One kind of model over its parameters.
pub(super) trait Model: Send + Sync {
    /// Its tables.
    fn tables(&self) -> Tables;

    /// The query of each `(subject, link)`: `[queries, width]`.
    fn query(&self, tape: &mut Tape, subjects: &Indices, links: &Indices) -> Result<Var>;
}

/// How many entities and relations a model has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Size {
    /// Entities.
    pub entities: usize,
    /// Relations; each has two links.
    pub relations: usize,
}

impl Size {
    /// The number of rows of a table of link embeddings.
    pub(super) fn links(self) -> usize {
        Link::count(self.relations)
    }
}

/// Adds the parameters of a model.
pub(super) fn build(settings: &Settings, size: Size, parameters: &mut Parameters) -> Result<Box<dyn Model>> {
    Ok(match settings.model {
        ModelKind::DistMult => Box::new(distmult::DistMult::new(settings, size, parameters)?),
        ModelKind::ComplEx => Box::new(complex::ComplEx::new(settings, size, parameters)?),
        ModelKind::ConvE => Box::new(conve::ConvE::new(settings, size, parameters)?),
        ModelKind::RotatE => Box::new(rotate::RotatE::new(settings, size, parameters)?),
    })
}

/// The initial values of an embedding table.
pub(super) fn initial(settings: &Settings) -> Initial {
    match settings.initial {
        0.0 => Initial::XavierNormal,
        deviation => Initial::Normal(deviation as f32),
    }
}

/// The table of biases, if the settings ask for one.
pub(super) fn bias(
    settings: &Settings,
    size: Size,
    parameters: &mut Parameters,
) -> Result<Option<ParameterId>> {
    match settings.entity_bias {
        true => parameters.table("entity_bias", size.entities, 1, Initial::Zeros).map(Some),
        false => Ok(None),
    }
}

/// The operands of the comparison: `[queries, width]` against `[entities, width]`, with `[entities, 1]` added.
struct Meeting {
    query: Var,
    entities: Var,
    added: Option<Var>,
}

/// The operands for comparing `query` with all entities, or with those in `rows`, to whose scores `correction` is added.
fn meeting(
    model: &dyn Model,
    tape: &mut Tape,
    query: Var,
    rows: Option<&Indices>,
    correction: Option<&Tensor>,
) -> Result<Meeting> {
    let tables = model.tables();
    let table = tape.parameter(tables.entities);
    let entities = match rows {
        Some(rows) => tape.gather(table, rows, 0.0)?,
        None => table,
    };
    let mut added = match (tables.bias.map(|bias| tape.parameter(bias)), rows) {
        (Some(bias), Some(rows)) => Some(tape.gather(bias, rows, 0.0)?),
        (bias, _) => bias,
    };
    if let Some(correction) = correction {
        let correction = tape.constant(correction.clone())?;
        added = Some(added.map_or(Ok(correction), |bias| tape.add(bias, correction))?);
    }
    if tables.space == Space::Product {
        return Ok(Meeting { query, entities, added });
    }
    let squares = tape.row_dot(entities, entities)?; // [entities, 1]
    let minus = tape.scale(squares, -1.0)?;
    let added = added.map_or(Ok(minus), |added| tape.add(minus, added))?;
    Ok(Meeting { query: tape.scale(query, 2.0)?, entities, added: Some(added) })
}

/// The scores of all entities: `[queries, entities]`.
pub(super) fn scores_of_all(model: &dyn Model, tape: &mut Tape, query: Var) -> Result<Var> {
    let Meeting { query, entities, added } = meeting(model, tape, query, None, None)?;
    tape.against(query, entities, added, 0.0)
}

/// The scores of the entities in `rows`: `[queries, rows]`.
pub(super) fn scores_of_some(model: &dyn Model, tape: &mut Tape, query: Var, rows: &Indices) -> Result<Var> {
    let Meeting { query, entities, added } = meeting(model, tape, query, Some(rows), None)?;
    tape.against(query, entities, added, 0.0)
}

/// The score of one entity for each query: `[queries, 1]`.
pub(super) fn scores_of(model: &dyn Model, tape: &mut Tape, query: Var, answers: &Indices) -> Result<Var> {
    let tables = model.tables();
    let table = tape.parameter(tables.entities);
    let answer = tape.gather(table, answers, 0.0)?; // [queries, width]
    let mut score = tape.row_dot(query, answer)?;
    if tables.space == Space::Distance {
        let double = tape.scale(score, 2.0)?;
        let squares = tape.row_dot(answer, answer)?;
        let minus = tape.scale(squares, -1.0)?;
        score = tape.add(double, minus)?;
    }
    if let Some(bias) = tables.bias {
        let bias = tape.parameter(bias);
        let own = tape.gather(bias, answers, 0.0)?; // [queries, 1]
        score = tape.add(score, own)?;
    }
    Ok(score)
}

/// The loss of a step: `[1, 1]`.
pub(super) fn loss(model: &dyn Model, tape: &mut Tape, batch: &Batch, settings: &Settings) -> Result<Var> {
    let query = model.query(tape, &batch.subjects, &batch.links)?;
    let dropout = settings.dropout_table as f32;
    let sample = batch.sample.as_ref();
    let (rows, correction) = (sample.map(|sample| &sample.rows), sample.map(|sample| &sample.correction));
    let Meeting { query, entities, added } = meeting(model, tape, query, rows, correction)?;
    let labels = sample.map_or(&batch.labels, |sample| &sample.labels);
    let loss = match settings.loss {
        Loss::Binary => {
            let taken = settings.label_smoothing as f32;
            let floor = match settings.label_floor {
                LabelFloor::Smoothed => taken,
                LabelFloor::One => 1.0,
            };
            let smoothing = Smoothing { taken, floor };
            tape.binary_loss_against_all(query, entities, added, labels, smoothing, dropout)?
        }
        Loss::Softmax => tape.softmax_loss_against_all(query, entities, added, labels, dropout)?,
    };
    if settings.n3 == 0.0 {
        return Ok(loss);
    }
    let cubes = n3(model, tape, batch, settings.n3 as f32)?;
    tape.add(loss, cubes)
}

/// N3 regularisation: `weight / queries · Σ |x|³` over the embeddings of subjects, relations and answers. Answers are
/// averaged over the batch, so that they count as one per query.
fn n3(model: &dyn Model, tape: &mut Tape, batch: &Batch, weight: f32) -> Result<Var> {
    let Batch { subjects, links, labels, .. } = batch;
    let tables = model.tables();
    let (entities, relations) = (tape.parameter(tables.entities), tape.parameter(tables.relations));
    let each = weight / subjects.len().max(1) as f32;
    let subject = tape.gather(entities, subjects, 0.0)?;
    let answers = tape.gather(entities, &labels.rows, 0.0)?;
    let of_subjects = tape.cubed_norm(subject, tables.complex, each)?;
    let of_answers = tape.cubed_norm(answers, tables.complex, weight / labels.rows.len().max(1) as f32)?;
    let of_entities = tape.add(of_subjects, of_answers)?;
    if tables.space == Space::Distance {
        return Ok(of_entities); // a relation is an angle: there is nothing to keep small
    }
    let relation = tape.gather(relations, links, 0.0)?;
    let of_relations = tape.cubed_norm(relation, tables.complex, each)?;
    tape.add(of_entities, of_relations)
}
