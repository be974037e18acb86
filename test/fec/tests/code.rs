// SPDX-License-Identifier: GPL-2.0-or-later
//! Encoder and decoder over a path that loses, repeats and reorders.

use std::time::{Duration, Instant};

use fec::decoder::Decoder;
use fec::encoder::{Code, Encoder};
use linkem::Direction;
use linkem::loss::{Purpose, Random};

const FLUSH: Duration = Duration::from_millis(5);

/// Datagrams of all sizes, each with its number.
fn datagrams(count: u32) -> Vec<Vec<u8>> {
    let datagram = |n: u32| {
        let mut data = n.to_be_bytes().to_vec();
        data.resize(4 + (n as usize * 37) % 1450, n as u8);
        data
    };
    (0..count).map(datagram).collect()
}

fn encode(code: Code, datagrams: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut encoder = Encoder::new(code, FLUSH);
    let now = Instant::now();
    let mut packets = Vec::new();
    for datagram in datagrams {
        encoder.push(now, datagram, |packet| packets.push(packet));
    }
    encoder.on_timeout(now + FLUSH, |packet| packets.push(packet));
    packets
}

fn decode<'a>(packets: impl IntoIterator<Item = &'a Vec<u8>>) -> (Vec<Vec<u8>>, Decoder) {
    let mut decoder = Decoder::default();
    let mut delivered = Vec::new();
    for packet in packets {
        decoder.push(packet, |datagram| delivered.push(datagram.to_vec()));
    }
    decoder.finish();
    (delivered, decoder)
}

#[test]
fn any_k_of_n_packets_are_enough() {
    for (k, n) in [(1, 2), (2, 3), (4, 6), (5, 9)] {
        let sent = datagrams(k as u32);
        let packets = encode(Code { k, n }, &sent);
        assert_eq!(packets.len(), n);
        for pattern in 0u32..1 << n {
            let arrive = |place: &usize| pattern & (1 << place) != 0;
            let there: Vec<usize> = (0..n).filter(arrive).collect();
            let (mut delivered, decoder) = decode(there.iter().map(|place| &packets[*place]));
            let sources = there.iter().filter(|place| **place < k).count();
            if there.len() >= k {
                delivered.sort();
                assert_eq!(delivered, sent, "{k} of {n}, {there:?}");
                assert_eq!(decoder.received.recovered as usize, k - sources);
                assert_eq!(decoder.received.unrecoverable, 0);
            } else {
                assert_eq!(delivered.len(), sources, "{k} of {n}, {there:?}");
                assert_eq!(decoder.received.recovered, 0);
            }
        }
    }
}

#[test]
fn what_is_sent_arrives_once_or_is_counted() {
    let sent = datagrams(20_000);
    let packets = encode(Code { k: 4, n: 6 }, &sent);
    let random = Random::new(3, Direction::Ab);
    let draw = |n: usize, what: u64| random.unit(Purpose::Loss, n as u64 * 4 + what);
    // A fifth is lost, a tenth comes twice, and neighbours change places.
    let mut arriving: Vec<(usize, &Vec<u8>)> = Vec::new();
    for (n, packet) in packets.iter().enumerate() {
        let copies = if draw(n, 0) < 0.2 { 0 } else { 1 + usize::from(draw(n, 1) < 0.1) };
        for copy in 0..copies {
            arriving.push((n + copy * 7 + (draw(n, 2) * 5.0) as usize, packet));
        }
    }
    arriving.sort_by_key(|(place, _)| *place);
    let (mut delivered, decoder) = decode(arriving.into_iter().map(|(_, packet)| packet));
    let received = decoder.received;
    delivered.sort();
    assert!(delivered.windows(2).all(|pair| pair[0] != pair[1]), "delivered twice");
    let missing = sent.len() - delivered.len();
    // Of what lies behind the last packet that came of a group nobody knows.
    let unrecoverable = received.unrecoverable as usize;
    assert!((missing * 9 / 10..=missing).contains(&unrecoverable), "{unrecoverable}, {missing}");
    assert_eq!((received.late, received.malformed), (0, 0));
    assert_eq!(received.sources - received.duplicates + received.recovered, delivered.len() as u64);
    // Of four and two repairs three and more have to be lost: 9.9 % of the groups.
    assert!((100..1500).contains(&missing), "{missing}");
    assert!(received.recovered > 3000);
    assert!(delivered.iter().all(|datagram| sent.binary_search(datagram).is_ok()));
}

#[test]
fn a_group_that_was_not_full_is_recovered_too() {
    let sent = datagrams(3);
    let packets = encode(Code { k: 8, n: 12 }, &sent);
    // Two repairs for three.
    assert_eq!(packets.len(), 5);
    let (mut delivered, _) = decode(&packets[2..]);
    delivered.sort();
    assert_eq!(delivered, sent);
}

#[test]
fn a_latecomer_is_dropped() {
    let sent = datagrams(2000);
    let packets = encode(Code { k: 2, n: 3 }, &sent);
    let (first, rest) = packets.split_first().unwrap();
    // Recovered from the second and the repair before it comes itself.
    let order = [&rest[0], &rest[1], first];
    let (delivered, decoder) = decode(order);
    assert_eq!((delivered.len(), decoder.received.duplicates), (2, 1));
    // It comes when its group is forgotten.
    let (delivered, decoder) = decode(rest.iter().chain([first]));
    assert_eq!((delivered.len(), decoder.received.late), (2000, 1));
}

#[test]
fn group_numbers_may_wrap_and_leap() {
    let code = Code { k: 2, n: 3 };
    let renumbered = |by: u32| -> Vec<Vec<u8>> {
        let mut packets = encode(code, &datagrams(40));
        for packet in &mut packets {
            let number = u32::from_be_bytes(packet[2..6].try_into().unwrap());
            packet[2..6].copy_from_slice(&number.wrapping_add(by).to_be_bytes());
        }
        packets
    };
    let leap = [renumbered(0), renumbered(1 << 30), renumbered((1 << 31) - 9)].concat();
    let wrap = renumbered(u32::MAX - 10);
    let (delivered, decoder) = decode(leap.iter().chain(&wrap));
    assert_eq!((delivered.len(), decoder.received.late), (160, 0));
}

#[test]
fn strangers_do_no_harm() {
    let packets = encode(Code { k: 2, n: 4 }, &datagrams(2));
    let mut strange = vec![vec![], vec![9; 40]];
    // Repairs that contradict each other, and some that are shorter than the sources.
    let mut other = packets[3].clone();
    other.extend([0, 0]);
    strange.extend([packets[2].clone(), other]);
    strange.push(packets[1].clone());
    let mut short = packets[2][..12].to_vec();
    short[2] = 7;
    let mut source = packets[1].clone();
    source[2] = 7;
    strange.extend([source, short]);
    let (delivered, decoder) = decode(&strange);
    // Both of the first group, and the one source of the other.
    assert_eq!(delivered.len(), 3);
    assert_eq!(decoder.received.malformed, 4);
}
