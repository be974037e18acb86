// SPDX-License-Identifier: GPL-2.0-or-later
//! What somebody can cause who has no business with a client of ours.

use pemi_engine::{
    Action, Config, Direction, Engine, Engines, FlowState, Handle, MS, Nanos, Time, US,
};
use pemi_engine_tests::packets::{Flow, Long, V1, long, short};

/// What an engine wanted to have done.
#[derive(Debug, Default, PartialEq, Eq)]
struct Done {
    copies: usize,
    bytes: usize,
    probes: usize,
    events: usize,
}

impl Done {
    fn take(&mut self, engine: &mut Engines) {
        while let Some(action) = engine.next_action() {
            match action {
                Action::Inject { packet, .. } => {
                    self.copies += 1;
                    self.bytes += packet.len();
                }
                Action::Probe { .. } => self.probes += 1,
                Action::Event(_) => self.events += 1,
                Action::Watch { .. } => {}
                Action::Release(_) | Action::Send { .. } => panic!("nothing is held"),
            }
        }
    }

    /// Shows a packet and does what is due before and after.
    fn show(&mut self, engine: &mut Engines, now: Time, direction: Direction, packet: &[u8]) {
        engine.on_timeout(now);
        engine.on_packet(now, direction, packet, Handle(0));
        self.take(engine);
    }

    /// Lets the time go by.
    fn wait(&mut self, engine: &mut Engines, until: Time) {
        while let Some(at) = engine.next_timeout().filter(|at| *at <= until) {
            engine.on_timeout(at);
            self.take(engine);
        }
    }
}

fn engines(both_directions: bool) -> Engines {
    Engines::new(Config { events: true, both_directions, ..Config::default() }, 1)
}

fn at(ms: i64) -> Time {
    Time::ZERO + ms * MS
}

#[test]
fn who_gets_no_reply_causes_nothing() {
    for both_directions in [false, true] {
        let mut engine = engines(both_directions);
        let mut done = Done::default();
        for n in 0..2048 {
            let flow = Flow::v6(n * 200);
            for k in 0..8 {
                let payload = match k {
                    0 => long(V1, Long::Initial, 1200),
                    _ => short(7, k, 300),
                };
                let packet = flow.datagram(Direction::Down, &payload);
                done.show(&mut engine, at(i64::from(n)), Direction::Down, &packet);
            }
        }
        done.wait(&mut engine, at(100_000));
        assert_eq!(done, Done::default(), "both directions: {both_directions}");
        assert_eq!(engine.flows(at(2048)).count(), 0);
        assert_eq!(engine.stats(at(2048)).cache_bytes, 0);
    }
}

#[test]
fn a_client_without_a_reply_causes_one_copy_at_most() {
    for (both_directions, copies) in [(false, 0), (true, 1)] {
        let mut engine = engines(both_directions);
        let mut done = Done::default();
        let initial = Flow::v4(1).datagram(Direction::Up, &long(V1, Long::Initial, 1200));
        done.show(&mut engine, at(0), Direction::Up, &initial);
        done.wait(&mut engine, at(100_000));
        assert_eq!((done.copies, done.probes), (copies, 0));
    }
}

#[test]
fn a_silent_client_gets_three_times_what_came_at_most() {
    for sizes in [&[1200, 1200, 1200][..], &[80], &[1200, 60, 900, 40, 1200, 300]] {
        let mut engine = engines(false);
        let mut done = Done::default();
        let flow = Flow::v4(1);
        let initial = flow.datagram(Direction::Up, &long(V1, Long::Initial, 1200));
        done.show(&mut engine, at(0), Direction::Up, &initial);
        let mut came = 0;
        for (n, size) in sizes.iter().enumerate() {
            let packet = flow.datagram(Direction::Down, &long(V1, Long::Handshake, *size));
            came += packet.len();
            done.show(&mut engine, at(50 + n as i64), Direction::Down, &packet);
        }
        done.wait(&mut engine, at(30_000));
        assert!(done.copies >= sizes.len(), "the first flight goes twice");
        assert!(done.bytes <= 2 * came, "{} bytes of copies for {came}", done.bytes);
    }
}

/// Connections that silent clients begin, a hundred in one second.
#[test]
fn copies_of_all_flows_have_a_ceiling() {
    let mut engine = engines(false);
    let mut done = Done::default();
    let mut came = 0;
    for n in 0..200u32 {
        let flow = Flow::v4(n * 200);
        let now = at(1000 + i64::from(n));
        let initial = flow.datagram(Direction::Up, &long(V1, Long::Initial, 1200));
        done.show(&mut engine, now, Direction::Up, &initial);
        for _ in 0..3 {
            let packet = flow.datagram(Direction::Down, &long(V1, Long::Handshake, 1200));
            came += packet.len();
            done.show(&mut engine, now, Direction::Down, &packet);
        }
    }
    done.wait(&mut engine, at(1999));
    let limit = 128 * 1024 + came / 2;
    assert!(done.bytes <= limit, "{} bytes of copies for {came}", done.bytes);
    assert!(done.bytes + 1300 > limit, "the ceiling was reached");
}

