// SPDX-License-Identifier: GPL-2.0-or-later
//! Reading a reply: what its size and its time say, and what speaks against believing it.

use super::Flow;
use crate::api::{EventKind, Handle, Verdict};
use crate::flow::context::Context;
use crate::infer::aim::Reply;
use crate::infer::rhythm::Beat;
use crate::infer::sign::{GapSign, SignKind};
use crate::infer::sizes::{Facts, Reading};
use crate::infer::stall::Moment;
use crate::measure::margin::Margin;
use crate::measure::rtt::CLOSE;
use crate::rules::Rule;
use crate::time::{Nanos, Time, US};

/// A reply this soon after another one came right after it: no repair makes two (chosen: below
/// the time between two packets at 20 Mbit/s).
const RIGHT_AFTER: Nanos = 400 * US;
/// A decimating client's reply this close to when the reply to a packet was due is that packet's,
/// and not a copy's (chosen: a third of what is still sharp).
const EXACT: Nanos = 60 * US;
/// A client that counts to this many replies so often that a reply before its count means nothing
/// (RFC 9000, section 13.2.2).
const BY_TWOS: u64 = 2;
/// One part in this many of a round trip passes before a sender takes a packet for lost from
/// time alone (RFC 9002, section 6.1.2: kTimeThreshold is 9/8).
const TIME_THRESHOLD_PART: Nanos = 8;

/// Why a sign of a gap is not acted on.
#[derive(Clone, Copy, Debug)]
enum Veto {
    /// The rule that saw it is switched off.
    SwitchedOff,
    /// It may be the reply to a packet that was not seen.
    Missed,
    /// The sender does not heed losses.
    Indifferent,
    /// The hop itself is congested, and the sender has to hear of that.
    Congestion,
    /// Replies keep no time, so the gap has no place.
    Blur,
    /// It came in the clump that ended a stall, and another one did before.
    Stall,
    /// The access point has counted no loss for which copies were not sent already.
    Uncounted,
    /// Attempts for this client were in vain, and it is too early for another one.
    Doubt,
    /// It is a size, which varies for other reasons, and nothing was lost while packets changed places.
    Restless,
    /// So many gaps stay open that a queue must be overflowing before the router.
    Storm,
    /// As many gaps as can be followed are open.
    NoRoom,
}

impl Veto {
    /// The order in which they are asked.
    const ORDER: [Veto; 11] = [
        Veto::SwitchedOff,
        Veto::Restless,
        Veto::Missed,
        Veto::Indifferent,
        Veto::Congestion,
        Veto::Blur,
        Veto::Stall,
        Veto::Uncounted,
        Veto::Doubt,
        Veto::Storm,
        Veto::NoRoom,
    ];
}

impl Flow {
    /// A datagram of the receiver's that can be read as an acknowledgement.
    pub(super) fn on_acknowledgement(
        &mut self,
        cx: &mut Context<'_>,
        size: usize,
        handle: Handle,
    ) -> Verdict {
        let size = i32::try_from(size).unwrap_or(i32::MAX / 2);
        let previous = self.last_reply.replace(cx.came);
        self.look_for_clump(cx.came, previous);
        let (reading, beat) = self.read(cx, size, previous);
        let last = self.acknowledged;
        if !matches!(reading, Reading::Noise | Reading::Unsure) {
            self.acknowledged = Some(cx.came);
            if !self.gaps.open().is_empty() {
                let (soonest, latest) = self.hears_of_copies(cx);
                let hastens = self.names_windows(cx);
                self.gaps.replied(cx.came, soonest, latest, hastens);
            }
        }
        let ends = self.ends_episode(cx, reading, beat, previous, last);
        if beat.certain && reading != Reading::Noise {
            self.certain = cx.came;
        }
        if ends {
            self.release(cx, true);
            return Verdict::Forward;
        }
        // What shows a gap only if the next one does so as well waits for that one, as it would tell the sender of the
        // loss: for no longer than a packet's way to the client and back.
        let tells = match reading {
            Reading::Unsure => self.conceals(cx),
            _ => self.conceal.active() && !self.gaps.open().is_empty() && !self.harmless(&beat),
        };
        if !tells {
            return Verdict::Forward;
        }
        if !self.conceal.active() {
            self.conceal.await_next(cx.now, self.rtt.get().min(cx.config.hold_cap));
            self.event(cx, EventKind::HoldStart);
        }
        if self.hold(cx, handle) {
            Verdict::Hold
        } else {
            self.release(cx, true);
            Verdict::Forward
        }
    }

