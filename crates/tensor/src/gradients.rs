//! Gradients of parameters between the backward pass and the optimiser.
//!
//! One buffer per parameter, kept from step to step. A table remembers which rows were touched; the optimiser visits
//! only those and leaves them zero, so no step clears a whole table.

use super::cpu::Cpu;
use super::cuda::launch::arguments;
use super::cuda::pieces::{BLOCK_ROWS, Piece, Pieces};
use super::device::{Backend, Device};
use super::error::{Result, TensorError};
use super::memory::Buffer;
use super::parameters::{Kind, ParameterId, Parameters};
use super::value::Tensor;

/// The current content of a gradient buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// Unspecified values; must be overwritten or cleared before use.
    Stale,
    /// Zeros.
    Zero,
    /// Gradients in the marked rows, zeros elsewhere.
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

impl Slot {
    /// Whether it holds a gradient.
    pub(super) fn is_filled(&self) -> bool {
        matches!(self.state, State::Rows | State::All)
    }

    /// The marks of the rows with a gradient; `None` if all rows have one.
    pub(super) fn touched_rows(&self) -> Option<&Buffer<u32>> {
        self.touched.as_ref().filter(|_| self.state == State::Rows)
    }

    /// Marks the gradient as consumed: the optimiser left touched rows zero if it `updated` them.
    pub(super) fn leave(&mut self, updated: bool) {
        if !self.is_filled() {
            return;
        }
        let sparse = self.state == State::Rows;
        self.state = if updated && sparse { State::Zero } else { State::Stale };
        if updated && !sparse {
            // The next step allocates this gradient anew, and can reuse this memory.
            self.gradient = None;
        }
    }

    /// The sum of the squares of the gradient, on the CPU.
    fn squares(&self, cpu: &Cpu) -> f32 {
        let (Some(gradient), true) = (&self.gradient, self.is_filled()) else { return 0.0 };
        let (values, touched) = (gradient.host(), self.touched_rows().map(Buffer::host));
        let sum = cpu.sum(self.rows, 1 + 16_384 / self.columns.max(1), |range| {
            let kept = range.filter(|&row| touched.is_none_or(|touched| touched[row] != 0));
            kept.map(|row| square(&values[row * self.columns..(row + 1) * self.columns])).sum()
        });
        sum as f32
    }
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
    /// New values of statistics, which the optimiser writes together with the parameters.
    pub(super) statistics: Vec<(ParameterId, Tensor)>,
    /// The factor on all gradients at the update, on the device: the effect of clipping.
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

    /// The current gradient of one parameter, zero if there is none. For tests and inspection.
    pub fn of(&self, id: ParameterId) -> Result<Vec<f32>> {
        let slot = &self.slots[id.0 as usize];
        match (&slot.gradient, slot.state) {
            (Some(gradient), State::Zero | State::Rows | State::All) => gradient.read(),
            _ => Ok(vec![0.0; slot.rows * slot.columns]),
        }
    }

    /// Scales all gradients so that their joint norm is at most `limit`. Returns the norm before scaling, as a number
    /// on the device (reading it waits for the device, clipping itself does not).
    pub fn clip_norm(&mut self, limit: f32) -> Result<Tensor> {
        let (mut norm, mut factor) = (self.device.allocate::<f32>(1)?, self.device.allocate::<f32>(1)?);
        match self.device.backend() {
            Backend::Cpu(cpu) => {
                let total = self.slots.iter().map(|slot| slot.squares(cpu)).sum::<f32>().sqrt();
                norm.host_mut()[0] = total;
                factor.host_mut()[0] = if total > limit { limit / total } else { 1.0 };
            }
            Backend::Cuda(cuda) => {
                let mut pieces = Pieces::default();
                for slot in &self.slots {
                    let (Some(gradient), true) = (&slot.gradient, slot.is_filled()) else { continue };
                    let (rows, columns, touched) = (slot.rows, slot.columns, slot.touched_rows());
                    let (values, first, second, last) = (None, None, None, None);
                    pieces.push(Piece { rows, columns, gradient, touched, values, first, second, last })?;
                }
                let list = pieces.upload(&self.device)?;
                let blocks = pieces.rows().div_ceil(BLOCK_ROWS);
                let mut parts = self.device.allocate::<f32>(blocks)?;
                let arguments = arguments![&list, pieces.count(), pieces.rows(), &mut parts];
                cuda.warps("squares", pieces.rows(), arguments)?;
                let arguments = arguments![&parts, blocks, limit, &mut norm, &mut factor];
                cuda.blocks("clip", (1, 1), 1024, arguments)?;
            }
        }
        self.factor = Some(factor);
        Ok(Tensor::of(norm, 1, 1))
    }

    /// Clears all gradients.
    pub fn clear(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.state = State::Stale);
        self.statistics.clear();
        self.factor = None;
    }

    pub(super) fn expect_for(&self, parameters: &Parameters) -> Result<()> {
        let fits = self.slots.len() == parameters.entries.len() && self.device.is_same(parameters.device());
        fits.then_some(()).ok_or(TensorError::Backward("these gradients were made for other parameters"))
    }

    /// The buffer of a parameter that is about to get a dense gradient.
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

    /// The buffer of a table of which some rows are about to get a gradient, with its row marks.
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
