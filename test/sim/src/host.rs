// SPDX-License-Identifier: GPL-2.0-or-later
//! A host around an endpoint: when it starts, and how late it looks at what has
//! arrived. A phone or a laptop reads in batches (interrupt coalescing, GRO, a
//! busy scheduler); then a batch gets one acknowledgement. The first batch of a client
//! takes longer: it checks a certificate and makes keys. What it makes of a batch may
//! leave later still, and does not tell of what has come by then.

use std::collections::VecDeque;

use linkem::Nanos;

use crate::endpoint::{Datagram, Endpoint, Progress};
use crate::random::Random;

/// Shares are drawn as so many of this.
const PARTS: u64 = 1 << 20;

/// A host.
pub struct Host {
    endpoint: Box<dyn Endpoint>,
    start: Option<Nanos>,
    wake: Nanos,
    batch: Nanos,
    /// What the first batch takes in addition, until it was read.
    handshake: Nanos,
    /// How long what it sends takes to leave, at most.
    reply: Nanos,
    /// How many of [`PARTS`] batches are read later still, and by how much at most.
    pauses: (u64, Nanos),
    random: Random,
    inbox: Vec<Datagram>,
    read_at: Option<Nanos>,
    /// What has yet to leave, and when.
    outbox: VecDeque<(Nanos, Datagram)>,
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
            reply: 0,
            pauses: (0, 0),
            random,
            inbox: Vec::new(),
            read_at: None,
            outbox: VecDeque::new(),
            timeout: None,
        }
    }

    /// The first batch takes so much longer.
    pub fn with_handshake(self, handshake: Nanos) -> Host {
        Host { handshake, ..self }
    }

    /// What it sends leaves up to so much later.
    pub fn with_replies(self, reply: Nanos) -> Host {
        Host { reply, ..self }
    }

    /// So many of a hundred batches are read up to so much later: something else was done meanwhile.
    pub fn with_pauses(self, percent: f64, longest: Nanos) -> Host {
        Host { pauses: ((percent / 100.0 * PARTS as f64).round() as u64, longest), ..self }
    }

    /// A datagram arrives.
    pub fn receive(&mut self, now: Nanos, datagram: Datagram) {
        self.inbox.push(datagram);
        if self.read_at.is_none() {
            let handshake = std::mem::take(&mut self.handshake);
            let wakes = now + self.batch + handshake + self.random.below(self.wake + 1);
            self.read_at = Some(wakes + self.pause());
        }
    }

    fn pause(&mut self) -> Nanos {
        let (often, longest) = self.pauses;
        let pauses = often > 0 && self.random.below(PARTS) < often;
        if pauses { self.random.below(longest + 1) } else { 0 }
    }

    /// When [`Host::act`] is wanted.
    pub fn next_timeout(&self) -> Option<Nanos> {
        if self.start.is_some() {
            return self.start;
        }
        let leaves = self.outbox.front().map(|(at, _)| *at);
        [self.timeout, self.read_at, leaves].into_iter().flatten().min()
    }

    /// Does what is due and appends what is to be sent.
    pub fn act(&mut self, now: Nanos, out: &mut Vec<Datagram>) {
        if self.reply == 0 {
            return self.work(now, out);
        }
        let mut made = Vec::new();
        self.work(now, &mut made);
        if !made.is_empty() {
            let last = self.outbox.back().map_or(now, |(at, _)| *at);
            let at = last.max(now + self.random.below(self.reply + 1));
            self.outbox.extend(made.into_iter().map(|datagram| (at, datagram)));
        }
        let ready = self.outbox.partition_point(|(at, _)| *at <= now);
        out.extend(self.outbox.drain(..ready).map(|(_, datagram)| datagram));
    }

    fn work(&mut self, now: Nanos, out: &mut Vec<Datagram>) {
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::*;
    use crate::endpoint::Ecn;

    const US: Nanos = 1000;

    /// Replies to all that has come with one datagram that says how many those were.
    #[derive(Default)]
    struct Counts(u8);

    impl Endpoint for Counts {
        fn receive(&mut self, _: Nanos, _: Datagram) {
            self.0 += 1;
        }
        fn next_timeout(&mut self) -> Option<Nanos> {
            None
        }
        fn on_timeout(&mut self, _: Nanos) {}
        fn transmit(&mut self, _: Nanos, out: &mut Vec<Datagram>) {
            if self.0 > 0 {
                out.push(datagram(std::mem::take(&mut self.0)));
            }
        }
        fn done_at(&self) -> Option<Nanos> {
            None
        }
        fn progress(&self) -> Progress {
            Progress::default()
        }
    }

    fn datagram(byte: u8) -> Datagram {
        Datagram { bytes: Bytes::from(vec![byte]), ecn: Ecn::NotEct }
    }

    /// When each reply leaves and how many of a thousand packets, 100 us apart, it is about.
    fn replies(host: Host) -> Vec<(Nanos, u8)> {
        let mut host = host;
        let (mut left, mut out) = (Vec::new(), Vec::new());
        for came in (1..=1000).map(|n| n * 100 * US) {
            while let Some(at) = host.next_timeout().filter(|at| *at < came) {
                host.act(at, &mut out);
                left.extend(out.drain(..).map(|reply| (at, reply.bytes[0])));
            }
            host.receive(came, datagram(0));
        }
        left
    }

    fn host() -> Host {
        Host::new(Box::new(Counts::default()), 0, 0, 50 * US, 1)
    }

    #[test]
    fn a_reply_that_leaves_late_tells_of_nothing_that_has_come_by_then() {
        let late = replies(host().with_replies(250 * US));
        assert!(late.iter().all(|(_, packets)| *packets == 1));
        assert!(late.is_sorted(), "and none overtakes another");
        let after = |(n, (left, _)): (usize, &(Nanos, u8))| left - (n as Nanos + 1) * 100 * US;
        let longest = late.iter().enumerate().map(after).max().unwrap();
        assert!((200 * US..=300 * US).contains(&longest), "{longest}");
    }

    #[test]
    fn some_batches_come_of_a_pause() {
        let long = |percent| {
            let replies = replies(host().with_pauses(percent, 2000 * US));
            replies.iter().filter(|(_, packets)| *packets > 1).count()
        };
        assert_eq!(long(0.0), 0);
        assert!((5..30).contains(&long(2.0)), "{}", long(2.0));
        assert!(long(100.0) > 80);
    }
}
