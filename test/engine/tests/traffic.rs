// SPDX-License-Identifier: GPL-2.0-or-later
//! Downloads over a simulated hop: the states that matter are reached, and
//! the promises hold in them (the router of the harness checks those).

use pemi_engine::{Action, Config, Direction, Engine, Handle, MS, SEC, Time, US};
use pemi_engine_tests::hop::{Scene, run};
use pemi_engine_tests::router::Input;

#[test]
fn losses_are_inferred_resent_concealed_and_repaired() {
    for ipv6 in [false, true] {
        for seed in 1..=3 {
            let outcome = run(&Scene { loss: 0.02, seed, ipv6, ..Scene::default() });
            let s = outcome.stats;
            assert!(outcome.lost > 30, "{} lost", outcome.lost);
            assert!(s.losses_inferred > 0 && s.losses_repaired > 0, "{s:?}");
            assert!(s.resent_packets > 0 && s.resent_packets == outcome.copies, "{s:?}");
            assert!(s.concealed_gaps > 0 && s.concealed_held == outcome.held, "{s:?}");
            let recall = outcome.repaired as f64 / outcome.lost as f64;
            assert!(recall >= 0.9, "{} of {} repaired", outcome.repaired, outcome.lost);
        }
    }
}

#[test]
fn replies_that_were_read_late_are_judged_by_when_they_came() {
    // Packets of 48 Mbit/s, and a caller that reads replies every 0.8 ms, when four of them have come.
    let recall = |reads_every, tells_wait| {
        let (lost, repaired) = (1..=8).fold((0, 0), |(lost, repaired), seed| {
            let scene = Scene { loss: 0.01, gap: 150 * US, seed, ..Scene::default() };
            let outcome = run(&Scene { reads_every, tells_wait, ..scene });
            (lost + outcome.lost, repaired + outcome.repaired)
        });
        repaired as f64 / lost as f64
    };
    let (at_once, told, untold) =
        (recall(0, true), recall(800 * US, true), recall(800 * US, false));
    assert!(told > untold, "{told} of those that waited, and without being told {untold}");
    assert!(told >= 0.9 * at_once, "{told} of those that waited, and of the others {at_once}");
}

#[test]
fn a_clean_hop_costs_next_to_nothing() {
    for seed in 1..=5 {
        let outcome = run(&Scene { seed, ..Scene::default() });
        assert_eq!(outcome.lost, 0);
        assert!(outcome.copies <= 30, "{} copies of 3000 packets", outcome.copies);
        assert!(outcome.longest < 20 * MS, "held for {} ns", outcome.longest);
    }
}

#[test]
fn frames_of_the_clients_own_prove_no_loss() {
    // A copy is answered after 2.4 ms, just when the next reply is due.
    let with_frames = |loss, seed| run(&Scene { frames: 40, loss, seed, ..Scene::default() });
    for seed in 1..=5 {
        let clean = with_frames(0.0, seed);
        assert_eq!(clean.stats.losses_repaired, 0, "seed {seed}");
        let lossy = with_frames(0.02, seed);
        let recall = lossy.repaired as f64 / lossy.lost as f64;
        assert!(recall >= 0.9, "{} of {} repaired, seed {seed}", lossy.repaired, lossy.lost);
    }
}

#[test]
fn the_next_connection_over_a_hop_that_lost_nothing_costs_nothing() {
    let copies = |flows| {
        let scene = Scene { flows, packets: 1200, stagger: 10_000 * MS, ..Scene::default() };
        run(&scene).copies
    };
    let first = copies(1);
    assert!(first >= 2, "{first} copies");
    assert_eq!(copies(2), first);
}

/// Everything the engine says to `inputs`, as text.
fn replay(inputs: &[Input], seed: u64) -> Vec<String> {
    let config = Config { events: true, ..Config::default() };
    let mut engine = Engine::new(config, seed);
    let mut said = Vec::new();
    for (n, input) in inputs.iter().enumerate() {
        match input {
            Input::Packet(now, direction, packet) => {
                let verdict = engine.on_packet(*now, *direction, packet, Handle(n as u32));
                said.push(format!("{verdict:?}"));
            }
            Input::Timeout(now) => engine.on_timeout(*now),
            Input::ProbeReply(now, client, rtt) => engine.on_probe_reply(*now, *client, *rtt),
        }
        while let Some(action) = engine.next_action() {
            said.push(match action {
                Action::Inject { packet, .. } => format!("inject {packet:x?}"),
                Action::Send { packet, .. } => format!("send {packet:x?}"),
                other => format!("{other:?}"),
            });
        }
        said.push(format!("{:?}", engine.next_timeout()));
    }
    said
}

#[test]
fn the_seed_of_the_hash_changes_nothing() {
    let scene = Scene { flows: 20, packets: 200, loss: 0.03, ..Scene::default() };
    let outcome = run(&scene);
    assert!(outcome.stats.losses_repaired > 0);
    let first = replay(&outcome.inputs, 1);
    for seed in [0, 2, u64::MAX] {
        assert!(replay(&outcome.inputs, seed) == first, "seed {seed}");
    }
    let injected = first.iter().filter(|said| said.starts_with("inject")).count() as u64;
    assert_eq!(injected, outcome.copies, "the replay is the run");
}

#[test]
fn every_packet_goes_on_exactly_once() {
    let outcome = run(&Scene { flows: 5, packets: 500, loss: 0.05, ..Scene::default() });
    assert!(outcome.held > 0);
    for direction in [Direction::Down, Direction::Up] {
        let mut came: Vec<&[u8]> = outcome
            .inputs
            .iter()
            .filter_map(|input| match input {
                Input::Packet(_, d, packet) if *d == direction => Some(&packet[..]),
                _ => None,
            })
            .collect();
        let mut went: Vec<&[u8]> = outcome
            .done
            .iter()
            .filter_map(|done| match done {
                pemi_engine_tests::router::Done::Pass(d, packet) if *d == direction => {
                    Some(&packet[..])
                }
                _ => None,
            })
            .collect();
        came.sort_unstable();
        went.sort_unstable();
        assert!(came == went, "{direction:?}");
    }
}

/// Attempts that repair something go on where replies keep no time any more: from the third second of
/// eleven on clients are up to 8 ms late.
#[test]
fn losses_are_repaired_where_a_lossy_hop_begins_to_vary() {
    let late = Some((Time::ZERO + 2 * SEC, 8 * MS));
    let scene = Scene { loss: 0.02, late, packets: 9000, ..Scene::default() };
    for seed in 1..=4 {
        let outcome = run(&Scene { seed, ..scene.clone() });
        assert!(2 * outcome.repaired > outcome.lost, "{} of {}", outcome.repaired, outcome.lost);
    }
}
