// SPDX-License-Identifier: GPL-2.0-or-later
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::config::{Protocols, Repair};
use crate::sys::{channel, reply};
use pemi_engine::packet::find;
use pemi_engine::{EventKind, Fate, FlowState, SEC, Ticket, Time};
use scripted::{Book, Cue, Script, Shared, Wire, cue, world};

mod scripted;
mod told;

/// A worker without a kernel, and what its test holds of it.
struct Bench {
    world: Shared,
    worker: Worker<Script, Book>,
    commands: Sender<Command>,
    waker: Arc<Waker>,
    moved: Arc<AtomicBool>,
}

impl Bench {
    fn new(config: &Config, script: Vec<Cue>) -> Bench {
        let world = world();
        world.borrow_mut().script.extend(script);
        let (commands, orders) = channel::channel(1);
        let waker = Arc::new(Waker::new().unwrap());
        let (events, _) = channel::channel(1);
        let wanted = Wanted::new(false, LevelFilter::Error);
        let teller = None;
        let moved = Arc::default();
        let line = Line {
            commands: orders,
            waker: waker.clone(),
            moved: Arc::clone(&moved),
            events,
            wanted,
            teller,
        };
        let worker = Worker::new(config, Script::new(&world), Book::new(&world), line);
        Bench { world, worker, commands, waker, moved }
    }

    /// Until all of the script has come.
    fn play(&mut self) {
        while !self.world.borrow().script.is_empty() {
            assert!(self.worker.turn().unwrap().is_continue());
        }
    }

    /// One turn, for a command.
    fn tell(&mut self, command: Command) -> ControlFlow<()> {
        self.commands.send(command).unwrap();
        self.waker.wake();
        self.worker.turn().unwrap()
    }

    fn snapshot(&mut self) -> Snapshot {
        let (to, from) = reply::pair();
        assert!(self.tell(Command::Snapshot(to)).is_continue());
        from.wait(std::time::Duration::ZERO).unwrap()
    }

    fn wire(&self) -> Vec<Wire> {
        self.world.borrow().wire.clone()
    }

    fn copies(&self) -> Vec<(Direction, Vec<u8>)> {
        let copy = |wire| match wire {
            Wire::Copy(direction, bytes) => Some((direction, bytes)),
            Wire::Went(..) | Wire::Gone(_) | Wire::Sent(..) | Wire::Closed => None,
        };
        self.wire().into_iter().filter_map(copy).collect()
    }
}

/// An IPv4 packet between client and server that looks like QUIC with a short header, or,
/// if it is `long`, like the Initial of a connection.
fn packet(direction: Direction, long: bool, payload: usize, number: u32) -> Vec<u8> {
    let mut ends = [([192, 0, 2, 9], 50_000u16), ([198, 51, 100, 1], 443)];
    if direction == Direction::Down {
        ends.reverse();
    }
    let len = 28 + payload as u16;
    let mut bytes = vec![0x45, 0, (len >> 8) as u8, len as u8, 0, 0, 0x40, 0, 64, 17, 0, 0];
    bytes.extend(ends.iter().flat_map(|(address, _)| *address));
    bytes.extend(ends.iter().flat_map(|(_, port)| port.to_be_bytes()));
    bytes.extend((len - 20).to_be_bytes());
    bytes.extend([0, 0]);
    match long {
        // Version 1, connection IDs of four bytes, no token.
        true => bytes.extend([0xc3, 0, 0, 0, 1, 4, 1, 2, 3, 4, 4, 9, 9, 9, 9, 0, 0x44, 0x9e]),
        false => bytes.extend([0x41, 9, 9, 9, 9]),
    }
    // What looks encrypted.
    let mut state = number.wrapping_mul(0x9e37_79b9) | 1;
    while bytes.len() < usize::from(len) {
        state = state.wrapping_mul(0x0019_660d).wrapping_add(0x3c6e_f35f);
        bytes.push((state >> 24) as u8);
    }
    bytes
}

