// SPDX-License-Identifier: GPL-2.0-or-later
//! A router around the engine. It keeps what is held, and checks on every
//! step what the engine promises: nothing dropped, nothing altered, nothing
//! held for too long.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::net::IpAddr;

use pemi_engine::{
    Action, Config, Direction, Engines, Event, EventKind, Fate, Handle, Nanos, Stats, Ticket, Time,
    Verdict,
};

use crate::packets::{Flow, flow_of};

/// Copies beyond the configured share that a flow may have.
const ALLOWANCE: u64 = 48;

/// Something that left the router, or that the engine wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Done {
    /// A packet went on.
    Pass(Direction, Vec<u8>),
    /// A copy was sent.
    Copy(Direction, Vec<u8>),
    /// A client is to be probed.
    Probe(IpAddr),
    /// Something was noticed.
    Event(Event),
}

/// A call into the engine, to be made again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// `on_packet`.
    Packet(Time, Direction, Vec<u8>),
    /// `on_timeout`.
    Timeout(Time),
    /// `on_probe_reply`.
    ProbeReply(Time, IpAddr, Nanos),
}

#[derive(Debug)]
struct Held {
    since: Time,
    direction: Direction,
    packet: Vec<u8>,
}

#[derive(Debug, Default)]
struct Seen {
    starts: u64,
    /// By direction.
    packets: [u64; 2],
    copies: [u64; 2],
    /// Losses that a copy was seen to repair.
    repairs: [u64; 2],
}

/// Beyond the router everything takes longer.
const BOTH_DIRECTIONS_CAP: Nanos = 3;

fn cap(config: &Config) -> Nanos {
    let factor = if config.both_directions { BOTH_DIRECTIONS_CAP } else { 1 };
    config.hold_cap.saturating_mul(factor)
}

/// How the router is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Manners {
    /// Time goes forwards, timeouts are kept, actions are fetched at once.
    Good,
    /// Anything goes: only what holds whatever the caller does is checked.
    Bad,
}

/// The engine and what a router keeps for it.
#[derive(Debug)]
pub struct Router {
    /// The engine itself.
    pub engine: Engines,
    manners: Manners,
    config: Config,
    /// The longest that anything may be held: the largest cap configured yet.
    cap: Nanos,
    /// Both directions were looked after at some time.
    both: bool,
    /// Packets to clients may have been held at some time: some are reported, or change places.
    holds_down: bool,
    percent: u64,
    next_handle: u32,
    held: BTreeMap<u32, Held>,
    /// Packets shown. A packet names its flow and direction, so the same bytes are
    /// the same of both.
    shown: HashSet<Vec<u8>>,
    flows: HashMap<Flow, Seen>,
    /// The calls made, if they are wanted.
    pub record: Option<Vec<Input>>,
    /// What was sent and somebody may report of, oldest first, with the bytes.
    pub tickets: Vec<(Ticket, Vec<u8>)>,
    /// Clients whose access point was to be asked.
    pub watched: Vec<IpAddr>,
    /// The client's packets held since the beginning.
    pub held_ever: u64,
    /// The longest that a packet was held.
    pub longest: Nanos,
}

impl Router {
    /// A router with a new engine.
    pub fn new(config: Config, seed: u64, manners: Manners) -> Router {
        Router {
            engine: Engines::new(config.clone(), seed),
            manners,
            cap: cap(&config),
            both: config.both_directions,
            holds_down: config.reports || config.reorders,
            percent: u64::from(config.resend_percent),
            config,
            next_handle: 7,
            held: BTreeMap::new(),
            shown: HashSet::new(),
            flows: HashMap::new(),
            record: None,
            tickets: Vec::new(),
            watched: Vec::new(),
            held_ever: 0,
            longest: 0,
        }
    }

    /// A packet comes in; gives the verdict and does the rest into `done`.
    pub fn packet(
        &mut self,
        now: Time,
        direction: Direction,
        packet: &[u8],
        done: &mut Vec<Done>,
    ) -> Verdict {
        if direction == Direction::Down || self.both {
            self.shown.insert(packet.to_vec());
        }
        if let Some(flow) = flow_of(packet, direction) {
            self.flows.entry(flow).or_default().packets[direction as usize] += 1;
        }
        self.note(|| Input::Packet(now, direction, packet.to_vec()));
        let handle = self.next_handle;
        self.next_handle = handle.wrapping_add(1);
        let verdict = self.engine.on_packet(now, direction, packet, Handle(handle));
        match verdict {
            Verdict::Hold => {
                // Packets that are sent in another way, or change places, are not held for long.
                let down = direction == Direction::Down && !self.both;
                assert!(!down || self.holds_down, "only client packets are held");
                self.held_ever += u64::from(!down);
                let held = Held { since: now, direction, packet: packet.to_vec() };
                self.held.insert(handle, held);
            }
            Verdict::Forward | Verdict::Bypass => done.push(Done::Pass(direction, packet.to_vec())),
        }
        self.after(now, done);
        verdict
    }

    /// Keeps every timeout up to `now`.
    pub fn advance(&mut self, now: Time, done: &mut Vec<Done>) {
        let mut rounds = 0;
        while let Some(at) = self.engine.next_timeout().filter(|at| *at <= now) {
            self.timeout(at, done);
            rounds += 1;
            assert!(rounds < 100_000, "timeouts that never end");
        }
    }

