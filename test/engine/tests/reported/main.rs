// SPDX-License-Identifier: GPL-2.0-or-later
//! Losses that an access point reports: each is repaired by one copy at once, the replies of that
//! time go on in an order that shows no hole, and without reports everything is as ever.

mod bench;
mod legible;
mod often;

use std::collections::BTreeMap;

use bench::{Bench, config};
use pemi_engine::{Config, Direction, Fate, Knowledge, MS, Nanos, SEC, Station, Ticket, Time, US};
use pemi_engine_tests::packets::{Flow, Long, V1, long, number, short};
use pemi_engine_tests::random::Random;
use pemi_engine_tests::router::Done;
use proptest::prelude::*;

/// What an access point may have under way of one station.
const AWAITED: usize = 100;

#[test]
fn a_reported_loss_is_sent_again_at_once_and_hidden() {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    bench.done.clear();
    for n in 0..3 {
        bench.show(0, Direction::Down, &short(1, n, 1200));
    }
    assert_eq!(bench.wire(Direction::Down), (vec![0, 1, 2], vec![]));
    bench.pass(MS);
    let tickets: Vec<Ticket> = bench.router.tickets.drain(..).map(|(ticket, _)| ticket).collect();
    bench.report(tickets[1], Fate::Lost);
    assert_eq!(bench.wire(Direction::Down), (vec![], vec![1]));
    bench.report(tickets[0], Fate::Arrived);
    bench.report(tickets[2], Fate::Arrived);
    // The reply tells of the hole, as the client's reply to the copy does not.
    bench.show(0, Direction::Up, &short(2, 10, 38));
    bench.pass(MS);
    let (copy, _) = bench.router.tickets.pop().expect("the copy may get lost as well");
    bench.report(copy, Fate::Arrived);
    bench.pass(MS);
    bench.show(0, Direction::Up, &short(2, 11, 36));
    assert_eq!(bench.wire(Direction::Up).0, [], "they wait");
    bench.pass(20 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [11, 10]);
    bench.show(0, Direction::Up, &short(2, 12, 36));
    assert_eq!(bench.wire(Direction::Up).0, [12]);
    let stats = bench.router.stats(bench.now);
    assert_eq!((stats.losses_reported, stats.losses_repaired, stats.resent_packets), (1, 1, 1));
    assert_eq!((stats.reports_missing, stats.held_now, stats.concealed_late), (0, 0, 0));
}

#[test]
fn behind_a_stalled_reorder_buffer_replies_wait_for_the_copy() {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    bench.done.clear();
    bench.show(0, Direction::Down, &short(1, 0, 1200));
    let (lost, _) = bench.router.tickets.pop().expect("it is reported of");
    bench.report(lost, Fate::Lost);
    bench.pass(MS);
    bench.all_arrived();
    // Nobody tells the client to go on, so it replies when its own patience ends.
    bench.pass(100 * MS);
    bench.show(0, Direction::Up, &short(2, 10, 38));
    bench.pass(MS);
    bench.show(0, Direction::Up, &short(2, 11, 38));
    assert_eq!(bench.wire(Direction::Up).0, []);
    bench.pass(5 * MS);
    bench.show(0, Direction::Up, &short(2, 12, 36));
    bench.pass(2 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [12, 11, 10], "first the one that shows no hole");
}

#[test]
fn a_reply_waits_for_the_reports_that_it_has_overtaken() {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    bench.done.clear();
    for n in 0..3 {
        bench.show(0, Direction::Down, &short(1, n, 1200));
    }
    let tickets: Vec<Ticket> = bench.router.tickets.drain(..).map(|(ticket, _)| ticket).collect();
    bench.pass(2 * MS);
    bench.show(0, Direction::Up, &short(2, 10, 36));
    bench.show(0, Direction::Up, &short(2, 11, 36));
    assert_eq!(bench.wire(Direction::Up).0, []);
    bench.report(tickets[0], Fate::Arrived);
    bench.report(tickets[1], Fate::Arrived);
    assert_eq!(bench.wire(Direction::Up).0, [], "one may be lost yet");
    bench.report(tickets[2], Fate::Arrived);
    assert_eq!(bench.wire(Direction::Up).0, [10, 11], "nothing is, so they keep their order");
    bench.show(0, Direction::Up, &short(2, 12, 36));
    assert_eq!(bench.wire(Direction::Up).0, [12]);
    // Of the next nobody reports.
    bench.show(0, Direction::Down, &short(1, 3, 1200));
    bench.pass(2 * MS);
    bench.show(0, Direction::Up, &short(2, 13, 36));
    bench.pass(6 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [13], "not for ever");
    let stats = bench.router.stats(bench.now);
    assert_eq!((stats.losses_reported, stats.held_now, stats.concealed_late), (0, 0, 0));
}

