// SPDX-License-Identifier: GPL-2.0-or-later
//! Replies of a client whose packets change places two by two: each of them has one of its own, and
//! the one without was lost.

use arrayvec::ArrayVec;

use super::Flow;
use crate::api::{EventKind, Handle, Verdict};
use crate::flow::context::Context;
use crate::measure::margin::Margin;
use crate::repair::pairs::{OPEN, Open};
use crate::rules::Rule;
use crate::store::cache::{Id, Place};
use crate::time::Nanos;

/// Packets before an answered one that are looked at (chosen: three pairs; what is further back was
/// looked at before).
const LOOK_BACK: usize = 6;
/// On a very lossy hop a copy is lost as easily as anything else, and goes so often at most.
const MOST_ATTEMPTS: u8 = 2;

impl Flow {
    /// A reply while packets change places.
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
        let (packet, copy) = (self.packet_due(cx), self.copy_due(cx));
        match (packet, copy) {
            (Some((id, _)), Some((place, _))) if self.together(cx, id, place) => {
                self.take_answer(cx, place, false);
                self.answered(cx, packet, size);
            }
            (Some((_, off)), Some((_, copy_off))) if off.abs() <= copy_off.abs() => {
                self.answered(cx, packet, size);
            }
            (_, Some((place, _))) => self.take_answer(cx, place, true),
            (packet, None) => self.answered(cx, packet, size),
        }
        self.hold_answer(cx, copy.is_some(), handle)
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

    /// The packet that a reply is about, and how much later than that one's it is: the nearest that
    /// should be answered and was not.
    fn packet_due(&mut self, cx: &Context<'_>) -> Option<(Id, Nanos)> {
        let due = cx.came - self.rtt.get();
        let within = self.rtt.within(Margin::Near).max(self.pace.spacing() / 2);
        let near = self.trail.within(cx.cache, due - within, due + within);
        let unanswered = near.filter(|(_, record)| record.place.wants_answer());
        unanswered.map(|(id, record)| (id, due.since(record.at))).min_by_key(|(_, off)| off.abs())
    }

    /// The copy whose answer is due, by its place among the open ones, and how late this is.
    fn copy_due(&self, cx: &Context<'_>) -> Option<(usize, Nanos)> {
        let rtt = self.rtt.get();
        let open = self.pairs.as_ref()?.open.iter().enumerate().filter(|(_, open)| open.gone);
        let off = open.map(|(place, open)| (place, cx.came.since(open.sent) - rtt));
        let nearest = off.min_by_key(|(_, off)| off.abs())?;
        (nearest.1.abs() <= self.rtt.within(Margin::Expected)).then_some(nearest)
    }

    /// Whether a packet and a copy went so close together that one reply may be about both.
    fn together(&self, cx: &Context<'_>, id: Id, place: usize) -> bool {
        let sent = self.pairs.as_ref().map(|pairs| pairs.open[place].sent);
        let at = cx.cache.record(id).map(|record| record.at);
        let apart = sent.zip(at).map(|(sent, at)| sent.since(at).abs());
        apart.is_some_and(|apart| apart <= self.rtt.within(Margin::Near))
    }

    /// A reply may be the answer to a copy, which then was needed; `surely`: to nothing else.
    fn take_answer(&mut self, cx: &mut Context<'_>, place: usize, surely: bool) {
        let Some(pairs) = &mut self.pairs else { return };
        let open = pairs.open.remove(place);
        if !surely {
            return;
        }
        pairs.repaired(self.packets);
        self.repaired += 1;
        self.budget.repaired();
        self.budget.earn();
        self.last_repair = cx.now;
        cx.stats.losses_repaired += 1;
        cx.hop.repaired(cx.now, self.budget.very_lossy());
        self.event(cx, EventKind::Repair { after_ns: cx.now.since(open.opened) });
    }

    /// A packet was answered by a reply of this size: those before it that were not are missing.
    fn answered(&mut self, cx: &mut Context<'_>, packet: Option<(Id, Nanos)>, size: i32) {
        let Some((id, off)) = packet else { return };
        self.rtt.track(off);
        self.guard.replied(off.max(0), self.rtt.get());
        let Some(record) = cx.cache.record_mut(id) else { return };
        let ahead = record.place == Place::Ahead;
        record.place = Place::Answered;
        let number = record.number;
        let Some(pairs) = &mut self.pairs else { return };
        pairs.gap = ahead.then_some(id);
        let settled = pairs.settled;
        pairs.settled = settled.max(number);
        pairs.sized(ahead, size);
        if !ahead {
            self.sizes.rebase(size);
        }
        let mut refuses = pairs.tells(true);
        let lost = unanswered(cx, id, settled);
        let congested = cx.config.has(Rule::Guard) && self.guard.congested(cx.now, cx.hop);
        for (id, counts) in lost.into_iter().rev() {
            let Some(pairs) = &mut self.pairs else { return };
            refuses |= counts && pairs.tells(false);
            if !pairs.plays_along() {
                continue;
            }
            cx.stats.losses_congestion += u64::from(congested);
            if !congested && self.counted(cx) > 0 {
                self.missing(cx, id);
            }
        }
        if refuses {
            self.rest_pairs(cx, false);
        }
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
        let along = pairs.plays_along();
        let behind = pairs.gap.and_then(|id| cx.cache.after(id)).filter(|_| along);
        let record = behind.and_then(|id| Some((id, cx.cache.record(id)?)));
        match record.filter(|(_, it)| it.place == Place::Behind && it.copies == 0) {
            Some((_, it)) if it.at + longest > cx.now => {
                let due = it.at + longest;
                self.conceal.extend(cx.now, due, cx.config.hold_cap);
            }
            Some((id, _)) => {
                pairs.gap = None;
                self.missing(cx, id);
            }
            None => self.try_again(cx),
        }
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

/// The packets before an answered one that should have been answered, the newest first, and whether
/// that counts against the client: the one behind need not be answered if the one ahead of it
/// is missing as well.
fn unanswered(cx: &Context<'_>, id: Id, settled: u64) -> ArrayVec<(Id, bool), LOOK_BACK> {
    let mut found = ArrayVec::<(Id, bool), LOOK_BACK>::new();
    let mut here = id;
    for _ in 0..LOOK_BACK {
        let Some(before) = cx.cache.before(here) else { break };
        here = before;
        let Some(record) = cx.cache.record(here).filter(|it| it.number > settled) else { break };
        if record.place == Place::Ahead
            && let Some((_, counts)) = found.last_mut()
        {
            *counts = false;
        }
        if record.place.wants_answer() {
            found.push((here, true));
        }
    }
    found
}
