// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of [`pemi_apps::rtc`].

use std::process::ExitCode;

use clap::Parser;
use pemi_apps::endpoint::{self, QuinnOptions};
use pemi_apps::options::ServerOptions;
use pemi_apps::{rtc, video};

#[derive(Parser)]
#[command(version, about = "Real-time video over QUIC, one stream a frame")]
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
        options: video::ClientOptions,
        #[command(flatten)]
        quinn: QuinnOptions,
    },
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Server { options, quinn } => endpoint::run(&quinn, rtc::server(&options, &quinn)),
        Command::Client { options, quinn } => endpoint::run(&quinn, rtc::client(&options, &quinn)),
    }
}
