// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of [`pemi_apps::connect`].

use std::process::ExitCode;

use clap::Parser;
use pemi_apps::connect::{self, Stack};
use pemi_apps::endpoint::{self, QuinnOptions};
use pemi_apps::options::ServerOptions;

#[derive(Parser)]
#[command(version, about = "Time from the first packet to the first byte of an answer")]
enum Command {
    /// Serve until SIGTERM
    Server {
        #[command(flatten)]
        options: ServerOptions,
        /// What connections are made of
        #[arg(long, value_enum, default_value = "quinn")]
        stack: Stack,
        #[command(flatten)]
        quinn: QuinnOptions,
    },
    /// Connect to a server again and again and print the result as JSON
    Client {
        #[command(flatten)]
        options: connect::ClientOptions,
        /// What connections are made of
        #[arg(long, value_enum, default_value = "quinn")]
        stack: Stack,
        #[command(flatten)]
        quinn: QuinnOptions,
    },
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Server { options, stack, quinn } => {
            endpoint::run(&quinn, connect::server(&options, stack, &quinn))
        }
        Command::Client { options, stack, quinn } => {
            endpoint::run(&quinn, connect::client(&options, stack, &quinn))
        }
    }
}
