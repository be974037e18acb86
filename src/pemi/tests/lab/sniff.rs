// SPDX-License-Identifier: GPL-2.0-or-later
//! What really is on a link, whoever it is for.

use std::ffi::CString;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use super::Net;

/// For all that any test sends in one go; the kernel counts a page a frame or so.
const BUFFER: libc::c_int = 64 << 20;
/// Enough for every header and the number of a datagram.
const SNAP: usize = 128;
const ICMP: u8 = 1;
const UDP: u8 = 17;
const ICMP_V6: u8 = 58;

/// A frame that came in.
#[derive(Debug)]
pub struct Frame {
    /// Of the IP packet.
    pub len: usize,
    pub kind: Kind,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Kind {
    Udp {
        from: (IpAddr, u16),
        to: (IpAddr, u16),
        payload: Vec<u8>,
    },
    /// Somebody is pinged.
    Echo,
    /// Somebody is looked for, by ARP or what IPv6 has for it.
    Neighbour(IpAddr),
    Other,
}

impl Frame {
    /// A UDP datagram from this address.
    pub fn is_from(&self, address: &str) -> bool {
        let address: IpAddr = address.parse().unwrap();
        matches!(&self.kind, Kind::Udp { from, .. } if from.0 == address)
    }
}

/// Collects what comes in by the device `eth0` of a namespace.
pub struct Sniffer {
    fd: OwnedFd,
}

impl Sniffer {
    pub fn new(net: &Net, part: &str) -> Sniffer {
        net.inside(part, || Sniffer::open().unwrap())
    }

    fn open() -> io::Result<Sniffer> {
        let name = CString::new("eth0").unwrap();
        let all = (libc::ETH_P_ALL as u16).to_be();
        // SAFETY: no pointers but to values that live across each call, with their sizes.
        unsafe {
            let fd = libc::socket(
                libc::AF_PACKET,
                libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC,
                i32::from(all),
            );
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            let fd = OwnedFd::from_raw_fd(fd);
            let size = libc::socklen_t::try_from(size_of::<libc::c_int>()).unwrap();
            let value: *const libc::c_int = &BUFFER;
            let level = libc::SOL_SOCKET;
            let set =
                libc::setsockopt(fd.as_raw_fd(), level, libc::SO_RCVBUFFORCE, value.cast(), size);
            let mut address: libc::sockaddr_ll = std::mem::zeroed();
            address.sll_family = libc::AF_PACKET as u16;
            address.sll_protocol = all;
            address.sll_ifindex = libc::if_nametoindex(name.as_ptr()).cast_signed();
            let size = libc::socklen_t::try_from(size_of_val(&address)).unwrap();
            let bound = libc::bind(fd.as_raw_fd(), (&raw const address).cast(), size);
            if set != 0 || bound != 0 {
                return Err(io::Error::last_os_error());
            }
            Ok(Sniffer { fd })
        }
    }

    /// What has come in since the last call.
    pub fn take(&self) -> Vec<Frame> {
        let mut frames = Vec::new();
        let mut buffer = [0; SNAP];
        loop {
            // SAFETY: the pointers are to values that live across the call, with their sizes.
            let (len, outgoing) = unsafe {
                let mut from: libc::sockaddr_ll = std::mem::zeroed();
                let mut size = libc::socklen_t::try_from(size_of_val(&from)).unwrap();
                let len = libc::recvfrom(
                    self.fd.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    SNAP,
                    libc::MSG_TRUNC,
                    (&raw mut from).cast(),
                    &raw mut size,
                );
                (len, from.sll_pkttype == libc::PACKET_OUTGOING)
            };
            let Ok(len) = usize::try_from(len) else { return frames };
            if !outgoing {
                let kind = read(&buffer[..len.min(SNAP)]).unwrap_or(Kind::Other);
                frames.push(Frame { len: len.saturating_sub(14), kind });
            }
        }
    }
}

/// The kind of an Ethernet frame; `None` if it is nothing known here.
fn read(frame: &[u8]) -> Option<Kind> {
    let packet = frame.get(14..)?;
    let (protocol, from, to, body) = match (frame[12], frame[13]) {
        (8, 6) => return Some(Kind::Neighbour(v4(packet, 24)?)),
        (8, 0) => (packet[9], v4(packet, 12)?, v4(packet, 16)?, packet.get(20..)?),
        (0x86, 0xdd) => (packet[6], v6(packet, 8)?, v6(packet, 24)?, packet.get(40..)?),
        _ => return None,
    };
    match (protocol, *body.first()?) {
        (ICMP, 8) | (ICMP_V6, 128) => Some(Kind::Echo),
        (ICMP_V6, 135) => Some(Kind::Neighbour(v6(body, 8)?)),
        (UDP, _) => {
            let port = |at: usize| Some(u16::from_be_bytes(*body.get(at..)?.first_chunk()?));
            let payload = body.get(8..)?.to_vec();
            Some(Kind::Udp { from: (from, port(0)?), to: (to, port(2)?), payload })
        }
        _ => None,
    }
}

fn v4(bytes: &[u8], at: usize) -> Option<IpAddr> {
    Some(Ipv4Addr::from(*bytes.get(at..)?.first_chunk::<4>()?).into())
}

fn v6(bytes: &[u8], at: usize) -> Option<IpAddr> {
    Some(Ipv6Addr::from(*bytes.get(at..)?.first_chunk::<16>()?).into())
}
