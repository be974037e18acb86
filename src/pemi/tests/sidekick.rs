// SPDX-License-Identifier: GPL-2.0-or-later
//! Sidekick on the built daemon: what it tells of packets that were really forwarded,
//! and what strangers can do about it.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::num::{NonZeroU8, NonZeroU16};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Daemon, ENDS, Net, PATIENCE, PORT};
use pemi_quack::{Hello, Interval, Message, Quack, Token, Width};
use serde_json::{Value, json};

/// Until what was not answered is said again.
const TRY: Duration = Duration::from_millis(200);
/// The router's addresses on the clients' network.
const ROUTERS: [&str; 2] = ["10.77.0.1", "fd77:0::1"];
const OFFSET: usize = 1;

fn bytes(message: Message<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    message.write(&mut out);
    out
}

/// A flow to a server, and the sums over what was sent.
struct Sender {
    flow: UdpSocket,
    /// To the router.
    talk: UdpSocket,
    server: UdpSocket,
    token: Token,
    hello: Hello,
    sent: Quack<u32>,
    log: Vec<u32>,
}

impl Sender {
    fn new(net: &Net, version: usize, router_port: u16, interval: Interval) -> Sender {
        let (client, server) = ENDS[version];
        let talk = net.socket("c", client, 0);
        talk.set_read_timeout(Some(TRY)).unwrap();
        talk.connect((ROUTERS[version].parse::<IpAddr>().unwrap(), router_port)).unwrap();
        let flow = net.socket("c", client, 0);
        let server = net.socket("s", server, PORT);
        flow.connect(server.local_addr().unwrap()).unwrap();
        let threshold = NonZeroU8::new(8).unwrap();
        let hello = Hello {
            token: 0x1234 + version as u64,
            cookie: 0,
            width: Width::Bits32,
            threshold,
            interval,
            offset: OFFSET as u16,
            client_port: flow.local_addr().unwrap().port(),
            server: server.local_addr().unwrap().ip(),
            server_port: PORT,
            losses: 0,
        };
        let sent = Quack::new(threshold);
        Sender { flow, talk, server, token: hello.token, hello, sent, log: Vec::new() }
    }

    /// Says something until there is an answer of the wanted kind.
    fn ask<T>(&self, message: Message<'_>, wanted: impl Fn(&Message<'_>) -> Option<T>) -> T {
        let start = Instant::now();
        let mut buffer = [0; 2048];
        loop {
            self.talk.send(&bytes(message)).unwrap();
            while let Ok(len) = self.talk.recv(&mut buffer) {
                if let Some(found) = Message::parse(&buffer[..len]).ok().as_ref().and_then(&wanted)
                {
                    return found;
                }
            }
            assert!(start.elapsed() < PATIENCE, "no answer to {message:?}");
        }
    }

    /// The epoch.
    fn greet(&mut self) -> u32 {
        let token = self.token;
        self.hello.cookie =
            self.ask(Message::Hello(Hello { cookie: 0, ..self.hello }), |answer| match answer {
                Message::Cookie { token: of, cookie } if *of == token => Some(*cookie),
                _ => None,
            });
        self.keep_alive()
    }

    fn keep_alive(&self) -> u32 {
        self.ask(Message::Hello(self.hello), |answer| match answer {
            Message::Accept { token, epoch, .. } if *token == self.token => Some(*epoch),
            _ => None,
        })
    }

    /// Sends a packet, or only notes that it did.
    fn send(&mut self, id: u32, really: bool) {
        let mut payload = [0x40; 120];
        payload[OFFSET..OFFSET + 4].copy_from_slice(&id.to_be_bytes());
        if really {
            self.flow.send(&payload).unwrap();
            // It is forwarded.
            let mut buffer = [0; 200];
            assert_eq!(self.server.recv(&mut buffer).expect("nothing arrives"), payload.len());
        }
        self.sent.insert(id);
        self.log.push(id);
    }

    /// The ages, in microseconds, of the quACKs that have come and those still to come.
    fn ages(&self) -> Vec<u32> {
        let (mut ages, mut buffer) = (Vec::new(), [0; 2048]);
        while let Ok(len) = self.talk.recv(&mut buffer) {
            if let Ok(Message::Quack { age_us, .. }) = Message::parse(&buffer[..len]) {
                ages.push(age_us);
            }
        }
        ages
    }

    /// The next quACK: epoch, sequence, sums.
    fn quack(&self) -> Option<(u32, u16, Quack<u32>)> {
        let mut buffer = [0; 2048];
        loop {
            let len = self.talk.recv(&mut buffer).ok()?;
            if let Ok(Message::Quack { token, epoch, sequence, quack, .. }) =
                Message::parse(&buffer[..len])
                && token == self.token
            {
                return Some((epoch, sequence, Quack::parse(quack).unwrap()));
            }
        }
    }
}

