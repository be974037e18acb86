// SPDX-License-Identifier: GPL-2.0-or-later
//! Clients whose replies are all of one size: packets change places two by two, so that there is a
//! reply to each (`src/engine/src/repair/pairs.rs`).

use pemi_engine::{Config, Direction, MS, US};
use pemi_engine_tests::hop::{Outcome, Scene, run};
use pemi_engine_tests::packets::number;
use pemi_engine_tests::router::Done;

fn padded(seed: u64) -> Scene {
    Scene { loss: 0.02, padded: true, seed, ..Scene::default() }
}

fn recall(scene: impl Fn(u64) -> Scene) -> f64 {
    let outcomes: Vec<Outcome> = (1..=4).map(|seed| run(&scene(seed))).collect();
    let sum = |of: fn(&Outcome) -> u64| outcomes.iter().map(of).sum::<u64>() as f64;
    sum(|it| it.repaired) / sum(|it| it.lost)
}

/// The numbers of the packets to the client, in the order in which they went, copies aside.
fn order(outcome: &Outcome, header: usize) -> Vec<u64> {
    let passed = outcome.done.iter().filter_map(|done| match done {
        Done::Pass(Direction::Down, packet) => number(&packet[header..]),
        _ => None,
    });
    passed.collect()
}

#[test]
fn losses_that_no_size_shows_are_repaired() {
    let in_order = |seed| {
        let config = Config { reorders: false, ..padded(seed).config };
        Scene { config, ..padded(seed) }
    };
    let (with, without) = (recall(padded), recall(in_order));
    assert!(with >= 0.9, "{with} of the losses");
    assert!(without < 0.5, "{without} of them without packets that change places");
    let both_ways = recall(|seed| Scene { loss_up: 0.02, ..padded(seed) });
    assert!(both_ways >= 0.85, "{both_ways} where replies are lost as well");
    let ipv6 = recall(|seed| Scene { ipv6: true, ..padded(seed) });
    assert!(ipv6 >= 0.9, "{ipv6} of the losses");
}

#[test]
fn they_are_repaired_where_packets_are_close_and_replies_are_read_two_or_three_at_a_time() {
    let fast = recall(|seed| Scene { gap: 300 * US, ..padded(seed) });
    assert!(fast >= 0.85, "{fast} of the losses at 33 Mbit/s");
    let read = recall(|seed| Scene { gap: 300 * US, reads_every: 750 * US, ..padded(seed) });
    assert!(read >= 0.8, "{read} of them");
}

#[test]
fn each_packet_goes_once_and_at_most_one_place_later() {
    for seed in 1..=4 {
        let outcome = run(&padded(seed));
        assert!(outcome.waited > 1000, "{} packets waited", outcome.waited);
        let order = order(&outcome, 28);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (1..=3000).collect::<Vec<_>>());
        for (place, number) in (1..).zip(&order) {
            assert!(number.abs_diff(place) <= 1, "{number} went in the place of {place}");
        }
        assert!(outcome.longest < 20 * MS, "held for {} ns", outcome.longest);
    }
}

#[test]
fn nothing_changes_places_without_need() {
    let waited = |scene: Scene| run(&scene).waited;
    let once = waited(Scene { loss: 0.0, ..padded(1) });
    assert!((200..=260).contains(&once), "{once}: a new hop is tried once, for 500 packets");
    assert_eq!(waited(Scene { loss: 0.02, ..Scene::default() }), 0, "sizes tell");
    let blurred = Scene { gap: 300 * US, reads_every: 3 * MS, loss: 0.0, ..padded(1) };
    let soon = waited(blurred);
    assert!(soon < 100, "{soon} waited although replies are less exact than packets are apart");
}

#[test]
fn a_client_that_does_not_reply_at_once_is_soon_left_alone() {
    for seed in 1..=4 {
        let outcome = run(&Scene { prompt: false, ..padded(seed) });
        assert!(outcome.waited < 100, "{} packets waited", outcome.waited);
        assert!(outcome.copies < 200, "{} copies", outcome.copies);
    }
}

#[test]
fn the_next_flow_of_a_client_that_needs_it_begins_at_once() {
    const PACKETS: u64 = 300;
    let waited = |flows, seed| {
        // Each is over before the next one starts, and long enough to repair something.
        let scene = Scene { packets: PACKETS, stagger: 2000 * MS, loss: 0.03, ..padded(seed) };
        run(&Scene { flows, ..scene }).waited
    };
    let firsts: u64 = (1..=8).map(|seed| waited(1, seed)).sum();
    let seconds = (1..=8).map(|seed| waited(2, seed)).sum::<u64>() - firsts;
    // Every second packet waits.
    let most = 8 * PACKETS / 2;
    assert!(firsts < most * 3 / 4, "{firsts} of {most} waited in the first");
    assert!(seconds > most * 9 / 10, "{seconds} of {most} waited in the next");
}
