//! Real-time video: how late is each frame?
//!
//! The client asks on a bidirectional stream for a number of frames, frames a
//! second and bytes a frame (three big-endian u32). The server generates them on
//! a fixed schedule and sends each on a unidirectional stream of its own: frame
//! number (u32), the time it was due to be generated (u64, CLOCK_MONOTONIC in ns,
//! so that both must run on one machine), and [`pattern`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use linkem::sched::monotonic;
use quinn::{Connection, ConnectionError, RecvStream};
use serde::Serialize;
use tokio::sync::mpsc;

use crate::common::{self, ServerOptions, TransportOptions, rounded};
use crate::pattern;

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
    connect: SocketAddr,
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
    /// What both sides have.
    #[command(flatten)]
    pub transport: TransportOptions,
}

/// What the client asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    frames: u32,
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

    /// Also the server's check of what a client may ask for.
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

    fn encode(self) -> [u8; 12] {
        let mut bytes = [0; 12];
        let fields = [self.frames, self.fps, self.frame_bytes];
        for (to, field) in bytes.chunks_exact_mut(4).zip(fields) {
            to.copy_from_slice(&field.to_be_bytes());
        }
        bytes
    }

    fn decode(bytes: [u8; 12]) -> Request {
        let field =
            |at| u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        Request { frames: field(0), fps: field(4), frame_bytes: field(8) }
    }

    /// When a frame is generated, after the start.
    fn offset(self, frame: u32) -> Duration {
        Duration::from_nanos(u64::from(frame) * 1_000_000_000 / u64::from(self.fps))
    }
}

/// Runs the server until SIGTERM.
pub async fn server(options: &ServerOptions) -> Result<()> {
    let mut transport = options.transport.transport()?;
    // Older frames first: their viewer is waiting for them. quinn's default would
    // share the link between all frames under way.
    transport.send_fairness(false);
    let endpoint = common::server(options.listen, transport)?;
    common::serve(endpoint, |connection| async move {
        match stream_video(&connection).await {
            Err(error) if connection.close_reason().is_none() => {
                connection.close(1u32.into(), format!("{error:#}").as_bytes());
                Err(error)
            }
            // The client goes when it has all frames or has waited long enough.
            _ => match connection.closed().await {
                ConnectionError::ApplicationClosed(_) => Ok(()),
                error => Err(error.into()),
            },
        }
    })
    .await
}

async fn stream_video(connection: &Connection) -> Result<()> {
    let (_send, mut receive) = connection.accept_bi().await?;
    let mut request = [0; 12];
    receive.read_exact(&mut request).await?;
    let request = Request::decode(request).checked()?;
    let mut ticks = ticks(request)?;
    while let Some((frame, generated)) = ticks.recv().await {
        // A frame that must wait for room must not delay the next one's generation.
        tokio::spawn(send_frame(
            connection.clone(),
            frame,
            generated,
            request.frame_bytes as usize,
        ));
        if connection.close_reason().is_some() {
            break;
        }
    }
    Ok(())
}

/// Frame numbers and their times, when these have come. From a thread, because
/// the runtime's timers are up to a millisecond late.
fn ticks(request: Request) -> Result<mpsc::UnboundedReceiver<(u32, u64)>> {
    let (sender, receiver) = mpsc::unbounded_channel();
    let (start, start_ns) = (Instant::now(), monotonic());
    std::thread::Builder::new().name("ticks".into()).spawn(move || {
        for frame in 0..request.frames {
            let offset = request.offset(frame);
            std::thread::sleep((start + offset).saturating_duration_since(Instant::now()));
            let generated = start_ns + offset.as_nanos() as u64;
            if sender.send((frame, generated)).is_err() {
                break;
            }
        }
    })?;
    Ok(receiver)
}

/// Errors are left to the connection, which all of them come from.
async fn send_frame(connection: Connection, frame: u32, generated: u64, bytes: usize) {
    let mut data = Vec::with_capacity(bytes);
    data.extend_from_slice(&frame.to_be_bytes());
    data.extend_from_slice(&generated.to_be_bytes());
    while data.len() < bytes {
        let piece = pattern::piece(data.len() as u64);
        data.extend_from_slice(&piece[..piece.len().min(bytes - data.len())]);
    }
    let sent = async {
        let mut send = connection.open_uni().await?;
        send.write_all(&data).await?;
        send.finish()?;
        anyhow::Ok(())
    };
    if let Err(error) = sent.await
        && connection.close_reason().is_none()
    {
        eprintln!("frame {frame}: {error:#}");
    }
}

/// Mean and percentiles in milliseconds, by the nearest rank; null where there
/// was nothing.
#[derive(Debug, Default, PartialEq, Serialize)]
struct Summary {
    p50: Option<f64>,
    p90: Option<f64>,
    p99: Option<f64>,
    max: Option<f64>,
    mean: Option<f64>,
}