    /// Does what a reply asks for; true if it is the one to go first, and what is held
    /// after it.
    fn ends_episode(
        &mut self,
        cx: &mut Context<'_>,
        reading: Reading,
        beat: Beat,
        previous: Option<Time>,
        last: Option<Time>,
    ) -> bool {
        match reading {
            Reading::NewGap(sign) => self.new_gap(cx, sign, beat, previous, last),
            Reading::OneClosed => self.one_closed(cx),
            Reading::Closed if !self.gaps.open().is_empty() => {
                self.all_closed(cx, &beat);
                return true;
            }
            Reading::Upstream => {
                cx.stats.losses_upstream += 1;
                self.governor.upstream(cx.now);
            }
            Reading::Closed | Reading::Noise | Reading::Plain | Reading::Unsure => {
                if self.conceal.ending() && self.gaps.open().is_empty() {
                    return true;
                }
                let plain = reading == Reading::Plain;
                let missed = self.missed.goes_on() && !self.gaps.open().is_empty();
                if missed {
                    self.send_missed(cx, &beat);
                } else if plain
                    && cx.config.has(Rule::Run)
                    && self.gaps.acknowledges_copy(cx.came, &self.rtt, &beat)
                {
                    self.longer_run(cx, &beat);
                }
            }
        }
        false
    }

    /// What a reply says, with everything that bears on it.
    fn read(&mut self, cx: &mut Context<'_>, size: i32, previous: Option<Time>) -> (Reading, Beat) {
        let from_copy = self.off_copy(cx);
        let beat = self.beat(cx, size, previous, from_copy);
        let offset = self.follow(cx, &beat);
        let out_of_step = beat.skipped || beat.early && beat.count > 1;
        let excess = self.sizes.excess(size);
        self.heed_train(cx, excess);
        if cx.config.has(Rule::Storm) && self.governor.storms(cx.now, excess, out_of_step) {
            self.sizes.rebase(size);
            return (Reading::Plain, beat);
        }
        let facts = self.size_facts(cx, size, previous, from_copy, offset, beat);
        let reading = self.sizes.read(&facts);
        let Reading::NewGap(sign) = reading else {
            return (self.heard_of_copy(cx, reading, &beat, size), beat);
        };
        if self.missed.goes_on() && !self.gaps.open().is_empty() {
            // Fields change their length while a long gap becomes shorter.
            return (Reading::Plain, beat);
        }
        let veto = Veto::ORDER.into_iter().find(|veto| self.forbids(cx, *veto, &sign));
        (veto.map_or(reading, |veto| self.vetoed(cx, veto, size, sign.silent)), beat)
    }

    /// Where sizes show nothing a reply that a copy explains, and no packet or not the client's
    /// count, shows that the copy was needed: a client replies at once to what it has missed, and
    /// not at all to what it has had.
    fn heard_of_copy(
        &mut self,
        cx: &Context<'_>,
        reading: Reading,
        beat: &Beat,
        size: i32,
    ) -> Reading {
        let silent = cx.config.has(Rule::Answer) && self.gaps.awaits_answer(cx.came, &self.rtt);
        let unread = matches!(reading, Reading::Plain | Reading::Noise);
        if !silent || !unread || !self.answers_copy(cx.came, beat) {
            return reading;
        }
        if self.gaps.open().len() > 1 {
            return Reading::OneClosed;
        }
        self.sizes.rebase(size);
        Reading::Closed
    }

    fn answers_copy(&self, now: Time, beat: &Beat) -> bool {
        let usual = self.rhythm.usual_count();
        let too_soon = usual > BY_TWOS && beat.count < usual && !beat.timer && !beat.in_step;
        let near = self.gaps.nearest_reply(now, self.rtt.get(), 0);
        let due = near.is_some_and(|off| off <= self.rtt.within(Margin::Near));
        too_soon && due || self.gaps.acknowledges_copy(now, &self.rtt, beat)
    }

