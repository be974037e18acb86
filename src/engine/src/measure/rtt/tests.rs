// SPDX-License-Identifier: GPL-2.0-or-later
//! What the round trip is believed to be after what was seen.

use super::*;

fn at(us: u64) -> Time {
    Time::from_nanos(us * 1000)
}

fn after_handshake(us: u64) -> LocalRtt {
    let mut rtt = LocalRtt::new(Tunables::DEFAULT);
    rtt.sent(at(0), None, None);
    rtt.handshake_reply(at(us));
    rtt
}

#[test]
fn the_probe_bounds_the_estimate() {
    let mut rtt = after_handshake(13_000);
    assert_eq!(rtt.get(), 13 * MS);
    rtt.bound(Ping { smallest: 2 * MS, median: 2 * MS, spread: 0 }, None);
    assert_eq!(rtt.get(), 2250 * US);
    for _ in 0..200 {
        rtt.track(700 * US);
        rtt.bound(Ping { smallest: 2 * MS, median: 2 * MS, spread: 0 }, None);
    }
    assert!(rtt.get() < 2900 * US, "an alias one spacing high is refused");
}

#[test]
fn copies_tell_which_packet_is_meant_where_packets_are_close() {
    let tracked = |spacing, copies| {
        let mut rtt = after_handshake(2_600);
        (0..copies).for_each(|n| rtt.repaired(at(n), 2_100 * US, true));
        (0..400).for_each(|_| rtt.track(20 * US));
        assert!(rtt.get() > 2_400 * US, "the next packet explains replies as well");
        rtt.leave_alias(spacing);
        rtt.get()
    };
    assert_eq!(tracked(240 * US, 8), 2_100 * US);
    assert!(tracked(240 * US, 4) > 2_400 * US, "two of them may be wrong");
    assert!(tracked(MS, 8) > 2_400 * US, "the next packet is further away");
    assert!(tracked(120 * US, 8) > 2_400 * US, "none is told from the next");
}

#[test]
fn no_copy_tells_of_less_than_what_probes_take() {
    let ping = Ping { smallest: 2_240 * US, median: 2_310 * US, spread: 0 };
    let mut rtt = after_handshake(2_330);
    rtt.bound(ping, Some(240 * US));
    // Where a reply names several packets, which copy it was about is known but for a packet.
    (0..8).for_each(|n| rtt.repaired(at(n), 2_090 * US, true));
    rtt.leave_alias(240 * US);
    rtt.bound(ping, Some(240 * US));
    assert_eq!(rtt.get(), ping.smallest, "the next packet's would be 2.56");
}

#[test]
fn a_handshake_is_no_round_trip_where_packets_are_close() {
    let ping = Ping { smallest: 2 * MS, median: 2 * MS, spread: 0 };
    let bounded = |spacing, copies| {
        let mut rtt = after_handshake(2_240);
        rtt.bound(ping, spacing);
        rtt.lengthen(360 * US);
        (0..copies).for_each(|n| rtt.repaired(at(n), 2_600 * US, true));
        rtt.bound(ping, spacing);
        rtt.get()
    };
    assert_eq!(bounded(None, 0), 2_600 * US);
    assert_eq!(bounded(Some(MS), 0), 2_600 * US, "the next packet is further away");
    assert_eq!(bounded(Some(240 * US), 0), 2_250 * US);
    assert_eq!(bounded(Some(240 * US), 3), 2_600 * US, "copies have told");
    let mut rtt = after_handshake(2_600);
    rtt.bound(ping, Some(MS));
    assert_eq!(
        rtt.get(),
        2_250 * US,
        "nothing but the handshake has told, in which a client makes keys"
    );
}

