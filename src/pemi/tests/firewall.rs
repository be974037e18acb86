// SPDX-License-Identifier: GPL-2.0-or-later
//! The daemon's own firewall table, and its rights. Rules with a queue need a
//! kernel with nft_queue; they are loaded in the guests of `test/qemu`.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use lab::{Daemon, Net, PATIENCE};
use serde_json::json;

/// No network has a device: there is a table, but nothing is queued.
const NOBODY: &str = r#"{"firewall": "nft", "network": ["lan"], "absent": ["lan"]}"#;

fn nft(net: &Net, arguments: &str) -> Option<String> {
    let output = Command::new("ip")
        .args(["netns", "exec", &net.at("r"), "nft"])
        .args(arguments.split(' '))
        .output()
        .unwrap();
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap())
}

/// Which tables of ours there are.
fn tables(net: &Net) -> Vec<String> {
    let all = nft(net, "list tables").unwrap();
    all.lines().filter(|line| line.ends_with(" pemi")).map(str::to_string).collect()
}

/// The table, once it is there.
fn table(net: &Net) -> String {
    let start = Instant::now();
    loop {
        if let Some(text) = nft(net, "list table inet pemi") {
            return text;
        }
        assert!(start.elapsed() < PATIENCE, "no table");
        thread::sleep(Duration::from_millis(20));
    }
}

fn start(net: &Net, config: &str) -> Daemon {
    let file = net.file("pemi.json");
    fs::write(&file, config).unwrap();
    net.start(&["--config", file.to_str().unwrap()])
}

