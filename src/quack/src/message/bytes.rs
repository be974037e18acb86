// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages to bytes and back. Each type has a length of its own, and whoever reads
//! one looks at every byte.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv6Addr};
use core::num::{NonZeroU8, NonZeroU16};

use super::{Hello, Interval, Message, PROTOCOL, Reason, Token};
use crate::any::Width;
use crate::error::MessageError;

/// Bytes of a header: version, type, two of the type's own, token.
const HEADER: usize = 12;
/// Bytes of a whole message of each type that is longer than its header.
const HELLO: usize = 48;
const COOKIE: usize = 20;
const ACCEPT: usize = 20;
const RESET: usize = 16;
/// The bytes of a [`Message::Quack`] before the quACK.
const BEFORE_QUACK: usize = 20;

/// Byte 1 of a message.
mod kind {
    pub const HELLO: u8 = 1;
    pub const COOKIE: u8 = 2;
    pub const ACCEPT: u8 = 3;
    pub const REFUSE: u8 = 4;
    pub const QUACK: u8 = 5;
    pub const RESET: u8 = 6;
    pub const BYE: u8 = 7;
}

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
    /// Appends its bytes.
    pub fn write(&self, out: &mut Vec<u8>) {
        let mut header = |kind: u8, own: [u8; 2]| {
            out.extend_from_slice(&[PROTOCOL, kind, own[0], own[1]]);
            out.extend_from_slice(&self.token().to_be_bytes());
        };
        match *self {
            Message::Hello(hello) => {
                header(kind::HELLO, [hello.width.bytes() as u8, hello.threshold.get()]);
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
                header(kind::COOKIE, [0, 0]);
                out.extend_from_slice(&cookie.to_be_bytes());
            }
            Message::Accept { interval, threshold, lifetime_s, epoch, .. } => {
                let (mode, value) = interval.to_wire();
                header(kind::ACCEPT, [mode, threshold.get()]);
                out.extend_from_slice(&value.to_be_bytes());
                out.extend_from_slice(&lifetime_s.to_be_bytes());
                out.extend_from_slice(&epoch.to_be_bytes());
            }
            Message::Refuse { reason, .. } => {
                header(kind::REFUSE, [if reason == Reason::Full { 1 } else { 2 }, 0]);
            }
            Message::Quack { sequence, epoch, age_us, quack, .. } => {
                header(kind::QUACK, sequence.to_be_bytes());
                out.extend_from_slice(&epoch.to_be_bytes());
                out.extend_from_slice(&age_us.to_be_bytes());
                out.extend_from_slice(quack);
            }
            Message::Reset { epoch, .. } => {
                header(kind::RESET, [0, 0]);
                out.extend_from_slice(&epoch.to_be_bytes());
            }
            Message::Bye { .. } => header(kind::BYE, [0, 0]),
        }
    }

    /// Reads one. The quACK in a [`Message::Quack`] is not looked at, but for
    /// there being one.
    ///
    /// # Errors
    ///
    /// What is wrong first of length, version, type and the fields in their order.
    pub fn parse(bytes: &'a [u8]) -> Result<Message<'a>, MessageError> {
        let frame = Frame::cut(bytes)?;
        let token = frame.token;
        match frame.kind {
            kind::HELLO => frame.hello().map(Message::Hello),
            kind::COOKIE => {
                let cookie = u64::from_be_bytes(*frame.all(COOKIE)?);
                frame.nothing_of_its_own()?;
                Ok(Message::Cookie { token, cookie })
            }
            kind::ACCEPT => frame.accept(),
            kind::REFUSE => {
                let [] = frame.all(HEADER)?;
                let reason = match frame.own {
                    [1, 0] => Reason::Full,
                    [2, 0] => Reason::Unsupported,
                    _ => return Err(MessageError::Field("reason")),
                };
                Ok(Message::Refuse { token, reason })
            }
            kind::QUACK => frame.quack(),
            kind::RESET => {
                let epoch = u32::from_be_bytes(*frame.all(RESET)?);
                frame.nothing_of_its_own()?;
                Ok(Message::Reset { token, epoch })
            }
            kind::BYE => {
                let [] = frame.all(HEADER)?;
                frame.nothing_of_its_own()?;
                Ok(Message::Bye { token })
            }
            kind => Err(MessageError::Type(kind)),
        }
    }
}

