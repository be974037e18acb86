// SPDX-License-Identifier: GPL-2.0-or-later
//! Flows that are not QUIC, where they are repaired as well: what is reported lost is sent again,
//! TCP's acknowledgements show no hole, and nothing else is done to anybody.

use std::collections::BTreeMap;

use pemi_engine::{
    Config, Direction, Fate, MS, Nanos, Protocol, Protocols, SEC, Ticket, Time, US, Verdict,
};
use pemi_engine_tests::packets::{ACK, Flow, Long, Tcp, V1, long, short};
use pemi_engine_tests::random::Random;
use pemi_engine_tests::router::{Done, Manners, Router};
use proptest::prelude::*;

/// The bytes of a full segment.
const FULL: usize = 1448;
const SYN: u8 = 0x02;
/// Timestamps, and one range beyond a hole; timestamps alone.
const TIMES: [u8; 12] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2];
const HOLE: [u8; 24] = [1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2, 1, 1, 5, 10, 0, 0, 9, 0, 0, 0, 0xf, 0];

fn config() -> Config {
    let protocols = Protocols::All { quic: vec![443] };
    Config { events: true, reports: true, protocols, ..Config::default() }
}

struct Bench {
    router: Router,
    now: Time,
    done: Vec<Done>,
}

impl Bench {
    fn new(config: Config) -> Bench {
        let router = Router::new(config, 1, Manners::Good);
        Bench { router, now: Time::ZERO + SEC, done: Vec::new() }
    }

    /// With a TCP connection.
    fn connected() -> Bench {
        let mut bench = Bench::new(config());
        bench.tcp(Direction::Up, Tcp { control: SYN, ..ACK });
        bench.tcp(Direction::Down, Tcp { sequence: byte(0) - 1, control: SYN | 0x10, ..ACK });
        bench.acknowledge(0, &TIMES);
        bench.all_arrived();
        bench.done.clear();
        bench
    }

    fn show(&mut self, direction: Direction, packet: &[u8]) -> Verdict {
        self.router.packet(self.now, direction, packet, &mut self.done)
    }

    fn tcp(&mut self, direction: Direction, tcp: Tcp<'_>) -> Verdict {
        self.show(direction, &Flow::v4(0).segment(direction, &tcp))
    }

    /// A segment of the server's, the `n`th full one.
    fn data(&mut self, n: u32) -> Verdict {
        self.tcp(Direction::Down, Tcp { sequence: byte(n), data: FULL, ..ACK })
    }

    /// The client's acknowledgement of `n` full ones.
    fn acknowledge(&mut self, n: u32, options: &[u8]) -> Verdict {
        self.tcp(Direction::Up, Tcp { acknowledges: byte(n), options, ..ACK })
    }

    fn pass(&mut self, span: Nanos) {
        self.now = self.now + span;
        self.router.advance(self.now, &mut self.done);
    }

    fn report(&mut self, ticket: Ticket, fate: Fate) {
        self.router.report(self.now, ticket, fate, &mut self.done);
    }

    fn all_arrived(&mut self) {
        for (ticket, _) in std::mem::take(&mut self.router.tickets) {
            self.report(ticket, Fate::Arrived);
        }
    }

    fn tickets(&mut self) -> Vec<Ticket> {
        self.router.tickets.drain(..).map(|(ticket, _)| ticket).collect()
    }

    /// Copies since this was asked last.
    fn copies(&mut self) -> Vec<Vec<u8>> {
        let copies = self.done.iter().filter_map(|done| match done {
            Done::Copy(_, packet) => Some(packet.clone()),
            _ => None,
        });
        let copies = copies.collect();
        self.done.retain(|done| !matches!(done, Done::Copy(..)));
        copies
    }

    /// What the client's packets that went on since this was asked last acknowledge: full segments.
    fn acknowledged(&mut self) -> Vec<u32> {
        let passed = std::mem::take(&mut self.done);
        let number = |done: &Done| match done {
            Done::Pass(Direction::Up, packet) => {
                let number = u32::from_be_bytes(packet[28..32].try_into().unwrap());
                Some(number.wrapping_sub(byte(0)) / FULL as u32)
            }
            _ => None,
        };
        passed.iter().filter_map(number).collect()
    }
}

