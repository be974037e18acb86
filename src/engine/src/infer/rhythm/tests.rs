// SPDX-License-Identifier: GPL-2.0-or-later
//! Clients' rhythms, one reply after another.

use super::*;
use crate::time::Time;

/// Nothing was sent yet over a hop of 2 ms.
fn beginning() -> (Rhythm, LocalRtt, Trail, Cache) {
    let mut rtt = LocalRtt::new(Tunables::DEFAULT);
    rtt.sent(Time::ZERO, None, None);
    rtt.handshake_reply(Time::ZERO + 2 * MS);
    (Rhythm::new(Tunables::DEFAULT), rtt, Trail::default(), Cache::new(1 << 20))
}

fn reply(now: Time, sent: u64, since_last: Option<Nanos>) -> Reply {
    let (constant, regular_only) = (false, true);
    Reply {
        now,
        excess: 0,
        copy_due: false,
        constant,
        always_constant: constant,
        regular_only,
        sent,
        since_last,
        spacing: MS,
    }
}

fn beats(acknowledged: impl IntoIterator<Item = u64>) -> (Rhythm, alloc::vec::Vec<Beat>) {
    beats_of(false, acknowledged)
}

/// Packets every 1.2 ms; replies, all of one size or not, one round trip of 2 ms after the packets
/// whose numbers `acknowledged` gives.
fn beats_of(
    constant: bool,
    acknowledged: impl IntoIterator<Item = u64>,
) -> (Rhythm, alloc::vec::Vec<Beat>) {
    beats_at(1200 * US, constant, acknowledged)
}

/// The same with packets this far apart.
fn beats_at(
    spacing: Nanos,
    constant: bool,
    acknowledged: impl IntoIterator<Item = u64>,
) -> (Rhythm, alloc::vec::Vec<Beat>) {
    let (mut rhythm, rtt, mut trail, mut cache) = beginning();
    let mut sent = 0;
    let at = |n: u64| Time::ZERO + (n as Nanos) * spacing;
    let mut last = None;
    let beats = acknowledged
        .into_iter()
        .map(|n| {
            let now = at(n) + 2 * MS;
            while at(sent + 1) <= now {
                sent += 1;
                trail.push(&mut cache, at(sent), sent, &[0; 40]);
            }
            let since_last = last.replace(now).map(|l| now.since(l));
            let reply = Reply {
                constant,
                always_constant: constant,
                spacing,
                ..reply(now, sent, since_last)
            };
            rhythm.observe(&reply, &rtt, &mut trail, &cache)
        })
        .collect();
    (rhythm, beats)
}

#[test]
fn every_second_packet() {
    let (rhythm, beats) = beats((1..100).map(|n| n * 2));
    assert_eq!((rhythm.usual_count(), rhythm.decimating()), (2, false));
    assert!(rhythm.replies_often());
    assert!(beats[1..].iter().all(|b| b.fast && b.count == 2 && !b.early));
}

#[test]
fn what_is_no_news_makes_the_reply_before_no_more_certain() {
    let (mut rhythm, rtt, mut trail, mut cache) = beginning();
    let at = |n: u64| Time::ZERO + (n as Nanos) * 1200 * US;
    for n in 1..=20 {
        trail.push(&mut cache, at(n), n, &[0; 40]);
    }
    let mut observe = |now: Time, copy_due| {
        let reply = Reply { copy_due, ..reply(now, 20, Some(MS)) };
        rhythm.observe(&reply, &rtt, &mut trail, &cache)
    };
    observe(at(8) + 2 * MS, false);
    assert!(!observe(at(10) + 2 * MS, true).certain, "a copy may have caused it");
    observe(at(10) + 2 * MS + 60 * US, false);
    let next = observe(at(11) + 2 * MS, false);
    assert!(next.certain && next.count == 1 && !next.adjacent, "the 11th may be the first");
}

