// SPDX-License-Identifier: GPL-2.0-or-later
//! The open gaps of a flow, and which packets to resend for one.

use arrayvec::ArrayVec;

use crate::infer::rhythm::Beat;
use crate::measure::margin::Margin;
use crate::measure::rtt::LocalRtt;
use crate::repair::gap::Gap;
use crate::store::cache::{Cache, Id, Trail};
use crate::store::recent::Recent;
use crate::time::{MS, Nanos, Time, US};

/// Gaps followed at a time (chosen: more are a storm).
pub(crate) const MAX_GAPS: usize = 8;
/// Packets named for one gap (chosen: [`MOST_SINCE_REPLY`], and the two around them).
pub(super) const MAX_NAMES: usize = 18;
/// Copies in one attempt that covers a whole window (chosen: less than a budget saves up).
pub(crate) const MAX_WINDOW: usize = 32;
/// Packets before the trigger that are named at least (chosen: two attempts of the usual width).
const LEAST_NAMES: usize = 6;
/// Packets between two replies that are counted (chosen: more than any client leaves, and fewer
/// than [`MAX_NAMES`]).
const MOST_SINCE_REPLY: usize = 16;
/// A reply is triggered a little later than the packet before it was forwarded, at the client's
/// clock's grain (chosen: half of [`Margin::Expected`], so that the trigger itself counts).
pub(super) const TRIGGER_SHIFT: Nanos = 200 * US;
/// Until this share of a round trip after a copy was sent its reply is still on the way (chosen:
/// a copy often overtakes what stands in the hop's queue).
const COPY_UNDER_WAY_PERCENT: Nanos = 75;
/// Packets sent this much after the newest that can have triggered a reply belong to the window
/// as well (chosen: what the estimate of the round trip may be off by).
const WINDOW_SLACK: Nanos = MS;

/// Packets that are looked at for a window (chosen: eight milliseconds of 100 Mbit/s).
const MOST_LOOKED_AT: usize = 64;

/// Packets in the order of belief.
pub(crate) type Names = ArrayVec<Id, MAX_NAMES>;

/// The open gaps of a flow and the copies sent for them.
#[derive(Clone, Debug)]
pub(crate) struct Gaps {
    open: ArrayVec<Gap, MAX_GAPS>,
    resent: Recent<Time, MAX_WINDOW>,
}

impl Gaps {
    pub fn new() -> Gaps {
        Gaps { open: ArrayVec::new(), resent: Recent::new() }
    }

    /// The open gaps, the oldest first.
    pub fn open(&self) -> &[Gap] {
        &self.open
    }

    /// Whether as many gaps are open as can be followed.
    pub fn is_full(&self) -> bool {
        self.open.is_full()
    }

    /// Follows one more gap, if there is room.
    pub fn follow(&mut self, gap: Gap) {
        let _ = self.open.try_push(gap);
    }

    /// The open gap, if there is just one.
    pub fn only_gap(&mut self) -> Option<&mut Gap> {
        match self.open.as_mut_slice() {
            [gap] => Some(gap),
            _ => None,
        }
    }

    /// The oldest gap turns out to be longer: its attempt goes on. Until when that may be answered.
    pub fn lengthened(&mut self, now: Time) -> Option<Time> {
        let gap = self.open.first_mut()?;
        gap.goes_on(now);
        Some(now + gap.patience())
    }

    /// Place of the first gap from place `from` on whose last attempt is overdue.
    pub fn overdue(&self, now: Time, from: usize) -> Option<usize> {
        (from..self.open.len()).find(|place| self.open[*place].overdue <= now)
    }

    /// An acknowledgement has come at `now`: see [`Gap::replied`].
    pub fn replied(&mut self, now: Time, soonest: Nanos, latest: Nanos, hastens: bool) {
        for gap in &mut self.open {
            gap.replied(now, soonest, latest, hastens);
        }
    }

    /// One more attempt goes out for the gap at `place`.
    pub fn tried(&mut self, now: Time, place: usize) {
        self.open[place].tried(now);
    }

    /// Follows the gap at `place` no longer.
    pub fn remove(&mut self, place: usize) -> Gap {
        self.open.remove(place)
    }

    /// Follows no gap any longer; copies may still be replied to.
    pub fn take_gaps(&mut self) -> ArrayVec<Gap, MAX_GAPS> {
        core::mem::take(&mut self.open)
    }

