// SPDX-License-Identifier: GPL-2.0-or-later
//! IPv4 packets under any sender's name, as fast as one thread can send them.

use std::io;
use std::net::{SocketAddr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use super::Net;
use super::packet::whole_packet;

/// Between two bursts of a flood.
const BEAT: Duration = Duration::from_millis(2);
/// Where the sender is in an IPv4 packet, its port, and the checksum of UDP.
const SOURCE: usize = 12;
const SOURCE_PORT: usize = 20;
const DESTINATION_PORT: usize = 22;
const CHECKSUM: std::ops::Range<usize> = 26..28;

/// Sends the same datagram under many names.
pub struct Spoofer {
    fd: OwnedFd,
    packet: Vec<u8>,
    to: libc::sockaddr_in,
}

impl Spoofer {
    /// From a namespace.
    pub fn new(net: &Net, part: &str, to: SocketAddrV4, payload: &[u8]) -> Spoofer {
        let nobody = SocketAddr::from(([0, 0, 0, 0], 0));
        let mut packet = whole_packet(nobody, to.into(), payload);
        // None: it would be another one for each sender.
        packet[CHECKSUM].fill(0);
        let fd = net.inside(part, || {
            // SAFETY: no pointers; the descriptor is nobody else's.
            unsafe {
                let fd = libc::socket(
                    libc::AF_INET,
                    libc::SOCK_RAW | libc::SOCK_CLOEXEC,
                    libc::IPPROTO_RAW,
                );
                assert!(fd >= 0, "{}", io::Error::last_os_error());
                OwnedFd::from_raw_fd(fd)
            }
        });
        // SAFETY: all bytes zero are an address.
        let mut address: libc::sockaddr_in = unsafe { std::mem::zeroed() };
        address.sin_family = libc::AF_INET as u16;
        address.sin_addr.s_addr = u32::from(*to.ip()).to_be();
        Spoofer { fd, packet, to: address }
    }

    /// Sends it once, to this port.
    pub fn send(&mut self, from: SocketAddrV4, port: u16) {
        self.packet[SOURCE..SOURCE + 4].copy_from_slice(&from.ip().octets());
        self.packet[SOURCE_PORT..SOURCE_PORT + 2].copy_from_slice(&from.port().to_be_bytes());
        self.packet[DESTINATION_PORT..DESTINATION_PORT + 2].copy_from_slice(&port.to_be_bytes());
        // SAFETY: packet and address live across the call, with their sizes. One that
        // there is no room for is lost, as on a wire.
        unsafe {
            libc::sendto(
                self.fd.as_raw_fd(),
                self.packet.as_ptr().cast(),
                self.packet.len(),
                0,
                (&raw const self.to).cast(),
                libc::socklen_t::try_from(size_of_val(&self.to)).unwrap(),
            );
        }
    }
}

/// Does something `rate` times a second, or as often as the machine allows, with the
/// number of the time; how often it was.
pub fn flood(rate: u32, lasting: Duration, mut once: impl FnMut(u32)) -> u32 {
    let start = Instant::now();
    let mut done = 0;
    while start.elapsed() < lasting {
        let due = (start.elapsed().as_secs_f64() * f64::from(rate)) as u32;
        // A machine that stood still does not catch up all at once.
        let until = due.min(done + rate / 50).max(done);
        (done..until).for_each(&mut once);
        done = until;
        thread::sleep(BEAT);
    }
    done
}
