// SPDX-License-Identifier: GPL-2.0-or-later
//! Flows that are not QUIC, where these are repaired as well.

use core::net::SocketAddr;

use super::Engine;
use crate::api::{Handle, Verdict};
use crate::flow::Flow;
use crate::time::Time;
use crate::wire::packet::Tcp;

impl Engine {
    /// A new flow, whose first packet tells that it is not QUIC or may be.
    pub(super) fn new_flow(
        &mut self,
        now: Time,
        receiver: SocketAddr,
        sender: SocketAddr,
        tcp: bool,
    ) -> Flow {
        let tunables = self.config.tunables();
        let other = self.config.others().is_some_and(|quic| !quic.contains(&sender.port()));
        let flow = match tcp || other {
            true => Flow::other(now, receiver, sender, tcp, tunables),
            false => Flow::new(now, receiver, sender, self.mirrored, tunables),
        };
        flow.compare(self.compared(receiver, sender, tcp))
    }

    pub(super) fn on_segment(
        &mut self,
        now: Time,
        reply: bool,
        packet: &[u8],
        tcp: &Tcp,
        handle: Handle,
    ) -> Verdict {
        let slot = self.flow_slot(now, reply, tcp.ends(), true, packet.len());
        let shown = self.with_flow(now, slot, |flow, cx| {
            cx.passes(reply);
            flow.on_segment(cx, reply, packet, &tcp.segment, handle)
        });
        shown.unwrap_or(Verdict::Forward)
    }
}
