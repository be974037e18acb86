// SPDX-License-Identifier: GPL-2.0-or-later
//! Which transmissions a link spoils.

use serde::{Deserialize, Serialize};

use crate::random::Random;
use crate::{Nanos, ms};

/// How often an attempt at a frame fails.
///
/// A radio's errors have a memory in time and not in packets: a person walks by or
/// a neighbour sends, for so many milliseconds, whatever is on the air meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Errors {
    /// Probability in good times.
    pub good: f64,
    /// In bad times.
    pub bad: f64,
    /// Mean length of a good time, ms.
    pub good_ms: f64,
    /// Mean length of a bad time, ms; 0: there are none.
    pub bad_ms: f64,
    /// Besides, by the number of the attempt, the last for all that follow: rate
    /// control falls to a rate that gets through.
    pub by_attempt: Vec<f64>,
}

/// The state of one link, which both directions share: a fade hits both.
#[derive(Clone, Debug)]
pub struct Fading {
    errors: Errors,
    /// Of the fades, which thus come at the same times whatever is sent ...
    fades: Random,
    /// ... and of the attempts.
    random: Random,
    is_bad: bool,
    /// When this state ends.
    until: Nanos,
}

impl Fading {
    /// A link that begins in a good time.
    pub fn new(errors: Errors, random: Random) -> Fading {
        let mut fades = random.fork(1);
        let until = fades.exponential(ms(errors.good_ms));
        Fading { errors, fades, random, is_bad: false, until }
    }

    /// Whether this is a bad time. Times never fall.
    pub fn is_bad(&mut self, at: Nanos) -> bool {
        if self.errors.bad_ms <= 0.0 {
            return false;
        }
        while self.until <= at {
            self.is_bad = !self.is_bad;
            let mean = if self.is_bad { self.errors.bad_ms } else { self.errors.good_ms };
            self.until += self.fades.exponential(ms(mean));
        }
        self.is_bad
    }

    /// Whether this attempt (the first is 1) at a frame fails.
    pub fn spoils(&mut self, at: Nanos, attempt: u32) -> bool {
        let in_time = if self.is_bad(at) { self.errors.bad } else { self.errors.good };
        let table = &self.errors.by_attempt;
        let index = (attempt.max(1) as usize - 1).min(table.len().saturating_sub(1));
        let by_attempt = table.get(index).copied().unwrap_or(0.0);
        let passes = (1.0 - in_time) * (1.0 - by_attempt);
        self.random.chance(1.0 - passes)
    }
}
