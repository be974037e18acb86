//! Filling holes: what a flow does once a reply has revealed one.

use arrayvec::ArrayVec;

use super::{Context, Flow, REORDERING_THRESHOLD};
use crate::api::EventKind;
use crate::cache::{Cache, Id, MAX_AGE};
use crate::gap::{GapSign, SignKind};
use crate::habit::Beat;
use crate::out::Queued;
use crate::refill::{self, Gap, MAX_WINDOW, Names, RUN_STEP, RUN_STEPS, USUAL_WIDTH};
use crate::rules::Rule;
use crate::time::{Nanos, SEC, Time};

/// This many open holes of which none was filled since the first look like a
/// queue overflowing before the router.
const OVERFLOW_GAPS: usize = 3;
/// Replies are held for no longer than this many local round trips in a row on a hop that
/// has not shown that it loses packets: a copy is answered after one.
const UNPROVEN_RTTS: Nanos = 4;

impl Flow {
    /// A reply revealed a hole: sends what was most likely lost and, if that
    /// mostly works, begins to hold.
    pub(super) fn new_gap(
        &mut self,
        cx: &mut Context<'_>,
        sign: GapSign,
        beat: Beat,
        previous: Option<Time>,
    ) {
        let now = cx.now;
        let by_rhythm = sign.kind == SignKind::Rhythm;
        let weak = self.governor.weak(now, sign.kind);
        let thin = match self.habit.batch_wait() {
            _ if by_rhythm => 0,
            0 => self.habit.thin_reply_wait(),
            wait => wait * 3 / 2,
        };
        let span = self.rtt.get() * 3 / 2 + self.rtt.margin() + thin;
        let armed = self.governor.armed(now) && !self.habit.clumps();
        let since_reply = previous.map_or(0, |previous| {
            refill::since_reply(previous, now, &self.rtt, &mut self.trail, cx.cache)
        });
        let mut names = refill::rank(now, &self.rtt, &mut self.trail, cx.cache, since_reply + 2);
        if (self.habit.counts_high() || beat.early) && self.rtt.sharp() {
            self.name_by_chain(cx.cache, &beat, &mut names);
        }
        cx.stats.losses_inferred += 1;
        self.inferred += 1;
        let first = names.first().and_then(|id| cx.cache.record(*id)).map_or(0, |r| r.number);
        self.event(cx, EventKind::Loss { packet: first });
        if cx.hop.wants_probe(now, true) {
            cx.out.push(Queued::Probe(self.client.ip()));
        }
        let width = if !armed || weak {
            1
        } else if self.habit.batch_wait() > 0 {
            // Any packet of the batch.
            since_reply + 1
        } else if self.budget.very_lossy() && !(self.rtt.sharp() && self.habit.replies_often()) {
            let window = if self.habit.decimating() && by_rhythm { 0 } else { since_reply };
            USUAL_WIDTH.max(window)
        } else if by_rhythm || self.habit.replies_often() {
            refill::ambiguity(now, &self.rtt, &mut self.trail, cx.cache)
        } else {
            USUAL_WIDTH.max(since_reply)
        };
        let allowed = width.min(self.budget.first_attempt(self.rtt.sharp()));
        for id in names.iter().take(allowed) {
            self.resend(cx, *id);
        }
        let gap = Gap {
            opened: now,
            hole: first,
            edge: names.first().copied(),
            extended: 0,
            names: names.iter().take(3).copied().collect(),
            attempts: 1,
            overdue: now + span,
            last_attempt: now,
            sign,
            attempts_allowed: match refill::attempts(sign.kind, weak) {
                _ if !armed => 1,
                // Where timing is sharp the first try rarely misses a loss, and
                // most marks on a hop that loses nothing are none.
                _ if self.rtt.sharp() && !self.budget.proven() => 1,
                // A copy is lost as easily as anything else.
                attempts if attempts > 1 && self.budget.very_lossy() => attempts + 1,
                attempts => attempts,
            },
            span,
        };
        // A copy that goes ahead of the third packet after the hole arrives
        // before any reply can make the sender count a loss. On a hop that is
        // not known to lose packets that is enough.
        let overtakes =
            self.rtt.sharp() && first > 0 && self.packets_down < first + REORDERING_THRESHOLD;
        let overtakes = overtakes && cx.config.has(Rule::Overtake);
        let worth = self.budget.proven() || !overtakes;
        let conceal = cx.config.conceal && cx.config.has(Rule::Conceal);
        if conceal && armed && worth && self.trusted() {
            let until = now + gap.patience();
            // Where no copy has healed anything yet, most marks are none: in a slow start
            // every round has some, and its end is not to be put off.
            let cap =
                if self.budget.proven() { Nanos::MAX } else { UNPROVEN_RTTS * self.rtt.get() };
            if self.conceal.extend(now, until, cx.config.hold_cap.min(cap)) {
                cx.stats.concealed_gaps += 1;
                self.event(cx, EventKind::HoldStart);
            }
        }
        // There is room: the caller asked.
        let _ = self.refill.gaps.try_push(gap);
    }

