// SPDX-License-Identifier: GPL-2.0-or-later
//! How a client acknowledges: the rhythm of its replies, learned per flow.
//!
//! Most stacks acknowledge every second packet. Chromium acknowledges every tenth, or a
//! quarter of the path's round trip after the first unacknowledged packet, and the
//! sign of a gap is not size but rhythm: each of the next four packets is acknowledged at
//! once. Such a client is called *decimating* here.

use core::num::NonZeroU32;

use crate::infer::aim::{Aim, Reply, aim};
use crate::infer::tally::Tally;
use crate::measure::habit::Habit;
use crate::measure::margin::Margin;
use crate::measure::rtt::{CLOSE, LocalRtt};
use crate::store::cache::{Cache, Id, Trail};
use crate::store::recent::Recent;
use crate::time::{MS, Nanos, US, divided};
use crate::tunables::Tunables;

/// Replies longer than the usual one by more than this many bytes carry data of the client's
/// own and say nothing about its rhythm (chosen: more than a few ranges, less than any frame with
/// data).
const OWN_DATA_EXCESS: i32 = 12;
/// A decimating client replies after no more packets than this (chosen: more than twice the ten
/// of Chromium; higher counts are pauses).
const DECIMATING_TO: u64 = 24;
/// Long counts of one length in a row that show that a client has begun to decimate (chosen: one may be a
/// lost reply, and two batches of a host that is late are equally long by chance).
const LONG_COUNTS: u32 = 3;
/// A count of less than this share of the usual one is short, in percent (chosen: half of it and
/// a little, as lost replies make counts longer and not shorter).
const SHORT_PERCENT: u64 = 60;
/// Chromium replies to every second packet at first; within this many packets two single replies
/// in a row are a sign as well (chosen: its first hundred packets, and one window beside them).
const OPENING_PACKETS: u64 = 140;
/// A reply this soon after another, and within a part of the distance in which packets follow each
/// other, with no packet sent on between them, belongs to a clump (chosen: a quarter of the distance
/// of packets at 10 Mbit/s, and half of that distance where they are closer: a burst may be over
/// when the replies to it come).
const CLUMP_GAP: Nanos = 300 * US;
const CLUMP_PART: Nanos = 2;
/// A pause between replies from this long on is none of the rhythm's (chosen: twice the default
/// max_ack_delay, RFC 9000, section 18.2).
const PAUSE: Nanos = 50 * MS;
/// Replies after which their mean distance is believed (chosen: one and a half times
/// [`GAP_PART`]).
const ENOUGH_REPLIES: u32 = 16;
/// The share of clumped replies, their mean distance and the packets between them follow each
/// reply by one part in this many (chosen: a few round trips' replies).
const CLUMPED_PART: i32 = 32;
const GAP_PART: u32 = 10;
const PER_REPLY_PART: u32 = 20;
/// Packets a reply are counted in parts: a whole one has this many.
const PARTS: i64 = 16;
/// A client that replies after fewer packets than this on average, in [`PARTS`], is not decimating,
/// whatever its replies' times say (chosen: from two packets a reply, two replies to ten packets
/// each are enough to pass it). Where the hop is slower than the way before it, a burst passes the
/// router in a moment, and the times of most replies to it name its last packet.
const SELDOM: i64 = PARTS * 5 / 2;
/// A client that replies after fewer packets than this replies often (chosen: one more than the
/// two of RFC 9000, section 13.2.2).
const OFTEN: u64 = 3;
/// A sender pauses whose packets' replies are this many times as far apart as packets in a row let expect (chosen:
/// half of the time nothing comes).
const PAUSES: Nanos = 2;
/// Timer assumed until one was seen (chosen: a little less than the default max_ack_delay of 25
/// ms, RFC 9000, section 18.2).
const UNKNOWN_TIMER: Nanos = 20 * MS;
/// What a delayed reply may have waited for, if it was the client's timer (chosen: from the
/// margin of a timer to about twice the default max_ack_delay).
const TIMERS: core::ops::Range<Nanos> = 1500 * US..60 * MS;
/// Samples of a timer that are remembered, and before one is believed (chosen: the fewest of
/// which one may be wrong).
const TIMER_SAMPLES: usize = 8;
const ENOUGH_TIMERS: usize = 3;
/// Samples of one timer are no further apart than this (chosen: a timer's grain of 1 ms).
const TIMER_SPREAD: Nanos = 1200 * US;
/// Bytes above the usual size up to which a late reply is still nothing but an acknowledgement
/// (chosen: a gap's two bytes and longer fields).
const TIMER_EXCESS: i32 = 4;
/// More packets between two replies are not counted, so that sums stay small.
const MOST_PACKETS: u64 = 1 << 20;

