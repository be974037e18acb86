// SPDX-License-Identifier: GPL-2.0-or-later
//! NewReno whose slow start ends when round trips become longer: HyStart, as quic-go's and Chromium's
//! servers have it, and with thresholds that RFC 9406 has as well; once with the windows of RFC 9002, and
//! once with quic-go's.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory};

use super::{INITIAL_WINDOW, PACKET};

/// Samples of a round that are looked at (RFC 9406, section 4.3: N_RTT_SAMPLE).
const SAMPLES: u32 = 8;
/// How much longer the shortest of them is when slow start ends: an eighth, within these (RFC 9406,
/// section 4.3: MIN_RTT_THRESH, MAX_RTT_THRESH and MIN_RTT_DIVISOR).
const LEAST_INCREASE: Duration = Duration::from_millis(4);
const MOST_INCREASE: Duration = Duration::from_millis(16);
const INCREASE_PART: u32 = 8;
/// A window from which on it may end (quic-go: hybridStartLowWindow).
const LOW_WINDOW: u64 = 16 * PACKET;

/// quic-go's packets once it knows the path's MTU, and before (quic-go: maxPacketSize, as the path has
/// it, and InitialPacketSize).
const QUIC_GO_PACKET: u64 = 1452;
const QUIC_GO_FIRST_PACKET: u64 = 1280;
/// Its first window in packets (quic-go: initialCongestionWindow).
const QUIC_GO_WINDOW: u64 = 32;

/// Makes [`Hystart`].
#[derive(Clone, Copy, Debug)]
pub struct HystartConfig {
    initial_window: u64,
    /// Bytes by which a window grows in a round trip.
    packet: u64,
    /// What is left of a window after a loss, percent.
    kept_percent: u64,
}

impl HystartConfig {
    /// RFC 9002: ten packets at first, and half of the window after a loss (section 7.3.2).
    pub const RFC: HystartConfig =
        HystartConfig { initial_window: INITIAL_WINDOW, packet: PACKET, kept_percent: 50 };
    /// quic-go 0.65: 32 packets at first, and 0.7 of the window after a loss (renoBeta). It takes back a
    /// cut whose losses prove spurious, which quinn-proto does not tell a controller of.
    pub const QUIC_GO: HystartConfig = HystartConfig {
        initial_window: QUIC_GO_WINDOW * QUIC_GO_FIRST_PACKET,
        packet: QUIC_GO_PACKET,
        kept_percent: 70,
    };
}

#[derive(Clone, Debug)]
struct Hystart {
    config: HystartConfig,
    window: u64,
    threshold: u64,
    acknowledged: u64,
    recovery: Option<Instant>,
    shortest: Duration,
    /// The current round: when its last packet was sent, samples and the shortest of them.
    round_ends: Option<Instant>,
    samples: u32,
    of_round: Duration,
    last_sent: Option<Instant>,
    /// Of the acknowledgement that is being told.
    newest: Option<Instant>,
}

impl ControllerFactory for HystartConfig {
    fn build(self: Arc<Self>, _: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Hystart {
            config: *self,
            window: self.initial_window,
            threshold: u64::MAX,
            acknowledged: 0,
            recovery: None,
            shortest: Duration::MAX,
            round_ends: None,
            samples: 0,
            of_round: Duration::MAX,
            last_sent: None,
            newest: None,
        })
    }
}

impl Hystart {
    /// One round trip was this long, of a packet sent then.
    fn sample(&mut self, sent: Instant, rtt: Duration) {
        if self.round_ends.is_none_or(|ends| sent > ends) {
            self.round_ends = self.last_sent;
            (self.samples, self.of_round) = (0, Duration::MAX);
        }
        self.shortest = self.shortest.min(rtt);
        self.samples += 1;
        if self.samples > SAMPLES {
            return;
        }
        self.of_round = self.of_round.min(rtt);
        let increase = (self.shortest / INCREASE_PART).clamp(LEAST_INCREASE, MOST_INCREASE);
        let longer = self.of_round >= self.shortest + increase;
        if self.samples == SAMPLES && longer && self.window >= LOW_WINDOW {
            self.threshold = self.window;
        }
    }
}

impl Controller for Hystart {
    fn on_sent(&mut self, now: Instant, _: u64, _: u64) {
        self.last_sent = Some(now);
    }

    fn on_ack(
        &mut self,
        _: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        _: &RttEstimator,
    ) {
        self.newest = self.newest.max(Some(sent));
        if app_limited || self.recovery.is_some_and(|since| sent <= since) {
            return;
        }
        if self.window < self.threshold {
            self.window += bytes;
            return;
        }
        self.acknowledged += bytes;
        if self.acknowledged >= self.window {
            self.acknowledged -= self.window;
            self.window += self.config.packet;
        }
    }

    fn on_end_acks(&mut self, now: Instant, _: u64, _: bool, _: Option<u64>) {
        // A round trip is that of the newest packet that is acknowledged.
        if let Some(sent) = self.newest.take()
            && self.window < self.threshold
        {
            self.sample(sent, now - sent);
        }
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, _: u64) {
        if self.recovery.is_some_and(|since| sent <= since) {
            return;
        }
        self.recovery = Some(now);
        let least = 2 * self.config.packet;
        self.window = (self.window * self.config.kept_percent / 100).max(least);
        self.threshold = self.window;
        if persistent {
            self.window = least;
        }
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.window
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        self.config.initial_window
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