fn packets(every: u16) -> Interval {
    Interval::Packets(NonZeroU16::new(every).unwrap())
}

fn identifiers(seed: u32) -> impl FnMut() -> u32 {
    let mut state = seed;
    move || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state
    }
}

/// A configuration with Sidekick at a port.
fn configuration(net: &Net, port: u16) -> std::path::PathBuf {
    let file = net.file("pemi.json");
    let text = json!({"device": ["lan0"], "sidekick": {"enabled": true, "port": port}});
    fs::write(&file, text.to_string()).unwrap();
    file
}

fn start(net: &Net, port: u16) -> Daemon {
    let file = configuration(net, port);
    let mut daemon = net.start(&["--config", file.to_str().unwrap()]);
    let status = daemon.until(|_| true);
    assert_eq!((&status["errors"], &status["sidekick"]["enabled"]), (&json!([]), &json!(true)));
    daemon
}

#[test]
fn what_is_missing_is_what_was_not_sent() {
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net, 5103);
    for version in 0..2 {
        let mut sender = Sender::new(&net, version, 5103, packets(10));
        let epoch = sender.greet();
        let mut next = identifiers(version as u32);
        let missing = [3, 4, 11, 15];
        for n in 0..24 {
            sender.send(next(), !missing.contains(&n));
        }
        for sequence in 1..=2 {
            let (of, number, quack) = sender.quack().expect("a quACK");
            assert_eq!((of, number, quack.count()), (epoch, sequence, 10 * sequence));
            let found = sender.sent.decode(&sender.log, &quack).unwrap();
            let expected = if sequence == 1 { &missing[..3] } else { &missing[..] };
            assert_eq!(found.lost, expected);
        }
        // It goes on, and the losses are told.
        sender.hello.losses = 4;
        assert_eq!(sender.keep_alive(), epoch);
    }
    let told = |status: &Value| status["sidekick"]["losses"] == 8;
    let status = daemon.until(told);
    let sidekick = &status["sidekick"];
    assert_eq!(
        [&sidekick["sessions"], &sidekick["quacks"], &sidekick["packets"], &sidekick["errors"]],
        [2, 4, 40, 0]
    );
    assert_eq!(sidekick["quack_bytes"], 4 * 61);
    pemi::daemon::control::ask(&daemon.control, &json!({"method": "reset"})).unwrap();
    let status = daemon.until(|status| status["sidekick"]["packets"] == 0);
    assert_eq!(status["sidekick"]["sessions"], 2);
}

#[test]
fn a_late_packet_is_told_of_while_it_is_missed() {
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net, 5103);
    let mut sender = Sender::new(&net, 0, 5103, Interval::Router);
    sender.greet();
    let mut next = identifiers(7);
    // The period and the margin are learned from how evenly the packets come, and this
    // machine may be too busy for that; it will not be for ever.
    let mut sent = 0;
    let told = (0..ROUNDS).any(|_| {
        sent += u64::from(PACKETS);
        let unsteady = send_steadily(&mut sender, &mut next);
        // Nothing comes any more, and it says so: a period after the last one, and a margin.
        // The daemon may have seen the last one later than it was sent, by what nobody here
        // knows; the tests of the cadence, which have virtual time, have the exact period.
        let expected = PERIOD * 3 / 4..PERIOD * 3 + 4 * unsteady;
        sender.ages().iter().any(|age| expected.contains(&Duration::from_micros((*age).into())))
    });
    let status = daemon.until(|_| true);
    assert!(told, "{status}");
    let [late, quacks] = ["late", "quacks"].map(|name| status["sidekick"][name].as_u64());
    assert!(late >= Some(1) && quacks <= Some(sent * 3 / 4), "{status}");
}

/// From one packet to the next.
const PERIOD: Duration = Duration::from_millis(20);
/// So many make a flow steady more than twice over.
const PACKETS: u32 = 40;
const ROUNDS: u32 = 10;

/// How late the latest of the packets was sent.
fn send_steadily(sender: &mut Sender, mut next: impl FnMut() -> u32) -> Duration {
    let begin = Instant::now();
    let delays = (0..PACKETS).map(|n| {
        let due = begin + n * PERIOD;
        thread::sleep(due.saturating_duration_since(Instant::now()));
        sender.send(next(), true);
        due.elapsed()
    });
    delays.max().unwrap_or_default()
}

