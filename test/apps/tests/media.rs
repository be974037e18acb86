// SPDX-License-Identifier: GPL-2.0-or-later
//! Audio across a hop that loses packets, with quACKs and without.

mod programs;
mod relay;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use relay::{Options, Relay};
use serde_json::Value;

const MEDIA: &str = env!("CARGO_BIN_EXE_media");

/// A receiver until it is dropped.
struct Receiver {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
}

impl Receiver {
    fn start() -> (Receiver, String) {
        let options = ["server", "--listen", "127.0.0.1:0"];
        let mut child = Command::new(MEDIA).args(options).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap());
        let mut receiver = Receiver { child, lines };
        let address = receiver.line()["listening"].as_str().unwrap().to_owned();
        (receiver, address)
    }

    fn line(&mut self) -> Value {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        // Fails if it has ended, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What receiver and sender say of one stream.
fn stream(options: Options, seconds: &str, sidekick: Option<&str>) -> (Value, Value) {
    let (mut receiver, address) = Receiver::start();
    let relay = Relay::start(&address, options);
    let (connect, router) = (relay.address.to_string(), relay.router.to_string());
    let mut arguments = vec!["--seconds", seconds];
    if let Some(interval) = sidekick {
        arguments.extend(["--sidekick", &router, "--sidekick-interval", interval]);
    }
    let output = programs::client(MEDIA, &connect, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (receiver.line(), programs::json(&output))
}

/// Frames that may come twice: one that the kernel kept waiting may be asked for and sent at
/// the same time.
const DUPLICATES: f64 = 2.0;

/// A stream with quACKs during which the machine did not keep many packets waiting, of three:
/// a sender that repeats what arrived does so in each of them.
fn undisturbed(options: Options, interval: &str) -> (Value, Value) {
    for _ in 0..2 {
        let said = stream(options, "6", Some(interval));
        if number(&said.0["duplicates"]) <= DUPLICATES {
            return said;
        }
    }
    stream(options, "6", Some(interval))
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn quacks_shorten_the_wait_and_nothing_is_sent_twice_for_one_loss() {
    let options = Options { loss: 0.05, gone: None };
    let (alone, sender) = stream(options, "6", None);
    assert_eq!((&alone["app"], &alone["complete"]), (&"media".into(), &true.into()));
    assert_eq!((&alone["frames"], &alone["missing"]), (&300.into(), &0.into()));
    assert_eq!(alone["dejitters_ms"].as_array().unwrap().len(), 300);
    assert!(sender["sidekick"].is_null());
    assert!(number(&sender["retransmitted"]["nack"]) > 4.0, "{sender}");
    for interval in ["2p", "adaptive"] {
        let (helped, sender) = undisturbed(options, interval);
        assert_eq!(helped["missing"], 0, "{helped}");
        let told = format!("{sender} {alone} {helped}");
        let mean = |result: &Value| number(&result["dejitter_ms"]["mean"]);
        assert!(mean(&helped) < 0.7 * mean(&alone), "{interval}: {told}");
        assert_eq!(sender["sidekick"]["state"], "running");
        assert!(number(&helped["duplicates"]) <= DUPLICATES, "{told}");
        let [quack, nack] = ["quack", "nack"].map(|why| number(&sender["retransmitted"][why]));
        assert!(quack > 3.0 * nack, "{told}");
    }
}

#[test]
fn a_router_that_goes_and_comes_back_is_survived() {
    let gone = Some((Duration::from_secs(2), Duration::from_secs(4)));
    let (received, sender) = stream(Options { loss: 0.05, gone }, "10", Some("2p"));
    assert_eq!((&received["complete"], &received["missing"]), (&true.into(), &0.into()));
    let told = format!("{received} {sender}");
    assert_eq!(sender["sidekick"]["state"], "running", "{told}");
    assert_eq!(sender["sidekick"]["fallbacks"], 1, "{told}");
    for why in ["nack", "quack"] {
        assert!(number(&sender["retransmitted"][why]) >= 1.0, "{told}");
    }
}

#[test]
fn without_a_router_it_goes_on_alone() {
    let options = Options { loss: 0.02, gone: Some((Duration::ZERO, Duration::MAX)) };
    let (received, sender) = stream(options, "2", Some("adaptive"));
    assert_eq!((&received["complete"], &received["frames"]), (&true.into(), &100.into()));
    assert_eq!(sender["sidekick"]["state"], "asking");
    assert_eq!(sender["sidekick"]["quacks"], 0);
}

#[test]
fn nobody_to_hear_it_is_an_error_with_a_result() {
    let gone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap().to_string();
    let output = programs::client(MEDIA, &address, &["--seconds", "1"]);
    assert!(!output.status.success());
    assert_eq!(programs::json(&output)["complete"], false);
    assert!(String::from_utf8_lossy(&output.stderr).contains("no answer in 10 s"));
}
