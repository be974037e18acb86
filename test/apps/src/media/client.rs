// SPDX-License-Identifier: GPL-2.0-or-later
//! The sender with its socket.

use std::net::{SocketAddr, UdpSocket};
use std::path::PathBuf;

use anyhow::{Result, ensure};
use linkem::sched::{self, monotonic};

use super::packet::MIN_BYTES;
use super::sender::{Sender, Stream};
use super::{PACKET, receive, send, wait};
use crate::output::print_json;
use crate::sidekick::SidekickOptions;
use crate::socket;

/// Options of the sender.
#[derive(Debug, clap::Args)]
pub struct ClientOptions {
    /// The receiver's address and port
    #[arg(long)]
    pub connect: SocketAddr,
    /// How long audio is sent
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// UDP payload of a packet
    #[arg(long, default_value_t = 240, value_parser = clap::value_parser!(u16).range(MIN_BYTES as i64..=1400))]
    bytes: u16,
    /// Between two packets
    #[arg(long, value_name = "MS", default_value_t = 20.0)]
    interval_ms: f64,
    /// For Sidekick.
    #[command(flatten)]
    sidekick: SidekickOptions,
    /// Also write the result to this file
    #[arg(long)]
    json: Option<PathBuf>,
}

impl ClientOptions {
    /// What they ask for.
    pub fn stream(&self) -> Result<Stream> {
        let interval = (self.interval_ms * 1e6).round();
        let frames = (self.seconds * 1e9 / interval).round();
        ensure!(
            interval >= 1e5 && (1.0..1e7).contains(&frames),
            "{frames} frames every {} ms: wanted 1 to 10000000 every 0.1 ms or more",
            self.interval_ms
        );
        Ok(Stream {
            receiver: self.connect,
            frames: frames as u32,
            interval: interval as u64,
            bytes: self.bytes.into(),
            sidekick: self.sidekick,
        })
    }
}

/// Sends one stream and prints the result.
pub fn run(options: &ClientOptions) -> Result<()> {
    sched::set_exact_timers()?;
    let stream = options.stream()?;
    let socket = socket::bind(socket::any_port_for(options.connect))?;
    socket.set_nonblocking(true)?;
    let mut sender = Sender::new(stream, socket.local_addr()?.port(), monotonic())?;
    while !sender.is_over(monotonic()) {
        turn(&socket, &mut sender)?;
    }
    let report = sender.close(monotonic());
    send_all(&socket, &mut sender);
    print_json(&report, options.json.as_deref())?;
    sender.success()
}

fn turn(socket: &UdpSocket, sender: &mut Sender) -> Result<()> {
    let mut buffer = [0; PACKET];
    while let Some((length, from)) = receive(socket, &mut buffer)? {
        sender.take(monotonic(), from, &mut buffer[..length])?;
    }
    let now = monotonic();
    sender.poll(now)?;
    send_all(socket, sender);
    if !sender.is_over(now) {
        wait(socket, Some(sender.next_timeout()))?;
    }
    Ok(())
}

fn send_all(socket: &UdpSocket, sender: &mut Sender) {
    while let Some((to, packet)) = sender.poll_packet() {
        send(socket, &packet, to);
    }
}
