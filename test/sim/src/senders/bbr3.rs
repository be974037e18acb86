// SPDX-License-Identifier: GPL-2.0-or-later
//! BBRv3 after draft-ietf-ccwg-bbr: the start-up that ends when the rate grows no more or a fiftieth is
//! lost, the drain, cycles of probing, and every five seconds half the window for 200 ms. Left out: the
//! allowance for aggregated acknowledgements and the undoing of spurious losses.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

use super::rate::{Rate, Sample};
use super::{INITIAL_WINDOW, PACKET};

// Section 2.4 to 2.11 of the draft.
const STARTUP_GAIN: f64 = 2.77;
const DRAIN_GAIN: f64 = 0.5;
const WINDOW_GAIN: f64 = 2.0;
const UP_WINDOW_GAIN: f64 = 2.25;
const MARGIN: f64 = 0.99;
const GROWTH: f64 = 1.25;
const ROUNDS_WITHOUT_GROWTH: u32 = 3;
const LOSS_THRESHOLD: f64 = 0.02;
const STARTUP_LOSSES: u32 = 6;
const BETA: f64 = 0.7;
const HEADROOM: f64 = 0.85;
const LEAST_WINDOW: f64 = (4 * PACKET) as f64;
const PROBE_RTT_EVERY: Duration = Duration::from_secs(5);
const PROBE_RTT_FOR: Duration = Duration::from_millis(200);
const SHORTEST_FOR: Duration = Duration::from_secs(10);
/// Between two probes for bandwidth; the draft has two to three seconds.
const CRUISE_FOR: Duration = Duration::from_millis(2500);

/// Makes [`Bbr3`].
#[derive(Debug)]
pub struct Bbr3Config;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    Startup,
    Drain,
    Down,
    Cruise,
    Refill,
    Up,
    ProbeRtt,
}

#[derive(Clone, Debug)]
struct Bbr3 {
    rate: Rate,
    phase: Phase,
    since: Instant,
    /// Bytes per second: the most in this cycle and in the one before, and what losses leave.
    bandwidth: [f64; 2],
    bandwidth_low: f64,
    window_high: f64,
    window_low: f64,
    window: f64,
    shortest: (Duration, Instant),
    probe_rtt_at: Instant,
    probe_rtt_ends: Option<Instant>,
    round_ends: u64,
    rounds_in_phase: u32,
    full: Option<f64>,
    flat: u32,
    is_full: bool,
    /// Of the round: bytes lost and delivered, losses, the fastest sample.
    lost: u64,
    losses: u32,
    delivered_before: u64,
    fastest: f64,
    most_delivered: f64,
    in_flight: u64,
    acknowledged: u64,
}

impl ControllerFactory for Bbr3Config {
    fn build(self: Arc<Self>, now: Instant, _: u16) -> Box<dyn Controller> {
        Box::new(Bbr3 {
            rate: Rate::default(),
            phase: Phase::Startup,
            since: now,
            bandwidth: [0.0; 2],
            bandwidth_low: f64::INFINITY,
            window_high: f64::INFINITY,
            window_low: f64::INFINITY,
            window: INITIAL_WINDOW as f64,
            shortest: (Duration::MAX, now),
            probe_rtt_at: now + PROBE_RTT_EVERY,
            probe_rtt_ends: None,
            round_ends: 0,
            rounds_in_phase: 0,
            full: None,
            flat: 0,
            is_full: false,
            lost: 0,
            losses: 0,
            delivered_before: 0,
            fastest: 0.0,
            most_delivered: 0.0,
            in_flight: 0,
            acknowledged: 0,
        })
    }
}

impl Bbr3 {
    fn bandwidth(&self) -> f64 {
        self.bandwidth[0].max(self.bandwidth[1]).min(self.bandwidth_low)
    }

    /// What the path holds, times a gain.
    fn path(&self, gain: f64) -> f64 {
        gain * self.bandwidth() * self.shortest.0.as_secs_f64()
    }

    fn enter(&mut self, now: Instant, phase: Phase) {
        (self.phase, self.since, self.rounds_in_phase) = (phase, now, 0);
        match phase {
            Phase::Down => self.bandwidth = [0.0, self.bandwidth[0]],
            Phase::Refill => {
                (self.bandwidth_low, self.window_low) = (f64::INFINITY, f64::INFINITY);
            }
            _ => {}
        }
    }

    fn loses_much(&self) -> bool {
        let delivered = self.rate.delivered - self.delivered_before;
        self.lost as f64 > LOSS_THRESHOLD * (delivered + self.lost) as f64
    }

    /// A round trip is over.
    fn round(&mut self, now: Instant, in_flight: f64) {
        self.rounds_in_phase += 1;
        let much = self.loses_much();
        if !self.is_full {
            let most = self.bandwidth[0].max(self.bandwidth[1]);
            if self.full.is_none_or(|full| most >= GROWTH * full) {
                (self.full, self.flat) = (Some(most), 0);
            } else {
                self.flat += 1;
            }
            let lossy = much && self.losses >= STARTUP_LOSSES;
            self.is_full = self.flat >= ROUNDS_WITHOUT_GROWTH || lossy;
            if lossy {
                self.window_high = self.path(1.0).max(self.most_delivered);
            }
        } else if matches!(self.phase, Phase::Up | Phase::Refill) {
            if much {
                self.window_high = in_flight.max(BETA * self.path(WINDOW_GAIN));
                self.enter(now, Phase::Down);
            } else if self.phase == Phase::Up {
                self.window_high = self.window_high.max(in_flight);
            }
        } else if self.lost > 0 {
            let low = self.bandwidth_low.min(self.bandwidth());
            self.bandwidth_low = self.fastest.max(BETA * low);
            let low = self.window_low.min(self.window);
            self.window_low = self.most_delivered.max(BETA * low);
        }
        (self.lost, self.losses, self.fastest, self.most_delivered) = (0, 0, 0.0, 0.0);
        self.delivered_before = self.rate.delivered;
    }

