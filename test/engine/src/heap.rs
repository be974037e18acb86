// SPDX-License-Identifier: GPL-2.0-or-later
//! A counting global allocator: what is on the heap, and how often something
//! was put there.
//!
//! Counts are kept per thread, so that tests running beside each other do not
//! count into each other's figures.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// The allocator, to be named with `#[global_allocator]`.
#[derive(Debug)]
pub struct Counting;

/// What the calling thread has done with the heap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Bytes allocated and not freed.
    pub bytes: isize,
    /// The most there ever were, since the last [`reset_peak`].
    pub peak: isize,
    /// Allocations and reallocations.
    pub calls: u64,
}

thread_local! {
    static COUNT: Cell<Count> =
        const { Cell::new(Count { bytes: 0, peak: 0, calls: 0 }) };
}

/// The calling thread's figures.
pub fn count() -> Count {
    COUNT.get()
}

/// Lets the peak begin again at what is allocated now.
pub fn reset_peak() {
    COUNT.set(Count { peak: COUNT.get().bytes, ..COUNT.get() });
}

fn note(bytes: isize, calls: u64) {
    // The thread may be ending, and its counter gone.
    let _ = COUNT.try_with(|cell| {
        let mut count = cell.get();
        count.bytes += bytes;
        count.peak = count.peak.max(count.bytes);
        count.calls += calls;
        cell.set(count);
    });
}

// SAFETY: everything is passed on to the system's allocator unchanged, and
// counting allocates nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize, 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize, 1);
        // SAFETY: the caller keeps the contract of `alloc_zeroed`.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        note(-(layout.size() as isize), 0);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(size as isize - layout.size() as isize, 1);
        // SAFETY: the caller keeps the contract of `realloc`.
        unsafe { System.realloc(at, layout, size) }
    }
}
