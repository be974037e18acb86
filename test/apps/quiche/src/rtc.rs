// SPDX-License-Identifier: GPL-2.0-or-later
//! [`pemi_apps::video`] with quiche.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use anyhow::{Result, ensure};
use linkem::sched::monotonic;
use pemi_apps::options::{ServerOptions, TransportOptions};
use pemi_apps::video::{Arrivals, ClientOptions, REQUEST_BYTES, Request};
use quiche::Connection;

use crate::client::{Client, Dialogue, End};
use crate::{Side, config, server};

/// The stream that a client opens first.
const STREAM: u64 = 0;
/// The server's unidirectional streams are this and every fourth one after it.
const FIRST_FRAME_STREAM: u64 = 3;
/// quiche's default; with the same for all streams their order decides.
const URGENCY: u8 = 127;

/// Runs the server until SIGTERM.
pub fn server(options: &ServerOptions, transport: &TransportOptions) -> Result<()> {
    server::serve(options, &mut config::server(transport)?, Camera::default)
}

/// What a server has to send.
#[derive(Default)]
struct Camera {
    asked: Vec<u8>,
    video: Option<Video>,
}

struct Video {
    request: Request,
    /// When it began, by both clocks.
    start: Instant,
    start_ns: u64,
    /// Frames that have been generated.
    frames: u32,
    /// Their streams with what quiche has not taken of them, oldest first.
    unsent: VecDeque<(u64, Vec<u8>, usize)>,
}

impl Side for Camera {
    fn advance(&mut self, connection: &mut Connection) -> Result<()> {
        while self.video.is_none() && connection.stream_readable(STREAM) {
            let mut part = [0; REQUEST_BYTES + 1];
            let (length, ended) = connection.stream_recv(STREAM, &mut part)?;
            self.asked.extend_from_slice(&part[..length]);
            if ended {
                let request = Request::decode(self.asked.as_slice().try_into()?)?;
                self.video = Some(Video::begin(request));
            }
        }
        match &mut self.video {
            Some(video) => video.advance(connection),
            None => Ok(()),
        }
    }

    fn next(&self) -> Option<Instant> {
        self.video.as_ref()?.next()
    }
}

impl Video {
    fn begin(request: Request) -> Video {
        let (start, start_ns) = (Instant::now(), monotonic());
        Video { request, start, start_ns, frames: 0, unsent: VecDeque::new() }
    }

    fn next(&self) -> Option<Instant> {
        let left = self.frames < self.request.frames;
        left.then(|| self.start + self.request.offset(self.frames))
    }

    fn advance(&mut self, connection: &mut Connection) -> Result<()> {
        while self.next().is_some_and(|next| next <= Instant::now()) {
            let generated = self.start_ns + self.request.offset(self.frames).as_nanos() as u64;
            let stream = FIRST_FRAME_STREAM + 4 * u64::from(self.frames);
            self.unsent.push_back((stream, self.request.frame(self.frames, generated), 0));
            self.frames += 1;
        }
        while let Some((stream, data, sent)) = self.unsent.front_mut() {
            if *sent == 0 {
                // Older frames first: their viewer is waiting for them. By default
                // quiche shares the link between all frames under way.
                match connection.stream_priority(*stream, URGENCY, false) {
                    Ok(()) => {}
                    Err(quiche::Error::StreamLimit) => break,
                    Err(error) => return Err(error.into()),
                }
            }
            match connection.stream_send(*stream, &data[*sent..], true) {
                Ok(taken) => *sent += taken,
                // No room; this is called again when there is some.
                Err(quiche::Error::Done) => break,
                Err(error) => return Err(error.into()),
            }
            if *sent < data.len() {
                break;
            }
            self.unsent.pop_front();
        }
        Ok(())
    }
}

/// Receives one video and prints the result.
pub fn client(options: &ClientOptions, transport: &TransportOptions) -> Result<()> {
    let request = options.request()?;
    let mut config = config::client(transport)?;
    // With fewer, frames would wait for the end of others: that would measure this
    // limit and not the transport.
    config.set_initial_max_streams_uni(request.frames.into());
    let mut dialogue = Dialogue::new(options.connect, &mut config)?;
    let mut viewer = Viewer {
        request,
        asked: false,
        arrivals: Arrivals::new(request),
        partial: HashMap::new(),
        buffer: vec![0; 65_536],
    };
    let result = match dialogue.hold(&mut viewer, request.limit()) {
        Ok(End::Done) => Ok(()),
        Ok(End::TooLate) => viewer.arrivals.too_late(),
        Err(error) => Err(error),
    };
    viewer.arrivals.report("quiche", options)?;
    dialogue.close()?;
    result
}

struct Viewer {
    request: Request,
    asked: bool,
    arrivals: Arrivals,
    /// Of frames under way, by their streams.
    partial: HashMap<u64, Vec<u8>>,
    buffer: Vec<u8>,
}

impl Side for Viewer {
    fn advance(&mut self, connection: &mut Connection) -> Result<()> {
        if !self.asked {
            let request = self.request.encode();
            let taken = connection.stream_send(STREAM, &request, true)?;
            ensure!(taken == request.len(), "there is no room for the request");
            self.asked = true;
        }
        while let Some(stream) = connection.stream_readable_next() {
            let data = self.partial.entry(stream).or_default();
            while connection.stream_readable(stream) {
                let (length, ended) = connection.stream_recv(stream, &mut self.buffer)?;
                data.extend_from_slice(&self.buffer[..length]);
                ensure!(data.len() <= self.arrivals.frame_bytes(), "a frame is too long");
                if ended {
                    // On the request's stream a server only says that it has no more.
                    if stream != STREAM {
                        self.arrivals.take(data, monotonic())?;
                    }
                    self.partial.remove(&stream);
                    break;
                }
            }
        }
        Ok(())
    }
}

impl Client for Viewer {
    fn done(&self) -> bool {
        self.arrivals.complete()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_next_frame_is_due_on_the_schedule() {
        let mut video = Video::begin(Request::decode(encoded(2, 40)).unwrap());
        assert_eq!(video.next(), Some(video.start));
        video.frames = 1;
        assert_eq!(video.next(), Some(video.start + Duration::from_millis(25)));
        video.frames = 2;
        assert_eq!(video.next(), None);
    }

    fn encoded(frames: u32, fps: u32) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        for (to, field) in bytes.chunks_exact_mut(4).zip([frames, fps, 12_500]) {
            to.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }
}
