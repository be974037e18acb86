// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether a client's replies show by their size that it misses nothing.
//!
//! An acknowledgement is longer by a gap and a range for each hole (RFC 9000, section 19.3.1),
//! but not where a client pads it, and it has other reasons to grow. A client of which replies
//! grew with losses and were as short as before when these were repaired is legible: its shortest
//! replies show no hole, whatever else is reported as lost, and need not wait. What is said of a
//! packet wrongly costs nothing then.

use crate::time::{MS, Nanos, Time};

/// A missing packet makes an acknowledgement longer by no more than this: the gap and the range
/// (RFC 9000, section 19.3.1) may take two bytes each, and a window update has five at least
/// (section 19.9: a type, and a number of at least four bytes for any usual window).
pub(crate) const HOLE_MOST_BYTES: i32 = 4;
/// So many losses have to be seen in this way (chosen: one may be chance).
const PROOF: u8 = 2;
/// The shortest replies of this long and of as long before count. Holes of which the sender was
/// told stay in each reply for a round trip, until the acknowledgement is acknowledged, and may go
/// just when a new one comes (chosen: beyond the usual round trip; 25 ms let the sender learn of
/// three times as many losses at 100 Mbit/s, simulated).
const WINDOW: Nanos = 150 * MS;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Legible {
    seen: u8,
    last: i32,
    /// The shortest size that came twice in a row, lately and before.
    shortest: [i32; 2],
    since: Time,
}

impl Default for Legible {
    fn default() -> Legible {
        Legible { seen: 0, last: 0, shortest: [i32::MAX; 2], since: Time::ZERO }
    }
}

impl Legible {
    /// A loss made replies longer, and its repair shorter again.
    pub fn seen(&mut self) {
        self.seen = self.seen.saturating_add(1);
    }

    /// A reply of this size has come. Whether it shows no hole.
    pub fn reads(&mut self, now: Time, size: i32) -> bool {
        if now.since(self.since) >= WINDOW {
            self.shortest = [i32::MAX, self.shortest[0]];
            self.since = now;
        }
        let shortest = self.shortest[0].min(self.shortest[1]);
        let alike = core::mem::replace(&mut self.last, size) == size;
        // What is shorter by more than a hole that has gone is a window update that travels alone.
        if alike && (shortest == i32::MAX || size >= shortest - HOLE_MOST_BYTES) {
            self.shortest[0] = self.shortest[0].min(size);
        }
        self.seen >= PROOF && size == self.shortest[0].min(self.shortest[1])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// What is read of replies a millisecond apart.
    fn read(legible: &mut Legible, from_ms: i64, sizes: &[i32]) -> Vec<bool> {
        let at = |index: usize| Time::ZERO + (from_ms + index as i64) * MS;
        sizes.iter().enumerate().map(|(index, size)| legible.reads(at(index), *size)).collect()
    }

    #[test]
    fn only_a_client_that_has_shown_losses_is_read() {
        let mut legible = Legible::default();
        legible.seen();
        assert_eq!(read(&mut legible, 0, &[37, 37, 39, 37]), [false; 4], "perhaps by chance");
        legible.seen();
        assert_eq!(read(&mut legible, 4, &[37, 39, 39, 37]), [true, false, false, true]);
    }

    #[test]
    fn what_stays_for_long_is_no_hole_of_ours() {
        let mut legible = Legible { seen: PROOF, ..Legible::default() };
        assert_eq!(read(&mut legible, 0, &[37, 37]), [false, true]);
        let longer = read(&mut legible, 2, &[40; 400]);
        assert_eq!(longer.iter().position(|reads| *reads), Some(298), "two windows");
        assert_eq!(read(&mut legible, 402, &[37, 37]), [false, true], "it has gone again");
    }

    #[test]
    fn a_window_update_shows_nothing() {
        let mut legible = Legible { seen: PROOF, ..Legible::default() };
        assert_eq!(
            read(&mut legible, 0, &[37, 37, 32, 37, 32, 32, 37]),
            [false, true, false, true, false, false, true]
        );
    }
}
