// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `request`: lines that come to the control socket, and the same arguments as
//! they would come over ubus.

use log::LevelFilter;
use pemi::daemon::request::{INVALID_ARGUMENT, METHOD_NOT_FOUND, Request};
use pemi::daemon::{control, history, trend};
use pemi_ubus::blob::Writer;
use pemi_ubus::blobmsg;
use serde_json::Value;

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    data.split(|byte| *byte == b'\n').for_each(line);
}

fn line(line: &[u8]) {
    let result = control::request(line);
    match &result {
        Ok(request) => within_limits(*request),
        Err((status, error)) => {
            assert!([INVALID_ARGUMENT, METHOD_NOT_FOUND].contains(status) && !error.is_empty());
        }
    }
    let Ok(value) = serde_json::from_slice::<Value>(line) else {
        assert!(result.is_err());
        return;
    };
    // A text over ubus ends at the first zero.
    if let (Some(method), Value::Object(members)) = (value["method"].as_str(), &value)
        && !value.to_string().contains("\\u0000")
    {
        let mut writer = Writer::default();
        blobmsg::put_members(&mut writer, members);
        if let Ok(members) = blobmsg::members(&writer.finish()) {
            assert_eq!(Request::new(method, &members.into()).ok(), result.ok());
        }
    }
}

fn within_limits(request: Request) {
    match request {
        Request::Status | Request::Benefit | Request::Reset => {}
        Request::Flows { limit } => assert!((1..=1000).contains(&limit)),
        Request::Clients { limit, skip } => assert!((1..=512).contains(&limit) && skip <= 512),
        Request::History { seconds, skip } => {
            assert!((1..=history::SAMPLES).contains(&seconds) && skip <= history::SAMPLES);
        }
        Request::Trend { limit, skip, .. } => {
            assert!((1..=trend::PARTS).contains(&limit) && skip <= trend::PARTS);
        }
        Request::Log { level } => assert!(level != LevelFilter::Off && level != LevelFilter::Trace),
    }
}

/// Each method, right and wrong.
pub fn seeds() -> Vec<Vec<u8>> {
    [
        r#"{"method":"status"}"#,
        r#"{"method":"flows","limit":5}"#,
        r#"{"method":"flows","limit":0}"#,
        r#"{"method":"clients","limit":512,"skip":5}"#,
        r#"{"method":"history","seconds":60,"skip":600}"#,
        r#"{"method":"history","seconds":null,"skip":-1}"#,
        "{\"method\":\"reset\"}\n{\"method\":\"log\",\"level\":\"debug\"}\n",
        r#"{"method":"log","level":["x",1e3,{"a":"\u00e4"}]}"#,
        r#"{"method":"trend","span":"week","limit":168,"skip":3}"#,
        r#"{"method":"reboot"}"#,
        r#"{"method":7}"#,
        "[]",
    ]
    .map(|text| text.as_bytes().to_vec())
    .to_vec()
}
