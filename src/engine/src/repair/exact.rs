// SPDX-License-Identifier: GPL-2.0-or-later
//! Repair of losses that were reported: which way a flow's packets go, and which losses are
//! open.
//!
//! Packets of which a report is wanted are sent by the caller itself and not by the kernel. Two
//! ways may have two queues, so a flow changes from one to the other only when nothing of it is
//! on the first any more.

use crate::repair::legible::{HOLE_MOST_BYTES, Legible};
use crate::time::{MS, Nanos, Time, US};

/// A packet is sent so often again at most (chosen: where one in three is lost that leaves one in
/// two hundred).
pub(crate) const ATTEMPTS: u8 = 4;
/// After a pause this long nothing is on its way to the client any more (chosen: beyond a
/// retransmitted aggregate; with a round trip that is longer, that).
const PAUSE: Nanos = 4 * MS;
/// From the report that a copy has arrived until the client's replies show it, in which the client
/// has to read the copy and to get onto the air itself: a reply's usual time on this hop, but no
/// less than this (in the Wi-Fi guest 2 ms were too short and 10 ms no better), and no more than
/// four times as much (chosen: then the sender's own round trip is stretched more than it gains).
const QUIET: core::ops::RangeInclusive<Nanos> = 5 * MS..=20 * MS;

/// A client that nobody tells of a loss keeps everything behind it, the copy as well, until its
/// reorder buffer is full or this long has passed (100 ms in mac80211, `HT_RX_REORDER_BUF_TIMEOUT`,
/// looked at by a timer), and sends no reply meanwhile.
pub(crate) const STALL: Nanos = 150 * MS;

/// A client that has got so many packets owes a reply (RFC 9000, section 13.2.2).
const OWES: u32 = 2;

/// A missing packet makes an acknowledgement so much longer: a gap and a range, of a byte each at
/// least (RFC 9000, section 19.3.1).
const HOLE_BYTES: i32 = 2;
/// Acknowledgements that show the same are alike but for this much: the delay in them takes one
/// byte or two.
const ALIKE_BYTES: i32 = 1;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exact {
    own: bool,
    /// Reports that are awaited.
    awaited: u32,
    /// Losses of which the copy was not reported yet.
    open: u32,
    /// Packets reported as arrived since the last reply.
    unanswered: u32,
    /// A reply has come since the first of them was reported.
    replied: bool,
    /// When the last of them was repaired, if none has come since.
    repaired: Option<Time>,
    /// From when on a reply shows all copies that have arrived.
    over: Option<Time>,
    /// The size of the last reply before the first of the open losses was reported, or of a
    /// shorter one since.
    before: i32,
    /// The size of the longest since that was longer by a hole; 0 if there was none.
    longest: i32,
    legible: Legible,
}

impl Exact {
    /// How long replies wait after the last loss was repaired, where one is `usual` after its
    /// packet.
    pub fn quiet(usual: Nanos) -> Nanos {
        usual.clamp(*QUIET.start(), *QUIET.end())
    }

    /// Chooses the way of the next packet, after a pause (none: it is the first): true if it is
    /// one of those that are reported.
    pub fn choose(&mut self, wanted: bool, pause: Option<Nanos>, rtt: Nanos) -> bool {
        if self.own != wanted && pause.is_none_or(|pause| pause >= rtt.max(PAUSE)) {
            self.own = wanted;
        }
        self.own
    }

    /// Whether packets go the way that is reported of.
    pub fn own(&self) -> bool {
        self.own
    }

    /// Whether the flow may go another way at once, because everything has arrived or is lost.
    pub fn settled(&self) -> bool {
        !self.own || self.awaited == 0
    }

    pub fn asked(&mut self) {
        self.awaited += 1;
    }

    /// A report is not awaited any more, perhaps because it has come and says that the client
    /// has the packet.
    pub fn answered(&mut self, arrived: bool) {
        self.awaited = self.awaited.saturating_sub(1);
        self.unanswered = self.unanswered.saturating_add(arrived.into());
    }

    /// Whether a reply is due, so that it must be waiting for the air where none comes.
    pub fn owes_reply(&self) -> bool {
        self.unanswered >= OWES
    }

    /// A packet was lost, and its copy is on its way.
    pub fn opened(&mut self, quiet: Nanos) {
        self.replied &= self.open > 0;
        if let Some(repaired) = self.repaired.take() {
            self.over_from(repaired + quiet);
        }
        self.open += 1;
    }

    fn over_from(&mut self, time: Time) {
        self.over = Some(self.over.map_or(time, |over| over.max(time)));
    }

    /// A loss is repaired, or given up. Where none is left: whether a reply has come since the
    /// first of them.
    pub fn closed(&mut self, now: Time, quiet: Nanos) -> Option<bool> {
        self.open = self.open.saturating_sub(1);
        if self.replied || self.open > 0 {
            self.over_from(now + quiet);
        } else {
            (self.repaired, self.over) = (Some(now), None);
        }
        (self.open == 0).then_some(self.replied)
    }

    /// A reply has come, whether the first since losses all of which are repaired. `quiet` is
    /// how long replies usually wait.
    pub fn replied(&mut self, now: Time, quiet: Nanos) -> bool {
        self.replied = true;
        self.unanswered = 0;
        let Some(repaired) = self.repaired.take() else { return false };
        // After a pause that long the client's reorder buffer is being emptied, and the copy
        // comes last.
        let stalled = now.since(repaired) > quiet;
        self.over_from(if stalled { now } else { repaired } + quiet);
        true
    }

