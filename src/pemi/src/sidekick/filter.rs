// SPDX-License-Identifier: GPL-2.0-or-later
//! The tap's filter: which packets the kernel shows it, as classic BPF.

use libc::sock_filter;

// Of linux/bpf_common.h.
const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_AT_X: u16 = 0x48;
/// X becomes four times the lower half of a byte: the length of an IPv4 header.
const HEADER_LEN: u16 = 0xb1;
const IF_EQUAL: u16 = 0x15;
const IF_ANY_BIT: u16 = 0x45;
const SKIP: u16 = 0x05;
const RETURN: u16 = 0x06;

// Of linux/filter.h: places that are no bytes of the frame, and where its IP header is.
const AD: u32 = -0x1000_i32 as u32;
const PROTOCOL: u32 = AD;
const PACKET_TYPE: u32 = AD + 4;
const DEVICE: u32 = AD + 8;
const IP: u32 = -0x10_0000_i32 as u32;

const UDP: u32 = 17;
const FRAGMENT: u32 = 0x3fff;
const WHOLE: u32 = u32::MAX;

/// Values in one list, so that no jump is longer than 255.
const MOST: usize = 128;

/// UDP from one of `flows`, by device and source port, to this host or to be forwarded
/// by it; no fragments, and no IPv6 extension headers. (Which flow it is in the end
/// is looked at again; any device goes with any port here.)
pub fn program(flows: &[(u32, u16)]) -> Vec<sock_filter> {
    let mut program = Vec::with_capacity(2 * flows.len() + 32);
    program.extend_from_slice(&TO_US);
    one_of(&mut program, &mut flows.iter().map(|(device, _)| *device));
    program.extend_from_slice(&PORT);
    one_of(&mut program, &mut flows.iter().map(|(_, port)| u32::from(*port)));
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

/// UDP and no fragment; then its source port is loaded.
const PORT: [sock_filter; 17] = [
    op(LOAD_HALF, PROTOCOL),
    jump(IF_EQUAL, libc::ETH_P_IP as u32, 2, 0),
    jump(IF_EQUAL, libc::ETH_P_IPV6 as u32, 10, 0),
    op(RETURN, 0),
    // IPv4
    op(LOAD_BYTE, IP + 9),
    only_if(UDP),
    op(RETURN, 0),
    op(LOAD_HALF, IP + 6),
    jump(IF_ANY_BIT, FRAGMENT, 0, 1),
    op(RETURN, 0),
    op(HEADER_LEN, IP),
    op(LOAD_HALF_AT_X, IP),
    op(SKIP, 4),
    // IPv6
    op(LOAD_BYTE, IP + 6),
    only_if(UDP),
    op(RETURN, 0),
    op(LOAD_HALF, IP + 40),
];

/// Nothing of it goes on unless what was loaded is one of `values`.
fn one_of(program: &mut Vec<sock_filter>, values: &mut dyn Iterator<Item = u32>) {
    let mut each: Vec<u32> = Vec::new();
    for value in values.take(MOST) {
        if !each.contains(&value) {
            each.push(value);
        }
    }
    let past = (1..=each.len() as u8).rev();
    program.extend(each.iter().zip(past).map(|(value, past)| jump(IF_EQUAL, *value, past, 0)));
    program.push(op(RETURN, 0));
}

const fn op(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

/// As many more instructions on if it holds, and if it does not.
const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Past the next instruction if what was loaded is this.
const fn only_if(value: u32) -> sock_filter {
    jump(IF_EQUAL, value, 1, 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel does with a program.
    fn run(program: &[sock_filter], frame: &[u8], device: u32, packet_type: u32) -> bool {
        let byte = |at: u32| frame.get((at.wrapping_sub(IP) + 14) as usize).copied();
        let half = |at| Some(u32::from(byte(at)?) << 8 | u32::from(byte(at + 1)?));
        let load = |code, at| match (code, at) {
            (LOAD_WORD, PACKET_TYPE) => Some(packet_type),
            (LOAD_WORD, DEVICE) => Some(device),
            (LOAD_HALF, PROTOCOL) => Some(u32::from(frame[12]) << 8 | u32::from(frame[13])),
            (LOAD_BYTE, at) => byte(at).map(u32::from),
            (_, at) => half(at),
        };
        let (mut at, mut a, mut x) = (0, 0, 0);
        loop {
            let sock_filter { code, jt, jf, k } = program[at];
            at += 1;
            let loaded = match code {
                RETURN => return k > 0,
                SKIP => {
                    at += k as usize;
                    continue;
                }
                IF_EQUAL | IF_ANY_BIT => {
                    let holds = if code == IF_EQUAL { a == k } else { a & k != 0 };
                    at += usize::from(if holds { jt } else { jf });
                    continue;
                }
                HEADER_LEN => {
                    x = byte(k).map_or(0, |byte| u32::from(byte & 15) * 4);
                    continue;
                }
                LOAD_HALF_AT_X => half(k + x),
                code => load(code, k),
            };
            // A load beyond the end ends it.
            let Some(loaded) = loaded else { return false };
            a = loaded;
        }
    }

    fn v4(port: u16, options: usize) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45 + options as u8, 0, 0, 0, 0, 1, 0x40, 0, 63, 17, 0, 0]);
        frame.extend(vec![7; 8 + options * 4]);
        frame.extend(port.to_be_bytes());
        frame.extend([1, 187, 0, 8, 0, 0]);
        frame
    }

    fn v6(port: u16) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 63]);
        frame.extend([7; 32]);
        frame.extend(port.to_be_bytes());
        frame.extend([1, 187, 0, 8, 0, 0]);
        frame
    }

    #[test]
    fn packets_of_sessions_and_no_others() {
        let program = program(&[(3, 50_000), (4, 50_001), (3, 50_000)]);
        for frame in [v4(50_000, 0), v4(50_001, 0), v4(50_000, 2), v6(50_000), v6(50_001)] {
            assert!(run(&program, &frame, 3, 0));
            assert!(run(&program, &frame, 4, 0));
            assert!(!run(&program, &frame, 5, 0), "another device");
            assert!(!run(&program, &frame, 3, 4), "outgoing");
        }
        for frame in [v4(50_002, 0), v6(50_002)] {
            assert!(!run(&program, &frame, 3, 0), "another port");
        }
        for (at, byte) in [(13, 6), (14 + 9, 6), (14 + 6, 0x20), (14 + 7, 1)] {
            let mut frame = v4(50_000, 0);
            frame[at] = byte;
            assert!(!run(&program, &frame, 3, 0), "ARP, TCP, the first fragment, a later one");
        }
        let mut frame = v6(50_000);
        frame[14 + 6] = 44;
        assert!(!run(&program, &frame, 3, 0), "a fragment");
        assert!(!run(&program, &v4(50_000, 0)[..30], 3, 0), "cut off");
    }

    #[test]
    fn as_many_as_there_may_be() {
        let flows: Vec<(u32, u16)> = (0..64).map(|n| (n + 1, 50_000 + n as u16)).collect();
        let program = program(&flows);
        for (device, port) in &flows {
            assert!(run(&program, &v4(*port, 0), *device, 0));
        }
        assert!(!run(&program, &v4(50_064, 0), 64, 0));
        assert!(!run(&program, &v4(50_000, 0), 65, 0));
        assert!(!run(&super::program(&[]), &v4(50_000, 0), 1, 0));
    }
}