/// A download in virtual time whose client acknowledges every second packet. One packet in
/// a hundred is lost: the acknowledgement is two bytes longer, and so are those that follow
/// until the copy is there. Packets down have a handle if they are `judged`.
fn download(judged: bool) -> Vec<Cue> {
    let mut cues: Vec<Cue> = Vec::new();
    let mut at = Time::ZERO + 2 * SEC;
    let mut show = |at, direction, payload| {
        let number = cues.len() as u32 + 1;
        let handle = (judged || direction == Direction::Up).then_some(number);
        cues.push(cue(at, handle, packet(direction, false, payload, number)));
    };
    for round in 0..1000 {
        let lost = round % 50 == 49;
        for _ in 0..2 {
            at = at + MS / 10;
            show(at, Direction::Down, 1250);
        }
        at = at + MS;
        show(at, Direction::Up, if lost { 35 } else { 33 });
        if lost {
            at = at + MS;
            show(at, Direction::Up, 33);
        }
    }
    cues
}

#[test]
fn a_worker_repairs_what_a_capture_shows() {
    // The queue's way, and that of a ring, which shows packets that have passed.
    for judged in [true, false] {
        let mut bench = Bench::new(&Config::default(), download(judged));
        let handles: Vec<u32> = bench
            .world
            .borrow()
            .script
            .iter()
            .filter_map(|cue| cue.seen.handle)
            .map(|it| it.0)
            .collect();
        bench.play();
        let snapshot = bench.snapshot();
        assert_eq!((snapshot.capture_name, snapshot.id), ("script", 7));
        assert_eq!(snapshot.packets(), 3020);
        assert!(snapshot.outlet.probes.sent > 0);
        let stats = snapshot.stats;
        assert!(stats.losses_repaired >= 10 && stats.concealed_held > 0, "{stats:?}");
        assert_eq!(bench.copies().len() as u64, stats.resent_packets);
        // Everything that waits for a verdict has got one, and nothing else.
        assert!(bench.tell(Command::Stop).is_break());
        let mut went: Vec<u32> = Vec::new();
        for wire in bench.wire() {
            match wire {
                Wire::Went(handle, None) => went.push(handle),
                Wire::Went(_, Some(mark)) => panic!("let go with mark {mark:#x}"),
                Wire::Copy(direction, _) => assert_eq!(direction, Direction::Down),
                Wire::Gone(_) | Wire::Sent(..) => panic!("nobody reports anything: {wire:?}"),
                Wire::Closed => {}
            }
        }
        went.sort_unstable();
        assert_eq!(went, handles, "judged: {judged}");
        assert_eq!(bench.wire().last(), Some(&Wire::Closed));
    }
}

#[test]
fn a_copy_goes_behind_the_verdicts_given_before_it() {
    let config = Config { direction: Repaired::Both, ..Config::default() };
    let start = Time::ZERO + 2 * SEC;
    let initial = packet(Direction::Up, true, 1200, 1);
    let mut bench = Bench::new(&config, vec![cue(start, Some(1), initial.clone())]);
    bench.play();
    assert_eq!(bench.wire(), [Wire::Went(1, None)]);
    assert_eq!(bench.world.borrow().ways.len(), 1);
    // The server does not answer, and the engine's timer sends a copy. In the batch in which
    // that happens there is a packet that came before the timer was due, and one after it.
    let due = bench.worker.engine.next_timeout().unwrap();
    let other = |number| {
        let mut bytes = packet(Direction::Up, false, 40, number);
        bytes[20..22].copy_from_slice(&[0, number as u8]);
        bytes
    };
    bench.world.borrow_mut().now = due + MS;
    bench
        .world
        .borrow_mut()
        .script
        .extend([cue(due, Some(2), other(2)), cue(due + OVERDUE + 1, Some(3), other(3))]);
    bench.play();
    assert_eq!(
        bench.wire()[1..],
        [Wire::Went(2, None), Wire::Copy(Direction::Up, initial), Wire::Went(3, None)]
    );
}

