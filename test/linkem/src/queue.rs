// SPDX-License-Identifier: GPL-2.0-or-later
//! One queue: limited in bytes, first in, first out, with CoDel or without.

use std::collections::VecDeque;

use crate::{MS, Nanos};

/// What is done about a standing queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Discipline {
    /// Packets that do not fit are dropped.
    Droptail,
    /// Droptail, and CoDel (RFC 8289) at the head.
    Codel,
    /// A queue for each flow, served in turn, CoDel in each (RFC 8290).
    FqCodel,
    /// Random early detection (RFC 2309) in front of droptail.
    Red,
    /// First in, first out without a limit.
    None,
}

impl Discipline {
    /// By the name on a command line. A token bucket that holds one packet and is
    /// filled at the link's rate, as `tbf` is used in tc, is droptail at that rate.
    pub fn named(name: &str) -> Option<Discipline> {
        Some(match name {
            "droptail" | "tbf" => Discipline::Droptail,
            "codel" => Discipline::Codel,
            "fq_codel" => Discipline::FqCodel,
            "red" => Discipline::Red,
            "none" => Discipline::None,
            _ => return None,
        })
    }
}

/// A queued packet.
#[derive(Debug)]
struct Entry<T> {
    item: T,
    bytes: u32,
    entered: Nanos,
}

/// A queue of items that have a size in bytes.
#[derive(Debug)]
pub struct Queue<T> {
    entries: VecDeque<Entry<T>>,
    bytes: u64,
    max_bytes: u64,
    limit_bytes: u64,
    codel: Option<Codel>,
}

impl<T> Queue<T> {
    /// An empty queue.
    pub fn new(limit_bytes: u64, discipline: Discipline) -> Queue<T> {
        let codel = (discipline == Discipline::Codel).then(CodelTimes::default);
        Queue {
            entries: VecDeque::new(),
            bytes: 0,
            max_bytes: 0,
            limit_bytes,
            codel: codel.map(Codel::new),
        }
    }

    /// An empty queue with CoDel.
    pub fn with_codel(limit_bytes: u64, times: CodelTimes) -> Queue<T> {
        let codel = Some(Codel::new(times));
        Queue { codel, ..Queue::new(limit_bytes, Discipline::Droptail) }
    }

    /// Queues an item, or gives it back when there is no room for it.
    pub fn push(&mut self, now: Nanos, item: T, bytes: u32) -> Result<(), T> {
        if self.bytes + u64::from(bytes) > self.limit_bytes {
            return Err(item);
        }
        self.entries.push_back(Entry { item, bytes, entered: now });
        self.bytes += u64::from(bytes);
        self.max_bytes = self.max_bytes.max(self.bytes);
        Ok(())
    }

    /// The next item and its size; what CoDel drops on the way goes to `drop`.
    pub fn pop(&mut self, now: Nanos, drop: impl FnMut(T)) -> Option<(T, u32)> {
        match self.codel.take() {
            None => self.pop_front(),
            Some(mut codel) => {
                let item = codel.pop(self, now, drop);
                self.codel = Some(codel);
                item
            }
        }
    }

    /// The item at the head and its size, whatever CoDel thinks of it.
    pub fn pop_front(&mut self) -> Option<(T, u32)> {
        self.pop_entry().map(|entry| (entry.item, entry.bytes))
    }

    /// Tells CoDel that a packet found an idle link and did not wait here.
    pub fn passed_by(&mut self) {
        if let Some(codel) = &mut self.codel {
            codel.first_above = None;
        }
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The most bytes that ever waited at once.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Empties the queue.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.bytes = 0;
        self.entries.drain(..).map(|entry| entry.item)
    }

    fn pop_entry(&mut self) -> Option<Entry<T>> {
        let entry = self.entries.pop_front()?;
        self.bytes -= u64::from(entry.bytes);
        Some(entry)
    }
}

/// What CoDel goes by.
#[derive(Clone, Copy, Debug)]
pub struct CodelTimes {
    /// A sojourn below this is good.
    pub target: Nanos,
    /// One above it for so long is bad.
    pub interval: Nanos,
}

impl Default for CodelTimes {
    /// Those of RFC 8289.
    fn default() -> CodelTimes {
        CodelTimes { target: 5 * MS, interval: 100 * MS }
    }
}

/// A queue of no more than this is never bad: a full frame of an Ethernet.
const MAX_PACKET_BYTES: u64 = 1514;

/// The state of CoDel; names and structure are those of RFC 8289, section 5.
#[derive(Debug)]
struct Codel {
    times: CodelTimes,
    /// When the sojourn time will have been above the target for an interval.
    first_above: Option<Nanos>,
    drop_next: Nanos,
    count: u32,
    last_count: u32,
    dropping: bool,
}

impl Codel {
    fn new(times: CodelTimes) -> Codel {
        let (first_above, drop_next, count, last_count) = (None, 0, 0, 0);
        Codel { times, first_above, drop_next, count, last_count, dropping: false }
    }