#[test]
fn strangers_change_nothing() {
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net, 5103);
    let mut sender = Sender::new(&net, 0, 5103, packets(4));
    let epoch = sender.greet();
    let mut next = identifiers(1);
    sender.send(next(), true);

    // They know the token, and everything else.
    let lan = net.socket("c", ENDS[0].0, 0);
    let wan = net.socket("s", ENDS[0].1, 0);
    let router: SocketAddr = format!("{}:5103", ROUTERS[0]).parse().unwrap();
    let token = sender.token;
    let ignored = |status: &Value| status["sidekick"]["ignored"].as_u64().unwrap();
    let before = ignored(&daemon.until(|_| true));
    let quack = bytes(Message::Quack { token, sequence: 9, epoch, age_us: 0, quack: &[1; 41] });
    for stranger in [&lan, &wan] {
        for message in [
            bytes(Message::Hello(sender.hello)),
            bytes(Message::Reset { token, epoch }),
            bytes(Message::Bye { token }),
            quack.clone(),
        ] {
            stranger.send_to(&message, router).unwrap();
        }
    }
    // The same flow from elsewhere than the clients' network.
    let port = sender.hello.client_port;
    let other = net.socket("s", ENDS[0].1, port);
    other.send_to(&[0x40; 120], (ENDS[0].0, PORT)).unwrap();
    // From the LAN all four are looked at: the HELLO is answered with a cookie, a quACK is
    // longer than any message. What comes from the WAN is not looked at.
    daemon.until(|status| ignored(status) >= before + 2);
    wan.set_read_timeout(Some(TRY)).unwrap();
    assert!(wan.recv(&mut [0; 64]).is_err(), "the WAN has got an answer");
    for _ in 0..3 {
        sender.send(next(), true);
    }
    let (of, sequence, quack) = sender.quack().expect("a quACK");
    assert_eq!((of, sequence, quack.count()), (epoch, 1, 4));
    assert_eq!(sender.sent.decode(&sender.log, &quack).unwrap().lost, [0; 0]);
    assert_eq!(daemon.until(|_| true)["sidekick"]["sessions"], 1);
}

fn resident_kib(daemon: &Daemon) -> u64 {
    let text = fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS")).unwrap();
    line.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

#[test]
fn a_flood_of_hellos_costs_no_memory_and_no_packets() {
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net, 5103);
    let mut sender = Sender::new(&net, 0, 5103, packets(10));
    let epoch = sender.greet();
    let before = resident_kib(&daemon);
    let flood = net.socket("c", ENDS[0].0, 0);
    let router: SocketAddr = format!("{}:5103", ROUTERS[0]).parse().unwrap();
    let over = AtomicBool::new(false);
    let mut next = identifiers(1);
    let (hellos, took) = thread::scope(|scope| {
        let flooding = scope.spawn(|| {
            let (begin, mut count) = (Instant::now(), 0u32);
            let mut hello = sender_hello();
            while !over.load(Ordering::Relaxed) || count < 20_000 {
                // A hundred every 10 ms are 10,000 a second.
                for _ in 0..100 {
                    hello.token += 1;
                    hello.client_port = hello.client_port.wrapping_add(1);
                    flood.send_to(&bytes(Message::Hello(hello)), router).unwrap();
                    count += 1;
                }
                let due = begin + Duration::from_micros(100) * count;
                thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            (count, begin.elapsed())
        });
        // Every one of them is forwarded, or `send` complains.
        for _ in 0..300 {
            sender.send(next(), true);
            thread::sleep(Duration::from_millis(5));
        }
        over.store(true, Ordering::Relaxed);
        flooding.join().unwrap()
    });
    println!("{hellos} HELLOs in {took:?}");
    // They are counted, and the session is what it was.
    let mut last = None;
    while let Some(quack) = sender.quack() {
        last = Some(quack);
    }
    let (of, sequence, quack) = last.expect("quACKs");
    assert_eq!((of, sequence, quack.count()), (epoch, 30, 300));
    assert_eq!(sender.sent.decode(&sender.log, &quack).unwrap().lost, [0; 0]);
    let status = daemon.until(|_| true);
    assert_eq!(status["sidekick"]["sessions"], 1);
    let after = resident_kib(&daemon);
    println!("{before} KiB, {after} KiB");
    assert!(after < before + 1024, "{before} KiB, {after} KiB");
    assert_eq!(status["queues"][0]["missed"], 0);
}

/// Of somebody without a cookie.
fn sender_hello() -> Hello {
    Hello {
        token: 1,
        cookie: 99,
        width: Width::Bits32,
        threshold: NonZeroU8::new(8).unwrap(),
        interval: Interval::Adaptive,
        offset: 1,
        client_port: 1,
        server: ENDS[0].1.parse().unwrap(),
        server_port: PORT,
        losses: 0,
    }
}

/// Waits for a BYE.
fn hears_bye(sender: &Sender) {
    let (start, mut buffer) = (Instant::now(), [0; 2048]);
    loop {
        if let Ok(len) = sender.talk.recv(&mut buffer)
            && Message::parse(&buffer[..len]) == Ok(Message::Bye { token: sender.token })
        {
            return;
        }
        assert!(start.elapsed() < PATIENCE, "no BYE");
    }
}

#[test]
fn sessions_end_in_good_order() {
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net, 5103);
    let mut sender = Sender::new(&net, 0, 5103, packets(2));
    sender.greet();
    // Another port: the session ends, the daemon goes on.
    configuration(&net, 5104);
    daemon.signal(libc::SIGHUP);
    hears_bye(&sender);
    let uptime = daemon.until(|status| status["sidekick"]["sessions"] == 0);
    assert_eq!(uptime["errors"], json!([]));
    drop(sender);
    let mut sender = Sender::new(&net, 0, 5104, packets(2));
    sender.greet();
    let mut next = identifiers(1);
    sender.send(next(), true);
    sender.send(next(), true);
    assert_eq!(sender.quack().expect("a quACK").2.count(), 2);
    // The same again changes nothing.
    daemon.signal(libc::SIGHUP);
    let taken = net.inside("r", || UdpSocket::bind("[::]:5105").unwrap());
    sender.send(next(), true);
    sender.send(next(), true);
    assert_eq!(sender.quack().expect("a quACK").2.count(), 4);
    // A port that cannot be had is an error to be read, and packets pass.
    configuration(&net, 5105);
    daemon.signal(libc::SIGHUP);
    hears_bye(&sender);
    let status = daemon.until(|status| status["errors"] != json!([]));
    let error = status["errors"][0].as_str().unwrap();
    assert!(error.contains("'sidekick.port'") && error.contains("5105"), "{error}");
    sender.send(next(), true);
    drop((taken, sender));
    daemon.signal(libc::SIGHUP);
    daemon.until(|status| status["errors"] == json!([]));
    let mut sender = Sender::new(&net, 1, 5105, packets(2));
    sender.greet();
    daemon.signal(libc::SIGTERM);
    hears_bye(&sender);
    let (status, log) = daemon.end();
    assert!(status.success(), "{log}");
    assert!(!log.contains("starting anew"), "{log}");
    assert!(log.contains("sidekick answers at UDP port 5104"), "{log}");
}