#[test]
fn the_table_comes_back_and_goes_with_the_daemon() {
    let Some(net) = Net::new() else { return };
    // What a killed daemon of the other mode has left behind.
    nft(&net, "add table bridge pemi").unwrap();
    let mut daemon = start(&net, &NOBODY.replace('{', r#"{"release_s": 0, "#));
    assert!(table(&net).contains("notrack") && !table(&net).contains("clean6"));
    assert_eq!(tables(&net), ["table inet pemi"]);
    fs::write(net.file("pemi.json"), NOBODY).unwrap();
    daemon.signal(libc::SIGHUP);
    let start = Instant::now();
    while !table(&net).contains("set clean6") {
        assert!(start.elapsed() < PATIENCE, "{}", table(&net));
        thread::sleep(Duration::from_millis(20));
    }
    let status = daemon.until(|_| true);
    assert_eq!(status["errors"], json!(["network lan has no device now"]));

    for removal in ["delete table inet pemi", "flush ruleset"] {
        nft(&net, removal).unwrap();
        // With the sets of clean clients, in which nobody is.
        assert!(table(&net).contains("set clean6"));
    }
    // The tables of others are no business of ours.
    nft(&net, "add table inet fw4").unwrap();
    nft(&net, "delete table inet fw4").unwrap();

    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success(), "{log}");
    assert_eq!(tables(&net), [] as [&str; 0]);
    assert_eq!(log.matches("put back").count(), 2, "{log}");
}

/// The number that the kernel has given to our table.
fn handle(net: &Net) -> String {
    let text = nft(net, "-a list table inet pemi").unwrap();
    let (line, _) = text.split_once('\n').unwrap();
    line.rsplit_once("# handle ").unwrap().1.to_string()
}

/// What `nft monitor` tells until our table goes, of which `change` is to be the cause.
fn told_until_the_table_goes(net: &Net, change: impl FnOnce()) -> Vec<String> {
    let mut monitor = Command::new("ip")
        .args(["netns", "exec", &net.at("r"), "nft", "monitor"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(monitor.stdout.take().unwrap()).lines().map(Result::unwrap);
    let reader = thread::spawn(move || {
        lines.next();
        lines
    });
    while !reader.is_finished() {
        nft(net, "add table ip other").unwrap();
        nft(net, "delete table ip other").unwrap();
    }
    change();
    let gone = |line: &String| line.starts_with("delete table inet pemi");
    let told = reader.join().unwrap().take_while(|line| !gone(line)).collect();
    monitor.kill().unwrap();
    monitor.wait().unwrap();
    told
}

/// With a chain the kernel drops what waits in any queue, so none goes while packets come.
#[test]
fn chains_stay_while_packets_may_wait() {
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net, NOBODY);
    let whole = table(&net);
    let before = handle(&net);
    daemon.signal(libc::SIGKILL);
    assert!(!daemon.end().0.success());
    nft(&net, "add rule inet pemi output accept").unwrap();
    let mut daemon = start(&net, NOBODY);
    daemon.until(|_| true);
    assert_eq!((table(&net), handle(&net)), (whole.clone(), before.clone()));
    daemon.signal(libc::SIGKILL);
    daemon.end();

    // What does not fit the rules is not kept, as after an upgrade.
    nft(&net, "delete table inet pemi").unwrap();
    nft(&net, "add table inet pemi").unwrap();
    nft(&net, "add chain inet pemi output { type filter hook input priority 5 ; }").unwrap();
    let mut daemon = start(&net, NOBODY);
    daemon.until(|_| true);
    assert_eq!(table(&net), whole);

    // At the end the rules go first, and in a second step the chains.
    let told = told_until_the_table_goes(&net, || {
        daemon.signal(libc::SIGTERM);
        assert!(daemon.end().0.success());
    });
    let last = |what: &str| told.iter().rposition(|line| line.starts_with(what)).unwrap();
    let first = told.iter().position(|line| line.starts_with("delete chain inet pemi")).unwrap();
    let between = &told[last("delete rule inet pemi")..first];
    assert!(between.iter().any(|line| line.starts_with("# new generation")), "{told:#?}");
}

/// Loads what `pemi rules` prints: all but what not every kernel has, the queue, and names of
/// bridges.
fn load(net: &Net, config: &str, flags: &[&str]) {
    let file = net.file("rules.json");
    fs::write(&file, config).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_pemi"))
        .args(["rules", "--config", file.to_str().unwrap()])
        .args(flags)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().filter(|line| !line.contains("brname")).map(|line| {
        match line.split_once("queue flags bypass to") {
            Some((before, _)) => format!("{before}accept\n"),
            None => format!("{line}\n"),
        }
    });
    fs::write(&file, lines.collect::<String>()).unwrap();
    assert!(nft(net, &format!("-f {}", file.display())).is_some(), "{config}: {text}");
}

#[test]
fn rules_are_good_syntax() {
    let Some(net) = Net::new() else { return };
    for config in [
        r#"{"device": ["lan0", "lan1"], "port": [443, 8443], "queues": 2}"#,
        r#"{"device": "lan0", "repair": "infer", "capture": "ring", "queues": 2}"#,
        r#"{"device": "lan0", "repair": "infer", "capture": "ring", "queues": 7}"#,
        "{}",
        NOBODY,
        r#"{"device": "lan0", "mode": "bridged"}"#,
        r#"{"mode": "bridged"}"#,
    ] {
        load(&net, config, &[]);
    }
}

/// Whether the kernel has told that somebody was met.
fn has_met(net: &Net) -> bool {
    nft(net, "list quota inet pemi met").unwrap().contains(" used ")
}

#[test]
fn rules_at_rest_notice_who_begins_a_connection_and_is_not_clean() {
    let Some(net) = Net::new() else { return };
    for (repair, host) in [("auto", 2), ("infer", 3)] {
        let config = format!(r#"{{"device": "lan0", "port": 443, "repair": "{repair}"}}"#);
        // As a daemon does when it starts; and then from rules to rest, and again.
        let _ = nft(&net, "delete table inet pemi");
        for _ in 0..2 {
            load(&net, &config, &[]);
            load(&net, &config, &["--resting"]);
            assert!(!has_met(&net));
            assert!(!table(&net).contains("hook forward"));
        }
        let send = |from: u16, port: u16| {
            let client = net.socket("c", "10.77.0.2", from);
            client.send_to(b"first", ("10.77.1.2", port)).unwrap();
        };
        nft(&net, "add element inet pemi clean4 { 10.77.0.2 }").unwrap();
        let mine = 1000 * host;
        send(mine, 443);
        nft(&net, "flush set inet pemi clean4").unwrap();
        // One that goes on, and one to another port.
        send(mine, 443);
        send(mine, 80);
        assert!(!has_met(&net), "{}", table(&net));
        send(mine + 1, 443);
        let start = Instant::now();
        while !has_met(&net) {
            assert!(start.elapsed() < PATIENCE, "{}", table(&net));
            thread::sleep(Duration::from_millis(20));
        }
        load(&net, &config, &[]);
        assert!(table(&net).contains("hook forward"));
    }
}

#[test]
fn root_is_given_up() {
    let Some(net) = Net::new() else { return };
    let file = net.file("pemi.json");
    fs::write(&file, NOBODY).unwrap();
    fs::set_permissions(file.parent().unwrap(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut daemon = net.start(&["--config", file.to_str().unwrap(), "--user", "nobody"]);
    // Loaded by a child without root's rights.
    table(&net);
    let status = fs::read_to_string(format!("/proc/{}/status", daemon.id())).unwrap();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().map(str::to_string).collect::<Vec<_>>()
    };
    // CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_NICE: bits 12, 13 and 23.
    for set in ["CapInh:", "CapPrm:", "CapEff:", "CapBnd:", "CapAmb:"] {
        assert_eq!(field(set), ["0000000000803000"], "{set}");
    }
    assert_eq!(field("NoNewPrivs:"), ["1"]);
    assert_eq!(field("Uid:"), ["65534"; 4]);
    assert_eq!(field("Groups:"), [] as [&str; 0]);

    // A new start needs no more rights than are left.
    fs::write(&file, NOBODY.replace('{', r#"{"queues": 2, "#)).unwrap();
    daemon.signal(libc::SIGHUP);
    daemon.until(|status| status["queues"].as_array().is_some_and(|list| list.len() == 2));
    table(&net);
    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success(), "{log}");
    assert_eq!(tables(&net), [] as [&str; 0]);

    let output = Command::new(env!("CARGO_BIN_EXE_pemi"))
        .args(["run", "--user", "nobody-at-all"])
        .output()
        .unwrap();
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("/etc/passwd has no user 'nobody-at-all'"), "{text}");
}

/// Something in the place of `nft`, for the daemon alone: `ip netns exec` has a mount
/// namespace of its own.
#[test]
fn a_child_that_hangs_is_told_of_tried_again_and_no_obstacle() {
    let Some(net) = Net::new() else { return };
    let (file, fake, calls) = (net.file("pemi.json"), net.file("nft"), net.file("calls"));
    fs::write(&file, NOBODY).unwrap();
    fs::write(&fake, format!("#!/bin/sh\necho >>{}\nexec sleep 60\n", calls.display())).unwrap();
    fs::set_permissions(&fake, fs::Permissions::from_mode(0o755)).unwrap();
    let mut daemon =
        net.start_with(Some((&fake, "/usr/sbin/nft")), &["--config", file.to_str().unwrap()]);
    let status = daemon.until(|_| true);
    let errors = status["errors"].to_string();
    assert!(errors.contains("firewall rules cannot be loaded"), "{errors}");
    assert!(errors.contains("did not end in time"), "{errors}");
    let count = || fs::read(&calls).unwrap().len();
    let (before, waiting) = (count(), Instant::now());
    while count() == before {
        assert!(waiting.elapsed() < PATIENCE, "it is not tried again");
        thread::sleep(Duration::from_millis(20));
    }
    // While it runs.
    let end = Instant::now();
    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success(), "{log}");
    println!("ended in {:?}", end.elapsed());
    assert!(end.elapsed() < Duration::from_secs(1), "{:?}", end.elapsed());
}
