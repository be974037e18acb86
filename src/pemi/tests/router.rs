// SPDX-License-Identifier: GPL-2.0-or-later
//! How packets fare on the built daemon, one by one. Whole conversations are in
//! `queue.rs`.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use lab::packet::whole_packet;
use lab::{ENDS, Net, PATIENCE, PORT, QUEUE};
use pemi::config::Mode;
use pemi::datapath::bridge::Header;
use pemi::datapath::inject::Injector;
use pemi::datapath::probe::{Prober, REPLIES, Reply};
use pemi::sys::poll::{self, Interest};
use pemi::sys::{checksum, clock};
use pemi_engine::{Direction, SEC};
use serde_json::{Value, json};

/// For one packet to get through; it is sent again until then.
const TRY: Duration = Duration::from_millis(200);

/// A socket that does not wait longer than for one try.
fn socket(net: &Net, part: &str, address: &str, port: u16) -> UdpSocket {
    let socket = net.socket(part, address, port);
    socket.set_read_timeout(Some(TRY)).unwrap();
    socket
}

/// Sends until it arrives; whatever arrives has to be what was sent.
fn pass(from: &UdpSocket, to: &UdpSocket, payload: &[u8]) {
    let start = Instant::now();
    let mut buffer = [0; 2048];
    loop {
        from.send_to(payload, to.local_addr().unwrap()).unwrap();
        match to.recv_from(&mut buffer) {
            Ok((len, sender)) if buffer[..len] == *payload => {
                assert_eq!(sender, from.local_addr().unwrap());
                return;
            }
            // One sent twice may arrive twice; all have a length of their own.
            Ok((len, _)) => assert!(len < payload.len() && buffer[..len] == payload_of(len)[..]),
            Err(_) => assert!(start.elapsed() < PATIENCE, "nothing arrives"),
        }
    }
}

fn payload_of(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 31 + len) as u8).collect()
}

/// Packets of many lengths, both ways, over both IP versions.
fn pass_all(net: &Net) {
    for (client, server) in ENDS {
        let client = socket(net, "c", client, 50000);
        let server = socket(net, "s", server, PORT);
        for len in [0, 1, 2, 7, 25, 40, 333, 1199, 1200, 1400] {
            let payload = payload_of(len);
            pass(&client, &server, &payload);
            pass(&server, &client, &payload);
        }
    }
}

#[test]
fn packets_pass_unaltered() {
    for arguments in [&["--device", "lan0"][..], &[]] {
        // Anew: connections that were let go stay so.
        let Some(net) = Net::new() else { return };
        let mut daemon = net.start(arguments);
        pass_all(&net);
        let seen = |status: &Value| status["queues"][0]["packets"].as_u64().unwrap();
        let status = daemon.until(|status| seen(status) >= 16);
        assert_eq!(status["queues"][0]["verdict_errors"], 0);
        assert!(status["bytes"]["down"].as_u64() > Some(0), "{status}");
        assert_eq!(status["errors"], json!([]));
        daemon.signal(libc::SIGTERM);
        let (status, log) = daemon.end();
        assert!(status.success(), "{status} {log}");
        assert!(log.contains("INFO started") && log.contains("INFO stopped"), "{log}");
        assert!(!daemon.control.exists());
    }
}

#[test]
fn packets_pass_several_queues() {
    let Some(net) = Net::new() else { return };
    // Rules send all to the first; that the others are there is enough.
    let mut daemon = net.start(&["--queues", "3"]);
    pass_all(&net);
    let status = daemon.until(|_| true);
    let queues: Vec<_> = status["queues"].as_array().unwrap().iter().map(|q| &q["id"]).collect();
    assert_eq!(queues, [77, 78, 79]);
}

#[test]
fn packets_pass_after_a_crash() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.start(&[]);
    daemon.signal(libc::SIGKILL);
    assert!(!daemon.end().0.success());
    pass_all(&net);
    // The socket that was left behind is no obstacle.
    drop(net.start(&[]));
}

