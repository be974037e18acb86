// SPDX-License-Identifier: GPL-2.0-or-later
//! Where packets follow each other more closely than hosts keep time: which of them may have caused a
//! reply, and when may the reply to a copy come?

use arrayvec::ArrayVec;

use super::Flow;
use crate::flow::context::Context;
use crate::measure::margin::Margin;
use crate::measure::pace::ticks;
use crate::measure::retries::{BY_TWOS, HELD_UP};
use crate::measure::rtt::{CLIENT_LATENCY, CLOSE, MOST_LATENESS, Replies};
use crate::measure::train::PAUSE;
use crate::repair::conceal::is_own_data;
use crate::repair::gaps::{self, MAX_WINDOW, Names};
use crate::repair::plan::WINDOW_WIDTH;
use crate::rules::Rule;
use crate::store::cache::Id;
use crate::time::{Nanos, Time, US, percent};

/// A packet's reply may come so much sooner than any did before (chosen: what a data packet takes
/// longer than a probe at 100 Mbit/s).
const MARGIN: Nanos = 100 * US;
/// A copy's reply may (chosen: the grain of clocks, as what comes sooner is taken for no repair).
const EARLY: Nanos = 40 * US;

/// What came since the reply before is no older than so many times what batches take on average (chosen: a host that
/// looks at any time within a span takes twice the mean at most, and a reply may be lost).
const BATCHES: Nanos = 3;
/// A hop is hardly faster where a full packet takes all but one part in so many of the time between two
/// (chosen: halfway between equal links, and a hop twice as fast where nothing waits).
const QUEUES: Nanos = 4;

impl Flow {
    /// The sender's round trip without queues, if it is known.
    pub(super) fn round_trip(&self) -> Option<Nanos> {
        self.beyond.map(|beyond| beyond + self.rtt.get())
    }

    /// Takes note of how fast packets follow each other.
    pub(super) fn count_time(
        &mut self,
        cx: &Context<'_>,
        pause: Option<Nanos>,
        len: usize,
        long: bool,
    ) {
        self.pace.forwarded(pause.unwrap_or(Nanos::MAX));
        if is_own_data(len) {
            self.pace.sized(len);
        }
        let packets = if cx.config.has(Rule::Packets) { self.packets } else { ticks(cx.now) };
        let round_trip = self.round_trip().unwrap_or(Nanos::MAX / 4);
        self.governor.forwarded(packets, round_trip);
        if !long && self.beyond.is_some() && self.uplink.is_none() {
            self.heeds.forwarded(cx.now, pause.unwrap_or(0), round_trip);
        }
    }

    /// A packet is sent on now: when the hop takes it up. Never before the one that was sent before.
    pub(super) fn taken_up(&self, cx: &mut Context<'_>, len: usize) -> Time {
        if self.uplink.is_some() || self.is_reported(cx) || !cx.config.has(Rule::Link) {
            return cx.now;
        }
        let at = cx.hop.link.sent(cx.now, len);
        let at = if self.queues(cx) { at } else { cx.now };
        self.last_data.map_or(at, |last| last.max(at))
    }

    /// Whether the hop is known to be hardly faster than the way before it, so that packets queue.
    fn queues(&self, cx: &Context<'_>) -> bool {
        cx.hop.link.full().is_some_and(|full| full * QUEUES >= self.pace.spacing() * (QUEUES - 1))
    }

    /// Probes bound the round trip. Where losses are reported nothing is named by when a reply comes, so
    /// how close packets are matters nothing. A full packet takes longer than a probe, by as much as is known.
    /// After attempts in vain they do so more closely where it is known how long packets wait: replies that come
    /// regularly follow an estimate that is wrong by a packet as well, and then each names the wrong one.
    pub(super) fn heed_probes(&mut self, cx: &Context<'_>) {
        let queues = self.queues(cx);
        let known = cx.hop.link.full().is_some();
        let ping = if known { cx.hop.bare_ping(cx.now) } else { cx.hop.ping(cx.now) };
        let Some(ping) = ping.filter(|_| cx.config.has(Rule::Probe)) else { return };
        let closely = cx.config.has(Rule::Handshake) && !self.is_reported(cx);
        self.rtt.bound(ping, closely.then(|| self.pace.spacing()));
        if queues && cx.hop.doubt.is_used() {
            self.rtt.near(ping.median);
        }
    }

    /// A packet follows after a pause: what the replies from then on are about can be counted.
    pub(super) fn begin_train(&mut self, cx: &Context<'_>, pause: Option<Nanos>, id: Id) {
        if pause.is_some_and(|pause| pause >= PAUSE) {
            self.train.begin(cx.now, id);
        }
    }

    /// A reply has come, so much longer than usual; of the round trip it may tell which estimate is
    /// too long.
    pub(super) fn heed_train(&mut self, cx: &Context<'_>, excess: i32) {
        let unknown = self.rtt.replies().is_none() && self.may_name_windows(cx);
        if !unknown || !cx.config.has(Rule::Train) || self.is_reported(cx) {
            return;
        }
        let Some(ping) = cx.hop.ping(cx.now) else { return };
        if let Some(longest) = self.train.replied(cx.came, excess, ping.smallest, cx.cache) {
            self.rtt.at_most(longest, self.pace.spacing());
        }
    }

