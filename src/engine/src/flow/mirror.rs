// SPDX-License-Identifier: GPL-2.0-or-later
//! A flow in the mirrored engine, where the client's packets are the data and
//! the server's the replies: the same rules, but not for every packet.

use super::Flow;
use crate::api::{Handle, Verdict};
use crate::flow::context::Context;
use crate::flow::data::Bytes;
use crate::measure::uplink::Uplink;
use crate::wire::quic::Datagram;

impl Flow {
    /// One datagram of a QUIC flow; `reply` if it is the server's.
    pub(super) fn on_mirrored(
        &mut self,
        cx: &mut Context<'_>,
        reply: bool,
        packet: &[u8],
        payload: &[u8],
        seen: Option<Datagram>,
        handle: Handle,
    ) -> Verdict {
        let long = seen.is_none_or(|s| s.long);
        let Some(uplink) = &mut self.uplink else { return Verdict::Forward };
        let now = cx.now;
        let at = uplink.look(now, reply, payload, packet.len());
        let handshake = long || !self.start.is_over();
        let round_trip = uplink.round_trip(now);
        if let Some(rtt) = round_trip {
            self.rtt.near(rtt);
        }
        let helped = round_trip.is_some();
        let copied = cx.stats.resent_bytes;
        let verdict = if handshake || helped && !(reply && Uplink::is_data(payload.len())) {
            if reply {
                self.on_reply(cx, payload.len(), long, handle)
            } else {
                self.on_data(&mut cx.at(at), &Bytes::New(packet), long, handle).1
            }
        } else {
            // What is held must not fall behind data, or wait when the upload is
            // over.
            self.stand_aside(cx, helped);
            self.note(cx.now, reply, packet.len());
            Verdict::Forward
        };
        let copied = cx.stats.resent_bytes - copied;
        if let Some(uplink) = self.uplink.as_mut().filter(|_| copied > 0) {
            uplink.copied(now, copied);
        }
        // The flow stays in its place: the other engine may have use for it for
        // longer, and an upload may begin at any time.
        if verdict == Verdict::Forward && self.clean_for_long(cx) {
            return Verdict::Bypass;
        }
        verdict
    }

    /// Whether the mirrored engine takes this flow for an upload.
    pub fn is_upload(&self) -> bool {
        self.uplink.as_ref().is_some_and(|uplink| uplink.is_upload())
    }

    /// A datagram that the other engine looks after.
    pub fn pass_by(&mut self, cx: &mut Context<'_>, reply: bool, packet: &[u8]) {
        self.last_seen = cx.now;
        self.note(cx.now, reply, packet.len());
        cx.stats.packets_quic += 1;
    }

    /// Whether the signs of losses have proven true, which the mirrored engine wants
    /// to see first: what it holds wrongly costs the sender a whole round trip.
    pub(super) fn trusted(&self) -> bool {
        self.uplink.is_none() || self.budget.proven()
    }

    fn stand_aside(&mut self, cx: &mut Context<'_>, for_a_moment: bool) {
        if !for_a_moment {
            self.gaps.clear();
            self.sizes.abandoned_all();
        }
        self.release(cx, true);
    }
}
