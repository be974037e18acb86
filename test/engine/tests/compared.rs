// SPDX-License-Identifier: GPL-2.0-or-later
//! Flows that are left alone for comparison, and what is told of both kinds.

use pemi_engine::{Config, Direction, Engines, FlowState, GONE, Handle, Knowledge, MS, SEC, Time};
use pemi_engine_tests::hop::{Scene, run};
use pemi_engine_tests::packets::{Flow, Long, V1, long, short};

/// Downloads of a megabyte over a hop that loses every thirtieth packet.
fn scene(control_percent: u32) -> Scene {
    let config = Config { control_percent, events: true, ..Config::default() };
    Scene { flows: 8, packets: 900, loss: 0.03, config, ..Scene::default() }
}

/// Engines to which flows begin, each with a reply; their states.
fn begun(config: &Config, flows: u32, seed: u64) -> (Engines, Vec<FlowState>) {
    let mut engines = Engines::new(config.clone(), seed);
    let now = Time::ZERO + SEC;
    for n in 0..flows {
        let flow = Flow::v4(n);
        for (direction, kind) in [(Direction::Up, Long::Initial), (Direction::Down, Long::Initial)]
        {
            let packet = flow.datagram(direction, &long(V1, kind, 1200));
            engines.on_packet(now, direction, &packet, Handle(0));
            while engines.next_action().is_some() {}
        }
    }
    let states = engines.flows(now).map(|flow| flow.state).collect();
    (engines, states)
}

fn alone(states: &[FlowState]) -> usize {
    states.iter().filter(|state| **state == FlowState::Alone).count()
}

#[test]
fn nothing_is_done_for_a_flow_that_is_left_alone() {
    let helped = run(&scene(0));
    let left = run(&scene(100));
    assert!(helped.copies > 0 && helped.held > 0 && helped.repaired > 0);
    assert_eq!((left.copies, left.held, left.repaired), (0, 0, 0));
    assert_eq!(left.stats.losses_inferred, 0);
    assert_eq!(left.stats.flows_protected, 0);
}

#[test]
fn chance_decides_about_so_many() {
    let config = Config { max_flows: 4096, control_percent: 5, ..Config::default() };
    for seed in 1..=4 {
        let (_, states) = begun(&config, 4000, seed);
        // Five times the standard deviation around 200.
        assert!((131..=269).contains(&alone(&states)), "{}", alone(&states));
    }
    let both = Config { both_directions: true, control_percent: 50, ..config };
    let (_, states) = begun(&both, 400, 9);
    assert!((150..=250).contains(&alone(&states)));
}

#[test]
fn the_first_ones_are_helped() {
    for seed in 1..=20 {
        let config = Config { control_percent: 5, ..Config::default() };
        assert_eq!(alone(&begun(&config, 19, seed).1), 0);
    }
}

#[test]
fn another_seed_chooses_others() {
    let config = Config { control_percent: 50, ..Config::default() };
    let chosen = |seed| {
        let (engines, _) = begun(&config, 64, seed);
        let mut alone: Vec<_> = engines
            .flows(Time::ZERO + SEC)
            .filter(|flow| flow.state == FlowState::Alone)
            .map(|flow| flow.client)
            .collect();
        alone.sort();
        alone
    };
    assert_eq!(chosen(1), chosen(1));
    assert_ne!(chosen(1), chosen(2));
}

#[test]
fn the_outcome_of_a_download_is_told_once() {
    let mut both = Vec::new();
    for control_percent in [0, 100] {
        let config = Config { control_percent, ..Config::default() };
        let mut engines = Engines::new(config, 1);
        engines.from_network(3);
        let flow = Flow::v6(1);
        let mut show = |now, direction, payload: &[u8]| {
            let packet = flow.datagram(direction, payload);
            engines.on_timeout(now);
            engines.on_packet(now, direction, &packet, Handle(0));
            while engines.next_action().is_some() {}
            packet.len() as u64
        };
        let start = Time::ZERO + SEC;
        show(start, Direction::Up, &long(V1, Long::Initial, 1200));
        let mut bytes = show(start + 50 * MS, Direction::Down, &long(V1, Long::Initial, 1200));
        let mut now = start + 50 * MS;
        for number in 1..=1000 {
            now = now + if number == 500 { 300 * MS } else { MS };
            bytes += show(now, Direction::Down, &short(1, number, 1200));
            if number % 2 == 0 {
                show(now + MS / 2, Direction::Up, &short(2, number, 36));
            }
        }
        assert_eq!(engines.outcomes(now + 2999 * MS), []);
        let outcomes = engines.outcomes(now + 3 * SEC);
        let [outcome] = outcomes[..] else { panic!("{outcomes:?}") };
        assert_eq!((outcome.network, outcome.helped), (3, control_percent == 0));
        assert_eq!((outcome.bytes, outcome.busy, outcome.stalls), (bytes, 1299 * MS, 1));
        assert_eq!(outcome.knowledge, Knowledge::Replies);
        assert_eq!(engines.outcomes(now + 99 * SEC), []);
        both.push((outcome.bytes, outcome.busy));
    }
    assert_eq!(both[0], both[1], "both kinds are measured in the same way");
}

