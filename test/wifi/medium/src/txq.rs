// SPDX-License-Identifier: GPL-2.0-or-later
//! The queues that mac80211 has in front of a driver, one for each receiver and traffic
//! identifier, with CoDel in each, of which AQL lets down what keeps the air busy.
//!
//! hwsim asks mac80211 for no AQL and takes all frames at once, so they stand here instead.
//! What is dropped here had its sequence number already, so the frames are numbered again.

use std::collections::BTreeMap;

use linkem::queue::{CodelTimes, Queue};
use pemi_air::Nanos;
use pemi_air::channel::Station;
use pemi_air::hop::aql_allows;

/// Frames of one radio whose fate is open. hwsim remembers 100: with one more it takes half of
/// them for dropped, also those that will arrive.
const MOST_FRAMES: usize = 96;
/// Sequence numbers have twelve bits.
const SEQUENCE_MASK: u16 = 0xfff;

/// Who sends to whom, and the traffic identifier.
pub type Lane = (Station, Station, u8);

/// All queues; `T` is what waits in them.
pub struct Txqs<T> {
    lanes: BTreeMap<Lane, Txq<T>>,
}

struct Txq<T> {
    queue: Queue<T>,
    waiting: usize,
    /// What is below, at the radio: frames, and AQL's estimate of their time on the air.
    below: usize,
    airtime: Nanos,
    /// The sequence number of the next frame that goes down.
    next: u16,
}

/// A frame that goes down to the radio.
#[derive(Debug, PartialEq, Eq)]
pub struct Next<T> {
    /// Its queue.
    pub lane: Lane,
    /// Its sequence number from now on.
    pub sequence: u16,
    /// AQL's estimate of its time on the air, wanted back by [`Txqs::settled`].
    pub airtime: Nanos,
    /// The frame.
    pub item: T,
}

impl<T> Default for Txqs<T> {
    fn default() -> Txqs<T> {
        Txqs { lanes: BTreeMap::new() }
    }
}

impl<T> Txqs<T> {
    /// A frame, with the number that mac80211 gave it, joins its queue, whose CoDel has these
    /// times if it is empty. What has to go for want of room comes back.
    pub fn push(
        &mut self,
        now: Nanos,
        lane: Lane,
        times: CodelTimes,
        sequence: u16,
        item: T,
        bytes: u32,
    ) -> Option<(Lane, T)> {
        let empty = || Queue::with_codel(u64::MAX, times);
        let txq = self.lanes.entry(lane).or_insert_with(|| Txq {
            queue: empty(),
            waiting: 0,
            below: 0,
            airtime: 0,
            next: sequence,
        });
        if txq.queue.is_empty() && txq.below == 0 {
            txq.queue = empty();
        }
        txq.waiting += 1;
        let pushed = txq.queue.push(now, item, bytes);
        debug_assert!(pushed.is_ok(), "there is no limit in bytes");
        self.make_room(lane.0)
    }

    /// The head of the radio's longest queue goes if there are too many.
    fn make_room(&mut self, from: Station) -> Option<(Lane, T)> {
        let own = || self.lanes.iter().filter(|((sender, ..), _)| *sender == from);
        let open: usize = own().map(|(_, txq)| txq.waiting + txq.below).sum();
        if open <= MOST_FRAMES {
            return None;
        }
        let lane = *own().max_by_key(|(_, txq)| txq.queue.bytes())?.0;
        let txq = self.lanes.get_mut(&lane)?;
        let (item, _) = txq.queue.pop_front()?;
        txq.waiting -= 1;
        Some((lane, item))
    }

    /// The next frame that AQL lets down, if there is one; `airtime` tells its time on the air.
    /// What CoDel drops on the way goes to `drop`.
    pub fn pop(
        &mut self,
        now: Nanos,
        airtime: impl Fn(Lane, u32) -> Nanos,
        mut drop: impl FnMut(Lane, T),
    ) -> Option<Next<T>> {
        let lanes: Vec<Lane> = self.lanes.keys().copied().collect();
        for lane in lanes {
            let all = self.airtime_of(lane.0);
            let txq = self.lanes.get_mut(&lane)?;
            if txq.waiting == 0 || !aql_allows(txq.airtime, all) {
                continue;
            }
            let waiting = &mut txq.waiting;
            let popped = txq.queue.pop(now, |item| {
                *waiting -= 1;
                drop(lane, item);
            });
            if let Some((item, bytes)) = popped {
                let airtime = airtime(lane, bytes);
                let sequence = txq.next;
                txq.next = (sequence + 1) & SEQUENCE_MASK;
                txq.waiting -= 1;
                txq.below += 1;
                txq.airtime += airtime;
                return Some(Next { lane, sequence, airtime, item });
            }
        }
        None
    }

