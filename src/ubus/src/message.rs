// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages of ubus: an 8-byte header and a blob of attributes.

use std::borrow::Cow;

use super::blob::{Attributes, LENGTH, Malformed, Writer, number, text};
use super::blobmsg::{self, Kind};

/// The most that ubusd takes and sends, counted without the header.
pub const LARGEST: usize = 1 << 20;
/// Version, type, sequence number, peer.
const HEADER: usize = 8;

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// ubusd is there.
    Hello = 0,
    /// The end of an answer.
    Status = 1,
    /// An answer.
    Data = 2,
    /// Which object has a path?
    Lookup = 4,
    /// Call a method.
    Invoke = 5,
    /// Publish an object.
    AddObject = 6,
}

mod id {
    pub const STATUS: u8 = 1;
    pub const PATH: u8 = 2;
    pub const OBJECT: u8 = 3;
    pub const METHOD: u8 = 4;
    pub const SIGNATURE: u8 = 6;
    pub const DATA: u8 = 7;
    pub const NO_REPLY: u8 = 10;
}

/// The names of methods, each with names and types of its arguments.
pub type Methods = [(&'static str, &'static [(&'static str, Kind)])];

/// What is in front of the attributes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// What the message is for; see [`Type`].
    pub kind: u8,
    /// Chosen by the one who asks, repeated by the one who answers.
    pub seq: u16,
    /// The other end: a client or an object.
    pub peer: u32,
}

impl Header {
    /// Whether it is this one.
    pub fn is(&self, kind: Type) -> bool {
        self.kind == kind as u8
    }
}

/// A message as it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Its header.
    pub header: Header,
    body: Vec<u8>,
}

/// The attributes of a message that matter here; those of a wrong size are
/// absent, as libubus has it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Body<'a> {
    /// How it went.
    pub status: Option<u32>,
    /// Id of an object.
    pub object: Option<u32>,
    /// Name of a method.
    pub method: Option<Cow<'a, str>>,
    /// Arguments or an answer, in blobmsg.
    pub data: Option<&'a [u8]>,
    /// Whether nobody waits for an answer.
    pub no_reply: bool,
}

impl Message {
    /// Reads the attributes.
    pub fn body(&self) -> Result<Body<'_>, Malformed> {
        let mut body = Body::default();
        for attribute in Attributes(&self.body) {
            let attribute = attribute?;
            match attribute.id {
                id::STATUS => body.status = number(attribute.payload),
                id::OBJECT => body.object = number(attribute.payload),
                id::METHOD => body.method = text(attribute.payload),
                id::DATA => body.data = Some(attribute.payload),
                id::NO_REPLY => body.no_reply = attribute.payload == [1],
                _ => {}
            }
        }
        Ok(body)
    }
}

/// Publishes an object.
pub fn add_object(seq: u16, path: &str, methods: &Methods) -> Vec<u8> {
    write(Type::AddObject, seq, 0, |writer| {
        writer.blob(id::PATH, |w| w.text(path));
        writer.blob(id::SIGNATURE, |w| {
            for (method, arguments) in methods {
                blobmsg::named(w, Kind::Table, method, |w| {
                    arguments.iter().for_each(|(name, kind)| {
                        blobmsg::put_int32(w, name, *kind as i32);
                    });
                });
            }
        });
    })
}

/// Asks which object has a path.
pub fn lookup(seq: u16, path: &str) -> Vec<u8> {
    write(Type::Lookup, seq, 0, |writer| writer.blob(id::PATH, |w| w.text(path)))
}

/// Calls a method; `arguments` writes their blobmsg.
pub fn invoke(seq: u16, object: u32, method: &str, arguments: impl FnOnce(&mut Writer)) -> Vec<u8> {
    write(Type::Invoke, seq, object, |writer| {
        writer.blob(id::OBJECT, |w| w.bytes(&object.to_be_bytes()));
        writer.blob(id::METHOD, |w| w.text(method));
        writer.blob(id::DATA, arguments);
    })
}

/// Answers a call; `answer` writes the blobmsg. `None` if it is too large to be
/// sent.
pub fn data(call: Header, object: u32, answer: impl FnOnce(&mut Writer)) -> Option<Vec<u8>> {
    let message = write(Type::Data, call.seq, call.peer, |writer| {
        writer.blob(id::OBJECT, |w| w.bytes(&object.to_be_bytes()));
        writer.blob(id::DATA, answer);
    });
    (message.len() <= HEADER + LARGEST).then_some(message)
}

/// Ends the answer to a call.
pub fn status(call: Header, object: u32, status: u32) -> Vec<u8> {
    write(Type::Status, call.seq, call.peer, |writer| {
        writer.blob(id::STATUS, |w| w.bytes(&status.to_be_bytes()));
        writer.blob(id::OBJECT, |w| w.bytes(&object.to_be_bytes()));
    })
}

