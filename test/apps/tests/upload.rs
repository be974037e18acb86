// SPDX-License-Identifier: GPL-2.0-or-later
//! An upload across a hop that loses packets, with quACKs and without.

mod programs;
mod relay;

use std::time::Duration;

use programs::{Server, client, json};
use relay::{Options, Relay};
use serde_json::Value;

const UPLOAD: &str = env!("CARGO_BIN_EXE_upload");

fn upload(options: Options, bytes: &str, sidekick: Option<&str>) -> Value {
    let server = Server::start(UPLOAD, "127.0.0.1:0", &[]);
    let relay = Relay::start(&server.address, options);
    let router = relay.router.to_string();
    // With datagrams of one length, so that none is too long for the relay.
    let mut arguments = vec!["--bytes", bytes, "--mtu", "1200"];
    if let Some(interval) = sidekick {
        arguments.extend(["--sidekick", &router, "--sidekick-interval", interval]);
    }
    let output = client(UPLOAD, &relay.address.to_string(), &arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let result = json(&output);
    assert_eq!((&result["app"], &result["complete"]), (&"upload".into(), &true.into()));
    assert_eq!(result["bytes"].to_string(), bytes);
    result
}

#[test]
fn what_quacks_tell_is_repaired_below_quic() {
    let options = Options { loss: 0.02, seed: 1, gone: None };
    let alone = upload(options, "4000000", None);
    assert!(alone["sidekick"].is_null());
    let helped = upload(options, "4000000", Some("2p"));
    let told = format!("{alone} {helped}");
    println!("{told}");
    let seconds = |result: &Value| result["fct_s"].as_f64().unwrap();
    assert!(seconds(&helped) < 0.8 * seconds(&alone), "{told}");
    assert!(helped["sidekick"]["resent"].as_u64() > Some(20), "{told}");
}

#[test]
fn without_a_router_it_goes_on_alone() {
    let gone = Some((Duration::ZERO, Duration::MAX));
    let result = upload(Options { loss: 0.01, seed: 1, gone }, "300000", Some("2p"));
    assert_eq!(result["sidekick"]["state"], "asking");
    assert_eq!(result["sidekick"]["resent"], 0);
}
