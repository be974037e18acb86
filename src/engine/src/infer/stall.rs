// SPDX-License-Identifier: GPL-2.0-or-later
//! Stalls: a client's replies stop although packets go to it, and come back in a clump.
//!
//! That is a radio that was busy, slept or tried again and again, or the client's reorder
//! buffer, which keeps everything behind a missing frame until that has come, is given up or the
//! buffer is full (IEEE 802.11, block ack). What was sent meanwhile is read at once, so that no
//! reply's time names a packet. But frames are handed up in order: if one is missing after the
//! stall, it is the first that was not acknowledged before it.
//!
//! A client whose replies a timer brings about is as silent between any two of them, and nothing was
//! held back: a stall that follows another one, with no replies close to each other between them, is none.

use crate::store::cache::{Cache, Id, Trail};
use crate::time::{MS, Nanos, Time, US};

/// Packets without a reply that are counted (chosen: the frames that a reorder buffer holds).
const MOST: usize = 64;
/// So many make a stall (chosen: as many as three lost replies leave where a client replies to
/// every second packet), and two replies' worth and as many more of a client that replies rarely.
const LEAST: u64 = 6;
const MORE: u64 = 2;
/// The first of them has waited for this long (chosen: longer than a receiving host takes to
/// collect a batch, and shorter than what a radio's retries take).
const SHORTEST: Nanos = 8 * MS;
/// Replies this close to each other belong to one clump (chosen: below the time between two
/// packets at 20 Mbit/s).
const CLUMP_GAP: Nanos = 400 * US;
/// A reply comes a little after it was due, at the client's clock's grain (chosen: so that the
/// packet which triggered the reply before is not counted).
const SHIFT: Nanos = 200 * US;

/// What is known when a reply comes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Moment {
    pub now: Time,
    /// When the reply before came.
    pub previous: Time,
    pub rtt: Nanos,
    /// After how many packets the client usually replies.
    pub usual: u64,
    /// How long a reply to the last packet of the clump may take.
    pub echo: Nanos,
}

#[derive(Clone, Debug)]
pub(crate) struct Stall {
    /// Replies until then are to what came in the clump.
    until: Time,
    /// The first packet that was not acknowledged before the stall, until it was asked for.
    front: Option<Id>,
    /// No two replies have come close to each other since the last stall.
    unbroken: bool,
}

impl Stall {
    pub fn new() -> Stall {
        Stall { until: Time::ZERO, front: None, unbroken: false }
    }

    /// Whether a reply now belongs to the clump that ended a stall.
    pub fn clump(&self, now: Time) -> bool {
        now < self.until
    }

    /// Whether it is not even the first that shows a gap.
    pub fn spent(&self, now: Time) -> bool {
        self.clump(now) && self.front.is_none()
    }

    /// The packet that is missing if a reply now is the first one after a stall that shows a gap.
    pub fn take_front(&mut self, now: Time) -> Option<Id> {
        let clump = self.clump(now);
        self.front.take().filter(|_| clump)
    }

    /// Takes note of a reply.
    pub fn replied(&mut self, moment: &Moment, trail: &mut Trail, cache: &Cache) {
        let Moment { now, previous, rtt, usual, echo } = *moment;
        let silence = now.since(previous);
        if self.clump(now) && silence < CLUMP_GAP {
            self.until = now + echo;
        }
        if silence < SHORTEST {
            self.unbroken = false;
            return;
        }
        let (from, to) = (previous + (SHIFT - rtt), now + (SHIFT - rtt));
        let waited = |id: &Id| cache.record(*id).is_some_and(|r| to.since(r.at) >= SHORTEST);
        let Some(front) = trail.around(cache, from).ceil.filter(waited) else { return };
        let unanswered = trail.within(cache, from, to).take(MOST).count() as u64;
        if unanswered >= LEAST.max(2 * usual + MORE)
            && !core::mem::replace(&mut self.unbroken, true)
        {
            self.until = now + echo;
            self.front = Some(front);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    const RTT: Nanos = 2 * MS;

    /// Packets 1.. every millisecond, and replies at these times in ms.
    fn after(usual: u64, replies: &[Nanos]) -> (Stall, Vec<u64>) {
        let mut cache = Cache::new(1 << 20);
        let mut trail = Trail::default();
        for n in 1..=200 {
            trail.push(&mut cache, at(n), n as u64, &[0; 40]);
        }
        let mut stall = Stall::new();
        let mut fronts = Vec::new();
        for pair in replies.windows(2) {
            let [previous, now] = [pair[0], pair[1]].map(at);
            let moment = Moment { now, previous, rtt: RTT, usual, echo: RTT };
            stall.replied(&moment, &mut trail, &cache);
            fronts.extend(stall.take_front(now).and_then(|id| cache.record(id)).map(|r| r.number));
        }
        (stall, fronts)
    }

    fn at(ms: Nanos) -> Time {
        Time::ZERO + ms * MS
    }

    #[test]
    fn a_stall_names_the_first_packet_behind_the_last_reply() {
        let (stall, fronts) = after(2, &[8, 10, 12, 60, 62]);
        assert_eq!(fronts, [11], "10 triggered the reply at 12");
        assert!(!stall.clump(at(62)), "what came after the clump is read as ever");
    }

    #[test]
    fn lost_replies_batches_and_rare_replies_are_no_stall() {
        assert_eq!(after(2, &[8, 10, 14, 16]).1, []);
        assert_eq!(after(4, &[8, 16, 24, 33]).1, []);
        assert_eq!(after(10, &[20, 30, 50, 60]).1, []);
        assert_eq!(after(10, &[20, 30, 60]).1, [29]);
    }

    #[test]
    fn a_timer_that_brings_about_each_reply_is_a_stall_once() {
        assert_eq!(after(2, &[25, 50, 75, 100, 125]).1.len(), 1);
        assert_eq!(after(2, &[25, 50, 75, 76, 78, 100, 125]).1.len(), 2, "then others came");
    }

    #[test]
    fn a_pause_of_the_sender_is_no_stall() {
        assert_eq!(after(2, &[202, 260, 300]).1, []);
    }

    #[test]
    fn the_clump_lasts_as_long_as_its_replies_follow_each_other() {
        let (mut stall, _) = after(2, &[10, 12, 60]);
        assert!(stall.spent(at(61)) && stall.take_front(at(61)).is_none());
        let (mut trail, cache) = (Trail::default(), Cache::new(1 << 16));
        for n in 0..20 {
            let now = at(60) + n * 300 * US;
            let moment = Moment { now, previous: now - 300 * US, rtt: RTT, usual: 2, echo: RTT };
            stall.replied(&moment, &mut trail, &cache);
        }
        assert!(stall.clump(at(66)) && !stall.clump(at(68)));
    }
}
