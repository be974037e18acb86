// SPDX-License-Identifier: GPL-2.0-or-later
//! Both directions of a Wi-Fi hop: mac80211's queues in front of an emulated channel.

use std::collections::VecDeque;

use pemi_air::hop::{Hop, Way};
use pemi_air::settings::Settings;

use crate::fq::FairQueue;
use crate::pipe::{Counts, Dropped, Packet};
use crate::queue::CodelTimes;
use crate::{Direction, MS, Nanos};

/// CoDel as mac80211 sets it: a radio that collects aggregates needs more than 5 ms.
const CODEL: CodelTimes = CodelTimes { target: 20 * MS, interval: 100 * MS };
/// For a receiver that gets less than [`SLOW_MBIT`] for each station there is.
const CODEL_SLOW: CodelTimes = CodelTimes { target: 50 * MS, interval: 300 * MS };
const SLOW_MBIT: f64 = 6.0;
/// mac80211's limit for all that wait at a radio: what CoDel leaves is far below it.
const QUEUE_BYTES: u64 = 4 << 20;

/// CoDel's times for a receiver that gets so many Mbit/s, one of so many stations.
pub fn codel_times(mbit: f64, stations: usize) -> CodelTimes {
    if mbit < SLOW_MBIT * stations as f64 { CODEL_SLOW } else { CODEL }
}

/// A Wi-Fi hop; downstream is [`Direction::Ab`].
#[derive(Debug)]
pub struct Wifi<T> {
    hop: Hop<Packet<T>>,
    /// By client and direction.
    queues: Vec<[FairQueue<Packet<T>>; 2]>,
    arrived: [VecDeque<(Nanos, T)>; 2],
    dropped: [VecDeque<(T, Dropped)>; 2],
    counts: [Counts; 2],
}

impl<T> Wifi<T> {
    /// An idle hop of so many clients.
    pub fn new(settings: &Settings, clients: usize, seed: u64, start: Nanos) -> Wifi<T> {
        let stations = clients + settings.neighbours.len();
        let times = codel_times(settings.link.goodput_mbit(), stations);
        let queue = || FairQueue::with_codel(QUEUE_BYTES, times);
        Wifi {
            hop: Hop::new(settings, clients, seed, start),
            queues: (0..clients).map(|_| [queue(), queue()]).collect(),
            arrived: Default::default(),
            dropped: Default::default(),
            counts: Default::default(),
        }
    }

    /// A packet of or for a client enters at `at`, or now if that is past.
    pub fn push(&mut self, at: Nanos, direction: Direction, client: usize, packet: Packet<T>) {
        self.advance(at);
        let side = direction as usize;
        let counts = &mut self.counts[side];
        counts.packets += 1;
        counts.bytes += u64::from(packet.bytes);
        counts.exempt += u64::from(!packet.lossy);
        let (bytes, flow) = (packet.bytes, packet.flow);
        let dropped = &mut self.dropped[side];
        self.queues[client][side].push(at, flow, packet, bytes, |packet| {
            counts.queue_dropped += 1;
            dropped.push_back((packet.item, Dropped::Queue));
        });
        self.hand_down(at);
    }

    /// Lets everything happen that happens until `now`.
    pub fn advance(&mut self, now: Nanos) {
        while let Some(at) = self.hop.next_event().filter(|at| *at <= now) {
            self.hop.advance(at);
            self.collect();
            self.hand_down(at);
        }
        self.hop.advance(now);
        self.collect();
    }

    /// Gives the channel what it has room for.
    fn hand_down(&mut self, at: Nanos) {
        let Wifi { hop, queues, dropped, counts, .. } = self;
        for (client, queues) in queues.iter_mut().enumerate() {
            for (side, queue) in queues.iter_mut().enumerate() {
                let way = [Way::Down, Way::Up][side];
                while !queue.is_empty() && hop.has_room(client, way) {
                    let packet = queue.pop(at, |packet: Packet<T>| {
                        counts[side].queue_dropped += 1;
                        dropped[side].push_back((packet.item, Dropped::Queue));
                    });
                    let Some(packet) = packet else { break };
                    hop.push(at, client, way, packet.network_bytes, packet);
                }
            }
        }
        self.collect();
    }

    fn collect(&mut self) {
        while let Some(outcome) = self.hop.pop_outcome() {
            let side = outcome.way as usize;
            let item = outcome.item.item;
            if outcome.arrived {
                self.arrived[side].push_back((outcome.at, item));
            } else {
                self.counts[side].lost += 1;
                self.dropped[side].push_back((item, Dropped::Lost));
            }
        }
    }

    /// When to call [`Wifi::advance`] and [`Wifi::pop_due`] next, if nothing enters.
    pub fn next_deadline(&self) -> Option<Nanos> {
        let arrived = self.arrived.iter().filter_map(|arrived| arrived.front());
        arrived.map(|(at, _)| *at).chain(self.hop.next_event()).min()
    }

