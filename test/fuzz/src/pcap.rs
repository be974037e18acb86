// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `pcap`: captures that somebody was sent, played to the engine. The first byte
//! says how, the others are the file.

use pemi::command::replay::{self, Options};
use pemi::config::Config;
use pemi_engine::MS;

const MICROSECONDS: u32 = 0xa1b2_c3d4;
const SECTION: u32 = 0x0a0d_0d0a;

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    let Some((how, file)) = data.split_first() else { return };
    let config = Config {
        cache_kib: 64,
        max_flows: 16,
        direction: config_direction(how & 8 != 0),
        ..Config::default()
    };
    let options = Options {
        json: how & 1 != 0,
        local_rtt: (how & 2 != 0).then_some(2 * MS),
        client_net: match how & 4 {
            0 => Vec::new(),
            _ => ["10.0.0.0/8", "fd00::/8"].into_iter().flat_map(str::parse).collect(),
        },
        ..Options::default()
    };
    let (report, result) = replay::play("lan.pcap", file, &config, None, &options);
    if let Err(error) = &result {
        let at = error.strip_prefix("offset ").and_then(|rest| rest.split_once(": "));
        let (at, what) = at.expect("where it was and what was wrong");
        assert!(at.parse::<usize>().is_ok_and(|at| at <= file.len()) && !what.is_empty());
    }
    if options.json && !report.is_empty() {
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        assert_eq!(report["error"].is_null(), result.is_ok());
        let packets = |name: &str| report["packets"][name].as_u64().unwrap_or(u64::MAX);
        assert_eq!(packets("read"), packets("quic") + packets("other") + packets("skipped"));
    }
}

fn config_direction(both: bool) -> pemi::config::Repaired {
    if both { pemi::config::Repaired::Both } else { pemi::config::Repaired::Down }
}

/// A short conversation: greetings, and replies of which one tells of a hole. Small,
/// with few packets, so that there is something to do in each of them.
fn talk() -> Vec<(u32, Vec<u8>)> {
    let mut packets = Vec::new();
    let mut now = 0;
    let mut say = |down: bool, payload: &[u8], after: u32| {
        now += after;
        let ends: [[u8; 6]; 2] = [[192, 0, 2, 1, 1, 187], [10, 0, 0, 2, 0xc3, 0x50]];
        let (from, to) = if down { (ends[0], ends[1]) } else { (ends[1], ends[0]) };
        let len = payload.len() as u16;
        let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
        packet[2..4].copy_from_slice(&(len + 28).to_be_bytes());
        packet.extend([&from[..4], &to[..4], &from[4..], &to[4..]].concat());
        packet.extend((len + 8).to_be_bytes());
        packet.extend([0, 0]);
        packet.extend(payload);
        packets.push((now, packet));
    };
    let long = |kind: u8, size: usize| {
        let mut payload = vec![0xc0 | kind << 4, 0, 0, 0, 1, 0, 0];
        payload.extend(if kind == 0 { vec![0] } else { vec![] });
        payload.extend((0x4000 | (size - payload.len() - 2) as u16).to_be_bytes());
        payload.resize(size, 0);
        payload
    };
    say(false, &long(0, 1200), 0);
    say(true, &long(2, 60), 20_000);
    say(false, &long(2, 60), 1_000);
    for n in 0..12u8 {
        let mut short = vec![n; 40];
        short[0] = 0x41;
        say(true, &short, 1_000);
        say(true, &short[..39], 100);
        short[1..9].fill(7);
        short.truncate(if n == 8 { 38 } else { 36 });
        say(false, &short, 2_000);
    }
    packets
}

/// The same conversation in both formats and byte orders, on several links.
pub fn seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (how, link, head) in [
        (0, 101u32, vec![]),
        (3, 1, [&[2; 12][..], &[8, 0]].concat()),
        (13, 113, [&[0; 14][..], &[8, 0]].concat()),
        (7, 276, [&[8, 0][..], &[0; 18]].concat()),
    ] {
        for big in [false, true] {
            seeds.push([&[how][..], &classic(big, link, &head)].concat());
            seeds.push([&[how][..], &next_generation(big, link, &head)].concat());
        }
    }
    seeds
}

fn words(big: bool, words: &[u32]) -> Vec<u8> {
    words
        .iter()
        .flat_map(|word| if big { word.to_be_bytes() } else { word.to_le_bytes() })
        .collect()
}

fn classic(big: bool, link: u32, head: &[u8]) -> Vec<u8> {
    let version = if big { 2 << 16 | 4 } else { 4 << 16 | 2 };
    let mut file = words(big, &[MICROSECONDS, version, 0, 0, 65_535, link]);
    for (micros, packet) in talk() {
        let len = (head.len() + packet.len()) as u32;
        file.extend(words(big, &[1_700_000_000, micros, len, len]));
        file.extend([head, &packet].concat());
    }
    file
}

fn next_generation(big: bool, link: u32, head: &[u8]) -> Vec<u8> {
    let pair = |a: u32, b: u32| if big { a << 16 | b } else { b << 16 | a };
    let block = |kind: u32, body: &[u8]| {
        let len = body.len() as u32 + 12;
        [&words(big, &[kind, len])[..], body, &words(big, &[len])].concat()
    };
    let mut file = block(SECTION, &words(big, &[0x1a2b_3c4d, pair(1, 0), u32::MAX, u32::MAX]));
    // A resolution of microseconds, an offset, and the end of the options.
    let mut interface = words(big, &[pair(link, 0), 0, pair(9, 1)]);
    interface.extend([6, 0, 0, 0]);
    interface.extend(words(big, &[pair(14, 8), 0, 0, 0]));
    file.extend(block(1, &interface));
    for (micros, packet) in talk() {
        let mut frame = [head, &packet].concat();
        let len = frame.len() as u32;
        frame.resize(frame.len().next_multiple_of(4), 0);
        let time = 1_700_000_000_000_000 + u64::from(micros);
        let fields = words(big, &[0, (time >> 32) as u32, time as u32, len, len]);
        file.extend(block(6, &[fields, frame].concat()));
    }
    file
}
