// SPDX-License-Identifier: GPL-2.0-or-later
//! The file in which the comparison is kept: whole whatever happens while it is written.

#[allow(dead_code, reason = "each test file uses a part of it")]
mod lab;

use std::fs;
use std::os::unix::fs::symlink;

use lab::{Net, SECCOMP};
use pemi::daemon::control;
use serde_json::json;

/// What is in the file before.
const OLD: &str = r#"{"lan0":{"replies":[[1,9000,0]]}}"#;

/// A daemon that has something else to keep by its end; gives what is in the file then, other files
/// beside it, and the log.
fn kept(net: &Net) -> (String, bool, String) {
    let file = net.file("benefit");
    fs::write(&file, OLD).unwrap();
    let mut daemon = net.start(&["--benefit", file.to_str().unwrap()]);
    control::ask(&daemon.control, &json!({"method": "reset"})).unwrap();
    daemon.signal(libc::SIGTERM);
    let (status, log) = daemon.end();
    assert!(status.success(), "{log}");
    let beside = fs::symlink_metadata(net.file("benefit.new")).is_ok();
    (fs::read_to_string(file).unwrap(), beside, log)
}

#[test]
fn it_is_replaced_at_the_end() {
    let Some(net) = Net::new() else { return };
    let (text, beside, log) = kept(&net);
    assert!(text != OLD && !beside && !log.contains("cannot be written"), "{text} {log}");
}

/// Under a filter without `fsync` it cannot be known to be on the disk.
#[test]
fn nothing_takes_its_place_before_it_is_on_the_disk() {
    let Some(net) = Net::new() else { return };
    let filter = fs::read_to_string(SECCOMP).unwrap();
    let without = filter.replace(r#""fsync", "#, "");
    assert_ne!(filter, without);
    fs::write(net.file("seccomp.json"), without).unwrap();
    let (text, beside, log) = kept(&net);
    assert!(text == OLD && !beside, "{text}");
    assert!(log.contains("benefit cannot be written"), "{log}");
}

#[test]
fn a_full_disk_loses_nothing_and_is_told() {
    let Some(net) = Net::new() else { return };
    symlink("/dev/full", net.file("benefit.new")).unwrap();
    let (text, beside, log) = kept(&net);
    assert!(text == OLD && !beside, "{text}");
    assert!(log.contains("cannot be written: No space left on device"), "{log}");
}
