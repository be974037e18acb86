// SPDX-License-Identifier: GPL-2.0-or-later
//! A router between a sender and a receiver on one machine: 1 ms to the sender, 25 ms to
//! the receiver, losses on the way from the sender, and quACKs.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use linkem::sched::{self, monotonic};
use pemi_sidekick_tests::Random;
use pemi_sidekick_tests::router::Model;

const NEAR: u64 = 1_000_000;
const FAR: u64 = 25_000_000;

/// What the hop and the router do. Times are from the first packet on.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Share of the sender's packets that is lost.
    pub loss: f64,
    /// From when to when the router has no sessions and does not answer.
    pub gone: Option<(Duration, Duration)>,
}

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
        let mut inner = Inner {
            sockets: [front, back, control],
            options,
            random: Random::new(1),
            model: Model::new(7, 0, 65_530),
            client: None,
            asker: None,
            start: None,
            serial: 0,
            queue: BinaryHeap::new(),
        };
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

/// Where packets come from and go to.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Hop {
    /// From the sender, at the router.
    Up,
    /// From the router on to the receiver.
    Out,
    /// From the receiver.
    Down,
    /// From the sender to the router itself, and back.
    Ask,
    Answer,
}

/// When it arrives, which of those at that time it is, where, and what.
type Passing = (u64, u64, Hop, Vec<u8>);

struct Inner {
    sockets: [UdpSocket; 3],
    options: Options,
    random: Random,
    model: Model,
    client: Option<SocketAddr>,
    /// Where the sender's messages come from.
    asker: Option<SocketAddr>,
    start: Option<u64>,
    serial: u64,
    queue: BinaryHeap<Reverse<Passing>>,
}

impl Inner {
    fn turn(&mut self) {
        let now = monotonic();
        let next = self.queue.peek().map(|Reverse((at, ..))| *at);
        let due = self.model.next_timeout().map(|due| due.as_nanos() as u64);
        // Often enough to see that it is to stop.
        let until = [next, due].into_iter().flatten().fold(now + 50_000_000, u64::min);
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
                if hop != Hop::Down {
                    self.start.get_or_insert(now);
                }
                let lossy = matches!(hop, Hop::Up | Hop::Ask);
                if !lossy || self.random.unit() >= self.options.loss {
                    let delay = if hop == Hop::Down { FAR + NEAR } else { NEAR };
                    self.pass(now + delay, hop, buffer[..length].to_vec());
                }
            }
        }
        while self.queue.peek().is_some_and(|Reverse((at, ..))| *at <= now) {
            if let Some(Reverse((_, _, hop, bytes))) = self.queue.pop() {
                self.arrive(now, hop, bytes);
            }
        }
        if let Some(message) = self.model.on_timeout(Duration::from_nanos(now)) {
            self.pass(now + NEAR, Hop::Answer, message);
        }
    }

    fn pass(&mut self, at: u64, hop: Hop, bytes: Vec<u8>) {
        // Packets of one moment in the order that they came in.
        self.serial += 1;
        self.queue.push(Reverse((at, self.serial, hop, bytes)));
    }

    fn gone(&mut self, now: u64) -> bool {
        let (Some(start), Some((from, to))) = (self.start, self.options.gone) else { return false };
        let since = Duration::from_nanos(now - start);
        let gone = (from..to).contains(&since);
        if gone {
            self.model = Model::new(8, 0, 0);
        }
        gone
    }

    fn arrive(&mut self, now: u64, hop: Hop, bytes: Vec<u8>) {
        let answer = match hop {
            Hop::Up => {
                let answer = if self.gone(now) {
                    None
                } else {
                    self.model.on_packet(Duration::from_nanos(now), &bytes)
                };
                self.pass(now + FAR, Hop::Out, bytes);
                answer
            }
            Hop::Ask if self.gone(now) => None,
            Hop::Ask => self.model.on_message(&bytes),
            Hop::Out => {
                let _ = self.sockets[1].send(&bytes);
                None
            }
            Hop::Down | Hop::Answer => {
                let (socket, to) =
                    if hop == Hop::Down { (0, self.client) } else { (2, self.asker) };
                if let Some(to) = to {
                    let _ = self.sockets[socket].send_to(&bytes, to);
                }
                None
            }
        };
        if let Some(answer) = answer {
            self.pass(now + NEAR, Hop::Answer, answer);
        }
    }
}
