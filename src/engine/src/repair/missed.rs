// SPDX-License-Identifier: GPL-2.0-or-later
//! What a hop missed while it was away: sent again in its order, as fast as that is answered.
//!
//! While a hop is away everything is lost, copies too, and nothing shows. The first reply
//! afterwards tells both ends of what is missing if it shows a gap: the first packet behind the last
//! reply, and the last one before what it answers. Between them may be a hundred packets that
//! were lost, or one, if the others only waited. So both ends go at once. A client replies at once to
//! what it has missed and not at all to what it has had: if the last ones are answered, all
//! between is missing, and each reply lets more of it go. Answers come no faster than the hop takes
//! packets.
//!
//! If they are not answered, the hop is a radio that was away for a moment, as in a fade, and has lost here and there
//! some of what it tried meanwhile. No reply tells which, but there is so little that all of it goes.

use arrayvec::ArrayVec;

use crate::repair::gaps::MAX_WINDOW;
use crate::store::cache::{Cache, Id};
use crate::time::{Nanos, US};

/// Copies for one reply at most (chosen: two for each packet of a client that replies to every
/// eighth).
const MOST_AT_ONCE: usize = 16;
/// No more packets go all at once (chosen: as many as an attempt has, those of 30 ms at 10 Mbit/s; fades take 5
/// to 20 ms).
const MOMENT: usize = MAX_WINDOW;
/// What each of these copies may add to the time until all are answered (chosen: the time of a full packet at 20
/// Mbit/s).
const EACH_TAKES: Nanos = 600 * US;
/// Packets that go for each one that was answered (chosen: as in slow start, of which this is one).
const GROWTH: u64 = 2;
/// Packets that go for the first answer beside these (chosen: the client has had those that were on
/// their way when the hop went, and answers none of them).
const HEAD: u64 = 6;
/// Packets at the end that go first (chosen: the reply may have been to the one before).
const LAST: usize = 2;

/// Replies close to another that make a clump (chosen: the last two copies are answered that close
/// to each other).
const CLUMP: u32 = 2;

/// Packets that go now.
pub(crate) type Batch = ArrayVec<Id, MOMENT>;

/// What is still to go of one time in which the hop was away.
#[derive(Clone, Debug)]
pub(crate) struct Missed {
    next: Option<Id>,
    /// Number of the last one.
    last: u64,
    /// One of them was answered.
    answered: bool,
    /// Replies before that which came right after another one.
    close: u32,
    /// Packets in all, if they are those of a moment, and whether they have gone.
    moment: u32,
    gone: bool,
}

impl Missed {
    pub fn new() -> Missed {
        Missed { next: None, last: 0, answered: false, close: 0, moment: 0, gone: false }
    }

    /// The hop answers again, with a reply to packet `trigger`: what was missed begins with
    /// `front`, of which some have gone again. Gives the last ones, by which it is to show.
    pub fn begin(&mut self, front: Id, trigger: Id, cache: &Cache) -> Batch {
        let back = || core::iter::successors(cache.before(trigger), |id| cache.before(*id));
        let fresh = |id: &Id| cache.record(*id).is_some_and(|r| r.copies == 0);
        let batch: Batch = back().take(LAST).filter(|id| *id > front).filter(fresh).collect();
        let last = cache.record(trigger).map_or(0, |r| r.number);
        let next = (!batch.is_empty()).then_some(front);
        let missed = back().take_while(|id| *id >= front).take(MOMENT + 1).count();
        let moment = if missed > MOMENT { 0 } else { missed as u32 };
        *self = Missed { next, last, moment, ..Missed::new() };
        batch
    }

    /// Those at the ends were not answered in time: all the others, if they are those of a moment.
    pub fn unanswered(&mut self, cache: &Cache) -> Batch {
        if self.answered || self.gone || self.moment == 0 {
            return Batch::new();
        }
        self.gone = true;
        let all = core::iter::successors(self.next, |id| cache.after(*id));
        let fresh = |id: &Id| cache.record(*id).is_some_and(|r| r.copies == 0);
        all.take(self.moment as usize).filter(fresh).collect()
    }

    /// How much longer it may take until all are answered that may go at once, ...
    pub fn may_take(&self) -> Nanos {
        Nanos::from(self.moment) * EACH_TAKES
    }

    /// ... or that have gone.
    pub fn takes(&self) -> Nanos {
        if self.gone { self.may_take() } else { 0 }
    }

    /// Whether anything is still to go.
    pub fn active(&self) -> bool {
        self.next.is_some()
    }

    /// A reply has come right after another one. Before a copy is answered a clump of them shows
    /// that the hop kept packets back and lost hardly any.
    pub fn close_reply(&mut self) {
        self.close = self.close.saturating_add(1);
        if self.close >= CLUMP && !self.answered {
            self.end();
        }
    }