    fn learn(&mut self, now: Instant, sample: &Sample) {
        let old = now.saturating_duration_since(self.shortest.1) > SHORTEST_FOR;
        if sample.rtt <= self.shortest.0 || old {
            self.shortest = (sample.rtt, now);
        }
        if sample.interval >= self.shortest.0 && !sample.interval.is_zero() {
            let speed = sample.delivered as f64 / sample.interval.as_secs_f64();
            self.bandwidth[0] = self.bandwidth[0].max(speed);
            self.fastest = self.fastest.max(speed);
            self.most_delivered = self.most_delivered.max(sample.delivered as f64);
        }
        if sample.prior >= self.round_ends {
            self.round_ends = self.rate.delivered;
            self.round(now, sample.in_flight as f64);
        }
    }

    fn advance(&mut self, now: Instant, in_flight: f64) {
        let lasted = now.saturating_duration_since(self.since);
        match self.phase {
            Phase::Startup if self.is_full => self.enter(now, Phase::Drain),
            Phase::Drain if in_flight <= self.path(1.0) => self.enter(now, Phase::Down),
            Phase::Down
                if in_flight <= self.path(1.0).min(HEADROOM * self.window_high)
                    && lasted > self.shortest.0 =>
            {
                self.enter(now, Phase::Cruise);
            }
            Phase::Cruise if lasted > CRUISE_FOR => self.enter(now, Phase::Refill),
            Phase::Refill if self.rounds_in_phase > 0 => self.enter(now, Phase::Up),
            Phase::Up if lasted > self.shortest.0 && in_flight >= self.path(GROWTH) => {
                self.enter(now, Phase::Down);
            }
            _ => {}
        }
        if now >= self.probe_rtt_at && self.is_full && self.phase != Phase::ProbeRtt {
            self.enter(now, Phase::ProbeRtt);
            self.probe_rtt_ends = None;
        }
        if self.phase != Phase::ProbeRtt {
            return;
        }
        match self.probe_rtt_ends {
            None if in_flight <= self.path(0.5).max(LEAST_WINDOW) => {
                self.probe_rtt_ends = Some(now + PROBE_RTT_FOR);
                self.rounds_in_phase = 0;
            }
            Some(ends) if now >= ends && self.rounds_in_phase > 0 => {
                self.probe_rtt_at = now + PROBE_RTT_EVERY;
                self.enter(now, Phase::Cruise);
            }
            _ => {}
        }
    }

    fn open_window(&mut self, acknowledged: u64) {
        let gain = if self.phase == Phase::Up { UP_WINDOW_GAIN } else { WINDOW_GAIN };
        let target = self.path(gain) + (3 * PACKET) as f64;
        if self.is_full {
            self.window = (self.window + acknowledged as f64).min(target);
        } else if self.window < target || self.rate.delivered < INITIAL_WINDOW {
            self.window += acknowledged as f64;
        }
        let high = match self.phase {
            Phase::Cruise | Phase::Down => HEADROOM * self.window_high,
            Phase::ProbeRtt => self.path(0.5),
            _ => self.window_high,
        };
        let low = if self.is_full { self.window_low } else { f64::INFINITY };
        self.window = self.window.min(high.min(low)).max(LEAST_WINDOW);
    }
}

impl Controller for Bbr3 {
    fn on_sent(&mut self, now: Instant, bytes: u64, _: u64) {
        self.rate.sent(now, self.in_flight, bytes);
        self.in_flight += bytes;
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, _: bool, _: &RttEstimator) {
        self.rate.acknowledged(now, sent, bytes);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, _: bool, _: Option<u64>) {
        let Some(sample) = self.rate.sample(now) else { return };
        self.in_flight = in_flight;
        self.learn(now, &sample);
        self.advance(now, in_flight as f64);
        let acknowledged = self.rate.delivered - self.acknowledged;
        self.acknowledged = self.rate.delivered;
        self.open_window(acknowledged);
    }

    fn on_congestion_event(&mut self, _: Instant, _: Instant, _: bool, lost: u64) {
        self.lost += lost;
        self.losses += 1;
    }

    fn on_mtu_update(&mut self, _: u16) {}

    fn window(&self) -> u64 {
        self.window as u64
    }

    fn metrics(&self) -> ControllerMetrics {
        let gain = match self.phase {
            Phase::Startup => STARTUP_GAIN,
            Phase::Drain => DRAIN_GAIN,
            Phase::Down => 0.9,
            Phase::Up => GROWTH,
            Phase::Cruise | Phase::Refill | Phase::ProbeRtt => 1.0,
        };
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window();
        let speed = self.bandwidth();
        metrics.pacing_rate = (speed > 0.0).then_some((8.0 * MARGIN * gain * speed) as u64);
        metrics
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