#[test]
fn packets_that_nobody_takes_pass_and_are_counted() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.start(&[]);
    let (client, server) = ENDS[0];
    let client = socket(&net, "c", client, 50000);
    let server = socket(&net, "s", server, PORT);
    pass(&client, &server, &payload_of(1200));
    // The guard first, or it would take them.
    let guard = daemon.guard();
    lab::signal(guard, libc::SIGSTOP);
    daemon.signal(libc::SIGSTOP);
    let (start, mut buffer) = (Instant::now(), [0; 2048]);
    // Until one gets by a daemon that takes nothing.
    server.set_nonblocking(true).unwrap();
    let mut waiting = 0;
    while !matches!(server.recv_from(&mut buffer), Ok((1201, _))) {
        assert!(start.elapsed() < PATIENCE, "nothing passes");
        client.send_to(&payload_of(1201), server.local_addr().unwrap()).unwrap();
        waiting += 1;
    }
    // What 100 Mbit/s bring in 0.1 s.
    assert!((100..1100).contains(&waiting), "{waiting} wait");
    daemon.signal(libc::SIGCONT);
    lab::signal(guard, libc::SIGCONT);
    // The next one that it takes reveals the gap.
    let status = daemon.until(|status| {
        client.send_to(&payload_of(1201), server.local_addr().unwrap()).unwrap();
        status["queues"][0]["missed"].as_u64() > Some(0)
    });
    let error = status["errors"][0].as_str().unwrap();
    assert!(error.contains("passed unhelped"), "{error}");
}

