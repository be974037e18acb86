//! Servers, the WAN, the router, its Wi-Fi and the clients in virtual time.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use linkem::Nanos;
use linkem::loss::Model;
use linkem::pipe::{Delay, Dropped, Packet, Pipe, Rate, Settings};
use linkem::queue::Discipline;
use linkem::trace::{OPPORTUNITY_BYTES, Trace};
use pemi_engine::{Config, Direction};

use crate::air::{Air, Recorded};
use crate::client::Client;
use crate::endpoint::{Datagram, Endpoint};
use crate::host::Host;
use crate::quinn::Quinn;
use crate::random::Random;
use crate::router::{HEADERS, Order, Parcel, Router};
use crate::scenario::{ClientKind, Flow, LossModel, Qdisc, Scenario, Wan, Wifi, ms};
use crate::tcp;
use crate::truth::{Fate, Truth};

/// Ethernet header and, for TCP, what its headers have more than UDP's.
const LINK_HEADER: usize = 14;
const TCP_EXTRA: usize = 24;
/// An echo request of the usual size.
const ECHO_BYTES: usize = 98;

/// What crosses a link.
#[derive(Debug)]
enum Item {
    Parcel(Parcel, usize),
    /// When the router sent it.
    Echo(IpAddr, Nanos),
}

/// One end-to-end flow.
struct Line {
    server: Host,
    client: Host,
    start: Nanos,
    helped: bool,
    tcp: bool,
    /// Datagrams sent by client and server.
    numbers: [u32; 2],
    truth: Truth,
    /// The same of the WAN on the way up.
    uplink: Truth,
    wan_dropped: u64,
}

impl Line {
    /// Whether the receiver, whichever it is, has everything.
    fn is_done(&self) -> bool {
        self.client.done_at().or(self.server.done_at()).is_some()
    }
}

/// A running simulation.
pub struct World {
    now: Nanos,
    lines: Vec<Line>,
    router: Router,
    wan: [Pipe<Item>; 2],
    wifi: [Pipe<Item>; 2],
    air: Air<Item>,
    recorded: [Option<Recorded>; 2],
    limit: Nanos,
    sent: Vec<Datagram>,
    observer: Option<Observer>,
}

type Observer = Box<dyn FnMut(Observation<'_>)>;

/// Something that [`crate::timeline`] draws.
#[derive(Debug)]
pub struct Observation<'a> {
    /// When.
    pub at: Nanos,
    /// The parcel.
    pub parcel: &'a Parcel,
    /// Its way.
    pub direction: Direction,
    /// What happened to it.
    pub what: Moment,
}

/// A moment in a parcel's life.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Moment {
    /// Dropped or lost between server and router.
    WanLost,
    /// The router has got it.
    AtRouter,
    /// The router sends it on.
    Sent,
    /// Lost on the hop.
    Lost,
    /// Dropped by the hop's queue.
    Dropped,
    /// Arrived at the client.
    Arrived,
}

/// What a flow came to.
pub struct FlowOutcome<'a> {
    /// When it started.
    pub start: Nanos,
    /// The server's host.
    pub server: &'a Host,
    /// The client's host.
    pub client: &'a Host,
    /// The hop's truth about its packets.
    pub truth: &'a Truth,
    /// The WAN's truth about packets on their way up.
    pub uplink: &'a Truth,
    /// Packets of it dropped or lost before the router.
    pub wan_dropped: u64,
    /// Datagrams that the client sent.
    pub up_packets: u64,
}

impl World {
    /// A scenario before it starts; `config` is the engine's.
    pub fn new(scenario: &Scenario, config: Config, seed: u64) -> anyhow::Result<World> {
        for flow in &scenario.flows {
            let able = flow.client == ClientKind::Quinn || !flow.app().is_upload();
            anyhow::ensure!(able, "app upload: client {:?} cannot; use quinn", flow.client);
        }
        let epoch = Instant::now();
        let mut random = Random::new(seed);
        let clients = scenario.flows.iter().map(|flow| address(flow.client_id)).collect();
        let lines = scenario.flows.iter().map(|flow| line(epoch, flow, random.next())).collect();
        let path_ms = 2.0 * (scenario.wan.delay_ms + scenario.wifi.delay_ms);
        let recorded = |model: &LossModel, salt: u64| match model {
            LossModel::Trace(path) => Recorded::read(path, seed ^ salt).map(Some),
            _ => Ok(None),
        };
        Ok(World {
            now: 0,
            lines,
            router: Router::new(config, seed, clients),
            wan: wan(&scenario.wan, path_ms, seed)?,
            wifi: wifi(&scenario.wifi, seed),
            air: Air::new(&scenario.wifi, seed),
            recorded: [
                recorded(&scenario.wifi.loss_down, 1)?,
                recorded(&scenario.wifi.loss_up, 2)?,
            ],
            limit: scenario.limit_s * 1_000_000_000,
            sent: Vec::new(),
            observer: None,
        })
    }

