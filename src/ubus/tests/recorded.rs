// SPDX-License-Identifier: GPL-2.0-or-later
//! What is said on ubus, byte for byte as recorded between ubusd and libubus
//! (folder `recorded`). A line `@ ROLE > ubusd` begins a message that the role sent,
//! `@ ROLE < ubusd` one that it got; hexadecimal lines are its bytes.

use std::io::{self, Read, Write};

use pemi_ubus::blob::Writer;
use pemi_ubus::blobmsg::{self, Kind};
use pemi_ubus::caller::{self, Failure};
use pemi_ubus::message::{self, Frame, Framer, Header, Methods};
use pemi_ubus::owner::{self, Answer, Object, Owner};
use pemi_ubus::status::{INVALID_ARGUMENT, METHOD_NOT_FOUND};
use serde_json::{Map, Value, json};

macro_rules! scene {
    ($name:literal) => {
        Scene::read(include_str!(concat!("recorded/", $name, ".txt")))
    };
}

/// What the recorded owner published.
const RECORDED: &Methods = &[("status", &[]), ("flows", &[("limit", Kind::Int32)])];
/// The id that it got.
const OBJECT: u32 = 0x9304_6ef3;

struct Scene(Vec<(String, bool, Vec<u8>)>);

impl Scene {
    fn read(text: &str) -> Scene {
        let mut steps = Vec::new();
        for line in text.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
            if let Some(event) = line.strip_prefix("@ ") {
                let mut words = event.split(' ');
                let (role, mark) = (words.next().unwrap(), words.next().unwrap());
                if mark != "=" {
                    steps.push((role.to_string(), mark == ">", Vec::new()));
                }
            } else {
                let bytes = line.split(' ').map(|byte| u8::from_str_radix(byte, 16).unwrap());
                steps.last_mut().unwrap().2.extend(bytes);
            }
        }
        Scene(steps)
    }

    fn of(&self, role: &str, wanted: bool) -> Vec<Vec<u8>> {
        let wanted = self.0.iter().filter(|(who, sent, _)| who == role && *sent == wanted);
        wanted.map(|(_, _, bytes)| bytes.clone()).collect()
    }

    /// All that a role sent.
    fn sent(&self, role: &str) -> Vec<Vec<u8>> {
        self.of(role, true)
    }

    /// All that it got, in one piece.
    fn got(&self, role: &str) -> Vec<u8> {
        self.of(role, false).concat()
    }
}

/// The message with another sequence number.
fn renumbered(mut message: Vec<u8>, from: u16, to: u16) -> Vec<u8> {
    if message[2..4] == from.to_be_bytes() {
        message[2..4].copy_from_slice(&to.to_be_bytes());
    }
    message
}

fn owner() -> Owner {
    Owner::new(Object { name: "pemi", methods: RECORDED })
}

fn answer(method: &str, arguments: Map<String, Value>) -> Answer {
    match method {
        "flows" => match arguments.get("limit").and_then(Value::as_u64) {
            Some(limit @ 1..=1000) => {
                Ok(json!({"flows": vec![json!({"proto": "udp"}); limit as usize]}))
            }
            _ => Err(INVALID_ARGUMENT),
        },
        "status" => Ok(json!({"version": "0.1.0"})),
        _ => Err(METHOD_NOT_FOUND),
    }
}

/// All that our owner says to these bytes, which come in pieces of `step`.
fn said(owner: &mut Owner, bytes: &[u8], step: usize) -> Vec<u8> {
    let mut said = Vec::new();
    for piece in bytes.chunks(step) {
        owner.receive(piece);
        owner.advance(answer).unwrap();
        while !owner.output().is_empty() {
            said.push(owner.output()[0]);
            owner.sent(1);
            owner.advance(answer).unwrap();
        }
    }
    said
}

/// What ubusd says until the object is published.
fn welcome() -> Vec<u8> {
    [scene!("01-hello").got("owner"), scene!("02-add-object").got("owner")].concat()
}

#[test]
fn publishing() {
    assert_eq!(scene!("02-add-object").sent("owner"), [message::add_object(1, "pemi", RECORDED)]);
    let mut owner = owner();
    assert_eq!(said(&mut owner, &welcome(), 1), message::add_object(1, "pemi", RECORDED));
    assert!(owner.is_published());
}

