// SPDX-License-Identifier: GPL-2.0-or-later
//! What the replies to a train of packets tell of the round trip.
//!
//! Clients reply to no fewer than two packets at a time (RFC 9000, section 13.2.2). One may be left over from
//! before a pause, so the second reply after it is to the third packet behind it or to a later one, whatever was
//! lost on either way, and no round trip is longer than from that packet to that reply. Where packets are close a
//! reply fits several estimates, which are as far apart as packets are; this tells which are too long.

use crate::store::cache::{Cache, Id};
use crate::time::{MS, Nanos, Time};

/// After a pause this long no reply is about what was sent before it, but for those that a timer delays
/// (chosen: twice the latest hosts).
pub(crate) const PAUSE: Nanos = 2 * MS;
/// Replies that were as late as they have to be before one is believed (chosen: of a client that
/// replies to each packet the third is too early by as much as two packets, and few hosts are that late).
const ENOUGH: u8 = 3;
/// A reply longer by more than this carries something else, and may be about a single packet (chosen: more
/// than what gaps and longer fields add).
const SOMETHING_ELSE: i32 = 5;

/// The packets since the last pause, and the replies to them.
#[derive(Clone, Debug, Default)]
pub(crate) struct Train {
    /// The packet that the last reply was about, if none was left over and it was not about a later one: at
    /// first the one before those that it can be about.
    about: Option<Id>,
    begun: Time,
    replied: bool,
    in_time: u8,
    /// A reply came too early for that packet, so one was left over, and `about` is right as it is now.
    left_over: bool,
    /// A reply came before its time, so this client does not count to two.
    refuted: bool,
}

impl Train {
    /// A packet ends a pause.
    pub fn begin(&mut self, now: Time, id: Id) {
        if !self.refuted {
            (self.about, self.begun) = (Some(id), now);
            (self.replied, self.left_over) = (false, false);
        }
    }

    /// A reply has come, so many bytes longer than usual, and none comes sooner than `soonest`. Gives how
    /// long the round trip is at most, if that tells.
    pub fn replied(
        &mut self,
        now: Time,
        excess: i32,
        soonest: Nanos,
        cache: &Cache,
    ) -> Option<Nanos> {
        let before = self.about.filter(|id| cache.record(*id).is_some());
        if now.since(self.begun) < soonest || excess > SOMETHING_ELSE {
            return None;
        }
        self.about = None;
        // After a gap packets are replied to one by one.
        let before = before.filter(|_| excess == 0)?;
        let second = |id| if self.replied { cache.after(id) } else { Some(id) };
        let about = cache.after(before).and_then(second)?;
        let took = |id| cache.record(id).map(|it| now.since(it.at)).filter(|it| *it >= soonest);
        let sooner = cache.before(about).and_then(|id| Some((id, took(id)?)));
        let found = match took(about) {
            // One may have been left over for all that is known.
            Some(_) if !self.left_over => sooner.map(|(_, took)| (about, took)),
            Some(took) => Some((about, took)),
            None if !self.left_over => sooner,
            None => None,
        };
        let Some((about, at_most)) = found else {
            self.refuted = true;
            return None;
        };
        self.left_over |= took(about) == Some(at_most);
        (self.about, self.replied) = (Some(about), true);
        self.in_time = self.in_time.saturating_add(1);
        (self.in_time >= ENOUGH).then_some(at_most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::cache::Trail;
    use crate::time::US;

    /// Packets 0.24 ms apart.
    const APART: Nanos = 240 * US;
    const SOONEST: Nanos = 2 * MS;
    const TAKES: Nanos = 2_150 * US;

    fn at(n: Nanos) -> Time {
        Time::ZERO + n * APART
    }

    /// A train of 40 packets, and replies to these, so much longer than usual: what each tells.
    fn told(replies: &[(Nanos, i32)]) -> ([Option<Nanos>; 8], Train) {
        let mut cache = Cache::new(1 << 20);
        let mut trail = Trail::default();
        let mut train = Train::default();
        for n in 0..40 {
            let id = trail.push(&mut cache, at(n), n as u64, &[0; 100]).unwrap();
            if n == 0 {
                train.begin(at(0), id);
            }
        }
        let mut told = [None; 8];
        for (told, (about, excess)) in told.iter_mut().zip(replies) {
            *told = train.replied(at(*about) + TAKES, *excess, SOONEST, &cache);
        }
        (told, train)
    }

    #[test]
    fn each_reply_is_about_two_packets_more_at_least() {
        let (told, _) = told(&[(1, 0), (3, 0), (5, 0), (8, 0), (10, 0)]);
        assert_eq!(told[..3], [None, None, Some(TAKES + APART)], "a few have to agree");
        assert_eq!(told[3..5], [Some(TAKES + 2 * APART); 2], "one was about three");
    }

    #[test]
    fn one_packet_may_be_left_over_from_before_the_pause() {
        let (told, train) = told(&[(0, 0), (2, 0), (4, 0), (6, 0), (9, 0)]);
        assert_eq!(told[..4], [None, None, Some(TAKES), Some(TAKES)], "it shows, and is counted");
        assert_eq!(told[4], Some(TAKES + APART), "one was about three");
        assert!(!train.refuted);
    }

    #[test]
    fn a_client_that_replies_to_each_packet_tells_nothing() {
        let each: [(Nanos, i32); 8] = core::array::from_fn(|n| (n as Nanos, 0));
        let (told, mut train) = told(&each);
        assert_eq!(told, [None; 8]);
        let mut cache = Cache::new(1 << 20);
        let id = Trail::default().push(&mut cache, at(100), 100, &[0; 100]).unwrap();
        train.begin(at(100), id);
        assert!(train.refuted && train.about.is_none(), "nor later");
    }

    #[test]
    fn what_shows_a_gap_ends_a_train_and_a_frame_of_the_clients_own_does_not() {
        let (after_gap, _) = told(&[(1, 0), (3, 0), (5, 2), (6, 0), (7, 0)]);
        assert_eq!(after_gap, [None; 8]);
        let (with_own, _) = told(&[(1, 0), (2, 9), (4, 0), (6, 0)]);
        assert_eq!(with_own[3], Some(TAKES + 2 * APART));
    }
}
