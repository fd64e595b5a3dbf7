//! A bound on every single allocation. No input of a few kilobytes needs that much, so the fuzzer reports a larger
//! one as a crash, with the input that caused it; its own limit is checked once a second, when another input is read.

use std::alloc::{GlobalAlloc, Layout, System};

/// The largest allocation, in bytes.
const MOST: usize = 256 << 20;

struct Bounded;

#[global_allocator]
static BOUNDED: Bounded = Bounded;

/// Aborts if `size` is above the bound.
fn check(size: usize) {
    if size > MOST {
        std::process::abort();
    }
}

// SAFETY: all calls go to the system's allocator unchanged.
unsafe impl GlobalAlloc for Bounded {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        check(layout.size());
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, place: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        check(size);
        unsafe { System.realloc(place, layout, size) }
    }

    unsafe fn dealloc(&self, place: *mut u8, layout: Layout) {
        unsafe { System.dealloc(place, layout) }
    }
}
