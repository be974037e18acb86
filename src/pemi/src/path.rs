//! The packet path: one thread for each queue, with an engine of its own.

use std::hash::{BuildHasher, RandomState};
use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError};

use log::LevelFilter;
use pemi_engine::{Action, Direction, Engines, Event, FlowInfo, Handle, MS, Nanos, Stats, Verdict};

use crate::clock::now;
use crate::config::{Config, Mode, Repaired};
use crate::direction::Classifier;
use crate::inject::Injector;
use crate::nfqueue::message::{self, CHECKSUM_NOT_READY, GSO, Message, Packet};
use crate::nfqueue::{BATCH, Inbox, MAX_LEN, Queue, Verdicts};
use crate::poll::{self, Interest, Waker};
use crate::probe::{self, Prober};
use crate::reply::Reply;
use crate::writer::Item;
use crate::{events, logger, sched, udp};

/// A timer later than this goes before the next packet; otherwise the packet
/// goes first: it may be the reply that the timer is waiting for.
const OVERDUE: Nanos = 3 * MS / 10;
/// Batches taken in a row before timers and commands get their turn.
const ROUNDS: usize = 8;

/// What a packet path is asked from outside.
#[derive(Debug)]
pub enum Command {
    /// Use these settings and tell of these events from now on.
    Configure(Box<Config>, Wanted),
    /// Tell the counters.
    Snapshot(Reply<Snapshot>),
    /// Tell the flows with the most downstream bytes, at most so many.
    Flows(usize, Reply<Vec<FlowInfo>>),
    /// Counters back to zero.
    Reset,
    /// Release everything and end.
    Stop,
}

/// Which events somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wanted {
    all: bool,
    level: LevelFilter,
}

impl Wanted {
    /// For an event file, all of them; for the log, those of its level.
    pub fn new(file: bool, level: LevelFilter) -> Wanted {
        Wanted { all: file, level }
    }

    fn any(self) -> bool {
        self.all || self.level >= LevelFilter::Info
    }

    fn wants(self, event: &Event) -> bool {
        self.all || events::level(event.kind) <= self.level
    }
}

/// The counters of one packet path.
#[derive(Clone, Copy, Debug, Default)]
pub struct Snapshot {
    /// Number of its queue.
    pub queue: u16,
    /// The engine's.
    pub stats: Stats,
    /// Copies that could not be sent.
    pub inject_errors: u32,
    /// Verdicts that the kernel refused.
    pub verdict_errors: u32,
    /// Packets let go that the engine was not shown: too large, cut, or of no
    /// known direction.
    pub unseen: u64,
    /// Packets that the kernel let go as nobody could take them (fail-open). It
    /// counts only those that it drops instead.
    pub missed: u64,
    /// The scheduler gave no real-time priority.
    pub realtime_refused: bool,
    /// Echo probes.
    pub probes: probe::Counters,
}

/// A packet path.
#[derive(Debug)]
pub struct Path {
    queue: Queue,
    inbox: Inbox,
    verdicts: Verdicts,
    engine: Engines,
    classifier: Classifier,
    injector: Injector,
    bridged: bool,
    /// Packets up may have to be sent again, too.
    both: bool,
    prober: Prober,
    commands: Receiver<Command>,
    waker: Arc<Waker>,
    events: SyncSender<Item>,
    wanted: Wanted,
    bypass_mark: u32,
    verdict_errors: u32,
    unseen: u64,
    numbering: Numbering,
    realtime_refused: bool,
}

/// The kernel numbers packets as they come, those that it cannot hand over too.
#[derive(Debug, Default)]
struct Numbering {
    next: Option<u32>,
    missed: u64,
}