    /// Packets in a row were answered one by one: the hole is before the
    /// first of them.
    fn name_by_chain(&self, cache: &Cache, beat: &Beat, names: &mut Names) {
        if !(beat.fast && beat.count == 1 && beat.chain > 1 && beat.chain < beat.trigger) {
            return;
        }
        let mut id = self.trail.newest(cache);
        while let Some(here) = id {
            let Some(record) = cache.record(here).filter(|r| r.number >= beat.chain - 1) else {
                return;
            };
            if record.number == beat.chain - 1 {
                names.retain(|name| *name != here);
                let _ = names.try_insert(0, here);
                return;
            }
            id = cache.before(here);
        }
    }

    /// A copy was answered and the hole is still there: several packets in a
    /// row were lost, of which the copy was the last.
    pub(super) fn longer_run(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let [gap] = self.refill.gaps.as_mut_slice() else { return };
        if gap.extended >= RUN_STEPS {
            return;
        }
        // Clients do not answer what they have already.
        self.budget.healed();
        let tokens = self.budget.tokens(self.rtt.sharp()).min(RUN_STEP);
        let mut run = ArrayVec::<Id, RUN_STEP>::new();
        let mut edge = gap.edge;
        for _ in 0..tokens {
            edge = edge.and_then(|id| cx.cache.before(id));
            run.extend(edge);
        }
        if run.is_empty() {
            return;
        }
        gap.edge = edge;
        gap.extended += 1;
        gap.last_attempt = now;
        gap.overdue = now + gap.span;
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

    pub(super) fn one_healed(&mut self, cx: &mut Context<'_>) {
        if let Some(gap) = self.refill.explained_by(cx.now, self.rtt.get()) {
            let gap = self.refill.gaps.remove(gap);
            self.governor.healed(cx.now, gap.sign.kind);
            self.repaired(cx, &gap);
        }
    }

    fn repaired(&mut self, cx: &mut Context<'_>, gap: &Gap) {
        self.repaired += 1;
        self.budget.repaired();
        self.last_repair = cx.now;
        cx.stats.losses_repaired += 1;
        self.event(cx, EventKind::Repair { after_ns: cx.now.since(gap.opened) });
    }

    pub(super) fn all_healed(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let by_floor = self.refill.gaps.iter().all(|gap| gap.sign.kind == SignKind::Floor);
        let by_copy = self
            .refill
            .nearest_answer(now, self.rtt.get(), self.habit.batch_wait())
            .is_some_and(|answer| answer <= self.rtt.tolerance());
        if by_copy && !by_floor {
            self.budget.healed();
            cx.hop.healed(now, self.budget.very_lossy());
        }
        if let [gap] = self.refill.gaps.as_slice()
            && gap.attempts == 1
        {
            self.rtt.healed(now, now.since(gap.opened), gap.sign.excess >= 2);
        }
        for gap in core::mem::take(&mut self.refill.gaps) {
            self.governor.healed(now, gap.sign.kind);
            if by_copy {
                self.repaired(cx, &gap);
            }
        }
        self.sizes.closed(now, by_floor);
        self.refill.clear();
    }

    /// Sends a copy that has to be earned.
    pub(super) fn resend(&mut self, cx: &mut Context<'_>, id: Id) {
        if self.copy(cx, id) && cx.config.has(Rule::Budget) {
            self.budget.spend();
        }
    }

    /// Sends a copy, if the flow's share allows and the packet is still there.
    pub(super) fn copy(&mut self, cx: &mut Context<'_>, id: Id) -> bool {
        if !self.budget.within_share(cx.config.resend_percent) {
            cx.stats.resent_limited += 1;
            return false;
        }
        let now = cx.now;
        let Some(record) = cx.cache.record_mut(id).filter(|r| now.since(r.at) <= MAX_AGE) else {
            return false;
        };
        record.copies = record.copies.saturating_add(1);
        record.resent_at = now;
        let number = record.number;
        self.budget.copied();
        self.refill.resent(now);
        self.resent += 1;
        cx.stats.resent_packets += 1;
        cx.stats.resent_bytes += cx.cache.packet(id).map_or(0, |p| p.len() as u64);
        cx.out.push(Queued::Inject(id));
        self.event(cx, EventKind::Resend { packet: number });
        true
    }

    /// Further attempts for holes whose answer is overdue.
    pub(super) fn retry(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let mut n = 0;
        let mut gave_up = false;
        while n < self.refill.gaps.len() {
            if self.refill.gaps[n].overdue > now {
                n += 1;
                continue;
            }
            let copies = self.next_attempt(cx, n);
            if copies.is_empty() {
                let gap = self.refill.gaps.remove(n);
                self.give_up(cx, &gap);
                self.sizes.gave_up(gap.sign.step, self.refill.gaps.len());
                gave_up = true;
                continue;
            }
            let gap = &mut self.refill.gaps[n];
            gap.attempts += 1;
            gap.last_attempt = now;
            gap.overdue = now + gap.span;
            for id in copies {
                self.resend(cx, id);
            }
            n += 1;
        }
        if gave_up && self.refill.gaps.is_empty() {
            self.refill.forget_resends();
            if self.conceal.held() > 0 && cx.config.has(Rule::NextReply) {
                self.conceal.end_with_next_reply(now, self.last_reply_due(now));
            } else {
                self.release(cx, false);
            }
        }
    }

    /// Until when a reply may come that is worth waiting for. On a hop that is known to
    /// lose packets that is any, for it may answer a copy late; on another one only
    /// what answers a packet in time.
    fn last_reply_due(&self, now: Time) -> Time {
        if self.budget.proven() {
            return now + SEC;
        }
        let newest = self.last_down.max(self.refill.last_resend()).unwrap_or(now);
        newest + self.rtt.get() + self.rtt.margin()
    }

    /// Hole after hole and none that fills: they are not this hop's.
    pub(super) fn overflowing(&self) -> bool {
        self.refill.gaps.len() >= OVERFLOW_GAPS
            && self.refill.gaps.first().is_some_and(|gap| !self.governor.healed_since(gap.opened))
    }

    /// Steps aside for a queue that overflows before the router.
    pub(super) fn overflow(&mut self, cx: &mut Context<'_>, size: i32) {
        for gap in core::mem::take(&mut self.refill.gaps) {
            self.give_up(cx, &gap);
        }
        self.governor.overflow(cx.now);
        self.refill.clear();
        self.sizes.rebase(size);
        self.conceal.end_with_next_reply(cx.now, self.last_reply_due(cx.now));
    }

    /// What to send again for the gap at `n`; nothing if it is to be given up.
    fn next_attempt(&mut self, cx: &mut Context<'_>, n: usize) -> ArrayVec<Id, MAX_WINDOW> {
        let allowed = self.budget.tokens(self.rtt.sharp()).min(MAX_WINDOW);
        let gap = &self.refill.gaps[n];
        if self.overflowing() || !gap.attempts_left() || !cx.config.has(Rule::Retry) {
            return ArrayVec::new();
        }
        if gap.attempts == 1 && (gap.sign.kind == SignKind::Rhythm || self.rtt.sharp()) {
            // The name is nearly sure: once more, with the next two.
            return gap.names.iter().take(allowed).copied().collect();
        }
        refill::window(gap.opened, cx.now, &self.rtt, &mut self.trail, cx.cache, allowed)
    }

    pub(super) fn give_up(&mut self, cx: &mut Context<'_>, gap: &Gap) {
        cx.stats.losses_upstream += 1;
        self.governor.given_up(cx.now, gap.sign.kind);
        self.event(cx, EventKind::Abandon);
    }
}
