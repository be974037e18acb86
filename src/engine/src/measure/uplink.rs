// SPDX-License-Identifier: GPL-2.0-or-later
//! When the mirrored engine may act on a flow.
//!
//! For it the client's packets are the data and the server's the replies. But
//! the server's packets are what the user waits for nearly always, so it keeps
//! its hands off unless the flow is an upload, and of that only datagrams of an
//! acknowledgement's size are read or held. The servers are not ours and are
//! not probed: without a spin bit nothing tells a queue on the way, which
//! must not be hidden from the sender, from plain loss.

use crate::measure::bottleneck::Bottleneck;
use crate::time::{Nanos, Time};
use crate::tunables::Tunables;
use crate::wire::quic::LONG_HEADER;
use crate::wire::spin::{Edge, Spin};

/// Datagrams with a short header up to this size are taken for acknowledgements (chosen: room
/// for some twenty ranges beside the header and the tag).
const REPLY_BYTES: usize = 100;
/// An upload sends this many times as many bytes as come back (chosen: a call that sends as
/// much as it gets is none, and acknowledgements are less than a twentieth) ...
const UPLOAD_RATIO: u64 = 8;
/// ... and at least this many; both sums are halved as soon as one exceeds twice that (chosen:
/// more than a page's requests).
const UPLOAD_BYTES: u64 = 32 * 1024;

/// One flow as the mirror sees it.
#[derive(Clone, Debug)]
pub(crate) struct Uplink {
    sent: u64,
    back: u64,
    spin: Spin,
    bottleneck: Bottleneck,
}

impl Uplink {
    pub fn new(now: Time, tunables: Tunables) -> Uplink {
        let bottleneck = Bottleneck::new(now, tunables);
        Uplink { sent: 0, back: 0, spin: Spin::default(), bottleneck }
    }

    /// Takes in a datagram, `back` if it comes from the server, of an IP packet of
    /// this many `bytes`; gives the time that inference has to go by.
    pub fn look(&mut self, now: Time, back: bool, payload: &[u8], bytes: usize) -> Time {
        let sum = if back { &mut self.back } else { &mut self.sent };
        *sum += payload.len() as u64;
        if *sum > 2 * UPLOAD_BYTES {
            self.sent /= 2;
            self.back /= 2;
        }
        let at = if back { now } else { self.bottleneck.sent(now, bytes) };
        let Some(first) = payload.first() else { return at };
        if first & LONG_HEADER != 0 {
            self.bottleneck.handshake(now, back);
            return at;
        }
        if back && !Uplink::is_data(payload.len()) {
            self.bottleneck.replied(now);
        }
        match self.spin.look(back, *first) {
            None => {}
            Some(Edge::Out) => self.bottleneck.edge_out(now, at),
            Some(Edge::Back) => self.bottleneck.edge_back(now),
            Some(Edge::Odd) => self.bottleneck.edge_odd(),
        }
        at
    }

    /// Copies were sent.
    pub fn copied(&mut self, now: Time, bytes: u64) {
        self.bottleneck.copied(now, bytes);
    }

    /// The round trip to go by, if the engine may act.
    pub fn round_trip(&self, now: Time) -> Option<Nanos> {
        self.bottleneck.round_trip(now).filter(|_| self.is_upload())
    }

    /// Whether the client mostly sends.
    pub fn is_upload(&self) -> bool {
        self.sent >= UPLOAD_BYTES && self.sent >= UPLOAD_RATIO * self.back
    }

    /// Whether a datagram of the server's of this size is data: the user waits
    /// for it.
    pub fn is_data(len: usize) -> bool {
        len > REPLY_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shows `count` rounds of datagrams of these sizes.
    fn exchange(uplink: &mut Uplink, sent: &[usize], back: &[usize], count: usize) {
        for _ in 0..count {
            for (lens, from_server) in [(sent, false), (back, true)] {
                for len in lens {
                    uplink.look(Time::ZERO, from_server, &[0x40; 1500][..*len], *len + 28);
                }
            }
        }
    }

    #[test]
    fn only_what_mostly_sends_is_an_upload() {
        let mut uplink = Uplink::new(Time::ZERO, Tunables::DEFAULT);
        exchange(&mut uplink, &[1200], &[1200, 1200, 800], 2);
        exchange(&mut uplink, &[1200, 1200], &[40], 10);
        assert!(!uplink.is_upload(), "the handshake's bytes still weigh");
        exchange(&mut uplink, &[1200, 1200], &[40], 40);
        assert!(uplink.is_upload());
        exchange(&mut uplink, &[40], &[1200, 1200], 5);
        assert!(!uplink.is_upload(), "a download ends it within ten packets");
        exchange(&mut uplink, &[40], &[1200, 1200], 10_000);
        exchange(&mut uplink, &[1200, 1200], &[40], 500);
        assert!(uplink.is_upload(), "the past is forgotten");
        let mut call = Uplink::new(Time::ZERO, Tunables::DEFAULT);
        exchange(&mut call, &[1200], &[1200], 1000);
        assert!(!call.is_upload());
    }
}
