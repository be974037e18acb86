// SPDX-License-Identifier: GPL-2.0-or-later
//! What the engine counts, and how the counters of several engines become one.
//!
//! Both sums take the counters apart by name, so that a new one does not compile
//! until it is decided what becomes of it.

use core::iter::Sum;
use core::ops::AddAssign;

/// Counters since the start or the last [`Engine::reset`](crate::Engine::reset).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets seen from servers to clients.
    pub packets_down: u64,
    /// Packets seen from clients to servers.
    pub packets_up: u64,
    /// Of both, those of QUIC flows.
    pub packets_quic: u64,
    /// Of both, those that were passed by unlooked at: not UDP, malformed,
    /// fragments, or of flows that are not QUIC.
    pub packets_other: u64,
    /// Of `packets_other`, those whose IP or UDP headers were malformed.
    pub packets_malformed: u64,
    /// IP bytes towards clients.
    pub bytes_down: u64,
    /// IP bytes towards servers.
    pub bytes_up: u64,
    /// Flows in the table that are QUIC.
    pub flows_active: u64,
    /// Of these, flows being watched and repaired.
    pub flows_protected: u64,
    /// Flows in the table that were let go.
    pub flows_bypassed: u64,
    /// Flows pushed out by newer ones.
    pub flows_evicted: u64,
    /// Losses inferred.
    pub losses_inferred: u64,
    /// Of these, losses that were reported and not inferred.
    pub losses_reported: u64,
    /// Losses seen to be repaired by a copy.
    pub losses_repaired: u64,
    /// Losses that no copy repaired: most likely the packets were lost before the router.
    pub losses_upstream: u64,
    /// Losses left alone because the hop showed congestion.
    pub losses_congestion: u64,
    /// Copies sent.
    pub resent_packets: u64,
    /// IP bytes of them.
    pub resent_bytes: u64,
    /// Copies not sent because a limit was reached: of the flow, of all flows, or of
    /// what may be sent to a client that has not replied.
    pub resent_limited: u64,
    /// Packets of which a report was asked for.
    pub reports_asked: u64,
    /// Of these, those of which none came in time.
    pub reports_missing: u64,
    /// Clients of which reports come.
    pub clients_reported: u64,
    /// Clients of which none came when packets to them were to be reported of.
    pub clients_unreported: u64,
    /// Reports of losses that were not believed, because the access point counted fewer.
    pub reports_doubted: u64,
    /// Episodes of holding.
    pub concealed_gaps: u64,
    /// Client packets held.
    pub concealed_held: u64,
    /// Episodes that ended by a deadline.
    pub concealed_late: u64,
    /// Client packets held right now.
    pub held_now: u64,
    /// Local round-trip time over the protected flows, median, microseconds.
    pub local_rtt_us_p50: u64,
    /// Local round-trip time over the protected flows, 99th percentile, microseconds.
    pub local_rtt_us_p99: u64,
    /// Packet bytes in the cache.
    pub cache_bytes: u64,
    /// Size of the cache in bytes.
    pub cache_limit: u64,
}

