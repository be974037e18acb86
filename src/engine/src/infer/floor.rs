// SPDX-License-Identifier: GPL-2.0-or-later
//! The smallest of the last sizes: a reply two bytes above it shows a gap although the one before was a
//! byte longer than the smallest already.

use crate::store::recent::Recent;
use crate::time::{MS, Nanos, Time};

/// Sizes whose smallest is the floor (chosen: about a round trip's replies at 10 Mbit/s).
const SIZES: usize = 48;
/// Repairs that rest on the absolute floor alone prove nothing. This many within the time below
/// switch the floor off for the time after it (chosen: sizes that swing by one byte cause several
/// in a round trip, and losses do not).
const CLOSINGS: usize = 3;
const WINDOW: Nanos = 30 * MS;
const OFF: Nanos = 300 * MS;
/// After more of them in a row without any other it is off for as much longer with each (chosen: of a client
/// whose fields vary, the model of tquic, twenty came in a row where nothing was lost).
const RUN: u8 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Floor {
    sizes: Recent<u16, SIZES>,
    closings: Recent<Time, CLOSINGS>,
    off_until: Time,
    /// The last so many gaps that closed were shown by the floor alone.
    run: u8,
}

impl Floor {
    pub fn new() -> Floor {
        let (sizes, closings) = (Recent::new(), Recent::new());
        Floor { sizes, closings, off_until: Time::ZERO, run: 0 }
    }

    /// Whether the smallest is one byte below this size, and means anything.
    pub fn is_just_below(&self, size: i32, now: Time) -> bool {
        now >= self.off_until && self.sizes.min().is_some_and(|min| size - i32::from(min) == 1)
    }

    pub fn push(&mut self, size: i32) {
        // A datagram has no more bytes.
        self.sizes.push(u16::try_from(size).unwrap_or(u16::MAX));
    }

    pub fn clear(&mut self) {
        self.sizes.clear();
    }

    /// All gaps have closed; `alone` if nothing but the floor had shown them.
    pub fn closed(&mut self, now: Time, alone: bool) {
        if !alone {
            self.run = 0;
            return;
        }
        self.run = self.run.saturating_add(1);
        self.closings.push(now);
        let close = self.closings.iter().filter(|t| now.since(*t) <= WINDOW).count();
        let longer = Nanos::from(self.run.saturating_sub(RUN));
        let times = longer.max(Nanos::from(close == CLOSINGS));
        if times > 0 {
            self.off_until = now + times * OFF;
            self.sizes.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_floor_alone_shows_is_heeded_less_and_less() {
        let mut floor = Floor::new();
        let mut shown = 0;
        let mut heed = |floor: &mut Floor, from: Nanos| {
            for ms in (from..from + 10_000).step_by(50) {
                let now = Time::ZERO + ms * MS;
                floor.push(36);
                if floor.is_just_below(37, now) {
                    shown += 1;
                    floor.closed(now, true);
                }
            }
            core::mem::take(&mut shown)
        };
        let first = heed(&mut floor, 0);
        assert!((8..12).contains(&first), "of 200: {first}");
        let then = heed(&mut floor, 10_000);
        assert!(then < first / 2, "{then}");
        floor.closed(Time::ZERO + 30_000 * MS, false);
        assert!(heed(&mut floor, 30_000) >= first, "another sign has shown a gap");
    }
}
