// SPDX-License-Identifier: GPL-2.0-or-later
//! What is done when a hop answers again that was away.

use super::Flow;
use crate::flow::context::Context;
use crate::infer::rhythm::Beat;
use crate::store::cache::Id;
use crate::time::{Nanos, Time, US};

/// Replies this close to each other come in a clump, as from a hop that kept packets back (chosen:
/// below the time between two packets at 20 Mbit/s).
const RIGHT_AFTER: Nanos = 400 * US;

impl Flow {
    /// A gap shows after a time without replies, and begins with packet `front`, which goes again
    /// already. A hop that was away shows it at once: behind other replies, of which the last one
    /// came at `previous`, it is one that kept all back for a single packet.
    pub(super) fn begin_missed(&mut self, cx: &mut Context<'_>, front: Id, previous: Option<Time>) {
        if previous.is_some_and(|previous| cx.came.since(previous) < RIGHT_AFTER) {
            return;
        }
        let Some((trigger, _)) = self.trail.nearest(cx.cache, cx.came - self.rtt.get()) else {
            return;
        };
        for id in self.missed.begin(front, trigger, cx.cache) {
            self.resend(cx, id);
        }
    }

    /// A reply has come, after one at `previous`.
    pub(super) fn look_for_clump(&mut self, now: Time, previous: Option<Time>) {
        if previous.is_some_and(|previous| now.since(previous) < RIGHT_AFTER) {
            self.missed.close_reply();
        }
    }

    /// A copy of what the hop missed was answered, or a reply has come after one was: sends more.
    pub(super) fn send_missed(&mut self, cx: &mut Context<'_>, beat: &Beat) {
        self.tail.missed();
        let batch = self.missed.answered(self.rhythm.usual_count(), cx.cache);
        if batch.is_empty() && !self.gaps.acknowledges_copy(cx.came, &self.rtt, beat) {
            return;
        }
        let Some(until) = self.gaps.lengthened(cx.now) else { return };
        if self.conceal.active() {
            self.conceal.extend(cx.now, until, cx.config.hold_cap);
        }
        for id in batch {
            self.copy(cx, id);
        }
    }
}
