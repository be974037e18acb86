// SPDX-License-Identifier: GPL-2.0-or-later
//! Floods: who sends much takes nothing from those who are helped, writes no log full,
//! and costs no memory.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lab::packet::{long, short};
use lab::raw::{Spoofer, flood};
use lab::{Daemon, ENDS, Net, PATIENCE, PORT};
use pemi::daemon::control;
use serde_json::{Value, json};

/// Longer than a table takes to fill; the floods come in turn, and the tests are to end.
const LASTING: Duration = Duration::from_secs(5);
const RATE: u32 = 20_000;
/// Flows of one client's, many times its share of the table.
const OF_ONE_CLIENT: u32 = 5_000;
/// Lines about flows that the log may get in a second.
const LINES: usize = 2;
/// How often the guard may take the worker for one that stands still, as a machine may that others
/// disturb. One that is only busy is not taken for one.
const STILL: usize = 6;
/// What a flood may add to the memory in use, in KiB: the tables and the cache filled, and
/// what waits in the queue. (A whole minute at this rate was measured to add no more.)
const GROWTH_KIB: u64 = 10 * 1024;
const FRAME: Duration = Duration::from_millis(20);
const CLIENT: Ipv4Addr = Ipv4Addr::new(10, 77, 0, 2);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 77, 1, 2);

/// A call that goes on until the value goes.
struct Call {
    client: String,
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Call {
    fn new(net: &Net) -> Call {
        let (client, server) = ENDS[0];
        let client = net.socket("c", client, 0);
        let server = net.socket("s", server, PORT);
        client.connect(server.local_addr().unwrap()).unwrap();
        server.connect(client.local_addr().unwrap()).unwrap();
        let name = client.local_addr().unwrap().to_string();
        let over = Arc::new(AtomicBool::new(false));
        let stop = Arc::clone(&over);
        let thread = thread::spawn(move || {
            client.send(&long(0, 1200)).unwrap();
            server.recv(&mut [0; 2048]).expect("the greeting does not arrive");
            for end in [&client, &server] {
                end.set_nonblocking(true).unwrap();
            }
            send(&server, &long(0, 1200));
            send(&server, &long(2, 700));
            thread::sleep(FRAME);
            send(&client, &long(2, 100));
            while !stop.load(Ordering::Relaxed) {
                send(&server, &short(900));
                send(&client, &short(60));
                thread::sleep(FRAME);
                for end in [&client, &server] {
                    while end.recv(&mut [0; 2048]).is_ok() {}
                }
            }
        });
        Call { client: name, over, thread: Some(thread) }
    }

    /// What the daemon knows of it.
    fn flow(&self, daemon: &Daemon) -> Option<Value> {
        let answer = control::ask(&daemon.control, &json!({"method": "flows", "limit": 1000}));
        let answer = answer.ok()?;
        let flow = answer["flows"].as_array()?.iter().find(|flow| flow["client"] == self.client);
        Some(flow.cloned().unwrap_or_else(|| json!({"state": "forgotten"})))
    }
}

impl Drop for Call {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        let _ = self.thread.take().unwrap().join();
    }
}

/// A frame that finds no room is lost.
fn send(end: &UdpSocket, payload: &[u8]) {
    if let Err(error) = end.send(payload) {
        let kinds = [ErrorKind::WouldBlock, ErrorKind::ConnectionRefused];
        assert!(kinds.contains(&error.kind()), "{error}");
    }
}

