// SPDX-License-Identifier: GPL-2.0-or-later
//! What the daemon makes of whole conversations: strangers are let go, first
//! packets come twice, a hole is filled and hidden, and an end takes nothing
//! along. How single packets fare is in `router.rs`.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::net::UdpSocket;
use std::os::fd::{FromRawFd, OwnedFd};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use lab::{Daemon, ENDS, Net, PATIENCE, PORT};
use pemi::daemon::control;
use serde_json::{Value, json};

/// Server datagrams that the engine sends twice at the beginning.
const TWICE: usize = 12;
/// Stands in for the delay of a wireless hop, which veth pairs do not have.
/// The engine gives a repair a few of them, so the longer, the less a test
/// minds a busy machine; 100 ms is the longest that anything is held.
const HOP: Duration = Duration::from_millis(20);
/// Within this time a copy comes, if one comes: holding ends before it.
const COPY: Duration = Duration::from_millis(500);
/// A machine that stands still for longer than that spoils a try.
const TRIES: usize = 5;
/// Client packets: an acknowledgement, and one that names a hole.
const PLAIN: usize = 36;
const TELLING: usize = 38;

/// Both ends of a UDP flow. Every datagram has its number in its last four
/// bytes.
struct Talk {
    client: UdpSocket,
    server: UdpSocket,
    /// What the server has sent, and how often each has arrived.
    down: Vec<(Vec<u8>, usize)>,
    up: Vec<Vec<u8>>,
}

impl Talk {
    fn new(net: &Net, (client, server): (&str, &str)) -> Talk {
        let client = net.socket("c", client, 0);
        let server = net.socket("s", server, PORT);
        client.connect(server.local_addr().unwrap()).unwrap();
        server.connect(client.local_addr().unwrap()).unwrap();
        Talk { client, server, down: Vec::new(), up: Vec::new() }
    }

    /// The same with the greetings exchanged and the client's acknowledgements
    /// known.
    fn settled(net: &Net, ends: (&str, &str)) -> Talk {
        let mut talk = Talk::new(net, ends);
        talk.greet();
        while talk.down.len() < 2 * TWICE {
            talk.say(short(1000));
            talk.say(short(1000));
            talk.client_has_all();
            thread::sleep(HOP);
            talk.reply(short(PLAIN));
            talk.server_hears(talk.up.len() - 1);
        }
        talk
    }

    fn greet(&mut self) {
        self.reply(long(0, 1200));
        self.server_hears(0);
        self.say(long(0, 1200));
        self.say(long(2, 700));
        self.client_has_all();
        thread::sleep(HOP);
        self.reply(long(2, 100));
        self.server_hears(1);
    }

    /// The server says something.
    fn say(&mut self, datagram: Vec<u8>) {
        let datagram = numbered(datagram, self.down.len());
        self.server.send(&datagram).unwrap();
        self.down.push((datagram, 0));
    }

    /// The client says something.
    fn reply(&mut self, datagram: Vec<u8>) {
        let datagram = numbered(datagram, self.up.len());
        self.client.send(&datagram).unwrap();
        self.up.push(datagram);
    }

    /// The client takes the next datagram, which has to be as it was sent.
    fn client_hears(&mut self) -> usize {
        let got = receive(&self.client);
        let number = number_of(&got);
        let (sent, arrivals) = &mut self.down[number];
        assert!(got == *sent, "datagram {number} arrived altered");
        *arrivals += 1;
        number
    }

    fn client_has_all(&mut self) {
        while self.down.iter().any(|(_, arrivals)| *arrivals == 0) {
            self.client_hears();
        }
    }

    fn copies(&self) -> usize {
        self.down.iter().map(|(_, arrivals)| arrivals.saturating_sub(1)).sum()
    }

    /// The server takes the next datagram, which has to be this one.
    fn server_hears(&self, number: usize) {
        assert_eq!(self.server_takes(), number);
    }

    /// The server takes the next datagram, whichever it is.
    fn server_takes(&self) -> usize {
        let got = receive(&self.server);
        let number = number_of(&got);
        assert!(got == self.up[number], "datagram {number} arrived altered");
        number
    }

