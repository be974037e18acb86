// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of [`pemi_apps_quiche::goodput`].

use std::process::ExitCode;

use clap::Parser;
use pemi_apps::options::{ServerOptions, TransportOptions};
use pemi_apps::{download, program};
use pemi_apps_quiche::goodput;

#[derive(Parser)]
#[command(version, about = "QUIC download of a number of bytes, with quiche")]
enum Command {
    /// Serve until SIGTERM
    Server {
        #[command(flatten)]
        options: ServerOptions,
        #[command(flatten)]
        transport: TransportOptions,
    },
    /// Ask a server once and print the result as JSON
    Client {
        #[command(flatten)]
        options: download::ClientOptions,
        #[command(flatten)]
        transport: TransportOptions,
    },
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Server { options, transport } => {
            program::run(transport.rt, || goodput::server(&options, &transport))
        }
        Command::Client { options, transport } => {
            program::run(transport.rt, || goodput::client(&options, &transport))
        }
    }
}