    /// When packets are replied to, where they follow each other so closely that a reply names a window
    /// of them and none.
    fn replies(&self, cx: &Context<'_>) -> Option<Replies> {
        let close = self.pace.spacing() < cx.config.tunables().window_spacing()
            || cx.config.has(Rule::Late) && self.is_late(cx);
        self.rtt.replies().filter(|_| close && self.may_name_windows(cx))
    }

    /// The same, and before copies have told what probes let expect, where packets are closer than what
    /// hosts take. Of a client whose counts are not known yet nothing is expected, as it may count to ten; but
    /// the first losses of a flow decide how fast it becomes, and clients reply to those at once.
    fn expected_replies(&self, cx: &Context<'_>) -> Option<Replies> {
        let soon = cx.config.has(Rule::Next);
        let unknown = self.rtt.replies().is_none()
            && self.pace.spacing() < if soon { CLOSE } else { CLIENT_LATENCY }
            && (self.rhythm.usual_count() > 0 || soon && !self.budget.proven())
            && self.may_name_windows(cx);
        if unknown { self.rtt.expected() } else { self.replies(cx) }
    }

    /// When packets are replied to, as copies were or as probes let expect.
    fn any_replies(&self) -> Option<Replies> {
        self.rtt.replies().or_else(|| self.rtt.expected())
    }

    /// Whether it can be told by how this client replies that losses hold up what follows.
    fn tells_retries(&self) -> bool {
        self.replies_by_twos() && self.uplink.is_none()
    }

    /// Whether the client replies to every packet or every second one.
    pub(super) fn replies_by_twos(&self) -> bool {
        (1..=BY_TWOS).contains(&self.rhythm.usual_count())
    }

    /// A gap shows when replies to so many packets were due since the one before. As many of them as come
    /// within what a host takes may have been due to it.
    pub(super) fn heed_retries(&mut self, cx: &mut Context<'_>, passed: usize) {
        if self.tells_retries() && cx.config.has(Rule::Retries) {
            let close = self.packets_within(CLOSE);
            cx.hop.retries.shown(passed.saturating_sub(close), self.rhythm.usual_count());
        }
    }

    /// How many packets come in this time.
    fn packets_within(&self, time: Nanos) -> usize {
        usize::try_from(time / self.pace.spacing().max(1)).unwrap_or(usize::MAX)
    }

    /// Where very much is lost so are replies, and gaps show late for that.
    fn is_held_up(&self, cx: &Context<'_>) -> bool {
        let held_up = if self.tells_retries() {
            cx.hop.retries.hold_up()
        } else {
            // Who has not counted yet may count to two, and probes of a busy host vary as well. A host that
            // is as late as any may be later.
            let seldom = self.rhythm.usual_count() > BY_TWOS;
            let heeds = cx.config.has(Rule::Retries) && self.uplink.is_none();
            let latest =
                self.rtt.replies().is_some_and(|replies| replies.lateness >= MOST_LATENESS);
            seldom && heeds && (latest || cx.hop.varies(cx.now))
        };
        held_up && !self.budget.very_lossy()
    }

    /// How much later than usual copies and their replies come, because of what holds them up.
    // Inlined it takes 60 bytes more on MIPS.
    #[inline(never)]
    pub(super) fn held_up(&self, cx: &Context<'_>) -> Nanos {
        if self.is_held_up(cx) { HELD_UP } else { 0 }
    }

    /// How long before a reply the newest packet was sent that it is about: a host reads all that has
    /// come, so that is half the packets' distance more than the least on average, however late the host
    /// is. The reply to a copy takes longer, since it is the oldest of what is read.
    // Inlined it takes 60 bytes more on MIPS.
    #[inline(never)]
    fn newest_read(&self, replies: Replies) -> Nanos {
        (replies.soonest + self.pace.spacing() / 2).min(replies.usual)
    }

    /// Whether the client replies in a way in which what it shows tells of a time. Of one that counts to ten a
    /// reply before that names its packet, unless packets are closer than hosts keep time.
    fn may_name_windows(&self, cx: &Context<'_>) -> bool {
        let counts = self.rhythm.decimating() || self.rhythm.counts_high();
        let names_one = counts && self.pace.spacing() >= CLOSE && !self.reads_batches();
        cx.config.has(Rule::Window) && self.uplink.is_none() && !names_one
    }

    /// Whether the host is so late that it cannot but reply to as many packets as it seems to count to: what
    /// comes while it is away.
    fn reads_batches(&self) -> bool {
        let batch = self.pace.spacing().saturating_mul(self.rhythm.usual_count() as Nanos);
        self.rtt.replies().is_some_and(|replies| 2 * replies.lateness > batch)
    }

    /// Whether the host is later than packets are apart.
    pub(super) fn is_late(&self, cx: &Context<'_>) -> bool {
        self.rtt.replies().is_some_and(|replies| self.later(cx, replies.lateness))
    }

