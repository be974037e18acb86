// SPDX-License-Identifier: GPL-2.0-or-later
//! What the access point tells beside reports: how much may be sent again, and that a client is
//! with another access point now.

use arrayvec::ArrayVec;

use super::{Flow, Phase};
use crate::api::Knowledge;
use crate::flow::context::Context;
use crate::measure::hop::Hop;
use crate::store::cache::Id;
use crate::time::Time;

/// Packets that are looked at after a move, and of these sent again, the oldest first (chosen: a
/// reorder buffer, and twice as many as were lost in a row in the Wi-Fi guest; more than that would
/// fill the new access point's queue).
const UNANSWERED: usize = 64;
const AGAIN: usize = 32;

impl Flow {
    /// The client is with another access point. What it was sent since it last spoke may be lost,
    /// and is sent again once it speaks: before that nobody knows whether it hears.
    pub fn moved(&mut self) {
        let answered = self.last_heard.map(|heard| heard - self.rtt.get());
        self.moved = self.moved.or(answered.filter(|_| self.rtt.known()));
    }

    /// The client has spoken.
    pub(super) fn repair_move(&mut self, cx: &mut Context<'_>) {
        let Some(from) = self.moved.take() else { return };
        // What was sent after that may still be on its way.
        let to = cx.came - self.rtt.get();
        let sent = self.trail.within(cx.cache, from, to).take(UNANSWERED).map(|(id, _)| id);
        let sent: ArrayVec<Id, UNANSWERED> = sent.collect();
        let exact = self.is_reported(cx);
        for id in sent.into_iter().rev().take(AGAIN) {
            if exact {
                let quiet = self.quiet();
                self.exact.opened(quiet);
                self.send_again(cx, id, 0);
            } else {
                self.copy(cx, id);
            }
        }
    }

    /// Whether it was let go, and nothing of it has come since then.
    pub fn was_let_go_by(&self, then: Time) -> bool {
        matches!(self.phase, Phase::Bypassed) && self.last_seen <= then
    }

    /// Copies that signs may still cause, as far as losses are counted.
    pub(super) fn counted(&self, cx: &Context<'_>) -> usize {
        cx.hop.counts.allowed(cx.now).unwrap_or(usize::MAX)
    }

    /// What tells of losses of this flow.
    pub fn knowledge(&self, hop: &Hop) -> Knowledge {
        if self.exact.own() && hop.reports.proven() == Some(true) {
            Knowledge::Reports
        } else if hop.counts.told() {
            Knowledge::Counts
        } else {
            Knowledge::Replies
        }
    }
}
