// SPDX-License-Identifier: GPL-2.0-or-later
//! Which packets may be missing when a reply has revealed a gap, the likeliest first.

use super::Flow;
use crate::flow::context::Context;
use crate::infer::rhythm::Beat;
use crate::infer::sign::GapSign;
use crate::repair::gaps::{self, Names};
use crate::repair::unheard;
use crate::rules::Rule;
use crate::store::cache::{Cache, Id};
use crate::time::Time;

/// What is named for a gap.
pub(super) struct Named {
    /// The likeliest first.
    pub names: Names,
    /// Packets whose replies were due between the previous reply and this one.
    pub since_reply: usize,
    /// So many may be missing, as timing tells only that.
    pub window: Option<usize>,
    /// The first packet behind a stall.
    pub front: Option<Id>,
    /// The first so many may be missing because acknowledgements were lost as well.
    pub behind: usize,
    /// Nothing but its place before the packet that triggered the reply has named the first.
    pub by_place: bool,
}

impl Flow {
    /// Names what may be missing; `previous` is when the reply before came, and `last` the acknowledgement.
    // Inlined it takes 600 bytes more on MIPS, where flash is small.
    #[inline(never)]
    pub(super) fn name(
        &mut self,
        cx: &mut Context<'_>,
        sign: &GapSign,
        beat: &Beat,
        previous: Option<Time>,
        last: Option<Time>,
    ) -> Named {
        let since_reply = previous.map_or(0, |previous| {
            gaps::since_reply(previous, cx.came, &self.rtt, &mut self.trail, cx.cache)
        });
        let place = if cx.config.has(Rule::Place) { self.naming.place() } else { 1 };
        let depth = since_reply + 2;
        let mut names = gaps::rank(sign.shown, &self.rtt, &mut self.trail, cx.cache, depth, place);
        let by_chain = (self.rhythm.counts_high() || beat.early) && self.rtt.sharp();
        if by_chain {
            self.name_by_chain(cx.cache, beat, &mut names);
        }
        let front = self.stall.take_front(cx.came);
        let window = if let Some(front) = front {
            names = gaps::from(front, cx.cache);
            None
        } else {
            self.heed_retries(cx, since_reply);
            self.name_window(cx, sign.shown, last, &mut names)
        };
        let behind = if window.is_none() { self.name_behind(cx, beat, &mut names) } else { 0 };
        let alone = window.is_none() && front.is_none() && behind == 0;
        let by_place = alone && !by_chain && sign.kind.by_size();
        Named { names, since_reply, window, front, behind, by_place }
    }

    /// More packets came since the reply before than this client lets pass: acknowledgements were
    /// lost, and the gap may be before what caused any of them. How many packets that names.
    fn name_behind(&mut self, cx: &Context<'_>, beat: &Beat, names: &mut Names) -> usize {
        let usual = self.rhythm.usual_count();
        let lost = beat.fast && beat.count > usual + 1;
        if !(lost && cx.config.has(Rule::Behind) && self.tells_each()) {
            return 0;
        }
        let Some((trigger, _)) = self.trail.nearest(cx.cache, cx.came - self.rtt.get()) else {
            return 0;
        };
        let mut found = unheard::behind(trigger, beat.count, usual, cx.cache);
        let behind = found.len();
        let others = names.iter().filter(|name| !found[..behind].contains(name));
        let room = found.remaining_capacity();
        let others: Names = others.take(room).copied().collect();
        found.extend(others);
        *names = found;
        behind
    }

    /// Packets in a row were acknowledged one by one: the gap is before the first of them.
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
}
