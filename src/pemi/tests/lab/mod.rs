// SPDX-License-Identifier: GPL-2.0-or-later
//! A router made of network namespaces, and the built daemon on it:
//!
//! ```text
//! client (10.77.0.2, fd77:0::2) -- router -- server (10.77.1.2, fd77:1::2)
//! ```
//!
//! More zones can be added beside them. Needs root and a kernel with NFQUEUE; where
//! these are missing the tests say so and pass.

pub mod packet;
pub mod raw;
pub mod sniff;
pub mod talk;

use std::fs::{self, File};
use std::io::Write;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Once;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use pemi::daemon::control;
use serde_json::{Value, json};

/// Queues belong to a network namespace, so all tests can use the same.
pub const QUEUE: u16 = 77;
/// Of the servers.
pub const PORT: u16 = 4433;
/// The filter of system calls as it ships: all that a daemon does here it does under it.
pub const SECCOMP: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../files/etc/seccomp/pemi.json");
/// For anything at all.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Between two looks at something that cannot be waited for.
const LOOK: Duration = Duration::from_millis(2);

/// `(client, server)` of each IP version.
pub const ENDS: [(&str, &str); 2] = [("10.77.0.2", "10.77.1.2"), ("fd77:0::2", "fd77:1::2")];

/// The zones' namespaces: client, router, server, guest, VPN.
const PARTS: [&str; 5] = ["c", "r", "s", "g", "v"];

/// Three namespaces in a row; they go with the value.
pub struct Net {
    name: String,
}

impl Net {
    /// `None`, with the reason printed, where it cannot be had.
    pub fn new() -> Option<Net> {
        Net::ruled(&json!({}))
    }

    /// With the rules that the daemon's own command prints for `config`, which names
    /// neither queue nor ports. They see flows from their first packet on, as on a router.
    pub fn ruled(config: &Value) -> Option<Net> {
        let net = Net::wires()?;
        if !net.attach(config) {
            return skip("iptables-nft and NFQUEUE are needed");
        }
        Some(net)
    }

    /// Loads the rules that the daemon prints for this configuration; false where the
    /// kernel has no such rules.
    pub fn attach(&self, config: &Value) -> bool {
        let file = self.file("rules.json");
        let mut config = config.clone();
        (config["queue"], config["port"]) = (json!(QUEUE), json!(PORT));
        fs::write(&file, config.to_string()).unwrap();
        let rules = Command::new(env!("CARGO_BIN_EXE_pemi"))
            .args(["rules", "--iptables", "--config", file.to_str().unwrap()])
            .output()
            .unwrap();
        assert!(rules.status.success(), "{rules:?}");
        ["iptables-nft-restore", "ip6tables-nft-restore"]
            .iter()
            .all(|tool| self.feed(tool, &rules.stdout))
    }

    /// Runs a tool on the router with these rules for it to load.
    fn feed(&self, tool: &str, rules: &[u8]) -> bool {
        let child = Command::new("ip")
            .args(["netns", "exec", &self.at("r"), tool, "--noflush"])
            .stdin(Stdio::piped())
            .stderr(Stdio::null())
            .spawn();
        let Ok(mut child) = child else { return false };
        let fed = child.stdin.take().unwrap().write_all(rules);
        fed.is_ok() && child.wait().is_ok_and(|status| status.success())
    }

    /// Client, router and server without any rules.
    fn wires() -> Option<Net> {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let net = Net { name: format!("pemi-{}-{number}", std::process::id()) };
        // SAFETY: no arguments; cannot fail.
        if unsafe { libc::geteuid() } != 0 {
            return skip("root is needed");
        }
        if !run("ip", &format!("netns add {}", net.at("r"))) {
            return skip("network namespaces are needed");
        }
        net.ip("r", "link set lo up");
        net.sysctl("r", "ipv4/ip_forward");
        net.sysctl("r", "ipv6/conf/all/forwarding");
        net.zone("c", "lan0", 0);
        net.zone("s", "wan0", 1);
        Some(net)
    }

    /// A namespace with one host, `eth0` there, behind a device of the router.
    pub fn zone(&self, part: &str, device: &str, number: u8) {
        assert!(PARTS.contains(&part), "{part}: not known");
        assert!(run("ip", &format!("netns add {}", self.at(part))), "{part}");
        let host = self.at(part);
        self.ip(part, "link set lo up");
        self.ip("r", &format!("link add {device} type veth peer name eth0 netns {host}"));
        for (part, device, host) in [("r", device, 1), (part, "eth0", 2)] {
            self.ip(part, &format!("addr add 10.77.{number}.{host}/24 dev {device}"));
            self.ip(part, &format!("addr add fd77:{number}::{host}/64 dev {device} nodad"));
            self.ip(part, &format!("link set {device} up"));
        }
        self.ip(part, &format!("route add default via 10.77.{number}.1"));
        self.ip(part, &format!("-6 route add default via fd77:{number}::1"));
        for net in [format!("10.77.{number}."), format!("fd77:{number}::")] {
            let (router, host) = (format!("{net}1"), format!("{net}2"));
            self.reach((part, &host), ("r", &router));
            self.reach(("r", &router), (part, &host));
        }
    }

