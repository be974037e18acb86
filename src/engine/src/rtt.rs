//! Round-trip time of the last hop as one flow's replies show it.
//!
//! Everything else stands on this figure: it says which forwarded packet a
//! reply answers. Tracking the nearest packet alone locks onto the true value
//! plus a few packet spacings, so the estimate is kept near what a probe from
//! the router measures. For clients that answer no probe there are the start
//! of a burst and the time from a resend to the reply that shows it arrived.

use crate::hop::Ping;
use crate::recent::Recent;
use crate::time::{MS, Nanos, SEC, Time, US};

/// A reply this soon answers an earlier packet, not the one just sent.
const SHORTEST_SAMPLE: Nanos = 500 * US;
/// From the echo's round trip to that of a QUIC reply: the client's stack and
/// application have to run.
const CLIENT_LATENCY: Nanos = 250 * US;
/// Samples from heals older than this do not outrank those of bursts.
const HEAL_SAMPLE_AGE: Nanos = 3 * SEC;
/// Delayed acknowledgements come after 25 ms (RFC 9000's default
/// max_ack_delay): a burst after such a pause may meet one.
const DELAYED_ACK: (Nanos, Nanos) = (23 * MS, 27 * MS);

#[derive(Clone, Debug)]
pub(crate) struct LocalRtt {
    rtt: Nanos,
    /// Of replies from the nearest packet's answer. Where packets come closer
    /// together than the hop's delay varies this is too small.
    deviation: Nanos,
    /// Of the probes.
    spread: Nanos,
    /// First server packet to the next client packet; includes TLS work, so it
    /// is an upper bound.
    handshake: Nanos,
    awaiting_handshake: Option<Time>,
    burst_start: Option<Time>,
    bursts: Recent<Nanos, 16>,
    heals: Recent<Nanos, 5>,
    last_heal: Time,
    probed: bool,
}

impl LocalRtt {
    pub fn new() -> LocalRtt {
        LocalRtt {
            rtt: 0,
            deviation: 0,
            spread: 0,
            handshake: 0,
            awaiting_handshake: None,
            burst_start: None,
            bursts: Recent::new(),
            heals: Recent::new(),
            last_heal: Time::ZERO,
            probed: false,
        }
    }

    /// The estimate; 0 while there is none.
    pub fn get(&self) -> Nanos {
        self.rtt
    }

    pub fn known(&self) -> bool {
        self.rtt > 0
    }

    /// Mean deviation of replies from the estimate.
    pub fn deviation(&self) -> Nanos {
        self.deviation.max(self.spread)
    }

    /// How much later than the estimate a reply may come and still be on time.
    pub fn margin(&self) -> Nanos {
        2 * self.deviation() + SHORTEST_SAMPLE
    }

    /// Whether replies keep so close to the estimate that they name their
    /// packet.
    pub fn sharp(&self) -> bool {
        self.deviation() < 180 * US
    }

    /// Replies this far from a moment still belong to it, when it matters.
    pub fn tolerance(&self) -> Nanos {
        400 * US + 3 * self.deviation()
    }

    /// Probes bound the estimate and tell how the hop's delay varies.
    pub fn bound(&mut self, ping: Ping) {
        let Ping { smallest, median, spread } = ping;
        self.probed = true;
        self.spread = spread;
        // More would let in the true value plus a packet's time.
        let upper = median + 3 * spread + 700 * US;
        if self.rtt < smallest || self.rtt > upper {
            self.rtt = median + CLIENT_LATENCY;
            self.deviation = self.deviation.min(self.rtt / 10);
        }
    }

