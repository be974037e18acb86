// SPDX-License-Identifier: GPL-2.0-or-later
//! How long a packet takes from a server to a client on the same machine, by its clock, one packet a
//! millisecond so that none waits for another.
//!
//! `latency server ADDRESS:PORT PACKETS` sends; `latency client SERVER PACKETS` answers every
//! second one and prints the median and the 90th percentile, in nanoseconds.

use std::net::{SocketAddr, UdpSocket};
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result, bail};
use pemi_engine_tests::packets::{Long, V1, long, number, set_number, short};

/// UDP payloads: 1250 and 64 bytes long as IPv4 packets.
const DOWN: usize = 1250 - 28;
const UP: usize = 36;
const APART: Duration = Duration::from_millis(1);
/// Client packets with short headers that end the handshake for good.
const OPENING: u64 = 6;
/// Packets that do not count: a daemon sends those that begin a flow twice, and a ring is tried.
const WARM_UP: u64 = 300;
/// The most that are awaited in vain.
const PATIENCE: Duration = Duration::from_secs(5);

/// Now, by the clock that both ends have.
fn now() -> Result<u64> {
    Ok(SystemTime::now().duration_since(UNIX_EPOCH)?.as_nanos() as u64)
}

fn server(address: SocketAddr, packets: u64) -> Result<()> {
    let socket = UdpSocket::bind(address)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut buffer = [0; 2048];
    let (_, client) = socket.recv_from(&mut buffer).context("nobody comes")?;
    socket.connect(client)?;
    socket.send(&long(V1, Long::Handshake, 900))?;
    for _ in 0..OPENING {
        socket.recv(&mut buffer)?;
    }
    let mut data = short(7, 1, DOWN);
    let begin = Instant::now();
    for n in 0..WARM_UP + packets {
        let due = begin + APART * n as u32;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        set_number(&mut data, n + 1);
        data[DOWN - 8..].copy_from_slice(&now()?.to_be_bytes());
        socket.send(&data)?;
    }
    Ok(())
}

fn client(server: SocketAddr, packets: u64) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.set_read_timeout(Some(PATIENCE))?;
    socket.connect(server)?;
    socket.send(&long(V1, Long::Initial, 1200))?;
    for n in 0..OPENING {
        socket.send(&short(9, n, UP))?;
    }
    let reply = short(9, 99, UP);
    let mut buffer = [0; 2048];
    let (mut newest, mut took) = (0, Vec::new());
    while newest < WARM_UP + packets {
        let len = socket.recv(&mut buffer).with_context(|| format!("after {newest} packets"))?;
        let at = now()?;
        let data = &buffer[..len];
        let number = number(data).unwrap_or(0);
        if len != DOWN || number <= newest {
            continue;
        }
        newest = number;
        if number > WARM_UP {
            let sent = data.last_chunk().map_or(at, |bytes| u64::from_be_bytes(*bytes));
            took.push(at.saturating_sub(sent));
        }
        if number.is_multiple_of(2) {
            socket.send(&reply)?;
        }
    }
    took.sort_unstable();
    let percentile = |n: usize| took[(took.len() - 1) * n / 100];
    println!("{} {}", percentile(50), percentile(90));
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", address, packets] => server(address.parse()?, packets.parse()?),
        ["client", address, packets] => client(address.parse()?, packets.parse()?),
        _ => bail!("latency server|client ADDRESS:PORT PACKETS"),
    }
}
