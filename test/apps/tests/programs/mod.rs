// SPDX-License-Identifier: GPL-2.0-or-later
//! Running the programs of any stack, and what each has to do.
#![allow(dead_code, reason = "not every test needs all")]

pub mod goodput;
pub mod rtc;

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, ExitStatus, Output, Stdio};

use serde_json::Value;

/// A server until it is dropped.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: String,
}

impl Server {
    pub fn start(program: &str, listen: &str, options: &[&str]) -> Server {
        let child = Command::new(program)
            .args(["server", "--listen", listen])
            .args(options)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut server = Server { child, address: String::new() };
        server.address = server.line()["listening"].as_str().unwrap().to_owned();
        server
    }

    /// The next line that it prints.
    pub fn line(&mut self) -> Value {
        let mut line = String::new();
        BufReader::new(self.child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        serde_json::from_str(&line).unwrap()
    }

    pub fn terminate(mut self) -> ExitStatus {
        let id = self.child.id().to_string();
        Command::new("kill").args(["-TERM", &id]).status().unwrap();
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Fails if it has ended, which is as well.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs a client to its end.
pub fn client(program: &str, address: &str, options: &[&str]) -> Output {
    Command::new(program).args(["client", "--connect", address]).args(options).output().unwrap()
}

/// Exactly one JSON object.
pub fn json(output: &Output) -> Value {
    serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!("{error}: {}", String::from_utf8_lossy(&output.stderr));
    })
}
