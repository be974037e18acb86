// SPDX-License-Identifier: GPL-2.0-or-later
//! A corpus of broken input: passed by, counted, nothing held or sent.

use pemi_engine::{Config, Direction, Handle, MS, Stats, Time, Verdict};
use pemi_engine_tests::packets::{Flow, Long, V1, V2, long, short};
use pemi_engine_tests::router::{Done, Manners, Router};

/// Where it has to be counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Counted {
    Malformed,
    Other,
    Quic,
}
use Counted::{Malformed, Other, Quic};

fn v4(payload: &[u8]) -> Vec<u8> {
    Flow::v4(0).datagram(Direction::Up, payload)
}

fn v6(payload: &[u8]) -> Vec<u8> {
    Flow::v6(0).datagram(Direction::Up, payload)
}

/// `packet` with bytes from `at` on replaced.
fn with(mut packet: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    packet[at..at + bytes.len()].copy_from_slice(bytes);
    packet
}

fn cut(mut packet: Vec<u8>, len: usize) -> Vec<u8> {
    packet.truncate(len);
    packet
}

/// An IPv6 packet whose extension headers are `chain`, each naming the next.
fn extended(first: u8, chain: &[u8]) -> Vec<u8> {
    let mut packet = cut(v6(&[]), 40);
    packet[6] = first;
    packet.extend(chain);
    let len = (chain.len() as u16).to_be_bytes();
    with(packet, 4, &len)
}

/// A long header of `version` with connection IDs of the given lengths and
/// `tail` after them, 1200 bytes at least.
fn with_ids(version: u32, ids: [u8; 2], tail: &[u8]) -> Vec<u8> {
    let mut p = vec![0xc0];
    p.extend(version.to_be_bytes());
    for len in ids {
        p.push(len);
        p.resize(p.len() + usize::from(len), len);
    }
    p.extend(tail);
    p.resize(p.len().max(1200), 0x55);
    p
}

