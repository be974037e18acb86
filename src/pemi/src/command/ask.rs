// SPDX-License-Identifier: GPL-2.0-or-later
//! Asks the running daemon, whichever way it can be had.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use pemi_ubus::caller;
use serde_json::{Map, Value};

use crate::command::cli::Sockets;
use crate::daemon::control;
use crate::daemon::ubus;
use crate::sys::socket;

/// For ubusd and the daemon to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Calls a method with one number or none: through the control socket or, where
/// that cannot be connected, through ubus.
pub fn ask(
    sockets: &Sockets,
    method: &str,
    argument: Option<(&str, u64)>,
) -> Result<Value, String> {
    let mut arguments = Map::new();
    if let Some((name, number)) = argument {
        arguments.insert(name.into(), number.into());
    }
    let mut tried = Vec::new();
    if let Some(path) = &sockets.control {
        match UnixStream::connect(path) {
            Ok(stream) => {
                let mut request = arguments;
                request.insert("method".into(), method.into());
                return control::ask_on(stream, path, &request.into());
            }
            Err(error) => tried.push(format!("{}: {error}", path.display())),
        }
    }
    if let Some(path) = &sockets.ubus {
        match through_ubus(path, method, &arguments) {
            Ok(answer) => return Ok(answer),
            Err(refused @ caller::Failure::Refused(_)) => return Err(refused.to_string()),
            Err(error) => tried.push(format!("{}: {error}", path.display())),
        }
    }
    Err(format!("{}; is the pemi service running? (service pemi status)", tried.join("; ")))
}

fn through_ubus(
    path: &Path,
    method: &str,
    arguments: &Map<String, Value>,
) -> Result<Value, caller::Failure> {
    let stream = socket::connect(path)?;
    stream.set_nonblocking(false)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    caller::call(&stream, ubus::OBJECT, method, arguments)
}
