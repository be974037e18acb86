// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `ubus`: what ubusd or a caller sends. The first byte says to whom, and in
//! pieces of which size it comes: to the owner of the object, to a caller that waits
//! for an answer, or as a table of blobmsg.

use std::io::{self, Read, Write};

use pemi::daemon::request::{Answer, Request};
use pemi::daemon::ubus::{METHODS, OBJECT, answered};
use pemi_ubus::blob::Writer;
use pemi_ubus::owner::{self, Failure, Object, Owner};
use pemi_ubus::{blobmsg, caller, message};
use serde_json::{Map, Value, json};

use message::{Frame, Framer};

/// What the owner takes at most.
const LARGEST_CALL: usize = 16 << 10;
/// What ubusd says first.
const HELLO: &[u8] = b"\0\0\0\0\0\0\0\x07\0\0\0\x04";
/// The id of the object, and that all is well.
const PUBLISHED: &[u8] = b"\0\x02\0\x01\0\0\0\0\0\0\0\x0c\x03\0\0\x08\x93\x04\x6e\xf3\
    \0\x01\0\x01\0\0\0\0\0\0\0\x0c\x01\0\0\x08\0\0\0\0";

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else { return };
    let step = usize::from(how >> 2) + 1;
    match how & 3 {
        0 => owner(&[], bytes, step),
        1 => owner(&[HELLO, PUBLISHED].concat(), bytes, step),
        2 => ask(bytes),
        _ => table(bytes),
    }
}

/// As the daemon maps calls to requests.
fn answer(method: &str, arguments: Map<String, Value>) -> owner::Answer {
    answered(method, arguments, &mut request)
}

fn request(request: Request) -> Answer {
    match request {
        Request::Flows { limit } => {
            Ok(json!({"flows": vec![json!({"proto": "udp"}); limit]}).into())
        }
        Request::History { .. } => Err((9, "no".into())),
        _ => Ok(json!({"version": "0.1.0"}).into()),
    }
}

/// All that an owner says to bytes that come in pieces.
fn said(bytes: &[u8], step: usize) -> (Vec<u8>, Result<(), Failure>) {
    let mut owner = Owner::new(Object { name: OBJECT, methods: METHODS });
    let mut said = Vec::new();
    for piece in bytes.chunks(step) {
        owner.receive(piece);
        loop {
            if let Err(failure) = owner.advance(answer) {
                return (said, Err(failure));
            }
            if owner.output().is_empty() {
                break;
            }
            let half = owner.output().len().div_ceil(2);
            said.extend_from_slice(&owner.output()[..half]);
            owner.sent(half);
        }
    }
    (said, Ok(()))
}

/// The same is said whatever the pieces, and it is messages.
fn owner(before: &[u8], bytes: &[u8], step: usize) {
    let all = [before, bytes].concat();
    let (pieces, how) = said(&all, step);
    assert_eq!(said(&all, usize::MAX), (pieces.clone(), how));
    let mut framer = Framer::new(usize::MAX);
    framer.push(&pieces);
    let mut len = 0;
    while let Some(frame) = framer.frame().expect("what is said is messages") {
        let Frame::Whole(message) = frame else { panic!("too large: {frame:?}") };
        message.body().expect("of attributes");
        len += 1;
    }
    assert_eq!(pieces.is_empty(), len == 0);
    cut(bytes, step);
}

/// Cutting a stream into messages ends, and does not depend on the pieces.
fn cut(bytes: &[u8], step: usize) {
    let frames = |step: usize| {
        let mut framer = Framer::new(LARGEST_CALL);
        let mut frames = Vec::new();
        for piece in bytes.chunks(step) {
            framer.push(piece);
            loop {
                match framer.frame() {
                    Ok(Some(frame)) => frames.push(frame),
                    Ok(None) => break,
                    Err(_) => return (frames, true),
                }
            }
        }
        (frames, false)
    };
    assert_eq!(frames(step), frames(usize::MAX));
}

/// A connection on which these bytes come.
struct Line<'a>(&'a [u8]);

impl Read for Line<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer)
    }
}

impl Write for Line<'_> {
    fn write(&mut self, buffer: &[u8]) -> io::Result<usize> {
        Ok(buffer.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn ask(bytes: &[u8]) {
    let mut arguments = Map::new();
    arguments.insert("limit".into(), 5.into());
    match caller::call(Line(bytes), OBJECT, "flows", &arguments) {
        Ok(answer) => assert!(answer.is_object()),
        Err(failure) => assert!(!failure.to_string().is_empty()),
    }
}

/// What can be read is the same once written and read again.
fn table(bytes: &[u8]) {
    let Ok(members) = blobmsg::members(bytes) else { return };
    let mut writer = Writer::default();
    blobmsg::put_members(&mut writer, &members);
    let again = blobmsg::members(&writer.finish()).map(Value::from);
    assert_eq!(again, Ok(Value::from(members)));
}

/// Calls of every method, good and bad answers, values of every kind; what was
/// recorded between ubusd and libubus.
pub fn seeds() -> Vec<Vec<u8>> {
    let id = 0x9304_6ef3;
    let arguments = json!({"limit": 5, "seconds": 7, "skip": 1, "level": "info",
        "more": {"list": [1, 0.5, null, true, "text"], "big": 1u64 << 40}});
    let arguments = arguments.as_object().cloned().unwrap_or_default();
    let invoke =
        |method: &str| message::invoke(5, id, method, |w| blobmsg::put_members(w, &arguments));
    let mut seeds: Vec<Vec<u8>> = METHODS
        .iter()
        .map(|(method, _)| [&[1 | 200][..], &invoke(method), &invoke("none")].concat())
        .collect();
    seeds.push([&[0][..], HELLO, PUBLISHED, &invoke("flows")].concat());
    let mut table = Writer::default();
    blobmsg::put_members(&mut table, &arguments);
    seeds.push([&[3][..], &table.finish()].concat());
    for recorded in RECORDED {
        for (role, bytes) in received(recorded) {
            let how = if role == "caller" { 2 } else { 0 };
            seeds.push([&[how | 252][..], &bytes].concat());
        }
    }
    seeds
}

macro_rules! recorded {
    ($($name:literal),*) => {
        &[$(include_str!(concat!("../../../src/ubus/tests/recorded/", $name, ".txt"))),*]
    };
}

/// What the daemon's own tests replay.
const RECORDED: &[&str] = recorded!(
    "02-add-object",
    "04-call-status",
    "05-call-flows",
    "06-call-bad-argument",
    "06b-call-json-types",
    "08-object-not-found",
    "14-add-object-name-taken",
    "20-invoke-without-data"
);

/// All that each role got: a line `@ ROLE < ubusd` begins a message, hexadecimal
/// lines are its bytes.
fn received(text: &str) -> Vec<(&str, Vec<u8>)> {
    let mut all: Vec<(&str, Vec<u8>)> = Vec::new();
    let mut now: Option<usize> = None;
    for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        if let Some(event) = line.strip_prefix("@ ") {
            let (role, what) = event.split_once(' ').unwrap_or((event, ""));
            now = what.starts_with('<').then(|| {
                all.iter().position(|(known, _)| *known == role).unwrap_or_else(|| {
                    all.push((role, Vec::new()));
                    all.len() - 1
                })
            });
        } else if let Some(n) = now {
            let bytes = line.split(' ').filter_map(|byte| u8::from_str_radix(byte, 16).ok());
            all[n].1.extend(bytes);
        }
    }
    all
}
