// SPDX-License-Identifier: GPL-2.0-or-later
//! One end: sockets on both sides of encoder and decoder.
//!
//! Whoever sends to the listening socket gets a conversation of its own: a task with a
//! socket to the other side, an encoder and a decoder. The client encodes what comes
//! to its listening socket, the server what its program answers.

use std::collections::HashMap;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use socket2::SockRef;
use tokio::net::UdpSocket;
use tokio::sync::mpsc::{self, Receiver, Sender};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::decoder::Decoder;
use crate::encoder::{Code, Encoder};
use crate::totals::{Sent, Totals};
use crate::wire::largest_datagram;

/// Conversations at once; who comes after that is not heard.
const CONVERSATIONS: usize = 256;
/// Datagrams that may wait for a conversation's task.
const WAITING: usize = 512;
/// A conversation without a word for as long is over.
const IDLE: Duration = Duration::from_secs(120);
/// A download's window fits.
const SOCKET_BUFFER: usize = 4 << 20;
const LARGEST: usize = 65_536;

/// Which end this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// Listens for a program.
    Client,
    /// Listens for the other shim.
    Server,
}

/// What a shim does.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Which end it is.
    pub role: Role,
    /// Where it listens.
    pub listen: SocketAddr,
    /// To whom it speaks for whoever it hears there.
    pub connect: SocketAddr,
    /// Of what it sends to the other shim.
    pub code: Code,
    /// After which a group that is not full gets its repairs.
    pub flush: Duration,
    /// Of the path between the shims.
    pub mtu: usize,
}

impl Settings {
    /// The largest datagram of the program that can be carried.
    fn largest_datagram(&self) -> usize {
        let path = match self.role {
            Role::Client => self.connect,
            Role::Server => self.listen,
        };
        let headers = if path.is_ipv6() { 40 } else { 20 } + 8;
        largest_datagram(self.mtu.saturating_sub(headers))
    }
}

/// A shim that listens.
#[derive(Debug)]
pub struct Shim {
    settings: Settings,
    listener: Arc<UdpSocket>,
}

impl Shim {
    /// Datagrams that come from now on are carried once it runs.
    pub async fn bind(settings: Settings) -> Result<Shim> {
        let listener = UdpSocket::bind(settings.listen)
            .await
            .with_context(|| format!("--listen {}", settings.listen))?;
        enlarge(&listener)?;
        Ok(Shim { settings, listener: Arc::new(listener) })
    }

    /// Where it listens.
    pub fn address(&self) -> Result<SocketAddr> {
        Ok(self.listener.local_addr()?)
    }

    /// Carries datagrams until `stop`, and gives what it came to.
    pub async fn run(self, stop: impl Future<Output = ()>) -> Result<Totals> {
        let mut totals = Totals::default();
        let mut tasks = JoinSet::new();
        let mut conversations: HashMap<SocketAddr, Sender<Vec<u8>>> = HashMap::new();
        let mut buffer = vec![0; LARGEST];
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(ended) = tasks.join_next() => {
                    totals.add(&ended.context("a conversation failed")?);
                    conversations.retain(|_, sender| !sender.is_closed());
                }
                heard = self.listener.recv_from(&mut buffer) => {
                    // An error is about a datagram that was sent: its receiver has gone.
                    let Ok((length, from)) = heard else { continue };
                    if !conversations.contains_key(&from) {
                        if conversations.len() >= CONVERSATIONS {
                            continue;
                        }
                        let (sender, receiver) = mpsc::channel(WAITING);
                        let socket = connect(self.settings.connect).await?;
                        tasks.spawn(
                            Conversation {
                                settings: self.settings,
                                listener: self.listener.clone(),
                                peer: from,
                                socket,
                            }
                            .run(receiver),
                        );
                        conversations.insert(from, sender);
                    }
                    // Full: as in any queue, the datagram is lost.
                    let _ = conversations[&from].try_send(buffer[..length].to_vec());
                }
            }
        }
        // Without a sender, conversations end.
        conversations.clear();
        while let Some(ended) = tasks.join_next().await {
            totals.add(&ended.context("a conversation failed")?);
        }
        Ok(totals)
    }
}

/// What one of those who send to the listening socket says and is told.
struct Conversation {
    settings: Settings,
    listener: Arc<UdpSocket>,
    peer: SocketAddr,
    socket: UdpSocket,
}

impl Conversation {
    async fn run(self, mut heard: Receiver<Vec<u8>>) -> Totals {
        let mut encoder = Encoder::new(self.settings.code, self.settings.flush);
        let mut decoder = Decoder::default();
        let mut sent = Sent::default();
        let mut buffer = vec![0; LARGEST];
        let mut idle = Instant::now() + IDLE;
        loop {
            let wake = encoder.timeout().map_or(idle, |flush| idle.min(flush.into()));
            let mut out = Vec::new();
            let to_other_side;
            tokio::select! {
                datagram = heard.recv() => {
                    let Some(datagram) = datagram else { break };
                    to_other_side = true;
                    idle = Instant::now() + IDLE;
                    match self.settings.role {
                        Role::Client => self.encode(&mut encoder, &mut sent, &datagram, &mut out),
                        Role::Server => decoder.push(&datagram, |bytes| out.push(bytes.to_vec())),
                    }
                }
                answer = self.socket.recv(&mut buffer) => {
                    // An error is about a datagram that was sent: its receiver is not there.
                    let Ok(length) = answer else { continue };
                    to_other_side = false;
                    idle = Instant::now() + IDLE;
                    let bytes = &buffer[..length];
                    match self.settings.role {
                        Role::Client => decoder.push(bytes, |bytes| out.push(bytes.to_vec())),
                        Role::Server => self.encode(&mut encoder, &mut sent, bytes, &mut out),
                    }
                }
                () = sleep_until(wake) => {
                    let now = Instant::now();
                    if now >= idle {
                        break;
                    }
                    to_other_side = self.settings.role == Role::Client;
                    encoder.on_timeout(now.into_std(), |packet| out.push(packet));
                }
            }
            for bytes in out {
                // What cannot be sent is lost, as on any path.
                let _ = if to_other_side {
                    self.socket.send(&bytes).await
                } else {
                    self.listener.send_to(&bytes, self.peer).await
                };
            }
        }
        decoder.finish();
        sent.repairs = encoder.repairs;
        Totals { sent, received: decoder.received }
    }

    fn encode(
        &self,
        encoder: &mut Encoder,
        sent: &mut Sent,
        datagram: &[u8],
        out: &mut Vec<Vec<u8>>,
    ) {
        // Those who look for a path's limit have found it.
        if datagram.len() > self.settings.largest_datagram() {
            sent.too_large += 1;
            return;
        }
        sent.sources += 1;
        encoder.push(Instant::now().into_std(), datagram, |packet| out.push(packet));
    }
}

async fn connect(to: SocketAddr) -> Result<UdpSocket> {
    let any = match to {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any).await?;
    enlarge(&socket)?;
    socket.connect(to).await.with_context(|| format!("--connect {to}"))?;
    Ok(socket)
}

fn enlarge(socket: &UdpSocket) -> Result<()> {
    // The kernel's limit may be lower, which is as well.
    SockRef::from(socket).set_recv_buffer_size(SOCKET_BUFFER)?;
    Ok(())
}
