// SPDX-License-Identifier: GPL-2.0-or-later
//! Real-time video, whatever the stack: what is asked for, sent and measured.
//!
//! The client asks on a bidirectional stream for a number of frames, frames a
//! second and bytes a frame (three big-endian u32). The server generates them on
//! a fixed schedule and sends each on a unidirectional stream of its own: frame
//! number (u32), the time it was due to be generated (u64, CLOCK_MONOTONIC in ns,
//! so that both must run on one machine), and [`pattern`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

use crate::output::{print_json, rounded};
use crate::pattern;
use crate::summary::Summary;

/// Bytes of a request.
pub const REQUEST_BYTES: usize = 12;
/// Frame number and time.
const HEADER_BYTES: usize = 12;
const MAX_FRAME_BYTES: u32 = 16 << 20;
const MAX_FRAMES: u32 = 1_000_000;
/// How long after the last frame was generated frames may still arrive.
const GRACE: Duration = Duration::from_secs(30);

/// Options of the client.
#[derive(Debug, clap::Args)]
pub struct ClientOptions {
    /// The server's address and port
    #[arg(long)]
    pub connect: SocketAddr,
    /// How long frames are generated
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Frames a second
    #[arg(long, default_value_t = 30)]
    fps: u32,
    /// Rate of the video in kbit/s
    #[arg(long, default_value_t = 3000)]
    kbps: u32,
    /// Also write the result to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

impl ClientOptions {
    /// What they ask for, if it is not out of bounds.
    pub fn request(&self) -> Result<Request> {
        Request::new(self.seconds, self.fps, self.kbps)
    }
}

/// What the client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// How many.
    pub frames: u32,
    /// How many a second.
    fps: u32,
    frame_bytes: u32,
}

impl Request {
    fn new(seconds: f64, fps: u32, kbps: u32) -> Result<Request> {
        ensure!(fps > 0, "--fps must be at least 1");
        let frames = (seconds * f64::from(fps)).round();
        let request = Request {
            frames: frames as u32,
            fps,
            frame_bytes: (u64::from(kbps) * 1000 / 8 / u64::from(fps)).try_into()?,
        };
        request.checked()
    }

    fn checked(self) -> Result<Request> {
        let bytes = self.frame_bytes;
        ensure!(
            (1..=MAX_FRAMES).contains(&self.frames) && (1..=10_000).contains(&self.fps),
            "{} frames at {} a second: wanted 1 to {MAX_FRAMES} at 1 to 10000",
            self.frames,
            self.fps
        );
        ensure!(
            (HEADER_BYTES as u32..=MAX_FRAME_BYTES).contains(&bytes),
            "frames of {bytes} bytes: wanted {HEADER_BYTES} to {MAX_FRAME_BYTES}"
        );
        Ok(self)
    }

