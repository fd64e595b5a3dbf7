//! A pool of pinned host memory, which the device copies from and to while the host continues.
//!
//! Invariant: a block is reused only when the copies from and to it are done. Copies are numbered; waiting for a point
//! in the stream finishes all earlier ones.

use std::ptr::NonNull;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use cudarc::driver::{CudaEvent, result};

use super::{Cuda, Result, failed};

/// The smallest block, in elements; sizes are powers of two, so that lists of similar lengths share blocks.
const LEAST: usize = 16 * 1024;

/// A block of pinned memory.
pub(crate) struct Pinned {
    address: NonNull<u32>,
    capacity: usize,
    /// The number of the last copy from or to this block; 0 if there was none.
    copies: AtomicU64,
}

// SAFETY: the memory belongs to the block alone and is not tied to a thread.
unsafe impl Send for Pinned {}
// SAFETY: as above; a shared reference only allows reading.
unsafe impl Sync for Pinned {}

/// A point in the stream.
pub(crate) struct Mark {
    event: CudaEvent,
    /// The number of copies requested before it.
    copies: u64,
}

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

    /// The first `len` elements, to be set before they are copied to the device, or by a copy from it.
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
        self.count(block);
        Ok(())
    }

    /// Copies `len` elements from the device to a block asynchronously. They are there at the mark.
    pub(crate) fn read_pinned(&self, source: u64, block: &mut Pinned, len: usize) -> Result<Mark> {
        let stream = self.bind()?;
        // SAFETY: the source holds this many elements, and nobody looks at the block before the mark.
        unsafe { result::memcpy_dtoh_async(block.values_mut(len), source, stream) }
            .map_err(|error| failed("copy from device", error))?;
        self.count(block);
        let event = self.context.new_event(None).map_err(|error| failed("mark", error))?;
        let copies = self.stock.asked();
        event.record(&self.stream).map_err(|error| failed("mark", error))?;
        Ok(Mark { event, copies })
    }

    /// Waits until the stream has come to a mark.
    pub(crate) fn wait(&self, mark: &Mark) -> Result<()> {
        mark.event.synchronize().map_err(|error| failed("wait", error))?;
        self.stock.finish(mark.copies);
        Ok(())
    }

    /// Numbers a copy from or to a block, after it was requested: any later mark of the stream includes it.
    fn count(&self, block: &Pinned) {
        block.copies.fetch_max(self.stock.asked.fetch_add(1, Ordering::AcqRel) + 1, Ordering::AcqRel);
    }
}