    fn flow(&self, daemon: &Daemon) -> Value {
        let answer = control::ask(&daemon.control, &json!({"method": "flows"})).unwrap();
        let name = self.client.local_addr().unwrap().to_string();
        let flows = answer["flows"].as_array().unwrap();
        flows.iter().find(|flow| flow["client"] == name).unwrap().clone()
    }
}

fn receive(socket: &UdpSocket) -> Vec<u8> {
    let mut buffer = [0; 2048];
    let len = socket.recv(&mut buffer).expect("nothing arrives");
    buffer[..len].to_vec()
}

fn numbered(mut datagram: Vec<u8>, number: usize) -> Vec<u8> {
    let at = datagram.len() - 4;
    datagram[at..].copy_from_slice(&(number as u32).to_be_bytes());
    datagram
}

fn number_of(datagram: &[u8]) -> usize {
    u32::from_be_bytes(*datagram.last_chunk().unwrap()) as usize
}

/// A datagram of QUIC version 1 with a long header: 0 Initial, 2 Handshake.
fn long(kind: u8, len: usize) -> Vec<u8> {
    let mut datagram = vec![0xc0 | kind << 4, 0, 0, 0, 1];
    datagram.extend([4, 1, 2, 3, 4, 4, 9, 9, 9, 9]);
    if kind == 0 {
        // No token.
        datagram.push(0);
    }
    let body = len - datagram.len() - 2;
    datagram.extend((0x4000 | body as u16).to_be_bytes());
    datagram.resize(len, 0x55);
    datagram
}

/// One with a short header.
fn short(len: usize) -> Vec<u8> {
    let mut datagram = vec![0x41, 9, 9, 9, 9];
    datagram.resize(len, 0x55);
    datagram
}

fn count(status: &Value, pointer: &str) -> usize {
    status.pointer(pointer).unwrap().as_u64().unwrap() as usize
}

#[test]
fn strangers_are_counted_and_let_go() {
    let Some(net) = Net::new() else { return };
    let mut daemon = net.start(&["--device", "lan0"]);
    let lengths = || (0..24).chain([333, 1199, 1200, 1472 - 20]);
    for (n, ends) in (1..).zip(ENDS) {
        let talk = Talk::new(&net, ends);
        for len in lengths() {
            // Long headers without sense, and no headers at all.
            let payload: Vec<u8> = (0..len).map(|at| (at * 31 + len) as u8).collect();
            talk.client.send(&payload).unwrap();
            assert!(receive(&talk.server) == payload);
            talk.server.send(&payload).unwrap();
            assert!(receive(&talk.client) == payload);
        }
        assert_eq!(talk.flow(&daemon)["state"], "bypassed");
        // The first few, which the engine has to see to judge; what let the flow go is
        // remembered for its connection, so the others did not come.
        let status = daemon.until(|_| true);
        let queued = count(&status, "/queues/0/packets");
        assert!((8 * n..lengths().count() * n).contains(&queued), "{queued}");
        assert_eq!(count(&status, "/packets/other"), queued);
        assert_eq!(count(&status, "/flows/bypassed"), n);
        assert_eq!(count(&status, "/resent/packets"), 0);
    }
}

#[test]
fn first_packets_come_twice_and_probes_are_answered() {
    let Some(net) = Net::new() else { return };
    for ends in ENDS {
        // One each: late copies of one conversation would be missed in the other.
        let mut daemon = net.start(&["--device", "lan0"]);
        let wire = wire(&net, ends.0);
        let mut talk = Talk::new(&net, ends);
        talk.greet();
        while talk.down.len() < TWICE + 4 {
            talk.say(short(20 + 77 * talk.down.len()));
            talk.client_has_all();
            talk.reply(short(PLAIN));
            talk.server_hears(talk.up.len() - 1);
        }
        while talk.down[..TWICE].iter().any(|(_, arrivals)| *arrivals < 2) {
            talk.client_hears();
        }
        let packets = talk.down.len() + talk.up.len();
        let all = |status: &Value| count(status, "/queues/0/packets") >= packets;
        let probed = |status: &Value| count(status, "/probes/answered") > 0;
        let status = daemon.until(|status| all(status) && probed(status));
        // On a slow machine there may be more of them: the handshake again.
        while talk.copies() < count(&status, "/resent/packets") {
            talk.client_hears();
        }
        // None of them came into the queue again.
        assert_eq!(count(&status, "/queues/0/packets"), packets);
        assert_eq!(count(&status, "/packets/quic"), packets);
        assert_eq!(count(&status, "/resent/errors"), 0);
        compare(&wire, &talk);
    }
}

