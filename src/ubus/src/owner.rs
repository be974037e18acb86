// SPDX-License-Identifier: GPL-2.0-or-later
//! The side that publishes an object: bytes in, bytes out.

use serde_json::{Map, Value};

use super::blob::Malformed;
use super::blobmsg;
use super::message::{self, Body, Frame, Framer, Header, Message, Methods, Type};
use super::status::{INVALID_ARGUMENT, NOT_FOUND, OK, SYSTEM_ERROR};

/// What is published.
#[derive(Clone, Copy, Debug)]
pub struct Object {
    /// Its name.
    pub name: &'static str,
    /// What it can be asked for.
    pub methods: &'static Methods,
}

/// The answer to a call: an object's members are its data, any other value is none; or a status
/// that is not 0.
pub type Answer = Result<Value, u32>;

/// The only request of ours that there is on a connection.
const ADD: u16 = 1;
/// A call with more than this is refused: questions are short.
const LARGEST_CALL: usize = 16 << 10;
/// How far it has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// ubusd has not said hello yet.
    Connected,
    /// The object has been sent; its id, once ubusd has given it one.
    Adding(Option<u32>),
    /// It can be called, by this id.
    Published(u32),
}

/// Why a connection is of no use any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// ubusd does not want the object, and tells this status.
    Refused(u32),
    /// This is not how ubusd speaks.
    Nonsense,
}

impl From<Malformed> for Failure {
    fn from(_: Malformed) -> Failure {
        Failure::Nonsense
    }
}

/// One connection of an owner. While there is output that ubusd has not taken
/// no message is looked at, so one answer is the most that is kept.
#[derive(Debug)]
pub struct Owner {
    object: Object,
    state: State,
    input: Framer,
    output: Vec<u8>,
    sent: usize,
}

impl Owner {
    /// For a new connection, on which this object is to be published.
    pub fn new(object: Object) -> Owner {
        Owner {
            object,
            state: State::Connected,
            input: Framer::new(LARGEST_CALL),
            output: Vec::new(),
            sent: 0,
        }
    }

    /// Bytes have come.
    pub fn receive(&mut self, bytes: &[u8]) {
        self.input.push(bytes);
    }

    /// What is to be sent.
    pub fn output(&self) -> &[u8] {
        &self.output[self.sent..]
    }

    /// The first bytes of the output have gone.
    pub fn sent(&mut self, len: usize) {
        self.sent += len;
        if self.sent == self.output.len() {
            // A large answer's memory is not kept.
            (self.output, self.sent) = (Vec::new(), 0);
        }
    }

    /// Whether ubusd has said hello.
    pub fn is_welcome(&self) -> bool {
        self.state != State::Connected
    }

    /// Whether the object can be called.
    pub fn is_published(&self) -> bool {
        matches!(self.state, State::Published(_))
    }

    /// Goes on until there is output or the input is used up; `answer` answers a call
    /// of a method with these arguments, whatever they are: nobody has compared them with
    /// the object's methods.
    pub fn advance(
        &mut self,
        mut answer: impl FnMut(&str, Map<String, Value>) -> Answer,
    ) -> Result<(), Failure> {
        while self.output.is_empty() {
            match self.input.frame()? {
                None => break,
                Some(Frame::Whole(message)) => self.message(&message, &mut answer)?,
                Some(Frame::TooLarge(header)) => self.too_large(header),
            }
        }
        Ok(())
    }

    fn message(
        &mut self,
        message: &Message,
        answer: &mut impl FnMut(&str, Map<String, Value>) -> Answer,
    ) -> Result<(), Failure> {
        let header = message.header;
        let body = message.body()?;
        match self.state {
            State::Connected if header.is(Type::Hello) => {
                self.output = message::add_object(ADD, self.object.name, self.object.methods);
                self.state = State::Adding(None);
            }
            State::Connected => return Err(Failure::Nonsense),
            State::Adding(_) if header.is(Type::Data) && header.seq == ADD => {
                self.state = State::Adding(body.object);
            }
            State::Adding(id) if header.is(Type::Status) && header.seq == ADD => {
                match (body.status, id) {
                    (Some(OK), Some(id)) => self.state = State::Published(id),
                    (Some(OK) | None, _) => return Err(Failure::Nonsense),
                    (Some(status), _) => return Err(Failure::Refused(status)),
                }
            }
            State::Published(id) if header.is(Type::Invoke) => {
                self.output = call(header, &body, id, answer);
            }
            // Who subscribes, and whatever a later ubusd may tell.
            State::Adding(_) | State::Published(_) => {}
        }
        Ok(())
    }

