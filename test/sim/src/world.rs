// SPDX-License-Identifier: GPL-2.0-or-later
//! Servers, the WAN, the router, its Wi-Fi and the clients in virtual time.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Instant;

use linkem::Nanos;
use linkem::link::Link;
use linkem::pipe::{Dropped, Packet, Pipe};
use pemi_engine::{Config, Direction};

use crate::air::{Air, Recorded};
use crate::counts::Counts;
use crate::endpoint::Datagram;
use crate::host::Host;
use crate::line::{Line, address, line};
use crate::links::{self, DOWN, UP};
use crate::random::Random;
use crate::reports::Reports;
use crate::router::{HEADERS, Order, Parcel, Router};
use crate::scenario::{ClientKind, LossModel, Scenario};
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

/// A running simulation.
pub struct World {
    now: Nanos,
    lines: Vec<Line>,
    router: Router,
    wan: [Pipe<Item>; 2],
    wifi: Link<Item>,
    air: Air<Item>,
    reports: Option<Reports>,
    counts: Option<Counts>,
    /// How often each client has gone to another access point.
    moves: Vec<u32>,
    /// The clients by their numbers on the Wi-Fi.
    stations: Vec<Ipv4Addr>,
    recorded: [Option<Recorded>; 2],
    limit: Nanos,
    sent: Vec<Datagram>,
    /// See [`World::delay_replies_of_helped`].
    harm: Nanos,
    late: VecDeque<(Nanos, Parcel)>,
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
    pub fn new(scenario: &Scenario, mut config: Config, seed: u64) -> anyhow::Result<World> {
        for flow in &scenario.flows {
            let able = flow.client == ClientKind::Quinn || !flow.app().is_upload();
            anyhow::ensure!(able, "app upload: client {:?} cannot; use quinn", flow.client);
            let real = matches!(flow.client, ClientKind::Quinn | ClientKind::Tcp);
            anyhow::ensure!(
                !(real && flow.skips_every > 0),
                "flow.skips_every: client {:?} cannot; use a model, as every2",
                flow.client
            );
        }
        let epoch = Instant::now();
        let mut random = Random::new(seed);
        let clients: Vec<_> = scenario.flows.iter().map(|flow| address(flow.client_id)).collect();
        let mut stations = clients.clone();
        stations.sort_unstable();
        stations.dedup();
        let station = |client| stations.iter().position(|other| *other == client).unwrap_or(0);
        let lines = scenario.flows.iter().zip(&clients).map(|(flow, client)| Line {
            station: station(*client),
            ..line(epoch, flow, random.next())
        });
        let lines = lines.collect();
        let path_ms = 2.0 * (scenario.wan.delay_ms + scenario.wifi.delay_ms);
        let recorded = |model: &LossModel, salt: u64| match model {
            LossModel::Trace(path) => Recorded::read(path, seed ^ salt).map(Some),
            _ => Ok(None),
        };
        config.reports = scenario.wifi.reports.is_some();
        config.counts = scenario.wifi.counts.is_some();
        config.reports_counted = config.counts;
        Ok(World {
            now: 0,
            lines,
            router: Router::new(config, seed, clients, scenario.engine.gathers),
            wan: links::wan(&scenario.wan, path_ms, seed)?,
            wifi: links::wifi(&scenario.wifi, stations.len(), seed)?,
            air: Air::new(&scenario.wifi, seed),
            reports: scenario.wifi.reports.as_ref().map(|reports| Reports::new(reports, seed)),
            counts: scenario.wifi.counts.as_ref().map(|it| Counts::new(it, stations.len())),
            moves: vec![0; stations.len()],
            stations,
            recorded: [
                recorded(&scenario.wifi.loss_down, 1)?,
                recorded(&scenario.wifi.loss_up, 2)?,
            ],
            limit: scenario.limit_s * 1_000_000_000,
            sent: Vec::new(),
            harm: 0,
            late: VecDeque::new(),
            observer: None,
        })
    }

