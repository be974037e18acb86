// SPDX-License-Identifier: GPL-2.0-or-later
//! Round-trip time of the last hop as one flow's replies show it.
//!
//! Everything else stands on this figure: it says which forwarded packet a
//! reply acknowledges. Tracking the nearest packet alone locks onto the true value
//! plus a few packet spacings, so the estimate is kept near what a probe from
//! the router measures. For clients that reply to no probe there are the start
//! of a burst, and the time from a copy to the reply that shows that it arrived.

use crate::measure::bursts::{BURSTS, Sample, lowest_cluster, small};
use crate::measure::hop::Ping;
use crate::measure::margin::Margin;
use crate::store::recent::Recent;
use crate::time::{MS, Nanos, SEC, Time, US, percent};
use crate::tunables::Tunables;

/// A reply that is off by more than this share of the round trip is not that packet's
/// (chosen: about a third, so that a hop of 1 ms does not take in the packets around it).
const AIM_PERCENT: Nanos = 35;
/// ... but this much is always allowed (chosen: below it schedulers decide, not the hop).
const AIM_LEAST: Nanos = 100 * US;
/// A reply that comes sooner was triggered by an earlier packet than the one just sent
/// (chosen: below what an unloaded Wi-Fi hop and a client's stack take together).
const SHORTEST_SAMPLE: Nanos = 500 * US;
/// A reply that comes later has waited for a timer (chosen: about three times the default
/// max_ack_delay, RFC 9000, section 18.2).
const LONGEST_SAMPLE: Nanos = 80 * MS;
/// From the round trip of an echo to that of a QUIC reply (chosen: the client's kernel
/// replies to the one, its application has to run for the other).
pub(crate) const CLIENT_LATENCY: Nanos = 250 * US;
/// Packets that are further apart are named rightly by an estimate that is wrong by what a prompt host
/// does not take (chosen: twice that, as the nearest packet is no further than half of it).
pub(crate) const CLOSE: Nanos = 2 * CLIENT_LATENCY;
/// Samples from repairs older than this do not outrank those of bursts (chosen: within a few
/// seconds somebody with a phone is in another room).
const REPAIR_SAMPLE_AGE: Nanos = 3 * SEC;
/// Samples from repairs before their median counts (chosen: the fewest of which one may be
/// wrong).
const REPAIR_SAMPLES: usize = 3;
/// A burst after a pause this long may meet the acknowledgement of the packet before it,
/// delayed by the default max_ack_delay of 25 ms (RFC 9000, section 18.2), give or take 2 ms
/// for timers.
const DELAYED_ACK: core::ops::RangeInclusive<Nanos> = 23 * MS..=27 * MS;
/// Once a reply has come this much after the last packet, none is delayed any more (chosen:
/// a little less than the default max_ack_delay).
const ACK_WAS_DELAYED: Nanos = 20 * MS;
/// A burst begins when nothing was sent for the handshake's round trip and this much more
/// (chosen: replies to what went before have come by then) ...
const BURST_PAUSE: Nanos = 2 * MS;
/// ... and for no less than this (chosen: packets of one burst are rarely further apart).
const BURST_PAUSE_LEAST: Nanos = 6 * MS;
/// The handshake's round trip includes cryptography, so none is longer than this share of
/// it and [`HANDSHAKE_SLACK`] (chosen: room for the hop's own jitter).
const HANDSHAKE_PERCENT: Nanos = 120;
const HANDSHAKE_SLACK: Nanos = 500 * US;
/// Samples replace an estimate from which they differ by more than a fixed time and a
/// percentage (chosen: a burst may meet a busy client, a copy is nearly alone).
const BURST_DIFFERS: (Nanos, Nanos) = (400 * US, 25);
const REPAIR_DIFFERS: (Nanos, Nanos) = (300 * US, 15);
/// What one reply moves the estimate and its deviation by, in percent (chosen: slower than
/// the eighth and the quarter of RFC 9002, section 5.3, because most replies may belong to
/// another packet than the nearest).
const TRACK_PERCENT: Nanos = 3;
const TRACK_DEVIATION_PERCENT: Nanos = 5;
/// What a repair moves both by, one part in this many (RFC 9002, section 5.3).
const REPAIR_PART: Nanos = 8;
/// A new estimate deviates by no more than one part in this many of it (chosen: what the old
/// one deviated by says little about the new one).
const NEW_DEVIATION_PART: Nanos = 10;
/// The deviation assumed after the handshake, one part in this many of its round trip (chosen:
/// half of [`NEW_DEVIATION_PART`], as nothing was seen to vary yet).
const FIRST_DEVIATION_PART: Nanos = 20;