    /// Whether it may be, as far as is known.
    pub(super) fn may_be_late(&self, cx: &Context<'_>) -> bool {
        let lateness = self.rtt.replies().map_or(MOST_LATENESS, |replies| replies.lateness);
        self.is_held_up(cx) || self.later(cx, lateness)
    }

    fn later(&self, cx: &Context<'_>, lateness: Nanos) -> bool {
        let apart = percent(self.pace.spacing(), cx.config.tunables().late_percent());
        lateness > apart && self.may_name_windows(cx)
    }

    /// After what time a reply may tell of a copy, and after what time any does.
    pub(super) fn hears_of_copies(&self, cx: &Context<'_>) -> (Nanos, Nanos) {
        let hidden = cx.config.has(Rule::Hidden) && self.is_late(cx);
        if let Some(Replies { soonest, lateness, .. }) = self.replies(cx).filter(|_| hidden) {
            return (soonest, soonest + lateness);
        }
        (self.rtt.get() - self.rtt.within(Margin::Same), self.rtt.get())
    }

    /// Names what may be lost by a reply that came when a gap was `shown`; `last` is when the
    /// acknowledgement before this one came. How many these are, if there are any.
    pub(super) fn name_window(
        &mut self,
        cx: &Context<'_>,
        shown: Time,
        last: Option<Time>,
        names: &mut Names,
    ) -> Option<usize> {
        let held_up = self.is_held_up(cx);
        let replies = if held_up { self.any_replies() } else { self.expected_replies(cx) }?;
        let Replies { soonest, lateness, .. } = replies;
        // A host that reads in batches acknowledges with each reply all that came since the one before.
        let lateness = lateness.max(BATCHES * self.rhythm.batch_wait());
        // What came before the last one would have shown the gap to it.
        let last = last.filter(|last| *last < shown).map(|last| last - soonest);
        let from = match last {
            // That may have been held up itself.
            Some(last) if held_up => last - HELD_UP,
            last => last.unwrap_or(Time::ZERO).max(shown - soonest - lateness),
        } - 2 * MARGIN;
        let window = (from, shown - soonest + MARGIN);
        let due = shown - self.newest_read(replies);
        let found = gaps::between(window, due, &mut self.trail, cx.cache);
        if found.is_empty() {
            return None;
        }
        *names = found;
        // Those that came while it was held up, and the one before.
        let most = if held_up { 1 + self.packets_within(HELD_UP) } else { names.len() };
        Some(names.len().min(most))
    }

    /// What to send for a gap after its first attempt was in vain, no more than `most`: of a late host what
    /// was lost while the gap closed, which the reply that would have shown it closed hides, and what is
    /// around and was not sent again yet. Of the gap it is asked when it opened and after what time an
    /// acknowledgement told surely nothing and surely something of the attempt.
    pub(super) fn rest_of_window(
        &mut self,
        cx: &Context<'_>,
        (shown, heard, told): (Time, Time, Option<Time>),
        most: usize,
    ) -> Option<ArrayVec<Id, MAX_WINDOW>> {
        let replies = self.replies(cx)?;
        let Replies { soonest, lateness, .. } = replies;
        let newest = self.newest_read(replies);
        let mut rest: ArrayVec<Id, MAX_WINDOW> = ArrayVec::new();
        if cx.config.has(Rule::Hidden) && self.is_late(cx) {
            let told = told.unwrap_or(cx.now);
            let from = heard - soonest - 2 * MARGIN;
            let window = (from, told - soonest + MARGIN);
            let found = gaps::between(window, told - newest, &mut self.trail, cx.cache);
            rest.extend(found.iter().take(cx.config.tunables().hidden_width()).copied());
        }
        let due = shown - soonest;
        let window = (due - 2 * lateness - 3 * MARGIN, due + lateness + 3 * MARGIN);
        let around = gaps::between(window, shown - newest, &mut self.trail, cx.cache);
        let hidden = rest.len();
        for id in around {
            if !rest[..hidden].contains(&id) {
                rest.push(id);
            }
        }
        rest.truncate(most.min(WINDOW_WIDTH));
        Some(rest)
    }

    /// Whether replies name windows.
    pub(super) fn names_windows(&self, cx: &Context<'_>) -> bool {
        self.replies(cx).is_some()
    }

    /// How far now is from when the reply to the nearest copy was due.
    pub(super) fn off_copy(&self, cx: &Context<'_>) -> Option<Nanos> {
        let wait = self.rhythm.batch_wait().max(self.held_up(cx));
        if let Some(Replies { soonest, lateness, .. }) = self.replies(cx) {
            return self.gaps.nearest_reply(cx.came, soonest, wait.max(lateness));
        }
        self.gaps.nearest_reply(cx.came, self.rtt.get(), wait)
    }

    /// How soon a copy can be replied to, and after what time any reply tells of it: a host reads
    /// all that has come before it replies.
    pub(super) fn reply_times(&self, cx: &Context<'_>) -> (Nanos, Nanos) {
        if let Some(Replies { soonest, .. }) = self.replies(cx) {
            return (soonest - EARLY, soonest + EARLY);
        }
        (self.rtt.get() - self.rtt.within(Margin::Same), self.rtt.get())
    }
}
