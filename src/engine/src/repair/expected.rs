// SPDX-License-Identifier: GPL-2.0-or-later
//! Which packet a reply is about, where each packet has a reply of its own.
//!
//! Replies come in the order in which packets went, so each is about the oldest one that has none
//! yet. If that was lost, this reply and all after it are about later packets, and come as much
//! later. One reply may be late for other reasons, and on a fast hop packets are hardly further apart than
//! replies scatter; so what replies say for the loss and against it is added up from the first
//! one that came late (Page's test for a change), until it is enough.

use arrayvec::ArrayVec;

use crate::store::cache::Id;
use crate::time::{Nanos, Time, US};

/// Packets under way that are remembered (chosen: a local round trip of 6 ms at 50 Mbit/s).
const ROOM: usize = 32;
/// Packets in a row that may be taken for lost at once (chosen: one behind, and the next pair).
const SKIPPED: usize = 3;
/// What replies say is counted in parts of the natural logarithm of how much likelier the loss is.
const PARTS: i64 = 16;
/// What one reply shows to be lost at most (chosen: a burst at 10 Mbit/s that a short pause of the hop makes).
const LOST: usize = 8;
/// The loss is taken for certain at this (chosen: one packet in a hundred is lost, so this is four to
/// one).
const ENOUGH: i64 = 6 * PARTS;
/// One reply says no more than this (chosen: two are needed, for one may have waited for its client's
/// processor).
const MOST: i64 = ENOUGH * 3 / 5;
/// Replies are not taken to be more exact than this (chosen: the grain of schedulers).
const EXACT: Nanos = 60 * US;
/// Replies that come closer together than one part in so many of the distance of packets were late
/// together.
const TOGETHER_PART: Nanos = 4;

/// Why there should be a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum What {
    /// It went ahead of the packet before it.
    Ahead,
    /// It went behind the packet after it. If that one was lost it came in order, and need not be replied to.
    Behind,
    /// It is a copy. If the packet was there already there need not be a reply.
    Copy,
}

/// What a reply is awaited for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Item {
    pub id: Id,
    pub sent: Time,
    pub what: What,
}

/// How exactly replies keep their time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Exactness {
    /// Their mean deviation.
    pub deviation: Nanos,
    /// A reply that comes sooner than this before one is due is about something else.
    pub early: Nanos,
    /// One that comes later than this after one was due is not that.
    pub late: Nanos,
    /// The distance of packets.
    pub spacing: Nanos,
}

pub(crate) type Skipped = ArrayVec<Item, LOST>;

/// What a reply says.
#[derive(Clone, Debug, Default)]
pub(crate) struct Told {
    /// What it is about, and how late it is.
    pub answered: Option<(Item, Nanos)>,
    /// What has no reply, the oldest first.
    pub skipped: Skipped,
    /// Nothing was sent behind what it is about, so that it is late itself, and not about something later.
    pub last: bool,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Expected {
    items: ArrayVec<Item, ROOM>,
    /// What was lost if replies go on to be as late as they are, and what speaks for it.
    suspects: ArrayVec<Item, SKIPPED>,
    score: i64,
    last: Option<Time>,
}

impl Expected {
    pub fn clear(&mut self) {
        *self = Expected::default();
    }

    /// A reply is awaited for this. If there is no room, none for the oldest any more.
    pub fn push(&mut self, item: Item) {
        if self.items.is_full() {
            self.items.remove(0);
            self.acquit();
        }
        let place = self.items.iter().rposition(|before| before.sent <= item.sent);
        self.items.insert(place.map_or(0, |before| before + 1), item);
    }

    /// Whether something may be lost, as later replies will tell.
    pub fn suspects(&self) -> bool {
        !self.suspects.is_empty()
    }

    /// A reply to what was sent at `due`, as far as it kept its time.
    pub fn reply(&mut self, due: Time, exactness: Exactness) -> Told {
        let mut told = Told::default();
        let together = self
            .last
            .replace(due)
            .is_some_and(|last| due.since(last) * TOGETHER_PART < exactness.spacing);
        while self.oldest().is_some_and(|sent| due.since(sent) > exactness.late) {
            extend(&mut told.skipped, self.end_of_replies());
        }
        self.pass_copies(due, &mut told.skipped);
        let Some(&first) = self.items.first() else { return told };
        let off = due.since(first.sent);
        if off < -exactness.early {
            return told;
        }
        let evidence = if together { 0 } else { self.evidence(due, off, exactness.deviation) };
        self.items.remove(0);
        told.answered = Some((first, off));
        told.last = self.items.is_empty() && first.what == What::Behind;
        self.score = self.score.saturating_add(evidence);
        if self.score <= 0 {
            self.acquit();
        } else if self.score >= ENOUGH {
            self.convict(due, &mut told);
        }
        told
    }