    /// A reply of this size has come. Whether it shows that nothing is missing.
    pub fn reads(&mut self, now: Time, size: i32) -> bool {
        self.legible.reads(now, size)
    }

    /// A reply of this size has come while nothing waits.
    pub fn passed(&mut self, size: i32) {
        (self.before, self.longest) = (size, 0);
    }

    /// A reply of this size waits. Where no loss is open any more, one before it was longer by a
    /// hole, and it is as short again as before the losses, the client has read the copies: that
    /// is told, and from now on it is over.
    pub fn shows_repair(&mut self, now: Time, size: i32) -> bool {
        let grown = size - self.before;
        let repaired = self.open == 0 && self.over.is_some();
        let longer = self.longest >= self.before.max(size) + HOLE_BYTES;
        let shows = repaired && longer && grown.abs() <= ALIKE_BYTES;
        if shows {
            self.legible.seen();
            // Times of what waits are told in microseconds.
            self.over = Some(now - US);
        }
        if (HOLE_BYTES..=HOLE_MOST_BYTES).contains(&-grown) {
            // A hole from before has gone, and a new one would look as if it had not.
            (self.before, self.longest) = (size, 0);
        }
        if (HOLE_BYTES..=HOLE_MOST_BYTES).contains(&grown) {
            self.longest = self.longest.max(size);
        }
        if grown <= 0 {
            self.longest = 0;
        }
        shows
    }

    /// Whether a loss is open.
    pub fn is_open(&self) -> bool {
        self.open > 0
    }

    /// From when on a reply shows all copies that have arrived, unless no reply has come since the
    /// last one did.
    pub fn over(&self) -> Option<Time> {
        self.over
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replies_wait_for_a_moment_or_until_a_reorder_buffer_is_empty() {
        let at = |ms| Time::ZERO + ms * MS;
        let mut exact = Exact::default();
        exact.opened(5 * MS);
        exact.opened(5 * MS);
        assert_eq!(exact.closed(at(1), 5 * MS), None);
        assert!(!exact.replied(at(2), 5 * MS), "one is still open");
        assert_eq!(exact.closed(at(3), 5 * MS), Some(true));
        let is_over =
            |exact: &Exact, now| !exact.is_open() && exact.over().is_some_and(|over| over <= now);
        assert!(!is_over(&exact, at(7)) && is_over(&exact, at(8)));
        exact.opened(5 * MS);
        assert!(!is_over(&exact, at(9)));
        assert_eq!(exact.closed(at(10), 5 * MS), Some(false));
        assert!(exact.replied(at(12), 5 * MS) && !exact.replied(at(13), 5 * MS));
        assert!(!is_over(&exact, at(14)) && is_over(&exact, at(15)));
        exact.opened(5 * MS);
        assert_eq!(exact.closed(at(20), 5 * MS), Some(false));
        assert!(exact.replied(at(80), 5 * MS), "all came at once");
        assert!(!is_over(&exact, at(84)) && is_over(&exact, at(85)));
    }

    #[test]
    fn a_reply_that_is_as_short_again_shows_the_repair() {
        let at = |ms| Time::ZERO + ms * MS;
        let lost_and_repaired = |replies: [i32; 3]| {
            let mut exact = Exact::default();
            exact.passed(36);
            exact.opened(5 * MS);
            exact.replied(at(1), 5 * MS);
            let early = exact.shows_repair(at(1), replies[0]);
            exact.closed(at(2), 5 * MS);
            assert!(!early, "the copy is still on its way");
            let shows = [replies[1], replies[2]].map(|size| exact.shows_repair(at(3), size));
            (shows, exact.over().is_some_and(|over| over < at(3)))
        };
        assert_eq!(lost_and_repaired([38, 38, 36]), ([false, true], true));
        assert_eq!(lost_and_repaired([38, 39, 37]), ([false, true], true));
        assert!(!lost_and_repaired([38, 37, 37]).1, "one byte is the delay in it");
        assert!(!lost_and_repaired([38, 38, 32]).1, "no acknowledgement");
        assert!(!lost_and_repaired([36, 36, 36]).1, "padded");
        assert!(!lost_and_repaired([38, 40, 38]).1, "another hole");
        assert!(!lost_and_repaired([41, 41, 36]).1, "a window update");
        assert!(!lost_and_repaired([38, 34, 36]).1, "a hole from before has gone");
    }

    #[test]
    fn the_way_changes_when_nothing_is_on_it() {
        let mut exact = Exact::default();
        assert!(!exact.choose(true, Some(MS), 2 * MS), "packets are on the other way");
        assert!(!exact.choose(true, Some(9 * MS), 10 * MS));
        assert!(exact.choose(true, Some(10 * MS), 10 * MS));
        assert!(exact.choose(false, Some(MS), 2 * MS) && exact.own());
        exact.asked();
        assert!(!exact.settled());
        exact.answered(true);
        assert!(exact.settled());
        assert!(!exact.choose(false, Some(PAUSE), 2 * MS));
        assert!(Exact::default().choose(true, None, 0), "the first packet of a flow");
    }
}
