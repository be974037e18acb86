// SPDX-License-Identifier: GPL-2.0-or-later
//! Replies of a client whose packets change places two by two: each of them has one of its own, and
//! the one without was lost.

use arrayvec::ArrayVec;

use super::Flow;
use crate::api::{EventKind, Handle, Verdict};
use crate::flow::context::Context;
use crate::measure::margin::Margin;
use crate::repair::expected::{Exactness, Item, Skipped, What, extend, lost};
use crate::repair::pairs::{OPEN, Open};
use crate::rules::Rule;
use crate::store::cache::Id;
use crate::time::Nanos;

/// On a very lossy hop a copy is lost as easily as anything else, and goes so often at most.
const MOST_ATTEMPTS: u8 = 2;

impl Flow {
    /// A reply while packets change places.
    // Inlined it takes 110 bytes more on MIPS.
    #[inline(never)]
    pub(super) fn on_paired_reply(
        &mut self,
        cx: &mut Context<'_>,
        size: usize,
        handle: Handle,
    ) -> Verdict {
        let size = i32::try_from(size).unwrap_or(i32::MAX / 2);
        (self.last_reply, self.acknowledged) = (Some(cx.came), Some(cx.came));
        self.tell_tail(cx);
        if !self.conceal.active() {
            // Nobody waits for these any more.
            self.take_open();
        }
        let copy = self.read_reply(cx, size);
        self.hold_answer(cx, copy, handle)
    }

    /// Reads what it is about and what has no reply; whether that is a copy.
    fn read_reply(&mut self, cx: &mut Context<'_>, size: i32) -> bool {
        let (due, near) = (cx.came - self.rtt.get(), self.rtt.within(Margin::Near));
        let Some(pairs) = &mut self.pairs else { return false };
        let exactness = Exactness {
            deviation: self.rtt.deviation(),
            early: near.min(pairs.spacing() / 2),
            late: self.rtt.within(Margin::Overdue),
            spacing: pairs.spacing(),
        };
        let told = pairs.expected.reply(due, exactness);
        if let Some((_, off)) = told.answered.filter(|_| told.last)
            && let Some(longer) = pairs.ended(off)
        {
            self.rtt.lengthen(longer);
        }
        let certain = !pairs.expected.suspects();
        let is_copy = |item: &Item| item.what == What::Copy;
        let mut refuses = false;
        for copy in told.skipped.iter().filter(|item| is_copy(item)) {
            pairs.open.retain(|open| !open.gone || open.id != copy.id);
            refuses |= pairs.needless();
        }
        match &told.answered {
            Some((copy, _)) if is_copy(copy) => self.take_answer(cx, copy),
            Some((packet, off)) => {
                if certain {
                    self.rtt.track(*off);
                }
                refuses |= self.answered(packet, *off, size);
            }
            None => {}
        }
        refuses |= self.unanswered(cx, &told.skipped);
        if refuses {
            self.rest_pairs(cx, false);
        }
        told.answered.iter().map(|(item, _)| item).chain(&told.skipped).any(is_copy)
    }

    /// The end of a burst has been acknowledged, as far as a reply of now can tell.
    fn tell_tail(&mut self, cx: &Context<'_>) {
        let due = cx.came - self.rtt.get() + self.rtt.within(Margin::Near);
        let newest = self.trail.around(cx.cache, due).floor;
        if let Some(newest) = newest.and_then(|id| cx.cache.record(id)) {
            self.tail.replied(cx.came, newest.number, false, &self.rtt);
        }
    }

    /// Whether the reply in hand waits. One that is about a packet that went ahead shows the one
    /// behind it as missing, and waits for the reply to that; so the sender sees no gap, and
    /// nothing of the order in which its packets went.
    fn hold_answer(&mut self, cx: &mut Context<'_>, copy: bool, handle: Handle) -> Verdict {
        let near = self.rtt.within(Margin::Near);
        let Some(pairs) = &self.pairs else { return Verdict::Forward };
        let (open, gap) = (!pairs.open.is_empty(), pairs.hides_gap());
        if copy && !open && !gap {
            // This reply or the next one is that to the copy.
            self.conceal.end_by(cx.now + near);
        }
        if !open && !self.conceal.ending() {
            if !gap {
                self.release(cx, true);
                return Verdict::Forward;
            }
            let until = cx.now + pairs.patience() + self.rtt.within(Margin::Overdue);
            self.conceal.extend(cx.now, until, cx.config.hold_cap);
        }
        if !self.conceal.active() {
            return Verdict::Forward;
        }
        if self.hold(cx, handle) {
            return Verdict::Hold;
        }
        self.release(cx, true);
        Verdict::Forward
    }

