// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether losses that a sender learns of make it slower.
//!
//! Most senders make their window smaller for each, so that replies are worth holding back until a loss is
//! repaired, even if that is in vain more often than not. Some do not: quiche takes a smaller window back
//! where few packets were lost, and BBRv3 ignores a share of them. What is held for such a sender makes
//! it stand still, and saves it nothing; and where it leaves out packet numbers as well, most of what is held
//! is held in vain. Nobody can tell from outside what a sender would do, so once it has stood still for long
//! in vain it is told of all that is lost, while copies go on, and as long as that makes it no slower.
//! When it does, replies are held as before, and the next such trial takes twice as much.

use crate::time::{Nanos, SEC};

/// A sender is tried once replies were held in vain for so many of its round trips, ... (chosen: about what one
/// or two losses cost that it heeds; with half of that 50 Mbit/s over a hop twice as fast fall from 36.9 to 33.7
/// with quic-go, simulated) ...
const PATIENCE: u32 = 7;
/// ... and each time that it was slower for this many times as many (chosen: so a download has few trials).
const GROWTH: u32 = 2;
const MOST_PATIENCE: u32 = 1 << 8;
/// A loss that was repaired while replies were held makes up for a round trip by so many (chosen: without that
/// patience has to be twice as long for the same, and a sender that heeds nothing waits as long).
const REPAIRED_PART: u32 = 2;
/// Two round trips with less than this many eighths of the packets of those before are slower (RFC 9438, section
/// 4.6: a window is cut to 0.7, and two losses make that half), ...
const SLOWER: u32 = 5;
/// ... or several with less than this many in the mean, to which each adds one part in so many (chosen: one cut
/// that lasts shows after four, and one that is taken back does not).
const SLOWER_IN_THE_MEAN: u32 = 6;
const MEAN_PARTS: u32 = 4;
/// Eighths.
const PARTS: u32 = 8;

/// Times are counted in units of so many nanoseconds and are no longer than this (chosen: longer than any round
/// trip), so that the most patience with the longest fits 32 bits.
const UNIT: Nanos = 1 << 10;
const LONGEST: Nanos = 10 * SEC;

fn units(time: Nanos) -> u32 {
    (time.clamp(0, LONGEST) / UNIT) as u32
}

#[derive(Clone, Debug)]
pub(crate) struct Tolerance {
    /// It is told of what is lost.
    tells: bool,
    /// For how many round trips replies may be held in vain, and for how long they were.
    patience: u32,
    vain: u32,
    /// Packets of a round trip before it was told, and eight times what one has in the mean since.
    usual: u32,
    mean: u32,
}

impl Tolerance {
    pub fn new() -> Tolerance {
        Tolerance { tells: false, patience: PATIENCE, vain: 0, usual: 0, mean: 0 }
    }

    /// Whether nothing is to be held, so that the sender is told of each loss.
    pub fn tells(&self) -> bool {
        self.tells
    }

    /// Replies were held for so long, and nothing was repaired; its round trip.
    pub fn held_in_vain(&mut self, took: Nanos, round_trip: Nanos) {
        self.vain = self.vain.saturating_add(units(took));
        self.tells |= self.vain >= units(round_trip) * self.patience;
    }

    /// Replies were held until a loss was repaired.
    pub fn held_well(&mut self, round_trip: Nanos) {
        self.vain -= self.vain.min(units(round_trip) / REPAIRED_PART);
    }

    /// It paused, and what it does next is no answer.
    pub fn paused(&mut self) {
        self.usual = 0;
    }

