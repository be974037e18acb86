// SPDX-License-Identifier: GPL-2.0-or-later
//! Which packets of a capture the daemon would have seen, and which way they went.

use std::collections::VecDeque;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use pemi_engine::{Direction, MS, Nanos, Time};

/// A packet seen twice within this time was captured twice: the router needs far
/// less to forward it, and a local round trip, after which it could have been
/// sent again, seldom takes less.
const TWICE_WITHIN: Nanos = 5 * MS;
/// At most so many are remembered: 100,000 a second for as long.
const REMEMBERED: usize = 512;

/// A network of clients, as `192.168.1.0/24`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl FromStr for Network {
    type Err = String;

    fn from_str(text: &str) -> Result<Network, String> {
        let (address, bits) = text.split_once('/').map_or((text, None), |(a, b)| (a, Some(b)));
        let network = address.parse().ok().and_then(|address: IpAddr| {
            let all = if address.is_ipv4() { 32 } else { 128 };
            let bits = bits.map_or(Some(all), |bits| bits.parse().ok())?;
            (bits <= all).then_some(Network { address, bits })
        });
        network.ok_or_else(|| {
            format!("'{text}' is not valid; allowed: an address, or a network as 192.168.1.0/24")
        })
    }
}

impl Network {
    fn contains(self, other: IpAddr) -> bool {
        match (self.address, other) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                let differ = u64::from(a.to_bits() ^ b.to_bits());
                differ >> (32 - self.bits) == 0
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                let differ = a.to_bits() ^ b.to_bits();
                differ.checked_shr(128 - u32::from(self.bits)).unwrap_or(0) == 0
            }
            _ => false,
        }
    }
}

/// Tells clients from servers.
#[derive(Clone, Debug)]
pub struct Sides {
    /// UDP ports of the servers.
    pub ports: Vec<u16>,
    /// Where the clients are; empty: the ports decide alone.
    pub clients: Vec<Network>,
}

impl Sides {
    /// The direction of a datagram; `None` if it is not between a client and a
    /// server, or if there is no telling them apart.
    pub fn direction(&self, source: SocketAddr, destination: SocketAddr) -> Option<Direction> {
        let server = |end: SocketAddr| self.ports.contains(&end.port()) && !self.is_client(end);
        let client = |end: SocketAddr| match self.clients.is_empty() {
            true => !self.ports.contains(&end.port()),
            false => self.is_client(end),
        };
        if client(source) && server(destination) {
            Some(Direction::Up)
        } else if server(source) && client(destination) {
            Some(Direction::Down)
        } else {
            None
        }
    }

    fn is_client(&self, end: SocketAddr) -> bool {
        self.clients.iter().any(|network| network.contains(end.ip()))
    }
}

/// Finds packets that were captured twice, coming in and going out.
#[derive(Debug, Default)]
pub struct Twice {
    recent: VecDeque<(Time, u64)>,
}

impl Twice {
    /// Whether this datagram was here a moment ago.
    pub fn seen(&mut self, now: Time, ends: (SocketAddr, SocketAddr), payload: &[u8]) -> bool {
        while self.recent.front().is_some_and(|(at, _)| now.since(*at) > TWICE_WITHIN) {
            self.recent.pop_front();
        }
        // Not the IP header: on its way the hop limit goes down.
        let mut hasher = DefaultHasher::new();
        (ends, payload).hash(&mut hasher);
        let hash = hasher.finish();
        if self.recent.iter().any(|(_, other)| *other == hash) {
            return true;
        }
        if self.recent.len() == REMEMBERED {
            self.recent.pop_front();
        }
        self.recent.push_back((now, hash));
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(source: &str, destination: &str) -> (SocketAddr, SocketAddr) {
        (source.parse().unwrap(), destination.parse().unwrap())
    }

    #[test]
    fn networks() {
        let within = |network: &str, address: &str| {
            network.parse::<Network>().unwrap().contains(address.parse().unwrap())
        };
        assert!(within("192.168.1.0/24", "192.168.1.255"));
        assert!(!within("192.168.1.0/24", "192.168.2.0"));
        assert!(within("10.0.0.1", "10.0.0.1") && !within("10.0.0.1", "10.0.0.0"));
        assert!(within("0.0.0.0/0", "255.255.255.255") && !within("0.0.0.0/0", "::1"));
        assert!(within("fd00::/8", "fdff::1") && !within("fd00::/8", "fe80::1"));
        assert!(within("::/0", "fe80::1") && !within("::1", "::2"));
        for bad in ["10.0.0.0/33", "::/129", "10.0.0.0/", "lan", "", "10.0.0.0/255"] {
            assert!(bad.parse::<Network>().unwrap_err().contains("192.168.1.0/24"), "{bad}");
        }
    }

    #[test]
    fn ports_tell_the_direction() {
        let sides = Sides { ports: vec![443, 8443], clients: vec![] };
        let direction = |source, destination| {
            let (source, destination) = ends(source, destination);
            sides.direction(source, destination)
        };
        assert_eq!(direction("192.0.2.1:443", "10.0.0.2:50000"), Some(Direction::Down));
        assert_eq!(direction("[::1]:50000", "[::2]:8443"), Some(Direction::Up));
        assert_eq!(direction("192.0.2.1:443", "10.0.0.2:8443"), None);
        assert_eq!(direction("192.0.2.1:53", "10.0.0.2:50000"), None);
    }

    #[test]
    fn networks_come_first() {
        let clients = vec!["10.0.0.0/8".parse().unwrap()];
        let sides = Sides { ports: vec![443], clients };
        let direction = |source, destination| {
            let (source, destination) = ends(source, destination);
            sides.direction(source, destination)
        };
        assert_eq!(direction("192.0.2.1:443", "10.0.0.2:443"), Some(Direction::Down));
        assert_eq!(direction("10.0.0.2:443", "192.0.2.1:443"), Some(Direction::Up));
        // The same packet before the address was translated.
        assert_eq!(direction("192.0.2.1:443", "198.51.100.7:50000"), None);
        // Between two clients; and on no server's port.
        assert_eq!(direction("10.0.0.2:50000", "10.0.0.3:443"), None);
        assert_eq!(direction("10.0.0.2:50000", "192.0.2.1:53"), None);
    }

    #[test]
    fn the_second_sight_of_a_packet_is_known() {
        let mut twice = Twice::default();
        let flow = ends("192.0.2.1:443", "10.0.0.2:50000");
        let at = |micros: u64| Time::from_nanos(micros * 1000);
        assert!(!twice.seen(at(0), flow, b"a"));
        assert!(!twice.seen(at(10), flow, b"b"));
        assert!(twice.seen(at(20), flow, b"a"));
        assert!(!twice.seen(at(30), (flow.1, flow.0), b"a"));
        // Sent again by somebody.
        assert!(!twice.seen(at(5_021), flow, b"a"));
        for n in 0..2 * REMEMBERED {
            assert!(!twice.seen(at(6_000), flow, &n.to_be_bytes()));
        }
        assert_eq!(twice.recent.len(), REMEMBERED);
    }
}
