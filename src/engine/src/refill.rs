//! Which packets to send again for a hole, and when.

use arrayvec::ArrayVec;

use crate::cache::{Cache, Id, Trail};
use crate::gap::{GapSign, SignKind};
use crate::recent::Recent;
use crate::rtt::LocalRtt;
use crate::time::{MS, Nanos, Time, US};

/// Holes followed at a time.
pub(crate) const MAX_GAPS: usize = 8;
/// Packets named for one hole.
const MAX_NAMES: usize = 18;
/// Copies in one attempt that covers a whole window.
pub(crate) const MAX_WINDOW: usize = 32;
/// Attempts for a hole that size revealed ...
const ATTEMPTS: u32 = 2;
/// ... and one that rhythm revealed, which names the packet more surely.
const ATTEMPTS_BY_RHYTHM: u32 = 3;
/// Width of the first attempt where the hop's delay varies.
const MOST_SIMILAR: usize = 6;
/// Width of the first attempt when nothing better is known.
pub(crate) const USUAL_WIDTH: usize = 3;

/// Attempts worth making for a sign; one if it is `weak`.
pub(crate) fn attempts(kind: SignKind, weak: bool) -> u32 {
    match kind {
        // A skip names its packet surely or is none at all.
        SignKind::Skip => 1,
        _ if weak => 1,
        SignKind::Rhythm => ATTEMPTS_BY_RHYTHM,
        SignKind::Step | SignKind::LongStep | SignKind::Floor => ATTEMPTS,
    }
}

/// Packets added at a time to a run of losses that turns out to be longer, and
/// how often.
pub(crate) const RUN_STEP: usize = 3;
pub(crate) const RUN_STEPS: u32 = 4;

/// Packets in the order of belief.
pub(crate) type Names = ArrayVec<Id, MAX_NAMES>;

/// A hole being filled.
#[derive(Clone, Debug)]
pub(crate) struct Gap {
    pub opened: Time,
    /// Number of the packet most likely lost; 0 if none is likely.
    pub hole: u64,
    /// The earliest packet sent again as part of one run of losses.
    pub edge: Option<Id>,
    /// How often the run turned out to be longer.
    pub extended: u32,
    /// The likeliest packets, for a second try.
    pub names: ArrayVec<Id, 3>,
    pub attempts: u32,
    /// When the answer to the last attempt is overdue.
    pub overdue: Time,
    pub last_attempt: Time,
    pub sign: GapSign,
    /// Attempts to be made in all.
    pub attempts_allowed: u32,
    /// Time to wait for the answer to an attempt.
    pub span: Nanos,
}

impl Gap {
    /// Whether another attempt is left.
    pub fn attempts_left(&self) -> bool {
        self.attempts < self.attempts_allowed
    }

    /// For how long attempts can go on from now.
    pub fn patience(&self) -> Nanos {
        let left = self.attempts_allowed.saturating_sub(self.attempts);
        self.span.saturating_mul(Nanos::from(left) + 1)
    }
}

/// The open holes of a flow and the copies sent for them.
#[derive(Clone, Debug)]
pub(crate) struct Refill {
    pub gaps: ArrayVec<Gap, MAX_GAPS>,
    resent: Recent<Time, MAX_WINDOW>,
}

impl Refill {
    pub fn new() -> Refill {
        Refill { gaps: ArrayVec::new(), resent: Recent::new() }
    }

    pub fn resent(&mut self, now: Time) {
        self.resent.push(now);
    }

    pub fn last_resend(&self) -> Option<Time> {
        self.resent.last()
    }

    /// Distance from `now` to the nearest moment at which a copy's answer was
    /// due, which may wait at the client for as long as `wait`.
    pub fn nearest_answer(&self, now: Time, rtt: Nanos, wait: Nanos) -> Option<Nanos> {
        let distance = |at| {
            let late = now.since(at) - rtt;
            if late < 0 { -late } else { (late - wait).max(0) }
        };
        self.resent.iter().map(distance).min()
    }

    pub fn clear(&mut self) {
        self.gaps.clear();
        self.resent.clear();
    }

    pub fn forget_resends(&mut self) {
        self.resent.clear();
    }

    /// The open gap whose last attempt explains a reply at `now` best.
    pub fn explained_by(&self, now: Time, rtt: Nanos) -> Option<usize> {
        (0..self.gaps.len()).min_by_key(|g| (now.since(self.gaps[*g].last_attempt) - rtt).abs())
    }

    /// When the first gap needs attention.
    pub fn deadline(&self) -> Option<Time> {
        self.gaps.iter().map(|gap| gap.overdue).min()
    }
}

