//! Universal weights as what a propagator of one graph starts training with.
//!
//! In the universal network, what a query starts with and the weights of the links are functions of how relations meet; a
//! [propagator](crate::propagate) has a table of starts and, in every layer, a linear map from the start to the weights of
//! the links. The table is computed, the map is fitted to the computed weights by least squares over the links that may be
//! asked for, and everything else is copied. With as many links as the width, or fewer, the fit is all but exact.

use super::{Network, Relations, UniversalError};
use crate::tensor::{ParameterId, Parameters, Tape};
use std::collections::BTreeMap;

/// Links that are asked for at once.
const BATCH: usize = 8;
/// What is added to the diagonal of the normal equations, as a share of its mean.
const RIDGE: f64 = 1e-7;

impl Network {
    /// The weights of a propagator that begins where this network stands, by the names of its parameters.
    pub(in crate::universal) fn as_propagator(
        &self,
        parameters: &Parameters,
        relations: &Relations,
    ) -> Result<BTreeMap<String, Vec<f32>>, UniversalError> {
        let (links, width) = (relations.links, self.width);
        let mut starts = Vec::with_capacity(links * width);
        let mut fits: Vec<Fit> =
            self.entity_layers.iter().map(|_| Fit::new(width + 1, links * width)).collect();
        let all: Vec<u32> = (0..links as u32).collect();
        for asked in all.chunks(BATCH) {
            let vectors = self.link_vectors(parameters, relations, asked)?;
            let mut tape = Tape::inference(parameters).exact(true);
            let vectors = tape.constant(vectors)?;
            let states = self.link_states(&mut tape, vectors, links, asked)?;
            let start = self.query_start(&mut tape, states.asked, None)?;
            let start = tape.value(start).to_vec()?;
            for (layer, fit) in self.entity_layers.iter().zip(&mut fits) {
                let weights = self.link_weights(&mut tape, layer, states, None)?; // [asked, links × width]
                let weights = tape.value(weights).to_vec()?;
                for (start, weights) in start.chunks(width).zip(weights.chunks(links * width)) {
                    fit.add(start, weights);
                }
            }
            starts.extend(start);
        }
        let mut values = self.copied(parameters)?;
        values.insert("query".to_owned(), starts);
        for (number, fit) in (1..).zip(fits) {
            let mut map = fit.solved();
            let bias = map.split_off(width * links * width);
            values.insert(format!("layer.{number}.links"), map);
            values.insert(format!("layer.{number}.links_bias"), bias);
        }
        Ok(values)
    }

    /// The parameters that both networks have, by their names in a propagator.
    fn copied(&self, parameters: &Parameters) -> Result<BTreeMap<String, Vec<f32>>, UniversalError> {
        let mut values = BTreeMap::new();
        let mut copy = |name: String, id: ParameterId| -> Result<(), UniversalError> {
            values.insert(name, parameters.value(id).to_vec()?);
            Ok(())
        };
        for (number, layer) in (1..).zip(&self.entity_layers) {
            let shared = [
                ("own", layer.own),
                ("mixed", layer.mixed),
                ("bias", layer.bias),
                ("scale", layer.scale),
                ("shift", layer.shift),
            ];
            for (name, id) in shared {
                copy(format!("layer.{number}.{name}"), id)?;
            }
        }
        copy("score.state".to_owned(), self.of_state)?;
        copy("score.query".to_owned(), self.of_query)?;
        copy("score.bias".to_owned(), self.hidden_bias)?;
        copy("score.weights".to_owned(), self.to_score)?;
        Ok(values)
    }
}

/// A linear map with a bias, fitted by least squares: the normal equations.
struct Fit {
    inputs: usize,
    outputs: usize,
    /// `[inputs, inputs]` and `[inputs, outputs]`; the last input is 1.
    squares: Vec<f64>,
    products: Vec<f64>,
}

impl Fit {
    fn new(inputs: usize, outputs: usize) -> Self {
        Self { inputs, outputs, squares: vec![0.0; inputs * inputs], products: vec![0.0; inputs * outputs] }
    }

    fn add(&mut self, input: &[f32], output: &[f32]) {
        let given = |at: usize| input.get(at).map_or(1.0, |&value| f64::from(value));
        for row in 0..self.inputs {
            for column in 0..self.inputs {
                self.squares[row * self.inputs + column] += given(row) * given(column);
            }
            let products = &mut self.products[row * self.outputs..][..self.outputs];
            for (sum, &value) in products.iter_mut().zip(output) {
                *sum += given(row) * f64::from(value);
            }
        }
    }

    /// The map, `[inputs, outputs]`, by elimination; the equations are positive definite.
    fn solved(mut self) -> Vec<f32> {
        let (inputs, outputs) = (self.inputs, self.outputs);
        let mean = (0..inputs).map(|at| self.squares[at * inputs + at]).sum::<f64>() / inputs as f64;
        for at in 0..inputs {
            self.squares[at * inputs + at] += RIDGE * mean + f64::MIN_POSITIVE;
        }
        for pivot in 0..inputs {
            for row in (0..inputs).filter(|&row| row != pivot) {
                let factor = self.squares[row * inputs + pivot] / self.squares[pivot * inputs + pivot];
                for column in pivot..inputs {
                    self.squares[row * inputs + column] -= factor * self.squares[pivot * inputs + column];
                }
                for column in 0..outputs {
                    self.products[row * outputs + column] -= factor * self.products[pivot * outputs + column];
                }
            }
        }
        let diagonal = |row: usize| self.squares[row * inputs + row];
        let solved = self.products.iter().enumerate();
        solved.map(|(at, value)| (value / diagonal(at / outputs)) as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Fit;

    #[test]
    fn a_linear_map_is_found_again() {
        let mut fit = Fit::new(3, 2);
        for at in 0..50u32 {
            let [a, b] = [at % 7, at % 5].map(|number| number as f32 - 2.0);
            fit.add(&[a, b], &[2.0 * a - b + 3.0, 0.5 * b - 1.0]);
        }
        let expected = [2.0, 0.0, -1.0, 0.5, 3.0, -1.0];
        for (found, expected) in fit.solved().into_iter().zip(expected) {
            assert!((found - expected).abs() < 0.01, "{found} {expected}");
        }
    }
}
