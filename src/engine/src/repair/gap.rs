// SPDX-License-Identifier: GPL-2.0-or-later
//! One gap that is being repaired.

use arrayvec::ArrayVec;

use crate::infer::sign::{GapSign, SignKind};
use crate::store::cache::{Cache, Id};
use crate::time::{Nanos, Time};

/// Packets acknowledged beyond one that is missing before a sender takes it for lost (RFC 9002,
/// section 6.1.1: kPacketThreshold).
pub(crate) const PACKET_THRESHOLD: u64 = 3;

/// Packets added at a time to a run of losses that turns out to be longer (chosen: the usual
/// width of an attempt).
const RUN_STEP: usize = 3;

/// Packets named for the second attempt (chosen: the usual width of an attempt).
pub(crate) const NAMES: usize = 3;

/// Packets lost one after the other.
pub(crate) type Run = ArrayVec<Id, RUN_STEP>;

/// A gap that is being repaired.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    /// When the hop took up the last of the first copies.
    pub opened: Time,
    /// So long before that the reply came that showed it.
    pub waited: u32,
    /// Number of the packet most likely lost; 0 if none is likely.
    pub missing: u64,
    /// The earliest packet sent again as part of one run of losses.
    pub edge: Option<Id>,
    /// How often the run turned out to be longer.
    pub extended: u8,
    /// The first of them was named by its place before what triggered the reply, and nothing else.
    pub by_place: bool,
    /// The likeliest packets, for a second try.
    pub names: ArrayVec<Id, NAMES>,
    pub attempts: u8,
    /// When the reply to the last attempt is overdue.
    pub overdue: Time,
    pub last_attempt: Time,
    pub sign: GapSign,
    /// Attempts to be made in all.
    pub attempts_allowed: u8,
    /// Time to wait for the reply to an attempt, no longer than fits: nothing is held for as long.
    pub span: u32,
    /// For how long nothing certain had come before the acknowledgement that showed it.
    pub silence: u32,
    /// After this time the last acknowledgement came that can tell of no copy ...
    pub heard: u32,
    /// ... and the first that tells of the last attempt; 0 before. Both since the gap was opened.
    pub told: u32,
}

impl Gap {
    /// One more attempt goes out.
    pub fn tried(&mut self, now: Time) {
        self.attempts += 1;
        self.sent(now);
    }

    fn sent(&mut self, now: Time) {
        (self.last_attempt, self.told) = (now, 0);
        self.overdue = now + Nanos::from(self.span);
    }

    /// More goes out in the same attempt.
    pub fn goes_on(&mut self, now: Time) {
        self.sent(now);
    }

    /// Whether the next attempt is for what was named at first, and not for all that it
    /// can be: the name is nearly sure.
    pub fn goes_by_name(&self, sharp: bool) -> bool {
        self.attempts == 1 && (sharp || self.sign.kind == SignKind::Rhythm)
    }

    /// Whether the gap may still turn out to be a longer run of losses, which it may do `most`
    /// times.
    pub fn may_lengthen(&self, most: u32) -> bool {
        u32::from(self.extended) < most
    }

    /// The run of losses is longer: gives the packets before it that go out now, no more than
    /// `copies`.
    pub fn lengthen(&mut self, now: Time, cache: &Cache, copies: usize) -> Run {
        let mut run = Run::new();
        let mut edge = self.edge;
        for _ in 0..copies.min(RUN_STEP) {
            edge = edge.and_then(|id| cache.before(id));
            run.extend(edge);
        }
        if !run.is_empty() {
            self.edge = edge;
            self.extended += 1;
            self.sent(now);
        }
        run
    }

    /// An acknowledgement has come at `now`: none tells of copies sooner than `soonest`, and each does
    /// after `latest`. What `hastens` does not wait any longer then, as the gap is still there.
    pub fn replied(&mut self, now: Time, soonest: Nanos, latest: Nanos, hastens: bool) {
        let after = u32::try_from(now.since(self.opened).max(0)).unwrap_or(u32::MAX);
        if now.since(self.opened) < soonest {
            self.heard = after;
        }
        if self.told == 0 && now.since(self.last_attempt) >= latest {
            self.told = after;
            if hastens && self.attempts_left() {
                self.overdue = self.overdue.min(now);
            }
        }
    }

    /// When the reply came that showed it.
    pub fn shown(&self) -> Time {
        self.opened - Nanos::from(self.waited)
    }

    /// When the last acknowledgement came that can tell of no copy.
    pub fn heard(&self) -> Time {
        if self.heard > 0 { self.opened + Nanos::from(self.heard) } else { self.shown() }
    }

    /// When the first one came that tells of the last attempt, if one has.
    pub fn told(&self) -> Option<Time> {
        (self.told > 0).then(|| self.opened + Nanos::from(self.told))
    }

    /// Whether another attempt is left.
    pub fn attempts_left(&self) -> bool {
        self.attempts < self.attempts_allowed
    }

