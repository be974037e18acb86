// SPDX-License-Identifier: GPL-2.0-or-later
//! The daemon's connection to ubusd, with a stand-in for ubusd.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::thread;
use std::time::Duration;

use lab::{ENDS, Net, PORT};
use pemi::command::ask;
use pemi::command::cli::Sockets;
use pemi::daemon::control;
use pemi::daemon::request::{Answer, Request};
use pemi::daemon::ubus::{METHODS, Ubus};
use pemi::sys::poll;
use pemi::sys::socket;
use pemi_engine::SEC;
use pemi_ubus::blobmsg;
use pemi_ubus::caller;
use pemi_ubus::message::{self, Frame, Framer, Message};
use serde_json::{Map, Value, json};

const HELLO: &[u8] = b"\0\0\0\0\0\0\0\x07\0\0\0\x04";
const OBJECT: u32 = 0x9304_6ef3;
/// DATA with the id of the object, then STATUS.
const ADDED: &[u8] = b"\0\x02\0\x01\0\0\0\0\0\0\0\x0c\x03\0\0\x08\x93\x04\x6e\xf3\
    \0\x01\0\x01\0\0\0\0\0\0\0\x0c\x01\0\0\x08\0\0\0\0";
const REFUSED: &[u8] = b"\0\x01\0\x01\0\0\0\0\0\0\0\x0c\x01\0\0\x08\0\0\0\x02";