/// The number of a full segment's first byte; they wrap around soon.
fn byte(n: u32) -> u32 {
    (u32::MAX - 3000).wrapping_add(n * FULL as u32)
}

#[test]
fn a_lost_segment_is_sent_again_and_the_sender_sees_no_hole() {
    let mut bench = Bench::connected();
    for n in 0..5 {
        assert_eq!(bench.data(n), Verdict::Hold, "it is sent in its place");
    }
    let tickets = bench.tickets();
    bench.pass(MS);
    bench.acknowledge(1, &TIMES);
    bench.report(tickets[2], Fate::Lost);
    let copy = Flow::v4(0).segment(Direction::Down, &Tcp { sequence: byte(2), data: FULL, ..ACK });
    assert_eq!(bench.copies(), [copy]);
    // News from before the hole, and a request, do not wait.
    assert_eq!(bench.acknowledge(2, &TIMES), Verdict::Forward);
    let request = Tcp { acknowledges: byte(2), data: 60, options: &HOLE, ..ACK };
    assert_eq!(bench.tcp(Direction::Up, request), Verdict::Forward);
    // What tells of it does, with and without selective acknowledgements.
    assert_eq!(bench.acknowledge(2, &HOLE), Verdict::Hold);
    assert_eq!(bench.acknowledge(2, &TIMES), Verdict::Hold);
    assert_eq!(bench.acknowledged(), [1, 2, 2]);
    bench.all_arrived();
    bench.pass(MS);
    assert_eq!(bench.acknowledge(5, &TIMES), Verdict::Forward);
    assert_eq!(bench.acknowledged(), [5, 2, 2], "the newest first");
    assert_eq!(bench.acknowledge(5, &HOLE), Verdict::Forward, "that one is not ours");
    let stats = bench.router.stats(bench.now);
    assert_eq!((stats.losses_reported, stats.losses_repaired, stats.resent_packets), (1, 1, 1));
    assert_eq!((stats.packets_quic, stats.held_now), (0, 0));
}

#[test]
fn what_says_more_than_an_acknowledgement_does_not_wait() {
    let mut bench = Bench::connected();
    bench.data(0);
    bench.data(1);
    let tickets = bench.tickets();
    bench.report(tickets[0], Fate::Lost);
    assert_eq!(bench.acknowledge(0, &HOLE), Verdict::Hold);
    // FIN, SYN, RST, PSH, URG, and ECN's answers (RFC 3168).
    for control in [0x11, 0x12, 0x14, 0x18, 0x30, 0x50, 0x90] {
        let tcp = Tcp { acknowledges: byte(0), control, options: &HOLE, ..ACK };
        assert_eq!(bench.tcp(Direction::Up, tcp), Verdict::Forward, "{control:#x}");
    }
}

#[test]
fn acknowledgements_wait_for_a_moment_only() {
    let mut bench = Bench::connected();
    bench.data(0);
    bench.data(1);
    let tickets = bench.tickets();
    bench.report(tickets[0], Fate::Lost);
    bench.acknowledge(0, &HOLE);
    bench.pass(MS);
    bench.all_arrived();
    // The one that says so was lost.
    bench.pass(19 * MS);
    assert_eq!(bench.acknowledged(), []);
    bench.pass(MS);
    assert_eq!(bench.acknowledged(), [0]);
}

#[test]
fn what_the_client_has_acknowledged_is_not_sent_again() {
    let mut bench = Bench::connected();
    for n in 0..3 {
        bench.data(n);
    }
    let tickets = bench.tickets();
    bench.acknowledge(2, &TIMES);
    // Only the radio's own acknowledgement was lost.
    bench.report(tickets[1], Fate::Lost);
    assert_eq!(bench.copies().len(), 0);
    bench.report(tickets[2], Fate::Lost);
    assert_eq!(bench.copies().len(), 1);
    let stats = bench.router.stats(bench.now);
    assert_eq!((stats.reports_doubted, stats.losses_reported), (1, 1));
}