    pub fn resent(&mut self, now: Time) {
        self.resent.push(now);
    }

    /// When the hop takes up the copies that go out now.
    pub fn copies_taken_up(&self, now: Time) -> Time {
        self.last_resend().map_or(now, |last| last.max(now))
    }

    pub fn last_resend(&self) -> Option<Time> {
        self.resent.last()
    }

    /// Distance from `now` to the nearest moment at which the reply to a copy was due, which
    /// may wait at the client for as long as `wait`.
    pub fn nearest_reply(&self, now: Time, rtt: Nanos, wait: Nanos) -> Option<Nanos> {
        let distance = |at| {
            let late = now.since(at) - rtt;
            if late < 0 { -late } else { (late - wait).max(0) }
        };
        self.resent.iter().map(distance).min()
    }

    /// Whether a copy was sent so long ago that it may have been replied to, which takes no less
    /// than `soonest`.
    pub fn may_be_replied(&self, now: Time, soonest: Nanos) -> bool {
        self.resent.iter().any(|at| now.since(at) >= soonest)
    }

    /// Whether a reply at `now` is the first that can tell of a copy, which takes no less than
    /// `soonest`; after `latest` any reply tells. `last` is when the acknowledgement before it came.
    /// Where the copy's own reply was lost, the first is the next one, whatever triggered it.
    pub fn tells_first(
        &self,
        now: Time,
        last: Option<Time>,
        soonest: Nanos,
        latest: Nanos,
    ) -> bool {
        let told = |at| last.is_some_and(|last| last.since(at) > latest);
        self.resent.iter().any(|at| now.since(at) >= soonest && !told(at))
    }

    /// Open gaps of which the first copy was sent so long ago.
    pub fn may_be_closed(&self, now: Time, soonest: Nanos) -> usize {
        self.open.iter().filter(|gap| now.since(gap.opened) >= soonest).count()
    }

    /// Open gaps of which the reply to the first attempt should have come by `now`, as that takes
    /// `span`.
    pub fn in_vain(&self, now: Time, span: Nanos) -> usize {
        self.open.iter().filter(|gap| gap.opened + span < now).count()
    }

    /// Whether a reply at `now` acknowledges a copy: the reply to one was due, and explains it
    /// better than the reply to any forwarded packet.
    pub fn acknowledges_copy(&self, now: Time, rtt: &LocalRtt, beat: &Beat) -> bool {
        let nearest = self.nearest_reply(now, rtt.get(), 0);
        nearest.is_some_and(|off| {
            off <= rtt.within(Margin::Same) && off < beat.error && (!beat.fast || rtt.sharp())
        })
    }

    /// Whether the gap whose last attempt explains a reply at `now` best is one that sizes do not
    /// show.
    pub fn awaits_answer(&self, now: Time, rtt: &LocalRtt) -> bool {
        self.explained_by(now, rtt.get()).is_some_and(|gap| self.open[gap].sign.silent)
    }

    /// Whether every open gap has had a second attempt, and whatever was sent again was
    /// due to be acknowledged, which takes `wait`.
    pub fn all_tried(&self, now: Time, wait: Nanos) -> bool {
        self.open.iter().all(|gap| gap.attempts >= 2)
            && self.last_resend().is_none_or(|at| at + wait < now)
    }

    pub fn clear(&mut self) {
        self.open.clear();
        self.resent.clear();
    }

    pub fn forget_resends(&mut self) {
        self.resent.clear();
    }

    /// The open gap whose last attempt explains a reply at `now` best.
    pub fn explained_by(&self, now: Time, rtt: Nanos) -> Option<usize> {
        (0..self.open.len()).min_by_key(|g| (now.since(self.open[*g].last_attempt) - rtt).abs())
    }

    /// When the first gap needs attention.
    pub fn deadline(&self) -> Option<Time> {
        self.open.iter().map(|gap| gap.overdue).min()
    }
}

