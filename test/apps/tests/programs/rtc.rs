// SPDX-License-Identifier: GPL-2.0-or-later
//! What a video has to do with every stack.

use std::process::{Command, Stdio};

use serde_json::Value;

use super::{Server, client, json};

/// A client with `options` tells of every frame; what it printed.
pub fn reports_every_frame(program: &str, options: &[&str]) -> Value {
    let server = Server::start(program, "127.0.0.1:0", &[]);
    let video = ["--seconds", "0.5", "--fps", "60", "--kbps", "6000"];
    let output = client(program, &server.address, &[&video, options].concat());
    assert!(output.status.success());
    let result = json(&output);
    assert_eq!(result["app"], "rtc");
    assert_eq!(result["frames"], 30);
    assert_eq!(result["frames_lost"], 0);
    assert_eq!(result["frame_bytes"], 12_500);
    assert_eq!(result["delays_ms"].as_array().unwrap().len(), 30);
    for name in ["p50", "p90", "p99", "max", "mean"] {
        assert!(result["frame_delay_ms"][name].is_f64(), "{result}");
        assert!(result["frame_jitter_ms"][name].is_f64(), "{result}");
    }
    assert!(server.terminate().success());
    result
}

/// What a server that ends no longer sends is lost.
pub fn loses_what_is_no_longer_sent(program: &str) {
    let server = Server::start(program, "127.0.0.1:0", &[]);
    let long = Command::new(program)
        .args(["client", "--connect", &server.address, "--seconds", "3600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A short video of another client: meanwhile the long one has begun.
    let options = ["--seconds", "1", "--fps", "100"];
    let other = json(&client(program, &server.address, &options));
    assert_eq!(other["frames_lost"], 0);
    assert!(server.terminate().success());
    let output = long.wait_with_output().unwrap();
    assert!(!output.status.success());
    let result = json(&output);
    assert_eq!(result["frames"], 108_000);
    assert!(result["frames_lost"].as_u64() > Some(100_000), "{result}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the server ends"));
}
