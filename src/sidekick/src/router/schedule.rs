// SPDX-License-Identifier: GPL-2.0-or-later
//! When a session's quACKs go out.

use core::num::NonZeroU16;

use pemi_quack::Interval;

use super::adaptive::Adaptive;
use super::due::Due;
use super::{MS, Micros};

#[derive(Clone, Debug)]
pub(super) enum Schedule {
    Packets {
        every: NonZeroU16,
        untold: u16,
    },
    Millis {
        after: NonZeroU16,
        at: Option<Micros>,
    },
    /// In a box, as it is many times the size of the others.
    Adaptive(Box<Adaptive>),
}

impl Schedule {
    /// What the router is configured to do is known by the caller: it is adaptive here.
    pub fn new(interval: Interval) -> Schedule {
        match interval {
            Interval::Packets(every) => Schedule::Packets { every, untold: 0 },
            Interval::Millis(after) => Schedule::Millis { after, at: None },
            Interval::Adaptive | Interval::Router => Schedule::Adaptive(Box::new(Adaptive::new())),
        }
    }

    /// A packet was counted.
    pub fn on_packet(&mut self, now: Micros) -> Due {
        match self {
            Schedule::Packets { every, untold } => {
                *untold = untold.saturating_add(1);
                let quack = *untold >= every.get();
                if quack {
                    *untold = 0;
                }
                Due { quack, late: 0 }
            }
            Schedule::Millis { after, at } => {
                at.get_or_insert(now.saturating_add(Micros::from(after.get()) * MS));
                Due::default()
            }
            Schedule::Adaptive(adaptive) => adaptive.on_packet(now),
        }
    }

    /// When to call [`Schedule::on_timeout`].
    pub fn deadline(&self) -> Option<Micros> {
        match self {
            Schedule::Packets { .. } => None,
            Schedule::Millis { at, .. } => *at,
            Schedule::Adaptive(adaptive) => adaptive.deadline(),
        }
    }

    pub fn on_timeout(&mut self, now: Micros) -> Due {
        match self {
            Schedule::Packets { .. } => Due::default(),
            Schedule::Millis { at, .. } => {
                Due { quack: at.take_if(|at| *at <= now).is_some(), late: 0 }
            }
            Schedule::Adaptive(adaptive) => adaptive.on_timeout(now),
        }
    }
}

#[cfg(test)]
mod hop;
#[cfg(test)]
mod tests {
    use super::*;

    fn number(n: u16) -> NonZeroU16 {
        NonZeroU16::new(n).expect("not zero")
    }

    #[test]
    fn after_so_many_packets() {
        let mut schedule = Schedule::new(Interval::Packets(number(3)));
        let quacks: Vec<bool> = (0..7).map(|now| schedule.on_packet(now).quack).collect();
        assert_eq!(quacks, [false, false, true, false, false, true, false]);
        assert_eq!(schedule.deadline(), None);
    }

    #[test]
    fn so_long_after_the_first_untold() {
        let mut schedule = Schedule::new(Interval::Millis(number(10)));
        assert_eq!(schedule.deadline(), None);
        for now in [5 * MS, 9 * MS] {
            assert!(!schedule.on_packet(now).quack);
        }
        assert_eq!(schedule.deadline(), Some(15 * MS));
        assert!(!schedule.on_timeout(15 * MS - 1).quack);
        assert!(schedule.on_timeout(15 * MS).quack);
        assert!(!schedule.on_timeout(15 * MS).quack);
        assert_eq!(schedule.deadline(), None);
        assert!(!schedule.on_packet(Micros::MAX).quack);
    }
}
