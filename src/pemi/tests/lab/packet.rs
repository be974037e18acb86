// SPDX-License-Identifier: GPL-2.0-or-later
//! Packets as bytes: QUIC datagrams as a router sees them, and whole IP packets.

use std::net::{IpAddr, SocketAddr};

use pemi::sys::checksum;

/// A datagram of QUIC version 1 with a long header: 0 Initial, 2 Handshake.
pub fn long(kind: u8, len: usize) -> Vec<u8> {
    let mut datagram = vec![0xc3 | kind << 4, 0, 0, 0, 1];
    datagram.extend([4, 1, 2, 3, 4, 4, 9, 9, 9, 9]);
    if kind == 0 {
        // No token.
        datagram.push(0);
    }
    let body = len - datagram.len() - 2;
    datagram.extend((0x4000 | body as u16).to_be_bytes());
    datagram.extend((0..body).map(|at| (at * 31) as u8));
    datagram
}

/// One with a short header.
pub fn short(len: usize) -> Vec<u8> {
    let mut datagram = vec![0x41, 9, 9, 9, 9];
    datagram.resize(len, 0x55);
    datagram
}

/// A whole IP packet with a UDP datagram.
pub fn whole_packet(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut packet = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 63, 17, 0, 0];
            packet[2..4].copy_from_slice(&(20 + len).to_be_bytes());
            packet.extend(from.octets());
            packet.extend(to.octets());
            let checksum = checksum::internet(&packet);
            packet[10..12].copy_from_slice(&checksum.to_be_bytes());
            packet
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut packet = vec![0x60, 0, 0, 0, 0, 0, 17, 63];
            packet[4..6].copy_from_slice(&len.to_be_bytes());
            packet.extend(from.octets());
            packet.extend(to.octets());
            packet
        }
        _ => unreachable!(),
    };
    packet.extend(from.port().to_be_bytes());
    packet.extend(to.port().to_be_bytes());
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    let udp = pemi_engine::packet::find(&packet).unwrap();
    checksum::fill(&mut packet, &udp);
    packet
}
