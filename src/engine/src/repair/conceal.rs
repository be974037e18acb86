// SPDX-License-Identifier: GPL-2.0-or-later
//! Holding the replies that would show the sender a gap while it is being repaired.
//!
//! Order decides: when the gap has closed, the reply that shows it goes first
//! and the held ones after it. The sender takes the first for news and finds
//! nothing new in the others (RFC 9000, section 13.2: ranges only ever add
//! up), so it never counts the packet as lost.

use alloc::vec::Vec;

use crate::api::Handle;
use crate::time::{Nanos, SEC, Time, US};
use crate::tunables::Tunables;

/// Client packets held for one flow at a time (chosen: 100 ms of a reply for every second packet
/// of 50 Mbit/s).
const MAX_HELD: usize = 256;
/// On a proven hop any reply is worth waiting for: no shorter wait than this ends an episode
/// (chosen: longer than any other limit of one).
const ANY_REPLY: Nanos = SEC;

/// A receiver's datagram with this much payload carries data of its own: an
/// acknowledgement of 64 ranges, which is the most that common stacks report,
/// has less than 250 bytes.
const OWN_DATA: usize = 300;

/// Whether a datagram with this much payload carries data of the receiver's own, which does
/// not wait for a repair.
pub(crate) fn is_own_data(payload: usize) -> bool {
    payload >= OWN_DATA
}

#[derive(Clone, Debug)]
pub(crate) struct Conceal {
    tunables: Tunables,
    /// Each with the microseconds from `first` until it came.
    held: Vec<(Handle, u32)>,
    /// When the first of them came.
    first: Time,
    since: Time,
    /// The episode is over by then whatever happens.
    latest: Time,
    deadline: Option<Time>,
    /// The next reply ends the episode.
    ending: bool,
    /// Nothing is known to be lost: what is held waits to be told.
    waits: bool,
    /// A packet with data of the client's own is among the held.
    own_data: bool,
}

/// Until when a reply may come that is worth waiting for. On a hop that is known to lose
/// packets (`proven`) that is any, for it may acknowledge a copy late; on another one only what
/// acknowledges the newest packet or copy within `in_time`.
pub(crate) fn last_reply_due(
    now: Time,
    proven: bool,
    newest: Option<Time>,
    in_time: Nanos,
) -> Time {
    if proven { now + ANY_REPLY } else { newest.unwrap_or(now) + in_time }
}

/// How an episode went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Episode {
    pub packets: u32,
    pub held: Nanos,
}

impl Conceal {
    pub fn new(tunables: Tunables) -> Conceal {
        Conceal {
            tunables,
            held: Vec::new(),
            first: Time::ZERO,
            since: Time::ZERO,
            latest: Time::ZERO,
            deadline: None,
            ending: false,
            waits: false,
            own_data: false,
        }
    }

    pub fn active(&self) -> bool {
        self.deadline.is_some()
    }

    pub fn ending(&self) -> bool {
        self.ending
    }

    pub fn deadline(&self) -> Option<Time> {
        self.deadline
    }

    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// Begins an episode or lets one go on until `until`, never longer than
    /// `cap` after its beginning. True if it begins.
    pub fn extend(&mut self, now: Time, until: Time, cap: Nanos) -> bool {
        let begins = !self.active() || self.waits;
        if begins {
            // What waited already has done so for a part of its time.
            self.since = self.held.first().map_or(now, |held| self.came(held));
            self.own_data &= self.waits;
        }
        self.waits = false;
        self.ending = false;
        self.latest = self.since + cap;
        self.deadline = Some(self.deadline.map_or(until, |d| d.max(until)).min(self.latest));
        begins
    }

    /// Holds a packet; false if there is no room for it.
    pub fn hold(&mut self, now: Time, handle: Handle) -> bool {
        if self.held.len() >= MAX_HELD {
            return false;
        }
        if self.held.capacity() == 0 {
            // One allocation in a flow's life.
            self.held.reserve_exact(MAX_HELD);
        }
        if self.held.is_empty() {
            self.first = now;
        }
        let after = u32::try_from(now.since(self.first) / US).unwrap_or(0);
        self.held.push((handle, after));
        true
    }

    /// When a held packet came.
    fn came(&self, (_, after): &(Handle, u32)) -> Time {
        self.first + Nanos::from(*after) * US
    }

