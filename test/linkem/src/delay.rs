// SPDX-License-Identifier: GPL-2.0-or-later
//! Recorded propagation delays in the format of LeoReplayer (LeoCC): line i is the
//! one-way delay in ms during the i-th 10 ms; at its end the trace begins again.

use std::path::Path;

use crate::{MS, Nanos};

const INTERVAL: Nanos = 10 * MS;

/// A trace and when it began.
#[derive(Clone, Debug)]
pub struct DelayTrace {
    delays: Vec<Nanos>,
    start: Nanos,
}

impl DelayTrace {
    /// Reads a trace file.
    pub fn read(path: &Path) -> Result<DelayTrace, String> {
        crate::trace::read(path, DelayTrace::parse)
    }

    /// Parses the text of a trace file.
    pub fn parse(text: &str) -> Result<DelayTrace, String> {
        let delays = crate::trace::lines(text)
            .map(|(number, line)| match line.parse::<f64>() {
                Ok(ms) if (0.0..=60_000.0).contains(&ms) => Ok((ms * MS as f64).round() as Nanos),
                _ => Err(format!("line {number}: '{line}' is not a delay in ms")),
            })
            .collect::<Result<Vec<Nanos>, String>>()?;
        if delays.is_empty() {
            return Err("the trace is empty".into());
        }
        Ok(DelayTrace { delays, start: 0 })
    }

    /// Lets the trace begin at `start`.
    pub fn start(&mut self, start: Nanos) {
        self.start = start;
    }

    /// The same trace, with the line of this moment as its first.
    pub fn begun_at(mut self, moment: Nanos) -> DelayTrace {
        let line = (moment / INTERVAL) % self.delays.len() as u64;
        self.delays.rotate_left(line as usize);
        self
    }

    /// How long a round is.
    pub fn round(&self) -> Nanos {
        self.delays.len() as u64 * INTERVAL
    }

    /// The delay of a packet that sets out at `now`.
    pub fn at(&self, now: Nanos) -> Nanos {
        let interval = now.saturating_sub(self.start) / INTERVAL;
        self.delays[(interval % self.delays.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_holds_for_ten_ms_and_the_trace_repeats() {
        let mut trace = DelayTrace::parse("20\n35.5\n").unwrap();
        trace.start(100 * MS);
        let us = |ms: u64| trace.at(ms * MS) / 1000;
        assert_eq!([us(100), us(109), us(110), us(119)], [20_000, 20_000, 35_500, 35_500]);
        assert_eq!([us(120), us(130), us(100_110)], [20_000, 35_500, 35_500]);
        // A packet stamped before the program was ready.
        assert_eq!(us(99), 20_000);
    }

    #[test]
    fn begins_at_any_line() {
        let trace = DelayTrace::parse("1\n2\n3\n").unwrap().begun_at(50 * MS);
        assert_eq!([0, 10, 20, 30].map(|ms| trace.at(ms * MS) / MS), [3, 1, 2, 3]);
        assert_eq!(trace.round(), 30 * MS);
    }

    #[test]
    fn says_what_is_wrong() {
        assert!(DelayTrace::parse("\n").unwrap_err().contains("empty"));
        assert!(DelayTrace::parse("1\n-1\n").unwrap_err().contains("line 2"));
        assert!(DelayTrace::parse("1\nten\n").unwrap_err().contains("line 2"));
    }
}