#[test]
fn publishing_again_after_a_restart() {
    // The recorded owner has another object, its ninth request is for this one.
    let scene = scene!("18-ubusd-restart");
    assert_eq!(scene.sent("owner")[1], message::add_object(9, "pemi", RECORDED));
    let mut owner = owner();
    for message in scene.of("owner", false) {
        said(&mut owner, &renumbered(message, 9, 1), usize::MAX);
    }
    assert!(owner.is_published());
}

#[test]
fn a_name_that_is_taken() {
    let mut owner = owner();
    said(&mut owner, &scene!("01-hello").got("owner"), 3);
    let refusal = scene!("14-add-object-name-taken").got("raw");
    owner.receive(&renumbered(refusal, 10, 1));
    assert_eq!(owner.advance(answer), Err(owner::Failure::Refused(2)));
}

#[test]
fn refusing_calls() {
    for scene in [
        scene!("06-call-bad-argument"),
        scene!("06b-call-json-types"),
        scene!("07-method-not-found"),
        scene!("20-invoke-without-data"),
    ] {
        for step in [1, 7, usize::MAX] {
            let mut owner = owner();
            said(&mut owner, &welcome(), step);
            assert_eq!(said(&mut owner, &scene.got("owner"), step), scene.sent("owner").concat());
        }
        // All of it in one batch.
        let mut owner = owner();
        let all = said(&mut owner, &[welcome(), scene.got("owner")].concat(), usize::MAX);
        let published = message::add_object(1, "pemi", RECORDED);
        assert_eq!(all, [published, scene.sent("owner").concat()].concat());
    }
}

#[test]
fn answering_calls() {
    for (scene, expected) in [
        (scene!("04-call-status"), json!({"version": "0.1.0"})),
        (scene!("05-call-flows"), json!({"flows": [{"proto": "udp"}, {"proto": "udp"}]})),
    ] {
        let mut owner = owner();
        said(&mut owner, &welcome(), usize::MAX);
        let said = said(&mut owner, &scene.got("owner"), usize::MAX);
        let [data, status] = &scene.sent("owner")[..] else { panic!() };
        // Our answer is another one; all around it is the same.
        let (data_said, status_said) = said.split_at(said.len() - status.len());
        assert_eq!(data_said[..8], data[..8]);
        assert_eq!(data_said[12..20], data[12..20]);
        assert_eq!(status_said, status);
        let mut framer = Framer::new(1 << 20);
        framer.push(data_said);
        let Some(Frame::Whole(message)) = framer.frame().unwrap() else { panic!() };
        let members = blobmsg::members(message.body().unwrap().data.unwrap()).unwrap();
        assert_eq!(Value::from(members), expected);
    }
}

/// The header of the call that the owner got.
fn call_of(scene: &Scene) -> Header {
    let mut framer = Framer::new(1 << 20);
    framer.push(&scene.got("owner"));
    let Some(Frame::Whole(message)) = framer.frame().unwrap() else { panic!() };
    message.header
}

#[test]
fn the_same_values_are_the_same_bytes() {
    let scene = scene!("04-call-status");
    let data = message::data(call_of(&scene), OBJECT, |w| {
        blobmsg::put(w, "running", &json!(true));
        blobmsg::put(w, "version", &json!("0.1.0"));
        blobmsg::put_int32(w, "uptime", 42);
        blobmsg::put(w, "bytes", &json!(8_589_934_593u64));
        blobmsg::put(w, "loss", &json!(0.5));
        blobmsg::put(w, "wan", &json!({"device": "eth1"}));
        blobmsg::named(w, Kind::Array, "ports", |w| {
            blobmsg::put_int32(w, "", 443);
            blobmsg::put_int32(w, "", 8443);
        });
    });
    assert_eq!(data.unwrap(), scene.sent("owner")[0]);

    let scene = scene!("05-call-flows");
    let flow = |w: &mut Writer, id| {
        blobmsg::named(w, Kind::Table, "", |w| {
            blobmsg::put_int32(w, "id", id);
            blobmsg::put(w, "proto", &json!("udp"));
        });
    };
    let data = message::data(call_of(&scene), OBJECT, |w| {
        blobmsg::named(w, Kind::Array, "flows", |w| {
            flow(w, 1);
            flow(w, 2);
        });
    });
    assert_eq!(data.unwrap(), scene.sent("owner")[0]);
}

/// ubusd as recorded: it says all at once, in pieces, and keeps what it is told.
struct Recorded {
    says: Vec<u8>,
    step: usize,
    told: Vec<u8>,
}