#[test]
fn no_round_trip_is_longer_than_a_train_has_shown() {
    let after = |longest, spacing, copies| {
        let mut rtt = after_handshake(2_600);
        rtt.bound(Ping { smallest: 2 * MS, median: 2 * MS, spread: 0 }, None);
        (0..copies).for_each(|n| rtt.repaired(at(n), 2_600 * US, true));
        rtt.at_most(longest, spacing);
        rtt.get()
    };
    assert_eq!(after(2_130 * US, 240 * US, 0), 2_130 * US);
    assert_eq!(after(2_500 * US, 240 * US, 0), 2_600 * US, "the same packet is meant");
    assert_eq!(after(2_130 * US, 120 * US, 0), 2_600 * US, "several are read at a time");
    assert_eq!(after(2_130 * US, 240 * US, 3), 2_600 * US, "copies tell more");
}

#[test]
fn a_hop_that_varies_by_a_third_of_its_length_is_blurred() {
    let mut rtt = after_handshake(6_000);
    let mut ping = |spread| {
        rtt.bound(Ping { smallest: 5 * MS, median: 6 * MS, spread }, None);
        rtt.blurred()
    };
    assert!(!ping(100 * US) && !ping(1500 * US) && ping(2 * MS));
    assert!(!after_handshake(900).blurred());
}

#[test]
fn probes_that_wait_do_not_blur_replies_that_keep_time() {
    let mut rtt = after_handshake(3_600);
    rtt.bound(Ping { smallest: 2 * MS, median: 2600 * US, spread: 1600 * US }, None);
    assert!(rtt.blurred() && !rtt.sharp());
    let after = |rtt: &LocalRtt, spacing| {
        let mut rtt = rtt.clone();
        rtt.compare(spacing);
        (rtt.blurred(), rtt.sharp())
    };
    (0..200).for_each(|_| rtt.track(100 * US));
    assert_eq!(after(&rtt, MS), (false, true));
    assert!(after(&rtt, 400 * US).0, "a quarter of the distance is chance");
}

#[test]
fn bursts_correct_a_handshake_that_took_long() {
    let mut rtt = after_handshake(7_000);
    for n in 0..4u64 {
        let start = 1_000_000 + n * 100_000;
        rtt.sent(at(start), Some(at(start - 60_000)), Some(at(start - 30_000)));
        rtt.burst_reply(at(start + 2_300 + n * 20), false);
    }
    assert!((rtt.get() - 2_330 * US).abs() < 50 * US, "{}", rtt.get());
}

#[test]
fn repairs_outrank_bursts_without_a_probe() {
    let mut rtt = after_handshake(7_000);
    for n in 0..3 {
        rtt.repaired(at(n * 1000), 2_400 * US, true);
    }
    assert!((rtt.get() - 2_400 * US).abs() < 10 * US);
}

#[test]
fn copies_tell_how_late_a_host_is() {
    let mut rtt = after_handshake(2_300);
    rtt.bound(Ping { smallest: 2 * MS, median: 2 * MS, spread: 0 }, None);
    assert_eq!(rtt.replies(), None);
    for n in 0..16 {
        rtt.repaired(at(n * 1000), (2_100 + n as i64 * 20) * US, true);
    }
    let Replies { soonest, usual, lateness } = rtt.replies().unwrap();
    assert!((2_080 * US..=2_100 * US).contains(&soonest), "{soonest}");
    assert_eq!(usual, 2_260 * US);
    assert!((250 * US..=350 * US).contains(&lateness), "{lateness}");
}

#[test]
fn tracks_slowly_and_ignores_what_is_far() {
    let mut rtt = after_handshake(2_000);
    rtt.track(1_500 * US);
    assert_eq!(rtt.get(), 2 * MS);
    rtt.track(100 * US);
    assert_eq!(rtt.get(), 2_003 * US);
}

#[test]
fn no_client_makes_it_longer_without_end() {
    let mut rtt = after_handshake(2_600);
    rtt.lengthen(MS);
    assert_eq!(rtt.get(), 3_600 * US);
    (0..1000).for_each(|_| rtt.lengthen(MS));
    assert_eq!(rtt.get(), LONGEST_SAMPLE);
    let mut long = after_handshake(100_000);
    long.lengthen(MS);
    assert_eq!(long.get(), 100 * MS, "what was measured stays");
}
