// SPDX-License-Identifier: GPL-2.0-or-later
//! User-space link emulator between two network interfaces.
//!
//! [`pipe`] is the emulated link in virtual time and does no I/O; [`forward`]
//! connects two of them with the packet sockets of [`packet_io`].

pub mod cli;
pub mod delay;
pub mod forward;
pub mod fq;
pub mod frame;
pub mod lab;
pub mod light;
pub mod link;
pub mod loss;
pub mod packet_io;
pub mod pipe;
pub mod queue;
pub mod red;
pub mod sched;
pub mod totals;
pub mod trace;
pub mod truth;
pub mod waiting;
pub mod wifi;

/// Nanoseconds of CLOCK_MONOTONIC, or of virtual time in tests.
pub type Nanos = u64;

/// One millisecond.
pub const MS: Nanos = 1_000_000;

/// Which way a frame goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the first interface to the second.
    Ab,
    /// From the second interface to the first.
    Ba,
}

impl Direction {
    /// Both, in the order of their numbers.
    pub const ALL: [Direction; 2] = [Direction::Ab, Direction::Ba];

    /// The name in options, logs and totals.
    pub fn name(self) -> &'static str {
        match self {
            Direction::Ab => "ab",
            Direction::Ba => "ba",
        }
    }
}
