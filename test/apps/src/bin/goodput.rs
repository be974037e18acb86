//! The command line of [`pemi_apps::goodput`].

use std::process::ExitCode;

use clap::Parser;
use pemi_apps::{common, goodput};

#[derive(Parser)]
#[command(version, about = "QUIC download of a number of bytes")]
enum Command {
    /// Serve until SIGTERM
    Server(common::ServerOptions),
    /// Ask a server once and print the result as JSON
    Client(goodput::ClientOptions),
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Server(options) => common::run(options.transport.rt, goodput::server(&options)),
        Command::Client(options) => common::run(options.transport.rt, goodput::client(&options)),
    }
}
