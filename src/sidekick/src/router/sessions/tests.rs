// SPDX-License-Identifier: GPL-2.0-or-later
use core::num::{NonZeroU8, NonZeroU16};

use pemi_quack::{AnyQuack, Interval, Quack, Width};

use super::*;
use crate::router::MS;
use crate::router::random::Random;

const NOW: Micros = 100 * SEC;
const LAN: u32 = 3;

fn via(device: u32) -> Via {
    Via { device, local: "192.0.2.254".parse().unwrap() }
}

fn client(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, host], port))
}

fn server() -> SocketAddr {
    "198.51.100.1:443".parse().unwrap()
}

fn hello(token: Token) -> Hello {
    Hello {
        token,
        cookie: 0,
        width: Width::Bits32,
        threshold: NonZeroU8::new(8).unwrap(),
        interval: Interval::Packets(NonZeroU16::new(2).unwrap()),
        offset: 1,
        client_port: 50_000,
        server: server().ip(),
        server_port: 443,
        losses: 0,
    }
}

fn sessions() -> Sessions {
    Sessions::new(Config::default(), [7; 16], u32::MAX - 1)
}

fn say(sessions: &mut Sessions, now: Micros, from: SocketAddr, message: Message<'_>) {
    let mut bytes = Vec::new();
    message.write(&mut bytes);
    sessions.on_message(now, from, via(LAN), &bytes);
}

/// The one message that is to be sent, to `to`.
fn answer(sessions: &mut Sessions, to: SocketAddr) -> Vec<u8> {
    let sending = sessions.next_action().expect("a message");
    assert_eq!((sending.to, sending.via), (to, via(LAN)));
    let bytes = sending.bytes.to_vec();
    assert_eq!(sessions.next_action(), None);
    bytes
}

fn silent(sessions: &mut Sessions) {
    assert_eq!(sessions.next_action(), None);
}

/// With the cookie that belongs in it.
fn proven(sessions: &mut Sessions, now: Micros, from: SocketAddr, hello: Hello) -> Hello {
    say(sessions, now, from, Message::Hello(Hello { cookie: 0, ..hello }));
    match Message::parse(&answer(sessions, from)) {
        Ok(Message::Cookie { token, cookie }) if token == hello.token => Hello { cookie, ..hello },
        other => panic!("{other:?}"),
    }
}

/// The epoch that a HELLO, cookie and all, leads to.
fn open(sessions: &mut Sessions, now: Micros, from: SocketAddr, hello: Hello) -> u32 {
    let hello = proven(sessions, now, from, hello);
    say(sessions, now, from, Message::Hello(hello));
    accepted(sessions, from)
}

fn accepted(sessions: &mut Sessions, from: SocketAddr) -> u32 {
    match Message::parse(&answer(sessions, from)) {
        Ok(Message::Accept { epoch, .. }) => epoch,
        other => panic!("{other:?}"),
    }
}

fn refused(sessions: &mut Sessions, from: SocketAddr) -> Reason {
    match Message::parse(&answer(sessions, from)) {
        Ok(Message::Refuse { reason, .. }) => reason,
        other => panic!("{other:?}"),
    }
}

fn payload(id: u32) -> Vec<u8> {
    let mut payload = vec![0x40];
    payload.extend(id.to_be_bytes());
    payload.extend([0; 20]);
    payload
}

fn packet(sessions: &mut Sessions, now: Micros, id: u32) {
    sessions.on_packet(now, LAN, client(1, 50_000), server(), &payload(id), 0);
}