    /// Looks whether this datagram of the receiver's ends a stall; `previous` is when the one
    /// before it came. Those with data of its own tell as well, as they acknowledge, too.
    pub(super) fn look_for_stall(&mut self, cx: &mut Context<'_>, previous: Option<Time>) {
        let wanted = cx.config.has(Rule::Stall) && self.rtt.known();
        let Some(previous) = previous.filter(|_| wanted) else { return };
        let rtt = self.rtt.get();
        let moment = Moment {
            now: cx.came,
            previous,
            rtt,
            usual: self.rhythm.usual_count(),
            echo: rtt + self.rtt.within(Margin::Overdue).min(rtt),
        };
        self.stall.replied(&moment, &mut self.trail, cx.cache);
    }

    /// What the reply's rhythm says. `from_copy` is how far it is from when the reply to the nearest
    /// copy was due.
    pub(super) fn beat(
        &mut self,
        cx: &mut Context<'_>,
        size: i32,
        previous: Option<Time>,
        from_copy: Option<Nanos>,
    ) -> Beat {
        let now = cx.came;
        let reply = Reply {
            now,
            excess: self.sizes.excess(size),
            copy_due: from_copy.is_some_and(|from_copy| from_copy <= self.rtt.within(Margin::Near)),
            constant: cx.config.has(Rule::Count) && self.sizes.constant(size),
            always_constant: cx.config.has(Rule::Count) && self.sizes.always_constant(size),
            regular_only: cx.config.has(Rule::Regular),
            sent: self.packets,
            since_last: previous.map(|previous| now.since(previous)),
            spacing: self.pace.spacing(),
        };
        let mut beat = self.rhythm.observe(&reply, &self.rtt, &mut self.trail, cx.cache);
        self.follow_habit(cx);
        // A decimating client's replies wait for its count or its timer.
        let late = if self.rhythm.decimating() { 0 } else { beat.late };
        self.guard.replied(late, self.rtt.get());
        self.tail.replied(now, beat.trigger, reply.copy_due, &self.rtt);
        beat.skipped &= cx.config.has(Rule::Skip) && !self.governor.weak(now, SignKind::Skip);
        beat.early &= cx.config.has(Rule::Rhythm);
        beat.adjacent &= cx.config.has(Rule::Adjacent);
        beat
    }

    /// Follows the local round trip; gives how much earlier the reply came than the reply to
    /// the nearest packet was due.
    pub(super) fn follow(&mut self, cx: &mut Context<'_>, beat: &Beat) -> Option<Nanos> {
        let due = cx.came - self.rtt.get();
        let (_, offset) = self.trail.nearest(cx.cache, due)?;
        let waited = self.rhythm.decimating() && (!beat.fast || beat.timer);
        if !waited {
            self.rtt.track(-offset);
            if cx.config.has(Rule::Punctual) {
                self.rtt.compare(self.pace.spacing());
            }
        }
        Some(offset)
    }

    /// What the reply's size is judged with.
    // Inlined it takes 250 bytes more on MIPS.
    #[inline(never)]
    fn size_facts(
        &self,
        cx: &Context<'_>,
        size: i32,
        previous: Option<Time>,
        from_copy: Option<Nanos>,
        offset: Option<Nanos>,
        beat: Beat,
    ) -> Facts {
        let now = cx.came;
        let tolerance = self.rtt.within(Margin::Expected);
        let (soonest, latest) = self.reply_times(cx);
        let possible = !cx.config.has(Rule::Soonest) || self.gaps.may_be_replied(now, soonest);
        let better_explained_by_packet = self.rhythm.decimating()
            && beat.fast
            && from_copy.is_none_or(|from_copy| from_copy >= beat.error.max(EXACT));
        Facts {
            now,
            size,
            open: self.gaps.open().len(),
            explained: offset
                .is_some_and(|offset| offset.abs() <= self.rtt.within(Margin::Related)),
            copy_due: possible
                && from_copy.is_some_and(|from_copy| from_copy <= tolerance)
                && !better_explained_by_packet,
            // Of a decimating client a packet may explain the reply that shows a repair better.
            prunes: cx.config.has(Rule::Prune) && !self.rhythm.decimating(),
            tells_first: self.gaps.tells_first(now, self.acknowledged, soonest, latest),
            due: self.gaps.may_be_closed(now, soonest),
            all_tried: self.gaps.all_tried(now, self.rtt.get() + tolerance),
            close: self.pace.spacing() < CLOSE && !self.missed.active(),
            missed: self.missed.active(),
            at_once: previous.is_some_and(|previous| now.since(previous) < RIGHT_AFTER),
            counts_high: self.rhythm.counts_high(),
            shrinks: cx.config.has(Rule::Shorter) && self.rhythm.replies_often(),
            repeats: cx.config.has(Rule::Repeat)
                && self.rhythm.replies_often()
                && cx.hop.doubt.hesitates(),
            beat,
        }
    }