/// Replies by chance are a quarter of the distance of packets from the nearest one's on average; those
/// that keep within one part in this many of it do not come by chance (chosen: with a host that is half
/// a millisecond late, and packets a millisecond apart, it is an eighth).
const PUNCTUAL_PART: Nanos = 6;
/// Hosts read packets together that are closer than this (chosen: what a prompt one takes until it runs).
const READ_TOGETHER: Nanos = 150 * US;
/// Times from copies to their replies that are remembered, and before they tell how late a host is, and that
/// the estimate is wrong by a packet (chosen: those of a second at 100 Mbit/s, and the fewest of which one may
/// be wrong, and two).
const ANSWERS: usize = 16;
const ENOUGH_ANSWERS: usize = 3;
const SETTLED: usize = 5;
/// No host is taken to be later than this (chosen: twice what those of the simulator are, which
/// behave as real ones; what is later than that has other causes).
pub(crate) const MOST_LATENESS: Nanos = MS;

/// When packets are replied to, counted from when they were sent on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Replies {
    /// No sooner than this, ...
    pub soonest: Nanos,
    /// ... half of them after this, ...
    pub usual: Nanos,
    /// ... and nearly all within this after the soonest.
    pub lateness: Nanos,
}

#[derive(Clone, Debug)]
pub(crate) struct LocalRtt {
    tunables: Tunables,
    rtt: Nanos,
    /// Of replies from when the reply to the nearest packet was due. Where packets come closer
    /// together than the hop's delay varies this is too small.
    deviation: Nanos,
    /// How far probes are from their median.
    spread: Nanos,
    /// First server packet to the next client packet; includes TLS work, so it
    /// is an upper bound.
    handshake: Nanos,
    awaiting_handshake: Option<Time>,
    burst_start: Option<Time>,
    bursts: Recent<Sample, BURSTS>,
    repairs: Recent<Nanos, 5>,
    last_repair: Time,
    probed: bool,
    /// Replies come nearer to when one to a packet is due than chance would have it.
    punctual: bool,
    /// The smallest of the probes; 0 before the first.
    smallest: Nanos,
    answers: Recent<Sample, ANSWERS>,
    /// The least, the middle and the third quarter of them, kept because every reply asks.
    quartiles: Option<[Nanos; 3]>,
}

impl LocalRtt {
    pub fn new(tunables: Tunables) -> LocalRtt {
        LocalRtt {
            tunables,
            rtt: 0,
            deviation: 0,
            spread: 0,
            handshake: 0,
            awaiting_handshake: None,
            burst_start: None,
            bursts: Recent::new(),
            repairs: Recent::new(),
            last_repair: Time::ZERO,
            probed: false,
            punctual: false,
            smallest: 0,
            answers: Recent::new(),
            quartiles: None,
        }
    }

    /// The estimate; 0 while there is none.
    pub fn get(&self) -> Nanos {
        self.rtt
    }

    pub fn known(&self) -> bool {
        self.rtt > 0
    }

    /// Mean deviation of replies from the estimate. On a hop that is hardly faster than the way before
    /// it, probes wait for what is under way, and packets do not; so where replies are punctual, that of
    /// probes says nothing.
    // Inlined it takes 500 bytes more on MIPS.
    #[inline(never)]
    pub fn deviation(&self) -> Nanos {
        if self.punctual { self.deviation } else { self.deviation.max(self.spread) }
    }

    /// Takes note whether replies are punctual, as packets follow each other this closely.
    pub fn compare(&mut self, spacing: Nanos) {
        self.punctual = self.deviation * PUNCTUAL_PART < spacing;
    }

    /// Whether replies keep so close to the estimate that they name their
    /// packet.
    pub fn sharp(&self) -> bool {
        self.deviation() < self.tunables.sharp_deviation()
    }

    /// Whether replies keep so little time that none names its packet, and none proves anything
    /// by when it comes.
    pub fn blurred(&self) -> bool {
        let share = percent(self.rtt, self.tunables.blurred_percent());
        self.deviation() > share.max(self.tunables.blurred_deviation())
    }

    /// How far from the moment at which it is due a reply may come.
    // Inlined in thirty places it takes 1,500 bytes more on MIPS, where flash is small.
    #[inline(never)]
    pub fn within(&self, margin: Margin) -> Nanos {
        margin.at(self.deviation(), self.tunables)
    }