    /// Whether it is known that more than the first was missed.
    pub fn goes_on(&self) -> bool {
        self.answered
    }

    /// A reply has come, of a client that replies to every `usual` packets: gives what goes now.
    pub fn answered(&mut self, usual: u64, cache: &Cache) -> Batch {
        let head = if core::mem::replace(&mut self.answered, true) { 0 } else { HEAD };
        let mut batch = Batch::new();
        let most = (GROWTH * usual + head).clamp(1, MOST_AT_ONCE as u64) as usize;
        while batch.len() < most
            && let Some(id) = self.next
        {
            let Some(record) = cache.record(id).filter(|r| r.number <= self.last) else {
                self.next = None;
                break;
            };
            if record.copies == 0 {
                batch.push(id);
            }
            self.next = cache.after(id);
        }
        batch
    }

    /// All gaps are closed, or abandoned.
    pub fn end(&mut self) {
        *self = Missed::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::gaps::tests::{at, numbers, setting};
    use alloc::vec::Vec;

    /// The hop was away from packet 11 to packet 30, and then answers: what goes at once, and for
    /// each of so many answers.
    fn went(answers: usize, usual: u64) -> (Vec<u64>, Vec<Vec<u64>>) {
        let (mut cache, mut trail, _) = setting();
        let [front, trigger] = [11, 31].map(|n| trail.nearest(&cache, at(n)).unwrap().0);
        let mut missed = Missed::new();
        let copied = |ids: &[Id], cache: &mut Cache| {
            ids.iter().for_each(|id| cache.record_mut(*id).unwrap().copies = 1);
            numbers(cache, ids)
        };
        copied(&[front], &mut cache);
        let first = missed.begin(front, trigger, &cache);
        let first = copied(&first, &mut cache);
        assert!(missed.active() && !missed.goes_on());
        let batches = (0..answers).map(|_| {
            let batch = missed.answered(usual, &cache);
            copied(&batch, &mut cache)
        });
        (first, batches.collect())
    }

    #[test]
    fn both_ends_go_first_and_the_rest_in_its_order_as_it_is_answered() {
        let (first, batches) = went(4, 2);
        assert_eq!(first, [30, 29]);
        assert_eq!(batches[0], (12..=21).collect::<Vec<u64>>());
        assert_eq!(batches[1], [22, 23, 24, 25]);
        assert_eq!(batches[2], [26, 27, 28, 31], "the reply may have been to the one after that");
        assert!(batches[3].is_empty());
    }

    #[test]
    fn what_a_fade_lost_here_and_there_goes_when_the_ends_are_not_answered() {
        let (mut cache, mut trail, _) = setting();
        let [front, trigger] = [11, 31].map(|n| trail.nearest(&cache, at(n)).unwrap().0);
        let mut missed = Missed::new();
        cache.record_mut(front).unwrap().copies = 1;
        for id in missed.begin(front, trigger, &cache) {
            cache.record_mut(id).unwrap().copies = 1;
        }
        assert_eq!((missed.may_take(), missed.takes()), (20 * EACH_TAKES, 0));
        let rest = missed.unanswered(&cache);
        assert_eq!(numbers(&cache, &rest), (12..=28).collect::<Vec<u64>>());
        assert_eq!(missed.takes(), 20 * EACH_TAKES);
        assert!(missed.unanswered(&cache).is_empty(), "once");
        let mut answered = Missed::new();
        answered.begin(front, trigger, &cache);
        answered.answered(2, &cache);
        assert!(answered.unanswered(&cache).is_empty(), "all between is missing");
    }

    #[test]
    fn a_long_absence_is_no_fade() {
        let (cache, mut trail, _) = setting();
        let [front, trigger] = [1, 40].map(|n| trail.nearest(&cache, at(n)).unwrap().0);
        let mut missed = Missed::new();
        missed.begin(front, trigger, &cache);
        assert!(missed.active() && missed.unanswered(&cache).is_empty());
    }

    #[test]
    fn no_more_goes_at_once_than_a_slow_hop_takes() {
        assert_eq!(went(1, 10).1[0].len(), MOST_AT_ONCE);
        assert_eq!(went(1, 0).1[0].len(), HEAD as usize);
    }

    #[test]
    fn a_gap_of_one_packet_is_no_outage() {
        let (cache, mut trail, _) = setting();
        let [front, trigger] = [11, 12].map(|n| trail.nearest(&cache, at(n)).unwrap().0);
        let mut missed = Missed::new();
        assert!(missed.begin(front, trigger, &cache).is_empty());
        assert!(!missed.active());
    }
}
