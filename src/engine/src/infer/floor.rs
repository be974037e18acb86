// SPDX-License-Identifier: GPL-2.0-or-later
//! The smallest of the last sizes: a reply two bytes above it shows a gap although the one before was a
//! byte longer than the smallest already.

use crate::store::recent::Recent;

/// Sizes whose smallest is the floor (chosen: about a round trip's replies at 10 Mbit/s).
const SIZES: usize = 48;
/// Repairs that rest on the absolute floor alone prove nothing. This many within as many replies as below
/// switch the floor off for the replies after it (chosen: sizes that swing by one byte cause several
/// within a round trip of 30 ms at 10 Mbit/s, and losses do not).
const CLOSINGS: usize = 3;
const WINDOW: u32 = 16;
const OFF: u32 = 128;
/// After more of them in a row without any other it is off for as much longer with each (chosen: of a client
/// whose fields vary, the model of tquic, twenty came in a row where nothing was lost).
const RUN: u8 = 3;

#[derive(Clone, Debug)]
pub(crate) struct Floor {
    sizes: Recent<u16, SIZES>,
    closings: Recent<u32, CLOSINGS>,
    /// Replies so far, and how many there are when the floor means something again.
    replies: u32,
    off_until: u32,
    /// The last so many gaps that closed were shown by the floor alone.
    run: u8,
}

impl Floor {
    pub fn new() -> Floor {
        let (sizes, closings) = (Recent::new(), Recent::new());
        Floor { sizes, closings, replies: 0, off_until: 0, run: 0 }
    }

    /// Whether the smallest is one byte below this size, and means anything.
    pub fn is_just_below(&self, size: i32) -> bool {
        self.replies >= self.off_until
            && self.sizes.min().is_some_and(|min| size - i32::from(min) == 1)
    }

    /// Whether the smallest is below this size.
    pub fn is_below(&self, size: i32) -> bool {
        self.sizes.min().is_some_and(|min| i32::from(min) < size)
    }

    /// A reply came.
    pub fn replied(&mut self) {
        self.replies = self.replies.saturating_add(1);
    }

    pub fn push(&mut self, size: i32) {
        // A datagram has no more bytes.
        self.sizes.push(u16::try_from(size).unwrap_or(u16::MAX));
    }

    pub fn clear(&mut self) {
        self.sizes.clear();
    }

    /// All gaps have closed; `alone` if nothing but the floor had shown them.
    pub fn closed(&mut self, alone: bool) {
        if !alone {
            self.run = 0;
            return;
        }
        self.run = self.run.saturating_add(1);
        self.closings.push(self.replies);
        let close = self.closings.iter().filter(|at| self.replies - at <= WINDOW).count();
        let longer = u32::from(self.run.saturating_sub(RUN));
        let times = longer.max(u32::from(close == CLOSINGS));
        if times > 0 {
            self.off_until = self.replies.saturating_add(times * OFF);
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
        let mut heed = |floor: &mut Floor| {
            for _ in 0..200 {
                (0..25).for_each(|_| floor.replied());
                floor.push(36);
                if floor.is_just_below(37) {
                    shown += 1;
                    floor.closed(true);
                }
            }
            core::mem::take(&mut shown)
        };
        let first = heed(&mut floor);
        assert!((8..=12).contains(&first), "of 200: {first}");
        let then = heed(&mut floor);
        assert!(then < first / 2, "{then}");
        floor.closed(false);
        (0..5000).for_each(|_| floor.replied());
        assert!(heed(&mut floor) >= first, "another sign has shown a gap");
    }
}