fn joined(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

fn ip_corpus() -> Vec<(&'static str, Vec<u8>, Counted)> {
    let good = long(V1, Long::Initial, 1200);
    let endless = [0u8, 0, 0, 0, 0, 0, 0, 0].repeat(100);
    vec![
        ("nothing", vec![], Malformed),
        ("one byte", vec![0x45], Malformed),
        ("IP version 0", with(v4(&good), 0, &[0x05]), Malformed),
        ("IP version 5", with(v4(&good), 0, &[0x55]), Malformed),
        ("IP version 15", vec![0xff; 1500], Malformed),
        ("IPv4 header cut", cut(v4(&good), 19), Malformed),
        ("IHL 0", with(v4(&good), 0, &[0x40]), Malformed),
        ("IHL 4", with(v4(&good), 0, &[0x44]), Malformed),
        ("IHL beyond the packet", cut(with(v4(&good), 0, &[0x4f]), 40), Malformed),
        ("total length 0", with(v4(&good), 2, &[0, 0]), Malformed),
        ("total length 19", with(v4(&good), 2, &[0, 19]), Malformed),
        ("total length too long", with(v4(&good), 2, &[0xff, 0xff]), Malformed),
        ("IPv4 payload cut", cut(v4(&good), 600), Malformed),
        ("no UDP header", cut(with(v4(&good), 2, &[0, 20]), 20), Malformed),
        ("half a UDP header", cut(with(v4(&good), 2, &[0, 24]), 24), Malformed),
        ("UDP length 0", with(v4(&good), 24, &[0, 0]), Malformed),
        ("UDP length 7", with(v4(&good), 24, &[0, 7]), Malformed),
        ("UDP length 65535", with(v4(&good), 24, &[0xff, 0xff]), Malformed),
        ("UDP length one too long", with(v4(b"ab"), 24, &[0, 11]), Malformed),
        ("UDP length 8: no payload", v4(&[]), Other),
        ("first fragment", with(v4(&good), 6, &[0x20, 0]), Other),
        ("last fragment", with(v4(&good), 6, &[0, 9]), Other),
        ("TCP", with(v4(&good), 9, &[6]), Other),
        ("protocol 255", with(v4(&good), 9, &[255]), Other),
        ("IPv6 header cut", cut(v6(&good), 39), Malformed),
        ("IPv6 payload cut", cut(v6(&good), 100), Malformed),
        ("IPv6 payload length too long", with(v6(&good), 4, &[0xff, 0xff]), Malformed),
        ("jumbogram", extended(0, &[17, 0, 0xc2, 4, 0, 1, 0, 0]), Malformed),
        ("IPv6 payload length 0", with(v6(&good), 4, &[0, 0]), Malformed),
        ("IPv6 no next header", with(v6(&good), 6, &[59]), Other),
        ("IPv6 ESP", with(v6(&good), 6, &[50]), Other),
        ("endless hop-by-hop headers", extended(0, &endless), Other),
        ("endless routing headers", extended(43, &[43u8; 8].repeat(200)), Malformed),
        (
            "extension header of 2 KiB in 8 bytes",
            extended(0, &[17, 255, 0, 0, 0, 0, 0, 0]),
            Malformed,
        ),
        ("extension header of one byte", extended(60, &[17]), Malformed),
        ("no extension header", extended(60, &[]), Malformed),
        ("fragment header cut", extended(44, &[17, 0, 0, 0]), Malformed),
        ("IPv6 fragment", extended(44, &[17, 0, 0, 1, 1, 2, 3, 4, 0, 1, 1, 187]), Other),
        ("IPv6 UDP length 7", with(v6(&good), 44, &[0, 7]), Malformed),
        ("IPv6 UDP length 65535", with(v6(&good), 44, &[0xff, 0xff]), Malformed),
    ]
}

fn quic_corpus() -> Vec<(&'static str, Vec<u8>, Counted)> {
    let good = long(V1, Long::Initial, 1200);
    let token = |len: &[u8]| with_ids(V1, [8, 4], len);
    vec![
        ("one byte of QUIC", vec![0xc0], Other),
        ("version cut", vec![0xc0, 0, 0, 0], Other),
        ("no connection IDs", vec![0xc0, 0, 0, 0, 1], Other),
        ("connection ID cut", vec![0xc0, 0, 0, 0, 1, 8, 1, 2], Other),
        ("connection ID of 255, version 1", with_ids(V1, [255, 8], &[]), Other),
        ("second connection ID of 255, version 2", with_ids(V2, [8, 255], &[]), Other),
        ("connection ID of 21, version 1", with_ids(V1, [21, 0], &[]), Other),
        ("connection IDs of 255, unknown version", with_ids(0xfa_ce, [255, 255], &[]), Quic),
        ("connection ID of 255 cut", cut(with_ids(0xfa_ce, [255, 0], &[]), 200), Other),
        ("unknown version, short", cut(with_ids(0xfa_ce, [8, 8], &[]), 60), Other),
        ("version negotiation from a client", with_ids(0, [8, 8], &[0, 0, 0, 1]), Other),
        ("version negotiation of 3 bytes", cut(with_ids(0, [0, 0], &[]), 10), Other),
        ("Retry without a tag", cut(long(V1, Long::Retry, 8), 27), Other),
        ("Retry from a client", long(V1, Long::Retry, 60), Other),
        ("token length 2^62 - 1", token(&[0xff; 8]), Other),
        ("token length cut", cut(token(&[0xff; 8]), 22), Other),
        ("token to the end", token(&[0x44, 0xa5]), Other),
        (
            "packet length 2^62 - 1",
            token(&[0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]),
            Other,
        ),
        ("packet length one too long", with(good.clone(), 20, &[0x44, 0xb1]), Other),
        ("packet length 0", token(&[0, 0]), Quic),
        ("empty packets coalesced", joined(&[&token(&[0, 0])[..21], &[0; 1200]]), Quic),
        ("garbage coalesced", joined(&[&good, &[0xff; 40]]), Quic),
        ("cut packet coalesced", joined(&[&good, &good[..700]]), Quic),
        ("hundreds coalesced", cut(long(V1, Long::Handshake, 0), 21).repeat(60), Quic),
        ("short header, 20 bytes", cut(short(1, 1, 33), 20), Other),
        ("zeros", vec![0; 1200], Other),
        ("ones: RFC 8999 allows it", vec![0xff; 1200], Quic),
    ]
}

fn counted(stats: Stats) -> Option<Counted> {
    match (stats.packets_quic, stats.packets_other, stats.packets_malformed) {
        (0, 1, 1) => Some(Malformed),
        (0, 1, 0) => Some(Other),
        (1, 0, 0) => Some(Quic),
        _ => None,
    }
}

/// Shows `packet` to a new engine, from either side.
fn check(name: &str, packet: &[u8], expected: Counted) {
    let config = Config { events: true, ..Config::default() };
    let now = Time::from_nanos(1_000_000_000);
    for direction in [Direction::Up, Direction::Down] {
        let mut router = Router::new(config.clone(), 1, Manners::Good);
        let mut done = Vec::new();
        let verdict = router.packet(now, direction, packet, &mut done);
        assert_ne!(verdict, Verdict::Hold, "{name}");
        assert_eq!(done[0], Done::Pass(direction, packet.to_vec()), "{name}: passed as it was");
        if direction == Direction::Up {
            assert_eq!(counted(router.stats(now)), Some(expected), "{name}");
        }
        let stats = router.stats(now);
        if stats.packets_quic == 0 {
            assert_eq!(done.len(), 1, "{name}: {done:?}");
            assert_eq!(stats.resent_packets, 0, "{name}");
        }
    }
}

#[test]
fn broken_ip() {
    for (name, packet, expected) in ip_corpus() {
        check(name, &packet, expected);
    }
}

#[test]
fn broken_quic() {
    for (name, payload, expected) in quic_corpus() {
        check(name, &v4(&payload), expected);
        check(name, &v6(&payload), expected);
    }
}

/// The corpus within a healthy connection: the connection is helped as before,
/// and of what is broken nothing is held or sent again that was not shown.
#[test]
fn broken_packets_amid_good_ones() {
    let scene = pemi_engine_tests::hop::Scene { loss: 0.02, ..Default::default() };
    let outcome = pemi_engine_tests::hop::run(&scene);
    let corpus: Vec<Vec<u8>> = quic_corpus()
        .into_iter()
        .map(|(_, payload, _)| v4(&payload))
        .chain(ip_corpus().into_iter().map(|(_, packet, _)| packet))
        .collect();
    let mut router = Router::new(scene.config, 1, Manners::Good);
    let mut done = Vec::new();
    let mut last = Time::ZERO;
    for (n, input) in outcome.inputs.into_iter().enumerate() {
        use pemi_engine_tests::router::Input;
        match input {
            Input::Packet(now, direction, packet) => {
                router.advance(now, &mut done);
                router.packet(now, direction, &packet, &mut done);
                last = now;
                if n % 20 == 0 {
                    let broken = &corpus[n / 20 % corpus.len()];
                    for direction in [Direction::Up, Direction::Down] {
                        router.packet(now, direction, broken, &mut done);
                    }
                }
            }
            Input::ProbeReply(now, client, rtt) => {
                router.advance(now, &mut done);
                router.probe_reply(now, client, rtt, &mut done);
            }
            Input::Timeout(_) => {}
        }
    }
    router.advance(last + 1000 * MS, &mut done);
    router.release_all(last + 1000 * MS, &mut done);
    assert!(router.stats(last).packets_malformed > 100);
}

/// What else goes over UDP and looks a little like short headers.
#[test]
fn other_protocols_are_let_go_and_get_no_copies() {
    let dns = |n: u16| {
        let mut p = n.wrapping_mul(31_337).to_be_bytes().to_vec();
        p.extend([0x01, 0, 0, 1, 0, 0, 0, 0, 0, 0, 3, b'w', b'w', b'w', 4, b't', b'e', b's', b't']);
        p
    };
    let rtp = |n: u16| {
        let mut p = vec![0x80, 96];
        p.extend(n.to_be_bytes());
        p.extend((u32::from(n) * 3000).to_be_bytes());
        p.resize(900, n as u8);
        p
    };
    type Make<'a> = &'a dyn Fn(u16) -> Vec<u8>;
    let protocols: [(&str, Make<'_>); 2] = [("DNS", &dns), ("RTP", &rtp)];
    for (name, make) in protocols {
        lets_go(name, make);
    }
}

/// Bytes 1 to 4 of a tunnel's packets stay the same, as a connection ID does;
/// what QUIC's fixed bit would be is never set.
#[test]
fn tunnels_are_not_quic() {
    let dtls = |n: u16| {
        let mut p = vec![0x17, 0xfe, 0xfd, 0, 1, 0, 0, 0, 0];
        p.extend(n.to_be_bytes());
        p.extend([0, 80]);
        p.resize(93, n as u8);
        p
    };
    let wireguard = |n: u16| {
        let mut p = vec![4, 0, 0, 0, 0xaa, 0xbb, 0xcc, 0xdd];
        p.extend(u64::from(n).to_le_bytes());
        p.resize(112, n as u8);
        p
    };
    lets_go("DTLS", &dtls);
    lets_go("WireGuard", &wireguard);
}

/// Shows 200 packets of a protocol, in both directions.
fn lets_go(name: &str, make: &dyn Fn(u16) -> Vec<u8>) {
    let flow = Flow::v4(3);
    let mut router = Router::new(Config { events: true, ..Config::default() }, 1, Manners::Good);
    let mut done = Vec::new();
    let mut verdict = Verdict::Forward;
    for n in 0..200u16 {
        let now = Time::ZERO + i64::from(n) * MS;
        router.advance(now, &mut done);
        let direction = if n % 3 == 0 { Direction::Up } else { Direction::Down };
        let packet = flow.datagram(direction, &make(n));
        verdict = router.packet(now, direction, &packet, &mut done);
    }
    assert_eq!(verdict, Verdict::Bypass, "{name}");
    assert!(!done.iter().any(|d| matches!(d, Done::Copy(..))), "{name}");
    assert_eq!(router.held_ever, 0, "{name}");
}

/// Handles mean nothing to the engine: any value comes back as it went in.
#[test]
fn handles_are_not_looked_at() {
    let mut engine = pemi_engine::Engine::new(Config::default(), 1);
    for handle in [0, 1, u32::MAX] {
        let packet = v4(&long(V1, Long::Initial, 1200));
        let verdict = engine.on_packet(Time::MAX, Direction::Up, &packet, Handle(handle));
        assert_eq!(verdict, Verdict::Forward);
    }
}
