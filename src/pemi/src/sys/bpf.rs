// SPDX-License-Identifier: GPL-2.0-or-later
//! Classic BPF: the pieces of which the filters of packet sockets are made.

use libc::sock_filter;

// Of linux/bpf_common.h.
pub(crate) const LOAD_WORD: u16 = 0x20;
const LOAD_HALF: u16 = 0x28;
const LOAD_BYTE: u16 = 0x30;
const LOAD_HALF_AT_X: u16 = 0x48;
const SET_X: u16 = 0x01;
/// X becomes four times the lower half of a byte: the length of an IPv4 header.
const HEADER_LEN: u16 = 0xb1;
const IF_EQUAL: u16 = 0x15;
pub(crate) const IF_ANY_BIT: u16 = 0x45;
const SKIP: u16 = 0x05;
const AND: u16 = 0x54;
/// What is left of it after a division.
const REMAINDER: u16 = 0x94;
pub(crate) const RETURN: u16 = 0x06;

// Of linux/filter.h: places that are no bytes of the frame, and where its IP header is.
const AD: u32 = -0x1000_i32 as u32;
const PROTOCOL: u32 = AD;
pub(crate) const PACKET_TYPE: u32 = AD + 4;
pub(crate) const DEVICE: u32 = AD + 8;
pub(crate) const MARK: u32 = AD + 20;
const IP: u32 = -0x10_0000_i32 as u32;

const UDP: u32 = 17;
const FRAGMENT: u32 = 0x3fff;
const IPV6_HEADER: u32 = 40;
/// How much of a packet is shown: all of it.
pub(crate) const WHOLE: u32 = u32::MAX;

/// Values in one list, so that no jump is longer than 255.
pub(crate) const MOST: usize = 128;

/// UDP and no fragment, no IPv6 with extension headers; X is then where the UDP header begins.
pub(crate) const ONLY_UDP: [sock_filter; 16] = [
    op(LOAD_HALF, PROTOCOL),
    jump(IF_EQUAL, libc::ETH_P_IP as u32, 2, 0),
    jump(IF_EQUAL, libc::ETH_P_IPV6 as u32, 9, 0),
    op(RETURN, 0),
    // IPv4
    op(LOAD_BYTE, IP + 9),
    only_if(UDP),
    op(RETURN, 0),
    op(LOAD_HALF, IP + 6),
    jump(IF_ANY_BIT, FRAGMENT, 0, 1),
    op(RETURN, 0),
    op(HEADER_LEN, IP),
    op(SKIP, 4),
    // IPv6
    op(LOAD_BYTE, IP + 6),
    only_if(UDP),
    op(RETURN, 0),
    op(SET_X, IPV6_HEADER),
];

/// Behind [`ONLY_UDP`]: loads the port of the sender.
pub(crate) const SOURCE_PORT: sock_filter = op(LOAD_HALF_AT_X, IP);
/// Behind [`ONLY_UDP`]: loads the port of the receiver.
pub(crate) const DESTINATION_PORT: sock_filter = op(LOAD_HALF_AT_X, IP + 2);

/// Behind [`ONLY_UDP`]: nothing of it goes on unless these bits at the end of the receiver's address,
/// as a number divided by `by`, leave `rest`.
pub(crate) fn receiver(bits: u8, by: u8, rest: u8) -> [sock_filter; 9] {
    [
        op(LOAD_HALF, PROTOCOL),
        jump(IF_EQUAL, libc::ETH_P_IP as u32, 0, 2),
        op(LOAD_BYTE, IP + 19),
        op(SKIP, 1),
        op(LOAD_BYTE, IP + 39),
        op(AND, bits.into()),
        op(REMAINDER, by.into()),
        only_if(rest.into()),
        op(RETURN, 0),
    ]
}

/// Nothing of it goes on unless what was loaded is one of `values`, of which no more than
/// [`MOST`] count.
pub(crate) fn one_of(program: &mut Vec<sock_filter>, values: impl Iterator<Item = u32>) {
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

/// An instruction without a jump.
pub(crate) const fn op(code: u16, k: u32) -> sock_filter {
    sock_filter { code, jt: 0, jf: 0, k }
}

/// As many more instructions on if it holds, and if it does not.
pub(crate) const fn jump(code: u16, k: u32, jt: u8, jf: u8) -> sock_filter {
    sock_filter { code, jt, jf, k }
}

/// Past the next instruction if what was loaded is this.
pub(crate) const fn only_if(value: u32) -> sock_filter {
    jump(IF_EQUAL, value, 1, 0)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// What the kernel knows of a frame beside its bytes.
    #[derive(Clone, Copy, Debug, Default)]
    pub struct About {
        pub device: u32,
        pub packet_type: u32,
        pub mark: u32,
    }

    /// What the kernel does with a program, for frames with an Ethernet header.
    pub fn run(program: &[sock_filter], frame: &[u8], about: About) -> bool {
        let byte = |at: u32| frame.get((at.wrapping_sub(IP) + 14) as usize).copied();
        let half = |at| Some(u32::from(byte(at)?) << 8 | u32::from(byte(at + 1)?));
        let load = |code, at| match (code, at) {
            (LOAD_WORD, PACKET_TYPE) => Some(about.packet_type),
            (LOAD_WORD, DEVICE) => Some(about.device),
            (LOAD_WORD, MARK) => Some(about.mark),
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
                SET_X => {
                    x = k;
                    continue;
                }
                AND | REMAINDER => {
                    a = if code == AND { a & k } else { a % k };
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

    /// A UDP packet between two ports, by IPv4 with so many words of options.
    pub fn v4((source, destination): (u16, u16), options: usize) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([8, 0, 0x45 + options as u8, 0, 0, 0, 0, 1, 0x40, 0, 63, 17, 0, 0]);
        frame.extend(vec![7; 8 + options * 4]);
        frame.extend(source.to_be_bytes());
        frame.extend(destination.to_be_bytes());
        frame.extend([0, 8, 0, 0]);
        frame
    }

    /// The same by IPv6.
    pub fn v6((source, destination): (u16, u16)) -> Vec<u8> {
        let mut frame = vec![2; 12];
        frame.extend([0x86, 0xdd, 0x60, 0, 0, 0, 0, 8, 17, 63]);
        frame.extend([7; 32]);
        frame.extend(source.to_be_bytes());
        frame.extend(destination.to_be_bytes());
        frame.extend([0, 8, 0, 0]);
        frame
    }
}
