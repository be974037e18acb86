// SPDX-License-Identifier: GPL-2.0-or-later
//! Netlink messages and their attributes. Numbers are in the byte order of this machine.
//!
//! A message is a head of 16 bytes (length with the head, 4; type, 2; flags, 2; sequence, 4;
//! port, 4) and a payload; an attribute a head of 4 bytes (length with the head, 2; type, 2) and
//! a payload. Both are followed by zero bytes up to a multiple of four. Generic netlink begins
//! the payload with a command, a version and two bytes of nothing.

use std::fmt;

/// Bytes of a message's head.
const HEAD: usize = 16;
/// Bytes of generic netlink's head.
const COMMAND: usize = 4;
/// Bytes of an attribute's head.
const ATTRIBUTE: usize = 4;
/// Everything begins at a multiple of it.
const ALIGNMENT: usize = 4;
/// The other two bits of an attribute's type say that it is nested, or in network order.
const TYPE: u16 = 0x3fff;

/// Type of a message: an error, or an acknowledgement (NLMSG_ERROR).
const ERROR: u16 = 2;
/// Type of a message: a dump is complete (NLMSG_DONE).
const DONE: u16 = 3;
/// Flag: it is a question (NLM_F_REQUEST).
const REQUEST: u16 = 1;
/// Flag: about everything that there is (NLM_F_ROOT and NLM_F_MATCH).
const DUMP: u16 = 0x300;

/// Bytes that are not what they should be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed;

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("malformed netlink message")
    }
}

impl std::error::Error for Malformed {}

/// One message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message<'a> {
    /// The family that it belongs to, or what the kernel says of the question.
    pub kind: u16,
    /// That of the question it answers; zero if nobody asked.
    pub sequence: u32,
    payload: &'a [u8],
}

/// What a message is, to who waits for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It has something to say.
    Content,
    /// There is no more.
    Done,
    /// The question failed with this number.
    Failed(i32),
}

impl<'a> Message<'a> {
    /// What it is.
    pub fn role(&self) -> Role {
        // A dump that failed on its way says so at its end.
        let status = self.payload.first_chunk().map_or(0, |bytes| i32::from_ne_bytes(*bytes));
        match self.kind {
            ERROR | DONE if status != 0 => Role::Failed(status.saturating_neg()),
            ERROR | DONE => Role::Done,
            _ => Role::Content,
        }
    }

    /// The command of generic netlink, if there is one.
    pub fn command(&self) -> Option<u8> {
        self.payload.first_chunk::<COMMAND>().map(|head| head[0])
    }

    /// The attributes behind the command.
    pub fn attributes(&self) -> Attributes<'a> {
        Attributes(self.payload.get(COMMAND..).unwrap_or_default())
    }

    /// A head of this many bytes, which other families than generic netlink have, and the
    /// attributes behind it.
    pub fn headed<const N: usize>(&self) -> Option<(&'a [u8; N], Attributes<'a>)> {
        let (head, rest) = self.payload.split_first_chunk()?;
        Some((head, Attributes(rest)))
    }
}

/// The messages that follow each other in these bytes; nothing after a malformed one.
#[derive(Clone, Copy, Debug)]
pub struct Messages<'a>(pub &'a [u8]);

impl<'a> Iterator for Messages<'a> {
    type Item = Result<Message<'a>, Malformed>;

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.0);
        if bytes.is_empty() {
            return None;
        }
        let message = message(bytes);
        if let Some((_, len)) = message {
            self.0 = bytes.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        }
        Some(message.map(|(message, _)| message).ok_or(Malformed))
    }
}

/// The first message, and its length.
fn message(bytes: &[u8]) -> Option<(Message<'_>, usize)> {
    let len = u32::from_ne_bytes(*bytes.first_chunk()?) as usize;
    let message = Message {
        kind: number16(bytes.get(4..6)?)?,
        sequence: number32(bytes.get(8..12)?)?,
        payload: bytes.get(HEAD..len)?,
    };
    Some((message, len))
}

/// The attributes that follow each other in these bytes, with their types; nothing from a
/// malformed one on.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.0);
        let len = usize::from(number16(bytes.get(..2)?)?);
        let kind = number16(bytes.get(2..ATTRIBUTE)?)? & TYPE;
        let payload = bytes.get(ATTRIBUTE..len)?;
        self.0 = bytes.get(len.next_multiple_of(ALIGNMENT)..).unwrap_or_default();
        Some((kind, payload))
    }
}

/// A payload of 8 bits.
pub fn number8(payload: &[u8]) -> Option<u8> {
    Some(u8::from_ne_bytes(payload.try_into().ok()?))
}

/// A payload of 16 bits.
pub fn number16(payload: &[u8]) -> Option<u16> {
    Some(u16::from_ne_bytes(payload.try_into().ok()?))
}

/// A payload of 32 bits.
pub fn number32(payload: &[u8]) -> Option<u32> {
    Some(u32::from_ne_bytes(payload.try_into().ok()?))
}

/// A payload that is a text, with or without a zero byte at its end.
pub fn text(payload: &[u8]) -> String {
    let end = payload.iter().position(|byte| *byte == 0).unwrap_or(payload.len());
    String::from_utf8_lossy(&payload[..end]).into_owned()
}

/// The head of generic netlink. Version 1 is the only one so far.
fn generic(command: u8) -> [u8; COMMAND] {
    [command, 1, 0, 0]
}

/// Writes a question.
#[derive(Clone, Debug)]
pub struct Question(Vec<u8>);

