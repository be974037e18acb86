// SPDX-License-Identifier: GPL-2.0-or-later
//! With a caller that keeps its side (time goes forwards, timeouts are kept,
//! actions are done at once) every promise holds, whatever the traffic. The
//! checks are in the harness: `router.rs`.

use std::hint::black_box;

use pemi_engine::{Config, Direction, MS, Nanos, SEC, Stats, Time, US};
use pemi_engine_tests::hop::{Scene, run};
use pemi_engine_tests::packets::{Flow, Long, V1, long, short};
use pemi_engine_tests::random::Random;
use pemi_engine_tests::router::{Manners, Router};
use proptest::prelude::*;

fn config() -> impl Strategy<Value = Config> {
    (
        prop_oneof![Just(0usize), Just(200_000), Just(4 << 20)],
        prop_oneof![1usize..6, Just(1024)],
        0u32..40,
        (any::<bool>(), any::<bool>(), any::<bool>()),
        prop_oneof![Just(None), (0..2000i64).prop_map(|ms| Some(ms * MS)), Just(Some(30 * SEC))],
        prop_oneof![(0..500i64).prop_map(|ms| ms * MS), Just(60 * SEC)],
        prop_oneof![(0..100i64).prop_map(|ms| ms * MS), Just(60 * MS)],
    )
        .prop_map(
            |(cache_bytes, max_flows, percent, (conceal, both, reports), release, idle, cap)| {
                Config {
                    cache_bytes,
                    max_flows,
                    resend_percent: percent,
                    conceal,
                    events: true,
                    release_after: release,
                    idle_timeout: idle,
                    hold_cap: cap,
                    both_directions: both,
                    reports,
                    ..Config::default()
                }
            },
        )
}

fn scene() -> impl Strategy<Value = Scene> {
    (
        1u32..6,
        50u64..600,
        prop_oneof![0i64..300, 300i64..3000],
        0u32..120,
        100i64..20_000,
        (any::<bool>(), any::<u64>()),
        prop_oneof![2 => Just(Config { events: true, ..Config::default() }), 1 => config()],
        proptest::option::of((0i64..2000, 1i64..60)),
    )
        .prop_map(|(flows, packets, gap, loss, delay, (ipv6, seed), config, queue)| Scene {
            flows,
            packets,
            size: 200 + (seed % 1200) as usize,
            gap: gap * US,
            stagger: 3 * MS,
            loss: f64::from(loss) / 1000.0,
            delay: delay * US,
            reads_every: 0,
            tells_wait: true,
            frames: seed % 50,
            padded: seed % 3 == 0,
            prompt: seed % 5 > 0,
            loss_up: f64::from(loss) / 2000.0,
            queue: queue.map(|(at, span)| (Time::ZERO + SEC + at * MS, span * MS)),
            late: None,
            ipv6,
            seed,
            config,
        })
}

/// Flows of which every reply may mean anything: sizes wander, jump and fall
/// at random, and so do the times.
fn wander(config: Config, seed: u64, steps: u32, flows: u32) -> Router {
    let mut random = Random(seed);
    let mut router = Router::new(config, seed, Manners::Good);
    let mut now = Time::ZERO + SEC;
    let mut done = Vec::new();
    for n in 0..flows {
        let flow = Flow::v4(n);
        for (direction, kind, body) in [
            (Direction::Up, Long::Initial, 1200),
            (Direction::Down, Long::Handshake, 900),
            (Direction::Up, Long::Handshake, 60),
        ] {
            router.packet(
                now,
                direction,
                &flow.datagram(direction, &long(V1, kind, body)),
                &mut done,
            );
        }
    }
    let mut size = 36;
    for step in 0..u64::from(steps) {
        let pause = match random.below(40) {
            0 => random.below(80 * MS as u64),
            1..=8 => 0,
            _ => random.below(1500 * US as u64),
        };
        now = now + pause as Nanos;
        router.advance(now, &mut done);
        let flow = Flow::v4(random.below(u64::from(flows)) as u32);
        if random.below(3) > 0 {
            let down = flow.datagram(Direction::Down, &short(1, step, 1200));
            router.packet(now, Direction::Down, &down, &mut done);
        } else {
            size = match random.below(60) {
                0..=2 => size + 2,
                3 => size + 3,
                4 => 36,
                5 => 33 + random.below(100) as usize,
                6..=7 => size - size.min(35) % 2 - 1,
                // Mostly as long as the last one, or it proves nothing.
                _ => size,
            }
            .clamp(33, 140);
            let up = flow.datagram(Direction::Up, &short(2, step, size));
            router.packet(now, Direction::Up, &up, &mut done);
        }
        if random.below(500) == 0 {
            // Of every second hop probes take the same time, or each would be one that holds up copies.
            let longest = if seed.is_multiple_of(2) { 2 * MS } else { 20 * MS };
            let rtt = longest - random.below((longest - 2 * MS + 1) as u64) as Nanos;
            router.probe_reply(now, flow.client.ip(), rtt, &mut done);
        }
        done.clear();
    }
    now = now + SEC;
    router.advance(now, &mut done);
    assert_eq!(router.held(), 0, "a second later everything has gone on");
    router.release_all(now, &mut done);
    router
}

