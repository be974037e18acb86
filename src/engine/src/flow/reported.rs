// SPDX-License-Identifier: GPL-2.0-or-later
//! A flow of which the access point reports what was lost: nothing is inferred, what was lost is
//! sent again at once, and replies wait until they show that it has arrived.

use arrayvec::ArrayVec;

use super::other::ANSWER;
use super::{Flow, Phase};
use crate::api::{EventKind, Fate, Handle, Verdict};
use crate::flow::context::Context;
use crate::flow::out::Queued;
use crate::measure::margin::Margin;
use crate::repair::conceal::Episode;
use crate::repair::exact::{ATTEMPTS, Exact, STALL};
use crate::repair::start::MAX_FLIGHT;
use crate::rules::Rule;
use crate::store::cache::Id;
use crate::store::tickets::Sent;
use crate::time::{MS, Nanos, Time};
use crate::wire::{packet, quic};

/// A reply waits for reports no longer.
const PATIENCE: Nanos = 5 * MS;
/// Replies that had to wait for the air come within so long (chosen: an aggregate of them, and the
/// daemon's own delay).
const CLUMP: Nanos = MS;
/// For so long after a repair replies may still come that show the hole, because they had to wait
/// for the air (chosen: four times what was seen where downloads left little of it).
const STRAGGLERS: Nanos = 50 * MS;

/// From so many packets on the numbers and lengths in an acknowledgement take as many bytes as ever
/// (RFC 9000, section 16: two from 64 on).
const GROWN: u64 = 128;

// Inlined it takes 60 bytes more on MIPS.
#[inline(never)]
fn patience(cx: &Context<'_>) -> Nanos {
    PATIENCE.min(cx.config.hold_cap)
}

impl Flow {
    /// Whether reports tell what was lost, so that nothing is inferred.
    // Inlined it takes 130 bytes more on MIPS.
    #[inline(never)]
    pub(super) fn is_reported(&self, cx: &Context<'_>) -> bool {
        self.exact.own() && cx.hop.reports.expected()
    }

    /// Which way a packet goes that has come after this pause, and its verdict.
    pub(super) fn way(
        &mut self,
        cx: &mut Context<'_>,
        id: Id,
        pause: Option<Nanos>,
        handle: Handle,
    ) -> Verdict {
        if cx.config.counts && self.hop_slot.is_some() && cx.hop.counts.wanted(cx.now) {
            cx.out.push(Queued::Watch(self.receiver.ip()));
        }
        // Of others there is no hop, and the mirrored engine's packets are on no hop of ours.
        let wanted = cx.config.reports
            && self.hop_slot.is_some()
            && self.uplink.is_none()
            && (cx.hop.counts.exact() || !cx.config.reports_counted)
            && cx.hop.reports.worth_asking(cx.now);
        if !self.exact.choose(wanted, pause, self.rtt.get()) {
            return Verdict::Forward;
        }
        self.send(cx, id, 0, Some(handle));
        Verdict::Hold
    }

    /// Sends a packet; whether somebody will report of it.
    fn send(
        &mut self,
        cx: &mut Context<'_>,
        id: Id,
        attempt: u8,
        original: Option<Handle>,
    ) -> bool {
        let (flow, born, client, at) = (cx.slot, self.created, self.receiver.ip(), cx.now);
        let sent = Sent { flow, born, client, id, attempt, at };
        let reports = &mut cx.hop.reports;
        let asks = reports.has_room() && reports.worth_asking(cx.now);
        let ticket = if asks { cx.tickets.issue(sent) } else { None };
        if ticket.is_some() {
            reports.asked();
            self.exact.asked();
            cx.stats.reports_asked += 1;
        }
        cx.out.push(Queued::Send { id, ticket, original });
        ticket.is_some()
    }

    /// A report has come, or will not come any more.
    pub fn on_report(&mut self, cx: &mut Context<'_>, sent: &Sent, fate: Option<Fate>) {
        self.exact.answered(fate == Some(Fate::Arrived));
        if fate.is_some() {
            cx.hop.counts.reported();
        }
        if sent.attempt > 0 || fate == Some(Fate::Lost) {
            // As long as it is known which they are.
            self.let_go_clean(cx, CLUMP, Some(sent.id));
        }
        match fate {
            Some(Fate::Lost) => self.reported_lost(cx, sent),
            Some(Fate::Arrived) if sent.attempt > 0 => {
                self.reported_repair(cx, sent);
                self.loss_closed(cx);
            }
            None if sent.attempt > 0 => self.loss_closed(cx),
            Some(Fate::Arrived) | None => {}
        }
        self.tell_held(cx);
    }

