// SPDX-License-Identifier: GPL-2.0-or-later
//! How fast a download was, and how often it stood still: what its owner notices. It is measured in
//! the same way of flows that are helped and of those that are left alone for comparison, so
//! nothing of the rules' own knowledge is in it.
//!
//! The first download of a flow counts and no other: those that follow are of the same path at the
//! same time, and an interval of confidence would take them for news.

use crate::time::{MS, Nanos, SEC, Time};

/// Less is not a download of which the rate is of interest: slow start is most of it.
const LEAST_BYTES: u64 = 500_000;
/// Standing still (chosen: a picture or a voice that stops for so long is noticed).
const STALL: Nanos = 200 * MS;
/// A download that stands still for so long is over (chosen: three probe timeouts in a row of a path
/// of 200 ms are less, RFC 9002, section 6.2.1).
const OVER: Nanos = 3 * SEC;
/// So much of a long one is enough (chosen: the flow need not end before its outcome is known).
const LONGEST: Nanos = 60 * SEC;

/// What came of a download.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Done {
    pub bytes: u64,
    /// From its first packet to its last, without the time in which nothing was asked for.
    pub busy: Nanos,
    pub stalls: u32,
}

#[derive(Clone, Debug)]
enum State {
    Before,
    Runs { first: Time, last: Time, bytes: u64, idle: Nanos, stalls: u32 },
    Counted,
}

#[derive(Clone, Debug)]
pub(crate) struct Transfer {
    state: State,
    /// The receiver has sent something of its own since the sender's last packet.
    asked: bool,
}

impl Transfer {
    pub fn new() -> Transfer {
        Transfer { state: State::Before, asked: false }
    }

    /// The receiver has sent something that is no acknowledgement.
    pub fn asked(&mut self) {
        self.asked = true;
    }

    /// A packet of the sender; gives a download that is over by that.
    pub fn came(&mut self, now: Time, size: usize) -> Option<Done> {
        let asked = core::mem::take(&mut self.asked);
        let begin = State::Runs { first: now, last: now, bytes: size as u64, idle: 0, stalls: 0 };
        let State::Runs { first, last, bytes, idle, stalls } = &mut self.state else {
            if matches!(self.state, State::Before) {
                self.state = begin;
            }
            return None;
        };
        let pause = now.since(*last);
        if pause >= OVER || now.since(*first) >= LONGEST {
            let done = self.finish();
            if done.is_none() {
                self.state = begin;
            }
            return done;
        }
        if pause >= STALL {
            // Nothing came because nothing was asked for.
            if asked { *idle += pause } else { *stalls += 1 }
        }
        *last = now;
        *bytes += size as u64;
        None
    }

    /// Whether the download is over by now.
    pub fn is_over(&self, now: Time) -> bool {
        matches!(self.state, State::Runs { last, .. } if now.since(last) >= OVER)
    }

    /// Nothing more will be seen of it. Gives it as far as it was.
    pub fn finish(&mut self) -> Option<Done> {
        let State::Runs { first, last, bytes, idle, stalls } = self.state else { return None };
        let busy = last.since(first) - idle;
        if bytes < LEAST_BYTES || busy <= 0 {
            self.state = State::Before;
            return None;
        }
        self.state = State::Counted;
        Some(Done { bytes, busy, stalls })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Time {
        Time::ZERO + ms * MS
    }

    /// A megabyte, a kilobyte each millisecond; with these pauses, and whether they were asked for
    /// to end, after so many packets.
    fn download(pauses: &[(i64, i64, bool)]) -> (Transfer, i64) {
        let (mut transfer, mut now) = (Transfer::new(), 0);
        for packet in 0..1000 {
            for (_, pause, asked) in pauses.iter().filter(|(after, ..)| *after == packet) {
                now += pause;
                if *asked {
                    transfer.asked();
                }
            }
            assert_eq!(transfer.came(at(now), 1000), None);
            now += 1;
        }
        (transfer, now - 1)
    }

    #[test]
    fn a_download_is_over_when_nothing_comes() {
        let (mut transfer, last) = download(&[]);
        let done = Done { bytes: 1_000_000, busy: 999 * MS, stalls: 0 };
        assert_eq!(transfer.clone().came(at(last + 3000), 1), Some(done));
        assert!(!transfer.is_over(at(last + 2999)) && transfer.is_over(at(last + 3000)));
        assert_eq!(transfer.finish(), Some(done));
        assert_eq!(transfer.came(at(last + 9001), 1_000_000), None);
        assert!(!transfer.is_over(at(last + 99_000)), "one of a flow is enough");
    }

    #[test]
    fn what_was_not_asked_for_is_no_stall() {
        let (mut transfer, _) = download(&[(100, 198, false), (300, 500, false), (500, 900, true)]);
        let busy = (999 + 198 + 500 - 1) * MS;
        assert_eq!(transfer.finish(), Some(Done { bytes: 1_000_000, busy, stalls: 1 }));
    }

    #[test]
    fn what_is_small_does_not_count_and_what_follows_does() {
        let mut transfer = Transfer::new();
        assert_eq!(transfer.came(at(0), 499_999), None);
        assert_eq!(transfer.came(at(10), 0), None);
        assert_eq!(transfer.came(at(5000), 500_000), None, "the small one is forgotten");
        assert_eq!(transfer.came(at(5001), 1), None);
        let done = Done { bytes: 500_001, busy: MS, stalls: 0 };
        assert_eq!(transfer.finish(), Some(done));
    }

    #[test]
    fn a_long_one_counts_before_its_end() {
        let mut transfer = Transfer::new();
        let done = (0..700).find_map(|n| transfer.came(at(n * 100), 10_000));
        assert_eq!(done, Some(Done { bytes: 6_000_000, busy: 59_900 * MS, stalls: 0 }));
    }
}
