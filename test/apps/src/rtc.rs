// SPDX-License-Identifier: GPL-2.0-or-later
//! [`crate::video`] with quinn.

use std::time::Instant;

use anyhow::{Context, Result};
use linkem::sched::monotonic;
use quinn::{Connection, ConnectionError};
use tokio::sync::mpsc;

use crate::endpoint::{self, QuinnOptions};
use crate::options::ServerOptions;
use crate::video::{Arrivals, ClientOptions, REQUEST_BYTES, Request};

/// Runs the server until SIGTERM.
pub async fn server(options: &ServerOptions, quinn: &QuinnOptions) -> Result<()> {
    let mut transport = quinn.transport()?;
    // Older frames first: their viewer is waiting for them. quinn's default would
    // share the link between all frames under way.
    transport.send_fairness(false);
    let endpoint = endpoint::server(options.listen, transport)?;
    endpoint::serve(endpoint, |connection| async move {
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
    let mut request = [0; REQUEST_BYTES];
    receive.read_exact(&mut request).await?;
    let request = Request::decode(request)?;
    let mut ticks = ticks(request)?;
    while let Some((frame, generated)) = ticks.recv().await {
        // A frame that must wait for room must not delay the next one's generation.
        tokio::spawn(send_frame(connection.clone(), frame, request.frame(frame, generated)));
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
async fn send_frame(connection: Connection, frame: u32, data: Vec<u8>) {
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

/// Receives one video and prints the result.
pub async fn client(options: &ClientOptions, quinn: &QuinnOptions) -> Result<()> {
    let request = options.request()?;
    let mut transport = quinn.transport()?;
    // By default the 101st frame under way would wait for one of the others: that
    // would measure this limit and not the transport.
    transport.max_concurrent_uni_streams(request.frames.into());
    let endpoint = endpoint::client(options.connect, transport)?;
    let mut arrivals = Arrivals::new(request);
    let receiving = receive_video(&endpoint, options, request, &mut arrivals);
    let result = match tokio::time::timeout(request.limit(), receiving).await {
        Ok(result) => result,
        Err(_) => arrivals.too_late(),
    };
    arrivals.report("quinn", options)?;
    endpoint::close(&endpoint, "done").await;
    result
}

async fn receive_video(
    endpoint: &quinn::Endpoint,
    options: &ClientOptions,
    request: Request,
    arrivals: &mut Arrivals,
) -> Result<()> {
    let connection = endpoint::connect(endpoint, options.connect)?.await.context("handshake")?;
    let (mut send, _receive) = connection.open_bi().await?;
    send.write_all(&request.encode()).await?;
    send.finish()?;
    let (sender, mut frames) = mpsc::unbounded_channel();
    let bytes = arrivals.frame_bytes();
    while !arrivals.complete() {
        tokio::select! {
            stream = connection.accept_uni() => {
                let (mut stream, sender) = (stream?, sender.clone());
                tokio::spawn(async move {
                    let data = stream.read_to_end(bytes).await.context("a frame");
                    sender.send((data, monotonic()))
                });
            }
            frame = frames.recv() => {
                let (data, now) = frame.expect("we hold a sender");
                arrivals.take(&data?, now)?;
            }
        }
    }
    Ok(())
}
