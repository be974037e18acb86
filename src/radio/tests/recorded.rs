// SPDX-License-Identifier: GPL-2.0-or-later
//! What a kernel said (folder `recorded`), read and remembered. Numbers are those that `iw`
//! showed beside it.

// Netlink is in the byte order of the machine on which it was recorded.
#![cfg(target_endian = "little")]

use std::time::Duration;

use pemi_radio::counting::Counting;
use pemi_radio::event::Event;
use pemi_radio::family::Family;
use pemi_radio::interface::{Interface, Kind};
use pemi_radio::mac::Mac;
use pemi_radio::meter::Worth;
use pemi_radio::netlink::{Messages, Role};
use pemi_radio::nl80211;
use pemi_radio::station::{Counters, Station};
use pemi_radio::stations::Stations;

const FIRST: Mac = Mac([2, 0, 0, 0, 2, 0]);
const SECOND: Mac = Mac([2, 0, 0, 0, 3, 0]);
/// The interfaces' numbers.
const WLAN0: u32 = 2;
const WLAN1: u32 = 3;

/// The bytes of each call of recv() of that name.
fn recorded(name: &str) -> Vec<Vec<u8>> {
    let mut found: Vec<Vec<u8>> = Vec::new();
    let mut wanted = false;
    for line in include_str!("recorded/hwsim.txt").lines() {
        if let Some(heading) = line.strip_prefix("@ ") {
            wanted = heading == name;
            found.extend(wanted.then(Vec::new));
        } else if wanted && !line.is_empty() {
            let bytes = line.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap());
            found.last_mut().unwrap().extend(bytes);
        }
    }
    assert!(!found.is_empty(), "{name}");
    found
}

fn stations(name: &str) -> Vec<Station> {
    let bytes = recorded(name).concat();
    let messages: Vec<_> = Messages(&bytes).map(Result::unwrap).collect();
    assert_eq!(messages.last().unwrap().role(), Role::Done);
    messages.iter().filter_map(Station::read).collect()
}

#[test]
fn the_family_and_its_groups() {
    let bytes = recorded("family").concat();
    let message = Messages(&bytes).next().unwrap().unwrap();
    let family = Family::read(&message).unwrap();
    assert_eq!(family, Family { id: 0x20, config: Some(9), mlme: Some(12) });
}

#[test]
fn interfaces_with_stations() {
    let bytes = recorded("interfaces").concat();
    let found: Vec<_> =
        Messages(&bytes).filter_map(|message| Interface::read(&message.unwrap())).collect();
    let wlan0 = found.iter().find(|interface| interface.name == "wlan0").unwrap();
    assert_eq!(found.len(), 2);
    assert!(found.iter().all(Interface::has_stations));
    let expected = Interface {
        index: WLAN0,
        name: "wlan0".into(),
        radio: Some(0),
        kind: Kind::AccessPoint,
        mac: Some(Mac([2, 0, 0, 0, 0, 0])),
        mhz: Some(2412),
    };
    assert_eq!(*wlan0, expected);
}

#[test]
fn stations_as_iw_shows_them() {
    let found = stations("stations after");
    let counters = Counters { sent: 308, retries: 0, failed: 5, received: 310 };
    let expected = Station {
        interface: WLAN0,
        mac: FIRST,
        counters,
        connected_s: Some(3),
        // Time passed between the two.
        inactive_ms: found[0].inactive_ms,
        signal_dbm: Some(-50),
        signal_mean_dbm: Some(-50),
        rate_kbit: Some(13_000),
        queue: None,
    };
    assert_eq!(found[0], expected);
    assert_eq!((found[1].mac, found[1].counters.sent, found.len()), (SECOND, 8, 2));
    assert_eq!(found[1].rate_kbit, Some(14_400));
    assert_eq!(stations("stations elsewhere"), []);
}

#[test]
fn one_station_and_one_that_is_not_there() {
    let bytes = recorded("station").concat();
    let message = Messages(&bytes).next().unwrap().unwrap();
    assert_eq!(Station::read(&message).unwrap().counters.failed, 5);
    let bytes = recorded("no station").concat();
    let message = Messages(&bytes).next().unwrap().unwrap();
    assert_eq!(message.role(), Role::Failed(2));
    // The kernel sends the question back, which ours would have been but for the number.
    assert!(bytes.ends_with(&nl80211::station(0x20, 0, WLAN0, Mac([2, 0, 0, 0, 15, 15]))[20..]));
}

#[test]
fn events_of_others_are_none() {
    let read = |bytes: &Vec<u8>| Event::read(&Messages(bytes).next().unwrap().unwrap());
    let events: Vec<_> = recorded("event").iter().filter_map(read).collect();
    assert_eq!(events.len(), 3);
    assert_eq!(events[0], Event::Joined { interface: WLAN1, mac: FIRST });
    let Event::Interface(interface) = &events[1] else { panic!("{:?}", events[1]) };
    assert_eq!((interface.name.as_str(), interface.has_stations()), ("wlan9", false));
    assert_eq!(events[2], Event::InterfaceGone(interface.index));
}

#[test]
fn a_download_with_losses_and_a_station_that_roams() {
    let s = Duration::from_secs;
    let mut known = Stations::default();
    known.counts(WLAN0, Counting::of("mac80211_hwsim"));
    known.counts(WLAN1, Counting::of("mac80211_hwsim"));
    for station in stations("stations before") {
        assert_eq!(known.look(s(1), &station), None);
    }
    let before = stations("stations before")[0].counters;
    let sample = known.look(s(3), &stations("stations after")[0]).unwrap();
    assert_eq!((sample.delta.sent, sample.delta.lost), (308 - before.sent, 5 - before.failed));
    assert_eq!((sample.delta.worth, sample.moved), (Worth::Exact, false));
    // It is with wlan1, and wlan0 does not know yet.
    known.hear(s(4), &Event::Joined { interface: WLAN1, mac: FIRST });
    let [roamed] = stations("stations roamed")[..] else { panic!("one station") };
    let sample = known.look(s(6), &roamed).unwrap();
    assert_eq!((sample.delta.sent, sample.delta.lost, sample.from), (107, 0, s(4)));
    let left = stations("stations left")[0];
    assert_eq!((left.mac, known.look(s(6), &left)), (FIRST, None));
    let record = known.get(FIRST).unwrap();
    assert_eq!((record.interface(), record.left()), (WLAN1, None));
    assert_eq!(record.history().lost_last_minute(s(6)), 5 - before.failed);
    assert_eq!(record.history().clean_since(), s(3));
}
