// SPDX-License-Identifier: GPL-2.0-or-later
//! One connection on a socket: packets in, and packets out at their time.

use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use quiche::{Connection, ConnectionId, RecvInfo};

use crate::Side;

/// How soon a full socket buffer is tried again.
const FULL: Duration = Duration::from_micros(200);
/// Room for the largest UDP payload.
pub const DATAGRAM_ROOM: usize = 65_535;

/// A connection, and what waits to be sent on it.
pub struct Link {
    /// quiche's side of it.
    pub connection: Connection,
    local: SocketAddr,
    packet: Vec<u8>,
    /// The packet's length, its receiver and when the pacer wants it sent.
    waiting: Option<(usize, SocketAddr, Instant)>,
}

impl Link {
    /// `local` is the address of the socket that everything else here is given.
    pub fn new(connection: Connection, local: SocketAddr) -> Link {
        Link { connection, local, packet: vec![0; DATAGRAM_ROOM], waiting: None }
    }

    /// A datagram has come.
    pub fn receive(&mut self, datagram: &mut [u8], from: SocketAddr) {
        // What is wrong with a packet shows in the connection's state, or is no
        // matter, as with packets that come after its end.
        let _ = self.connection.recv(datagram, RecvInfo { from, to: self.local });
    }

    /// Lets the application and the timers act and sends what is to be sent by now.
    pub fn advance(&mut self, side: &mut impl Side, socket: &UdpSocket) -> Result<()> {
        self.connection.on_timeout();
        let open = !self.connection.is_draining() && !self.connection.is_closed();
        if open && self.connection.is_established() {
            side.advance(&mut self.connection)?;
        }
        self.send(socket)
    }

    /// Sends what is to be sent by now.
    pub fn send(&mut self, socket: &UdpSocket) -> Result<()> {
        loop {
            let (length, to, at) = match self.waiting.take() {
                Some(waiting) => waiting,
                None => match self.connection.send(&mut self.packet) {
                    Ok((length, info)) => (length, info.to, info.at),
                    Err(quiche::Error::Done) => return Ok(()),
                    Err(error) => return Err(error.into()),
                },
            };
            if at > Instant::now() {
                self.waiting = Some((length, to, at));
                return Ok(());
            }
            match socket.send_to(&self.packet[..length], to) {
                Ok(_) => {}
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                    self.waiting = Some((length, to, Instant::now() + FULL));
                    return Ok(());
                }
                // An ICMP answer to an earlier packet, which a timer will miss.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    /// When to call [`Link::advance`] although nothing came.
    pub fn next(&self) -> Option<Instant> {
        let packet = self.waiting.map(|(_, _, at)| at);
        packet.into_iter().chain(self.connection.timeout_instant()).min()
    }

    /// Why the connection ended, if it did not end well.
    pub fn error(&self) -> Option<anyhow::Error> {
        let told = |who: &str, error: &quiche::ConnectionError| {
            let reason = String::from_utf8_lossy(&error.reason);
            anyhow!("closed by {who} (code {}): {reason}", error.error_code)
        };
        if self.connection.is_timed_out() {
            return Some(anyhow!("timed out"));
        }
        if let Some(error) = self.connection.peer_error() {
            let well = error.is_app && error.error_code == 0;
            return (!well || !self.connection.is_server()).then(|| told("the other side", error));
        }
        let error = self.connection.local_error()?;
        (error.error_code != 0).then(|| told("this side", error))
    }
}

/// Every datagram that has come to a socket that does not block.
pub fn receive_all(
    socket: &UdpSocket,
    buffer: &mut [u8],
    mut take: impl FnMut(&mut [u8], SocketAddr) -> Result<()>,
) -> Result<()> {
    loop {
        match socket.recv_from(buffer) {
            Ok((length, from)) => take(&mut buffer[..length], from)?,
            Err(error) => match error.kind() {
                std::io::ErrorKind::WouldBlock => return Ok(()),
                std::io::ErrorKind::ConnectionRefused => {}
                _ => return Err(error.into()),
            },
        }
    }
}

/// A new source connection ID.
pub fn new_id() -> Result<ConnectionId<'static>> {
    let mut bytes = vec![0; quiche::MAX_CONN_ID_LEN];
    boring::rand::rand_bytes(&mut bytes)?;
    Ok(ConnectionId::from_vec(bytes))
}
