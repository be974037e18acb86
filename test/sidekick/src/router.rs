// SPDX-License-Identifier: GPL-2.0-or-later
//! A router with one session: only what the protocol's description says, as simply as
//! can be, to have something else to test senders with than the router itself.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::time::Duration;

use pemi_quack::{AnyQuack, Hello, Interval, Message};

/// A router.
pub struct Model {
    /// What makes cookies; another one after a restart.
    key: u64,
    /// Of the next counting.
    epoch: u32,
    /// The next quACK's.
    sequence: u16,
    lifetime_s: u16,
    session: Option<Session>,
}

struct Session {
    hello: Hello,
    quack: AnyQuack,
    /// Packets since the last quACK.
    packets: u16,
    /// When the last packet came.
    last: Duration,
    /// Between the last ones, latest last.
    gaps: VecDeque<Duration>,
    /// When to quACK without a packet.
    due: Option<Duration>,
    /// QuACKs because the next packet is late.
    late: u32,
}

impl Session {
    /// A packet late by a quarter of the usual gap is late; another one may be then, too.
    fn expect(&mut self, now: Duration) {
        let mut gaps: Vec<Duration> = self.gaps.iter().copied().collect();
        gaps.sort_unstable();
        let usual = gaps.get(gaps.len() / 2).copied().unwrap_or_default();
        let share = if self.late == 0 { 1.25 } else { 1.0 };
        self.due = (self.late < 3).then(|| now + usual.mul_f64(share));
    }
}

impl Model {
    /// Nothing is known yet. The first counting has this epoch, the first quACK this
    /// sequence number.
    pub fn new(key: u64, epoch: u32, sequence: u16) -> Model {
        Model { key, epoch, sequence, lifetime_s: 30, session: None }
    }

    /// Whether it has a session.
    pub fn has_session(&self) -> bool {
        self.session.is_some()
    }

    /// The HELLO that the session runs by.
    pub fn hello(&self) -> Option<Hello> {
        self.session.as_ref().map(|session| session.hello)
    }

    /// A sender said something; perhaps there is an answer.
    pub fn on_message(&mut self, bytes: &[u8]) -> Option<Vec<u8>> {
        match Message::parse(bytes).ok()? {
            Message::Hello(hello) => self.on_hello(hello),
            Message::Reset { token, epoch } => {
                let hello = self.hello().filter(|hello| hello.token == token)?;
                if epoch == self.epoch {
                    self.begin(hello);
                }
                Some(self.accept(hello))
            }
            Message::Bye { token } => {
                self.session.take_if(|session| session.hello.token == token);
                None
            }
            _ => None,
        }
    }

    fn on_hello(&mut self, hello: Hello) -> Option<Vec<u8>> {
        let token = hello.token;
        let cookie = self.key ^ token;
        match &mut self.session {
            Some(session) if session.hello.token == token => session.hello = hello,
            _ if hello.cookie != cookie => return Some(bytes(&Message::Cookie { token, cookie })),
            _ => self.begin(hello),
        }
        Some(self.accept(hello))
    }

    fn begin(&mut self, hello: Hello) {
        self.epoch = self.epoch.wrapping_add(1);
        self.session = Some(Session {
            hello,
            quack: AnyQuack::new(hello.width, hello.threshold),
            packets: 0,
            last: Duration::ZERO,
            gaps: VecDeque::new(),
            due: None,
            late: 0,
        });
    }

    fn accept(&self, hello: Hello) -> Vec<u8> {
        bytes(&Message::Accept {
            token: hello.token,
            interval: interval(&hello),
            threshold: hello.threshold,
            lifetime_s: self.lifetime_s,
            epoch: self.epoch,
        })
    }

    /// A packet of the flow came; perhaps a quACK is due.
    pub fn on_packet(&mut self, now: Duration, payload: &[u8]) -> Option<Vec<u8>> {
        let session = self.session.as_mut()?;
        let identifier = payload.get(usize::from(session.hello.offset)..)?;
        if !session.quack.insert(identifier) {
            return None;
        }
        session.packets += 1;
        if session.gaps.len() == 9 {
            session.gaps.pop_front();
        }
        session.gaps.push_back(now.saturating_sub(session.last));
        session.last = now;
        session.late = 0;
        match interval(&session.hello) {
            Interval::Packets(every) if session.packets >= every.get() => Some(self.quack(now)?),
            Interval::Millis(every) => {
                session.due.get_or_insert(now + Duration::from_millis(every.get().into()));
                None
            }
            Interval::Adaptive => {
                session.expect(now);
                if session.packets >= 16 { self.quack(now) } else { None }
            }
            _ => None,
        }
    }

    /// When to call [`Model::on_timeout`].
    pub fn next_timeout(&self) -> Option<Duration> {
        self.session.as_ref()?.due
    }

    /// Perhaps a quACK is due.
    pub fn on_timeout(&mut self, now: Duration) -> Option<Vec<u8>> {
        let session = self.session.as_mut()?;
        session.due.take_if(|due| *due <= now)?;
        if interval(&session.hello) == Interval::Adaptive {
            session.late += 1;
            session.expect(now);
        }
        self.quack(now)
    }

    fn quack(&mut self, now: Duration) -> Option<Vec<u8>> {
        let session = self.session.as_mut()?;
        session.packets = 0;
        let mut quack = Vec::new();
        session.quack.write(session.hello.threshold, &mut quack);
        let age = now.saturating_sub(session.last).as_micros();
        self.sequence = self.sequence.wrapping_add(1);
        Some(bytes(&Message::Quack {
            token: session.hello.token,
            sequence: self.sequence,
            epoch: self.epoch,
            age_us: age.try_into().unwrap_or(u32::MAX),
            quack: &quack,
        }))
    }
}

/// What it does where it is asked to do as it is configured.
fn interval(hello: &Hello) -> Interval {
    match hello.interval {
        Interval::Router => Interval::Packets(NonZeroU16::new(2).expect("not zero")),
        interval => interval,
    }
}

fn bytes(message: &Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.write(&mut out);
    out
}
