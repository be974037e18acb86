// SPDX-License-Identifier: GPL-2.0-or-later
//! Repairing gaps: what a flow does once a reply has revealed one.

use arrayvec::ArrayVec;

use super::Flow;
use crate::api::EventKind;
use crate::flow::context::Context;
use crate::flow::naming::Named;
use crate::flow::out::Queued;
use crate::infer::rhythm::Beat;
use crate::infer::sign::GapSign;
use crate::measure::hop::HopState;
use crate::measure::margin::Margin;
use crate::repair::conceal::last_reply_due;
use crate::repair::gap::{Gap, NAMES};
use crate::repair::gaps::{self, MAX_WINDOW};
use crate::repair::plan::{Facts, WINDOW_WIDTH, Width, plan};
use crate::repair::unheard;
use crate::rules::Rule;
use crate::store::cache::Id;
use crate::time::Time;

impl Flow {
    /// A reply revealed a gap: sends what was most likely lost and, if that
    /// mostly works, begins to hold.
    pub(super) fn new_gap(
        &mut self,
        cx: &mut Context<'_>,
        sign: GapSign,
        beat: Beat,
        previous: Option<Time>,
        last: Option<Time>,
    ) {
        let now = cx.now;
        let named = self.name(cx, &sign, &beat, previous, last);
        let Named { names, since_reply, window, front, .. } = named;
        let missing = names.first().and_then(|id| cx.cache.record(*id)).map_or(0, |r| r.number);
        self.tell_loss(cx, missing);
        self.hidden = self.hidden.saturating_add(if sign.silent { 1 } else { -1 });
        let stalled = front.is_some();
        // Any of a window may be the lost one, and a copy has to overtake what follows the oldest.
        let numbers = names.iter().filter_map(|id| cx.cache.record(*id)).map(|r| r.number);
        let oldest = if window.is_some() { numbers.min().unwrap_or(0) } else { missing };
        let mut attempt = plan(&self.facts(cx, sign, since_reply, oldest, window, stalled));
        let width = self.packets_of(cx, attempt.width).max(named.behind);
        for id in names.iter().take(width.min(attempt.allowed)) {
            self.resend(cx, *id);
        }
        if let Some(front) = front.filter(|_| cx.config.has(Rule::Missed)) {
            self.begin_missed(cx, front, previous);
            attempt.attempts = attempt.attempts.max(2);
        }
        let may_take = self.missed.may_take();
        let opened = self.gaps.copies_taken_up(now);
        let gap = Gap {
            opened,
            waited: u32::try_from(opened.since(cx.came)).unwrap_or(0),
            missing,
            edge: names.first().copied(),
            extended: 0,
            by_place: named.by_place,
            names: names.iter().take(NAMES).copied().collect(),
            attempts: 1,
            overdue: opened + attempt.span,
            last_attempt: opened,
            sign,
            attempts_allowed: u8::try_from(attempt.attempts).unwrap_or(u8::MAX),
            span: u32::try_from(attempt.span).unwrap_or(u32::MAX),
            silence: u32::try_from(cx.came.since(self.certain)).unwrap_or(u32::MAX),
            heard: 0,
            told: 0,
        };
        let also = opened.since(now) + if may_take > 0 { may_take + attempt.span } else { 0 };
        let longest = |hold| cx.config.hold_cap.min(hold + also);
        if let Some(longest) = attempt.hold.map(longest)
            && self.conceal.extend(now, opened + gap.patience() + may_take, longest)
        {
            cx.stats.concealed_gaps += 1;
            self.event(cx, EventKind::HoldStart);
        }
        // There is room: `Veto::NoRoom` was asked.
        self.gaps.follow(gap);
    }

    /// How many packets this is now.
    fn packets_of(&mut self, cx: &Context<'_>, width: Width) -> usize {
        match width {
            Width::Packets(packets) => packets,
            Width::Ambiguous => {
                let most = cx.config.tunables().ambiguous_width();
                gaps::ambiguity(cx.came, &self.rtt, &mut self.trail, cx.cache, most)
            }
        }
    }

