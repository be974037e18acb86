// SPDX-License-Identifier: GPL-2.0-or-later
//! The queue beyond the router, as far as a flow makes it itself.
//!
//! A reply acknowledges the packet that left one round trip ago, but a sender that
//! fills its window in a burst has packets wait before the slow link on the way
//! for longer than they take to cross it. So each packet gets the time at which
//! the link will take it up: the router's own clock is run through a model of that
//! queue, with a rate from the replies and corrected by what the spin bit shows
//! once a round trip. Where the model is right, the round trip from that time on is
//! constant; where it is not, somebody else's queue stands there, and inference has
//! nothing to go on.

use crate::store::least::Least;
use crate::store::recent::Recent;
use crate::time::{Nanos, SEC, Time, US};
use crate::tunables::Tunables;

/// Replies over which the rate is measured (chosen: the fewest that even out two packets a
/// reply).
const REPLIES: usize = 5;
/// Round trips of which the middle one says how much a reply acknowledges (chosen: the fewest
/// of which one may be odd).
const ROUNDS: usize = 3;
/// A reply this soon after another one is a frame of the server's own (chosen: 1,250 bytes
/// take longer on any uplink of less than 100 Mbit/s).
const OWN_FRAME_GAP: Nanos = 100 * US;
/// The windows of the smallest round trip and of the highest rate (as BBR's of the smallest
/// round trip).
const WINDOW: Nanos = 10 * SEC;
/// The model also fits where it is off by one part in this many of the round trip (chosen: twice
/// as exact as a sender's time threshold, RFC 9002, section 6.1.2).
const MARGIN_PART: Nanos = 16;
/// This many samples in a row have to fit: an end that does not spin but follows the other's
/// random bits looks like one that does (chosen: one in sixteen such ends passes).
const AGREED: u32 = 4;
/// No round trip is this many times shorter than that of the handshake (chosen: servers take long
/// for their first flight, but not that long).
const HANDSHAKE_PART: Nanos = 8;
/// After this long without a sample nothing is known (chosen: several round trips).
const SAMPLE_AGE: Nanos = SEC;
/// No round trip and no queue is longer (chosen: senders time out before that).
const LONGEST: Nanos = SEC;
/// More bytes are not counted at a time: an IP packet has less, and sums stay small.
const MOST_BYTES: u64 = 1 << 20;

/// A packet with an edge of the spin bit.
#[derive(Clone, Copy, Debug)]
struct Edge {
    real: Time,
    /// When the link took it up.
    at: Time,
    /// Bytes sent since the edge before.
    bytes: u64,
}

/// The model for one flow.
#[derive(Clone, Debug)]
pub(crate) struct Bottleneck {
    tunables: Tunables,
    /// When the link will have sent everything.
    free: Time,
    /// Since when it has had something to send.
    busy: Time,
    /// Smallest round trip of packets that did not wait.
    base: Least<WINDOW>,
    /// Smallest time for 1024 bytes.
    kib: Least<WINDOW>,
    replies: Recent<Time, REPLIES>,
    replied: u64,
    per_reply: Recent<u64, ROUNDS>,
    bytes_per_reply: u64,
    sent: u64,
    edge: Option<Edge>,
    /// The first packet of the handshake, and how long the reply to it took.
    opened: Option<Time>,
    handshake: Option<Nanos>,
    /// How many samples in a row agreed with the model, and when the last one came.
    agreed: (u32, Time),
    /// The shortest wait in the rounds before and now.
    waits: [Nanos; 2],
}

impl Bottleneck {
    pub fn new(now: Time, tunables: Tunables) -> Bottleneck {
        Bottleneck {
            tunables,
            free: now,
            busy: now,
            base: Least::new(now),
            kib: Least::new(now),
            replies: Recent::new(),
            replied: 0,
            per_reply: Recent::new(),
            bytes_per_reply: 0,
            sent: 0,
            edge: None,
            opened: None,
            handshake: None,
            agreed: (0, now),
            waits: [0; 2],
        }
    }