fn write(kind: Type, seq: u16, peer: u32, body: impl FnOnce(&mut Writer)) -> Vec<u8> {
    let mut header = [0, kind as u8, 0, 0, 0, 0, 0, 0];
    header[2..4].copy_from_slice(&seq.to_be_bytes());
    header[4..].copy_from_slice(&peer.to_be_bytes());
    let mut writer = Writer::after(&header);
    writer.blob(0, body);
    writer.finish()
}

/// What comes out of a [`Framer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Frame {
    /// A whole message.
    Whole(Message),
    /// One that is larger than wanted; the rest of it is skipped.
    TooLarge(Header),
}

/// Cuts a stream of bytes into messages, however they come.
#[derive(Debug)]
pub struct Framer {
    buffer: Vec<u8>,
    limit: usize,
    skip: usize,
}

impl Framer {
    /// Messages of more than `limit` bytes are skipped.
    pub fn new(limit: usize) -> Framer {
        Framer { buffer: Vec::new(), limit, skip: 0 }
    }

    /// More bytes have come.
    pub fn push(&mut self, bytes: &[u8]) {
        let skipped = self.skip.min(bytes.len());
        self.skip -= skipped;
        self.buffer.extend(&bytes[skipped..]);
    }

    /// The next message, if it is there. An error is final: where the next one
    /// begins is not known.
    pub fn frame(&mut self) -> Result<Option<Frame>, Malformed> {
        let Some((head, _)) = self.buffer.split_first_chunk::<{ HEADER + 4 }>() else {
            return Ok(None);
        };
        let [version, kind, s0, s1, p0, p1, p2, p3, l0, l1, l2, l3] = *head;
        let header = Header {
            kind,
            seq: u16::from_be_bytes([s0, s1]),
            peer: u32::from_be_bytes([p0, p1, p2, p3]),
        };
        let len = (u32::from_be_bytes([l0, l1, l2, l3]) & LENGTH) as usize;
        if version != 0 || !(4..=LARGEST).contains(&len) {
            return Err(Malformed);
        }
        let end = HEADER + len;
        if end > self.limit {
            self.skip = end.saturating_sub(self.buffer.len());
            self.buffer.drain(..end.min(self.buffer.len()));
            return Ok(Some(Frame::TooLarge(header)));
        }
        if self.buffer.len() < end {
            return Ok(None);
        }
        let body = self.buffer[HEADER + 4..end].to_vec();
        self.buffer.drain(..end);
        Ok(Some(Frame::Whole(Message { header, body })))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_too_large_is_skipped() {
        let large = invoke(7, 1, "m", |w| w.bytes(&[1; 1000]));
        let small = invoke(8, 1, "m", |_| {});
        let stream = [&large[..], &small, &large, &small].concat();
        for step in [1, 13, 500, 10_000] {
            let mut framer = Framer::new(100);
            let mut got = Vec::new();
            for part in stream.chunks(step) {
                framer.push(part);
                while let Some(frame) = framer.frame().unwrap() {
                    got.push(match frame {
                        Frame::Whole(message) => (message.header.seq, true),
                        Frame::TooLarge(header) => (header.seq, false),
                    });
                }
                assert!(framer.buffer.len() <= 100);
            }
            assert_eq!(got, [(7, false), (8, true), (7, false), (8, true)], "{step}");
        }
    }

    #[test]
    fn what_is_no_message_is_the_end() {
        for head in [
            *b"\x01\0\0\0\0\0\0\0\0\0\0\x04",
            *b"\0\0\0\0\0\0\0\0\0\0\0\x03",
            *b"\0\0\0\0\0\0\0\0\0\xff\xff\xff",
        ] {
            let mut framer = Framer::new(100);
            framer.push(&head);
            assert_eq!(framer.frame(), Err(Malformed));
        }
    }

    #[test]
    fn attributes_of_a_wrong_size_are_absent_and_unknown_ones_are_skipped() {
        let mut framer = Framer::new(100);
        framer.push(&write(Type::Status, 1, 2, |w| {
            w.blob(id::STATUS, |w| w.bytes(&[1]));
            w.blob(77, |w| w.text("what is this?"));
            w.blob(id::OBJECT, |w| w.bytes(&[0, 0, 4, 0]));
            w.blob(id::METHOD, |w| w.bytes(b"no end"));
        }));
        let Some(Frame::Whole(message)) = framer.frame().unwrap() else { panic!() };
        assert_eq!(message.body(), Ok(Body { object: Some(1024), ..Body::default() }));
    }

    #[test]
    fn an_answer_that_ubusd_would_not_take_is_not_sent() {
        let call = Header { kind: Type::Invoke as u8, seq: 1, peer: 2 };
        assert!(data(call, 3, |w| w.bytes(&vec![0; LARGEST - 100])).is_some());
        assert!(data(call, 3, |w| w.bytes(&vec![0; LARGEST])).is_none());
        assert!(data(call, 3, |w| w.bytes(&vec![0; 1 << 24])).is_none());
    }
}
