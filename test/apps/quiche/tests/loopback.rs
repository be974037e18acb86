// SPDX-License-Identifier: GPL-2.0-or-later
//! Both applications as the experiments run them, over the loopback interface.

#[path = "../../tests/programs/mod.rs"]
mod programs;

use programs::goodput::Goodput;
use programs::rtc;

const GOODPUT: Goodput = Goodput { program: env!("CARGO_BIN_EXE_goodput-quiche"), stack: "quiche" };
const RTC: &str = env!("CARGO_BIN_EXE_rtc-quiche");

#[test]
fn goodput_downloads_with_every_controller_and_both_families() {
    for (listen, cc) in [("127.0.0.1:0", "cubic"), ("[::1]:0", "newreno"), ("127.0.0.1:0", "bbr")] {
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
fn rtc_reports_every_frame() {
    rtc::reports_every_frame(RTC, &[]);
}

#[test]
fn frames_that_a_server_no_longer_sends_are_lost() {
    rtc::loses_what_is_no_longer_sent(RTC);
}