/// Epoch, sequence, age and content of the one quACK that is to be sent.
fn quack(sessions: &mut Sessions, to: SocketAddr) -> (u32, u16, u32, AnyQuack) {
    let bytes = answer(sessions, to);
    match Message::parse(&bytes) {
        Ok(Message::Quack { epoch, sequence, age_us, quack, .. }) => {
            (epoch, sequence, age_us, AnyQuack::parse(quack).unwrap())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_session_counts_and_tells() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    let epoch = open(&mut sessions, NOW, peer, hello(1));
    assert_eq!(epoch, u32::MAX);
    assert_eq!(sessions.flows().collect::<Vec<_>>(), [(LAN, 50_000)]);
    let mut expected = Quack::new(NonZeroU8::new(8).unwrap());
    packet(&mut sessions, NOW, 0xfeed_f00d);
    silent(&mut sessions);
    packet(&mut sessions, NOW + 1, 0xdead_beef);
    expected.insert(0xfeed_f00d_u32);
    expected.insert(0xdead_beef);
    assert_eq!(quack(&mut sessions, peer), (epoch, 1, 0, AnyQuack::Bits32(expected)));
    let stats = sessions.stats();
    assert_eq!((stats.sessions, stats.packets, stats.quacks), (1, 2, 1));
    assert_eq!(stats.quack_bytes, 20 + 41);
    sessions.reset_stats();
    assert_eq!(sessions.stats(), Stats { sessions: 1, ..Stats::default() });
}

#[test]
fn only_packets_of_the_flow_by_its_device_with_an_identifier() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    open(&mut sessions, NOW, peer, hello(1));
    let (flow, other) = (client(1, 50_000), client(2, 50_000));
    let bytes = payload(1);
    sessions.on_packet(NOW, LAN + 1, flow, server(), &bytes, 0);
    sessions.on_packet(NOW, LAN, other, server(), &bytes, 0);
    sessions.on_packet(NOW, LAN, client(1, 50_001), server(), &bytes, 0);
    sessions.on_packet(NOW, LAN, flow, "198.51.100.1:444".parse().unwrap(), &bytes, 0);
    sessions.on_packet(NOW, LAN, flow, "198.51.100.2:443".parse().unwrap(), &bytes, 0);
    sessions.on_packet(NOW, LAN, server(), flow, &bytes, 0);
    for len in 0..5 {
        sessions.on_packet(NOW, LAN, flow, server(), &bytes[..len], 0);
    }
    assert_eq!(sessions.stats().packets, 0);
    sessions.on_packet(NOW, LAN, flow, server(), &bytes[..5], 0);
    assert_eq!(sessions.stats().packets, 1);
}

#[test]
fn merged_packets_are_counted_one_by_one() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    let every = Interval::Packets(NonZeroU16::new(4).unwrap());
    open(&mut sessions, NOW, peer, Hello { interval: every, ..hello(1) });
    let mut merged: Vec<u8> = [1, 2, 3].into_iter().flat_map(payload).collect();
    merged.extend(&payload(4)[..9]);
    let segment = payload(1).len();
    sessions.on_packet(NOW, LAN, client(1, 50_000), server(), &merged, segment);
    let mut expected = Quack::new(NonZeroU8::new(8).unwrap());
    (1..=4u32).for_each(|id| expected.insert(id));
    assert_eq!(quack(&mut sessions, peer).3, AnyQuack::Bits32(expected));
    assert_eq!(sessions.stats().packets, 4);
}

#[test]
fn only_quacks_that_wait_to_be_sent_are_counted() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    let every = Interval::Packets(NonZeroU16::MIN);
    open(&mut sessions, NOW, peer, Hello { interval: every, ..hello(1) });
    let segment = payload(1).len();
    let merged: Vec<u8> = (1..=400).flat_map(payload).collect();
    sessions.on_packet(NOW, LAN, client(1, 50_000), server(), &merged, segment);
    let (mut sent, mut bytes) = (0, 0);
    while let Some(sending) = sessions.next_action() {
        sent += 1;
        bytes += sending.bytes.len() as u64;
    }
    let stats = sessions.stats();
    assert!(sent < 400, "there is an end to what waits");
    assert_eq!((stats.packets, stats.quacks, stats.quack_bytes), (400, sent, bytes));
}