#[derive(Clone, Debug)]
pub(crate) struct Rhythm {
    tunables: Tunables,
    /// Mean time between replies.
    reply_gap: Nanos,
    /// Share of replies that came in clumps, in 1024ths.
    clumped: i32,
    replies: u32,
    /// Forwarded packets a reply, in [`PARTS`].
    per_reply: i64,
    sent_at_reply: u64,
    counts: Tally,
    timers: Recent<Nanos, TIMER_SAMPLES>,
    /// All replies are of one size.
    constant: bool,
    /// What `timers` amount to, kept because every reply asks.
    timer: Option<Nanos>,
    previous_trigger: Option<(Id, u64)>,
    /// That one was certain: timing named one packet, and no reply to a copy was
    /// due at the time.
    previous_certain: bool,
    /// The reply to a copy was due when it came.
    copy_before: bool,
    decimating: bool,
    short_counts: u32,
    /// Long counts of one length in a row.
    long_counts: u32,
    /// The last one of them.
    long_count: u64,
    early_run: u32,
    /// What triggered the reply before the last one, if that was early.
    out_of_step_from: Option<u64>,
    ones: u32,
    /// First packet of a run of packets acknowledged one by one; 0 if there is none.
    chain: u64,
}

/// What the rhythm says about one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beat {
    /// Number of the packet that triggered it.
    pub trigger: u64,
    /// Packets since the previous trigger.
    pub count: u64,
    /// It came when the reply to a packet was due.
    pub fast: bool,
    /// It came when the client's timer was due.
    pub timer: bool,
    /// It came before the count or the timer was reached: a gap.
    pub early: bool,
    /// The one before was out of step, and this one is not if that is left out: that was a frame of
    /// the client's own.
    pub in_step: bool,
    /// It came one packet later than the client's very steady count.
    pub skipped: bool,
    /// It was triggered by the very next packet after the previous trigger: no
    /// packet that passed here can be missing between them.
    pub adjacent: bool,
    /// Packets acknowledged one by one before this one, at least two.
    pub ones: u32,
    /// First packet of that run.
    pub chain: u64,
    /// Distance from when the reply to the nearest packet was due.
    pub error: Nanos,
    /// No other packet can have triggered it.
    pub certain: bool,
    /// Since the reply to the newest packet that can have triggered it was due.
    pub late: Nanos,
}

impl Rhythm {
    pub fn new(tunables: Tunables) -> Rhythm {
        Rhythm {
            tunables,
            reply_gap: 0,
            clumped: 0,
            replies: 0,
            per_reply: 2 * PARTS,
            sent_at_reply: 0,
            counts: Tally::default(),
            timers: Recent::new(),
            constant: false,
            timer: None,
            previous_trigger: None,
            previous_certain: false,
            copy_before: false,
            decimating: false,
            short_counts: 0,
            long_counts: 0,
            long_count: 0,
            early_run: 0,
            out_of_step_from: None,
            ones: 0,
            chain: 0,
        }
    }

    pub fn decimating(&self) -> bool {
        self.decimating
    }

    /// Whether a reply for fewer than three packets is usual.
    pub fn replies_often(&self) -> bool {
        self.per_reply < OFTEN as i64 * PARTS && self.batch_wait() == 0
    }

    /// Whether its replies come in clumps: the radio sleeps or collects blocks,
    /// so that a reply's time does not tell which packet triggered it.
    pub fn clumps(&self) -> bool {
        self.clumped > self.tunables.clumped_share()
    }