    /// Has each parcel's moments told.
    pub fn observe(&mut self, observer: impl FnMut(Observation<'_>) + 'static) {
        self.observer = Some(Box::new(observer));
    }

    /// Runs until all flows are done or the time is up; gives the end.
    pub fn run(&mut self) -> Nanos {
        self.run_to(self.limit);
        self.now
    }

    /// Runs until then; whether all flows are done before.
    pub fn run_to(&mut self, until: Nanos) -> bool {
        while let Some(next) = self.next_time()
            && next <= until
        {
            self.now = self.now.max(next);
            self.step();
            if self.lines.iter().all(Line::is_done) {
                return true;
            }
        }
        self.now = until;
        false
    }

    /// Has replies of flows that are helped leave the router so much later: harm that help is made to
    /// do.
    pub fn delay_replies_of_helped(&mut self, by: Nanos) {
        self.harm = by;
    }

    /// The router, for its counters.
    pub fn router(&self) -> &Router {
        &self.router
    }

    /// The router, for what a daemon does beside the packets.
    pub fn router_mut(&mut self) -> &mut Router {
        &mut self.router
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

    fn next_time(&self) -> Option<Nanos> {
        let hosts = self.lines.iter().flat_map(|line| {
            [line.server.next_timeout(), line.client.next_timeout()].into_iter().flatten()
        });
        let hosts = hosts.min();
        let pipes = self.wan.iter().filter_map(Pipe::next_deadline).min();
        let wifi = self.wifi.next_deadline();
        let reports = self.reports.as_ref().and_then(Reports::next);
        let counts = self.counts.as_ref().map(Counts::next);
        let late = self.late.front().map(|(at, _)| *at);
        let router = self.router.next_timeout();
        let others = [router, self.air.next_deadline(), wifi, reports, counts, late];
        others.into_iter().chain([hosts, pipes]).flatten().min()
    }

    fn step(&mut self) {
        let now = self.now;
        self.wan.iter_mut().for_each(|pipe| pipe.advance(now));
        self.wifi.advance(now);
        self.settle_dropped();
        self.read_reports();
        self.read_counts();
        while let Some((_, item)) = self.wan[0].pop_due(now) {
            self.at_router(Direction::Down, item);
        }
        while let Some((_, item)) = self.wifi.pop_due(UP, now) {
            if !lost(&mut self.recorded[1]) {
                self.at_router(Direction::Up, item);
            }
        }
        if self.router.next_timeout().is_some_and(|at| at <= now) {
            self.router.on_timeout(now);
            self.obey();
        }
        while self.late.front().is_some_and(|(at, _)| *at <= now)
            && let Some((_, parcel)) = self.late.pop_front()
        {
            self.send(Direction::Up, parcel);
        }
        while let Some((_, item)) = self.wifi.pop_due(DOWN, now) {
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

    /// What they tell has happened before the packets that have come meanwhile.
    fn read_reports(&mut self) {
        let now = self.now;
        while let Some((ticket, fate)) = self.reports.as_mut().and_then(|it| it.pop_due(now)) {
            self.router.report(now, ticket, fate);
            self.obey();
        }
    }

    /// What the access point has counted, and who has come to it.
    fn read_counts(&mut self) {
        let Some(counts) = &mut self.counts else { return };
        for (radio, client) in counts.look(self.now).into_iter().zip(&self.stations) {
            self.router.counted((*client).into(), radio);
        }
        for (station, client) in self.stations.iter().enumerate() {
            let moves = self.wifi.moves(station, self.now);
            if std::mem::replace(&mut self.moves[station], moves) != moves {
                self.router.moved(self.now, (*client).into());
            }
        }
    }

    /// The radio knows what became of a packet; a station that has gone it has not counted.
    fn settled(&mut self, parcel: &Parcel, arrived: bool) {
        let station = self.lines[parcel.flow].station;
        if let (Some(reports), Some(ticket)) = (&mut self.reports, parcel.ticket) {
            reports.settled(self.now, station, ticket, arrived);
        }
        if let Some(counts) = &mut self.counts
            && self.wifi.is_there(station, self.now)
        {
            counts.left(self.now, station, arrived);
        }
    }

    /// The queue in front of the radio has dropped a packet.
    fn dropped(&mut self, parcel: &Parcel) {
        let station = self.lines[parcel.flow].station;
        if let (Some(reports), Some(ticket)) = (&mut self.reports, parcel.ticket) {
            reports.dropped(self.now, station, ticket);
        }
        if let Some(counts) = &mut self.counts {
            counts.dropped(self.now, station);
        }
    }

    /// Lets both hosts of a flow act.
    fn hosts(&mut self, flow: usize) {
        let now = self.now;
        let line = &mut self.lines[flow];
        line.server.act(now, &mut self.sent);
        let number = &mut line.numbers[1];
        for datagram in self.sent.drain(..) {
            let parcel = Parcel { flow, number: *number, copy: false, ticket: None, datagram };
            *number += 1;
            self.wan[0].push(now, packet(parcel, line.tcp, 0));
        }
        line.client.act(now, &mut self.sent);
        let number = &mut line.numbers[0];
        for datagram in self.sent.drain(..) {
            let parcel = Parcel { flow, number: *number, copy: false, ticket: None, datagram };
            *number += 1;
            self.wifi.push(now, UP, line.station, packet(parcel, line.tcp, 0));
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
                Order::Send(Direction::Up, parcel)
                    if self.harm > 0 && self.router.helps(self.now, parcel.flow) =>
                {
                    self.late.push_back((self.now + self.harm, parcel));
                }
                Order::Send(direction, parcel) => self.send(direction, parcel),
                Order::Echo(client) => self.echo(DOWN, client, self.now),
            }
        }
    }

    fn send(&mut self, direction: Direction, parcel: Parcel) {
        self.tell(direction, &parcel, Moment::Sent);
        let line = &mut self.lines[parcel.flow];
        match direction {
            Direction::Down => {
                let index = line.truth.sent(parcel.number, self.now);
                if let (Some(reports), Some(ticket)) = (&mut self.reports, parcel.ticket) {
                    reports.sent(self.now, line.station, ticket);
                }
                self.wifi.push(self.now, DOWN, line.station, packet(parcel, line.tcp, index));
            }
            Direction::Up => {
                let index = line.uplink.sent(parcel.number, self.now);
                self.wan[1].push(self.now, packet(parcel, line.tcp, index));
            }
        }
        self.settle_dropped();
    }

    fn echo(&mut self, direction: linkem::Direction, client: IpAddr, sent: Nanos) {
        let station = self.stations.iter().position(|other| client == *other).unwrap_or(0);
        self.wifi.push(self.now, direction, station, echo(client, sent));
    }

    fn at_client(&mut self, item: Item) {
        match item {
            Item::Echo(client, sent) => self.echo(UP, client, sent),
            Item::Parcel(parcel, index) => {
                self.tell(Direction::Down, &parcel, Moment::Arrived);
                self.settled(&parcel, true);
                let line = &mut self.lines[parcel.flow];
                line.truth.ended(parcel.number, index, Fate::Arrived(self.now));
                line.client.receive(self.now, parcel.datagram);
            }
        }
    }

    /// Notes what the links have dropped or lost.
    fn settle_dropped(&mut self) {
        while let Some((item, why)) = self.wifi.pop_dropped(DOWN) {
            self.ended(item, why);
        }
        while let Some((item, _)) = self.wan[0].pop_dropped() {
            if let Item::Parcel(parcel, _) = item {
                self.tell(Direction::Down, &parcel, Moment::WanLost);
                self.lines[parcel.flow].wan_dropped += 1;
            }
        }
        while let Some((item, _)) = self.wifi.pop_dropped(UP) {
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
        match why {
            Dropped::Lost => self.settled(&parcel, false),
            Dropped::Queue => self.dropped(&parcel),
        }
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

fn packet(parcel: Parcel, tcp: bool, index: usize) -> Packet<Item> {
    let extra = if tcp { TCP_EXTRA } else { 0 };
    let network_bytes = (HEADERS + extra + parcel.datagram.bytes.len()) as u32;
    let flow = parcel.flow as u32;
    Packet {
        item: Item::Parcel(parcel, index),
        bytes: network_bytes + LINK_HEADER as u32,
        network_bytes,
        lossy: true,
        flow,
    }
}

fn echo(client: IpAddr, sent: Nanos) -> Packet<Item> {
    Packet {
        item: Item::Echo(client, sent),
        bytes: ECHO_BYTES as u32,
        network_bytes: (ECHO_BYTES - LINK_HEADER) as u32,
        // The losses of the flows are to be the same with and without it.
        lossy: false,
        flow: u32::MAX,
    }
}