impl Read for Recorded {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let len = into.len().min(self.step).min(self.says.len());
        into[..len].copy_from_slice(&self.says[..len]);
        self.says.drain(..len);
        Ok(len)
    }
}

impl Write for Recorded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.told.push(bytes[0]);
        Ok(1)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What our caller gets from ubusd, and what it says itself.
fn called(
    says: Vec<u8>,
    step: usize,
    method: &str,
    arguments: Value,
) -> (Result<Value, Failure>, Vec<u8>) {
    let mut ubusd = Recorded { says, step, told: Vec::new() };
    let arguments: &Map<String, Value> = arguments.as_object().unwrap();
    let result = caller::call(&mut ubusd, "pemi", method, arguments);
    (result, ubusd.told)
}

#[test]
fn calling() {
    for step in [1, 5, usize::MAX] {
        let scene = scene!("04-call-status");
        let (result, told) = called(scene.got("caller"), step, "status", json!({}));
        let status = json!({"running": true, "version": "0.1.0", "uptime": 42,
            "bytes": 8_589_934_593u64, "loss": 0.5, "wan": {"device": "eth1"},
            "ports": [443, 8443]});
        assert_eq!((result.unwrap(), told), (status, scene.sent("caller").concat()));

        let scene = scene!("05-call-flows");
        let (result, told) = called(scene.got("caller"), step, "flows", json!({"limit": 2}));
        let flows = json!({"flows": [{"id": 1, "proto": "udp"}, {"id": 2, "proto": "udp"}]});
        assert_eq!((result.unwrap(), told), (flows, scene.sent("caller").concat()));
    }
}

#[test]
fn calling_in_vain() {
    let scene = scene!("06-call-bad-argument");
    let (result, told) = called(scene.got("caller"), 9, "flows", json!({"limit": "two"}));
    assert!(matches!(result, Err(Failure::Refused(2))), "{result:?}");
    assert_eq!(told, scene.sent("caller").concat());

    let scene = scene!("07-method-not-found");
    let (result, told) = called(scene.got("caller"), 9, "nosuch", json!({}));
    assert!(matches!(result, Err(Failure::Refused(3))), "{result:?}");
    assert_eq!(told, scene.sent("caller").concat());

    let scene = scene!("08-object-not-found");
    let (result, _) = called(scene.got("caller"), 9, "status", json!({}));
    assert!(matches!(result, Err(Failure::NoObject)), "{result:?}");

    // ubusd hides what a user must not call.
    let messages = scene!("15a-acl-denied").of("user65534", false);
    let hidden = [messages[0].clone(), renumbered(messages[2].clone(), 2, 1)].concat();
    let (result, told) = called(hidden, 9, "status", json!({}));
    assert!(matches!(result, Err(Failure::NoObject)), "{result:?}");
    assert_eq!(renumbered(told, 1, 2), scene!("15a-acl-denied").sent("user65534")[1]);
}

#[test]
fn fragments_and_batches() {
    let scene = scene!("19-fragments-and-batches");
    assert_eq!(scene.sent("raw")[3], message::lookup(4, "nosuch"));
    let messages = |step: usize| {
        let mut framer = Framer::new(1 << 20);
        let mut messages = Vec::new();
        for piece in scene.got("raw").chunks(step) {
            framer.push(piece);
            while let Some(frame) = framer.frame().unwrap() {
                messages.push(frame);
            }
        }
        messages
    };
    assert_eq!(messages(usize::MAX).len(), 7);
    for step in 1..30 {
        assert_eq!(messages(step), messages(usize::MAX), "{step}");
    }
    let Some(Frame::Whole(last)) = messages(1).pop() else { panic!() };
    assert_eq!((last.header.seq, last.body().unwrap().status), (4, Some(4)));
}

/// A caller survives whatever ubusd and other owners may say.
#[test]
fn no_bytes_make_it_panic() {
    let mut seed = 0x2545_f491_4f6c_dd1du64;
    let mut random = move |below: usize| {
        // xorshift64
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        (seed >> 16) as usize % below
    };
    let recorded = [scene!("04-call-status"), scene!("05-call-flows")].map(|s| s.got("caller"));
    let mut survived = 0;
    for _ in 0..10_000 {
        let mut says = recorded[random(2)].clone();
        for _ in 0..=random(4) {
            let (at, most) = (random(says.len()), [32, 256][random(2)]);
            says[at] = random(most) as u8;
        }
        survived += u32::from(called(says, 4096, "status", json!({})).0.is_ok());
    }
    assert!(survived > 100, "most were not even understood: {survived}");
}
