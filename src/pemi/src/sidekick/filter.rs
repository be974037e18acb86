// SPDX-License-Identifier: GPL-2.0-or-later
//! The tap's filter: which packets the kernel shows it, as classic BPF.

use libc::sock_filter;

use crate::sys::bpf::{
    DEVICE, LOAD_WORD, ONLY_UDP, PACKET_TYPE, RETURN, SOURCE_PORT, WHOLE, one_of, only_if, op,
};

/// UDP from one of `flows`, by device and source port, to this host or to be forwarded
/// by it; no fragments, and no IPv6 extension headers. (Which flow it is in the end
/// is looked at again; any device goes with any port here.)
pub fn program(flows: &[(u32, u16)]) -> Vec<sock_filter> {
    let mut program = Vec::with_capacity(2 * flows.len() + 32);
    program.extend_from_slice(&TO_US);
    one_of(&mut program, flows.iter().map(|(device, _)| *device));
    program.extend_from_slice(&ONLY_UDP);
    program.push(SOURCE_PORT);
    one_of(&mut program, flows.iter().map(|(_, port)| u32::from(*port)));
    program.push(op(RETURN, WHOLE));
    program
}

/// To this host or to be forwarded by it; then its device is loaded.
const TO_US: [sock_filter; 4] = [
    op(LOAD_WORD, PACKET_TYPE),
    only_if(libc::PACKET_HOST as u32),
    op(RETURN, 0),
    op(LOAD_WORD, DEVICE),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::bpf::tests::{About, run, v4, v6};

    /// Of a packet that comes in by this device.
    fn from(device: u32) -> About {
        About { device, ..About::default() }
    }

    #[test]
    fn packets_of_sessions_and_no_others() {
        let program = program(&[(3, 50_000), (4, 50_001), (3, 50_000)]);
        let [first, second, third] = [(50_000, 443), (50_001, 443), (50_002, 443)];
        for frame in [v4(first, 0), v4(second, 0), v4(first, 2), v6(first), v6(second)] {
            assert!(run(&program, &frame, from(3)));
            assert!(run(&program, &frame, from(4)));
            assert!(!run(&program, &frame, from(5)), "another device");
            assert!(!run(&program, &frame, About { packet_type: 4, ..from(3) }), "outgoing");
        }
        for frame in [v4(third, 0), v6(third)] {
            assert!(!run(&program, &frame, from(3)), "another port");
        }
        for (at, byte) in [(13, 6), (14 + 9, 6), (14 + 6, 0x20), (14 + 7, 1)] {
            let mut frame = v4(first, 0);
            frame[at] = byte;
            assert!(!run(&program, &frame, from(3)), "ARP, TCP, the first fragment, a later one");
        }
        let mut frame = v6(first);
        frame[14 + 6] = 44;
        assert!(!run(&program, &frame, from(3)), "a fragment");
        assert!(!run(&program, &v4(first, 0)[..30], from(3)), "cut off");
    }

    #[test]
    fn as_many_as_there_may_be() {
        let flows: Vec<(u32, u16)> = (0..64).map(|n| (n + 1, 50_000 + n as u16)).collect();
        let program = program(&flows);
        for (device, port) in &flows {
            assert!(run(&program, &v4((*port, 443), 0), from(*device)));
        }
        assert!(!run(&program, &v4((50_064, 443), 0), from(64)));
        assert!(!run(&program, &v4((50_000, 443), 0), from(65)));
        assert!(!run(&super::program(&[]), &v4((50_000, 443), 0), from(1)));
    }
}