    /// A packet goes out; gives the time at which the link takes it up.
    pub fn sent(&mut self, now: Time, bytes: usize) -> Time {
        if self.free <= now {
            (self.free, self.busy) = (now, now);
        }
        let at = self.free;
        self.sent += bytes as u64;
        self.waits[1] = self.waits[1].min(at.since(now));
        self.fill(now, bytes as u64);
        at
    }

    /// Copies go out as well.
    pub fn copied(&mut self, now: Time, bytes: u64) {
        self.free = self.free.max(now);
        self.fill(now, bytes);
    }

    fn fill(&mut self, now: Time, bytes: u64) {
        let bytes = bytes.min(MOST_BYTES) as Nanos;
        let takes = self.kib.get().unwrap_or(0).saturating_mul(bytes) / 1024;
        self.free = (self.free + takes.min(LONGEST)).min(now + LONGEST);
    }

    /// The packet that was just sent has an edge of the spin bit.
    pub fn edge_out(&mut self, now: Time, at: Time) {
        self.edge = Some(Edge { real: now, at, bytes: self.sent });
        self.sent = 0;
        self.waits = [self.waits[1], Nanos::MAX];
    }

    /// A packet of the handshake, of the client's or `back` from the server.
    pub fn handshake(&mut self, now: Time, back: bool) {
        if !back {
            self.opened.get_or_insert(now);
        } else if let (None, Some(opened)) = (self.handshake, self.opened) {
            self.handshake = Some(now.since(opened));
        }
    }

    /// A reply came.
    pub fn replied(&mut self, now: Time) {
        if self.replies.last().is_some_and(|last| now.since(last) < OWN_FRAME_GAP) {
            return;
        }
        self.replies.push(now);
        self.replied += 1;
        let bytes = (self.bytes_per_reply * (REPLIES as u64 - 1)) as Nanos;
        if let Some(first) = self.replies.iter().min().filter(|_| self.replies.len() == REPLIES)
            && bytes > 0
        {
            self.kib.push(now, now.since(first).saturating_mul(1024) / bytes);
        }
    }

    /// The edge came back.
    pub fn edge_back(&mut self, now: Time) {
        let replied = core::mem::take(&mut self.replied);
        let Some(edge) = self.edge.take() else { return };
        // What went out between two edges was acknowledged until the second one was back.
        self.per_reply.push(edge.bytes.checked_div(replied).unwrap_or(0));
        if self.per_reply.len() == ROUNDS {
            self.bytes_per_reply = self.per_reply.quantile(1, 2).unwrap_or(0);
        }
        let waited = edge.at.since(edge.real);
        let sample = now.since(edge.at);
        let least = self.handshake.unwrap_or(0) / HANDSHAKE_PART;
        if waited == 0 && sample > least && sample < LONGEST {
            self.base.push(now, sample);
        }
        let Some(base) = self.base.get() else { return };
        let error = sample.saturating_sub(base).clamp(-LONGEST, LONGEST);
        let agrees = error.abs() <= self.tunables.uplink_margin().max(base / MARGIN_PART);
        self.agreed = (if agrees { self.agreed.0.saturating_add(1) } else { 0 }, now);
        if edge.real >= self.busy || error > 0 {
            self.free = (self.free.max(now) + error).max(now);
        }
    }

    /// The edges make no sense.
    pub fn edge_odd(&mut self) {
        self.edge = None;
        self.agreed.0 = 0;
    }