    /// Begins an episode that ends with the next reply, or after `longest` if none comes.
    pub fn await_next(&mut self, now: Time, longest: Nanos) {
        (self.since, self.latest) = (now, now + longest);
        (self.waits, self.own_data, self.ending) = (false, false, true);
        self.deadline = Some(self.latest);
    }

    /// What is held waits to be told whether anything was lost, each packet for `patience`;
    /// nothing if an episode is under way.
    pub fn wait(&mut self, patience: Nanos) {
        if !self.active() {
            self.waits = true;
            self.own_data = false;
        }
        if self.waits {
            self.deadline = self.held.first().map(|held| self.came(held) + patience);
        }
    }

    /// Whether what is held waits to be told.
    pub fn waits(&self) -> bool {
        self.waits && self.active()
    }

    /// When the first of those came that came at `from` or after.
    pub fn first_since(&self, from: Time) -> Option<Time> {
        self.held.get(self.before(from)).map(|held| self.came(held))
    }

    fn before(&self, time: Time) -> usize {
        self.held.partition_point(|held| self.came(held) < time)
    }

    /// Lets those go that came before `until`, after a loss the newest of them first, and the one
    /// before it, since a window update may travel alone and acknowledge nothing. The others wait
    /// to be told, each for `patience`. How the episode went.
    pub fn tell(
        &mut self,
        now: Time,
        until: Time,
        patience: Nanos,
        newest_first: bool,
        mut out: impl FnMut(Handle),
    ) -> Episode {
        let told = self.before(until);
        let episode = Episode { packets: told as u32, held: now.since(self.since) };
        let newest = if newest_first { told.min(2) } else { 0 };
        self.held[told - newest..told].reverse();
        self.held[..told].rotate_right(newest);
        self.held.drain(..told).for_each(|(handle, _)| out(handle));
        (self.deadline, self.ending) = (None, false);
        self.wait(patience);
        episode
    }

    /// Notes that a packet with data of the client's own is held; true if it is
    /// the first of the episode.
    pub fn first_own_data(&mut self) -> bool {
        !core::mem::replace(&mut self.own_data, true)
    }

    /// Nothing more to wait for but one last reply: it comes at its own time,
    /// which keeps the sender's samples of the rate true. `last_due` is when the
    /// last one that packets on the hop can cause is due: after it there is none.
    pub fn end_with_next_reply(&mut self, now: Time, last_due: Time) {
        if self.active() {
            self.ending = true;
            let wait = self.tunables.last_reply_wait();
            self.deadline = Some(self.latest.min(now + wait).min(last_due.max(now)));
        }
    }

    /// Nothing more to wait for but the replies that come until `at`: the newest of them shows
    /// what has arrived.
    // Inlined it takes 380 bytes more on MIPS.
    #[inline(never)]
    pub fn end_by(&mut self, at: Time) {
        if self.active() {
            self.ending = true;
            self.deadline = Some(self.latest.min(at));
        }
    }

    /// Nothing is held yet, and nothing may come for long: the episode waits for the first packet
    /// until `at`.
    pub fn await_first(&mut self, at: Time) {
        if self.active() && self.held.is_empty() {
            self.ending = true;
            self.deadline = Some(at);
        }
    }

    /// The first packet after that has come: from now on it is held until `at`, never longer than
    /// `cap`.
    pub fn first_came(&mut self, now: Time, at: Time, cap: Nanos) {
        if self.active() && self.held.is_empty() {
            self.since = now;
            self.latest = now + cap;
            self.end_by(at);
        }
    }