    /// Whether the sender cannot yet take the packet for lost from a reply that `trigger`
    /// caused, and the gap should be closed within `patience`.
    pub fn harmless(&self, trigger: u64, patience: Nanos) -> bool {
        trigger < self.missing + PACKET_THRESHOLD && Nanos::from(self.span) <= patience
    }

    /// For how long attempts can go on from now.
    pub fn patience(&self) -> Nanos {
        let left = self.attempts_allowed.saturating_sub(self.attempts);
        Nanos::from(self.span) * (Nanos::from(left) + 1)
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::time::MS;

    /// A gap at this packet, for which this many of three attempts were made.
    pub(crate) fn gap(missing: u64, attempts: u8) -> Gap {
        let kind = SignKind::Step;
        Gap {
            opened: Time::ZERO,
            waited: 0,
            missing,
            edge: None,
            extended: 0,
            by_place: false,
            names: ArrayVec::new(),
            attempts,
            overdue: Time::ZERO + 4 * MS,
            last_attempt: Time::ZERO,
            sign: GapSign { step: 2, excess: 2, kind, silent: false, shown: Time::ZERO },
            attempts_allowed: 3,
            span: 4 * MS as u32,
            silence: 0,
            heard: 0,
            told: 0,
        }
    }

    #[test]
    fn a_gap_knows_which_reply_told_of_its_last_attempt() {
        let mut gap = gap(10, 1);
        let at = |us: Nanos| Time::ZERO + us * 1000;
        let (soonest, latest) = (2 * MS, 3 * MS);
        gap.replied(at(1500), soonest, latest, false);
        assert_eq!((gap.heard, gap.told), (1_500_000, 0), "no copy can have come by then");
        gap.replied(at(2500), soonest, latest, false);
        assert_eq!((gap.heard, gap.told), (1_500_000, 0), "one may have");
        gap.replied(at(3500), soonest, latest, false);
        gap.replied(at(4500), soonest, latest, false);
        assert_eq!((gap.heard, gap.told), (1_500_000, 3_500_000), "the first that surely tells");
        gap.tried(at(4600));
        gap.replied(at(6600), soonest, latest, false);
        assert_eq!(gap.told, 0, "the attempt is a new one");
        gap.replied(at(7600), soonest, latest, false);
        assert_eq!(gap.told, 7_600_000);
    }

    #[test]
    fn where_any_reply_tells_of_the_last_attempt_the_next_one_waits_no_longer() {
        let at = |us: Nanos| Time::ZERO + us * 1000;
        let overdue = |gap: Gap, now, hastens| {
            let mut gap = gap;
            gap.replied(now, 2 * MS, 3 * MS, hastens);
            gap.overdue
        };
        assert_eq!(overdue(gap(10, 1), at(3500), true), at(3500));
        assert_eq!(overdue(gap(10, 1), at(2500), true), at(4000), "it does not surely tell");
        assert_eq!(overdue(gap(10, 1), at(3500), false), at(4000));
        assert_eq!(overdue(gap(10, 3), at(3500), true), at(4000), "that was the last one");
    }

    #[test]
    fn two_packets_beyond_a_gap_do_no_harm() {
        assert!(gap(10, 1).harmless(12, 4 * MS));
        assert!(!gap(10, 1).harmless(13, 4 * MS), "the packet threshold");
        assert!(!gap(10, 1).harmless(12, 3 * MS), "its repair takes too long");
    }

    #[test]
    fn a_run_goes_on_before_its_edge() {
        let mut cache = Cache::new(1 << 20);
        let mut ids: ArrayVec<Id, 8> = ArrayVec::new();
        for n in 1..=8 {
            ids.extend(cache.push(Time::ZERO, n, ids.last().copied(), &[0; 100]));
        }
        let mut run = Gap { edge: Some(ids[6]), ..gap(7, 1) };
        let now = Time::ZERO + MS;
        assert_eq!(run.lengthen(now, &cache, 9)[..], [ids[5], ids[4], ids[3]]);
        assert_eq!((run.edge, run.extended, run.overdue), (Some(ids[3]), 1, now + 4 * MS));
        assert_eq!(run.lengthen(now, &cache, 1)[..], [ids[2]]);
        assert!(run.lengthen(now, &cache, 0).is_empty() && run.extended == 2);
        assert_eq!(run.lengthen(now, &cache, 3)[..], [ids[1], ids[0]]);
        assert!(run.may_lengthen(4) && !run.may_lengthen(3));
    }

    #[test]
    fn the_second_attempt_is_for_the_same_packets_if_their_name_is_nearly_sure() {
        let mut gap = gap(10, 1);
        assert!(gap.goes_by_name(true) && !gap.goes_by_name(false));
        gap.tried(Time::ZERO + MS);
        assert!(!gap.goes_by_name(true) && gap.attempts_left());
        assert_eq!((gap.overdue, gap.patience()), (Time::ZERO + 5 * MS, 8 * MS));
        gap.tried(Time::ZERO + MS);
        assert!(!gap.attempts_left());
    }
}
