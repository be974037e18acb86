//! The built daemon on a router made of network namespaces:
//!
//! ```text
//! client (10.77.0.2, fd77:0::2) -- router -- server (10.77.1.2, fd77:1::2)
//! ```
//!
//! Needs root and a kernel with NFQUEUE; where these are missing the tests say
//! so and pass.

use std::fs::{self, File};
use std::io::Read;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pemi::inject::Injector;
use pemi::poll::{self, Interest};
use pemi::probe::{Prober, Reply};
use pemi::{clock, control, udp};
use pemi_engine::SEC;
use serde_json::{Value, json};

const QUEUE: u16 = 77;
const PORT: u16 = 443;
/// For one packet to get through; it is sent again until then.
const TRY: Duration = Duration::from_millis(200);
/// For anything at all.
const PATIENCE: Duration = Duration::from_secs(20);

/// `(client, server)` of each IP version.
const ENDS: [(&str, &str); 2] = [("10.77.0.2", "10.77.1.2"), ("fd77:0::2", "fd77:1::2")];

/// Three namespaces in a row; they go with the value.
struct Net {
    name: String,
}

impl Net {
    /// `None`, with the reason printed, where it cannot be had.
    fn new() -> Option<Net> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let net = Net { name: format!("pemi-{}-{number}", std::process::id()) };
        // SAFETY: no arguments; cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return skip("root is needed");
        }
        for part in ["c", "r", "s"] {
            if !run("ip", &format!("netns add {}", net.at(part))) {
                return skip("network namespaces are needed");
            }
            net.ip(part, "link set lo up");
        }
        let (c, r, s) = (net.at("c"), net.at("r"), net.at("s"));
        net.ip("r", &format!("link add lan0 type veth peer name eth0 netns {c}"));
        net.ip("r", &format!("link add wan0 type veth peer name eth0 netns {s}"));
        let forwarding = "/proc/sys/net/ipv4/ip_forward /proc/sys/net/ipv6/conf/all/forwarding";
        let script = format!("for f in {forwarding}; do echo 1 > $f; done");
        let args = ["netns", "exec", &r, "sh", "-c", &script];
        assert!(Command::new("ip").args(args).status().unwrap().success());
        for (part, device, net_number, host) in
            [("c", "eth0", 0, 2), ("r", "lan0", 0, 1), ("r", "wan0", 1, 1), ("s", "eth0", 1, 2)]
        {
            net.ip(part, &format!("addr add 10.77.{net_number}.{host}/24 dev {device}"));
            net.ip(part, &format!("addr add fd77:{net_number}::{host}/64 dev {device} nodad"));
            net.ip(part, &format!("link set {device} up"));
        }
        for (part, number) in [("c", 0), ("s", 1)] {
            net.ip(part, &format!("route add default via 10.77.{number}.1"));
            net.ip(part, &format!("-6 route add default via fd77:{number}::1"));
        }
        for tool in ["iptables-nft", "ip6tables-nft"] {
            for port in ["sport", "dport"] {
                let rule = format!(
                    "netns exec {r} {tool} -t mangle -A FORWARD -p udp --{port} {PORT} \
                     -j NFQUEUE --queue-num {QUEUE} --queue-bypass"
                );
                if !run("ip", &rule) {
                    return skip("iptables-nft and NFQUEUE are needed");
                }
            }
        }
        Some(net)
    }

    fn at(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    fn ip(&self, part: &str, command: &str) {
        let command = format!("-n {} {command}", self.at(part));
        assert!(run("ip", &command), "ip {command}");
    }

    /// Does something in one of the namespaces. Sockets stay where they were
    /// opened.
    fn inside<T: Send>(&self, part: &str, work: impl FnOnce() -> T + Send) -> T {
        let file = File::open(format!("/var/run/netns/{}", self.at(part))).unwrap();
        thread::scope(|scope| {
            let thread = scope.spawn(move || {
                // SAFETY: an open descriptor; only this thread changes places.
                let result = unsafe { libc::setns(file.as_raw_fd(), libc::CLONE_NEWNET) };
                assert_eq!(result, 0);
                work()
            });
            thread.join().unwrap()
        })
    }

    fn socket(&self, part: &str, address: &str, port: u16) -> UdpSocket {
        let address: IpAddr = address.parse().unwrap();
        let socket = self.inside(part, || UdpSocket::bind((address, port)).unwrap());
        socket.set_read_timeout(Some(TRY)).unwrap();
        socket
    }

    fn start(&self, arguments: &[&str]) -> Daemon {
        let directory = std::env::temp_dir().join(&self.name);
        let control = directory.join("control.sock");
        let child = Command::new("ip")
            .args(["netns", "exec", &self.at("r"), env!("CARGO_BIN_EXE_pemi"), "run"])
            .args(["--queue", &QUEUE.to_string(), "--control", control.to_str().unwrap()])
            .args(arguments)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut daemon = Daemon { child, control };
        daemon.until(|_| true);
        daemon
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for part in ["c", "r", "s"] {
            run("ip", &format!("netns del {}", self.at(part)));
        }
        let _ = fs::remove_dir_all(std::env::temp_dir().join(&self.name));
    }
}

struct Daemon {
    child: Child,
    control: PathBuf,
}

