// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::infer::rhythm::Beat;
use crate::time::MS;

fn facts(size: i32, open: usize) -> Facts {
    Facts { size, open, explained: true, ..Facts::default() }
}

fn with_base(size: i32) -> Sizes {
    let mut sizes = Sizes::new();
    for _ in 0..3 {
        assert_eq!(sizes.read(&facts(size, 0)), Reading::Plain);
    }
    sizes
}

fn is_gap(reading: Reading) -> bool {
    matches!(reading, Reading::NewGap(_))
}

#[test]
fn two_bytes_more_is_a_gap_and_less_is_its_repair() {
    let mut s = with_base(36);
    let Reading::NewGap(sign) = s.read(&facts(38, 0)) else { panic!() };
    assert_eq!((sign.step, sign.excess, sign.kind), (2, 2, SignKind::Step));
    assert_eq!(s.read(&facts(38, 1)), Reading::Plain);
    assert!(is_gap(s.read(&facts(40, 1))), "a second gap");
    assert_eq!(s.read(&facts(38, 2)), Reading::OneClosed);
    assert_eq!(s.read(&facts(36, 1)), Reading::Closed);
    assert_eq!(s.read(&facts(36, 0)), Reading::Plain);
}

#[test]
fn a_gap_shows_by_one_byte_if_the_one_before_came_with_a_longer_field() {
    let close = |size, open| Facts { close: true, ..facts(size, open) };
    let mut s = with_base(36);
    assert!(is_gap(s.read(&close(39, 0))));
    assert_eq!(s.read(&close(40, 1)), Reading::Plain, "the field may be longer still");
    assert!(is_gap(s.read(&close(40, 1))), "it is not, as the next reply is as long");
    let mut s = with_base(36);
    assert!(is_gap(s.read(&close(39, 0))));
    assert_eq!(s.read(&close(40, 1)), Reading::Plain);
    assert_eq!(s.read(&close(39, 1)), Reading::Plain);
    assert_eq!(s.read(&close(39, 1)), Reading::Plain, "it was, once");
    let mut s = with_base(36);
    assert!(is_gap(s.read(&facts(39, 0))));
    assert!((0..3).all(|_| s.read(&facts(40, 1)) == Reading::Plain), "packets are far apart");
}

#[test]
fn a_gap_closed_one_byte_up_counts_only_when_a_copy_explains_it() {
    let mut s = with_base(36);
    s.read(&facts(38, 0));
    assert_eq!(s.read(&facts(37, 1)), Reading::Plain);
    assert_eq!(s.read(&facts(38, 1)), Reading::Plain);
    assert_eq!(s.read(&Facts { copy_due: true, ..facts(37, 1) }), Reading::Closed);
    assert_eq!(s.excess(36), 0, "the base was not raised");
}

#[test]
fn a_range_that_takes_a_byte_less_is_no_repair_where_sizes_are_known_without_it() {
    let due = |size| Facts { copy_due: true, ..facts(size, 1) };
    // A range of 64 packets has a length of two bytes, and one of 63 of one.
    let mut s = with_base(36);
    s.read(&facts(37, 0));
    assert!(is_gap(s.read(&facts(39, 0))));
    assert_eq!(s.read(&due(38)), Reading::Plain, "two above the smallest");
    assert_eq!(s.clone().read(&due(37)), Reading::Closed);
    assert_eq!(s.read(&due(36)), Reading::Closed);
    let mut s = with_base(36);
    assert!(is_gap(s.read(&facts(38, 0))));
    assert_eq!(s.read(&due(37)), Reading::Closed, "the range has become longer by it");
}

#[test]
fn what_is_the_usual_size_is_no_packet_of_the_clients_own() {
    let mut s = with_base(38);
    s.read(&facts(36, 0));
    s.read(&facts(38, 0));
    s.rebase(38);
    assert_eq!(s.clone().read(&facts(36, 0)), Reading::Noise);
    s.rebase(36);
    assert_eq!(s.read(&facts(36, 0)), Reading::Plain);
    s.rebase(38);
    assert_eq!(s.read(&facts(36, 0)), Reading::Plain);
    assert!(is_gap(s.read(&facts(38, 0))));
}

