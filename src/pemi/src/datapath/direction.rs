// SPDX-License-Identifier: GPL-2.0-or-later
//! Which way a packet goes: towards the clients or away from them.

use std::ffi::CString;

use pemi_engine::{Direction, GONE, NETWORKS, SEC, Time};

use crate::sys::socket;

/// Knows the clients' interfaces and the servers' ports.
#[derive(Debug)]
pub struct Classifier {
    names: Vec<CString>,
    /// Their indexes, in the same order; 0: there is no such interface now.
    indexes: Vec<u32>,
    resolved: Time,
    ports: Vec<u16>,
}

impl Classifier {
    /// Looks the interfaces up. Those that do not exist are left out for now.
    pub fn new(devices: &[String], ports: &[u16], now: Time) -> Classifier {
        let names = devices.iter().filter_map(|name| CString::new(name.as_str()).ok()).collect();
        let mut classifier =
            Classifier { names, indexes: Vec::new(), resolved: now, ports: ports.to_vec() };
        classifier.resolve(now);
        classifier
    }

    /// The direction of a packet that came in by one interface and leaves by another, by
    /// their indexes (0: unknown). The ports decide where the interfaces do not.
    pub fn direction(
        &mut self,
        indev: u32,
        outdev: u32,
        ports: Option<(u16, u16)>,
        now: Time,
    ) -> Option<Direction> {
        if !self.names.is_empty()
            && !self.knows(indev)
            && !self.knows(outdev)
            && now.since(self.resolved) >= SEC
        {
            // An interface may have appeared, or have been made anew with another index.
            self.resolve(now);
        }
        match (self.knows(indev), self.knows(outdev)) {
            (false, true) => Some(Direction::Down),
            (true, false) => Some(Direction::Up),
            // The packet goes between two clients, or neither interface is known.
            _ => {
                let (source, destination) = ports?;
                match (self.ports.contains(&source), self.ports.contains(&destination)) {
                    (true, false) => Some(Direction::Down),
                    (_, true) => Some(Direction::Up),
                    (false, false) => None,
                }
            }
        }
    }

    /// The number of the client's network, if its interface is one of ours.
    pub fn network(&self, client: u32) -> Option<u8> {
        let at = self.indexes.iter().position(|index| *index == client && client != 0)?;
        u8::try_from(at).ok()
    }

    /// The numbers that this one's networks have in `other`. Without interfaces all clients are of one
    /// network.
    pub fn numbers_in(&self, other: &Classifier) -> [u8; NETWORKS as usize] {
        let mut numbers = [GONE; NETWORKS as usize];
        for (number, name) in numbers.iter_mut().zip(&self.names) {
            let at = other.names.iter().position(|it| it == name);
            *number = at.map_or(GONE, |at| (at as u8).min(NETWORKS - 1));
        }
        if self.names.is_empty() && other.names.is_empty() {
            numbers[0] = 0;
        }
        numbers
    }

    fn knows(&self, index: u32) -> bool {
        index != 0 && self.indexes.contains(&index)
    }

    fn resolve(&mut self, now: Time) {
        self.resolved = now;
        self.indexes.clear();
        self.indexes
            .extend(self.names.iter().map(|name| socket::interface_index(name).unwrap_or(0)));
    }
}

/// Those of the interfaces that do not exist.
pub fn absent(devices: &[String]) -> impl Iterator<Item = &String> {
    devices.iter().filter(|name| {
        CString::new(name.as_str()).ok().and_then(|name| socket::interface_index(&name)).is_none()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interfaces_come_first() {
        let mut classifier = Classifier::new(&["lo".into(), "absent0".into()], &[443], Time::ZERO);
        let lo = socket::interface_index(c"lo").unwrap();
        assert_eq!(
            classifier.direction(lo + 7, lo, Some((50000, 443)), Time::ZERO),
            Some(Direction::Down)
        );
        assert_eq!(
            classifier.direction(lo, lo + 7, Some((443, 50000)), Time::ZERO),
            Some(Direction::Up)
        );
        assert_eq!(classifier.direction(lo, 0, None, Time::ZERO), Some(Direction::Up));
        // Between two clients, one of which runs a server.
        assert_eq!(
            classifier.direction(lo, lo, Some((443, 50000)), Time::ZERO),
            Some(Direction::Down)
        );
    }

    #[test]
    fn networks_keep_their_numbers() {
        let devices = ["absent0".into(), "lo".into()];
        let mut classifier = Classifier::new(&devices, &[443], Time::ZERO);
        let lo = socket::interface_index(c"lo").unwrap();
        assert_eq!((classifier.network(lo), classifier.network(0)), (Some(1), None));
        assert_eq!(classifier.network(lo + 7), None);
        assert_eq!(classifier.direction(0, 0, None, Time::ZERO), None);
    }

    #[test]
    fn other_networks_come_before_them() {
        let classifier = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            Classifier::new(&names, &[443], Time::ZERO)
        };
        let numbers = |before: &[&str], now: &[&str]| {
            let numbers = classifier(before).numbers_in(&classifier(now));
            numbers.map(|number| Some(number).filter(|number| *number != GONE))
        };
        let starts = |before: &[&str], now: &[&str], with: &[Option<u8>]| {
            let numbers = numbers(before, now);
            let (first, others) = numbers.split_at(with.len());
            assert!(first == with && others.iter().all(Option::is_none), "{numbers:?}");
        };
        starts(&["lan", "guest"], &["iot", "lan", "guest"], &[Some(1), Some(2)]);
        starts(&["iot", "lan", "guest"], &["guest", "lan"], &[None, Some(1), Some(0)]);
        starts(&[], &[], &[Some(0)]);
        starts(&[], &["lan"], &[]);
        starts(&["lan"], &[], &[None]);
    }

    #[test]
    fn ports_come_second() {
        let mut classifier = Classifier::new(&[], &[443, 8443], Time::ZERO);
        let mut by_ports = |source, destination| {
            classifier.direction(1, 2, Some((source, destination)), Time::ZERO)
        };
        assert_eq!(by_ports(443, 50000), Some(Direction::Down));
        assert_eq!(by_ports(50000, 8443), Some(Direction::Up));
        assert_eq!(by_ports(443, 8443), Some(Direction::Up));
        assert_eq!(by_ports(50000, 50001), None);
        assert_eq!(classifier.direction(1, 2, None, Time::ZERO), None);
    }

    #[test]
    fn absent_interfaces_are_named() {
        let devices = ["lo".to_string(), "absent0".to_string()];
        assert_eq!(absent(&devices).collect::<Vec<_>>(), ["absent0"]);
    }
}
