// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `udp`: IP packets with UDP as the engine, the daemon and Sidekick's tap read
//! them, and the same bytes as TCP. An odd first byte builds a well-formed packet out of the others, which all of
//! them have to understand; else these are the packet.

use std::net::{IpAddr, SocketAddr};

use pemi::sidekick::tap;
use pemi::sys::checksum;
use pemi_engine::packet::{self, Parsed, find};
use pemi_engine::{Config, Direction, Engines, Handle, Stats, Time};

use crate::input::Input;

const FRAGMENT: u8 = 44;
/// Before every frame of the tap: how packets were merged.
const MERGED: usize = 10;

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    let mut input = Input(data);
    if input.byte() & 1 == 1 {
        let packet = built(&mut input);
        let found = looked_at(&packet).expect("a well-formed packet is found");
        agree(&packet, found);
        segment(&packet, found);
    } else if let Some(found) = looked_at(input.rest()) {
        agree(input.rest(), found);
    } else if let Parsed::Tcp(tcp) = packet::parse(input.rest()) {
        let segment = tcp.segment;
        assert!(segment.length as usize <= input.rest().len(), "more than there is");
        assert!(!segment.pure || segment.length == 0);
        assert_eq!(packet::destination(input.rest()), Some(tcp.destination));
    }
    let at = usize::from(input.byte());
    if let Some(seen) = tap::see(1, input.rest(), at) {
        let frame = &input.rest()[MERGED + at..];
        assert_eq!(looked_at(frame), Some((seen.from, seen.to)));
    }
}

/// Source and destination of an unfragmented datagram.
pub(crate) fn ends(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    find(packet).map(|udp| udp.ends())
}

/// What the daemon finds, and whether its checksum is one.
fn looked_at(packet: &[u8]) -> Option<(SocketAddr, SocketAddr)> {
    let found = find(packet)?;
    let (from, to) = found.ends();
    let udp = found.datagram();
    assert_eq!(found.payload(packet), &packet[udp.start + 8..udp.end]);
    let mut filled = packet.to_vec();
    checksum::fill(&mut filled, &found);
    assert_ne!(filled[udp.start + 6..][..2], [0, 0], "that would say that there is none");
    assert_eq!(summed_up(&filled[udp.clone()], from.ip(), to.ip()), 0xffff);
    // Nothing else was touched.
    filled[udp.start + 6..udp.start + 8].copy_from_slice(&packet[udp.start + 6..udp.start + 8]);
    assert_eq!(filled, packet);
    Some((from, to))
}

/// What is well-formed with UDP goes between the same ends if it says that it is TCP, or makes no
/// sense.
fn segment(packet: &[u8], ends: (SocketAddr, SocketAddr)) {
    let mut tcp = packet.to_vec();
    let start = find(packet).map_or(0, |udp| udp.datagram().start);
    // The protocol's number: in IPv4's header, in IPv6's, or in the extension header before.
    let at = match (packet[0] >> 4, start) {
        (4, _) => 9,
        (_, 40) => 6,
        (_, start) => start - 8,
    };
    tcp[at] = 6;
    match packet::parse(&tcp) {
        Parsed::Tcp(tcp) => assert_eq!(tcp.ends(), ends),
        other => assert_eq!(other, Parsed::Other),
    }
}

/// The sum of RFC 1071 over the pseudo header (RFC 768, RFC 8200) and a datagram.
fn summed_up(udp: &[u8], from: IpAddr, to: IpAddr) -> u16 {
    let mut all = Vec::new();
    for address in [from, to] {
        match address {
            IpAddr::V4(ip) => all.extend(ip.octets()),
            IpAddr::V6(ip) => all.extend(ip.octets()),
        }
    }
    all.extend([0, 17]);
    all.extend((udp.len() as u16).to_be_bytes());
    all.extend(udp);
    all.resize(all.len().next_multiple_of(2), 0);
    all.as_chunks::<2>().0.iter().fold(0, |sum: u16, pair| {
        let (sum, carry) = sum.overflowing_add(u16::from_be_bytes(*pair));
        sum + u16::from(carry)
    })
}