#[test]
fn wandering_reaches_what_matters() {
    // Long, and some of them, because hardly anything is done for flows that show nothing.
    let config = Config { events: true, release_after: None, ..Config::default() };
    // Each holds replies for a few round trips in vain, and no longer, as its sender becomes no slower.
    let seeds = [1, 2, 3, 4, 5, 6, 7, 8];
    let all = seeds.map(|seed| wander(config.clone(), seed, 125_000, 2).stats(Time::ZERO));
    let sum = |of: fn(&Stats) -> u64| all.iter().map(of).sum::<u64>();
    assert!(sum(|stats| stats.concealed_gaps) > 20, "{all:?}");
    assert!(sum(|stats| stats.concealed_late) > 0, "{all:?}");
    // Sizes that change at random prove little: a repair is believed only where no packet explains
    // the reply as well, so that there are few.
    assert!(sum(|stats| stats.losses_repaired) > 2, "{all:?}");
    assert!(sum(|stats| stats.losses_upstream) > 20, "{all:?}");
}

#[test]
fn a_cap_shorter_than_the_hop_holds_for_all_holding() {
    // Replies of which the next one tells whether they show a gap wait as well, for a round trip.
    let config = Config { events: true, hold_cap: 0, release_after: None, ..Config::default() };
    for seed in [5, 12, 21, 23, 27, 30] {
        assert_eq!(wander(config.clone(), seed, 20_000, 2).longest, 0);
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3 * ProptestConfig::default().cases, failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn promises_hold_over_any_hop(scene in scene()) {
        let outcome = run(&scene);
        prop_assert!(outcome.longest <= scene.config.hold_cap.max(0));
        prop_assert_eq!(outcome.stats.resent_packets, outcome.copies);
        prop_assert_eq!(outcome.stats.concealed_held, outcome.held);
        prop_assert_eq!(outcome.stats.held_now, 0);
        if !scene.config.conceal {
            prop_assert_eq!(outcome.held, 0);
        }
        if scene.config.resend_percent == 0 {
            prop_assert_eq!(outcome.copies, 0);
        }
    }

    #[test]
    fn promises_hold_for_any_replies(
        config in prop_oneof![Just(Config { events: true, ..Config::default() }), config()],
        seed in any::<u64>(),
        flows in 1u32..8,
    ) {
        wander(config, seed, 3000, flows);
    }
}

/// The part of a span that is above zero, as the rules use it.
#[inline(never)]
fn ahead(later: Time, earlier: Time) -> Nanos {
    later.since(earlier).max(0)
}

/// This test is compiled with optimisation, and so is the engine for it.
#[test]
fn optimised_spans_are_right() {
    let [sooner, later] = [5, 9].map(|ns| Time::from_nanos(black_box(ns)));
    assert_eq!((ahead(sooner, later), ahead(later, sooner)), (0, 4));
    assert_eq!((sooner.since(later), later.since(sooner)), (-4, 4));
}
