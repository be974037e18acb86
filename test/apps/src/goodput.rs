//! Download of a number of bytes: how long does it take?
//!
//! The client asks on a bidirectional stream with the number of bytes as a
//! big-endian u64; the server answers with as many bytes of the [`pattern`].

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use quinn::{ConnectionError, SendStream};
use serde::Serialize;

use crate::common::{self, ServerOptions, TransportOptions, rounded};
use crate::pattern;

/// Options of the client.
#[derive(Debug, clap::Args)]
pub struct ClientOptions {
    /// The server's address and port
    #[arg(long)]
    connect: SocketAddr,
    /// How much to ask for
    #[arg(long)]
    bytes: u64,
    /// Seconds after which to give up
    #[arg(long, default_value_t = 120.0, value_parser = seconds)]
    timeout: f64,
    /// Also write the result to this file
    #[arg(long)]
    json: Option<PathBuf>,
    /// What both sides have.
    #[command(flatten)]
    pub transport: TransportOptions,
}

fn seconds(text: &str) -> Result<f64> {
    let value: f64 = text.parse()?;
    ensure!(value > 0.0 && value <= 1e6, "not a time in seconds");
    Ok(value)
}

#[derive(Debug, Serialize)]
struct Report {
    app: &'static str,
    stack: &'static str,
    bytes: u64,
    fct_s: Option<f64>,
    handshake_s: Option<f64>,
    goodput_mbps: f64,
    complete: bool,
}

/// Runs the server until SIGTERM.
pub async fn server(options: &ServerOptions) -> Result<()> {
    let endpoint = common::server(options.listen, options.transport.transport()?)?;
    common::serve(endpoint, |connection| async move {
        loop {
            let (send, mut receive) = match connection.accept_bi().await {
                Ok(streams) => streams,
                Err(ConnectionError::ApplicationClosed(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut request = [0; 8];
            receive.read_exact(&mut request).await?;
            answer(send, u64::from_be_bytes(request)).await?;
        }
    })
    .await
}

async fn answer(mut send: SendStream, bytes: u64) -> Result<()> {
    let mut offset = 0;
    while offset < bytes {
        let piece = pattern::piece(offset);
        let length = (bytes - offset).min(piece.len() as u64) as usize;
        send.write_all(&piece[..length]).await?;
        offset += length as u64;
    }
    send.finish()?;
    Ok(())
}

/// What a client has seen so far.
#[derive(Debug, Default)]
struct Progress {
    handshake: Option<Duration>,
    received: u64,
}

/// Runs one download and prints the result.
pub async fn client(options: &ClientOptions) -> Result<()> {
    let endpoint = common::client(options.connect, options.transport.transport()?)?;
    let mut progress = Progress::default();
    let start = Instant::now();
    let limit = Duration::from_secs_f64(options.timeout);
    let download = download(&endpoint, options, start, &mut progress);
    let result = match tokio::time::timeout(limit, download).await {
        Ok(result) => result,
        Err(_) => Err(anyhow::anyhow!("not complete after {} s", options.timeout)),
    };
    let elapsed = start.elapsed().as_secs_f64();
    let report = Report {
        app: "goodput",
        stack: "quinn",
        bytes: progress.received,
        fct_s: result.is_ok().then(|| rounded(elapsed)),
        handshake_s: progress.handshake.map(|time| rounded(time.as_secs_f64())),
        goodput_mbps: rounded(progress.received as f64 * 8e-6 / elapsed),
        complete: result.is_ok(),
    };
    common::print_json(&report, options.json.as_deref())?;
    common::close(&endpoint, "done").await;
    result
}

async fn download(
    endpoint: &quinn::Endpoint,
    options: &ClientOptions,
    start: Instant,
    progress: &mut Progress,
) -> Result<()> {
    let connection = common::connect(endpoint, options.connect)?.await.context("handshake")?;
    progress.handshake = Some(start.elapsed());
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&options.bytes.to_be_bytes()).await?;
    send.finish()?;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        if !pattern::matches(chunk.offset, &chunk.bytes) {
            bail!("the data is corrupt near byte {}", chunk.offset);
        }
        progress.received += chunk.bytes.len() as u64;
    }
    ensure!(
        progress.received == options.bytes,
        "the data ends after {} of {} bytes",
        progress.received,
        options.bytes
    );
    Ok(())
}
