// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `nfqueue`: whatever comes out of the packet queue's netlink socket.

use pemi::datapath::nfqueue::message::{Message, next};

/// The least that a message takes.
const HEADER: usize = 16;

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    let mut at = 0;
    while let Some((message, end)) = next(data, at) {
        assert!(end >= at + HEADER, "no progress");
        assert!(end < data.len() + 4, "beyond the padding of the last one");
        if let Message::Packet(packet) = message {
            assert!(packet.payload.start <= packet.payload.end);
            let (range, inside) = (packet.payload, at..end.min(data.len()));
            assert!(range.is_empty() || inside.start < range.start && range.end <= inside.end);
            let header = packet.header.map_or(0, |header| header.bytes().len());
            assert!(header == 0 || (14..=pemi::datapath::bridge::MAX_HEADER).contains(&header));
        }
        at = end;
    }
    // Anywhere else it makes no sense either, but that is all.
    let _ = next(data, data.len());
    let _ = next(data, usize::MAX);
}

fn attribute(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    message.extend((value.len() as u16 + 4).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

fn message(kind: u16, attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let mut body = vec![2, 0, 0x15, 0x43];
    attributes.iter().for_each(|(kind, value)| attribute(&mut body, *kind, value));
    let mut message = (HEADER as u32 + body.len() as u32).to_ne_bytes().to_vec();
    message.extend(kind.to_ne_bytes());
    message.extend([0; 10]);
    message.extend(body);
    message
}

/// A routed and a bridged packet with all that the kernel tells, an acknowledgement.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut vlan = Vec::new();
    attribute(&mut vlan, 2, &[0x20, 5]);
    attribute(&mut vlan, 1, &[0x81, 0]);
    let ethernet: Vec<u8> = (1..=12).chain([8, 0]).collect();
    let header: (u16, &[u8]) = (1, &[0, 0, 1, 2, 8, 0, 2]);
    let routed = message(
        0x0300,
        &[
            header,
            (3, &[0x10, 0, 0, 1]),
            (5, &[0, 0, 0, 7]),
            (6, &[0, 0, 0, 9]),
            (14, &[0, 0, 0, 3]),
            (10, b"the packet itself"),
        ],
    );
    let bridged = message(
        0x0300,
        &[
            header,
            (7, &[0, 0, 0, 3]),
            (8, &[0, 0, 0, 4]),
            (13, &[0, 1, 0, 0]),
            (19 | 0x8000, &vlan),
            (20, &ethernet),
            (10 | 0x8000, b"IP"),
        ],
    );
    let nameless = message(0x0300, &[(10, b"packet")]);
    let mut refused = message(2, &[]);
    refused[16..20].copy_from_slice(&(-1i32).to_ne_bytes());
    let both = [&routed[..], &bridged].concat();
    vec![routed, bridged, nameless, refused, both]
}