#[test]
fn after_a_reply_that_may_be_late_no_packet_is_known_to_be_the_next() {
    let adjacent = |last: [u64; 2]| {
        let (_, beats) = beats((1..50).map(|n| n * 2).chain(last));
        beats.last().is_some_and(|beat| beat.adjacent)
    };
    assert!(adjacent([100, 101]));
    assert!(!adjacent([101, 102]), "it may have been about the 100th, of two packets as usual");
}

#[test]
fn of_packets_close_together_none_is_known_to_be_the_next() {
    let adjacent = |spacing| {
        let acknowledged = (1..20u64).map(|n| n * 10).chain([196, 197, 198, 199]);
        let (_, beats) = beats_at(spacing, false, acknowledged);
        beats.iter().filter(|beat| beat.adjacent).count()
    };
    assert_eq!(adjacent(1200 * US), 3);
    assert_eq!(adjacent(400 * US), 0);
}

#[test]
fn a_steady_client_reveals_every_other_gap_by_one_packet_more() {
    let (_, beats) = beats((1..30).map(|n| n * 2).chain([61, 63, 65]));
    let skipped: alloc::vec::Vec<u64> =
        beats.iter().filter(|b| b.skipped).map(|b| b.trigger).collect();
    assert_eq!(skipped, [61]);
}

#[test]
fn a_decimating_client_reveals_a_gap_by_replying_early() {
    let steady = (1..20u64).map(|n| n * 10);
    // 195 is lost: 196 to 199 are acknowledged at once, then the count goes on.
    let (rhythm, beats) = beats(steady.chain([196, 197, 198, 199, 209, 219]));
    assert!(rhythm.decimating() && rhythm.counts_high());
    let early: alloc::vec::Vec<u64> = beats.iter().filter(|b| b.early).map(|b| b.trigger).collect();
    assert_eq!(early, [196, 197, 198, 199]);
    assert_eq!(beats[20].chain, 196);
}

#[test]
fn batches_that_were_equally_long_by_chance_are_no_count() {
    let counts_high = |equal: u64| {
        let by_twos = (1..40u64).map(|n| n * 2);
        let (rhythm, _) = beats(by_twos.chain((1..=equal).map(|n| 78 + n * 7)));
        rhythm.counts_high()
    };
    assert!(!counts_high(2) && counts_high(3));
}

/// Eight packets at once every 33 ms, each reply to two of them 3 ms after the one before.
#[test]
fn bursts_over_a_slow_hop_are_not_taken_for_decimation() {
    let (mut rhythm, rtt, mut trail, mut cache) = beginning();
    let (mut sent, mut last) = (0, None);
    for burst in (1..60).map(|n| Time::ZERO + n * 33 * MS) {
        for n in 0..8 {
            sent += 1;
            trail.push(&mut cache, burst + n * 100 * US, sent, &[0; 40]);
        }
        for now in [2100 * US, 2800 * US, 6 * MS, 9 * MS].map(|after| burst + after) {
            let since_last = last.replace(now).map(|l| now.since(l));
            let reply = reply(now, sent, since_last);
            rhythm.observe(&reply, &rtt, &mut trail, &cache);
        }
    }
    assert!(!rhythm.decimating() && !rhythm.counts_high());
}

#[test]
fn decimation_is_forgotten_after_many_short_counts() {
    let (rhythm, _) = beats((1..20u64).map(|n| n * 10).chain((100..180u64).map(|n| n * 2)));
    assert!(!rhythm.decimating());
}

fn early(beats: &[Beat]) -> alloc::vec::Vec<u64> {
    beats.iter().filter(|beat| beat.early).map(|beat| beat.trigger).collect()
}

#[test]
fn of_one_size_any_steady_count_is_a_rhythm() {
    let steady = || (1..30u64).map(|n| n * 4);
    // 118 is lost: 119 is acknowledged at once, then the count goes on.
    let after = [119, 123, 127];
    assert_eq!(early(&beats_of(true, steady().chain(after)).1), [119]);
    assert!(early(&beats_of(false, steady().chain(after)).1).is_empty());
    // 120 is lost, which the fifth shows.
    let (_, beats) = beats_of(true, steady().chain([121, 125]));
    assert!(beats.iter().any(|beat| beat.skipped && beat.trigger == 121));
}