    /// What the client sends.
    pub fn encode(self) -> [u8; REQUEST_BYTES] {
        let mut bytes = [0; REQUEST_BYTES];
        let fields = [self.frames, self.fps, self.frame_bytes];
        for (to, field) in bytes.chunks_exact_mut(4).zip(fields) {
            to.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    /// What the server receives, if it is not out of bounds.
    pub fn decode(bytes: [u8; REQUEST_BYTES]) -> Result<Request> {
        let field =
            |at| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Request { frames: field(0), fps: field(4), frame_bytes: field(8) }.checked()
    }

    /// When a frame is generated, after the start.
    pub fn offset(self, frame: u32) -> Duration {
        Duration::from_nanos(u64::from(frame) * 1_000_000_000 / u64::from(self.fps))
    }

    /// How long frames are worth waiting for, after the start.
    pub fn limit(self) -> Duration {
        self.offset(self.frames) + GRACE
    }

    /// A frame as it is sent; `generated` is by CLOCK_MONOTONIC in nanoseconds.
    pub fn frame(self, number: u32, generated: u64) -> Vec<u8> {
        let bytes = self.frame_bytes as usize;
        let mut data = Vec::with_capacity(bytes);
        data.extend_from_slice(&number.to_be_bytes());
        data.extend_from_slice(&generated.to_be_bytes());
        while data.len() < bytes {
            let piece = pattern::piece(data.len() as u64);
            data.extend_from_slice(&piece[..piece.len().min(bytes - data.len())]);
        }
        data
    }
}

/// What has come of a video.
#[derive(Debug)]
pub struct Arrivals {
    request: Request,
    delays_ms: Vec<Option<f64>>,
    missing: usize,
}

impl Arrivals {
    /// Nothing yet.
    pub fn new(request: Request) -> Arrivals {
        let frames = request.frames as usize;
        Arrivals { request, delays_ms: vec![None; frames], missing: frames }
    }

    /// The longest stream that makes sense.
    pub fn frame_bytes(&self) -> usize {
        self.request.frame_bytes as usize
    }

    /// A frame is complete; `now` is by CLOCK_MONOTONIC in nanoseconds.
    pub fn take(&mut self, data: &[u8], now: u64) -> Result<()> {
        ensure!(
            data.len() == self.frame_bytes()
                && pattern::matches(HEADER_BYTES as u64, &data[HEADER_BYTES..]),
            "a frame is corrupt"
        );
        let (number, rest) = data.split_first_chunk().context("a frame is short")?;
        let (generated, _) = rest.split_first_chunk().context("a frame is short")?;
        let number = u32::from_be_bytes(*number);
        match self.delays_ms.get_mut(number as usize) {
            Some(delay @ None) => {
                let nanos = now.saturating_sub(u64::from_be_bytes(*generated));
                // In microseconds: the rest is noise.
                *delay = Some((nanos / 1000) as f64 / 1000.0);
            }
            _ => bail!("frame {number} came twice or was not asked for"),
        }
        self.missing -= 1;
        Ok(())
    }

    /// Every frame has come.
    pub fn complete(&self) -> bool {
        self.missing == 0
    }

    /// The time is over: frames that have not come are lost, unless none has.
    pub fn too_late(&self) -> Result<()> {
        let limit = self.request.limit().as_secs();
        ensure!(self.missing < self.delays_ms.len(), "nothing arrived in {limit} s");
        Ok(())
    }

    /// Prints the result.
    pub fn report(self, stack: &'static str, options: &ClientOptions) -> Result<()> {
        let report = Report::new(stack, self.request, self.delays_ms);
        print_json(&report, options.json.as_deref())
    }
}

#[derive(Debug, Serialize)]
struct Report {
    app: &'static str,
    stack: &'static str,
    frames: usize,
    frames_lost: usize,
    frame_bytes: u32,
    frame_delay_ms: Summary,
    frame_jitter_ms: Summary,
    delays_ms: Vec<Option<f64>>,
}

impl Report {
    fn new(stack: &'static str, request: Request, delays_ms: Vec<Option<f64>>) -> Report {
        let arrived: Vec<f64> = delays_ms.iter().copied().flatten().collect();
        // A frame that did not come took at least as long as it was waited for: left
        // out, a call that broke down would look like a good one.
        let waited = |frame: usize| {
            let span = request.limit().saturating_sub(request.offset(frame as u32));
            rounded(span.as_secs_f64() * 1000.0)
        };
        let at_least = delays_ms.iter().enumerate().map(|(n, delay)| delay.unwrap_or(waited(n)));
        let at_least = at_least.collect();
        let jitter = arrived.windows(2).map(|pair| rounded((pair[1] - pair[0]).abs())).collect();
        Report {
            app: "rtc",
            stack,
            frames: delays_ms.len(),
            frames_lost: delays_ms.len() - arrived.len(),
            frame_bytes: request.frame_bytes,
            frame_delay_ms: Summary::of(at_least),
            frame_jitter_ms: Summary::of(jitter),
            delays_ms,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_size_of_the_rate() {
        let request = Request::new(20.0, 30, 3000).unwrap();
        assert_eq!((request.frames, request.frame_bytes), (600, 12_500));
        assert_eq!(Request::decode(request.encode()).unwrap(), request);
        for (seconds, fps, kbps) in [(20.0, 0, 3000), (0.0, 30, 3000), (1.0, 1000, 1)] {
            assert!(Request::new(seconds, fps, kbps).is_err());
        }
    }

    #[test]
    fn the_schedule_does_not_drift() {
        let request = Request::new(1000.0, 30, 3000).unwrap();
        assert_eq!(request.offset(30_000), Duration::from_secs(1000));
        assert_eq!(request.offset(1), Duration::from_nanos(33_333_333));
    }

    #[test]
    fn a_frame_is_taken_once_and_only_whole() {
        let request = Request::new(0.1, 30, 3000).unwrap();
        let mut arrivals = Arrivals::new(request);
        let frame = request.frame(1, 5_000_000);
        assert!(arrivals.take(&frame[..frame.len() - 1], 9_000_000).is_err());
        let mut flipped = frame.clone();
        *flipped.last_mut().unwrap() ^= 1;
        assert!(arrivals.take(&flipped, 9_000_000).is_err());
        assert!(arrivals.too_late().is_err());
        arrivals.take(&frame, 9_000_900).unwrap();
        assert_eq!(arrivals.delays_ms, [None, Some(4.0), None]);
        arrivals.too_late().unwrap();
        assert!(arrivals.take(&frame, 9_000_000).is_err(), "twice");
        assert!(arrivals.take(&request.frame(3, 0), 1).is_err(), "not asked for");
        assert!(!arrivals.complete());
        arrivals.take(&request.frame(0, 0), 1).unwrap();
        arrivals.take(&request.frame(2, 0), 1).unwrap();
        assert!(arrivals.complete());
    }

    #[test]
    fn lost_frames_took_as_long_as_was_waited_and_are_left_out_of_the_jitter() {
        let request = Request::new(0.1, 40, 1000).unwrap();
        let delays = vec![Some(10.0), None, Some(12.5), Some(11.0)];
        let report = Report::new("quinn", request, delays);
        assert_eq!((report.frames, report.frames_lost), (4, 1));
        assert_eq!(report.frame_delay_ms.max, Some(30_075.0));
        assert_eq!(report.frame_delay_ms.p50, Some(11.0));
        assert_eq!(report.frame_jitter_ms.max, Some(2.5));
        assert_eq!(report.frame_jitter_ms.mean, Some(2.0));
        let json = serde_json::to_value(&report).unwrap();
        assert!(json["delays_ms"][1].is_null());
    }
}
