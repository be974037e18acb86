// SPDX-License-Identifier: GPL-2.0-or-later
//! What people are shown and told of a flow.

use super::{Flow, Phase};
use crate::api::{Direction, Event, EventKind, FlowInfo, FlowState};
use crate::flow::context::Context;
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

    /// Tells of it, unless anybody on the Internet could have made it happen.
    pub(super) fn event(&self, cx: &mut Context<'_>, kind: EventKind) {
        if self.hop_slot.is_none() {
            return;
        }
        // Those of the mirrored engine are turned round when they are fetched.
        let (client, server) = (self.receiver, self.sender);
        let direction = Direction::Down;
        cx.out.event(|| Event { at: cx.now, client, server, direction, kind });
    }

    /// Tells that it begins, once both ends have spoken.
    pub(super) fn tell_start(&mut self, cx: &mut Context<'_>) {
        if !self.told && self.hop_slot.is_some() {
            self.told = true;
            self.event(cx, EventKind::FlowStart);
        }
    }

    /// Tells that it has ended, if its beginning was told.
    pub(super) fn end_event(&mut self, cx: &mut Context<'_>) {
        if !core::mem::take(&mut self.told) {
            return;
        }
        let end = EventKind::FlowEnd {
            packets_down: self.packets,
            inferred: self.inferred,
            repaired: self.repaired,
            resent: self.resent,
        };
        self.event(cx, end);
    }
}