    /// AQL's estimate for all that waits at a radio.
    fn airtime_of(&self, from: Station) -> Nanos {
        let own = self.lanes.iter().filter(|((sender, ..), _)| *sender == from);
        own.map(|(_, txq)| txq.airtime).sum()
    }

    /// A frame's fate is known.
    pub fn settled(&mut self, lane: Lane, airtime: Nanos) {
        if let Some(txq) = self.lanes.get_mut(&lane) {
            txq.below -= 1;
            txq.airtime -= airtime;
        }
    }

    /// The number of the next frame that goes down; none if the queue has never had one.
    pub fn next_sequence(&self, lane: Lane) -> Option<u16> {
        self.lanes.get(&lane).map(|txq| txq.next)
    }
}

#[cfg(test)]
mod tests {
    use pemi_air::MS;
    use pemi_air::channel::{Channel, Role};
    use pemi_air::settings::Settings;

    use super::*;

    const TIMES: CodelTimes = CodelTimes { target: 20 * MS, interval: 100 * MS };

    /// An access point and two clients.
    fn stations() -> [Station; 3] {
        let Settings { radio, link, .. } = Settings::default();
        let mut channel: Channel<()> = Channel::new(radio, link, 1);
        [Role::AccessPoint, Role::Client, Role::Client].map(|role| channel.add(role))
    }

    /// A frame of a millisecond on the air.
    fn next(txqs: &mut Txqs<u32>, now: Nanos, dropped: &mut Vec<u32>) -> Option<Next<u32>> {
        txqs.pop(now, |_, _| MS, |_, item| dropped.push(item))
    }

    #[test]
    fn the_radio_gets_what_aql_allows_and_more_when_it_has_sent() {
        let [router, near, far] = stations();
        let mut txqs = Txqs::default();
        for item in 0..30 {
            assert_eq!(txqs.push(0, (router, near, 0), TIMES, item, u32::from(item), 1500), None);
        }
        let mut down = Vec::new();
        while let Some(frame) = next(&mut txqs, 0, &mut Vec::new()) {
            down.push(frame);
        }
        assert_eq!(down.len(), 12, "12 ms while nobody else wants any");
        assert!(down.iter().map(|frame| frame.sequence).eq(0..12));
        // Another receiver has its own.
        txqs.push(0, (router, far, 0), TIMES, 7, 100, 1500);
        let other = next(&mut txqs, 0, &mut Vec::new()).unwrap();
        assert_eq!((other.item, other.sequence), (100, 7));
        txqs.settled(down[0].lane, down[0].airtime);
        assert_eq!(next(&mut txqs, 0, &mut Vec::new()).unwrap().item, 12);
    }

    #[test]
    fn what_codel_drops_leaves_no_hole_in_the_numbers() {
        let [router, near, _] = stations();
        let lane = (router, near, 0);
        let mut txqs = Txqs::default();
        let (mut dropped, mut came, mut below) = (Vec::new(), Vec::new(), Vec::new());
        // One frame a millisecond into what sends one in two.
        for ms in 0..1_000u32 {
            let now = u64::from(ms) * MS;
            let numbered = (ms % 4_096) as u16;
            dropped.extend(txqs.push(now, lane, TIMES, numbered, ms, 1500).map(|(_, item)| item));
            if ms % 2 == 0 && !below.is_empty() {
                let airtime = below.remove(0);
                txqs.settled(lane, airtime);
            }
            while let Some(frame) = next(&mut txqs, now, &mut dropped) {
                below.push(frame.airtime);
                came.push((frame.sequence, frame.item));
            }
        }
        assert!(dropped.len() > 20, "{}", dropped.len());
        assert!(came.iter().map(|(sequence, _)| *sequence).eq(0..came.len() as u16));
        assert!(came.is_sorted_by_key(|(_, item)| *item));
        assert_eq!(txqs.next_sequence(lane), Some(came.len() as u16));
    }

    #[test]
    fn hwsim_never_has_to_forget() {
        let [router, near, far] = stations();
        let mut txqs = Txqs::default();
        let mut gone = Vec::new();
        for item in 0..100u16 {
            let frame = u32::from(item);
            gone.extend(txqs.push(0, (router, near, 0), TIMES, item, frame, 1500));
            gone.extend(txqs.push(0, (router, far, 0), TIMES, item, frame + 1_000, 100));
        }
        assert_eq!(gone.len(), 200 - MOST_FRAMES);
        assert_eq!(gone[0], ((router, near, 0), 0), "the head of the longest");
    }
}
