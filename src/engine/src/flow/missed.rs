// SPDX-License-Identifier: GPL-2.0-or-later
//! What is done when a hop answers again that was away.

use super::Flow;
use crate::flow::context::Context;
use crate::infer::rhythm::Beat;
use crate::store::cache::Id;

impl Flow {
    /// A gap shows after a time without replies, and begins with packet `front`, which goes again
    /// already.
    pub(super) fn begin_missed(&mut self, cx: &mut Context<'_>, front: Id) {
        let Some((trigger, _)) = self.trail.nearest(cx.cache, cx.now - self.rtt.get()) else {
            return;
        };
        for id in self.missed.begin(front, trigger, cx.cache) {
            self.resend(cx, id);
        }
    }

    /// A copy of what the hop missed was answered, or a reply has come after one was: sends more.
    pub(super) fn send_missed(&mut self, cx: &mut Context<'_>, beat: &Beat) {
        let batch = self.missed.answered(self.rhythm.usual_count(), cx.cache);
        if batch.is_empty() && !self.gaps.acknowledges_copy(cx.now, &self.rtt, beat) {
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
