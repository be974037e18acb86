// SPDX-License-Identifier: GPL-2.0-or-later
//! What may be missing where acknowledgements are lost as well as packets.
//!
//! Each acknowledgement covers all that has come, so a lost one hides nothing for good: the next one
//! shows the same gaps. But it names their place less exactly, and between the two a gap may have
//! closed and another one opened.

use crate::measure::rtt::LocalRtt;
use crate::repair::gap::Gap;
use crate::repair::gaps::{MAX_NAMES, Names, TRIGGER_SHIFT};
use crate::store::cache::{Cache, Id, Trail};
use crate::time::{Nanos, Time};

/// Packets named for a further attempt where a reply showed the gap (chosen: what three lost replies
/// leave of a client that replies to every second packet).
const NAMES_AGAIN: usize = 8;

/// Where acknowledgements were lost as well: the packets that can be missing before a reply that
/// `trigger` caused, `count` packets after the reply before it. A client that replies to a gap at
/// once and else to every `usual` packets has replied to the one after the gap, or that many later.
pub(crate) fn behind(trigger: Id, count: u64, usual: u64, cache: &Cache) -> Names {
    let back = core::iter::successors(cache.before(trigger), |id| cache.before(*id));
    let fresh = |id: &Id| cache.record(*id).is_some_and(|r| r.copies == 0);
    let most = count.saturating_sub(1).min(MAX_NAMES as u64) as usize;
    back.take(most).step_by(usual.max(1) as usize).filter(fresh).collect()
}

/// What may be missing although copies were sent for a gap: any packet between the last reply of which
/// it is certain what it covers and the one that showed the gap, and those around them if that is not
/// the first time. Or another
/// gap opened in the reply that shows this one closed, which then was as long as before: any packet
/// between the last reply that could not tell of a copy and the first that did.
pub(crate) fn again(
    gap: &Gap,
    last: Option<Time>,
    rtt: &LocalRtt,
    trail: &mut Trail,
    cache: &Cache,
) -> Names {
    let shift = TRIGGER_SHIFT - rtt.get();
    let shown = gap.shown() + shift;
    let mut from = shown - Nanos::from(gap.silence);
    let mut to = shown - 2 * TRIGGER_SHIFT;
    if gap.attempts > 1 {
        let floor = trail.around(cache, from).floor.and_then(|id| cache.record(id));
        (from, to) = (floor.map_or(from, |record| record.at), shown);
    }
    let open = trail.within(cache, from, to);
    let open = open.filter(|(_, r)| r.copies == 0 || r.resent_at >= gap.opened);
    let mut names: Names = open.map(|(id, _)| id).take(NAMES_AGAIN).collect();
    let told = gap.told().or(last).map_or(shown, |told| told + shift);
    let hidden = trail.within(cache, gap.heard() + shift, told - 2 * TRIGGER_SHIFT);
    names.extend(
        hidden.filter(|(_, r)| r.copies == 0).map(|(id, _)| id).take(MAX_NAMES - NAMES_AGAIN),
    );
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::repair::gap::tests::gap;
    use crate::repair::gaps::tests::{at, numbers, setting};
    use crate::time::MS;

    #[test]
    fn after_lost_acknowledgements_a_gap_may_be_before_each_of_them() {
        let (mut cache, mut trail, _) = setting();
        let (trigger, _) = trail.nearest(&cache, at(20)).unwrap();
        let numbers_of =
            |count, usual, cache: &Cache| numbers(cache, &behind(trigger, count, usual, cache));
        assert_eq!(numbers_of(3, 2, &cache), [19]);
        assert_eq!(numbers_of(5, 2, &cache), [19, 17]);
        assert_eq!(numbers_of(6, 2, &cache), [19, 17, 15]);
        assert_eq!(numbers_of(4, 1, &cache), [19, 18, 17]);
        let missing = trail.nearest(&cache, at(17)).unwrap().0;
        cache.record_mut(missing).unwrap().copies = 1;
        assert_eq!(numbers_of(5, 2, &cache), [19], "the other was sent again");
    }

    #[test]
    fn again_goes_what_no_reply_covers_and_what_was_lost_when_the_gap_closed() {
        let (mut cache, mut trail, rtt) = setting();
        let reply = |n| at(n) + 2 * MS;
        let since =
            |n: u64, from: u64| (reply(n) - reply(from).since(Time::ZERO)).since(Time::ZERO);
        let silence = u32::try_from(since(20, 17)).unwrap();
        let mut gap = Gap { opened: reply(20), last_attempt: reply(20), silence, ..gap(19, 1) };
        let again = |gap: &Gap, last, trail: &mut Trail, cache: &Cache| {
            numbers(cache, &again(gap, last, &rtt, trail, cache))
        };
        let last = Some(reply(20));
        assert_eq!(again(&gap, last, &mut trail, &cache), [19, 18], "17 was covered");
        gap.replied(reply(21), 2 * MS, 3 * MS, false);
        gap.replied(reply(24), 2 * MS, 3 * MS, false);
        assert_eq!(again(&gap, last, &mut trail, &cache), [19, 18, 23, 22]);
        gap.tried(reply(24));
        assert_eq!(again(&gap, last, &mut trail, &cache), [20, 19, 18, 17], "and those around");
        let last = Some(reply(26));
        let names = again(&gap, last, &mut trail, &cache);
        assert_eq!(names, [20, 19, 18, 17, 25, 24, 23, 22], "until the newest if none told surely");
        let before = trail.nearest(&cache, at(18)).unwrap().0;
        let record = cache.record_mut(before).unwrap();
        (record.copies, record.resent_at) = (1, at(20));
        let names = again(&gap, Some(reply(20)), &mut trail, &cache);
        assert_eq!(names, [20, 19, 17], "a copy for another gap");
    }
}
