// SPDX-License-Identifier: GPL-2.0-or-later
//! What the daemon itself sends into the network: copies of lost packets, and echo
//! requests to clients.

use std::io;
use std::net::{IpAddr, SocketAddr};

use pemi_engine::{Direction, Time};

use crate::config::Config;
use crate::datapath::bridge::Header;
use crate::datapath::capture::Interests;
use crate::datapath::inject::Injector;
use crate::datapath::probe::{self, Prober};
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

    /// Sends an echo request.
    fn probe(&mut self, now: Time, client: IpAddr);

    /// What to wait for: replies to echo requests.
    fn interests(&self, into: &mut Interests);

    /// Takes the replies that have come.
    fn replies(&mut self, now: Time, on_reply: impl FnMut(probe::Reply));

    /// What it has counted.
    fn counters(&self) -> Counters;
}

/// Sockets of the router's own.
#[derive(Debug)]
pub(crate) struct Sockets {
    injector: Injector,
    prober: Prober,
}

impl Sockets {
    /// Opens them.
    pub fn open(config: &Config) -> io::Result<Sockets> {
        Ok(Sockets {
            injector: Injector::open(config.mode, config.mark)?,
            prober: Prober::open(config.mark)?,
        })
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

    fn probe(&mut self, now: Time, client: IpAddr) {
        self.prober.send(now, client);
    }

    fn interests(&self, into: &mut Interests) {
        into.extend(self.prober.sockets().map(Interest::read));
    }

    fn replies(&mut self, now: Time, on_reply: impl FnMut(probe::Reply)) {
        self.prober.receive(now, on_reply);
    }

    fn counters(&self) -> Counters {
        Counters { copy_errors: self.injector.errors(), probes: self.prober.counters() }
    }
}
