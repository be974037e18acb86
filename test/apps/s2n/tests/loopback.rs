// SPDX-License-Identifier: GPL-2.0-or-later
//! Downloads as the experiments run them, over the loopback interface.

#[path = "../../tests/programs/mod.rs"]
mod programs;

use std::process::Command;

use programs::{Server, client, json};

const GOODPUT: &str = env!("CARGO_BIN_EXE_goodput-s2n");

#[test]
fn goodput_downloads_with_every_controller_and_both_families() {
    for (listen, cc) in [("127.0.0.1:0", "cubic"), ("[::1]:0", "cubic"), ("127.0.0.1:0", "bbr")] {
        let server = Server::start(GOODPUT, listen, &["--cc", cc]);
        for bytes in [0, 1, 65_521, 3_000_000] {
            let output = client(GOODPUT, &server.address, &["--bytes", &bytes.to_string()]);
            assert!(output.status.success());
            let result = json(&output);
            assert_eq!(result["app"], "goodput");
            assert_eq!(result["stack"], "s2n");
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
fn a_server_tells_what_it_sent_and_what_controllers_it_has() {
    let mut server = Server::start(GOODPUT, "127.0.0.1:0", &[]);
    assert!(client(GOODPUT, &server.address, &["--bytes", "1000000"]).status.success());
    let told = server.line();
    assert!(told["sender"]["packets"].as_u64() > Some(600), "{told}");
    let refused = Command::new(GOODPUT)
        .args(["server", "--listen", "127.0.0.1:0", "--cc", "newreno"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cubic and bbr"));
}
