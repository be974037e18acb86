// SPDX-License-Identifier: GPL-2.0-or-later
//! The command line of [`pemi_apps::media`].

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use pemi_apps::media::{MediaOptions, client, server};
use pemi_apps::options::ServerOptions;
use pemi_apps::program;

#[derive(Parser)]
#[command(version, about = "Low-latency audio, with quACKs or without")]
enum Command {
    /// Receive until SIGTERM; prints the result of each stream as JSON
    Server {
        #[command(flatten)]
        options: ServerOptions,
        #[command(flatten)]
        media: MediaOptions,
        /// Also write the result of the last stream to this file
        #[arg(long)]
        json: Option<PathBuf>,
    },
    /// Send one stream and print the sender's result as JSON
    Client {
        #[command(flatten)]
        options: client::ClientOptions,
        #[command(flatten)]
        media: MediaOptions,
    },
}

fn main() -> ExitCode {
    match Command::parse() {
        Command::Server { options, media, json } => {
            program::run(media.rt, || server::run(&options, json.as_ref()))
        }
        Command::Client { options, media } => program::run(media.rt, || client::run(&options)),
    }
}