    /// Copies to which this reply is not, because it is nearer to the next one, have no reply.
    fn pass_copies(&mut self, due: Time, skipped: &mut Skipped) {
        while let [copy, next, ..] = self.items[..]
            && copy.what == What::Copy
            && due.since(next.sent).abs() < due.since(copy.sent).abs()
            && skipped.try_push(copy).is_ok()
        {
            self.items.remove(0);
        }
    }

    /// How much a reply that is so late for the oldest speaks for a loss. The first one that is late tells
    /// what may be lost: as many as lie before the one for which it is least late or early.
    fn evidence(&mut self, due: Time, off: Nanos, deviation: Nanos) -> i64 {
        let off_of = |item: &Item| due.since(item.sent).abs();
        if self.suspects.is_empty() {
            let later = self.items.iter().enumerate().skip(1).take(SKIPPED);
            let nearest = later.min_by_key(|(_, item)| off_of(item)).map(|(place, _)| place);
            let Some(nearest) = nearest.filter(|at| off_of(&self.items[*at]) < off) else {
                return 0;
            };
            self.suspects.extend(self.items[..nearest].iter().copied());
        }
        // One that has not been sent has no reply.
        let Some(other) = self.items.get(self.suspects.len()) else { return -MOST };
        let exact = deviation.max(EXACT);
        let square = |off: Nanos| (off / US) * (off / US);
        let difference = square(off) - square(off_of(other));
        (difference * PARTS / (2 * square(exact)).max(1)).clamp(-MOST, MOST)
    }

    fn acquit(&mut self) {
        self.suspects.clear();
        self.score = 0;
    }

    /// What was suspected is lost, and this reply is about what comes so much later.
    fn convict(&mut self, due: Time, told: &mut Told) {
        let skipped = core::mem::take(&mut self.suspects);
        let later = self.items.drain(..skipped.len().min(self.items.len())).last();
        if let Some(item) = later {
            told.answered = Some((item, due.since(item.sent)));
        }
        extend(&mut told.skipped, skipped);
        self.score = 0;
    }

    /// When the oldest was sent for which a reply is awaited.
    pub fn oldest(&self) -> Option<Time> {
        self.items.first().map(|item| item.sent)
    }

