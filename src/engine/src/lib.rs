//! The engine of PEMI: it watches QUIC flows cross a router, infers from the
//! sizes and times of encrypted replies what the last hop lost, sends copies
//! of it, and holds back the replies that would tell the sender of a loss
//! while it is being repaired.
//!
//! Nothing is decrypted, altered, invented or dropped. The engine does no I/O
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
//!         Action::Probe { client } => println!("ping {client}"),
//!         Action::Event(event) => println!("{event:?}"),
//!     }
//! }
//! ```
#![forbid(unsafe_code)]
#![no_std]

extern crate alloc;

mod api;
mod bottleneck;
mod budget;
mod cache;
mod conceal;
mod engine;
mod flow;
mod gap;
mod governor;
mod guard;
mod habit;
mod hop;
mod out;
mod packet;
mod pair;
mod quic;
mod recent;
mod recognise;
mod refill;
mod rtt;
mod rules;
mod spin;
mod start;
mod table;
mod tail;
mod time;
mod timers;
mod uplink;

pub use api::{
    Action, Config, Direction, Event, EventKind, FlowInfo, FlowState, Handle, Stats, Verdict,
};
pub use engine::Engine;
pub use pair::Engines;
#[cfg(feature = "ablation")]
pub use rules::{Rule, Rules};
pub use time::{MS, Nanos, SEC, Time, US};
