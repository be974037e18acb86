// SPDX-License-Identifier: GPL-2.0-or-later
//! What the daemon can be asked for, be it over the control socket or ubus.

use std::fmt::{self, Display};

use log::LevelFilter;
use pemi_engine::FlowInfo;
use serde_json::Value;

use crate::config::options::Named;
use crate::daemon::object::object;
use crate::daemon::trend::{self, Span};
use crate::daemon::{history, status};
pub use pemi_ubus::status::{INVALID_ARGUMENT, METHOD_NOT_FOUND, OK};

/// The number of flows in an answer if none is asked for, and the largest one.
const FLOWS: u64 = 20;
const MAX_FLOWS: u64 = 1000;
/// The same of clients. As many stations are remembered, and there may be others.
const CLIENTS: u64 = 20;
const MAX_CLIENTS: u64 = 512;

/// The data asked for, or a status code and what is wrong.
pub type Answer = Result<Data, (u32, String)>;

/// The data asked for.
#[derive(Debug)]
pub enum Data {
    /// One tree of values.
    Tree(Value),
    /// Flows. Of these there may be a thousand, 3 MB as one tree: each is made into text by itself.
    Flows(Vec<FlowInfo>),
}

impl Data {
    /// All of it as one tree.
    pub fn tree(self) -> Value {
        match self {
            Data::Tree(value) => value,
            Data::Flows(flows) => object(vec![("flows", flows.iter().map(status::flow).collect())]),
        }
    }
}

impl From<Value> for Data {
    fn from(value: Value) -> Data {
        Data::Tree(value)
    }
}

/// As JSON.
impl Display for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let flows = match self {
            Data::Tree(value) => return value.fmt(f),
            Data::Flows(flows) => flows,
        };
        f.write_str("{\"flows\":[")?;
        for (n, flow) in flows.iter().enumerate() {
            f.write_str(if n == 0 { "" } else { "," })?;
            status::flow(flow).fmt(f)?;
        }
        f.write_str("]}")
    }
}

/// What can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// All counters.
    Status,
    /// The flows with the most traffic.
    Flows {
        /// At most so many.
        limit: usize,
    },
    /// Clients, what the radio lost on the way to them, and what was done about it.
    Clients {
        /// At most so many.
        limit: usize,
        /// Without so many first ones.
        skip: usize,
    },
    /// Whether help helps.
    Benefit,
    /// The last seconds.
    History {
        /// So many.
        seconds: usize,
        /// Before so many newest ones.
        skip: usize,
    },
    /// The last day or week.
    Trend {
        /// Which of them.
        span: Span,
        /// At most so many parts.
        limit: usize,
        /// Before so many newest ones.
        skip: usize,
    },
    /// Counters back to zero.
    Reset,
    /// Log more or less.
    Log {
        /// From now on.
        level: LevelFilter,
    },
}

impl Request {
    /// Reads the arguments of a method, which are members of an object. Unknown ones do not
    /// matter. An error is a status code and what is wrong.
    pub fn new(method: &str, arguments: &Value) -> Result<Request, (u32, String)> {
        let invalid = |what: String| (INVALID_ARGUMENT, what);
        let between = |name: &str, default: u64, least: u64, most: u64| match &arguments[name] {
            Value::Null => Ok(default as usize),
            given => match given.as_u64().filter(|n| (least..=most).contains(n)) {
                Some(n) => Ok(n as usize),
                None => {
                    Err(invalid(format!("{name} {given} is not valid; allowed: {least} to {most}")))
                }
            },
        };
        let number = |name, default, most| between(name, default, 1, most);
        match method {
            "status" => Ok(Request::Status),
            "flows" => Ok(Request::Flows { limit: number("limit", FLOWS, MAX_FLOWS)? }),
            "clients" => Ok(Request::Clients {
                limit: number("limit", CLIENTS, MAX_CLIENTS)?,
                skip: between("skip", 0, 0, MAX_CLIENTS)?,
            }),
            "benefit" => Ok(Request::Benefit),
            "history" => Ok(Request::History {
                seconds: number("seconds", 120, history::SAMPLES as u64)?,
                skip: between("skip", 0, 0, history::SAMPLES as u64)?,
            }),
            "trend" => Ok(Request::Trend {
                span: word(arguments, "span", Some(Span::Day))?,
                limit: number("limit", trend::PARTS as u64, trend::PARTS as u64)?,
                skip: between("skip", 0, 0, trend::PARTS as u64)?,
            }),
            "reset" => Ok(Request::Reset),
            "log" => Ok(Request::Log { level: word(arguments, "level", None)? }),
            other => Err((METHOD_NOT_FOUND, format!("method '{other}' is not known"))),
        }
    }
}

