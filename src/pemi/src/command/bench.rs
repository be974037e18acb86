// SPDX-License-Identifier: GPL-2.0-or-later
//! `pemi bench`: what this machine can carry, for `hardware/measure.sh`.
//!
//! The engine alone is shown downloads that lose one packet in a hundred. With
//! `--queue` packets between two sockets of this process take the way that
//! forwarded ones take: kernel, queue, engine, verdict. Sender and receiver
//! share the processor with it, so a router that only forwards carries more.

use std::hash::{BuildHasher, RandomState};
use std::net::{Ipv4Addr, UdpSocket};
use std::slice;
use std::sync::Arc;
use std::time::{Duration, Instant};

use log::LevelFilter;
use pemi_engine::{Action, Direction, Engines, Handle, MS, Nanos, Time};
use serde_json::{Value, json};

use crate::config::Config;
use crate::datapath::capture::queue::Nfqueue;
use crate::datapath::capture::ring::Rings;
use crate::datapath::guard::Guard;
use crate::datapath::nfqueue::Queue;
use crate::datapath::outlet::Sockets;
use crate::datapath::worker::{Command, Line, Snapshot, Wanted, Worker};
use crate::firewall::nft::nft;
use crate::log::writer::Writer;
use crate::sys::poll::Waker;
use crate::sys::{channel, reply, thread};

const FLOWS: u16 = 16;
/// Packets shown to the engine, of all flows.
const PACKETS: u32 = 200_000;
/// One of so many downstream packets is lost on the hop.
const LOSS: u32 = 100;
/// Between packets down, and from the last of them to its acknowledgement.
const SPACING: Nanos = MS / 10;
const HOP: Nanos = MS;
/// IPv4 and UDP.
const HEADERS: usize = 28;
/// A full QUIC packet and an acknowledgement, without the headers.
const DATA: usize = 1250;
const ACK: usize = 33;
/// A range more in the acknowledgement.
const RANGE: usize = 2;
const PORT: u16 = 5442;
/// For the worker to come to an end of what it has.
const PATIENCE: Duration = Duration::from_secs(10);
const TABLE: &str = "pemi_bench";
/// As much as a worker of the daemon has.
const STACK: usize = 256 << 10;

/// Measures; the error is for standard error.
pub fn run(queue: bool, seconds: u64) -> Result<(), String> {
    let mut result = json!({"version": env!("CARGO_PKG_VERSION"), "engine": engine(PACKETS)});
    if queue {
        result["queue"] = through_queue(Duration::from_secs(seconds))?;
    }
    println!("{result}");
    Ok(())
}

/// A packet with a short header: fixed bit and connection ID, then what looks
/// encrypted.
fn fill(payload: &mut [u8], number: u32) {
    let mut state = number.wrapping_mul(0x9e37_79b9) | 1;
    for byte in &mut *payload {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        *byte = state as u8;
    }
    payload[0] = 0x40 | (payload[0] & 0x3f);
    payload[1..9].copy_from_slice(b"measured");
}

fn packet(flow: u16, direction: Direction, payload: usize, number: u32) -> Vec<u8> {
    let mut packet = vec![0; HEADERS + payload];
    packet[0] = 0x45;
    packet[2..4].copy_from_slice(&((HEADERS + payload) as u16).to_be_bytes());
    packet[8..10].copy_from_slice(&[64, 17]);
    let ends =
        [(Ipv4Addr::new(192, 0, 2, 9), 50_000 + flow), (Ipv4Addr::new(198, 51, 100, 1), 443)];
    let (from, to) = match direction {
        Direction::Down => (ends[1], ends[0]),
        Direction::Up => (ends[0], ends[1]),
    };
    packet[12..16].copy_from_slice(&from.0.octets());
    packet[16..20].copy_from_slice(&to.0.octets());
    packet[20..22].copy_from_slice(&from.1.to_be_bytes());
    packet[22..24].copy_from_slice(&to.1.to_be_bytes());
    packet[24..26].copy_from_slice(&((payload + 8) as u16).to_be_bytes());
    fill(&mut packet[HEADERS..], number);
    packet
}

fn engine(packets: u32) -> Value {
    let mut engine = Engines::new(Config::default().engine(false), RandomState::new().hash_one(0));
    // Made beforehand: contents do not matter, only that they differ.
    let data: Vec<_> =
        (0..FLOWS).map(|flow| packet(flow, Direction::Down, DATA, flow.into())).collect();
    let acks = [0, RANGE].map(|more| -> Vec<_> {
        (0..FLOWS).map(|flow| packet(flow, Direction::Up, ACK + more, flow.into())).collect()
    });
    let mut holes = [false; FLOWS as usize];
    let (mut shown, mut handle, mut round) = (0u32, 0u32, 0u32);
    let mut now = Time::ZERO;
    let start = Instant::now();
    while shown < packets {
        round += 1;
        for (flow, hole) in holes.iter_mut().enumerate() {
            // The first of the two packets down is lost, and the reply to the second one shows
            // it. A copy is answered at once.
            *hole |= (round + flow as u32).is_multiple_of(LOSS / 2);
            let mut steps = [Direction::Down, Direction::Down, Direction::Up, Direction::Up].iter();
            let mut left = 3;
            while left > 0
                && let Some(direction) = steps.next().copied()
            {
                left -= 1;
                let bytes = match direction {
                    Direction::Down => &data[flow],
                    Direction::Up => &acks[usize::from(*hole)][flow],
                };
                now = now + if direction == Direction::Up { HOP } else { SPACING };
                handle = handle.wrapping_add(1);
                engine.on_packet(now, direction, bytes, Handle(handle));
                shown += 1;
                if engine.next_timeout().is_some_and(|at| at <= now) {
                    engine.on_timeout(now);
                }
                let mut probed = None;
                while let Some(action) = engine.next_action() {
                    match action {
                        Action::Inject { .. } => {
                            *hole = false;
                            left = 1;
                        }
                        Action::Probe { client } => probed = Some(client),
                        Action::Release(_)
                        | Action::Send { .. }
                        | Action::Watch { .. }
                        | Action::Event(_) => {}
                    }
                }
                if let Some(client) = probed {
                    engine.on_probe_reply(now, client, HOP);
                }
            }
        }
    }
    let ns = start.elapsed().as_nanos() as u64;
    let stats = engine.stats(now);
    json!({"ns_per_packet": ns / u64::from(shown), "packets": shown,
        "repaired": stats.losses_repaired, "copies": stats.resent_packets})
}

