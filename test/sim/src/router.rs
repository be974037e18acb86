// SPDX-License-Identifier: GPL-2.0-or-later
//! The router: the engine as it is, fed with IP packets, and what it decides
//! translated back to the simulator's parcels.

use std::collections::{HashMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use bytes::Bytes;
use linkem::Nanos;
use pemi_engine::{
    Action, Config, Direction, Engines, Event, Fate, FlowState, Handle, Outcome, Radio, Station,
    Ticket, Time, Verdict,
};

use crate::endpoint::{Datagram, Ecn};
use crate::gathering::Gathering;

/// IPv4 and UDP headers.
pub const HEADERS: usize = 28;

/// A datagram between the two links.
#[derive(Clone, Debug)]
pub struct Parcel {
    /// Its flow.
    pub flow: usize,
    /// Its number among the flow's datagrams of its direction.
    pub number: u32,
    /// Sent by the router in place of the sender.
    pub copy: bool,
    /// Under this name the access point reports of it.
    pub ticket: Option<Ticket>,
    /// What it carries.
    pub datagram: Datagram,
}

/// What the router does next.
#[derive(Debug)]
pub enum Order {
    /// Sends a parcel on.
    Send(Direction, Parcel),
    /// Sends an echo request to a client.
    Echo(IpAddr),
}

/// What of a parcel its packet at the router does not show.
#[derive(Clone, Copy)]
struct Unseen {
    number: u32,
    ecn: Ecn,
}

/// The engine and what it holds.
pub struct Router {
    engine: Engines,
    clients: Vec<Ipv4Addr>,
    /// Packets that gather before they are read; none if each is read at once.
    gathering: Option<Gathering<(Direction, Parcel)>>,
    held: HashMap<u32, (Direction, Parcel)>,
    next_handle: u32,
    /// Of both directions, by flow and IP identification, what a packet does not show: a copy
    /// has it from the original.
    sent: [HashMap<(usize, u16), Unseen>; 2],
    orders: VecDeque<Order>,
    packet: Vec<u8>,
    /// Packets that were held.
    pub held_total: u64,
    /// What the engine told, if it was asked to.
    pub events: Vec<Event>,
}

impl Router {
    /// A router for flows whose clients have these addresses, which lets packets gather or does not.
    pub fn new(config: Config, seed: u64, clients: Vec<Ipv4Addr>, gathers: bool) -> Router {
        Router {
            engine: Engines::new(config, seed),
            clients,
            gathering: gathers.then(Gathering::default),
            held: HashMap::new(),
            next_handle: 0,
            sent: Default::default(),
            orders: VecDeque::new(),
            packet: Vec::new(),
            held_total: 0,
            events: Vec::new(),
        }
    }

    /// A parcel has arrived.
    pub fn receive(&mut self, now: Nanos, direction: Direction, parcel: Parcel) {
        let Some(gathering) = &mut self.gathering else {
            return self.read(now, direction, parcel);
        };
        gathering.push(now, (direction, parcel));
        if gathering.is_awake() {
            self.read_gathered(now);
        }
    }

    /// Reads what has gathered.
    fn read_gathered(&mut self, now: Nanos) {
        let parcels = self.gathering.as_mut().map(|gathering| gathering.read(now));
        for (came, (direction, parcel)) in parcels.into_iter().flatten() {
            self.engine.waited((now - came) as i64);
            self.read(now, direction, parcel);
        }
        if let Some(gathering) = &mut self.gathering {
            gathering.done(now);
        }
    }

    /// The daemon reads a parcel.
    fn read(&mut self, now: Nanos, direction: Direction, parcel: Parcel) {
        self.write_packet(direction, &parcel);
        let handle = self.next_handle;
        self.next_handle += 1;
        let Parcel { flow, number, datagram: Datagram { ecn, .. }, .. } = parcel;
        self.sent[direction as usize].insert((flow, number as u16), Unseen { number, ecn });
        match self.engine.on_packet(time(now), direction, &self.packet, Handle(handle)) {
            Verdict::Forward | Verdict::Bypass => {
                self.orders.push_back(Order::Send(direction, parcel));
            }
            Verdict::Hold => {
                // What is sent in another way is not held for long.
                self.held_total += u64::from(direction == Direction::Up);
                self.held.insert(handle, (direction, parcel));
            }
        }
        self.take_actions();
    }

    /// An echo came back.
    pub fn echo(&mut self, now: Nanos, client: IpAddr, rtt: Nanos) {
        self.engine.on_probe_reply(time(now), client, rtt as i64);
        self.take_actions();
    }

    /// A report of something that was sent.
    pub fn report(&mut self, now: Nanos, ticket: Ticket, fate: Fate) {
        self.engine.on_report(time(now), ticket, fate);
        self.take_actions();
    }

    /// What the access point has counted.
    pub fn counted(&mut self, client: IpAddr, radio: Radio) {
        self.engine.on_radio(client, radio);
    }

    /// A client is with another access point.
    pub fn moved(&mut self, now: Nanos, client: IpAddr) {
        self.engine.on_station(time(now), client, Station::Moved);
    }

    /// When [`Router::on_timeout`] is wanted.
    pub fn next_timeout(&self) -> Option<Nanos> {
        let gathered = self.gathering.as_ref().and_then(Gathering::wakes_at);
        let engine = self.engine.next_timeout().map(|at| at.as_nanos());
        [engine, gathered].into_iter().flatten().min()
    }

    /// That time has come. Packets go before timers.
    pub fn on_timeout(&mut self, now: Nanos) {
        self.read_gathered(now);
        self.engine.on_timeout(time(now));
        self.take_actions();
    }

    /// The next thing to do.
    pub fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// The engine's counters.
    pub fn stats(&self, now: Nanos) -> pemi_engine::Stats {
        self.engine.stats(time(now))
    }

    /// Whether a flow is one of those that are helped.
    pub fn helps(&self, now: Nanos, flow: usize) -> bool {
        let client = SocketAddr::from((self.clients[flow], client_port(flow)));
        let mut flows = self.engine.flows(time(now));
        flows.any(|it| it.client == client && it.state != FlowState::Alone)
    }

    /// What came of downloads that are over, for the comparison.
    pub fn outcomes(&mut self, now: Nanos) -> Vec<Outcome> {
        let outcomes = self.engine.outcomes(time(now));
        self.take_actions();
        outcomes
    }

    /// Flows of these networks are left alone from now on.
    pub fn stand_back(&mut self, now: Nanos, networks: u8) {
        self.engine.stand_back(time(now), networks);
        self.take_actions();
    }

    fn take_actions(&mut self) {
        let Router { engine, held, orders, sent, clients, events, .. } = self;
        while let Some(action) = engine.next_action() {
            match action {
                Action::Release(handle) => {
                    let (direction, parcel) =
                        held.remove(&handle.0).expect("held packets are released once");
                    orders.push_back(Order::Send(direction, parcel));
                }
                Action::Inject { direction, packet } => {
                    let flow = flow_of(clients, direction, packet);
                    let parcel = copy(&sent[direction as usize], flow, packet, None);
                    orders.push_back(Order::Send(direction, parcel));
                }
                Action::Send { ticket, packet, original } => {
                    let parcel = match original {
                        Some(original) => {
                            let (_, parcel) =
                                held.remove(&original.0).expect("what is sent instead was held");
                            Parcel { ticket, ..parcel }
                        }
                        None => {
                            let flow = flow_of(clients, Direction::Down, packet);
                            copy(&sent[Direction::Down as usize], flow, packet, ticket)
                        }
                    };
                    orders.push_back(Order::Send(Direction::Down, parcel));
                }
                Action::Probe { client } => orders.push_back(Order::Echo(client)),
                // Everybody's counters are looked at anyway.
                Action::Watch { .. } => {}
                Action::Event(event) => events.push(event),
            }
        }
    }

    /// The parcel as a router sees it. Its number travels as IP identification.
    fn write_packet(&mut self, direction: Direction, parcel: &Parcel) {
        let client = (self.clients[parcel.flow], client_port(parcel.flow));
        let server = (Ipv4Addr::new(203, 0, 113, 1), 443);
        let payload = &parcel.datagram.bytes;
        write_headers(&mut self.packet, direction, client, server, parcel.number, payload.len());
        self.packet.extend_from_slice(payload);
    }
}

/// Starts an IPv4 and UDP packet between the two ends; the payload follows.
pub fn write_headers(
    out: &mut Vec<u8>,
    direction: Direction,
    client: (Ipv4Addr, u16),
    server: (Ipv4Addr, u16),
    identification: u32,
    payload_len: usize,
) {
    let len = (HEADERS + payload_len) as u16;
    let (from, to) = match direction {
        Direction::Down => (server, client),
        Direction::Up => (client, server),
    };
    out.clear();
    out.extend_from_slice(&[0x45, 0]);
    out.extend_from_slice(&len.to_be_bytes());
    out.extend_from_slice(&(identification as u16).to_be_bytes());
    // Don't fragment, TTL, UDP, no checksum: the kernel has checked it.
    out.extend_from_slice(&[0x40, 0, 63, 17, 0, 0]);
    out.extend_from_slice(&from.0.octets());
    out.extend_from_slice(&to.0.octets());
    out.extend_from_slice(&from.1.to_be_bytes());
    out.extend_from_slice(&to.1.to_be_bytes());
    out.extend_from_slice(&(len - 20).to_be_bytes());
    out.extend_from_slice(&[0, 0]);
}

/// What the router sends in place of the sender.
fn copy(
    sent: &HashMap<(usize, u16), Unseen>,
    flow: usize,
    packet: &[u8],
    ticket: Option<Ticket>,
) -> Parcel {
    let identification = u16::from_be_bytes([packet[4], packet[5]]);
    let Unseen { number, ecn } = sent[&(flow, identification)];
    let datagram = Datagram { bytes: Bytes::copy_from_slice(&packet[HEADERS..]), ecn };
    Parcel { flow, number, copy: true, ticket, datagram }
}

fn client_port(flow: usize) -> u16 {
    40_000 + flow as u16
}

/// The flow whose client has this port.
pub fn flow_of_port(port: u16) -> usize {
    usize::from(port - client_port(0))
}

fn flow_of(clients: &[Ipv4Addr], direction: Direction, packet: &[u8]) -> usize {
    let at = if direction == Direction::Down { 22 } else { 20 };
    let flow = usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]) - client_port(0));
    debug_assert!(flow < clients.len());
    flow
}

fn time(now: Nanos) -> Time {
    Time::from_nanos(now)
}