#[test]
fn nothing_is_kept_for_who_has_no_cookie() {
    let mut sessions = sessions();
    let bad = Hello { cookie: 12_345, ..hello(1) };
    for port in 1..2_000 {
        say(&mut sessions, NOW, client(1, port), Message::Hello(bad));
    }
    let mut cookies = 0;
    while let Some(sending) = sessions.next_action() {
        assert!(matches!(Message::parse(sending.bytes), Ok(Message::Cookie { .. })));
        cookies += 1;
    }
    // As many as of a tenth of a second; the other half is for who asks again.
    assert_eq!(cookies, 26);
    assert_eq!((sessions.stats().sessions, sessions.stats().ignored), (0, 1_999 - 26));
    // Who has one is not held up by the others.
    let peer = client(1, 6_000);
    let good = proven(&mut sessions, NOW + SEC, peer, hello(1));
    while sessions.cookies.hand_out(NOW + SEC, peer).is_some() {}
    say(&mut sessions, NOW + SEC, peer, Message::Hello(good));
    accepted(&mut sessions, peer);
    // Nobody else can use it.
    say(&mut sessions, NOW + SEC, client(2, 6_000), Message::Hello(good));
    silent(&mut sessions);
}

#[test]
fn a_hello_keeps_a_session_as_it_is_and_tells_of_losses() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    let epoch = open(&mut sessions, NOW, peer, Hello { losses: 65_530, ..hello(1) });
    packet(&mut sessions, NOW, 1);
    let generation = sessions.generation();
    for (losses, counted) in [(65_531, 1), (3, 9), (3, 9), (65_535, 9), (4, 10)] {
        let again = Hello { losses, ..hello(1) };
        assert_eq!(open(&mut sessions, NOW + 5 * SEC, peer, again), epoch);
        assert_eq!(sessions.stats().losses, counted);
    }
    assert_eq!(sessions.generation(), generation);
    packet(&mut sessions, NOW + 5 * SEC, 2);
    assert_eq!(quack(&mut sessions, peer).3.count(), 2);
}

#[test]
fn another_token_or_other_terms_begin_anew() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    let mut last = open(&mut sessions, NOW, peer, hello(1));
    for again in [
        hello(2),
        Hello { width: Width::Bits16, ..hello(2) },
        Hello { offset: 2, ..hello(2) },
        Hello { threshold: NonZeroU8::MIN, ..hello(2) },
        Hello { interval: Interval::Router, ..hello(2) },
    ] {
        packet(&mut sessions, NOW, 1);
        let epoch = open(&mut sessions, NOW, peer, again);
        assert_eq!(epoch, last.wrapping_add(1));
        last = epoch;
        assert_eq!(sessions.stats().sessions, 1);
    }
    // The flow of another client with the same ports is another one.
    open(&mut sessions, NOW, client(2, 6_000), hello(2));
    assert_eq!(sessions.stats().sessions, 2);
}

#[test]
fn the_threshold_is_limited_and_the_interval_told() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    let many = NonZeroU8::new(200).unwrap();
    let asked = Hello { threshold: many, interval: Interval::Router, ..hello(1) };
    let good = proven(&mut sessions, NOW, peer, asked);
    say(&mut sessions, NOW, peer, Message::Hello(good));
    let bytes = answer(&mut sessions, peer);
    let Ok(Message::Accept { threshold, interval, lifetime_s, .. }) = Message::parse(&bytes) else {
        panic!("{bytes:?}")
    };
    assert_eq!((threshold.get(), interval, lifetime_s), (8, Interval::Adaptive, 15));
    // The same question again is the same session.
    say(&mut sessions, NOW, peer, Message::Hello(good));
    assert_eq!(answer(&mut sessions, peer), bytes);
}

#[test]
fn what_cannot_be_done_is_refused() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    for bad in [
        Hello { offset: 61, ..hello(1) },
        Hello { offset: u16::MAX, ..hello(1) },
        Hello { client_port: 0, ..hello(1) },
        Hello { server_port: 0, ..hello(1) },
        Hello { server: "2001:db8::1".parse().unwrap(), ..hello(1) },
        Hello { server: "0.0.0.0".parse().unwrap(), ..hello(1) },
        Hello { server: "224.0.0.1".parse().unwrap(), ..hello(1) },
    ] {
        let good = proven(&mut sessions, NOW, peer, bad);
        say(&mut sessions, NOW, peer, Message::Hello(good));
        assert_eq!(refused(&mut sessions, peer), Reason::Unsupported, "{bad:?}");
    }
    assert_eq!(sessions.stats().refused, 7);
    open(&mut sessions, NOW, peer, Hello { offset: 60, ..hello(1) });
}

