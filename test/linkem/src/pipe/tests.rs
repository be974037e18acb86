// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::MS;
use crate::delay::DelayTrace;

fn settings() -> Settings {
    Settings {
        rate: Rate::Unlimited,
        light: None,
        delay: Delay::Constant(0),
        jitter: 0,
        queue_bytes: 1_000_000,
        discipline: Discipline::Droptail,
        loss: Model::Bernoulli(0.0),
    }
}

fn pipe(settings: Settings) -> Pipe<u64> {
    Pipe::new(settings, 1, Direction::Ab, 0)
}

fn packet(item: u64, bytes: u32) -> Packet<u64> {
    Packet { item, bytes, network_bytes: bytes - 14, lossy: true, flow: 0 }
}

/// Runs the pipe dry as an event loop would; gives (due, item).
fn outputs(pipe: &mut Pipe<u64>) -> Vec<(Nanos, u64)> {
    let mut outputs = Vec::new();
    while let Some(deadline) = pipe.next_deadline() {
        pipe.advance(deadline);
        while let Some((due, item)) = pipe.pop_due(deadline) {
            assert_eq!(due, deadline, "woken at the exact time");
            outputs.push((due, item));
        }
    }
    outputs
}

fn dropped(pipe: &mut Pipe<u64>) -> Vec<(u64, Dropped)> {
    std::iter::from_fn(|| pipe.pop_dropped()).collect()
}

#[test]
fn unlimited_is_delay_only() {
    let mut pipe = pipe(Settings { delay: Delay::Constant(25 * MS), ..settings() });
    pipe.push(10, packet(1, 100));
    pipe.push(20, packet(2, 1514));
    assert_eq!(outputs(&mut pipe), [(25 * MS + 10, 1), (25 * MS + 20, 2)]);
}

#[test]
fn rate_spaces_packets_exactly() {
    // 10 Mbit/s: 1250 bytes take 1 ms.
    let mut pipe =
        pipe(Settings { rate: Rate::Constant(10e6), delay: Delay::Constant(5 * MS), ..settings() });
    for item in 0..3 {
        pipe.push(0, packet(item, 1250));
    }
    // Arrives when the link has been idle for long.
    pipe.push(50 * MS, packet(3, 625));
    assert_eq!(outputs(&mut pipe), [(6 * MS, 0), (7 * MS, 1), (8 * MS, 2), (55 * MS + MS / 2, 3)]);
}

#[test]
fn a_late_caller_changes_nothing() {
    let run = |polls: &[Nanos]| {
        let mut pipe = pipe(Settings {
            rate: Rate::Constant(10e6),
            queue_bytes: 5000,
            jitter: MS,
            delay: Delay::Constant(3 * MS),
            loss: Model::Bernoulli(0.2),
            ..settings()
        });
        let mut polls = polls.iter().peekable();
        for item in 0..200 {
            let at = item * MS * 9 / 10;
            while let Some(poll) = polls.next_if(|poll| **poll <= at) {
                pipe.advance(*poll);
            }
            pipe.push(at, packet(item, 1250));
        }
        (outputs_late(&mut pipe), dropped(&mut pipe))
    };
    let often: Vec<Nanos> = (0..200_000).map(|n| n * 1000).collect();
    assert_eq!(run(&often), run(&[]));
    assert!(!run(&[]).1.is_empty());
}

fn outputs_late(pipe: &mut Pipe<u64>) -> Vec<(Nanos, u64)> {
    pipe.advance(1000 * MS);
    std::iter::from_fn(|| pipe.pop_due(1000 * MS)).collect()
}

#[test]
fn an_arrival_told_late_is_served_from_when_the_link_was_free() {
    let mut pipe = pipe(Settings { rate: Rate::Constant(10e6), ..settings() });
    pipe.push(0, packet(1, 1250));
    pipe.advance(2 * MS);
    pipe.push(MS / 2, packet(2, 1250));
    assert_eq!(outputs_late(&mut pipe), [(MS, 1), (2 * MS, 2)]);
}

