// SPDX-License-Identifier: GPL-2.0-or-later
//! The conversation of [`crate::connect`] over TCP and TLS 1.3.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustls::pki_types::ServerName;
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::signal::unix::{SignalKind, signal};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::options::Cc;
use crate::output::print_json;
use crate::{HOST, tls};

/// Serves until SIGTERM or SIGINT.
pub async fn serve(listen: SocketAddr, cc: Cc) -> Result<()> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let acceptor = TlsAcceptor::from(Arc::new(tls::server()?));
    let listener = TcpListener::bind(listen).await?;
    let name = match cc {
        Cc::Cubic => "cubic",
        Cc::Newreno => "reno",
        Cc::Bbr => "bbr",
    };
    SockRef::from(&listener)
        .set_tcp_congestion(name.as_bytes())
        .with_context(|| format!("the kernel's TCP has no {name}"))?;
    print_json(&serde_json::json!({"listening": listener.local_addr()?}), None)?;
    loop {
        let (stream, peer) = tokio::select! {
            accepted = listener.accept() => accepted?,
            _ = terminate.recv() => return Ok(()),
            _ = interrupt.recv() => return Ok(()),
        };
        let acceptor = acceptor.clone();
        tokio::spawn(async move {
            if let Err(error) = answer(acceptor, stream).await {
                eprintln!("{peer}: {error:#}");
            }
        });
    }
}

async fn answer(acceptor: TlsAcceptor, stream: TcpStream) -> Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = acceptor.accept(stream).await?;
    let byte = stream.read_u8().await?;
    stream.write_u8(byte).await?;
    stream.shutdown().await?;
    Ok(())
}

/// A client that begins every conversation anew.
pub struct Dialer {
    server: SocketAddr,
    connector: TlsConnector,
}

impl Dialer {
    /// Nothing is sent yet.
    pub fn new(server: SocketAddr) -> Result<Dialer> {
        let mut tls = tls::client()?;
        tls.resumption = rustls::client::Resumption::disabled();
        Ok(Dialer { server, connector: TlsConnector::from(Arc::new(tls)) })
    }

    /// The time from the first packet to the first byte of the answer.
    pub async fn dial(&self) -> Result<Duration> {
        let start = Instant::now();
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        let mut stream = self.connector.connect(ServerName::try_from(HOST)?, stream).await?;
        stream.write_u8(0).await?;
        stream.flush().await?;
        stream.read_u8().await?;
        Ok(start.elapsed())
    }
}
