// SPDX-License-Identifier: GPL-2.0-or-later
//! What a router can see of QUIC: the version-independent properties
//! (RFC 8999) and the long headers of version 1 (RFC 9000) and 2 (RFC 9369).

/// QUIC version 1.
pub(crate) const V1: u32 = 0x0000_0001;
/// QUIC version 2.
pub(crate) const V2: u32 = 0x6b33_43cf;
/// The bit of the first byte that long headers have (RFC 8999, section 5.1).
pub(crate) const LONG_HEADER: u8 = 0x80;
/// A client's first datagram is at least this long (RFC 9000, section 14.1).
pub(crate) const MIN_INITIAL_DATAGRAM: usize = 1200;

/// The packets coalesced in one datagram.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Datagram {
    /// The first packet has a long header: the handshake is going on.
    pub long: bool,
    pub initial: bool,
    pub zero_rtt: bool,
    pub handshake: bool,
    pub retry: bool,
    pub version_negotiation: bool,
    /// Long header of a version not known here: only the invariants hold.
    pub unknown_version: bool,
    /// A packet with a short header, alone or after others.
    pub short: bool,
}

/// Reads a datagram; `None` if it cannot be QUIC.
///
/// The fixed bit is not looked at: endpoints may grease it (RFC 9287).
pub(crate) fn inspect(datagram: &[u8]) -> Option<Datagram> {
    let mut seen = Datagram { long: datagram.first()? & LONG_HEADER != 0, ..Datagram::default() };
    let mut rest = datagram;
    while let Some(first) = rest.first() {
        if first & LONG_HEADER == 0 {
            // A short header always runs to the end of the datagram. Zero
            // bytes after a packet are padding that some stacks put there.
            seen.short |= seen.long || rest.len() >= MIN_SHORT;
            return (seen.long || seen.short).then_some(seen);
        }
        let Some(len) = long_packet(rest, &mut seen) else {
            // What follows a good packet may be garbage (RFC 9000, 12.2: the
            // receiver drops it); a datagram that begins with garbage is not
            // QUIC.
            return (rest.len() < datagram.len()).then_some(seen);
        };
        rest = rest.get(len..).unwrap_or_default();
    }
    Some(seen)
}

/// The shortest thing that may have a short header: first byte, one byte of
/// packet number, payload padded to 4 with it, 16-byte tag.
const MIN_SHORT: usize = 21;

/// Notes one long-header packet in `seen` and gives its length.
fn long_packet(packet: &[u8], seen: &mut Datagram) -> Option<usize> {
    let version = u32::from_be_bytes(*packet.get(1..)?.first_chunk()?);
    let mut at = 5;
    for _ in 0..2 {
        let cid_len = usize::from(*packet.get(at)?);
        at += 1 + cid_len;
        // RFC 8999 allows 255; versions 1 and 2 stop at 20.
        if (version == V1 || version == V2) && cid_len > 20 {
            return None;
        }
    }
    let body = packet.get(at..)?;
    if version == 0 {
        if body.is_empty() || body.len() % 4 != 0 {
            return None;
        }
        seen.version_negotiation = true;
        return Some(packet.len());
    }
    let kind = match version {
        V1 => (packet[0] >> 4) & 3,
        // Version 2 turned the numbering by one.
        V2 => ((packet[0] >> 4) & 3).wrapping_sub(1) & 3,
        _ => {
            seen.unknown_version = true;
            return Some(packet.len());
        }
    };
    match kind {
        0 => seen.initial = true,
        1 => seen.zero_rtt = true,
        2 => seen.handshake = true,
        _ => {
            seen.retry = true;
            // Token and a 16-byte integrity tag, to the end of the datagram.
            return (body.len() >= 16).then_some(packet.len());
        }
    }
    if kind == 0 {
        let (token_len, size) = varint(packet.get(at..)?)?;
        at = at.checked_add(size)?.checked_add(usize::try_from(token_len).ok()?)?;
    }
    let (len, size) = varint(packet.get(at..)?)?;
    let end = at.checked_add(size)?.checked_add(usize::try_from(len).ok()?)?;
    (end <= packet.len()).then_some(end)
}

