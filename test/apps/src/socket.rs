// SPDX-License-Identifier: GPL-2.0-or-later
//! UDP sockets.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use anyhow::{Context, Result};
use socket2::{Domain, Protocol, Socket, Type};

/// Asked for; the kernel gives no more than net.core.{r,w}mem_max.
const BUFFER_BYTES: usize = 8 << 20;

/// A socket with large buffers.
pub fn bind(address: SocketAddr) -> Result<UdpSocket> {
    let socket = Socket::new(Domain::for_address(address), Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_recv_buffer_size(BUFFER_BYTES)?;
    socket.set_send_buffer_size(BUFFER_BYTES)?;
    socket.bind(&address.into()).with_context(|| format!("cannot bind to {address}"))?;
    Ok(socket.into())
}

/// What a client binds to that wants to reach this address.
pub fn any_port_for(peer: SocketAddr) -> SocketAddr {
    match peer {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    }
}
