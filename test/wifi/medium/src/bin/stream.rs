// SPDX-License-Identifier: GPL-2.0-or-later
//! Packets with the time in them, for what a hop does to each: UDP echoes and a stream; and when
//! packets of others came to an interface.
//!
//! Both ends are on one machine, so the way there is measured and not half of the way and back.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lexopt::prelude::*;
use linkem::frame::{VNET_BYTES, View, hash};
use linkem::packet_io::{BATCH, Port, Received};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::{ClockId, clock_gettime};
use serde_json::json;

const USAGE: &str = "\
stream reflect --at IP:PORT                            sends everything back
stream echo --at IP:PORT [--count N] [--interval-ms N] asks for that, one after the other
stream receive --at IP:PORT --out FILE                 notes what comes until nothing comes
stream send --at IP:PORT [--count N] [--rate PACKETS-PER-SECOND] [--bytes N] [--burst N]
stream watch --at INTERFACE --port N --out FILE        notes what comes in there from this port";

/// Sequence number and time, µs: what the ends need of a packet.
const HEADER: usize = 16;
/// So long an echo is waited for, and a stream that has begun.
const PATIENCE: Duration = Duration::from_secs(2);
/// So long a stream may take to begin.
const BEFORE: Duration = Duration::from_secs(10);

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("stream: {error:#}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    at: String,
    out: Option<PathBuf>,
    count: u64,
    interval_ms: u64,
    rate: u64,
    bytes: usize,
    burst: u64,
    port: u16,
}

fn run() -> Result<()> {
    let mut parser = lexopt::Parser::from_env();
    let Some(Value(what)) = parser.next()? else { bail!("{USAGE}") };
    let mut options = Options {
        at: String::new(),
        out: None,
        count: 20,
        interval_ms: 100,
        rate: 800,
        bytes: 1250,
        burst: 1,
        port: 0,
    };
    while let Some(argument) = parser.next()? {
        match argument {
            Long("at") => options.at = parser.value()?.string()?,
            Long("out") => options.out = Some(parser.value()?.into()),
            Long("count") => options.count = parser.value()?.parse()?,
            Long("interval-ms") => options.interval_ms = parser.value()?.parse()?,
            Long("rate") => options.rate = parser.value()?.parse()?,
            Long("bytes") => options.bytes = parser.value()?.parse()?,
            Long("burst") => options.burst = parser.value()?.parse()?,
            Long("port") => options.port = parser.value()?.parse()?,
            other => return Err(other.unexpected()).context(USAGE),
        }
    }
    if options.bytes < HEADER || options.rate == 0 || options.burst == 0 {
        bail!("a packet has {HEADER} bytes at least, and rate and burst are not 0");
    }
    match what.string()?.as_str() {
        "reflect" => reflect(&options),
        "echo" => echo(&options),
        "receive" => receive(&options),
        "send" => send(&options),
        "watch" => watch(&options),
        _ => bail!("{USAGE}"),
    }
}

fn now_us() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    time.tv_sec.cast_unsigned() * 1_000_000 + time.tv_nsec.cast_unsigned() / 1_000
}

fn sleep_until(at_us: u64) {
    thread::sleep(Duration::from_micros(at_us.saturating_sub(now_us())));
}

/// A packet that leaves now.
fn stamp(packet: &mut [u8], number: u64) {
    packet[..8].copy_from_slice(&number.to_be_bytes());
    packet[8..HEADER].copy_from_slice(&now_us().to_be_bytes());
}

fn number_and_time(packet: &[u8]) -> Option<(u64, u64)> {
    let (number, rest) = packet.split_first_chunk()?;
    let (time, _) = rest.split_first_chunk()?;
    Some((u64::from_be_bytes(*number), u64::from_be_bytes(*time)))
}

fn reflect(options: &Options) -> Result<()> {
    let socket = UdpSocket::bind(&options.at)?;
    println!("{}", json!({"listening": options.at}));
    let mut packet = [0; 2048];
    loop {
        let (length, from) = socket.recv_from(&mut packet)?;
        socket.send_to(&packet[..length], from)?;
    }
}

fn echo(options: &Options) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(&options.at)?;
    socket.set_read_timeout(Some(PATIENCE))?;
    let mut packet = vec![0; options.bytes];
    let (mut took_us, mut lost) = (Vec::new(), 0);
    // One more, which is not counted: it finds no address resolved and no page in memory.
    for number in 0..=options.count {
        let next = now_us() + 1_000 * options.interval_ms;
        stamp(&mut packet, number);
        socket.send(&packet)?;
        match socket.recv(&mut packet) {
            Ok(length) => {
                let (_, sent) = number_and_time(&packet[..length]).context("a short echo")?;
                if number > 0 {
                    took_us.push(now_us() - sent);
                }
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                lost += u32::from(number > 0)
            }
            Err(error) => return Err(error.into()),
        }
        sleep_until(next);
    }
    println!("{}", json!({"echo_us": took_us, "lost": lost}));
    Ok(())
}

fn receive(options: &Options) -> Result<()> {
    let path = options.out.as_ref().context("receive needs --out")?;
    let socket = UdpSocket::bind(&options.at)?;
    println!("{}", json!({"listening": options.at}));
    socket.set_read_timeout(Some(BEFORE))?;
    let (mut packet, mut rows) = ([0; 2048], Vec::new());
    loop {
        match socket.recv(&mut packet) {
            Ok(length) => {
                let at = now_us();
                let (number, sent) = number_and_time(&packet[..length]).context("short")?;
                if rows.is_empty() {
                    socket.set_read_timeout(Some(PATIENCE))?;
                }
                rows.push((number, sent, at));
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
            Err(error) => return Err(error.into()),
        }
    }
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "number,sent_us,got_us")?;
    for (number, sent, got) in rows {
        writeln!(file, "{number},{sent},{got}")?;
    }
    Ok(file.flush()?)
}

fn send(options: &Options) -> Result<()> {
    let socket = UdpSocket::bind("0.0.0.0:0")?;
    socket.connect(&options.at)?;
    let mut packet = vec![0; options.bytes];
    let began = now_us();
    for number in 0..options.count {
        if number % options.burst == 0 {
            sleep_until(began + number * 1_000_000 / options.rate);
        }
        stamp(&mut packet, number);
        match socket.send(&packet) {
            // Of a neighbour's traffic only the air is wanted: nobody listens there.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            sent => drop(sent?),
        }
    }
    Ok(())
}

/// Until it is killed, so what has come is written at once.
fn watch(options: &Options) -> Result<()> {
    let path = options.out.as_ref().context("watch needs --out")?;
    let mut file = File::create(path)?;
    writeln!(file, "us,hash")?;
    let mut port = Port::open(&options.at)?;
    println!("{}", json!({"listening": options.at}));
    loop {
        poll(&mut [PollFd::from_borrowed_fd(port.as_fd(), PollFlags::IN)], None)?;
        let mut rows = String::new();
        let mut take = |came: Received| {
            let view = View::of(&came.bytes[VNET_BYTES..]);
            if view.ports.0 == options.port {
                let _ = writeln!(rows, "{},{:016x}", came.at / 1_000, hash(view.payload));
            }
        };
        while port.receive(&mut take).is_ok_and(|count| count == BATCH) {}
        file.write_all(rows.as_bytes())?;
    }
}
