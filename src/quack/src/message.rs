//! What senders and routers tell each other around quACKs; the crate's README has
//! the bytes one by one. No answer to a HELLO is longer than the HELLO, so that nobody
//! can use a router to flood others.

use alloc::vec::Vec;
use core::error::Error;
use core::fmt;
use core::net::{IpAddr, Ipv6Addr};
use core::num::{NonZeroU8, NonZeroU16};

use crate::any::Width;

/// Of the messages that [`Message::write`] makes and [`Message::parse`] takes.
pub const PROTOCOL: u8 = 1;
/// The router's UDP port, unless it is configured otherwise.
pub const PORT: u16 = 5103;

/// Version, type, two bytes of the type's own, token.
const HEADER: usize = 12;
const HELLO: usize = 48;
const COOKIE: usize = 20;
const ACCEPT: usize = 20;
const RESET: usize = 16;
/// The bytes of a [`Message::Quack`] before the quACK.
const BEFORE_QUACK: usize = 20;

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

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageError {
    /// Another number of bytes than the type has.
    Length {
        /// Bytes given.
        got: usize,
        /// Bytes that it takes, at least.
        wanted: usize,
    },
    /// Byte 0 names a version that is not known.
    Version(u8),
    /// Byte 1 names a type that is not known.
    Type(u8),
    /// A field has a value that means nothing.
    Field(&'static str),
}

impl fmt::Display for MessageError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            MessageError::Length { got, wanted } => write!(f, "length: {got} bytes, not {wanted}"),
            MessageError::Version(version) => write!(f, "version: {version} is unknown"),
            MessageError::Type(kind) => write!(f, "type: {kind} is unknown"),
            MessageError::Field(name) => write!(f, "{name}: not a value that it can have"),
        }
    }
}

impl Error for MessageError {}

impl Interval {
    fn to_wire(self) -> (u8, u16) {
        match self {
            Interval::Router => (0, 0),
            Interval::Packets(packets) => (1, packets.get()),
            Interval::Millis(millis) => (2, millis.get()),
            Interval::Adaptive => (3, 0),
        }
    }

    fn from_wire(mode: u8, value: u16) -> Result<Interval, MessageError> {
        match (mode, NonZeroU16::new(value)) {
            (0, None) => Ok(Interval::Router),
            (1, Some(packets)) => Ok(Interval::Packets(packets)),
            (2, Some(millis)) => Ok(Interval::Millis(millis)),
            (3, None) => Ok(Interval::Adaptive),
            _ => Err(MessageError::Field("interval")),
        }
    }
}

