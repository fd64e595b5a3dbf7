//! A list under construction in host memory that the device copies from without blocking the host.
//!
//! Long lists that the host builds anew for every step (the candidates of all states) are written into a [`Draft`],
//! copied to the device by [`Indices::of_draft`] and stay readable on the host. The memory is reused.

use super::device::{Backend, Device};
use super::error::Result;
use super::memory::{Buffer, Element};
use super::value::{Indices, largest};
use crate::cuda::Pinned;

/// A list of `u32` on the host, to be copied to a device.
pub struct Draft {
    device: Device,
    len: usize,
    memory: Memory,
}

enum Memory {
    Plain(Vec<u32>),
    /// `None` only while the draft is being dropped.
    Pinned(Option<Pinned>),
}

impl Draft {
    /// A list of `len` elements with unspecified values.
    pub fn new(device: &Device, len: usize) -> Draft {
        let memory = match device.backend() {
            Backend::Cpu(cpu) => Memory::Plain(u32::shelf(cpu).take(len)),
            Backend::Cuda(cuda) => match cuda.pinned(len) {
                Ok(block) => Memory::Pinned(Some(block)),
                // Copies from ordinary memory are slower, but otherwise the same.
                Err(_) => Memory::Plain(vec![0; len]),
            },
        };
        Draft { device: device.clone(), len, memory }
    }

    /// The elements, to be filled in. They must not change once the list has gone to the device.
    pub fn values_mut(&mut self) -> &mut [u32] {
        match &mut self.memory {
            Memory::Plain(values) => values,
            Memory::Pinned(block) => block.as_mut().expect("a draft in use has memory").values_mut(self.len),
        }
    }
}

impl std::ops::Deref for Draft {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        match &self.memory {
            Memory::Plain(values) => values,
            Memory::Pinned(block) => block.as_ref().expect("a draft in use has memory").values(self.len),
        }
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        match (&mut self.memory, self.device.backend()) {
            (Memory::Plain(values), Backend::Cpu(cpu)) => u32::shelf(cpu).give(std::mem::take(values)),
            (Memory::Pinned(block), Backend::Cuda(cuda)) => {
                block.take().into_iter().for_each(|block| cuda.keep_pinned(block))
            }
            _ => {}
        }
    }
}

impl Indices {
    /// Indices from a draft that this module has filled itself, whose largest index is not needed: the CPU copies
    /// nothing, and no device scans for the maximum.
    pub(crate) fn of_own(mut draft: Draft) -> Result<Indices> {
        let device = draft.device.clone();
        match (&mut draft.memory, device.backend()) {
            (Memory::Plain(values), Backend::Cpu(_)) => {
                Ok(Indices::of(Buffer::of_host(&device, std::mem::take(values)), None))
            }
            (Memory::Pinned(Some(block)), Backend::Cuda(cuda)) => {
                let buffer: Buffer<u32> = device.allocate(draft.len)?;
                cuda.write_pinned(buffer.pointer(), block, draft.len)?;
                Ok(Indices::of(buffer, None))
            }
            _ => Indices::new(&device, &draft),
        }
    }

    /// A copy of a draft on the device it was made for.
    pub fn of_draft(draft: &Draft) -> Result<Indices> {
        if let (Memory::Pinned(Some(block)), Backend::Cuda(cuda)) = (&draft.memory, draft.device.backend()) {
            let buffer: Buffer<u32> = draft.device.allocate(draft.len)?;
            cuda.write_pinned(buffer.pointer(), block, draft.len)?;
            return Ok(Indices::of(buffer, Some(largest(draft))));
        }
        Indices::new(&draft.device, draft)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::check::devices;

    #[test]
    fn a_draft_arrives_as_it_was_written_and_its_memory_is_used_again() {
        for device in devices() {
            for round in 0..20u32 {
                let lists: Vec<(Draft, Indices)> = [0usize, 1, 50_000, 70_000]
                    .into_iter()
                    .map(|len| {
                        let mut draft = Draft::new(&device, len);
                        draft.values_mut().iter_mut().zip(round..).for_each(|(value, at)| *value = at * 7);
                        let indices = Indices::of_draft(&draft).unwrap();
                        (draft, indices)
                    })
                    .collect();
                // The drafts are dropped first; the copies on the device must not change when the memory is reused.
                let indices: Vec<Indices> = lists.into_iter().map(|(_, indices)| indices).collect();
                let mut other = Draft::new(&device, 50_000);
                other.values_mut().fill(0);
                for list in indices {
                    let expected: Vec<u32> = (round..).take(list.len()).map(|at| at * 7).collect();
                    assert_eq!(list.to_vec().unwrap(), expected);
                }
            }
        }
    }
}
