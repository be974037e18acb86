// SPDX-License-Identifier: GPL-2.0-or-later
//! The engine, and what a router around it knows: which packets it showed and which
//! ones it keeps. Every call is checked against that.

use std::net::{IpAddr, SocketAddr};

use pemi_engine::{
    Action, Config, Count, Direction, Engines, Event, Fate, Handle, Nanos, Radio, SEC, Station,
    Ticket, Time, Verdict,
};

use super::packets::{Flow, Long};
use crate::udp::ends;

/// Beyond the router everything may be held for so much longer.
const BOTH_DIRECTIONS_CAP: Nanos = 3;
/// No caller waits longer for a timeout.
const PATIENCE: Nanos = 10 * SEC;
/// Timeouts that may fall due within one step: a flow's next one is seldom less than
/// 10 us away, and [`PATIENCE`] is short of what is due often.
const ROUNDS: u32 = 20_000;
/// Bytes of a packet that tell it from others, nearly always.
const PRINTED: usize = 72;

struct Held {
    handle: u32,
    since: Time,
}

/// A packet that was shown; its bytes are in [`Model::bytes`].
struct Shown {
    direction: Direction,
    print: u64,
    start: usize,
    len: usize,
}

/// Client, server, and which of them has been heard.
struct Known {
    client: SocketAddr,
    server: SocketAddr,
    up: bool,
    down: bool,
}

pub(super) struct Model {
    engine: Engines,
    /// Whether the caller keeps its side.
    good: bool,
    config: Config,
    /// The longest that anything may be held: the largest cap configured yet.
    cap: Nanos,
    /// Both directions were looked after at some time.
    both: bool,
    /// Reports were wanted at some time.
    reported: bool,
    /// Counters are of one engine since they were zero.
    countable: bool,
    counted: u64,
    counted_copies: u64,
    now: Time,
    handle: u32,
    held: Vec<Held>,
    bytes: Vec<u8>,
    shown: Vec<Shown>,
    flows: Vec<Known>,
    pub newest_ticket: u32,
    pub packets: u32,
    pub copies: u64,
    pub held_ever: u64,
}

fn cap(config: &Config) -> Nanos {
    config.hold_cap * if config.both_directions { BOTH_DIRECTIONS_CAP } else { 1 }
}

impl Model {
    pub fn new(config: Config, good: bool) -> Model {
        Model {
            engine: Engines::new(config.clone(), 1),
            good,
            cap: cap(&config),
            both: config.both_directions,
            reported: config.reports,
            config,
            countable: true,
            counted: 0,
            counted_copies: 0,
            now: Time::from_nanos(5 * SEC as u64),
            handle: 6,
            held: Vec::new(),
            bytes: Vec::new(),
            shown: Vec::new(),
            flows: Vec::new(),
            newest_ticket: 0,
            packets: 0,
            copies: 0,
            held_ever: 0,
        }
    }

    pub fn short(&mut self, flow: &Flow, direction: Direction, size: usize, spin: bool) {
        let start = self.bytes.len();
        flow.short(&mut self.bytes, direction, size, u64::from(self.packets), spin);
        self.show(direction, start);
    }

    pub fn long(
        &mut self,
        flow: &Flow,
        direction: Direction,
        kind: (u32, Long, bool),
        size: usize,
    ) {
        let start = self.bytes.len();
        flow.long(&mut self.bytes, direction, kind, size, u64::from(self.packets));
        self.show(direction, start);
    }

