//! The command line of [`pemi_apps::rtc`].

use std::process::ExitCode;

use clap::Parser;
use pemi_apps::{common, rtc};

#[derive(Parser)]
#[command(version, about = "Real-time video over QUIC, one stream a frame")]
enum Command {
    /// Serve until SIGTERM
    Server(common::ServerOptions),
    /// Ask a server once and print the result as JSON
    Client(rtc::ClientOptions),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Server(options) => common::run(options.transport.rt, rtc::server(&options)),
        Command::Client(options) => common::run(options.transport.rt, rtc::client(&options)),
    }
}