#[test]
fn a_reply_does_not_wait_for_packets_that_wait_for_the_air() {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    bench.done.clear();
    let mut waiting = Vec::new();
    for n in 0..200 {
        bench.show(0, Direction::Down, &short(1, n, 1200));
        waiting.extend(bench.router.tickets.drain(..).map(|(ticket, _)| ticket));
        // A queue of 40 packets stands at the access point, and the client replies to each.
        if waiting.len() > 40 {
            let ticket = waiting.remove(0);
            bench.report(ticket, Fate::Arrived);
            bench.show(0, Direction::Up, &short(2, n, 36));
            let passed = bench.wire(Direction::Up).0;
            assert!(n < 100 || passed == [n], "{n}: {passed:?}");
        }
        bench.pass(MS);
    }
    assert_eq!(bench.router.stats(bench.now).reports_missing, 0);
}

#[test]
fn the_reply_that_overtakes_the_report_of_a_loss_shows_no_hole_either() {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    bench.done.clear();
    bench.show(0, Direction::Down, &short(1, 0, 1200));
    bench.pass(2 * MS);
    bench.show(0, Direction::Up, &short(2, 10, 38));
    let (lost, _) = bench.router.tickets.pop().expect("it is reported of");
    bench.report(lost, Fate::Lost);
    bench.show(0, Direction::Up, &short(2, 11, 38));
    bench.pass(MS);
    bench.all_arrived();
    // A clump that the air has kept, and of which only the newest knows of the copy.
    bench.pass(12 * MS);
    for n in 12..15 {
        bench.show(0, Direction::Up, &short(2, n, if n < 14 { 38 } else { 36 }));
    }
    assert_eq!(bench.wire(Direction::Up).0, []);
    bench.pass(2 * MS);
    assert_eq!(bench.wire(Direction::Up).0, [14, 13, 10, 11, 12]);
}

#[test]
fn a_copy_that_is_lost_is_sent_again_but_not_for_ever() {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    bench.done.clear();
    bench.show(0, Direction::Down, &short(1, 0, 1200));
    for _ in 0..20 {
        bench.pass(MS);
        for (ticket, _) in std::mem::take(&mut bench.router.tickets) {
            bench.report(ticket, Fate::Lost);
        }
    }
    assert_eq!(bench.wire(Direction::Down), (vec![0], vec![0; 4]));
    let stats = bench.router.stats(bench.now);
    assert_eq!((stats.losses_reported, stats.losses_repaired), (1, 0));
}

#[test]
fn what_came_behind_a_lost_handshake_packet_is_sent_again_as_well() {
    let mut bench = Bench::new(config(), 0);
    for direction in [Direction::Up, Direction::Down] {
        bench.show(0, direction, &long(V1, Long::Initial, 1200));
    }
    bench.show(0, Direction::Down, &short(1, 7, 300));
    let (lost, _) = bench.router.tickets.remove(0);
    bench.report(lost, Fate::Lost);
    let is_copy = |done: &&Done| matches!(done, Done::Copy(Direction::Down, _));
    assert_eq!(bench.done.iter().filter(is_copy).count(), 2, "what is of no use without it, too");
    assert_eq!(bench.wire(Direction::Down).1.last(), Some(&7), "behind it");
}