/// Ranks what may have been lost before a reply at `now`, given that no copy
/// of it was sent yet: the packet before the one that triggered the reply
/// first, then its neighbours in the order in which timing makes them likely; but the one at this `place`
/// before the trigger goes ahead of all.
pub(crate) fn rank(
    now: Time,
    rtt: &LocalRtt,
    trail: &mut Trail,
    cache: &Cache,
    depth: usize,
    place: usize,
) -> Names {
    let mut names = Names::new();
    let due = now - rtt.get();
    let Some((trigger, _)) = trail.nearest(cache, due) else {
        return names;
    };
    let fresh = |id: &Id| cache.record(*id).is_some_and(|r| r.copies == 0);
    let offset = |id: Option<Id>| {
        id.and_then(|id| cache.record(id)).map_or(Nanos::MAX, |r| r.at.since(due).saturating_abs())
    };
    let first = cache.before(trigger);
    let second = first.and_then(|id| cache.before(id));
    names.extend(first.filter(fresh));
    // Is the packet after the supposed trigger a likelier trigger than the one
    // before it? Then the supposed trigger may be the lost one.
    let trigger_suspect = offset(cache.after(trigger)) < offset(first);
    let pair = if trigger_suspect { [Some(trigger), second] } else { [second, Some(trigger)] };
    names.extend(pair.into_iter().flatten().filter(fresh));
    let mut next = second.and_then(|id| cache.before(id));
    for _ in 3..depth.clamp(LEAST_NAMES, MAX_NAMES) {
        let Some(id) = next else { break };
        names.extend(Some(id).filter(fresh));
        next = cache.before(id);
    }
    let likeliest = if place > 1 { second } else { first };
    if let Some(at) = names.iter().position(|name| Some(*name) == likeliest) {
        names.swap(0, at);
    }
    names
}

/// What may have been lost where a stall began: the packet at its front, and those behind it.
pub(crate) fn from(front: Id, cache: &Cache) -> Names {
    let behind = core::iter::successors(Some(front), |id| cache.after(*id));
    let fresh = |id: &Id| cache.record(*id).is_some_and(|r| r.copies == 0);
    behind.take(LEAST_NAMES).filter(fresh).collect()
}

/// Packets that could equally well have triggered a reply at `now`, at least one and no more
/// than `most`.
pub(crate) fn ambiguity(
    now: Time,
    rtt: &LocalRtt,
    trail: &mut Trail,
    cache: &Cache,
    most: usize,
) -> usize {
    let due = now - rtt.get();
    let window = rtt.within(Margin::Same);
    let similar = trail.within(cache, due - window, due + window).take(most).count();
    let alone = trail.nearest(cache, due).is_none_or(|(_, offset)| offset.abs() > window);
    (similar + usize::from(alone)).min(most).max(1)
}

/// Packets whose replies were due between the previous reply and this one.
pub(crate) fn since_reply(
    previous: Time,
    now: Time,
    rtt: &LocalRtt,
    trail: &mut Trail,
    cache: &Cache,
) -> usize {
    let shift = TRIGGER_SHIFT - rtt.get();
    trail.within(cache, previous + shift, now + shift).take(MOST_SINCE_REPLY).count()
}

/// Packets whose successor was sent in this time: one of them is the gap if a packet of that time
/// caused the reply that showed it. Those go first whose successor was sent nearest to `due`; a
/// packet that was sent again is none of them.
pub(crate) fn between(
    (from, to): (Time, Time),
    due: Time,
    trail: &mut Trail,
    cache: &Cache,
) -> Names {
    let mut found: ArrayVec<(Nanos, Id), MOST_LOOKED_AT> = ArrayVec::new();
    let mut next = trail.around(cache, to).floor;
    for _ in 0..MOST_LOOKED_AT {
        let Some(record) = next.and_then(|id| cache.record(id)).filter(|r| r.at >= from) else {
            break;
        };
        next = next.and_then(|id| cache.before(id));
        if let Some(id) = next.filter(|id| cache.record(*id).is_some_and(|r| r.copies == 0)) {
            found.push((record.at.since(due).abs(), id));
        }
    }
    found.sort_unstable();
    found.iter().take(MAX_NAMES).map(|(_, id)| *id).collect()
}

