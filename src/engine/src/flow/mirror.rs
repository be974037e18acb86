//! A flow in the mirrored engine, where the client's packets are the data and
//! the server's the replies: the same rules, but not for every packet.

use alloc::boxed::Box;

use super::{Context, Flow};
use crate::api::{Handle, Verdict};
use crate::quic::Datagram;
use crate::start::Start;
use crate::time::Time;
use crate::uplink::Uplink;

impl Flow {
    /// Makes a new flow one of the mirrored engine.
    pub fn mirror(&mut self, now: Time) {
        self.start = Start::mirrored();
        self.uplink = Some(Box::new(Uplink::new(now)));
    }

    /// One datagram of a QUIC flow; `up` if it is the server's.
    pub(super) fn on_mirrored(
        &mut self,
        cx: &mut Context<'_>,
        up: bool,
        packet: &[u8],
        payload: &[u8],
        seen: Option<Datagram>,
        handle: Handle,
    ) -> Verdict {
        let long = seen.is_none_or(|s| s.long);
        let Some(uplink) = &mut self.uplink else { return Verdict::Forward };
        let now = cx.now;
        let at = uplink.look(now, up, payload, packet.len());
        let handshake = long || !self.start.is_over();
        let round_trip = uplink.round_trip(now);
        if let Some(rtt) = round_trip {
            self.rtt.near(rtt);
        }
        let helped = round_trip.is_some();
        let copied = cx.stats.resent_bytes;
        let verdict = if handshake || helped && !(up && Uplink::is_data(payload.len())) {
            if up {
                self.on_up(cx, payload.len(), long, handle)
            } else {
                cx.now = at;
                self.on_down(cx, packet, long);
                cx.now = now;
                Verdict::Forward
            }
        } else {
            // What is held must not fall behind data, or wait when the upload is
            // over.
            self.stand_aside(cx, helped);
            self.note(cx.now, up, packet);
            Verdict::Forward
        };
        let copied = cx.stats.resent_bytes - copied;
        if let Some(uplink) = self.uplink.as_mut().filter(|_| copied > 0) {
            uplink.copied(now, copied);
        }
        // The flow stays in its place: the other engine may have use for it for
        // longer, and an upload may begin at any time.
        let clean_for = cx.now.since(self.last_repair);
        if cx.config.release_after.is_some_and(|after| clean_for > after)
            && verdict == Verdict::Forward
            && !self.conceal.active()
        {
            return Verdict::Bypass;
        }
        verdict
    }

    /// Whether the mirrored engine takes this flow for an upload.
    pub fn is_upload(&self) -> bool {
        self.uplink.as_ref().is_some_and(|uplink| uplink.is_upload())
    }

    /// A datagram that the other engine looks after.
    pub fn pass_by(&mut self, cx: &mut Context<'_>, up: bool, packet: &[u8]) {
        self.last_seen = cx.now;
        self.note(cx.now, up, packet);
        cx.stats.packets_quic += 1;
    }

    /// Whether the signs of losses have proven true, which the mirrored engine wants
    /// to see first: what it holds wrongly costs the sender a whole round trip.
    pub(super) fn trusted(&self) -> bool {
        self.uplink.is_none() || self.budget.proven()
    }

    fn stand_aside(&mut self, cx: &mut Context<'_>, for_a_moment: bool) {
        if !for_a_moment {
            self.refill.clear();
            self.sizes.gave_up_all();
        }
        self.release(cx, true);
    }
}
