// SPDX-License-Identifier: GPL-2.0-or-later
//! What people are shown of a flow.

use super::{Flow, Phase};
use crate::api::{FlowInfo, FlowState};
use crate::measure::hop::Hop;
use crate::time::{Nanos, Time};

impl Flow {
    pub fn state(&self, now: Time) -> FlowState {
        match self.phase {
            Phase::Unknown(_) => FlowState::Unknown,
            Phase::Bypassed => FlowState::Bypassed,
            Phase::Quic | Phase::Other(_) if self.is_left_alone() => FlowState::Alone,
            Phase::Quic if !self.start.is_over() => FlowState::Handshake,
            Phase::Quic if !self.governor.armed(now) || self.governor.in_storm(now) => {
                FlowState::Watching
            }
            // What is not reported of is seen and no more.
            Phase::Other(_) if !self.exact.own() => FlowState::Watching,
            Phase::Quic | Phase::Other(_) => FlowState::Protected,
        }
    }

    pub fn local_rtt(&self) -> Nanos {
        self.rtt.get()
    }

    pub fn info(&self, now: Time, hop: &Hop) -> FlowInfo {
        FlowInfo {
            client: self.receiver,
            server: self.sender,
            age: now.since(self.created),
            bytes_down: self.bytes,
            packets_down: self.packets,
            local_rtt: self.rtt.get(),
            inferred: self.inferred,
            repaired: self.repaired,
            resent: self.resent,
            protocol: self.protocol,
            state: self.state(now),
            knowledge: self.knowledge(hop),
        }
    }
}
