//! One direction of the link in virtual time, without I/O:
//! queue, serialisation, loss, propagation delay.
//!
//! Times come in with the calls. The pipe computes exactly when things happen
//! and catches up when it is called, so that a late call makes a packet late
//! but does not change the rate, the queue or the following packets.

use std::collections::VecDeque;

use crate::fq::FairQueue;
use crate::loss::{Loss, Model, Purpose, Random};
use crate::queue::{Discipline, Queue};
use crate::trace::{OPPORTUNITY_BYTES, Trace};
use crate::{Direction, Nanos};

/// How fast the link is.
#[derive(Clone, Debug)]
pub enum Rate {
    /// Serialisation takes no time and nothing is ever queued.
    Unlimited,
    /// Bits per second; frames count with their Ethernet header, as with tc.
    Constant(f64),
    /// Recorded delivery opportunities.
    Trace(Trace),
}

/// The properties of one direction.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Serialisation.
    pub rate: Rate,
    /// Propagation delay.
    pub delay: Nanos,
    /// The delay varies uniformly by as much as this to both sides.
    pub jitter: Nanos,
    /// The queue's limit, which the packet in service does not count to.
    pub queue_bytes: u64,
    /// What is done about a standing queue.
    pub discipline: Discipline,
    /// Which packets are lost.
    pub loss: Model,
}

/// A packet on its way.
#[derive(Debug)]
pub struct Packet<T> {
    /// What the caller knows it by.
    pub item: T,
    /// Size with the link header.
    pub bytes: u32,
    /// Size without the link header.
    pub network_bytes: u32,
    /// May be lost, and counts in the index of the losses.
    pub lossy: bool,
    /// Packets of one flow wait in one queue of FQ-CoDel.
    pub flow: u32,
}

/// Why a packet was not delivered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dropped {
    /// By the queue.
    Queue,
    /// By the loss model.
    Lost,
}

/// What has gone through a pipe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Packets that entered.
    pub packets: u64,
    /// Their bytes with link headers.
    pub bytes: u64,
    /// Packets among them that are never lost (see [`Packet::lossy`]).
    pub exempt: u64,
    /// Taken by the loss model.
    pub lost: u64,
    /// Dropped by the queue.
    pub queue_dropped: u64,
}

/// One direction of the link.
#[derive(Debug)]
pub struct Pipe<T> {
    server: Server<T>,
    queue: Waiting<T>,
    loss: Loss,
    random: Random,
    delay: Nanos,
    jitter: Nanos,
    /// Packets that have passed to the propagation, for their jitter.
    propagated: u64,
    /// Packets between the two ends, by the time they are due, which never falls.
    line: VecDeque<(Nanos, T)>,
    last_due: Nanos,
    dropped: VecDeque<(T, Dropped)>,
    counts: Counts,
}

/// Packets in front of the link.
#[derive(Debug)]
enum Waiting<T> {
    One(Queue<Packet<T>>),
    Fair(FairQueue<Packet<T>>),
}

impl<T> Waiting<T> {
    fn push(&mut self, at: Nanos, packet: Packet<T>, mut drop: impl FnMut(Packet<T>)) {
        let (bytes, flow) = (packet.bytes, packet.flow);
        match self {
            Waiting::One(queue) => {
                if let Err(packet) = queue.push(at, packet, bytes) {
                    drop(packet);
                }
            }
            Waiting::Fair(queue) => queue.push(at, flow, packet, bytes, drop),
        }
    }

    fn pop(&mut self, at: Nanos, drop: impl FnMut(Packet<T>)) -> Option<Packet<T>> {
        match self {
            Waiting::One(queue) => queue.pop(at, drop).map(|(packet, _)| packet),
            Waiting::Fair(queue) => queue.pop(at, drop),
        }
    }

    fn passed_by(&mut self) {
        if let Waiting::One(queue) = self {
            queue.passed_by();
        }
    }

