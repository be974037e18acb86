// SPDX-License-Identifier: GPL-2.0-or-later
//! A flow whose packets change places two by two, because its client shows losses in no other way.
//!
//! This is when they do, and how they go; what replies then say is in [`super::answers`].

use alloc::boxed::Box;

use super::Flow;
use crate::api::{Handle, Verdict};
use crate::flow::context::Context;
use crate::flow::data::Bytes;
use crate::flow::out::Queued;
use crate::measure::hop::HopState;
use crate::measure::margin::Margin;
use crate::repair::conceal::is_own_data;
use crate::repair::expected::{Item, What};
use crate::repair::pairs::{Pairs, Turn, Waiting};
use crate::rules::Rule;
use crate::store::cache::{Id, LARGEST_KEPT};
use crate::time::{Nanos, Time, US};

/// A client counts to no more than this (chosen: the ten of the stacks that reply rarely, and a
/// little more). One that replies to each packet sends that many times as much.
const MOST_COUNT: u64 = 12;

/// Who replies to no more packets than this shows soon whether replies keep time here.
const OFTEN: u64 = 4;
/// A packet goes so many places later than it came.
const PLACES: Nanos = 2;
/// Replies name their packets while their mean deviation is less than one part in so many of the distance of
/// packets: to begin with (chosen: replies that come by chance deviate by a quarter from the nearest
/// packet's, so that says little yet), and from the packet that each is about for as long as it goes on.
const EXACT_PART: Nanos = 5;
const BLURRED_PART: Nanos = 4;
/// Half of the probes of a hop where replies can name their packets are no further apart than twice this (chosen: half of
/// what a radio takes for one more attempt. Simulated, a hop that loses nothing and fails in 5, 10 and 15 % of its attempts,
/// a client that fills its replies up: up to 6 % of its packets were sent again without need, and 1.4 with this).
const STEADY: Nanos = 200 * US;
/// So many packets whose replies were all of one size (chosen: twenty replies to two each).
const ALIKE: u64 = 40;
/// After so many it is tried although nothing has looked like a loss and nothing was repaired (chosen: on a
/// hop that loses one in a hundred, a client whose sizes tell has shown one with 19 in 20). On a hop that
/// loses nothing this is once, as it then is known to be clean.
const ALIKE_FOR_LONG: u64 = 300;

impl Flow {
    pub(super) fn in_pairs(&self) -> bool {
        self.pairs.as_ref().is_some_and(|pairs| pairs.is_on())
    }

    pub(super) fn pairs_deadline(&self) -> Option<Time> {
        self.pairs.as_ref().and_then(|pairs| pairs.deadline())
    }

    /// A packet that has to wait, or goes ahead of one that waits; none if it goes in its order.
    pub(super) fn pair(
        &mut self,
        cx: &mut Context<'_>,
        packet: &[u8],
        long: bool,
        handle: Handle,
    ) -> Option<Verdict> {
        if !self.in_pairs() && !self.begin_pairs(cx) {
            return None;
        }
        let usable = !long && packet.len() <= LARGEST_KEPT;
        if !usable || !self.may_pair(cx) {
            if self.pairs.as_ref()?.plays_along() {
                self.end_pairs(cx);
            } else {
                self.rest_pairs(cx, false);
            }
            return None;
        }
        if self.pairs.as_ref()?.in_vain(self.packets) {
            self.rest_pairs(cx, true);
            return None;
        }
        if !is_own_data(packet.len()) {
            // It may be nothing but an acknowledgement, to which nobody replies. It overtakes as well, and
            // what comes next in order is no reason to reply.
            self.pairs.as_mut()?.overtaken(cx.now);
            return None;
        }
        self.pairs.as_mut()?.came(cx.now);
        if self.pairs.as_ref()?.turn() == Turn::Ahead {
            let (id, verdict) = self.goes(cx, &Bytes::New(packet), long, handle);
            self.await_reply(cx, id, What::Ahead);
            self.pairs.as_mut()?.overtaken(cx.now);
            return Some(verdict);
        }
        let id = cx.cache.push(cx.now, 0, None, packet)?;
        let before = self.pairs.as_mut()?.wait(cx.now, handle, id, cx.config.hold_cap);
        self.follows(cx, before);
        Some(Verdict::Hold)
    }

    /// One that has waited goes.
    fn follows(&mut self, cx: &mut Context<'_>, waiting: Option<Waiting>) {
        let Some(waiting) = waiting else { return };
        let (id, verdict) = self.goes(cx, &Bytes::Kept(waiting.id), false, waiting.handle);
        if waiting.is_behind() {
            self.await_reply(cx, id, What::Behind);
        }
        if verdict != Verdict::Hold {
            // Or else it is sent in the way that is reported of.
            cx.out.push(Queued::Release(waiting.handle));
        }
    }

