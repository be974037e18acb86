// SPDX-License-Identifier: GPL-2.0-or-later
//! One end-to-end flow: its hosts, and what became of its packets.

use std::net::Ipv4Addr;
use std::time::Instant;

use linkem::Nanos;

use crate::client::Client;
use crate::endpoint::Endpoint;
use crate::host::Host;
use crate::quinn::Quinn;
use crate::random::Random;
use crate::scenario::{ClientKind, Flow, ms};
use crate::tcp;
use crate::truth::Truth;

/// One end-to-end flow.
pub struct Line {
    /// The server.
    pub server: Host,
    /// The client.
    pub client: Host,
    /// When it starts.
    pub start: Nanos,
    /// Whether the engine sees it.
    pub helped: bool,
    /// Whether it is TCP.
    pub tcp: bool,
    /// The client's number on the Wi-Fi.
    pub station: usize,
    /// Datagrams sent by client and server.
    pub numbers: [u32; 2],
    /// What became of its packets on the hop.
    pub truth: Truth,
    /// The same of the WAN on the way up.
    pub uplink: Truth,
    /// Packets dropped or lost before the router.
    pub wan_dropped: u64,
}

impl Line {
    /// Whether the receiver, whichever it is, has everything.
    pub fn is_done(&self) -> bool {
        self.client.done_at().or(self.server.done_at()).is_some()
    }
}

/// A flow before it starts.
pub fn line(epoch: Instant, flow: &Flow, seed: u64) -> Line {
    let app = flow.app();
    let start = ms(flow.start_ms);
    let mut random = Random::new(seed);
    let (server_seed, client_seed) = (random.next(), random.next());
    let server: Box<dyn Endpoint> = match flow.client {
        ClientKind::Tcp => Box::new(tcp::Server::new(app)),
        _ => Box::new(Quinn::server(epoch, app, flow, server_seed)),
    };
    let client: Box<dyn Endpoint> = match flow.client {
        ClientKind::Tcp => Box::new(tcp::Client::new(app, start)),
        kind => match Client::new(kind, app, client_seed) {
            Some(client) if flow.skips_every > 0 => Box::new(client.with_skips(flow.skips_every)),
            Some(client) => Box::new(client),
            None => Box::new(Quinn::client(epoch, app, flow.cc, client_seed, start)),
        },
    };
    Line {
        server: Host::new(server, 0, 0, 0, 0),
        client: Host::new(client, start, ms(flow.wake_ms), ms(flow.batch_ms), random.next())
            .with_handshake(ms(flow.handshake_ms))
            .with_replies(ms(flow.reply_ms))
            .with_pauses(flow.pause_percent, ms(flow.pause_ms)),
        start,
        helped: flow.helped && flow.client != ClientKind::Tcp,
        tcp: flow.client == ClientKind::Tcp,
        station: 0,
        numbers: [0; 2],
        truth: Truth::default(),
        uplink: Truth::default(),
        wan_dropped: 0,
    }
}

/// The address of a client with this number.
pub fn address(client: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 1, 100u8.wrapping_add(client))
}
