// SPDX-License-Identifier: GPL-2.0-or-later
//! Options that the programs of every stack have.

use std::net::SocketAddr;

/// Congestion controllers. How good each is, is the stack's business.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Cc {
    /// RFC 9438, the default of all stacks.
    Cubic,
    /// RFC 9002.
    Newreno,
    /// BBR: version 1 in quinn, version 2 in quiche.
    Bbr,
}

/// Options of servers.
#[derive(Debug, clap::Args)]
pub struct ServerOptions {
    /// Address and port; port 0: any, which is then printed
    #[arg(long)]
    pub listen: SocketAddr,
}

/// Options of servers and clients.
#[derive(Clone, Debug, clap::Args)]
pub struct TransportOptions {
    /// Congestion controller of what this side sends
    #[arg(long, value_enum, default_value = "cubic")]
    pub cc: Cc,
    /// Fix the largest UDP payload in bytes
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u16).range(1200..))]
    pub mtu: Option<u16>,
    /// SCHED_FIFO priority; 0: none
    #[arg(long, value_name = "PRIORITY", default_value_t = 0,
          value_parser = clap::value_parser!(u8).range(0..=99))]
    pub rt: u8,
}
