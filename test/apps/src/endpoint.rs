// SPDX-License-Identifier: GPL-2.0-or-later
//! What both applications share on quinn: options and endpoints.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use quinn::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn::crypto::rustls::{QuicClientConfig, QuicServerConfig};
use quinn::{ClientConfig, Endpoint, EndpointConfig, ServerConfig, TokioRuntime, TransportConfig};

use crate::options::{Cc, TransportOptions};
use crate::output::{print_json, print_sender};
use crate::{HOST, IDLE, program, socket, tls};

/// Options of quinn's servers and clients.
#[derive(Clone, Debug, clap::Args)]
pub struct QuinnOptions {
    /// What every stack has.
    #[command(flatten)]
    pub common: TransportOptions,
    /// Use UDP segmentation offload, so that links see bursts in large frames
    #[arg(long)]
    gso: bool,
}

impl QuinnOptions {
    /// The congestion controller.
    pub fn controller(&self) -> Arc<dyn ControllerFactory + Send + Sync> {
        match self.common.cc {
            Cc::Cubic => Arc::new(CubicConfig::default()),
            Cc::Newreno => Arc::new(NewRenoConfig::default()),
            Cc::Bbr => Arc::new(BbrConfig::default()),
        }
    }

    /// quinn's configuration; what is not set here has quinn's default.
    pub fn transport(&self) -> Result<TransportConfig> {
        let mut transport = TransportConfig::default();
        let cc = self.controller();
        transport.congestion_controller_factory(cc).enable_segmentation_offload(self.gso);
        transport.max_idle_timeout(Some(IDLE.try_into()?));
        if let Some(mtu) = self.common.mtu {
            transport.initial_mtu(mtu).min_mtu(mtu).mtu_discovery_config(None);
        }
        Ok(transport)
    }
}

/// Runs a program's future to its end on a runtime of this one thread.
pub fn run(options: &QuinnOptions, program: impl Future<Output = Result<()>>) -> ExitCode {
    program::run(options.common.rt, || {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(program)
    })
}

/// A listening endpoint with a certificate of its own making.
pub fn server(listen: SocketAddr, transport: TransportConfig) -> Result<Endpoint> {
    let tls = QuicServerConfig::try_from(tls::server()?)?;
    let mut config = ServerConfig::with_crypto(Arc::new(tls));
    config.transport_config(Arc::new(transport));
    let endpoint = Endpoint::new(
        EndpointConfig::default(),
        Some(config),
        socket::bind(listen)?,
        Arc::new(TokioRuntime),
    )?;
    Ok(endpoint)
}

/// An endpoint that connects from any port and believes any certificate.
pub fn client(connect: SocketAddr, transport: TransportConfig) -> Result<Endpoint> {
    client_with(connect, client_config(tls::client()?, transport)?)
}

/// The configuration of a client with TLS settings of its own.
pub fn client_config(
    tls: rustls::ClientConfig,
    transport: TransportConfig,
) -> Result<ClientConfig> {
    let mut config = ClientConfig::new(Arc::new(QuicClientConfig::try_from(tls)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// The same with a configuration that may be shared.
pub fn client_with(connect: SocketAddr, config: ClientConfig) -> Result<Endpoint> {
    let any = socket::any_port_for(connect);
    let mut endpoint =
        Endpoint::new(EndpointConfig::default(), None, socket::bind(any)?, Arc::new(TokioRuntime))?;
    endpoint.set_default_client_config(config);
    Ok(endpoint)
}

/// Starts the handshake with a server.
pub fn connect(endpoint: &Endpoint, address: SocketAddr) -> Result<quinn::Connecting> {
    Ok(endpoint.connect(address, HOST)?)
}

/// Tells the other sides that this one goes, and sees that they are told.
pub async fn close(endpoint: &Endpoint, reason: &str) {
    endpoint.close(0u32.into(), reason.as_bytes());
    let _ = tokio::time::timeout(Duration::from_secs(1), endpoint.wait_idle()).await;
}

/// Serves connections with `handle` until SIGTERM or SIGINT. Prints the address
/// that it listens on as one JSON object.
pub async fn serve<H, F>(endpoint: Endpoint, handle: H) -> Result<()>
where
    H: Fn(quinn::Connection) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Result<()>> + Send,
{
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    print_json(&serde_json::json!({"listening": endpoint.local_addr()?}), None)?;
    loop {
        let incoming = tokio::select! {
            incoming = endpoint.accept() => incoming.context("the endpoint is closed")?,
            _ = terminate.recv() => break,
            _ = tokio::signal::ctrl_c() => break,
        };
        let peer = incoming.remote_address();
        let connecting = match incoming.accept() {
            Ok(connecting) => connecting,
            Err(error) => {
                eprintln!("{peer}: {error}");
                continue;
            }
        };
        let handle = handle.clone();
        tokio::spawn(async move {
            let served = async {
                // Early data is answered before the handshake is done.
                let connection = match connecting.into_0rtt() {
                    Ok((connection, _)) => connection,
                    Err(connecting) => connecting.await?,
                };
                let served = handle(connection.clone()).await;
                let path = connection.stats().path;
                print_sender(path.sent_packets, path.lost_packets, None)?;
                served
            };
            if let Err(error) = served.await {
                eprintln!("{peer}: {error:#}");
            }
        });
    }
    close(&endpoint, "the server ends").await;
    Ok(())
}
