// SPDX-License-Identifier: GPL-2.0-or-later
//! The yardstick: takes packets from an NFQUEUE by the batch, as the daemon
//! does, and accepts every one without looking. `accept-all QUEUE [BYTES]`: the kernel
//! hands over so many bytes of each, all if it is not told. Ends with SIGTERM.
#![allow(unsafe_code)]

use std::io::{Error, Result};

/// Datagrams from the kernel at a time, and room for each.
const BATCH: usize = 16;
const SLOT: usize = 65536 + 4096;
const QUEUE_LEN: u32 = 4096;
/// Bytes of a packet: more than the largest has.
const WHOLE: u32 = 0xffff;
const PACKET_MESSAGE: u16 = (libc::NFNL_SUBSYS_QUEUE << 8) as u16 | libc::NFQNL_MSG_PACKET as u16;

fn check(result: isize) -> Result<usize> {
    usize::try_from(result).map_err(|_| Error::last_os_error())
}

/// Appends a message about `queue` with `attributes` to `out`.
fn message(out: &mut Vec<u8>, kind: i32, queue: u16, attributes: &[(i32, &[u8])]) {
    let start = out.len();
    out.extend([0; 4]);
    out.extend(((libc::NFNL_SUBSYS_QUEUE << 8) as u16 | kind as u16).to_ne_bytes());
    out.extend((libc::NLM_F_REQUEST as u16).to_ne_bytes());
    out.extend([0; 8]);
    out.extend([libc::AF_UNSPEC as u8, 0]);
    out.extend(queue.to_be_bytes());
    for (kind, value) in attributes {
        out.extend((value.len() as u16 + 4).to_ne_bytes());
        out.extend((*kind as u16).to_ne_bytes());
        out.extend(*value);
        out.resize(out.len().next_multiple_of(4), 0);
    }
    let len = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&len.to_ne_bytes());
}

fn open(queue: u16, copied: u32) -> Result<i32> {
    // SAFETY: no pointers but those to live values of the lengths given.
    let socket = unsafe {
        let socket = libc::socket(libc::AF_NETLINK, libc::SOCK_RAW, libc::NETLINK_NETFILTER);
        check(socket as isize)?;
        for (level, option, value) in [
            (libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, 8 << 20),
            (libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, 1),
        ] {
            let value: libc::c_int = value;
            let at = (&raw const value).cast();
            check(libc::setsockopt(socket, level, option, at, 4) as isize)?;
        }
        socket
    };
    let fail_open = (libc::NFQA_CFG_F_FAIL_OPEN as u32).to_be_bytes();
    let [a, b, c, d] = copied.to_be_bytes();
    let mut bind = Vec::new();
    let attributes: [(i32, &[u8]); 5] = [
        (libc::NFQA_CFG_CMD, &[libc::NFQNL_CFG_CMD_BIND as u8, 0, 0, 0]),
        (libc::NFQA_CFG_PARAMS, &[a, b, c, d, libc::NFQNL_COPY_PACKET as u8]),
        (libc::NFQA_CFG_QUEUE_MAXLEN, &QUEUE_LEN.to_be_bytes()),
        (libc::NFQA_CFG_MASK, &fail_open),
        (libc::NFQA_CFG_FLAGS, &fail_open),
    ];
    message(&mut bind, libc::NFQNL_MSG_CONFIG, queue, &attributes);
    send(socket, &bind)?;
    Ok(socket)
}

fn send(socket: i32, messages: &[u8]) -> Result<()> {
    // SAFETY: pointer and length are those of a live slice.
    check(unsafe { libc::send(socket, messages.as_ptr().cast(), messages.len(), 0) }).map(drop)
}

/// The ids of the packets in one datagram; the header is their first attribute.
fn ids(datagram: &[u8], mut each: impl FnMut([u8; 4])) {
    let mut rest = datagram;
    while let Some(header) = rest.first_chunk::<28>() {
        let len = u32::from_ne_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let kind = u16::from_ne_bytes([header[4], header[5]]);
        let attribute = u16::from_ne_bytes([header[22], header[23]]);
        if kind == PACKET_MESSAGE && attribute == libc::NFQA_PACKET_HDR as u16 {
            each([header[24], header[25], header[26], header[27]]);
        }
        rest = rest.get(len.max(16).next_multiple_of(4)..).unwrap_or_default();
    }
}

fn main() -> Result<()> {
    let queue = std::env::args().nth(1).and_then(|n| n.parse().ok());
    let queue: u16 = queue.ok_or_else(|| Error::other("accept-all QUEUE [BYTES]"))?;
    let copied = std::env::args().nth(2).and_then(|n| n.parse().ok());
    let socket = open(queue, copied.unwrap_or(WHOLE))?;
    let mut buffer = vec![0u8; BATCH * SLOT];
    let mut verdicts = Vec::new();
    eprintln!("ready");
    loop {
        // SAFETY: both are plain C structs for which all zeroes is valid.
        let (mut vectors, mut headers): ([libc::iovec; BATCH], [libc::mmsghdr; BATCH]) =
            unsafe { std::mem::zeroed() };
        for (n, chunk) in buffer.chunks_exact_mut(SLOT).enumerate() {
            vectors[n] = libc::iovec { iov_base: chunk.as_mut_ptr().cast(), iov_len: SLOT };
            headers[n].msg_hdr.msg_iov = &raw mut vectors[n];
            headers[n].msg_hdr.msg_iovlen = 1;
        }
        // SAFETY: each header points to one vector, which points to a part of
        // `buffer` of its own; all outlive the call.
        let got = check(unsafe {
            let flags = libc::MSG_WAITFORONE as _;
            let none = std::ptr::null_mut();
            libc::recvmmsg(socket, headers.as_mut_ptr(), BATCH as u32, flags, none) as isize
        })?;
        verdicts.clear();
        for n in 0..got {
            let len = headers[n].msg_len as usize;
            ids(&buffer[n * SLOT..n * SLOT + len], |id| {
                let [a, b, c, d] = id;
                let verdict = [0, 0, 0, libc::NF_ACCEPT as u8, a, b, c, d];
                let attribute: [(i32, &[u8]); 1] = [(libc::NFQA_VERDICT_HDR, &verdict)];
                message(&mut verdicts, libc::NFQNL_MSG_VERDICT, queue, &attribute);
            });
        }
        if !verdicts.is_empty() {
            send(socket, &verdicts)?;
        }
    }
}