/// The IP packets that come to the client.
fn wire(net: &Net, client: &str) -> UdpSocket {
    let protocol = if client.contains(':') { libc::ETH_P_IPV6 } else { libc::ETH_P_IP };
    let protocol = i32::from((protocol as u16).to_be());
    let fd = net.inside("c", || {
        // SAFETY: no pointers.
        let fd = unsafe { libc::socket(libc::AF_PACKET, libc::SOCK_DGRAM, protocol) };
        assert!(fd >= 0, "{}", std::io::Error::last_os_error());
        // SAFETY: a new descriptor that nobody else knows.
        unsafe { OwnedFd::from_raw_fd(fd) }
    });
    // Not UDP, but receiving with a timeout is the same.
    let socket = UdpSocket::from(fd);
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    socket
}

/// Copies are the same packets down to the IP header. Checksums are not
/// compared: veth pairs leave those of the first ones open, and those of
/// copies were checked by the client's kernel.
fn compare(wire: &UdpSocket, talk: &Talk) {
    let mut packets: Vec<Option<Vec<u8>>> = vec![None; talk.down.len()];
    let mut left = talk.down.len() + talk.copies();
    while left > 0 {
        let mut packet = receive(wire);
        let (header, protocol) =
            if packet[0] >> 4 == 4 { (20, packet[9]) } else { (40, packet[6]) };
        if i32::from(protocol) != libc::IPPROTO_UDP {
            continue;
        }
        left -= 1;
        packet[header + 6..header + 8].fill(0);
        let first = packets[number_of(&packet)].get_or_insert_with(|| packet.clone());
        assert!(packet == *first, "{packet:?} {first:?}");
    }
}

/// Without answers to probes the replies alone tell the round trip, which the
/// tests make long.
fn no_echo(net: &Net) {
    net.sysctl("c", "ipv4/icmp_echo_ignore_all");
    net.sysctl("c", "ipv6/icmp/echo_ignore_all");
}

/// Pretends that a packet was lost and waits for its copy; false if there is none, as on
/// a machine that stands still just then: the reply says nothing when it is late.
fn hole(talk: &mut Talk) -> bool {
    let copies = talk.down[TWICE..].iter().map(|(_, arrivals)| arrivals - 1).sum::<usize>();
    talk.say(short(1000));
    talk.say(short(1000));
    talk.client_has_all();
    thread::sleep(HOP);
    talk.reply(short(TELLING));
    talk.client.set_read_timeout(Some(COPY)).unwrap();
    let copy = talk.client.peek(&mut [0]).is_ok();
    talk.client.set_read_timeout(Some(PATIENCE)).unwrap();
    while copy
        && talk.down[TWICE..].iter().map(|(_, arrivals)| arrivals - 1).sum::<usize>() == copies
    {
        talk.client_hears();
    }
    copy
}

