// SPDX-License-Identifier: GPL-2.0-or-later
//! CUBIC that takes a smaller window back where only few packets were lost, as quiche has it: what is lost
//! now and then costs such a sender a round trip of a smaller window, and no more.

use std::any::Any;
use std::sync::Arc;
use std::time::Instant;

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, CubicConfig};

/// Fewer lost bytes than this part of the window are few, percent (quiche 0.30:
/// ROLLBACK_THRESHOLD_PERCENT; its least, two packets, is less than this wherever the window is
/// ten packets or more).
const FEW_PERCENT: u64 = 20;

/// Makes [`Rollback`].
#[derive(Clone, Copy, Debug)]
pub struct RollbackConfig;

/// As quinn's CUBIC, and what that was before the latest losses.
struct Rollback {
    cubic: Box<dyn Controller>,
    before: Option<Before>,
    /// When the latest recovery began.
    recovery: Option<Instant>,
    /// The first losses have ended the slow start, which does not come back (quiche: "Don't go back
    /// to slow start").
    avoids: bool,
}

struct Before {
    cubic: Box<dyn Controller>,
    recovery: Option<Instant>,
    lost: u64,
}

impl ControllerFactory for RollbackConfig {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        let cubic = Arc::new(CubicConfig::default()).build(now, mtu);
        Box::new(Rollback { cubic, before: None, recovery: None, avoids: false })
    }
}

impl Rollback {
    fn in_recovery(&self, sent: Instant) -> bool {
        self.recovery.is_some_and(|since| sent <= since)
    }
}

impl Controller for Rollback {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        if !app_limited
            && !self.in_recovery(sent)
            && let Some(before) = self.before.take()
            && before.lost * 100 < self.cubic.window() * FEW_PERCENT
        {
            (self.cubic, self.recovery) = (before.cubic, before.recovery);
        }
        self.cubic.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, lost: u64) {
        if self.in_recovery(sent) {
            if let Some(before) = &mut self.before {
                before.lost += lost;
            }
            return;
        }
        let recovery = self.recovery.replace(now);
        let kept = || Before { cubic: self.cubic.clone_box(), recovery, lost };
        self.before = (self.avoids && !persistent).then(kept);
        self.avoids = true;
        self.cubic.on_congestion_event(now, sent, persistent, lost);
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.cubic.on_mtu_update(mtu);
    }

    fn window(&self) -> u64 {
        self.cubic.window()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        let copy = |before: &Before| Before { cubic: before.cubic.clone_box(), ..*before };
        Box::new(Rollback {
            cubic: self.cubic.clone_box(),
            before: self.before.as_ref().map(copy),
            ..*self
        })
    }

    fn initial_window(&self) -> u64 {
        self.cubic.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