    /// Has each parcel's moments told.
    pub fn observe(&mut self, observer: impl FnMut(Observation<'_>) + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Runs until all flows are done or the time is up; gives the end.
    pub fn run(&mut self) -> Nanos {
        while let Some(next) = self.next_time()
            && next <= self.limit
        {
            self.now = self.now.max(next);
            self.step();
            if self.lines.iter().all(Line::is_done) {
                return self.now;
            }
        }
        self.now = self.limit;
        self.limit
    }

    /// The router, for its counters.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// What the flows came to.
    pub fn outcomes(&self) -> impl Iterator<Item = FlowOutcome<'_>> {
        self.lines.iter().map(|line| FlowOutcome {
            start: line.start,
            server: &line.server,
            client: &line.client,
            truth: &line.truth,
            uplink: &line.uplink,
            wan_dropped: line.wan_dropped,
            up_packets: u64::from(line.numbers[0]),
        })
    }

    fn next_time(&mut self) -> Option<Nanos> {
        let hosts = self.lines.iter_mut().flat_map(|line| {
            [line.server.next_timeout(), line.client.next_timeout()].into_iter().flatten()
        });
        let hosts = hosts.min();
        let pipes = self.wan.iter().chain(&self.wifi).filter_map(Pipe::next_deadline).min();
        let others = [self.router.next_timeout(), self.air.next_deadline()];
        others.into_iter().chain([hosts, pipes]).flatten().min()
    }

    fn step(&mut self) {
        let now = self.now;
        for pipe in self.wan.iter_mut().chain(&mut self.wifi) {
            pipe.advance(now);
        }
        self.settle_dropped();
        while let Some((_, item)) = self.wan[0].pop_due(now) {
            self.at_router(Direction::Down, item);
        }
        while let Some((_, item)) = self.wifi[1].pop_due(now) {
            if !lost(&mut self.recorded[1]) {
                self.at_router(Direction::Up, item);
            }
        }
        if self.router.next_timeout().is_some_and(|at| at <= now) {
            self.router.on_timeout(now);
            self.obey();
        }
        while let Some((_, item)) = self.wifi[0].pop_due(now) {
            if lost(&mut self.recorded[0]) {
                self.ended(item, Dropped::Lost);
            } else {
                self.air.push(now, item);
            }
        }
        while let Some(item) = self.air.pop_due(now) {
            self.at_client(item);
        }
        while let Some((_, item)) = self.wan[1].pop_due(now) {
            if let Item::Parcel(parcel, index) = item {
                let line = &mut self.lines[parcel.flow];
                line.uplink.ended(parcel.number, index, Fate::Arrived(now));
                line.server.receive(now, parcel.datagram);
            }
        }
        for flow in 0..self.lines.len() {
            self.hosts(flow);
        }
    }

    /// Lets both hosts of a flow act.
    fn hosts(&mut self, flow: usize) {
        let now = self.now;
        let line = &mut self.lines[flow];
        line.server.act(now, &mut self.sent);
        let number = &mut line.numbers[1];
        for datagram in self.sent.drain(..) {
            let parcel = Parcel { flow, number: *number, copy: false, datagram };
            *number += 1;
            push(&mut self.wan[0], now, parcel, line.tcp, 0);
        }
        line.client.act(now, &mut self.sent);
        let number = &mut line.numbers[0];
        for datagram in self.sent.drain(..) {
            let parcel = Parcel { flow, number: *number, copy: false, datagram };
            *number += 1;
            push(&mut self.wifi[1], now, parcel, line.tcp, 0);
        }
    }

    fn at_router(&mut self, direction: Direction, item: Item) {
        match item {
            Item::Echo(client, sent) => {
                self.router.echo(self.now, client, self.now - sent);
            }
            Item::Parcel(parcel, _) => {
                self.tell(direction, &parcel, Moment::AtRouter);
                if self.lines[parcel.flow].helped {
                    self.router.receive(self.now, direction, parcel);
                } else {
                    self.send(direction, parcel);
                }
            }
        }
        self.obey();
    }

    /// Carries out what the engine wants.
    fn obey(&mut self) {
        while let Some(order) = self.router.next_order() {
            match order {
                Order::Send(direction, parcel) => self.send(direction, parcel),
                Order::Echo(client) => echo(&mut self.wifi[0], self.now, client, self.now),
            }
        }
    }

    fn send(&mut self, direction: Direction, parcel: Parcel) {
        self.tell(direction, &parcel, Moment::Sent);
        let line = &mut self.lines[parcel.flow];
        match direction {
            Direction::Down => {
                let index = line.truth.sent(parcel.number, self.now);
                push(&mut self.wifi[0], self.now, parcel, line.tcp, index);
            }
            Direction::Up => {
                let index = line.uplink.sent(parcel.number, self.now);
                push(&mut self.wan[1], self.now, parcel, line.tcp, index);
            }
        }
        self.settle_dropped();
    }

    fn at_client(&mut self, item: Item) {
        match item {
            Item::Echo(client, sent) => echo(&mut self.wifi[1], self.now, client, sent),
            Item::Parcel(parcel, index) => {
                self.tell(Direction::Down, &parcel, Moment::Arrived);
                let line = &mut self.lines[parcel.flow];
                line.truth.ended(parcel.number, index, Fate::Arrived(self.now));
                line.client.receive(self.now, parcel.datagram);
            }
        }
    }

    /// Notes what the links have dropped or lost.
    fn settle_dropped(&mut self) {
        while let Some((item, why)) = self.wifi[0].pop_dropped() {
            self.ended(item, why);
        }
        while let Some((item, _)) = self.wan[0].pop_dropped() {
            if let Item::Parcel(parcel, _) = item {
                self.tell(Direction::Down, &parcel, Moment::WanLost);
                self.lines[parcel.flow].wan_dropped += 1;
            }
        }
        while let Some((item, _)) = self.wifi[1].pop_dropped() {
            if let Item::Parcel(parcel, _) = item {
                self.tell(Direction::Up, &parcel, Moment::Lost);
            }
        }
        while let Some((item, why)) = self.wan[1].pop_dropped() {
            if let Item::Parcel(parcel, index) = item {
                let fate = fate(why).0;
                self.lines[parcel.flow].uplink.ended(parcel.number, index, fate);
            }
        }
    }

    fn ended(&mut self, item: Item, why: Dropped) {
        let Item::Parcel(parcel, index) = item else { return };
        let (fate, moment) = fate(why);
        self.tell(Direction::Down, &parcel, moment);
        self.lines[parcel.flow].truth.ended(parcel.number, index, fate);
    }

    fn tell(&mut self, direction: Direction, parcel: &Parcel, what: Moment) {
        if let Some(observer) = &mut self.observer {
            observer(Observation { at: self.now, parcel, direction, what });
        }
    }
}

fn fate(why: Dropped) -> (Fate, Moment) {
    match why {
        Dropped::Lost => (Fate::Lost, Moment::Lost),
        Dropped::Queue => (Fate::Dropped, Moment::Dropped),
    }
}

fn lost(recorded: &mut Option<Recorded>) -> bool {
    recorded.as_mut().is_some_and(Recorded::next_is_lost)
}

fn push(pipe: &mut Pipe<Item>, now: Nanos, parcel: Parcel, tcp: bool, index: usize) {
    let extra = if tcp { TCP_EXTRA } else { 0 };
    let network_bytes = (HEADERS + extra + parcel.datagram.bytes.len()) as u32;
    let flow = parcel.flow as u32;
    pipe.push(
        now,
        Packet {
            item: Item::Parcel(parcel, index),
            bytes: network_bytes + LINK_HEADER as u32,
            network_bytes,
            lossy: true,
            flow,
        },
    );
}

fn echo(pipe: &mut Pipe<Item>, now: Nanos, client: IpAddr, sent: Nanos) {
    pipe.push(
        now,
        Packet {
            item: Item::Echo(client, sent),
            bytes: ECHO_BYTES as u32,
            network_bytes: (ECHO_BYTES - LINK_HEADER) as u32,
            // The losses of the flows are to be the same with and without it.
            lossy: false,
            flow: u32::MAX,
        },
    );
}

fn line(epoch: Instant, flow: &Flow, seed: u64) -> Line {
    let app = flow.app();
    let start = ms(flow.start_ms);
    let mut random = Random::new(seed);
    let (server_seed, client_seed) = (random.next(), random.next());
    let server: Box<dyn Endpoint> = match flow.client {
        ClientKind::Tcp => Box::new(tcp::Server::new(app)),
        _ => Box::new(Quinn::server(epoch, app, flow.cc, server_seed)),
    };
    let client: Box<dyn Endpoint> = match flow.client {
        ClientKind::Tcp => Box::new(tcp::Client::new(app, start)),
        kind => match Client::new(kind, app, client_seed) {
            Some(client) => Box::new(client),
            None => Box::new(Quinn::client(epoch, app, flow.cc, client_seed, start)),
        },
    };
    Line {
        server: Host::new(server, 0, 0, 0, 0),
        client: Host::new(client, start, ms(flow.wake_ms), ms(flow.batch_ms), random.next()),
        start,
        helped: flow.helped && flow.client != ClientKind::Tcp,
        tcp: flow.client == ClientKind::Tcp,
        numbers: [0; 2],
        truth: Truth::default(),
        uplink: Truth::default(),
        wan_dropped: 0,
    }
}

fn address(client: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 1, 100u8.wrapping_add(client))
}

