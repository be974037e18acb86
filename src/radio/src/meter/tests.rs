// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A station that replies to every packet, in the `n`th second of its association.
fn station(second: u32, sent: u32, retries: u32, failed: u32) -> Station {
    let counters = Counters { sent, retries, failed, received: sent };
    Station { counters, connected_s: Some(second), ..Station::default() }
}

/// What two looks at a driver give, the second after an hour.
fn counted(driver: &str, before: [u32; 3], after: [u32; 3]) -> Delta {
    let of = |second, [sent, retries, failed]: [u32; 3]| station(second, sent, retries, failed);
    let mut meter = Meter::new(Counting::of(driver), s(0), &of(1, before));
    meter.read(s(3600), &of(3601, after), true)
}

/// Public dumps, with what the drivers mean by them: openwrt/openwrt issue 15174 (two clients of a
/// BPI-R3), openwrt/mt76 issues 956, 188 (two clients of a mt7628) and 1080.
#[test]
fn public_dumps() {
    for (driver, [sent, retries, failed], lost) in [
        ("mt798x-wmac", [2_730_929, 46_785, 46_792], 7),
        ("mt798x-wmac", [1_842_752, 153_633, 153_751], 118),
        ("mt7915e", [411_154, 408_730, 410_342], 1_612),
        ("mt76_wmac", [1_714_057, 597_063, 65], 65),
        ("mt76_wmac", [1_201_213, 887_998, 3_527], 3_527),
        ("mt76_wmac", [13_502, 298, 4], 4),
    ] {
        let delta = counted(driver, [0; 3], [sent, retries, failed]);
        assert_eq!((delta.sent, delta.retried, delta.lost), (sent, retries, lost), "{driver}");
        assert_eq!((delta.worth, delta.anew), (Worth::Exact, false));
    }
}

#[test]
fn what_each_driver_means() {
    let (before, after) = ([1000, 100, 110], [2000, 150, 163]);
    for (driver, lost, worth) in [
        ("mt7915e", 3, Worth::Exact),
        ("mt7996e", 3, Worth::Exact),
        ("ath9k", 53, Worth::Exact),
        ("ath10k_pci", 53, Worth::Exact),
        ("ath11k", 53, Worth::Exact),
        ("mt7921e", 53, Worth::Exact),
        ("mac80211_hwsim", 53, Worth::Exact),
        ("rtl8192cu", 53, Worth::AtMost),
    ] {
        let delta = counted(driver, before, after);
        assert_eq!((delta.lost, delta.retried, delta.worth), (lost, 50, worth), "{driver}");
    }
}

#[test]
fn counters_go_on_at_zero_after_the_largest_number() {
    let most = u32::MAX;
    let delta = counted("ath9k", [most - 9, most - 4, most], [90, 5, 1]);
    assert_eq!((delta.sent, delta.retried, delta.lost, delta.anew), (100, 10, 2, false));
    // Failures first, since there are more of them.
    let delta = counted("mt7915e", [5000, most - 20, most - 15], [6000, most - 2, 5]);
    assert_eq!((delta.retried, delta.lost, delta.worth), (18, 3, Worth::Exact));
}

/// openwrt/mt76 issue 1069: with a count of zero from the hardware a driver without the guard
/// adds -1 to its retries, and -1 or 0 to its failures.
#[test]
fn a_count_below_zero() {
    let mut meter = Meter::new(Counting::of("mt7996e"), s(0), &station(0, 0, 0, 0));
    let minus = |number: u32| number.wrapping_neg();
    let delta = meter.read(s(1), &station(1, 100, minus(1), minus(1)), true);
    assert_eq!((delta.retried, delta.lost, delta.worth), (0, 0, Worth::Exact));
    let delta = meter.read(s(2), &station(2, 200, minus(2), minus(1)), true);
    assert_eq!((delta.retried, delta.lost, delta.worth), (0, 1, Worth::Exact));
    let delta = meter.read(s(3), &station(3, 300, 8, 10), true);
    assert_eq!((delta.retried, delta.lost, delta.worth), (8, 1, Worth::Exact));
    // One that counts losses alone has not lost four thousand million.
    let delta = counted("ath10k_ahb", [100, 0, 0], [200, 0, minus(1)]);
    assert_eq!(delta.lost, 0);
}

#[test]
fn a_look_between_the_two_counters() {
    let mut meter = Meter::new(Counting::LossesAndRetries, s(0), &station(0, 100, 50, 52));
    // A report has added 6 to the retries and not yet 7 to the failures.
    let delta = meter.read(s(1), &station(1, 110, 56, 52), true);
    assert_eq!((delta.lost, delta.worth), (0, Worth::AtMost));
    let delta = meter.read(s(2), &station(2, 110, 56, 59), true);
    assert_eq!((delta.lost, delta.worth), (1, Worth::Exact));
}

