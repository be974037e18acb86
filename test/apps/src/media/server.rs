// SPDX-License-Identifier: GPL-2.0-or-later
//! The receiver with its socket.

use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::path::PathBuf;

use anyhow::Result;
use linkem::sched::{self, monotonic};

use super::receiver::{Output, Receiver};
use super::{PACKET, receive, send};
use crate::options::ServerOptions;
use crate::output::print_json;
use crate::socket;

/// Receives streams until SIGTERM, one at a time, and prints a result for each.
pub fn run(options: &ServerOptions, json: Option<&PathBuf>) -> Result<()> {
    sched::set_exact_timers()?;
    let terminate = sched::termination_fd()?;
    let socket = socket::bind(options.listen)?;
    socket.set_nonblocking(true)?;
    print_json(&serde_json::json!({"listening": socket.local_addr()?}), None)?;
    let mut receiver = Receiver::new()?;
    let mut buffer = [0; PACKET];
    loop {
        let timeout = receiver.next_timeout().map(|until| until.saturating_sub(monotonic()));
        let [_, ended] = sched::wait([socket.as_fd(), terminate.as_fd()], timeout)?;
        if ended {
            receiver.finish(false);
            return put_out(&socket, &mut receiver, json);
        }
        while let Some((length, from)) = receive(&socket, &mut buffer)? {
            receiver.take(monotonic(), from, &mut buffer[..length])?;
        }
        receiver.poll(monotonic())?;
        put_out(&socket, &mut receiver, json)?;
    }
}

fn put_out(socket: &UdpSocket, receiver: &mut Receiver, json: Option<&PathBuf>) -> Result<()> {
    for output in receiver.outputs() {
        match output {
            Output::Packet(to, packet) => send(socket, &packet, to),
            Output::Report(report) => print_json(&report, json.map(PathBuf::as_path))?,
        }
    }
    Ok(())
}
