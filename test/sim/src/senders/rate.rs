// SPDX-License-Identifier: GPL-2.0-or-later
//! How fast packets are delivered, measured from one packet's sending to its acknowledgement
//! (draft-ietf-ccwg-bbr, section 4.5.2).

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// A packet on its way. With it, what was delivered when it was sent, when the last of that was
/// acknowledged, and when that had been sent.
#[derive(Clone, Copy, Debug)]
struct Packet {
    sent: Instant,
    delivered: u64,
    delivered_at: Instant,
    first_sent: Instant,
    in_flight: u64,
}

/// What an acknowledgement tells.
#[derive(Clone, Copy, Debug)]
pub struct Sample {
    /// Bytes delivered since its packet was sent, and over how long.
    pub delivered: u64,
    /// The longer of the times between sendings and between acknowledgements.
    pub interval: Duration,
    /// Its round trip.
    pub rtt: Duration,
    /// What had been delivered, and was on its way, when it was sent.
    pub prior: u64,
    pub in_flight: u64,
}

#[derive(Clone, Debug, Default)]
pub struct Rate {
    packets: VecDeque<Packet>,
    /// Bytes acknowledged so far.
    pub delivered: u64,
    delivered_at: Option<Instant>,
    first_sent: Option<Instant>,
    newest: Option<Packet>,
}

impl Rate {
    pub fn sent(&mut self, now: Instant, in_flight: u64, bytes: u64) {
        if in_flight == 0 {
            (self.delivered_at, self.first_sent) = (Some(now), Some(now));
        }
        self.packets.push_back(Packet {
            sent: now,
            delivered: self.delivered,
            delivered_at: self.delivered_at.unwrap_or(now),
            first_sent: self.first_sent.unwrap_or(now),
            in_flight: in_flight + bytes,
        });
    }

    pub fn acknowledged(&mut self, now: Instant, sent: Instant, bytes: u64) {
        self.delivered += bytes;
        self.delivered_at = Some(now);
        // Packets before it are acknowledged already or lost, or nearly so.
        let place = self.packets.partition_point(|packet| packet.sent < sent);
        let newest = self.newest.is_none_or(|newest| sent >= newest.sent);
        let packet = self.packets.get(place).filter(|packet| packet.sent == sent && newest);
        if let Some(packet) = packet {
            self.newest = Some(*packet);
            self.first_sent = Some(packet.sent);
        }
    }

    /// All of one acknowledgement has been told.
    pub fn sample(&mut self, now: Instant) -> Option<Sample> {
        let packet = self.newest.take()?;
        let keep = self.packets.partition_point(|other| other.sent + KEPT < packet.sent);
        self.packets.drain(..keep);
        let sending = packet.sent.saturating_duration_since(packet.first_sent);
        let acknowledging = now.saturating_duration_since(packet.delivered_at);
        Some(Sample {
            delivered: self.delivered - packet.delivered,
            interval: sending.max(acknowledging),
            rtt: now.saturating_duration_since(packet.sent),
            prior: packet.delivered,
            in_flight: packet.in_flight,
        })
    }
}

/// Packets are remembered for so long after later ones were acknowledged.
const KEPT: Duration = Duration::from_secs(1);
