// SPDX-License-Identifier: GPL-2.0-or-later
//! The last day in parts of ten minutes and the last week in hours, over restarts.
//!
//! Parts in which the daemon did not run are left out, so there are never more than the two rings
//! hold, whatever clients or clocks do.

use std::collections::VecDeque;
use std::path::Path;

use serde_json::Value;

use crate::config::options::Named;
use crate::daemon::history::Sample;
use crate::daemon::kept::Kept;
use crate::daemon::object::object;
use crate::sys::clock;

/// Of the file; one of another version is left out.
const VERSION: u64 = 1;
/// Parts that an answer has at most: all of a week.
pub const PARTS: usize = 168;
/// Seconds for which the clock may lag behind what is known before it is believed (chosen: a
/// router without a battery is told the time within minutes of its start).
const DISBELIEF: u32 = 3600;
/// Columns of a part in the file and in an answer.
const COLUMNS: usize = 7;

/// How far back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Span {
    /// A day.
    Day,
    /// A week.
    Week,
}

impl Named for Span {
    const NAMES: &'static [(&'static str, Span)] = &[("day", Span::Day), ("week", Span::Week)];
}

impl Span {
    /// Seconds of a part, and how many parts there are.
    const fn parts(self) -> (u64, usize) {
        match self {
            Span::Day => (600, 144),
            Span::Week => (3600, PARTS),
        }
    }
}

/// What came in one part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Part {
    /// Unix time at which it begins.
    at: u64,
    /// For so many seconds of it the daemon ran.
    seconds: u64,
    inferred: u64,
    repaired: u64,
    beyond: u64,
    bytes_down: u64,
    bytes_up: u64,
}

impl Part {
    fn columns(&self) -> [u64; COLUMNS] {
        let Part { at, seconds, inferred, repaired, beyond, bytes_down, bytes_up } = *self;
        [at, seconds, inferred, repaired, beyond, bytes_down, bytes_up]
    }

    fn from(columns: &Value) -> Option<Part> {
        let columns = columns.as_array().filter(|it| it.len() == COLUMNS)?;
        let mut numbers = [0; COLUMNS];
        for (number, column) in numbers.iter_mut().zip(columns) {
            // Larger ones were never counted, and sums of them would overflow.
            *number = column.as_u64().filter(|n| *n < 1 << 56)?;
        }
        let [at, seconds, inferred, repaired, beyond, bytes_down, bytes_up] = numbers;
        Some(Part { at, seconds, inferred, repaired, beyond, bytes_down, bytes_up })
    }

    fn add(&mut self, sample: &Sample) {
        self.seconds += 1;
        self.inferred += sample.inferred;
        self.repaired += sample.repaired;
        self.beyond += sample.upstream + sample.congestion;
        self.bytes_down += sample.down_bps / 8;
        self.bytes_up += sample.up_bps / 8;
    }
}

/// The parts of one span, the newest last.
#[derive(Debug)]
struct Ring {
    span: Span,
    parts: VecDeque<Part>,
}

impl Ring {
    fn new(span: Span) -> Ring {
        Ring { span, parts: VecDeque::with_capacity(span.parts().1) }
    }

    fn is_ahead_of(&self, t: u64) -> bool {
        self.parts.back().is_some_and(|newest| newest.at > t)
    }

    fn add(&mut self, sample: &Sample) {
        let (seconds, most) = self.span.parts();
        let at = sample.t - sample.t % seconds;
        if self.parts.back().is_none_or(|newest| newest.at < at) {
            let oldest = at.saturating_sub(seconds * (most as u64 - 1));
            while self.parts.front().is_some_and(|part| part.at < oldest) {
                self.parts.pop_front();
            }
            self.parts.push_back(Part { at, ..Part::default() });
        }
        if let Some(newest) = self.parts.back_mut() {
            newest.add(sample);
        }
    }

    fn read(&mut self, parts: &Value) -> Option<()> {
        let (seconds, most) = self.span.parts();
        for part in parts.as_array().filter(|parts| parts.len() <= most)? {
            let part = Part::from(part).filter(|part| part.at.is_multiple_of(seconds))?;
            if self.is_ahead_of(part.at) {
                return None;
            }
            self.parts.push_back(part);
        }
        Some(())
    }

    fn columns(&self) -> Vec<[u64; COLUMNS]> {
        self.parts.iter().map(Part::columns).collect()
    }
}

/// Both spans, and the file that keeps them.
#[derive(Debug)]
pub struct Trend {
    rings: [Ring; 2],
    /// Seconds for which the clock has been behind the newest part.
    behind: u32,
    kept: Option<Kept>,
}

impl Trend {
    /// As it was left in the file beside that of the comparison, if there is one.
    pub fn new(benefit: Option<&Path>) -> Trend {
        let beside = |path: &Path| {
            let mut name = path.as_os_str().to_owned();
            name.push(".days");
            Kept::open(Path::new(&name), "history", parse)
        };
        let (kept, found) = benefit.map(beside).unzip();
        Trend { rings: found.flatten().unwrap_or_else(empty), behind: 0, kept }
    }

    /// Takes the sample of a second.
    pub fn add(&mut self, sample: &Sample) {
        if self.rings.iter().any(|ring| ring.is_ahead_of(sample.t)) {
            self.behind += 1;
            if self.behind < DISBELIEF {
                return;
            }
            for ring in &mut self.rings {
                ring.parts.retain(|part| part.at <= sample.t);
            }
        }
        self.behind = 0;
        self.rings.iter_mut().for_each(|ring| ring.add(sample));
        if let Some(kept) = &mut self.kept {
            // A router that nobody uses writes nothing.
            if sample.down_bps + sample.up_bps > 0 {
                kept.changed();
            }
            kept.keep(|| text(&self.rings));
        }
    }

    /// The answer to `trend`: `limit` parts before the newest `skip`, oldest first.
    pub fn json(&self, span: Span, limit: usize, skip: usize) -> Value {
        let ring = self.rings.iter().find(|ring| ring.span == span);
        let parts = ring.map(Ring::columns).unwrap_or_default();
        let end = parts.len().saturating_sub(skip);
        let shown = &parts[end.saturating_sub(limit)..end];
        object(vec![
            ("now", clock::unix().into()),
            ("part_s", span.parts().0.into()),
            ("total", parts.len().into()),
            ("parts", shown.iter().map(|columns| columns.to_vec()).collect()),
        ])
    }

    /// Keeps what is known, at the end.
    pub fn close(&mut self) {
        if let Some(kept) = &mut self.kept {
            kept.close(|| text(&self.rings));
        }
    }
}

fn empty() -> [Ring; 2] {
    [Ring::new(Span::Day), Ring::new(Span::Week)]
}

fn text(rings: &[Ring; 2]) -> String {
    let parts = |ring: &Ring| -> Value { ring.columns().iter().map(|it| it.to_vec()).collect() };
    let file =
        vec![("version", VERSION.into()), ("day", parts(&rings[0])), ("week", parts(&rings[1]))];
    object(file).to_string()
}

fn parse(text: &str) -> Option<[Ring; 2]> {
    let file: Value = serde_json::from_slice(text.as_bytes()).ok()?;
    let mut rings = empty();
    rings[0].read(&file["day"])?;
    rings[1].read(&file["week"])?;
    (file["version"] == VERSION).then_some(rings)
}

#[cfg(test)]
mod tests;
