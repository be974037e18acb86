// SPDX-License-Identifier: GPL-2.0-or-later
//! `pemi replay`: the engine over a capture taken on a router.
//!
//! It says what the daemon would have done, within limits: **a capture does not
//! change**. Copies never arrive, so a hole stays open until the server's own
//! repair, and `repaired` counts only holes that were filled about when a copy
//! could have done it. Replies that would have been held show their real times.
//! Echo probes cannot be answered; [`Options::local_rtt`] stands in for them.
//!
//! Capture files are read by code of our own rather than by a crate. Measured with
//! the `openwrt` profile (x86-64, 636 KiB without `replay`), reading alone makes the
//! binary 12 KiB larger; with pcap-parser 0.17 it would be 35 KiB and with pcap-file
//! 2.0 53 KiB, and four packages or more for a router's build to fetch. Both survive
//! cut files and hostile lengths and borrow packets from a buffer, but neither says
//! where in the file it stopped and what it expected there, and pcap-file 2.0 refuses
//! packets longer than the snap length in the header, which real files have.
//!
//! - `input`: bytes and offsets
//! - `packet`, `pcap`, `pcapng`: what a packet is, and the two formats
//! - `link`: from a frame to an IP packet
//! - `select`: which packets count, and their direction
//! - `player`: the engine in the capture's time
//! - `book`, `report`: what is written down, and how it is printed
//! - `truth`: the score against linkem's log
//! - `options`: the command line

pub(crate) mod book;
pub(crate) mod input;
pub mod link;
pub(crate) mod options;
pub(crate) mod packet;
pub mod pcap;
pub(crate) mod pcapng;
pub(crate) mod player;
pub(crate) mod report;
pub(crate) mod select;
pub(crate) mod truth;

use std::fs::File;
use std::io::{self, BufReader, Read, Write};
use std::os::fd::AsFd;

use pemi_engine::Time;
use pemi_engine::packet::find;

pub use options::Options;

use crate::config::{self, Config};
use input::Error;
use link::Content;
use packet::Packet;
use pcap::Capture;
use player::{Player, Shown};
use report::{Counts, Report};
use select::{Sides, Twice};
use truth::Truth;

/// What is longer was several packets on the wire: the path to a server has Ethernet's MTU at most.
const LONGEST: usize = 1500;
/// Between two reads of the file.
const BUFFER: usize = 1 << 16;

/// Reads a capture and reports. On error the file, the offset and what was
/// expected there; what was read before is reported all the same.
pub fn run(options: &Options, out: &mut impl Write) -> Result<(), String> {
    let config = settings(options)?;
    let truth = options.truth.as_deref().map(Truth::load).transpose()?;
    let name = options.file.display().to_string();
    let wrong = |what: String| format!("{name}: {what}");
    let file = match name.as_str() {
        // As a file, so that there is one kind of reader only.
        "-" => io::stdin().as_fd().try_clone_to_owned().map(File::from),
        _ => File::open(&options.file),
    };
    let file = file.map_err(|error| wrong(format!("cannot be read: {error}")))?;
    let reader = BufReader::with_capacity(BUFFER, file);
    let (report, result) = play(&name, reader, &config, truth, options);
    // Whoever reads it may have seen enough: `pemi replay FILE | head -3`.
    let _ = out.write_all(report.as_bytes());
    result.map_err(wrong)
}

/// The report on the capture that comes out of `reader`, and why it could not be read
/// to its end. Of `options` only those count that are about what is in a capture.
pub fn play(
    name: &str,
    reader: impl Read,
    config: &Config,
    truth: Option<Truth>,
    options: &Options,
) -> (String, Result<(), String>) {
    // What was captured has gone in its order.
    let engine = pemi_engine::Config { reorders: false, ..config.engine(true) };
    let mut replay = Replay {
        sides: Sides { ports: config.port.clone(), clients: options.client_net.clone() },
        twice: Twice::default(),
        player: Player::new(engine, options.local_rtt, truth),
        counts: Counts::default(),
        time: None,
    };
    let mut capture = match Capture::open(reader) {
        Ok(capture) => capture,
        Err(error) => return (String::new(), Err(error.to_string())),
    };
    let result = replay.play(&mut capture).map_err(|error| error.to_string());
    let error = result.as_ref().err().map(|error| format!("{name}: {error}"));
    (replay.report(name, error.as_deref(), options), result)
}

/// The daemon's settings; one engine gets the whole cache.
fn settings(options: &Options) -> Result<Config, String> {
    let mut config = match &options.config {
        None => Config::default(),
        Some(file) => {
            let (config, warnings) =
                config::load(file).map_err(|error| error.lines(file).join("\n"))?;
            warnings.iter().for_each(|warning| eprintln!("WARN {warning}"));
            config
        }
    };
    config.queues = 1;
    if !options.port.is_empty() {
        config.port.clone_from(&options.port);
    }
    Ok(config)
}

struct Replay {
    sides: Sides,
    twice: Twice,
    player: Player,
    counts: Counts,
    /// Of the first and the last packet.
    time: Option<(Time, Time)>,
}

impl Replay {
    fn play<R: Read>(&mut self, capture: &mut Capture<R>) -> Result<(), Error> {
        while let Some(packet) = capture.next_packet()? {
            self.packet(&packet)?;
        }
        Ok(())
    }

    fn packet(&mut self, packet: &Packet<'_>) -> Result<(), Error> {
        let content = link::content(packet.link, packet.frame).ok_or_else(|| {
            let supported = link::SUPPORTED;
            let what = format!("link type {} is not supported; expected: {supported}", packet.link);
            Error::new(packet.offset, what)
        })?;
        self.counts.read += 1;
        let (first, last) = self.time.unwrap_or((packet.time, packet.time));
        let time = packet.time.max(last);
        self.time = Some((first, time));
        let ip = match content {
            Content::Ip(ip) => ip,
            Content::Cut => {
                self.counts.cut += 1;
                return Ok(());
            }
            Content::Other => {
                self.counts.not_udp += 1;
                return Ok(());
            }
        };
        let Some(udp) = find(ip) else {
            self.counts.not_udp += 1;
            return Ok(());
        };
        let ends = udp.ends();
        let Some(direction) = self.sides.direction(ends.0, ends.1) else {
            self.counts.direction += 1;
            return Ok(());
        };
        if ip.len() > LONGEST {
            // As a ring of the daemon: nobody can say where one ends and the next begins.
            self.counts.merged += 1;
            self.player.gap(time);
            return Ok(());
        }
        let payload = udp.payload(ip);
        if self.twice.seen(time, ends, payload) {
            self.counts.twice += 1;
            return Ok(());
        }
        let shown = Shown { direction, source_destination: ends, packet: ip, payload };
        self.player.packet(time, &shown);
        Ok(())
    }

    fn report(mut self, file: &str, error: Option<&str>, options: &Options) -> String {
        let stats = self.player.finish();
        let report = Report {
            file,
            error,
            duration: self.time.map_or(0, |(first, last)| last.since(first)),
            counts: self.counts,
            flows: &self.player.book.flows(),
            unlisted: self.player.book.unlisted,
            stats,
            probes: self.player.probes,
            local_rtt: options.local_rtt,
            truth: self.player.truth.as_ref().map(Truth::score),
        };
        if options.json { format!("{}\n", report.json()) } else { report.text() }
    }
}
