// SPDX-License-Identifier: GPL-2.0-or-later
//! The sender with its socket.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;

use anyhow::{Result, ensure};
use linkem::sched::{self, monotonic};
use serde::Serialize;

use super::packet::{Body, Cause, Cipher, MIN_BYTES};
use super::rtt::Rtt;
use super::source::Source;
use super::{PACKET, receive, send, wait};
use crate::output::{print_json, rounded};
use crate::sidekick::{self, Sidekick, SidekickOptions};
use crate::socket;

/// How often the start and the end are told until they are answered.
const AGAIN: u64 = 200_000_000;
/// And for how long.
const PATIENCE: u64 = 10_000_000_000;
/// From the first question on, at most this is waited for the router before audio
/// begins, so that its session covers all of it: what is compared is not the start.
const ROUTER: u64 = 500_000_000;

/// Options of the sender.
#[derive(Debug, clap::Args)]
pub struct ClientOptions {
    /// The receiver's address and port
    #[arg(long)]
    pub connect: SocketAddr,
    /// How long audio is sent
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// UDP payload of a packet
    #[arg(long, default_value_t = 240, value_parser = clap::value_parser!(u16).range(MIN_BYTES as i64..=1400))]
    bytes: u16,
    /// Between two packets
    #[arg(long, value_name = "MS", default_value_t = 20.0)]
    interval_ms: f64,
    /// For Sidekick.
    #[command(flatten)]
    sidekick: SidekickOptions,
    /// Also write the result to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Serialize)]
struct Retransmitted {
    nack: u64,
    quack: u64,
}

#[derive(Serialize)]
struct Report {
    app: &'static str,
    complete: bool,
    frames: u32,
    sent: u64,
    retransmitted: Retransmitted,
    sidekick: Option<sidekick::Report>,
    rtt_ms: Option<f64>,
}

/// What the sender is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    /// The receiver has not answered.
    Starting,
    Sending,
    /// All was sent, but the receiver may be missing something.
    Ending,
    Over,
}

struct Client<'a> {
    options: &'a ClientOptions,
    socket: UdpSocket,
    cipher: Cipher,
    session: u64,
    rtt: Rtt,
    source: Source,
    sidekick: Option<Sidekick>,
    phase: Phase,
    frames: u32,
    interval: u64,
    /// The next frame, and when the first was due.
    frame: u32,
    start: u64,
    /// When the start or the end is told again, and when that has no sense any more.
    again: u64,
    until: u64,
}

/// Sends one stream and prints the result.
pub fn run(options: &ClientOptions) -> Result<()> {
    sched::set_exact_timers()?;
    let interval = (options.interval_ms * 1e6).round();
    let frames = (options.seconds * 1e9 / interval).round();
    ensure!(
        interval >= 1e5 && (1.0..1e7).contains(&frames),
        "{frames} frames every {} ms: wanted 1 to 10000000 every 0.1 ms or more",
        options.interval_ms
    );
    let socket = socket::bind(socket::any_port_for(options.connect))?;
    socket.set_nonblocking(true)?;
    let cipher = Cipher::new()?;
    let port = socket.local_addr()?.port();
    let now = monotonic();
    let mut client = Client {
        options,
        sidekick: Sidekick::new(&options.sidekick, cipher.random()?, port, options.connect, 0),
        session: cipher.random()?,
        socket,
        cipher,
        rtt: Rtt::default(),
        source: Source::default(),
        phase: Phase::Starting,
        frames: frames as u32,
        interval: interval as u64,
        frame: 0,
        start: now + ROUTER,
        again: now,
        until: now + PATIENCE,
    };
    while client.phase != Phase::Over && monotonic() < client.until {
        client.turn()?;
    }
    client.finish()
}