/// A message with its header taken apart.
struct Frame<'a> {
    kind: u8,
    /// The two bytes of the header that are the type's own.
    own: [u8; 2],
    token: Token,
    /// What follows the header.
    body: &'a [u8],
}

impl<'a> Frame<'a> {
    fn cut(bytes: &'a [u8]) -> Result<Frame<'a>, MessageError> {
        let short = MessageError::Length { got: bytes.len(), wanted: HEADER };
        let (&[version, kind, a, b], rest) = bytes.split_first_chunk().ok_or(short)?;
        let (&token, body) = rest.split_first_chunk().ok_or(short)?;
        if version != PROTOCOL {
            return Err(MessageError::Version(version));
        }
        Ok(Frame { kind, own: [a, b], token: Token::from_be_bytes(token), body })
    }

    /// That the message has another number of bytes than `wanted`.
    fn length(&self, wanted: usize) -> MessageError {
        MessageError::Length { got: HEADER + self.body.len(), wanted }
    }

    /// The whole body, of a type that always has `wanted` bytes: `N` besides the header.
    fn all<const N: usize>(&self, wanted: usize) -> Result<&'a [u8; N], MessageError> {
        self.body.try_into().map_err(|_| self.length(wanted))
    }

    /// Of types that put nothing into the two bytes.
    fn nothing_of_its_own(&self) -> Result<(), MessageError> {
        if self.own == [0, 0] { Ok(()) } else { Err(MessageError::Field("reserved")) }
    }

    fn hello(&self) -> Result<Hello, MessageError> {
        let body: &[u8; HELLO - HEADER] = self.all(HELLO)?;
        let short = |at: usize| u16::from_be_bytes([body[at], body[at + 1]]);
        let [a, b, c, d, e, f, g, h, mode, reserved, ..] = *body;
        let width =
            Width::from_bytes(usize::from(self.own[0])).ok_or(MessageError::Field("width"))?;
        let threshold = NonZeroU8::new(self.own[1]).ok_or(MessageError::Field("threshold"))?;
        let interval = Interval::from_wire(mode, short(10))?;
        if reserved != 0 {
            return Err(MessageError::Field("reserved"));
        }
        let mut server = [0; 16];
        server.copy_from_slice(&body[20..]);
        Ok(Hello {
            token: self.token,
            cookie: u64::from_be_bytes([a, b, c, d, e, f, g, h]),
            width,
            threshold,
            interval,
            offset: short(12),
            client_port: short(14),
            server: Ipv6Addr::from(server).to_canonical(),
            server_port: short(16),
            losses: short(18),
        })
    }

    fn accept(&self) -> Result<Message<'a>, MessageError> {
        let [a, b, c, d, e, f, g, h] = *self.all(ACCEPT)?;
        let interval = Interval::from_wire(self.own[0], u16::from_be_bytes([a, b]))?;
        if interval == Interval::Router {
            return Err(MessageError::Field("interval"));
        }
        Ok(Message::Accept {
            token: self.token,
            interval,
            threshold: NonZeroU8::new(self.own[1]).ok_or(MessageError::Field("threshold"))?,
            lifetime_s: u16::from_be_bytes([c, d]),
            epoch: u32::from_be_bytes([e, f, g, h]),
        })
    }

    fn quack(&self) -> Result<Message<'a>, MessageError> {
        let short = self.length(BEFORE_QUACK + 1);
        let (&[a, b, c, d, e, f, g, h], quack) = self.body.split_first_chunk().ok_or(short)?;
        if quack.is_empty() {
            return Err(short);
        }
        Ok(Message::Quack {
            token: self.token,
            sequence: u16::from_be_bytes(self.own),
            epoch: u32::from_be_bytes([a, b, c, d]),
            age_us: u32::from_be_bytes([e, f, g, h]),
            quack,
        })
    }
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
