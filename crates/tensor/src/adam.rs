//! Adam, dense and by rows.
//!
//! For a gradient `g` at step `t`, with `m` and `v` its decaying mean and mean square:
//! `m = β₁ m + (1 − β₁) g`, `v = β₂ v + (1 − β₂) g²`,
//! `p = (1 − η λ) p − η · (m / (1 − β₁ᵗ)) / (√(v / (1 − β₂ᵗ)) + ε)`, where λ is 0 unless set.
//!
//! Rows of a table that a step did not touch are not visited. When a row is touched again after `k` untouched steps,
//! its moments first *catch up*: they decay by `β₁ᵏ` and `β₂ᵏ`, exactly as `k` dense steps with a zero gradient would
//! have left them. One thing differs: dense Adam would also have moved the row by its old momentum during those steps.
//! For embeddings skipping that is an advantage as well as a saving (one old example does not keep pushing a rare row).
//! If every step touches every row, both are the same.

use super::cpu::{Cpu, simd};
use super::cuda::Cuda;
use super::cuda::launch::arguments;
use super::cuda::pieces::{Piece, Pieces};
use super::device::Backend;
use super::error::Result;
use super::file::Archive;
use super::gradients::{Gradients, State};
use super::memory::Buffer;
use super::parameters::{Kind, ParameterId, Parameters};

/// The constants of Adam.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamOptions {
    /// η, the learning rate; may be changed between steps ([`Adam::set_learning_rate`]).
    pub learning_rate: f32,
    /// β₁, the decay of the mean gradient.
    pub beta1: f32,
    /// β₂, the decay of the mean square.
    pub beta2: f32,
    /// ε, added to the root of the mean square.
    pub epsilon: f32,
    /// λ, by which a step shrinks every value it updates, times η and apart from the gradient (AdamW).
    pub weight_decay: f32,
}

impl Default for AdamOptions {
    fn default() -> Self {
        AdamOptions { learning_rate: 1e-3, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.0 }
    }
}

const HAS_GRADIENT: &str = "a slot in this state has its buffer";
const HAS_MOMENTS: &str = "moments are made before the update";

struct Moments {
    first: Buffer<f32>,
    second: Buffer<f32>,
    /// For tables: the step that last touched each row.
    last: Option<Buffer<u32>>,
}

/// The optimiser: the moments of every parameter.
pub struct Adam {
    options: AdamOptions,
    step: u32,
    moments: Vec<Option<Moments>>,
}

/// The values of one step that are the same for all parameters.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    pub(crate) number: u32,
    pub(crate) rate: f32,
    pub(crate) beta1: f32,
    pub(crate) beta2: f32,
    pub(crate) epsilon: f32,
    /// `1 − η λ`.
    pub(crate) shrink: f32,
    /// `1 / (1 − β₁ᵗ)`.
    pub(crate) first: f32,
    /// `1 / (1 − β₂ᵗ)`.
    pub(crate) second: f32,
}

impl Adam {
    /// No steps taken yet.
    pub fn new(options: AdamOptions) -> Adam {
        Adam { options, step: 0, moments: Vec::new() }
    }

    /// The number of steps taken.
    pub fn steps(&self) -> u32 {
        self.step
    }

    /// Sets η for the following steps.
    pub fn set_learning_rate(&mut self, rate: f32) {
        self.options.learning_rate = rate;
    }

    /// The current η.
    pub fn learning_rate(&self) -> f32 {
        self.options.learning_rate
    }

