// SPDX-License-Identifier: GPL-2.0-or-later
//! The sender: its log, and what a quACK says about it.
//!
//! [`Sender`] knows no clock and no socket. Times are [`Duration`]s since any moment,
//! always the same one. The caller
//!
//! - sends what [`Sender::poll_message`] gives to the router, from the address that the
//!   flow has,
//! - tells each packet of the flow when it sends it ([`Sender::on_sent`]),
//! - hands over what comes from the router ([`Sender::on_message`]),
//! - asks which packets are lost ([`Sender::next_lost`]), and sends them again,
//! - and does so again no later than at [`Sender::next_timeout`].
//!
//! ```
//! use core::num::NonZeroU8;
//! use core::time::Duration;
//! use pemi_sidekick::sender::{Options, Sender, State};
//!
//! let server = ([192, 0, 2, 1], 4433).into();
//! let mut sender = Sender::new(Options::new(0x1234_5678_9abc_def0, 50_000, server));
//! let now = Duration::ZERO;
//! let hello = sender.poll_message(now).expect("it asks at once");
//! assert_eq!(hello.len(), 48);
//! sender.on_sent(now, 1, b"a packet, encrypted");
//! sender.on_message(now, b"not from the router");
//! assert_eq!(sender.next_lost(now), None);
//! assert_eq!(sender.state(now), State::Asking);
//! ```

mod ledger;
mod link;

use std::boxed::Box;
use std::net::SocketAddr;
use std::num::NonZeroU8;
use std::time::Duration;
use std::vec::Vec;

use pemi_quack::{AnyQuack, Hello, Interval, Message, Token, Width};

use ledger::{Books, Outcome};
use link::{Link, Turn};

/// What a sender asks the router for, and how it takes the answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Random, of a good generator: who guesses it can name any packet lost.
    pub token: Token,
    /// The flow's UDP port at the sender.
    pub client_port: u16,
    /// The flow's other end.
    pub server: SocketAddr,
    /// Bits of an identifier.
    pub width: Width,
    /// Where in the UDP payload identifiers begin, bytes. From there on, packets must
    /// look random; shorter ones are left out, here as by the router.
    pub offset: u16,
    /// How many missing packets a quACK can name.
    pub threshold: NonZeroU8,
    /// When the router is to send quACKs.
    pub interval: Interval,
    /// How many packets are remembered at most. Enough for what is sent between two
    /// quACKs and until the second is here; each takes 48 bytes and an identifier.
    pub log_limit: usize,
    /// By how much packets may be late, compared with those around them, and are not
    /// taken for lost: reordering, and how much the delay to the router varies.
    pub tolerance: Duration,
}

impl Options {
    /// 32 bits from the first byte of the payload on, a threshold of 8, quACKs as the
    /// router is configured, 4,096 packets, 1 ms.
    pub fn new(token: Token, client_port: u16, server: SocketAddr) -> Options {
        Options {
            token,
            client_port,
            server,
            width: Width::Bits32,
            offset: 0,
            threshold: NonZeroU8::new(8).unwrap_or(NonZeroU8::MIN),
            interval: Interval::Router,
            log_limit: 4096,
            tolerance: Duration::from_millis(1),
        }
    }
}

/// What a sender can expect of its router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// It has not answered, or no more. It is asked again and again.
    Asking,
    /// It counts, and losses are found.
    Running,
    /// It will not. It is asked again, seldom.
    Refused,
    /// [`Sender::close`] was called.
    Closed,
}

/// Counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets reported lost.
    pub losses: u64,
    /// Reported ones that the router got after all.
    pub spurious: u64,
    /// QuACKs that were looked at.
    pub quacks: u64,
    /// Their bytes, with what is around them in the message, without UDP's header.
    pub quack_bytes: u64,
    /// QuACKs that could not be decoded. Packets until then stay unaccounted for.
    pub resyncs: u64,
    /// How often a router that had answered no longer did.
    pub fallbacks: u64,
}

/// The sender's end of one session.
pub struct Sender {
    options: Options,
    books: Box<dyn Books + Send>,
    link: Link,
    stats: Stats,
}

impl Sender {
    /// Wants to ask at once.
    pub fn new(options: Options) -> Sender {
        Sender {
            options,
            books: ledger::books(&options),
            link: Link::new(options.interval),
            stats: Stats::default(),
        }
    }

