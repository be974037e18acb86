// SPDX-License-Identifier: GPL-2.0-or-later
//! Sidekick as the senders of [`crate::media`] and [`crate::upload`] use it: options,
//! address, result.

use std::net::SocketAddr;
use std::num::{NonZeroU8, NonZeroU16};
use std::time::Duration;

use pemi_quack::Interval;
use pemi_sidekick::sender::{Options, Sender, State};
use serde::Serialize;

/// Options for Sidekick.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct SidekickOptions {
    /// Ask this router for quACKs
    #[arg(long, value_name = "ROUTER:PORT")]
    pub sidekick: Option<SocketAddr>,
    /// When: after packets (2p), after a time (10ms), adaptive, or as the router likes
    #[arg(long, value_name = "WHEN", default_value = "router", value_parser = interval)]
    sidekick_interval: Interval,
    /// How many missing packets a quACK can name
    #[arg(long, value_name = "PACKETS", default_value = "8")]
    threshold: NonZeroU8,
}

fn interval(text: &str) -> Result<Interval, String> {
    let number = |text: &str| text.parse::<NonZeroU16>().map_err(|error| error.to_string());
    match text {
        "router" => Ok(Interval::Router),
        "adaptive" => Ok(Interval::Adaptive),
        _ => match (text.strip_suffix("ms"), text.strip_suffix('p')) {
            (Some(millis), _) => number(millis).map(Interval::Millis),
            (_, Some(packets)) => number(packets).map(Interval::Packets),
            _ => Err("2p, 10ms, adaptive or router".to_owned()),
        },
    }
}

/// A sender and where its router is.
pub struct Sidekick {
    router: SocketAddr,
    sender: Sender,
}

/// What came of it.
#[derive(Debug, Serialize)]
pub struct Report {
    state: &'static str,
    quacks: u64,
    quack_bytes: u64,
    losses: u64,
    spurious: u64,
    resyncs: u64,
    fallbacks: u64,
}

impl Sidekick {
    /// If the options want it, with identifiers from this byte of the payload on.
    pub fn new(
        options: &SidekickOptions,
        token: u64,
        client_port: u16,
        server: SocketAddr,
        offset: u16,
    ) -> Option<Sidekick> {
        let sender = Sender::new(Options {
            threshold: options.threshold,
            interval: options.sidekick_interval,
            offset,
            ..Options::new(token, client_port, server)
        });
        options.sidekick.map(|router| Sidekick { router, sender })
    }

    /// Whether it came from the router; if so, it was taken.
    pub fn take(&mut self, now: u64, from: SocketAddr, bytes: &[u8]) -> bool {
        if from != self.router {
            return false;
        }
        self.sender.on_message(Duration::from_nanos(now), bytes);
        true
    }

    /// A packet of the flow goes out.
    pub fn on_sent(&mut self, now: u64, tag: u64, packet: &[u8]) {
        self.sender.on_sent(Duration::from_nanos(now), tag, packet);
    }

    /// A packet that is lost.
    pub fn next_lost(&mut self, now: u64) -> Option<u64> {
        self.sender.next_lost(Duration::from_nanos(now))
    }

    /// What there is to tell the router, whose address comes first.
    pub fn poll_message(&mut self, now: u64) -> Option<(SocketAddr, Vec<u8>)> {
        let message = self.sender.poll_message(Duration::from_nanos(now))?;
        Some((self.router, message))
    }

    /// When to poll, in nanoseconds.
    pub fn next_timeout(&self) -> Option<u64> {
        let next = self.sender.next_timeout()?;
        Some(next.as_nanos().try_into().unwrap_or(u64::MAX))
    }

    /// Ends it; there is a last message then.
    pub fn close(&mut self, now: u64) -> Report {
        let state = match self.sender.state(Duration::from_nanos(now)) {
            State::Asking => "asking",
            State::Running => "running",
            State::Refused => "refused",
            State::Closed => "closed",
        };
        self.sender.close();
        let stats = self.sender.stats();
        Report {
            state,
            quacks: stats.quacks,
            quack_bytes: stats.quack_bytes,
            losses: stats.losses,
            spurious: stats.spurious,
            resyncs: stats.resyncs,
            fallbacks: stats.fallbacks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_as_they_are_written() {
        let number = |number| NonZeroU16::new(number).unwrap();
        assert_eq!(interval("2p"), Ok(Interval::Packets(number(2))));
        assert_eq!(interval("10ms"), Ok(Interval::Millis(number(10))));
        assert_eq!(interval("adaptive"), Ok(Interval::Adaptive));
        assert_eq!(interval("router"), Ok(Interval::Router));
        for wrong in ["", "0p", "2", "p", "70000ms", "-1p"] {
            assert!(interval(wrong).is_err(), "{wrong}");
        }
    }
}