impl Summary {
    fn of(mut values: Vec<f64>) -> Summary {
        values.sort_unstable_by(f64::total_cmp);
        let count = values.len();
        let rank = |percent: usize| {
            let rank = (count * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied()
        };
        let mean = values.iter().sum::<f64>() / count as f64;
        Summary {
            p50: rank(50),
            p90: rank(90),
            p99: rank(99),
            max: rank(100),
            mean: (count > 0).then(|| rounded(mean)),
        }
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
    fn new(request: Request, delays_ms: Vec<Option<f64>>) -> Report {
        let arrived: Vec<f64> = delays_ms.iter().copied().flatten().collect();
        let jitter = arrived.windows(2).map(|pair| rounded((pair[1] - pair[0]).abs())).collect();
        Report {
            app: "rtc",
            stack: "quinn",
            frames: delays_ms.len(),
            frames_lost: delays_ms.len() - arrived.len(),
            frame_bytes: request.frame_bytes,
            frame_delay_ms: Summary::of(arrived),
            frame_jitter_ms: Summary::of(jitter),
            delays_ms,
        }
    }
}

/// Receives one video and prints the result.
pub async fn client(options: &ClientOptions) -> Result<()> {
    let request = Request::new(options.seconds, options.fps, options.kbps)?;
    let mut transport = options.transport.transport()?;
    // By default the 101st frame under way would wait for one of the others: that
    // would measure this limit and not the transport.
    transport.max_concurrent_uni_streams(request.frames.into());
    let endpoint = common::client(options.connect, transport)?;
    let mut delays_ms = vec![None; request.frames as usize];
    let limit = request.offset(request.frames) + GRACE;
    let receiving = receive_video(&endpoint, options.connect, request, &mut delays_ms);
    let result = match tokio::time::timeout(limit, receiving).await {
        Ok(result) => result,
        // Frames that have not come by now are reported as lost.
        Err(_) if delays_ms.iter().any(Option::is_some) => Ok(()),
        Err(_) => Err(anyhow::anyhow!("nothing arrived in {} s", limit.as_secs())),
    };
    common::print_json(&Report::new(request, delays_ms), options.json.as_deref())?;
    common::close(&endpoint, "done").await;
    result
}

async fn receive_video(
    endpoint: &quinn::Endpoint,
    address: SocketAddr,
    request: Request,
    delays_ms: &mut [Option<f64>],
) -> Result<()> {
    let connection = common::connect(endpoint, address)?.await.context("handshake")?;
    let (mut send, _receive) = connection.open_bi().await?;
    send.write_all(&request.encode()).await?;
    send.finish()?;
    let (sender, mut arrivals) = mpsc::unbounded_channel();
    let mut missing = delays_ms.len();
    while missing > 0 {
        tokio::select! {
            stream = connection.accept_uni() => {
                let receive = receive_frame(stream?, request);
                let sender = sender.clone();
                tokio::spawn(async move { sender.send(receive.await) });
            }
            arrival = arrivals.recv() => {
                let (frame, delay_ms) = arrival.expect("we hold a sender")?;
                match delays_ms.get_mut(frame as usize) {
                    Some(delay @ None) => *delay = Some(delay_ms),
                    _ => bail!("frame {frame} came twice or was not asked for"),
                }
                missing -= 1;
            }
        }
    }
    Ok(())
}

/// Frame number and delay in milliseconds.
async fn receive_frame(mut stream: RecvStream, request: Request) -> Result<(u32, f64)> {
    let bytes = request.frame_bytes as usize;
    let data = stream.read_to_end(bytes).await.context("a frame")?;
    let now = monotonic();
    ensure!(
        data.len() == bytes && pattern::matches(HEADER_BYTES as u64, &data[HEADER_BYTES..]),
        "a frame is corrupt"
    );
    let (frame, rest) = data.split_first_chunk().context("a frame is short")?;
    let (generated, _) = rest.split_first_chunk().context("a frame is short")?;
    let delay = now.saturating_sub(u64::from_be_bytes(*generated));
    // In microseconds: the rest is noise.
    let delay_ms = (delay / 1000) as f64 / 1000.0;
    Ok((u32::from_be_bytes(*frame), delay_ms))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_have_the_size_of_the_rate() {
        let request = Request::new(20.0, 30, 3000).unwrap();
        assert_eq!((request.frames, request.frame_bytes), (600, 12_500));
        assert_eq!(Request::decode(request.encode()), request);
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
    fn percentiles_are_nearest_ranks() {
        let summary = Summary::of((1..=200).rev().map(f64::from).collect());
        assert_eq!(
            summary,
            Summary {
                p50: Some(100.0),
                p90: Some(180.0),
                p99: Some(198.0),
                max: Some(200.0),
                mean: Some(100.5)
            }
        );
        assert_eq!(Summary::of(vec![]), Summary::default());
    }

    #[test]
    fn lost_frames_are_counted_and_left_out_of_the_jitter() {
        let request = Request::new(0.1, 40, 1000).unwrap();
        let delays = vec![Some(10.0), None, Some(12.5), Some(11.0)];
        let report = Report::new(request, delays);
        assert_eq!((report.frames, report.frames_lost), (4, 1));
        assert_eq!(report.frame_delay_ms.max, Some(12.5));
        assert_eq!(report.frame_jitter_ms.max, Some(2.5));
        assert_eq!(report.frame_jitter_ms.mean, Some(2.0));
        let json = serde_json::to_value(&report).unwrap();
        assert!(json["delays_ms"][1].is_null());
    }
}
