// SPDX-License-Identifier: GPL-2.0-or-later
//! What the first replies to bursts tell of the round trip.

use crate::store::recent::Recent;
use crate::time::{Nanos, US};

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