    pub fn packet(&mut self, direction: Direction, packet: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packet);
        self.show(direction, start);
    }

    /// Shows the engine the packet at the end of `bytes`.
    fn show(&mut self, direction: Direction, start: usize) {
        let known = self.note(direction, start);
        let packet = &self.bytes[start..];
        self.packets += 1;
        self.counted += 1;
        self.handle = self.handle.wrapping_add(1);
        let verdict = self.engine.on_packet(self.now, direction, packet, Handle(self.handle));
        if verdict == Verdict::Hold {
            let sent = direction == Direction::Down && !self.both;
            assert!(!sent || self.reported, "only client packets are held");
            assert!(known, "held before both ends have spoken");
            self.held.push(Held { handle: self.handle, since: self.now });
            self.held_ever += u64::from(!sent);
        }
        self.after();
    }

    /// Writes a packet down. Whether both ends of its flow have been heard by now.
    fn note(&mut self, direction: Direction, start: usize) -> bool {
        let packet = &self.bytes[start..];
        let len = packet.len();
        self.shown.push(Shown { direction, print: print(packet), start, len });
        let Some((client, server)) = between(direction, packet) else { return false };
        let known = self.flows.iter().position(|f| f.client == client && f.server == server);
        let n = known.unwrap_or_else(|| {
            self.flows.push(Known { client, server, up: false, down: false });
            self.flows.len() - 1
        });
        let flow = &mut self.flows[n];
        flow.up |= direction == Direction::Up;
        flow.down |= direction == Direction::Down;
        flow.up && flow.down
    }

    /// Time goes by, and a good caller keeps the timeouts.
    pub fn pass(&mut self, span: Nanos) {
        let until = self.now + span;
        let mut rounds = 0;
        while self.good
            && let Some(at) = self.engine.next_timeout().filter(|at| *at <= until)
        {
            self.now = at.max(self.now);
            self.timeout();
            rounds += 1;
            assert!(rounds < ROUNDS, "timeouts that never end");
        }
        self.now = until;
    }

    pub fn pass_until_due(&mut self) {
        if let Some(at) = self.engine.next_timeout() {
            self.pass(at.since(self.now).clamp(0, PATIENCE));
        }
    }

    pub fn timeout(&mut self) {
        self.engine.on_timeout(self.now);
        if self.good {
            let next = self.engine.next_timeout();
            assert!(next.is_none_or(|at| at > self.now), "due again at once: {next:?}");
        }
        self.after();
    }

    /// A bad caller's clock.
    pub fn time_is(&mut self, nanos: u64) {
        if !self.good {
            self.now = Time::from_nanos(nanos);
        }
    }

    pub fn probe_reply(&mut self, client: IpAddr, rtt: Nanos) {
        self.engine.on_probe_reply(self.now, client, rtt);
        self.after();
    }

    /// A report of a packet that is under way, or of none.
    pub fn report(&mut self, ticket: u32, lost: bool) {
        let fate = if lost { Fate::Lost } else { Fate::Arrived };
        self.engine.on_report(self.now, Ticket(ticket), fate);
        self.after();
    }

    /// The access point tells of a client: what it has counted since the last second, or that
    /// its station came, went or is elsewhere.
    pub fn station(&mut self, client: IpAddr, how: u8) {
        let station = match how & 3 {
            0 => Station::Joined,
            1 => Station::Gone,
            2 => Station::Moved,
            _ => {
                let (from, to, lost) = (self.now - SEC, self.now, u32::from(how >> 2));
                let (lost_is, queued) = (Count::Exact, 0);
                let radio = Radio { from, to, sent: 90, lost, lost_is, queued, queue_drops: 1 };
                self.engine.on_radio(client, radio);
                return self.after();
            }
        };
        self.engine.on_station(self.now, client, station);
        self.after();
    }

    pub fn set_config(&mut self, config: Config) {
        self.cap = self.cap.max(cap(&config));
        self.both |= config.both_directions;
        self.reported |= config.reports;
        // A mirror that goes takes its counters along.
        self.countable &= config.both_directions == self.config.both_directions;
        self.config = config.clone();
        self.engine.set_config(self.now, config);
        self.after();
    }

    pub fn release_all(&mut self) {
        self.engine.release_all(self.now);
        self.fetch(usize::MAX);
        assert!(self.held.is_empty(), "{} packets are still held", self.held.len());
        assert_eq!(self.engine.stats(self.now).held_now, 0);
    }

    pub fn reset(&mut self) {
        self.engine.reset();
        (self.counted, self.counted_copies) = (0, 0);
        // Copies that were not fetched are of the time before.
        self.countable &= self.good;
        self.look();
    }

    /// Figures are in keeping with each other and with what was seen.
    pub fn look(&mut self) {
        let stats = self.engine.stats(self.now);
        assert_eq!(stats.packets_down + stats.packets_up, self.counted);
        assert!(stats.packets_malformed <= stats.packets_other);
        assert!(stats.packets_quic + stats.packets_other <= self.counted);
        assert!(stats.flows_protected <= stats.flows_active);
        assert!(stats.cache_bytes <= stats.cache_limit);
        let outcomes = self.engine.outcomes(self.now);
        assert!(outcomes.iter().all(|it| it.bytes >= 500_000 && it.busy > 0));
        let flows = self.engine.flows(self.now);
        let named = flows.map(|flow| assert!(!flow.state.name().is_empty())).count();
        assert!(named <= self.config.max_flows);
        assert!(stats.flows_active + stats.flows_bypassed <= named as u64);
        if self.countable {
            assert!(self.counted_copies <= stats.resent_packets, "copies that are not counted");
        }
        if self.good {
            assert_eq!(stats.held_now, self.held.len() as u64);
        }
    }

    fn after(&mut self) {
        if !self.good {
            return;
        }
        self.fetch(usize::MAX);
        if let Some(oldest) = self.held.first() {
            let age = self.now.since(oldest.since);
            assert!(age <= self.cap, "held for {age} ns, the cap is {}", self.cap);
        }
    }

    /// Fetches at most `limit` actions and does them.
    pub fn fetch(&mut self, limit: usize) {
        for _ in 0..limit {
            let Some(action) = self.engine.next_action() else { break };
            match action {
                Action::Release(Handle(handle)) => {
                    let held = self.held.iter().position(|held| held.handle == handle);
                    self.held.remove(held.expect("released, but not held"));
                }
                Action::Inject { direction, packet } => {
                    self.copies += 1;
                    self.counted_copies += 1;
                    assert!(direction == Direction::Down || self.both);
                    copied(&self.shown, &self.bytes, direction, packet);
                    let (client, server) = between(direction, packet).expect("a datagram");
                    // A server that has not answered may be greeted again.
                    let greeting = direction == Direction::Up;
                    assert!(may(&self.flows, greeting, |flow| {
                        flow.client == client && flow.server == server
                    }));
                }
                Action::Send { ticket, packet, original } => {
                    copied(&self.shown, &self.bytes, Direction::Down, packet);
                    self.newest_ticket = ticket.map_or(self.newest_ticket, |Ticket(ticket)| ticket);
                    if let Some(Handle(handle)) = original {
                        let held = self.held.iter().position(|held| held.handle == handle);
                        self.held.remove(held.expect("sent, but not held"));
                    } else {
                        self.copies += 1;
                        self.counted_copies += 1;
                    }
                }
                Action::Probe { client } => {
                    let spoken = may(&self.flows, false, |flow| flow.client.ip() == client);
                    assert!(spoken, "a probe of a stranger's choice");
                }
                Action::Watch { client } => {
                    let spoken = may(&self.flows, false, |flow| flow.client.ip() == client);
                    assert!(spoken, "asked about because of a stranger");
                }
                Action::Event(Event { client, server, .. }) => {
                    let told = |flow: &Known| flow.client == client && flow.server == server;
                    let spoken = may(&self.flows, false, told);
                    assert!(spoken, "told before both ends have spoken");
                }
            }
        }
    }

    /// The end: everything goes on, once.
    pub fn end(&mut self) {
        self.look();
        self.release_all();
        self.fetch(usize::MAX);
        self.look();
    }
}