    fn reported_lost(&mut self, cx: &mut Context<'_>, sent: &Sent) {
        if self.has_arrived(cx, sent.id) || !cx.hop.counts.believes_loss(cx.now) {
            cx.stats.reports_doubted += 1;
            if sent.attempt > 0 {
                self.loss_closed(cx);
            }
            return;
        }
        if sent.attempt == 0 {
            cx.stats.losses_inferred += 1;
            cx.stats.losses_reported += 1;
            self.inferred += 1;
            let quiet = self.quiet();
            self.exact.opened(quiet);
            self.heeds.told();
            let packet = cx.cache.record(sent.id).map_or(0, |record| record.number);
            self.event(cx, EventKind::Loss { packet });
        }
        self.send_again(cx, sent.id, sent.attempt);
        if sent.attempt == 0 && !self.start.is_over() {
            self.send_what_follows(cx, sent);
        }
    }

    /// A packet of the handshake was lost. Without the keys in it the client could make nothing of
    /// what came behind it, and may have thrown that away: then the sender counts it as lost.
    // Inlined it takes 140 bytes more on MIPS.
    #[inline(never)]
    fn send_what_follows(&mut self, cx: &mut Context<'_>, lost: &Sent) {
        let packet = cx.cache.packet(lost.id).unwrap_or_default();
        let payload = packet::find(packet).map(|udp| udp.payload(packet));
        if !payload.and_then(quic::inspect).is_some_and(|seen| seen.long) {
            return;
        }
        let since = self.trail.within(cx.cache, lost.at, cx.now).map(|(id, _)| id);
        let mut behind: ArrayVec<Id, MAX_FLIGHT> =
            since.take_while(|id| *id != lost.id).take(MAX_FLIGHT).collect();
        while let Some(id) = behind.pop() {
            self.copy(cx, id);
        }
    }

    /// Sends what is lost again, if it may go, and has replies wait for it; so often it was sent
    /// again before.
    pub(super) fn send_again(&mut self, cx: &mut Context<'_>, id: Id, before: u8) {
        let again = before < ATTEMPTS && self.pay_for_copy(cx, id);
        if !again {
            self.event(cx, EventKind::Abandon);
            self.loss_closed(cx);
            return;
        }
        let conceals = cx.config.conceal && cx.config.has(Rule::Conceal) && self.hides(cx, id);
        // Until the copy's own report, which sets the end.
        let until = cx.now + cx.config.hold_cap;
        if conceals && self.conceal.extend(cx.now, until, cx.config.hold_cap) {
            cx.stats.concealed_gaps += 1;
            self.event(cx, EventKind::HoldStart);
        }
        if !self.send(cx, id, before + 1, None) {
            self.loss_closed(cx);
        }
    }

    fn reported_repair(&mut self, cx: &mut Context<'_>, sent: &Sent) {
        let Some(after_ns) = cx.cache.record(sent.id).map(|record| cx.now.since(record.at)) else {
            return;
        };
        self.earned(cx, after_ns);
    }

    /// One loss less is open; after the last one replies need to wait for a moment only, and the
    /// first after that goes ahead of them.
    fn loss_closed(&mut self, cx: &mut Context<'_>) {
        let quiet = self.quiet();
        let last = match self.phase {
            // Which of its replies shows that the hole is closed can be read.
            Phase::Other(_) => 2 * quiet,
            // A reply to the copy will come, and others only with the sender's next packets where
            // that one is lost; what came before shows the hole.
            Phase::Unknown(_) | Phase::Quic | Phase::Bypassed => cx.config.hold_cap,
        };
        match self.exact.closed(cx.now, quiet) {
            Some(true) => self.conceal.end_by(cx.now + last),
            Some(false) => self.conceal.await_first(cx.now + STALL),
            None => {}
        }
    }

