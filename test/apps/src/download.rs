// SPDX-License-Identifier: GPL-2.0-or-later
//! A download, whatever the stack: what is asked for, checked and measured.
//!
//! The client asks on a bidirectional stream with the number of bytes as a
//! big-endian u64; the server answers with as many bytes of the [`pattern`].

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde::Serialize;

use crate::output::{print_json, rounded};
use crate::pattern;

/// Bytes of a request.
pub const REQUEST_BYTES: usize = 8;

/// Options of the client.
#[derive(Debug, clap::Args)]
pub struct ClientOptions {
    /// The server's address and port
    #[arg(long)]
    pub connect: SocketAddr,
    /// How much to ask for, or to send
    #[arg(long)]
    pub bytes: u64,
    /// Seconds after which to give up
    #[arg(long, default_value_t = 120.0, value_parser = seconds)]
    timeout: f64,
    /// Also write the result to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

fn seconds(text: &str) -> Result<f64> {
    let value: f64 = text.parse()?;
    ensure!(value > 0.0 && value <= 1e6, "not a time in seconds");
    Ok(value)
}

impl ClientOptions {
    /// How long it may take.
    pub fn limit(&self) -> Duration {
        Duration::from_secs_f64(self.timeout)
    }

    /// Where else the result is to be written.
    pub fn json(&self) -> Option<&Path> {
        self.json.as_deref()
    }

    /// What is said when it took longer.
    pub fn too_late(&self) -> anyhow::Error {
        anyhow::anyhow!("not complete after {} s", self.timeout)
    }

    /// What the client sends.
    pub fn request(&self) -> [u8; REQUEST_BYTES] {
        self.bytes.to_be_bytes()
    }
}

/// The part of the answer that comes next, at most as long as fits into a piece of
/// the pattern; empty at the end.
pub fn next_part(offset: u64, bytes: u64) -> &'static [u8] {
    let piece = pattern::piece(offset);
    &piece[..(bytes - offset).min(piece.len() as u64) as usize]
}

/// What a client has seen so far.
#[derive(Debug)]
pub struct Progress {
    start: Instant,
    handshake: Option<Duration>,
    received: u64,
}

impl Progress {
    /// To be called before the first packet is sent.
    pub fn begin() -> Progress {
        Progress { start: Instant::now(), handshake: None, received: 0 }
    }

    /// The handshake is done.
    pub fn connected(&mut self) {
        self.handshake.get_or_insert_with(|| self.start.elapsed());
    }

    /// The next bytes of the answer have come.
    pub fn take(&mut self, data: &[u8]) -> Result<()> {
        ensure!(
            pattern::matches(self.received, data),
            "the data is corrupt near byte {}",
            self.received
        );
        self.received += data.len() as u64;
        Ok(())
    }

    /// The answer has ended: with all that was asked for?
    pub fn ended(&self, bytes: u64) -> Result<()> {
        ensure!(self.received == bytes, "the data ends after {} of {bytes} bytes", self.received);
        Ok(())
    }

    /// The other side says that so many bytes came to it.
    pub fn uploaded(&mut self, bytes: u64) {
        self.received = bytes;
    }

    /// How far it came by now, whether or not that is all.
    pub fn told(&self, app: &'static str, stack: &'static str, complete: bool) -> Report {
        let elapsed = self.start.elapsed().as_secs_f64();
        Report {
            app,
            stack,
            bytes: self.received,
            fct_s: complete.then(|| rounded(elapsed)),
            handshake_s: self.handshake.map(|time| rounded(time.as_secs_f64())),
            goodput_mbps: rounded(self.received as f64 * 8e-6 / elapsed),
            complete,
        }
    }

    /// Prints that of a download.
    pub fn report(
        &self,
        stack: &'static str,
        options: &ClientOptions,
        complete: bool,
    ) -> Result<()> {
        print_json(&self.told("goodput", stack, complete), options.json())
    }
}

/// The result.
#[derive(Debug, Serialize)]
pub struct Report {
    app: &'static str,
    stack: &'static str,
    bytes: u64,
    fct_s: Option<f64>,
    handshake_s: Option<f64>,
    goodput_mbps: f64,
    complete: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_is_what_the_client_checks() {
        let bytes = 3 * pattern::PERIOD as u64 + 5;
        let mut progress = Progress::begin();
        let mut offset = 0;
        while offset < bytes {
            let part = next_part(offset, bytes);
            assert!(progress.take(&part[1..]).is_err(), "a byte is missing");
            progress.take(part).unwrap();
            offset += part.len() as u64;
        }
        assert!(next_part(bytes, bytes).is_empty());
        progress.ended(bytes).unwrap();
        assert!(progress.ended(bytes + 1).is_err());
    }
}
