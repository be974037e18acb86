// SPDX-License-Identifier: GPL-2.0-or-later
//! What a running daemon may do: each of its threads has the capabilities that it needs
//! and no others, and all are under the filter of system calls.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::collections::BTreeMap;
use std::fs;

use lab::{Daemon, Net};

const NET_ADMIN: u64 = 1 << 12;
const NET_RAW: u64 = 1 << 13;
const SYS_NICE: u64 = 1 << 23;

/// `/proc/PID/task/*/status` by the thread's name; of queues only the first part counts.
fn threads(daemon: &Daemon) -> BTreeMap<String, BTreeMap<String, String>> {
    let tasks = fs::read_dir(format!("/proc/{}/task", daemon.id())).unwrap();
    tasks
        .map(|task| {
            let status = fs::read_to_string(task.unwrap().path().join("status")).unwrap();
            let fields: BTreeMap<String, String> = status
                .lines()
                .filter_map(|line| line.split_once(":\t"))
                .map(|(name, value)| (name.into(), value.trim().into()))
                .collect();
            (fields["Name"].clone(), fields)
        })
        .collect()
}

/// The daemon as its own account, as the service starts it.
fn start(net: &Net) -> Daemon {
    let file = net.file("pemi.json");
    let text = r#"{"network": ["lan"], "device": "lan0", "sidekick": {"enabled": 1}}"#;
    fs::write(&file, text).unwrap();
    // Where its account may make a socket.
    let folder = file.parent().unwrap();
    std::os::unix::fs::chown(folder, Some(65534), None).unwrap();
    net.start(&["--config", file.to_str().unwrap(), "--user", "nobody"])
}

#[test]
fn threads_have_what_they_need_and_no_more() {
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net);
    daemon.until(|status| status["sidekick"]["enabled"] == true);
    for (name, wanted) in [
        ("pemi", NET_ADMIN | NET_RAW | SYS_NICE),
        ("pemi-queue-77", NET_ADMIN | NET_RAW),
        ("pemi-sidekick", NET_RAW),
        ("pemi-radio", NET_ADMIN),
        ("pemi-writer", 0),
    ] {
        // A thread gives up as the first thing it does, but it does so by itself.
        let mut found = threads(&daemon);
        for _ in 0..1000 {
            if found.get(name).is_some_and(|it| it["CapPrm"] == format!("{wanted:016x}")) {
                break;
            }
            daemon.until(|_| true);
            found = threads(&daemon);
        }
        let status = &found[name];
        for set in ["CapEff", "CapPrm", "CapInh", "CapAmb"] {
            assert_eq!(status[set], format!("{wanted:016x}"), "{name}: {status:?}");
        }
        assert_eq!(status["Uid"].split('\t').next(), Some("65534"), "{name}");
        assert_eq!(status["NoNewPrivs"], "1", "{name}");
        if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
            assert_eq!(status["Seccomp"], "2", "{name}");
        }
    }
    assert_eq!(threads(&daemon).len(), 5);
    // Under the filter the radio's thread has asked, and was answered.
    let status = daemon.until(|status| status["radio"]["state"] != "off");
    let state = status["radio"]["state"].as_str().unwrap();
    assert!(["no radio", "no access point"].contains(&state), "{status}");
    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success(), "{log}");
    assert!(!log.contains("capabilities"), "{log}");
}

/// It takes the place of itself, and one filter is enough for both.
#[test]
fn a_new_start_in_the_same_process_has_one_filter() {
    let Some(net) = Net::new() else { return };
    let mut daemon = start(&net);
    let before = threads(&daemon)["pemi"].get("Seccomp_filters").cloned();
    fs::write(net.file("pemi.json"), r#"{"device": "lan0", "mark": 1}"#).unwrap();
    daemon.signal(libc::SIGHUP);
    daemon.until(|status| status["sidekick"]["enabled"] == false);
    assert_eq!(threads(&daemon)["pemi"].get("Seccomp_filters").cloned(), before);
    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success() && log.contains("starting anew"), "{log}");
}