    /// What to send to the router now, if anything; to be called until there is nothing.
    /// A message that gets lost is sent again when it is time.
    pub fn poll_message(&mut self, now: Duration) -> Option<Vec<u8>> {
        let turn = self.link.poll(now);
        self.stats.fallbacks = self.link.fallbacks();
        let token = self.options.token;
        let message = match turn? {
            Turn::Bye => Message::Bye { token },
            Turn::Reset { epoch } => Message::Reset { token, epoch },
            Turn::Hello { cookie } => Message::Hello(Hello {
                token,
                cookie,
                width: self.options.width,
                threshold: self.options.threshold,
                interval: self.options.interval,
                offset: self.options.offset,
                client_port: self.options.client_port,
                server: self.options.server.ip(),
                server_port: self.options.server.port(),
                losses: self.stats.losses as u16,
            }),
        };
        let mut bytes = Vec::new();
        message.write(&mut bytes);
        Some(bytes)
    }

    /// When to call [`Sender::poll_message`] and [`Sender::next_lost`] next, if nothing
    /// happens before; none once closed.
    pub fn next_timeout(&self) -> Option<Duration> {
        let next = self.link.next_timeout()?;
        Some(self.books.due().map_or(next, |due| due.min(next)))
    }

    /// A packet of the flow goes out. `tag` is what the caller calls it when it is
    /// lost; whatever is sent again should get another one, since it can be lost again.
    pub fn on_sent(&mut self, now: Duration, tag: u64, payload: &[u8]) {
        if self.link.is_closed() {
            return;
        }
        if self.books.on_sent(now, tag, payload) {
            self.link.on_sent(now);
        }
    }

    /// A message has come from the router's address. What is none, is of another
    /// session or is old does nothing.
    pub fn on_message(&mut self, now: Duration, bytes: &[u8]) {
        let Ok(message) = Message::parse(bytes) else { return };
        if message.token() != self.options.token || self.link.is_closed() {
            return;
        }
        match message {
            Message::Cookie { cookie, .. } => self.link.on_cookie(now, cookie),
            Message::Accept { interval, lifetime_s, epoch, .. } => {
                if self.link.on_accept(now, interval, lifetime_s, epoch) {
                    self.books.begin();
                }
            }
            Message::Refuse { reason, .. } => self.link.on_refuse(now, reason),
            Message::Bye { .. } => self.link.on_bye(now),
            Message::Quack { sequence, epoch, age_us, quack, .. } => {
                let Ok(quack) = AnyQuack::parse(quack) else { return };
                if quack.width() != self.options.width {
                    return;
                }
                let Some(new_epoch) = self.link.on_quack(now, sequence, epoch) else { return };
                if new_epoch {
                    self.books.begin();
                }
                self.stats.quacks += 1;
                self.stats.quack_bytes += bytes.len() as u64;
                let age = Duration::from_micros(age_us.into());
                let outcome = self.books.on_quack(self.link.next_quack(now), age, &quack);
                if outcome == Outcome::Undecodable {
                    self.stats.resyncs += 1;
                }
                self.link.on_outcome(now, outcome);
            }
            // What only senders say.
            Message::Hello(_) | Message::Reset { .. } => {}
        }
        self.count();
    }

    /// The tag of a packet that is lost: each once, and none that has not been sent
    /// since the session began. To be called until there is none.
    pub fn next_lost(&mut self, now: Duration) -> Option<u64> {
        let lost = self.books.next_lost(now);
        self.count();
        lost
    }

    /// Whether losses are found at present. If not, it is for the caller to find them
    /// in another way.
    pub fn is_running(&self, now: Duration) -> bool {
        self.state(now) == State::Running
    }

    /// What can be expected of the router at present.
    pub fn state(&self, now: Duration) -> State {
        self.link.state(now)
    }

    /// What has been counted.
    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The session is to end: [`Sender::poll_message`] says so to the router, once.
    pub fn close(&mut self) {
        self.link.close();
    }

    fn count(&mut self) {
        (self.stats.losses, self.stats.spurious) = self.books.counts();
        self.stats.fallbacks = self.link.fallbacks();
    }
}
