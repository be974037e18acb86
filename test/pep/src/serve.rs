// SPDX-License-Identifier: GPL-2.0-or-later
//! Accepts connections and splits each.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use anyhow::Result;
use serde::Serialize;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;

use crate::cli::Options;
use crate::relay::{End, relay};
use crate::sockets;

/// Accepting fails when descriptors have run out; others will be closed soon.
const BREATH: Duration = Duration::from_millis(50);

/// What has been done so far.
#[derive(Debug, Default, Serialize)]
pub struct Totals {
    /// Connections accepted from clients.
    pub connections: AtomicU64,
    /// Of these, those whose server could not be reached; the client saw a reset.
    pub unreachable: AtomicU64,
    /// Of these, those that one side broke off.
    pub reset: AtomicU64,
    /// Of these, those that have not ended.
    pub open: AtomicU64,
    /// From servers to clients, of connections that ended in order.
    pub bytes_down: AtomicU64,
    /// From clients to servers, of connections that ended in order.
    pub bytes_up: AtomicU64,
}

/// Splits what a listener accepts, for ever.
pub async fn serve(
    listener: TcpListener,
    options: Arc<Options>,
    slots: Arc<Semaphore>,
    totals: Arc<Totals>,
) {
    loop {
        let slot = slots.clone().acquire_owned().await.expect("it is never closed");
        let (client, from) = match listener.accept().await {
            Ok(accepted) => accepted,
            Err(error) => {
                eprintln!("pep: warning: accept: {error}");
                tokio::time::sleep(BREATH).await;
                continue;
            }
        };
        let (options, totals) = (options.clone(), totals.clone());
        tokio::spawn(async move {
            totals.connections.fetch_add(1, Relaxed);
            totals.open.fetch_add(1, Relaxed);
            split(client, from, &options, &totals).await;
            totals.open.fetch_sub(1, Relaxed);
            drop(slot);
        });
    }
}

async fn split(client: TcpStream, from: SocketAddr, options: &Options, totals: &Totals) {
    match towards_server(&client, from, options).await {
        Ok(server) => match relay(client, server, options.buffer).await {
            End::Closed(up, down) => {
                totals.bytes_up.fetch_add(up, Relaxed);
                totals.bytes_down.fetch_add(down, Relaxed);
            }
            End::Reset => {
                totals.reset.fetch_add(1, Relaxed);
            }
        },
        Err(_) => {
            totals.unreachable.fetch_add(1, Relaxed);
            sockets::reset(client);
        }
    }
}

/// The other half of a client's connection.
async fn towards_server(
    client: &TcpStream,
    from: SocketAddr,
    options: &Options,
) -> Result<TcpStream> {
    // To whom the client believes to speak.
    let to = client.local_addr()?;
    sockets::prepare(client)?;
    let server = sockets::connect(from, to, options.cc_server.as_deref()).await?;
    sockets::prepare(&server)?;
    Ok(server)
}