#[test]
fn what_gets_shorter_before_a_copy_can_be_replied_to_has_shed_ranges() {
    let early = |size, open| Facts { prunes: true, ..facts(size, open) };
    let mut s = with_base(40);
    assert!(is_gap(s.read(&early(42, 0))));
    assert_eq!(s.read(&early(40, 1)), Reading::Plain, "one range less, and the gap");
    assert_eq!(s.read(&Facts { copy_due: true, due: 1, ..early(38, 1) }), Reading::Closed);
    assert!(is_gap(s.read(&early(40, 0))));
    assert!(is_gap(s.read(&early(42, 1))));
    let one_due = Facts { copy_due: true, due: 1, ..early(38, 2) };
    assert_eq!(s.read(&one_due), Reading::OneClosed, "the other cannot have closed");
    assert_eq!(s.excess(38), 2);
}

#[test]
fn the_first_reply_that_can_tell_of_a_copy_shows_the_repair_although_it_is_late() {
    let mut s = with_base(40);
    assert!(is_gap(s.read(&facts(42, 0))));
    let first = Facts { prunes: true, tells_first: true, due: 1, ..facts(40, 1) };
    assert_eq!(s.read(&first), Reading::Closed, "the copy's own reply was lost");
}

#[test]
fn a_reply_to_a_copy_and_to_no_packet_closes_a_gap_although_a_field_is_longer() {
    let mut s = with_base(40);
    assert!(is_gap(s.read(&facts(42, 0))));
    let late = Facts { prunes: true, tells_first: true, due: 1, explained: false, ..facts(41, 1) };
    let to_packet = Facts { explained: true, ..late };
    assert_eq!(s.clone().read(&to_packet), Reading::Plain);
    assert_eq!(s.read(&late), Reading::Closed);
}

#[test]
fn the_floor_makes_no_step_of_two_gaps_odd() {
    let mut s = with_base(36);
    s.read(&facts(37, 0));
    assert!(is_gap(s.read(&facts(41, 0))), "and not noise");
}

#[test]
fn what_was_given_up_takes_its_longer_field_along() {
    let mut s = with_base(36);
    assert!(is_gap(s.read(&facts(39, 0))), "a gap and a longer field");
    s.read(&facts(38, 1));
    assert!(is_gap(s.read(&facts(40, 1))));
    s.abandoned(3, 1);
    assert_eq!(s.excess(40), 2, "the other one is still open");
}

#[test]
fn small_steps_move_the_base_but_late_replies_do_not() {
    let mut s = with_base(36);
    s.read(&Facts { explained: false, ..facts(37, 0) });
    assert_eq!(s.excess(36), 0);
    s.read(&facts(37, 0));
    assert_eq!(s.excess(37), 0);
    // One above the smallest of the recent sizes: one byte more is two above the floor.
    let Reading::NewGap(sign) = s.read(&facts(38, 0)) else { panic!() };
    assert_eq!(sign.kind, SignKind::Floor);
}

#[test]
fn where_packets_are_close_the_floor_asks_twice() {
    let close = |size, open| Facts { close: true, ..facts(size, open) };
    // Two bytes above the smallest size, and one above the usual one.
    let mut s = with_base(36);
    assert_eq!(s.read(&close(37, 0)), Reading::Plain);
    assert_eq!(s.read(&close(38, 0)), Reading::Unsure);
    let Reading::NewGap(sign) = s.clone().read(&close(38, 0)) else { panic!() };
    assert_eq!(sign.kind, SignKind::Floor);
    assert_eq!(s.read(&close(37, 0)), Reading::Plain, "it was a frame of the client's own");
    assert_eq!(s.read(&close(38, 0)), Reading::Unsure, "and is none of a gap's either");
    let high = Facts { counts_high: true, ..close(38, 0) };
    assert!(is_gap(s.clone().read(&high)), "of ten packets' replies the next one is far");
    assert_eq!(s.read(&close(37, 0)), Reading::Plain);
    assert!(is_gap(s.read(&close(39, 0))), "two bytes above the usual size need no second one");
}

