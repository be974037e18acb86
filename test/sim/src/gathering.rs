// SPDX-License-Identifier: GPL-2.0-or-later
//! When the daemon reads packets: at once, or, where they come densely, after a pause in which they
//! gather. As `src/pemi/src/datapath/capture/gathering.rs` has it where processors have time to spare, as those of
//! the testbed have.

use linkem::Nanos;

/// How long packets gather at least and at most (there: SHORTEST, and longest of SPARING).
const SHORTEST: Nanos = 200_000;
const LONGEST: Nanos = 400_000;
/// A pause lasts as long as that many turns like the last one (there: turns of SPARING) ...
const TURNS: Nanos = 1;
/// ... of which each packet takes this (chosen: with it four packets gather in 0.28 ms at 100 Mbit/s; in the testbed's router
/// quinn's wait 0.16 ms in the middle, 0.28 at the 90th percentile and 0.33 at the 99th).
const TURN_OF_A_PACKET: Nanos = 20_000;
/// How often in a row the next packet has to come as soon as in a pause (there: DENSE).
const DENSE: u32 = 4;
/// Packets in a pause for which it was worth it (there: WORTH).
const WORTH: usize = 2;

/// Packets that have come to the router, and when its thread looks at them.
#[derive(Debug)]
pub struct Gathering<T> {
    waiting: Vec<(Nanos, T)>,
    soon: u32,
    /// The pause that follows the last turn, if one does.
    pause: Nanos,
    /// How many packets that turn took in.
    taken: Nanos,
    /// When the thread was done with the last ones.
    done: Option<Nanos>,
    /// It sleeps until then.
    until: Option<Nanos>,
}

impl<T> Default for Gathering<T> {
    fn default() -> Self {
        Gathering { waiting: Vec::new(), soon: 0, pause: 0, taken: 0, done: None, until: None }
    }
}

impl<T> Gathering<T> {
    /// A packet has come; it wakes a thread that does not sleep, so that [`Gathering::read`] is due.
    pub fn push(&mut self, now: Nanos, packet: T) {
        self.waiting.push((now, packet));
        if self.until.is_none() {
            let soon = self.done.is_some_and(|done| now - done < self.pause);
            self.soon = if soon { self.soon + 1 } else { 0 };
        }
    }

    /// Whether a packet that comes now is read at once.
    pub fn is_awake(&self) -> bool {
        self.until.is_none()
    }

    /// When packets that gather are read.
    pub fn wakes_at(&self) -> Option<Nanos> {
        self.until
    }

    /// The packets that have come, if any: a timer may be due. A pause in which hardly any came is the
    /// last, unless a timer has cut it short.
    pub fn read(&mut self, now: Nanos) -> Vec<(Nanos, T)> {
        let few = self.waiting.len() < WORTH;
        let over = self.until.take().map_or(self.waiting.is_empty(), |until| until <= now && few);
        if over {
            self.soon = 0;
        }
        self.taken = self.waiting.len() as Nanos;
        std::mem::take(&mut self.waiting)
    }

    /// The thread is done with them, and goes to sleep if that pays.
    pub fn done(&mut self, now: Nanos) {
        let turn = TURN_OF_A_PACKET * self.taken;
        self.done = Some(now + turn);
        self.pause = (TURNS * turn).clamp(SHORTEST, LONGEST);
        self.until = (self.soon >= DENSE).then_some(now + turn + self.pause);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Packets this far apart: how many were read at a time.
    fn read(apart: Nanos) -> Vec<usize> {
        let mut gathering = Gathering::default();
        let mut batches = Vec::new();
        for n in 0..100 {
            let now = n * apart;
            if let Some(at) = gathering.wakes_at().filter(|at| *at <= now) {
                batches.push(gathering.read(at).len());
                gathering.done(at);
            }
            gathering.push(now, n);
            if gathering.is_awake() {
                batches.push(gathering.read(now).len());
                gathering.done(now);
            }
        }
        batches
    }

    #[test]
    fn dense_packets_are_read_together() {
        assert!(read(250_000).iter().all(|batch| *batch == 1));
        let dense = read(100_000);
        assert_eq!(dense[..5], [1; 5]);
        assert!(dense[5..].iter().all(|batch| (2..=3).contains(batch)), "{dense:?}");
        // Turns take longer the more they take in, and packets gather meanwhile as well.
        let denser = read(40_000);
        assert!(denser.last().is_some_and(|batch| (8..=12).contains(batch)), "{denser:?}");
    }
}
