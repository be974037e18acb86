// SPDX-License-Identifier: GPL-2.0-or-later
//! Publishes the object `clock` on ubus and answers calls until ubusd goes:
//!
//! ```sh
//! ubus call clock now
//! ubus call clock since '{"unix":1700000000}'
//! ```

use std::os::unix::net::UnixStream;
use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use pemi_ubus::blobmsg::Kind;
use pemi_ubus::link::Link;
use pemi_ubus::owner::{Answer, Object};
use pemi_ubus::status::{INVALID_ARGUMENT, METHOD_NOT_FOUND};
use serde_json::{Map, Value, json};

const UBUSD: &str = "/var/run/ubus/ubus.sock";
const CLOCK: Object =
    Object { name: "clock", methods: &[("now", &[]), ("since", &[("unix", Kind::Int32)])] };

fn answer(method: &str, arguments: Map<String, Value>) -> Answer {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    match method {
        "now" => Ok(json!({"unix": now})),
        "since" => match arguments.get("unix").and_then(Value::as_u64) {
            Some(then) if then <= now => Ok(json!({"seconds": now - then})),
            _ => Err(INVALID_ARGUMENT),
        },
        _ => Err(METHOD_NOT_FOUND),
    }
}

fn main() -> ExitCode {
    let stream = match UnixStream::connect(UBUSD) {
        Ok(stream) => stream,
        Err(error) => {
            eprintln!("{UBUSD}: {error}");
            return ExitCode::FAILURE;
        }
    };
    // The stream blocks, so each turn waits for the next call.
    let mut link = Link::new(stream, CLOCK);
    loop {
        if let Err(trouble) = link.serve(answer) {
            eprintln!("{UBUSD}: {trouble:?}");
            return ExitCode::FAILURE;
        }
    }
}