    fn too_large(&mut self, header: Header) {
        if let (State::Published(id), true) = (self.state, header.is(Type::Invoke)) {
            self.output = message::status(header, id, INVALID_ARGUMENT);
        }
    }
}

/// The answer to a call: data if there are any, then always the status.
fn call(
    header: Header,
    body: &Body<'_>,
    id: u32,
    answer: &mut impl FnMut(&str, Map<String, Value>) -> Answer,
) -> Vec<u8> {
    // libubus does not answer what names no object, either.
    let Some(object) = body.object else { return Vec::new() };
    let (mut output, status) = match result(body, object == id, answer) {
        Ok(Value::Object(members)) => {
            match message::data(header, object, |w| blobmsg::put_members(w, &members)) {
                Some(data) => (data, OK),
                None => (Vec::new(), SYSTEM_ERROR),
            }
        }
        Ok(_) => (Vec::new(), OK),
        Err(status) => (Vec::new(), status),
    };
    if body.no_reply {
        return Vec::new();
    }
    output.extend(message::status(header, object, status));
    output
}

fn result(
    body: &Body<'_>,
    ours: bool,
    answer: &mut impl FnMut(&str, Map<String, Value>) -> Answer,
) -> Result<Value, u32> {
    if !ours {
        return Err(NOT_FOUND);
    }
    // ubusd passes on what callers send without a look into it.
    let (Some(method), Some(data)) = (&body.method, body.data) else {
        return Err(INVALID_ARGUMENT);
    };
    let arguments = blobmsg::members(data).map_err(|_| INVALID_ARGUMENT)?;
    answer(method, arguments)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::blobmsg::Kind;
    use crate::status::METHOD_NOT_FOUND;
    use serde_json::json;

    const ID: u32 = 0x9304_6ef3;

    /// An owner whose object is published.
    fn published() -> Owner {
        let mut owner = Owner::new(OBJECT);
        feed(&mut owner, b"\0\0\0\0\0\0\0\x07\0\0\0\x04");
        assert_eq!(taken(&mut owner), message::add_object(1, "pemi", OBJECT.methods));
        // DATA with the id of the object, then STATUS.
        feed(&mut owner, b"\0\x02\0\x01\0\0\0\0\0\0\0\x0c\x03\0\0\x08\x93\x04\x6e\xf3");
        assert!(owner.is_welcome() && !owner.is_published());
        feed(&mut owner, b"\0\x01\0\x01\0\0\0\0\0\0\0\x0c\x01\0\0\x08\0\0\0\0");
        assert!(owner.is_published());
        owner
    }

    const OBJECT: Object =
        Object { name: "pemi", methods: &[("reset", &[]), ("flows", &[("limit", Kind::Int32)])] };

    fn answer(method: &str, arguments: Map<String, Value>) -> Answer {
        match method {
            "flows" => match arguments.get("limit").map_or(Some(20), Value::as_u64) {
                Some(limit @ 1..=1000) => Ok(json!({"text": "x".repeat(limit as usize * 2000)})),
                _ => Err(INVALID_ARGUMENT),
            },
            "reset" => Ok(json!({})),
            "status" | "log" => Err(9),
            _ => Err(METHOD_NOT_FOUND),
        }
    }

    fn feed(owner: &mut Owner, bytes: &[u8]) {
        owner.receive(bytes);
        owner.advance(answer).unwrap();
    }

    fn taken(owner: &mut Owner) -> Vec<u8> {
        let bytes = owner.output().to_vec();
        owner.sent(bytes.len());
        bytes
    }

    fn invoke(method: &str, arguments: Value) -> Vec<u8> {
        message::invoke(5, ID, method, |w| {
            blobmsg::put_members(w, arguments.as_object().unwrap());
        })
    }

    fn status(code: u32) -> Vec<u8> {
        message::status(Header { kind: 0, seq: 5, peer: ID }, ID, code)
    }

    #[test]
    fn data_then_status() {
        let mut owner = published();
        feed(&mut owner, &invoke("reset", json!({"ubus_rpc_session": "0"})));
        let header = Header { kind: 0, seq: 5, peer: ID };
        let data = message::data(header, ID, |_| {}).unwrap();
        assert_eq!(taken(&mut owner), [data, status(OK)].concat());
        for (bytes, code) in [
            (invoke("status", json!({})), 9),
            (invoke("flows", json!({"limit": "x"})), INVALID_ARGUMENT),
            (invoke("reboot", json!({})), METHOD_NOT_FOUND),
            (invoke("flows", json!({"limit": 600})), SYSTEM_ERROR),
            (message::invoke(5, ID, "reset", |w| w.bytes(b"\x87\0\0\x01")), INVALID_ARGUMENT),
            (message::invoke(5, ID, "reset", |w| w.bytes(&[0; 1 << 18])), INVALID_ARGUMENT),
        ] {
            feed(&mut owner, &bytes);
            assert_eq!(taken(&mut owner), status(code), "{code}");
        }
        feed(&mut owner, &message::invoke(5, 7, "reset", |_| {}));
        let not_ours = message::status(Header { kind: 0, seq: 5, peer: 7 }, 7, NOT_FOUND);
        assert_eq!(taken(&mut owner), not_ours);
    }

    #[test]
    fn who_wants_no_answer_gets_none() {
        let mut owner = published();
        let mut bytes = invoke("reset", json!({}));
        bytes.extend(b"\x0a\0\0\x05\x01\0\0\0");
        bytes[11] += 8;
        let mut asked = 0;
        owner.receive(&bytes);
        owner
            .advance(|method, arguments| {
                asked += 1;
                answer(method, arguments)
            })
            .unwrap();
        assert_eq!((asked, owner.output().len()), (1, 0));
    }

    #[test]
    fn one_answer_is_the_most_that_is_kept() {
        let mut owner = published();
        let call = invoke("flows", json!({"limit": 50}));
        feed(&mut owner, &call.repeat(100));
        let one = owner.output().len();
        assert!((100_000..101_000).contains(&one), "{one}");
        for _ in 0..100 {
            owner.advance(|_, _| panic!("not before the answer is gone")).unwrap();
            owner.sent(one / 2);
            owner.advance(|_, _| panic!("nor when half of it is")).unwrap();
            assert_eq!(owner.output().len(), one - one / 2);
            owner.sent(one - one / 2);
            owner.advance(answer).unwrap();
        }
        assert_eq!(owner.output().len(), 0);
    }

    #[test]
    fn a_refusal_and_nonsense() {
        let hello = b"\0\0\0\0\0\0\0\x07\0\0\0\x04";
        let with = |bytes: &[u8]| {
            let mut owner = Owner::new(OBJECT);
            feed(&mut owner, hello);
            taken(&mut owner);
            owner.receive(bytes);
            owner.advance(answer)
        };
        let status =
            |code| [b"\0\x01\0\x01\0\0\0\0\0\0\0\x0c\x01\0\0\x08\0\0\0", &[code][..]].concat();
        assert_eq!(with(&status(2)), Err(Failure::Refused(2)));
        assert_eq!(with(&status(0)), Err(Failure::Nonsense), "no id");
        assert_eq!(with(b"\x01\0\0\0\0\0\0\0\0\0\0\x04"), Err(Failure::Nonsense));
        assert_eq!(with(b"\0\x63\0\0\0\0\0\0\0\0\0\x04"), Ok(()), "an unknown type");
        let mut owner = Owner::new(OBJECT);
        owner.receive(&status(0));
        assert_eq!(owner.advance(answer), Err(Failure::Nonsense), "no hello");
    }

    /// Bytes of every sort, many of them almost right.
    #[test]
    fn no_bytes_make_it_panic() {
        let mut seed = 0x9e37_79b9_7f4a_7c15u64;
        let mut random = move |below: usize| {
            // xorshift64
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            (seed >> 16) as usize % below
        };
        let calls = [
            invoke("flows", json!({"limit": 5, "more": {"list": [1, 0.5, null, true, "text"]}})),
            invoke("log", json!({"level": "info"})),
            invoke("status", json!({})),
            b"\0\0\0\0\0\0\0\x07\0\0\0\x04".to_vec(),
        ];
        for round in 0..20_000 {
            let mut owner = if round % 4 == 0 { Owner::new(OBJECT) } else { published() };
            let mut bytes = calls[random(calls.len())].clone();
            match random(4) {
                0 => bytes = (0..random(200)).map(|_| random(256) as u8).collect(),
                1 => bytes.truncate(random(bytes.len())),
                _ => {}
            }
            for _ in 0..random(4) {
                if !bytes.is_empty() {
                    let (at, most) = (random(bytes.len()), [32, 256][random(2)]);
                    bytes[at] = random(most) as u8;
                }
            }
            owner.receive(&bytes);
            while owner.advance(answer).is_ok() && !owner.output().is_empty() {
                owner.sent(1 + random(owner.output().len()));
            }
        }
    }
}