/// The engine takes the packet for one between the same ends.
fn agree(packet: &[u8], found: (SocketAddr, SocketAddr)) {
    let config = Config { cache_bytes: 0, ..Config::default() };
    let mut engine = Engines::new(config, 1);
    let mut show = |direction, packet: &[u8]| -> (Stats, Option<(SocketAddr, SocketAddr)>) {
        engine.on_packet(Time::ZERO, direction, packet, Handle(1));
        while engine.next_action().is_some() {}
        let flow = engine.flows(Time::ZERO).next().map(|flow| (flow.client, flow.server));
        (engine.stats(Time::ZERO), flow)
    };
    show(Direction::Up, packet);
    // A flow is told of when both ends have spoken.
    let (stats, flow) = show(Direction::Down, &answer(packet));
    assert_eq!(flow, Some(found), "{stats:?}");
}

/// The same packet from the other end.
fn answer(packet: &[u8]) -> Vec<u8> {
    let mut answer = packet.to_vec();
    let addresses = if packet[0] >> 4 == 4 { 12..20 } else { 8..40 };
    let half = addresses.len() / 2;
    answer[addresses].rotate_left(half);
    if let Some(udp) = find(packet) {
        let ports = udp.datagram().start;
        answer[ports..ports + 4].rotate_left(2);
    }
    answer
}

/// A well-formed packet: with IPv4 options or IPv6 extension headers, and padding.
fn built(input: &mut Input<'_>) -> Vec<u8> {
    let shape = input.byte();
    let extra = usize::from(shape >> 1 & 7);
    let padding = usize::from(shape >> 4);
    let ports = input.take(4).to_vec();
    let addresses = input.take(32).to_vec();
    let payload = input.rest();
    let mut udp: Vec<u8> = ports.into_iter().chain([0; 4]).take(4).collect();
    udp.extend((payload.len() as u16 + 8).to_be_bytes());
    udp.extend([0, 0]);
    udp.extend(payload);
    let mut packet = Vec::new();
    if shape & 1 == 0 {
        let options = extra * 4;
        packet.extend([0x45 + extra as u8, 0]);
        packet.extend((20 + options as u16 + udp.len() as u16).to_be_bytes());
        packet.extend([0, 0, 0x40, 0, 64, 17, 0, 0]);
        packet.extend(addresses.into_iter().chain([0; 8]).take(8));
        packet.resize(20 + options, 1);
    } else {
        let kinds = [0, 43, 60];
        let kind = |n: usize| if n < extra { kinds[n % 3] } else { 17 };
        packet.extend([0x60, 0, 0, 0]);
        packet.extend((8 * extra as u16 + udp.len() as u16).to_be_bytes());
        packet.extend([kind(0), 64]);
        packet.extend(addresses.into_iter().chain([0; 32]).take(32));
        for n in 0..extra {
            packet.extend([kind(n + 1), 0, 1, 4, 0, 0, 0, 0]);
        }
    }
    packet.extend(udp);
    packet.resize(packet.len() + padding, 0);
    packet
}

/// Well-formed packets of both families with every extra, and a frame of the tap.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds: Vec<Vec<u8>> = (0..32)
        .map(|shape: u8| {
            let mut seed = vec![1, shape ^ shape << 3, 1, 187, 0xc3, 0x50];
            seed.extend(1..=32);
            seed.extend_from_slice(&b"payload of some length"[..usize::from(shape % 22)]);
            seed
        })
        .collect();
    for shape in 0..4 {
        let packet = built(&mut Input(&[&[shape, 1, 187, 3, 4][..], &[9; 50]].concat()));
        seeds.push([&[0][..], &packet].concat());
        seeds.push([&[0, 14][..], &[0; 24], &packet].concat());
        if packet[0] >> 4 == 6 {
            let mut whole = packet.clone();
            whole.splice(40..40, [whole[6], 0, 0, 0, 1, 2, 3, 4]);
            (whole[6], whole[5]) = (FRAGMENT, whole[5] + 8);
            seeds.push([&[0][..], &whole].concat());
        }
    }
    seeds
}
