// SPDX-License-Identifier: GPL-2.0-or-later
//! By which interface and with which mark the packets of a flow leave the router.
//!
//! A copy on its way up is sent by the router itself, and the router's own packets
//! need not be routed as the clients' are: with rules for the incoming interface or
//! for marks, a VPN above all, they would leave by another network, with the client's
//! address. So a copy leaves as its original has, or not at all.

use std::hash::{BuildHasher, RandomState};
use std::net::SocketAddr;

/// Flows remembered; as many as an upload of each of the default `max_flows` needs.
const FLOWS: usize = 1024;
/// Places that a flow may be remembered at.
const PLACES: usize = 4;

/// How a packet leaves the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Way {
    /// Index of the interface.
    pub device: u32,
    /// Its mark.
    pub mark: u32,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    /// A keyed hash of both ends: nobody can look for two flows with the same one.
    flow: u64,
    way: Way,
    used: u32,
}

/// The ways of the flows that were in use last.
#[derive(Debug)]
pub struct Ways {
    known: Box<[Option<Known>]>,
    hasher: RandomState,
    clock: u32,
}

impl Default for Ways {
    fn default() -> Self {
        let known = vec![None; FLOWS].into_boxed_slice();
        Ways { known, hasher: RandomState::new(), clock: 0 }
    }
}

impl Ways {
    /// A packet between these ends has gone this way.
    pub fn learn(&mut self, ends: (SocketAddr, SocketAddr), way: Way) {
        self.clock = self.clock.wrapping_add(1);
        let (flow, clock) = (self.hasher.hash_one(ends), self.clock);
        let idle = |known: &Option<Known>| known.map_or(u32::MAX, |k| clock.wrapping_sub(k.used));
        let place = places(flow)
            .find(|place| self.known[*place].is_some_and(|known| known.flow == flow))
            .or_else(|| places(flow).max_by_key(|place| idle(&self.known[*place])));
        if let Some(place) = place {
            self.known[place] = Some(Known { flow, way, used: clock });
        }
    }

    /// The way that packets between these ends go.
    pub fn find(&self, ends: (SocketAddr, SocketAddr)) -> Option<Way> {
        let flow = self.hasher.hash_one(ends);
        let mut found = places(flow).filter_map(|place| self.known[place]);
        found.find(|known| known.flow == flow).map(|known| known.way)
    }
}

fn places(flow: u64) -> impl Iterator<Item = usize> {
    (0..PLACES).map(move |step| (flow as usize).wrapping_add(step) % FLOWS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_in_use_are_known_and_the_others_make_room() {
        let ends = |n: u16| {
            (SocketAddr::from(([10, 0, 0, 1], n)), SocketAddr::from(([192, 0, 2, 9], 443)))
        };
        let way = |n: u16| Way { device: u32::from(n), mark: 0x100 };
        let mut ways = Ways::default();
        assert_eq!(ways.find(ends(7)), None);
        for n in 1..20_000 {
            ways.learn(ends(1), way(1));
            ways.learn(ends(n), way(n));
            assert_eq!(ways.find(ends(n)), Some(way(n)));
        }
        assert_eq!(ways.find(ends(1)), Some(way(1)));
        assert_eq!(ways.find(ends(2)), None, "it has made room");
        ways.learn(ends(1), way(9));
        assert_eq!(ways.find(ends(1)), Some(way(9)), "routes change");
    }
}