#[test]
fn a_hole_is_filled_before_the_server_hears_of_it() {
    let Some(net) = Net::new() else { return };
    no_echo(&net);
    for ends in ENDS {
        let hidden = (0..TRIES).any(|_| {
            let mut daemon = net.start(&["--device", "lan0"]);
            let mut talk = Talk::settled(&net, ends);
            if !hole(&mut talk) {
                return false;
            }
            let telling = talk.up.len() - 1;
            talk.reply(short(TELLING));
            // What the copy changed cannot be said before a round trip of the hop is over.
            thread::sleep(HOP);
            talk.reply(short(PLAIN));
            let order = [(); 3].map(|()| talk.server_takes() - telling);
            let mut sorted = order;
            sorted.sort_unstable();
            assert_eq!(sorted, [0, 1, 2], "all of them arrive");
            let status = daemon.until(|_| true);
            assert!(count(&status, "/losses/inferred") > 0, "{status}");
            assert!(count(&status, "/concealed/held") > 0, "{status}");
            assert_eq!(count(&status, "/concealed/now"), 0);
            if count(&status, "/concealed/late") + count(&status, "/losses/upstream") > 0 {
                return false;
            }
            assert_eq!(order, [2, 0, 1], "the one that shows no hole goes first: {status}");
            true
        });
        assert!(hidden, "holding was given up each time");
    }
}

#[test]
fn behind_a_cable_nobody_reports_and_everything_arrives_as_it_was() {
    let Some(net) = Net::ruled(&json!({"repair": "radio"})) else { return };
    for ends in ENDS {
        let mut daemon = net.start(&["--device", "lan0", "--repair", "radio"]);
        let wire = wire(&net, ends.0);
        let mut talk = Talk::settled(&net, ends);
        let status = daemon.until(|status| count(status, "/reports/missing") > 0);
        let (asked, missing) =
            (count(&status, "/reports/asked"), count(&status, "/reports/missing"));
        assert!(asked >= missing && asked < talk.down.len(), "a trial, and no more: {status}");
        assert_eq!(count(&status, "/reports/losses"), 0);
        assert_eq!(count(&status, "/reports/clients"), 0);
        assert_eq!(count(&status, "/resent/errors"), 0);
        // On a machine that stands still the trial is over before the first flight is.
        while talk.copies() < count(&status, "/resent/packets") {
            talk.client_hears();
        }
        compare(&wire, &talk);
    }
}

#[test]
fn an_end_lets_go_what_is_held_and_what_waits() {
    let Some(net) = Net::new() else { return };
    no_echo(&net);
    for ends in ENDS {
        let (mut daemon, mut talk) = (0..TRIES)
            .find_map(|_| {
                let daemon = net.start(&["--device", "lan0"]);
                let mut talk = Talk::settled(&net, ends);
                hole(&mut talk).then_some((daemon, talk))
            })
            .expect("no hole was seen");
        // The daemon's clock goes on, but it cannot let go of anything.
        daemon.signal(libc::SIGSTOP);
        let telling = talk.up.len() - 1;
        for _ in 0..40 {
            talk.reply(short(TELLING));
        }
        daemon.signal(libc::SIGTERM);
        daemon.signal(libc::SIGCONT);
        let mut arrived: Vec<usize> =
            (telling..talk.up.len()).map(|_| talk.server_takes()).collect();
        arrived.sort_unstable();
        assert!(arrived.into_iter().eq(telling..talk.up.len()));
        let (status, log) = daemon.end();
        assert_eq!(status.code(), Some(0), "{log}");
        let totals = log.lines().find(|line| line.contains("stopped: ")).unwrap();
        assert!(
            totals.contains("; 0 packets passed") && !totals.contains(" 0 replies"),
            "{totals}"
        );
        assert!(!daemon.control.exists());
    }
}