impl<'a> Message<'a> {
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

    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut header = |kind: u8, own: [u8; 2]| {
            out.extend_from_slice(&[PROTOCOL, kind, own[0], own[1]]);
            out.extend_from_slice(&self.token().to_be_bytes());
        };
        match *self {
            Message::Hello(hello) => {
                header(1, [hello.width.bytes() as u8, hello.threshold.get()]);
                let (mode, value) = hello.interval.to_wire();
                out.extend_from_slice(&hello.cookie.to_be_bytes());
                out.extend_from_slice(&[mode, 0]);
                for number in
                    [value, hello.offset, hello.client_port, hello.server_port, hello.losses]
                {
                    out.extend_from_slice(&number.to_be_bytes());
                }
                let server = match hello.server {
                    IpAddr::V4(address) => address.to_ipv6_mapped(),
                    IpAddr::V6(address) => address,
                };
                out.extend_from_slice(&server.octets());
            }
            Message::Cookie { cookie, .. } => {
                header(2, [0, 0]);
                out.extend_from_slice(&cookie.to_be_bytes());
            }
            Message::Accept { interval, threshold, lifetime_s, epoch, .. } => {
                let (mode, value) = interval.to_wire();
                header(3, [mode, threshold.get()]);
                out.extend_from_slice(&value.to_be_bytes());
                out.extend_from_slice(&lifetime_s.to_be_bytes());
                out.extend_from_slice(&epoch.to_be_bytes());
            }
            Message::Refuse { reason, .. } => {
                header(4, [if reason == Reason::Full { 1 } else { 2 }, 0]);
            }
            Message::Quack { sequence, epoch, age_us, quack, .. } => {
                header(5, sequence.to_be_bytes());
                out.extend_from_slice(&epoch.to_be_bytes());
                out.extend_from_slice(&age_us.to_be_bytes());
                out.extend_from_slice(quack);
            }
            Message::Reset { epoch, .. } => {
                header(6, [0, 0]);
                out.extend_from_slice(&epoch.to_be_bytes());
            }
            Message::Bye { .. } => header(7, [0, 0]),
        }
    }

    /// Reads one. The quACK in a [`Message::Quack`] is not looked at, but for
    /// there being one.
    ///
    /// # Errors
    ///
    /// What is wrong first of length, version, type and the fields in their order.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, MessageError> {
        let (header, body) = take::<HEADER>(bytes, bytes.len(), HEADER)?;
        let [version, kind, own @ .., _, _, _, _, _, _, _, _] = *header;
        let token = number(header, 4);
        if version != PROTOCOL {
            return Err(MessageError::Version(version));
        }
        let exactly = |wanted| match bytes.len() {
            got if got == wanted => Ok(()),
            got => Err(MessageError::Length { got, wanted }),
        };
        let none = |bytes: &[u8]| match bytes.iter().all(|byte| *byte == 0) {
            true => Ok(()),
            false => Err(MessageError::Field("reserved")),
        };
        match kind {
            1 => exactly(HELLO).and_then(|()| hello(token, own, body)).map(Message::Hello),
            2 => {
                exactly(COOKIE)?;
                none(&own)?;
                Ok(Message::Cookie { token, cookie: number(body, 0) })
            }
            3 => {
                exactly(ACCEPT)?;
                let (fields, _) = take::<8>(body, bytes.len(), ACCEPT)?;
                let [a, b, c, d, e, f, g, h] = *fields;
                let interval = Interval::from_wire(own[0], u16::from_be_bytes([a, b]))?;
                if interval == Interval::Router {
                    return Err(MessageError::Field("interval"));
                }
                Ok(Message::Accept {
                    token,
                    interval,
                    threshold: NonZeroU8::new(own[1]).ok_or(MessageError::Field("threshold"))?,
                    lifetime_s: u16::from_be_bytes([c, d]),
                    epoch: u32::from_be_bytes([e, f, g, h]),
                })
            }
            4 => {
                exactly(HEADER)?;
                let reason = match own {
                    [1, 0] => Reason::Full,
                    [2, 0] => Reason::Unsupported,
                    _ => return Err(MessageError::Field("reason")),
                };
                Ok(Message::Refuse { token, reason })
            }
            5 => {
                let (fields, quack) = take::<8>(body, bytes.len(), BEFORE_QUACK + 1)?;
                if quack.is_empty() {
                    return Err(MessageError::Length {
                        got: bytes.len(),
                        wanted: BEFORE_QUACK + 1,
                    });
                }
                let [a, b, c, d, e, f, g, h] = *fields;
                Ok(Message::Quack {
                    token,
                    sequence: u16::from_be_bytes(own),
                    epoch: u32::from_be_bytes([a, b, c, d]),
                    age_us: u32::from_be_bytes([e, f, g, h]),
                    quack,
                })
            }
            6 => {
                exactly(RESET)?;
                none(&own)?;
                let (&epoch, _) = take::<4>(body, bytes.len(), RESET)?;
                Ok(Message::Reset { token, epoch: u32::from_be_bytes(epoch) })
            }
            7 => {
                exactly(HEADER)?;
                none(&own)?;
                Ok(Message::Bye { token })
            }
            _ => Err(MessageError::Type(kind)),
        }
    }
}

/// The first `N` of `bytes`, which are the rest of a message of `got` that has `wanted`.
fn take<const N: usize>(
    bytes: &[u8],
    got: usize,
    wanted: usize,
) -> Result<(&[u8; N], &[u8]), MessageError> {
    bytes.split_first_chunk::<N>().ok_or(MessageError::Length { got, wanted })
}

/// Eight bytes from `at` on; the caller has looked that they are there.
fn number(bytes: &[u8], at: usize) -> u64 {
    let found = bytes.get(at..).and_then(|rest| rest.first_chunk());
    found.map_or(0, |bytes| u64::from_be_bytes(*bytes))
}

