// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of [`pemi_apps_s2n::goodput`].

use std::process::ExitCode;

use clap::Parser;
use pemi_apps::download;
use pemi_apps::options::{ServerOptions, TransportOptions};
use pemi_apps_s2n::goodput;

#[derive(Parser)]
#[command(version, about = "QUIC download of a number of bytes, with s2n-quic")]
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
            pemi_apps_s2n::run(&transport, goodput::server(&options, &transport))
        }
        Command::Client { options, transport } => {
            pemi_apps_s2n::run(&transport, goodput::client(&options, &transport))
        }
    }
}
