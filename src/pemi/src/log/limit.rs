// SPDX-License-Identifier: GPL-2.0-or-later
//! How many lines about flows the log gets: flows cost whoever makes them nothing, and
//! the router's log is everybody's.

use std::time::{Duration, Instant};

use pemi_engine::EventKind;

/// At most one line in so long, as for what was done in a minute (`daemon/words.rs`).
const EACH: Duration = Duration::from_secs(60);

/// Lets a line pass now and then and counts the others. Times are arguments, so that tests need
/// not wait.
#[derive(Debug)]
pub struct Limit {
    /// When there may be a line again.
    free: Instant,
    began: u64,
    ended: u64,
}

impl Limit {
    /// Nothing was written yet.
    pub fn new(now: Instant) -> Limit {
        Limit { free: now, began: 0, ended: 0 }
    }

    /// Whether the line of a flow that begins or ends may be written; otherwise it is counted.
    pub fn allows(&mut self, kind: EventKind, now: Instant) -> bool {
        if now >= self.free && self.began + self.ended == 0 {
            self.free = now + EACH;
            return true;
        }
        match kind {
            EventKind::FlowStart => self.began += 1,
            _ => self.ended += 1,
        }
        false
    }

    /// How long it is until a line has to tell what was counted.
    pub fn wait(&self, now: Instant) -> Option<Duration> {
        (self.began + self.ended > 0).then(|| self.free.saturating_duration_since(now))
    }

    /// What was counted, if that is due now or the end is near.
    pub fn tell(&mut self, now: Instant, end: bool) -> Option<String> {
        self.wait(now).filter(|wait| end || wait.is_zero())?;
        let words =
            format!("flows since the last line: {} started, {} ended", self.began, self.ended);
        *self = Limit { free: now + EACH, began: 0, ended: 0 };
        Some(words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const END: EventKind =
        EventKind::FlowEnd { packets_down: 1, inferred: 0, repaired: 0, resent: 0 };

    #[test]
    fn a_flood_of_flows_is_a_line_a_minute() {
        let start = Instant::now();
        let mut limit = Limit::new(start);
        let (mut written, mut told) = (0, Vec::new());
        // 1,000 a second begin and as many end, for three minutes.
        for n in 0..180_000u32 {
            let now = start + n * Duration::from_millis(1);
            written += u64::from(limit.allows(EventKind::FlowStart, now));
            written += u64::from(limit.allows(END, now));
            told.extend(limit.tell(now, false));
        }
        assert_eq!(limit.wait(start + Duration::from_secs(179)), Some(Duration::from_secs(1)));
        told.extend(limit.tell(start + Duration::from_secs(180), false));
        assert_eq!((written, told.len()), (1, 3));
        assert_eq!(told[0], "flows since the last line: 60000 started, 60001 ended");
        let end = start + Duration::from_secs(180);
        assert_eq!((limit.wait(end), limit.tell(end, true)), (None, None));
    }

    #[test]
    fn one_now_and_then_is_a_line_of_its_own() {
        let start = Instant::now();
        let mut limit = Limit::new(start);
        for minute in 0..10 {
            let now = start + minute * EACH;
            assert!(limit.allows(EventKind::FlowStart, now));
            assert_eq!((limit.wait(now), limit.tell(now, false)), (None, None));
        }
        let now = start + 10 * EACH - Duration::from_secs(1);
        assert!(!limit.allows(END, now));
        let words = limit.tell(now, true).unwrap();
        assert_eq!(words, "flows since the last line: 0 started, 1 ended", "at the end");
    }
}
