//! A pool of pinned host memory, which the device copies from while the host continues.
//!
//! Invariant: a block is reused only when the copies from it are done. Copies are numbered; synchronising the stream
//! finishes all earlier ones.

use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::result;

use super::{Cuda, Result, failed};

/// The smallest block, in elements; sizes are powers of two, so that lists of similar lengths share blocks.
const LEAST: usize = 16 * 1024;

/// A block of pinned memory.
pub(crate) struct Pinned {
    address: NonNull<u32>,
    capacity: usize,
    /// The number of the last copy from this block; 0 if there was none.
    copies: AtomicU64,
}

// SAFETY: the memory belongs to the block alone and is not tied to a thread.
unsafe impl Send for Pinned {}
// SAFETY: as above; a shared reference only allows reading.
unsafe impl Sync for Pinned {}

/// The free blocks of a device.
#[derive(Default)]
pub(super) struct Stock {
    free: Mutex<Vec<Pinned>>,
    asked: AtomicU64,
    done: AtomicU64,
}

impl Stock {
    /// The number of copies requested so far.
    pub(super) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Acquire)
    }

    /// Records that the first `copies` copies are done.
    pub(super) fn finish(&self, copies: u64) {
        self.done.fetch_max(copies, Ordering::AcqRel);
    }
}

impl Drop for Stock {
    fn drop(&mut self) {
        if let Ok(free) = self.free.get_mut() {
            for block in free.drain(..) {
                // SAFETY: the block came from the driver, and the device's work is finished. There is nowhere to
                // report a failure.
                let _ = unsafe { result::free_host(block.address.as_ptr().cast()) };
            }
        }
    }
}

impl Pinned {
    /// The first `len` elements.
    pub(crate) fn values(&self, len: usize) -> &[u32] {
        assert!(len <= self.capacity, "a list is longer than its memory");
        // SAFETY: the block holds `capacity` elements, which were initialised when it was allocated.
        unsafe { std::slice::from_raw_parts(self.address.as_ptr(), len) }
    }

    /// The first `len` elements, to be set before they are copied to the device.
    pub(crate) fn values_mut(&mut self, len: usize) -> &mut [u32] {
        assert!(len <= self.capacity, "a list is longer than its memory");
        assert_eq!(*self.copies.get_mut(), 0, "a list is finished before it goes to the device");
        // SAFETY: as above; the borrow is unique, and no copy from the block is in flight.
        unsafe { std::slice::from_raw_parts_mut(self.address.as_ptr(), len) }
    }
}

impl Cuda {
    /// A block of at least `len` elements, reused or new.
    pub(crate) fn pinned(&self, len: usize) -> Result<Pinned> {
        let capacity = len.next_power_of_two().max(LEAST);
        let done = self.stock.done.load(Ordering::Acquire);
        let mut free = self.stock.free.lock().expect("no code panics while it holds the stock");
        let fits = |block: &mut Pinned| block.capacity == capacity && *block.copies.get_mut() <= done;
        if let Some(at) = free.iter_mut().position(fits) {
            let mut block = free.swap_remove(at);
            *block.copies.get_mut() = 0;
            return Ok(block);
        }
        drop(free);
        self.bind()?;
        // SAFETY: every element is initialised right below.
        let address = unsafe { result::malloc_host(capacity * size_of::<u32>(), 0) }
            .map_err(|error| failed("allocate on the host", error))?;
        let address = NonNull::new(address.cast::<u32>()).expect("the driver gives memory or an error");
        // SAFETY: the block was just allocated with this capacity.
        unsafe { address.as_ptr().write_bytes(0, capacity) };
        Ok(Pinned { address, capacity, copies: AtomicU64::new(0) })
    }

    /// Returns a block to the pool.
    pub(crate) fn keep_pinned(&self, block: Pinned) {
        self.stock.free.lock().expect("no code panics while it holds the stock").push(block);
    }

    /// Copies the first `len` elements of a block to the device asynchronously.
    pub(crate) fn write_pinned(&self, target: u64, block: &Pinned, len: usize) -> Result<()> {
        self.write(target, block.values(len))?;
        // Counted after the request: any later synchronisation of the stream includes this copy.
        block.copies.fetch_max(self.stock.asked.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
        Ok(())
    }
}