#[test]
fn a_frame_of_the_clients_own_is_out_of_step_but_the_next_reply_is_not() {
    let steady = (1..30u64).map(|n| n * 10);
    let (_, beats) = beats_of(true, steady.chain([294, 300, 310]));
    assert_eq!(early(&beats), [294]);
}

/// Which packets a client replies to that lets so many pass, in turn.
fn taking_turns(counts: [u64; 5]) -> alloc::vec::Vec<u64> {
    let sum = |n: &mut u64, count| {
        *n += count;
        Some(*n)
    };
    counts.into_iter().cycle().take(60).scan(0, sum).collect()
}

#[test]
fn counts_that_are_not_mostly_the_same_are_no_rhythm() {
    let (rhythm, beats) = beats(taking_turns([5, 9, 7, 6, 8]));
    assert!(!rhythm.counts_high() && early(&beats).is_empty());
}

#[test]
fn packets_wait_for_hosts_that_read_any_number_together_and_for_none_that_count() {
    let waits = beats(taking_turns([5, 12, 8, 6, 10])).0.batch_wait();
    // Eight of 1.2 ms on average.
    assert!((8 * MS..11 * MS).contains(&waits), "{waits}");
    assert_eq!(beats((1..60).map(|n| n * 10)).0.batch_wait(), 0);
}

const TENTH: Habit = Habit { count: 10, alike: true, paired: false, timer: None };

#[test]
fn a_habit_is_recognised_by_the_first_counts() {
    // The first reply of a client shows no count.
    assert_eq!(beats((1..=2).map(|n| n * 4)).0.first_counts(), None);
    assert_eq!(beats((1..=3).map(|n| n * 4)).0.first_counts(), Some(4));
    assert_eq!(beats([4, 8, 13, 17]).0.first_counts(), None);
    assert_eq!(beats((1..=20).map(|n| n * 4)).0.first_counts(), None, "it is known by now");
}

#[test]
fn what_was_taken_up_speaks_at_once() {
    let (mut rhythm, _) = beats((1..=3).map(|n| n * 10));
    assert_eq!(rhythm.known_count(false), None);
    rhythm.take_up(TENTH);
    assert_eq!(rhythm.known_count(false), Some((10, None)));
    assert!(rhythm.counts_high());
}

#[test]
fn what_was_taken_up_wrongly_is_unlearned_as_soon_as_what_was_learned() {
    let unlearned = |mut rhythm: Rhythm| {
        let wrong = (1..).find(|_| {
            rhythm.learn(7, 10);
            rhythm.known_count(false).is_none()
        });
        wrong.unwrap()
    };
    let (mut taken, _) = beats((1..=3).map(|n| n * 10));
    taken.take_up(TENTH);
    let (learned, _) = beats((1..=40).map(|n| n * 10));
    assert!(unlearned(taken) <= unlearned(learned));
}

#[test]
fn a_sender_pauses_whose_replies_are_far_apart_for_so_few_packets() {
    let (rhythm, _) = beats((1..100).map(|n| n * 2));
    assert!(!rhythm.pauses(1200 * US));
    assert!(rhythm.pauses(300 * US), "they come in bursts");
}

#[test]
fn replies_as_dense_as_their_packets_are_no_clump() {
    // The burst that they are for was over before the first of them came, so nothing was sent between them.
    let clumps = |apart: Nanos| {
        let (mut rhythm, rtt, mut trail, cache) = beginning();
        for n in 0..100 {
            let since_last = Some(apart);
            let reply =
                Reply { spacing: 160 * US, ..reply(Time::ZERO + n * apart, 100, since_last) };
            rhythm.observe(&reply, &rtt, &mut trail, &cache);
        }
        rhythm.clumps()
    };
    assert!(!clumps(160 * US) && !clumps(100 * US), "hosts and radios keep no exact time");
    assert!(clumps(20 * US));
}