    fn is_empty(&self) -> bool {
        match self {
            Waiting::One(queue) => queue.is_empty(),
            Waiting::Fair(queue) => queue.is_empty(),
        }
    }

    fn max_bytes(&self) -> u64 {
        match self {
            Waiting::One(queue) => queue.max_bytes(),
            Waiting::Fair(queue) => queue.max_bytes(),
        }
    }

    fn drain(&mut self) -> Vec<T> {
        match self {
            Waiting::One(queue) => queue.drain().map(|packet| packet.item).collect(),
            Waiting::Fair(queue) => queue.drain().map(|packet| packet.item).collect(),
        }
    }
}

/// What serialises the packets.
#[derive(Debug)]
enum Server<T> {
    Unlimited,
    Constant {
        ns_per_byte: f64,
        /// The packet in service and when it will have been sent.
        current: Option<(Nanos, Packet<T>)>,
        /// When the last packet had been sent.
        free_at: Nanos,
    },
    Trace {
        trace: Trace,
        /// The packet in service and how many of its bytes are left.
        current: Option<(u32, Packet<T>)>,
        /// The opportunity being used: its time and the bytes left of it.
        open: Option<(Nanos, u32)>,
    },
}

impl<T> Pipe<T> {
    /// An empty pipe; a trace begins at `start`.
    pub fn new(settings: Settings, seed: u64, direction: Direction, start: Nanos) -> Pipe<T> {
        let random = Random::new(seed, direction);
        Pipe {
            server: match settings.rate {
                Rate::Unlimited => Server::Unlimited,
                Rate::Constant(bits_per_second) => Server::Constant {
                    ns_per_byte: 8e9 / bits_per_second,
                    current: None,
                    free_at: start,
                },
                Rate::Trace(mut trace) => {
                    trace.start(start);
                    Server::Trace { trace, current: None, open: None }
                }
            },
            queue: match settings.discipline {
                Discipline::FqCodel => Waiting::Fair(FairQueue::new(settings.queue_bytes)),
                single => Waiting::One(Queue::new(settings.queue_bytes, single)),
            },
            loss: Loss::new(settings.loss, random),
            random,
            delay: settings.delay,
            jitter: settings.jitter,
            propagated: 0,
            line: VecDeque::new(),
            last_due: 0,
            dropped: VecDeque::new(),
            counts: Counts::default(),
        }
    }

    /// A packet enters at `at`, which may lie before the time of the last call.
    pub fn push(&mut self, at: Nanos, packet: Packet<T>) {
        self.advance(at);
        self.counts.packets += 1;
        self.counts.bytes += u64::from(packet.bytes);
        self.counts.exempt += u64::from(!packet.lossy);
        match &mut self.server {
            Server::Unlimited => return self.propagate(at, packet),
            Server::Constant { ns_per_byte, current: current @ None, free_at } => {
                self.queue.passed_by();
                let start = at.max(*free_at);
                *current = Some((start + service(*ns_per_byte, packet.bytes), packet));
                return;
            }
            Server::Constant { .. } => {}
            Server::Trace { trace, current, .. } => {
                if current.is_none() && self.queue.is_empty() {
                    // Nobody was there to use them.
                    trace.skip(at);
                }
            }
        }
        let Pipe { queue, dropped, counts, .. } = self;
        queue.push(at, packet, |packet| {
            counts.queue_dropped += 1;
            dropped.push_back((packet.item, Dropped::Queue));
        });
    }

    /// Lets everything happen that happens until `now`.
    pub fn advance(&mut self, now: Nanos) {
        while let Some((at, packet)) = self.serve(now) {
            self.propagate(at, packet);
        }
    }

