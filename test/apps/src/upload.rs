// SPDX-License-Identifier: GPL-2.0-or-later
//! An upload with quinn, from a sender on Wi-Fi, as the Sidekick paper's HTTP/3 client
//! (NSDI '24, section 5): what a quACK tells is lost is sent again at once, the same bytes,
//! below QUIC; and such a loss does not cut the congestion window.
//!
//! The client sends a number of bytes of the [`pattern`] on a bidirectional stream; the
//! server answers with how many came, as a big-endian u64.

mod congestion;
mod repair;

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use quinn::{ConnectionError, Endpoint, EndpointConfig, Runtime, TokioRuntime};
use serde::Serialize;

use crate::download::{self, ClientOptions, Progress};
use crate::endpoint::{self, QuinnOptions};
use crate::options::ServerOptions;
use crate::output::print_json;
use crate::sidekick::{self, SidekickOptions};
use crate::{pattern, socket, tls};
use repair::Repair;

/// Packets by which a repaired one may be late before quinn takes it for lost: time alone
/// decides then, 9/8 of a round trip.
const PACKET_THRESHOLD: u32 = 10_000;

/// Runs the server until SIGTERM.
pub async fn server(options: &ServerOptions, quinn: &QuinnOptions) -> Result<()> {
    let endpoint = endpoint::server(options.listen, quinn.transport()?)?;
    endpoint::serve(endpoint, |connection| async move {
        loop {
            let (mut send, mut receive) = match connection.accept_bi().await {
                Ok(streams) => streams,
                Err(ConnectionError::ApplicationClosed(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut received = 0;
            while let Some(chunk) = receive.read_chunk(usize::MAX, true).await? {
                ensure!(pattern::matches(received, &chunk.bytes), "corrupt near {received}");
                received += chunk.bytes.len() as u64;
            }
            send.write_all(&received.to_be_bytes()).await?;
            send.finish()?;
        }
    })
    .await
}

/// What is said of Sidekick after the result.
#[derive(Serialize)]
struct Report {
    #[serde(flatten)]
    sidekick: sidekick::Report,
    /// Datagrams sent again.
    resent: u64,
    /// Congestion events that were none.
    ignored_events: u64,
}

/// Runs one upload and prints the result.
pub async fn client(
    options: &ClientOptions,
    quinn: &QuinnOptions,
    sidekick: &SidekickOptions,
) -> Result<()> {
    let mut transport = quinn.transport()?;
    let std_socket = socket::bind(socket::any_port_for(options.connect))?;
    let port = std_socket.local_addr()?.port();
    let mut wrapped = TokioRuntime.wrap_udp_socket(std_socket)?;
    let repair = Repair::start(sidekick, wrapped.clone(), port, options.connect)?;
    if let Some(repair) = &repair {
        let controller = congestion::Factory::new(quinn.controller(), repair.shared());
        transport
            .congestion_controller_factory(Arc::new(controller))
            .enable_segmentation_offload(false)
            .packet_threshold(PACKET_THRESHOLD);
        wrapped = repair.socket();
    }
    let mut endpoint = Endpoint::new_with_abstract_socket(
        EndpointConfig::default(),
        None,
        wrapped,
        Arc::new(TokioRuntime),
    )?;
    endpoint.set_default_client_config(endpoint::client_config(tls::client()?, transport)?);
    let mut progress = Progress::begin();
    let upload = upload(&endpoint, options, &mut progress);
    let result = match tokio::time::timeout(options.limit(), upload).await {
        Ok(result) => result,
        Err(_) => Err(options.too_late()),
    };
    let report = repair.map(|repair| {
        let (sidekick, resent, ignored_events) = repair.finish();
        Report { sidekick, resent, ignored_events }
    });
    let told = progress.told("upload", "quinn", result.is_ok());
    let mut told = serde_json::to_value(told)?;
    told["sidekick"] = serde_json::to_value(report)?;
    print_json(&told, options.json())?;
    endpoint::close(&endpoint, "done").await;
    result
}

async fn upload(
    endpoint: &Endpoint,
    options: &ClientOptions,
    progress: &mut Progress,
) -> Result<()> {
    let connection = endpoint::connect(endpoint, options.connect)?.await.context("handshake")?;
    progress.connected();
    let (mut send, mut receive) = connection.open_bi().await?;
    let mut offset = 0;
    while offset < options.bytes {
        let part = download::next_part(offset, options.bytes);
        send.write_all(part).await?;
        offset += part.len() as u64;
    }
    send.finish()?;
    let mut answer = [0; 8];
    receive.read_exact(&mut answer).await?;
    progress.uploaded(u64::from_be_bytes(answer));
    progress.ended(options.bytes)
}
