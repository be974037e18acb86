// SPDX-License-Identifier: GPL-2.0-or-later
//! The router: sessions, counting, and when to quACK.
//!
//! [`Sessions`] is all of it. A session is a flow of one client and the sums over its
//! packets that came by the device that the client's HELLO came by.

use core::num::NonZeroU8;

use pemi_quack::Interval;

mod adaptive;
mod cadence;
mod cookie;
mod due;
mod outbox;
#[cfg(test)]
mod random;
mod schedule;
mod seen;
mod session;
mod sessions;
mod shares;

pub use outbox::{Sending, Via};
pub use sessions::Sessions;

/// A moment: microseconds since any time, on a clock that does not go backwards.
pub type Micros = u64;

const MS: Micros = 1_000;
const SEC: Micros = 1_000_000;

/// What a router allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Sessions at a time.
    pub max_sessions: usize,
    /// Of them, those of one client.
    pub max_per_client: usize,
    /// When to quACK where the sender leaves it to the router.
    pub interval: Interval,
    /// More missing packets than this no quACK can name.
    pub threshold: NonZeroU8,
    /// Without a HELLO for so long a session ends, seconds.
    pub lifetime_s: u16,
    /// Cookies handed out in a second, half of them to who asks again.
    pub cookies_per_s: u32,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            max_sessions: 64,
            max_per_client: 8,
            interval: Interval::Adaptive,
            threshold: NonZeroU8::MIN.saturating_add(7),
            lifetime_s: 15,
            cookies_per_s: 500,
        }
    }
}

/// What has happened, since the start or [`Sessions::reset_stats`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Sessions now.
    pub sessions: u32,
    /// quACKs sent.
    pub quacks: u64,
    /// Bytes of the messages that they were in.
    pub quack_bytes: u64,
    /// Packets counted.
    pub packets: u64,
    /// Packets that senders found missing, as they say.
    pub losses: u64,
    /// Packets that were due by a flow's cadence and did not come in time.
    pub late: u64,
    /// Messages that nothing was done about: malformed, forged, late, or too many.
    pub ignored: u64,
    /// Sessions refused.
    pub refused: u64,
    /// Idle sessions that made room for others.
    pub evicted: u64,
}