#[test]
fn a_client_has_so_many_and_all_of_them_too() {
    let mut sessions = sessions();
    let port = |n: u16| Hello { client_port: 50_000 + n, ..hello(u64::from(n)) };
    for host in 1..=8 {
        for n in 0..8 {
            let now = NOW + u64::from(host) * 100 * MS;
            open(&mut sessions, now, client(host, 6_000 + n), port(n));
        }
    }
    // All are in use: full for a client with eight, and for one with none.
    for host in [1, 9] {
        let from = client(host, 7_000);
        let good = proven(&mut sessions, NOW + SEC, from, port(9));
        say(&mut sessions, NOW + SEC, from, Message::Hello(good));
        assert_eq!(refused(&mut sessions, from), Reason::Full);
    }
    // The first packet of client 1 goes on, and nobody else's.
    let later = NOW + 6 * SEC;
    packet(&mut sessions, later, 1);
    let from = client(1, 7_000);
    let good = proven(&mut sessions, later, from, port(9));
    say(&mut sessions, later, from, Message::Hello(good));
    let bye = sessions.next_action().expect("a message");
    assert_eq!(bye.to.ip(), from.ip(), "it is a session of its own that makes room");
    assert_ne!(bye.to, client(1, 6_000), "not the one in use");
    assert!(matches!(Message::parse(bye.bytes), Ok(Message::Bye { .. })));
    accepted(&mut sessions, from);
    let stats = sessions.stats();
    assert_eq!((stats.sessions, stats.evicted, stats.refused), (64, 1, 2));
}

#[test]
fn sessions_end() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    let bye = |bytes: Vec<u8>| Message::parse(&bytes) == Ok(Message::Bye { token: 1 });
    assert_eq!(sessions.next_timeout(), None);
    // By themselves.
    open(&mut sessions, NOW, peer, hello(1));
    assert_eq!(sessions.next_timeout(), Some(NOW + 15 * SEC));
    sessions.on_timeout(NOW + 15 * SEC - 1);
    silent(&mut sessions);
    sessions.on_timeout(NOW + 15 * SEC);
    assert!(bye(answer(&mut sessions, peer)));
    // By the sender.
    open(&mut sessions, NOW, peer, hello(1));
    say(&mut sessions, NOW, peer, Message::Bye { token: 1 });
    silent(&mut sessions);
    assert_eq!(sessions.flows().count(), 0);
    // By the router.
    open(&mut sessions, NOW, peer, hello(1));
    let generation = sessions.generation();
    sessions.stop();
    assert!(bye(answer(&mut sessions, peer)));
    assert_ne!(sessions.generation(), generation);
    assert_eq!((sessions.stats().sessions, sessions.next_timeout()), (0, None));
}

#[test]
fn reset_counts_from_nothing_for_who_knows_token_and_epoch() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    let epoch = open(&mut sessions, NOW, peer, hello(1));
    packet(&mut sessions, NOW, 1);
    let ignored = sessions.stats().ignored;
    for (from, token, epoch) in [
        (client(2, 6_000), 1, epoch),
        (client(1, 6_001), 1, epoch),
        (peer, 2, epoch),
        (peer, 1, epoch.wrapping_sub(1)),
    ] {
        say(&mut sessions, NOW, from, Message::Reset { token, epoch });
        say(&mut sessions, NOW, client(2, 6_000), Message::Bye { token });
    }
    silent(&mut sessions);
    assert_eq!(sessions.stats().ignored, ignored + 8);
    say(&mut sessions, NOW, peer, Message::Reset { token: 1, epoch });
    assert_eq!(accepted(&mut sessions, peer), epoch.wrapping_add(1));
    packet(&mut sessions, NOW, 2);
    let (told, _, _, quack) = quack(&mut sessions, peer);
    assert_eq!((told, quack.count()), (epoch.wrapping_add(1), 1));
}