    /// Ends the episode: everything held, in the order it is to go. `overtaken`
    /// if the packet in hand goes first; otherwise the newest held one does.
    pub fn release(&mut self, now: Time, overtaken: bool, mut out: impl FnMut(Handle)) -> Episode {
        let episode = Episode { packets: self.held.len() as u32, held: now.since(self.since) };
        if !overtaken && let Some((newest, _)) = self.held.pop() {
            out(newest);
        }
        self.held.drain(..).for_each(|(handle, _)| out(handle));
        self.deadline = None;
        (self.ending, self.waits) = (false, false);
        episode
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MS;

    fn released(conceal: &mut Conceal, overtaken: bool) -> Vec<u32> {
        let mut order = Vec::new();
        conceal.release(Time::ZERO, overtaken, |h| order.push(h.0));
        order
    }

    #[test]
    fn the_newest_goes_first() {
        let mut c = Conceal::new(Tunables::DEFAULT);
        for n in 1..=4 {
            assert!(c.hold(Time::ZERO, Handle(n)));
        }
        assert_eq!(released(&mut c, false), [4, 1, 2, 3]);
        (1..=3).for_each(|n| assert!(c.hold(Time::ZERO, Handle(n))));
        assert_eq!(released(&mut c, true), [1, 2, 3], "the packet in hand goes before them");
        assert_eq!(released(&mut c, false), []);
    }

    #[test]
    fn an_episode_has_an_end() {
        let mut c = Conceal::new(Tunables::DEFAULT);
        let at = |ms| Time::ZERO + ms * MS;
        assert!(c.extend(at(0), at(8), 60 * MS));
        assert!(!c.extend(at(5), at(20), 60 * MS));
        assert_eq!(c.deadline(), Some(at(20)));
        assert!(!c.extend(at(19), at(90), 60 * MS));
        assert_eq!(c.deadline(), Some(at(60)), "the cap counts from the first");
        c.end_with_next_reply(at(30), at(90));
        assert_eq!((c.ending(), c.deadline()), (true, Some(at(35))));
        c.end_with_next_reply(at(58), at(90));
        assert_eq!(c.deadline(), Some(at(60)));
        c.end_with_next_reply(at(40), at(42));
        assert_eq!(c.deadline(), Some(at(42)), "no later reply is to come");
        c.end_with_next_reply(at(40), at(20));
        assert_eq!(c.deadline(), Some(at(40)));
        c.end_by(at(45));
        assert_eq!((c.ending(), c.deadline()), (true, Some(at(45))));
        c.end_by(at(90));
        assert_eq!(c.deadline(), Some(at(60)));
    }

    #[test]
    fn what_waits_for_its_first_packet_holds_it_no_longer_than_any_other() {
        let mut c = Conceal::new(Tunables::DEFAULT);
        let at = |ms| Time::ZERO + ms * MS;
        c.extend(at(0), at(8), 60 * MS);
        c.await_first(at(150));
        assert_eq!(c.deadline(), Some(at(150)));
        c.first_came(at(100), at(105), 60 * MS);
        assert!(c.hold(Time::ZERO, Handle(1)));
        assert_eq!((c.ending(), c.deadline()), (true, Some(at(105))));
        c.end_by(at(900));
        assert_eq!(c.deadline(), Some(at(160)));
        c.await_first(at(150));
        c.first_came(at(130), at(140), 60 * MS);
        assert_eq!(c.deadline(), Some(at(160)), "it is held already");
    }

    #[test]
    fn what_awaits_the_next_reply_is_an_episode_of_its_own() {
        let mut c = Conceal::new(Tunables::DEFAULT);
        let at = |ms| Time::ZERO + ms * MS;
        c.await_next(at(10), 3 * MS);
        assert!(c.hold(at(10), Handle(1)));
        assert_eq!((c.active(), c.ending(), c.deadline()), (true, true, Some(at(13))));
        assert!(!c.extend(at(11), at(90), 60 * MS), "the gap was real: it goes on");
        assert_eq!((c.ending(), c.deadline()), (false, Some(at(70))), "and began with the first");
        assert_eq!(released(&mut c, false), [1]);
        assert!(!c.active());
    }

    #[test]
    fn the_longest_acknowledgement_is_no_data() {
        assert!(!is_own_data(250) && is_own_data(1200));
    }

    #[test]
    fn where_packets_are_lost_any_reply_is_waited_for() {
        let at = |ms| Time::ZERO + ms * MS;
        assert_eq!(last_reply_due(at(10), true, Some(at(5)), 3 * MS), at(1010));
        assert_eq!(last_reply_due(at(10), false, Some(at(5)), 3 * MS), at(8));
        assert_eq!(last_reply_due(at(10), false, None, 3 * MS), at(13));
    }

    #[test]
    fn only_so_many_are_held() {
        let mut c = Conceal::new(Tunables::DEFAULT);
        assert_eq!((0..1000).filter(|n| c.hold(Time::ZERO, Handle(*n))).count(), MAX_HELD);
    }
}
