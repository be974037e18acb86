#![forbid(unsafe_code)]
#![no_std]
extern crate alloc;

mod api;
mod time;

pub use api::*;
pub use time::{MS, Nanos, SEC, Time, US};

use core::net::IpAddr;

/// The engine.
#[derive(Debug)]
pub struct Engine {
    config: Config,
}

impl Engine {
    /// An engine; `seed` makes the flow table's hash unpredictable.
    pub fn new(config: Config, _seed: u64) -> Engine {
        Engine { config }
    }
    /// Shows one IP packet. The caller gets the verdict for it and then drains
    /// [`Engine::next_action`].
    pub fn on_packet(&mut self, _now: Time, _direction: Direction, _packet: &[u8], _handle: Handle) -> Verdict {
        Verdict::Forward
    }
    /// When [`Engine::on_timeout`] is due.
    pub fn next_timeout(&mut self) -> Option<Time> {
        None
    }
    /// Does what is due at `now`.
    pub fn on_timeout(&mut self, _now: Time) {}
    /// The round trip to a client as measured by the caller's echo request.
    pub fn on_probe_reply(&mut self, _now: Time, _client: IpAddr, _rtt: Nanos) {}
    /// The next thing to do.
    pub fn next_action(&mut self) -> Option<Action<'_>> {
        None
    }
    /// Releases everything held, for an orderly stop.
    pub fn release_all(&mut self, _now: Time) {}
    /// Takes new settings without losing flows. Cache and table sizes are
    /// changed as far as they can be without dropping live flows.
    pub fn set_config(&mut self, _now: Time, config: Config) {
        self.config = config;
    }
    /// Counters.
    pub fn stats(&self) -> Stats {
        Stats::default()
    }
    /// Sets the counters back to zero; flows stay.
    pub fn reset(&mut self) {}
    /// All flows in the table, in no particular order.
    pub fn flows(&self, _now: Time) -> impl Iterator<Item = FlowInfo> + '_ {
        core::iter::empty()
    }
}