    /// There will be no reply to the oldest any more. What has none then: this one, or what was
    /// suspected before.
    pub fn end_of_replies(&mut self) -> ArrayVec<Item, SKIPPED> {
        let suspects = core::mem::take(&mut self.suspects);
        self.score = 0;
        let over = suspects.len().max(1).min(self.items.len());
        let oldest = self.items.drain(..over).take(1).collect();
        if suspects.is_empty() { oldest } else { suspects }
    }
}

// Inlined it takes 130 bytes more on MIPS.
#[inline(never)]
pub(crate) fn extend(skipped: &mut Skipped, more: impl IntoIterator<Item = Item>) {
    let room = skipped.remaining_capacity();
    skipped.extend(more.into_iter().take(room));
}

/// Those that were lost, of what has no reply: not copies, which were not needed then, nor the last one if
/// it came in order because what was to go ahead of it was lost.
pub(crate) fn lost(skipped: &[Item]) -> impl DoubleEndedIterator<Item = &Item> {
    skipped.iter().enumerate().filter_map(|(at, item)| {
        let after_ahead = at > 0 && skipped[at - 1].what == What::Ahead;
        let in_order = item.what == What::Behind && after_ahead && at + 1 == skipped.len();
        (item.what != What::Copy && !in_order).then_some(item)
    })
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;
    use crate::store::cache::{Cache, Trail};
    use crate::time::MS;

    const SPACING: Nanos = 600 * US;
    const EXACTNESS: Exactness =
        Exactness { deviation: 100 * US, early: 300 * US, late: 5 * MS, spacing: SPACING };

    fn at(us: Nanos) -> Time {
        Time::ZERO + MS * 1000 + us * US
    }

    /// So many packets in pairs, 600 us apart: 1 ahead of 0, 3 ahead of 2, and so on.
    fn pairs(count: usize) -> Vec<Item> {
        let (mut cache, mut trail) = (Cache::new(1 << 22), Trail::default());
        let mut item = |n| {
            let sent = at(600 * n as Nanos);
            let id = trail.push(&mut cache, sent, n as u64, &[0; 64]).expect("there is room");
            Item { id, sent, what: if n % 2 == 0 { What::Ahead } else { What::Behind } }
        };
        (0..count).map(&mut item).collect()
    }

    /// Those that are taken for lost, where those have no reply that `lost` says and the others one that is so
    /// late; in steps, as packets and replies come.
    fn told(items: &[Item], lost: &[usize], late: impl Fn(usize) -> Nanos) -> Vec<usize> {
        let mut expected = Expected::default();
        let mut all = Vec::new();
        for (n, item) in items.iter().enumerate() {
            expected.push(*item);
            // The replies are four packets later.
            let Some(of) = n.checked_sub(4) else { continue };
            let in_order = of > 0 && lost.contains(&(of - 1)) && items[of].what == What::Behind;
            if !lost.contains(&of) && !in_order {
                let told = expected.reply(items[of].sent + late(of), EXACTNESS);
                all.extend(super::lost(&told.skipped).copied());
            }
        }
        let place = |item: &Item| items.iter().position(|it| it.id == item.id).unwrap();
        all.iter().map(place).collect()
    }

    #[test]
    fn replies_that_are_as_late_as_packets_are_apart_tell_the_right_one() {
        let items = pairs(60);
        let jitter = |of: usize| (of as Nanos * 37 % 50 - 25) * 10 * US;
        assert!(told(&items, &[], jitter).is_empty());
        for lost in 8..40 {
            assert_eq!(told(&items, &[lost], jitter), [lost]);
        }
        assert_eq!(told(&items, &[10, 11, 31], jitter), [10, 31], "11 came in order or not at all");
        assert_eq!(told(&items, &[11, 12], jitter), [11, 12]);
    }

    #[test]
    fn a_client_that_sleeps_has_lost_nothing() {
        let items = pairs(60);
        for wakes in 20..30 {
            // It replies to six packets at once.
            let late = |of: usize| {
                let before = wakes as Nanos - of as Nanos;
                if (0..6).contains(&before) { before * SPACING } else { 0 }
            };
            assert!(told(&items, &[], late).is_empty());
        }
    }

    #[test]
    fn one_late_reply_is_suspicious_and_the_next_one_tells() {
        let items = pairs(8);
        let mut expected = Expected::default();
        items.iter().for_each(|item| expected.push(*item));
        assert!(!expected.suspects());
        let first = expected.reply(items[2].sent, EXACTNESS);
        assert!(first.skipped.is_empty() && expected.suspects());
        let second = expected.reply(items[3].sent, EXACTNESS);
        assert_eq!(lost(&second.skipped).collect::<Vec<_>>(), [&items[0]]);
        assert_eq!(second.answered, Some((items[3], 0)));
        assert!(!expected.suspects());
        assert_eq!(expected.oldest(), Some(items[4].sent));
    }

    #[test]
    fn a_copy_has_a_reply_if_it_was_needed() {
        let items = pairs(4);
        let copy = Item { sent: at(900), what: What::Copy, ..items[0] };
        let expected = || {
            let mut expected = Expected::default();
            items[1..].iter().chain([&copy]).for_each(|item| expected.push(*item));
            assert_eq!(expected.reply(at(600), EXACTNESS).answered, Some((items[1], 0)));
            expected
        };
        let needed = expected().reply(at(950), EXACTNESS);
        assert_eq!(needed.answered, Some((copy, 50 * US)));
        let needless = expected().reply(at(1150), EXACTNESS);
        assert_eq!(needless.skipped[..], [copy]);
        assert_eq!(lost(&needless.skipped).count(), 0);
        assert_eq!(needless.answered, Some((items[2], -50 * US)));
    }

    #[test]
    fn a_reply_before_its_time_is_about_something_else() {
        let mut expected = Expected::default();
        pairs(2).iter().for_each(|item| expected.push(*item));
        assert_eq!(expected.reply(at(-400), EXACTNESS).answered, None);
        assert_eq!(expected.oldest(), Some(at(0)));
    }

    #[test]
    fn what_is_late_beyond_reason_was_not_answered() {
        let items = pairs(20);
        let mut expected = Expected::default();
        items.iter().for_each(|item| expected.push(*item));
        let told = expected.reply(items[12].sent, EXACTNESS);
        assert_eq!(lost(&told.skipped).collect::<Vec<_>>(), [&items[0], &items[1], &items[2]]);
    }

    #[test]
    fn without_replies_it_was_the_oldest_or_what_was_suspected() {
        let items = pairs(4);
        let mut expected = Expected::default();
        items.iter().for_each(|item| expected.push(*item));
        expected.reply(items[1].sent, EXACTNESS);
        assert!(expected.suspects());
        assert_eq!(expected.end_of_replies()[..], items[..1]);
        assert_eq!(expected.oldest(), Some(items[2].sent), "one more has had its reply");
        assert_eq!(expected.end_of_replies()[..], items[2..3]);
        assert_eq!(expected.end_of_replies()[..], items[3..4]);
        assert!(expected.end_of_replies().is_empty());
    }

    #[test]
    fn there_is_an_end_of_room() {
        let items = pairs(ROOM + 5);
        let mut expected = Expected::default();
        items.iter().for_each(|item| expected.push(*item));
        assert_eq!(expected.oldest(), Some(items[5].sent));
    }
}