fn model(loss: &LossModel) -> Model {
    match loss {
        // Recorded losses are taken behind the link.
        LossModel::None | LossModel::Trace(_) => Model::Bernoulli(0.0),
        LossModel::Percent(percent) => Model::Bernoulli(percent / 100.0),
        LossModel::Gemodel([p, r, bad, good]) => Model::GilbertElliott {
            p: p / 100.0,
            r: r / 100.0,
            bad_loss: bad / 100.0,
            good_loss: good / 100.0,
        },
    }
}

fn discipline(qdisc: Qdisc) -> Discipline {
    match qdisc {
        Qdisc::Droptail => Discipline::Droptail,
        Qdisc::Codel => Discipline::Codel,
        Qdisc::FqCodel => Discipline::FqCodel,
    }
}

/// Towards the router and towards the servers.
fn wan(wan: &Wan, path_ms: f64, seed: u64) -> anyhow::Result<[Pipe<Item>; 2]> {
    let rate = match &wan.trace {
        None => Rate::Constant(wan.rate_mbit * 1e6),
        Some(path) => {
            Rate::Trace(Trace::read(path, OPPORTUNITY_BYTES).map_err(anyhow::Error::msg)?)
        }
    };
    let queue_bytes = (wan.queue_bdp * wan.rate_mbit * 1e3 / 8.0 * path_ms) as u64;
    let settings = |rate, loss| Settings {
        rate,
        light: None,
        delay: Delay::Constant(ms(wan.delay_ms)),
        jitter: 0,
        queue_bytes,
        discipline: discipline(wan.qdisc),
        loss: model(loss),
    };
    let down = settings(rate, &wan.loss_down);
    let up = settings(Rate::Constant(wan.rate_mbit * 1e6), &wan.loss_up);
    let seed = seed ^ 0x3a_0000;
    Ok([
        Pipe::new(down, seed, linkem::Direction::Ab, 0),
        Pipe::new(up, seed, linkem::Direction::Ba, 0),
    ])
}

/// Towards the clients and towards the router.
fn wifi(wifi: &Wifi, seed: u64) -> [Pipe<Item>; 2] {
    let settings = |loss| Settings {
        rate: Rate::Constant(wifi.rate_mbit * 1e6),
        light: None,
        delay: Delay::Constant(ms(wifi.delay_ms)),
        jitter: ms(wifi.delay_ms * wifi.jitter_percent / 100.0),
        queue_bytes: wifi.queue_bytes,
        discipline: discipline(wifi.qdisc),
        loss: model(loss),
    };
    [
        Pipe::new(settings(&wifi.loss_down), seed, linkem::Direction::Ab, 0),
        Pipe::new(settings(&wifi.loss_up), seed, linkem::Direction::Ba, 0),
    ]
}