#[test]
fn a_pause_after_the_handshake_is_no_reorder_buffer() {
    let mut bench = Bench::new(config(), 0);
    bench.show(0, Direction::Up, &long(V1, Long::Initial, 1200));
    bench.show(0, Direction::Down, &long(V1, Long::Initial, 1200));
    let (lost, _) = bench.router.tickets.remove(0);
    bench.report(lost, Fate::Lost);
    bench.pass(2 * MS);
    bench.all_arrived();
    bench.pass(MS);
    bench.show(0, Direction::Up, &long(V1, Long::Handshake, 60));
    // The server is far away.
    bench.pass(80 * MS);
    bench.show(0, Direction::Down, &short(1, 7, 300));
    bench.all_arrived();
    bench.wire(Direction::Up);
    bench.show(0, Direction::Up, &short(1, 901, 40));
    assert_eq!(bench.wire(Direction::Up).0, [901], "it shows nothing that is not repaired");
}

#[test]
fn late_and_repeated_reports_are_none() {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    bench.show(0, Direction::Down, &short(1, 0, 1200));
    bench.show(0, Direction::Down, &short(1, 1, 1200));
    let tickets: Vec<Ticket> = bench.router.tickets.drain(..).map(|(ticket, _)| ticket).collect();
    bench.report(tickets[0], Fate::Arrived);
    bench.report(tickets[0], Fate::Lost);
    bench.pass(51 * MS);
    bench.report(tickets[1], Fate::Lost);
    bench.report(Ticket(77), Fate::Lost);
    let stats = bench.router.stats(bench.now);
    assert_eq!((stats.losses_reported, stats.resent_packets, stats.reports_missing), (0, 0, 1));
}

#[test]
fn what_cannot_be_sent_is_not_waited_for() {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    for n in 0..1_000 {
        bench.show(0, Direction::Down, &short(1, n, 1200));
        let (ticket, _) = bench.router.tickets.pop().expect("there is room again");
        bench.router.engine.on_unsent(bench.now, ticket);
    }
    bench.pass(SEC);
    assert_eq!(bench.router.stats(bench.now).reports_missing, 0);
}

#[test]
fn only_so_many_reports_of_a_client_are_awaited() {
    let mut bench = Bench::new(config(), 1);
    bench.all_arrived();
    bench.done.clear();
    for n in 0..300 {
        bench.show(0, Direction::Down, &short(1, n, 1200));
    }
    assert_eq!(bench.router.tickets.len(), AWAITED);
    assert_eq!(bench.wire(Direction::Down).0, (0..300).collect::<Vec<_>>(), "all go one way");
    bench.all_arrived();
    bench.show(0, Direction::Down, &short(1, 300, 1200));
    assert_eq!(bench.router.tickets.len(), 1);
}

#[test]
fn where_nobody_reports_losses_are_inferred() {
    let mut bench = Bench::new(config(), 1);
    for n in 0..2_000 {
        bench.show(0, Direction::Down, &short(1, n, 1200));
        bench.pass(20 * MS);
        bench.show(0, Direction::Up, &short(2, n, 40));
    }
    let asked = bench.router.stats(bench.now).reports_asked;
    assert!(asked < 20, "{asked} packets: the trial has failed");
    assert_eq!(bench.router.stats(bench.now).clients_unreported, 1);
    assert!(!bench.router.tickets.is_empty());
}

#[test]
fn of_a_client_that_is_away_no_reports_are_missed() {
    let mut bench = Bench::new(config(), 1);
    for n in 0..200 {
        bench.show(0, Direction::Down, &short(1, n, 1200));
        bench.pass(20 * MS);
    }
    bench.show(0, Direction::Up, &short(2, 0, 40));
    let stats = bench.router.stats(bench.now);
    assert_eq!(stats.clients_unreported, 0);
    assert!(stats.reports_asked > 200, "it is asked on");
}