    /// The round trip from when the link takes a packet up, if inference can stand
    /// on it: the model fits, and the flow does not keep the link congested.
    pub fn round_trip(&self, now: Time) -> Option<Nanos> {
        let base = self.base.get()?;
        let agreed = self.agreed.0 >= AGREED && now.since(self.agreed.1) <= SAMPLE_AGE;
        let standing = self.waits[0].min(self.waits[1]);
        let worth =
            self.handshake.map_or(base, |rtt| rtt.min(base)) >= self.tunables.uplink_shortest();
        (worth && agreed && standing <= self.tunables.uplink_congested() + base / 2).then_some(base)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MS;

    const BYTES: usize = 1250;
    /// What a packet takes at 10 Mbit/s.
    const SERVICE: Nanos = MS;
    const RTT: Nanos = 50 * MS;

    /// Bursts of this many packets every 100 ms, over a link of 10 Mbit/s with a round
    /// trip of 50 ms beyond a queue of others' of `others(burst)`. Each second packet
    /// is acknowledged, the first of a burst has an edge. Gives the model at the end of
    /// it, and how much the times it gave differed from the true ones since `from`.
    fn bursts(burst: u64, count: u64, from: u64, others: fn(u64) -> Nanos) -> (Bottleneck, Nanos) {
        let mut model = Bottleneck::new(Time::ZERO, Tunables::DEFAULT);
        model.handshake(Time::ZERO, false);
        model.handshake(Time::ZERO + RTT, true);
        let mut worst = 0;
        for n in 0..count {
            let start = Time::from_nanos(1_000_000_000) + n as Nanos * 100 * MS;
            for k in 0..burst {
                let now = start + k as Nanos * 100 * US;
                let at = model.sent(now, BYTES);
                if k == 0 {
                    model.edge_out(now, at);
                }
                let truth = start + others(n) + k as Nanos * SERVICE;
                if n >= from {
                    worst = worst.max(at.since(truth).abs());
                }
            }
            for k in (1..burst).step_by(2) {
                let now = start + others(n) + k as Nanos * SERVICE + RTT;
                model.replied(now);
                if k == 1 {
                    model.edge_back(now);
                }
            }
        }
        (model, worst)
    }

    fn end(count: u64) -> Time {
        Time::from_nanos(1_000_000_000) + count as Nanos * 100 * MS
    }

    #[test]
    fn a_burst_waits_for_the_link() {
        let (model, worst) = bursts(20, 20, 8, |_| 0);
        assert!(worst < 2 * MS, "{worst}");
        let rtt = model.round_trip(end(20)).unwrap();
        assert!((rtt - RTT).abs() <= 2 * SERVICE, "{rtt}");
        assert_eq!(model.round_trip(end(40)), None, "nothing was heard of it for long");
    }

    #[test]
    fn where_others_have_a_queue_nothing_is_known() {
        let (model, _) = bursts(20, 20, 8, |n| if n < 10 { 0 } else { (n % 3) as Nanos * 10 * MS });
        assert_eq!(model.round_trip(end(20)), None);
    }

    #[test]
    fn a_short_way_is_left_alone() {
        let mut model = Bottleneck::new(Time::ZERO, Tunables::DEFAULT);
        for n in 0..20u64 {
            let now = Time::from_nanos(1_000_000_000 + n * 20_000_000);
            let at = model.sent(now, 100);
            model.edge_out(now, at);
            model.replied(now + 10 * MS);
            model.edge_back(now + 10 * MS);
        }
        assert_eq!(model.base.get(), Some(10 * MS));
        assert_eq!(model.round_trip(Time::from_nanos(1_400_000_000)), None);
    }

    #[test]
    fn no_clock_breaks_it() {
        let mut model = Bottleneck::new(Time::MAX, Tunables::DEFAULT);
        for n in 0..40 {
            let now = if n % 3 == 0 { Time::ZERO } else { Time::MAX };
            let at = model.sent(now, usize::MAX);
            model.edge_out(now, at);
            model.copied(Time::ZERO, u64::MAX);
            model.replied(Time::MAX);
            model.edge_back(if n % 2 == 0 { Time::MAX } else { Time::ZERO });
        }
    }
}