    pub(super) fn await_reply(&mut self, cx: &Context<'_>, id: Option<Id>, what: What) {
        let Some(record) = id.and_then(|id| cx.cache.record(id)) else { return };
        let Some((pairs, id)) = self.pairs.as_mut().zip(id) else { return };
        let sent = if what == What::Copy { record.resent_at } else { record.at };
        pairs.expected.push(Item { id, sent, what });
    }

    /// Whether packets may change places now: if they are further apart than replies scatter, and
    /// close enough for the sender not to miss one.
    fn may_pair(&self, cx: &Context<'_>) -> bool {
        // While they change places some go closer together than they came.
        let on = self.pairs.as_ref().filter(|pairs| pairs.is_on());
        let (spacing, part) = match on {
            Some(pairs) => (pairs.spacing(), BLURRED_PART),
            None => (self.pace.spacing(), EXACT_PART),
        };
        cx.config.reorders
            && cx.config.has(Rule::Pairs)
            && !self.exact.own()
            && !self.is_indifferent(cx)
            // What a hop missed while it was away goes again in order.
            && !self.tail.away()
            && cx.hop.spread(cx.now) < STEADY
            && self.rtt.deviation() * part < spacing
            // The sender may miss it for as long as it takes to go after the one that was sent later.
            && self.time_threshold() >= PLACES * spacing + self.rtt.within(Margin::Same)
    }

    /// Begins where the client's sizes seem to tell nothing: they vary for other reasons, or gaps did not
    /// show in them. What they are while packets change places tells that for certain. Where another flow
    /// of the client has shown that already, nothing has to be waited for.
    fn begin_pairs(&mut self, cx: &mut Context<'_>) -> bool {
        let count = self.rhythm.usual_count();
        let lossy = self.budget.proven();
        let restless = lossy && self.sizes.restless.is() && cx.hop.doubt.hesitates();
        let least = if self.hidden > 0 { ALIKE } else { ALIKE_FOR_LONG };
        let told_before = self.repaired > 0 && self.hidden <= 0;
        let known = self.sizes.all_alike() && self.paired_before;
        let alike = known || !told_before && u64::from(self.sizes.alike()) * count >= least;
        let wanted = restless || alike && (lossy || cx.hop.state(cx.now) != HopState::Clean);
        if !wanted || !self.pairs.as_deref().is_none_or(|pairs| self.is_rested(pairs, restless)) {
            return false;
        }
        let begins = (1..=MOST_COUNT).contains(&count)
            && self.gaps.open().is_empty()
            && !self.conceal.active()
            && self.start.is_over()
            && (known || self.pace.streams())
            && (self.rtt.sharp() || count > OFTEN)
            && self.hop_slot.is_some()
            && cx.config.conceal
            && self.may_pair(cx);
        if begins {
            // One allocation in a flow's life.
            let pairs = self.pairs.get_or_insert_with(Box::default);
            pairs.begin(self.packets, self.pace.spacing(), !restless, known);
        }
        begins
    }

    fn is_rested(&self, pairs: &Pairs, restless: bool) -> bool {
        pairs.may_begin(self.packets, self.last_repair, !restless)
    }

    /// Packets go in their order from now on.
    pub(super) fn end_pairs(&mut self, cx: &mut Context<'_>) {
        if !self.in_pairs() {
            return;
        }
        let waiting = self.pairs.as_mut().and_then(|pairs| pairs.end());
        self.follows(cx, waiting);
        self.rhythm.interrupted();
    }

    /// The same, because it was of no use: the client does not play along, or else (`clean`) nothing
    /// was lost.
    pub(super) fn rest_pairs(&mut self, cx: &mut Context<'_>, clean: bool) {
        let (packets, now) = (self.packets, cx.now);
        let waiting = self.pairs.as_mut().and_then(|pairs| pairs.rest(now, packets, clean));
        self.follows(cx, waiting);
        self.rhythm.interrupted();
    }

    pub(super) fn pairs_timeout(&mut self, cx: &mut Context<'_>) {
        let now = cx.now;
        let waiting = self.pairs.as_mut().and_then(|pairs| pairs.overdue(now));
        self.follows(cx, waiting);
        self.send_open(cx);
        if self.in_pairs() && self.conceal.deadline().is_some_and(|at| at <= now) {
            self.answer_overdue(cx);
        }
    }
}
