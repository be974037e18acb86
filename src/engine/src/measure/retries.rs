// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether losses hold up what follows, as a radio's do.
//!
//! A radio tries a frame again and again before it gives it up, and hands up what was sent behind it
//! no sooner (IEEE 802.11, block ack). So the reply that shows the loss comes as much later as all these
//! attempts take, its time names a packet that was sent long after the lost one, and copies and
//! their replies are held up as well. What does not change is how a client replies: at once to what came
//! out of order, and else after its usual count. Where nothing is held up a gap shows after no more
//! packets than that and one more.
//!
//! Of clients that reply more rarely it shows in how long probes take: a radio that loses one frame in a
//! hundred after four attempts fails in each third of them, so that half of all probes are late.

use crate::time::{MS, Nanos, US};

/// What the attempts of a radio at one frame take (measured of four: 1.3 to 2.7 ms).
pub(crate) const HELD_UP: Nanos = 2 * MS;

/// Half of the probes of a hop that tries again and again are further apart than twice this (chosen: half of what one
/// more attempt takes. Measured over a radio that loses 1 % after four attempts: 370 us).
pub(crate) const VARIES: Nanos = 100 * US;

/// Clients that reply more rarely show a gap within their count, wherever it is (RFC 9000, section 13.2.2).
pub(crate) const BY_TWOS: u64 = 2;
/// What a gap that shows late weighs against one that shows soon (measured: where nothing is held up one
/// of 25 shows late, as a reply was lost, or with 5 % lost both ways one of eight, and more than half soon;
/// over a radio one of three or four shows late, and a third soon).
const WEIGHT: i8 = 2;
/// Gaps that showed late are forgotten after this many that showed soon (chosen: what three of them weigh,
/// as people move).
const MOST: i8 = 3 * WEIGHT;

#[derive(Clone, Debug, Default)]
pub(crate) struct Retries {
    /// Gaps that showed late, each so often, less those that showed soon.
    late: i8,
}

impl Retries {
    /// A gap shows when replies to so many packets were due since the last one, of a client that
    /// replies to every `usual` packets.
    pub fn shown(&mut self, passed: usize, usual: u64) {
        let passed = passed as u64;
        if passed > usual + 1 {
            self.late = (self.late + WEIGHT).min(MOST);
        } else if passed <= BY_TWOS {
            self.late = (self.late - 1).max(-WEIGHT);
        }
    }

    /// Whether losses hold up what follows.
    pub fn hold_up(&self) -> bool {
        self.late > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After gaps that showed after so many packets.
    fn after(usual: u64, passed: &[usize]) -> bool {
        let mut retries = Retries::default();
        passed.iter().for_each(|passed| retries.shown(*passed, usual));
        retries.hold_up()
    }

    #[test]
    fn gaps_that_show_late_tell_of_a_radio() {
        assert!(!after(2, &[]));
        assert!(after(2, &[4]));
        assert!(after(2, &[4, 4, 4, 3, 2, 3, 2, 3]), "others may show sooner");
        assert!(after(1, &[2, 2, 3, 3]));
        assert!(!after(2, &[4, 4, 4, 2, 2, 2, 2, 2, 2]), "people move");
    }

    #[test]
    fn a_lost_reply_now_and_then_does_not() {
        let mut passed = [2; 40];
        passed[20] = 4;
        passed[39] = 4;
        assert!(!after(2, &passed));
        assert!(!after(1, &[2, 2, 2, 2]));
    }
}
