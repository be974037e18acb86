// SPDX-License-Identifier: GPL-2.0-or-later
//! The sender without its socket: what comes and times in, packets out.

use std::collections::VecDeque;
use std::net::SocketAddr;

use anyhow::{Result, ensure};
use serde::Serialize;

use super::packet::{Body, Cause, Cipher};
use super::rtt::Rtt;
use super::source::Source;
use crate::output::rounded;
use crate::sidekick::{self, Sidekick, SidekickOptions};

/// How often the start and the end are told until they are answered.
const AGAIN: u64 = 200_000_000;
/// And for how long.
const PATIENCE: u64 = 10_000_000_000;
/// From the first question on, at most this is waited for the router before audio
/// begins, so that its session covers all of it: what is compared is not the start.
const ROUTER: u64 = 500_000_000;

/// What is sent, to whom, and when.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// The receiver.
    pub receiver: SocketAddr,
    /// Of audio.
    pub frames: u32,
    /// Between two frames, ns.
    pub interval: u64,
    /// Of a packet's UDP payload, at least.
    pub bytes: usize,
    /// For Sidekick.
    pub sidekick: SidekickOptions,
}

#[derive(Debug, Serialize)]
struct Retransmitted {
    nack: u64,
    quack: u64,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Report {
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

/// The sender of one stream. Times are in nanoseconds.
pub struct Sender {
    stream: Stream,
    cipher: Cipher,
    session: u64,
    rtt: Rtt,
    source: Source,
    sidekick: Option<Sidekick>,
    phase: Phase,
    /// The next frame, and when the first was due.
    frame: u32,
    start: u64,
    /// When the start or the end is told again, and when that has no sense any more.
    again: u64,
    until: u64,
    out: VecDeque<(SocketAddr, Vec<u8>)>,
}

impl Sender {
    /// One that sends from this port, and begins now.
    pub fn new(stream: Stream, port: u16, now: u64) -> Result<Sender> {
        let cipher = Cipher::new()?;
        Ok(Sender {
            sidekick: Sidekick::new(&stream.sidekick, cipher.random()?, port, stream.receiver, 0),
            session: cipher.random()?,
            stream,
            cipher,
            rtt: Rtt::default(),
            source: Source::default(),
            phase: Phase::Starting,
            frame: 0,
            start: now + ROUTER,
            again: now,
            until: now + PATIENCE,
            out: VecDeque::new(),
        })
    }

    /// Whether there is nothing more to do, or nobody to do it for.
    pub fn is_over(&self, now: u64) -> bool {
        self.phase == Phase::Over || now >= self.until
    }

    /// Does what is due.
    pub fn poll(&mut self, now: u64) -> Result<()> {
        while let Some(tag) = self.sidekick.as_mut().and_then(|sidekick| sidekick.next_lost(now)) {
            if let Some(frame) = self.source.on_lost(now, tag) {
                self.send_frame(now, frame, Cause::Quack)?;
            }
        }
        match self.phase {
            Phase::Starting if now >= self.again => {
                self.tell(now, &Body::Start { frames: self.stream.frames })?;
            }
            Phase::Sending => {
                while self.frame < self.stream.frames && self.due() <= now {
                    self.send_frame(now, self.frame, Cause::Due)?;
                    self.frame += 1;
                }
                if self.frame >= self.stream.frames && self.due() <= now {
                    self.phase = Phase::Ending;
                    self.until = now + PATIENCE;
                    self.tell(now, &Body::End)?;
                }
            }
            Phase::Ending if now >= self.again => self.tell(now, &Body::End)?,
            _ => {}
        }
        self.tell_router(now);
        Ok(())
    }

    /// When to poll, if nothing comes before.
    pub fn next_timeout(&self) -> u64 {
        let next = if self.phase == Phase::Sending { self.due() } else { self.again };
        let sidekick = self.sidekick.as_ref().and_then(Sidekick::next_timeout);
        sidekick.map_or(next, |at| at.min(next))
    }

    /// What goes out, and to whom.
    pub fn poll_packet(&mut self) -> Option<(SocketAddr, Vec<u8>)> {
        self.out.pop_front()
    }

    /// When the next frame is due; the end one interval after the last.
    fn due(&self) -> u64 {
        self.start + u64::from(self.frame) * self.stream.interval
    }

    /// A packet came.
    pub fn take(&mut self, now: u64, from: SocketAddr, bytes: &mut [u8]) -> Result<()> {
        if self.sidekick.as_mut().is_some_and(|sidekick| sidekick.take(now, from, bytes)) {
            return Ok(());
        }
        let Ok((header, body)) = self.cipher.open(bytes) else { return Ok(()) };
        if header.session != self.session || from != self.stream.receiver {
            return Ok(());
        }
        self.rtt.take(now, &header);
        match body {
            Body::Report { missing } => {
                self.begin(now);
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

    /// The receiver has answered.
    fn begin(&mut self, now: u64) {
        if self.phase != Phase::Starting {
            return;
        }
        self.phase = Phase::Sending;
        if self.sidekick.is_none() {
            self.start = now;
        }
        self.start = self.start.max(now);
        let length = u64::from(self.stream.frames) * self.stream.interval;
        self.until = self.start + length + PATIENCE;
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
        let packet = self.cipher.seal(header, body, self.stream.bytes)?;
        if let Some(sidekick) = &mut self.sidekick {
            sidekick.on_sent(now, tag, &packet);
        }
        self.out.push_back((self.stream.receiver, packet));
        Ok(())
    }

    fn tell_router(&mut self, now: u64) {
        let Some(sidekick) = &mut self.sidekick else { return };
        while let Some(message) = sidekick.poll_message(now) {
            self.out.push_back(message);
        }
    }

    /// Ends it: what came of it, after which there may be a last packet.
    pub fn close(&mut self, now: u64) -> Report {
        let (sent, nack, quack) = self.source.counts();
        let sidekick = self.sidekick.as_mut().map(|sidekick| sidekick.close(now));
        self.tell_router(now);
        Report {
            app: "media",
            complete: self.phase == Phase::Over,
            frames: self.frame,
            sent,
            retransmitted: Retransmitted { nack, quack },
            sidekick,
            rtt_ms: self.rtt.get().map(|nanos| rounded(nanos as f64 / 1e6)),
        }
    }

    /// An error if the receiver does not have all that was sent.
    pub fn success(&self) -> Result<()> {
        let seconds = PATIENCE / 1_000_000_000;
        ensure!(self.phase != Phase::Starting, "no answer in {seconds} s");
        let complete = self.phase == Phase::Over;
        ensure!(complete, "the receiver did not say in {seconds} s that it has all");
        Ok(())
    }
}
