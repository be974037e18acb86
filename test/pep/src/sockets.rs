// SPDX-License-Identifier: GPL-2.0-or-later
//! Sockets that have other hosts' addresses (IP_TRANSPARENT).

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

use anyhow::{Context, Result};
use socket2::{Domain, Protocol, SockRef, Socket, TcpKeepalive, Type};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

const BACKLOG: i32 = 1024;
/// A client that has gone without a word is noticed after some minutes.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// A listener for each family. Accepted connections have the address that the client
/// meant as their own, and the listener's congestion control.
pub fn listeners(port: u16, cc: Option<&str>) -> Result<[TcpListener; 2]> {
    let any = [Ipv4Addr::UNSPECIFIED.into(), Ipv6Addr::UNSPECIFIED.into()];
    let [v4, v6] = any.map(|address| listener(SocketAddr::new(address, port), cc));
    Ok([v4?, v6?])
}

fn listener(address: SocketAddr, cc: Option<&str>) -> Result<TcpListener> {
    let socket = transparent(address, cc)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into()).with_context(|| format!("port {}", address.port()))?;
    socket.listen(BACKLOG)?;
    Ok(TcpListener::from_std(socket.into())?)
}

/// A connection to `server` that it takes for the client's.
pub async fn connect(
    client: SocketAddr,
    server: SocketAddr,
    cc: Option<&str>,
) -> Result<TcpStream> {
    let socket = transparent(client, cc)?;
    socket.bind(&client.into())?;
    Ok(TcpSocket::from_std_stream(socket.into()).connect(server).await?)
}

/// What both sides of a connection have in common.
pub fn prepare(stream: &TcpStream) -> io::Result<()> {
    // What comes in small pieces was sent so; waiting for more is not ours to decide.
    stream.set_nodelay(true)?;
    SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE))
}

/// The other end will see a reset instead of an orderly end.
pub fn reset(stream: TcpStream) {
    // Fails only where there is no connection any more.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
}

/// An error if the kernel has no such congestion control.
pub fn check_congestion(name: &str) -> Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, Some(Protocol::TCP))?;
    set_congestion(&socket, name)
}

fn set_congestion(socket: &Socket, name: &str) -> Result<()> {
    socket
        .set_tcp_congestion(name.as_bytes())
        .with_context(|| format!("this kernel has no congestion control '{name}'"))
}

fn transparent(address: SocketAddr, cc: Option<&str>) -> Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    // The client's port may just have been used for another connection.
    socket.set_reuse_address(true)?;
    match address {
        SocketAddr::V4(_) => socket.set_ip_transparent_v4(true),
        SocketAddr::V6(_) => socket.set_ip_transparent_v6(true),
    }
    .context("IP_TRANSPARENT")?;
    if let Some(name) = cc {
        set_congestion(&socket, name)?;
    }
    Ok(socket)
}
