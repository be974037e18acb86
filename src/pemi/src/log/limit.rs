// SPDX-License-Identifier: GPL-2.0-or-later
//! How many lines about flows the log gets: flows cost whoever makes them nothing, and
//! the router's log is everybody's.

use std::time::{Duration, Instant};

/// Lines that may come one after the other ...
const AT_ONCE: u32 = 5;
/// ... and then one in so long.
const EACH: Duration = Duration::from_secs(2);
/// The time after which a line says how many were left out.
const TELL_AFTER: Duration = Duration::from_secs(10);

/// Counts lines. Times are arguments, so that tests need not wait.
#[derive(Debug)]
pub struct Limit {
    left: u32,
    /// When the last one was added to those `left`.
    since: Instant,
    left_out: u64,
    /// When a line will say how many they are.
    due: Option<Instant>,
}

impl Limit {
    /// Nothing was written yet.
    pub fn new(now: Instant) -> Limit {
        Limit { left: AT_ONCE, since: now, left_out: 0, due: None }
    }

    /// Whether a line may be written; otherwise it counts as left out.
    pub fn allows(&mut self, now: Instant) -> bool {
        while self.left < AT_ONCE && now.saturating_duration_since(self.since) >= EACH {
            self.left += 1;
            self.since += EACH;
        }
        if self.left == AT_ONCE {
            self.since = now;
        }
        if self.left == 0 {
            self.left_out += 1;
            self.due.get_or_insert(now + TELL_AFTER);
            return false;
        }
        self.left -= 1;
        true
    }

    /// How long it is until a line has to say how many were left out.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        self.due.map(|due| due.saturating_duration_since(now))
    }

    /// How many were left out, if that is due now or the end is near.
    pub fn tell(&mut self, now: Instant, end: bool) -> Option<u64> {
        self.due.filter(|due| end || *due <= now)?;
        self.due = None;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_lines_is_a_few_and_a_number() {
        let start = Instant::now();
        let mut limit = Limit::new(start);
        let (mut written, mut told) = (0, 0);
        // 20,000 a second, for ten seconds.
        for n in 0..200_000u32 {
            let now = start + n * Duration::from_micros(50);
            written += u64::from(limit.allows(now));
            told += limit.tell(now, false).unwrap_or(0);
        }
        let end = start + Duration::from_secs(11);
        assert_eq!(
            limit.wait(start + Duration::from_secs(9)),
            Some(Duration::from_micros(1_000_250))
        );
        told += limit.tell(end, false).unwrap();
        assert_eq!((written, told), (9, 199_991));
        assert_eq!((limit.wait(end), limit.tell(end, true)), (None, None));
    }

    #[test]
    fn a_few_now_and_then_are_all_written() {
        let start = Instant::now();
        let mut limit = Limit::new(start);
        for minute in 1..10 {
            let now = start + minute * Duration::from_secs(60);
            assert!((0..AT_ONCE).all(|_| limit.allows(now)));
        }
        assert!(!limit.allows(start + Duration::from_secs(541)));
        assert_eq!(limit.tell(start + Duration::from_secs(542), true), Some(1), "at the end");
    }
}
