// SPDX-License-Identifier: GPL-2.0-or-later
//! Shows the datagrams of a log to the engine and notes what it makes of them.

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr};

use linkem::{MS, Nanos};
use pemi_engine::{Action, Config, Direction, Engine, EventKind, Handle, Rule, Rules, Time};

use crate::router::{HEADERS, write_headers};

use super::log::Seen;

/// The hop's round trip for a small packet, and what a client takes to answer a ping.
pub const BARE_ROUND_TRIP: Nanos = 2_040_000;
const PING: Nanos = BARE_ROUND_TRIP + MS / 10;
/// What is due then still happens after the last datagram.
const END: Nanos = 100 * MS;
const CLIENT: Ipv4Addr = Ipv4Addr::new(192, 168, 1, 100);
const SERVER: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);

/// A connection and what the engine made of it.
#[derive(Clone, Debug, Default)]
pub struct Flow {
    /// Packets to the client; the engine's numbers begin with 1.
    pub sent: Vec<Sent>,
    /// Datagrams of the client with short headers.
    pub replies: Vec<Reply>,
    /// Losses inferred.
    pub marks: Vec<Mark>,
    /// When a copy was sent, and of which packet.
    pub copies: Vec<(Nanos, u64)>,
}

/// A packet to the client.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// When the router saw it.
    pub at: Nanos,
    /// Whether the hop lost it.
    pub lost: bool,
}

/// A datagram of the client.
#[derive(Clone, Copy, Debug)]
pub struct Reply {
    /// When the router saw it.
    pub at: Nanos,
    /// Bytes of payload.
    pub len: usize,
}

/// A loss inferred.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    /// When.
    pub at: Nanos,
    /// The packet taken for lost.
    pub packet: u64,
    /// The reply that gave it away.
    pub reply: usize,
}

/// Ports of client and server.
type Ports = (u16, u16);

struct Player {
    engine: Engine,
    flows: BTreeMap<Ports, Flow>,
    pings: VecDeque<(Nanos, IpAddr)>,
    packet: Vec<u8>,
    shown: u32,
}

/// Replays a log from its beginning; the flows are in the order of their ports.
pub fn replay(log: &[Seen]) -> Vec<Flow> {
    // Nothing is ever repaired here, so the engine would take the hop for clean and let go.
    let without = Rules::default().with(Rule::Doubt);
    // The packets of a log have gone in their order.
    let config =
        Config { events: true, reorders: false, release_after: None, without, ..Config::default() };
    let mut player = Player {
        engine: Engine::new(config, 1),
        flows: BTreeMap::new(),
        pings: VecDeque::new(),
        packet: Vec::new(),
        shown: 0,
    };
    for seen in log {
        player.advance(seen.at);
        player.show(seen);
    }
    player.advance(log.last().map_or(0, |seen| seen.at) + END);
    player.flows.into_values().collect()
}

impl Player {
    /// Everything that is due before `until`.
    fn advance(&mut self, until: Nanos) {
        loop {
            let timeout = self.engine.next_timeout().map(Time::as_nanos);
            let ping = self.pings.front().map(|(at, _)| *at);
            let Some(now) = [timeout, ping].into_iter().flatten().min().filter(|at| *at < until)
            else {
                return;
            };
            if ping == Some(now) {
                let (_, client) = self.pings.pop_front().expect("it was just looked at");
                self.engine.on_probe_reply(Time::from_nanos(now), client, PING as i64);
            } else {
                self.engine.on_timeout(Time::from_nanos(now));
            }
            self.take_actions(now);
        }
    }

    fn show(&mut self, seen: &Seen) {
        self.write_packet(seen);
        let flow = self.flows.entry((seen.client_port, seen.server_port)).or_default();
        match seen.direction {
            Direction::Down => flow.sent.push(Sent { at: seen.at, lost: seen.lost }),
            Direction::Up if seen.head.first().is_some_and(|first| first & 0x80 == 0) => {
                flow.replies.push(Reply { at: seen.at, len: seen.len });
            }
            Direction::Up => {}
        }
        let now = Time::from_nanos(seen.at);
        // Offline: whatever the verdict, the log knows when the server had it.
        self.engine.on_packet(now, seen.direction, &self.packet, Handle(self.shown));
        self.shown += 1;
        self.take_actions(seen.at);
    }

    fn take_actions(&mut self, now: Nanos) {
        let Player { engine, flows, pings, .. } = self;
        while let Some(action) = engine.next_action() {
            match action {
                Action::Probe { client } => pings.push_back((now + PING, client)),
                Action::Event(event) => {
                    let ports = (event.client.port(), event.server.port());
                    let flow = flows.get_mut(&ports).expect("only what was shown is a flow");
                    match event.kind {
                        EventKind::Loss { packet } => {
                            let reply = flow.replies.len() - 1;
                            flow.marks.push(Mark { at: now, packet, reply });
                        }
                        EventKind::Resend { packet } => flow.copies.push((now, packet)),
                        _ => {}
                    }
                }
                Action::Release(_)
                | Action::Inject { .. }
                | Action::Send { .. }
                | Action::Watch { .. } => {}
            }
        }
    }

    /// The datagram in an IP packet; what the log does not tell of it is zeros.
    fn write_packet(&mut self, seen: &Seen) {
        let client = (CLIENT, seen.client_port);
        let server = (SERVER, seen.server_port);
        let out = &mut self.packet;
        write_headers(out, seen.direction, client, server, self.shown, seen.len);
        out.extend_from_slice(&seen.head[..seen.head.len().min(seen.len)]);
        out.resize(HEADERS + seen.len, 0);
    }
}
