// SPDX-License-Identifier: GPL-2.0-or-later
//! A server's loop: any number of connections until SIGTERM or SIGINT.

use std::collections::HashMap;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::time::Instant;

use anyhow::Result;
use linkem::sched;
use pemi_apps::options::ServerOptions;
use pemi_apps::output::{print_json, print_sender};
use pemi_apps::socket;
use quiche::{Config, Header, Type};

use crate::Side;
use crate::link::{self, DATAGRAM_ROOM, Link};

/// Serves each connection with a side of its own. Prints the address that it
/// listens on as one JSON object.
pub fn serve<S: Side>(
    options: &ServerOptions,
    config: &mut Config,
    side: impl Fn() -> S,
) -> Result<()> {
    sched::set_exact_timers()?;
    let terminate = sched::termination_fd()?;
    let socket = socket::bind(options.listen)?;
    socket.set_nonblocking(true)?;
    let local = socket.local_addr()?;
    print_json(&serde_json::json!({"listening": local}), None)?;
    // The clients of a test keep their addresses, so these tell connections apart.
    let mut links: HashMap<SocketAddr, (Link, S)> = HashMap::new();
    let mut buffer = vec![0; DATAGRAM_ROOM];
    loop {
        let next = links.values().filter_map(|(link, side)| earliest(link.next(), side.next()));
        let now = Instant::now();
        let timeout = next.min().map(|next| next.saturating_duration_since(now).as_nanos() as u64);
        let [_, ended] = sched::wait([socket.as_fd(), terminate.as_fd()], timeout)?;
        if ended {
            return close(&mut links, &socket);
        }
        link::receive_all(&socket, &mut buffer, |datagram, from| {
            if !links.contains_key(&from) && begins(datagram) {
                let connection = quiche::accept(&link::new_id()?, None, local, from, config)?;
                links.insert(from, (Link::new(connection, local), side()));
            }
            if let Some((link, _)) = links.get_mut(&from) {
                link.receive(datagram, from);
            }
            Ok(())
        })?;
        links.retain(|peer, (link, side)| {
            if let Err(error) = link.advance(side, &socket) {
                eprintln!("{peer}: {error:#}");
                // Fails if it is closed already, which is as well.
                let _ = link.connection.close(true, 1, format!("{error:#}").as_bytes());
                let _ = link.send(&socket);
            }
            if link.connection.is_closed() {
                if let Some(error) = link.error() {
                    eprintln!("{peer}: {error:#}");
                }
                let sent = link.connection.stats();
                let spurious = Some(sent.spurious_lost as u64);
                if let Err(error) = print_sender(sent.sent as u64, sent.lost as u64, spurious) {
                    eprintln!("{error:#}");
                }
            }
            !link.connection.is_closed()
        });
    }
}

fn earliest(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    one.into_iter().chain(other).min()
}

/// Is this the first packet of a connection in a version that quiche speaks?
fn begins(datagram: &mut [u8]) -> bool {
    Header::from_slice(datagram, quiche::MAX_CONN_ID_LEN).is_ok_and(|header| {
        header.ty == Type::Initial && quiche::version_is_supported(header.version)
    })
}

fn close<S>(links: &mut HashMap<SocketAddr, (Link, S)>, socket: &UdpSocket) -> Result<()> {
    for (link, _) in links.values_mut() {
        // Fails if it is closed already, which is as well.
        let _ = link.connection.close(true, 0, b"the server ends");
        link.send(socket)?;
    }
    Ok(())
}
