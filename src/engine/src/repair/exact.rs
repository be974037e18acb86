// SPDX-License-Identifier: GPL-2.0-or-later
//! Repair of losses that were reported: which way a flow's packets go, and which losses are
//! open.
//!
//! Packets of which a report is wanted are sent by the caller itself and not by the kernel. Two
//! ways may have two queues, so a flow changes from one to the other only when nothing of it is
//! on the first any more.

use crate::time::{MS, Nanos};

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

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Exact {
    own: bool,
    /// Reports that are awaited.
    awaited: u32,
    /// Losses of which the copy was not reported yet.
    open: u32,
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

    pub fn answered(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
    }

    /// A packet was lost, and its copy is on its way.
    pub fn opened(&mut self) {
        self.open += 1;
    }

    /// A loss is repaired, or given up; true if none is left.
    pub fn closed(&mut self) -> bool {
        self.open = self.open.saturating_sub(1);
        self.open == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_way_changes_when_nothing_is_on_it() {
        let mut exact = Exact::default();
        assert!(!exact.choose(true, Some(MS), 2 * MS), "packets are on the other way");
        assert!(!exact.choose(true, Some(9 * MS), 10 * MS));
        assert!(exact.choose(true, Some(10 * MS), 10 * MS));
        assert!(exact.choose(false, Some(MS), 2 * MS) && exact.own());
        exact.asked();
        assert!(!exact.settled());
        exact.answered();
        assert!(exact.settled());
        assert!(!exact.choose(false, Some(PAUSE), 2 * MS));
        assert!(Exact::default().choose(true, None, 0), "the first packet of a flow");
    }
}
