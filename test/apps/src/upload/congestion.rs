// SPDX-License-Identifier: GPL-2.0-or-later
//! Congestion control that a loss on the near hop does not concern: if the packet was
//! sent again below QUIC, an event about it is ignored. All else is the controller's.

use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use quinn::congestion::{Controller, ControllerFactory, ControllerMetrics};
use quinn_proto::RttEstimator;

use super::repair::{Shared, lock};

/// quinn's time of a packet is from before it was made, ours from after it was sent.
const MAKING: Duration = Duration::from_millis(2);

/// Makes them.
pub struct Factory {
    inner: Arc<dyn ControllerFactory + Send + Sync>,
    shared: Arc<Mutex<Shared>>,
}

impl Factory {
    /// Around those of another factory.
    pub fn new(
        inner: Arc<dyn ControllerFactory + Send + Sync>,
        shared: Arc<Mutex<Shared>>,
    ) -> Factory {
        Factory { inner, shared }
    }
}

impl ControllerFactory for Factory {
    fn build(self: Arc<Self>, now: Instant, current_mtu: u16) -> Box<dyn Controller> {
        let inner = self.inner.clone().build(now, current_mtu);
        Box::new(PathAware { inner, shared: self.shared.clone() })
    }
}

struct PathAware {
    inner: Box<dyn Controller>,
    shared: Arc<Mutex<Shared>>,
}

impl Controller for PathAware {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.inner.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.inner.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        let mut shared = lock(&self.shared);
        // Marks by a queue are about something else, whatever was repaired.
        if lost_bytes > 0 && shared.was_repaired(sent, sent + MAKING) {
            shared.ignored_events += 1;
            return;
        }
        drop(shared);
        self.inner.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(PathAware { inner: self.inner.clone_box(), shared: self.shared.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