    /// Until packets get from one host to another: links that have just come up lose some.
    pub fn reach(&self, from: (&str, &str), to: (&str, &str)) {
        let to = self.socket(to.0, to.1, 0);
        let from = self.socket(from.0, from.1, 0);
        to.set_read_timeout(Some(LOOK)).unwrap();
        let start = Instant::now();
        while to.recv(&mut [0]).is_err() {
            // IPv6 refuses to send until it is ready.
            let _ = from.send_to(&[0], to.local_addr().unwrap());
            assert!(start.elapsed() < PATIENCE, "nothing gets through");
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

    /// `ip` in a namespace; it has to succeed.
    pub fn ip(&self, part: &str, command: &str) {
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

    /// What a program says that runs in a namespace and has to succeed.
    pub fn tool(&self, part: &str, command: &str) -> String {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.at(part)])
            .args(command.split_ascii_whitespace())
            .output()
            .unwrap();
        assert!(output.status.success(), "{command}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    /// A socket of the client or the server; 0 for any port.
    pub fn socket(&self, part: &str, address: &str, port: u16) -> UdpSocket {
        let address: IpAddr = address.parse().unwrap();
        let start = Instant::now();
        let socket = loop {
            // An address of a link that has just come up may take its time.
            match self.inside(part, || UdpSocket::bind((address, port))) {
                Ok(socket) => break socket,
                Err(error) => assert!(start.elapsed() < PATIENCE, "{address} {port}: {error}"),
            }
            thread::sleep(LOOK);
        };
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket
    }

    /// The daemon on the router, ready for packets.
    pub fn start(&self, arguments: &[&str]) -> Daemon {
        self.start_with(None, arguments)
    }

    /// The same with one file in the place of another one.
    pub fn start_with(&self, instead: Option<(&Path, &str)>, arguments: &[&str]) -> Daemon {
        let control = self.file("control.sock");
        let log = self.file("log");
        let to_log = File::create(&log).unwrap();
        // A user without rights cannot reach what is in somebody's home. By another process: what
        // this one has open for writing its other threads' children have, too, and nobody can
        // start it meanwhile.
        let (program, seccomp) = (self.file("pemi"), self.file("seccomp.json"));
        for (file, of) in [(env!("CARGO_BIN_EXE_pemi"), &program), (SECCOMP, &seccomp)] {
            if !of.exists() {
                let copied = Command::new("cp").arg(file).arg(of).status();
                assert!(copied.is_ok_and(|status| status.success()));
            }
        }
        let mount = match instead {
            Some((file, of)) => format!("mount --bind {} {of}; exec \"$@\"", file.display()),
            None => "exec \"$@\"".into(),
        };
        let child = Command::new("ip")
            .args(["netns", "exec", &self.at("r"), "sh", "-c", &mount, "sh"])
            .args([program.to_str().unwrap(), "run"])
            .args(["--queue", &QUEUE.to_string(), "--port", &PORT.to_string()])
            .args(["--control", control.to_str().unwrap()])
            .args(["--seccomp", seccomp.to_str().unwrap()])
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
        for part in PARTS {
            // Those that there are.
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
    log: PathBuf,
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
            let ended = self.child.try_wait().unwrap();
            assert!(ended.is_none(), "the daemon has ended: {}", self.log());
            thread::sleep(LOOK);
        }
    }

    /// The process: `ip netns exec` has become the daemon, it does not fork.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// The process that watches it, as soon as it has a name: the daemon does not wait for it,
    /// and on a busy machine answers before.
    pub fn guard(&self) -> u32 {
        let start = Instant::now();
        loop {
            if let Some(guard) = self.find_guard() {
                return guard;
            }
            assert!(start.elapsed() < PATIENCE, "there is no guard: {}", self.log());
            thread::sleep(LOOK);
        }
    }

    fn find_guard(&self) -> Option<u32> {
        fs::read_dir("/proc").unwrap().find_map(|entry| {
            let process = entry.unwrap().file_name().to_str()?.parse().ok()?;
            let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            let (name, rest) = stat.split_once(") ")?;
            let parent: u32 = rest.split(' ').nth(1)?.parse().ok()?;
            (name.ends_with("(queue-guard") && parent == self.id()).then_some(process)
        })
    }

    pub fn signal(&self, signal: i32) {
        self::signal(self.child.id(), signal);
    }

    /// What it has logged so far.
    pub fn log(&self) -> String {
        fs::read_to_string(&self.log).unwrap()
    }

    /// How it ended and what it logged.
    pub fn end(&mut self) -> (ExitStatus, String) {
        (self.child.wait().unwrap(), self.log())
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal to a process that has not been waited for. One that is to stop has stopped then:
/// that takes its time to reach all threads, and what they do in it is not what is to be seen.
pub fn signal(process: u32, signal: i32) {
    // SAFETY: no pointers.
    assert_eq!(unsafe { libc::kill(process.cast_signed(), signal) }, 0);
    let start = Instant::now();
    while signal == libc::SIGSTOP && !stands_still(process) {
        assert!(start.elapsed() < PATIENCE, "process {process} does not stop");
    }
}

fn stands_still(process: u32) -> bool {
    let threads = fs::read_dir(format!("/proc/{process}/task")).unwrap();
    threads.map(|thread| thread.unwrap().path().join("stat")).all(|stat| {
        // After the name, which is in brackets, comes the state. A thread may end meanwhile.
        fs::read_to_string(stat).map_or(true, |stat| stat.contains(") T "))
    })
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