/// The table goes with the value.
struct Table;

impl Table {
    fn load() -> Result<Table, String> {
        let rules = format!(
            "add table inet {TABLE}\ndelete table inet {TABLE}\ntable inet {TABLE} {{\n\
             \tchain output {{\n\t\ttype filter hook output priority filter; policy accept;\n\
             \t\toifname \"lo\" udp dport {PORT} queue flags bypass to {PORT}\n\
             \t\toifname \"lo\" udp sport {PORT} queue flags bypass to {PORT}\n\t}}\n}}\n"
        );
        nft(&rules).map(|()| Table).map_err(|e| e.to_string())
    }
}

impl Drop for Table {
    fn drop(&mut self) {
        // It was there a moment ago.
        let _ = nft(&format!("delete table inet {TABLE}\n"));
    }
}

fn through_queue(duration: Duration) -> Result<Value, String> {
    let text = |what: &str, error: std::io::Error| format!("{what}: {error}");
    let config = Config { queue: PORT, port: vec![PORT], ..Config::default() };
    let queue = Queue::bind(PORT).map_err(|e| text("queue", e))?;
    let guard = Guard::start(slice::from_ref(&queue), config.realtime_priority)
        .map_err(|e| text("guard", e))?;
    let writer = Writer::start(None).map_err(|e| text("writer thread", e))?;
    let waker = Arc::new(Waker::new().map_err(|e| text("eventfd", e))?);
    let (commands, orders) = channel::channel(1);
    let line = Line {
        commands: orders,
        waker: waker.clone(),
        moved: Arc::default(),
        events: writer.sender(),
        wanted: Wanted::new(false, LevelFilter::Error),
        teller: None,
    };
    let sockets = Sockets::open(&config).map_err(|e| text("queue", e))?;
    // As in the daemon: the worker of another capture would be all of its code once more.
    let capture = Rings::new(Nfqueue::new(queue, guard.beat(0)), &config);
    let worker = Worker::new(&config, capture, sockets, line);
    let work = move || worker.run(config.realtime_priority);
    let thread = thread::start("queue", STACK, Box::new(work)).map_err(|e| text("thread", e))?;
    let table = Table::load()?;
    let sent = send(duration).map_err(|e| text("sockets", e));
    drop(table);

    let (to, from) = reply::pair();
    let tell = |command| {
        let _ = commands.send(command);
        waker.wake();
    };
    tell(Command::Snapshot(to));
    let seen = from.wait(PATIENCE);
    tell(Command::Stop);
    let _ = thread.join();
    drop(guard);
    writer.stop();
    let (sent, seconds) = sent?;
    let rate = |packets: u64| (packets as f64 / seconds) as u64;
    Ok(json!({
        "packets_per_s": rate(seen.as_ref().map_or(0, Snapshot::packets)),
        "sent_per_s": rate(sent),
        "seconds": (seconds * 10.0).round() / 10.0,
    }))
}

/// Sends downloads from one socket to others until the time is over; gives the
/// number of packets and the seconds.
fn send(duration: Duration) -> std::io::Result<(u64, f64)> {
    let server = UdpSocket::bind((Ipv4Addr::LOCALHOST, PORT))?;
    let clients: Vec<UdpSocket> = (0..FLOWS)
        .map(|_| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
            socket.connect(server.local_addr()?)?;
            Ok(socket)
        })
        .collect::<std::io::Result<_>>()?;
    let (mut data, mut ack) = ([0; DATA], [0; ACK]);
    let start = Instant::now();
    let mut sent = 0;
    while start.elapsed() < duration {
        for client in &clients {
            let to = client.local_addr()?;
            for number in 0..2 {
                fill(&mut data, sent as u32 + number);
                server.send_to(&data, to)?;
            }
            fill(&mut ack, sent as u32);
            client.send(&ack)?;
            sent += 3;
        }
    }
    Ok((sent, start.elapsed().as_secs_f64()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_has_work_to_do() {
        let result = engine(20_000);
        let repaired = result["repaired"].as_u64().unwrap();
        assert!(repaired * 2 > 20_000 * 2 / 3 / u64::from(LOSS), "{result}");
    }
}
