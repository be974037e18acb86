// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `radio`. The first byte says what the others are: messages of nl80211, or what
//! happens to the stations of an access point, or to who asks for them.

use std::time::Duration;

use pemi_radio::counting::Counting;
use pemi_radio::event::Event;
use pemi_radio::family::Family;
use pemi_radio::interface::Interface;
use pemi_radio::link::Link;
use pemi_radio::mac::Mac;
use pemi_radio::neighbour::Neighbour;
use pemi_radio::netlink::{Messages, Question, Role};
use pemi_radio::schedule::{Ask, Schedule};
use pemi_radio::station::{Counters, Station};
use pemi_radio::stations::{MOST, Stations};

use crate::input::Input;

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else { return };
    match how % 3 {
        0 => messages(bytes),
        1 => stations(bytes),
        _ => schedule(bytes),
    }
}

/// A dump, and whoever is in it.
fn messages(bytes: &[u8]) {
    let mut known = Stations::default();
    let mut ended = false;
    for message in Messages(bytes) {
        assert!(!ended, "nothing after a malformed one");
        let Ok(message) = message else {
            ended = true;
            continue;
        };
        if let Role::Failed(number) = message.role() {
            assert_ne!(number, 0);
        }
        let _ = (Family::read(&message), Interface::read(&message));
        let _ = (Link::read(&message), Link::is_news(&message), Family::is_news(&message));
        if let Some(neighbour) = Neighbour::read(&message) {
            assert!(!neighbour.address.is_multicast() && !neighbour.address.is_unspecified());
        }
        if let Some(event) = Event::read(&message) {
            known.hear(Duration::ZERO, &event);
        }
        if let Some(station) = Station::read(&message) {
            known.look(Duration::ZERO, &station);
            assert!(known.get(station.mac).is_some());
        }
    }
}

/// Times go on by up to 65 s, and counters by up to 2^16, but for those that jump.
fn stations(bytes: &[u8]) {
    let mut input = Input(bytes);
    let mut known = Stations::default();
    let kinds = [Counting::Losses, Counting::LossesAndRetries, Counting::AtMost];
    let mut counters = Counters::default();
    let mut now = Duration::ZERO;
    while !input.is_empty() {
        let how = input.byte();
        now += Duration::from_millis(input.u16().into());
        let interface = u32::from(how >> 4 & 1);
        let mac = Mac([2, 0, 0, 0, how >> 5, input.byte()]);
        match how % 8 {
            0 => known.counts(interface, kinds[usize::from(input.byte()) % 3]),
            1 => known.hear(now, &Event::Joined { interface, mac }),
            2 => known.hear(now, &Event::Left { interface, mac }),
            3 => known.hear(now, &Event::InterfaceGone(interface)),
            4 => known.complete(now, interface),
            5 => counters = Counters { failed: u32::MAX, retries: 5, ..Counters::default() },
            _ => {
                counters.sent = counters.sent.wrapping_add(input.u16().into());
                counters.retries = counters.retries.wrapping_add(input.byte().into());
                counters.failed = counters.failed.wrapping_add(input.byte().into());
                counters.received = counters.received.wrapping_add(input.byte().into());
                let connected_s = (how & 8 == 0).then(|| input.byte().into());
                look(
                    &mut known,
                    now,
                    &Station { interface, mac, counters, connected_s, ..Station::default() },
                );
            }
        }
        assert!(known.iter().count() <= MOST);
    }
}

fn look(known: &mut Stations, now: Duration, station: &Station) {
    let before = known.get(station.mac).map(|record| record.history().total());
    let sample = known.look(now, station);
    let record = known.get(station.mac).expect("who was looked at is known");
    let (total, hour) = (record.history().total(), record.history().last_hour(now));
    let Some(sample) = sample else {
        assert!(before.is_none_or(|before| before == total), "nothing is counted in secret");
        return;
    };
    let before = before.expect("a sample has a look before it");
    assert_eq!(before.lost + u64::from(sample.delta.lost), total.lost);
    assert_eq!(before.sent + u64::from(sample.delta.sent), total.sent);
    assert!(sample.delta.lost <= u32::MAX / 2 && sample.from <= sample.to);
    assert!(hour.lost <= total.lost && hour.sent <= total.sent);
    assert!(u64::from(record.history().lost_last_minute(now)) <= hour.lost);
    assert!(hour.lost_per_mille() <= 1000);
    assert!((record.history().clean_since() == now) || sample.delta.lost == 0);
}

