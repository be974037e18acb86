// SPDX-License-Identifier: GPL-2.0-or-later
//! RED (Floyd and Jacobson 1993; RFC 2309), as tc-red(8) does it in its byte mode:
//! the averaged queue decides, before a packet is queued, whether it is dropped.
//! Without its options `ecn`, `adaptive` and `harddrop`.

use crate::Nanos;
use crate::loss::{Purpose, Random};

/// The size of a packet that the average is computed with, tc-red's `avpkt`.
pub const PACKET_BYTES: u32 = 1000;
/// The probability at the upper threshold, tc-red's default.
const MAX_PROBABILITY: f64 = 0.02;

/// Thresholds and the averaged queue, in bytes.
#[derive(Debug)]
pub struct Red {
    min: f64,
    max: f64,
    weight: f64,
    /// How long [`PACKET_BYTES`] take: an idle link lets the average fall as if
    /// as many packets had found an empty queue.
    packet_time: Nanos,
    average: f64,
    /// Since when the queue has been empty.
    empty_since: Nanos,
    /// Packets since the last drop, and how unlikely it has become not to drop.
    since_drop: u64,
    threshold: f64,
    random: Random,
    drawn: u64,
}

impl Red {
    /// The thresholds that tc derives from a limit: a quarter of it, and a third of that.
    pub fn new(limit_bytes: u64, packet_time: Nanos, random: Random) -> Red {
        let max = limit_bytes as f64 / 4.0;
        let min = max / 3.0;
        let mut red = Red {
            min,
            max,
            weight: weight(min, max),
            packet_time: packet_time.max(1),
            average: 0.0,
            empty_since: 0,
            since_drop: 0,
            threshold: 0.0,
            random,
            drawn: 0,
        };
        red.draw();
        red
    }

    /// A packet arrives and finds `queued` bytes; false: it is to be dropped.
    pub fn admits(&mut self, now: Nanos, queued: u64) -> bool {
        if queued == 0 {
            let idle = now.saturating_sub(self.empty_since);
            let packets = idle as f64 / self.packet_time as f64;
            self.average *= (1.0 - self.weight).powf(packets);
            self.empty_since = now;
        } else {
            self.average += self.weight * (queued as f64 - self.average);
        }
        if self.average < self.min {
            self.since_drop = 0;
            true
        } else if self.average < self.max {
            self.since_drop += 1;
            if self.since_drop == 1 {
                self.draw();
            }
            let probability = MAX_PROBABILITY * (self.average - self.min) / (self.max - self.min);
            // The chance grows with every packet that was spared, so that drops are
            // spread evenly (Floyd and Jacobson's second method).
            let drop = probability * self.since_drop as f64 >= self.threshold;
            if drop {
                self.since_drop = 0;
            }
            !drop
        } else {
            self.since_drop = 0;
            false
        }
    }

    /// The queue has become empty.
    pub fn emptied(&mut self, now: Nanos) {
        self.empty_since = now;
    }

    fn draw(&mut self) {
        self.threshold = self.random.unit(Purpose::Red, self.drawn);
        self.drawn += 1;
    }
}

/// The weight of one arrival in the average, as tc derives it: a power of two that
/// lets a burst of `(2 min + max) / 3` bytes pass before the average reaches `min`.
fn weight(min: f64, max: f64) -> f64 {
    let packet = f64::from(PACKET_BYTES);
    let burst = ((2.0 * min + max) / (3.0 * packet)).floor().max(1.0);
    let spared = burst + 1.0 - min / packet;
    (1..32)
        .map(|log| 0.5f64.powi(log))
        .find(|weight| spared <= (1.0 - (1.0 - weight).powf(burst)) / weight)
        .unwrap_or(0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Direction, MS};

    const LIMIT: u64 = 120_000;

    fn red() -> Red {
        Red::new(LIMIT, MS, Random::new(1, Direction::Ab))
    }

    /// The share of drops while the queue stands at so many bytes.
    fn dropped_at(queued: u64) -> f64 {
        let mut red = red();
        let count = 50_000;
        let dropped = (0..count).filter(|n| !red.admits(n * MS, queued)).count();
        dropped as f64 / count as f64
    }

    #[test]
    fn the_weight_is_what_tc_computes() {
        // By hand with tc's formula: bursts of 9 and of 50 packets.
        assert_eq!(weight(65_000.0 / 12.0, 65_000.0 / 4.0), 0.5f64.powi(3));
        assert_eq!(weight(30_000.0, 90_000.0), 0.5f64.powi(5));
    }

    #[test]
    fn drops_more_the_longer_the_queue_stands() {
        assert_eq!(dropped_at(LIMIT / 12 - 1), 0.0);
        // Half way between the thresholds: 1 % per packet; even spreading doubles it.
        let half = dropped_at(LIMIT / 6);
        assert!((0.017..0.023).contains(&half), "{half}");
        assert!(dropped_at(LIMIT / 4 - 1) > 1.5 * half);
        assert!(dropped_at(LIMIT / 4 + 1000) > 0.99);
    }

    #[test]
    fn a_burst_passes() {
        let mut red = red();
        let burst = LIMIT / 6 / 1000;
        assert!((0..burst).all(|n| red.admits(0, n * 1000)));
    }

    #[test]
    fn an_idle_link_is_forgotten() {
        let mut red = red();
        assert!((0..1000).map(|n| red.admits(n, LIMIT / 2)).any(|admitted| !admitted));
        assert!(!red.admits(1000, 0));
        red.emptied(1000);
        assert!(red.admits(1000 + 200 * MS, 0));
    }
}