    /// How long a packet may wait for its reply at a client that reads what has
    /// come in batches (interrupt coalescing, GRO) and replies to each batch once;
    /// 0 for others.
    // Inlined it takes 330 bytes more on MIPS.
    #[inline(never)]
    pub fn batch_wait(&self) -> Nanos {
        let some = self.counts.usual() >= OFTEN && !self.counts_high();
        if some && !(self.counts.steady() && self.constant) && !self.decimating {
            self.reply_gap
        } else {
            0
        }
    }

    /// Extra time to wait for a reply if the client replies rarely.
    pub fn thin_reply_wait(&self) -> Nanos {
        if self.replies > ENOUGH_REPLIES && self.per_reply > OFTEN as i64 * PARTS {
            self.reply_gap * 3 / 2
        } else {
            0
        }
    }

    /// Whether replies are much further apart than the packets that they are about, because the sender pauses, or
    /// sends no more than a few Mbit/s.
    pub fn pauses(&self, spacing: Nanos) -> bool {
        let apart = self.reply_gap * PARTS / self.per_reply.max(1);
        self.replies > ENOUGH_REPLIES && apart / PAUSES > spacing
    }

    /// Packets it lets pass before it replies; 0 while unknown.
    // Inlined it takes 200 bytes more on MIPS.
    #[inline(never)]
    pub fn usual_count(&self) -> u64 {
        let believed =
            self.counts.usual() < self.tunables.decimating_from() || self.per_reply >= SELDOM;
        if believed { self.counts.usual() } else { 0 }
    }

    /// Replies were not shown for a time: what they will be about is not counted from before.
    pub fn interrupted(&mut self) {
        self.previous_trigger = None;
        (self.previous_certain, self.copy_before, self.out_of_step_from) = (false, false, None);
        (self.ones, self.chain, self.early_run) = (0, 0, 0);
    }

    /// What the client counts to, if its first counts are all the same.
    pub fn first_counts(&self) -> Option<u64> {
        self.counts.first()
    }

    /// The count of a client that has counted steadily, or has proved to have this count, and its timer.
    pub fn known_count(&self, proven: bool) -> Option<(u8, Option<NonZeroU32>)> {
        let count = u8::try_from(self.usual_count())
            .ok()
            .filter(|count| (proven || self.counts.steady()) && *count > 0)?;
        Some((count, self.timer.and_then(|timer| u32::try_from(timer).ok()?.try_into().ok())))
    }

    /// Counts as another flow of the client has: it has been seen to be steady.
    pub fn take_up(&mut self, habit: Habit) {
        self.counts.take_up(u64::from(habit.count));
        self.timer = habit.timer.map(|timer| timer.get().into());
    }

    /// Whether it is known to count to at least `decimating_from`.
    // Inlined it takes up to a KiB more on MIPS.
    #[inline(never)]
    pub fn counts_high(&self) -> bool {
        self.counts.even() && self.usual_count() >= self.tunables.decimating_from()
    }

    /// Takes a sample of its delayed-acknowledgement timer, which counts if
    /// the samples agree.
    fn timed(&mut self, waited: Nanos) {
        self.timers.push(waited);
        if self.timers.len() < ENOUGH_TIMERS {
            return;
        }
        self.timer = self.timers.quantile(1, 2).filter(|median| {
            let close = self.timers.iter().filter(|t| (t - median).abs() < TIMER_SPREAD).count();
            2 * close > self.timers.len()
        });
    }

    /// Takes in a reply.
    pub fn observe(
        &mut self,
        reply: &Reply,
        rtt: &LocalRtt,
        trail: &mut Trail,
        cache: &Cache,
    ) -> Beat {
        if let Some(gap) = reply.since_last.filter(|gap| *gap < PAUSE) {
            let at_once =
                gap < CLUMP_GAP.min(reply.spacing / CLUMP_PART) && reply.sent == self.sent_at_reply;
            let sample = if at_once { 1024 } else { 0 };
            self.clumped += (sample - self.clumped) / CLUMPED_PART;
            self.reply_gap += divided::<GAP_PART>(gap - self.reply_gap);
            self.replies = self.replies.saturating_add(1);
            let packets = reply.sent.saturating_sub(self.sent_at_reply).min(MOST_PACKETS) as i64;
            self.per_reply += divided::<PER_REPLY_PART>(packets * PARTS - self.per_reply);
        }
        self.sent_at_reply = reply.sent;
        self.constant = reply.always_constant;
        self.beat(reply, rtt, trail, cache).unwrap_or_default()
    }

