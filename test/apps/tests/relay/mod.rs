// SPDX-License-Identifier: GPL-2.0-or-later
//! A router between a sender and a receiver on one machine: a [`Path`] with sockets, in real
//! time.

pub mod path;

use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use linkem::sched::{self, monotonic};

pub use path::Options;
use path::{Hop, Path};

/// A relay until it is dropped.
pub struct Relay {
    /// What the sender takes for the receiver's address.
    pub address: SocketAddr,
    /// The router's.
    pub router: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    pub fn start(receiver: &str, options: Options) -> Relay {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        let [front, back, control] = [socket(), socket(), socket()];
        back.connect(receiver).unwrap();
        let (address, router) = (front.local_addr().unwrap(), control.local_addr().unwrap());
        let stop = Arc::new(AtomicBool::new(false));
        let sockets = [front, back, control];
        let mut inner = Inner { sockets, path: Path::new(options), client: None, asker: None };
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            sched::set_exact_timers().unwrap();
            while !stopped.load(Ordering::Relaxed) {
                inner.turn();
            }
        });
        Relay { address, router, stop, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

struct Inner {
    sockets: [UdpSocket; 3],
    path: Path,
    client: Option<SocketAddr>,
    /// Where the sender's messages come from.
    asker: Option<SocketAddr>,
}

impl Inner {
    fn turn(&mut self) {
        let now = monotonic();
        // Often enough to see that it is to stop.
        let until = self.path.next_timeout().into_iter().fold(now + 50_000_000, u64::min);
        let fds = self.sockets.each_ref().map(|socket| socket.as_fd());
        let ready = sched::wait(fds, Some(until.saturating_sub(now))).unwrap();
        let now = monotonic();
        let mut buffer = [0; 2048];
        for (index, hop) in [Hop::Up, Hop::Down, Hop::Ask].into_iter().enumerate() {
            // Refused, if the receiver has gone.
            while ready[index]
                && let Ok((length, from)) = self.sockets[index].recv_from(&mut buffer)
            {
                match hop {
                    Hop::Up => self.client = Some(from),
                    Hop::Ask => self.asker = Some(from),
                    _ => {}
                }
                self.path.enter(now, hop, buffer[..length].to_vec());
            }
        }
        for (hop, bytes) in self.path.poll(now) {
            let (socket, to) = match hop {
                Hop::Out => {
                    let _ = self.sockets[1].send(&bytes);
                    continue;
                }
                Hop::Down => (0, self.client),
                _ => (2, self.asker),
            };
            if let Some(to) = to {
                let _ = self.sockets[socket].send_to(&bytes, to);
            }
        }
    }
}
