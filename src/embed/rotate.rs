//! RotatE: the relation rotates the subject, each complex coordinate by its own angle, and the nearer an entity, the
//! better the answer: `score(s, r, e) = |s|² − ‖s ∘ e^(i r) − e‖²`.
//!
//! The distance is squared Euclidean, so that it expands into products and all entities are scored at once: `2 q · e
//! − |e|²` for `q = s ∘ e^(i r)`, as a rotation does not change `|s|²`. On graphs with very popular entities a bias
//! per entity (`entity_bias`) helps: with distances alone, only the norm can express popularity.

use super::model::{Model, Size, Space, Tables, bias, initial};
use super::settings::Settings;
use crate::tensor::{Indices, Initial, Parameters, Result, Tape, Var};

/// The model's tables and dropout rates.
pub(super) struct RotatE {
    tables: Tables,
    dropout_entity: f32,
    dropout_hidden: f32,
}

impl RotatE {
    /// Adds the tables.
    pub(super) fn new(settings: &Settings, size: Size, parameters: &mut Parameters) -> Result<Self> {
        let (width, angles) = (2 * settings.dimension, Initial::Uniform(std::f32::consts::PI));
        let entities = parameters.table("entities", size.entities, width, initial(settings))?;
        let relations = parameters.table("relations", size.links(), settings.dimension, angles)?;
        let bias = bias(settings, size, parameters)?;
        Ok(RotatE {
            tables: Tables { entities, relations, bias, space: Space::Distance, complex: true },
            dropout_entity: settings.dropout_entity as f32,
            dropout_hidden: settings.dropout_hidden as f32,
        })
    }
}

impl Model for RotatE {
    fn tables(&self) -> Tables {
        self.tables
    }

    fn query(&self, tape: &mut Tape, subjects: &Indices, links: &Indices) -> Result<Var> {
        let (entities, relations) =
            (tape.parameter(self.tables.entities), tape.parameter(self.tables.relations));
        let subject = tape.gather(entities, subjects, self.dropout_entity)?; // [queries, 2 × dimension]
        let angle = tape.gather(relations, links, 0.0)?; // [queries, dimension]
        let turned = tape.rotate(subject, angle)?;
        tape.dropout(turned, self.dropout_hidden)
    }
}
