// SPDX-License-Identifier: GPL-2.0-or-later
//! Two hosts with a linkem between them, in network namespaces; for tests and
//! the benchmark. Needs root and the `ip` command.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

/// Who is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// The host at the first interface.
    A,
    /// The host at the second interface.
    B,
    /// Where linkem runs, on an interface to each host.
    Link,
}

impl Host {
    /// The IPv4 and the IPv6 address of a host.
    pub fn addresses(self) -> [&'static str; 2] {
        match self {
            Host::A => ["10.99.0.1", "fd99::1"],
            Host::B => ["10.99.0.2", "fd99::2"],
            Host::Link => ["", ""],
        }
    }

    /// The link's interface to a host.
    pub fn interface(self) -> &'static str {
        match self {
            Host::A => "to-a",
            Host::B => "to-b",
            Host::Link => "lo",
        }
    }

    fn mac(self) -> &'static str {
        match self {
            Host::A => "02:00:00:00:00:0a",
            Host::B => "02:00:00:00:00:0b",
            Host::Link => "00:00:00:00:00:00",
        }
    }

    fn name(self) -> &'static str {
        match self {
            Host::A => "a",
            Host::B => "b",
            Host::Link => "link",
        }
    }
}

/// The namespaces; removed when dropped.
#[derive(Debug)]
pub struct Lab {
    prefix: String,
}

impl Lab {
    /// Why there can be no lab here, if so.
    pub fn obstacle() -> Option<String> {
        let name = format!("linkem-{}-probe", std::process::id());
        let made = ip(&format!("netns add {name}"));
        let removed = made.and_then(|()| ip(&format!("netns delete {name}")));
        removed.err().map(|error| format!("{error:#}"))
    }

    /// Makes hosts and interfaces; `name` tells labs of one process apart.
    pub fn new(name: &str) -> Result<Lab> {
        let prefix = format!("linkem-{}-{name}-", std::process::id());
        let lab = Lab { prefix };
        for host in [Host::A, Host::B, Host::Link] {
            ip(&format!("netns add {}", lab.namespace(host)))?;
        }
        let link = lab.namespace(Host::Link);
        lab.command(Host::Link, "sysctl")
            .args(["-qw", "net.ipv6.conf.all.disable_ipv6=1"])
            .args(["net.ipv6.conf.default.disable_ipv6=1"])
            .status()
            .context("sysctl")?;
        for host in [Host::A, Host::B] {
            let namespace = lab.namespace(host);
            let interface = host.interface();
            ip(&format!(
                "-n {link} link add name {interface} type veth peer name eth0 netns {namespace}"
            ))?;
            ip(&format!("-n {link} link set dev {interface} up"))?;
            let mac = host.mac();
            ip(&format!("-n {namespace} link set dev eth0 address {mac}"))?;
            let [v4, v6] = host.addresses();
            ip(&format!("-n {namespace} address add {v4}/24 dev eth0"))?;
            ip(&format!("-n {namespace} address add {v6}/64 dev eth0 nodad"))?;
            ip(&format!("-n {namespace} link set dev eth0 up"))?;
        }
        // While an address is being resolved, the kernel drops and reorders.
        for (host, other) in [(Host::A, Host::B), (Host::B, Host::A)] {
            let (namespace, mac) = (lab.namespace(host), other.mac());
            for address in other.addresses() {
                ip(&format!(
                    "-n {namespace} neighbour add {address} lladdr {mac} dev eth0 nud permanent"
                ))?;
            }
        }
        Ok(lab)
    }

    /// A program of a host.
    pub fn command(&self, host: Host, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.namespace(host), program]).stdin(Stdio::null());
        command
    }

    /// Deletes an interface of the link.
    pub fn delete_interface(&self, host: Host) -> Result<()> {
        let link = self.namespace(Host::Link);
        ip(&format!("-n {link} link delete dev {}", host.interface()))
    }

    /// Starts linkem with these options and waits until it forwards.
    pub fn linkem(&self, program: &Path, options: &[&str]) -> Result<Running> {
        let program = program.to_str().context("a path in UTF-8")?;
        let mut command = self.command(Host::Link, program);
        command.args(options).args(["--ready", Host::A.interface(), Host::B.interface()]);
        Running::start(command)
    }

    fn namespace(&self, host: Host) -> String {
        format!("{}{}", self.prefix, host.name())
    }
}

impl Drop for Lab {
    fn drop(&mut self) {
        for host in [Host::A, Host::B, Host::Link] {
            // One that was never made is not worth a word.
            let _ = Command::new("ip")
                .args(["netns", "delete", &self.namespace(host)])
                .stderr(Stdio::null())
                .status();
        }
    }
}

/// A program that has printed "ready" and prints JSON at its end.
#[derive(Debug)]
pub struct Running {
    /// The process.
    pub child: Child,
    output: BufReader<ChildStdout>,
}

impl Running {
    /// Starts it and waits until it is ready.
    pub fn start(mut command: Command) -> Result<Running> {
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("a piped output")?;
        let mut running = Running { child, output: BufReader::new(output) };
        let mut line = String::new();
        running.output.read_line(&mut line)?;
        if line.trim() != "ready" {
            let status = running.child.wait()?;
            bail!("{command:?} did not start: {status}");
        }
        Ok(running)
    }

    /// Waits for its end.
    pub fn finish(mut self) -> Result<Value> {
        let mut text = String::new();
        self.output.read_to_string(&mut text)?;
        let status = self.child.wait()?;
        ensure!(status.success(), "{status}");
        Ok(serde_json::from_str(&text)?)
    }

    /// Ends it in order.
    pub fn terminate(self) -> Result<Value> {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-TERM", &id]).status()?;
        ensure!(status.success(), "kill: {status}");
        self.finish()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // Fails if it has ended, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn ip(arguments: &str) -> Result<()> {
    let output =
        Command::new("ip").args(arguments.split_whitespace()).output().context("the ip command")?;
    let error = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "ip {arguments}: {}", error.trim());
    Ok(())
}