#[test]
fn a_network_without_help_is_left_alone_and_tells_nothing() {
    let config = Config { control_percent: 50, ..Config::default() };
    let (mut engines, states) = begun(&config, 40, 1);
    assert!((5..=35).contains(&alone(&states)));
    let now = Time::ZERO + 2 * SEC;
    engines.stand_back(now, 1 << 2);
    assert_eq!(
        engines.flows(now).filter(|it| it.state == FlowState::Alone).count(),
        alone(&states)
    );
    engines.stand_back(now, 1);
    assert!(engines.flows(now).all(|flow| flow.state == FlowState::Alone));
}

/// Numbers of networks as the caller tells them.
fn numbers(known: &[u8]) -> [u8; 8] {
    core::array::from_fn(|network| known.get(network).copied().unwrap_or(GONE))
}

/// A download of `flow` that begins at `now`; gives the time of its last packet.
fn download(engines: &mut Engines, flow: &Flow, now: Time) -> Time {
    let mut show = |now, direction, payload: &[u8]| {
        engines.on_packet(now, direction, &flow.datagram(direction, payload), Handle(0));
        while engines.next_action().is_some() {}
    };
    show(now, Direction::Up, &long(V1, Long::Initial, 1200));
    show(now, Direction::Down, &long(V1, Long::Initial, 1200));
    for number in 1..=600 {
        show(now + number * MS, Direction::Down, &short(1, number as u64, 1200));
    }
    now + 600 * MS
}

#[test]
fn what_came_of_downloads_follows_its_network_to_another_number() {
    let mut engines = Engines::new(Config::default(), 1);
    let start = Time::ZERO + SEC;
    engines.from_network(1);
    // One of which the outcome waits to be fetched, and one that runs.
    download(&mut engines, &Flow::v4(1), start);
    let waits = Flow::v4(1).datagram(Direction::Down, &short(1, 601, 1200));
    engines.on_packet(start + 4 * SEC, Direction::Down, &waits, Handle(0));
    let last = download(&mut engines, &Flow::v4(2), start + 4 * SEC);
    // Where nobody comes from, and then another before it.
    engines.renumber(&numbers(&[0, 1]));
    engines.renumber(&numbers(&[1, 2]));
    let networks = |engines: &mut Engines, now| {
        engines.outcomes(now).iter().map(|outcome| outcome.network).collect::<Vec<_>>()
    };
    assert_eq!(networks(&mut engines, last + 3 * SEC), [2, 2]);
    engines.from_network(2);
    let last = download(&mut engines, &Flow::v4(3), last + 4 * SEC);
    engines.renumber(&numbers(&[0, 1]));
    engines.renumber(&numbers(&[0, 1, 2]));
    assert_eq!(networks(&mut engines, last + 3 * SEC), [GONE], "it is not that of others later");
}

#[test]
fn help_stands_back_from_a_network_whatever_number_it_has() {
    let config = Config { control_percent: 0, ..Config::default() };
    let (mut engines, _) = begun(&config, 0, 1);
    let now = Time::ZERO + SEC;
    let state = |engines: &mut Engines, network: u8| {
        engines.from_network(network);
        let flow = Flow::v4(u32::from(network));
        for direction in [Direction::Up, Direction::Down] {
            let packet = flow.datagram(direction, &long(V1, Long::Initial, 1200));
            engines.on_packet(now, direction, &packet, Handle(0));
            while engines.next_action().is_some() {}
        }
        let states: Vec<_> = engines.flows(now).map(|flow| flow.state).collect();
        alone(&states)
    };
    engines.stand_back(now, 0b11);
    engines.renumber(&numbers(&[GONE, 3]));
    let found = [0, 1, 2, 3].map(|network| state(&mut engines, network));
    assert_eq!(found, [0, 0, 0, 1]);
}