#[test]
fn droptail_limits_what_waits_and_not_what_is_in_service() {
    let mut pipe = pipe(Settings { rate: Rate::Constant(10e6), queue_bytes: 2500, ..settings() });
    for item in 0..5 {
        pipe.push(0, packet(item, 1250));
    }
    assert_eq!(dropped(&mut pipe), [(3, Dropped::Queue), (4, Dropped::Queue)]);
    // The first has left, so there is room for one.
    pipe.push(MS, packet(5, 1250));
    pipe.push(MS, packet(6, 1250));
    assert_eq!(dropped(&mut pipe), [(6, Dropped::Queue)]);
    assert_eq!(outputs(&mut pipe), [(MS, 0), (2 * MS, 1), (3 * MS, 2), (4 * MS, 5)]);
    assert_eq!(pipe.max_queue_bytes(), 2500);
    assert_eq!(pipe.counts().queue_dropped, 3);
}

#[test]
fn codel_keeps_the_delay_of_an_overloaded_link_near_its_target() {
    let sojourn = |discipline| {
        let mut pipe = pipe(Settings { rate: Rate::Constant(10e6), discipline, ..settings() });
        // 5 % more than fits, for 60 s.
        let mut delays = Vec::new();
        let mut entered = Vec::new();
        for item in 0..63_000 {
            let at = item * MS * 100 / 105;
            entered.push(at);
            pipe.push(at, packet(item, 1250));
            while let Some((due, item)) = pipe.pop_due(at) {
                delays.push((due - entered[item as usize]) / MS);
            }
        }
        let mut last = delays.split_off(delays.len() - 10_000);
        last.sort_unstable();
        last[last.len() / 2]
    };
    assert!(sojourn(Discipline::Codel) <= 20);
    assert!(sojourn(Discipline::Droptail) >= 700);
}

#[test]
fn red_keeps_the_average_queue_between_its_thresholds() {
    // 5 % more than fits: RED drops as much, with an average queue below its upper
    // threshold, where droptail stands at its limit.
    let occupied = |discipline| {
        let queue_bytes = 240_000;
        let settings =
            Settings { rate: Rate::Constant(10e6), discipline, queue_bytes, ..settings() };
        let mut pipe = pipe(settings);
        let mut delays = Vec::new();
        for item in 0..63_000 {
            let at = item * MS * 100 / 105;
            pipe.push(at, packet(item, 1250));
            while let Some((due, item)) = pipe.pop_due(at) {
                delays.push((due - item * MS * 100 / 105) / MS);
            }
        }
        let last = &delays[delays.len() - 20_000..];
        // What left after as many ms had as many packets of 1 ms before it.
        last.iter().sum::<u64>() as f64 / last.len() as f64 * 1250.0
    };
    assert!(occupied(Discipline::Red) < 62_000.0);
    assert!(occupied(Discipline::Red) > 20_000.0);
    assert!(occupied(Discipline::Droptail) > 230_000.0);
}

#[test]
fn none_has_no_limit_of_its_own() {
    let rate = Rate::Constant(10e6);
    let settings = Settings { rate, discipline: Discipline::None, queue_bytes: 1, ..settings() };
    let mut pipe = pipe(settings);
    for item in 0..10_000 {
        pipe.push(0, packet(item, 1250));
    }
    assert_eq!(outputs(&mut pipe).len(), 10_000);
}