/// Memory in use, in KiB.
fn resident(daemon: &Daemon) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// A call goes on through a flood, which says how many it has sent.
fn call_through(direction: &str, flood: impl FnOnce(&Net) -> u32 + Send) {
    let config = json!({"device": ["lan0"], "direction": direction});
    let Some(net) = Net::ruled(&config) else { return };
    let options = ["--device", "lan0", "--direction", direction, "--release-s", "0"];
    let daemon = net.start(&options);
    let call = Call::new(&net);
    let start = Instant::now();
    let protected = |flow: &Value| flow["state"] == "protected";
    while !call.flow(&daemon).is_some_and(|flow| protected(&flow)) {
        assert!(start.elapsed() < PATIENCE, "{:?}", call.flow(&daemon));
        thread::sleep(FRAME);
    }
    let age = |flow: &Value| flow["age_s"].as_f64();
    let before = age(&call.flow(&daemon).unwrap()).unwrap();
    let (known, memory) = (daemon.log().lines().count(), resident(&daemon));
    let start = Instant::now();
    let sent = thread::scope(|scope| {
        let flood = scope.spawn(|| flood(&net));
        while !flood.is_finished() {
            if let Some(flow) = call.flow(&daemon) {
                assert!(protected(&flow), "after {:?}: {flow}", start.elapsed());
            }
            thread::sleep(FRAME);
        }
        flood.join().unwrap()
    });
    let seconds = start.elapsed().as_secs_f64();
    let flow = call.flow(&daemon).expect("it answers");
    assert!(protected(&flow), "{flow}");
    assert!(age(&flow).unwrap() >= before + seconds - 1.0, "it was forgotten: {flow}");
    let log = daemon.log();
    let lines: Vec<&str> = log.lines().skip(known).collect();
    let bound = LINES * (seconds.ceil() as usize);
    assert!(lines.len() <= bound, "more than {bound} lines in {seconds} s: {lines:#?}");
    let still = lines.iter().filter(|line| line.contains("stood still")).count();
    assert!(still <= STILL, "{lines:#?}");
    let growth = resident(&daemon).saturating_sub(memory);
    assert!(growth <= GROWTH_KIB, "{growth} KiB more for {sent} packets");
    assert!(sent >= RATE, "the machine sent only {sent}");
}

#[test]
fn a_call_outlives_strangers() {
    call_through("down", |net| {
        let to = SocketAddrV4::new(CLIENT, 0);
        let mut spoofer = Spoofer::new(net, "s", to, &long(0, 1200));
        flood(RATE, LASTING, |n| {
            let from = Ipv4Addr::from_bits(0xc612_0000 + n % 0x1_0000);
            spoofer.send(SocketAddrV4::new(from, PORT), 20_000 + (n / 0x1_0000) as u16);
        })
    });
}

/// Greetings of clients that are not there, and a server that does not know them.
fn from_the_lan(net: &Net) -> u32 {
    let to = SocketAddrV4::new(SERVER, PORT);
    let mut spoofer = Spoofer::new(net, "c", to, &long(0, 1200));
    flood(RATE, LASTING, |n| {
        let from = Ipv4Addr::new(10, 77, 0, 3 + (n % 250) as u8);
        spoofer.send(SocketAddrV4::new(from, 1024 + (n / 250) as u16), PORT);
    })
}

#[test]
fn a_call_outlives_spoofed_neighbours() {
    call_through("down", from_the_lan);
}

#[test]
fn a_call_outlives_spoofed_neighbours_with_both_directions() {
    call_through("both", from_the_lan);
}

/// One client and a server that answers it open as many connections as they like.
#[test]
fn a_call_outlives_one_client_with_many_flows() {
    call_through("down", |net| {
        net.ip("c", "addr add 10.77.0.9/24 dev eth0");
        net.ip("s", "addr add 10.77.1.9/24 dev eth0");
        let accomplice = net.socket("s", "10.77.1.9", PORT);
        accomplice.set_read_timeout(Some(FRAME)).unwrap();
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                let mut buffer = [0; 2048];
                while !over.load(Ordering::Relaxed) {
                    if let Ok((_, from)) = accomplice.recv_from(&mut buffer) {
                        let _ = accomplice.send_to(&long(2, 100), from);
                    }
                }
            });
            let to = SocketAddrV4::new(Ipv4Addr::new(10, 77, 1, 9), PORT);
            let [mut greeting, mut more] =
                [long(0, 1200), short(60)].map(|payload| Spoofer::new(net, "c", to, &payload));
            let sent = flood(RATE, LASTING, |n| {
                let port = 10_000 + (n % OF_ONE_CLIENT) as u16;
                let from = SocketAddrV4::new(Ipv4Addr::new(10, 77, 0, 9), port);
                if n < OF_ONE_CLIENT { &mut greeting } else { &mut more }.send(from, PORT);
            });
            over.store(true, Ordering::Relaxed);
            sent
        })
    });
}