    /// A round trip of so many packets has ended, it or the one before had the more of the two, and in it the
    /// sender was told of a loss.
    pub fn round_trip(&mut self, packets: u32, most: u32, told: bool) {
        self.mean = match self.usual {
            0 => PARTS * most,
            _ => self.mean - self.mean / MEAN_PARTS + PARTS / MEAN_PARTS * packets,
        };
        if told {
            self.usual = self.usual.max(self.mean / PARTS);
        }
        if PARTS * most < self.usual * SLOWER || self.mean < self.usual * SLOWER_IN_THE_MEAN {
            let patience = MOST_PATIENCE.min(self.patience * GROWTH);
            *self = Tolerance { patience, ..Tolerance::new() };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MS;

    const ROUND_TRIP: Nanos = 20 * MS;
    const FULL: u32 = 100;

    /// One that is told of its losses, as replies were held in vain for so many round trips.
    fn tried(round_trips: u32) -> Tolerance {
        let mut tolerance = Tolerance::new();
        for _ in 1..round_trips {
            tolerance.held_in_vain(ROUND_TRIP, ROUND_TRIP);
            assert!(!tolerance.tells());
        }
        tolerance.held_in_vain(ROUND_TRIP, ROUND_TRIP);
        assert!(tolerance.tells());
        tolerance
    }

    /// Round trips of so many packets, in each of which the sender is told; how many it was told in.
    fn told(tolerance: &mut Tolerance, packets: impl IntoIterator<Item = u32>) -> u32 {
        let mut before = FULL;
        let mut told = 0;
        for packets in packets {
            if tolerance.tells() {
                tolerance.round_trip(packets, packets.max(before), true);
                told += 1;
            }
            before = packets;
        }
        told
    }

    #[test]
    fn who_takes_a_smaller_window_back_is_told_of_losses() {
        let mut tolerance = tried(PATIENCE);
        let quiche = [FULL, FULL * 7 / 10, FULL, FULL * 9 / 10].into_iter().cycle();
        assert_eq!(told(&mut tolerance, quiche.take(1000)), 1000);
    }

    #[test]
    fn who_becomes_slower_is_not_told_of_many() {
        let mut tolerance = tried(PATIENCE);
        let cubic = core::iter::successors(Some(FULL), |packets| Some(packets * 7 / 10));
        assert!((2..=4).contains(&told(&mut tolerance, cubic.take(8))));
        // What it takes until it is tried again.
        tried(PATIENCE);
        for _ in 1..PATIENCE * GROWTH {
            tolerance.held_in_vain(ROUND_TRIP, ROUND_TRIP);
        }
        assert!(!tolerance.tells());
        tolerance.held_in_vain(ROUND_TRIP, ROUND_TRIP);
        assert!(tolerance.tells());
    }

    #[test]
    fn one_cut_that_lasts_is_an_answer() {
        let mut tolerance = tried(PATIENCE);
        let cut = core::iter::once(FULL).chain(core::iter::repeat(FULL * 7 / 10));
        assert!((4..=8).contains(&told(&mut tolerance, cut.take(20))));
    }

    #[test]
    fn a_slow_round_trip_before_any_loss_is_no_answer() {
        let mut tolerance = tried(PATIENCE);
        for packets in [FULL, FULL / 4, FULL / 8, FULL / 8] {
            tolerance.round_trip(packets, packets, false);
        }
        assert!(tolerance.tells());
        tolerance.round_trip(FULL / 8, FULL / 8, true);
        tolerance.paused();
        tolerance.round_trip(1, 1, false);
        assert!(tolerance.tells(), "nor is one after a pause");
    }

    #[test]
    fn repairs_make_up_for_what_was_in_vain() {
        let mut tolerance = Tolerance::new();
        for _ in 0..1000 {
            tolerance.held_in_vain(ROUND_TRIP, ROUND_TRIP);
            (0..REPAIRED_PART).for_each(|_| tolerance.held_well(ROUND_TRIP));
        }
        assert!(!tolerance.tells());
    }

    #[test]
    fn no_time_is_too_long_or_too_short() {
        let mut tolerance = Tolerance::new();
        (0..10).for_each(|_| tolerance.held_in_vain(-MS, ROUND_TRIP));
        tolerance.held_in_vain(SEC, Nanos::MAX / 4);
        tolerance.held_well(Nanos::MAX / 4);
        assert!(!tolerance.tells());
        tolerance.patience = MOST_PATIENCE;
        (0..1000).for_each(|_| tolerance.held_in_vain(Nanos::MAX / 4, Nanos::MAX / 4));
        assert!(tolerance.tells());
    }
}
