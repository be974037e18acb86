// SPDX-License-Identifier: GPL-2.0-or-later
//! Time as the engine sees it: nanoseconds since an epoch of the caller's.

use core::ops::{Add, Sub};

/// A span of time in nanoseconds; signed, because the rules compare moments
/// that may lie either side of each other.
pub type Nanos = i64;

/// One microsecond in [`Nanos`].
pub const US: Nanos = 1_000;
/// One millisecond in [`Nanos`].
pub const MS: Nanos = 1_000_000;
/// One second in [`Nanos`].
pub const SEC: Nanos = 1_000_000_000;

const FARTHEST: u64 = 1 << 55;

/// `span / PARTS`, rounded towards zero as the operator does. Small routers have no instruction that
/// divides 64 bits but a function of some hundred, for each packet several times; what fits into 32,
/// as almost every span does, is divided by a constant with a multiplication.
#[inline]
pub(crate) fn divided<const PARTS: u32>(span: Nanos) -> Nanos {
    let size = span.unsigned_abs();
    let part = match u32::try_from(size) {
        Ok(size) => u64::from(size / PARTS),
        Err(_) => size / u64::from(PARTS),
    };
    if span < 0 { -part.cast_signed() } else { part.cast_signed() }
}

/// So many percent of `span`, rounded towards zero.
#[inline]
pub(crate) fn percent(span: Nanos, percent: Nanos) -> Nanos {
    divided::<100>(span * percent)
}

/// A moment in nanoseconds since an arbitrary epoch. The caller's clock must
/// be monotonic; arithmetic saturates, so a bad clock cannot cause a panic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(u64);

impl Time {
    /// The epoch itself.
    pub const ZERO: Time = Time(0);
    /// Later than anything that happens.
    pub const MAX: Time = Time(u64::MAX);

    /// The moment `nanos` nanoseconds after the epoch.
    pub const fn from_nanos(nanos: u64) -> Time {
        Time(nanos)
    }

    /// Nanoseconds since the epoch.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Nanoseconds from `earlier` to `self`; negative if `earlier` is later.
    /// Never more than about a year either way, so that a few of them can be
    /// added up whatever the clock says.
    #[inline]
    pub fn since(self, earlier: Time) -> Nanos {
        // Not one bounded distance with a sign: compilers from Rust 1.88 to 1.95, at least, make of that,
        // and of what is above zero of it, `FARTHEST` where it is zero.
        if self >= earlier {
            (self.0 - earlier.0).min(FARTHEST) as Nanos
        } else {
            -((earlier.0 - self.0).min(FARTHEST) as Nanos)
        }
    }
}

impl Add<Nanos> for Time {
    type Output = Time;
    fn add(self, span: Nanos) -> Time {
        if span >= 0 {
            Time(self.0.saturating_add(span.unsigned_abs()))
        } else {
            Time(self.0.saturating_sub(span.unsigned_abs()))
        }
    }
}

impl Sub<Nanos> for Time {
    type Output = Time;
    fn sub(self, span: Nanos) -> Time {
        self.add(span.saturating_neg())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_those_of_the_operator() {
        for span in [0, 1, 9, 99, 100, 4_294_967_295, 4_294_967_296, 1 << 62] {
            for span in [span, -span] {
                assert_eq!(divided::<10>(span), span / 10);
                assert_eq!(divided::<100>(span), span / 100);
            }
        }
        assert_eq!((percent(250 * MS, 35), percent(-7, 50)), (87_500 * US, -3));
    }

    #[test]
    fn arithmetic_saturates() {
        assert_eq!(Time::ZERO - 5, Time::ZERO);
        assert_eq!(Time::MAX + 5, Time::MAX);
        assert_eq!(Time::MAX.since(Time::ZERO), 1 << 55);
        assert_eq!(Time::ZERO.since(Time::MAX), -(1 << 55));
        assert_eq!(Time::from_nanos(7).since(Time::from_nanos(10)), -3);
    }
}