/// Everything that could be the gap of a gap opened at `opened` or of one
/// hidden behind it, at most `limit`, those nearest to the gap first.
pub(crate) fn window(
    opened: Time,
    now: Time,
    rtt: &LocalRtt,
    trail: &mut Trail,
    cache: &Cache,
    limit: usize,
) -> ArrayVec<Id, MAX_WINDOW> {
    let due = opened - rtt.get();
    let from = due - rtt.within(Margin::Search);
    let to = now - rtt.get() + WINDOW_SLACK;
    let mut found: ArrayVec<(Nanos, Id), { 4 * MAX_WINDOW }> = trail
        .within(cache, from, to)
        .filter(|(_, r)| {
            r.copies == 0 || now.since(r.resent_at) > rtt.get() * COPY_UNDER_WAY_PERCENT / 100
        })
        .map(|(id, r)| (r.at.since(due).abs(), id))
        .take(4 * MAX_WINDOW)
        .collect();
    found.sort_unstable();
    let mut ids: ArrayVec<Id, MAX_WINDOW> =
        found.iter().map(|(_, id)| *id).take(limit.min(MAX_WINDOW)).collect();
    // Sent in their own order, as the sender would.
    ids.sort_unstable();
    ids
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::repair::gap::tests::gap;
    use crate::tunables::Tunables;
    use alloc::vec::Vec;

    /// Packets 1.. every 1.2 ms and a round trip of 2 ms.
    pub fn setting() -> (Cache, Trail, LocalRtt) {
        let mut cache = Cache::new(1 << 20);
        let mut trail = Trail::default();
        for n in 1..=40 {
            trail.push(&mut cache, at(n), n, &[0; 100]);
        }
        let mut rtt = LocalRtt::new(Tunables::DEFAULT);
        rtt.sent(Time::ZERO, None, None);
        rtt.handshake_reply(Time::ZERO + 2 * MS);
        (cache, trail, rtt)
    }

    pub fn at(n: u64) -> Time {
        Time::ZERO + n as Nanos * 1200 * US
    }

    pub fn numbers(cache: &Cache, ids: &[Id]) -> Vec<u64> {
        ids.iter().map(|id| cache.record(*id).unwrap().number).collect()
    }

    #[test]
    fn the_packet_before_the_trigger_comes_first() {
        let (cache, mut trail, rtt) = setting();
        let names = rank(at(20) + 2 * MS, &rtt, &mut trail, &cache, 6, 1);
        assert_eq!(numbers(&cache, &names), [19, 18, 20, 17, 16, 15]);
        let late = rank(at(20) + 2300 * US, &rtt, &mut trail, &cache, 6, 1);
        assert_eq!(numbers(&cache, &late)[..3], [19, 20, 18]);
    }

    #[test]
    fn other_places_may_come_first() {
        let (mut cache, mut trail, rtt) = setting();
        let named = |place: usize, trail: &mut Trail, cache: &Cache| {
            numbers(cache, &rank(at(20) + 2 * MS, &rtt, trail, cache, 6, place))
        };
        assert_eq!(named(2, &mut trail, &cache), [18, 19, 20, 17, 16, 15]);
        assert_eq!(named(1, &mut trail, &cache), [19, 18, 20, 17, 16, 15]);
        let second = trail.nearest(&cache, at(18)).unwrap().0;
        cache.record_mut(second).unwrap().copies = 1;
        assert_eq!(named(2, &mut trail, &cache), [19, 20, 17, 16, 15], "it went again");
    }

    #[test]
    fn what_was_sent_again_is_not_named_again() {
        let (mut cache, mut trail, rtt) = setting();
        let names = rank(at(20) + 2 * MS, &rtt, &mut trail, &cache, 6, 1);
        cache.record_mut(names[0]).unwrap().copies = 1;
        let names = rank(at(20) + 2 * MS, &rtt, &mut trail, &cache, 6, 1);
        assert_eq!(numbers(&cache, &names)[..2], [18, 20]);
    }

    #[test]
    fn behind_a_stall_the_packets_come_in_their_order() {
        let (mut cache, mut trail, _) = setting();
        let (front, _) = trail.nearest(&cache, at(20)).unwrap();
        let names = from(front, &cache);
        assert_eq!(numbers(&cache, &names), [20, 21, 22, 23, 24, 25]);
        cache.record_mut(names[0]).unwrap().copies = 1;
        assert_eq!(numbers(&cache, &from(front, &cache)), [21, 22, 23, 24, 25]);
    }

    #[test]
    fn the_window_covers_the_gap_and_what_came_since() {
        let (mut cache, mut trail, rtt) = setting();
        let opened = at(20) + 2 * MS;
        let now = opened + 5 * MS;
        let ids = window(opened, now, &rtt, &mut trail, &cache, 32);
        assert_eq!(numbers(&cache, &ids), [17, 18, 19, 20, 21, 22, 23, 24, 25]);
        let ids = window(opened, now, &rtt, &mut trail, &cache, 3);
        assert_eq!(numbers(&cache, &ids), [19, 20, 21]);
        let record = cache.record_mut(ids[1]).unwrap();
        (record.copies, record.resent_at) = (1, now - MS);
        let ids = window(opened, now, &rtt, &mut trail, &cache, 3);
        assert_eq!(numbers(&cache, &ids), [18, 19, 21], "its reply is still on the way");
    }

    #[test]
    fn a_window_has_what_came_before_the_packets_of_its_time() {
        let (mut cache, mut trail, _) = setting();
        let names = between((at(18), at(21)), at(20), &mut trail, &cache);
        assert_eq!(numbers(&cache, &names), [19, 18, 20, 17]);
        cache.record_mut(names[0]).unwrap().copies = 1;
        let names = between((at(18), at(21)), at(20), &mut trail, &cache);
        assert_eq!(numbers(&cache, &names), [18, 20, 17]);
        assert!(between((at(18) + 1, at(19) - 1), at(18), &mut trail, &cache).is_empty());
    }

    #[test]
    fn gaps_are_in_vain_when_their_first_reply_is_overdue() {
        let mut gaps = Gaps::new();
        gaps.follow(gap(10, 1));
        let opened = gaps.open()[0].opened;
        assert_eq!(gaps.in_vain(opened + 3 * MS, 3 * MS), 0);
        assert_eq!(gaps.in_vain(opened + 3 * MS + 1, 3 * MS), 1);
        assert_eq!(gaps.may_be_closed(opened + 3 * MS - 1, 3 * MS), 0);
        assert_eq!(gaps.may_be_closed(opened + 3 * MS, 3 * MS), 1);
        assert!(!gaps.may_be_replied(opened, 0), "no copy was sent");
    }

    #[test]
    fn the_first_reply_after_a_copy_tells_of_it_and_no_later_one() {
        let mut gaps = Gaps::new();
        gaps.resent(at(20));
        let tells = |now, last| gaps.tells_first(at(20) + now, Some(at(20) + last), 2 * MS, 3 * MS);
        assert!(!tells(2 * MS - 1, -MS), "no reply is as quick");
        assert!(tells(2 * MS, -MS) && tells(9 * MS, MS));
        assert!(tells(4 * MS, 3 * MS), "the one before may have been too early");
        assert!(!tells(4 * MS, 3 * MS + 1));
        assert!(gaps.tells_first(at(20) + 2 * MS, None, 2 * MS, 3 * MS));
    }

    #[test]
    fn a_reply_is_to_a_copy_if_no_packet_explains_it_better() {
        let (cache, mut trail, rtt) = setting();
        let mut gaps = Gaps::new();
        gaps.resent(at(20) + 600 * US);
        let now = at(20) + 600 * US + 2 * MS;
        let error = trail.nearest(&cache, now - rtt.get()).map_or(0, |(_, offset)| offset.abs());
        let beat = Beat { error, ..Beat::default() };
        assert!(gaps.acknowledges_copy(now, &rtt, &beat));
        assert!(!gaps.acknowledges_copy(now, &rtt, &Beat { error: 0, ..beat }));
        assert!(!gaps.acknowledges_copy(now + 4 * MS, &rtt, &beat), "its reply was due before");
        assert!(!Gaps::new().acknowledges_copy(now, &rtt, &beat));
    }

    #[test]
    fn all_are_tried_when_the_last_reply_is_overdue() {
        let mut gaps = Gaps::new();
        gaps.follow(gap(10, 2));
        gaps.follow(gap(12, 2));
        assert!(gaps.all_tried(at(20), 3 * MS), "nothing was sent");
        gaps.resent(at(20));
        assert!(!gaps.all_tried(at(20) + 3 * MS, 3 * MS));
        assert!(gaps.all_tried(at(20) + 3 * MS + 1, 3 * MS));
        gaps.follow(gap(14, 1));
        assert!(!gaps.all_tried(at(30), 3 * MS));
    }

    #[test]
    fn ambiguity_and_replies() {
        let (cache, mut trail, rtt) = setting();
        assert_eq!(ambiguity(at(20) + 2 * MS, &rtt, &mut trail, &cache, 6), 1);
        let now = at(20) + 2 * MS;
        assert_eq!(since_reply(now - 2400 * US, now, &rtt, &mut trail, &cache), 2);
    }
}