    fn beat(
        &mut self,
        reply: &Reply,
        rtt: &LocalRtt,
        trail: &mut Trail,
        cache: &Cache,
    ) -> Option<Beat> {
        if !rtt.known() {
            return None;
        }
        let aim = aim(reply, rtt, trail, cache)?;
        let mut beat = Beat {
            trigger: aim.number,
            fast: aim.fast,
            error: aim.error,
            certain: aim.certain,
            late: aim.late,
            ..Beat::default()
        };
        let since_copy = core::mem::replace(&mut self.copy_before, reply.copy_due);
        let Some((previous, previous_number)) = self.advance(&aim) else {
            return Some(Beat { fast: false, ..beat });
        };
        beat.count = aim.number - previous_number;
        let usual = self.usual_count();
        // One that is about more packets than usual may be late, and about one less.
        let certain = aim.certain && (usual == 0 || beat.count <= usual);
        let previous_certain = core::mem::replace(&mut self.previous_certain, certain);
        // How long the first unacknowledged packet has waited for this reply.
        let waited = cache
            .after(previous)
            .and_then(|first| cache.record(first))
            .map_or(Nanos::MAX, |first| aim.due.since(first.at));
        self.decimating |= self.counts_high();
        self.decimating &=
            self.per_reply >= SELDOM && (usual == 0 || usual >= self.tunables.decimating_from());
        let (timer_reached, timer_now) = self.timer_at(waited, rtt);
        beat.timer = usual >= self.tunables.decimating_from() && timer_now;
        beat.in_step = self.out_of_step_from.take().is_some_and(|from| from + usual == aim.number);
        self.follow_chain(&mut beat);
        // In a run of single replies only the next packet can have triggered this one.
        let in_run = self.counts_high() && (1..aim.number).contains(&self.chain) && rtt.sharp();
        let one_by_one = in_run || (aim.certain && previous_certain);
        beat.adjacent = beat.count == 1 && one_by_one && reply.spacing >= CLOSE;
        if !aim.fast {
            self.early_run = 0;
            if !reply.copy_due && TIMERS.contains(&waited) && reply.excess <= TIMER_EXCESS {
                self.timed(waited);
            }
            return Some(beat);
        }
        if reply.excess > OWN_DATA_EXCESS {
            (self.ones, self.chain, self.early_run) = (0, 0, 0);
            return Some(beat);
        }
        self.ones = if beat.count == 1 && aim.similar <= 1 { self.ones + 1 } else { 0 };
        beat.ones = self.ones;
        if !reply.copy_due {
            let doubt = self.doubt(reply, &aim, since_copy, previous_certain);
            self.tell(&mut beat, reply, &aim, doubt, timer_reached, rtt);
        }
        Some(beat)
    }

    /// Takes note of what triggered a reply; gives what triggered the one before, if this
    /// is a newer packet.
    fn advance(&mut self, aim: &Aim) -> Option<(Id, u64)> {
        match self.previous_trigger {
            Some((_, previous)) if aim.number <= previous => None,
            _ => self.previous_trigger.replace((aim.trigger, aim.number)),
        }
    }

    /// Whether the client's timer was due, or due just now, for a packet that has `waited`
    /// until now.
    fn timer_at(&self, waited: Nanos, rtt: &LocalRtt) -> (bool, bool) {
        let slack = rtt.within(Margin::Timer);
        match self.timer {
            None => (waited > UNKNOWN_TIMER, waited > UNKNOWN_TIMER),
            Some(timer) => (waited >= timer - slack, (waited - timer).abs() <= slack),
        }
    }