    /// Takes one step along `gradients`, writes new statistics, and leaves the gradients empty.
    pub fn step(&mut self, parameters: &mut Parameters, gradients: &mut Gradients) -> Result<()> {
        gradients.expect_for(parameters)?;
        self.step += 1;
        self.moments.resize_with(parameters.entries.len(), || None);
        let step = self.constants();
        let due = |id: &ParameterId| gradients.slots[id.0 as usize].is_filled() && parameters.learns(*id);
        let due: Vec<ParameterId> = parameters.ids().filter(due).collect();
        for &id in &due {
            self.expect_moments(parameters, id)?;
        }
        let device = parameters.device().clone();
        match device.backend() {
            Backend::Cpu(cpu) => {
                for &id in &due {
                    self.update_on_cpu(cpu, parameters, gradients, id, step)?;
                }
            }
            Backend::Cuda(cuda) => self.update_on_cuda(cuda, parameters, gradients, &due, step)?,
        }
        for id in parameters.ids() {
            gradients.slots[id.0 as usize].leave(due.contains(&id));
        }
        for (id, value) in gradients.statistics.drain(..) {
            parameters.entries[id.0 as usize].value = value;
        }
        gradients.factor = None;
        Ok(())
    }

    fn constants(&self) -> Step {
        let AdamOptions { learning_rate, beta1, beta2, epsilon, weight_decay } = self.options;
        let corrected = |beta: f32| (1.0 / (1.0 - f64::from(beta).powi(self.step as i32))) as f32;
        let (first, second) = (corrected(beta1), corrected(beta2));
        let shrink = 1.0 - learning_rate * weight_decay;
        Step { number: self.step, rate: learning_rate, beta1, beta2, epsilon, shrink, first, second }
    }

    /// Allocates the moments of a parameter that gets its first gradient.
    fn expect_moments(&mut self, parameters: &Parameters, id: ParameterId) -> Result<()> {
        let moments = &mut self.moments[id.0 as usize];
        if moments.is_none() {
            let (device, [rows, columns]) = (parameters.device(), parameters.entry(id).value.shape());
            *moments = Some(Moments {
                first: device.zeros(rows * columns)?,
                second: device.zeros(rows * columns)?,
                last: if parameters.kind(id) == Kind::Table { Some(device.zeros(rows)?) } else { None },
            });
        }
        Ok(())
    }

    fn update_on_cpu(
        &mut self,
        cpu: &Cpu,
        parameters: &mut Parameters,
        gradients: &mut Gradients,
        id: ParameterId,
        step: Step,
    ) -> Result<()> {
        let slot = &mut gradients.slots[id.0 as usize];
        let (columns, sparse) = (slot.columns, slot.state == State::Rows);
        let moments = self.moments[id.0 as usize].as_mut().expect(HAS_MOMENTS);
        let gradient = slot.gradient.as_mut().expect(HAS_GRADIENT);
        let values = parameters.values_mut(id)?;
        let factor = gradients.factor.as_ref().map_or(1.0, |factor| factor.host()[0]);
        let touched = slot.touched.as_ref().filter(|_| sparse).map(Buffer::host);
        let last = moments.last.as_ref().map(Buffer::host);
        let arrays = [
            (values.host_mut(), columns),
            (moments.first.host_mut(), columns),
            (moments.second.host_mut(), columns),
            (gradient.host_mut(), columns),
        ];
        cpu.zip(arrays, Cpu::rows_per_chunk(columns), |start, [values, first, second, gradient]| {
            for (index, values) in values.chunks_exact_mut(columns).enumerate() {
                let row = start + index;
                if touched.is_some_and(|touched| touched[row] == 0) {
                    continue;
                }
                let rest = last.map_or(0, |last| (step.number - 1 - last[row]) as i32);
                let part = index * columns..(index + 1) * columns;
                let moments = (&mut first[part.clone()], &mut second[part.clone()]);
                update_row(values, moments, &mut gradient[part], factor, rest, step);
            }
        });
        if let Some(last) = &mut moments.last {
            let marks = slot.touched.as_mut().filter(|_| sparse).map(Buffer::host_mut);
            mark(last.host_mut(), marks, step.number);
        }
        Ok(())
    }

