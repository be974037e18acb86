// SPDX-License-Identifier: GPL-2.0-or-later
//! Downloads as the experiments run them, over the loopback interface.

#[path = "../../tests/programs/mod.rs"]
mod programs;

use std::process::Command;

use programs::goodput::Goodput;
use programs::{Server, client};

const GOODPUT: Goodput = Goodput { program: env!("CARGO_BIN_EXE_goodput-s2n"), stack: "s2n" };

#[test]
fn goodput_downloads_with_every_controller_and_both_families() {
    for (listen, cc) in [("127.0.0.1:0", "cubic"), ("[::1]:0", "cubic"), ("127.0.0.1:0", "bbr")] {
        GOODPUT.downloads(listen, cc);
    }
}

#[test]
fn goodput_serves_several_clients_at_once_with_a_fixed_mtu() {
    GOODPUT.serves_several_at_once(&[]);
}

#[test]
fn a_server_that_is_not_there_is_an_error_with_a_result() {
    GOODPUT.misses_a_server_that_is_not_there();
}

#[test]
fn a_server_tells_what_it_sent_and_what_controllers_it_has() {
    let mut server = Server::start(GOODPUT.program, "127.0.0.1:0", &[]);
    assert!(client(GOODPUT.program, &server.address, &["--bytes", "1000000"]).status.success());
    let told = server.line();
    assert!(told["sender"]["packets"].as_u64() > Some(600), "{told}");
    let refused = Command::new(GOODPUT.program)
        .args(["server", "--listen", "127.0.0.1:0", "--cc", "newreno"])
        .output()
        .unwrap();
    assert!(!refused.status.success());
    assert!(String::from_utf8_lossy(&refused.stderr).contains("cubic and bbr"));
}
