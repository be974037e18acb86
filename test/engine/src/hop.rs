// SPDX-License-Identifier: GPL-2.0-or-later
//! Downloads through the router to clients behind a hop that loses packets.
//!
//! The clients do what RFC 9000 says: a reply for every second packet, one at
//! once for whatever is out of order, one after 25 ms for the rest. A reply is
//! 36 bytes long and 2 more for each gap, which the sender's own repair takes
//! away after [`SENDER_REPAIR`].

use std::collections::{BTreeMap, BTreeSet, HashMap};

use pemi_engine::{Config, Direction, MS, Nanos, SEC, Stats, Time, US, Verdict};

use crate::packets::{Flow, Long, V1, long, number, short};
use crate::random::Random;
use crate::router::{Done, Input, Manners, Router};

/// When the sender has repaired a loss itself, and its range is pruned.
pub const SENDER_REPAIR: Nanos = 60 * MS;
const WAN_RTT: Nanos = 50 * MS;
/// Packets that a server sends before it has heard of any (RFC 9002, section 7.2).
const INITIAL_WINDOW: u64 = 10;
const MAX_ACK_DELAY: Nanos = 25 * MS;
const REPLY: usize = 36;
/// As long as one range and a byte, which a gap may make as well.
const FRAME: usize = 3;

/// What is simulated.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Connections at a time.
    pub flows: u32,
    /// Downstream packets of each after the handshake.
    pub packets: u64,
    /// Payload of a downstream packet.
    pub size: usize,
    /// Between two packets of a flow.
    pub gap: Nanos,
    /// Between the starts of two flows.
    pub stagger: Nanos,
    /// Share of packets to the clients that the hop loses.
    pub loss: f64,
    /// One way over the hop.
    pub delay: Nanos,
    /// From when on packets to the clients wait in a queue, and how long.
    pub queue: Option<(Time, Nanos)>,
    /// From when on clients take up to so long to reply.
    pub late: Option<(Time, Nanos)>,
    /// Replies wait at the router, which reads them so often; 0: at once.
    pub reads_every: Nanos,
    /// The engine is told for how long.
    pub tells_wait: bool,
    /// One in so many replies has a short frame of the client's own, of [`FRAME`] bytes; 0: none.
    pub frames: u64,
    /// Replies are filled up to one size.
    pub padded: bool,
    /// Clients reply at once to what is out of order.
    pub prompt: bool,
    /// Share of the replies that the hop loses.
    pub loss_up: f64,
    /// IPv6 instead of IPv4.
    pub ipv6: bool,
    /// Of everything random.
    pub seed: u64,
    /// The engine's settings.
    pub config: Config,
}

impl Default for Scene {
    fn default() -> Self {
        Scene {
            flows: 1,
            packets: 3000,
            size: 1200,
            gap: 1200 * US,
            stagger: 3 * MS,
            loss: 0.0,
            delay: MS,
            queue: None,
            late: None,
            reads_every: 0,
            tells_wait: true,
            frames: 0,
            padded: false,
            prompt: true,
            loss_up: 0.0,
            ipv6: false,
            seed: 1,
            config: Config { events: true, ..Config::default() },
        }
    }
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Numbered packets that the hop lost.
    pub lost: u64,
    /// Of these, those of which a copy arrived before the sender's repair.
    pub repaired: u64,
    /// Copies sent.
    pub copies: u64,
    /// Packets to clients that waited to change places, or to be sent in another way.
    pub waited: u64,
    /// Replies held.
    pub held: u64,
    /// The longest that one was held.
    pub longest: Nanos,
    /// The engine's own figures at the end.
    pub stats: Stats,
    /// Every call into the engine.
    pub inputs: Vec<Input>,
    /// Every action and packet that came of them.
    pub done: Vec<Done>,
}

enum Event {
    AtRouter(Direction, Vec<u8>),
    /// One that has waited so long.
    Read(Vec<u8>, Nanos),
    AtClient(u32, Vec<u8>, bool),
    Timer(u32, u64),
    ProbeReply(std::net::IpAddr, Nanos),
}

#[derive(Default)]
struct Client {
    largest: u64,
    missing: BTreeMap<u64, Time>,
    unacknowledged: u32,
    replies: u64,
    spoke: bool,
}

impl Client {
    /// Gaps that a reply shows: runs of missing packets.
    fn gaps(&mut self, now: Time) -> usize {
        self.missing.retain(|_, since| now.since(*since) < SENDER_REPAIR);
        let numbers: BTreeSet<u64> = self.missing.keys().copied().collect();
        numbers.iter().filter(|n| !numbers.contains(&(*n - 1))).count()
    }