    /// Asks one rule whether it speaks against a gap that a sign of this kind revealed.
    fn forbids(&mut self, cx: &Context<'_>, veto: Veto, sign: &GapSign) -> bool {
        let on = |rule| cx.config.has(rule);
        match veto {
            Veto::Indifferent => self.is_indifferent(cx),
            Veto::SwitchedOff => !on(sign.kind.rule()),
            Veto::Restless => {
                !matches!(sign.kind, SignKind::Rhythm | SignKind::Skip)
                    && self.sizes.restless.is()
                    && self.pairs.as_ref().is_some_and(|pairs| pairs.found_clean(self.packets))
            }
            Veto::Missed => cx.missed.is_some_and(|at| cx.came.since(at) <= self.longest_reply()),
            Veto::Congestion => on(Rule::Guard) && self.guard.congested(cx.now, cx.hop),
            // Where a hop was seen to lose packets and attempts mostly repair something, enough of them find
            // the packet.
            Veto::Blur => {
                let finds = self.budget.proven() && !cx.hop.doubt.hesitates();
                on(Rule::Blur) && self.rtt.blurred() && !finds
            }
            Veto::Stall => on(Rule::Stall) && self.stall.spent(cx.now),
            Veto::Uncounted => self.counted(cx) == 0,
            Veto::Doubt => self.doubts(cx, sign.silent && on(Rule::Answer), self.budget.proven()),
            Veto::Storm => on(Rule::Overflow) && self.storm_begins(cx),
            Veto::NoRoom => self.gaps.is_full(),
        }
    }

    /// Whether it is too early for an attempt, as too many were in vain.
    // Inlined it takes 130 bytes more on MIPS.
    #[inline(never)]
    pub(super) fn doubts(&self, cx: &Context<'_>, answered: bool, repairs: bool) -> bool {
        cx.config.has(Rule::Doubt) && cx.hop.doubt.forbids(cx.now, answered, repairs)
    }

    /// How long a reply to a packet may take.
    fn longest_reply(&self) -> Nanos {
        self.rtt.get() + self.rtt.within(Margin::Overdue)
    }

    /// What a reply says whose sign was not acted on.
    fn vetoed(&mut self, cx: &mut Context<'_>, veto: Veto, size: i32, silent: bool) -> Reading {
        self.heeds.told();
        match veto {
            Veto::SwitchedOff | Veto::Missed | Veto::Restless => {}
            Veto::Congestion => cx.stats.losses_congestion += 1,
            Veto::Indifferent | Veto::Blur | Veto::Stall | Veto::Uncounted | Veto::Doubt => {
                cx.stats.losses_upstream += 1;
                if silent && matches!(veto, Veto::Doubt) {
                    self.governor.upstream(cx.now);
                }
            }
            Veto::Storm => self.step_aside(cx),
            Veto::NoRoom => return Reading::Noise,
        }
        self.sizes.rebase(size);
        Reading::Plain
    }

    /// For how long the sender does not miss a packet of which only a later one is acknowledged (RFC
    /// 9002, section 6.1.2); 0 if nobody knows.
    pub(super) fn time_threshold(&self) -> Nanos {
        self.round_trip().map_or(0, |round_trip| round_trip / TIME_THRESHOLD_PART)
    }

    /// Whether the sender cannot yet take a packet for lost from this reply: it
    /// acknowledges less than three packets beyond each gap (RFC 9002, section
    /// 6.1.1), and the gaps should be closed before an eighth of a round trip
    /// has passed (section 6.1.2).
    fn harmless(&self, beat: &Beat) -> bool {
        let patience = self.time_threshold();
        beat.certain
            && !self.budget.proven()
            && self.conceal.held() == 0
            && self.gaps.open().iter().all(|gap| gap.harmless(beat.trigger, patience))
    }
}
