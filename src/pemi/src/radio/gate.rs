// SPDX-License-Identifier: GPL-2.0-or-later
//! The gate of a client: closed while its radio is known to lose nothing, so that its packets
//! need not be seen. Without I/O and clock.
//!
//! It takes more to close it than to open it: one counted loss opens it, and what is not known
//! is open. A client that nothing was sent to has lost nothing, and that says nothing.

use std::time::Duration;

use pemi_radio::meter::Worth;

/// So many packets in a row without a loss close a gate. Where one in a hundred is lost, that many
/// come through by chance once in 23,000 times; of one in a thousand there is little to repair.
const PROOF: u64 = 1000;
/// A look that is older than this is none: who is asked so seldom, because an answer takes long,
/// would be helped as late as that when losses begin.
pub(super) const FRESH: Duration = Duration::from_secs(10);

/// What is known of a client.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts {
    /// Whether somebody has read what its driver counts.
    pub known_driver: bool,
    /// What counted losses are good for.
    pub worth: Worth,
    /// Whether it is there.
    pub there: bool,
    /// Since the last look at it.
    pub looked: Duration,
    /// Lost since it was seen first.
    pub lost: u64,
    /// Since the last loss.
    pub clean_for: Duration,
    /// Packets sent since then.
    pub clean_sent: u64,
    /// Its addresses of IPv4.
    pub addresses4: usize,
}

/// Whether the gate is closed, where it closes after so long without a loss.
pub(super) fn is_closed(facts: &Facts, release: Duration) -> bool {
    let told = match facts.worth {
        Worth::Exact => true,
        // A limit: where nothing is counted, nothing was lost. Of a driver that nobody has read it
        // is not known whether it counts at all.
        Worth::AtMost => facts.known_driver,
        Worth::Nothing | Worth::Display => false,
    };
    // Who has several may pass on what others get, by a hop of which no radio here tells.
    let alone = facts.addresses4 <= 1;
    let proven = facts.clean_sent >= PROOF && (facts.lost == 0 || facts.clean_for >= release);
    told && alone && proven && facts.there && facts.looked < FRESH
}

#[cfg(test)]
mod tests {
    use super::*;

    const RELEASE: Duration = Duration::from_secs(30);

    fn clean() -> Facts {
        Facts {
            known_driver: true,
            worth: Worth::Exact,
            there: true,
            looked: Duration::from_secs(1),
            lost: 3,
            clean_for: RELEASE,
            clean_sent: PROOF,
            addresses4: 1,
        }
    }

    #[test]
    fn closed_after_enough_without_a_loss() {
        let closed = |facts: Facts| is_closed(&facts, RELEASE);
        assert!(closed(clean()));
        assert!(!closed(Facts { clean_sent: PROOF - 1, ..clean() }), "nothing was sent");
        let soon = Facts { clean_for: RELEASE - Duration::from_millis(1), ..clean() };
        assert!(!closed(soon));
        // Who has never lost anything need not wait.
        assert!(closed(Facts { lost: 0, ..soon }));
        assert!(!closed(Facts { lost: 0, clean_sent: 0, ..clean() }), "a new one");
    }

    #[test]
    fn what_is_not_known_is_open() {
        let closed = |facts: Facts| is_closed(&facts, RELEASE);
        for (worth, known_driver, expected) in [
            (Worth::AtMost, true, true),
            (Worth::AtMost, false, false),
            (Worth::Display, true, false),
            (Worth::Nothing, true, false),
        ] {
            assert_eq!(closed(Facts { worth, known_driver, ..clean() }), expected, "{worth:?}");
        }
        assert!(!closed(Facts { there: false, ..clean() }));
        assert!(!closed(Facts { looked: FRESH, ..clean() }), "nobody could ask");
        assert!(!closed(Facts { addresses4: 2, ..clean() }), "a repeater");
        assert!(closed(Facts { addresses4: 0, ..clean() }), "on a bridge, or of IPv6 alone");
    }
}
