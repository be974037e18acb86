//! Fairness: congestion of the last hop is never hidden.
//!
//! A loss while packets stand in the hop's own queue is most likely that
//! queue overflowing, and the sender has to hear of it. As in the PEMI paper
//! the test is Copa's (NSDI '18): a flow that keeps to the rate
//! 1 / (δ · queueing delay), δ = 0.5, leaves the queue short; one above it is
//! filling it.

use crate::hop::Hop;
use crate::time::{MS, Nanos, SEC, Time};

/// Queueing delays below this are what wireless hops show unloaded.
const MARGIN: Nanos = 3 * MS;
/// 1 / δ: packets of its own that a flow may have standing in the queue.
const OWN_PACKETS: i64 = 2;
/// Over which the rate is measured.
const RATE_WINDOW: Nanos = 100 * MS;

/// A reply this much after its packet's time has waited in a queue of the flow's
/// own, as fair queueing gives each flow, where probes do not wait ...
const LATE: Nanos = 5 * MS;
/// ... or for a timer of the client, if it is still later.
const TIMER: Nanos = 20 * MS;
/// Share of late replies that shows such a queue, in 1024ths.
const LATE_SHARE: i32 = 100;

/// Rate of one flow's downstream packets, and how late their answers are.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    late_share: i32,
    since: Time,
    packets: i64,
    per_second: i64,
}

impl Guard {
    pub fn new(now: Time) -> Guard {
        Guard { late_share: 0, since: now, packets: 0, per_second: 0 }
    }

    pub fn forwarded(&mut self, now: Time) {
        self.packets += 1;
        let span = now.since(self.since);
        if span >= RATE_WINDOW {
            self.per_second = self.packets.saturating_mul(SEC) / span;
            self.packets = 0;
            self.since = now;
        }
    }

    /// A reply came so long after its packet's answer was due.
    pub fn replied(&mut self, late: Nanos, rtt: Nanos) {
        let waited = late >= LATE.max(rtt / 2) && late < TIMER;
        let sample = if waited { 1024 } else { 0 };
        self.late_share += (sample - self.late_share) / 32;
    }

    /// Whether a queue of the flow's own stands.
    pub fn own_queue(&self) -> bool {
        self.late_share >= LATE_SHARE
    }

    /// Whether a loss seen now is to be taken for congestion.
    pub fn congested(&self, now: Time, hop: &Hop) -> bool {
        if self.own_queue() {
            return true;
        }
        let queueing = hop.queueing(now);
        let margin = MARGIN + hop.base().unwrap_or(0) / 2;
        queueing > margin && self.per_second.saturating_mul(queueing) / SEC > OWN_PACKETS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Time {
        Time::from_nanos(ms * 1_000_000)
    }

    fn hop(queueing: Nanos) -> Hop {
        let mut hop = Hop::new(at(0));
        hop.probed(at(0), 2 * MS);
        hop.probed(at(950), 2 * MS + queueing);
        hop
    }

    fn flow(packets_per_second: u64) -> Guard {
        let mut guard = Guard::new(at(0));
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
