// SPDX-License-Identifier: GPL-2.0-or-later
//! The one clock of the daemon: CLOCK_MONOTONIC, as absolute nanoseconds, so
//! that times in event files can be compared with those of other programs. People read the other
//! one, which may be wrong and may be set.

use std::time::{SystemTime, UNIX_EPOCH};

use pemi_engine::Time;

/// Now.
pub fn now() -> Time {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live, writable timespec. The call cannot fail: the clock exists
    // on every Linux.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut spec) };
    #[allow(clippy::unnecessary_cast, reason = "32-bit targets have narrower fields")]
    Time::from_nanos(spec.tv_sec as u64 * 1_000_000_000 + spec.tv_nsec as u64)
}

/// Seconds of Unix time, as the router's clock has it.
pub fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
