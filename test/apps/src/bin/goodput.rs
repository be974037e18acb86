// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of [`pemi_apps::goodput`].

use std::process::ExitCode;

use clap::Parser;
use pemi_apps::endpoint::{self, QuinnOptions};
use pemi_apps::options::ServerOptions;
use pemi_apps::{download, goodput};

#[derive(Parser)]
#[command(version, about = "QUIC download of a number of bytes")]
enum Command {
    /// Serve until SIGTERM
    Server {
        #[command(flatten)]
        options: ServerOptions,
        #[command(flatten)]
        quinn: QuinnOptions,
    },
    /// Ask a server once and print the result as JSON
    Client {
        #[command(flatten)]
        options: download::ClientOptions,
        #[command(flatten)]
        quinn: QuinnOptions,
    },
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Server { options, quinn } => {
            endpoint::run(&quinn, goodput::server(&options, &quinn))
        }
        Command::Client { options, quinn } => {
            endpoint::run(&quinn, goodput::client(&options, &quinn))
        }
    }
}
