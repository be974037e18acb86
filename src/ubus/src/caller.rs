// SPDX-License-Identifier: GPL-2.0-or-later
//! The side that calls a method; it waits for the answer.

use std::fmt;
use std::io::{self, Read, Write};

use serde_json::{Map, Value};

use super::blob::{Malformed, Writer};
use super::blobmsg;
use super::message::{self, Frame, Framer, Type};
use super::status::{OK, meaning};

/// Why there is no answer.
#[derive(Debug)]
pub enum Failure {
    /// The connection does not work.
    Io(io::Error),
    /// This is not how ubusd speaks.
    Nonsense,
    /// There is no such object, or it is not for this user.
    NoObject,
    /// A status that is not 0.
    Refused(u32),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Failure {
        Failure::Nonsense
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Io(error) if error.kind() == io::ErrorKind::WouldBlock => {
                f.write_str("no answer")
            }
            Failure::Io(error) => error.fmt(f),
            Failure::Nonsense => Malformed.fmt(f),
            Failure::NoObject => f.write_str("no such object, or not for this user"),
            Failure::Refused(status) => {
                write!(f, "the daemon refused: {}", meaning(*status))
            }
        }
    }
}

/// Calls a method of the object that has `path`.
pub fn call(
    stream: impl Read + Write,
    path: &str,
    method: &str,
    arguments: &Map<String, Value>,
) -> Result<Value, Failure> {
    let mut caller = Caller { stream, input: Framer::new(usize::MAX) };
    if !caller.message()?.header.is(Type::Hello) {
        return Err(Failure::Nonsense);
    }
    let mut object = None;
    let status = caller.ask(1, &message::lookup(1, path), |body| {
        object = body.object;
        Ok(())
    })?;
    let object = match (status, object) {
        (OK, Some(object)) => object,
        _ => return Err(Failure::NoObject),
    };
    let invoke = message::invoke(2, object, method, |w| put_arguments(w, arguments));
    let mut answer = Map::new();
    let status = caller.ask(2, &invoke, |body| {
        answer = blobmsg::members(body.data.ok_or(Failure::Nonsense)?)?;
        Ok(())
    })?;
    if status == OK { Ok(answer.into()) } else { Err(Failure::Refused(status)) }
}

/// Numbers have the width of the object's signature, as from the `ubus` command.
fn put_arguments(writer: &mut Writer, arguments: &Map<String, Value>) {
    for (name, value) in arguments {
        match value.as_i64().and_then(|number| i32::try_from(number).ok()) {
            Some(number) => blobmsg::put_int32(writer, name, number),
            None => blobmsg::put(writer, name, value),
        }
    }
}

struct Caller<S> {
    stream: S,
    input: Framer,
}

impl<S: Read + Write> Caller<S> {
    /// Sends a request, shows the data of its answer to `data` and gives the
    /// status.
    fn ask(
        &mut self,
        seq: u16,
        request: &[u8],
        mut data: impl FnMut(&message::Body<'_>) -> Result<(), Failure>,
    ) -> Result<u32, Failure> {
        self.stream.write_all(request)?;
        loop {
            let message = self.message()?;
            let body = message.body()?;
            if message.header.seq != seq {
                continue;
            }
            if message.header.is(Type::Data) {
                data(&body)?;
            } else if message.header.is(Type::Status) {
                return body.status.ok_or(Failure::Nonsense);
            }
        }
    }

    fn message(&mut self) -> Result<message::Message, Failure> {
        let mut chunk = [0; 4096];
        loop {
            match self.input.frame()? {
                Some(Frame::Whole(message)) => return Ok(message),
                Some(Frame::TooLarge(_)) => return Err(Failure::Nonsense),
                None => {}
            }
            match self.stream.read(&mut chunk)? {
                0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                len => self.input.push(&chunk[..len]),
            }
        }
    }
}
