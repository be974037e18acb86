// SPDX-License-Identifier: GPL-2.0-or-later
//! [`pemi_apps::download`] with s2n-quic.

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use pemi_apps::HOST;
use pemi_apps::download::{self, ClientOptions, Progress, REQUEST_BYTES};
use pemi_apps::options::{ServerOptions, TransportOptions};
use pemi_apps::output::print_json;
use s2n_quic::client::Connect;
use s2n_quic::stream::BidirectionalStream;
use s2n_quic::{Client, Connection, connection};
use tokio::signal::unix::{SignalKind, signal};

use crate::endpoint;

/// How long to wait for the other side to have heard of the end.
const CLOSING: Duration = Duration::from_secs(1);

/// Runs the server until SIGTERM or SIGINT.
pub async fn server(options: &ServerOptions, transport: &TransportOptions) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut server = endpoint::server(options.listen, transport)?;
    print_json(&serde_json::json!({"listening": server.local_addr()?}), None)?;
    loop {
        let connection = tokio::select! {
            connection = server.accept() => connection.context("the endpoint is closed")?,
            _ = terminate.recv() => return Ok(()),
            _ = tokio::signal::ctrl_c() => return Ok(()),
        };
        tokio::spawn(async move {
            if let Err(error) = serve(connection).await {
                eprintln!("{error:#}");
            }
        });
    }
}

async fn serve(mut connection: Connection) -> Result<()> {
    loop {
        match connection.accept_bidirectional_stream().await {
            Ok(Some(stream)) => answer(stream).await?,
            Ok(None) | Err(connection::Error::Application { .. }) => return Ok(()),
            Err(error) => return Err(error.into()),
        }
    }
}

async fn answer(mut stream: BidirectionalStream) -> Result<()> {
    let mut request = Vec::with_capacity(REQUEST_BYTES);
    while let Some(part) = stream.receive().await? {
        request.extend_from_slice(&part);
    }
    let bytes = u64::from_be_bytes(request.as_slice().try_into().context("not a request")?);
    let mut offset = 0;
    while offset < bytes {
        let part = download::next_part(offset, bytes);
        stream.send(Bytes::from_static(part)).await?;
        offset += part.len() as u64;
    }
    stream.finish()?;
    Ok(())
}

/// Runs one download and prints the result.
pub async fn client(options: &ClientOptions, transport: &TransportOptions) -> Result<()> {
    let mut client = endpoint::client(options.connect, transport)?;
    let mut progress = Progress::begin();
    let download = download(&client, options, &mut progress);
    let result = match tokio::time::timeout(options.limit(), download).await {
        Ok(result) => result,
        Err(_) => Err(options.too_late()),
    };
    progress.report("s2n", options, result.is_ok())?;
    // A server that does not answer any more is nobody's loss.
    let _ = tokio::time::timeout(CLOSING, client.wait_idle()).await;
    result
}

async fn download(client: &Client, options: &ClientOptions, progress: &mut Progress) -> Result<()> {
    let server = Connect::new(options.connect).with_server_name(HOST);
    let mut connection = client.connect(server).await.context("handshake")?;
    progress.connected();
    let mut stream = connection.open_bidirectional_stream().await?;
    stream.send(Bytes::copy_from_slice(&options.request())).await?;
    stream.finish()?;
    while let Some(part) = stream.receive().await? {
        progress.take(&part)?;
    }
    connection.close(0u32.into());
    progress.ended(options.bytes)
}