    /// The facts by which [`plan`] decides.
    fn facts(
        &self,
        cx: &Context<'_>,
        sign: GapSign,
        since_reply: usize,
        missing: u64,
        window: Option<usize>,
        stalled: bool,
    ) -> Facts {
        let sharp = self.rtt.sharp();
        // The first losses of a flow decide how fast it becomes, and what was tried before them is none of
        // their fault, unless it was so often in vain that attempts are put off.
        let free = if window.is_some() && !cx.hop.doubt.hesitates() { WINDOW_WIDTH } else { 0 };
        let allowed = self.budget.first_attempt(sharp, window.is_some()).max(free);
        Facts {
            tunables: cx.config.tunables(),
            sign: sign.kind,
            silent: sign.silent && cx.config.has(Rule::Answer),
            weak: self.governor.weak(cx.now, sign.kind),
            armed: self.governor.armed(cx.now) && !self.rhythm.clumps(),
            rtt: self.rtt.get(),
            margin: self.rtt.within(Margin::Overdue),
            round_trip: self.governor.round_trip(),
            sharp,
            proven: self.budget.proven(),
            very_lossy: self.budget.very_lossy(),
            // A hop that was away has lost what was under way, whatever other signs have meant.
            clean: !stalled && cx.hop.state(cx.now) == HopState::Clean,
            in_vain: !stalled && cx.hop.doubt.is_used(),
            decimating: self.rhythm.decimating(),
            replies_often: self.rhythm.replies_often(),
            batch_wait: self.rhythm.batch_wait(),
            held_up: self.held_up(cx),
            thin_reply_wait: self.rhythm.thin_reply_wait(),
            pauses: self.rhythm.pauses(self.pace.spacing()),
            since_reply,
            window,
            allowed: allowed.min(self.counted(cx)),
            missing,
            sent: self.packets,
            conceal: self.conceals(cx).then_some(cx.config.hold_cap),
            heeds_overtaking: cx.config.has(Rule::Overtake),
        }
    }

    /// Whether replies that tell of a loss are held back.
    pub(super) fn conceals(&self, cx: &Context<'_>) -> bool {
        self.pays(cx) && cx.config.conceal && cx.config.has(Rule::Conceal) && self.trusted()
    }

    /// Whether replies may be held although it may turn out to be in vain. Losses that make the sender no slower are
    /// not worth it. Where times are exact and sizes vary for no other reasons signs are losses often enough: one that
    /// the sender hears of costs it more than several attempts in vain.
    // Inlined it takes 130 bytes more on MIPS.
    #[inline(never)]
    fn pays(&self, cx: &Context<'_>) -> bool {
        if self.heeds.tolerance.tells() && cx.config.has(Rule::Tolerance) {
            return false;
        }
        let legible = self.rtt.sharp() && !self.sizes.restless.is();
        legible
            || self.uplink.is_some()
            || !cx.config.has(Rule::Worth)
            || cx.hop.worth.hides(cx.now)
    }

    /// Counts a loss, and has a look at the hop's queue.
    pub(super) fn tell_loss(&mut self, cx: &mut Context<'_>, packet: u64) {
        cx.stats.losses_inferred += 1;
        self.inferred += 1;
        self.event(cx, EventKind::Loss { packet });
        if cx.hop.wants_probe(cx.now, true, false) {
            cx.out.push(Queued::Probe(self.receiver.ip()));
        }
    }

    /// Whether replies come so often and so much on time that what is missing can be told from what
    /// each of them shows, on a hop that loses packets; on a very lossy one also where packets follow
    /// each other more closely than replies keep time.
    pub(super) fn tells_each(&self) -> bool {
        let apart = self.rtt.within(Margin::Same) < self.pace.spacing();
        let pays = self.budget.very_lossy() || apart && self.budget.proven();
        self.replies_by_twos() && pays && self.rtt.sharp()
    }

