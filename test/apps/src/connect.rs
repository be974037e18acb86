// SPDX-License-Identifier: GPL-2.0-or-later
//! How long from the first packet to the first byte of an answer?
//!
//! The client sends one byte as soon as it may, the server sends it back. Every time
//! from another port and, except with 0-RTT, as if for the first time.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint};
use serde::Serialize;

use crate::endpoint::{self, QuinnOptions};
use crate::options::ServerOptions;
use crate::output::{print_json, rounded};
use crate::summary::Summary;
use crate::{tcp, tls};

/// How often a session may have to be begun to get a ticket for the next one.
const TICKET_ATTEMPTS: usize = 10;

/// What connections are made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Stack {
    /// TCP and TLS 1.3.
    Tcp,
    /// QUIC.
    Quinn,
    /// QUIC with early data, to a server that is known.
    #[value(name = "quinn-0rtt")]
    Quinn0rtt,
}

impl Stack {
    fn name(self) -> &'static str {
        match self {
            Stack::Tcp => "tcp",
            Stack::Quinn => "quinn",
            Stack::Quinn0rtt => "quinn-0rtt",
        }
    }
}

/// Options of the client.
#[derive(Debug, clap::Args)]
pub struct ClientOptions {
    /// The server's address and port
    #[arg(long)]
    connect: SocketAddr,
    /// How many connections, one after the other
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    count: u32,
    /// Seconds after which to give one up
    #[arg(long, default_value_t = 10)]
    timeout: u32,
    /// Also write the result to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

#[derive(Debug, Serialize)]
struct Report {
    app: &'static str,
    stack: &'static str,
    connections: usize,
    failed: usize,
    connect_ms: Summary,
    times_ms: Vec<Option<f64>>,
}

impl Report {
    fn new(stack: Stack, times_ms: Vec<Option<f64>>) -> Report {
        let done: Vec<f64> = times_ms.iter().copied().flatten().collect();
        Report {
            app: "connect",
            stack: stack.name(),
            connections: times_ms.len(),
            failed: times_ms.len() - done.len(),
            connect_ms: Summary::of(done),
            times_ms,
        }
    }
}

/// Runs the server until SIGTERM.
pub async fn server(options: &ServerOptions, stack: Stack, quinn: &QuinnOptions) -> Result<()> {
    if stack == Stack::Tcp {
        return tcp::serve(options.listen, quinn.common.cc).await;
    }
    let endpoint = endpoint::server(options.listen, quinn.transport()?)?;
    endpoint::serve(endpoint, |connection| async move {
        loop {
            let (mut send, mut receive) = match connection.accept_bi().await {
                Ok(streams) => streams,
                Err(ConnectionError::ApplicationClosed(_)) => return Ok(()),
                Err(error) => return Err(error.into()),
            };
            let mut byte = [0];
            receive.read_exact(&mut byte).await?;
            send.write_all(&byte).await?;
            send.finish()?;
        }
    })
    .await
}

/// Connects again and again and prints the result.
pub async fn client(options: &ClientOptions, stack: Stack, quinn: &QuinnOptions) -> Result<()> {
    let dialer = match stack {
        Stack::Tcp => Dialer::Tcp(tcp::Dialer::new(options.connect)?),
        _ => Dialer::Quinn(QuinnDialer::new(options.connect, stack == Stack::Quinn0rtt, quinn)?),
    };
    let limit = Duration::from_secs(options.timeout.into());
    let mut times_ms = Vec::new();
    for number in 1..=options.count {
        let time = match tokio::time::timeout(limit, dialer.dial()).await {
            Ok(result) => result,
            Err(_) => Err(anyhow::anyhow!("no answer after {} s", options.timeout)),
        };
        times_ms.push(match time {
            Ok(time) => Some(rounded(time.as_secs_f64() * 1000.0)),
            Err(error) => {
                eprintln!("connection {number}: {error:#}");
                None
            }
        });
    }
    let report = Report::new(stack, times_ms);
    print_json(&report, options.json.as_deref())?;
    ensure!(report.failed < report.connections, "no connection came about");
    Ok(())
}

enum Dialer {
    Tcp(tcp::Dialer),
    Quinn(QuinnDialer),
}

impl Dialer {
    async fn dial(&self) -> Result<Duration> {
        match self {
            Dialer::Tcp(dialer) => dialer.dial().await,
            Dialer::Quinn(dialer) if dialer.early => dialer.dial_early().await,
            Dialer::Quinn(dialer) => dialer.dial().await,
        }
    }
}

struct QuinnDialer {
    server: SocketAddr,
    config: ClientConfig,
    early: bool,
}

impl QuinnDialer {
    fn new(server: SocketAddr, early: bool, quinn: &QuinnOptions) -> Result<QuinnDialer> {
        let mut tls = tls::client()?;
        tls.enable_early_data = early;
        if !early {
            tls.resumption = rustls::client::Resumption::disabled();
        }
        let config = endpoint::client_config(tls, quinn.transport()?)?;
        Ok(QuinnDialer { server, config, early })
    }

    fn endpoint(&self) -> Result<Endpoint> {
        endpoint::client_with(self.server, self.config.clone())
    }

    async fn dial(&self) -> Result<Duration> {
        let endpoint = self.endpoint()?;
        let start = Instant::now();
        let connection = endpoint::connect(&endpoint, self.server)?.await?;
        exchange(&connection).await?;
        let time = start.elapsed();
        endpoint::close(&endpoint, "done").await;
        Ok(time)
    }

    async fn dial_early(&self) -> Result<Duration> {
        for _ in 0..TICKET_ATTEMPTS {
            let endpoint = self.endpoint()?;
            let start = Instant::now();
            let time = match endpoint::connect(&endpoint, self.server)?.into_0rtt() {
                Ok((connection, accepted)) => {
                    exchange(&connection).await?;
                    let time = start.elapsed();
                    ensure!(accepted.await, "the server did not want early data");
                    Some(time)
                }
                Err(connecting) => {
                    let connection = connecting.await?;
                    exchange(&connection).await?;
                    // Tickets come with the first answer or, if that was the
                    // handshake's own, with the next.
                    exchange(&connection).await?;
                    None
                }
            };
            endpoint::close(&endpoint, "done").await;
            if let Some(time) = time {
                return Ok(time);
            }
        }
        anyhow::bail!("the server gave no ticket in {TICKET_ATTEMPTS} sessions")
    }
}

/// A byte there and back.
async fn exchange(connection: &Connection) -> Result<()> {
    let (mut send, mut receive) = connection.open_bi().await?;
    send.write_all(&[0]).await?;
    send.finish()?;
    receive.read_exact(&mut [0]).await.context("no answer")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_failed_is_counted_and_left_out_of_the_percentiles() {
        let report = Report::new(Stack::Quinn0rtt, vec![Some(50.0), None, Some(70.0)]);
        assert_eq!((report.connections, report.failed), (3, 1));
        assert_eq!(report.connect_ms.mean, Some(60.0));
        let json = serde_json::to_value(&report).unwrap();
        assert_eq!(json["stack"], "quinn-0rtt");
        assert!(json["times_ms"][1].is_null());
    }
}
