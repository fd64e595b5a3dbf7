//! ComplEx: `score(s, r, e) = Re Σₖ sₖ rₖ conj(eₖ)` over complex numbers; a row holds all real parts, then all
//! imaginary parts. `Re(q conj(e))` is the product of the two rows as plain numbers, so the query is `s r`.

use super::model::{Model, Size, Space, Tables, bias, initial};
use super::settings::Settings;
use crate::tensor::{Indices, ParameterId, Parameters, Result, Tape, Var};

/// The model's tables and dropout rates.
pub(super) struct ComplEx {
    tables: Tables,
    dropout_entity: f32,
    dropout_relation: f32,
    dropout_hidden: f32,
}

impl ComplEx {
    /// Adds the tables.
    pub(super) fn new(settings: &Settings, size: Size, parameters: &mut Parameters) -> Result<Self> {
        let width = 2 * settings.dimension;
        let entities = parameters.table("entities", size.entities, width, initial(settings))?;
        let relations = parameters.table("relations", size.links(), width, initial(settings))?;
        if settings.initial_imaginary > 0.0 {
            for table in [entities, relations] {
                start_imaginary(parameters, table, settings)?;
            }
        }
        let bias = bias(settings, size, parameters)?;
        Ok(ComplEx {
            tables: Tables { entities, relations, bias, space: Space::Product, complex: true },
            dropout_entity: settings.dropout_entity as f32,
            dropout_relation: settings.dropout_relation as f32,
            dropout_hidden: settings.dropout_hidden as f32,
        })
    }
}

/// Scales the initial imaginary parts of a table to the deviation that the settings give them.
fn start_imaginary(parameters: &mut Parameters, table: ParameterId, settings: &Settings) -> Result<()> {
    let value = parameters.value(table);
    let deviation = match settings.initial {
        0.0 => (2.0 / (value.rows() + value.columns()) as f64).sqrt(),
        deviation => deviation,
    };
    let scale = (settings.initial_imaginary / deviation) as f32;
    let mut values = value.to_vec()?;
    for row in values.chunks_mut(value.columns()) {
        row[settings.dimension..].iter_mut().for_each(|part| *part *= scale);
    }
    parameters.set(table, &values)
}

impl Model for ComplEx {
    fn tables(&self) -> Tables {
        self.tables
    }

    fn query(&self, tape: &mut Tape, subjects: &Indices, links: &Indices) -> Result<Var> {
        let (entities, relations) =
            (tape.parameter(self.tables.entities), tape.parameter(self.tables.relations));
        let subject = tape.gather(entities, subjects, self.dropout_entity)?; // [queries, 2 × dimension]
        let relation = tape.gather(relations, links, self.dropout_relation)?; // [queries, 2 × dimension]
        let product = tape.complex_product(subject, relation)?;
        tape.dropout(product, self.dropout_hidden)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tensor::Device;

    #[test]
    fn imaginary_parts_start_at_their_own_size_and_real_parts_as_without() {
        let size = Size { entities: 300, relations: 20 };
        let tables = |initial, initial_imaginary| -> Vec<Vec<f32>> {
            let settings = Settings { initial, initial_imaginary, dimension: 50, ..Settings::default() };
            let mut parameters = Parameters::new(&Device::cpu(1).unwrap(), 3);
            ComplEx::new(&settings, size, &mut parameters).unwrap();
            parameters.ids().map(|id| parameters.value(id).to_vec().unwrap()).collect()
        };
        for initial in [0.0, 0.3] {
            for (plain, published) in tables(initial, 0.0).iter().zip(tables(initial, 1.0)) {
                let half = |values: &[f32], from: usize| -> Vec<f32> {
                    values.chunks(100).flat_map(|row| row[from..from + 50].to_vec()).collect()
                };
                assert_eq!(half(plain, 0), half(&published, 0));
                let imaginary = half(&published, 50);
                let square = imaginary.iter().map(|part| part * part).sum::<f32>() / imaginary.len() as f32;
                assert!((square.sqrt() - 1.0).abs() < 0.05, "{square}");
            }
        }
    }
}