#[test]
fn what_the_engine_cannot_use_goes_on_at_once() {
    let start = Time::ZERO + 2 * SEC;
    let data = || packet(Direction::Down, false, 1000, 1);
    let mut cues: Vec<Cue> = (1..=3).map(|n| cue(start, Some(n), data())).collect();
    cues[0].seen.whole = false;
    // Between ports that are no server's.
    cues[1].bytes[20..22].copy_from_slice(&[0x27, 0x10]);
    cues[2].bytes[0] = 0;
    let mut bench = Bench::new(&Config::default(), cues);
    bench.world.borrow_mut().missed = 4;
    bench.play();
    assert_eq!(bench.wire(), [1, 2, 3].map(|handle| Wire::Went(handle, None)));
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.unseen, snapshot.capture.missed), (3, 4));
    assert!(bench.tell(Command::Reset).is_continue());
    let snapshot = bench.snapshot();
    assert_eq!((snapshot.unseen, snapshot.capture.missed), (0, 0));
}

#[test]
fn whether_there_were_packets_or_a_reset_is_told_without_a_question() {
    let cues = vec![cue(Time::ZERO + SEC, Some(1), packet(Direction::Up, false, 60, 1))];
    let mut bench = Bench::new(&Config::default(), cues);
    bench.play();
    assert!(bench.moved.swap(false, Ordering::Relaxed));
    bench.snapshot();
    assert!(!bench.moved.load(Ordering::Relaxed));
    assert!(bench.tell(Command::Reset).is_continue());
    assert!(bench.moved.load(Ordering::Relaxed));
}

#[test]
fn the_mark_of_a_flow_that_is_let_go_is_added_to_its_own() {
    let start = Time::ZERO + 2 * SEC;
    // No QUIC: the fixed bit is missing, and nothing repeats.
    let mut cues: Vec<Cue> = (1..=80)
        .map(|n| cue(start + i64::from(n) * MS, Some(n), packet(Direction::Up, false, 60, n)))
        .collect();
    for (at, cue) in cues.iter_mut().enumerate() {
        cue.seen.mark = 5;
        cue.bytes[28..33].fill(at as u8);
    }
    let config = Config::default();
    let mut bench = Bench::new(&config, cues);
    bench.play();
    let wire = bench.wire();
    assert!(wire.contains(&Wire::Went(80, Some(config.bypass_mark | 5))), "{:?}", wire.last());
    assert_eq!(wire[0], Wire::Went(1, None));
}

#[test]
fn copies_have_the_checksum_that_hardware_was_to_fill_in() {
    let config = Config { direction: Repaired::Both, ..Config::default() };
    let mut complete = packet(Direction::Up, true, 1200, 1);
    let mut initial = cue(Time::ZERO + 2 * SEC, Some(1), complete.clone());
    initial.seen.checksum_missing = true;
    let udp = find(&complete).unwrap();
    checksum::fill(&mut complete, &udp);
    assert_ne!(complete[26..28], [0, 0]);
    let mut bench = Bench::new(&config, vec![initial]);
    while bench.copies().is_empty() {
        assert!(bench.worker.turn().unwrap().is_continue());
        assert!(bench.world.borrow().now < Time::ZERO + 10 * SEC, "no copy is sent");
    }
    assert_eq!(bench.copies(), [(Direction::Up, complete)]);
}

/// A connection whose first packets are `down`, and what became of them on the wire.
fn with_reports(bench: &mut Bench, down: std::ops::Range<u32>) -> Vec<Wire> {
    let start = bench.world.borrow().now;
    let cues = down.map(|n| {
        let mut cue = cue(start, Some(n), packet(Direction::Down, false, 1000, n));
        cue.seen.devices.1 = scripted::OUT;
        cue
    });
    bench.world.borrow_mut().script.extend(cues);
    bench.play();
    std::mem::take(&mut bench.world.borrow_mut().wire)
}