    /// How close to a packet's time a reply has to come to be that packet's. On a short hop
    /// this is no more than a share of the round trip.
    pub fn aim(&self) -> Nanos {
        self.within(Margin::Near).min(percent(self.rtt, AIM_PERCENT) + AIM_LEAST)
    }

    /// When a packet is replied to, as copies were; none before there were enough of them.
    pub fn replies(&self) -> Option<Replies> {
        let [least, middle, most] = self.quartiles?;
        let soonest = self.soonest(if self.probed { least.min(self.prompt()) } else { least });
        let lateness = ((most - soonest) * 5 / 4).clamp(0, MOST_LATENESS);
        Some(Replies { soonest, usual: middle.min(soonest + lateness), lateness })
    }

    /// When packets are replied to, before copies have told, as far as probes do.
    // Inlined it takes 180 bytes more on MIPS.
    #[inline(never)]
    pub fn expected(&self) -> Option<Replies> {
        let soonest = self.soonest(self.prompt());
        let (usual, lateness) = (soonest + CLIENT_LATENCY, 2 * CLIENT_LATENCY);
        self.probed.then_some(Replies { soonest, usual, lateness })
    }

    /// What the fastest probe took, and a prompt host takes.
    fn prompt(&self) -> Nanos {
        self.smallest + CLIENT_LATENCY / 2
    }

    /// No sooner than the fastest probe, and no later than this or than the estimate.
    fn soonest(&self, least: Nanos) -> Nanos {
        least.min(self.rtt - self.deviation).max(self.smallest)
    }

    /// Where the estimate is nearer to what it would be with the packet before or after than to what
    /// copies took, it is that which they took: replies tell packets that are `spacing` apart by nothing
    /// else. Closer ones they do not tell at all; where so many come a caller reads several at a time, but
    /// not the reply to a copy. Some gaps are seen to close only by a later reply, so a few copies do not tell.
    pub fn leave_alias(&mut self, spacing: Nanos) {
        let off = |middle: Nanos| (middle - self.rtt).abs() > spacing / 2;
        if let Some(middle) = self.quartiles.map(|[_, middle, _]| middle.max(self.smallest))
            && spacing >= self.tunables.window_spacing()
            && self.answers.len() >= SETTLED
            && off(middle)
        {
            self.believe(middle);
        }
    }

    /// A copy was replied to after this time.
    // Inlined it takes 100 bytes more on MIPS.
    #[inline(never)]
    fn answered(&mut self, sample: Nanos) {
        self.answers.push(small(sample));
        let enough = self.answers.len() >= ENOUGH_ANSWERS;
        let quantile = |part| self.answers.quantile(part, 4).map_or(sample, Nanos::from);
        self.quartiles = enough.then(|| [0, 2, 3].map(quantile));
    }

    /// Probes bound the estimate and tell how the hop's delay varies. Until copies have been replied to they
    /// do so the more closely, the closer packets follow each other, of which `spacing` tells, and most closely
    /// the first time: what a handshake took, in which the client makes keys, is too long by as much as a packet,
    /// or several. Once copies have told, an estimate goes up no further than probes say that it must.
    pub fn bound(&mut self, ping: Ping, spacing: Option<Nanos>) {
        let Ping { smallest, median, spread } = ping;
        let first = !core::mem::replace(&mut self.probed, true);
        self.smallest = smallest;
        self.spread = spread;
        let spacing = spacing.filter(|_| self.quartiles.is_none());
        let margin = match spacing {
            None => Margin::Probed,
            Some(_) if first => Margin::Packet(CLIENT_LATENCY),
            Some(apart) => Margin::Packet(CLIENT_LATENCY + apart),
        };
        let upper = median + margin.at(spread, self.tunables);
        if self.rtt < smallest || self.rtt > upper {
            let told = self.rtt < smallest && self.quartiles.is_some();
            self.believe(if told { smallest } else { median + CLIENT_LATENCY });
        }
    }

    /// No round trip of the hop alone is longer.
    fn handshake_bound(&self) -> Nanos {
        percent(self.handshake, HANDSHAKE_PERCENT)
    }

    /// Whether a value differs from the estimate by more than a time and a percentage.
    fn differs(&self, value: Nanos, (time, share): (Nanos, Nanos)) -> bool {
        (value - self.rtt).abs() > time + percent(self.rtt.min(value), share)
    }

    /// Replaces the estimate.
    // Inlined it takes 190 bytes more on MIPS.
    #[inline(never)]
    fn believe(&mut self, estimate: Nanos) {
        self.rtt = estimate;
        self.deviation = self.deviation.min(estimate / NEW_DEVIATION_PART);
    }

