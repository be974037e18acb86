// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages made by hand after linux/nl80211.h, in this machine's byte order, and bytes
//! that are none.

use std::net::IpAddr;

use pemi_radio::event::Event;
use pemi_radio::family::Family;
use pemi_radio::interface::{Interface, Kind};
use pemi_radio::link::Link;
use pemi_radio::mac::Mac;
use pemi_radio::neighbour::Neighbour;
use pemi_radio::netlink::{Attributes, Messages, Question};
use pemi_radio::station::{Queue, Station};

/// Length with these four bytes, type, payload, zero bytes up to a multiple of four.
fn attribute(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = ((4 + payload.len()) as u16).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn number(kind: u16, number: u32) -> Vec<u8> {
    attribute(kind, &number.to_ne_bytes())
}

/// A queue (NL80211_TXQ_STATS_*) in a kind of traffic (NL80211_TID_STATS_TXQ_STATS, 6, behind
/// 64-bit counters of packets), numbered from 1.
fn traffic(kind: u16, backlog: u32, drops: u32) -> Vec<u8> {
    let queue = [
        number(1, backlog * 1500),
        number(2, backlog),
        number(3, 1),
        number(4, drops),
        number(5, 1),
        number(6, 2),
    ];
    let counted = attribute(2, &77u64.to_ne_bytes());
    attribute(kind, &[counted, attribute(6 | 0x8000, &queue.concat())].concat())
}

/// NL80211_CMD_NEW_STATION with interface (3), address (6) and what is known (21).
fn new_station(info: &[Vec<u8>]) -> Vec<u8> {
    let interface = 7u32.to_ne_bytes();
    let question = Question::one(0x1c, 19, 5).with(3, &interface).with(6, &[2, 0, 0, 0, 0, 9]);
    question.with(21 | 0x8000, &info.concat()).finish()
}

fn station(info: &[Vec<u8>]) -> Station {
    let bytes = new_station(info);
    Station::read(&Messages(&bytes).next().unwrap().unwrap()).unwrap()
}

#[test]
fn queues_of_all_kinds_of_traffic_together() {
    let kinds = [traffic(1, 30, u32::MAX), traffic(6, 2, 5)].concat();
    let found = station(&[number(10, 9000), attribute(31, &kinds)]);
    assert_eq!((found.interface, found.mac), (7, Mac([2, 0, 0, 0, 0, 9])));
    // The drops of one of them are about to go on at zero.
    let queue = Queue { packets: 32, bytes: 48_000, drops: 4, marks: 2, overlimit: 4 };
    assert_eq!((found.counters.sent, found.queue), (9000, Some(queue)));
    // As Linux 6.1 with hwsim tells it: kinds of traffic, but no queues.
    let kinds = attribute(1, &attribute(2, &77u64.to_ne_bytes()));
    assert_eq!(station(&[attribute(31, &kinds)]).queue, None);
}

#[test]
fn rates_of_16_and_of_32_bits() {
    // NL80211_STA_INFO_TX_BITRATE (8): NL80211_RATE_INFO_BITRATE (1), _BITRATE32 (5).
    let old = attribute(1, &1300u16.to_ne_bytes());
    let both = [old.clone(), number(5, 28_824)].concat();
    assert_eq!(station(&[attribute(8, &old)]).rate_kbit, Some(130_000));
    assert_eq!(station(&[attribute(8, &both)]).rate_kbit, Some(2_882_400));
    assert_eq!(station(&[attribute(8, b"")]).rate_kbit, None);
    let heard = station(&[attribute(7, &[0xc4]), attribute(13, &[0xc5, 0])]);
    assert_eq!((heard.signal_dbm, heard.signal_mean_dbm), (Some(-60), None));
}

#[test]
fn stations_that_leave_and_interfaces_that_change() {
    let heard = |question: Question| {
        let bytes = question.finish();
        Event::read(&Messages(&bytes).next().unwrap().unwrap())
    };
    let of = |command| Question::one(0x1c, command, 0).with(3, &7u32.to_ne_bytes());
    let mac = [2, 0, 0, 0, 0, 9];
    let left = Event::Left { interface: 7, mac: Mac(mac) };
    assert_eq!(heard(of(20).with(6, &mac)), Some(left));
    assert_eq!(heard(of(20)), None);
    assert_eq!(heard(of(20).with(6, &mac[1..])), None);
    assert_eq!(heard(of(8)), Some(Event::InterfaceGone(7)));
    assert_eq!(heard(Question::one(0x1c, 8, 0)), None);
    // NL80211_CMD_SET_INTERFACE: its type (5) is NL80211_IFTYPE_AP_VLAN.
    let Some(Event::Interface(interface)) = heard(of(6).with(5, &4u32.to_ne_bytes())) else {
        panic!("an interface that became something else")
    };
    assert_eq!(interface.kind, Kind::AccessPointVlan);
}

#[test]
fn a_family_without_groups() {
    // CTRL_CMD_NEWFAMILY (1) with CTRL_ATTR_FAMILY_ID (1).
    let bytes = Question::one(16, 1, 0).with(1, &0x1cu16.to_ne_bytes()).finish();
    let family = Family::read(&Messages(&bytes).next().unwrap().unwrap());
    assert_eq!(family, Some(Family { id: 0x1c, config: None, mlme: None }));
    let bytes = Question::one(16, 1, 0).finish();
    assert_eq!(Family::read(&Messages(&bytes).next().unwrap().unwrap()), None);
}

/// Everything that reads, given anything.
fn read(bytes: &[u8]) -> usize {
    assert!(Attributes(bytes).count() <= bytes.len() / 4 + 1);
    let messages = Messages(bytes).flatten();
    messages
        .map(|message| {
            let _ = (Family::read(&message), Interface::read(&message), Event::read(&message));
            let _ = (message.role(), Station::read(&message));
        })
        .count()
}

fn whole() -> Vec<u8> {
    let kinds = traffic(1, 30, 3);
    let rate = attribute(8, &attribute(1, &1300u16.to_ne_bytes()));
    let mut bytes = new_station(&[number(10, 9000), rate, attribute(31, &kinds)]);
    let groups = attribute(1, &[attribute(1, b"mlme\0"), number(2, 8)].concat());
    let family = Question::one(16, 1, 0).with(1, &0x1cu16.to_ne_bytes()).with(7, &groups);
    bytes.extend(family.finish());
    bytes
}

#[test]
fn whatever_is_cut_is_read_as_far_as_it_goes() {
    let bytes = whole();
    assert_eq!(read(&bytes), 2);
    let first = new_station(&[]).len();
    for len in 0..bytes.len() {
        assert!(read(&bytes[..len]) <= usize::from(len > first));
    }
}

#[test]
fn whatever_is_changed_is_read_without_a_panic() {
    let whole = whole();
    // Xorshift, the same numbers each time.
    let mut random = 0x9e37_79b9_7f4a_7c15u64;
    for _ in 0..50_000 {
        let mut bytes = whole.clone();
        for _ in 0..4 {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let at = random as usize % bytes.len();
            bytes[at] = (random >> 32) as u8;
        }
        read(&bytes);
    }
}

/// A neighbour (RTM_NEWNEIGH, 28) in a state, with an address (1) and whose it is (2).
fn neighbour(state: u16, address: &[u8], mac: &[u8]) -> Option<Neighbour> {
    let mut head = [0; 12];
    head[4..8].copy_from_slice(&7u32.to_ne_bytes());
    head[8..10].copy_from_slice(&state.to_ne_bytes());
    let bytes = Question::one_headed(28, 0, &head).with(1, address).with(2, mac).finish();
    Neighbour::read(&Messages(&bytes).next().unwrap().unwrap())
}

#[test]
fn neighbours_are_told_where_it_is_known_whose_an_address_is() {
    let (v4, v6) = ([192, 0, 2, 9], [0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9]);
    let mac = [2, 0, 0, 0, 0, 9];
    for (address, text) in [(&v4[..], "192.0.2.9"), (&v6[..], "2001:db8::9")] {
        // Reachable, stale, permanent.
        for state in [0x02, 0x04, 0x80] {
            let found = neighbour(state, address, &mac).unwrap();
            assert_eq!((found.address.to_string().as_str(), found.mac), (text, Mac(mac)));
            assert_eq!((found.device, found.reachable), (7, state == 0x02));
            assert_eq!(found.fixed, state == 0x80);
        }
        // Being asked for the first time, without an answer, needing none.
        for state in [0x01, 0x20, 0x40] {
            assert_eq!(neighbour(state, address, &mac), None, "{state:#x}");
        }
    }
    let of_link = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
    for (address, mac) in [
        (&of_link[..], &mac[..]),
        (&[224, 0, 0, 1], &mac),
        (&[0; 4], &mac),
        (&[1; 5], &mac),
        (&v4, &[0; 8]),
        (&v4, &[]),
    ] {
        assert_eq!(neighbour(2, address, mac), None, "{address:?} {mac:?}");
    }
}

#[test]
fn a_neighbour_becomes_stale_and_is_asked() {
    for (address, family) in [("192.0.2.9", 2), ("2001:db8::9", 10)] {
        let address: IpAddr = address.parse().unwrap();
        let neighbour =
            Neighbour { address, mac: Mac([2; 6]), device: 7, reachable: true, fixed: false };
        let orders = neighbour.solicitation([4, 5]);
        // NUD_STALE, and NUD_PROBE, for which the kernel asks.
        for ((order, state), sequence) in orders.iter().zip([0x04u16, 0x10]).zip([4, 5]) {
            // To be acknowledged, and to create nothing: NLM_F_REQUEST and NLM_F_ACK alone.
            assert_eq!(order[6..8], 5u16.to_ne_bytes());
            let message = Messages(order).next().unwrap().unwrap();
            assert_eq!((message.kind, message.sequence), (28, sequence));
            let (head, attributes) = message.headed::<12>().unwrap();
            assert_eq!((head[0], head[4..8] == 7u32.to_ne_bytes()), (family, true));
            assert_eq!(head[8..10], state.to_ne_bytes());
            let bytes = match address {
                IpAddr::V4(v4) => v4.octets().to_vec(),
                IpAddr::V6(v6) => v6.octets().to_vec(),
            };
            assert_eq!(attributes.collect::<Vec<_>>(), [(1, &bytes[..])]);
        }
    }
}

#[test]
fn a_port_of_a_bridge_and_a_vlan() {
    let mut head = [0; 16];
    head[4..8].copy_from_slice(&7u32.to_ne_bytes());
    let device = |kind| Question::one_headed(kind, 0, &head).with(3, b"phy0-ap0\0");
    let read = |bytes: Vec<u8>| {
        let message = Messages(&bytes).next().unwrap().unwrap();
        (Link::read(&message), Link::is_news(&message))
    };
    let mut link = Link { index: 7, name: "phy0-ap0".into(), master: Some(3), lower: None };
    assert_eq!(read(device(16).with(10, &3u32.to_ne_bytes()).finish()), (Some(link.clone()), true));
    (link.master, link.lower) = (None, Some(2));
    assert_eq!(read(device(16).with(5, &2u32.to_ne_bytes()).finish()), (Some(link), true));
    // It is gone; a question is neither.
    assert_eq!(read(device(17).finish()), (None, true));
    assert_eq!(read(device(18).finish()), (None, false));
    assert_eq!(read(Question::one_headed(16, 0, &[0; 15]).finish()).0, None);
}

#[test]
fn a_kernel_that_gets_or_loses_nl80211() {
    let is_news = |command, name: &[u8]| {
        let bytes = Question::one(16, command, 0).with(2, name).finish();
        Family::is_news(&Messages(&bytes).next().unwrap().unwrap())
    };
    assert!(is_news(1, b"nl80211\0") && is_news(2, b"nl80211\0"));
    assert!(!is_news(1, b"nl802154\0") && !is_news(3, b"nl80211\0"));
}
