// SPDX-License-Identifier: GPL-2.0-or-later
//! Below QUIC: remembers the datagrams that go out, and sends those again that a quACK
//! tells are lost. A thread of its own speaks with the router, from a port of its own,
//! so that its times are exact and quinn sees nothing of it.

use std::collections::VecDeque;
use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::thread::JoinHandle;
use std::time::Instant;

use anyhow::Result;
use linkem::sched::{self, monotonic};
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use crate::media::packet::Cipher;
use crate::sidekick::{self, Sidekick, SidekickOptions};
use crate::socket;

/// Behind the first byte and the longest connection ID: encrypted in all packets of 1-RTT.
const OFFSET: u16 = 21;
/// Datagrams that are remembered.
const STORED: usize = 4096;
/// A datagram that is lost so often is left to QUIC; perhaps it is too long for the link.
const ATTEMPTS: u8 = 4;
/// Repairs that congestion control may ask for.
const REPAIRS: usize = 1024;
/// Until the thread looks again, ns: a HELLO may be due because packets were sent.
const LOOK: u64 = 20_000_000;

#[derive(Clone, Debug)]
struct Datagram {
    tag: u64,
    first_sent: Instant,
    attempts: u8,
    ecn: Option<EcnCodepoint>,
    bytes: Vec<u8>,
}

/// What socket, thread and congestion control share.
pub struct Shared {
    sidekick: Sidekick,
    stored: VecDeque<Datagram>,
    next_tag: u64,
    /// When datagrams were sent first that were then sent again.
    repaired: VecDeque<Instant>,
    resent: u64,
    pub ignored_events: u64,
}

impl Shared {
    fn on_sent(&mut self, datagram: Datagram) {
        if self.stored.len() >= STORED {
            self.stored.pop_front();
        }
        self.next_tag += 1;
        self.sidekick.on_sent(monotonic(), self.next_tag, &datagram.bytes);
        self.stored.push_back(Datagram { tag: self.next_tag, ..datagram });
    }

    /// Whether a datagram that was sent between these two moments was sent again.
    pub fn was_repaired(&self, from: Instant, to: Instant) -> bool {
        self.repaired.iter().any(|sent| (from..=to).contains(sent))
    }

    /// The datagram with this tag, to be sent again.
    fn lost(&mut self, tag: u64) -> Option<Datagram> {
        let first = self.stored.front()?.tag;
        let datagram = self.stored.get(usize::try_from(tag.checked_sub(first)?).ok()?)?;
        if datagram.attempts >= ATTEMPTS {
            return None;
        }
        let datagram = Datagram { attempts: datagram.attempts + 1, ..datagram.clone() };
        if self.repaired.len() >= REPAIRS {
            self.repaired.pop_front();
        }
        self.repaired.push_back(datagram.first_sent);
        self.resent += 1;
        Some(datagram)
    }

    /// Tells the router what there is to tell.
    fn tell(&mut self, control: &UdpSocket) {
        while let Some((router, message)) = self.sidekick.poll_message(monotonic()) {
            // A network that takes none at present is one that loses it.
            let _ = control.send_to(&message, router);
        }
    }
}

/// The lock; what a thread that panicked left is as good as any.
pub fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// quinn's socket, with a look at what goes out.
struct Watched {
    inner: Arc<dyn AsyncUdpSocket>,
    shared: Arc<Mutex<Shared>>,
}

impl std::fmt::Debug for Watched {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watched").field("inner", &self.inner).finish_non_exhaustive()
    }
}

impl AsyncUdpSocket for Watched {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        // Under the lock, so that the log has the order of the wire.
        let mut shared = lock(&self.shared);
        self.inner.try_send(transmit)?;
        shared.on_sent(Datagram {
            tag: 0,
            first_sent: Instant::now(),
            attempts: 0,
            ecn: transmit.ecn,
            bytes: transmit.contents.to_vec(),
        });
        Ok(())
    }

    fn poll_recv(
        &self,
        context: &mut Context<'_>,
        buffers: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        self.inner.poll_recv(context, buffers, meta)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    // One datagram at a time: they are told one by one.
    fn max_transmit_segments(&self) -> usize {
        1
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

/// The thread, until the end.
pub struct Repair {
    inner: Arc<dyn AsyncUdpSocket>,
    shared: Arc<Mutex<Shared>>,
    control: UdpSocket,
    stop: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl Repair {
    /// If the options want it. `inner` is what quinn would send with, from `port`.
    pub fn start(
        options: &SidekickOptions,
        inner: Arc<dyn AsyncUdpSocket>,
        port: u16,
        server: SocketAddr,
    ) -> Result<Option<Repair>> {
        let token = Cipher::new()?.random()?;
        let Some(sidekick) = Sidekick::new(options, token, port, server, OFFSET) else {
            return Ok(None);
        };
        let control = socket::bind(socket::any_port_for(server))?;
        control.set_nonblocking(true)?;
        let shared = Arc::new(Mutex::new(Shared {
            sidekick,
            stored: VecDeque::new(),
            next_tag: 0,
            repaired: VecDeque::new(),
            resent: 0,
            ignored_events: 0,
        }));
        let stop = Arc::new(AtomicBool::new(false));
        let thread = {
            let (inner, shared, stop) = (inner.clone(), shared.clone(), stop.clone());
            let control = control.try_clone()?;
            // The thread inherits the priority.
            std::thread::Builder::new().name("repair".into()).spawn(move || {
                let _ = sched::set_exact_timers();
                while !stop.load(Ordering::Relaxed) {
                    turn(&control, &*inner, &shared, server);
                }
            })?
        };
        Ok(Some(Repair { inner, shared, control, stop, thread }))
    }

    /// For quinn.
    pub fn socket(&self) -> Arc<dyn AsyncUdpSocket> {
        Arc::new(Watched { inner: self.inner.clone(), shared: self.shared.clone() })
    }

    /// For the congestion controller.
    pub fn shared(&self) -> Arc<Mutex<Shared>> {
        self.shared.clone()
    }

    /// Ends it: what Sidekick says, datagrams sent again, congestion events ignored.
    pub fn finish(self) -> (sidekick::Report, u64, u64) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.join();
        let mut shared = lock(&self.shared);
        let report = shared.sidekick.close(monotonic());
        shared.tell(&self.control);
        (report, shared.resent, shared.ignored_events)
    }
}

fn turn(
    control: &UdpSocket,
    inner: &dyn AsyncUdpSocket,
    shared: &Mutex<Shared>,
    server: SocketAddr,
) {
    let now = monotonic();
    let next = lock(shared).sidekick.next_timeout().unwrap_or(u64::MAX).min(now + LOOK);
    let _ = sched::wait([control.as_fd()], Some(next.saturating_sub(now)));
    let mut shared = lock(shared);
    let mut buffer = [0; 2048];
    while let Ok((length, from)) = control.recv_from(&mut buffer) {
        shared.sidekick.take(monotonic(), from, &buffer[..length]);
    }
    while let Some(tag) = shared.sidekick.next_lost(monotonic()) {
        let Some(datagram) = shared.lost(tag) else { continue };
        let transmit = Transmit {
            destination: server,
            ecn: datagram.ecn,
            contents: &datagram.bytes,
            segment_size: None,
            src_ip: None,
        };
        // If there is no room now, it is left to QUIC.
        if inner.try_send(&transmit).is_ok() {
            shared.on_sent(datagram);
        }
    }
    shared.tell(control);
}