    /// A copy was acknowledged and the gap is still there: several packets in a row were lost,
    /// of which the copied one was the last.
    pub(super) fn longer_run(&mut self, cx: &mut Context<'_>, beat: &Beat) {
        let now = cx.now;
        if self.missed.active() {
            return self.send_missed(cx, beat);
        }
        if self.names_windows(cx) {
            // Another packet is as likely, before or after those, and the next attempt is for all of them.
            return;
        }
        if cx.config.has(Rule::Again) && self.tells_each() && self.budget.very_lossy() {
            // Where any packet may be lost another gap is as likely, and the next attempt covers both.
            return;
        }
        let believed = !self.rtt.blurred() && self.believes();
        let Some(gap) = self.gaps.only_gap() else { return };
        if !gap.may_lengthen(cx.config.tunables().run_extensions()) {
            return;
        }
        // A client does not reply at once to what it has already, if "at once" means anything. Some reply is
        // always near when a copy's is due, so this is no first proof.
        if believed || !cx.config.has(Rule::Proof) {
            self.budget.earn();
        }
        let run = gap.lengthen(now, cx.cache, self.budget.tokens(self.rtt.sharp()));
        if run.is_empty() {
            return;
        }
        let until = now + gap.patience();
        if self.conceal.active() {
            self.conceal.extend(now, until, cx.config.hold_cap);
        }
        for id in run {
            if cx.cache.record(id).is_some_and(|record| record.copies == 0) {
                self.resend(cx, id);
            }
        }
    }

    /// Sends a copy that the budget has to pay for.
    pub(super) fn resend(&mut self, cx: &mut Context<'_>, id: Id) {
        if self.copy(cx, id) && cx.config.has(Rule::Budget) {
            self.budget.spend();
        }
    }

    /// Sends a copy, if the flow's share allows and the packet is still there.
    pub(super) fn copy(&mut self, cx: &mut Context<'_>, id: Id) -> bool {
        let paid = self.counted(cx) > 0 && self.pay_for_copy(cx, id);
        if paid {
            cx.hop.counts.copied(cx.now);
            let len = cx.cache.packet(id).map_or(0, <[u8]>::len);
            let at = self.taken_up(cx, len);
            self.gaps.resent(at);
            cx.out.push(Queued::Inject(id));
        }
        paid
    }

    /// Whether the sender does not heed losses, so that nothing is done for it.
    pub(super) fn is_indifferent(&self, cx: &Context<'_>) -> bool {
        cx.config.has(Rule::Sender) && self.heeds.left_alone()
    }

    /// Whether the limits allow one more copy of a packet that is still there; if so it is
    /// counted.
    pub(super) fn pay_for_copy(&mut self, cx: &mut Context<'_>, id: Id) -> bool {
        if self.is_indifferent(cx) {
            return false;
        }
        let now = cx.now;
        let bytes = cx.cache.packet(id).map_or(0, <[u8]>::len);
        let allowed = self.budget.within_share(cx.config.resend_percent)
            && self.validation.allows(bytes)
            && cx.ceiling.allows(now, bytes, cx.config.resend_total_percent);
        if !allowed {
            cx.stats.resent_limited += 1;
            return false;
        }
        let tunables = cx.config.tunables();
        let missed = self.missed.active() || self.tail.away();
        let max_age = if missed { tunables.missed_max_age() } else { tunables.copy_max_age() };
        let Some(record) = cx.cache.record_mut(id).filter(|r| now.since(r.at) <= max_age) else {
            return false;
        };
        record.copies = record.copies.saturating_add(1);
        record.resent_at = now;
        let number = record.number;
        self.budget.copied();
        self.validation.copied(bytes);
        cx.ceiling.copied(bytes);
        self.resent += 1;
        cx.stats.resent_packets += 1;
        cx.stats.resent_bytes += bytes as u64;
        self.event(cx, EventKind::Resend { packet: number });
        true
    }

    /// Makes further attempts for gaps of which the last attempt's reply is overdue.
    pub(super) fn retry(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let mut from = 0;
        let mut abandoned = false;
        while let Some(place) = self.gaps.overdue(now, from) {
            let copies = self.next_attempt(cx, place);
            if copies.is_empty() {
                let gap = self.gaps.remove(place);
                self.abandon(cx, &gap);
                self.sizes.abandoned(gap.sign.step, self.gaps.open().len());
                abandoned = true;
                from = place;
                continue;
            }
            for id in copies {
                self.resend(cx, id);
            }
            self.gaps.tried(self.gaps.copies_taken_up(now) + self.missed.takes(), place);
            from = place + 1;
        }
        if abandoned && self.gaps.open().is_empty() {
            self.gaps.forget_resends();
            if self.conceal.held() > 0 && cx.config.has(Rule::NextReply) {
                self.await_last_reply(now);
            } else {
                self.release(cx, false);
            }
        }
    }