#[test]
fn a_client_that_comes_back_is_tried_again() {
    for station in [Station::Joined, Station::Moved] {
        let mut bench = Bench::new(config(), 1);
        let client = Flow::v4(0).client.ip();
        let asked = |bench: &Bench| bench.router.stats(bench.now).reports_asked;
        let show = |bench: &mut Bench, from: u64| {
            for n in from..from + 20 {
                bench.show(0, Direction::Down, &short(1, n, 1200));
                bench.pass(20 * MS);
                bench.show(0, Direction::Up, &short(2, n, 40));
            }
        };
        show(&mut bench, 0);
        bench.all_arrived();
        // For a second it is where nobody reports what is sent to it.
        show(&mut bench, 20);
        show(&mut bench, 40);
        bench.router.tickets.clear();
        let before = asked(&bench);
        show(&mut bench, 60);
        assert_eq!(asked(&bench), before, "the trial has failed");
        bench.router.engine.on_station(bench.now, client, station);
        show(&mut bench, 80);
        assert!(asked(&bench) > before, "{station:?}");
    }
}

#[test]
fn losses_that_are_not_counted_are_not_believed() {
    let mut bench = Bench::new(config(), 1);
    for n in 0..2_000 {
        if n % 100 == 0 {
            bench.counted(0, 0);
        }
        bench.show(0, Direction::Down, &short(1, n, 1200));
        bench.pass(MS);
        for (ticket, packet) in std::mem::take(&mut bench.router.tickets) {
            let lost = number(&packet[28..]).is_some_and(|n| n % 10 == 0);
            bench.report(ticket, if lost { Fate::Lost } else { Fate::Arrived });
        }
    }
    let stats = bench.router.stats(bench.now);
    assert!(stats.losses_reported <= 32 && stats.reports_doubted > 150, "{stats:?}");
}

#[test]
fn counts_decide_whether_reports_are_asked_for() {
    let config = Config { reports_counted: true, counts: true, ..config() };
    let mut bench = Bench::new(config, 1);
    let knows = |bench: &Bench| bench.router.engine.flows(bench.now).next().unwrap().knowledge;
    let client = Flow::v4(0).client.ip();
    let show = |bench: &mut Bench, from: u64| {
        for n in from..from + 20 {
            bench.show(0, Direction::Down, &short(1, n, 1200));
            bench.pass(10 * MS);
            bench.all_arrived();
        }
    };
    show(&mut bench, 0);
    assert_eq!(bench.router.stats(bench.now).reports_asked, 0, "nobody counts");
    assert_eq!(bench.router.watched, [client], "but somebody is to");
    assert_eq!(knows(&bench), Knowledge::Replies);
    bench.counted(0, 0);
    assert_eq!(knows(&bench), Knowledge::Counts);
    show(&mut bench, 20);
    assert_eq!(bench.router.stats(bench.now).reports_asked, 20);
    assert_eq!(knows(&bench), Knowledge::Reports);
    bench.router.engine.on_station(bench.now, client, Station::Gone);
    bench.pass(10 * MS);
    show(&mut bench, 40);
    assert_eq!(bench.router.stats(bench.now).reports_asked, 20, "by cable, perhaps");
    assert_eq!(knows(&bench), Knowledge::Replies);
}

#[test]
fn what_was_under_way_to_a_client_that_moved_is_sent_again_when_it_speaks() {
    for reports in [true, false] {
        let mut bench = Bench::new(Config { reports, ..config() }, 1);
        bench.all_arrived();
        // Replies after 2 ms.
        for n in 0..20 {
            bench.show(0, Direction::Down, &short(1, n, 1200));
            bench.pass(2 * MS);
            bench.all_arrived();
            bench.show(0, Direction::Up, &short(2, n, 36));
        }
        bench.pass(200 * MS);
        bench.done.clear();
        for n in 20..30 {
            bench.show(0, Direction::Down, &short(1, n, 1200));
            bench.pass(2 * MS);
        }
        bench.all_arrived();
        let client = Flow::v4(0).client.ip();
        bench.router.engine.on_station(bench.now, client, Station::Moved);
        bench.pass(4 * MS);
        let early = bench.wire(Direction::Down).1;
        assert!(early.iter().all(|n| *n == 29), "it may not hear yet; but a tail's: {early:?}");
        bench.show(0, Direction::Down, &short(1, 30, 1200));
        bench.pass(2 * MS);
        bench.show(0, Direction::Up, &short(2, 20, 38));
        bench.pass(0);
        let (_, copies) = bench.wire(Direction::Down);
        assert!(copies.starts_with(&[20, 21, 22, 23, 24, 25, 26, 27, 28]), "{copies:?}");
        bench.pass(SEC);
        assert_eq!(bench.wire(Direction::Up).0, [20], "nothing is held for ever");
    }
}

