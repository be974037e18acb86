// SPDX-License-Identifier: GPL-2.0-or-later
//! Which flows are left alone so that those that are helped can be compared with them, and what came
//! of either.

use alloc::vec::Vec;
use core::net::SocketAddr;

use super::{Engine, FlowKey};
use crate::api::Outcome;
use crate::flow::Flow;
use crate::flow::compared::Compared;
use crate::time::Time;

/// Networks that can be told apart; those beyond share the last number.
pub const NETWORKS: u8 = 8;
/// The number of one that is not there any more.
pub const GONE: u8 = NETWORKS;

impl Engine {
    /// Packets come from or go to this network from now on.
    pub fn from_network(&mut self, network: u8) {
        self.network = network.min(NETWORKS - 1);
    }

    /// Networks have other numbers from now on: `numbers` has them at the places of those of before, and
    /// [`GONE`] for one that has none any more.
    pub fn renumber(&mut self, numbers: &[u8; NETWORKS as usize]) {
        let number = |network: u8| numbers.get(usize::from(network)).copied().unwrap_or(GONE);
        let flows = self.flows.values_mut().map(Flow::network_mut);
        flows.chain(self.out.networks_mut()).for_each(|network| *network = number(*network));
        let before = core::mem::take(&mut self.standing_back);
        for network in (0..NETWORKS).filter(|network| before & bit(*network) != 0) {
            self.standing_back |= bit(number(network));
        }
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
    pub(super) fn compared(
        &mut self,
        receiver: SocketAddr,
        sender: SocketAddr,
        tcp: bool,
    ) -> Compared {
        let percent = self.config.control_percent;
        // Nothing could be learned yet from leaving one of so few alone.
        let too_few = self.begun < 100u32.checked_div(percent).unwrap_or(0).saturating_sub(1);
        self.begun = self.begun.saturating_add(1);
        // Both of two engines have to choose the same.
        let (receiver, sender) =
            if self.mirrored { (sender, receiver) } else { (receiver, sender) };
        let chance = self.flows.hash(&FlowKey { receiver, sender, tcp }) >> 32;
        let control = !too_few && chance % 100 < u64::from(percent);
        Compared::new(self.network, control, self.stands_back_from(self.network))
    }

    fn stands_back_from(&self, network: u8) -> bool {
        self.standing_back & bit(network) != 0
    }

    /// Flows of these networks, a bit for each, are left alone from now on; those of others are
    /// helped if they begin later.
    pub fn stand_back(&mut self, now: Time, networks: u8) {
        self.standing_back = networks;
        let theirs = self.flows.iter().filter(|(_, flow)| self.stands_back_from(flow.network()));
        let theirs: Vec<u32> = theirs.map(|(slot, _)| slot).collect();
        for slot in theirs {
            self.with_flow(now, slot, |flow, cx| flow.stand_apart(cx));
        }
    }
}

/// That of a network among those that stand back; for one that is gone there is none.
fn bit(network: u8) -> u8 {
    1u8.checked_shl(network.into()).unwrap_or(0)
}
