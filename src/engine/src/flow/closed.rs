// SPDX-License-Identifier: GPL-2.0-or-later
//! What it means that gaps have closed: was it by a copy, so that the hop loses packets, or by themselves?

use super::Flow;
use crate::api::EventKind;
use crate::flow::context::Context;
use crate::infer::rhythm::Beat;
use crate::infer::sign::SignKind;
use crate::measure::margin::Margin;
use crate::measure::rtt::CLOSE;
use crate::repair::proof;
use crate::rules::Rule;
use crate::time::Nanos;

impl Flow {
    // Inlined it takes 60 bytes more on MIPS.
    #[inline(never)]
    pub(super) fn one_closed(&mut self, cx: &mut Context<'_>) {
        if let Some(gap) = self.gaps.explained_by(cx.came, self.rtt.get()) {
            let gap = self.gaps.remove(gap);
            self.governor.closed(cx.now, gap.sign.kind);
            self.repaired(cx, cx.now.since(gap.opened));
        }
    }

    /// A copy was needed, which proves that the hop loses packets.
    pub(super) fn earned(&mut self, cx: &mut Context<'_>, after: Nanos) {
        self.budget.earn();
        cx.hop.repaired(cx.now, self.budget.very_lossy());
        self.repaired(cx, after);
    }

    /// What was missing has arrived so long after it was known to be.
    fn repaired(&mut self, cx: &mut Context<'_>, after_ns: Nanos) {
        self.repaired += 1;
        self.budget.repaired();
        self.last_repair = cx.now;
        cx.stats.losses_repaired += 1;
        self.event(cx, EventKind::Repair { after_ns });
    }

    pub(super) fn all_closed(&mut self, cx: &mut Context<'_>, beat: &Beat) {
        let now = cx.now;
        let by_floor = self.gaps.open().iter().all(|gap| gap.sign.kind == SignKind::Floor);
        let missed = self.missed.goes_on();
        let on_time = self.closed_by_copy(cx, beat);
        if on_time {
            self.sizes.restless.closed_by_copy();
        }
        // Where sizes vary they fall back by themselves, and then mostly when a packet is replied to.
        let varies = cx.config.has(Rule::Repeat) && self.sizes.restless.is();
        let believed = !varies || self.gaps.acknowledges_copy(cx.came, &self.rtt, beat);
        let by_copy = missed || believed && on_time;
        if by_copy {
            self.heeds.repaired(self.conceal.active(), self.governor.round_trip());
        }
        if by_copy && !by_floor {
            if !self.may_be_chance(cx) || missed {
                self.loses(cx);
            }
        } else if let (false, [gap, ..]) = (by_copy, self.gaps.open()) {
            cx.hop.doubt.in_vain(now, gap.opened);
            cx.hop.worth.in_vain(now, gap.opened, self.round_trip());
        }
        self.hinted |= by_copy;
        if let [gap] = self.gaps.open()
            && gap.attempts == 1
            && !missed
        {
            // Where a reply names a window it was any of the copies, of which the last one is taken up
            // when the others have passed.
            let mut sample = cx.came.since(gap.opened);
            if gap.names.len() > 1 && self.pace.spacing() < CLOSE {
                sample += cx.hop.link.full().unwrap_or(0);
            }
            self.rtt.repaired(now, sample, gap.sign.excess >= 2);
            if cx.config.has(Rule::Alias) && !self.is_late(cx) {
                self.rtt.leave_alias(self.pace.spacing());
            }
        }
        if let [gap] = self.gaps.open()
            && (by_copy || gap.attempts > 1)
        {
            self.naming.closed(gap);
        }
        for gap in self.gaps.take_gaps() {
            if by_copy || gap.sign.kind == SignKind::Step {
                self.governor.closed(now, gap.sign.kind);
            } else {
                // The size has fallen by itself, as it may have risen.
                self.governor.meant_nothing(now, gap.sign.kind);
            }
            if by_copy {
                self.repaired(cx, now.since(gap.opened));
            }
        }
        self.sizes.closed(by_floor);
        self.gaps.clear();
        self.missed.end();
    }

    /// Whether gaps often close by chance when the reply to a copy is due, and none did before.
    fn may_be_chance(&self, cx: &Context<'_>) -> bool {
        let within = 2 * self.rtt.within(Margin::Expected) + self.rhythm.batch_wait();
        let chance = proof::may_be_chance(within, self.governor.round_trip());
        chance && !self.hinted && !self.believes() && cx.config.has(Rule::Proof)
    }

    /// Whether what looks like a repair is believed to be one: where the hop is known to lose packets, or packets
    /// are so close that the first losses cost more speed than needless copies do.
    pub(super) fn believes(&self) -> bool {
        self.budget.proven() || self.pace.spacing() < CLOSE
    }

    /// The open gaps were closed by copies, so the hop loses packets.
    // Inlined it takes 330 bytes more on MIPS.
    #[inline(never)]
    fn loses(&mut self, cx: &mut Context<'_>) {
        self.budget.earn();
        cx.hop.repaired(cx.now, self.budget.very_lossy());
        let took = self.gaps.open().first().map_or(0, |gap| cx.now.since(gap.opened));
        cx.hop.worth.repaired(took, self.round_trip());
        let silent = self.gaps.open().iter().any(|gap| gap.sign.silent);
        if silent && cx.config.has(Rule::Answer) {
            cx.hop.doubt.answered();
        } else {
            cx.hop.doubt.repaired();
        }
    }

    /// Whether the reply that shows the only gap closed came in the client's rhythm, and a size that a frame of
    /// its own makes as well had shown it. Where a copy is answered as soon as the next reply is due anyway, such
    /// a size falls just when one that a copy has repaired does. So it proves no first loss.
    fn falls_by_itself(&self, beat: &Beat) -> bool {
        let in_rhythm = beat.fast && beat.count == self.rhythm.usual_count();
        let weakly = |kind| matches!(kind, SignKind::LongStep | SignKind::Floor);
        let only = matches!(self.gaps.open(), [gap] if weakly(gap.sign.kind));
        only && in_rhythm && !self.budget.proven()
    }

    /// Whether a copy has closed the open gaps, of which the oldest is the first.
    // Inlined it takes 320 bytes more on MIPS.
    #[inline(never)]
    fn closed_by_copy(&self, cx: &Context<'_>, beat: &Beat) -> bool {
        let rtt = self.rtt.get();
        let wait = self.rhythm.batch_wait().max(self.held_up(cx)).max(self.missed.takes());
        let on_time = self
            .gaps
            .nearest_reply(cx.came, rtt, wait)
            .is_some_and(|off| off <= self.rtt.within(Margin::Expected));
        let taken = self.gaps.open().first().map_or(0, |gap| cx.came.since(gap.opened));
        let clump = self.stall.clump(cx.came) || self.rhythm.clumps();
        let by_itself = self.falls_by_itself(beat);
        let facts = proof::Facts { on_time, taken, rtt, clump, by_itself };
        if cx.config.has(Rule::Proof) { proof::proves(&facts) } else { on_time }
    }
}