/// The kernel merges what it receives (`rx-gro-list`, on by default on OpenWrt), and here
/// leaves merged what the client sends so.
#[test]
fn merged_packets_are_told_one_by_one() {
    const SOL_UDP: i32 = 17;
    const UDP_SEGMENT: i32 = 103;
    const EACH: usize = 120;
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net, 5103);
    for version in 0..2 {
        let mut sender = Sender::new(&net, version, 5103, packets(100));
        let epoch = sender.greet();
        pemi::sys::socket::set_option(sender.flow.as_fd(), SOL_UDP, UDP_SEGMENT, &[EACH as u32])
            .unwrap();
        let mut next = identifiers(3);
        for _ in 0..10 {
            let mut payload = [0x40; 10 * EACH - 30];
            for packet in payload.chunks_mut(EACH) {
                let id = next();
                packet[OFFSET..OFFSET + 4].copy_from_slice(&id.to_be_bytes());
                sender.sent.insert(id);
                sender.log.push(id);
            }
            sender.flow.send(&payload).unwrap();
            for packet in payload.chunks(EACH) {
                let len = sender.server.recv(&mut [0; 200]).expect("nothing arrives");
                assert_eq!(len, packet.len());
            }
        }
        let (of, sequence, quack) = sender.quack().expect("a quACK");
        assert_eq!((of, sequence, quack.count()), (epoch, 1, 100));
        assert_eq!(sender.sent.decode(&sender.log, &quack).unwrap().lost, [0; 0]);
    }
    assert_eq!(daemon.until(|_| true)["sidekick"]["errors"], 0);
}

#[test]
fn a_device_that_comes_back_is_another_one_and_the_session_goes_on() {
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net, 5103);
    let mut sender = Sender::new(&net, 0, 5103, packets(2));
    let epoch = sender.greet();
    let mut next = identifiers(1);
    sender.send(next(), true);
    let ip = |part: &str, command: &str| {
        let mut ip = std::process::Command::new("ip");
        let done = ip.args(["-n", &net.at(part)]).args(command.split(' ')).status().unwrap();
        assert!(done.success(), "{command}");
    };
    ip("r", "link del lan0");
    ip("r", &format!("link add lan0 type veth peer name eth0 netns {}", net.at("c")));
    for (part, device, host) in [("c", "eth0", 2), ("r", "lan0", 1)] {
        ip(part, &format!("addr add 10.77.0.{host}/24 dev {device}"));
        ip(part, &format!("link set {device} up"));
    }
    ip("c", "route add default via 10.77.0.1");
    assert_eq!(sender.keep_alive(), epoch);
    sender.send(next(), true);
    assert_eq!(sender.quack().expect("a quACK").2.count(), 2);
    assert_eq!(daemon.until(|_| true)["sidekick"]["sessions"], 1);
}