impl Daemon {
    /// Asks for the status until it is as wanted.
    fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let status = control::ask(&self.control, &json!({"method": "status"}));
            match status {
                Ok(status) if wanted(&status) => return status,
                other => assert!(start.elapsed() < PATIENCE, "{other:?}"),
            }
            assert!(self.child.try_wait().unwrap().is_none(), "the daemon has ended");
            thread::yield_now();
        }
    }

    fn signal(&self, signal: i32) {
        // `ip netns exec` has become the daemon: it executes, it does not fork.
        // SAFETY: no pointers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id().cast_signed(), signal) }, 0);
    }

    /// How it ended and what it logged.
    fn end(&mut self) -> (ExitStatus, String) {
        let mut log = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap(), log)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn run(program: &str, arguments: &str) -> bool {
    let status = Command::new(program).args(arguments.split_ascii_whitespace()).status();
    status.is_ok_and(|status| status.success())
}

fn skip<T>(reason: &str) -> Option<T> {
    println!("SKIPPED: {reason}");
    None
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
        let client = net.socket("c", client, 50000);
        let server = net.socket("s", server, PORT);
        for len in [0, 1, 2, 7, 25, 40, 333, 1199, 1200, 1400] {
            let payload = payload_of(len);
            pass(&client, &server, &payload);
            pass(&server, &client, &payload);
        }
    }
}

#[test]
fn packets_pass_unaltered() {
    let Some(net) = Net::new() else { return };
    for arguments in [&["--device", "lan0"][..], &[]] {
        let mut daemon = net.start(arguments);
        pass_all(&net);
        let seen = |status: &Value| status["queues"][0]["packets"].as_u64().unwrap();
        let status = daemon.until(|status| seen(status) >= 40);
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
fn a_bad_file_on_reload_changes_nothing() {
    let Some(net) = Net::new() else { return };
    let file = std::env::temp_dir().join(format!("{}.json", net.name));
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

    fs::write(&file, r#"{"cache_kib": 256, "device": ["lan0"], "queues": 2}"#).unwrap();
    daemon.signal(libc::SIGHUP);
    let status = daemon.until(|status| limit(status) == Some(256 << 10));
    assert!(status["errors"][0].as_str().unwrap().contains("'queues' takes effect when"));
    fs::remove_file(&file).unwrap();

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

/// A whole IP packet with a UDP datagram.
fn whole_packet(from: SocketAddr, to: SocketAddr, payload: &[u8]) -> Vec<u8> {
    let len = 8 + payload.len() as u16;
    let mut packet = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => {
            let mut packet = vec![0x45, 0, 0, 0, 0, 1, 0x40, 0, 63, 17, 0, 0];
            packet[2..4].copy_from_slice(&(20 + len).to_be_bytes());
            packet.extend(from.octets());
            packet.extend(to.octets());
            packet
        }
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut packet = vec![0x60, 0, 0, 0, 0, 0, 17, 63];
            packet[4..6].copy_from_slice(&len.to_be_bytes());
            packet.extend(from.octets());
            packet.extend(to.octets());
            packet
        }
        _ => unreachable!(),
    };
    packet.extend(from.port().to_be_bytes());
    packet.extend(to.port().to_be_bytes());
    packet.extend(len.to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(payload);
    let datagram = udp::find(&packet).unwrap();
    udp::fill_checksum(&mut packet, &datagram);
    packet
}

#[test]
fn copies_arrive_as_if_from_the_server() {
    let Some(net) = Net::new() else { return };
    let mut injector = net.inside("r", || Injector::open(0x2000_0000).unwrap());
    for (client, server) in ENDS {
        let client = net.socket("c", client, 50000);
        let server = SocketAddr::new(server.parse().unwrap(), PORT);
        let payload = payload_of(1200);
        let packet = whole_packet(server, client.local_addr().unwrap(), &payload);
        let start = Instant::now();
        let mut buffer = [0; 2048];
        let (len, sender) = loop {
            injector.send(&packet);
            match client.recv_from(&mut buffer) {
                Ok(got) => break got,
                Err(_) => assert!(start.elapsed() < PATIENCE, "no copy arrives"),
            }
        };
        assert_eq!((sender, &buffer[..len]), (server, &payload[..]));
    }
    assert_eq!(injector.errors(), 0);
    injector.send(&whole_packet(
        "192.0.2.1:443".parse().unwrap(),
        "198.51.100.1:50000".parse().unwrap(),
        b"there is no way",
    ));
    assert_eq!(injector.errors(), 1);
}

#[test]
fn probes_are_answered() {
    let Some(net) = Net::new() else { return };
    let mut prober = net.inside("r", || Prober::open(0x2000_0000).unwrap());
    for (client, _) in ENDS {
        let client: IpAddr = client.parse().unwrap();
        let start = Instant::now();
        let Reply { client: replier, rtt } = loop {
            prober.send(clock::now(), client);
            let mut interests: Vec<Interest> = prober.sockets().map(Interest::read).collect();
            poll::wait(&mut interests, Some(SEC)).unwrap();
            match prober.receive(clock::now()) {
                Some(reply) => break reply,
                None => assert!(start.elapsed() < PATIENCE, "no reply"),
            }
        };
        assert_eq!(replier, client);
        assert!(rtt > 0);
    }
}
