// SPDX-License-Identifier: GPL-2.0-or-later
//! How far apart the packets of a flow are.
//!
//! What a rule means in packets is a time only at one rate: 300 us are a quarter of the time
//! between two packets at 10 Mbit/s, and two and a half packets at 100.

use crate::time::{MS, Nanos, Time};

/// Packets are taken to be no further apart than this (chosen: a little less than their distance at 10
/// Mbit/s, for which times were chosen), and this far until others have passed.
const WIDEST: Nanos = MS;
/// What comes later than this is no more of the same burst (chosen: the distance of packets at 2
/// Mbit/s), and so many that are not apart are a stream (chosen: a frame of a call at 7 Mbit/s and 30 frames a
/// second has as many packets).
const PAUSE: Nanos = 5 * MS;
const STREAM: u32 = 24;
/// What is sent in bulk fills its packets: so many of one size, and none smaller than each path can
/// carry (RFC 9000, section 14). A frame of a call ends with a part of one.
const FULL: usize = 1200;
/// The distance follows each packet by one part in so many (chosen: half of those that are on a
/// hop of 2 ms at 100 Mbit/s), and by no more than the distance and this: a pause between two bursts says
/// nothing of what is within them, and what came at once may be apart again.
const PART: i32 = 16;
const AT_ONCE: i32 = 100_000;
/// Without the rule a packet is counted every so often: packets of 1,250 bytes at 9 Mbit/s
/// (chosen: so that 90 of them are the 100 ms by which storms were known before).
const TICK: u64 = 1_110_000;

#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// In nanoseconds: more than a millisecond is not needed.
    spacing: u32,
    /// Packets since the last pause, and since the last one of another size.
    run: u32,
    full: usize,
    filled: u32,
}

impl Pace {
    pub fn new() -> Pace {
        Pace { spacing: WIDEST as u32, run: 0, full: FULL, filled: 0 }
    }

    /// A packet follows the one before after this pause.
    pub fn forwarded(&mut self, pause: Nanos) {
        self.run = if pause < PAUSE { self.run.saturating_add(1) } else { 0 };
        if pause < PAUSE {
            let spacing = self.spacing as i32;
            let further = pause.clamp(0, WIDEST) as i32 - spacing;
            self.spacing = (spacing + further.min(spacing + AT_ONCE) / PART) as u32;
        }
    }

    /// A packet with data has this size.
    pub fn sized(&mut self, len: usize) {
        self.filled = if len == self.full { self.filled.saturating_add(1) } else { 0 };
        self.full = len.max(FULL);
    }

    /// Whether so many packets have followed each other, or were filled, as in hardly any frame of
    /// a call.
    pub fn streams(&self) -> bool {
        self.run >= STREAM || self.filled >= STREAM
    }

    /// Mean distance of packets that follow each other closely, at most a millisecond.
    pub fn spacing(&self) -> Nanos {
        self.spacing.into()
    }
}

/// A number of packets as it would be by now at the rate for which times were chosen.
pub(crate) fn ticks(now: Time) -> u64 {
    now.as_nanos() / TICK
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::US;

    #[test]
    fn it_follows_a_train_and_no_pause() {
        let mut pace = Pace::new();
        (0..100).for_each(|_| pace.forwarded(120 * US));
        assert!((pace.spacing() - 120 * US).abs() < 3 * US, "{}", pace.spacing());
        (0..100).for_each(|_| pace.forwarded(20 * MS));
        assert!(pace.spacing() < 123 * US);
        (0..100).for_each(|_| pace.forwarded(900 * US));
        assert!(pace.spacing() > 880 * US);
    }

    #[test]
    fn what_is_closer_by_chance_is_not_all_there_is() {
        let mut pace = Pace::new();
        for _ in 0..100 {
            (0..9).for_each(|_| pace.forwarded(1190 * US));
            pace.forwarded(400 * US);
        }
        assert!(pace.spacing() > 900 * US, "{}", pace.spacing());
        for _ in 0..100 {
            (0..9).for_each(|_| pace.forwarded(120 * US));
            pace.forwarded(3 * MS);
        }
        assert!(pace.spacing() < 160 * US, "{}", pace.spacing());
        (0..400).for_each(|_| pace.forwarded(0));
        (0..100).for_each(|_| pace.forwarded(MS));
        assert!(pace.spacing() > 900 * US, "{}", pace.spacing());
    }

    #[test]
    fn a_stream_is_longer_than_a_frame() {
        let mut pace = Pace::new();
        for _ in 0..9 {
            pace.forwarded(33 * MS);
            (0..23).for_each(|_| pace.forwarded(MS));
            assert!(!pace.streams());
        }
        pace.forwarded(MS);
        assert!(pace.streams());
        pace.forwarded(33 * MS);
        assert!(!pace.streams());
    }

    #[test]
    fn what_fills_its_packets_is_a_stream_however_slow() {
        let mut pace = Pace::new();
        for _ in 0..9 {
            (0..24).for_each(|_| pace.sized(1242));
            assert!(!pace.streams());
            pace.sized(700);
        }
        (0..100).for_each(|_| pace.sized(160));
        assert!(!pace.streams(), "a voice");
        (0..25).for_each(|_| pace.sized(1242));
        assert!(pace.streams());
    }
}
