// SPDX-License-Identifier: GPL-2.0-or-later
//! QUIC-like traffic as fast as a router carries it. The server keeps a fixed
//! number of packets on their way in each flow and sends the next ones when
//! the client's replies come, so nothing overflows and what arrives in a
//! second is what the router can do.
//!
//! `traffic server ADDRESS:PORT FLOWS SECONDS [FILE...]` prints the packets that were
//! answered in the last SECONDS, per second, and the first line of each file as it was when
//! these began and when they ended; `traffic client SERVER FLOWS SECONDS` opens the flows and
//! answers every second packet.

use std::collections::HashMap;
use std::fs;
use std::net::{SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use pemi_bench::datagrams::{self, BATCH, Batch};
use pemi_engine_tests::packets::{Long, V1, long, number, set_number, short};

/// UDP payloads: 1250 and 64 bytes long as IPv4 packets.
const DOWN: usize = 1250 - 28;
const UP: usize = 36;
/// Packets on their way in all flows together: less than a queue has room
/// for, enough to keep every program busy.
const WINDOW: usize = 1600;
/// Sent again from scratch when nothing moved for so long.
const STALL: Duration = Duration::from_millis(30);
/// Before anything is counted: flows open, tables fill.
const WARM_UP: Duration = Duration::from_millis(700);
/// Client packets with short headers that end the handshake for good.
const OPENING: u64 = 6;

#[derive(Debug)]
struct Peer {
    address: SocketAddrV4,
    outstanding: usize,
    sent: u64,
    /// Packets that came while the flows opened.
    opening: u64,
}

/// The first line of each file.
fn look(files: &[&str]) -> Result<Vec<String>> {
    let first = |file: &&str| {
        let text = fs::read_to_string(file).with_context(|| file.to_string())?;
        Ok(text.lines().next().unwrap_or_default().to_string())
    };
    files.iter().map(first).collect()
}

/// The peers by their addresses, once as many flows as that are open.
fn opened(
    socket: &UdpSocket,
    inbox: &mut Batch,
    flows: usize,
) -> Result<(Vec<Peer>, HashMap<SocketAddrV4, usize>)> {
    let hello = long(V1, Long::Handshake, 900);
    let mut peers: Vec<Peer> = Vec::new();
    let mut known: HashMap<SocketAddrV4, usize> = HashMap::new();
    let give_up = Instant::now() + Duration::from_secs(10);
    while peers.len() < flows || peers.iter().any(|peer| peer.opening < OPENING) {
        if Instant::now() > give_up {
            bail!("{} of {flows} flows came", peers.len());
        }
        for n in 0..inbox.receive(socket.as_raw_fd())? {
            let source = inbox.source(n);
            let peer = *known.entry(source).or_insert_with(|| {
                peers.push(Peer { address: source, outstanding: 0, sent: 0, opening: 0 });
                peers.len() - 1
            });
            peers[peer].opening += 1;
            if inbox.buffer(n)[0] & 0x80 != 0 {
                socket.send_to(&hello, source)?;
            }
        }
    }
    Ok((peers, known))
}

fn server(address: SocketAddr, flows: usize, seconds: f64, files: &[&str]) -> Result<()> {
    let socket = datagrams::socket(address)?;
    let window = (WINDOW / flows).clamp(2, 64);
    let (mut inbox, mut outbox) = (Batch::default(), Batch::default());
    let data = short(7, 1, DOWN);
    let (mut peers, known) = opened(&socket, &mut inbox, flows)?;
    let (mut begin, counted) = (Instant::now() + WARM_UP, Duration::from_secs_f64(seconds));
    let mut before = None;
    let mut polled = [libc::pollfd { fd: socket.as_raw_fd(), events: libc::POLLIN, revents: 0 }];
    let (mut answered, mut moved) = (0usize, Instant::now());
    for n in 0..BATCH {
        outbox.buffer(n)[..DOWN].copy_from_slice(&data);
    }
    loop {
        let mut now = Instant::now();
        if before.is_none() && now >= begin {
            before = Some(look(files)?);
            // What looking takes does not count.
            (begin, now) = (Instant::now(), Instant::now());
        }
        if now >= begin + counted {
            break;
        }
        let got = inbox.receive(socket.as_raw_fd())?;
        for n in 0..got {
            let Some(peer) = known.get(&inbox.source(n)) else { continue };
            peers[*peer].outstanding = peers[*peer].outstanding.saturating_sub(2);
            answered += if now >= begin { 2 } else { 0 };
            moved = now;
        }
        if now - moved > STALL {
            peers.iter_mut().for_each(|peer| peer.outstanding = 0);
            moved = now;
        }
        let sent = fill(&socket, &mut outbox, &mut peers, window)?;
        if got == 0 && !sent {
            // The router's turn: it may need this core.
            datagrams::wait(&mut polled, 1)?;
        }
    }
    let after = look(files)?;
    println!("{:.0}", answered as f64 / seconds);
    for (before, after) in before.iter().flatten().zip(after) {
        println!("{before}\n{after}");
    }
    Ok(())
}

/// Sends what the windows allow, two packets a flow at a time; whether that
/// was anything.
fn fill(socket: &UdpSocket, outbox: &mut Batch, peers: &mut [Peer], window: usize) -> Result<bool> {
    let mut count = 0;
    let mut any = false;
    for peer in peers.iter_mut().filter(|peer| peer.outstanding + 2 <= window) {
        for _ in 0..2 {
            peer.sent += 1;
            outbox.address(count, peer.address, DOWN);
            set_number(outbox.buffer(count), peer.sent);
            count += 1;
        }
        peer.outstanding += 2;
        any = true;
        if count == BATCH {
            outbox.send(socket.as_raw_fd(), count)?;
            count = 0;
        }
    }
    if count > 0 {
        outbox.send(socket.as_raw_fd(), count)?;
    }
    Ok(any)
}

fn client(server: SocketAddrV4, flows: usize, seconds: f64) -> Result<()> {
    let sockets: Vec<UdpSocket> = (0..flows)
        .map(|_| datagrams::socket("0.0.0.0:0".parse()?).context("socket"))
        .collect::<Result<_>>()?;
    let (mut inbox, mut outbox) = (Batch::default(), Batch::default());
    for socket in &sockets {
        socket.send_to(&long(V1, Long::Initial, 1200), server)?;
        for n in 0..OPENING {
            socket.send_to(&short(9, n, UP), server)?;
        }
        // One burst of all flows would overflow somebody's queue.
        std::thread::sleep(Duration::from_micros(300));
    }
    let reply = short(9, 99, UP);
    for n in 0..BATCH {
        outbox.buffer(n)[..reply.len()].copy_from_slice(&reply);
        outbox.address(n, server, UP);
    }
    let mut polled: Vec<libc::pollfd> = sockets
        .iter()
        .map(|s| libc::pollfd { fd: s.as_raw_fd(), events: libc::POLLIN, revents: 0 })
        .collect();
    let mut odd = vec![0usize; flows];
    let mut newest = vec![0u64; flows];
    let end = Instant::now() + WARM_UP + Duration::from_secs_f64(seconds + 0.5);
    while Instant::now() < end {
        datagrams::wait(&mut polled, 10)?;
        for (n, ready) in polled.iter().enumerate().filter(|(_, ready)| ready.revents != 0) {
            let got = inbox.receive(ready.fd)?;
            // As a QUIC client, it answers neither copies nor, here, the
            // handshake, to which it has replied in advance.
            for k in 0..got {
                if inbox.len(k) != DOWN {
                    continue;
                }
                let number = number(&inbox.buffer(k)[..DOWN]).unwrap_or(0);
                odd[n] += usize::from(number > newest[n]);
                newest[n] = newest[n].max(number);
            }
            let replies = odd[n] / 2;
            odd[n] %= 2;
            outbox.send(ready.fd, replies)?;
        }
    }
    Ok(())
}

fn main() -> Result<()> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["server", address, flows, seconds, ref files @ ..] => {
            server(address.parse()?, flows.parse()?, seconds.parse()?, files)
        }
        ["client", address, flows, seconds] => {
            client(address.parse()?, flows.parse()?, seconds.parse()?)
        }
        _ => bail!("traffic server|client ADDRESS:PORT FLOWS SECONDS"),
    }
}