impl Numbering {
    fn seen(&mut self, id: u32) {
        let ahead = self.next.map_or(0, |next| id.wrapping_sub(next).cast_signed());
        match u64::try_from(ahead) {
            Ok(ahead) => {
                self.missed += ahead;
                self.next = Some(id.wrapping_add(1));
            }
            // Numbered by one processor, handed over later than by another.
            Err(_) => self.missed = self.missed.saturating_sub(1),
        }
    }
}

/// What a wait has found.
struct Ready {
    command: bool,
    reply: bool,
}

impl Path {
    /// Opens everything for queue number `queue`.
    pub fn open(
        config: &Config,
        queue: u16,
        commands: Receiver<Command>,
        waker: Arc<Waker>,
        events: SyncSender<Item>,
        wanted: Wanted,
    ) -> io::Result<Path> {
        let seed = RandomState::new().hash_one("flow table");
        Ok(Path {
            queue: Queue::bind(queue)?,
            inbox: Inbox::new(),
            verdicts: Verdicts::new(),
            engine: Engines::new(config.engine(wanted.any()), seed),
            classifier: Classifier::new(&config.device, &config.port, now()),
            injector: Injector::open(config.mode, config.mark)?,
            bridged: config.mode == Mode::Bridged,
            both: config.direction == Repaired::Both,
            prober: Prober::open(config.mark)?,
            commands,
            waker,
            events,
            wanted,
            bypass_mark: config.bypass_mark,
            verdict_errors: 0,
            unseen: 0,
            numbering: Numbering::default(),
            realtime_refused: false,
        })
    }

    /// Works until it is told to stop. An error means that the queue is gone.
    pub fn run(mut self, realtime_priority: u8) -> io::Result<()> {
        sched::exact_timers();
        if realtime_priority > 0
            && let Err(error) = sched::realtime(realtime_priority)
        {
            self.realtime_refused = true;
            log::warn!(
                "no real-time priority: {error}; repairs come late while the router is busy \
                 (CAP_SYS_NICE is needed, or option realtime_priority 0) priority={realtime_priority}"
            );
        }
        loop {
            let ready = self.wait()?;
            if ready.command && self.obey()?.is_break() {
                return self.finish();
            }
            while ready.reply
                && let Some(reply) = self.prober.receive(now())
            {
                self.engine.on_probe_reply(now(), reply.client, reply.rtt);
            }
            self.packets()?;
            self.timers()?;
            self.verdicts.flush(&self.queue)?;
        }
    }

    fn wait(&self) -> io::Result<Ready> {
        let mut interests: [Interest; 4] = [
            Interest::read(&self.queue),
            Interest::read(&*self.waker),
            Interest::read(&self.queue),
            Interest::read(&self.queue),
        ];
        let mut used = 2;
        for (slot, socket) in interests[2..].iter_mut().zip(self.prober.sockets()) {
            *slot = Interest::read(socket);
            used += 1;
        }
        let timeout = self.engine.next_timeout().map(|at| at.since(now()));
        poll::wait(&mut interests[..used], timeout)?;
        Ok(Ready {
            command: interests[1].is_ready(),
            reply: interests[2..used].iter().any(Interest::is_ready),
        })
    }

