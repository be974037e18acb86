// SPDX-License-Identifier: GPL-2.0-or-later
//! FQ-CoDel (RFC 8290): a queue for each flow, served in turn, CoDel in each.

use std::collections::{BTreeMap, VecDeque};

use crate::Nanos;
use crate::queue::{CodelTimes, Queue};

/// Bytes that a flow may send in its turn: one full frame (RFC 8290, section 5.2.2).
const QUANTUM: i64 = 1514;

/// Queues of items by flow.
#[derive(Debug)]
pub struct FairQueue<T> {
    flows: BTreeMap<u32, Flow<T>>,
    /// Flows that began to queue lately, and the others; the front is served.
    new: VecDeque<u32>,
    old: VecDeque<u32>,
    bytes: u64,
    max_bytes: u64,
    limit_bytes: u64,
    times: CodelTimes,
}

#[derive(Debug)]
struct Flow<T> {
    queue: Queue<T>,
    deficit: i64,
    /// In one of the lists.
    listed: bool,
}

impl<T> FairQueue<T> {
    /// An empty queue with one limit for all flows.
    pub fn new(limit_bytes: u64) -> FairQueue<T> {
        FairQueue::with_codel(limit_bytes, CodelTimes::default())
    }

    /// The same with other times than those of CoDel's RFC.
    pub fn with_codel(limit_bytes: u64, times: CodelTimes) -> FairQueue<T> {
        FairQueue {
            flows: BTreeMap::new(),
            new: VecDeque::new(),
            old: VecDeque::new(),
            bytes: 0,
            max_bytes: 0,
            limit_bytes,
            times,
        }
    }

    /// Queues an item; what the longest queue loses for want of room goes to `drop`.
    pub fn push(&mut self, now: Nanos, flow: u32, item: T, bytes: u32, mut drop: impl FnMut(T)) {
        let state = self.flows.entry(flow).or_insert_with(|| Flow {
            queue: Queue::with_codel(u64::MAX, self.times),
            deficit: 0,
            listed: false,
        });
        if !state.listed {
            state.listed = true;
            state.deficit = QUANTUM;
            self.new.push_back(flow);
        }
        let _ = state.queue.push(now, item, bytes);
        self.bytes += u64::from(bytes);
        while self.bytes > self.limit_bytes {
            let longest = self.flows.values_mut().max_by_key(|flow| flow.queue.bytes());
            let Some((item, bytes)) = longest.and_then(|flow| flow.queue.pop_front()) else {
                break;
            };
            self.bytes -= u64::from(bytes);
            drop(item);
        }
        self.max_bytes = self.max_bytes.max(self.bytes);
    }

    /// The next item; what CoDel drops on the way goes to `drop`.
    pub fn pop(&mut self, now: Nanos, mut drop: impl FnMut(T)) -> Option<T> {
        loop {
            let from_new = !self.new.is_empty();
            let list = if from_new { &mut self.new } else { &mut self.old };
            let id = *list.front()?;
            let flow = self.flows.get_mut(&id).expect("flows stay while they are listed");
            if flow.deficit <= 0 {
                flow.deficit += QUANTUM;
                list.pop_front();
                self.old.push_back(id);
                continue;
            }
            let before = flow.queue.bytes();
            let item = flow.queue.pop(now, &mut drop);
            let left = before - flow.queue.bytes();
            self.bytes -= left;
            match item {
                Some((item, bytes)) => {
                    flow.deficit -= i64::from(bytes);
                    return Some(item);
                }
                None => {
                    list.pop_front();
                    // A new flow that is empty has to wait its turn before it is
                    // new again, or it could starve the others.
                    if from_new && !self.old.is_empty() {
                        self.old.push_back(id);
                    } else {
                        self.flows.remove(&id);
                    }
                }
            }
        }
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        self.bytes == 0
    }

    /// The most bytes that ever waited at once.
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Empties the queue, flow by flow.
    pub fn drain(&mut self) -> impl Iterator<Item = T> {
        self.bytes = 0;
        self.new.clear();
        self.old.clear();
        let flows = std::mem::take(&mut self.flows);
        flows.into_values().flat_map(|mut flow| flow.queue.drain().collect::<Vec<_>>())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;

    fn never<T>(_: T) {
        panic!("nothing is to be dropped");
    }

    #[test]
    fn flows_take_turns_by_bytes() {
        let mut queue = FairQueue::new(1_000_000);
        for n in 0..6 {
            queue.push(0, 1, ('a', n), 1500, never);
        }
        for n in 0..12 {
            queue.push(0, 2, ('b', n), 750, never);
        }
        let order: String =
            std::iter::from_fn(|| queue.pop(0, never)).map(|(flow, _)| flow).collect();
        assert_eq!(order.len(), 18);
        // Over any three quanta both have had the same share, within a packet.
        let sent = |flow: char, size: i64, upto: usize| {
            size * order[..upto].chars().filter(|c| *c == flow).count() as i64
        };
        for upto in 4..16 {
            assert!((sent('a', 1500, upto) - sent('b', 750, upto)).abs() <= 3028, "{order}");
        }
    }

    #[test]
    fn a_sparse_flow_goes_first() {
        let mut queue = FairQueue::new(1_000_000);
        for _ in 0..50 {
            queue.push(0, 1, "bulk", 1500, never);
        }
        assert_eq!(queue.pop(0, never), Some("bulk"));
        assert_eq!(queue.pop(0, never), Some("bulk"));
        queue.push(MS, 2, "sparse", 100, never);
        assert_eq!(queue.pop(MS, never), Some("sparse"));
    }

    #[test]
    fn the_longest_queue_makes_room() {
        let mut queue = FairQueue::new(10_000);
        let mut dropped = Vec::new();
        for n in 0..6 {
            queue.push(0, 1, n, 1500, never);
        }
        queue.push(0, 2, 100, 1500, |item| dropped.push(item));
        assert_eq!(dropped, [0], "the head of the longest");
        let left: Vec<i32> = std::iter::from_fn(|| queue.pop(0, never)).collect();
        assert_eq!((left.len(), left.contains(&100)), (6, true));
        assert!(queue.is_empty());
    }

    #[test]
    fn codel_acts_within_a_flow() {
        let mut queue = FairQueue::new(u64::MAX);
        let mut dropped = Vec::new();
        for ms in 0..2_000u64 {
            // Flow 1 offers twice its share of one packet each ms, flow 2 half of its.
            queue.push(ms * MS, 1, 1, 1500, never);
            if ms % 4 == 0 {
                queue.push(ms * MS, 2, 2, 1500, never);
            }
            queue.pop(ms * MS, |item| dropped.push(item));
        }
        assert!(dropped.len() > 5);
        assert!(dropped.iter().all(|flow| *flow == 1));
    }
}
