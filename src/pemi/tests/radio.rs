// SPDX-License-Identifier: GPL-2.0-or-later
//! The daemon looks at Wi-Fi: also where nobody is to be helped, where there is no access point,
//! and again after a reload. What it sees of a real one is tested in `test/wifi`.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::process::Command;

use lab::{Daemon, Net};
use pemi::daemon::control;
use serde_json::{Value, json};

fn ask(daemon: &Daemon, method: &str) -> Value {
    control::ask(&daemon.control, &json!({"method": method})).unwrap()
}

#[test]
fn without_queues_nobody_is_helped_and_clients_can_be_asked_for() {
    let Some(net) = Net::new() else { return };
    let file = net.file("pemi.json");
    let configure = |radio: &str, firewall: &str| {
        let settings = json!({"device": "lan0", "radio": radio, "firewall": firewall});
        fs::write(&file, settings.to_string()).unwrap();
    };
    configure("always", "nobody");
    let mut daemon = net.start(&["--config", file.to_str().unwrap()]);
    let seen = |status: &Value| status["radio"]["state"] != "off";
    let status = daemon.until(seen);
    assert_eq!((&status["helping"], &status["queues"]), (&json!(false), &json!([])));
    assert_eq!(status["errors"], json!([]));
    let clients = ask(&daemon, "clients");
    assert_eq!((&clients["total"], &clients["helping"]), (&json!(0), &json!(false)));
    let shown = Command::new(env!("CARGO_BIN_EXE_pemi"))
        .args(["clients", "--control", daemon.control.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(shown.status.success() && shown.stdout.starts_with(b"no clients now; "), "{shown:?}");

    // Nobody is to look any more, and then again.
    configure("off", "nobody");
    daemon.signal(libc::SIGHUP);
    daemon.until(|status| status["radio"]["state"] == "off");
    configure("auto", "nobody");
    daemon.signal(libc::SIGHUP);
    daemon.until(seen);

    // Somebody is to be helped: that takes queues, and so a new start.
    configure("auto", "none");
    daemon.signal(libc::SIGHUP);
    let status = daemon.until(|status| status["helping"] == true);
    assert_eq!(status["queues"].as_array().map(Vec::len), Some(1));
    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success(), "{log}");
}
