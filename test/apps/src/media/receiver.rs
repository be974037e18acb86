// SPDX-License-Identifier: GPL-2.0-or-later
//! The receiver without its socket: packets and times in, packets and results out.

use std::net::SocketAddr;

use anyhow::Result;
use serde::Serialize;

use super::packet::{Body, Cipher, Header, MAX_NACKS};
use super::playout::{Counts, Playout};
use super::rtt::Rtt;
use crate::output::rounded;
use crate::summary::Summary;

/// How often the sender is told a time, so that both know the round trip.
const REPORT: u64 = 100_000_000;
/// A sender that says nothing for so long has gone.
const SILENCE: u64 = 5_000_000_000;
/// A year of audio.
const MAX_FRAMES: u32 = 1 << 30;

/// One stream.
struct Stream {
    session: u64,
    sender: SocketAddr,
    rtt: Rtt,
    playout: Playout,
    heard: u64,
    report: u64,
    /// The result was given.
    over: bool,
}

/// What came of one stream.
#[derive(Debug, Serialize)]
pub struct Report {
    app: &'static str,
    complete: bool,
    #[serde(flatten)]
    counts: Counts,
    dejitter_ms: Summary,
    rtt_ms: Option<f64>,
    dejitters_ms: Vec<f64>,
}

/// What there is to do for whoever has the socket.
#[derive(Debug)]
pub enum Output {
    /// Send this.
    Packet(SocketAddr, Vec<u8>),
    /// A stream has ended.
    Report(Box<Report>),
}

/// Receives streams, one at a time. Times are in nanoseconds.
pub struct Receiver {
    cipher: Cipher,
    stream: Option<Stream>,
    out: Vec<Output>,
}

impl Receiver {
    /// One that has heard nothing.
    pub fn new() -> Result<Receiver> {
        Ok(Receiver { cipher: Cipher::new()?, stream: None, out: Vec::new() })
    }

    /// When to poll, if nothing comes before.
    pub fn next_timeout(&self) -> Option<u64> {
        let stream = self.stream.as_ref().filter(|stream| !stream.over)?;
        let next = stream.report.min(stream.heard + SILENCE);
        Some(stream.playout.next_timeout().map_or(next, |at| at.min(next)))
    }

    /// All that there is to do since the last time, in order.
    pub fn outputs(&mut self) -> Vec<Output> {
        std::mem::take(&mut self.out)
    }

    /// A packet came.
    pub fn take(&mut self, now: u64, from: SocketAddr, bytes: &mut [u8]) -> Result<()> {
        let Ok((header, body)) = self.cipher.open(bytes) else { return Ok(()) };
        let known = self.stream.as_ref().is_some_and(|stream| stream.session == header.session);
        if let Body::Start { frames } = body
            && !known
        {
            self.begin(now, from, &header, frames);
        }
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.session == header.session)
        else {
            return Ok(());
        };
        // It may come from elsewhere after a while, through a router that forgot.
        (stream.sender, stream.heard) = (from, now);
        stream.rtt.take(now, &header);
        match body {
            // Told again, it was not answered.
            Body::Start { .. } => stream.report = now,
            Body::Audio { frame, .. } => stream.playout.on_frame(now, frame),
            Body::End => {
                stream.playout.on_end(now);
                if stream.playout.finished() {
                    self.send(now, &Body::Done)?;
                    self.finish(true);
                }
            }
            Body::Report { .. } | Body::Done => {}
        }
        Ok(())
    }

    fn begin(&mut self, now: u64, sender: SocketAddr, header: &Header, frames: u32) {
        self.finish(false);
        self.stream = Some(Stream {
            session: header.session,
            sender,
            rtt: Rtt::default(),
            playout: Playout::new(frames.min(MAX_FRAMES)),
            heard: now,
            report: now,
            over: false,
        });
    }

    /// Does what is due.
    pub fn poll(&mut self, now: u64) -> Result<()> {
        let Some(stream) = self.stream.as_mut().filter(|stream| !stream.over) else {
            return Ok(());
        };
        if now >= stream.heard + SILENCE {
            self.finish(false);
            return Ok(());
        }
        let missing = stream.playout.poll(now, stream.rtt.get(), MAX_NACKS);
        if missing.is_empty() && now < stream.report {
            return Ok(());
        }
        stream.report = now + REPORT;
        self.send(now, &Body::Report { missing })
    }

    fn send(&mut self, now: u64, body: &Body) -> Result<()> {
        let Some(stream) = &self.stream else { return Ok(()) };
        let header = stream.rtt.header(now, stream.session);
        self.out.push(Output::Packet(stream.sender, self.cipher.seal(header, body, 0)?));
        Ok(())
    }

    /// Gives the result, once.
    pub fn finish(&mut self, complete: bool) {
        let Some(stream) = self.stream.as_mut().filter(|stream| !stream.over) else { return };
        stream.over = true;
        // To hundredths: the rest is noise.
        let millis = |wait: &u64| (*wait as f64 / 1e4).round() / 100.0;
        let waits: Vec<f64> = stream.playout.waits().iter().map(millis).collect();
        self.out.push(Output::Report(Box::new(Report {
            app: "media",
            complete,
            counts: stream.playout.counts(),
            dejitter_ms: Summary::of(waits.clone()),
            rtt_ms: stream.rtt.get().map(|nanos| rounded(nanos as f64 / 1e6)),
            dejitters_ms: waits,
        })));
    }
}
