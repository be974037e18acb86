//! Holding the replies that would tell the sender of a hole being filled.
//!
//! Order decides: when the hole is filled, the reply that shows it goes first
//! and the held ones after it. The sender takes the first for news and finds
//! nothing new in the others (RFC 9000, section 13.2: ranges only ever add
//! up), so it never counts the packet as lost.

use alloc::vec::Vec;

use crate::api::Handle;
use crate::time::{MS, Nanos, Time};

/// Client packets held for one flow at a time.
const MAX_HELD: usize = 256;
/// When a hole is given up, how long to wait for one more reply, so that the
/// newest one can still go first.
const LAST_REPLY_WAIT: Nanos = 5 * MS;

#[derive(Clone, Debug)]
pub(crate) struct Conceal {
    held: Vec<Handle>,
    since: Time,
    /// The episode is over by then whatever happens.
    latest: Time,
    deadline: Option<Time>,
    /// The next reply ends the episode.
    ending: bool,
    /// A packet with data of the client's own is among the held.
    own_data: bool,
}

/// How an episode went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Episode {
    pub packets: u32,
    pub held: Nanos,
}

impl Conceal {
    pub fn new() -> Conceal {
        Conceal {
            held: Vec::new(),
            since: Time::ZERO,
            latest: Time::ZERO,
            deadline: None,
            ending: false,
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
        let begins = !self.active();
        if begins {
            self.since = now;
            self.own_data = false;
        }
        self.ending = false;
        self.latest = self.since + cap;
        self.deadline = Some(self.deadline.map_or(until, |d| d.max(until)).min(self.latest));
        begins
    }

    /// Holds a packet; false if there is no room for it.
    pub fn hold(&mut self, handle: Handle) -> bool {
        if self.held.len() >= MAX_HELD {
            return false;
        }
        if self.held.capacity() == 0 {
            // One allocation in a flow's life.
            self.held.reserve_exact(MAX_HELD);
        }
        self.held.push(handle);
        true
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
            self.deadline = Some(self.latest.min(now + LAST_REPLY_WAIT).min(last_due.max(now)));
        }
    }

    /// Ends the episode: everything held, in the order it is to go. `overtaken`
    /// if the packet in hand goes first; otherwise the newest held one does.
    pub fn release(&mut self, now: Time, overtaken: bool, mut out: impl FnMut(Handle)) -> Episode {
        let episode = Episode { packets: self.held.len() as u32, held: now.since(self.since) };
        if !overtaken && let Some(newest) = self.held.pop() {
            out(newest);
        }
        self.held.drain(..).for_each(out);
        self.deadline = None;
        self.ending = false;
        episode
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn released(conceal: &mut Conceal, overtaken: bool) -> Vec<u32> {
        let mut order = Vec::new();
        conceal.release(Time::ZERO, overtaken, |h| order.push(h.0));
        order
    }

    #[test]
    fn the_newest_goes_first() {
        let mut c = Conceal::new();
        for n in 1..=4 {
            assert!(c.hold(Handle(n)));
        }
        assert_eq!(released(&mut c, false), [4, 1, 2, 3]);
        (1..=3).for_each(|n| assert!(c.hold(Handle(n))));
        assert_eq!(released(&mut c, true), [1, 2, 3], "the packet in hand goes before them");
        assert_eq!(released(&mut c, false), []);
    }

    #[test]
    fn an_episode_has_an_end() {
        let mut c = Conceal::new();
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
    }

    #[test]
    fn only_so_many_are_held() {
        let mut c = Conceal::new();
        assert_eq!((0..1000).filter(|n| c.hold(Handle(*n))).count(), MAX_HELD);
    }
}