    /// A packet that has come out of this direction, with the time that it did.
    pub fn pop_due(&mut self, direction: Direction) -> Option<(Nanos, T)> {
        self.arrived[direction as usize].pop_front()
    }

    /// A packet that will not come out.
    pub fn pop_dropped(&mut self, direction: Direction) -> Option<(T, Dropped)> {
        self.dropped[direction as usize].pop_front()
    }

    /// How often a client has come to another access point by now.
    pub fn moves(&self, client: usize, now: Nanos) -> u32 {
        self.hop.moves(client, now)
    }

    /// Whether a client is with an access point, and not on its way to another one.
    pub fn is_there(&self, client: usize, now: Nanos) -> bool {
        self.hop.is_there(client, now)
    }

    /// Empties both directions of what is still under way.
    pub fn drain(&mut self) -> [Vec<T>; 2] {
        let mut left = [Vec::new(), Vec::new()];
        for (_, way, packet) in self.hop.under_way() {
            left[way as usize].push(packet.item);
        }
        for queues in &mut self.queues {
            for (side, queue) in queues.iter_mut().enumerate() {
                left[side].extend(queue.drain().map(|packet| packet.item));
            }
        }
        for (side, arrived) in self.arrived.iter_mut().enumerate() {
            left[side].extend(arrived.drain(..).map(|(_, item)| item));
        }
        left
    }

    /// What has gone through a direction so far.
    pub fn counts(&self, direction: Direction) -> Counts {
        self.counts[direction as usize]
    }

    /// The most bytes that ever waited at once in front of the channel.
    pub fn max_queue_bytes(&self, direction: Direction) -> u64 {
        let queues = self.queues.iter().map(|queues| &queues[direction as usize]);
        queues.map(FairQueue::max_bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(item: u32, flow: u32) -> Packet<u32> {
        Packet { item, bytes: 1_264, network_bytes: 1_250, lossy: true, flow }
    }

    fn settings(name: &str) -> Settings {
        Settings::preset(name).unwrap()
    }

    #[test]
    fn a_load_below_the_air_s_rate_passes_in_both_directions() {
        let mut wifi = Wifi::new(&settings("clean"), 1, 1, 0);
        for number in 0..2_000 {
            let at = u64::from(number) * MS;
            wifi.push(at, Direction::Ab, 0, packet(number, 1));
            wifi.push(at, Direction::Ba, 0, packet(number, 1));
        }
        wifi.advance(3_000 * MS);
        for direction in Direction::ALL {
            let came: Vec<u32> =
                std::iter::from_fn(|| wifi.pop_due(direction)).map(|(_, item)| item).collect();
            assert_eq!(came, (0..2_000).collect::<Vec<_>>());
        }
        assert_eq!(wifi.next_deadline(), None);
    }

    #[test]
    fn a_standing_queue_is_cut_by_codel_and_another_flow_passes_it() {
        let mut wifi = Wifi::new(&settings("far"), 1, 1, 0);
        // 10 Mbit/s into what carries about five.
        let mut sparse = Vec::new();
        for number in 0..10_000 {
            let at = u64::from(number) * MS;
            wifi.push(at, Direction::Ab, 0, packet(number, 1));
            if number % 100 == 0 {
                wifi.push(at, Direction::Ab, 0, packet(1_000_000 + number, 2));
            }
            while let Some((came, item)) = wifi.pop_due(Direction::Ab) {
                if let Some(sent) = item.checked_sub(1_000_000) {
                    sparse.push(came - u64::from(sent) * MS);
                }
            }
        }
        let counts = wifi.counts(Direction::Ab);
        assert!(counts.queue_dropped > 50, "{counts:?}");
        sparse.sort_unstable();
        assert!(sparse[sparse.len() / 2] < 60 * MS, "{}", sparse[sparse.len() / 2] / MS);
        let left = wifi.drain();
        let settled = counts.lost + counts.queue_dropped;
        assert!(counts.packets > settled + left[0].len() as u64);
    }

    #[test]
    fn every_packet_is_accounted_for() {
        for name in Settings::presets().into_keys() {
            let mut wifi = Wifi::new(&settings(&name), 2, 3, 0);
            let (mut came, mut gone) = (0, 0);
            for number in 0..3_000 {
                let at = u64::from(number) * MS;
                let client = number as usize % 2;
                wifi.push(at, Direction::Ab, client, packet(number, 1));
                wifi.push(at, Direction::Ba, client, packet(number, 1));
                for direction in Direction::ALL {
                    came += std::iter::from_fn(|| wifi.pop_due(direction)).count();
                    gone += std::iter::from_fn(|| wifi.pop_dropped(direction)).count();
                }
            }
            let left: usize = wifi.drain().iter().map(Vec::len).sum();
            assert_eq!(came + gone + left, 6_000, "{name}");
        }
    }
}