/// Ranks what may have been lost before a reply at `now`, given that no copy
/// of it was sent yet: the packet before the one that triggered the reply
/// first, then its neighbours in the order in which timing makes them likely.
pub(crate) fn rank(
    now: Time,
    rtt: &LocalRtt,
    trail: &mut Trail,
    cache: &Cache,
    depth: usize,
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
    for _ in 3..depth.clamp(6, MAX_NAMES) {
        let Some(id) = next else { break };
        names.extend(Some(id).filter(fresh));
        next = cache.before(id);
    }
    names
}

/// Packets that could equally well have triggered a reply at `now`, at least one.
pub(crate) fn ambiguity(now: Time, rtt: &LocalRtt, trail: &mut Trail, cache: &Cache) -> usize {
    let due = now - rtt.get();
    let window = 150 * US + 2 * rtt.deviation();
    let similar = trail.within(cache, due - window, due + window).take(MOST_SIMILAR).count();
    let alone = trail.nearest(cache, due).is_none_or(|(_, offset)| offset.abs() > window);
    (similar + usize::from(alone)).clamp(1, MOST_SIMILAR)
}

/// Packets whose answers fall between the previous reply and this one, at
/// most 16.
pub(crate) fn since_reply(
    previous: Time,
    now: Time,
    rtt: &LocalRtt,
    trail: &mut Trail,
    cache: &Cache,
) -> usize {
    let shift = 200 * US - rtt.get();
    trail.within(cache, previous + shift, now + shift).take(16).count()
}

/// Everything that could be the hole of a gap opened at `opened` or of one
/// hidden behind it, at most `limit`, those nearest to the hole first.
pub(crate) fn window(
    opened: Time,
    now: Time,
    rtt: &LocalRtt,
    trail: &mut Trail,
    cache: &Cache,
    limit: usize,
) -> ArrayVec<Id, MAX_WINDOW> {
    let due = opened - rtt.get();
    let from = due - (2 * rtt.deviation() + 4 * MS);
    let to = now - rtt.get() + MS;
    let mut found: ArrayVec<(Nanos, Id), { 4 * MAX_WINDOW }> = trail
        .within(cache, from, to)
        .filter(|(_, r)| r.copies == 0 || now.since(r.resent_at) > rtt.get() * 3 / 4)
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
mod tests {
    use super::*;
    use alloc::vec::Vec;

    /// Packets 1.. every 1.2 ms and a round trip of 2 ms.
    fn setting() -> (Cache, Trail, LocalRtt) {
        let mut cache = Cache::new(1 << 20);
        let mut trail = Trail::default();
        for n in 1..=40 {
            trail.push(&mut cache, at(n), n, &[0; 100]);
        }
        let mut rtt = LocalRtt::new();
        rtt.sent(Time::ZERO, None, None);
        rtt.handshake_reply(Time::ZERO + 2 * MS);
        (cache, trail, rtt)
    }

    fn at(n: u64) -> Time {
        Time::ZERO + n as Nanos * 1200 * US
    }

    fn numbers(cache: &Cache, ids: &[Id]) -> Vec<u64> {
        ids.iter().map(|id| cache.record(*id).unwrap().number).collect()
    }

    #[test]
    fn the_packet_before_the_trigger_comes_first() {
        let (cache, mut trail, rtt) = setting();
        let names = rank(at(20) + 2 * MS, &rtt, &mut trail, &cache, 6);
        assert_eq!(numbers(&cache, &names), [19, 18, 20, 17, 16, 15]);
        let late = rank(at(20) + 2300 * US, &rtt, &mut trail, &cache, 6);
        assert_eq!(numbers(&cache, &late)[..3], [19, 20, 18]);
    }

    #[test]
    fn what_was_sent_again_is_not_named_again() {
        let (mut cache, mut trail, rtt) = setting();
        let names = rank(at(20) + 2 * MS, &rtt, &mut trail, &cache, 6);
        cache.record_mut(names[0]).unwrap().copies = 1;
        let names = rank(at(20) + 2 * MS, &rtt, &mut trail, &cache, 6);
        assert_eq!(numbers(&cache, &names)[..2], [18, 20]);
    }

    #[test]
    fn the_window_covers_the_hole_and_what_came_since() {
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
        assert_eq!(numbers(&cache, &ids), [18, 19, 21], "its answer is still on the way");
    }

    #[test]
    fn ambiguity_and_replies() {
        let (cache, mut trail, rtt) = setting();
        assert_eq!(ambiguity(at(20) + 2 * MS, &rtt, &mut trail, &cache), 1);
        let now = at(20) + 2 * MS;
        assert_eq!(since_reply(now - 2400 * US, now, &rtt, &mut trail, &cache), 2);
    }
}