/// A copy is of a packet that went the same way; its bytes name the flow.
fn copied(shown: &[Shown], bytes: &[u8], direction: Direction, packet: &[u8]) {
    let print = print(packet);
    let same = |s: &Shown| {
        s.print == print
            && s.direction == direction
            && bytes.get(s.start..s.start + s.len) == Some(packet)
    };
    assert!(shown.iter().rev().any(same), "a copy of nothing that was shown");
}

/// Whether something may be done for one of the flows `wanted`; a `greeting` is of a
/// client that has not got an answer yet.
fn may(flows: &[Known], greeting: bool, wanted: impl Fn(&Known) -> bool) -> bool {
    flows.iter().any(|flow| wanted(flow) && flow.up && (flow.down || greeting))
}

fn between(direction: Direction, packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let (from, to) = ends(packet)?;
    Some(match direction {
        Direction::Up => (from, to),
        Direction::Down => (to, from),
    })
}

/// Nearly always another for another packet: headers and number make the difference.
fn print(packet: &[u8]) -> u64 {
    let (words, rest) = packet.get(..PRINTED).unwrap_or(packet).as_chunks::<8>();
    let step = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let start = packet.len() as u64;
    let sum = words.iter().fold(start, |sum, word| step(sum, u64::from_ne_bytes(*word)));
    rest.iter().fold(sum, |sum, byte| step(sum, u64::from(*byte)))
}
