// SPDX-License-Identifier: GPL-2.0-or-later
//! Audio across a hop that loses packets, with quACKs and without: what it comes to in virtual
//! time, and that the programs do it.

mod programs;
mod relay;

use std::net::SocketAddr;
use std::time::Duration;

use clap::Parser;
use pemi_apps::media::client::ClientOptions;
use pemi_apps::media::receiver::{Output, Receiver};
use pemi_apps::media::sender::Sender;
use programs::Server;
use relay::path::{Hop, Options, Path};
use serde_json::Value;

const MEDIA: &str = env!("CARGO_BIN_EXE_media");
const RECEIVER: &str = "192.0.2.1:4435";
const ROUTER: &str = "192.0.2.2:5103";
const SENDER: &str = "192.0.2.3:50000";

/// The command line of a sender.
#[derive(Parser)]
struct Cli {
    #[command(flatten)]
    options: ClientOptions,
}

/// A sender, a receiver and what is between them. Times are in nanoseconds.
struct Virtual {
    now: u64,
    sender: Sender,
    receiver: Receiver,
    path: Path,
    /// What the receiver said of the stream.
    received: Option<Value>,
}

impl Virtual {
    fn new(options: Options, seconds: &str, sidekick: Option<&str>) -> Virtual {
        let mut line = vec!["media", "--connect", RECEIVER, "--seconds", seconds];
        if let Some(interval) = sidekick {
            line.extend(["--sidekick", ROUTER, "--sidekick-interval", interval]);
        }
        // Not at zero, which would be no time in a packet.
        let now = 1_000_000_000;
        let stream = Cli::parse_from(line).options.stream().unwrap();
        let port = SENDER.parse::<SocketAddr>().unwrap().port();
        let sender = Sender::new(stream, port, now).unwrap();
        let (receiver, path) = (Receiver::new().unwrap(), Path::new(options));
        Virtual { now, sender, receiver, path, received: None }
    }

    fn turn(&mut self) {
        let [receiver, router, sender] = [RECEIVER, ROUTER, SENDER].map(|at| at.parse().unwrap());
        let now = self.now;
        for (hop, mut bytes) in self.path.poll(now) {
            match hop {
                Hop::Out => self.receiver.take(now, sender, &mut bytes),
                Hop::Down => self.sender.take(now, receiver, &mut bytes),
                _ => self.sender.take(now, router, &mut bytes),
            }
            .unwrap();
        }
        self.sender.poll(now).unwrap();
        self.receiver.poll(now).unwrap();
        while let Some((to, bytes)) = self.sender.poll_packet() {
            let hop = if to == receiver { Hop::Up } else { Hop::Ask };
            self.path.enter(now, hop, bytes);
        }
        for output in self.receiver.outputs() {
            match output {
                Output::Packet(_, bytes) => self.path.enter(now, Hop::Down, bytes),
                Output::Report(report) => {
                    let report = serde_json::to_value(report).unwrap();
                    assert!(self.received.replace(report).is_none());
                }
            }
        }
    }
}

/// What receiver and sender say of one stream.
fn stream(options: Options, seconds: &str, sidekick: Option<&str>) -> (Value, Value) {
    let mut all = Virtual::new(options, seconds, sidekick);
    while !all.sender.is_over(all.now) {
        all.turn();
        let timeouts = [all.receiver.next_timeout(), all.path.next_timeout()];
        let next = timeouts.into_iter().flatten().fold(all.sender.next_timeout(), u64::min);
        all.now = next.max(all.now);
    }
    let sent = serde_json::to_value(all.sender.close(all.now)).unwrap();
    (all.received.unwrap(), sent)
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn quacks_shorten_the_wait_and_nothing_is_sent_twice_for_one_loss() {
    let twice = (&Value::from(0), &Value::from(0));
    for seed in 1..=8 {
        let options = Options { loss: 0.05, seed, gone: None };
        let (alone, sender) = stream(options, "6", None);
        assert_eq!((&alone["app"], &alone["complete"]), (&"media".into(), &true.into()));
        assert_eq!((&alone["frames"], &alone["missing"]), (&300.into(), &0.into()));
        assert_eq!(alone["dejitters_ms"].as_array().unwrap().len(), 300);
        assert!(sender["sidekick"].is_null());
        assert!(number(&sender["retransmitted"]["nack"]) > 4.0, "{sender}");
        for interval in ["2p", "adaptive"] {
            let (helped, sender) = stream(options, "6", Some(interval));
            assert_eq!(helped["missing"], 0, "{helped}");
            let told = format!("{seed} {interval}: {sender} {alone} {helped}");
            let mean = |result: &Value| number(&result["dejitter_ms"]["mean"]);
            assert!(mean(&helped) < 0.4 * mean(&alone), "{told}");
            assert_eq!(sender["sidekick"]["state"], "running");
            assert_eq!((&helped["duplicates"], &sender["sidekick"]["spurious"]), twice, "{told}");
            let [quack, nack] = ["quack", "nack"].map(|why| number(&sender["retransmitted"][why]));
            assert!(quack > 3.0 * nack, "{told}");
        }
    }
}

#[test]
fn a_router_that_goes_and_comes_back_is_survived() {
    let gone = Some((Duration::from_secs(2), Duration::from_secs(4)));
    for seed in 1..=8 {
        let (received, sender) = stream(Options { loss: 0.05, seed, gone }, "10", Some("2p"));
        assert_eq!((&received["complete"], &received["missing"]), (&true.into(), &0.into()));
        let told = format!("{seed}: {received} {sender}");
        assert_eq!(sender["sidekick"]["state"], "running", "{told}");
        assert_eq!(sender["sidekick"]["fallbacks"], 1, "{told}");
        for why in ["nack", "quack"] {
            assert!(number(&sender["retransmitted"][why]) >= 1.0, "{told}");
        }
    }
}

/// With a relay in real time, where this machine's load shows: only that it works.
#[test]
fn programs_send_receive_and_ask_the_router() {
    let mut server = Server::start(MEDIA, "127.0.0.1:0", &[]);
    let options = Options { loss: 0.05, seed: 1, gone: None };
    let relay = relay::Relay::start(&server.address, options);
    let (connect, router) = (relay.address.to_string(), relay.router.to_string());
    let arguments = ["--seconds", "3", "--sidekick", &router, "--sidekick-interval", "2p"];
    let output = programs::client(MEDIA, &connect, &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let (received, sender) = (server.line(), programs::json(&output));
    assert_eq!((&received["complete"], &received["missing"]), (&true.into(), &0.into()));
    assert_eq!(sender["sidekick"]["state"], "running");
    assert!(number(&sender["retransmitted"]["quack"]) >= 1.0, "{sender}");
    assert!(server.terminate().success());
}

#[test]
fn without_a_router_it_goes_on_alone() {
    let gone = Some((Duration::ZERO, Duration::MAX));
    let (received, sender) = stream(Options { loss: 0.02, seed: 1, gone }, "2", Some("adaptive"));
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