#[test]
fn losses_depend_on_the_index_of_what_passed_the_queue_only() {
    let lost = |rate, jitter, exempt_every: Option<u64>| {
        let mut pipe = pipe(Settings {
            rate,
            jitter,
            delay: Delay::Constant(2 * MS),
            loss: Model::Bernoulli(0.1),
            ..settings()
        });
        for item in 0..1000 {
            if exempt_every.is_some_and(|every| item % every == 0) {
                let lossy = false;
                let exempt = packet(9999, 60);
                pipe.push(item * MS, Packet { lossy, ..exempt });
            }
            pipe.push(item * MS, packet(item, 1000));
        }
        pipe.advance(10_000 * MS);
        dropped(&mut pipe)
    };
    let reference = lost(Rate::Unlimited, 0, None);
    assert!((60..140).contains(&reference.len()));
    assert!(reference.iter().all(|(_, why)| *why == Dropped::Lost));
    assert_eq!(lost(Rate::Constant(20e6), 0, None), reference);
    assert_eq!(lost(Rate::Unlimited, MS, Some(3)), reference);
}

#[test]
fn exempt_packets_are_never_lost() {
    let mut pipe = pipe(Settings { loss: Model::Bernoulli(1.0), ..settings() });
    let lossy = false;
    pipe.push(0, Packet { lossy, ..packet(1, 60) });
    pipe.push(0, packet(2, 60));
    assert_eq!(outputs(&mut pipe), [(0, 1)]);
    assert_eq!(dropped(&mut pipe), [(2, Dropped::Lost)]);
    let counts = pipe.counts();
    assert_eq!((counts.packets, counts.exempt, counts.lost), (2, 1, 1));
}

#[test]
fn jitter_varies_the_delay_and_never_reorders() {
    let mut pipe = pipe(Settings { delay: Delay::Constant(10 * MS), jitter: 4 * MS, ..settings() });
    for item in 0..2000 {
        pipe.push(item * 20 * MS, packet(2 * item, 100));
        pipe.push(item * 20 * MS + 1, packet(2 * item + 1, 100));
    }
    let outputs = outputs(&mut pipe);
    assert_eq!(outputs.len(), 4000);
    assert!(outputs.is_sorted());
    // The first of each pair has no one before it to wait for.
    let delays: Vec<i64> = outputs
        .iter()
        .filter(|(_, item)| item % 2 == 0)
        .map(|(due, item)| *due as i64 - (item / 2 * 20 * MS) as i64)
        .collect();
    let mean = delays.iter().sum::<i64>() / delays.len() as i64;
    assert!((mean - 10 * MS as i64).abs() < MS as i64 / 5, "{mean}");
    let (min, max) = (delays.iter().min(), delays.iter().max());
    assert!((6_000_000..6_200_000).contains(min.unwrap()));
    assert!((13_800_000..=14_000_000).contains(max.unwrap()));
}

#[test]
fn jitter_greater_than_the_delay_never_delivers_into_the_past() {
    let mut pipe = pipe(Settings {
        delay: Delay::Constant(MS),
        jitter: 5 * MS,
        rate: Rate::Constant(10e6),
        ..settings()
    });
    for item in 0..500 {
        pipe.push(item * 10 * MS, packet(item, 1250));
    }
    for (due, item) in outputs(&mut pipe) {
        assert!(due >= item * 10 * MS + MS);
    }
}

fn traced(text: &str) -> Pipe<u64> {
    pipe(Settings { rate: Rate::Trace(Trace::parse(text, 1500).unwrap()), ..settings() })
}

#[test]
fn trace_gives_a_full_packet_an_opportunity() {
    let mut pipe = traced("5\n5\n8\n20\n");
    for item in 0..6 {
        pipe.push(0, packet(item, 1514));
    }
    let ms = |list: Vec<(Nanos, u64)>| -> Vec<u64> {
        list.into_iter().map(|(due, _)| due / MS).collect()
    };
    assert_eq!(ms(outputs(&mut pipe)), [5, 5, 8, 20, 25, 25]);
}

