//! How a client acknowledges: the rhythm of its replies, learned per flow.
//!
//! Most stacks answer every second packet. Chromium answers every tenth, or a
//! quarter of the path's round trip after the first unanswered packet, and for
//! it the tell of a hole is not size but rhythm: each of the next four packets
//! is answered at once. Such a client is called *decimating* here.

use crate::cache::{Cache, Id, Trail};
use crate::recent::Recent;
use crate::rtt::LocalRtt;
use crate::time::{MS, Nanos, Time, US};

/// Replies longer than the usual one by more than this carry data of the
/// client's own and say nothing about its rhythm.
const OWN_DATA: i32 = 12;
/// From this many packets a reply on, a client is decimating.
const DECIMATING: u64 = 6;
/// It takes this many short counts, or early replies, in a row to believe that
/// a client has stopped decimating.
const FORGET_AFTER: u32 = 24;
/// Chromium begins with every second packet; within this many packets two
/// single answers in a row are a tell as well.
const OPENING_PACKETS: u64 = 140;
/// A client that answers every second packet answers three when the second of
/// a pair is missing. Believed when this many of the last twelve counts were
/// the usual one.
const STEADY: usize = 10;
/// A reply this soon after another, with no packet sent on between them, belongs
/// to a clump; such a share of them, in 1024ths, makes a client clumped.
const AT_ONCE: Nanos = 300 * US;
const CLUMPED: i32 = 400;
/// Timer assumed until one was seen.
const UNKNOWN_TIMER: Nanos = 20 * MS;

#[derive(Clone, Debug)]
pub(crate) struct Habit {
    /// Mean time between replies.
    reply_gap: Nanos,
    /// Share of replies that came in clumps, in 1024ths.
    clumped: i32,
    replies: u32,
    /// Forwarded packets per reply, in sixteenths.
    per_reply: i64,
    sent_at_reply: u64,
    counts: Recent<u64, 12>,
    timers: Recent<Nanos, 8>,
    /// What `counts` and `timers` amount to, kept because every reply asks.
    usual: u64,
    steady: bool,
    timer: Option<Nanos>,
    previous_trigger: Option<(Id, u64)>,
    /// That one was certain: timing named one packet, and no copy's answer was
    /// due at the time.
    previous_certain: bool,
    decimating: bool,
    short_counts: u32,
    long_counts: u32,
    early_run: u32,
    ones: u32,
    /// First packet of a run of packets answered one by one; 0 if none.
    chain: u64,
}

/// What the rhythm says about one reply.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Beat {
    /// Number of the packet that triggered it.
    pub trigger: u64,
    /// Packets since the previous trigger.
    pub count: u64,
    /// It came when the answer to a packet was due.
    pub fast: bool,
    /// It came when the client's timer was due.
    pub timer: bool,
    /// It came before the count or the timer was reached: a hole.
    pub early: bool,
    /// It came one packet later than the client's very steady count.
    pub skipped: bool,
    /// It was triggered by the very next packet after the previous trigger: no
    /// packet that passed here can be missing between them.
    pub adjacent: bool,
    /// Packets answered one by one before this one, at least two.
    pub ones: u32,
    /// First packet of that run.
    pub chain: u64,
    /// Distance from the nearest packet's due answer.
    pub error: Nanos,
    /// No other packet can have triggered it.
    pub certain: bool,
    /// Since the answer to the newest packet that it can answer was due.
    pub late: Nanos,
}

/// What has to be known of a reply to judge its rhythm.
pub(crate) struct Reply {
    pub now: Time,
    /// Its size above the usual.
    pub excess: i32,
    /// A resend's answer is due now.
    pub fill: bool,
    /// Packets sent down so far.
    pub sent: u64,
    /// Time since the reply before, if there was one.
    pub since_last: Option<Nanos>,
}

impl Habit {
    pub fn new() -> Habit {
        Habit {
            reply_gap: 0,
            clumped: 0,
            replies: 0,
            per_reply: 2 * 16,
            sent_at_reply: 0,
            counts: Recent::new(),
            timers: Recent::new(),
            usual: 0,
            steady: false,
            timer: None,
            previous_trigger: None,
            previous_certain: false,
            decimating: false,
            short_counts: 0,
            long_counts: 0,
            early_run: 0,
            ones: 0,
            chain: 0,
        }
    }

    pub fn decimating(&self) -> bool {
        self.decimating
    }

    /// Whether a reply for fewer than three packets is usual.
    pub fn replies_often(&self) -> bool {
        self.per_reply < 3 * 16 && self.batch_wait() == 0
    }

    /// Whether its replies come in clumps: the radio sleeps or collects blocks,
    /// so that a reply's time does not tell which packet it answers.
    pub fn clumps(&self) -> bool {
        self.clumped > CLUMPED
    }

