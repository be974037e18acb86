// SPDX-License-Identifier: GPL-2.0-or-later
//! A download that runs while another network is put before its own counts for its own.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use lab::talk::{PLAIN, Talk, short};
use lab::{ENDS, Net, PATIENCE};
use pemi::daemon::control;
use serde_json::json;

/// Datagrams between two acknowledgements.
const TRAIN: usize = 10;
/// Between two looks at what came of it.
const LOOK: Duration = Duration::from_millis(200);

/// So many bytes to the client, all of which arrive.
fn download(talk: &mut Talk, bytes: usize) {
    for _ in 0..bytes / (TRAIN * 1000) {
        (0..TRAIN).for_each(|_| talk.say(short(1000)));
        talk.client_has_all();
        talk.reply(short(PLAIN));
        talk.server_hears(talk.up.len() - 1);
    }
}

#[test]
fn a_download_counts_for_its_network_whatever_number_that_has() {
    let Some(net) = Net::new() else { return };
    let config = net.file("pemi.json");
    fs::write(&config, r#"{"device": ["lan0"]}"#).unwrap();
    let daemon = net.start(&["--config", config.to_str().unwrap()]);
    let mut talk = Talk::settled(&net, ENDS[0]);
    download(&mut talk, 300_000);
    fs::write(&config, r#"{"device": ["guest0", "lan0"]}"#).unwrap();
    daemon.signal(libc::SIGHUP);
    let start = Instant::now();
    while !daemon.log().contains("configuration read again") {
        assert!(start.elapsed() < PATIENCE, "{}", daemon.log());
        thread::sleep(LOOK / 20);
    }
    // Packets tell nothing of networks before the workers know of the new ones.
    download(&mut talk, 300_000);
    let counts = loop {
        let answer = control::ask(&daemon.control, &json!({"method": "benefit"})).unwrap();
        let one = |at: usize| {
            let network = &answer["networks"][at];
            let side = |side: &str| network[side]["downloads"].as_u64().unwrap();
            (network["device"].as_str().unwrap().to_string(), side("helped") + side("alone"))
        };
        let counts = [one(0), one(1)];
        if counts.iter().any(|(_, downloads)| *downloads > 0) {
            break counts;
        }
        assert!(start.elapsed() < PATIENCE, "{answer}");
        thread::sleep(LOOK);
    };
    assert_eq!(counts, [("guest0".into(), 0), ("lan0".into(), 1)]);
}