#[test]
fn what_the_access_point_reports_is_sent_by_the_worker_itself() {
    let config = Config { repair: Repair::Radio, ..Config::default() };
    let start = Time::ZERO + 2 * SEC;
    let initial = cue(start, Some(1), packet(Direction::Up, true, 1200, 1));
    let mut bench = Bench::new(&config, vec![initial]);
    bench.play();
    assert_eq!(with_reports(&mut bench, 0..0), [Wire::Went(1, None)]);
    let bytes = |n| packet(Direction::Down, false, 1000, n);
    let sent = with_reports(&mut bench, 2..4);
    let tickets: Vec<Ticket> = sent
        .iter()
        .filter_map(|wire| if let Wire::Sent(ticket, _) = wire { *ticket } else { None })
        .collect();
    let [two, three] = tickets[..] else { panic!("{sent:?}") };
    let gone = [Wire::Gone(2), Wire::Gone(3)];
    let expected = [Wire::Sent(Some(two), bytes(2)), Wire::Sent(Some(three), bytes(3))];
    assert_eq!(sent, [expected, gone].concat(), "sent, and then taken out");

    // A report is read before the packets that have come meanwhile.
    bench.world.borrow_mut().reports.push((two, Fate::Lost));
    bench.worker.reports().unwrap();
    let copy = with_reports(&mut bench, 0..0);
    assert!(matches!(&copy[..], [Wire::Sent(Some(_), packet)] if *packet == bytes(2)), "{copy:?}");

    // What cannot be sent goes on as it would without us, and in its order.
    bench.world.borrow_mut().full = true;
    let wire = with_reports(&mut bench, 4..6);
    assert_eq!(wire, [Wire::Went(4, None), Wire::Went(5, None)]);
    bench.world.borrow_mut().full = false;
    let wire = with_reports(&mut bench, 6..7);
    assert!(matches!(&wire[..], [Wire::Sent(..), Wire::Gone(6)]), "{wire:?}");
}

/// A TCP segment that acknowledges, from the client or to it.
fn segment(direction: Direction) -> Vec<u8> {
    let mut bytes = packet(direction, false, 12, 1);
    bytes[9] = 6;
    // After the numbers: a header without options, ACK.
    bytes[32..34].copy_from_slice(&[5 << 4, 0x10]);
    bytes
}

#[test]
fn tcp_goes_to_the_engine_whole_or_not_at_all() {
    let config = Config {
        repair: Repair::Radio,
        protocols: Protocols::All,
        device: vec!["lo".into()],
        ..Config::default()
    };
    let start = Time::ZERO + 2 * SEC;
    let mut cues: Vec<Cue> = [Direction::Up, Direction::Down, Direction::Down]
        .into_iter()
        .zip(1..)
        .map(|(direction, n)| cue(start, Some(n), segment(direction)))
        .collect();
    cues[1].seen.devices.1 = scripted::OUT;
    cues[2].seen.checksum_missing = true;
    let mut bench = Bench::new(&config, cues);
    bench.play();
    let wire = bench.wire();
    let sent = &wire[1..];
    assert_eq!(wire[0], Wire::Went(1, None));
    assert!(
        matches!(sent, [Wire::Sent(Some(_), _), Wire::Gone(2), Wire::Went(3, None)]),
        "{wire:?}"
    );
    assert_eq!(bench.snapshot().unseen, 1);
}

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
        protocol: pemi_engine::Protocol::Udp,
        state: FlowState::Unknown,
        knowledge: pemi_engine::Knowledge::Replies,
    };
    let flows = (0..1000).map(|n| flow(n * 7919 % 1000));
    let bytes: Vec<u64> = largest(flows, 5).iter().map(|flow| flow.bytes_down).collect();
    assert_eq!(bytes, [999, 998, 997, 996, 995]);
    assert_eq!(largest([flow(1)].into_iter(), 5).len(), 1);
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