#[test]
fn a_bad_file_on_reload_changes_nothing() {
    let Some(net) = Net::new() else { return };
    let file = net.file("pemi.json");
    fs::write(&file, r#"{"cache_kib": 128, "device": ["lan0"]}"#).unwrap();
    let mut daemon = net.start(&["--config", file.to_str().unwrap()]);
    let limit = |status: &Value| status["cache"]["limit"].as_u64();
    daemon.until(|status| limit(status) == Some(128 << 10));

    fs::write(&file, r#"{"cache_kib": 1, "device": ["lan0"]}"#).unwrap();
    daemon.signal(libc::SIGHUP);
    let status = daemon.until(|status| status["errors"] != json!([]));
    let error = status["errors"][0].as_str().unwrap();
    for part in [file.to_str().unwrap(), "cache_kib", "value 1 ", "64 to 1048576"] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(limit(&status), Some(128 << 10));
    pass_all(&net);

    // More queues take a new start, in the same process.
    fs::write(&file, r#"{"cache_kib": 256, "device": ["lan0"], "queues": 2}"#).unwrap();
    daemon.signal(libc::SIGHUP);
    let two = |status: &Value| status["queues"].as_array().is_some_and(|list| list.len() == 2);
    let status = daemon.until(two);
    assert_eq!((limit(&status), &status["errors"]), (Some(256 << 10), &json!([])));

    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success());
    assert!(log.contains("ERROR") && log.contains("the last good configuration stays"), "{log}");
}

#[test]
fn a_queue_that_is_taken_is_named() {
    let Some(net) = Net::new() else { return };
    let daemon = net.start(&[]);
    let other = daemon.control.with_file_name("other.sock");
    let output = Command::new("ip")
        .args(["netns", "exec", &net.at("r"), env!("CARGO_BIN_EXE_pemi"), "run"])
        .args(["--queue", &QUEUE.to_string(), "--control", other.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("queue 77") && text.contains("is another pemi running?"), "{text}");
    assert!(!Path::new(&other).exists());
}

/// Sends a copy until it arrives.
fn copy_arrives(
    injector: &mut Injector,
    packet: &[u8],
    client: &UdpSocket,
    server: SocketAddr,
    payload: &[u8],
) {
    let start = Instant::now();
    let mut buffer = [0; 2048];
    let (len, sender) = loop {
        injector.send(Direction::Down, packet);
        match client.recv_from(&mut buffer) {
            Ok(got) => break got,
            Err(_) => assert!(start.elapsed() < PATIENCE, "no copy arrives"),
        }
    };
    assert_eq!((sender, &buffer[..len]), (server, payload));
}

#[test]
fn copies_arrive_as_if_from_the_server() {
    let Some(net) = Net::new() else { return };
    let mut injector = net.inside("r", || Injector::open(Mode::Routed, 0x2000_0000).unwrap());
    for (client, server) in ENDS {
        let client = socket(&net, "c", client, 50000);
        let server = SocketAddr::new(server.parse().unwrap(), PORT);
        let payload = payload_of(1200);
        let packet = whole_packet(server, client.local_addr().unwrap(), &payload);
        copy_arrives(&mut injector, &packet, &client, server, &payload);
    }
    assert_eq!(injector.errors(), 0);
    injector.send(
        Direction::Down,
        &whole_packet(
            "192.0.2.1:443".parse().unwrap(),
            "198.51.100.1:50000".parse().unwrap(),
            b"there is no way",
        ),
    );
    assert_eq!(injector.errors(), 1);
}

#[test]
fn copies_on_a_bridge_leave_by_the_port_of_their_originals() {
    let Some(net) = Net::new() else { return };
    let (mut injector, port) = net.inside("r", || {
        let port = pemi::sys::socket::interface_index(c"lan0").unwrap();
        (Injector::open(Mode::Bridged, 0x2000_0000).unwrap(), port)
    });
    let output = Command::new("ip").args(["-n", &net.at("c"), "-o", "link"]).output().unwrap();
    let links = String::from_utf8(output.stdout).unwrap();
    let link = links.lines().find(|line| line.contains("eth0")).unwrap();
    let mac = link.split("link/ether ").nth(1).unwrap().split(' ').next().unwrap();
    let mac: Vec<u8> = mac.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    for ((client, server), kind) in ENDS.into_iter().zip([[8, 0], [0x86, 0xdd]]) {
        let client = socket(&net, "c", client, 50000);
        let server = SocketAddr::new(server.parse().unwrap(), PORT);
        let payload = payload_of(1200);
        let packet = whole_packet(server, client.local_addr().unwrap(), &payload);
        // Nobody knows the way yet.
        let errors = injector.errors();
        injector.send(Direction::Down, &packet);
        assert_eq!(injector.errors(), errors + 1);
        let header = [&mac[..], &[2, 0, 0, 0, 0, 1], &kind].concat();
        injector.learn_port(client.local_addr().unwrap().ip(), port, Header::new(&header));
        copy_arrives(&mut injector, &packet, &client, server, &payload);
        assert_eq!(injector.errors(), errors + 1);
    }
}

#[test]
fn probes_are_answered() {
    let Some(net) = Net::new() else { return };
    let mut prober = net.inside("r", || Prober::open(0x2000_0000).unwrap());
    for (client, _) in ENDS {
        let client: IpAddr = client.parse().unwrap();
        let start = Instant::now();
        let mut replies = Vec::new();
        while replies.is_empty() {
            assert!(start.elapsed() < PATIENCE, "no reply");
            prober.send(clock::now(), client);
            let mut interests: Vec<Interest> = prober.sockets().map(Interest::read).collect();
            poll::wait(&mut interests, Some(SEC)).unwrap();
            prober.receive(clock::now(), &interests, |reply| replies.push(reply));
        }
        let Reply { client: replier, rtt } = replies[0];
        assert_eq!(replier, client);
        assert!(rtt > 0);
    }
}

#[test]
fn replies_that_nobody_asked_for_are_taken_a_few_at_a_time() {
    let Some(net) = Net::new() else { return };
    let mut prober = net.inside("r", || Prober::open(0x2000_0000).unwrap());
    let stranger = net
        .inside("c", || pemi::sys::socket::raw(libc::AF_INET, libc::IPPROTO_ICMP))
        .expect("a raw socket");
    let router: IpAddr = "10.77.0.1".parse().unwrap();
    let mut message = [0; 24];
    let checksum = checksum::internet(&message);
    message[2..4].copy_from_slice(&checksum.to_be_bytes());
    for _ in 0..4 * REPLIES {
        pemi::sys::socket::send_to(stranger.as_fd(), &message, router).unwrap();
    }
    let waited = |prober: &Prober, patience| {
        let mut interests: Vec<Interest> = prober.sockets().map(Interest::read).collect();
        poll::wait(&mut interests, Some(patience)).unwrap();
        interests
    };
    let is_ready = |interests: &[Interest]| interests.iter().any(Interest::is_ready);
    for _ in 0..4 {
        let ready = waited(&prober, SEC);
        assert!(is_ready(&ready), "they do not come, or all were taken");
        prober.receive(clock::now(), &ready, |reply| panic!("{reply:?} is none"));
    }
    assert!(!is_ready(&waited(&prober, 0)), "fewer were taken than was to be");
}
