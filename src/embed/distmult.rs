//! DistMult: `score(s, r, e) = Σₖ sₖ rₖ eₖ`.

use super::model::{Model, Size, Space, Tables, bias, initial};
use super::settings::Settings;
use crate::tensor::{Indices, Parameters, Result, Tape, Var};

/// The model's tables and dropout rates.
pub(super) struct DistMult {
    tables: Tables,
    dropout_entity: f32,
    dropout_relation: f32,
    dropout_hidden: f32,
}

impl DistMult {
    /// Adds the tables.
    pub(super) fn new(settings: &Settings, size: Size, parameters: &mut Parameters) -> Result<Self> {
        let width = settings.dimension;
        let entities = parameters.table("entities", size.entities, width, initial(settings))?;
        let relations = parameters.table("relations", size.links(), width, initial(settings))?;
        let bias = bias(settings, size, parameters)?;
        Ok(DistMult {
            tables: Tables { entities, relations, bias, space: Space::Product, complex: false },
            dropout_entity: settings.dropout_entity as f32,
            dropout_relation: settings.dropout_relation as f32,
            dropout_hidden: settings.dropout_hidden as f32,
        })
    }
}

impl Model for DistMult {
    fn tables(&self) -> Tables {
        self.tables
    }

    fn query(&self, tape: &mut Tape, subjects: &Indices, links: &Indices) -> Result<Var> {
        let (entities, relations) =
            (tape.parameter(self.tables.entities), tape.parameter(self.tables.relations));
        let subject = tape.gather(entities, subjects, self.dropout_entity)?; // [queries, dimension]
        let relation = tape.gather(relations, links, self.dropout_relation)?; // [queries, dimension]
        let product = tape.multiply(subject, relation)?;
        tape.dropout(product, self.dropout_hidden)
    }
}
