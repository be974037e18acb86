// SPDX-License-Identifier: GPL-2.0-or-later
//! NewReno whose slow start ends when round trips become longer: HyStart, as quic-go's and Chromium's
//! servers have it, and with thresholds that RFC 9406 has as well.

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

/// Makes [`Hystart`].
#[derive(Debug)]
pub struct HystartConfig;

#[derive(Clone, Debug)]
struct Hystart {
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
            window: INITIAL_WINDOW,
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
            self.window += PACKET;
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
        self.window = (self.window / 2).max(2 * PACKET);
        self.threshold = self.window;
        if persistent {
            self.window = 2 * PACKET;
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
        INITIAL_WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
