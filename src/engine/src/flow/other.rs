// SPDX-License-Identifier: GPL-2.0-or-later
//! A flow that is not QUIC: TCP, or anything else over UDP. Nothing of it is inferred, and nothing
//! sent again but what was reported lost; where reports do not come it is let go.
//!
//! QUIC on a port that is not known for it is QUIC all the same if a client of ours begins it with a
//! version that can be read: such a first packet is nothing else.
//!
//! Of TCP the acknowledgements that tell of a hole wait until one shows it filled. Of anything
//! else nothing waits: what a small packet of an unknown protocol says nobody can tell, and a
//! player's move or a call's sound would wait for a copy that does not concern them.

use core::net::SocketAddr;

use super::{Flow, Phase};
use crate::api::{Handle, Protocol, Verdict};
use crate::flow::context::Context;
use crate::measure::cumulative::{Cumulative, Tells};
use crate::measure::hop::HopState;
use crate::repair::start::Start;
use crate::store::cache::Id;
use crate::time::{MS, Nanos, Time};
use crate::tunables::Tunables;
use crate::wire::packet::{self, Segment};
use crate::wire::quic::{Datagram, MIN_INITIAL_DATAGRAM};

/// From the report that a copy has arrived until a TCP client's acknowledgement of it: it sends
/// that at once (RFC 5681, section 4.2), but has to get onto the air. Twice as long the episode
/// goes on without it (chosen: then that one was lost, and the next will tell).
pub(super) const ANSWER: Nanos = 10 * MS;

impl Flow {
    /// A flow that is not QUIC, the first packet of which is in hand.
    pub fn other(
        now: Time,
        receiver: SocketAddr,
        sender: SocketAddr,
        tcp: bool,
        tunables: Tunables,
    ) -> Flow {
        let mut flow = Flow::new(now, receiver, sender, false, tunables);
        flow.becomes_other(tcp, tunables);
        flow
    }

    pub(super) fn becomes_other(&mut self, tcp: bool, tunables: Tunables) {
        // Nobody knows how it begins.
        self.start = Start::over(tunables);
        self.protocol = if tcp { Protocol::Tcp } else { Protocol::Udp };
        self.phase = Phase::Other(tcp.then(Cumulative::default));
    }

    /// Whether the packet in hand, the first of the flow, begins a QUIC connection after all.
    pub(super) fn begins_quic(
        &mut self,
        tunables: Tunables,
        reply: bool,
        payload: &[u8],
        seen: Option<Datagram>,
    ) {
        let first = self.packets == 0 && self.last_heard.is_none();
        let initial = seen.is_some_and(|it| it.initial) && payload.len() >= MIN_INITIAL_DATAGRAM;
        if matches!(self.phase, Phase::Other(None)) && first && reply && initial {
            self.start = Start::new(HopState::New, tunables);
            self.becomes_quic();
        }
    }

    /// One TCP segment of the flow, `reply` if the receiver sent it; `packet` is the IP packet
    /// around it.
    pub fn on_segment(
        &mut self,
        cx: &mut Context<'_>,
        reply: bool,
        packet: &[u8],
        segment: &Segment,
        handle: Handle,
    ) -> Verdict {
        self.last_seen = cx.now;
        self.compare_packet(cx, reply, !segment.pure, packet.len());
        if let Phase::Bypassed = self.phase {
            cx.stats.packets_other += 1;
            return Verdict::Bypass;
        }
        self.on_other(cx, reply, packet, Some(segment), handle)
    }

    /// One packet; `segment` if it is TCP.
    pub(super) fn on_other(
        &mut self,
        cx: &mut Context<'_>,
        reply: bool,
        packet: &[u8],
        segment: Option<&Segment>,
        handle: Handle,
    ) -> Verdict {
        cx.stats.packets_other += 1;
        if self.is_left_alone() {
            return self.pass(cx, reply, packet);
        }
        if self.hop_slot.is_none() {
            self.note(cx.now, reply, packet.len());
            return Verdict::Forward;
        }
        self.tell_start(cx);
        let verdict = match (reply, segment) {
            (false, _) => self.on_other_data(cx, packet, handle),
            (true, Some(segment)) => self.on_other_reply(cx, packet, segment, handle),
            (true, None) => {
                self.note(cx.now, true, packet.len());
                Verdict::Forward
            }
        };
        if verdict != Verdict::Forward || !self.exact.settled() || self.conceal.active() {
            return verdict;
        }
        if cx.hop.reports.worth_asking(cx.now) && !self.clean_for_long(cx) {
            return verdict;
        }
        self.let_go(cx);
        Verdict::Bypass
    }

    fn on_other_data(&mut self, cx: &mut Context<'_>, packet: &[u8], handle: Handle) -> Verdict {
        let now = cx.now;
        let pause = self.last_data.map(|last| now.since(last));
        self.note(now, false, packet.len());
        self.budget.forwarded(false);
        cx.ceiling.forwarded(now, packet.len());
        cx.hop.forwarded();
        match self.trail.push(cx.cache, now, self.packets, packet) {
            Some(id) => self.way(cx, id, pause, handle),
            None => Verdict::Forward,
        }
    }

    fn on_other_reply(
        &mut self,
        cx: &mut Context<'_>,
        packet: &[u8],
        segment: &Segment,
        handle: Handle,
    ) -> Verdict {
        let now = cx.now;
        self.note(now, true, packet.len());
        let Phase::Other(Some(client)) = &mut self.phase else { return Verdict::Forward };
        let tells = client.reply(segment);
        let first = segment.pure && self.exact.replied(now, ANSWER);
        if !self.conceal.active() {
            return Verdict::Forward;
        }
        if first {
            self.conceal.first_came(now, now + 2 * ANSWER, cx.config.hold_cap);
        }
        match tells {
            Tells::Nothing => return Verdict::Forward,
            Tells::Hole if self.hold(cx, handle) => return Verdict::Hold,
            Tells::Hole | Tells::Repaired => {}
        }
        // The newest goes first: to the sender those behind it are old (RFC 9293, section 3.10.7.4).
        self.release(cx, true);
        Verdict::Forward
    }

    /// Whether the receiver has shown that it has this packet, whatever is reported of it.
    pub(super) fn has_arrived(&self, cx: &Context<'_>, id: Id) -> bool {
        let Phase::Other(Some(client)) = &self.phase else { return false };
        let segment = cx.cache.packet(id).and_then(packet::segment);
        segment.is_some_and(|segment| client.has(&segment))
    }

    /// Whether replies are to wait for the repair of this lost packet, because those that tell of
    /// it can be told from others. An episode that goes on already does so with any loss.
    pub(super) fn hides(&mut self, cx: &Context<'_>, id: Id) -> bool {
        let active = self.conceal.active();
        match &mut self.phase {
            Phase::Other(None) => false,
            Phase::Other(Some(client)) => {
                let segment = cx.cache.packet(id).and_then(packet::segment);
                segment.is_some_and(|segment| client.lost(&segment, !active)) || active
            }
            Phase::Unknown(_) | Phase::Quic | Phase::Bypassed => true,
        }
    }
}