/// A call in a pause of speech, which sends every 60 ms both ways, and what happens
/// beside it 20,000 times a second.
fn call_beside(flood: impl Fn(&mut Engine, Time, u32)) -> Option<FlowState> {
    let mut engine = Engine::new(Config::default(), 1);
    let call = Flow::v4(3);
    let show = |engine: &mut Engine, now: Time, direction: Direction, payload: &[u8]| {
        engine.on_timeout(now);
        engine.on_packet(now, direction, &call.datagram(direction, payload), Handle(0));
        while engine.next_action().is_some() {}
    };
    show(&mut engine, at(0), Direction::Up, &long(V1, Long::Initial, 1200));
    show(&mut engine, at(1), Direction::Down, &long(V1, Long::Handshake, 900));
    for n in 0..200_000u32 {
        let now = at(2) + Nanos::from(n) * 50 * US;
        if n % 1200 == 0 {
            show(&mut engine, now, Direction::Down, &short(7, u64::from(n), 300));
            show(&mut engine, now + 10 * US, Direction::Up, &short(8, u64::from(n), 200));
        }
        flood(&mut engine, now, n);
        while engine.next_action().is_some() {}
    }
    let now = at(10_010);
    engine.flows(now).find(|flow| flow.client == call.client).map(|flow| flow.state)
}

#[test]
fn floods_do_not_push_out_a_call() {
    let initial = long(V1, Long::Initial, 1200);
    let reply = long(V1, Long::Handshake, 80);
    let from_servers = |engine: &mut Engine, now: Time, n: u32| {
        let packet = Flow::v4(n * 200 + 400).datagram(Direction::Down, &initial);
        engine.on_packet(now, Direction::Down, &packet, Handle(n));
    };
    let from_clients = |engine: &mut Engine, now: Time, n: u32| {
        let packet = Flow::v4(n * 200 + 400).datagram(Direction::Up, &initial);
        engine.on_packet(now, Direction::Up, &packet, Handle(n));
    };
    let established = |engine: &mut Engine, now: Time, flow: Flow, n: u32| {
        engine.on_packet(now, Direction::Up, &flow.datagram(Direction::Up, &initial), Handle(n));
        engine.on_packet(now, Direction::Down, &flow.datagram(Direction::Down, &reply), Handle(n));
    };
    let one_client = |engine: &mut Engine, now: Time, n: u32| {
        let mut flow = Flow::v4(200);
        flow.client.set_port(1 + (n % 60_000) as u16);
        established(engine, now, flow, n);
    };
    let many_clients = |engine: &mut Engine, now: Time, n: u32| {
        established(engine, now, Flow::v4(n * 200 + 400), n);
    };
    assert_eq!(call_beside(from_servers), Some(FlowState::Protected), "from servers");
    assert_eq!(call_beside(from_clients), Some(FlowState::Protected), "from clients");
    assert_eq!(call_beside(one_client), Some(FlowState::Protected), "of one client, established");
    assert_eq!(call_beside(many_clients), Some(FlowState::Protected), "of many, established");
}

#[test]
fn a_client_with_more_than_its_share_makes_room() {
    let config = Config { max_flows: 64, ..Config::default() };
    let mut engine = Engine::new(config, 1);
    let begin = |engine: &mut Engine, now: Time, flow: Flow| {
        for (direction, payload) in [
            (Direction::Up, long(V1, Long::Initial, 1200)),
            (Direction::Down, long(V1, Long::Handshake, 80)),
        ] {
            engine.on_packet(now, direction, &flow.datagram(direction, &payload), Handle(0));
            while engine.next_action().is_some() {}
        }
    };
    for n in 0..200 {
        begin(&mut engine, at(i64::from(n)), Flow::v4(n));
    }
    assert_eq!(engine.flows(at(200)).count(), 64, "there was room for all of them");
    for n in 1..100 {
        begin(&mut engine, at(200 + i64::from(n)), Flow::v4(n * 200));
    }
    let first = Flow::v4(0).client.ip();
    let left = engine.flows(at(300)).filter(|flow| flow.client.ip() == first).count();
    assert_eq!((left, engine.flows(at(300)).count()), (16, 64), "a quarter is its share");
}