fn hello(token: Token, own: [u8; 2], body: &[u8]) -> Result<Hello, MessageError> {
    let (fields, rest) = take::<20>(body, HEADER + body.len(), HELLO)?;
    let (server, _) = take::<16>(rest, HEADER + body.len(), HELLO)?;
    let short = |at: usize| u16::from_be_bytes([fields[at], fields[at + 1]]);
    let width = Width::from_bytes(usize::from(own[0])).ok_or(MessageError::Field("width"))?;
    let threshold = NonZeroU8::new(own[1]).ok_or(MessageError::Field("threshold"))?;
    let interval = Interval::from_wire(fields[8], short(10))?;
    if fields[9] != 0 {
        return Err(MessageError::Field("reserved"));
    }
    Ok(Hello {
        token,
        cookie: number(fields, 0),
        width,
        threshold,
        interval,
        offset: short(12),
        client_port: short(14),
        server: Ipv6Addr::from(*server).to_canonical(),
        server_port: short(16),
        losses: short(18),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::net::Ipv4Addr;

    const TOKEN: Token = 0x0102_0304_0506_0708;

    fn eight() -> NonZeroU8 {
        NonZeroU8::new(8).expect("not zero")
    }

    fn hello() -> Hello {
        Hello {
            token: TOKEN,
            cookie: 0x1112_1314_1516_1718,
            width: Width::Bits32,
            threshold: eight(),
            interval: Interval::Packets(NonZeroU16::new(2).expect("not zero")),
            offset: 1,
            client_port: 0x2122,
            server: Ipv4Addr::new(192, 0, 2, 1).into(),
            server_port: 443,
            losses: 0x3132,
        }
    }

    fn bytes(message: Message<'_>) -> Vec<u8> {
        let mut out = Vec::new();
        message.write(&mut out);
        out
    }

    fn all() -> Vec<Message<'static>> {
        let token = TOKEN;
        let ten = NonZeroU16::new(10).expect("not zero");
        let mut found = Vec::from([
            Message::Hello(Hello {
                server: Ipv6Addr::LOCALHOST.into(),
                width: Width::Bits64,
                ..hello()
            }),
            Message::Cookie { token, cookie: 7 },
            Message::Quack { token, sequence: 0xfffe, epoch: 9, age_us: 20_000, quack: &[1, 2] },
            Message::Reset { token, epoch: 0xa1a2_a3a4 },
            Message::Bye { token },
            Message::Refuse { token, reason: Reason::Full },
            Message::Refuse { token, reason: Reason::Unsupported },
        ]);
        for interval in [Interval::Packets(ten), Interval::Millis(ten), Interval::Adaptive] {
            found.push(Message::Hello(Hello { interval, ..hello() }));
            let (threshold, lifetime_s, epoch) = (eight(), 30, 0xb1b2_b3b4);
            found.push(Message::Accept { token, interval, threshold, lifetime_s, epoch });
        }
        found.push(Message::Hello(Hello { interval: Interval::Router, ..hello() }));
        found
    }

    #[test]
    fn byte_by_byte() {
        let token = [1, 2, 3, 4, 5, 6, 7, 8];
        let mut expected = Vec::from([1, 1, 4, 8]);
        expected.extend(token);
        expected.extend([0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17, 0x18]);
        expected.extend([1, 0, 0, 2, 0, 1, 0x21, 0x22, 1, 187, 0x31, 0x32]);
        expected.extend([0; 10]);
        expected.extend([255, 255, 192, 0, 2, 1]);
        assert_eq!(bytes(Message::Hello(hello())), expected);
        let quack =
            Message::Quack { token: TOKEN, sequence: 0x3132, epoch: 5, age_us: 6, quack: &[7, 8] };
        let mut expected = Vec::from([1, 5, 0x31, 0x32]);
        expected.extend(token);
        expected.extend([0, 0, 0, 5, 0, 0, 0, 6, 7, 8]);
        assert_eq!(bytes(quack), expected);
    }

    #[test]
    fn there_and_back() {
        for message in all() {
            assert_eq!(Message::parse(&bytes(message)), Ok(message));
            assert_eq!(message.token(), TOKEN);
        }
    }

    #[test]
    fn no_answer_is_longer_than_the_question() {
        for message in all() {
            // quACKs go to those who have shown that they get answers.
            if !matches!(message, Message::Quack { .. }) {
                assert!(bytes(message).len() <= HELLO, "{message:?}");
            }
        }
        assert_eq!(bytes(Message::Hello(hello())).len(), HELLO);
    }

    #[test]
    fn any_other_length_is_refused() {
        for message in all() {
            let good = bytes(message);
            let open = matches!(message, Message::Quack { .. });
            for cut in 0..if open { BEFORE_QUACK + 1 } else { good.len() } {
                let error = Message::parse(&good[..cut]);
                assert!(matches!(error, Err(MessageError::Length { got, .. }) if got == cut));
            }
            let mut long = good.clone();
            long.push(0);
            assert_eq!(Message::parse(&long).is_ok(), open, "{message:?}");
        }
    }

    #[test]
    fn errors_name_the_field() {
        let error = |message: Message<'_>, at: usize, byte: u8| {
            let mut bad = bytes(message);
            bad[at] = byte;
            Message::parse(&bad).expect_err("malformed")
        };
        let hello = Message::Hello(hello());
        assert_eq!(error(hello, 0, 2), MessageError::Version(2));
        assert_eq!(error(hello, 1, 0), MessageError::Type(0));
        assert_eq!(error(hello, 1, 8), MessageError::Type(8));
        assert_eq!(error(hello, 2, 3), MessageError::Field("width"));
        assert_eq!(error(hello, 3, 0), MessageError::Field("threshold"));
        // Two packets, but as if the router chose; no packets; a mode that there is not.
        assert_eq!(error(hello, 20, 0), MessageError::Field("interval"));
        assert_eq!(error(hello, 23, 0), MessageError::Field("interval"));
        assert_eq!(error(hello, 20, 4), MessageError::Field("interval"));
        assert_eq!(error(hello, 21, 1), MessageError::Field("reserved"));
        let accept = Message::Accept {
            token: TOKEN,
            interval: Interval::Adaptive,
            threshold: eight(),
            lifetime_s: 1,
            epoch: 1,
        };
        assert_eq!(error(accept, 2, 0), MessageError::Field("interval"));
        assert_eq!(error(accept, 3, 0), MessageError::Field("threshold"));
        let refuse = Message::Refuse { token: TOKEN, reason: Reason::Full };
        assert_eq!(error(refuse, 2, 0), MessageError::Field("reason"));
        let bye = Message::Bye { token: TOKEN };
        assert_eq!(error(bye, 3, 1), MessageError::Field("reserved"));
    }
}