    /// Keeps the estimate near a round trip that is known well.
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
        let bound = self.handshake * 6 / 5;
        let quiet = idle >= (bound + 2 * MS).max(6 * MS);
        let answered = last_up.is_some_and(|up| up.since(last_down) >= 20 * MS);
        let delayed_ack = idle >= DELAYED_ACK.0 && idle <= DELAYED_ACK.1 + bound && !answered;
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
                self.deviation = self.rtt / 20;
            }
        }
    }

    /// Any reply: the first one after the start of a burst is a sample.
    /// `decimating` clients answer the tenth packet, so it tells nothing.
    pub fn burst_reply(&mut self, now: Time, decimating: bool) {
        let Some(start) = self.burst_start.take() else { return };
        let sample = now.since(start);
        if self.probed
            || decimating
            || self.rtt == 0
            || !(SHORTEST_SAMPLE..80 * MS).contains(&sample)
        {
            return;
        }
        self.bursts.push(sample);
        if self.heals.len() >= 3 && now.since(self.last_heal) < HEAL_SAMPLE_AGE {
            return;
        }
        if let Some(estimate) = lowest_cluster(&self.bursts)
            && estimate <= self.handshake * 6 / 5 + MS / 2
            && (estimate - self.rtt).abs() > 400 * US + self.rtt.min(estimate) / 4
        {
            self.rtt = estimate;
            self.deviation = self.deviation.min(estimate / 10);
        }
    }

    /// A reply came `error` later than the nearest packet's answer was due.
    pub fn track(&mut self, error: Nanos) {
        if self.rtt > 0 && error.abs() < self.rtt * 35 / 100 {
            self.rtt += error * 3 / 100;
            self.deviation += (error.abs() - self.deviation) * 5 / 100;
        }
    }

    /// A single hole was filled `sample` after its one resend.
    pub fn healed(&mut self, now: Time, sample: Nanos, certain: bool) {
        if !self.probed && certain && sample > SHORTEST_SAMPLE {
            self.heals.push(sample);
            self.last_heal = now;
            if let Some(median) = self.heals.quantile(1, 2).filter(|_| self.heals.len() >= 3)
                && (median - self.rtt).abs() > 300 * US + self.rtt.min(median) * 15 / 100
            {
                self.rtt = median;
                self.deviation = self.deviation.min(median / 10);
            }
        }
        if sample > self.rtt / 2 && sample < 2 * self.rtt {
            let error = sample - self.rtt;
            self.rtt += error / 8;
            self.deviation += (error.abs() - self.deviation) / 8;
        }
    }
}

/// The median of the lowest group of samples that lie close together; single
/// low ones are replies to earlier packets.
fn lowest_cluster(samples: &Recent<Nanos, 16>) -> Option<Nanos> {
    let mut sorted = [0; 16];
    let mut len = 0;
    for sample in samples.iter() {
        sorted[len] = sample;
        len += 1;
    }
    let sorted = &mut sorted[..len];
    sorted.sort_unstable();
    let start = sorted.windows(2).position(|w| w[1] - w[0] <= 300 * US + w[0] / 10)?;
    let low = &sorted[start..];
    let width = low[0] * 135 / 100 + 200 * US;
    let cluster = low.iter().take_while(|s| **s <= width).count();
    Some(low[cluster / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    fn after_handshake(us: u64) -> LocalRtt {
        let mut rtt = LocalRtt::new();
        rtt.sent(at(0), None, None);
        rtt.handshake_reply(at(us));
        rtt
    }

    #[test]
    fn the_probe_bounds_the_estimate() {
        let mut rtt = after_handshake(13_000);
        assert_eq!(rtt.get(), 13 * MS);
        rtt.bound(Ping { smallest: 2 * MS, median: 2 * MS, spread: 0 });
        assert_eq!(rtt.get(), 2250 * US);
        for _ in 0..200 {
            rtt.track(700 * US);
            rtt.bound(Ping { smallest: 2 * MS, median: 2 * MS, spread: 0 });
        }
        assert!(rtt.get() < 2900 * US, "an alias one spacing high is refused");
    }

    #[test]
    fn bursts_correct_a_handshake_that_took_long() {
        let mut rtt = after_handshake(7_000);
        for n in 0..4u64 {
            let start = 1_000_000 + n * 100_000;
            rtt.sent(at(start), Some(at(start - 60_000)), Some(at(start - 30_000)));
            rtt.burst_reply(at(start + 2_300 + n * 20), false);
        }
        assert!((rtt.get() - 2_330 * US).abs() < 50 * US, "{}", rtt.get());
    }

    #[test]
    fn heals_outrank_bursts_without_a_probe() {
        let mut rtt = after_handshake(7_000);
        for n in 0..3 {
            rtt.healed(at(n * 1000), 2_400 * US, true);
        }
        assert!((rtt.get() - 2_400 * US).abs() < 10 * US);
    }

    #[test]
    fn tracks_slowly_and_ignores_what_is_far() {
        let mut rtt = after_handshake(2_000);
        rtt.track(1_500 * US);
        assert_eq!(rtt.get(), 2 * MS);
        rtt.track(100 * US);
        assert_eq!(rtt.get(), 2_003 * US);
    }
}