#[test]
fn a_late_packet_is_told_of_with_the_age_of_the_last() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    open(&mut sessions, NOW, peer, Hello { interval: Interval::Adaptive, ..hello(1) });
    for n in 0..24u32 {
        packet(&mut sessions, NOW + u64::from(n) * 20 * MS, n);
        while sessions.next_action().is_some() {}
    }
    let due = NOW + 24 * 20 * MS + 1_500;
    assert_eq!(sessions.next_timeout(), Some(due));
    sessions.on_timeout(due);
    let (_, _, age, quack) = quack(&mut sessions, peer);
    assert_eq!((age, quack.count()), (21_500, 24));
    assert_eq!(sessions.stats().late, 1);
}

#[test]
fn a_device_that_comes_back_under_another_index_is_taken_from_the_next_hello() {
    let (mut sessions, peer) = (sessions(), client(1, 6_000));
    let good = proven(&mut sessions, NOW, peer, hello(1));
    say(&mut sessions, NOW, peer, Message::Hello(good));
    let epoch = accepted(&mut sessions, peer);
    let mut bytes = Vec::new();
    Message::Hello(good).write(&mut bytes);
    let generation = sessions.generation();
    sessions.on_message(NOW, peer, via(9), &bytes);
    let sending = sessions.next_action().expect("a message");
    assert_eq!(sending.via.device, 9);
    assert!(
        matches!(Message::parse(sending.bytes), Ok(Message::Accept { epoch: e, .. }) if e == epoch)
    );
    assert_ne!(sessions.generation(), generation);
    assert_eq!(sessions.flows().collect::<Vec<_>>(), [(9, 50_000)]);
}

#[test]
fn addresses_are_the_same_however_they_are_written() {
    let mut sessions = sessions();
    let peer: SocketAddr = "[::ffff:192.0.2.1]:6000".parse().unwrap();
    open(&mut sessions, NOW, peer, hello(1));
    packet(&mut sessions, NOW, 1);
    assert_eq!(sessions.stats().packets, 1);
    let peer: SocketAddr = "[2001:db8::1]:6000".parse().unwrap();
    let to: SocketAddr = "[2001:db8:1::1]:443".parse().unwrap();
    open(&mut sessions, NOW, peer, Hello { server: to.ip(), ..hello(2) });
    let from = SocketAddr::new(peer.ip(), 50_000);
    sessions.on_packet(NOW, LAN, from, to, &payload(1), 0);
    assert_eq!(sessions.stats().packets, 2);
}

#[test]
fn anything_may_come() {
    let mut random = Random::new(5);
    let mut sessions = sessions();
    let peer = client(1, 6_000);
    for round in 0..20_000u64 {
        let now = if round % 50 == 0 { random.next() } else { NOW + round * MS };
        let mut bytes = Vec::new();
        let token = random.below(70);
        let hello = Hello {
            cookie: random.next(),
            offset: random.below(80) as u16,
            client_port: random.below(70) as u16,
            losses: random.next() as u16,
            interval: Interval::Adaptive,
            ..hello(token)
        };
        let good = sessions.cookies.hand_out(now, peer).unwrap_or(hello.cookie);
        match random.below(5) {
            0 => Message::Bye { token }.write(&mut bytes),
            1 => Message::Reset { token, epoch: random.next() as u32 }.write(&mut bytes),
            _ => Message::Hello(Hello { cookie: good, ..hello }).write(&mut bytes),
        }
        if random.chance(300) {
            let at = random.below(bytes.len() as u64) as usize;
            bytes[at] = random.next() as u8;
        }
        if random.chance(50) {
            bytes.truncate(random.below(48) as usize);
        }
        sessions.on_message(now, peer, via(LAN), &bytes);
        let from = client(1, random.below(70) as u16);
        let length = random.below(100) as usize;
        sessions.on_packet(now, LAN, from, server(), &vec![7; length], random.below(30) as usize);
        if random.chance(300) {
            sessions.on_timeout(now);
        }
        while sessions.next_action().is_some() {}
        assert!(sessions.flows().count() <= 8);
    }
    // Nobody takes the messages: there is an end to them.
    for _ in 0..2_000 {
        packet(&mut sessions, NOW, 1);
        sessions.on_message(NOW, peer, via(LAN), &[]);
    }
}
