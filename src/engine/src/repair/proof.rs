// SPDX-License-Identifier: GPL-2.0-or-later
//! Proof: was it the copy that closed a gap?
//!
//! All that is learned of a hop rests on this: what copies may cost, how long attempts are put
//! off, and what the client's next flow begins with. A gap that was none closes by itself, and
//! where replies keep no time any moment is one at which the reply to a copy was due.

use crate::time::Nanos;

/// No copy is acknowledged within this share of a round trip, in percent (chosen: half of it, as
/// hops vary).
const SOONEST_PERCENT: Nanos = 50;

/// A gap that is not the hop's closes once the sender has seen it, or by itself. Where replies to copies are due for
/// more than one part in so many of the sender's round trip, one does by chance before long (chosen: of downloads
/// over a hop that loses nothing and has a queue for each flow, four in ten found a repair while each was believed).
const CHANCE_PART: Nanos = 10;

/// What bears on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    /// A reply came when the reply to a copy was due.
    pub on_time: bool,
    /// Since the first copy for the gap, of several gaps that for the oldest.
    pub taken: Nanos,
    pub rtt: Nanos,
    /// It came in the clump that ended a stall, or this client's replies always come in clumps.
    pub clump: bool,
    /// It is as short again as it would be after a frame of the client's own.
    pub by_itself: bool,
}

/// Whether a copy has repaired the gap.
pub(crate) fn proves(facts: &Facts) -> bool {
    let possible = facts.taken >= facts.rtt * SOONEST_PERCENT / 100;
    facts.on_time && possible && !facts.clump && !facts.by_itself
}

/// Whether that a gap closed when the reply to a copy was due, `within` this time, may have been chance; so
/// one on a hop of which nothing is known proves nothing, and another one has to come.
pub(crate) fn may_be_chance(within: Nanos, round_trip: Nanos) -> bool {
    within > round_trip / CHANCE_PART
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MS;

    #[test]
    fn a_wide_margin_on_a_short_path_may_be_chance() {
        assert!(!may_be_chance(2 * MS, 50 * MS));
        assert!(may_be_chance(6 * MS, 50 * MS), "replies keep no time");
        assert!(may_be_chance(2 * MS, 15 * MS), "gaps are short whatever closes them");
    }

    const REPAIR: Facts =
        Facts { on_time: true, taken: 2 * MS, rtt: 2 * MS, clump: false, by_itself: false };

    #[test]
    fn only_what_comes_on_time_and_alone_is_proof() {
        assert!(proves(&REPAIR));
        assert!(!proves(&Facts { on_time: false, ..REPAIR }));
        assert!(!proves(&Facts { clump: true, ..REPAIR }));
        assert!(!proves(&Facts { by_itself: true, ..REPAIR }));
        assert!(!proves(&Facts { taken: MS - 1, ..REPAIR }), "nothing is as quick");
    }
}