/// A word of a list; without a default it has to be said.
fn word<T: Named>(arguments: &Value, name: &str, default: Option<T>) -> Result<T, (u32, String)> {
    let given = &arguments[name];
    let said = match given {
        Value::Null => default,
        _ => T::NAMES.iter().find(|(word, _)| given == word).map(|(_, value)| *value),
    };
    let allowed: Vec<&str> = T::NAMES.iter().map(|(word, _)| *word).collect();
    let wrong = || format!("{name} {given} is not valid; allowed: {}", allowed.join(", "));
    said.ok_or_else(|| (INVALID_ARGUMENT, wrong()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn flows_are_the_same_as_text_and_as_a_tree() {
        let flow = FlowInfo {
            client: ([192, 0, 2, 1], 50_000).into(),
            server: ([198, 51, 100, 1], 443).into(),
            age: 0,
            bytes_down: 1200,
            packets_down: 1,
            local_rtt: 0,
            inferred: 0,
            repaired: 0,
            resent: 0,
            protocol: pemi_engine::Protocol::Quic,
            state: pemi_engine::FlowState::Protected,
            knowledge: pemi_engine::Knowledge::Replies,
        };
        for count in 0..3 {
            let flows = || Data::Flows(vec![flow; count]);
            let text: Value = serde_json::from_str(&flows().to_string()).unwrap();
            assert_eq!(text["flows"].as_array().map(Vec::len), Some(count));
            assert_eq!(text, flows().tree());
        }
    }

    #[test]
    fn methods_and_their_arguments() {
        for (method, arguments, request) in [
            ("status", json!({}), Request::Status),
            ("status", json!({"ubus_rpc_session": "0000"}), Request::Status),
            ("flows", json!({"limit": 5}), Request::Flows { limit: 5 }),
            ("flows", json!({}), Request::Flows { limit: 20 }),
            ("history", json!({"seconds": null}), Request::History { seconds: 120, skip: 0 }),
            ("history", json!({"seconds": 9, "skip": 0}), Request::History { seconds: 9, skip: 0 }),
            ("history", json!({"skip": 600}), Request::History { seconds: 120, skip: 600 }),
            ("clients", json!({}), Request::Clients { limit: 20, skip: 0 }),
            ("clients", json!({"skip": 6, "limit": 3}), Request::Clients { limit: 3, skip: 6 }),
            ("benefit", json!({}), Request::Benefit),
            ("trend", json!({}), Request::Trend { span: Span::Day, limit: 168, skip: 0 }),
            (
                "trend",
                json!({"span": "week", "limit": 9, "skip": 2}),
                Request::Trend { span: Span::Week, limit: 9, skip: 2 },
            ),
            ("reset", json!({}), Request::Reset),
            ("log", json!({"level": "warn"}), Request::Log { level: LevelFilter::Warn }),
        ] {
            assert_eq!(Request::new(method, &arguments), Ok(request), "{method} {arguments}");
        }
    }

    #[test]
    fn errors_say_what_is_allowed() {
        for (method, arguments, code, part) in [
            ("flows", json!({"limit": 0}), INVALID_ARGUMENT, "1 to 1000"),
            ("flows", json!({"limit": -1}), INVALID_ARGUMENT, "1 to 1000"),
            ("flows", json!({"limit": "x"}), INVALID_ARGUMENT, "1 to 1000"),
            ("flows", json!({"limit": true}), INVALID_ARGUMENT, "1 to 1000"),
            ("flows", json!({"limit": 5.0}), INVALID_ARGUMENT, "1 to 1000"),
            ("flows", json!({"limit": [5]}), INVALID_ARGUMENT, "1 to 1000"),
            ("history", json!({"seconds": 601}), INVALID_ARGUMENT, "1 to 600"),
            ("history", json!({"skip": 601}), INVALID_ARGUMENT, "0 to 600"),
            ("clients", json!({"limit": 513}), INVALID_ARGUMENT, "1 to 512"),
            ("trend", json!({"span": "year"}), INVALID_ARGUMENT, "day, week"),
            ("trend", json!({"limit": 169}), INVALID_ARGUMENT, "1 to 168"),
            ("log", json!({"level": "loud"}), INVALID_ARGUMENT, "error, warn"),
            ("log", json!({"level": 3}), INVALID_ARGUMENT, "error, warn"),
            ("log", json!({}), INVALID_ARGUMENT, "error, warn"),
            ("reboot", json!({}), METHOD_NOT_FOUND, "'reboot'"),
        ] {
            let (got, text) = Request::new(method, &arguments).unwrap_err();
            assert_eq!(got, code, "{method} {arguments}");
            assert!(text.contains(part), "{method} {arguments}: {text}");
        }
    }
}