    /// Does what was asked for.
    fn obey(&mut self) -> io::Result<ControlFlow<()>> {
        self.waker.clear();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Configure(config, wanted) => {
                    self.wanted = wanted;
                    self.engine.set_config(now(), config.engine(wanted.any()));
                    self.classifier = Classifier::new(&config.device, &config.port, now());
                    self.bypass_mark = config.bypass_mark;
                    self.both = config.direction == Repaired::Both;
                    self.act()?;
                }
                Command::Snapshot(to) => to.send(self.snapshot()),
                Command::Flows(limit, to) => to.send(largest(self.engine.flows(now()), limit)),
                Command::Reset => {
                    self.engine.reset();
                    self.unseen = 0;
                    self.numbering.missed = 0;
                }
                Command::Stop => return Ok(ControlFlow::Break(())),
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn snapshot(&self) -> Snapshot {
        Snapshot {
            queue: self.queue.id(),
            stats: self.engine.stats(now()),
            inject_errors: self.injector.errors(),
            verdict_errors: self.verdict_errors,
            unseen: self.unseen,
            missed: self.numbering.missed,
            realtime_refused: self.realtime_refused,
            probes: self.prober.counters(),
        }
    }

    /// Takes in what is waiting in the queue.
    fn packets(&mut self) -> io::Result<()> {
        for _ in 0..ROUNDS {
            let count = self.inbox.fill(&self.queue)?;
            for index in 0..count {
                self.datagram(index)?;
            }
            self.verdicts.flush(&self.queue)?;
            if count < BATCH {
                break;
            }
        }
        Ok(())
    }

    /// One datagram of the netlink socket, with one or more messages.
    fn datagram(&mut self, index: usize) -> io::Result<()> {
        let mut at = 0;
        while let Some((message, next)) = message::next(self.inbox.datagram(index), at) {
            at = next;
            match message {
                Message::Packet(packet) => self.packet(index, &packet)?,
                Message::Answer(0) | Message::Other => {}
                Message::Answer(_) => self.verdict_errors = self.verdict_errors.saturating_add(1),
            }
        }
        Ok(())
    }

    fn packet(&mut self, index: usize, packet: &Packet) -> io::Result<()> {
        let arrived = now();
        self.numbering.seen(packet.id);
        if self.engine.next_timeout().is_some_and(|at| arrived.since(at) > OVERDUE) {
            self.timers()?;
        }
        let bytes = &mut self.inbox.datagram(index)[packet.payload.clone()];
        let found = udp::find(bytes);
        let ports = found.as_ref().map(|datagram| datagram.ports);
        let (from, to) = match (self.bridged, packet.ports) {
            // Clients and WAN may be on one bridge: its ports tell.
            (true, (from, to)) if from != 0 && to != 0 => (from, to),
            _ => (packet.indev, packet.outdev),
        };
        let direction = self.classifier.direction(from, to, ports, arrived);
        let whole = !packet.truncated && packet.info & GSO == 0;
        let (Some(direction), true) = (direction, whole) else {
            self.unseen += 1;
            return self.verdicts.accept(&self.queue, packet.id, None);
        };
        if packet.info & CHECKSUM_NOT_READY != 0
            && let Some(datagram) = &found
        {
            // The copy has to be complete: no hardware will touch it.
            udp::fill_checksum(bytes, datagram);
        }
        if self.bridged && (self.both || direction == Direction::Down) {
            self.injector.learn(bytes, to, packet.header);
        }
        match self.engine.on_packet(arrived, direction, bytes, Handle(packet.id)) {
            Verdict::Forward => self.verdicts.accept(&self.queue, packet.id, None)?,
            Verdict::Bypass => {
                let mark = packet.mark | self.bypass_mark;
                self.verdicts.accept(&self.queue, packet.id, Some(mark))?;
            }
            Verdict::Hold => {}
        }
        self.act()
    }

    fn timers(&mut self) -> io::Result<()> {
        let time = now();
        if self.engine.next_timeout().is_some_and(|at| at <= time) {
            self.engine.on_timeout(time);
            self.act()?;
        }
        Ok(())
    }

    /// Carries out what the engine has decided, in its order.
    fn act(&mut self) -> io::Result<()> {
        while let Some(action) = self.engine.next_action() {
            match action {
                Action::Release(Handle(id)) => self.verdicts.accept(&self.queue, id, None)?,
                Action::Inject { packet, .. } => {
                    // The verdicts given so far come first on the wire.
                    self.verdicts.flush(&self.queue)?;
                    self.injector.send(packet);
                }
                Action::Probe { client } => self.prober.send(now(), client),
                Action::Event(event) => {
                    if self.wanted.wants(&event)
                        && let Err(TrySendError::Full(_)) = self.events.try_send(Item::Event(event))
                    {
                        logger::count_dropped();
                    }
                }
            }
        }
        Ok(())
    }

    /// Lets everything go. Closing the queue makes the kernel drop what still
    /// waits in it, so that is let go as well.
    fn finish(&mut self) -> io::Result<()> {
        let time = now();
        self.engine.release_all(time);
        self.act()?;
        self.verdicts.flush(&self.queue)?;
        // More than can wait have come meanwhile: there will always be some.
        for _ in 0..MAX_LEN as usize {
            let count = self.inbox.fill(&self.queue)?;
            if count == 0 {
                break;
            }
            for index in 0..count {
                let mut at = 0;
                while let Some((message, next)) = message::next(self.inbox.datagram(index), at) {
                    at = next;
                    if let Message::Packet(packet) = message {
                        self.verdicts.accept(&self.queue, packet.id, None)?;
                    }
                }
            }
            self.verdicts.flush(&self.queue)?;
        }
        Ok(())
    }
}

/// The flows with the most downstream bytes. Never more than twice as many are
/// kept at a time: a full table is large beside what is asked for.
fn largest(flows: impl Iterator<Item = FlowInfo>, limit: usize) -> Vec<FlowInfo> {
    let most = |flow: &FlowInfo| std::cmp::Reverse(flow.bytes_down);
    let mut best = Vec::with_capacity(2 * limit);
    for flow in flows {
        if best.len() == 2 * limit {
            best.select_nth_unstable_by_key(limit, most);
            best.truncate(limit);
        }
        best.push(flow);
    }
    best.sort_unstable_by_key(most);
    best.truncate(limit);
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use pemi_engine::{EventKind, FlowState, Time};

    #[test]
    fn the_largest_flows_are_found() {
        let flow = |bytes_down| FlowInfo {
            client: "192.0.2.9:50000".parse().unwrap(),
            server: "192.0.2.1:443".parse().unwrap(),
            age: 0,
            bytes_down,
            packets_down: 0,
            local_rtt: 0,
            inferred: 0,
            repaired: 0,
            resent: 0,
            state: FlowState::Unknown,
        };
        let flows = (0..1000).map(|n| flow(n * 7919 % 1000));
        let bytes: Vec<u64> = largest(flows, 5).iter().map(|flow| flow.bytes_down).collect();
        assert_eq!(bytes, [999, 998, 997, 996, 995]);
        assert_eq!(largest([flow(1)].into_iter(), 5).len(), 1);
    }

    #[test]
    fn gaps_in_the_numbering_are_packets_missed() {
        for (ids, missed) in [
            (&[7, 8, 9][..], 0),
            (&[7, 9, 12], 3),
            (&[u32::MAX, 0, 2], 1),
            (&[4, 6, 5, 7], 0),
            (&[4, 3], 0),
        ] {
            let mut numbering = Numbering::default();
            ids.iter().for_each(|id| numbering.seen(*id));
            assert_eq!(numbering.missed, missed, "{ids:?}");
        }
    }

    #[test]
    fn events_go_where_they_are_wanted() {
        let event = |kind| Event {
            at: Time::ZERO,
            client: "192.0.2.9:50000".parse().unwrap(),
            server: "192.0.2.1:443".parse().unwrap(),
            direction: Direction::Down,
            kind,
        };
        let (start, abandon) = (event(EventKind::FlowStart), event(EventKind::Abandon));
        for (file, level, any, starts, abandons) in [
            (false, LevelFilter::Warn, false, false, false),
            (false, LevelFilter::Info, true, true, false),
            (false, LevelFilter::Debug, true, true, true),
            (true, LevelFilter::Error, true, true, true),
        ] {
            let wanted = Wanted::new(file, level);
            assert_eq!(
                (wanted.any(), wanted.wants(&start), wanted.wants(&abandon)),
                (any, starts, abandons)
            );
        }
    }
}