/// The path of a socket; what is there goes with the value.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Place {
        let file = format!("pemi-ubus-{}-{name}.sock", std::process::id());
        Place(std::env::temp_dir().join(file))
    }

    fn listen(&self) -> UnixListener {
        let _ = fs::remove_file(&self.0);
        UnixListener::bind(&self.0).unwrap()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// One connection of the stand-in.
struct Peer {
    stream: UnixStream,
    input: Framer,
}

impl Peer {
    fn accept(listener: &UnixListener) -> Peer {
        let (stream, _) = listener.accept().unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        Peer { stream, input: Framer::new(usize::MAX) }
    }

    /// As far as a published object; bytes come one by one.
    fn publish(&mut self) {
        for byte in HELLO {
            self.say(&[*byte]);
        }
        let expected = message::add_object(1, "pemi", METHODS);
        let mut got = vec![0; expected.len()];
        self.stream.read_exact(&mut got).unwrap();
        assert_eq!(got, expected);
        self.say(ADDED);
    }

    fn say(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    fn hear(&mut self) -> Message {
        let mut chunk = [0; 4096];
        loop {
            match self.input.frame().unwrap() {
                Some(Frame::Whole(message)) => return message,
                Some(Frame::TooLarge(_)) => panic!(),
                None => {}
            }
            let len = self.stream.read(&mut chunk).unwrap();
            assert!(len > 0, "the connection is closed");
            self.input.push(&chunk[..len]);
        }
    }

    /// Data and status of an answer.
    fn answer(&mut self) -> (Option<Value>, u32) {
        let mut data = None;
        loop {
            let message = self.hear();
            let body = message.body().unwrap();
            assert_eq!((body.object, message.header.peer), (Some(OBJECT), OBJECT));
            match body.status {
                Some(status) => return (data, status),
                None => data = Some(blobmsg::members(body.data.unwrap()).unwrap().into()),
            }
        }
    }

    /// Waits for the other side to close the connection.
    fn closed(mut self) {
        let mut rest = [0; 4096];
        loop {
            match self.stream.read(&mut rest) {
                Ok(0) => return,
                Ok(_) => {}
                // It closed without having read all.
                Err(error) => return assert_eq!(error.kind(), ErrorKind::ConnectionReset),
            }
        }
    }
}

fn call(seq: u16, method: &str) -> Vec<u8> {
    message::invoke(seq, OBJECT, method, |_| {})
}

fn answer(request: Request) -> Answer {
    match request {
        Request::Flows { .. } => Ok(json!({"text": "x".repeat(100_000)}).into()),
        Request::Reset => Ok(json!({}).into()),
        _ => Err((2, "no".into())),
    }
}

/// As the main loop does it, until the connection is lost.
fn serve(ubus: &mut Ubus) {
    ubus.tick();
    while let Some(interest) = ubus.interest() {
        let mut interests = [interest];
        poll::wait(&mut interests, Some(20 * SEC)).unwrap();
        assert!(interests[0].is_ready(), "nothing happens");
        ubus.serve(answer);
    }
}

#[test]
fn it_comes_back_after_whatever_has_happened() {
    let place = Place::new("back");
    let mut ubus = Ubus::new(Some(&place.0));
    ubus.tick();
    assert!(ubus.interest().is_none(), "nobody is there yet");
    let listener = place.listen();
    let ubusd = thread::spawn(move || {
        // Away before the first word, after it, in the middle of one.
        drop(Peer::accept(&listener));
        Peer::accept(&listener).say(HELLO);
        Peer::accept(&listener).say(&HELLO[..7]);
        // Not the language that is spoken here.
        for nonsense in [&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], REFUSED, &[0xff; 100]] {
            let mut peer = Peer::accept(&listener);
            peer.say(nonsense);
            peer.closed();
        }
        // The name is taken.
        let mut peer = Peer::accept(&listener);
        peer.say(&[HELLO, REFUSED].concat());
        peer.closed();
        // Nonsense after a good beginning.
        let mut peer = Peer::accept(&listener);
        peer.publish();
        peer.say(b"\x01\0\0\0\0\0\0\0\0\0\0\x04");
        peer.closed();
        // Two in one message, and the end.
        let mut peer = Peer::accept(&listener);
        peer.publish();
        peer.say(&[call(2, "reset"), call(2, "status")].concat());
        assert_eq!(peer.answer(), (Some(json!({})), 0));
        assert_eq!(peer.answer(), (None, 2));
    });
    for _ in 0..9 {
        serve(&mut ubus);
    }
    ubusd.join().unwrap();
    drop(place);
    ubus.tick();
    assert!(ubus.interest().is_none());
}

#[test]
fn calls_wait_while_answers_are_not_taken() {
    const CALLS: u16 = 300;
    let place = Place::new("slow");
    let listener = place.listen();
    let ubusd = thread::spawn(move || {
        let mut peer = Peer::accept(&listener);
        peer.publish();
        let mut half = peer.stream.try_clone().unwrap();
        // Far more than fits into the sockets.
        let caller = thread::spawn(move || {
            (0..CALLS).for_each(|seq| half.write_all(&call(seq, "flows")).unwrap());
        });
        for seq in 0..CALLS {
            let data = peer.hear();
            assert_eq!(data.header.seq, seq);
            let status = peer.hear();
            assert_eq!((status.header.seq, status.body().unwrap().status), (seq, Some(0)));
        }
        caller.join().unwrap();
    });
    let mut ubus = Ubus::new(Some(&place.0));
    serve(&mut ubus);
    ubusd.join().unwrap();
}

#[test]
fn who_does_not_accept_holds_up_nobody() {
    let place = Place::new("full");
    let listener = place.listen();
    // SAFETY: no pointers; a listening socket.
    assert_eq!(unsafe { libc::listen(listener.as_raw_fd(), 0) }, 0);
    // Until there is no room for another one.
    let mut waiting = Vec::new();
    while let Ok(stream) = socket::connect(&place.0) {
        waiting.push(stream);
        assert!(waiting.len() < 100);
    }
    let mut ubus = Ubus::new(Some(&place.0));
    ubus.tick();
    assert!(ubus.interest().is_none());
}

#[test]
fn the_command_line_asks_through_ubus_if_it_must() {
    let (control, place) = (Place::new("control"), Place::new("ask"));
    let sockets = Sockets { control: Some(control.0.clone()), ubus: Some(place.0.clone()) };
    let error = ask::ask(&sockets, "status", None).unwrap_err();
    for path in [&control.0, &place.0] {
        assert!(error.contains(path.to_str().unwrap()), "{error}");
    }
    let listener = place.listen();
    let ubusd = thread::spawn(move || {
        let mut peer = Peer::accept(&listener);
        peer.say(HELLO);
        let mut lookup = vec![0; message::lookup(1, "pemi").len()];
        peer.stream.read_exact(&mut lookup).unwrap();
        peer.say(ADDED);
        let invoke = peer.hear();
        let body = invoke.body().unwrap();
        let arguments = blobmsg::members(body.data.unwrap()).unwrap();
        assert_eq!((body.method.as_deref(), &arguments["limit"]), (Some("flows"), &json!(7)));
        peer.say(
            &message::data(invoke.header, OBJECT, |w| blobmsg::put(w, "a", &json!(1))).unwrap(),
        );
        peer.say(&message::status(invoke.header, OBJECT, 0));
        // The next one hears nothing but this.
        Peer::accept(&listener).say(HELLO);
    });
    let answer = ask::ask(&sockets, "flows", Some(("limit", 7))).unwrap();
    assert_eq!(answer, json!({"a": 1}));
    let stream = UnixStream::connect(&place.0).unwrap();
    let failure = caller::call(&stream, "pemi", "status", &Map::new()).unwrap_err();
    assert!(matches!(failure, caller::Failure::Io(_)), "{failure}");
    ubusd.join().unwrap();
}

#[test]
fn without_a_path_there_is_no_ubus() {
    let mut ubus = Ubus::new(None);
    ubus.tick();
    ubus.serve(|_| panic!());
    assert!(ubus.interest().is_none());
}

#[test]
fn the_daemon_tells_the_same_as_on_its_control_socket() {
    let Some(net) = Net::new() else { return };
    let path = net.file("ubus.sock");
    let listener = UnixListener::bind(&path).unwrap();
    let mut daemon = net.start(&["--ubus", path.to_str().unwrap()]);
    let (client, server) = ENDS[0];
    let ends = [net.socket("c", client, 50000), net.socket("s", server, PORT)];
    // A handshake's first packets, as far as the engine looks: both ends have to speak.
    let initial = [&[0xc0, 0, 0, 0, 1, 8][..], &[7; 8], &[0; 1186]].concat();
    ends[0].send_to(&initial, (server, PORT)).unwrap();
    ends[1].recv_from(&mut [0; 1500]).unwrap();
    ends[1].send_to(&initial, (client, 50000)).unwrap();
    daemon.until(|status| status["flows"]["active"] == 1);
    let mut peer = Peer::accept(&listener);
    peer.publish();
    for method in ["status", "flows"] {
        let control = || control::ask(&daemon.control, &json!({"method": method})).unwrap();
        // Probes go on meanwhile: what is compared has to have stood still.
        loop {
            let before = still(control());
            peer.say(&call(2, method));
            let (data, status) = peer.answer();
            if before == still(control()) {
                assert_eq!((still(data.unwrap()), status), (before, 0));
                break;
            }
        }
    }
    peer.say(&call(2, "log"));
    assert_eq!(peer.answer(), (None, 2), "no level");
    // The counters begin anew, the daemon does not.
    daemon.until(|status| status["counted_s"].as_u64() >= Some(1));
    peer.say(&[call(2, "reset"), call(2, "status")].concat());
    assert_eq!(peer.answer(), (Some(json!({})), 0));
    let status = peer.answer().0.unwrap();
    assert_eq!(status["counted_s"], 0);
    assert!(status["uptime_s"].as_u64() >= Some(1), "{status}");
    daemon.signal(libc::SIGTERM);
    assert!(daemon.end().0.success());
    peer.closed();
}

/// Without what time changes.
fn still(mut answer: Value) -> Value {
    let passing = ["uptime_s", "counted_s", "age_s"];
    if let Some(members) = answer.as_object_mut() {
        members.retain(|name, _| !passing.contains(&name.as_str()));
        members.values_mut().for_each(|value| *value = still(value.take()));
    }
    if let Some(items) = answer.as_array_mut() {
        items.iter_mut().for_each(|item| *item = still(item.take()));
    }
    answer
}