    /// How long a packet may wait for its reply at a client that reads what has
    /// come in batches (interrupt coalescing, GRO) and answers each batch once;
    /// 0 for others.
    pub fn batch_wait(&self) -> Nanos {
        if (3..DECIMATING).contains(&self.usual) && !self.decimating { self.reply_gap } else { 0 }
    }

    /// Extra time to wait for a reply if the client answers rarely.
    pub fn thin_reply_wait(&self) -> Nanos {
        if self.replies > 16 && self.per_reply > 3 * 16 { self.reply_gap * 3 / 2 } else { 0 }
    }

    /// Packets it lets pass before it replies; 0 while unknown.
    pub fn usual_count(&self) -> u64 {
        self.usual
    }

    fn count(&mut self, count: u64) {
        self.counts.push(count);
        let enough = self.counts.len() >= 4;
        self.usual = self.counts.quantile(6, 10).filter(|_| enough).unwrap_or(0);
        self.steady = self.counts.iter().filter(|c| *c == self.usual).count() >= STEADY;
    }

    fn forget_counts(&mut self) {
        self.counts.clear();
        (self.usual, self.steady) = (0, false);
    }

    /// Whether it is known to count to at least [`DECIMATING`].
    pub fn counts_high(&self) -> bool {
        self.usual_count() >= DECIMATING
    }

