// SPDX-License-Identifier: GPL-2.0-or-later
//! What "on time" means. This is the only place that says how far from the moment at which
//! it is due a reply may come.
//!
//! Each margin is a fixed time, which the client's scheduler and the router's clock take,
//! plus a number of mean deviations of the local round trip, which the hop takes. A rule
//! names the margin that it needs, from the narrowest to the widest.

use crate::time::{Nanos, US};
use crate::tunables::Tunables;

/// Fixed part of [`Margin::Search`] (chosen: three or four packets at 10 Mbit/s).
const SEARCH: Nanos = 4000 * US;
/// Fixed part of [`Margin::Timer`] (chosen: timers of applications have a grain of about 1 ms).
const TIMER: Nanos = 1500 * US;
/// Fixed part of [`Margin::Probed`] (chosen: below the time between two packets at 10 Mbit/s).
const PROBED: Nanos = 700 * US;

/// How exactly a reply has to keep its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Margin {
    /// Moments closer together than this cannot be told apart by a reply.
    Same,
    /// A reply this close to a moment may well belong to it.
    Near,
    /// A reply this close still belongs to a moment for which something was expected.
    Expected,
    /// A reply that is later than this is overdue.
    Overdue,
    /// A reply further than this from all moments belongs to none of them.
    Related,
    /// A packet that is missing may have been sent this long before the one that triggered the
    /// reply which showed it.
    Search,
    /// A reply this close to the end of the client's own timer was caused by that timer.
    Timer,
    /// A local round trip longer than what probes measured by more than this is wrong: a
    /// wider margin would let in the true value plus the time between two packets.
    Probed,
    /// The same where packets are closer together: no further than to the one that is this late.
    Packet(Nanos),
}

impl Margin {
    /// The margin at this mean deviation.
    pub fn at(self, deviation: Nanos, tunables: Tunables) -> Nanos {
        let (fixed, deviations) = match self {
            Margin::Same => (tunables.margin_same(), 2),
            Margin::Near => (tunables.margin_near(), 2),
            Margin::Expected => (tunables.margin_expected(), 3),
            Margin::Overdue => (tunables.margin_overdue(), 2),
            Margin::Related => (tunables.margin_related(), 3),
            Margin::Search => (SEARCH, 2),
            Margin::Timer => (TIMER, 2),
            Margin::Probed => (PROBED, 3),
            Margin::Packet(late) => (PROBED.min(late), 3),
        };
        fixed + deviations * deviation
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Margin::{Expected, Near, Overdue, Related, Same};

    #[test]
    fn each_margin_contains_the_narrower_ones() {
        for deviation in [0, 100 * US, 180 * US, 2000 * US] {
            for pair in [Same, Near, Expected, Related].windows(2) {
                assert!(
                    pair[0].at(deviation, Tunables::DEFAULT)
                        < pair[1].at(deviation, Tunables::DEFAULT),
                    "{pair:?} {deviation}"
                );
            }
            assert!(
                Near.at(deviation, Tunables::DEFAULT) < Overdue.at(deviation, Tunables::DEFAULT)
            );
        }
    }
}