    // Inlined it takes 320 bytes more on MIPS.
    #[inline(never)]
    pub(super) fn quiet(&self) -> Nanos {
        if let Phase::Other(_) = self.phase {
            return ANSWER;
        }
        Exact::quiet(self.rtt.get() + self.rtt.within(Margin::Overdue))
    }

    /// A reply that can be read as an acknowledgement. It is measured, and else waits only
    /// while a loss is open.
    pub(super) fn on_reported_reply(
        &mut self,
        cx: &mut Context<'_>,
        size: usize,
        handle: Handle,
    ) -> Verdict {
        let size = i32::try_from(size).unwrap_or(i32::MAX / 2);
        let previous = self.last_reply.replace(cx.came);
        if !self.gaps.open().is_empty() {
            // From before the first report.
            self.gaps.clear();
            self.sizes.abandoned_all();
        }
        let beat = self.beat(cx, size, previous, None);
        self.follow(cx, &beat);
        self.sizes.rebase(size);
        self.conceal_reported(cx, size, handle)
    }

    /// The client is there, and no reorder buffer keeps it waiting. How long replies usually wait.
    pub(super) fn client_replied(&mut self, cx: &Context<'_>) -> Nanos {
        let quiet = self.quiet();
        if self.exact.replied(cx.now, quiet) {
            self.conceal.first_came(cx.now, cx.now + 2 * quiet, cx.config.hold_cap);
        }
        quiet
    }

    /// A reply waits while it would show a loss that is not repaired yet, or might show one of
    /// which nobody knows yet.
    pub(super) fn conceal_reported(
        &mut self,
        cx: &mut Context<'_>,
        size: i32,
        handle: Handle,
    ) -> Verdict {
        let quiet = self.client_replied(cx);
        let whole = self.packets >= GROWN && self.exact.reads(cx.now, size);
        if !self.conceal.active() || self.conceal.waits() {
            self.exact.passed(size);
            return self.await_reports(cx, handle);
        }
        let repaired = self.exact.shows_repair(cx.now, size);
        if whole {
            self.overtake(cx);
            return Verdict::Forward;
        }
        if !self.hold(cx, handle) {
            self.release(cx, true);
            return Verdict::Forward;
        }
        if let Some(over) = self.exact.over() {
            // Before, it may be the reply to the copy, or not. After that, those that had to wait
            // for the air come at once, the newest last.
            let until = match repaired {
                true => cx.now,
                false if cx.now < over => over + quiet,
                false => cx.now + CLUMP,
            };
            if self.conceal.deadline().is_none_or(|deadline| deadline > until) {
                self.conceal.end_by(until);
            }
        }
        Verdict::Hold
    }

    /// What is held goes behind a reply that shows no hole. Later ones may show one that is open, or
    /// have been on their way for longer.
    fn overtake(&mut self, cx: &mut Context<'_>) {
        self.release(cx, true);
        let (open, cap) = (self.exact.is_open(), cx.config.hold_cap);
        let over = self.exact.over().filter(|over| *over > cx.now);
        if !open && over.is_none() {
            return;
        }
        self.conceal.extend(cx.now, cx.now + cap, cap);
        if let Some(over) = over.filter(|_| !open) {
            self.conceal.end_by(over);
        }
        self.event(cx, EventKind::HoldStart);
    }

    /// A reply that comes before then shows the sender nothing that is not reported yet: what it
    /// acknowledges was sent a round trip before, and so was what it shows as missing.
    fn told_until(&self, cx: &Context<'_>) -> Time {
        let from = cx.now - PATIENCE;
        let mut open = cx.tickets.open(cx.slot, self.created);
        let oldest = open.find(|sent| sent.at >= from);
        oldest.map_or(Time::MAX, |sent| sent.at + self.soonest())
    }

    /// A reply that comes before then shows neither that nor a loss that is open, with the one
    /// that was just reported of.
    // Inlined it takes 100 bytes more on MIPS.
    #[inline(never)]
    fn clean_until(&self, cx: &Context<'_>, reported: Option<Id>) -> Time {
        let told = self.told_until(cx);
        if !self.exact.is_open() && reported.is_none() {
            return told;
        }
        let copies = cx.tickets.open(cx.slot, self.created).filter(|sent| sent.attempt > 0);
        let lost = copies.map(|sent| sent.id).chain(reported);
        let sent = lost.filter_map(|id| cx.cache.record(id)).map(|lost| lost.at).min();
        sent.map_or(told, |at| told.min(at + self.soonest()))
    }