/// The guard releases them; how long that may take is in `guard.rs`.
#[test]
fn a_stop_keeps_nothing_that_is_held_and_help_goes_on() {
    let Some(net) = Net::new() else { return };
    no_echo(&net);
    let mut daemon = net.start(&["--device", "lan0"]);
    let mut talk = Talk::settled(&net, ENDS[0]);
    let held = (0..TRIES).any(|_| {
        hole(&mut talk);
        let first = talk.up.len() - 1;
        let begin = Instant::now();
        daemon.signal(libc::SIGSTOP);
        talk.reply(short(TELLING));
        talk.reply(short(TELLING));
        let mut arrived = [(); 3].map(|()| talk.server_takes() - first);
        let took = begin.elapsed();
        daemon.signal(libc::SIGCONT);
        arrived.sort_unstable();
        assert_eq!(arrived, [0, 1, 2], "all of them arrive");
        assert!(took < Duration::from_millis(400), "{took:?}");
        let status = daemon.until(|status| count(status, "/concealed/now") == 0);
        assert_eq!(count(&status, "/queues/0/verdict_errors"), 0);
        // The first was held when the daemon stopped; it took the guard to let it go.
        took > HOP && count(&status, "/concealed/held") > 0
    });
    assert!(held, "nothing was held when it stopped");
    // The same process helps the same flow.
    let resent = |daemon: &mut Daemon| count(&daemon.until(|_| true), "/resent/packets");
    let before = resent(&mut daemon);
    let helps = (0..20).any(|_| {
        for len in [PLAIN, PLAIN, TELLING] {
            talk.say(short(1000));
            talk.say(short(1000));
            talk.client_has_all();
            thread::sleep(HOP);
            talk.reply(short(len));
            talk.server_takes();
        }
        resent(&mut daemon) > before
    });
    assert!(helps, "{}", daemon.until(|_| true));
}

#[test]
fn a_reload_keeps_flows() {
    let Some(net) = Net::new() else { return };
    let file = net.file("pemi.json");
    fs::write(&file, r#"{"device": "lan0", "cache_kib": 128}"#).unwrap();
    let mut daemon = net.start(&["--config", file.to_str().unwrap()]);
    let mut talk = Talk::new(&net, ENDS[0]);
    talk.greet();
    let before = talk.flow(&daemon);
    assert_eq!((&before["state"], &before["packets_down"]), (&json!("handshake"), &json!(2)));

    fs::write(&file, r#"{"device": "lan0", "cache_kib": 256, "conceal": "no way"}"#).unwrap();
    daemon.signal(libc::SIGHUP);
    let status = daemon.until(|status| status["errors"] != json!([]));
    let error = status["errors"][0].as_str().unwrap();
    for part in [file.to_str().unwrap(), "'conceal'", "\"no way\""] {
        assert!(error.contains(part), "{error}");
    }
    assert_eq!(count(&status, "/cache/limit"), 128 << 10);

    fs::write(&file, r#"{"device": "lan0", "cache_kib": 256}"#).unwrap();
    daemon.signal(libc::SIGHUP);
    let status = daemon.until(|status| count(status, "/cache/limit") == 256 << 10);
    assert_eq!(status["errors"], json!([]));
    talk.say(short(1000));
    talk.client_has_all();
    daemon.until(|status| count(status, "/packets/down") == 3);
    let after = talk.flow(&daemon);
    assert_eq!((&after["state"], &after["packets_down"]), (&json!("handshake"), &json!(3)));
}

#[test]
fn check_names_every_problem() {
    let file = std::env::temp_dir().join(format!("pemi-check-{}.json", std::process::id()));
    fs::write(&file, r#"{"queues": 9, "mode": "magic", "sidekick": {"threshold": 65}}"#).unwrap();
    let check = |arguments: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_pemi"));
        command.arg("check").arg("--config").arg(&file).args(arguments).output().unwrap()
    };
    let (text, as_json) = (check(&[]), check(&["--json"]));
    fs::write(&file, "{}").unwrap();
    let good = check(&[]);
    fs::remove_file(&file).unwrap();

    assert_eq!((text.status.code(), as_json.status.code()), (Some(1), Some(1)));
    let said = String::from_utf8(text.stderr).unwrap();
    assert_eq!(said.lines().count(), 3, "{said}");
    for part in ["'queues'", "1 to 8", "'mode'", "routed, bridged", "'sidekick.threshold'"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(said.lines().all(|line| line.contains(file.to_str().unwrap())), "{said}");
    let answer: Value = serde_json::from_slice(&as_json.stdout).unwrap();
    assert_eq!((&answer["ok"], answer["errors"].as_array().unwrap().len()), (&json!(false), 3));
    assert_eq!(good.status.code(), Some(0));
}
