// SPDX-License-Identifier: GPL-2.0-or-later
//! Which flows are left alone so that those that are helped can be compared with them, and what came
//! of either.

use alloc::vec::Vec;
use core::net::SocketAddr;

use super::{Engine, FlowKey};
use crate::api::Outcome;
use crate::flow::compared::Compared;
use crate::time::Time;

/// Networks that can be told apart; those beyond share the last number.
const NETWORKS: u8 = 8;

impl Engine {
    /// Packets come from or go to this network from now on.
    pub fn from_network(&mut self, network: u8) {
        self.network = network.min(NETWORKS - 1);
    }

    /// What came of the flows whose first download is over and was not told yet. To be
    /// asked for once a second or so.
    pub fn outcomes(&mut self, now: Time) -> Vec<Outcome> {
        let over = self.flows.iter().filter(|(_, flow)| flow.is_over(now));
        let over: Vec<u32> = over.map(|(slot, _)| slot).collect();
        for slot in over {
            self.with_flow(now, slot, |flow, cx| flow.end_download(cx));
        }
        self.out.take_outcomes()
    }

    /// To whom a new flow is compared.
    pub(super) fn compared(&self, receiver: SocketAddr, sender: SocketAddr, tcp: bool) -> Compared {
        // Both of two engines have to choose the same.
        let (receiver, sender) =
            if self.mirrored { (sender, receiver) } else { (receiver, sender) };
        let chance = self.flows.hash(&FlowKey { receiver, sender, tcp }) >> 32;
        let control = chance % 100 < u64::from(self.config.control_percent);
        Compared::new(self.network, control, self.stands_back_from(self.network))
    }

    fn stands_back_from(&self, network: u8) -> bool {
        self.config.standing_back & 1 << network != 0
    }

    /// Flows of networks that are not to be helped any more are left alone.
    pub(super) fn stand_back(&mut self, now: Time) {
        if self.config.standing_back == 0 {
            return;
        }
        let theirs = self.flows.iter().filter(|(_, flow)| self.stands_back_from(flow.network()));
        let theirs: Vec<u32> = theirs.map(|(slot, _)| slot).collect();
        for slot in theirs {
            self.with_flow(now, slot, |flow, cx| flow.stand_apart(cx));
        }
    }
}