    fn pop<T>(
        &mut self,
        queue: &mut Queue<T>,
        now: Nanos,
        mut drop: impl FnMut(T),
    ) -> Option<(T, u32)> {
        let (mut head, mut ok_to_drop) = self.pop_judged(queue, now);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                if let Some((item, _)) = head.take() {
                    drop(item);
                }
                self.count += 1;
                (head, ok_to_drop) = self.pop_judged(queue, now);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            if let Some((item, _)) = head.take() {
                drop(item);
            }
            (head, _) = self.pop_judged(queue, now);
            self.dropping = true;
            // Soon after the last dropping state its rate is a good start.
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.saturating_sub(self.drop_next) < 16 * self.times.interval;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        head
    }

    /// The head, and whether it waited too long (`dodequeue` in the RFC).
    fn pop_judged<T>(&mut self, queue: &mut Queue<T>, now: Nanos) -> (Option<(T, u32)>, bool) {
        let Some(entry) = queue.pop_entry() else {
            self.first_above = None;
            return (None, false);
        };
        let sojourn = now.saturating_sub(entry.entered);
        let mut ok_to_drop = false;
        if sojourn < self.times.target || queue.bytes <= MAX_PACKET_BYTES {
            self.first_above = None;
        } else {
            match self.first_above {
                None => self.first_above = Some(now + self.times.interval),
                Some(time) => ok_to_drop = now >= time,
            }
        }
        (Some((entry.item, entry.bytes)), ok_to_drop)
    }

    fn control_law(&self, time: Nanos) -> Nanos {
        time + (self.times.interval as f64 / f64::from(self.count).sqrt()) as Nanos
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn droptail_counts_bytes() {
        let mut queue = Queue::new(3000, Discipline::Droptail);
        assert_eq!(queue.push(0, 1, 1500), Ok(()));
        assert_eq!(queue.push(0, 2, 1400), Ok(()));
        assert_eq!(queue.push(0, 3, 101), Err(3));
        assert_eq!(queue.push(0, 4, 100), Ok(()));
        assert_eq!(queue.max_bytes(), 3000);
        let drained: Vec<i32> =
            std::iter::from_fn(|| queue.pop(0, |_| ())).map(|(item, _)| item).collect();
        assert_eq!(drained, [1, 2, 4]);
        assert_eq!(queue.push(0, 5, 3000), Ok(()));
    }

    /// A sender of `offered` percent of the rate; one packet leaves each ms.
    /// Gives the times in ms of the drops and the longest sojourn at the end.
    fn overload(offered_percent: u64, duration_ms: u64) -> (Vec<u64>, u64) {
        let mut queue = Queue::new(u64::MAX, Discipline::Codel);
        let mut drops = Vec::new();
        let mut sojourn = 0;
        let mut sent = 0;
        for ms in 0..duration_ms {
            while sent * 100 < ms * offered_percent {
                queue.push(ms * MS, ms, 1500).unwrap();
                sent += 1;
            }
            if let Some((entered, _)) = queue.pop(ms * MS, |_| drops.push(ms)) {
                sojourn = ms - entered;
            }
        }
        (drops, sojourn)
    }

    #[test]
    fn codel_leaves_a_short_queue_alone() {
        assert_eq!(overload(100, 5_000), (vec![], 0));
        // A burst of less than an interval.
        let mut queue = Queue::new(u64::MAX, Discipline::Codel);
        for packet in 0..90 {
            queue.push(0, packet, 1500).unwrap();
        }
        for ms in 0..90 {
            assert_eq!(queue.pop(ms * MS, |_| panic!("dropped")), Some((ms, 1500)));
        }
    }

    #[test]
    fn codel_drops_ever_faster_after_an_interval() {
        let (drops, _) = overload(110, 3_000);
        // Sojourn passes 5 ms after about 50 ms; the first drop is an interval later.
        assert!((140..170).contains(&drops[0]), "{drops:?}");
        // Section 4.3 of the RFC: the next after interval / sqrt(count).
        let gaps: Vec<u64> = drops.windows(2).map(|w| w[1] - w[0]).collect();
        for (index, expected) in [(0, 100.0), (1, 70.7), (2, 57.7), (3, 50.0)] {
            assert!((gaps[index] as f64 - expected).abs() <= 1.0, "{gaps:?}");
        }
        assert!(gaps.last() < gaps.first());
    }

    #[test]
    fn codel_stops_when_the_queue_is_gone() {
        let mut queue = Queue::new(u64::MAX, Discipline::Codel);
        for _ in 0..600 {
            queue.push(0, (), 1500).unwrap();
        }
        let mut drops = 0;
        let mut ms = 0;
        while queue.pop(ms * MS, |()| drops += 1).is_some() {
            ms += 1;
        }
        assert!(drops > 5);
        let before = drops;
        for later in ms..ms + 1000 {
            queue.push(later * MS, (), 1500).unwrap();
            queue.pop(later * MS, |()| drops += 1);
        }
        assert_eq!(drops, before);
    }
}
