// SPDX-License-Identifier: GPL-2.0-or-later
//! What senders and routers tell each other around quACKs; the crate's README has
//! the bytes one by one. No answer to a HELLO is longer than the HELLO, so that nobody
//! can use a router to flood others.

mod bytes;

use core::net::IpAddr;
use core::num::{NonZeroU8, NonZeroU16};

use crate::any::Width;

/// Of the messages that [`Message::write`] makes and [`Message::parse`] takes.
pub const PROTOCOL: u8 = 1;
/// The router's UDP port, unless it is configured otherwise.
pub const PORT: u16 = 5103;

/// A number that the sender chose at random for one session. Whoever does not
/// see the messages cannot forge any.
pub type Token = u64;

/// When the router sends quACKs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Interval {
    /// As the router is configured.
    #[default]
    Router,
    /// After so many packets.
    Packets(NonZeroU16),
    /// After so many milliseconds in which packets came.
    Millis(NonZeroU16),
    /// When a packet that is due by the flow's cadence is late, and seldom besides.
    Adaptive,
}

/// A sender asks for quACKs about one flow of its own; with a session running,
/// that it goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Of the session.
    pub token: Token,
    /// What the router gave in [`Message::Cookie`]; zero before.
    pub cookie: u64,
    /// Bits of an identifier.
    pub width: Width,
    /// How many missing packets a quACK can name.
    pub threshold: NonZeroU8,
    /// When to send quACKs.
    pub interval: Interval,
    /// Where identifiers begin in the UDP payload, bytes.
    pub offset: u16,
    /// The flow's UDP port at the sender. Its address is that which the message comes from.
    pub client_port: u16,
    /// The flow's other end, its address.
    pub server: IpAddr,
    /// And its UDP port.
    pub server_port: u16,
    /// How many packets of this session quACKs have shown to be missing, modulo
    /// 65,536: for the router's statistics, nothing else.
    pub losses: u16,
}

/// Why a router will not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    /// It has as many sessions as it may have.
    Full,
    /// It cannot do what the message asks for.
    Unsupported,
}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Message<'a> {
    /// Sender to router.
    Hello(Hello),
    /// Router to sender: say it again with this, so that it is known to be you.
    Cookie {
        /// Of the session.
        token: Token,
        /// For the next [`Hello`].
        cookie: u64,
    },
    /// Router to sender: the session runs.
    Accept {
        /// Of the session.
        token: Token,
        /// What is done, never [`Interval::Router`].
        interval: Interval,
        /// What is done; not more than was asked for.
        threshold: NonZeroU8,
        /// The session ends if nothing of it is heard for so long, seconds.
        lifetime_s: u16,
        /// Of which counting: another one than before means that it began anew.
        epoch: u32,
    },
    /// Router to sender: it will not.
    Refuse {
        /// Of the session.
        token: Token,
        /// Why.
        reason: Reason,
    },
    /// Router to sender.
    Quack {
        /// Of the session.
        token: Token,
        /// Counts these messages, modulo 65,536: late ones say nothing new.
        sequence: u16,
        /// Of which counting.
        epoch: u32,
        /// How long ago the router got the last packet it counted, in
        /// microseconds. What was sent less than this after that one, and is
        /// missing, is lost and not in flight.
        age_us: u32,
        /// As [`Quack::write`](crate::Quack::write) makes it.
        quack: &'a [u8],
    },
    /// Sender to router: count from nothing again. The answer is [`Message::Accept`].
    Reset {
        /// Of the session.
        token: Token,
        /// The counting that is to end; a message that was late ends no later one.
        epoch: u32,
    },
    /// Either way: the session has ended.
    Bye {
        /// Of the session.
        token: Token,
    },
}

impl Message<'_> {
    /// The session that it is of.
    pub fn token(&self) -> Token {
        match *self {
            Message::Hello(Hello { token, .. })
            | Message::Cookie { token, .. }
            | Message::Accept { token, .. }
            | Message::Refuse { token, .. }
            | Message::Quack { token, .. }
            | Message::Reset { token, .. }
            | Message::Bye { token } => token,
        }
    }
}
