// SPDX-License-Identifier: GPL-2.0-or-later
//! Is this flow QUIC? Its first packets show it, or, where the beginning was missed, what
//! stays the same in client packets with short headers.

use crate::wire::quic::{Datagram, MIN_INITIAL_DATAGRAM};

/// The destination connection ID follows the first byte. Servers use at least
/// four bytes; the same four in this many client packets are no chance.
const CID_PREFIX: usize = 4;
const SAME_CIDS: u32 = 4;
const FIXED_BIT: u8 = 0x40;
/// Packets after which an undecided flow is not QUIC.
const UNDECIDED: u32 = 64;
/// Client packets with changing connection IDs, or that cannot be QUIC at all,
/// before a flow counts as something else.
const STRIKES: u32 = 8;

/// What a flow is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Judgement {
    Undecided,
    /// QUIC, seen from its beginning.
    Opening,
    /// QUIC, in its middle.
    Midway,
    NotQuic,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Recogniser {
    cid: [u8; CID_PREFIX],
    same: u32,
    /// One of them had the fixed bit, which tunnels like DTLS and WireGuard
    /// never set and QUIC endpoints that grease it (RFC 9287) set now and then.
    fixed_bit: bool,
    strikes: u32,
    packets: u32,
}

impl Recogniser {
    pub fn look(&mut self, up: bool, payload: &[u8], seen: Option<Datagram>) -> Judgement {
        self.packets += 1;
        match seen {
            None => self.strikes += 1,
            Some(seen) if seen.long => {
                let client_hello =
                    (seen.initial || seen.unknown_version) && payload.len() >= MIN_INITIAL_DATAGRAM;
                let opening = if up {
                    client_hello || seen.zero_rtt || seen.handshake
                } else {
                    seen.initial || seen.handshake || seen.retry || seen.version_negotiation
                };
                if opening {
                    return Judgement::Opening;
                }
                self.strikes += 1;
            }
            Some(_) if up => match payload.get(1..).and_then(|p| p.first_chunk()) {
                Some(cid) if self.same > 0 && *cid == self.cid => {
                    self.same += 1;
                    self.fixed_bit |= payload[0] & FIXED_BIT != 0;
                    if self.same >= SAME_CIDS && self.fixed_bit {
                        return Judgement::Midway;
                    }
                    self.strikes += u32::from(self.same > 2 * SAME_CIDS);
                }
                Some(cid) => {
                    self.strikes += u32::from(self.same > 0);
                    (self.cid, self.same) = (*cid, 1);
                    self.fixed_bit = payload[0] & FIXED_BIT != 0;
                }
                None => self.strikes += 1,
            },
            Some(_) => {}
        }
        if self.strikes >= STRIKES || self.packets >= UNDECIDED {
            Judgement::NotQuic
        } else {
            Judgement::Undecided
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::quic::tests::long;
    use crate::wire::quic::{V1, V2, inspect};

    fn look(r: &mut Recogniser, up: bool, payload: &[u8]) -> Judgement {
        r.look(up, payload, inspect(payload))
    }

    #[test]
    fn a_beginning_is_seen_at_once() {
        for version in [V1, V2, 0xface_b00c] {
            let mut r = Recogniser::default();
            assert_eq!(look(&mut r, true, &long(version, 0, 1200)), Judgement::Opening);
        }
        let mut r = Recogniser::default();
        assert_eq!(look(&mut r, true, &long(V1, 0, 100)), Judgement::Undecided, "too small");
        assert_eq!(look(&mut r, false, &long(V1, 3, 40)), Judgement::Opening);
    }

    #[test]
    fn the_middle_of_a_connection_is_told_by_its_connection_id() {
        let mut r = Recogniser::default();
        let packet = |n: u8| {
            let mut p = [n.wrapping_mul(77); 40];
            p[0] = 0x40 | n & 0x1f;
            p[1..5].copy_from_slice(&[1, 2, 3, 4]);
            p
        };
        for n in 0..3 {
            assert_eq!(look(&mut r, true, &packet(n)), Judgement::Undecided);
            assert_eq!(look(&mut r, false, &[n; 800]), Judgement::Undecided);
        }
        assert_eq!(look(&mut r, true, &packet(4)), Judgement::Midway);
    }

    #[test]
    fn tunnels_are_not_quic() {
        // DTLS 1.2 records and WireGuard data: constant bytes, no fixed bit.
        for head in [[0x17, 0xfe, 0xfd, 0, 1], [4, 0, 0, 0, 9]] {
            let mut r = Recogniser::default();
            let mut packet = [7; 80];
            packet[..5].copy_from_slice(&head);
            let last = (0..20).map(|_| look(&mut r, true, &packet)).last();
            assert_eq!(last, Some(Judgement::NotQuic));
        }
    }

    #[test]
    fn other_protocols_are_let_go() {
        let mut r = Recogniser::default();
        let last = (0..20u8).map(|n| look(&mut r, true, &[n; 60])).last();
        assert_eq!(last, Some(Judgement::NotQuic));
        let mut r = Recogniser::default();
        let last = (0..8).map(|_| look(&mut r, true, &[0x16; 5])).last();
        assert_eq!(last, Some(Judgement::NotQuic));
        let mut r = Recogniser::default();
        let last = (0..64).map(|_| look(&mut r, false, &[0x33; 500])).last();
        assert_eq!(last, Some(Judgement::NotQuic), "a client that never speaks");
    }
}
