// SPDX-License-Identifier: GPL-2.0-or-later
//! Congestion of the hop is never hidden from the sender.

use pemi_engine::{MS, SEC, Time};
use pemi_engine_tests::hop::{Outcome, Scene, run};

/// Four seconds with losses; from the second second on a queue stands on the
/// hop, and probes show it.
fn with_queue(queue: i64, seed: u64) -> Outcome {
    let queue = Some((Time::ZERO + 2 * SEC, queue));
    run(&Scene { loss: 0.02, queue, seed, ..Scene::default() })
}

#[test]
fn losses_in_a_standing_queue_are_congestion() {
    for seed in 1..=3 {
        let queued = with_queue(38 * MS, seed);
        let s = queued.stats;
        assert!(s.losses_congestion > 0, "{s:?}");
        let clear = run(&Scene { loss: 0.02, seed, ..Scene::default() });
        assert_eq!(clear.stats.losses_congestion, 0);
        // The queue stands for half of the time, and it takes some of that until
        // the probes have shown it.
        assert!(
            4 * s.losses_repaired < 3 * clear.stats.losses_repaired,
            "{} repaired, {} without the queue",
            s.losses_repaired,
            clear.stats.losses_repaired
        );
    }
}

#[test]
fn delay_that_a_wireless_hop_shows_unloaded_is_not() {
    for seed in 1..=3 {
        assert_eq!(with_queue(MS, seed).stats.losses_congestion, 0);
    }
}

/// Once the queue is known to stand, not one reply is held and no copy sent.
#[test]
fn nothing_is_held_or_sent_again_while_the_queue_stands() {
    let queue_at = Time::ZERO + 2 * SEC;
    let outcome = with_queue(38 * MS, 4);
    let known = queue_at + 700 * MS;
    let late = outcome
        .done
        .iter()
        .filter_map(|done| match done {
            pemi_engine_tests::router::Done::Event(event) if event.at > known => Some(event.kind),
            _ => None,
        })
        .filter(|kind| matches!(kind, pemi_engine::EventKind::HoldStart))
        .count();
    assert_eq!(late, 0, "episodes of holding in the queue");
}