    /// Takes a sample of its delayed-acknowledgement timer, which counts if
    /// the samples agree.
    fn timed(&mut self, waited: Nanos) {
        self.timers.push(waited);
        let median = self.timers.quantile(1, 2).filter(|_| self.timers.len() >= 3);
        self.timer = median.filter(|median| {
            let close = self.timers.iter().filter(|t| (t - median).abs() < 1200 * US).count();
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
        if let Some(gap) = reply.since_last.filter(|gap| *gap < 50 * MS) {
            let at_once = gap < AT_ONCE && reply.sent == self.sent_at_reply;
            let sample = if at_once { 1024 } else { 0 };
            self.clumped += (sample - self.clumped) / 32;
            self.reply_gap += (gap - self.reply_gap) / 10;
            self.replies = self.replies.saturating_add(1);
            let packets = reply.sent.saturating_sub(self.sent_at_reply).min(1 << 20) as i64;
            self.per_reply += (packets * 16 - self.per_reply) / 20;
        }
        self.sent_at_reply = reply.sent;
        self.rhythm(reply, rtt, trail, cache).unwrap_or_default()
    }

    fn rhythm(
        &mut self,
        reply: &Reply,
        rtt: &LocalRtt,
        trail: &mut Trail,
        cache: &Cache,
    ) -> Option<Beat> {
        if !rtt.known() {
            return None;
        }
        let due = reply.now - rtt.get();
        let window = (300 * US + 2 * rtt.deviation()).min(rtt.get() * 35 / 100 + 100 * US);
        let latest = trail.around(cache, due + window).floor;
        let similar = trail.within(cache, due - window, due + window).take(16).count() as u64;
        let (nearest, offset) = trail.nearest(cache, due)?;
        let fast = offset.abs() <= window;
        let trigger = if fast { nearest } else { latest? };
        let number = cache.record(trigger)?.number;
        let certain = fast && similar <= 1 && !reply.fill && rtt.sharp();
        let newest = latest.and_then(|id| cache.record(id)).map_or(due, |record| record.at);
        let mut beat = Beat {
            trigger: number,
            fast,
            error: offset.abs(),
            certain,
            late: due.since(newest).max(0),
            ..Beat::default()
        };
        let previous_certain = core::mem::replace(&mut self.previous_certain, certain);
        let (previous, previous_number) = match self.previous_trigger {
            Some((_, n)) if number <= n => return Some(Beat { fast: false, ..beat }),
            Some(previous) => previous,
            None => {
                self.previous_trigger = Some((trigger, number));
                return Some(Beat { fast: false, ..beat });
            }
        };
        self.previous_trigger = Some((trigger, number));
        beat.count = number - previous_number;
        // How long the first unanswered packet has waited for this reply.
        let waited = cache
            .after(previous)
            .and_then(|first| cache.record(first))
            .map_or(Nanos::MAX, |first| due.since(first.at));
        let usual = self.usual_count();
        if usual >= DECIMATING {
            self.decimating = true;
        }
        let slack = 1500 * US + 2 * rtt.deviation();
        let timer = self.timer;
        let timer_due = timer.map_or(waited > UNKNOWN_TIMER, |t| waited >= t - slack);
        beat.timer = usual >= DECIMATING
            && timer.map_or(waited > UNKNOWN_TIMER, |t| (waited - t).abs() <= slack);
        let answered = fast && !beat.timer;
        if !(answered && beat.count == 1 && self.chain > 0) {
            self.chain = if answered { number } else { 0 };
        }
        beat.chain = self.chain;
        // In a run of single answers nobody but the next packet can have asked.
        let in_run = usual >= DECIMATING && (1..number).contains(&self.chain) && rtt.sharp();
        beat.adjacent = beat.count == 1 && (in_run || (certain && previous_certain));
        if !fast {
            self.early_run = 0;
            if !reply.fill && (1500 * US..60 * MS).contains(&waited) && reply.excess <= 4 {
                self.timed(waited);
            }
            return Some(beat);
        }
        if reply.excess > OWN_DATA {
            (self.ones, self.chain, self.early_run) = (0, 0, 0);
            return Some(beat);
        }
        self.ones = if beat.count == 1 && similar <= 1 { self.ones + 1 } else { 0 };
        beat.ones = self.ones;
        beat.skipped = self.steady
            && usual == 2
            && beat.count == usual + 1
            && similar <= 1
            && !reply.fill
            && rtt.deviation() < 200 * US;
        let doubt = similar.saturating_sub(1).max(1);
        beat.early = usual >= DECIMATING && beat.count + doubt < usual && !timer_due && !reply.fill;
        if reply.sent <= OPENING_PACKETS
            && (2..=3).contains(&usual)
            && beat.count == 1
            && self.ones >= 2
            && self.chain > 0
            && !reply.fill
            && rtt.deviation() < 150 * US
        {
            beat.early = true;
        }
        if beat.early {
            self.early_run += 1;
            if self.early_run > FORGET_AFTER {
                self.forget_counts();
                self.decimating = false;
                self.early_run = 0;
            }
        } else if !timer_due && !reply.fill {
            self.early_run = 0;
            self.learn(beat.count, usual);
        }
        Some(beat)
    }

    /// The change from every second to every tenth packet is believed at once,
    /// the way back only after many short counts.
    fn learn(&mut self, count: u64, usual: u64) {
        if (DECIMATING..=24).contains(&count) && count > 2 * usual {
            self.long_counts += 1;
            if self.long_counts >= 2 {
                self.forget_counts();
                (0..4).for_each(|_| self.count(count));
                self.long_counts = 0;
            }
        } else if count >= usual && count <= 3 && self.ones == 0 {
            self.long_counts = 0;
        }
        if self.decimating && count * 10 < usual * 6 {
            self.short_counts += 1;
            if self.short_counts < FORGET_AFTER {
                return;
            }
            self.decimating = false;
            self.forget_counts();
        }
        self.short_counts = 0;
        self.count(count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets every 1.2 ms; replies one round trip of 2 ms after the packets
    /// whose numbers `answers` gives.
    fn beats(answers: impl IntoIterator<Item = u64>) -> (Habit, alloc::vec::Vec<Beat>) {
        let mut cache = Cache::new(1 << 20);
        let mut trail = Trail::default();
        let mut rtt = LocalRtt::new();
        rtt.sent(Time::ZERO, None, None);
        rtt.handshake_reply(Time::ZERO + 2 * MS);
        let mut habit = Habit::new();
        let mut sent = 0;
        let at = |n: u64| Time::ZERO + (n as Nanos) * 1200 * US;
        let mut last = None;
        let beats = answers
            .into_iter()
            .map(|n| {
                let now = at(n) + 2 * MS;
                while at(sent + 1) <= now {
                    sent += 1;
                    trail.push(&mut cache, at(sent), sent, &[0; 40]);
                }
                let since_last = last.replace(now).map(|l| now.since(l));
                let reply = Reply { now, excess: 0, fill: false, sent, since_last };
                habit.observe(&reply, &rtt, &mut trail, &cache)
            })
            .collect();
        (habit, beats)
    }

    #[test]
    fn every_second_packet() {
        let (habit, beats) = beats((1..100).map(|n| n * 2));
        assert_eq!((habit.usual_count(), habit.decimating()), (2, false));
        assert!(habit.replies_often());
        assert!(beats[1..].iter().all(|b| b.fast && b.count == 2 && !b.early));
    }

    #[test]
    fn a_steady_client_tells_every_other_hole_by_one_packet_more() {
        let (_, beats) = beats((1..30).map(|n| n * 2).chain([61, 63, 65]));
        let skipped: alloc::vec::Vec<u64> =
            beats.iter().filter(|b| b.skipped).map(|b| b.trigger).collect();
        assert_eq!(skipped, [61]);
    }

    #[test]
    fn a_decimating_client_tells_a_hole_by_answering_early() {
        let steady = (1..20u64).map(|n| n * 10);
        // 195 is lost: 196 to 199 are answered at once, then the count goes on.
        let (habit, beats) = beats(steady.chain([196, 197, 198, 199, 209, 219]));
        assert!(habit.decimating() && habit.counts_high());
        let early: alloc::vec::Vec<u64> =
            beats.iter().filter(|b| b.early).map(|b| b.trigger).collect();
        assert_eq!(early, [196, 197, 198, 199]);
        assert_eq!(beats[20].chain, 196);
    }

    #[test]
    fn decimation_is_forgotten_after_many_short_counts() {
        let (habit, _) = beats((1..20u64).map(|n| n * 10).chain((100..180u64).map(|n| n * 2)));
        assert!(!habit.decimating());
    }
}