#[test]
fn a_lost_acknowledgement_of_the_servers_makes_nothing_wait() {
    let mut bench = Bench::connected();
    bench.tcp(Direction::Down, Tcp { acknowledges: 700, ..ACK });
    let tickets = bench.tickets();
    bench.report(tickets[0], Fate::Lost);
    assert_eq!(bench.copies().len(), 1);
    assert_eq!(bench.acknowledge(0, &TIMES), Verdict::Forward);
    assert_eq!(bench.acknowledge(0, &TIMES), Verdict::Forward);
}

/// A flow to a port that no QUIC is expected of.
fn game() -> Flow {
    let mut flow = Flow::v4(1);
    flow.server.set_port(27015);
    flow
}

#[test]
fn of_other_protocols_nothing_waits_and_nothing_is_guessed() {
    let mut bench = Bench::new(config());
    // It even looks like QUIC, a little.
    for (direction, payload) in [
        (Direction::Up, short(1, 900, 40)),
        (Direction::Down, long(V1, Long::Handshake, 900)),
        (Direction::Up, long(V1, Long::Initial, 1200)),
    ] {
        assert_ne!(bench.show(direction, &game().datagram(direction, &payload)), Verdict::Bypass);
    }
    bench.pass(SEC);
    bench.all_arrived();
    for n in 0..100 {
        let down = game().datagram(Direction::Down, &short(1, n, 900));
        assert_eq!(bench.show(Direction::Down, &down), Verdict::Hold);
        let (ticket, _) = bench.router.tickets.pop().unwrap();
        bench.report(ticket, if n % 10 == 0 { Fate::Lost } else { Fate::Arrived });
        let up = game().datagram(Direction::Up, &short(2, n, 40 + n as usize % 7));
        assert_eq!(bench.show(Direction::Up, &up), Verdict::Forward);
        bench.pass(20 * MS);
        bench.all_arrived();
    }
    let stats = bench.router.stats(bench.now);
    assert_eq!((stats.losses_reported, stats.losses_repaired, stats.resent_packets), (10, 10, 10));
    let probes = bench.done.iter().filter(|done| matches!(done, Done::Probe(_)));
    assert_eq!((probes.count(), stats.concealed_gaps, stats.packets_quic), (0, 0, 0));
}

#[test]
fn quic_is_quic_on_any_port_if_its_first_packet_shows_it() {
    for (first, is_quic) in [(long(V1, Long::Initial, 1200), true), (short(1, 1, 40), false)] {
        let mut bench = Bench::new(config());
        bench.show(Direction::Up, &game().datagram(Direction::Up, &first));
        let answer = long(V1, Long::Handshake, 900);
        bench.show(Direction::Down, &game().datagram(Direction::Down, &answer));
        assert_eq!(bench.router.stats(bench.now).packets_quic, if is_quic { 2 } else { 0 });
        let spoken = bench.router.engine.flows(bench.now).next().map(|flow| flow.protocol);
        assert_eq!(spoken, Some(if is_quic { Protocol::Quic } else { Protocol::Udp }));
    }
}

#[test]
fn where_nobody_reports_they_are_let_go() {
    let mut bench = Bench::new(config());
    bench.tcp(Direction::Up, Tcp { control: SYN, ..ACK });
    let mut seen = 0;
    while bench.data(seen) != Verdict::Bypass {
        bench.pass(20 * MS);
        seen += 1;
        bench.acknowledge(seen, &TIMES);
        assert!(seen < 100);
    }
    assert_eq!(bench.router.stats(bench.now).resent_packets, 0);
    assert_eq!(bench.acknowledge(seen, &TIMES), Verdict::Bypass);
    // The next flow of the client needs no trial of its own.
    let flow = game();
    bench.show(Direction::Up, &flow.datagram(Direction::Up, &[1; 40]));
    let verdict = bench.show(Direction::Down, &flow.datagram(Direction::Down, &[1; 40]));
    assert_eq!(verdict, Verdict::Bypass);
}