    /// The next packet that has been serialised by `now`, and when it was.
    fn serve(&mut self, now: Nanos) -> Option<(Nanos, Packet<T>)> {
        let Pipe { server, queue, dropped, counts, .. } = self;
        let mut drop = |packet: Packet<T>| {
            counts.queue_dropped += 1;
            dropped.push_back((packet.item, Dropped::Queue));
        };
        match server {
            Server::Unlimited => None,
            Server::Constant { ns_per_byte, current, free_at } => {
                let sent = current.take_if(|(end, _)| *end <= now)?;
                *free_at = sent.0;
                *current = queue.pop(sent.0, &mut drop).map(|packet| {
                    let end = sent.0 + service(*ns_per_byte, packet.bytes);
                    (end, packet)
                });
                Some(sent)
            }
            Server::Trace { trace, current, open } => loop {
                let Some((at, room)) = open.take() else {
                    let idle = current.is_none() && queue.is_empty();
                    if idle || trace.peek() > now {
                        return None;
                    }
                    *open = Some((trace.peek(), OPPORTUNITY_BYTES));
                    trace.consume();
                    continue;
                };
                let (left, packet) = current.take().or_else(|| {
                    let packet = queue.pop(at, &mut drop)?;
                    Some((packet.network_bytes, packet))
                })?;
                if left <= room {
                    *open = (left < room).then(|| (at, room - left));
                    return Some((at, packet));
                }
                *current = Some((left - room, packet));
            },
        }
    }

    /// From the end of the serialisation on: loss, delay and jitter.
    fn propagate(&mut self, at: Nanos, packet: Packet<T>) {
        if packet.lossy && self.loss.next_is_lost() {
            self.counts.lost += 1;
            self.dropped.push_back((packet.item, Dropped::Lost));
            return;
        }
        let mut due = at + self.delay;
        if self.jitter > 0 {
            let unit = self.random.unit(Purpose::Jitter, self.propagated);
            self.propagated += 1;
            let later = (2.0 * unit * self.jitter as f64) as Nanos;
            due = (due + later).saturating_sub(self.jitter).max(at);
        }
        self.last_due = self.last_due.max(due);
        self.line.push_back((self.last_due, packet.item));
    }

    /// When to call [`Pipe::advance`] and [`Pipe::pop_due`] next, if nothing enters.
    pub fn next_deadline(&self) -> Option<Nanos> {
        if let Some((due, _)) = self.line.front() {
            return Some(*due);
        }
        // The end of a service need not be observed on its own: the packet
        // comes out no earlier than the least delay after it.
        let served = match &self.server {
            Server::Unlimited => None,
            Server::Constant { current, .. } => current.as_ref().map(|(end, _)| *end),
            Server::Trace { trace, current, .. } => {
                (current.is_some() || !self.queue.is_empty()).then(|| trace.peek())
            }
        };
        served.map(|end| end + self.delay.saturating_sub(self.jitter))
    }

    /// A packet that comes out by `now`, with the time that it was due.
    pub fn pop_due(&mut self, now: Nanos) -> Option<(Nanos, T)> {
        let due = self.line.front()?.0;
        if due <= now { self.line.pop_front() } else { None }
    }

    /// A packet that will not come out.
    pub fn pop_dropped(&mut self) -> Option<(T, Dropped)> {
        self.dropped.pop_front()
    }

    /// Empties the pipe of what is still under way.
    pub fn drain(&mut self) -> Vec<T> {
        let in_service = match &mut self.server {
            Server::Unlimited => None,
            Server::Constant { current, .. } => current.take().map(|(_, packet)| packet.item),
            Server::Trace { current, .. } => current.take().map(|(_, packet)| packet.item),
        };
        let line = self.line.drain(..).map(|(_, item)| item);
        line.chain(in_service).chain(self.queue.drain()).collect()
    }

    /// What has gone through so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// The most bytes that ever waited at once.
    pub fn max_queue_bytes(&self) -> u64 {
        self.queue.max_bytes()
    }
}