/// Adds up the counters of engines that see different packets. A quantile cannot be
/// summed: of those it is the largest.
impl AddAssign<&Stats> for Stats {
    fn add_assign(&mut self, other: &Stats) {
        let Stats {
            packets_down,
            packets_up,
            packets_quic,
            packets_other,
            packets_malformed,
            bytes_down,
            bytes_up,
            flows_active,
            flows_protected,
            flows_bypassed,
            flows_evicted,
            losses_inferred,
            losses_reported,
            losses_repaired,
            losses_upstream,
            losses_congestion,
            resent_packets,
            resent_bytes,
            resent_limited,
            reports_asked,
            reports_missing,
            reports_doubted,
            clients_reported,
            clients_unreported,
            concealed_gaps,
            concealed_held,
            concealed_late,
            held_now,
            local_rtt_us_p50,
            local_rtt_us_p99,
            cache_bytes,
            cache_limit,
        } = other;
        self.packets_down += packets_down;
        self.packets_up += packets_up;
        self.packets_quic += packets_quic;
        self.packets_other += packets_other;
        self.packets_malformed += packets_malformed;
        self.bytes_down += bytes_down;
        self.bytes_up += bytes_up;
        self.flows_active += flows_active;
        self.flows_protected += flows_protected;
        self.flows_bypassed += flows_bypassed;
        self.flows_evicted += flows_evicted;
        self.losses_inferred += losses_inferred;
        self.losses_reported += losses_reported;
        self.losses_repaired += losses_repaired;
        self.losses_upstream += losses_upstream;
        self.losses_congestion += losses_congestion;
        self.resent_packets += resent_packets;
        self.resent_bytes += resent_bytes;
        self.resent_limited += resent_limited;
        self.reports_asked += reports_asked;
        self.reports_missing += reports_missing;
        self.reports_doubted += reports_doubted;
        self.clients_reported += clients_reported;
        self.clients_unreported += clients_unreported;
        self.concealed_gaps += concealed_gaps;
        self.concealed_held += concealed_held;
        self.concealed_late += concealed_late;
        self.held_now += held_now;
        self.local_rtt_us_p50 = self.local_rtt_us_p50.max(*local_rtt_us_p50);
        self.local_rtt_us_p99 = self.local_rtt_us_p99.max(*local_rtt_us_p99);
        self.cache_bytes += cache_bytes;
        self.cache_limit += cache_limit;
    }
}

impl<'a> Sum<&'a Stats> for Stats {
    fn sum<I: Iterator<Item = &'a Stats>>(stats: I) -> Stats {
        stats.fold(Stats::default(), |mut sum, stats| {
            sum += stats;
            sum
        })
    }
}

impl Stats {
    /// Adds what a mirrored engine has done, which sees the same packets: these, their
    /// flows and the round trips are counted by the other engine alone.
    pub(crate) fn add_mirrored(&mut self, mirror: &Stats) {
        let Stats {
            packets_down: _,
            packets_up: _,
            packets_quic: _,
            packets_other: _,
            packets_malformed: _,
            bytes_down: _,
            bytes_up: _,
            flows_active: _,
            flows_protected: _,
            flows_bypassed: _,
            flows_evicted: _,
            losses_inferred,
            losses_reported,
            losses_repaired,
            losses_upstream,
            losses_congestion,
            resent_packets,
            resent_bytes,
            resent_limited,
            reports_asked,
            reports_missing,
            reports_doubted,
            clients_reported: _,
            clients_unreported: _,
            concealed_gaps,
            concealed_held,
            concealed_late,
            held_now,
            local_rtt_us_p50: _,
            local_rtt_us_p99: _,
            cache_bytes,
            cache_limit,
        } = mirror;
        self.losses_inferred += losses_inferred;
        self.losses_reported += losses_reported;
        self.losses_repaired += losses_repaired;
        self.losses_upstream += losses_upstream;
        self.losses_congestion += losses_congestion;
        self.resent_packets += resent_packets;
        self.resent_bytes += resent_bytes;
        self.resent_limited += resent_limited;
        self.reports_asked += reports_asked;
        self.reports_missing += reports_missing;
        self.reports_doubted += reports_doubted;
        self.concealed_gaps += concealed_gaps;
        self.concealed_held += concealed_held;
        self.concealed_late += concealed_late;
        self.held_now += held_now;
        self.cache_bytes += cache_bytes;
        self.cache_limit += cache_limit;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_summed_and_of_round_trips_the_largest_stays() {
        let few = Stats { packets_up: 1, held_now: 2, local_rtt_us_p50: 900, ..Stats::default() };
        let many = Stats { packets_up: 5, held_now: 1, local_rtt_us_p50: 400, ..Stats::default() };
        let sum: Stats = [few, many].iter().sum();
        let expected =
            Stats { packets_up: 6, held_now: 3, local_rtt_us_p50: 900, ..Stats::default() };
        assert_eq!(sum, expected);
        assert_eq!([].iter().sum::<Stats>(), Stats::default());
    }

    #[test]
    fn a_packet_that_both_engines_see_is_counted_once() {
        let mut down = Stats { packets_up: 5, resent_packets: 1, ..Stats::default() };
        let mirror = Stats { packets_up: 5, resent_packets: 2, ..Stats::default() };
        down.add_mirrored(&mirror);
        assert_eq!(down, Stats { packets_up: 5, resent_packets: 3, ..Stats::default() });
    }
}
