// SPDX-License-Identifier: GPL-2.0-or-later
//! The engine of PEMI: it watches QUIC flows cross a router, infers from the
//! sizes and times of encrypted replies what the last hop lost, sends copies
//! of it, and holds back the replies that would tell the sender of a loss
//! while it is being repaired.
//!
//! Nothing is decrypted, altered, invented or dropped: a packet that is not to go on was sent in
//! another way. The engine does no I/O
//! and has no clock: packets and times come in as arguments, actions go out.
//! Same inputs, same outputs, on every architecture.
//!
//! ```
//! use pemi_engine::{Action, Config, Direction, Engine, Handle, Time, Verdict};
//!
//! let mut engine = Engine::new(Config::default(), 0x5eed);
//! let now = Time::from_nanos(1_000);
//! let verdict = engine.on_packet(now, Direction::Up, b"not an IP packet", Handle(1));
//! assert_eq!(verdict, Verdict::Forward);
//! while let Some(action) = engine.next_action() {
//!     match action {
//!         Action::Release(handle) => println!("accept {handle:?}"),
//!         Action::Inject { packet, .. } => println!("send {} bytes", packet.len()),
//!         Action::Send { packet, .. } => println!("send {} bytes", packet.len()),
//!         Action::Probe { client } => println!("ping {client}"),
//!         Action::Watch { client } => println!("ask the access point of {client}"),
//!         Action::Event(event) => println!("{event:?}"),
//!     }
//! }
//! ```
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod api;
mod engine;
mod flow;
mod infer;
mod measure;
mod repair;
mod rules;
mod stats;
mod store;
mod time;
mod tunables;
mod wire;

pub use api::{
    Action, Config, Count, Direction, Event, EventKind, Fate, FlowInfo, FlowState, Handle,
    Knowledge, Outcome, Protocol, Protocols, Radio, Station, Ticket, Verdict,
};
pub use engine::Engine;
pub use engine::both::Engines;
pub use engine::compare::{GONE, NETWORKS};
#[cfg(feature = "ablation")]
pub use rules::{Rule, Rules};
pub use stats::Stats;
pub use time::{MS, Nanos, SEC, Time, US};
#[cfg(feature = "sweep")]
pub use tunables::{Tunable, TunableError, Tunables};
pub use wire::packet;
