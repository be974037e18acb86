// SPDX-License-Identifier: GPL-2.0-or-later
//! Network interfaces through packet sockets (packet(7)), many frames a call.
#![allow(unsafe_code)]

use std::ffi::CString;
use std::io;
use std::mem::size_of;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::ptr;

use anyhow::{Context, Result, bail};

use crate::Nanos;
use crate::frame::{VNET_BYTES, VlanTag};
use crate::sched::{check, monotonic, nanos, realtime};

/// Frames a call takes or gives at most.
pub const BATCH: usize = 32;
/// The largest frame that offloads put together, with its link header.
const SLOT_BYTES: usize = VNET_BYTES + 14 + 65_535;
const SOCKET_BUFFER_BYTES: libc::c_int = 64 << 20;
/// Room for a time stamp and a `tpacket_auxdata`, in words for alignment.
const CONTROL_WORDS: usize = 16;

/// An interface, opened for all its frames.
#[derive(Debug)]
pub struct Port {
    fd: OwnedFd,
    name: String,
    index: u32,
    mtu: u32,
    slots: Vec<u8>,
    controls: Vec<[u64; CONTROL_WORDS]>,
    socket_dropped: u64,
}

/// A received frame.
#[derive(Debug)]
pub struct Received<'a> {
    /// The kernel's offload header ([`VNET_BYTES`]) and the frame.
    pub bytes: &'a [u8],
    /// The tag that the kernel has taken out.
    pub tag: Option<VlanTag>,
    /// When it arrived, on CLOCK_MONOTONIC.
    pub at: Nanos,
}

impl Port {
    /// Opens an interface by its name; needs CAP_NET_RAW.
    pub fn open(name: &str) -> Result<Port> {
        let text = CString::new(name).context("an interface name has no zero byte")?;
        // SAFETY: `text` is a C string.
        let index = unsafe { libc::if_nametoindex(text.as_ptr()) };
        if index == 0 {
            bail!("interface {name}: {}", io::Error::last_os_error());
        }
        Port::open_index(name, index).with_context(|| format!("interface {name}"))
    }

