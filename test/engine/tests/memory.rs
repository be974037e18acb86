// SPDX-License-Identifier: GPL-2.0-or-later
//! Memory, counted by the allocator.

use pemi_engine::{Config, Direction, Engine, Handle, MS, Nanos, Time, US};
use pemi_engine_tests::heap;
use pemi_engine_tests::hop::{Scene, run};
use pemi_engine_tests::packets::{Flow, Long, V1, long, short};
use pemi_engine_tests::router::Input;

#[global_allocator]
static HEAP: heap::Counting = heap::Counting;

/// Bytes beside the cache and the flows: the queue of actions, and the clients
/// remembered without a flow, for which a build of the engine whose rules can be switched takes more.
const FIXED: usize = 512 * 1024;
const PER_FLOW: usize = 4096;

/// New flows, of which one end has not spoken yet, have places beside `max_flows`.
fn new_flows(max_flows: usize) -> usize {
    (max_flows / 4).clamp(16, 256)
}

fn drain(engine: &mut Engine) {
    while engine.next_action().is_some() {}
}

fn feed(engine: &mut Engine, inputs: &[Input], shift: Nanos) {
    for (n, input) in inputs.iter().enumerate() {
        match input {
            Input::Packet(now, direction, packet) => {
                engine.on_packet(*now + shift, *direction, packet, Handle(n as u32));
            }
            Input::Timeout(now) => engine.on_timeout(*now + shift),
            Input::ProbeReply(now, client, rtt) => {
                engine.on_probe_reply(*now + shift, *client, *rtt);
            }
        }
        drain(engine);
    }
}

/// Losses, copies, holding, many flows: once they have all been, nothing more
/// is allocated.
#[test]
fn a_steady_stream_allocates_nothing() {
    let config = Config { events: true, release_after: None, ..Config::default() };
    let scene = Scene { flows: 40, packets: 400, loss: 0.04, config, ..Scene::default() };
    let outcome = run(&scene);
    assert!(outcome.stats.concealed_held > 0 && outcome.stats.losses_repaired > 0);
    let mut engine = Engine::new(scene.config, 1);
    feed(&mut engine, &outcome.inputs, 0);
    let packets: Vec<(Time, Direction, Vec<u8>)> = outcome
        .inputs
        .iter()
        .filter_map(|input| match input {
            Input::Packet(now, direction, packet) => Some((*now, *direction, packet.clone())),
            _ => None,
        })
        .collect();
    let span = packets.last().map_or(0, |(now, _, _)| now.since(Time::ZERO));
    // Every flow has to have held once, as that allocates its list.
    for round in 1..4 {
        feed(&mut engine, &outcome.inputs, round * span);
    }
    let before = heap::count();
    for round in 4..6 {
        feed(&mut engine, &outcome.inputs, round * span);
    }
    let calls = heap::count().calls - before.calls;
    assert_eq!(calls, 0, "allocations in {} calls", 2 * outcome.inputs.len());
    assert_eq!(heap::count().bytes, before.bytes);
}

/// A flood of new flows, more than ten times as many as there is room for.
#[test]
fn a_flood_of_flows_stays_within_the_bound() {
    for (max_flows, cache_bytes) in [(1024, 4 << 20), (100, 64 << 10), (1000, 1 << 20), (1, 0)] {
        let config = Config { max_flows, cache_bytes, ..Config::default() };
        let cache = cache_bytes.max(64 << 10);
        let records = (cache / 512).next_power_of_two() * 64;
        let places = max_flows + new_flows(max_flows);
        let bound = cache + records + PER_FLOW * places + FIXED;
        let base = heap::count().bytes;
        heap::reset_peak();
        let mut engine = Engine::new(config, 1);
        let mut most = 0;
        for n in 0..12_000u32 {
            // Every flow a client of its own, so that those are bounded too.
            let flow = Flow::v4(n * 200);
            let now = Time::ZERO + Nanos::from(n) * 100 * US;
            let packets = [
                flow.datagram(Direction::Up, &long(V1, Long::Initial, 1200)),
                flow.datagram(Direction::Down, &long(V1, Long::Handshake, 900)),
                flow.datagram(Direction::Up, &short(7, 1, 40)),
                flow.datagram(Direction::Down, &short(8, 1, 1200)),
            ];
            let outside = heap::count().bytes;
            for (k, packet) in packets.iter().enumerate() {
                let direction = if k % 2 == 0 { Direction::Up } else { Direction::Down };
                engine.on_timeout(now);
                engine.on_packet(now, direction, packet, Handle(n));
                drain(&mut engine);
            }
            most = most.max(heap::count().bytes - outside);
            assert!(engine.flows(now).count() <= max_flows);
        }
        let used = usize::try_from(heap::count().peak - base).unwrap_or(0);
        assert!(used <= bound, "{used} bytes with {max_flows} flows, the bound is {bound}");
        assert!(most < bound as isize, "{most}");
        let stats = engine.stats(Time::ZERO + 2000 * MS);
        assert!(stats.cache_bytes <= stats.cache_limit && stats.cache_limit <= cache as u64);
        drop(engine);
        assert!(heap::count().bytes - base < 4096, "all given back");
    }
}

/// A million tuples to which nobody replies, from each side.
#[test]
fn a_flood_of_strangers_costs_the_places_of_new_flows() {
    let base = heap::count().bytes;
    let mut engine = Engine::new(Config::default(), 1);
    let empty = heap::count().bytes - base;
    let initial = long(V1, Long::Initial, 1200);
    heap::reset_peak();
    let before = heap::count().bytes;
    for n in 0..1_000_000u32 {
        let direction = if n % 2 == 0 { Direction::Down } else { Direction::Up };
        let packet = Flow::v4(n * 200).datagram(direction, &initial);
        let now = Time::ZERO + Nanos::from(n) * 50 * US;
        engine.on_packet(now, direction, &packet, Handle(n));
        assert!(engine.next_action().is_none());
    }
    let grown = heap::count().peak - before;
    let bound = (PER_FLOW * (new_flows(1024) + 1)) as isize;
    assert!(grown <= bound, "{grown} bytes beside {empty}, the bound is {bound}");
    assert_eq!(engine.stats(Time::ZERO).cache_bytes, 0, "nothing of theirs is kept");
}

/// Every flow in its costliest state at once: holding.
#[test]
fn flows_that_hold_stay_within_the_bound() {
    let config = Config { max_flows: 64, cache_bytes: 1 << 20, ..Config::default() };
    let scene = Scene { flows: 64, packets: 300, loss: 0.05, config, ..Scene::default() };
    let outcome = run(&scene);
    assert!(outcome.stats.concealed_gaps > 64);
    let base = heap::count().bytes;
    heap::reset_peak();
    let mut engine = Engine::new(scene.config, 1);
    feed(&mut engine, &outcome.inputs, 0);
    let used = usize::try_from(heap::count().peak - base).unwrap_or(0);
    let bound = (1 << 20) + 2048 * 64 + PER_FLOW * (64 + new_flows(64)) + FIXED;
    assert!(used <= bound, "{used} bytes, the bound is {bound}");
}
