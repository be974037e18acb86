// SPDX-License-Identifier: GPL-2.0-or-later
//! A router with clients of which an access point reports.

use pemi_engine::{Config, Count, Direction, Fate, MS, Nanos, Radio, SEC, Ticket, Time};
use pemi_engine_tests::packets::{Flow, Long, V1, long, number, short};
use pemi_engine_tests::router::{Done, Manners, Router};

pub fn config() -> Config {
    Config { events: true, reports: true, ..Config::default() }
}

/// A router, the flows behind it, and what it has done since somebody looked.
pub struct Bench {
    pub router: Router,
    pub now: Time,
    pub done: Vec<Done>,
}

impl Bench {
    /// With flows whose handshake is over.
    pub fn new(config: Config, flows: u32) -> Bench {
        let router = Router::new(config, 1, Manners::Good);
        let mut bench = Bench { router, now: Time::ZERO + SEC, done: Vec::new() };
        for n in 0..flows {
            for (direction, kind, body) in [
                (Direction::Up, Long::Initial, 1200),
                (Direction::Down, Long::Handshake, 900),
                (Direction::Up, Long::Handshake, 60),
            ] {
                bench.show(n, direction, &long(V1, kind, body));
                bench.pass(MS);
            }
            for extra in 0..4 {
                bench.show(n, Direction::Up, &short(1, 900 + extra, 40));
            }
        }
        bench
    }

    pub fn show(&mut self, flow: u32, direction: Direction, payload: &[u8]) {
        let packet = Flow::v4(flow).datagram(direction, payload);
        self.router.packet(self.now, direction, &packet, &mut self.done);
    }

    pub fn pass(&mut self, span: Nanos) {
        self.now = self.now + span;
        self.router.advance(self.now, &mut self.done);
    }

    pub fn report(&mut self, ticket: Ticket, fate: Fate) {
        self.router.report(self.now, ticket, fate, &mut self.done);
    }

    /// The access point was asked, and has counted so many losses in the last 100 ms.
    pub fn counted(&mut self, flow: u32, lost: u32) {
        let (from, to) = (self.now - 100 * MS, self.now);
        let lost_is = Count::Exact;
        let radio = Radio { from, to, sent: 90, lost, lost_is, queued: 0, queue_drops: 0 };
        self.router.engine.on_radio(Flow::v4(flow).client.ip(), radio);
    }

    /// Everything under way has arrived.
    pub fn all_arrived(&mut self) {
        for (ticket, _) in std::mem::take(&mut self.router.tickets) {
            self.report(ticket, Fate::Arrived);
        }
    }

    /// Numbers of the packets that went on one way since this was asked last, and of the copies.
    pub fn wire(&mut self, direction: Direction) -> (Vec<u64>, Vec<u64>) {
        let (mut passed, mut copies) = (Vec::new(), Vec::new());
        self.done.retain(|done| {
            let (list, packet) = match done {
                Done::Pass(way, packet) if *way == direction => (&mut passed, packet),
                Done::Copy(way, packet) if *way == direction => (&mut copies, packet),
                _ => return true,
            };
            list.extend(number(&packet[28..]));
            false
        });
        (passed, copies)
    }
}
