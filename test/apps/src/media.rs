// SPDX-License-Identifier: GPL-2.0-or-later
//! Low-latency audio as in the Sidekick paper (NSDI '24, section 5): small packets at
//! fixed times, from a sender on Wi-Fi to a receiver that plays them in order. What is
//! missing the receiver asks for; with Sidekick the sender often knows before.
//!
//! [`sender`] and [`receiver`] are the two sides without sockets and clocks, so that tests have
//! them in virtual time; [`client`] and [`server`] give them both. [`source`] is what the sender
//! remembers and [`playout`] the receiver's buffer; [`packet`] is what they say to each other.

pub mod client;
pub mod packet;
pub mod playout;
pub mod receiver;
pub mod rtt;
pub mod sender;
pub mod server;
pub mod source;

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;

use anyhow::Result;
use linkem::sched;

/// Longer than any packet of either side.
const PACKET: usize = 2048;

/// Options of both sides.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct MediaOptions {
    /// SCHED_FIFO priority; 0: none
    #[arg(long, value_name = "PRIORITY", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=99))]
    pub rt: u8,
}

/// Waits until there is something to read, or until a time of [`sched::monotonic`].
fn wait(socket: &UdpSocket, until: Option<u64>) -> Result<()> {
    let timeout = until.map(|until| until.saturating_sub(sched::monotonic()));
    sched::wait([socket.as_fd()], timeout)?;
    Ok(())
}

/// The next packet, if there is one.
fn receive(socket: &UdpSocket, buffer: &mut [u8]) -> Result<Option<(usize, SocketAddr)>> {
    match socket.recv_from(buffer) {
        Ok(received) => Ok(Some(received)),
        Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Sends a packet, or not: a network that takes none at present is one that loses it.
fn send(socket: &UdpSocket, packet: &[u8], to: SocketAddr) {
    let _ = socket.send_to(packet, to);
}
