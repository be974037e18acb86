// SPDX-License-Identifier: GPL-2.0-or-later
//! The receiver with its socket.

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::PathBuf;

use anyhow::Result;
use linkem::sched::{self, monotonic};
use serde::Serialize;

use super::packet::{Body, Cipher, Header, MAX_NACKS};
use super::playout::{Counts, Playout};
use super::rtt::Rtt;
use super::{PACKET, receive, send};
use crate::options::ServerOptions;
use crate::output::{print_json, rounded};
use crate::socket;
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
    /// The result was printed.
    over: bool,
}

#[derive(Serialize)]
struct Report {
    app: &'static str,
    complete: bool,
    #[serde(flatten)]
    counts: Counts,
    dejitter_ms: Summary,
    rtt_ms: Option<f64>,
    dejitters_ms: Vec<f64>,
}

struct Server<'a> {
    socket: UdpSocket,
    cipher: Cipher,
    stream: Option<Stream>,
    json: Option<&'a PathBuf>,
}

/// Receives streams until SIGTERM, one at a time, and prints a result for each.
pub fn run(options: &ServerOptions, json: Option<&PathBuf>) -> Result<()> {
    sched::set_exact_timers()?;
    let terminate = sched::termination_fd()?;
    let socket = socket::bind(options.listen)?;
    socket.set_nonblocking(true)?;
    print_json(&serde_json::json!({"listening": socket.local_addr()?}), None)?;
    let mut server = Server { socket, cipher: Cipher::new()?, stream: None, json };
    let mut buffer = [0; PACKET];
    loop {
        let until = server.next_timeout();
        let timeout = until.map(|until| until.saturating_sub(monotonic()));
        let [_, ended] = sched::wait([server.socket.as_fd(), terminate.as_fd()], timeout)?;
        if ended {
            return server.finish(false);
        }
        while let Some((length, from)) = receive(&server.socket, &mut buffer)? {
            let now = monotonic();
            if let Ok((header, body)) = server.cipher.open(&mut buffer[..length]) {
                server.take(now, from, &header, &body)?;
            }
        }
        server.poll(monotonic())?;
    }
}

impl Server<'_> {
    fn next_timeout(&self) -> Option<u64> {
        let stream = self.stream.as_ref().filter(|stream| !stream.over)?;
        let next = stream.report.min(stream.heard + SILENCE);
        Some(stream.playout.next_timeout().map_or(next, |at| at.min(next)))
    }

    fn take(&mut self, now: u64, from: SocketAddr, header: &Header, body: &Body) -> Result<()> {
        let known = self.stream.as_ref().is_some_and(|stream| stream.session == header.session);
        if let Body::Start { frames } = body
            && !known
        {
            self.finish(false)?;
            self.stream = Some(Stream {
                session: header.session,
                sender: from,
                rtt: Rtt::default(),
                playout: Playout::new((*frames).min(MAX_FRAMES)),
                heard: now,
                report: now,
                over: false,
            });
        }
        let Some(stream) = self.stream.as_mut().filter(|stream| stream.session == header.session)
        else {
            return Ok(());
        };
        // It may come from elsewhere after a while, through a router that forgot.
        (stream.sender, stream.heard) = (from, now);
        stream.rtt.take(now, header);
        match body {
            // Told again, it was not answered.
            Body::Start { .. } => stream.report = now,
            Body::Audio { frame, .. } => stream.playout.on_frame(now, *frame),
            Body::End => {
                stream.playout.on_end(now);
                if stream.playout.finished() {
                    let header = stream.rtt.header(now, stream.session);
                    send(&self.socket, &self.cipher.seal(header, &Body::Done, 0)?, from);
                    self.finish(true)?;
                }
            }
            Body::Report { .. } | Body::Done => {}
        }
        Ok(())
    }

    /// What is due.
    fn poll(&mut self, now: u64) -> Result<()> {
        let Some(stream) = self.stream.as_mut().filter(|stream| !stream.over) else {
            return Ok(());
        };
        if now >= stream.heard + SILENCE {
            return self.finish(false);
        }
        let missing = stream.playout.poll(now, stream.rtt.get(), MAX_NACKS);
        if missing.is_empty() && now < stream.report {
            return Ok(());
        }
        stream.report = now + REPORT;
        let header = stream.rtt.header(now, stream.session);
        let packet = self.cipher.seal(header, &Body::Report { missing }, 0)?;
        send(&self.socket, &packet, stream.sender);
        Ok(())
    }

    /// Prints the result, once.
    fn finish(&mut self, complete: bool) -> Result<()> {
        let Some(stream) = self.stream.as_mut().filter(|stream| !stream.over) else {
            return Ok(());
        };
        stream.over = true;
        // To hundredths: the rest is noise.
        let millis = |wait: &u64| (*wait as f64 / 1e4).round() / 100.0;
        let waits: Vec<f64> = stream.playout.waits().iter().map(millis).collect();
        let report = Report {
            app: "media",
            complete,
            counts: stream.playout.counts(),
            dejitter_ms: Summary::of(waits.clone()),
            rtt_ms: stream.rtt.get().map(|nanos| rounded(nanos as f64 / 1e6)),
            dejitters_ms: waits,
        };
        print_json(&report, self.json.map(PathBuf::as_path))
    }
}