    /// A packet arrives; true if it is to be acknowledged at once, as one is that is out of order,
    /// if the client is `prompt`.
    fn receive(&mut self, now: Time, number: u64, prompt: bool) -> bool {
        if number <= self.largest {
            let new = self.missing.remove(&number).is_some();
            self.unacknowledged += u32::from(new);
            return new && (prompt || self.unacknowledged >= 2);
        }
        let skipped = self.largest + 1..number;
        let in_order = skipped.is_empty();
        self.missing.extend(skipped.map(|n| (n, now)));
        self.largest = number;
        self.unacknowledged += 1;
        !in_order && prompt || self.unacknowledged >= 2
    }
}

struct Simulation {
    scene: Scene,
    router: Router,
    events: BTreeMap<(Time, u64), Event>,
    order: u64,
    random: Random,
    clients: Vec<Client>,
    lost: HashMap<(u32, u64), Time>,
    outcome: (u64, u64, u64),
    last_reply: Time,
    waited: u64,
    done: Vec<Done>,
}

/// Runs a scene to its end.
pub fn run(scene: &Scene) -> Outcome {
    let mut router = Router::new(scene.config.clone(), scene.seed, Manners::Good);
    router.record = Some(Vec::new());
    let mut simulation = Simulation {
        router,
        events: BTreeMap::new(),
        order: 0,
        random: Random(scene.seed),
        clients: (0..scene.flows).map(|_| Client::default()).collect(),
        lost: HashMap::new(),
        outcome: (0, 0, 0),
        last_reply: Time::ZERO,
        waited: 0,
        done: Vec::new(),
        scene: scene.clone(),
    };
    simulation.plan();
    simulation.run()
}

impl Simulation {
    fn flow(&self, n: u32) -> Flow {
        if self.scene.ipv6 { Flow::v6(n) } else { Flow::v4(n) }
    }

    fn at(&mut self, when: Time, event: Event) {
        self.order += 1;
        self.events.insert((when, self.order), event);
    }

    /// What clients and servers send of their own accord.
    fn plan(&mut self) {
        for n in 0..self.scene.flows {
            let flow = self.flow(n);
            let start = Time::ZERO + SEC + self.scene.stagger * Nanos::from(n);
            let up = flow.datagram(Direction::Up, &long(V1, Long::Initial, 1200));
            self.at(start, Event::AtRouter(Direction::Up, up));
            for (kind, body) in [(Long::Initial, 1180), (Long::Handshake, 900)] {
                let down = flow.datagram(Direction::Down, &long(V1, kind, body));
                self.at(start + WAN_RTT, Event::AtRouter(Direction::Down, down));
            }
            let mut when = start + 2 * WAN_RTT;
            for number in 1..=self.scene.packets {
                let payload = short(u64::from(n), number, self.scene.size);
                let down = flow.datagram(Direction::Down, &payload);
                self.at(when, Event::AtRouter(Direction::Down, down));
                when = when + self.scene.gap + self.random.below(100_000) as Nanos;
                if number == INITIAL_WINDOW {
                    when = when + WAN_RTT;
                }
            }
        }
    }

    fn run(mut self) -> Outcome {
        let mut now = Time::ZERO;
        loop {
            let next = self.events.first_key_value().map(|((at, _), _)| *at);
            // The router's own deadlines come first.
            let until = next.unwrap_or(now + SEC);
            if let Some(due) = self.router.engine.next_timeout().filter(|due| *due <= until) {
                let from = self.done.len();
                self.router.timeout(due, &mut self.done);
                self.act(due, from);
            } else if let Some(((at, _), event)) = self.events.pop_first() {
                now = at;
                self.event(at, event);
            } else {
                break;
            }
        }
        let stats = self.router.stats(now + SEC);
        self.router.release_all(now + SEC, &mut self.done);
        let (lost, repaired, copies) = self.outcome;
        Outcome {
            lost,
            repaired,
            copies,
            waited: self.waited,
            held: self.router.held_ever,
            longest: self.router.longest,
            stats,
            inputs: self.router.record.take().unwrap_or_default(),
            done: self.done,
        }
    }

    fn event(&mut self, now: Time, event: Event) {
        let from = self.done.len();
        match event {
            Event::AtRouter(direction, packet) => {
                let verdict = self.router.packet(now, direction, &packet, &mut self.done);
                let held = direction == Direction::Down && verdict == Verdict::Hold;
                let config = &self.scene.config;
                assert!(!held || config.reports || config.reorders);
                self.waited += u64::from(held);
            }
            Event::Read(packet, waited) => {
                if self.scene.tells_wait {
                    self.router.engine.waited(waited);
                }
                self.router.packet(now, Direction::Up, &packet, &mut self.done);
            }
            Event::ProbeReply(client, rtt) => {
                self.router.probe_reply(now, client, rtt, &mut self.done);
            }
            Event::AtClient(n, payload, copy) => return self.client(now, n, &payload, copy),
            Event::Timer(n, replies) => {
                let client = &self.clients[n as usize];
                if client.replies == replies && client.unacknowledged > 0 {
                    self.reply(now, n);
                }
            }
        }
        self.act(now, from);
    }