/// A variable-length integer and its size (RFC 9000, section 16).
fn varint(bytes: &[u8]) -> Option<(u64, usize)> {
    let first = *bytes.first()?;
    let size = 1usize << (first >> 6);
    let rest = bytes.get(1..size)?;
    let value = rest.iter().fold(u64::from(first & 0x3f), |v, b| v << 8 | u64::from(*b));
    Some((value, size))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    /// A long-header packet of `kind` (version 1 numbering) with `body` bytes.
    pub(crate) fn long(version: u32, kind: u8, body: usize) -> Vec<u8> {
        let bits = if version == V2 { (kind + 1) & 3 } else { kind };
        let mut p = vec![0xc0 | bits << 4];
        p.extend(version.to_be_bytes());
        p.extend([8, 1, 2, 3, 4, 5, 6, 7, 8, 4, 9, 9, 9, 9]);
        if kind == 0 {
            p.extend([3, 0xaa, 0xbb, 0xcc]);
        }
        if kind != 3 {
            p.extend((0x4000 | body as u16).to_be_bytes());
        }
        p.resize(p.len() + body, 0x55);
        p
    }

    #[test]
    fn long_headers_of_both_versions() {
        for version in [V1, V2] {
            let of = |kind| inspect(&long(version, kind, 40)).unwrap();
            assert!(of(0).initial && of(0).long && !of(0).short);
            assert!(of(1).zero_rtt && of(2).handshake && of(3).retry);
        }
        let mut greased = long(V1, 0, 40);
        greased[0] &= !0x40;
        assert!(inspect(&greased).unwrap().initial);
    }

    #[test]
    fn coalesced_packets() {
        let mut d = long(V1, 0, 40);
        d.extend(long(V1, 2, 50));
        d.extend([0x40; 30]);
        let seen = inspect(&d).unwrap();
        assert!(seen.initial && seen.handshake && seen.short);
        // Zero padding after the packet.
        let mut d = long(V2, 0, 40);
        d.extend([0; 1000]);
        assert!(inspect(&d).unwrap().initial);
    }

    #[test]
    fn version_negotiation_and_unknown_versions() {
        let mut vn = vec![0x80, 0, 0, 0, 0, 1, 7, 1, 8];
        assert_eq!(inspect(&vn), None, "no version offered");
        vn.extend(V1.to_be_bytes());
        assert!(inspect(&vn).unwrap().version_negotiation);
        vn.push(0);
        assert_eq!(inspect(&vn), None);
        // Connection IDs of 255 bytes are legal where only RFC 8999 holds ...
        let mut p = vec![0xc0, 0xfa, 0xce, 0xb0, 0x0c, 255];
        p.resize(p.len() + 255, 3);
        p.push(255);
        p.resize(p.len() + 255, 4);
        assert!(inspect(&p).unwrap().unknown_version);
        assert_eq!(inspect(&p[..p.len() - 1]), None);
        // ... and not in version 1.
        p[1..5].copy_from_slice(&V1.to_be_bytes());
        assert_eq!(inspect(&p), None);
    }

    #[test]
    fn lengths_beyond_the_datagram_are_not_quic() {
        let good = long(V1, 0, 40);
        for cut in 0..good.len() {
            assert_eq!(inspect(&good[..cut]), None, "cut at {cut}");
        }
        let mut huge = long(V1, 0, 40);
        huge[19] = 0xff;
        assert_eq!(inspect(&huge), None);
    }

    #[test]
    fn short_headers() {
        assert!(inspect(&[0x40; 33]).unwrap().short);
        assert!(inspect(&[0x00; 33]).unwrap().short, "greased fixed bit");
        assert_eq!(inspect(&[0x40; 20]), None);
        assert_eq!(inspect(&[]), None);
    }
}