impl Question {
    /// To a family, about one thing.
    pub fn one(family: u16, command: u8, sequence: u32) -> Question {
        Question::new(family, REQUEST, sequence, &generic(command))
    }

    /// To a family, about all that there is.
    pub fn all(family: u16, command: u8, sequence: u32) -> Question {
        Question::new(family, REQUEST | DUMP, sequence, &generic(command))
    }

    /// About one thing, with a head that is no command of generic netlink.
    pub fn one_headed(kind: u16, sequence: u32, head: &[u8]) -> Question {
        Question::new(kind, REQUEST, sequence, head)
    }

    /// The same about all that there is.
    pub fn all_headed(kind: u16, sequence: u32, head: &[u8]) -> Question {
        Question::new(kind, REQUEST | DUMP, sequence, head)
    }

    fn new(family: u16, flags: u16, sequence: u32, head: &[u8]) -> Question {
        let mut bytes = vec![0; 4];
        bytes.extend(family.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend(sequence.to_ne_bytes());
        // The port is the kernel's to fill in.
        bytes.extend([0; 4]);
        bytes.extend(head);
        Question(bytes)
    }

    /// One more attribute, of at most 64 KiB.
    #[must_use]
    pub fn with(mut self, kind: u16, payload: &[u8]) -> Question {
        let payload = &payload[..payload.len().min(usize::from(u16::MAX) - ATTRIBUTE)];
        self.0.extend(((ATTRIBUTE + payload.len()) as u16).to_ne_bytes());
        self.0.extend(kind.to_ne_bytes());
        self.0.extend(payload);
        self.0.resize(self.0.len().next_multiple_of(ALIGNMENT), 0);
        self
    }

    /// With more flags: a question that is an order.
    #[must_use]
    pub fn flagged(mut self, flags: u16) -> Question {
        self.0[6..8].copy_from_slice(&(REQUEST | flags).to_ne_bytes());
        self
    }

    /// What is to be sent.
    pub fn finish(mut self) -> Vec<u8> {
        let len = self.0.len() as u32;
        self.0[..4].copy_from_slice(&len.to_ne_bytes());
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A message by hand: head, then the payload.
    fn by_hand(kind: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = ((HEAD + payload.len()) as u32).to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend([0; 2]);
        bytes.extend(sequence.to_ne_bytes());
        bytes.extend([0; 4]);
        bytes.extend(payload);
        bytes
    }

    #[test]
    fn a_question_is_a_message() {
        let question = Question::all(0x20, 17, 9).with(3, &7u32.to_ne_bytes()).with(4, b"wlan0");
        let bytes = question.finish();
        assert_eq!(bytes.len(), 16 + 4 + 8 + 12);
        assert_eq!(bytes[6..8], 0x301u16.to_ne_bytes());
        let messages: Vec<_> = Messages(&bytes).map(Result::unwrap).collect();
        let [message] = messages[..] else { panic!("one message") };
        assert_eq!((message.kind, message.sequence), (0x20, 9));
        assert_eq!((message.command(), message.role()), (Some(17), Role::Content));
        let attributes: Vec<_> = message.attributes().collect();
        assert_eq!(attributes, [(3, &7u32.to_ne_bytes()[..]), (4, b"wlan0")]);
    }

    #[test]
    fn the_ends_of_an_answer() {
        let role = |kind, payload: &[u8]| {
            let bytes = by_hand(kind, 1, payload);
            Messages(&bytes).next().unwrap().unwrap().role()
        };
        assert_eq!(role(ERROR, &0i32.to_ne_bytes()), Role::Done);
        assert_eq!(role(ERROR, &(-2i32).to_ne_bytes()), Role::Failed(2));
        assert_eq!(role(ERROR, &i32::MIN.to_ne_bytes()), Role::Failed(i32::MAX));
        assert_eq!(role(DONE, &0i32.to_ne_bytes()), Role::Done);
        assert_eq!(role(DONE, &(-105i32).to_ne_bytes()), Role::Failed(105));
        assert_eq!(role(DONE, b""), Role::Done);
    }

    #[test]
    fn several_messages_and_one_that_is_cut() {
        let mut bytes = by_hand(1, 1, b"abc");
        // The next one begins at a multiple of four.
        bytes.push(0);
        bytes.extend(by_hand(2, 2, b""));
        let kinds = |bytes: &[u8]| -> Vec<_> {
            Messages(bytes).map(|message| message.map(|message| message.kind)).collect()
        };
        assert_eq!(kinds(&bytes), [Ok(1), Ok(2)]);
        assert_eq!(kinds(&bytes[..30]), [Ok(1), Err(Malformed)]);
        // A length without room for the head, and one beyond the end.
        for len in [0u32, 15, 1000, u32::MAX] {
            bytes[..4].copy_from_slice(&len.to_ne_bytes());
            assert_eq!(kinds(&bytes), [Err(Malformed)], "{len}");
        }
    }

    #[test]
    fn attributes_end_at_a_malformed_one() {
        let good = [&8u16.to_ne_bytes()[..], &0x8005u16.to_ne_bytes(), b"nest"].concat();
        assert_eq!(Attributes(&good).collect::<Vec<_>>(), [(5, &b"nest"[..])]);
        for len in [0u16, 3, 9, 0xffff] {
            let bad = [&good[..], &len.to_ne_bytes(), &[6, 0, 0, 0, 0, 0]].concat();
            assert_eq!(Attributes(&bad).count(), 1, "{len}");
        }
        assert_eq!(Attributes(&good[..3]).count(), 0);
        assert_eq!(
            (number16(b"abc"), number32(b""), text(b"ath9k\0\0")),
            (None, None, "ath9k".into())
        );
    }
}