#[test]
fn signs_count_for_nothing_once_nothing_is_counted() {
    let mut bench = Bench::new(Config { reports: false, counts: true, ..config() }, 1);
    for n in 0..2_000 {
        if n % 100 == 0 {
            bench.counted(0, 0);
        }
        bench.show(0, Direction::Down, &short(1, n, 1200));
        bench.pass(2 * MS);
        // One reply in ten says that something is missing.
        bench.show(0, Direction::Up, &short(2, n, if n % 10 == 0 { 38 } else { 36 }));
    }
    let copies = bench.router.stats(bench.now).resent_packets;
    assert!((1..=32).contains(&copies), "{copies}");
}

/// An access point in virtual time that does what the seed says: reports come after some time,
/// some too late, some never, and some tell of a loss.
fn any_reports(config: Config, seed: u64, steps: u64, flows: u32) {
    let mut random = Random(seed);
    let mut bench = Bench::new(config, flows);
    let mut due: BTreeMap<(Time, u32), Fate> = BTreeMap::new();
    let (mut shown, mut passed) = (vec![Vec::new(); flows as usize], Vec::new());
    passed.resize(flows as usize, Vec::new());
    for step in 0..steps {
        let pause = match random.below(30) {
            0 => random.below(200 * MS as u64),
            1..=8 => 0,
            _ => random.below(1500 * US as u64),
        };
        bench.pass(pause as Nanos);
        while let Some(((at, ticket), fate)) = due.pop_first() {
            if at > bench.now {
                due.insert((at, ticket), fate);
                break;
            }
            bench.report(Ticket(ticket), fate);
        }
        let n = random.below(u64::from(flows)) as u32;
        if random.below(3) > 0 {
            bench.show(n, Direction::Down, &short(1, step, 1200));
            shown[n as usize].push(step);
        } else {
            let size = 33 + random.below(80) as usize;
            bench.show(n, Direction::Up, &short(2, step, size));
        }
        if random.below(200) == 0 {
            bench.counted(n, random.below(9) as u32);
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
        note(&mut bench.done, &mut passed);
    }
    bench.pass(SEC);
    note(&mut bench.done, &mut passed);
    assert_eq!(passed, shown, "each packet once, in the order of its flow");
    assert_eq!(bench.router.held(), 0, "a second later everything has gone on");
    let (now, mut done) = (bench.now, Vec::new());
    bench.router.release_all(now, &mut done);
    let stats = bench.router.stats(now);
    assert!(stats.losses_repaired <= stats.losses_inferred && stats.held_now == 0, "{stats:?}");
}

/// Moves the numbers of packets that went down to the lists of their flows.
fn note(done: &mut Vec<Done>, passed: &mut [Vec<u64>]) {
    for done in done.drain(..) {
        let Done::Pass(Direction::Down, packet) = done else { continue };
        let flow = (0..).map(Flow::v4).position(|flow| {
            pemi_engine_tests::packets::flow_of(&packet, Direction::Down) == Some(flow)
        });
        let flow = flow.expect("one of ours");
        if packet[28] & 0x80 == 0 {
            passed[flow].extend(number(&packet[28..]));
        }
    }
}

#[test]
fn any_reports_reach_what_matters() {
    any_reports(config(), 3, 20_000, 2);
}

proptest! {
    #![proptest_config(ProptestConfig {
        failure_persistence: None, ..ProptestConfig::default()
    })]

    #[test]
    fn promises_hold_for_any_reports(
        conceal in any::<bool>(),
        percent in prop_oneof![Just(10u32), 0u32..100],
        cap in prop_oneof![Just(100 * MS), (0..100i64).prop_map(|ms| ms * MS)],
        seed in any::<u64>(),
        flows in 1u32..6,
    ) {
        let config = Config { conceal, resend_percent: percent, hold_cap: cap, ..config() };
        any_reports(config, seed, 2_000, flows);
    }
}
