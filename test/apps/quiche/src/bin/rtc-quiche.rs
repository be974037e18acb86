// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of [`pemi_apps_quiche::rtc`].

use std::process::ExitCode;

use clap::Parser;
use pemi_apps::options::{ServerOptions, TransportOptions};
use pemi_apps::{program, video};
use pemi_apps_quiche::rtc;

#[derive(Parser)]
#[command(version, about = "Real-time video over QUIC, one stream a frame, with quiche")]
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
        options: video::ClientOptions,
        #[command(flatten)]
        transport: TransportOptions,
    },
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Server { options, transport } => {
            program::run(transport.rt, || rtc::server(&options, &transport))
        }
        Command::Client { options, transport } => {
            program::run(transport.rt, || rtc::client(&options, &transport))
        }
    }
}
