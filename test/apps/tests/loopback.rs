// SPDX-License-Identifier: GPL-2.0-or-later
//! Both applications as the experiments run them, over the loopback interface.

mod programs;

use programs::goodput::Goodput;
use programs::{Server, client, json, rtc};
use serde_json::Value;

const GOODPUT: Goodput = Goodput { program: env!("CARGO_BIN_EXE_goodput"), stack: "quinn" };
const CONNECT: &str = env!("CARGO_BIN_EXE_connect");
const RTC: &str = env!("CARGO_BIN_EXE_rtc");

#[test]
fn goodput_downloads_with_every_controller_and_both_families() {
    for (listen, cc) in [("127.0.0.1:0", "cubic"), ("[::1]:0", "newreno"), ("127.0.0.1:0", "bbr")] {
        GOODPUT.downloads(listen, cc);
    }
}

#[test]
fn goodput_serves_several_clients_at_once_with_a_fixed_mtu() {
    GOODPUT.serves_several_at_once(&["--gso"]);
}

#[test]
fn a_server_that_is_not_there_is_an_error_with_a_result() {
    GOODPUT.misses_a_server_that_is_not_there();
}

#[test]
fn rtc_reports_every_frame_and_to_a_file() {
    let file = std::env::temp_dir().join(format!("pemi-rtc-{}.json", std::process::id()));
    let result = rtc::reports_every_frame(RTC, &["--json", file.to_str().unwrap()]);
    let written: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(&file).unwrap();
    assert_eq!(written, result);
}

#[test]
fn frames_that_a_server_no_longer_sends_are_lost() {
    rtc::loses_what_is_no_longer_sent(RTC);
}

#[test]
fn every_kind_of_connection_is_answered() {
    for stack in ["tcp", "quinn", "quinn-0rtt"] {
        let server = Server::start(CONNECT, "127.0.0.1:0", &["--stack", stack]);
        let output = client(CONNECT, &server.address, &["--stack", stack, "--count", "5"]);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let result = json(&output);
        assert_eq!((&result["app"], &result["stack"]), (&"connect".into(), &stack.into()));
        assert_eq!((&result["connections"], &result["failed"]), (&5.into(), &0.into()));
        assert_eq!(result["times_ms"].as_array().unwrap().len(), 5);
        assert!(result["connect_ms"]["p50"].as_f64() > Some(0.0));
        assert!(server.terminate().success());
    }
}

#[test]
fn connections_to_nobody_are_failures_and_an_error() {
    let gone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap().to_string();
    let output = client(CONNECT, &address, &["--count", "2", "--timeout", "1"]);
    assert!(!output.status.success());
    let result = json(&output);
    assert_eq!((&result["connections"], &result["failed"]), (&2.into(), &2.into()));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no connection came about"));
}
