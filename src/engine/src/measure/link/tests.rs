// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;

/// What a full packet takes at 10 Mbit/s, and how far apart they come.
const SERVICE: Nanos = 1_200 * US;
const LEN: usize = (FULL_BYTES - LINK_BYTES) as usize;

fn at(us: Nanos) -> Time {
    Time::ZERO + us * US
}

/// Packets every `spacing`, every tenth twice, over a hop that takes `takes(n)` for each and has been busy
/// with others' for `others(n)` before it; after twenty a probe follows, unless one is under way. Gives the model
/// and, for each packet, how much its time was off.
fn passes(
    count: Nanos,
    spacing: Nanos,
    takes: fn(Nanos) -> Nanos,
    others: fn(Nanos) -> Nanos,
) -> (Link, alloc::vec::Vec<Nanos>) {
    let mut link = Link::new(at(0));
    let (mut free, mut off) = (at(0), alloc::vec::Vec::new());
    let mut probe = None;
    for n in 0..count {
        let now = at(0) + n * spacing;
        if let Some((back, late)) = probe.take_if(|(back, _)| *back <= now) {
            link.probed(back, late, late);
        }
        for copy in 0..=Nanos::from(n % 10 == 3) {
            free = free.max(now) + others(n) * (1 - copy);
            off.push(link.sent(now, LEN).since(free));
            free = free + takes(n);
        }
        if n % 20 == 7 && probe.is_none() {
            let sent = now + spacing / 3;
            link.probe(sent, false);
            let late = free.since(sent).max(0);
            probe = Some((sent + late, late));
        }
    }
    (link, off)
}

#[test]
fn a_hop_as_fast_as_the_way_before_it_is_known_to_the_packet() {
    let (link, off) = passes(400, SERVICE * 115 / 100, |_| SERVICE, |_| 0);
    let full = link.full().expect("it is known");
    assert!((full - SERVICE).abs() < SERVICE / 20, "{full}");
    let worst = off[200..].iter().map(|off| off.abs()).max();
    assert!(worst < Some(SERVICE / 4), "{worst:?}");
}

#[test]
fn a_slower_hop_is_known_to_the_packet_while_its_queue_grows() {
    // Up to four tenths of a second, and a probe goes when the one before is back.
    let (link, off) = passes(1000, SERVICE * 3 / 4, |_| SERVICE, |_| 0);
    let full = link.full().expect("it is known");
    assert!((full - SERVICE).abs() < SERVICE / 200, "{full}");
    let worst = off[200..].iter().map(|off| off.abs()).max();
    assert!(worst < Some(SERVICE / 4), "{worst:?}");
}

#[test]
fn what_a_long_queue_drops_is_not_taken_for_a_higher_rate() {
    let mut link = Link::new(at(0));
    let (mut free, mut probe) = (at(0), None);
    for n in 0..600 {
        let now = at(0) + n * (SERVICE / 2);
        if let Some((back, late)) = probe.take_if(|(back, _)| *back <= now) {
            link.probed(back, late, late);
        }
        link.sent(now, LEN);
        // Every other one is dropped once it is as long.
        if free.since(now) < Nanos::from(LATEST) + 20 * MS || n % 2 == 0 {
            free = free.max(now) + SERVICE;
        }
        if n % 20 == 7 && probe.is_none() {
            let sent = now + SERVICE / 6;
            link.probe(sent, false);
            probe = Some((free, free.since(sent)));
        }
    }
    let full = link.takes(FULL_BYTES);
    assert!((full - SERVICE).abs() < SERVICE / 50, "{full}");
}

#[test]
fn it_is_asked_until_it_is_decided_and_not_for_ever() {
    let asked = |late: fn(Nanos) -> Nanos| {
        let (mut link, mut asked) = (Link::new(at(0)), 0);
        for n in 0..1000 {
            let now = at(0) + n * 10 * MS;
            for _ in 0..7 {
                link.sent(now, LEN);
            }
            asked += u32::from(link.is_undecided());
            link.probe(now + MS, false);
            link.probed(now + MS + late(n), late(n), late(n));
        }
        asked
    };
    // Seven packets take 8.4 ms.
    assert!((1..8).contains(&asked(|_| 7 * SERVICE - MS)), "as the model has it");
    let by_chance = asked(|n| (n % 7) * 3 * MS);
    assert!((8..=u32::from(QUESTIONS)).contains(&by_chance), "{by_chance}");
}