#[test]
fn other_protocols_are_let_go_unless_asked_for() {
    let quic = Config { protocols: Protocols::Quic, ..config() };
    for config in [quic, Config { reports: false, ..config() }] {
        let mut bench = Bench::new(config);
        bench.tcp(Direction::Up, Tcp { control: SYN, ..ACK });
        for n in 0..100 {
            assert_eq!(bench.data(n), Verdict::Forward);
            assert_eq!(bench.acknowledge(0, &HOLE), Verdict::Forward);
        }
        let stats = bench.router.stats(bench.now);
        assert_eq!((stats.flows_active, stats.flows_bypassed, stats.packets_other), (0, 0, 201));
    }
}

#[test]
fn a_quic_connection_beside_one_of_tcp_is_another_flow() {
    let mut bench = Bench::connected();
    for (direction, kind) in [(Direction::Up, Long::Initial), (Direction::Down, Long::Handshake)] {
        let packet = Flow::v4(0).datagram(direction, &long(V1, kind, 1200));
        bench.show(direction, &packet);
    }
    let flows = bench.router.engine.flows(bench.now);
    let mut spoken: Vec<&str> = flows.map(|flow| flow.protocol.name()).collect();
    spoken.sort_unstable();
    assert_eq!(spoken, ["QUIC", "TCP"]);
    assert_eq!(bench.router.stats(bench.now).packets_quic, 2);
}

/// A server that sends, a client that acknowledges what it likes, reports as they come.
fn any_connection(config: Config, seed: u64, steps: u32) {
    let mut random = Random(seed);
    let mut bench = Bench::new(config);
    let mut due: BTreeMap<(Time, u32), Fate> = BTreeMap::new();
    let (mut shown, mut went) = (Vec::new(), Vec::new());
    bench.tcp(Direction::Up, Tcp { control: SYN, ..ACK });
    for step in 0..steps {
        let pause = if random.below(40) == 0 { 200 * MS as u64 } else { 1500 * US as u64 };
        bench.pass(random.below(pause) as Nanos);
        while let Some(((at, ticket), fate)) = due.pop_first() {
            if at > bench.now {
                due.insert((at, ticket), fate);
                break;
            }
            bench.report(Ticket(ticket), fate);
        }
        let (sequence, acknowledges) =
            (byte(step), byte(step - random.below(20).min(step.into()) as u32));
        let options: &[u8] = [&TIMES[..], &HOLE, &[]][random.below(3) as usize];
        let data = if random.below(3) == 0 { FULL } else { 0 };
        let control = if random.below(20) == 0 { random.below(256) as u8 } else { 0x10 };
        let tcp = Tcp { sequence, acknowledges, control, options, data };
        if random.below(2) == 0 {
            bench.tcp(Direction::Down, tcp);
            shown.push(sequence);
        } else {
            let waits = bench.tcp(Direction::Up, tcp) == Verdict::Hold;
            assert!(!waits || data == 0 && control == 0x10, "{tcp:?}");
        }
        for (Ticket(ticket), _) in std::mem::take(&mut bench.router.tickets) {
            let delay = match random.below(50) {
                0 => continue,
                1 => random.below(300 * MS as u64),
                _ => random.below(3 * MS as u64),
            };
            let fate = if random.below(8) == 0 { Fate::Lost } else { Fate::Arrived };
            due.insert((bench.now + delay as Nanos, ticket), fate);
        }
        for done in bench.done.drain(..) {
            if let Done::Pass(Direction::Down, packet) = done {
                went.push(u32::from_be_bytes(packet[24..28].try_into().unwrap()));
            }
        }
    }
    assert_eq!(went, shown, "each packet once, in order");
    bench.pass(SEC);
    assert_eq!(bench.router.held(), 0);
    bench.router.release_all(bench.now, &mut bench.done);
    let stats = bench.router.stats(bench.now);
    assert!(stats.losses_repaired <= stats.losses_inferred && stats.held_now == 0, "{stats:?}");
}

#[test]
fn any_connection_reaches_what_matters() {
    any_connection(config(), 5, 20_000);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn promises_hold_for_any_connection(
        conceal in any::<bool>(),
        percent in prop_oneof![Just(10u32), 0u32..100],
        cap in prop_oneof![Just(100 * MS), (0..100i64).prop_map(|ms| ms * MS)],
        seed in any::<u64>(),
    ) {
        let config = Config { conceal, resend_percent: percent, hold_cap: cap, ..config() };
        any_connection(config, seed, 1_000);
    }
}
