//! The states of all rows: new ones for those that were updated, the old ones for the others.
#![allow(unsafe_code)]

use std::sync::Arc;

use super::ON_CPU;
use crate::cpu::Cpu;
use crate::cpu::disjoint::Disjoint;
use crate::device::Backend;
use crate::error::{Result, expect_shape};
use crate::reach::FrontierStep;
use crate::tape::{Flow, Operation, Tape, Var};
use crate::value::Tensor;

/// Rows that a thread copies at a time.
const ROWS: usize = 512;

struct Settle {
    state: Var,
    updated: Var,
    output: Var,
    step: Arc<FrontierStep>,
}

impl Tape<'_> {
    /// `state` with the rows of `updated` in their places: `[rows, width]`.
    pub(super) fn settle(&mut self, state: Var, updated: Var, step: &Arc<FrontierStep>) -> Result<Var> {
        let ([before, width], shape) = (self.shape(state), self.shape(updated));
        let wanted = [step.updates(), width];
        expect_shape(shape == wanted, "settle", "updated rows and receivers", &shape, &wanted)?;
        let device = self.device().clone();
        let Backend::Cpu(cpu) = device.backend() else { unreachable!("{ON_CPU}") };
        let mut out = device.allocate::<f32>(step.rows * width)?;
        // Every row that is new is a receiver, so nothing is left unwritten.
        out.host_mut()[..before * width].copy_from_slice(self.at(state).buffer().host());
        let values = self.at(updated).buffer().host();
        let all = Disjoint::new(out.host_mut());
        each_receiver(cpu, step, |index, row| {
            // SAFETY: no row is a receiver twice.
            let target = unsafe { all.part(row * width..(row + 1) * width) };
            target.copy_from_slice(&values[index * width..][..width]);
        });
        let output = Tensor::of(out, step.rows, width);
        let step = step.clone();
        Ok(self.record(output, &[state, updated], |output| Settle { state, updated, output, step }))
    }
}

/// Calls `task` with every receiver and its row.
fn each_receiver(cpu: &Cpu, step: &FrontierStep, task: impl Fn(usize, usize) + Sync + Send) {
    let receivers = step.receivers();
    cpu.each(receivers.len().div_ceil(ROWS), |part| {
        let range = part * ROWS..((part + 1) * ROWS).min(receivers.len());
        range.for_each(|index| task(index, receivers[index] as usize));
    });
}

impl Operation for Settle {
    fn backward(&self, flow: &mut Flow) -> Result<()> {
        let mut gradient = flow.output(self.output)?;
        let device = flow.device();
        let Backend::Cpu(cpu) = device.backend() else { unreachable!("{ON_CPU}") };
        let [before, width] = flow.value(self.state).shape();
        let mut updated = device.allocate::<f32>(self.step.updates() * width)?;
        let mut state = device.allocate::<f32>(before * width)?;
        let (all, parts) = (Disjoint::new(gradient.host_mut()), Disjoint::new(updated.host_mut()));
        each_receiver(cpu, &self.step, |index, row| {
            // SAFETY: no row is a receiver twice.
            let (from, to) = unsafe {
                (all.part(row * width..(row + 1) * width), parts.part(index * width..(index + 1) * width))
            };
            to.copy_from_slice(from);
            from.fill(0.0);
        });
        state.host_mut().copy_from_slice(&gradient.host()[..before * width]);
        flow.add(self.updated, updated)?;
        flow.add(self.state, state)
    }
}