#[test]
fn packets_of_the_clients_own_are_noise_until_confirmed() {
    let mut s = with_base(36);
    assert_eq!(s.read(&facts(80, 0)), Reading::Noise);
    assert_eq!(s.read(&facts(32, 0)), Reading::Noise);
    assert_eq!(s.read(&facts(36, 0)), Reading::Plain);
    // With a gap open a small one is no repair.
    s.read(&facts(38, 0));
    assert_eq!(s.read(&facts(32, 1)), Reading::Noise);
    assert_eq!(s.read(&facts(36, 1)), Reading::Closed);
    // Twice in a row it is the new size of an acknowledgement.
    assert_eq!(s.read(&facts(32, 0)), Reading::Noise);
    assert_eq!(s.read(&facts(32, 0)), Reading::Plain);
    assert!(is_gap(s.read(&facts(34, 0))));
}

#[test]
fn one_reply_a_range_shorter_than_those_around_it_is_a_packet_of_the_clients_own() {
    let mut s = with_base(30);
    assert_eq!(s.read(&facts(28, 0)), Reading::Plain, "a range may have gone");
    assert!(is_gap(s.read(&facts(30, 0))), "and a gap have begun");
    s.read(&facts(30, 1));
    s.abandoned_all();
    assert_eq!(s.read(&facts(28, 0)), Reading::Noise, "what that is is known by now");
    assert_eq!(s.read(&facts(30, 0)), Reading::Plain);
    assert!(is_gap(s.read(&facts(32, 0))));
    assert_eq!(s.read(&facts(28, 1)), Reading::Noise);
    assert_eq!(s.read(&facts(30, 1)), Reading::Closed);
    let high = Facts { counts_high: true, ..facts(28, 0) };
    assert_eq!(
        s.clone().read(&high),
        Reading::Plain,
        "of ten packets' replies each may be the first after a gap"
    );
    // Twice in a row it is a range that has gone.
    assert_eq!(s.read(&facts(28, 0)), Reading::Noise);
    assert_eq!(s.read(&facts(28, 0)), Reading::Plain);
    assert!(is_gap(s.read(&facts(30, 0))));
}

#[test]
fn an_oscillating_size_switches_the_floor_off() {
    let mut s = with_base(36);
    let mut marks = 0;
    for n in 0..20 {
        let now = Time::ZERO + n * 2 * MS;
        s.read(&Facts { now, ..facts(36, 0) });
        s.read(&Facts { now, ..facts(37, 0) });
        if is_gap(s.read(&Facts { now, ..facts(38, 0) })) {
            marks += 1;
            s.closed(true);
            s.rebase(37);
        }
        s.read(&Facts { now, ..facts(37, 0) });
    }
    assert_eq!(marks, 3);
}

#[test]
fn what_was_given_up_is_part_of_the_base() {
    let mut s = with_base(36);
    s.read(&facts(38, 0));
    s.read(&facts(38, 1));
    s.abandoned(2, 0);
    assert_eq!(s.read(&facts(38, 0)), Reading::Plain);
    assert!(is_gap(s.read(&facts(40, 0))));
    // The sender prunes the old range.
    s.rebase(40);
    assert_eq!(s.read(&facts(38, 0)), Reading::Plain);
}

#[test]
fn one_long_reply_that_was_given_up_does_not_hide_the_next_gap() {
    let mut s = with_base(36);
    assert!(is_gap(s.read(&facts(39, 0))), "a frame of the client's own, in truth");
    s.abandoned(3, 0);
    assert_eq!(s.read(&facts(36, 0)), Reading::Plain);
    assert!(is_gap(s.read(&facts(38, 0))));
    // If the next one is as long, that is what they look like now.
    s.abandoned(2, 0);
    assert_eq!(s.read(&facts(38, 0)), Reading::Plain);
    assert!(is_gap(s.read(&facts(40, 0))));
}

#[test]
fn gaps_between_two_answered_packets_were_there_before() {
    let mut s = with_base(36);
    let beat = Beat { adjacent: true, fast: true, count: 1, ..Beat::default() };
    let adjacent = |size| Facts { beat, ..facts(size, 0) };
    assert_eq!(s.read(&adjacent(38)), Reading::Upstream);
    assert!(is_gap(s.read(&facts(40, 0))), "one more, and not adjacent");
    s.rebase(36);
    assert_eq!(s.read(&adjacent(39)), Reading::Upstream);
    assert_eq!(s.read(&facts(36, 0)), Reading::Plain);
    assert!(is_gap(s.read(&facts(38, 0))), "39 was something else");
}

