// SPDX-License-Identifier: GPL-2.0-or-later
//! What a flow works with that is not its own.

use crate::api::Config;
use crate::flow::out::Out;
use crate::measure::hop::Hop;
use crate::repair::ceiling::Ceiling;
use crate::stats::Stats;
use crate::store::cache::Cache;
use crate::store::tickets::Tickets;
use crate::time::Time;

/// The parts of the engine that a rule may use; only the hop is another one for each client.
pub(crate) struct Context<'a> {
    pub now: Time,
    /// When the packet in hand came to the router, where it may have waited until now.
    pub came: Time,
    pub config: &'a Config,
    pub cache: &'a mut Cache,
    pub ceiling: &'a mut Ceiling,
    pub hop: &'a mut Hop,
    pub out: &'a mut Out,
    pub stats: &'a mut Stats,
    pub tickets: &'a mut Tickets,
    /// The flow's place in the table.
    pub slot: u32,
    /// When it was told last that packets had passed unseen.
    pub missed: Option<Time>,
}

impl Context<'_> {
    /// A packet passes; `reply` if the client sent it.
    pub fn passes(&mut self, reply: bool) {
        if reply {
            self.hop.reports.heard(self.now);
        }
    }

    /// The same parts at another time.
    pub fn at(&mut self, now: Time) -> Context<'_> {
        Context {
            now,
            came: now,
            config: self.config,
            cache: self.cache,
            ceiling: self.ceiling,
            hop: self.hop,
            out: self.out,
            stats: self.stats,
            tickets: self.tickets,
            slot: self.slot,
            missed: self.missed,
        }
    }
}
