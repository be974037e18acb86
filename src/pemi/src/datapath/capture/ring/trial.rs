// SPDX-License-Identifier: GPL-2.0-or-later
//! Tries whether a ring shows what leaves by its device, and as it is, with a packet of our own.
//! There are devices that send past the kernel's copies, and processors whose caches show
//! the same memory differently to the kernel and to us.

use std::io;
use std::os::fd::AsFd;

use libc::sock_filter;
use pemi_engine::{MS, Nanos};

use crate::sys::bpf::{IF_ANY_BIT, LOAD_WORD, MARK, PACKET_TYPE, RETURN, WHOLE, jump, only_if, op};
use crate::sys::packet;
use crate::sys::packet_ring::PacketRing;
use crate::sys::poll::{self, Interest};

/// How long a packet may take to leave (chosen: longer than a queue of the device holds it).
const LEAVES: Nanos = 50 * MS;
/// So often it is sent: a full queue drops one.
const TRIES: usize = 3;
/// As long as most packets to clients: many lines of a cache.
const LENGTH: usize = 1200;
const HEADER: usize = 20;
/// The protocol for experiments and tests of RFC 3692.
const TEST: u8 = 253;
/// The "IPv4 dummy address" of RFC 7600, which nobody has and nobody answers to.
const NOBODY: [u8; 4] = [192, 0, 0, 8];

/// What the ring has to let pass meanwhile: what we send.
pub(super) fn program(mark: u32) -> Vec<sock_filter> {
    vec![
        op(LOAD_WORD, PACKET_TYPE),
        only_if(libc::PACKET_OUTGOING as u32),
        op(RETURN, 0),
        op(LOAD_WORD, MARK),
        jump(IF_ANY_BIT, mark, 1, 0),
        op(RETURN, 0),
        op(RETURN, WHOLE),
    ]
}

/// Whether a packet that is sent by the ring's device is in the ring. Where none can be sent nothing
/// is known against it.
pub(super) fn shows(ring: &mut PacketRing, mark: u32) -> io::Result<bool> {
    let sent = packet();
    for _ in 0..TRIES {
        if let Err(error) = packet::send_to_itself(ring.as_fd(), mark, &sent) {
            log::debug!("a ring cannot be tried: {error}");
            return Ok(true);
        }
        loop {
            while let Some(frame) = ring.peek() {
                let same = frame.whole && ring.bytes() == sent;
                ring.release();
                if same {
                    return Ok(true);
                }
            }
            let mut interests = [Interest::read(ring)];
            poll::wait(&mut interests, Some(LEAVES))?;
            if !interests[0].is_ready() {
                break;
            }
        }
    }
    Ok(false)
}

/// One from nobody to nobody, which no router passes on.
fn packet() -> Vec<u8> {
    let mut packet = vec![0x45, 0, (LENGTH >> 8) as u8, LENGTH as u8, 0, 0, 0x40, 0, 1, TEST, 0, 0];
    packet.extend([NOBODY, NOBODY].concat());
    packet.extend((HEADER..LENGTH).map(|n| (n * 7) as u8));
    packet
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::bpf::tests::{About, run, v4};

    const OURS: u32 = 0x2000_0000;

    #[test]
    fn a_ring_is_tried_with_what_we_send() {
        let mut frame = vec![2; 12];
        frame.extend([8, 0]);
        frame.extend(packet());
        let about =
            |packet_type: i32, mark| About { device: 3, packet_type: packet_type as u32, mark };
        let out = i32::from(libc::PACKET_OUTGOING);
        for (frame, about, seen) in [
            (&frame, about(out, OURS), true),
            (&frame, about(0, OURS), false),
            (&frame, about(out, 0), false),
            (&v4((443, 50_000), 0), about(out, 0), false),
        ] {
            assert_eq!(run(&program(OURS), frame, about), seen, "{about:?}");
        }
        assert_eq!(packet().len(), LENGTH);
    }
}
