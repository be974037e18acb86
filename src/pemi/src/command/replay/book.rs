// SPDX-License-Identifier: GPL-2.0-or-later
//! What is written down of each flow while a capture is played.

use std::collections::HashMap;
use std::net::SocketAddr;

use pemi_engine::{Direction, Event, EventKind, FlowInfo, FlowState, Nanos, Time};

/// Flows written down one by one; a port scan may have more.
const MAX_FLOWS: usize = 65_536;

/// The two ends of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ends {
    /// The client's.
    pub client: SocketAddr,
    /// The server's.
    pub server: SocketAddr,
}

/// One flow. Counts are of the whole capture, also if the engine has forgotten
/// the flow meanwhile and begun again.
#[derive(Clone, Copy, Debug)]
pub struct Flow {
    /// Its first packet.
    pub first: Time,
    /// Its last packet.
    pub last: Time,
    /// Packets to the client.
    pub packets_down: u64,
    /// Packets from the client.
    pub packets_up: u64,
    /// IP bytes to the client.
    pub bytes_down: u64,
    /// IP bytes from the client.
    pub bytes_up: u64,
    /// The last known local round trip, nanoseconds; 0: never known.
    pub local_rtt: Nanos,
    /// Losses inferred.
    pub inferred: u64,
    /// Holes that were filled after a copy would have been sent.
    pub repaired: u64,
    /// Copies that would have been sent.
    pub resent: u64,
    /// IP bytes of them.
    pub resent_bytes: u64,
    /// Episodes of holding.
    pub holds: u64,
    /// Packets that would have been held: the client's, and with both directions the
    /// server's as well.
    pub held: u64,
    /// What the engine last made of it.
    pub state: FlowState,
    /// Of the last packet to the client, as the engine counts.
    number: u64,
}

/// All flows of a capture.
#[derive(Debug, Default)]
pub struct Book {
    flows: HashMap<Ends, Flow>,
    /// Packets of flows for which there was no room.
    pub unlisted: u64,
}

impl Book {
    /// A packet; gives the number that the engine will count it as.
    pub fn packet(
        &mut self,
        now: Time,
        ends: Ends,
        direction: Direction,
        bytes: usize,
    ) -> Option<u64> {
        if self.flows.len() == MAX_FLOWS && !self.flows.contains_key(&ends) {
            self.unlisted += 1;
            return None;
        }
        let flow = self.flows.entry(ends).or_insert(Flow {
            first: now,
            last: now,
            packets_down: 0,
            packets_up: 0,
            bytes_down: 0,
            bytes_up: 0,
            local_rtt: 0,
            inferred: 0,
            repaired: 0,
            resent: 0,
            resent_bytes: 0,
            holds: 0,
            held: 0,
            state: FlowState::Unknown,
            number: 0,
        });
        flow.last = now;
        match direction {
            Direction::Up => {
                flow.packets_up += 1;
                flow.bytes_up += bytes as u64;
            }
            Direction::Down => {
                flow.packets_down += 1;
                flow.bytes_down += bytes as u64;
                flow.number += 1;
            }
        }
        Some(flow.number)
    }

    /// The last packet would have been held.
    pub fn held(&mut self, ends: Ends) {
        self.with(ends, |flow| flow.held += 1);
    }

    /// A copy of so many bytes would have been sent.
    pub fn copied(&mut self, ends: Ends, bytes: usize) {
        self.with(ends, |flow| {
            flow.resent += 1;
            flow.resent_bytes += bytes as u64;
        });
    }

    /// The engine has noticed something.
    pub fn event(&mut self, ends: Ends, event: &Event) {
        self.with(ends, |flow| match event.kind {
            EventKind::Loss { .. } => flow.inferred += 1,
            EventKind::Repair { .. } => flow.repaired += 1,
            EventKind::HoldStart => flow.holds += 1,
            // Should it come again, it is a new flow to the engine.
            EventKind::FlowEnd { .. } if event.direction == Direction::Down => flow.number = 0,
            EventKind::FlowEnd { .. }
            | EventKind::FlowStart
            | EventKind::Resend { .. }
            | EventKind::Abandon
            | EventKind::HoldEnd { .. } => {}
        });
    }

    /// What the engine says of a flow while it knows it.
    pub fn flow(&mut self, info: &FlowInfo) {
        self.with(Ends { client: info.client, server: info.server }, |flow| {
            flow.state = info.state;
            if info.local_rtt > 0 {
                flow.local_rtt = info.local_rtt;
            }
        });
    }

    fn with(&mut self, ends: Ends, act: impl FnOnce(&mut Flow)) {
        if let Some(flow) = self.flows.get_mut(&ends) {
            act(flow);
        }
    }

    /// All of them, those with most bytes first.
    pub fn flows(&self) -> Vec<(Ends, Flow)> {
        let mut flows: Vec<(Ends, Flow)> = self.flows.iter().map(|(e, f)| (*e, *f)).collect();
        flows.sort_unstable_by_key(|(ends, flow)| (std::cmp::Reverse(flow.bytes_down), *ends));
        flows
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends(n: u32) -> Ends {
        let client = SocketAddr::new(std::net::Ipv4Addr::from_bits(n).into(), 50_000);
        Ends { client, server: "192.0.2.1:443".parse().unwrap() }
    }

    #[test]
    fn numbers_are_those_of_the_engine() {
        let mut book = Book::default();
        let packet = |book: &mut Book, direction| book.packet(Time::ZERO, ends(1), direction, 100);
        assert_eq!(packet(&mut book, Direction::Up), Some(0));
        assert_eq!(packet(&mut book, Direction::Down), Some(1));
        assert_eq!(packet(&mut book, Direction::Down), Some(2));
        let end = EventKind::FlowEnd { packets_down: 2, inferred: 0, repaired: 0, resent: 0 };
        let event = |direction| {
            let Ends { client, server } = ends(1);
            Event { at: Time::ZERO, client, server, direction, kind: end }
        };
        // What goes up has numbers of its own.
        book.event(ends(1), &event(Direction::Up));
        assert_eq!(packet(&mut book, Direction::Up), Some(2));
        book.event(ends(1), &event(Direction::Down));
        assert_eq!(packet(&mut book, Direction::Down), Some(1));
        assert_eq!(book.flows()[0].1.packets_down, 3);
    }

    #[test]
    fn there_is_an_end_to_it() {
        let mut book = Book::default();
        for n in 0..MAX_FLOWS as u32 + 7 {
            book.packet(Time::ZERO, ends(n), Direction::Down, n as usize);
        }
        assert_eq!((book.flows().len(), book.unlisted), (MAX_FLOWS, 7));
        assert_eq!(book.flows()[0].0, ends(MAX_FLOWS as u32 - 1));
        assert!(book.packet(Time::ZERO, ends(0), Direction::Down, 1).is_some());
    }
}
