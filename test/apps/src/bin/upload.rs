// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of [`pemi_apps::upload`].

use std::process::ExitCode;

use clap::Parser;
use pemi_apps::endpoint::{self, QuinnOptions};
use pemi_apps::options::ServerOptions;
use pemi_apps::sidekick::SidekickOptions;
use pemi_apps::{download, upload};

#[derive(Parser)]
#[command(version, about = "QUIC upload of a number of bytes, with quACKs or without")]
enum Command {
    /// Receive until SIGTERM
    Server {
        #[command(flatten)]
        options: ServerOptions,
        #[command(flatten)]
        quinn: QuinnOptions,
    },
    /// Send once and print the result as JSON
    Client {
        #[command(flatten)]
        options: download::ClientOptions,
        #[command(flatten)]
        quinn: QuinnOptions,
        #[command(flatten)]
        sidekick: SidekickOptions,
    },
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Server { options, quinn } => {
            endpoint::run(&quinn, upload::server(&options, &quinn))
        }
        Command::Client { options, quinn, sidekick } => {
            endpoint::run(&quinn, upload::client(&options, &quinn, &sidekick))
        }
    }
}
