// SPDX-License-Identifier: GPL-2.0-or-later
//! Deadlines of flows: a binary heap that knows where each flow stands in it,
//! so that there is one entry a flow however often its deadline moves.

use alloc::vec::Vec;

use crate::time::Time;

#[derive(Debug, Default)]
pub(crate) struct Timers {
    heap: Vec<(Time, u32)>,
    /// For each flow its place in `heap` plus one; 0 if it has no deadline.
    place: Vec<u32>,
}

impl Timers {
    /// Sets, moves or removes the deadline of `flow`.
    pub fn set(&mut self, flow: u32, at: Option<Time>) {
        let index = flow as usize;
        if index >= self.place.len() {
            if at.is_none() {
                return;
            }
            self.place.resize(index + 1, 0);
        }
        match (self.place[index], at) {
            (0, None) => {}
            (0, Some(at)) => {
                self.heap.push((at, flow));
                self.settle(self.heap.len() - 1);
            }
            (place, Some(at)) => {
                let here = place as usize - 1;
                if self.heap[here].0 != at {
                    self.heap[here].0 = at;
                    self.settle(here);
                }
            }
            (place, None) => {
                self.place[index] = 0;
                let here = place as usize - 1;
                self.heap.swap_remove(here);
                if here < self.heap.len() {
                    self.settle(here);
                }
            }
        }
    }

    /// The earliest deadline and whose it is.
    pub fn first(&self) -> Option<(Time, u32)> {
        self.heap.first().copied()
    }

    /// Moves the entry at `here` to where it belongs.
    fn settle(&mut self, mut here: usize) {
        let entry = self.heap[here];
        while here > 0 && entry < self.heap[(here - 1) / 2] {
            self.put(here, self.heap[(here - 1) / 2]);
            here = (here - 1) / 2;
        }
        loop {
            let mut child = 2 * here + 1;
            if child + 1 < self.heap.len() && self.heap[child + 1] < self.heap[child] {
                child += 1;
            }
            if child >= self.heap.len() || entry <= self.heap[child] {
                break;
            }
            self.put(here, self.heap[child]);
            here = child;
        }
        self.put(here, entry);
    }

    fn put(&mut self, here: usize, entry: (Time, u32)) {
        self.heap[here] = entry;
        self.place[entry.1 as usize] = here as u32 + 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_a_plain_list() {
        let mut timers = Timers::default();
        let mut list = [None; 40];
        let mut x = 1u32;
        for _ in 0..20_000 {
            x = x.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let flow = (x >> 8) % 40;
            let at = (x >> 30 != 0).then(|| Time::from_nanos(u64::from(x >> 16) % 500));
            timers.set(flow, at);
            list[flow as usize] = at;
            let expected = (0..40).filter_map(|f| list[f as usize].map(|at| (at, f))).min();
            assert_eq!(timers.first(), expected);
        }
    }
}
