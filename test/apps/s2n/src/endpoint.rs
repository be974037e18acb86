// SPDX-License-Identifier: GPL-2.0-or-later
//! s2n-quic's servers and clients: their sockets, certificates and limits.

use std::net::SocketAddr;
use std::process::ExitCode;

use anyhow::{Result, bail};
use pemi_apps::options::{Cc, TransportOptions};
use pemi_apps::{IDLE, program, socket, tls};
use s2n_quic::provider::congestion_controller::{Bbr, Cubic};
use s2n_quic::provider::io::tokio::Provider as Io;
use s2n_quic::provider::limits::Limits;
use s2n_quic::provider::tls::rustls;
use s2n_quic::{Client, Server};

use crate::sender::Senders;

const UDP_BYTES: u16 = 8;
const IPV4_BYTES: u16 = 20;
const IPV6_BYTES: u16 = 40;

/// Runs a program's future to its end on a runtime of this one thread.
pub fn run(options: &TransportOptions, program: impl Future<Output = Result<()>>) -> ExitCode {
    program::run(options.rt, || {
        tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(program)
    })
}

/// Listens, with a certificate of its own making.
pub fn server(listen: SocketAddr, options: &TransportOptions) -> Result<Server> {
    let builder = Server::builder()
        .with_tls(rustls::Server::from(tls::server()?))?
        .with_io(io(listen, options)?)?
        .with_limits(limits()?)?
        .with_event(Senders)?;
    Ok(match options.cc {
        Cc::Cubic => builder.with_congestion_controller(Cubic::default())?.start()?,
        Cc::Bbr => builder.with_congestion_controller(Bbr::default())?.start()?,
        Cc::Newreno => bail!("s2n-quic has no NewReno; there are cubic and bbr"),
    })
}

/// Connects from any port and believes any certificate. What it sends congestion control
/// hardly ever concerns, so it has s2n-quic's default.
pub fn client(connect: SocketAddr, options: &TransportOptions) -> Result<Client> {
    let client = Client::builder()
        .with_tls(rustls::Client::from(tls::client()?))?
        .with_io(io(socket::any_port_for(connect), options)?)?
        .with_limits(limits()?)?
        .start()?;
    Ok(client)
}

fn io(address: SocketAddr, options: &TransportOptions) -> Result<Io> {
    // Links are to see packets, not bursts in large frames.
    let mut io = Io::builder().with_rx_socket(socket::bind(address)?)?.with_gso_disabled()?;
    if let Some(payload) = options.mtu {
        let headers = UDP_BYTES + if address.is_ipv4() { IPV4_BYTES } else { IPV6_BYTES };
        let mtu = payload + headers;
        io = io.with_max_mtu(mtu)?.with_initial_mtu(mtu)?.with_base_mtu(mtu)?;
    }
    Ok(io.build()?)
}

fn limits() -> Result<Limits> {
    let limits = Limits::new().with_max_idle_timeout(IDLE)?.with_max_handshake_duration(IDLE)?;
    Ok(limits)
}