    fn open_index(name: &str, index: u32) -> Result<Port> {
        let kind = libc::SOCK_RAW | libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers; the descriptor is new and owned by nobody else.
        // Protocol 0: nothing arrives before the socket is bound.
        let fd = unsafe {
            let fd = check(libc::socket(libc::AF_PACKET, kind, 0))
                .context("cannot open a packet socket (this needs root)")?;
            OwnedFd::from_raw_fd(fd)
        };
        // What this program sends must not come back to it.
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_IGNORE_OUTGOING, &1)
            .context("PACKET_IGNORE_OUTGOING (Linux 4.20)")?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_VNET_HDR, &1).context("PACKET_VNET_HDR")?;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_AUXDATA, &1).context("PACKET_AUXDATA")?;
        set_option(&fd, libc::SOL_SOCKET, libc::SO_TIMESTAMPNS, &1).context("SO_TIMESTAMPNS")?;
        for option in [libc::SO_RCVBUFFORCE, libc::SO_SNDBUFFORCE] {
            set_option(&fd, libc::SOL_SOCKET, option, &SOCKET_BUFFER_BYTES)
                .context("socket buffers (this needs root)")?;
        }
        // SAFETY: integers only, for which zero is valid.
        let mut request: libc::packet_mreq = unsafe { std::mem::zeroed() };
        request.mr_ifindex = index as libc::c_int;
        request.mr_type = libc::PACKET_MR_PROMISC as libc::c_ushort;
        set_option(&fd, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &request)
            .context("promiscuous mode")?;
        let mtu = mtu(&fd, name)?;
        bind(&fd, index).context("bind")?;
        Ok(Port {
            fd,
            name: name.to_owned(),
            index,
            mtu,
            slots: vec![0; BATCH * SLOT_BYTES],
            controls: vec![[0; CONTROL_WORDS]; BATCH],
            socket_dropped: 0,
        })
    }

    /// The interface's name when it was opened.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The largest IP packet, in bytes.
    pub fn mtu(&self) -> u32 {
        self.mtu
    }

    /// The interface has not been deleted or moved to another namespace.
    pub fn exists(&self) -> bool {
        let mut name = [0; libc::IF_NAMESIZE];
        // SAFETY: `name` has the IF_NAMESIZE bytes that the call may write.
        !unsafe { libc::if_indextoname(self.index, name.as_mut_ptr()) }.is_null()
    }

    /// Gives up to [`BATCH`] waiting frames to `take`; their number.
    ///
    /// Frames carry the kernel's time of arrival: what passes until this process
    /// runs is then part of the emulated delay and not added to it.
    pub fn receive(&mut self, mut take: impl FnMut(Received)) -> io::Result<usize> {
        let slots = self.slots.as_mut_ptr();
        let mut parts: [libc::iovec; BATCH] = std::array::from_fn(|slot| libc::iovec {
            // SAFETY: `slots` has BATCH * SLOT_BYTES bytes.
            iov_base: unsafe { slots.add(slot * SLOT_BYTES) }.cast(),
            iov_len: SLOT_BYTES,
        });
        let parts = parts.as_mut_ptr();
        let controls = self.controls.as_mut_ptr();
        let mut messages: [libc::mmsghdr; BATCH] = std::array::from_fn(|slot| {
            // SAFETY: `parts` and `controls` have BATCH entries.
            let (part, control) = unsafe { (parts.add(slot), controls.add(slot)) };
            let mut message = message(part);
            message.msg_hdr.msg_control = control.cast();
            message.msg_hdr.msg_controllen = size_of::<[u64; CONTROL_WORDS]>() as _;
            message
        });
        // SAFETY: each message points to a part and a control buffer of its own,
        // which live in `self` and on this stack until the end of this function.
        let count = check(unsafe {
            libc::recvmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                BATCH as libc::c_uint,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        })? as usize;
        let now = monotonic();
        let to_monotonic = realtime().wrapping_sub(now);
        for (slot, message) in messages[..count].iter().enumerate() {
            let (stamp, tag) = ancillary(&message.msg_hdr);
            // A step of the real-time clock must not send a frame far away.
            let at = stamp
                .map_or(now, |stamp| stamp.wrapping_sub(to_monotonic))
                .clamp(now.saturating_sub(1_000_000_000), now);
            let length = (message.msg_len as usize).min(SLOT_BYTES);
            if length < VNET_BYTES {
                continue;
            }
            // SAFETY: the kernel has written `length` bytes to this slot, which no
            // mutable reference points to.
            let bytes = unsafe { std::slice::from_raw_parts(slots.add(slot * SLOT_BYTES), length) };
            take(Received { bytes, tag, at });
        }
        Ok(count)
    }

    /// Sends frames, each with its offload header, in order; their number. On an
    /// error it is that of the first frame.
    pub fn send<'a>(&self, frames: impl Iterator<Item = &'a [u8]>) -> io::Result<usize> {
        let mut parts = [libc::iovec { iov_base: ptr::null_mut(), iov_len: 0 }; BATCH];
        let mut count = 0;
        for (part, frame) in parts.iter_mut().zip(frames) {
            part.iov_base = frame.as_ptr().cast_mut().cast();
            part.iov_len = frame.len();
            count += 1;
        }
        let parts = parts.as_mut_ptr();
        let mut messages: [libc::mmsghdr; BATCH] = std::array::from_fn(|slot| {
            // SAFETY: `parts` has BATCH entries.
            message(unsafe { parts.add(slot) })
        });
        // SAFETY: the first `count` messages point to frames that are borrowed
        // for 'a; the kernel only reads them.
        let sent = check(unsafe {
            libc::sendmmsg(
                self.fd.as_raw_fd(),
                messages.as_mut_ptr(),
                count,
                libc::MSG_DONTWAIT as _,
            )
        })?;
        Ok(sent as usize)
    }

    /// Frames that the kernel had no room for in this socket, since it was opened.
    pub fn socket_dropped(&mut self) -> u64 {
        // SAFETY: integers only, for which zero is valid.
        let mut statistics: libc::tpacket_stats = unsafe { std::mem::zeroed() };
        let mut length = size_of::<libc::tpacket_stats>() as libc::socklen_t;
        // SAFETY: `statistics` has `length` bytes for the kernel to write.
        let result = unsafe {
            libc::getsockopt(
                self.fd.as_raw_fd(),
                libc::SOL_PACKET,
                libc::PACKET_STATISTICS,
                (&raw mut statistics).cast(),
                &mut length,
            )
        };
        if result == 0 {
            // Reading resets the kernel's counter.
            self.socket_dropped += u64::from(statistics.tp_drops);
        }
        self.socket_dropped
    }
}