    /// Lets those go that came after the last repair and show no other loss either, if they have
    /// waited for others of their clump for so long; true if there are any.
    fn let_go_clean(&mut self, cx: &mut Context<'_>, clump: Nanos, reported: Option<Id>) -> bool {
        if !self.conceal.active() || self.conceal.waits() || matches!(self.phase, Phase::Other(_)) {
            return false;
        }
        let first = self.exact.over().and_then(|over| self.conceal.first_since(over));
        let Some(first) = first.filter(|first| cx.now.since(*first) >= clump) else { return false };
        let until = self.clean_until(cx, reported);
        if first < until {
            self.let_go_before(cx, until);
        }
        first < until
    }

    /// A reply comes no sooner after the packet that it acknowledges.
    // Inlined it takes 160 bytes more on MIPS.
    #[inline(never)]
    fn soonest(&self) -> Nanos {
        (self.rtt.get() - self.rtt.within(Margin::Near)).max(0)
    }

    /// A reply while nothing is known to be lost: where reports come later than replies it waits
    /// for them, behind those that wait already. Where they come so late that it would wait in
    /// vain it goes: a hop with a queue of its own tells of a packet long after it was sent.
    fn await_reports(&mut self, cx: &mut Context<'_>, handle: Handle) -> Verdict {
        let patience = patience(cx);
        let conceals = cx.config.conceal && cx.config.has(Rule::Conceal) && patience > 0;
        let told = !self.conceal.active() && cx.now < self.told_until(cx);
        let in_vain = cx.hop.reports.lag() > self.soonest() + patience;
        if told || in_vain || !conceals || self.is_indifferent(cx) || !self.hold(cx, handle) {
            self.release(cx, true);
            return Verdict::Forward;
        }
        self.conceal.wait(patience);
        self.tell_held(cx);
        Verdict::Hold
    }

    /// Lets those go that have waited for reports and now show nothing that is not known.
    fn tell_held(&mut self, cx: &mut Context<'_>) {
        if self.conceal.waits() {
            let until = self.told_until(cx);
            self.let_go_before(cx, until);
        }
    }

    /// Time is up for what is held; true if nothing else is to be done about it.
    pub(super) fn on_held_timeout(&mut self, cx: &mut Context<'_>) -> bool {
        if !self.is_reported(cx) {
            return false;
        }
        if self.conceal.waits() {
            self.let_go_before(cx, cx.now - patience(cx) + 1);
            return true;
        }
        if self.let_go_clean(cx, 0, None) {
            return true;
        }
        let first = self.exact.over().and_then(|over| self.conceal.first_since(over));
        if first.is_some_and(|first| cx.now.since(first) < patience(cx)) {
            self.conceal.end_by(cx.now + CLUMP);
        } else if self.exact.is_open() || (first.is_none() && self.exact.owes_reply()) {
            // Those that are held show a hole, and the one that shows the repair waits for the air.
            self.conceal.end_by(cx.now + cx.config.hold_cap);
        }
        // Unless it has been held for as long as anything may be.
        self.conceal.deadline().is_some_and(|at| at > cx.now)
    }

    fn let_go_before(&mut self, cx: &mut Context<'_>, until: Time) {
        let (episode, patience) = (!self.conceal.waits(), patience(cx));
        let repaired = self.exact.over().is_some_and(|over| cx.now.since(over) < STRAGGLERS);
        let first = episode || repaired;
        let out = |handle| cx.out.push(Queued::Release(handle));
        let Episode { packets, held } = self.conceal.tell(cx.now, until, patience, first, out);
        cx.stats.held_now -= u64::from(packets);
        if !episode {
            return;
        }
        self.event(cx, EventKind::HoldEnd { packets, held_ns: held });
        if self.exact.is_open() {
            let cap = cx.config.hold_cap;
            self.conceal.extend(cx.now, cx.now + cap, cap);
            self.event(cx, EventKind::HoldStart);
        }
    }
}