impl Client<'_> {
    fn turn(&mut self) -> Result<()> {
        let mut buffer = [0; PACKET];
        while let Some((length, from)) = receive(&self.socket, &mut buffer)? {
            self.take(monotonic(), from, &mut buffer[..length])?;
        }
        let now = monotonic();
        while let Some(tag) = self.sidekick.as_mut().and_then(|sidekick| sidekick.next_lost(now)) {
            if let Some(frame) = self.source.on_lost(now, tag) {
                self.send_frame(now, frame, Cause::Quack)?;
            }
        }
        match self.phase {
            Phase::Starting if now >= self.again => {
                self.tell(now, &Body::Start { frames: self.frames })?;
            }
            Phase::Sending => {
                while self.frame < self.frames && self.due() <= now {
                    self.send_frame(now, self.frame, Cause::Due)?;
                    self.frame += 1;
                }
                if self.frame >= self.frames && self.due() <= now {
                    self.phase = Phase::Ending;
                    self.until = now + PATIENCE;
                    self.tell(now, &Body::End)?;
                }
            }
            Phase::Ending if now >= self.again => self.tell(now, &Body::End)?,
            _ => {}
        }
        let mut next = if self.phase == Phase::Sending { self.due() } else { self.again };
        if let Some(sidekick) = &mut self.sidekick {
            sidekick.poll(now, &self.socket);
            next = sidekick.next_timeout().map_or(next, |at| at.min(next));
        }
        if self.phase != Phase::Over {
            wait(&self.socket, Some(next))?;
        }
        Ok(())
    }

    /// When the next frame is due; the end one interval after the last.
    fn due(&self) -> u64 {
        self.start + u64::from(self.frame) * self.interval
    }

    fn take(&mut self, now: u64, from: SocketAddr, bytes: &mut [u8]) -> Result<()> {
        if self.sidekick.as_mut().is_some_and(|sidekick| sidekick.take(now, from, bytes)) {
            return Ok(());
        }
        let Ok((header, body)) = self.cipher.open(bytes) else { return Ok(()) };
        if header.session != self.session || from != self.options.connect {
            return Ok(());
        }
        self.rtt.take(now, &header);
        match body {
            Body::Report { missing } => {
                if self.phase == Phase::Starting {
                    self.phase = Phase::Sending;
                    if self.sidekick.is_none() {
                        self.start = now;
                    }
                    self.start = self.start.max(now);
                    self.until = self.start + u64::from(self.frames) * self.interval + PATIENCE;
                }
                let rtt = self.rtt.get().unwrap_or(0);
                for frame in missing {
                    if self.source.on_nack(now, frame, rtt) {
                        self.send_frame(now, frame, Cause::Nack)?;
                    }
                }
            }
            Body::Done if self.phase == Phase::Ending => self.phase = Phase::Over,
            _ => {}
        }
        Ok(())
    }

    fn send_frame(&mut self, now: u64, frame: u32, cause: Cause) -> Result<()> {
        let tag = self.source.on_sent(now, frame, cause);
        self.send(now, tag, &Body::Audio { frame, cause })
    }

    fn tell(&mut self, now: u64, body: &Body) -> Result<()> {
        self.again = now + AGAIN;
        let tag = self.source.other();
        self.send(now, tag, body)
    }

    /// Whatever goes to the receiver is of the flow that the router counts.
    fn send(&mut self, now: u64, tag: u64, body: &Body) -> Result<()> {
        let header = self.rtt.header(now, self.session);
        let packet = self.cipher.seal(header, body, self.options.bytes.into())?;
        if let Some(sidekick) = &mut self.sidekick {
            sidekick.on_sent(now, tag, &packet);
        }
        send(&self.socket, &packet, self.options.connect);
        Ok(())
    }

    fn finish(mut self) -> Result<()> {
        let now = monotonic();
        let complete = self.phase == Phase::Over;
        let (sent, nack, quack) = self.source.counts();
        let socket = &self.socket;
        let report = Report {
            app: "media",
            complete,
            frames: self.frame,
            sent,
            retransmitted: Retransmitted { nack, quack },
            sidekick: self.sidekick.as_mut().map(|sidekick| sidekick.close(now, socket)),
            rtt_ms: self.rtt.get().map(|nanos| rounded(nanos as f64 / 1e6)),
        };
        print_json(&report, self.options.json.as_deref())?;
        let seconds = PATIENCE / 1_000_000_000;
        ensure!(self.phase != Phase::Starting, "no answer in {seconds} s");
        ensure!(complete, "the receiver did not say in {seconds} s that it has all");
        Ok(())
    }
}
