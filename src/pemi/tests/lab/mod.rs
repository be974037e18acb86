//! A router made of network namespaces, and the built daemon on it:
//!
//! ```text
//! client (10.77.0.2, fd77:0::2) -- router -- server (10.77.1.2, fd77:1::2)
//! ```
//!
//! Needs root and a kernel with NFQUEUE; where these are missing the tests say
//! so and pass.

use std::fs::{self, File};
use std::io::{self, PipeReader, Read, Write};
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pemi::control;
use serde_json::{Value, json};

/// Queues belong to a network namespace, so all tests can use the same.
pub const QUEUE: u16 = 77;
/// Of the servers.
pub const PORT: u16 = 4433;
/// For anything at all.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at something that cannot be waited for.
const LOOK: Duration = Duration::from_millis(2);

/// `(client, server)` of each IP version.
pub const ENDS: [(&str, &str); 2] = [("10.77.0.2", "10.77.1.2"), ("fd77:0::2", "fd77:1::2")];

/// Three namespaces in a row; they go with the value.
pub struct Net {
    name: String,
}

impl Net {
    /// `None`, with the reason printed, where it cannot be had.
    pub fn new() -> Option<Net> {
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
        net.sysctl("r", "ipv4/ip_forward");
        net.sysctl("r", "ipv6/conf/all/forwarding");
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
                     -m mark ! --mark 0x20000000/0x20000000 \
                     -j NFQUEUE --queue-num {QUEUE} --queue-bypass"
                );
                if !run("ip", &rule) {
                    return skip("iptables-nft and NFQUEUE are needed");
                }
            }
        }
        net.warm_up();
        Some(net)
    }

    /// Until packets get through: links that have just come up lose some.
    fn warm_up(&self) {
        for (client, server) in ENDS {
            let server = self.socket("s", server, 0);
            let client = self.socket("c", client, 0);
            server.set_read_timeout(Some(LOOK)).unwrap();
            let start = Instant::now();
            while server.recv(&mut [0]).is_err() {
                client.send_to(&[0], server.local_addr().unwrap()).unwrap();
                assert!(start.elapsed() < PATIENCE, "nothing gets through");
            }
        }
    }

    /// Name of a namespace: `c`, `r` or `s`.
    pub fn at(&self, part: &str) -> String {
        format!("{}-{part}", self.name)
    }

    /// A file of this test's own; the directory goes with the value.
    pub fn file(&self, name: &str) -> PathBuf {
        let directory = std::env::temp_dir().join(&self.name);
        fs::create_dir_all(&directory).unwrap();
        directory.join(name)
    }

    fn ip(&self, part: &str, command: &str) {
        let command = format!("-n {} {command}", self.at(part));
        assert!(run("ip", &command), "ip {command}");
    }

    /// Switches a setting of a namespace on.
    pub fn sysctl(&self, part: &str, name: &str) {
        let path = format!("/proc/sys/net/{name}");
        self.inside(part, || fs::write(&path, "1").unwrap_or_else(|e| panic!("{path}: {e}")));
    }

    /// Does something in one of the namespaces. Sockets stay where they were
    /// opened.
    pub fn inside<T: Send>(&self, part: &str, work: impl FnOnce() -> T + Send) -> T {
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

    /// A socket of the client or the server; 0 for any port.
    pub fn socket(&self, part: &str, address: &str, port: u16) -> UdpSocket {
        let address: IpAddr = address.parse().unwrap();
        let socket = self.inside(part, || UdpSocket::bind((address, port)).unwrap());
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// The daemon on the router, ready for packets.
    pub fn start(&self, arguments: &[&str]) -> Daemon {
        let control = self.file("control.sock");
        let (log, to_log) = io::pipe().unwrap();
        let child = Command::new("ip")
            .args(["netns", "exec", &self.at("r"), env!("CARGO_BIN_EXE_pemi"), "run"])
            .args(["--queue", &QUEUE.to_string(), "--port", &PORT.to_string()])
            .args(["--control", control.to_str().unwrap()])
            .args(arguments)
            .stdout(to_log.try_clone().unwrap())
            .stderr(to_log)
            .spawn()
            .unwrap();
        let mut daemon = Daemon { child, control, log };
        daemon.until(|_| true);
        daemon
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        for part in ["c", "r", "s"] {
            // Those that there are; the others were the reason to give up.
            if fs::exists(format!("/var/run/netns/{}", self.at(part))).is_ok_and(|there| there) {
                run("ip", &format!("netns del {}", self.at(part)));
            }
        }
        let _ = fs::remove_dir_all(std::env::temp_dir().join(&self.name));
    }
}

/// A daemon that runs; it ends with the value.
pub struct Daemon {
    child: Child,
    pub control: PathBuf,
    log: PipeReader,
}

impl Daemon {
    /// Asks for the status until it is as wanted.
    pub fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let start = Instant::now();
        loop {
            let status = control::ask(&self.control, &json!({"method": "status"}));
            match status {
                Ok(status) if wanted(&status) => return status,
                other => assert!(start.elapsed() < PATIENCE, "{other:?}"),
            }
            assert!(self.child.try_wait().unwrap().is_none(), "the daemon has ended");
            thread::sleep(LOOK);
        }
    }

    /// The process: `ip netns exec` has become the daemon, it does not fork.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn signal(&self, signal: i32) {
        // SAFETY: no pointers; the child has not been waited for.
        assert_eq!(unsafe { libc::kill(self.child.id().cast_signed(), signal) }, 0);
    }

    /// How it ended and what it logged.
    pub fn end(&mut self) -> (ExitStatus, String) {
        let mut log = String::new();
        self.log.read_to_string(&mut log).unwrap();
        (self.child.wait().unwrap(), log)
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a program; its complaints are of no interest.
fn run(program: &str, arguments: &str) -> bool {
    let status = Command::new(program)
        .args(arguments.split_ascii_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    status.is_ok_and(|status| status.success())
}

/// One line for all the tests, past the test harness, which hides what tests
/// that pass have printed.
fn skip<T>(reason: &str) -> Option<T> {
    static SAID: Once = Once::new();
    SAID.call_once(|| {
        let _ = writeln!(std::io::stderr(), "skipped: {reason}");
    });
    None
}
