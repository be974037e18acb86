// SPDX-License-Identifier: GPL-2.0-or-later
//! What the daemon itself sends into the network: copies of lost packets, and echo
//! requests to clients.

use std::io;
use std::net::{IpAddr, SocketAddr};

use pemi_engine::{Direction, Fate, Ticket, Time};

use crate::config::Config;
use crate::datapath::bridge::Header;
use crate::datapath::capture::Interests;
use crate::datapath::inject::Injector;
use crate::datapath::probe::{self, Prober};
use crate::datapath::reporter::Reporter;
use crate::datapath::ways::Way;
use crate::sys::poll::Interest;

/// What an outlet counts.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Copies that could not be sent.
    pub copy_errors: u32,
    /// Echo requests and replies.
    pub probes: probe::Counters,
}

/// A way out of the router for what the daemon sends.
pub(crate) trait Outlet {
    /// Notes how packets to `destination` leave a bridge: by which port, and with which
    /// link-layer header.
    fn learn_port(&mut self, destination: IpAddr, port: u32, header: Option<Header>);

    /// Notes how packets between `ends` leave on their way up.
    fn learn_way(&mut self, ends: (SocketAddr, SocketAddr), way: Way);

    /// Sends a copy, at once or not at all.
    fn copy(&mut self, direction: Direction, packet: &[u8]);

    /// Sends a packet to a client by this interface (0: that of its route), at once or not at
    /// all; gives whether it was sent. With a ticket [`Outlet::reports`] will tell what became of
    /// it, if anybody can.
    fn send(&mut self, ticket: Option<Ticket>, packet: &[u8], device: u32) -> bool;

    /// Sends an echo request.
    fn probe(&mut self, now: Time, client: IpAddr);

    /// What to wait for: replies to echo requests, and reports.
    fn interests(&self, into: &mut Interests);

    /// Takes the replies that have come; of its interests, by their order, these were found ready.
    fn replies(&mut self, now: Time, ready: &[Interest], on_reply: impl FnMut(probe::Reply));

    /// Takes the reports that have come.
    fn reports(&mut self, on_report: impl FnMut(Ticket, Fate));

    /// What it has counted.
    fn counters(&self) -> Counters;
}

/// Sockets of the router's own.
#[derive(Debug)]
pub(crate) struct Sockets {
    injector: Injector,
    prober: Prober,
    reporter: Option<Reporter>,
}

impl Sockets {
    /// Opens them.
    pub fn open(config: &Config) -> io::Result<Sockets> {
        let injector = Injector::open(config.mode, config.mark)?;
        let reporter = match (config.reports(), injector.bridged()) {
            (false, _) => None,
            (true, None) => Some(Reporter::open(config.mark)?),
            (true, Some(socket)) => Some(Reporter::bridged(socket)?),
        };
        Ok(Sockets { reporter, injector, prober: Prober::open(config.mark)? })
    }
}

impl Outlet for Sockets {
    fn learn_port(&mut self, destination: IpAddr, port: u32, header: Option<Header>) {
        self.injector.learn_port(destination, port, header);
    }

    fn learn_way(&mut self, ends: (SocketAddr, SocketAddr), way: Way) {
        self.injector.learn_way(ends, way);
    }

    fn copy(&mut self, direction: Direction, packet: &[u8]) {
        self.injector.send(direction, packet);
    }

    fn send(&mut self, ticket: Option<Ticket>, packet: &[u8], device: u32) -> bool {
        match (ticket, &mut self.reporter) {
            (Some(ticket), Some(reporter)) => {
                reporter.send(ticket, packet, device, &mut self.injector)
            }
            _ => self.injector.send_by(device, packet),
        }
    }

    fn probe(&mut self, now: Time, client: IpAddr) {
        self.prober.send(now, client);
    }

    fn interests(&self, into: &mut Interests) {
        into.extend(self.prober.sockets().map(Interest::read));
        // Trouble is what a socket calls a report.
        into.extend(self.reporter.iter().flat_map(Reporter::sockets).map(Interest::end));
    }

    fn replies(&mut self, now: Time, ready: &[Interest], on_reply: impl FnMut(probe::Reply)) {
        self.prober.receive(now, ready, on_reply);
    }

    fn reports(&mut self, on_report: impl FnMut(Ticket, Fate)) {
        if let Some(reporter) = &mut self.reporter {
            reporter.receive(on_report);
        }
    }

    fn counters(&self) -> Counters {
        Counters { copy_errors: self.injector.errors(), probes: self.prober.counters() }
    }
}
