// SPDX-License-Identifier: GPL-2.0-or-later
//! A host around an endpoint: when it starts, and how late it looks at what has
//! arrived. A phone or a laptop reads in batches (interrupt coalescing, GRO, a
//! busy scheduler); then a batch gets one acknowledgement. The first batch of a client
//! takes longer: it checks a certificate and makes keys.

use linkem::Nanos;

use crate::endpoint::{Datagram, Endpoint, Progress};
use crate::random::Random;

/// A host.
pub struct Host {
    endpoint: Box<dyn Endpoint>,
    start: Option<Nanos>,
    wake: Nanos,
    batch: Nanos,
    /// What the first batch takes in addition, until it was read.
    handshake: Nanos,
    random: Random,
    inbox: Vec<Datagram>,
    read_at: Option<Nanos>,
    /// When the endpoint wants to act, as it said when it last did.
    timeout: Option<Nanos>,
}

impl Host {
    /// Starts at `start` and reads `batch` and up to `wake` after the first
    /// datagram of a batch has arrived, both 0 for at once.
    pub fn new(
        endpoint: Box<dyn Endpoint>,
        start: Nanos,
        wake: Nanos,
        batch: Nanos,
        seed: u64,
    ) -> Host {
        let random = Random::new(seed);
        Host {
            endpoint,
            start: Some(start),
            wake,
            batch,
            handshake: 0,
            random,
            inbox: Vec::new(),
            read_at: None,
            timeout: None,
        }
    }

    /// The first batch takes so much longer.
    pub fn with_handshake(self, handshake: Nanos) -> Host {
        Host { handshake, ..self }
    }

    /// A datagram arrives.
    pub fn receive(&mut self, now: Nanos, datagram: Datagram) {
        self.inbox.push(datagram);
        if self.read_at.is_none() {
            let handshake = std::mem::take(&mut self.handshake);
            self.read_at = Some(now + self.batch + handshake + self.random.below(self.wake + 1));
        }
    }

    /// When [`Host::act`] is wanted.
    pub fn next_timeout(&self) -> Option<Nanos> {
        if self.start.is_some() {
            return self.start;
        }
        [self.timeout, self.read_at].into_iter().flatten().min()
    }

    /// Does what is due and appends what is to be sent.
    pub fn act(&mut self, now: Nanos, out: &mut Vec<Datagram>) {
        if self.start.is_some_and(|start| start > now) {
            return;
        }
        let mut acted = false;
        if self.start.take().is_some() {
            self.timeout = self.endpoint.next_timeout();
            acted = true;
        }
        if self.timeout.is_some_and(|at| at <= now) {
            self.endpoint.on_timeout(now);
            acted = true;
        }
        if self.read_at.take_if(|at| *at <= now).is_some() {
            for datagram in self.inbox.drain(..) {
                self.endpoint.receive(now, datagram);
                if self.batch == 0 && self.wake == 0 {
                    self.endpoint.transmit(now, out);
                }
            }
            acted = true;
        }
        if acted {
            self.endpoint.transmit(now, out);
            self.timeout = self.endpoint.next_timeout();
        }
    }

    /// When the endpoint had everything.
    pub fn done_at(&self) -> Option<Nanos> {
        self.endpoint.done_at()
    }

    /// What the endpoint saw.
    pub fn progress(&self) -> Progress {
        self.endpoint.progress()
    }
}
