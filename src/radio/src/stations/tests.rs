// SPDX-License-Identifier: GPL-2.0-or-later
use super::*;
use crate::station::Counters;

const MAC: Mac = Mac([2, 0, 0, 0, 2, 0]);

fn s(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

fn mac(number: usize) -> Mac {
    Mac([2, 0, 0, 1, (number >> 8) as u8, number as u8])
}

/// Of interface 3, with a driver that counts losses.
fn station(connected: u32, sent: u32, failed: u32) -> Station {
    Station {
        interface: 3,
        mac: MAC,
        counters: Counters { sent, retries: 0, failed, received: sent },
        connected_s: Some(connected),
        ..Station::default()
    }
}

fn known() -> Stations {
    let mut known = Stations::default();
    known.counts(3, Counting::Losses);
    known.counts(4, Counting::Losses);
    known
}

#[test]
fn what_was_before_the_first_look_is_not_counted() {
    let mut known = known();
    assert_eq!(known.look(s(1), &station(99, 5000, 40)), None);
    let sample = known.look(s(2), &station(100, 5100, 42)).unwrap();
    assert_eq!((sample.from, sample.to), (s(1), s(2)));
    assert_eq!((sample.delta.sent, sample.delta.lost, sample.moved), (100, 2, false));
    let record = known.get(MAC).unwrap();
    assert_eq!((record.worth(), record.history().total().lost), (Worth::Exact, 2));
}

#[test]
fn what_nobody_said_of_an_interface_is_at_most() {
    let mut known = Stations::default();
    known.look(s(1), &station(99, 5000, 40));
    assert_eq!(known.get(MAC).unwrap().worth(), Worth::AtMost);
}

#[test]
fn queues_are_told_from_look_to_look() {
    let mut known = known();
    let with = |connected, drops| {
        let queue = Queue { packets: 9, drops, ..Queue::default() };
        Station { queue: Some(queue), ..station(connected, 100 * connected, 0) }
    };
    known.look(s(1), &with(10, u32::MAX));
    let sample = known.look(s(2), &with(11, 4)).unwrap();
    assert_eq!((sample.queued, sample.queue_drops), (9, 5));
    // Associated again: what the new queue dropped before the look is not known to be recent.
    let sample = known.look(s(3), &with(0, 2)).unwrap();
    assert_eq!((sample.queue_drops, sample.moved), (0, true));
}

#[test]
fn roaming_is_told_once_and_the_interface_left_behind_is_not_believed() {
    let mut known = known();
    known.look(s(1), &station(99, 5000, 40));
    let elsewhere = |connected, sent| Station { interface: 4, ..station(connected, sent, 0) };
    let sample = known.look(s(2), &elsewhere(0, 10)).unwrap();
    assert!(sample.moved);
    assert_eq!(known.look(s(2), &station(100, 5001, 50)), None);
    let sample = known.look(s(3), &elsewhere(1, 20)).unwrap();
    assert_eq!((sample.moved, sample.delta.sent, sample.delta.lost), (false, 10, 0));
    // What the first one says when it notices does not concern its new association.
    known.hear(s(4), &Event::Left { interface: 3, mac: MAC });
    assert_eq!(known.get(MAC).unwrap().left(), None);
    assert_eq!(known.get(MAC).unwrap().interface(), 4);
}

#[test]
fn losses_between_an_event_and_the_next_look_are_counted() {
    let mut known = known();
    known.hear(s(1), &Event::Joined { interface: 3, mac: MAC });
    let sample = known.look(s(2), &station(1, 900, 3)).unwrap();
    assert_eq!((sample.from, sample.delta.lost), (s(1), 3));
    known.hear(s(3), &Event::Left { interface: 3, mac: MAC });
    assert_eq!(known.get(MAC).unwrap().left(), Some(s(3)));
    known.hear(s(4), &Event::Joined { interface: 3, mac: MAC });
    let sample = known.look(s(5), &station(0, 30, 2)).unwrap();
    assert_eq!((sample.delta.sent, sample.delta.lost), (30, 2));
    // An event that is older than the last look begins nothing anew.
    known.hear(s(6), &Event::Joined { interface: 3, mac: MAC });
    let sample = known.look(s(7), &station(2, 40, 2)).unwrap();
    assert_eq!((sample.delta.sent, sample.delta.lost), (10, 0));
    assert_eq!(known.get(MAC).unwrap().history().total().lost, 5);
}

#[test]
fn whoever_is_no_longer_listed_has_left_and_may_come_back() {
    let mut known = known();
    known.look(s(1), &station(9, 100, 0));
    known.complete(s(1), 3);
    assert_eq!(known.get(MAC).unwrap().left(), None);
    known.complete(s(2), 4);
    assert_eq!(known.get(MAC).unwrap().left(), None);
    known.complete(s(2), 3);
    assert_eq!(known.get(MAC).unwrap().left(), Some(s(2)));
    // The answer was not complete after all.
    let sample = known.look(s(3), &station(11, 150, 1)).unwrap();
    assert_eq!((sample.delta.sent, sample.delta.lost, sample.moved), (50, 1, false));
    assert_eq!(known.get(MAC).unwrap().left(), None);
    known.hear(s(4), &Event::InterfaceGone(3));
    assert_eq!(known.get(MAC).unwrap().left(), Some(s(4)));
}

#[test]
fn one_station_proves_that_a_driver_counts_for_all() {
    let mut known = known();
    let quiet = Station { mac: mac(1), ..station(9, 2_000_000, 0) };
    known.look(s(1), &quiet);
    assert_eq!(known.look(s(2), &quiet).unwrap().delta.worth, Worth::Nothing);
    known.look(s(2), &station(9, 10, 1));
    // Also if its driver is told again.
    known.counts(3, Counting::Losses);
    assert_eq!(known.look(s(3), &quiet).unwrap().delta.worth, Worth::Exact);
}

#[test]
fn whoever_left_goes_first_and_then_whoever_was_not_heard_of_for_longest() {
    let mut known = known();
    for number in 0..MOST {
        known.look(s(number as u64), &Station { mac: mac(number), ..station(9, 1, 0) });
    }
    known.hear(s(900), &Event::Left { interface: 3, mac: mac(70) });
    known.hear(s(901), &Event::Left { interface: 3, mac: mac(30) });
    let mut join = |number, now| {
        known.hear(s(now), &Event::Joined { interface: 3, mac: mac(number) });
        assert!(known.get(mac(number)).is_some());
        let gone: Vec<_> = (0..1000).filter(|number| known.get(mac(*number)).is_none()).collect();
        assert_eq!(known.iter().count(), MOST);
        gone[0]
    };
    // The first that is gone: 70, then 30 as well, then 0.
    assert_eq!(join(500, 902), 70);
    assert_eq!(join(501, 903), 30);
    assert_eq!(join(502, 904), 0);
}

#[test]
fn a_station_takes_a_few_hundred_bytes() {
    assert!(size_of::<Record>() <= 400, "{}", size_of::<Record>());
}
