// SPDX-License-Identifier: GPL-2.0-or-later
//! The receiver: a buffer that gives out frames in their order, and what is missing.

use std::collections::BTreeMap;

/// A frame that is missing for so long, in nanoseconds, is no longer waited for.
pub const GIVE_UP: u64 = 1_000_000_000;
/// The round-trip time before one is known.
const RTT: u64 = 100_000_000;
/// What a repetition is on its way is a little late at times.
const MARGIN: u64 = 2_000_000;

#[derive(Debug)]
struct Missing {
    since: u64,
    /// When to ask for it.
    ask: u64,
}

/// Frames that came and those that did not. Times are in nanoseconds.
#[derive(Debug)]
pub struct Playout {
    frames: u32,
    /// The next one to be given out.
    next: u32,
    /// All below have come or are missing.
    seen: u32,
    /// Came, and wait for one before: when.
    waiting: BTreeMap<u32, u64>,
    missing: BTreeMap<u32, Missing>,
    /// Of each frame given out: how long it waited.
    waits: Vec<u64>,
    given_up: u32,
    duplicates: u64,
    nacks: u64,
}

impl Playout {
    /// For so many frames.
    pub fn new(frames: u32) -> Playout {
        Playout {
            frames,
            next: 0,
            seen: 0,
            waiting: BTreeMap::new(),
            missing: BTreeMap::new(),
            waits: Vec::new(),
            given_up: 0,
            duplicates: 0,
            nacks: 0,
        }
    }

    /// A frame came.
    pub fn on_frame(&mut self, now: u64, frame: u32) {
        if frame >= self.frames {
            return;
        }
        let new = frame >= self.seen || self.missing.contains_key(&frame);
        if !new {
            self.duplicates += 1;
            return;
        }
        self.expect(now, frame);
        self.seen = self.seen.max(frame + 1);
        self.missing.remove(&frame);
        self.waiting.insert(frame, now);
        self.release(now);
    }

    /// All frames were sent: what has not come is missing.
    pub fn on_end(&mut self, now: u64) {
        self.expect(now, self.frames);
        self.seen = self.frames;
    }

    /// All below should have come.
    fn expect(&mut self, now: u64, below: u32) {
        for frame in self.seen..below {
            self.missing.insert(frame, Missing { since: now, ask: now });
        }
    }

    fn release(&mut self, now: u64) {
        loop {
            if let Some(came) = self.waiting.remove(&self.next) {
                self.waits.push(now.saturating_sub(came));
            } else if self.next >= self.seen || self.missing.contains_key(&self.next) {
                break;
            }
            self.next += 1;
        }
    }

    /// What to ask for now, at most so many, by the round-trip time as far as it is
    /// known; gives up what is too old.
    pub fn poll(&mut self, now: u64, rtt: Option<u64>, most: usize) -> Vec<u32> {
        let before = self.missing.len();
        self.missing.retain(|_, missing| now < missing.since + GIVE_UP);
        self.given_up += (before - self.missing.len()) as u32;
        self.release(now);
        let rtt = rtt.unwrap_or(RTT);
        let again = now + rtt + (rtt / 8).max(MARGIN);
        let due = self.missing.iter_mut().filter(|(_, missing)| missing.ask <= now);
        let asked = due.take(most).map(|(frame, missing)| {
            missing.ask = again;
            *frame
        });
        let asked: Vec<u32> = asked.collect();
        self.nacks += asked.len() as u64;
        asked
    }

    /// When to poll, if nothing comes before.
    pub fn next_timeout(&self) -> Option<u64> {
        self.missing.values().map(|missing| missing.ask.min(missing.since + GIVE_UP)).min()
    }

    /// Every frame was given out or given up.
    pub fn finished(&self) -> bool {
        self.next >= self.frames
    }

    /// How long each frame waited for those before it, in their order, without those
    /// that never came.
    pub fn waits(&self) -> &[u64] {
        &self.waits
    }

    /// Frames that came, in time or not.
    pub fn counts(&self) -> Counts {
        Counts {
            frames: self.frames,
            missing: self.frames - self.waits.len() as u32,
            duplicates: self.duplicates,
            nacks: self.nacks,
        }
    }
}

/// Of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Counts {
    /// That there are.
    pub frames: u32,
    /// That did not come, or after they were given up.
    pub missing: u32,
    /// Packets with a frame that had come or was given up.
    pub duplicates: u64,
    /// Times that a frame was asked for.
    pub nacks: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;

    #[test]
    fn frames_wait_for_those_before_them() {
        let mut playout = Playout::new(5);
        playout.on_frame(0, 0);
        playout.on_frame(40 * MS, 2);
        assert_eq!(playout.poll(40 * MS, Some(50 * MS), 9), [1]);
        playout.on_frame(60 * MS, 3);
        playout.on_frame(95 * MS, 1);
        playout.on_frame(96 * MS, 1);
        playout.on_frame(100 * MS, 4);
        assert!(playout.finished());
        assert_eq!(playout.waits(), [0, 0, 55 * MS, 35 * MS, 0]);
        let counts = Counts { frames: 5, missing: 0, duplicates: 1, nacks: 1 };
        assert_eq!(playout.counts(), counts);
    }

    #[test]
    fn what_is_missing_is_asked_for_once_a_round_trip_until_it_is_given_up() {
        let mut playout = Playout::new(3);
        playout.on_frame(0, 1);
        let (mut now, mut asked) = (0, Vec::new());
        while let Some(at) = playout.next_timeout() {
            now = at;
            if !playout.poll(at, Some(160 * MS), 9).is_empty() {
                asked.push(at / MS);
            }
        }
        assert_eq!(asked, [0, 180, 360, 540, 720, 900]);
        assert_eq!(now, GIVE_UP);
        assert_eq!(playout.waits(), [GIVE_UP]);
        playout.on_end(now);
        assert_eq!(playout.poll(now, None, 9), [2]);
        playout.on_frame(now + MS, 2);
        playout.on_frame(now + MS, 0);
        assert!(playout.finished());
        let counts = Counts { frames: 3, missing: 1, duplicates: 1, nacks: 7 };
        assert_eq!(playout.counts(), counts);
    }

    #[test]
    fn numbers_that_there_are_not_do_nothing() {
        let mut playout = Playout::new(2);
        playout.on_frame(0, u32::MAX);
        assert_eq!((playout.next_timeout(), playout.poll(0, None, 9)), (None, vec![]));
    }
}
