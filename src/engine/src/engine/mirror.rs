// SPDX-License-Identifier: GPL-2.0-or-later
//! What an engine needs to be one of two: see [`Engines`](crate::Engines).

use core::net::SocketAddr;

use super::{Engine, FlowKey};
use crate::api::{Config, Direction, FlowInfo};
use crate::time::Time;
use crate::wire::packet::{self, Parsed};

impl Engine {
    /// One for what goes from the clients to the servers. Directions, events and
    /// flows of its interface are the true ones. Inside, the sender of the data is the
    /// client, and the receiver is the server.
    pub(crate) fn mirror(config: Config, seed: u64) -> Engine {
        Engine { mirrored: true, ..Engine::new(config, seed) }
    }

    /// Notes a packet of a QUIC flow that the other engine of
    /// [`Engines`](crate::Engines) looks after.
    pub(crate) fn pass_by(&mut self, now: Time, direction: Direction, packet: &[u8]) {
        self.count(direction, packet);
        self.expire(now);
        if let Parsed::Udp(udp) = packet::parse(packet) {
            let reply = (direction == Direction::Up) != self.mirrored;
            let slot = self.flow_slot(now, reply, &udp, packet.len());
            self.with_flow(now, slot, |flow, cx| flow.pass_by(cx, reply, packet));
        }
    }

    /// For the mirror: whether the last packet was one of an upload.
    pub(crate) fn saw_upload(&self) -> bool {
        self.upload
    }

    /// The flow between these two, if it is in the table.
    pub(crate) fn flow(
        &self,
        now: Time,
        client: SocketAddr,
        server: SocketAddr,
    ) -> Option<FlowInfo> {
        let (receiver, sender) = if self.mirrored { (server, client) } else { (client, server) };
        let slot = self.flows.find(&FlowKey { receiver, sender })?;
        self.flows.get(slot).map(|flow| self.info(now, flow))
    }

    /// Whether every action was fetched.
    pub(crate) fn is_drained(&self) -> bool {
        self.out.is_empty()
    }
}