    /// Calls the engine's `on_timeout`.
    pub fn timeout(&mut self, now: Time, done: &mut Vec<Done>) {
        self.note(|| Input::Timeout(now));
        self.engine.on_timeout(now);
        if self.manners == Manners::Good {
            let next = self.engine.next_timeout();
            assert!(next.is_none_or(|at| at > now), "{next:?} is due again at {now:?}");
        }
        self.after(now, done);
    }

    /// The reply to a probe.
    pub fn probe_reply(&mut self, now: Time, client: IpAddr, rtt: Nanos, done: &mut Vec<Done>) {
        self.note(|| Input::ProbeReply(now, client, rtt));
        self.engine.on_probe_reply(now, client, rtt);
        self.after(now, done);
    }

    /// A report of something that was sent.
    pub fn report(&mut self, now: Time, ticket: Ticket, fate: Fate, done: &mut Vec<Done>) {
        self.engine.on_report(now, ticket, fate);
        self.after(now, done);
    }

    /// Other settings.
    pub fn set_config(&mut self, now: Time, config: Config, done: &mut Vec<Done>) {
        self.cap = self.cap.max(cap(&config));
        self.both |= config.both_directions;
        self.holds_down |= config.reports || config.reorders;
        self.percent = self.percent.max(u64::from(config.resend_percent));
        self.config = config.clone();
        self.engine.set_config(now, config);
        self.after(now, done);
    }

    /// Networks are not to be helped.
    pub fn stand_back(&mut self, now: Time, networks: u8, done: &mut Vec<Done>) {
        self.engine.stand_back(now, networks);
        self.after(now, done);
    }

    /// Lets everything go, and checks that it went.
    pub fn release_all(&mut self, now: Time, done: &mut Vec<Done>) {
        self.engine.release_all(now);
        self.drain(now, usize::MAX, done);
        assert!(self.held.is_empty(), "still held: {:?}", self.held.keys());
        assert_eq!(self.engine.stats(now).held_now, 0);
    }

    /// The engine's figures.
    pub fn stats(&self, now: Time) -> Stats {
        self.engine.stats(now)
    }

    /// Packets held now.
    pub fn held(&self) -> usize {
        self.held.len()
    }

    fn note(&mut self, input: impl FnOnce() -> Input) {
        if let Some(record) = &mut self.record {
            record.push(input());
        }
    }

    fn after(&mut self, now: Time, done: &mut Vec<Done>) {
        if self.manners == Manners::Bad {
            return;
        }
        self.drain(now, usize::MAX, done);
        if let Some(oldest) = self.held.values().next() {
            let age = now.since(oldest.since);
            assert!(age <= self.cap, "held for {age} ns, the cap is {}", self.cap);
        }
    }

    /// Fetches at most `limit` actions and does them.
    pub fn drain(&mut self, now: Time, limit: usize, done: &mut Vec<Done>) {
        for _ in 0..limit {
            match self.engine.next_action() {
                None => break,
                Some(Action::Release(Handle(handle))) => {
                    let held = self.held.remove(&handle).expect("released, but not held");
                    self.longest = self.longest.max(now.since(held.since));
                    done.push(Done::Pass(held.direction, held.packet));
                }
                Some(Action::Inject { direction, packet }) => {
                    assert!(direction == Direction::Down || self.both);
                    assert!(self.shown.contains(packet), "a copy of nothing that was shown");
                    let copy = packet.to_vec();
                    self.copied(direction, &copy);
                    done.push(Done::Copy(direction, copy));
                }
                Some(Action::Send { ticket, packet, original }) => {
                    assert!(self.shown.contains(packet), "nothing that was shown is sent");
                    let packet = packet.to_vec();
                    self.tickets.extend(ticket.map(|ticket| (ticket, packet.clone())));
                    if let Some(Handle(handle)) = original {
                        let held = self.held.remove(&handle).expect("sent, but not held");
                        assert_eq!(held.packet, packet, "sent in the place of another packet");
                        done.push(Done::Pass(Direction::Down, packet));
                    } else {
                        self.copied(Direction::Down, &packet);
                        done.push(Done::Copy(Direction::Down, packet));
                    }
                }
                Some(Action::Probe { client }) => done.push(Done::Probe(client)),
                Some(Action::Watch { client }) => {
                    self.watched.retain(|known| *known != client);
                    self.watched.push(client);
                }
                Some(Action::Event(event)) => {
                    let flow = Flow { client: event.client, server: event.server };
                    let seen = self.flows.entry(flow).or_default();
                    match event.kind {
                        EventKind::FlowStart => seen.starts += 1,
                        EventKind::Repair { .. } => seen.repairs[event.direction as usize] += 1,
                        _ => {}
                    }
                    done.push(Done::Event(event));
                }
            }
        }
    }

    /// A copy was sent: only to a QUIC flow, and within its share.
    fn copied(&mut self, direction: Direction, packet: &[u8]) {
        let Some(flow) = flow_of(packet, direction) else { return };
        let Some(seen) = self.flows.get_mut(&flow) else { return };
        let n = direction as usize;
        let (packets, repairs, copies) = (seen.packets[n], seen.repairs[n], &mut seen.copies[n]);
        *copies += 1;
        if self.manners == Manners::Good && self.config.events {
            assert!(seen.starts > 0, "a copy to {flow:?}, which is not QUIC");
            let limit = ALLOWANCE * seen.starts + packets * self.percent / 100 + repairs;
            assert!(*copies <= limit, "{copies} copies of {packets} packets");
        }
    }
}
