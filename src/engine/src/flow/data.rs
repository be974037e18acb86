// SPDX-License-Identifier: GPL-2.0-or-later
//! A packet on its way to the client.

use super::Flow;
use crate::api::{Handle, Verdict};
use crate::flow::context::Context;
use crate::rules::Rule;
use crate::store::cache::{Cache, Id};

/// The bytes of a packet that goes: those in hand, or those that were kept since it came.
pub(super) enum Bytes<'a> {
    New(&'a [u8]),
    Kept(Id),
}

impl Bytes<'_> {
    fn len(&self, cache: &Cache) -> usize {
        match self {
            Bytes::New(packet) => packet.len(),
            Bytes::Kept(id) => cache.packet(*id).map_or(0, <[u8]>::len),
        }
    }
}

impl Flow {
    /// A packet goes to the client: under which name it is kept, and its verdict.
    pub(super) fn goes(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &Bytes<'_>,
        long: bool,
        handle: Handle,
    ) -> (Option<Id>, Verdict) {
        let at = self.taken_up(cx, bytes.len(cx.cache));
        self.on_data(&mut cx.at(at), bytes, long, handle)
    }

    /// The same; the time is when the hop takes it up.
    pub(super) fn on_data(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &Bytes<'_>,
        long: bool,
        handle: Handle,
    ) -> (Option<Id>, Verdict) {
        let now = cx.now;
        let len = bytes.len(cx.cache);
        let pause = self.last_data.map(|last| now.since(last));
        if self.last_data.is_none() {
            self.beyond = self.last_heard.map(|heard| now.since(heard));
        }
        self.rtt.sent(now, self.last_data, self.last_heard);
        self.note(now, false, len);
        self.budget.forwarded(cx.config.has(Rule::Earn) && self.may_be_late(cx));
        self.count_time(cx, pause, len, long);
        self.guard.forwarded(now);
        cx.ceiling.forwarded(now, len);
        let kept = match bytes {
            Bytes::New(packet) => self.trail.push(cx.cache, now, self.packets, packet),
            Bytes::Kept(id) => self.trail.again(cx.cache, now, self.packets, *id),
        };
        let Some(id) = kept else {
            return (None, Verdict::Forward);
        };
        self.begin_train(cx, pause, id);
        let verdict = self.way(cx, id, pause, handle);
        let begins = self.start.on_data(now, id, long, self.rtt.get());
        let twice = begins && !cx.hop.busy(now) && !self.is_reported(cx);
        if twice && cx.config.has(Rule::FirstFlight) {
            self.copy(cx, id);
        }
        if self.start.is_over() && self.rtt.known() {
            // No loss shows before.
            cx.hop.forwarded();
            self.tail.sent(now, len, &self.rtt);
        }
        (Some(id), verdict)
    }
}