#[test]
fn a_host_that_is_late_does_not_end_it_and_another_queue_does() {
    // Full packets at 50 Mbit/s.
    const SERVICE: Nanos = 240 * US;
    let full = |off: Nanos| {
        let mut link = Link::new(at(0));
        for n in 0..40 {
            let now = at(0) + n * 100 * MS;
            (0..10).for_each(|_| _ = link.sent(now, LEN));
            link.probe(now + US, false);
            let late = 10 * SERVICE - US + if n < 20 { 0 } else { off };
            link.probed(now + US + late, late, late);
        }
        link.full()
    };
    assert_eq!(full(100 * US), full(0));
    assert!(full(0).is_some());
    assert_eq!(full(500 * US), None);
}

#[test]
fn a_probe_is_behind_the_packet_in_hand_and_before_what_follows() {
    let wait = |behind| {
        let mut link = Link::new(at(0));
        (0..10).for_each(|_| _ = link.sent(at(0), LEN));
        link.probe(at(1), false);
        link.probed(at(12_000), 10 * SERVICE - US, 10 * SERVICE - US);
        link.probe(at(100_000), behind);
        (0..3).for_each(|_| _ = link.sent(at(100_000), LEN));
        link.probed(at(105_000), 5 * MS, 0)
    };
    assert_eq!(wait(false), 0);
    assert!((wait(true) - SERVICE).abs() < SERVICE / 10, "{}", wait(true));
}

#[test]
fn a_queue_that_is_a_little_shorter_than_it_seems_does_not_speak_against_the_model() {
    let full = |percent: Nanos| {
        let (mut link, _) = passes(400, SERVICE * 115 / 100, |_| SERVICE, |_| 0);
        for n in 0..8 {
            // Too few to tell of the rate.
            let now = at(1_000_000 + n * 100_000);
            (0..4).for_each(|_| _ = link.sent(now, LEN));
            link.probe(now, false);
            let late = 4 * SERVICE * percent / 100;
            link.probed(now + late, late, late);
        }
        link.full()
    };
    assert!(full(90).is_some() && full(60).is_none());
}

#[test]
fn a_host_that_was_late_once_makes_no_rate_too_high() {
    // Full packets at 50 Mbit/s, as many as pass.
    const SERVICE: Nanos = 240 * US;
    let mut link = Link::new(at(0));
    (0..5).for_each(|_| _ = link.sent(at(0), LEN));
    for n in 1..400 {
        let now = at(0) + n * SERVICE;
        link.sent(now, LEN);
        if n % 10 == 0 {
            let late = 6 * SERVICE + if n == 100 { 90 * US } else { 0 };
            link.probe(now, false);
            link.probed(now + late, late, late);
        }
    }
    let full = link.takes(FULL_BYTES);
    assert!((SERVICE..SERVICE + SERVICE / 100).contains(&full), "{full}");
}

#[test]
fn what_a_sender_that_becomes_faster_sends_is_no_rate_of_the_hop() {
    // Each stretch of a slow start is quicker than all before, and the hop has a queue in none: the rate of
    // before explains as little as that of now how soon probes are back.
    let mut link = Link::new(at(0));
    let (mut now, mut sent) = (at(0), 0);
    for round in 1..12 {
        for n in 0..8 * round {
            now = now + 16 * SERVICE / round;
            link.sent(now, LEN);
            sent += 1;
            if sent % 5 == 0 {
                link.probe(now + 1, false);
                let late = (n % 3) * MS;
                link.probed(now + 1 + late, late, late);
            }
            assert_eq!(link.full(), None, "packet {sent}, model {}", link.takes(FULL_BYTES));
        }
    }
}

#[test]
fn a_probe_that_was_quicker_than_the_quickest_changes_the_rate_by_little() {
    let mut link = Link::new(at(0));
    (0..10).for_each(|_| _ = link.sent(at(0), LEN));
    link.probe(at(1), false);
    link.probed(at(12_000), 10 * SERVICE - US, 10 * SERVICE - US);
    let before = link.takes(FULL_BYTES);
    assert!((before - SERVICE).abs() < SERVICE / 10, "{before}");
    link.took_longer(at(12_100), 8 * US);
    let more = link.takes(FULL_BYTES) - before;
    assert!((1..=2 * US).contains(&more), "{more}");
}

