// SPDX-License-Identifier: GPL-2.0-or-later
//! [`pemi_apps::download`] with quiche.

use anyhow::{Result, ensure};
use pemi_apps::download::{self, ClientOptions, Progress, REQUEST_BYTES};
use pemi_apps::options::{ServerOptions, TransportOptions};
use quiche::Connection;

use crate::client::{Client, Dialogue, End};
use crate::{Side, config, server};

/// The stream that a client opens first.
const STREAM: u64 = 0;

/// Runs the server until SIGTERM.
pub fn server(options: &ServerOptions, transport: &TransportOptions) -> Result<()> {
    server::serve(options, &mut config::server(transport)?, Answer::default)
}

/// What a server has sent.
#[derive(Default)]
struct Answer {
    request: Vec<u8>,
    bytes: Option<u64>,
    sent: u64,
    finished: bool,
}

impl Side for Answer {
    fn advance(&mut self, connection: &mut Connection) -> Result<()> {
        while self.bytes.is_none() && connection.stream_readable(STREAM) {
            let mut part = [0; REQUEST_BYTES + 1];
            let (length, ended) = connection.stream_recv(STREAM, &mut part)?;
            self.request.extend_from_slice(&part[..length]);
            if ended {
                let request = self.request.as_slice().try_into();
                self.bytes = Some(u64::from_be_bytes(request?));
            }
        }
        let Some(bytes) = self.bytes else { return Ok(()) };
        while !self.finished {
            let part = download::next_part(self.sent, bytes);
            let last = self.sent + part.len() as u64 == bytes;
            let taken = match connection.stream_send(STREAM, part, last) {
                Ok(taken) => taken,
                // No room; this is called again when there is some.
                Err(quiche::Error::Done) => break,
                Err(error) => return Err(error.into()),
            };
            self.sent += taken as u64;
            self.finished = last && taken == part.len();
            if taken < part.len() {
                break;
            }
        }
        Ok(())
    }
}

/// Runs one download and prints the result.
pub fn client(options: &ClientOptions, transport: &TransportOptions) -> Result<()> {
    let mut dialogue = Dialogue::new(options.connect, &mut config::client(transport)?)?;
    let mut download = Download {
        progress: Progress::begin(),
        request: options.request(),
        asked: false,
        ended: false,
        buffer: vec![0; 65_536],
    };
    let result = match dialogue.hold(&mut download, options.limit()) {
        Ok(End::Done) => download.progress.ended(options.bytes),
        Ok(End::TooLate) => Err(options.too_late()),
        Err(error) => Err(error),
    };
    download.progress.report("quiche", options, result.is_ok())?;
    dialogue.close()?;
    result
}

struct Download {
    progress: Progress,
    request: [u8; REQUEST_BYTES],
    asked: bool,
    ended: bool,
    buffer: Vec<u8>,
}

impl Side for Download {
    fn advance(&mut self, connection: &mut Connection) -> Result<()> {
        if !self.asked {
            let taken = connection.stream_send(STREAM, &self.request, true)?;
            ensure!(taken == self.request.len(), "there is no room for the request");
            self.asked = true;
        }
        while !self.ended && connection.stream_readable(STREAM) {
            let (length, ended) = connection.stream_recv(STREAM, &mut self.buffer)?;
            self.progress.take(&self.buffer[..length])?;
            self.ended = ended;
        }
        Ok(())
    }
}

impl Client for Download {
    fn connected(&mut self) {
        self.progress.connected();
    }

    fn done(&self) -> bool {
        self.ended
    }
}