    /// Waits for one more reply, if one is worth it.
    fn await_last_reply(&mut self, now: Time) {
        let newest = self.last_data.max(self.gaps.last_resend());
        let in_time = self.rtt.get() + self.rtt.within(Margin::Overdue);
        let due = last_reply_due(now, self.budget.proven(), newest, in_time);
        self.conceal.end_with_next_reply(now, due);
    }

    /// Whether gap after gap opens and none closes: they are not this hop's.
    pub(super) fn storm_begins(&self, cx: &Context<'_>) -> bool {
        let open = self.gaps.open();
        let in_vain = if cx.config.has(Rule::InVain) {
            self.gaps.in_vain(cx.now, self.rtt.get() + self.rtt.within(Margin::Overdue))
        } else {
            open.len()
        };
        open.first().is_some_and(|oldest| self.governor.storm_begins(in_vain, oldest.opened))
    }

    /// Abandons all gaps, because a queue overflows before the router.
    pub(super) fn step_aside(&mut self, cx: &mut Context<'_>) {
        for gap in self.gaps.take_gaps() {
            self.abandon(cx, &gap);
        }
        self.governor.begin_storm(cx.now);
        self.gaps.clear();
        self.await_last_reply(cx.now);
    }

    /// What to resend for the gap at `place`; nothing if it is to be abandoned.
    // Inlined it takes 200 bytes more on MIPS.
    #[inline(never)]
    fn next_attempt(&mut self, cx: &mut Context<'_>, place: usize) -> ArrayVec<Id, MAX_WINDOW> {
        let missed = self.missed.unanswered(cx.cache);
        if !missed.is_empty() {
            return missed;
        }
        let allowed = self.budget.tokens(self.rtt.sharp()).min(MAX_WINDOW);
        let gap = &self.gaps.open()[place];
        if self.storm_begins(cx) || !gap.attempts_left() || !cx.config.has(Rule::Retry) {
            return ArrayVec::new();
        }
        let times = (gap.shown(), gap.heard(), gap.told());
        let mut named = gap.names.clone();
        if let Some(mut rest) = self.rest_of_window(cx, times, allowed) {
            // A copy is lost as easily as anything else.
            for name in named {
                if rest.len() < allowed && !rest.contains(&name) {
                    rest.push(name);
                }
            }
            return rest;
        }
        let gap = &self.gaps.open()[place];
        let trusted = !gap.by_place || !cx.config.has(Rule::Place) || self.naming.trusted();
        if cx.config.has(Rule::Again) && self.tells_each() && trusted {
            let names =
                unheard::again(gap, self.acknowledged, &self.rtt, &mut self.trail, cx.cache);
            return names.into_iter().take(allowed).collect();
        }
        if gap.goes_by_name(self.rtt.sharp()) {
            if !trusted && named.len() > 1 {
                // Another packet may be as likely as that the copy was lost.
                named.swap(0, 1);
            }
            return named.into_iter().take(allowed).collect();
        }
        gaps::window(gap.shown(), cx.now, &self.rtt, &mut self.trail, cx.cache, allowed)
    }

    pub(super) fn abandon(&mut self, cx: &mut Context<'_>, gap: &Gap) {
        cx.stats.losses_upstream += 1;
        self.governor.abandoned(cx.now, gap.sign.kind);
        self.naming.abandoned(gap);
        cx.hop.doubt.in_vain(cx.now, gap.opened);
        cx.hop.worth.in_vain(cx.now, gap.opened, self.round_trip());
        self.heeds.told();
        if self.conceal.active() && self.uplink.is_none() {
            let took = cx.now.since(gap.opened);
            self.heeds.tolerance.held_in_vain(took, self.governor.round_trip());
        }
        self.missed.end();
        self.event(cx, EventKind::Abandon);
    }
}
