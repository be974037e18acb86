// SPDX-License-Identifier: GPL-2.0-or-later
//! How much may be sent again over all flows together.
//!
//! Each flow has a budget of its own, but flows cost whoever makes them nothing.
//! This bound is on all of them: in relation to what went by in the last second,
//! so that the air that copies take stays a part of what people use anyway.

use crate::time::{Nanos, SEC, Time};
use crate::tunables::Tunables;

/// The time over which bytes are added up (chosen: longer than a round trip, and short enough
/// for an idle second to count as idle).
const PERIOD: Nanos = SEC;

#[derive(Clone, Debug)]
pub(crate) struct Ceiling {
    tunables: Tunables,
    /// When the second began that is being counted.
    since: Time,
    /// IP bytes forwarded in it, and in the one before it.
    forwarded: u64,
    last: u64,
    /// IP bytes of copies in it.
    copied: u64,
}

impl Ceiling {
    pub fn new(tunables: Tunables) -> Ceiling {
        Ceiling { tunables, since: Time::ZERO, forwarded: 0, last: 0, copied: 0 }
    }

    fn advance(&mut self, now: Time) {
        let gone = now.since(self.since);
        if gone < PERIOD {
            return;
        }
        self.last = if gone < 2 * PERIOD { self.forwarded } else { 0 };
        (self.since, self.forwarded, self.copied) = (now, 0, 0);
    }

    /// A packet of a flow that copies may be sent for.
    pub fn forwarded(&mut self, now: Time, bytes: usize) {
        self.advance(now);
        self.forwarded += bytes as u64;
    }

    /// Whether this many bytes more stay below `percent` of the traffic.
    pub fn allows(&mut self, now: Time, bytes: usize, percent: u32) -> bool {
        self.advance(now);
        let traffic = self.forwarded.max(self.last);
        self.copied + bytes as u64
            <= self.tunables.ceiling_floor() + traffic * u64::from(percent) / 100
    }

    /// Takes note of bytes that were sent.
    pub fn copied(&mut self, bytes: usize) {
        self.copied += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Copies of 1,000 bytes that may go in one second beside this many packets of that size.
    fn copies(ceiling: &mut Ceiling, second: i64, packets: usize, percent: u32) -> usize {
        let now = Time::ZERO + second * SEC;
        (0..packets).for_each(|_| ceiling.forwarded(now, 1000));
        let mut sent = 0;
        while ceiling.allows(now, 1000, percent) {
            ceiling.copied(1000);
            sent += 1;
        }
        sent
    }

    #[test]
    fn a_share_of_the_last_second_and_a_floor() {
        let mut ceiling = Ceiling::new(Tunables::DEFAULT);
        assert_eq!(copies(&mut ceiling, 10, 0, 50), 131);
        assert_eq!(copies(&mut ceiling, 10, 0, 50), 0, "the second is not over");
        assert_eq!(copies(&mut ceiling, 11, 10_000, 50), 5_131);
        assert_eq!(copies(&mut ceiling, 12, 0, 50), 5_131, "what went by in the last one");
        assert_eq!(copies(&mut ceiling, 14, 0, 50), 131, "it is too long ago");
        assert_eq!(copies(&mut ceiling, 15, 10_000, 0), 131);
    }
}