#[test]
fn a_decimating_client_marks_by_rhythm_once_a_gap() {
    let mut s = with_base(33);
    let beat = |trigger| Beat { trigger, count: 1, fast: true, early: true, ..Beat::default() };
    let early =
        |trigger, size, open| Facts { beat: beat(trigger), counts_high: true, ..facts(size, open) };
    let Reading::NewGap(sign) = s.read(&early(100, 34, 0)) else { panic!() };
    assert_eq!(sign.kind, SignKind::Rhythm);
    for trigger in 101..=103 {
        assert_eq!(s.read(&early(trigger, 34, 1)), Reading::Plain);
    }
    assert_eq!(s.read(&early(110, 32, 1)), Reading::Closed);
}

#[test]
fn of_replies_of_one_size_none_shows_a_gap() {
    let mut s = with_base(47);
    let beat = Beat { trigger: 90, count: 4, fast: true, early: true, ..Beat::default() };
    let early = |size| Facts { beat, counts_high: true, ..facts(size, 0) };
    assert!(!s.constant(47));
    s.read(&facts(47, 0));
    assert!(s.constant(47) && !s.constant(49));
    let Reading::NewGap(sign) = s.clone().read(&early(47)) else { panic!() };
    assert!(sign.silent);
    let Reading::NewGap(sign) = s.read(&early(48)) else { panic!() };
    assert!(!sign.silent, "its size shows something");
}

#[test]
fn a_client_that_becomes_shorter_shows_its_gaps_by_that() {
    let mut s = with_base(46);
    s.read(&facts(46, 0));
    let beat = Beat { trigger: 90, count: 2, fast: true, ..Beat::default() };
    let heeded = |size, open| Facts { beat, shrinks: true, ..facts(size, open) };
    assert_eq!(s.clone().read(&facts(37, 0)), Reading::Noise, "it is not heeded");
    let Reading::NewGap(sign) = s.read(&heeded(37, 0)) else { panic!() };
    assert_eq!(sign.kind, SignKind::Shorter);
    assert_eq!(s.read(&heeded(37, 1)), Reading::Plain);
    assert!(is_gap(s.read(&heeded(39, 1))), "a second one");
    assert_eq!(s.read(&heeded(37, 2)), Reading::OneClosed);
    assert_eq!(s.clone().read(&heeded(35, 1)), Reading::Closed, "and its other frames wait");
    assert_eq!(s.read(&heeded(46, 1)), Reading::Closed);
    assert_eq!(s.read(&heeded(46, 0)), Reading::Plain);
}

#[test]
fn where_sizes_vary_a_second_reply_has_to_show_a_gap() {
    let mut s = with_base(36);
    for _ in 0..3 {
        s.read(&facts(39, 0));
        s.rebase(36);
    }
    assert!(s.restless.is());
    let beat = Beat { fast: true, ..Beat::default() };
    let repeats = |ms: i64, size| {
        let now = Time::ZERO + ms * MS;
        Facts { beat, repeats: true, now, ..facts(size, 0) }
    };
    assert!(is_gap(s.clone().read(&facts(38, 0))), "unless attempts work");
    assert_eq!(s.read(&repeats(1, 38)), Reading::Plain);
    assert_eq!(s.read(&repeats(2, 36)), Reading::Plain);
    assert_eq!(s.read(&repeats(3, 38)), Reading::Plain);
    let Reading::NewGap(sign) = s.read(&repeats(4, 38)) else { panic!() };
    assert_eq!((sign.kind, sign.shown), (SignKind::Repeated, Time::ZERO + 3 * MS));
}

#[test]
fn what_was_alike_in_the_flow_before_is_alike_at_once_and_until_one_reply_is_not() {
    let mut s = with_base(43);
    s.expect_alike(true);
    assert!(!s.always_constant(43), "three are few");
    s.read(&facts(43, 0));
    s.read(&facts(43, 0));
    assert!(s.always_constant(43));
    s.read(&facts(44, 0));
    for _ in 0..8 {
        let _ = s.read(&facts(43, 0));
    }
    assert!(!s.always_constant(43), "now it has to show it as any other");
}
