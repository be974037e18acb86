// SPDX-License-Identifier: GPL-2.0-or-later
//! Fairness: congestion of the last hop is never hidden.
//!
//! A loss while packets stand in the hop's own queue is most likely that
//! queue overflowing, and the sender has to hear of it. As in the PEMI paper
//! the test is Copa's (NSDI '18): a flow that keeps to the rate
//! 1 / (δ · queueing delay), δ = 0.5, leaves the queue short; one above it is
//! filling it.

use crate::measure::hop::Hop;
use crate::time::{MS, Nanos, Time};
use crate::tunables::Tunables;

/// The time over which the rate is measured (chosen: some packets of a call, and a few round
/// trips).
const RATE_WINDOW: Nanos = 100 * MS;
/// A reply that is later than this has waited for the client's timer and not in a queue
/// (chosen: a little less than the default max_ack_delay of 25 ms, RFC 9000, section 18.2).
const TIMER: Nanos = 20 * MS;
/// The share of late replies follows each by one part in this many (chosen: a few round trips'
/// replies).
const LATE_PART: i32 = 32;

/// Rate of one flow's downstream packets, and how late the replies to them are.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    tunables: Tunables,
    late_share: i32,
    since: Time,
    packets: u32,
    /// The packets of the window before, and how long it was.
    before: u32,
    span: Nanos,
}

impl Guard {
    pub fn new(now: Time, tunables: Tunables) -> Guard {
        Guard { tunables, late_share: 0, since: now, packets: 0, before: 0, span: RATE_WINDOW }
    }

    pub fn forwarded(&mut self, now: Time) {
        self.packets = self.packets.saturating_add(1);
        let span = now.since(self.since);
        if span >= RATE_WINDOW {
            self.before = core::mem::take(&mut self.packets);
            self.span = span;
            self.since = now;
        }
    }

    /// Takes note of a reply that came this much later than it was due.
    pub fn replied(&mut self, late: Nanos, rtt: Nanos) {
        let waited = late >= self.tunables.late_reply().max(rtt / 2) && late < TIMER;
        let sample = if waited { 1024 } else { 0 };
        self.late_share += (sample - self.late_share) / LATE_PART;
    }

    /// Whether a queue of the flow's own stands.
    pub fn own_queue(&self) -> bool {
        self.late_share >= self.tunables.late_share()
    }

    /// Whether a loss seen now is to be taken for congestion.
    pub fn congested(&self, now: Time, hop: &Hop) -> bool {
        if self.own_queue() || hop.counts.queue_drops(now) {
            return true;
        }
        let queueing = hop.queueing(now);
        let margin = self.tunables.queue_allowed() + hop.base().unwrap_or(0) / 2;
        queueing > margin
            // A queue is a second at most, so that there is room.
            && i64::from(self.before) * queueing / self.span > self.tunables.queue_own_packets()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn hop(queueing: Nanos) -> Hop {
        let mut hop = Hop::new(at(0), Tunables::DEFAULT);
        hop.probed(at(0), 2 * MS);
        hop.probed(at(950), 2 * MS + queueing);
        hop
    }

    fn flow(packets_per_second: u64) -> Guard {
        let mut guard = Guard::new(at(0), Tunables::DEFAULT);
        for n in 0..packets_per_second {
            guard.forwarded(at(n * 1000 / packets_per_second));
        }
        guard
    }

    #[test]
    fn late_replies_tell_of_a_queue_of_the_flows_own() {
        let mut guard = flow(100);
        for n in 0..200 {
            guard.replied(if n % 10 == 0 { 25 * MS } else { 0 }, 2 * MS);
        }
        assert!(!guard.congested(at(1000), &hop(0)), "delayed acknowledgements");
        for n in 0..200 {
            guard.replied(if n % 4 == 0 { 8 * MS } else { 2 * MS }, 2 * MS);
        }
        assert!(guard.congested(at(1000), &hop(0)));
        (0..200).for_each(|_| guard.replied(0, 2 * MS));
        assert!(!guard.congested(at(1000), &hop(0)));
    }

    #[test]
    fn a_fast_flow_in_a_standing_queue_is_congestion() {
        assert!(flow(800).congested(at(1000), &hop(20 * MS)));
        assert!(!flow(800).congested(at(1000), &hop(3 * MS)), "within the margin");
        assert!(!flow(50).congested(at(1000), &hop(20 * MS)), "not this flow's doing");
    }
}
