//! Gradients of parameters between the backward pass and the optimiser.
//!
//! One buffer a parameter, kept from step to step. A table remembers which rows were touched; the optimiser
//! visits only those and leaves them zero, so no step clears a whole table.

use super::cuda::launch::arguments;
use super::device::{Backend, Device};
use super::error::{Result, TensorError};
use super::memory::Buffer;
use super::parameters::{Kind, ParameterId, Parameters};
use super::value::Tensor;

/// Rows of a gradient that a block of the kernel squares.
const SQUARE_ROWS: usize = 64;

pub(crate) const KERNELS: &str = r#"
extern "C" __global__ void squares(const float* gradient, const u32* touched, u32 rows, u32 columns, float* parts) {
    u32 first = blockIdx.x * 64, end = min(first + 64, rows);
    float sum = 0.0f;
    for (u32 row = first + (threadIdx.x >> 5); row < end; row += 8) {
        if (touched && !touched[row]) continue;
        for (u32 c = LANE; c < columns; c += 32) { float x = gradient[(u64)row * columns + c]; sum += x * x; }
    }
    sum = block_sum(sum);
    if (threadIdx.x == 0) parts[blockIdx.x] = sum;
}
extern "C" __global__ void square_total(const float* parts, u32 count, float* out, u32 index) {
    float total = 0.0f;
    for (u32 i = threadIdx.x; i < count; i += blockDim.x) total += parts[i];
    total = block_sum(total);
    if (threadIdx.x == 0) out[index] = total;
}
extern "C" __global__ void clip(const float* squares, u32 count, float limit, float* norm, float* factor) {
    if (THREAD > 0) return;
    float total = 0.0f;
    for (u32 i = 0; i < count; i++) total += squares[i];
    total = sqrtf(total);
    norm[0] = total;
    factor[0] = total > limit ? limit / total : 1.0f;
}
"#;

/// What a gradient buffer holds at the moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Nothing of worth; must be overwritten or cleared before use.
    Stale,
    /// Zeros.
    Zero,
    /// Gradients in the rows that are marked, zeros elsewhere.
    Rows,
    /// Gradients everywhere.
    All,
}

pub(super) struct Slot {
    pub(super) gradient: Option<Buffer<f32>>,
    /// For tables: 1 for a touched row.
    pub(super) touched: Option<Buffer<u32>>,
    pub(super) state: State,
    pub(super) rows: usize,
    pub(super) columns: usize,
    kind: Kind,
}

/// A buffer that an operation adds its part of a gradient to.
pub(crate) struct Target {
    pub(crate) buffer: Buffer<f32>,
    /// The buffer holds nothing yet: overwrite it instead of adding.
    pub(crate) fresh: bool,
}

/// The gradients of all parameters of a model.
pub struct Gradients {
    device: Device,
    pub(super) slots: Vec<Slot>,
    /// New values of statistics, which the optimiser writes along with the rest.
    pub(super) statistics: Vec<(ParameterId, Tensor)>,
    /// What every gradient is multiplied by at the update, on the device: the effect of clipping.
    pub(super) factor: Option<Buffer<f32>>,
}

impl Gradients {
    /// No gradients yet, for these parameters.
    pub fn new(parameters: &Parameters) -> Gradients {
        let slots = parameters.entries.iter().map(|entry| Slot {
            gradient: None,
            touched: None,
            state: State::Stale,
            rows: entry.value.rows(),
            columns: entry.value.columns(),
            kind: entry.kind,
        });
        let device = parameters.device().clone();
        Gradients { device, slots: slots.collect(), statistics: Vec::new(), factor: None }
    }

    /// The gradient of one parameter as it stands, zeros where there is none. For tests and curiosity.
    pub fn of(&self, id: ParameterId) -> Result<Vec<f32>> {
        let slot = &self.slots[id.0 as usize];
        match (&slot.gradient, slot.state) {
            (Some(gradient), State::Zero | State::Rows | State::All) => gradient.read(),
            _ => Ok(vec![0.0; slot.rows * slot.columns]),
        }
    }