/// Every question takes a time that the input says; what is due is asked.
fn schedule(bytes: &[u8]) {
    let mut input = Input(bytes);
    let mut schedule = Schedule::default();
    let mut now = Duration::ZERO;
    while !input.is_empty() {
        let how = input.byte();
        let (interface, mac) = (u32::from(how >> 4 & 3), Mac([2, 0, 0, 0, 0, how >> 6]));
        match how % 4 {
            0 => schedule.interfaces(&[interface, 1]),
            1 => schedule.helping(now, interface, mac),
            2 => schedule.hurry(interface),
            _ => now += Duration::from_millis(input.u16().into()),
        }
        let Some(ask) = schedule.next(now) else {
            // Nothing is due, or there is nothing.
            assert!(schedule.deadline().is_none_or(|due| due > now));
            continue;
        };
        assert!(schedule.deadline().is_some_and(|due| due <= now));
        let took = Duration::from_micros(input.u16().into());
        schedule.asked(ask, now, now + took);
        assert!(schedule.deadline().is_some());
        if let Ask::Station(interface, mac) = ask {
            let soon = now + took * 99;
            assert!(took.is_zero() || !schedule.may_ask_at_once(soon, interface, mac));
        }
        // Not the same again before its time has come.
        let mut alone = schedule.clone();
        let others = (0..300).take_while(|_| {
            let next = alone.next(now + took * 99);
            assert!(took.is_zero() || next != Some(ask));
            next.inspect(|next| alone.asked(*next, now, now + took)).is_some()
        });
        assert!(others.count() < 300, "it comes to an end");
        now += took;
    }
}

/// A dump of every kind of message, in this machine's byte order, and lives of stations.
pub fn seeds() -> Vec<Vec<u8>> {
    let mac = [2, 0, 0, 0, 0, 9];
    let of = |command| Question::one(0x1c, command, 1).with(3, &7u32.to_ne_bytes());
    let number = |kind: u16, number: u32| {
        let head = [8u16.to_ne_bytes(), kind.to_ne_bytes()].concat();
        [head, number.to_ne_bytes().to_vec()].concat()
    };
    let nest = |kind: u16, inner: &[u8]| {
        let len = inner.len() as u16 + 4;
        [&len.to_ne_bytes()[..], &kind.to_ne_bytes(), inner].concat()
    };
    let queue = [number(1, 3000), number(2, 2), number(4, 1)].concat();
    let kinds = nest(31, &nest(1, &nest(6, &queue)));
    let info = [number(10, 900), number(11, 30), number(12, 31), number(16, 5), kinds].concat();
    let group = nest(1, &[nest(1, b"mlme\0\0\0\0"), number(2, 12)].concat());
    let dump = [
        Question::one(16, 1, 1).with(1, &0x1cu16.to_ne_bytes()).with(7, &group).finish(),
        of(7).with(4, b"wlan0\0").with(5, &3u32.to_ne_bytes()).with(1, &[0; 4]).finish(),
        of(19).with(6, &mac).with(21, &info).finish(),
        of(20).with(6, &mac).finish(),
        of(8).finish(),
        // A port of a bridge, and a neighbour that is reachable.
        Question::one_headed(16, 0, &[0, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
            .with(3, b"wlan0\0")
            .with(10, &3u32.to_ne_bytes())
            .finish(),
        Question::one_headed(28, 0, &[2, 0, 0, 0, 3, 0, 0, 0, 2, 0, 0, 1])
            .with(1, &[192, 0, 2, 9])
            .with(2, &mac)
            .finish(),
    ];
    let mut seeds: Vec<Vec<u8>> = dump.iter().map(|one| [&[0], &one[..]].concat()).collect();
    seeds.push([&[0], &dump.concat()[..]].concat());
    for kind in 0..3 {
        // Counts, looks with losses, leaves, joins, looks again.
        let mut life = vec![1, 0, 0, 0, 9, kind];
        for second in 0..5 {
            life.extend([6, 3, 232, 9, 0, 100, 4, 5, 50, second]);
        }
        life.extend([2, 0, 9, 9, 1, 0, 9, 9, 5, 0, 0, 0, 14, 3, 232, 9, 0, 100, 4, 5, 50]);
        seeds.push(life);
    }
    seeds.push(
        [&[2, 0x10, 0, 74, 0x51, 0, 74, 0x12], [0x53, 0, 100, 0, 90].repeat(12).as_slice()]
            .concat(),
    );
    seeds
}
