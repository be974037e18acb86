// SPDX-License-Identifier: GPL-2.0-or-later
//! The one clock of the daemon: CLOCK_MONOTONIC, as absolute nanoseconds, so
//! that times in event files can be compared with those of other programs. People read the other
//! one, which may be wrong and may be set.

use std::time::{SystemTime, UNIX_EPOCH};

use pemi_engine::Time;

/// Now.
pub fn now() -> Time {
    Time::from_nanos(read(libc::CLOCK_MONOTONIC))
}

/// Nanoseconds since 1970 by the clock that people set and the kernel stamps packets with.
pub(crate) fn wall() -> u64 {
    read(libc::CLOCK_REALTIME)
}

fn read(clock: libc::clockid_t) -> u64 {
    let mut spec = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: a live, writable timespec. The call cannot fail: both clocks exist
    // on every Linux.
    unsafe { libc::clock_gettime(clock, &raw mut spec) };
    #[allow(clippy::unnecessary_cast, reason = "32-bit targets have narrower fields")]
    {
        spec.tv_sec as u64 * 1_000_000_000 + spec.tv_nsec as u64
    }
}

/// Seconds of Unix time, as the router's clock has it.
pub fn unix() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