    fn update_on_cuda(
        &mut self,
        cuda: &Cuda,
        parameters: &mut Parameters,
        gradients: &Gradients,
        due: &[ParameterId],
        step: Step,
    ) -> Result<()> {
        let mut pieces = Pieces::default();
        for &id in due {
            let slot = &gradients.slots[id.0 as usize];
            let moments = self.moments[id.0 as usize].as_ref().expect(HAS_MOMENTS);
            pieces.push(Piece {
                rows: slot.rows,
                columns: slot.columns,
                gradient: slot.gradient.as_ref().expect(HAS_GRADIENT),
                touched: slot.touched_rows(),
                values: Some(parameters.values_mut(id)?),
                first: Some(&moments.first),
                second: Some(&moments.second),
                last: moments.last.as_ref(),
            })?;
        }
        let list = pieces.upload(parameters.device())?;
        let arguments = arguments![
            &list,
            pieces.count(),
            pieces.rows(),
            gradients.factor.as_ref(),
            step.number,
            step.rate * step.first,
            step.beta1,
            step.beta2,
            step.epsilon,
            step.second,
            step.shrink
        ];
        cuda.warps("adam", pieces.rows(), arguments)
    }
    /// Stores the state in an archive, so that training can resume exactly.
    pub fn store(&self, parameters: &Parameters, archive: &mut Archive) -> Result<()> {
        archive.set_metadata("adam.step", &self.step.to_string());
        for (id, moments) in parameters.ids().zip(&self.moments) {
            let Some(moments) = moments else { continue };
            let (name, shape) = (parameters.name(id), parameters.entry(id).value.shape());
            archive.insert(&format!("adam.first.{name}"), shape, moments.first.read()?)?;
            archive.insert(&format!("adam.second.{name}"), shape, moments.second.read()?)?;
            if let Some(last) = &moments.last {
                archive.insert_indices(&format!("adam.last.{name}"), last.read()?)?;
            }
        }
        Ok(())
    }

    /// Restores the state from an archive that [`Adam::store`] filled.
    pub fn load(&mut self, parameters: &Parameters, archive: &Archive) -> Result<()> {
        self.step = archive.number("adam.step")?;
        self.moments.clear();
        let device = parameters.device();
        for id in parameters.ids() {
            let (name, shape) = (parameters.name(id), parameters.entry(id).value.shape());
            if !archive.contains(&format!("adam.first.{name}")) {
                self.moments.push(None);
                continue;
            }
            let first = device.upload(archive.values(&format!("adam.first.{name}"), shape)?)?;
            let second = device.upload(archive.values(&format!("adam.second.{name}"), shape)?)?;
            let last = match parameters.kind(id) {
                Kind::Table => Some(device.upload(archive.indices(&format!("adam.last.{name}"), shape[0])?)?),
                _ => None,
            };
            self.moments.push(Some(Moments { first, second, last }));
        }
        Ok(())
    }
}

/// The update of one row; sets its gradient to zero.
fn update_row(
    values: &mut [f32],
    (first, second): (&mut [f32], &mut [f32]),
    gradient: &mut [f32],
    factor: f32,
    rest: i32,
    step: Step,
) {
    let (keep1, keep2) = (step.beta1.powi(rest + 1), step.beta2.powi(rest + 1));
    let (new1, new2) = (1.0 - step.beta1, 1.0 - step.beta2);
    let rate = step.rate * step.first;
    simd::vectorise(
        #[inline(always)]
        || {
            let moments = first.iter_mut().zip(second.iter_mut());
            for ((value, gradient), (first, second)) in
                values.iter_mut().zip(gradient.iter_mut()).zip(moments)
            {
                let derivative = *gradient * factor;
                *gradient = 0.0;
                *first = keep1.mul_add(*first, new1 * derivative);
                *second = keep2.mul_add(*second, new2 * derivative * derivative);
                let change = rate * *first / ((*second * step.second).sqrt() + step.epsilon);
                *value = *value * step.shrink - change;
            }
        },
    );
}

/// Records the step of every touched row and clears the marks.
fn mark(last: &mut [u32], touched: Option<&mut [u32]>, step: u32) {
    let Some(touched) = touched else {
        last.fill(step);
        return;
    };
    for (last, touched) in last.iter_mut().zip(touched) {
        if std::mem::take(touched) != 0 {
            *last = step;
        }
    }
}