    /// Carries on what the router did.
    fn act(&mut self, now: Time, from: usize) {
        for n in from..self.done.len() {
            match self.done[n].clone() {
                Done::Pass(Direction::Down, packet) => self.over_the_hop(now, &packet, false),
                Done::Copy(Direction::Down, packet) => {
                    self.outcome.2 += 1;
                    self.over_the_hop(now, &packet, true);
                }
                Done::Probe(client) => {
                    let rtt =
                        2 * self.scene.delay + self.queue(now) + self.jitter() + self.late(now);
                    self.at(now + rtt, Event::ProbeReply(client, rtt));
                }
                Done::Pass(Direction::Up, _) | Done::Copy(Direction::Up, _) | Done::Event(_) => {}
            }
        }
    }

    fn jitter(&mut self) -> Nanos {
        self.random.below(60_000) as Nanos
    }

    fn late(&mut self, now: Time) -> Nanos {
        let late = self.scene.late.filter(|(from, _)| now >= *from);
        late.map_or(0, |(_, span)| self.random.below(span as u64) as Nanos)
    }

    fn queue(&self, now: Time) -> Nanos {
        self.scene.queue.filter(|(from, _)| now >= *from).map_or(0, |(_, span)| span)
    }

    fn over_the_hop(&mut self, now: Time, packet: &[u8], copy: bool) {
        let flow = crate::packets::flow_of(packet, Direction::Down).expect("one of ours");
        let n = (0..self.scene.flows).find(|n| self.flow(*n) == flow).expect("one of ours");
        let payload = &packet[if self.scene.ipv6 { 48 } else { 28 }..];
        if let Some(number) = number(payload)
            && self.random.chance(self.scene.loss)
        {
            if !copy {
                self.outcome.0 += 1;
                self.lost.insert((n, number), now);
            }
            return;
        }
        let arrival = now + self.scene.delay + self.queue(now) + self.jitter();
        self.at(arrival, Event::AtClient(n, payload.to_vec(), copy));
    }

    fn client(&mut self, now: Time, n: u32, payload: &[u8], copy: bool) {
        let Some(number) = number(payload) else {
            return self.handshake(now, n);
        };
        if copy
            && let Some(at) = self.lost.remove(&(n, number))
            && now.since(at) < SENDER_REPAIR
        {
            self.outcome.1 += 1;
        }
        let at_once = self.scene.prompt;
        if self.clients[n as usize].receive(now, number, at_once) {
            self.reply(now, n);
        } else if self.clients[n as usize].unacknowledged == 1 {
            let replies = self.clients[n as usize].replies;
            self.at(now + MAX_ACK_DELAY, Event::Timer(n, replies));
        }
    }

    fn handshake(&mut self, now: Time, n: u32) {
        if std::mem::replace(&mut self.clients[n as usize].spoke, true) {
            return;
        }
        let flow = self.flow(n);
        let finished = flow.datagram(Direction::Up, &long(V1, Long::Handshake, 60));
        self.at(now + self.scene.delay + 300 * US, Event::AtRouter(Direction::Up, finished));
        for extra in 1..4u64 {
            let request = flow.datagram(Direction::Up, &short(!u64::from(n), extra, 120));
            let delay = self.scene.delay + 300 * US + extra as Nanos * 100 * US;
            self.at(now + delay, Event::AtRouter(Direction::Up, request));
        }
    }

    fn reply(&mut self, now: Time, n: u32) {
        let client = &mut self.clients[n as usize];
        let gaps = if self.scene.padded { 0 } else { client.gaps(now) };
        client.unacknowledged = 0;
        client.replies += 1;
        let framed = client.replies.checked_rem(self.scene.frames) == Some(0);
        let size = REPLY + 2 * gaps + if framed { FRAME } else { 0 };
        let payload = short(!u64::from(n), 100 + client.replies, size);
        let packet = self.flow(n).datagram(Direction::Up, &payload);
        if self.scene.loss_up > 0.0 && self.random.chance(self.scene.loss_up) {
            return;
        }
        let after = self.scene.delay + 100 * US + self.jitter() + self.late(now);
        // No reply overtakes another.
        let arrival = self.last_reply.max(now + after);
        self.last_reply = arrival;
        let since_last = arrival.since(Time::ZERO).checked_rem(self.scene.reads_every);
        let waited = since_last.map_or(0, |since| self.scene.reads_every - since);
        self.at(arrival + waited, Event::Read(packet, waited));
    }
}
