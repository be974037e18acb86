// SPDX-License-Identifier: GPL-2.0-or-later
//! [`crate::download`] with quinn.

use anyhow::{Context, Result};
use quinn::{ConnectionError, SendStream};

use crate::download::{self, ClientOptions, Progress, REQUEST_BYTES};
use crate::endpoint::{self, QuinnOptions};
use crate::options::ServerOptions;

/// Runs the server until SIGTERM.
pub async fn server(options: &ServerOptions, quinn: &QuinnOptions) -> Result<()> {
    let endpoint = endpoint::server(options.listen, quinn.transport()?)?;
    endpoint::serve(endpoint, |connection| async move {
        loop {
            let (send, mut receive) = match connection.accept_bi().await {
                Ok(streams) => streams,
                Err(ConnectionError::ApplicationClosed(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut request = [0; REQUEST_BYTES];
            receive.read_exact(&mut request).await?;
            answer(send, u64::from_be_bytes(request)).await?;
        }
    })
    .await
}

async fn answer(mut send: SendStream, bytes: u64) -> Result<()> {
    let mut offset = 0;
    while offset < bytes {
        let part = download::next_part(offset, bytes);
        send.write_all(part).await?;
        offset += part.len() as u64;
    }
    send.finish()?;
    Ok(())
}

/// Runs one download and prints the result.
pub async fn client(options: &ClientOptions, quinn: &QuinnOptions) -> Result<()> {
    let endpoint = endpoint::client(options.connect, quinn.transport()?)?;
    let mut progress = Progress::begin();
    let download = download(&endpoint, options, &mut progress);
    let result = match tokio::time::timeout(options.limit(), download).await {
        Ok(result) => result,
        Err(_) => Err(options.too_late()),
    };
    progress.report("quinn", options, result.is_ok())?;
    endpoint::close(&endpoint, "done").await;
    result
}

async fn download(
    endpoint: &quinn::Endpoint,
    options: &ClientOptions,
    progress: &mut Progress,
) -> Result<()> {
    let connection = endpoint::connect(endpoint, options.connect)?.await.context("handshake")?;
    progress.connected();
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&options.request()).await?;
    send.finish()?;
    while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
        progress.take(&chunk.bytes)?;
    }
    progress.ended(options.bytes)
}