    /// Scales all gradients so that their common norm is at most `limit`; returns the norm before, as a
    /// number on the device (reading it waits for the device, clipping itself does not).
    pub fn clip_norm(&mut self, limit: f32) -> Result<Tensor> {
        let mut squares = self.device.zeros::<f32>(self.slots.len().max(1))?;
        for (index, slot) in self.slots.iter().enumerate() {
            let Some(gradient) =
                slot.gradient.as_ref().filter(|_| matches!(slot.state, State::Rows | State::All))
            else {
                continue;
            };
            match self.device.backend() {
                Backend::Cpu(cpu) => {
                    let values = gradient.host();
                    let touched =
                        slot.touched.as_ref().filter(|_| slot.state == State::Rows).map(Buffer::host);
                    let sum = cpu.sum(slot.rows, 1 + 16_384 / slot.columns.max(1), |range| {
                        let kept = range.filter(|&row| touched.is_none_or(|touched| touched[row] != 0));
                        kept.map(|row| square(&values[row * slot.columns..(row + 1) * slot.columns])).sum()
                    });
                    squares.host_mut()[index] = sum as f32;
                }
                Backend::Cuda(cuda) => {
                    let touched = slot.touched.as_ref().filter(|_| slot.state == State::Rows);
                    let blocks = slot.rows.div_ceil(SQUARE_ROWS);
                    let mut parts = self.device.allocate::<f32>(blocks)?;
                    let arguments = arguments![gradient, touched, slot.rows, slot.columns, &mut parts];
                    cuda.blocks("squares", (blocks, 1), 256, arguments)?;
                    let arguments = arguments![&parts, blocks, &mut squares, index];
                    cuda.blocks("square_total", (1, 1), 1024, arguments)?;
                }
            }
        }
        let (mut norm, mut factor) = (self.device.allocate::<f32>(1)?, self.device.allocate::<f32>(1)?);
        match self.device.backend() {
            Backend::Cpu(_) => {
                let total = squares.host().iter().sum::<f32>().sqrt();
                norm.host_mut()[0] = total;
                factor.host_mut()[0] = if total > limit { limit / total } else { 1.0 };
            }
            Backend::Cuda(cuda) => {
                let arguments = arguments![&squares, self.slots.len(), limit, &mut norm, &mut factor];
                cuda.threads("clip", 1, arguments)?;
            }
        }
        self.factor = Some(factor);
        Ok(Tensor::of(norm, 1, 1))
    }

    /// Forgets all gradients.
    pub fn clear(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.state = State::Stale);
        self.statistics.clear();
        self.factor = None;
    }

    pub(super) fn expect_for(&self, parameters: &Parameters) -> Result<()> {
        let fits = self.slots.len() == parameters.entries.len() && self.device.is_same(parameters.device());
        fits.then_some(()).ok_or(TensorError::Backward("these gradients were made for other parameters"))
    }

    /// The buffer of a parameter that is about to get a gradient everywhere.
    pub(super) fn take_all(&mut self, id: ParameterId) -> Result<Target> {
        let slot = &mut self.slots[id.0 as usize];
        let fresh = slot.state == State::Stale || slot.gradient.is_none();
        slot.state = State::All;
        let buffer = match slot.gradient.take() {
            Some(buffer) => buffer,
            None => self.device.allocate(slot.rows * slot.columns)?,
        };
        Ok(Target { buffer, fresh })
    }

    /// The buffer of a table some of whose rows are about to get a gradient, with the marks of its rows.
    pub(super) fn take_rows(&mut self, id: ParameterId) -> Result<(Target, Option<Buffer<u32>>)> {
        let slot = &mut self.slots[id.0 as usize];
        let mut buffer = match slot.gradient.take() {
            Some(buffer) => buffer,
            None => self.device.allocate(slot.rows * slot.columns)?,
        };
        if slot.state == State::Stale {
            buffer.clear()?;
            if let Some(touched) = &mut slot.touched {
                touched.clear()?;
            }
            slot.state = State::Zero;
        }
        if slot.kind != Kind::Table {
            slot.state = State::All;
        } else if slot.state == State::Zero {
            slot.state = State::Rows;
        }
        let touched = match slot.touched.take() {
            Some(touched) => touched,
            None => self.device.zeros(slot.rows)?,
        };
        Ok((Target { buffer, fresh: false }, Some(touched)))
    }

    pub(super) fn put(&mut self, id: ParameterId, buffer: Buffer<f32>, touched: Option<Buffer<u32>>) {
        let slot = &mut self.slots[id.0 as usize];
        slot.gradient = Some(buffer);
        if touched.is_some() {
            slot.touched = touched;
        }
    }
}

fn square(values: &[f32]) -> f64 {
    values.iter().map(|value| f64::from(*value) * f64::from(*value)).sum()
}
