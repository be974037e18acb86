// SPDX-License-Identifier: GPL-2.0-or-later
//! What the first replies to bursts tell of the round trip.
//!
//! No reply comes before what caused it. Where packets are close, replies fit several estimates, which are
//! as far apart as packets are; only the first packet after a pause tells them apart, as an estimate
//! that is too long has its reply caused by one before it, and there was none.

use crate::store::recent::Recent;
use crate::time::{MS, Nanos, US};

/// A round trip that is remembered, in nanoseconds: every flow has dozens, and none is four seconds long.
pub(super) type Sample = u32;

pub(super) fn small(sample: Nanos) -> Sample {
    Sample::try_from(sample.max(0)).unwrap_or(Sample::MAX)
}

/// Bursts that are remembered.
pub(super) const BURSTS: usize = 16;
/// Samples of bursts belong together if they are no further apart than this and a tenth of
/// the smaller one (chosen: as `Margin::Near` has it before a deviation is known) ...
const CLUSTER_GAP: Nanos = 300 * US;
/// ... and all of them lie within this percentage of the smallest one and the time beside it.
const CLUSTER_WIDTH: (Nanos, Nanos) = (200 * US, 135);
/// After a pause this long no reply is about what was sent before it, but for those that a timer delays
/// (chosen: twice the latest hosts).
pub(crate) const PAUSE: Nanos = 2 * MS;
/// First replies that took the same, give or take this, were not delayed by chance (chosen: as
/// `Margin::Same` has it where replies keep time).
const SAME: Nanos = 100 * US;
/// Of how many of the last of them one has to agree (chosen: a client that replies to every second
/// packet replies to the first of a burst every second time).
const ONSETS: usize = 3;

/// The median of the lowest group of samples that lie close together; single
/// low ones are replies to earlier packets.
pub(super) fn lowest_cluster(samples: &Recent<Sample, BURSTS>) -> Option<Nanos> {
    let mut sorted = [0; BURSTS];
    let mut len = 0;
    for sample in samples.iter() {
        sorted[len] = Nanos::from(sample);
        len += 1;
    }
    let sorted = &mut sorted[..len];
    sorted.sort_unstable();
    let start = sorted.windows(2).position(|w| w[1] - w[0] <= CLUSTER_GAP + w[0] / 10)?;
    let low = &sorted[start..];
    let width = low[0] * CLUSTER_WIDTH.1 / 100 + CLUSTER_WIDTH.0;
    let cluster = low.iter().take_while(|s| **s <= width).count();
    Some(low[cluster / 2])
}

/// First replies to bursts that came sooner than the estimate has it.
#[derive(Clone, Debug)]
pub(super) struct Onset {
    sooner: Recent<Nanos, ONSETS>,
}

impl Onset {
    pub fn new() -> Onset {
        Onset { sooner: Recent::new() }
    }

    /// One more of these took this long; gives what they take if one of the last agrees with it. They need not
    /// follow each other: every second time the second packet of a burst is replied to.
    pub fn sooner(&mut self, sample: Nanos) -> Option<Nanos> {
        let same = self.sooner.iter().find(|it| (it - sample).abs() <= SAME);
        self.sooner.push(sample);
        same.inspect(|_| self.sooner.clear()).map(|it| it.max(sample))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_reply_may_be_a_timers_and_two_that_agree_are_not() {
        let mut onset = Onset::new();
        assert_eq!(onset.sooner(2_100 * US), None);
        assert_eq!(onset.sooner(2_400 * US), None, "that to the second packet");
        assert_eq!(onset.sooner(2_130 * US), Some(2_130 * US));
        assert_eq!(onset.sooner(2_110 * US), None, "each pair tells once");
    }
}