#[test]
fn trace_shares_and_spans_opportunities() {
    let mut pipe = traced("1\n2\n3\n4\n");
    // 600 + 600 + 300 of the third at 1 ms, its other 300 and 1200 at 2 ms.
    for (item, bytes) in [(0, 600), (1, 600), (2, 600), (3, 1200), (4, 3000)] {
        pipe.push(0, packet(item, bytes + 14));
    }
    assert_eq!(outputs(&mut pipe), [(MS, 0), (MS, 1), (2 * MS, 2), (2 * MS, 3), (4 * MS, 4)]);
}

#[test]
fn trace_opportunities_that_nobody_uses_are_gone() {
    let mut pipe = traced("1\n1\n1\n10\n");
    pipe.push(2 * MS, packet(0, 1514));
    pipe.push(2 * MS, packet(1, 1514));
    assert_eq!(outputs(&mut pipe), [(10 * MS, 0), (11 * MS, 1)]);
    // What is left of one is not kept for later either.
    pipe.push(30 * MS, packet(2, 114));
    pipe.push(31 * MS, packet(3, 1514));
    pipe.push(31 * MS, packet(4, 114));
    assert_eq!(outputs(&mut pipe), [(31 * MS, 2), (40 * MS, 3), (41 * MS, 4)]);
}

#[test]
fn trace_limits_its_queue() {
    let mut pipe = pipe(Settings {
        rate: Rate::Trace(Trace::parse("10", 1500).unwrap()),
        queue_bytes: 3028,
        ..settings()
    });
    for item in 0..3 {
        pipe.push(0, packet(item, 1514));
    }
    assert_eq!(dropped(&mut pipe), [(2, Dropped::Queue)]);
    assert_eq!(outputs(&mut pipe), [(10 * MS, 0), (20 * MS, 1)]);
}

#[test]
fn drain_gives_everything_once() {
    for rate in [Rate::Constant(10e6), Rate::Trace(Trace::parse("2\n4", 1500).unwrap())] {
        let mut pipe = pipe(Settings { rate, delay: Delay::Constant(100 * MS), ..settings() });
        for item in 0..6 {
            pipe.push(0, packet(item, 1250));
        }
        pipe.advance(3 * MS);
        assert_eq!(pipe.drain(), [0, 1, 2, 3, 4, 5]);
        assert_eq!(pipe.next_deadline(), None);
    }
}

#[test]
fn a_recorded_delay_is_that_of_the_time_when_a_packet_sets_out() {
    let delay = Delay::Trace(DelayTrace::parse("30\n10\n50\n").unwrap());
    let mut pipe = pipe(Settings { rate: Rate::Constant(10e6), delay, ..settings() });
    for item in 0..3 {
        pipe.push(item * 10 * MS, packet(item, 1250));
    }
    // The second sets out at 11 ms and would overtake the first, were it let.
    assert_eq!(outputs(&mut pipe), [(31 * MS, 0), (31 * MS, 1), (71 * MS, 2)]);
}

#[test]
fn what_is_too_much_for_the_light_load_queues_for_the_heavy() {
    let light = Light::parse("0 20 2 4\n500 20 2 4\n1000 20 2 4\n").unwrap();
    let heavy = Trace::parse("10\n20\n30\n40\n50\n60\n", 1400).unwrap();
    let mut pipe = pipe(Settings { light: Some(light), rate: Rate::Trace(heavy), ..settings() });
    for item in 0..5 {
        pipe.push(0, packet(item, 1414));
    }
    // Finds the heavy queue still there, and has to go behind it.
    pipe.push(8 * MS, packet(5, 114));
    // Finds the link idle again.
    pipe.push(70 * MS, packet(6, 1414));
    assert_eq!(
        outputs(&mut pipe),
        [20, 22, 24, 30, 40, 50, 90]
            .into_iter()
            .zip(0..7)
            .map(|(ms, n)| (ms * MS, n))
            .collect::<Vec<_>>()
    );
    pipe.push(100 * MS, packet(7, 1414));
    assert_eq!(pipe.drain(), [7]);
}