/// With hardware that forwards by itself the two are counted apart: fewer failures than retries.
#[test]
fn offloading_hardware_is_noticed() {
    let mut meter = Meter::new(Counting::LossesAndRetries, s(0), &station(0, 0, 0, 0));
    let delta = meter.read(s(1), &station(1, 1000, 60, 2), true);
    assert_eq!((delta.lost, delta.worth), (2, Worth::AtMost));
    let delta = meter.read(s(2), &station(2, 2000, 120, 3), true);
    assert_eq!((delta.lost, delta.worth), (1, Worth::AtMost));
    // Even if it catches up.
    let delta = meter.read(s(3), &station(3, 3000, 130, 140), true);
    assert_eq!((delta.lost, delta.worth), (137, Worth::AtMost));
    // At once where it shows at the first look.
    let meter = Meter::new(Counting::LossesAndRetries, s(0), &station(0, 9000, 500, 12));
    assert_eq!(meter.worth(), Worth::AtMost);
}

#[test]
fn an_association_begins_anew() {
    for driver in ["ath10k_pci", "mt7915e"] {
        let mut meter = Meter::new(Counting::of(driver), s(0), &station(99, 5000, 0, 40));
        // All that it has counted happened since the last look.
        let delta = meter.read(s(5), &station(3, 700, 0, 6), true);
        assert_eq!((delta.sent, delta.lost, delta.anew), (700, 6, true), "{driver}");
        let delta = meter.read(s(6), &station(4, 800, 0, 7), true);
        assert_eq!((delta.sent, delta.lost, delta.anew), (100, 1, false), "{driver}");
    }
}

#[test]
fn an_association_that_only_the_counters_show() {
    let unknown = |sent, failed| Station { connected_s: None, ..station(0, sent, 0, failed) };
    for before in [5_000, 3_000_000_000] {
        let mut meter = Meter::new(Counting::Losses, s(0), &unknown(before, 40));
        // When it began nobody knows, so nothing of it is a loss of the last second.
        let delta = meter.read(s(1), &unknown(700, 6), true);
        assert_eq!((delta.sent, delta.lost, delta.anew), (0, 0, true));
        let delta = meter.read(s(2), &unknown(800, 7), true);
        assert_eq!((delta.sent, delta.lost, delta.anew), (100, 1, false));
    }
}

#[test]
fn whoever_joined_counts_from_zero() {
    let mut meter = Meter::joined(Counting::LossesAndRetries, s(10));
    let delta = meter.read(s(11), &station(1, 900, 20, 23), true);
    assert_eq!((delta.sent, delta.lost, delta.worth), (900, 3, Worth::Exact));
}

#[test]
fn a_fifth_lost_for_a_second_while_replies_come() {
    let mut meter = Meter::new(Counting::Losses, s(0), &station(0, 0, 0, 0));
    // A fifth, and no more.
    let delta = meter.read(s(1), &station(1, 1000, 0, 200), true);
    assert_eq!(delta.worth, Worth::Exact);
    // Half a second is too short to judge.
    let half = Duration::from_millis(1500);
    assert_eq!(meter.read(half, &station(1, 1500, 0, 600), true).worth, Worth::Exact);
    let delta = meter.read(s(2), &station(2, 2000, 0, 700), true);
    assert_eq!((delta.lost, delta.worth), (100, Worth::Display));
    assert_eq!(meter.read(s(61), &station(61, 3000, 0, 700), true).worth, Worth::Display);
    assert_eq!(meter.read(s(62), &station(62, 4000, 0, 700), true).worth, Worth::Exact);
}

#[test]
fn whoever_is_silent_may_have_lost_it_all() {
    let mut meter = Meter::new(Counting::Losses, s(0), &station(0, 0, 0, 0));
    let mut silent = station(1, 1000, 0, 900);
    silent.counters.received = 10;
    assert_eq!(meter.read(s(1), &silent, true).worth, Worth::Exact);
    // From a few packets nothing follows.
    let few = station(2, 1019, 0, 919);
    assert_eq!(meter.read(s(2), &few, true).worth, Worth::Exact);
}

#[test]
fn a_driver_that_never_counts_tells_nothing() {
    let mut meter = Meter::new(Counting::of("ath11k"), s(0), &station(0, 0, 0, 0));
    assert_eq!(meter.read(s(99), &station(99, 999_999, 0, 0), false).worth, Worth::Exact);
    assert_eq!(meter.read(s(100), &station(100, 1_000_000, 0, 0), false).worth, Worth::Nothing);
    // Another station of the same radio has had a loss, so this one has had none.
    assert_eq!(meter.read(s(101), &station(101, 1_000_001, 0, 0), true).worth, Worth::Exact);
    let delta = meter.read(s(102), &station(102, 1_000_050, 0, 1), false);
    assert_eq!((delta.lost, delta.worth), (1, Worth::Exact));
}

#[test]
fn clocks_and_counters_that_jump_do_no_harm() {
    let mut meter = Meter::new(Counting::LossesAndRetries, s(9), &station(5, 7, 8, 9));
    let most = u32::MAX;
    for (now, [second, sent, retries, failed]) in [
        (Duration::MAX, [most; 4]),
        (s(0), [0; 4]),
        (Duration::MAX, [0, most, 0, most / 2 + 1]),
        (s(1), [1, 0, most, 0]),
    ] {
        let delta = meter.read(now, &station(second, sent, retries, failed), false);
        assert!(delta.lost <= i32::MAX.unsigned_abs());
    }
}
