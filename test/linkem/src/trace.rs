// SPDX-License-Identifier: GPL-2.0-or-later
//! Delivery opportunities in the format of mahimahi (Netravali et al., USENIX ATC
//! 2015): each line is a time in ms at which one packet of 1500 bytes may cross; a
//! repeated time means several; at its end the trace begins again.

use std::path::Path;

use crate::{MS, Nanos};

/// Bytes of one opportunity, counted without the link header: a full IP packet
/// of an Ethernet takes exactly one.
pub const OPPORTUNITY_BYTES: u32 = 1500;

/// Reads and parses a file; errors name it.
pub(crate) fn read<T>(
    path: &Path,
    parse: impl FnOnce(&str) -> Result<T, String>,
) -> Result<T, String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    parse(&text).map_err(|error| format!("{}: {error}", path.display()))
}

/// The lines that are not blank, with their numbers.
pub(crate) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(number, line)| (number + 1, line.trim()));
    lines.filter(|(_, line)| !line.is_empty())
}

/// A trace and the place in it.
#[derive(Clone, Debug)]
pub struct Trace {
    /// Offsets from the start of a round, non-decreasing.
    offsets: Vec<Nanos>,
    /// Bytes of an opportunity, without link header.
    bytes: u32,
    /// When the current round began.
    base: Nanos,
    next: usize,
    /// How long a round is.
    round: Nanos,
}

impl Trace {
    /// Reads a trace file whose opportunities are of so many bytes.
    pub fn read(path: &Path, bytes: u32) -> Result<Trace, String> {
        read(path, |text| Trace::parse(text, bytes))
    }

    /// Parses the text of a trace file.
    pub fn parse(text: &str, bytes: u32) -> Result<Trace, String> {
        let mut offsets = Vec::new();
        for (number, line) in lines(text) {
            let ms: u32 =
                line.parse().map_err(|_| format!("line {number}: '{line}' is not a time in ms"))?;
            let offset = Nanos::from(ms) * MS;
            if offsets.last().is_some_and(|last| *last > offset) {
                return Err(format!("line {number}: the time goes backwards"));
            }
            offsets.push(offset);
        }
        // The last time is also the length of a round.
        match offsets.last() {
            None => Err("the trace is empty".into()),
            Some(0) => Err("the last time must be greater than 0".into()),
            Some(&round) => Ok(Trace { offsets, bytes, base: 0, next: 0, round }),
        }
    }

    /// The same trace, with this moment of its round as its beginning.
    pub fn begun_at(mut self, moment: Nanos) -> Trace {
        let moment = moment % self.round;
        let first = self.offsets.partition_point(|offset| *offset <= moment);
        self.offsets.rotate_left(first);
        let passed = self.offsets.len() - first;
        for (index, offset) in self.offsets.iter_mut().enumerate() {
            *offset = if index < passed { *offset - moment } else { *offset + self.round - moment };
        }
        self
    }

    /// Bytes of an opportunity, without link header.
    pub fn bytes(&self) -> u32 {
        self.bytes
    }

    /// Lets the trace begin at `start`.
    pub fn start(&mut self, start: Nanos) {
        self.base = start;
        self.next = 0;
    }

    /// The time of the next opportunity.
    pub fn peek(&self) -> Nanos {
        self.base + self.offsets[self.next]
    }

    /// Uses the next opportunity, or lets it pass.
    pub fn consume(&mut self) {
        self.next += 1;
        if self.next == self.offsets.len() {
            self.next = 0;
            self.base += self.round();
        }
    }

    /// Lets all opportunities up to and including `now` pass, in constant time
    /// per round: a link may have been idle for hours.
    pub fn skip(&mut self, now: Nanos) {
        if self.peek() > now {
            return;
        }
        let rounds = (now - self.base) / self.round();
        if rounds > 0 {
            self.base += rounds * self.round();
            self.next = 0;
        }
        let now = now - self.base;
        self.next += self.offsets[self.next..].partition_point(|offset| *offset <= now);
        if self.next == self.offsets.len() {
            self.next = 0;
            self.base += self.round();
        }
    }

    /// How many opportunities a round has.
    pub fn opportunities(&self) -> usize {
        self.offsets.len()
    }

    /// How long a round is.
    pub fn round(&self) -> Nanos {
        self.round
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeats_at_its_end() {
        let mut trace = Trace::parse("0\n3\n3\n10\n", OPPORTUNITY_BYTES).unwrap();
        trace.start(100 * MS);
        let times: Vec<_> = (0..9)
            .map(|_| {
                let time = trace.peek() / MS;
                trace.consume();
                time
            })
            .collect();
        assert_eq!(times, [100, 103, 103, 110, 110, 113, 113, 120, 120]);
    }

    #[test]
    fn skipping_equals_consuming() {
        let mut skipped = Trace::parse("1\n3\n3\n10", OPPORTUNITY_BYTES).unwrap();
        for now in [0, 1, 2, 3, 9, 10, 11, 13, 30, 31, 1000, 1001, 1013] {
            let mut consumed = Trace::parse("1\n3\n3\n10", OPPORTUNITY_BYTES).unwrap();
            while consumed.peek() <= now * MS {
                consumed.consume();
            }
            skipped.skip(now * MS);
            assert_eq!(skipped.peek(), consumed.peek(), "at {now} ms");
        }
    }

    #[test]
    fn begins_anywhere_in_its_round() {
        let trace = || Trace::parse("0\n3\n3\n10\n", OPPORTUNITY_BYTES).unwrap();
        let times = |mut trace: Trace| -> Vec<_> {
            let next = |_| {
                let time = trace.peek() / MS;
                trace.consume();
                time
            };
            (0..9).map(next).collect()
        };
        assert_eq!(times(trace().begun_at(2 * MS)), [1, 1, 8, 8, 11, 11, 18, 18, 21]);
        assert_eq!(times(trace().begun_at(3 * MS)), [7, 7, 10, 10, 17, 17, 20, 20, 27]);
        assert_eq!(times(trace().begun_at(13 * MS)), times(trace().begun_at(3 * MS)));
        // A moment that is over at the beginning comes at the end of the round.
        assert_eq!(times(trace().begun_at(0)), [3, 3, 10, 10, 13, 13, 20, 20, 23]);
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(Trace::parse("", OPPORTUNITY_BYTES).unwrap_err().contains("empty"));
        assert!(Trace::parse("0\n0\n", OPPORTUNITY_BYTES).unwrap_err().contains("greater"));
        assert!(Trace::parse("5\n4\n", OPPORTUNITY_BYTES).unwrap_err().contains("line 2"));
        assert!(Trace::parse("1\nx\n", OPPORTUNITY_BYTES).unwrap_err().contains("line 2"));
    }
}