    /// Replies are about packets that were sent so much earlier than it seemed. That is the client's word, so
    /// it goes no further than any reply's time does.
    pub fn lengthen(&mut self, by: Nanos) {
        self.believe((self.rtt + by).min(LONGEST_SAMPLE.max(self.rtt)));
    }

    /// Keeps the estimate near a round trip that is known well.
    // Inlined it takes 110 bytes more on MIPS.
    #[inline(never)]
    pub fn near(&mut self, rtt: Nanos) {
        let slack = CLIENT_LATENCY;
        let near = self.rtt.clamp(rtt - slack, rtt + slack);
        if near != self.rtt {
            self.rtt = near;
            self.deviation = self.deviation.min(slack);
        }
    }

    /// A packet is on its way to the client. `last_down` and `last_up` are the
    /// times of the packets before it.
    pub fn sent(&mut self, now: Time, last_down: Option<Time>, last_up: Option<Time>) {
        if self.handshake == 0 {
            self.awaiting_handshake.get_or_insert(now);
            return;
        }
        let Some(last_down) = last_down else { return };
        let idle = now.since(last_down);
        // Most packets are, and need no look at the rest.
        if idle < BURST_PAUSE_LEAST {
            return;
        }
        let bound = self.handshake_bound();
        let quiet = idle >= bound + BURST_PAUSE;
        let replied = last_up.is_some_and(|up| up.since(last_down) >= ACK_WAS_DELAYED);
        let may_meet = *DELAYED_ACK.start()..=*DELAYED_ACK.end() + bound;
        let delayed_ack = may_meet.contains(&idle) && !replied;
        if quiet && !delayed_ack {
            self.burst_start = Some(now);
        }
    }

    /// A reply during the handshake.
    pub fn handshake_reply(&mut self, now: Time) {
        if let Some(sent) = self.awaiting_handshake.take() {
            self.handshake = now.since(sent).max(1);
            if self.rtt == 0 {
                self.rtt = self.handshake;
                self.deviation = self.rtt / FIRST_DEVIATION_PART;
            }
        }
    }

    /// Any reply: the first one after the start of a burst is a sample.
    /// `decimating` clients reply to the tenth packet, so it tells nothing.
    pub fn burst_reply(&mut self, now: Time, decimating: bool) {
        let Some(start) = self.burst_start.take() else { return };
        let sample = now.since(start);
        if self.probed
            || decimating
            || self.rtt == 0
            || !(SHORTEST_SAMPLE..LONGEST_SAMPLE).contains(&sample)
        {
            return;
        }
        self.bursts.push(small(sample));
        if self.repairs.len() >= REPAIR_SAMPLES && now.since(self.last_repair) < REPAIR_SAMPLE_AGE {
            return;
        }
        if let Some(estimate) = lowest_cluster(&self.bursts)
            && estimate <= self.handshake_bound() + HANDSHAKE_SLACK
            && self.differs(estimate, BURST_DIFFERS)
        {
            self.believe(estimate);
        }
    }

    /// No round trip is longer than this. Copies tell more, and packets that are closer are read
    /// together.
    pub fn at_most(&mut self, longest: Nanos, spacing: Nanos) {
        let tells = self.probed && self.quartiles.is_none() && spacing >= READ_TOGETHER;
        if tells && self.rtt > longest + spacing / 2 {
            self.believe(longest);
        }
    }

    /// A reply came `error` later than the reply to the nearest packet was due.
    pub fn track(&mut self, error: Nanos) {
        if self.rtt > 0 && error.abs() < percent(self.rtt, AIM_PERCENT) {
            self.rtt += percent(error, TRACK_PERCENT);
            self.deviation += percent(error.abs() - self.deviation, TRACK_DEVIATION_PERCENT);
        }
    }

    /// A single gap has closed `sample` after its one copy was sent.
    pub fn repaired(&mut self, now: Time, sample: Nanos, certain: bool) {
        if !self.probed && certain && sample > SHORTEST_SAMPLE {
            self.repairs.push(sample);
            self.last_repair = now;
            let enough = self.repairs.len() >= REPAIR_SAMPLES;
            if let Some(median) = self.repairs.quantile(1, 2).filter(|_| enough)
                && self.differs(median, REPAIR_DIFFERS)
            {
                self.believe(median);
            }
        }
        if sample > self.rtt / 2 && sample < 2 * self.rtt {
            self.answered(sample);
            let error = sample - self.rtt;
            self.rtt += error / REPAIR_PART;
            self.deviation += (error.abs() - self.deviation) / REPAIR_PART;
        }
    }
}

#[cfg(test)]
mod tests;
