// SPDX-License-Identifier: GPL-2.0-or-later
//! The end of a burst, of which nothing follows that would show its loss.

use super::Flow;
use crate::flow::context::Context;
use crate::repair::conceal::is_own_data;
use crate::repair::tail::{Copy, Step};
use crate::rules::Rule;

/// Unanswered packets at the end of a burst from which on a reply is overdue (RFC 9000, section
/// 13.2.2: a receiver replies to every second packet).
const LEAST_UNACKNOWLEDGED: u64 = 2;

impl Flow {
    pub(super) fn tail_timeout(&mut self, cx: &mut Context<'_>) {
        let least = self.rhythm.usual_count().max(LEAST_UNACKNOWLEDGED);
        let Some(step) = self.tail.timeout(cx.now, self.packets, least, &self.rtt) else {
            return;
        };
        if step != Step::Sure && self.burst_unanswered(cx) {
            return;
        }
        let Some(id) = self.trail.newest(cx.cache) else { return };
        let silence = self.last_heard.map_or(0, |heard| cx.now.since(heard));
        if cx.config.has(Rule::Missed) && cx.cache.packet(id).is_some_and(|p| is_own_data(p.len()))
        {
            self.tail.ask_again(cx.now, silence);
        }
        let unwanted = self.rhythm.decimating()
            || self.guard.own_queue()
            || !self.trusted()
            || self.is_reported(cx)
            || self.doubts(cx, false, false);
        if unwanted || !cx.config.has(Rule::Tail) {
            return;
        }
        let first = cx.cache.record(id).is_some_and(|r| r.copies == 0);
        let away = self.tail.gone(silence) && cx.config.has(Rule::Missed);
        let earned = away || self.budget.tokens(self.rtt.sharp()) >= 1;
        // The client may be waiting for one more packet before it replies, which comes if this was
        // not the sender's last.
        let ended = self.tail.ended() || !cx.config.has(Rule::End);
        let speculative = ended && (self.budget.speculative() || cx.hop.counts.lossy(cx.now));
        match step.copy(first, speculative, earned) {
            Some(Copy::Earned) if away => {
                // Nothing else would tell when the hop is back, and it costs little.
                self.copy(cx, id);
            }
            Some(Copy::Suspected) => {
                self.copy(cx, id);
            }
            Some(Copy::Earned) => self.resend(cx, id),
            None => {}
        }
    }
}
