// SPDX-License-Identifier: GPL-2.0-or-later
//! Both applications as the experiments run them, over the loopback interface.

#[path = "../../tests/programs/mod.rs"]
mod programs;

use std::process::{Command, Stdio};

use programs::{Server, client, json};

const GOODPUT: &str = env!("CARGO_BIN_EXE_goodput-quiche");
const RTC: &str = env!("CARGO_BIN_EXE_rtc-quiche");

#[test]
fn goodput_downloads_with_every_controller_and_both_families() {
    for (listen, cc) in [("127.0.0.1:0", "cubic"), ("[::1]:0", "newreno"), ("127.0.0.1:0", "bbr")] {
        let server = Server::start(GOODPUT, listen, &["--cc", cc]);
        for bytes in [0, 1, 65_521, 3_000_000] {
            let output = client(GOODPUT, &server.address, &["--bytes", &bytes.to_string()]);
            assert!(output.status.success());
            let result = json(&output);
            assert_eq!(result["app"], "goodput");
            assert_eq!(result["stack"], "quiche");
            assert_eq!(result["complete"], true);
            assert_eq!(result["bytes"], bytes);
            let (fct, handshake) = (&result["fct_s"], &result["handshake_s"]);
            assert!(fct.as_f64() > handshake.as_f64(), "{result}");
        }
        assert!(server.terminate().success());
    }
}

#[test]
fn goodput_serves_several_clients_at_once_with_a_fixed_mtu() {
    let server = Server::start(GOODPUT, "127.0.0.1:0", &["--mtu", "1252"]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let options = ["--bytes", "1000000", "--mtu", "1252"];
                let result = json(&client(GOODPUT, &server.address, &options));
                assert_eq!(result["complete"], true);
            });
        }
    });
}

#[test]
fn a_server_that_is_not_there_is_an_error_with_a_result() {
    let gone = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = gone.local_addr().unwrap().to_string();
    let options = ["--bytes", "1000", "--timeout", "0.2"];
    let output = client(GOODPUT, &address, &options);
    assert!(!output.status.success());
    let result = json(&output);
    assert_eq!(result["complete"], false);
    assert!(result["fct_s"].is_null());
    assert!(String::from_utf8_lossy(&output.stderr).contains("not complete after 0.2 s"));
}

#[test]
fn rtc_reports_every_frame() {
    let server = Server::start(RTC, "127.0.0.1:0", &[]);
    let options = ["--seconds", "0.5", "--fps", "60", "--kbps", "6000"];
    let output = client(RTC, &server.address, &options);
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
}

#[test]
fn frames_that_a_server_no_longer_sends_are_lost() {
    let server = Server::start(RTC, "127.0.0.1:0", &[]);
    let long = Command::new(RTC)
        .args(["client", "--connect", &server.address, "--seconds", "3600"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A short video of another client: meanwhile the long one has begun.
    let options = ["--seconds", "1", "--fps", "100"];
    let other = json(&client(RTC, &server.address, &options));
    assert_eq!(other["frames_lost"], 0);
    assert!(server.terminate().success());
    let output = long.wait_with_output().unwrap();
    assert!(!output.status.success());
    let result = json(&output);
    assert_eq!(result["frames"], 108_000);
    assert!(result["frames_lost"].as_u64() > Some(100_000), "{result}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("the server ends"));
}