#[test]
fn a_probe_that_leaves_later_than_it_was_asked_for_is_timed_from_then() {
    // Ten packets, behind which a probe waits that leaves so much later.
    let full = |after: Nanos| {
        let mut link = Link::new(at(0));
        for n in 0..10 {
            let now = at(0) + n * 100 * MS;
            for _ in 0..10 {
                link.sent(now, LEN);
            }
            link.probe(now + US, false);
            let late = 10 * SERVICE - US - after;
            link.probed(now + 10 * SERVICE, late, late);
        }
        link.full()
    };
    assert_eq!(full(0), full(150 * US));
    assert!(full(150 * US).is_some());
}

#[test]
fn an_answer_to_another_probe_tells_nothing() {
    let mut link = Link::new(at(0));
    link.sent(at(0), LEN);
    link.probe(at(10), false);
    assert_eq!(link.probed(at(9000), 5 * MS, 3 * MS), 0);
    assert_eq!(link.takes(FULL_BYTES), 0);
}

#[test]
fn where_nothing_waits_there_is_no_model() {
    // The first probe comes when the packet has passed.
    let (link, _) = passes(400, 4 * SERVICE, |_| SERVICE, |_| 0);
    assert_eq!(link.full(), None);
    // A full packet at 100 Mbit/s.
    let (link, _) = passes(4000, 126 * US, |_| 120 * US, |_| 0);
    assert_eq!(link.full(), None);
}

#[test]
fn where_others_use_the_hop_or_its_rate_varies_there_is_none() {
    let some = |n: Nanos| if (n / 7) % 3 == 0 { 2 * SERVICE } else { 0 };
    let (link, _) = passes(397, 2 * SERVICE, |_| SERVICE, some);
    assert_eq!(link.full(), None);
    let varies = |n: Nanos| if (n / 30) % 2 == 0 { SERVICE / 3 } else { SERVICE };
    let (link, _) = passes(397, SERVICE * 3 / 4, varies, |_| 0);
    assert_eq!(link.full(), None);
}

#[test]
fn nothing_is_made_of_a_clock_that_jumps() {
    let mut link = Link::new(Time::MAX);
    for (sent, probe) in [(Time::MAX, Time::ZERO), (Time::ZERO, Time::MAX), (at(5), at(1))] {
        for late in [0, SEC, Nanos::MAX / 4] {
            link.sent(sent, 65_535);
            link.probe(probe, false);
            link.probed(probe, late, late);
        }
    }
    assert_eq!(link.full(), None);
    let now = at(1000);
    assert!(link.sent(now, 0).since(now) <= LONGEST || link.full().is_none());
}

/// Packets twice as far apart as the hop takes for one, and a probe after each tenth, right `behind` it or when it
/// has passed. Every so manieth packet before a probe is `lost`, and the probe waits for nothing.
fn probed_alone(behind: bool, lost: Nanos) -> Link {
    let mut link = Link::new(at(0));
    for n in 0..200 {
        let now = at(0) + n * 2 * SERVICE;
        let probed = n % 10 == 3;
        if probed && behind {
            link.probe(now, true);
        }
        link.sent(now, LEN);
        let waits = behind && n / 10 % lost != lost - 1;
        let late = if waits { SERVICE } else { 0 };
        let sent = if behind { now } else { now + SERVICE };
        if probed && !behind {
            link.probe(sent, false);
        }
        if probed {
            link.probed(sent + late, late, late);
        }
    }
    link
}

#[test]
fn what_a_probe_right_behind_a_packet_waits_for_is_that_packet() {
    let full = probed_alone(true, Nanos::MAX).full().expect("it is known");
    assert!((SERVICE..=SERVICE + LATE + SERVICE / 50).contains(&full), "{full}");
    assert_eq!(
        probed_alone(false, Nanos::MAX).full(),
        None,
        "a probe that waits for nothing tells nothing"
    );
}

#[test]
fn a_packet_that_a_probe_has_not_waited_for_makes_no_rate_too_high() {
    let full = probed_alone(true, 7).takes(FULL_BYTES);
    assert!((SERVICE..=SERVICE + LATE + SERVICE / 50).contains(&full), "{full}");
}

#[test]
fn every_second_probe_goes_behind_a_packet_while_it_is_undecided() {
    let mut link = Link::new(at(0));
    for n in 0..8 {
        link.sent(at(0) + n, LEN);
    }
    link.probe(at(1), false);
    link.probed(at(1) + 8 * SERVICE, 8 * SERVICE, 8 * SERVICE);
    for _ in 0..4 {
        assert!(link.asks_behind());
        link.probe(at(2), true);
        assert!(!link.asks_behind());
        link.probe(at(3), false);
    }
    link.questions = 0;
    assert!(!link.asks_behind());
}