impl AsFd for Port {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn message(part: *mut libc::iovec) -> libc::mmsghdr {
    // SAFETY: integers and pointers, for which zero is valid.
    let mut message: libc::mmsghdr = unsafe { std::mem::zeroed() };
    message.msg_hdr.msg_iov = part;
    message.msg_hdr.msg_iovlen = 1;
    message
}

/// The real-time stamp and the stripped VLAN tag of a received message.
fn ancillary(header: &libc::msghdr) -> (Option<Nanos>, Option<VlanTag>) {
    let mut stamp = None;
    let mut tag = None;
    // SAFETY: the kernel has filled the control buffer of `header` with
    // msg_controllen bytes, which the CMSG functions walk through; payloads may
    // be unaligned and are read as the type that their level and type stand for.
    unsafe {
        let mut part = libc::CMSG_FIRSTHDR(header);
        while let Some(control) = part.as_ref() {
            let data = libc::CMSG_DATA(part);
            match (control.cmsg_level, control.cmsg_type) {
                (libc::SOL_SOCKET, libc::SCM_TIMESTAMPNS) => {
                    stamp = Some(nanos(data.cast::<libc::timespec>().read_unaligned()));
                }
                (libc::SOL_PACKET, libc::PACKET_AUXDATA) => {
                    let data = data.cast::<libc::tpacket_auxdata>().read_unaligned();
                    if data.tp_status & libc::TP_STATUS_VLAN_VALID != 0 {
                        let known = data.tp_status & libc::TP_STATUS_VLAN_TPID_VALID != 0;
                        tag = Some(VlanTag {
                            tpid: if known { data.tp_vlan_tpid } else { 0x8100 },
                            tci: data.tp_vlan_tci,
                        });
                    }
                }
                _ => {}
            }
            part = libc::CMSG_NXTHDR(header, part);
        }
    }
    (stamp, tag)
}

fn set_option<T>(fd: &OwnedFd, level: libc::c_int, name: libc::c_int, value: &T) -> io::Result<()> {
    // SAFETY: `value` is readable for its size; the callers give each option the
    // type that it takes.
    check(unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            name,
            ptr::from_ref(value).cast(),
            size_of::<T>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

fn bind(fd: &OwnedFd, index: u32) -> io::Result<()> {
    // SAFETY: integers only, for which zero is valid.
    let mut address: libc::sockaddr_ll = unsafe { std::mem::zeroed() };
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = (libc::ETH_P_ALL as u16).to_be();
    address.sll_ifindex = index as libc::c_int;
    // SAFETY: `address` is a sockaddr_ll of the given size.
    check(unsafe {
        libc::bind(
            fd.as_raw_fd(),
            (&raw const address).cast(),
            size_of::<libc::sockaddr_ll>() as libc::socklen_t,
        )
    })?;
    Ok(())
}

/// Asked of the socket and not of /sys, which may show another namespace.
fn mtu(fd: &OwnedFd, name: &str) -> Result<u32> {
    // SAFETY: integers and arrays of them, for which zero is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // The last byte stays zero.
    let room = libc::IF_NAMESIZE - 1;
    for (to, from) in request.ifr_name[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: SIOCGIFMTU reads the name and writes `ifru_mtu` of an ifreq.
    let mtu = unsafe {
        check(libc::ioctl(fd.as_raw_fd(), libc::SIOCGIFMTU as _, &raw mut request))
            .context("SIOCGIFMTU")?;
        request.ifr_ifru.ifru_mtu
    };
    Ok(mtu as u32)
}