    /// A reply is the answer to a copy, which then was needed.
    fn take_answer(&mut self, cx: &mut Context<'_>, copy: &Item) {
        let Some(pairs) = &mut self.pairs else { return };
        let Some(place) = pairs.open.iter().position(|open| open.id == copy.id) else { return };
        let open = pairs.open.remove(place);
        pairs.repaired(self.packets);
        if pairs.for_alike() {
            self.keep_habit(cx, true);
        }
        self.earned(cx, cx.now.since(open.opened));
    }

    /// A packet was answered, so late and by a reply of this size. Whether the client shows that it does
    /// not play along.
    fn answered(&mut self, packet: &Item, off: Nanos, size: i32) -> bool {
        self.guard.replied(off.max(0), self.rtt.get());
        let Some(pairs) = &mut self.pairs else { return false };
        pairs.gap = packet.what == What::Ahead;
        pairs.sized(pairs.gap, size);
        if !pairs.gap {
            self.sizes.rebase(size);
        }
        pairs.tells(true)
    }

    /// These were not answered: those of them that were lost go again. Whether the client shows that it
    /// does not play along.
    fn unanswered(&mut self, cx: &mut Context<'_>, skipped: &[Item]) -> bool {
        let congested = cx.config.has(Rule::Guard) && self.guard.congested(cx.now, cx.hop);
        let mut refuses = false;
        for packet in lost(skipped) {
            let Some(pairs) = &mut self.pairs else { break };
            refuses |= pairs.tells(false);
            if !pairs.plays_along() {
                continue;
            }
            cx.stats.losses_congestion += u64::from(congested);
            if !congested && self.counted(cx) > 0 {
                self.missing(cx, packet.id);
            }
        }
        refuses
    }

    /// A packet was not answered: it goes again, and replies wait.
    fn missing(&mut self, cx: &mut Context<'_>, id: Id) {
        let number = cx.cache.record(id).map_or(0, |record| record.number);
        self.tell_loss(cx, number);
        self.await_answer(cx, Open::new(id, cx.now));
    }

    fn await_answer(&mut self, cx: &mut Context<'_>, open: Open) {
        let last = self.last_data.unwrap_or(cx.now);
        let Some(pairs) = &mut self.pairs else { return };
        let at = pairs.between(cx.now, last);
        if !pairs.follow(open, at) {
            return;
        }
        let until = at + self.rtt.get() + self.rtt.within(Margin::Overdue);
        if cx.config.has(Rule::Conceal) && self.conceal.extend(cx.now, until, cx.config.hold_cap) {
            cx.stats.concealed_gaps += 1;
            self.event(cx, EventKind::HoldStart);
        }
        self.send_open(cx);
    }

    /// Sends the copies that are due.
    pub(super) fn send_open(&mut self, cx: &mut Context<'_>) {
        while let Some(id) = self.pairs.as_mut().and_then(|pairs| pairs.due(cx.now)) {
            if self.copy(cx, id) {
                self.await_reply(cx, Some(id), What::Copy);
                continue;
            }
            if let Some(pairs) = &mut self.pairs {
                pairs.open.retain(|open| open.id != id);
            }
        }
    }

    fn take_open(&mut self) -> ArrayVec<Open, OPEN> {
        self.pairs.as_mut().map(|pairs| core::mem::take(&mut pairs.open)).unwrap_or_default()
    }

    /// Time is up for what is held. What the last reply shows as a gap is missing if its own reply
    /// is overdue.
    pub(super) fn answer_overdue(&mut self, cx: &mut Context<'_>) {
        let longest = self.rtt.get() + self.rtt.within(Margin::Overdue);
        let Some(pairs) = &mut self.pairs else { return };
        match pairs.expected.oldest().filter(|_| pairs.hides_gap()) {
            Some(sent) if sent + longest > cx.now => {
                self.conceal.extend(cx.now, sent + longest, cx.config.hold_cap);
            }
            Some(_) => {
                pairs.gap = false;
                let skipped = pairs.expected.end_of_replies();
                self.unanswered(cx, &skipped);
            }
            None => self.try_again(cx),
        }
    }

    /// A burst has ended, and no more replies come: what has none is missing. Whether there was
    /// anything of the kind, as there is only while packets change places.
    pub(super) fn burst_unanswered(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(pairs) = &mut self.pairs else { return false };
        let mut skipped = Skipped::default();
        while pairs.expected.oldest().is_some() && !skipped.is_full() {
            extend(&mut skipped, pairs.expected.end_of_replies());
        }
        self.unanswered(cx, &skipped);
        !skipped.is_empty()
    }

    /// Copies were not answered in time: most were not needed.
    fn try_again(&mut self, cx: &mut Context<'_>) {
        let lossy = self.budget.very_lossy();
        for open in self.take_open() {
            if lossy && open.attempts < MOST_ATTEMPTS {
                self.await_answer(cx, open);
            }
        }
    }
}