    /// Follows a run of packets that are acknowledged one by one.
    fn follow_chain(&mut self, beat: &mut Beat) {
        let single = beat.fast && !beat.timer;
        if !(single && beat.count == 1 && self.chain > 0) {
            self.chain = if single { beat.trigger } else { 0 };
        }
        beat.chain = self.chain;
    }

    /// By how much a count may be wrong. The reply to a copy begins a new one, and which packets
    /// had come by then is not known for certain.
    fn doubt(&self, reply: &Reply, aim: &Aim, since_copy: bool, previous_certain: bool) -> u64 {
        if reply.always_constant && self.counts.steady() && aim.certain && previous_certain {
            return 0;
        }
        aim.similar.saturating_sub(1).max(1) + u64::from(since_copy)
    }

    /// What a reply says that came when the reply to a packet was due, and to no copy: whether
    /// it is out of step, or else what is usual.
    fn tell(
        &mut self,
        beat: &mut Beat,
        reply: &Reply,
        aim: &Aim,
        doubt: u64,
        timer_reached: bool,
        rtt: &LocalRtt,
    ) {
        let usual = self.usual_count();
        let counts_surely = reply.constant && doubt == 0;
        beat.skipped = self.skipped(beat.count, aim, usual, counts_surely, rtt);
        let counts = if usual >= self.tunables.decimating_from() {
            self.counts.regular() || !reply.regular_only
        } else {
            self.counts.steady() && reply.constant
        };
        // Between two packets that were acknowledged one after the other nothing can be missing.
        let between = beat.count > 1 || !reply.constant;
        let early = counts && between && beat.count + doubt < usual && !timer_reached;
        let before_count = early && !(reply.constant && beat.in_step);
        beat.early = before_count || self.singles_at_first(beat.count, reply.sent, usual, rtt);
        if beat.early {
            self.out_of_step_from = beat.trigger.checked_sub(beat.count);
            self.early_run += 1;
            if self.early_run > self.tunables.decimating_forgotten_after() {
                self.counts = Tally::default();
                self.decimating = false;
                self.early_run = 0;
            }
        } else if !timer_reached {
            self.early_run = 0;
            self.learn(beat.count, usual);
        }
    }

    /// Whether a client that very steadily acknowledges every second packet has taken three; of one
    /// whose sizes say nothing any count will do.
    fn skipped(&self, count: u64, aim: &Aim, usual: u64, surely: bool, rtt: &LocalRtt) -> bool {
        let one_more = (usual == 2 || surely && usual > 2) && count == usual + 1;
        self.counts.steady()
            && one_more
            && aim.similar <= 1
            && rtt.deviation() < self.tunables.skip_deviation()
    }

    /// Whether a client that may turn out to be decimating has acknowledged two packets one by
    /// one at the beginning.
    fn singles_at_first(&self, count: u64, sent: u64, usual: u64, rtt: &LocalRtt) -> bool {
        let opening = sent <= OPENING_PACKETS && (2..=3).contains(&usual);
        let singles = count == 1 && self.ones >= 2 && self.chain > 0;
        opening && singles && rtt.deviation() < self.tunables.singles_deviation()
    }

    /// The change from every second to every tenth packet is believed at once,
    /// the way back only after many short counts.
    fn learn(&mut self, count: u64, usual: u64) {
        if (self.tunables.decimating_from()..=DECIMATING_TO).contains(&count) && count > 2 * usual {
            self.long_counts = if count == self.long_count { self.long_counts + 1 } else { 1 };
            self.long_count = count;
            if self.long_counts >= LONG_COUNTS {
                self.counts.begin_with(count);
                self.long_counts = 0;
            }
        } else if count > 1 && self.ones == 0 {
            self.long_counts = 0;
        }
        if self.decimating && count * 100 < usual * SHORT_PERCENT {
            self.short_counts += 1;
            if self.short_counts < self.tunables.decimating_forgotten_after() {
                return;
            }
            self.decimating = false;
            self.counts = Tally::default();
        }
        self.short_counts = 0;
        self.counts.push(count);
    }
}

#[cfg(test)]
mod tests;
