// SPDX-License-Identifier: GPL-2.0-or-later
//! What an access point counts of its stations, from the truth, and what its driver makes of it.

use std::collections::VecDeque;

use linkem::Nanos;
use pemi_engine::{Count, Radio, Time};

use crate::scenario::{Counts as Settings, ms};

/// Counters of one station.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    sent: u32,
    lost: u32,
    dropped: u32,
}

/// All stations, and those who look at them.
pub struct Counts {
    settings: Settings,
    /// What has happened and was not counted yet.
    late: VecDeque<(Nanos, usize, Counters)>,
    stations: Vec<Counters>,
    looked: Nanos,
}

impl Counts {
    /// Nothing counted yet.
    pub fn new(settings: &Settings, stations: usize) -> Counts {
        Counts {
            settings: settings.clone(),
            late: VecDeque::new(),
            stations: vec![Counters::default(); stations],
            looked: 0,
        }
    }

    /// A packet has left the radio, whether it arrived or not.
    pub fn left(&mut self, now: Nanos, station: usize, arrived: bool) {
        let counters = Counters { sent: 1, lost: u32::from(!arrived), dropped: 0 };
        self.late.push_back((now + ms(self.settings.lag_ms), station, counters));
    }

    /// The queue has dropped one.
    pub fn dropped(&mut self, now: Nanos, station: usize) {
        let dropped = u32::from(self.settings.queue);
        let counters = Counters { dropped, ..Counters::default() };
        self.late.push_back((now + ms(self.settings.lag_ms), station, counters));
    }

    /// When somebody looks again.
    pub fn next(&self) -> Nanos {
        self.looked + ms(self.settings.period_ms)
    }

    /// What is told of each station, in their order, if somebody looks now.
    pub fn look(&mut self, now: Nanos) -> Vec<Radio> {
        if self.next() > now {
            return Vec::new();
        }
        let counted = self.late.partition_point(|(at, ..)| *at <= now);
        for (_, station, counters) in self.late.drain(..counted) {
            let sums = &mut self.stations[station];
            sums.sent += counters.sent;
            sums.lost += counters.lost;
            sums.dropped += counters.dropped;
        }
        let from = std::mem::replace(&mut self.looked, now);
        let [from, to] = [from, now].map(Time::from_nanos);
        let lost_is = if self.settings.at_most { Count::AtMost } else { Count::Exact };
        let radio = |station: &mut Counters| {
            let Counters { sent, lost, dropped: queue_drops } = std::mem::take(station);
            Radio { from, to, sent, lost, lost_is, queued: 0, queue_drops }
        };
        self.stations.iter_mut().map(radio).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use linkem::MS;

    #[test]
    fn counters_are_late_and_each_packet_is_told_of_once() {
        let settings = Settings { lag_ms: 10.0, ..Settings::default() };
        let mut counts = Counts::new(&settings, 2);
        counts.left(50 * MS, 1, false);
        counts.left(50 * MS, 1, true);
        counts.left(95 * MS, 1, false);
        assert_eq!(counts.look(99 * MS), []);
        let lost = |radios: Vec<Radio>| radios.iter().map(|it| (it.sent, it.lost)).collect();
        let looks: [Vec<_>; 2] = [100, 200].map(|at| lost(counts.look(at * MS)));
        assert_eq!(looks, [vec![(0, 0), (2, 1)], vec![(0, 0), (1, 1)]]);
    }
}
