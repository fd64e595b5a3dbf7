//! A pool of device memory in a few size classes, so that training steps do not allocate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use cudarc::driver::{CudaContext, result, sys};

use super::{Result, TensorError, failed};

/// A piece of device memory.
pub(crate) struct Block {
    pub(crate) pointer: u64,
    bytes: usize,
}

#[derive(Default)]
pub(super) struct Arena {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    free: BTreeMap<usize, Vec<u64>>,
    held: usize,
}

impl Arena {
    /// A block of at least this many bytes, from the pool or new.
    pub(super) fn take(&self, context: &Arc<CudaContext>, bytes: usize) -> Result<Block> {
        let bytes = rounded(bytes);
        let mut state = self.state.lock().expect("no code panics while it holds the arena");
        // Prefer a block of up to twice the size to a new allocation.
        let found =
            state.free.range(bytes..=2 * bytes).find(|(_, blocks)| !blocks.is_empty()).map(|(size, _)| *size);
        if let Some(size) = found
            && let Some(pointer) = state.free.get_mut(&size).and_then(Vec::pop)
        {
            return Ok(Block { pointer, bytes: size });
        }
        context.bind_to_thread().map_err(|error| failed("bind", error))?;
        let pointer = match allocate(bytes) {
            Err(error) if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                state.release(context)?;
                allocate(bytes).map_err(|_| exhausted(context, bytes, state.held))?
            }
            other => other.map_err(|error| failed("allocate", error))?,
        };
        state.held += bytes;
        Ok(Block { pointer, bytes })
    }

    /// Returns a block to the pool. All work is in one stream, so it can be reused at once.
    pub(super) fn give(&self, block: Block) {
        let mut state = self.state.lock().expect("no code panics while it holds the arena");
        state.free.entry(block.bytes).or_default().push(block.pointer);
    }

    /// Bytes held, in use or not; the arena never shrinks unless memory runs out.
    pub(super) fn peak(&self) -> usize {
        self.state.lock().expect("no code panics while it holds the arena").held
    }
}

impl State {
    /// Frees all unused blocks.
    fn release(&mut self, context: &Arc<CudaContext>) -> Result<()> {
        context.synchronize().map_err(|error| failed("synchronise", error))?;
        for (bytes, blocks) in std::mem::take(&mut self.free) {
            for pointer in blocks {
                // SAFETY: the block is not in use and no work is in flight.
                unsafe { result::free_sync(pointer) }.map_err(|error| failed("free", error))?;
                self.held -= bytes;
            }
        }
        Ok(())
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        if let Ok(state) = self.state.get_mut() {
            for pointer in std::mem::take(&mut state.free).into_values().flatten() {
                // SAFETY: the arena is dropped, and with it everything that could use the block. There is nowhere to
                // report a failure.
                let _ = unsafe { result::free_sync(pointer) };
            }
        }
    }
}

fn allocate(bytes: usize) -> std::result::Result<u64, cudarc::driver::DriverError> {
    // SAFETY: the memory is written before it is read, as users of a buffer must ensure.
    unsafe { result::malloc_sync(bytes) }
}

/// Rounds to eight size classes per power of two.
fn rounded(bytes: usize) -> usize {
    let step = (bytes.max(1).next_power_of_two() / 16).max(512);
    bytes.max(1).next_multiple_of(step)
}

fn exhausted(context: &CudaContext, bytes: usize, held: usize) -> TensorError {
    let free = context.mem_get_info().map_or(0, |(free, _)| free);
    TensorError::OutOfMemory {
        needed_mib: bytes.div_ceil(1 << 20),
        held_mib: held >> 20,
        free_mib: free >> 20,
    }
}

#[cfg(test)]
mod tests {
    use super::rounded;

    #[test]
    fn sizes_waste_little() {
        for bytes in [1, 511, 513, 100_000, 1 << 20, (1 << 20) + 1, 82_000_000] {
            assert!(rounded(bytes) >= bytes);
            assert!(rounded(bytes) <= bytes + bytes / 7 + 512);
        }
    }
}