fn service(ns_per_byte: f64, bytes: u32) -> Nanos {
    (ns_per_byte * f64::from(bytes)).round() as Nanos
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MS;

    fn settings() -> Settings {
        Settings {
            rate: Rate::Unlimited,
            delay: 0,
            jitter: 0,
            queue_bytes: 1_000_000,
            discipline: Discipline::Droptail,
            loss: Model::Bernoulli(0.0),
        }
    }

    fn pipe(settings: Settings) -> Pipe<u64> {
        Pipe::new(settings, 1, Direction::Ab, 0)
    }

    fn packet(item: u64, bytes: u32) -> Packet<u64> {
        Packet { item, bytes, network_bytes: bytes - 14, lossy: true, flow: 0 }
    }

    /// Runs the pipe dry as an event loop would; gives (due, item).
    fn outputs(pipe: &mut Pipe<u64>) -> Vec<(Nanos, u64)> {
        let mut outputs = Vec::new();
        while let Some(deadline) = pipe.next_deadline() {
            pipe.advance(deadline);
            while let Some((due, item)) = pipe.pop_due(deadline) {
                assert_eq!(due, deadline, "woken at the exact time");
                outputs.push((due, item));
            }
        }
        outputs
    }

    fn dropped(pipe: &mut Pipe<u64>) -> Vec<(u64, Dropped)> {
        std::iter::from_fn(|| pipe.pop_dropped()).collect()
    }

    #[test]
    fn unlimited_is_delay_only() {
        let mut pipe = pipe(Settings { delay: 25 * MS, ..settings() });
        pipe.push(10, packet(1, 100));
        pipe.push(20, packet(2, 1514));
        assert_eq!(outputs(&mut pipe), [(25 * MS + 10, 1), (25 * MS + 20, 2)]);
    }

    #[test]
    fn rate_spaces_packets_exactly() {
        // 10 Mbit/s: 1250 bytes take 1 ms.
        let mut pipe = pipe(Settings { rate: Rate::Constant(10e6), delay: 5 * MS, ..settings() });
        for item in 0..3 {
            pipe.push(0, packet(item, 1250));
        }
        // Arrives when the link has been idle for long.
        pipe.push(50 * MS, packet(3, 625));
        assert_eq!(
            outputs(&mut pipe),
            [(6 * MS, 0), (7 * MS, 1), (8 * MS, 2), (55 * MS + MS / 2, 3)]
        );
    }

    #[test]
    fn a_late_caller_changes_nothing() {
        let run = |polls: &[Nanos]| {
            let mut pipe = pipe(Settings {
                rate: Rate::Constant(10e6),
                queue_bytes: 5000,
                jitter: MS,
                delay: 3 * MS,
                loss: Model::Bernoulli(0.2),
                ..settings()
            });
            let mut polls = polls.iter().peekable();
            for item in 0..200 {
                let at = item * MS * 9 / 10;
                while let Some(poll) = polls.next_if(|poll| **poll <= at) {
                    pipe.advance(*poll);
                }
                pipe.push(at, packet(item, 1250));
            }
            (outputs_late(&mut pipe), dropped(&mut pipe))
        };
        let often: Vec<Nanos> = (0..200_000).map(|n| n * 1000).collect();
        assert_eq!(run(&often), run(&[]));
        assert!(!run(&[]).1.is_empty());
    }

    fn outputs_late(pipe: &mut Pipe<u64>) -> Vec<(Nanos, u64)> {
        pipe.advance(1000 * MS);
        std::iter::from_fn(|| pipe.pop_due(1000 * MS)).collect()
    }

    #[test]
    fn an_arrival_told_late_is_served_from_when_the_link_was_free() {
        let mut pipe = pipe(Settings { rate: Rate::Constant(10e6), ..settings() });
        pipe.push(0, packet(1, 1250));
        pipe.advance(2 * MS);
        pipe.push(MS / 2, packet(2, 1250));
        assert_eq!(outputs_late(&mut pipe), [(MS, 1), (2 * MS, 2)]);
    }

    #[test]
    fn droptail_limits_what_waits_and_not_what_is_in_service() {
        let mut pipe =
            pipe(Settings { rate: Rate::Constant(10e6), queue_bytes: 2500, ..settings() });
        for item in 0..5 {
            pipe.push(0, packet(item, 1250));
        }
        assert_eq!(dropped(&mut pipe), [(3, Dropped::Queue), (4, Dropped::Queue)]);
        // The first has left, so there is room for one.
        pipe.push(MS, packet(5, 1250));
        pipe.push(MS, packet(6, 1250));
        assert_eq!(dropped(&mut pipe), [(6, Dropped::Queue)]);
        assert_eq!(outputs(&mut pipe), [(MS, 0), (2 * MS, 1), (3 * MS, 2), (4 * MS, 5)]);
        assert_eq!(pipe.max_queue_bytes(), 2500);
        assert_eq!(pipe.counts().queue_dropped, 3);
    }

    #[test]
    fn codel_keeps_the_delay_of_an_overloaded_link_near_its_target() {
        let sojourn = |discipline| {
            let mut pipe = pipe(Settings { rate: Rate::Constant(10e6), discipline, ..settings() });
            // 5 % more than fits, for 60 s.
            let mut delays = Vec::new();
            let mut entered = Vec::new();
            for item in 0..63_000 {
                let at = item * MS * 100 / 105;
                entered.push(at);
                pipe.push(at, packet(item, 1250));
                while let Some((due, item)) = pipe.pop_due(at) {
                    delays.push((due - entered[item as usize]) / MS);
                }
            }
            let mut last = delays.split_off(delays.len() - 10_000);
            last.sort_unstable();
            last[last.len() / 2]
        };
        assert!(sojourn(Discipline::Codel) <= 20);
        assert!(sojourn(Discipline::Droptail) >= 700);
    }

    #[test]
    fn losses_depend_on_the_index_of_what_passed_the_queue_only() {
        let lost = |rate, jitter, exempt_every: Option<u64>| {
            let mut pipe = pipe(Settings {
                rate,
                jitter,
                delay: 2 * MS,
                loss: Model::Bernoulli(0.1),
                ..settings()
            });
            for item in 0..1000 {
                if exempt_every.is_some_and(|every| item % every == 0) {
                    let lossy = false;
                    let exempt = packet(9999, 60);
                    pipe.push(item * MS, Packet { lossy, ..exempt });
                }
                pipe.push(item * MS, packet(item, 1000));
            }
            pipe.advance(10_000 * MS);
            dropped(&mut pipe)
        };
        let reference = lost(Rate::Unlimited, 0, None);
        assert!((60..140).contains(&reference.len()));
        assert!(reference.iter().all(|(_, why)| *why == Dropped::Lost));
        assert_eq!(lost(Rate::Constant(20e6), 0, None), reference);
        assert_eq!(lost(Rate::Unlimited, MS, Some(3)), reference);
    }

    #[test]
    fn exempt_packets_are_never_lost() {
        let mut pipe = pipe(Settings { loss: Model::Bernoulli(1.0), ..settings() });
        let lossy = false;
        pipe.push(0, Packet { lossy, ..packet(1, 60) });
        pipe.push(0, packet(2, 60));
        assert_eq!(outputs(&mut pipe), [(0, 1)]);
        assert_eq!(dropped(&mut pipe), [(2, Dropped::Lost)]);
        let counts = pipe.counts();
        assert_eq!((counts.packets, counts.exempt, counts.lost), (2, 1, 1));
    }

    #[test]
    fn jitter_varies_the_delay_and_never_reorders() {
        let mut pipe = pipe(Settings { delay: 10 * MS, jitter: 4 * MS, ..settings() });
        for item in 0..2000 {
            pipe.push(item * 20 * MS, packet(2 * item, 100));
            pipe.push(item * 20 * MS + 1, packet(2 * item + 1, 100));
        }
        let outputs = outputs(&mut pipe);
        assert_eq!(outputs.len(), 4000);
        assert!(outputs.is_sorted());
        // The first of each pair has no one before it to wait for.
        let delays: Vec<i64> = outputs
            .iter()
            .filter(|(_, item)| item % 2 == 0)
            .map(|(due, item)| *due as i64 - (item / 2 * 20 * MS) as i64)
            .collect();
        let mean = delays.iter().sum::<i64>() / delays.len() as i64;
        assert!((mean - 10 * MS as i64).abs() < MS as i64 / 5, "{mean}");
        let (min, max) = (delays.iter().min(), delays.iter().max());
        assert!((6_000_000..6_200_000).contains(min.unwrap()));
        assert!((13_800_000..=14_000_000).contains(max.unwrap()));
    }

    #[test]
    fn jitter_greater_than_the_delay_never_delivers_into_the_past() {
        let mut pipe =
            pipe(Settings { delay: MS, jitter: 5 * MS, rate: Rate::Constant(10e6), ..settings() });
        for item in 0..500 {
            pipe.push(item * 10 * MS, packet(item, 1250));
        }
        for (due, item) in outputs(&mut pipe) {
            assert!(due >= item * 10 * MS + MS);
        }
    }

    fn traced(text: &str) -> Pipe<u64> {
        pipe(Settings { rate: Rate::Trace(Trace::parse(text).unwrap()), ..settings() })
    }

    #[test]
    fn trace_gives_a_full_packet_an_opportunity() {
        let mut pipe = traced(
            "5
5
8
20
",
        );
        for item in 0..6 {
            pipe.push(0, packet(item, 1514));
        }
        let ms = |list: Vec<(Nanos, u64)>| -> Vec<u64> {
            list.into_iter().map(|(due, _)| due / MS).collect()
        };
        assert_eq!(ms(outputs(&mut pipe)), [5, 5, 8, 20, 25, 25]);
    }

    #[test]
    fn trace_shares_and_spans_opportunities() {
        let mut pipe = traced(
            "1
2
3
4
",
        );
        // 600 + 600 + 300 of the third at 1 ms, its other 300 and 1200 at 2 ms.
        for (item, bytes) in [(0, 600), (1, 600), (2, 600), (3, 1200), (4, 3000)] {
            pipe.push(0, packet(item, bytes + 14));
        }
        assert_eq!(outputs(&mut pipe), [(MS, 0), (MS, 1), (2 * MS, 2), (2 * MS, 3), (4 * MS, 4)]);
    }

    #[test]
    fn trace_opportunities_that_nobody_uses_are_gone() {
        let mut pipe = traced(
            "1
1
1
10
",
        );
        pipe.push(2 * MS, packet(0, 1514));
        pipe.push(2 * MS, packet(1, 1514));
        assert_eq!(outputs(&mut pipe), [(10 * MS, 0), (11 * MS, 1)]);
        // What is left of one is not kept for later either.
        pipe.push(30 * MS, packet(2, 114));
        pipe.push(31 * MS, packet(3, 1514));
        pipe.push(31 * MS, packet(4, 114));
        assert_eq!(outputs(&mut pipe), [(31 * MS, 2), (40 * MS, 3), (41 * MS, 4)]);
    }

    #[test]
    fn trace_limits_its_queue() {
        let mut pipe = pipe(Settings {
            rate: Rate::Trace(Trace::parse("10").unwrap()),
            queue_bytes: 3028,
            ..settings()
        });
        for item in 0..3 {
            pipe.push(0, packet(item, 1514));
        }
        assert_eq!(dropped(&mut pipe), [(2, Dropped::Queue)]);
        assert_eq!(outputs(&mut pipe), [(10 * MS, 0), (20 * MS, 1)]);
    }

    #[test]
    fn drain_gives_everything_once() {
        for rate in [
            Rate::Constant(10e6),
            Rate::Trace(
                Trace::parse(
                    "2
4",
                )
                .unwrap(),
            ),
        ] {
            let mut pipe = pipe(Settings { rate, delay: 100 * MS, ..settings() });
            for item in 0..6 {
                pipe.push(0, packet(item, 1250));
            }
            pipe.advance(3 * MS);
            assert_eq!(pipe.drain(), [0, 1, 2, 3, 4, 5]);
            assert_eq!(pipe.next_deadline(), None);
        }
    }
}
