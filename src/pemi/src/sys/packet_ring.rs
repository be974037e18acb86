// SPDX-License-Identifier: GPL-2.0-or-later
//! A ring of packets that the kernel shares with this program (`AF_PACKET`, `TPACKET_V2`): copies
//! of what leaves by a device. Seeing a packet takes no system call, and none of them waits.
//!
//! Of the three versions this is the one that shows a packet at once and tells nanoseconds.

use std::ffi::c_int;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::atomic::{AtomicU32, Ordering};

use libc::sock_filter;

use crate::sys::bpf::{self, RETURN};
use crate::sys::{packet, socket};

/// Bytes of a block, whose pages lie side by side. Not one page each: where the data cache is
/// indexed by virtual addresses (24Kc and 1004Kc, 8 KiB a way), the kernel's address and ours of
/// the same byte must have one colour, and blocks are aligned to their size.
const BLOCK: usize = 16 << 10;
/// Bytes of a frame: with an Ethernet header a packet begins at byte 92 of it, and has 1500.
const FRAME: usize = 1600;
const FRAMES_IN_BLOCK: usize = BLOCK / FRAME;
/// 520 frames, 0.8 MB: what 100 Mbit/s bring in 50 ms (chosen: a thread that is not asked for
/// that long has other troubles).
const BLOCKS: usize = 52;
/// Frames of a ring.
pub(crate) const FRAMES: usize = BLOCKS * FRAMES_IN_BLOCK;
const BYTES: usize = BLOCKS * BLOCK;

// Of linux/if_packet.h; not in every libc's headers.
const PACKET_RX_RING: c_int = 5;
const PACKET_VERSION: c_int = 10;
const TPACKET_V2: u32 = 1;
/// The frame is ours, until its status is zero again.
const STATUS_USER: u32 = 1;
/// Bytes left free before the packet. With them an IP packet begins at a whole word, as in the
/// kernel's own memory, so that neither its copy nor ours is of words in two parts.
const ALIGN: u32 = 2;
/// Packets were missed since the statistics were read.
const STATUS_LOSING: u32 = 1 << 2;
const STATUS_CHECKSUM_NOT_READY: u32 = 1 << 3;

// Places in tpacket2_hdr, and its length.
const LEN_AT: usize = 4;
const KEPT_AT: usize = 8;
const LINK_AT: usize = 12;
const NETWORK_AT: usize = 14;
const SECONDS_AT: usize = 16;
const NANOS_AT: usize = 20;
const HEADER: usize = 32;
/// Bytes of virtio_net_hdr, which stands before the link-layer header; in it, how packets were
/// merged.
const MERGED: usize = 10;
const MERGED_KIND_AT: usize = 1;

/// Nanoseconds.
const SECOND: u64 = 1_000_000_000;

/// What the kernel says of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Nanoseconds since 1970 at which the packet left, by the clock that people set.
    pub stamp: u64,
    /// It is one packet, and all of it is there.
    pub whole: bool,
    /// Its UDP checksum was left to the hardware.
    pub checksum_missing: bool,
    /// Packets before it were missed, and nobody has asked how many ([`PacketRing::missed`]).
    pub losing: bool,
}

/// The ring of one device.
#[derive(Debug)]
pub(crate) struct PacketRing {
    fd: OwnedFd,
    map: NonNull<u8>,
    /// The frame that is read next, or in hand, and where it begins.
    next: usize,
    start: usize,
    /// Where in the mapping the IP packet of the frame in hand is.
    packet: Option<Range<usize>>,
}

// SAFETY: the memory is this value's alone but for the kernel, which does not care for threads.
unsafe impl Send for PacketRing {}

impl PacketRing {
    /// A ring that sees nothing yet. To be called where waiting does no harm: the kernel waits
    /// until no processor looks at the socket, some hundredths of a second.
    pub fn open() -> io::Result<PacketRing> {
        // No protocol: nothing comes before there are a ring and a filter.
        let fd = socket::raw(libc::AF_PACKET, 0)?;
        let set =
            |name, value: &[u32]| socket::set_option(fd.as_fd(), libc::SOL_PACKET, name, value);
        set(PACKET_VERSION, &[TPACKET_V2])?;
        // Otherwise merged packets could not be told from single ones.
        set(libc::PACKET_VNET_HDR, &[1])?;
        set(libc::PACKET_RESERVE, &[ALIGN])?;
        packet::attach_filter(fd.as_fd(), &[bpf::op(RETURN, 0)])?;
        set(PACKET_RX_RING, &[BLOCK, BLOCKS, FRAME, FRAMES].map(|number| number as u32))?;
        // SAFETY: a new mapping, of the length that was just agreed on.
        let map = unsafe {
            libc::mmap(
                ptr::null_mut(),
                BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED,
                fd.as_raw_fd(),
                0,
            )
        };
        if map == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let map = NonNull::new(map.cast()).ok_or(io::ErrorKind::OutOfMemory)?;
        Ok(PacketRing { fd, map, next: 0, start: 0, packet: None })
    }

    /// Sees what the filter lets pass from now on. The program before it is in force until then,
    /// and no packet meets neither.
    pub fn filter(&self, program: &[sock_filter]) -> io::Result<()> {
        packet::attach_filter(self.fd.as_fd(), program)
    }

    /// Sees the packets of this device from now on, which costs each of them something.
    pub fn watch(&self, device: u32) -> io::Result<()> {
        packet::listen(self.fd.as_fd(), device)
    }

    /// What has gone wrong with it, which is then forgotten: the device was switched off, or is
    /// gone.
    pub fn error(&self) -> Option<io::Error> {
        packet::error(self.fd.as_fd())
    }

    /// How many packets were missed since this was asked last.
    pub fn missed(&self) -> u32 {
        packet::dropped(self.fd.as_fd())
    }

    /// The oldest frame, if there is one; it stays in hand until it is released.
    pub fn peek(&mut self) -> Option<Frame> {
        // SAFETY: within the mapping and aligned, as are all frames; the kernel changes this word
        // while others look, so it is looked at as it is among threads.
        let status = unsafe { AtomicU32::from_ptr(self.at(0).cast()) }.load(Ordering::Acquire);
        if status & STATUS_USER == 0 {
            return None;
        }
        let (link, network) = (self.half(LINK_AT), self.half(NETWORK_AT));
        let kept = self.word(KEPT_AT) as usize;
        let end = (link + kept).min(FRAME);
        self.packet = Some(self.start + network.min(end)..self.start + end);
        let before = link.saturating_sub(MERGED).clamp(HEADER, FRAME - MERGED);
        // SAFETY: within the frame, which is ours.
        let merged = unsafe { self.at(before + MERGED_KIND_AT).read() } != 0;
        Some(Frame {
            stamp: u64::from(self.word(SECONDS_AT)) * SECOND + u64::from(self.word(NANOS_AT)),
            whole: !merged && self.word(LEN_AT) as usize == kept,
            checksum_missing: status & STATUS_CHECKSUM_NOT_READY != 0,
            losing: status & STATUS_LOSING != 0,
        })
    }

    /// The IP packet of the frame in hand.
    pub fn bytes(&mut self) -> &mut [u8] {
        let Some(packet) = self.packet.clone() else { return &mut [] };
        // SAFETY: within the frame in hand, which is nobody else's until it is released.
        unsafe { slice::from_raw_parts_mut(self.map.as_ptr().add(packet.start), packet.len()) }
    }

    /// Gives the frame in hand back.
    pub fn release(&mut self) {
        if self.packet.take().is_none() {
            return;
        }
        // SAFETY: as in `peek`.
        unsafe { AtomicU32::from_ptr(self.at(0).cast()) }.store(0, Ordering::Release);
        self.next = (self.next + 1) % FRAMES;
        self.start = self.next / FRAMES_IN_BLOCK * BLOCK + self.next % FRAMES_IN_BLOCK * FRAME;
    }

    /// An address in the frame that is next, by its distance from the beginning.
    fn at(&self, distance: usize) -> *mut u8 {
        debug_assert!(distance < FRAME);
        // SAFETY: a frame of the ring begins there, so this is within the mapping.
        unsafe { self.map.as_ptr().add(self.start + distance) }
    }

    fn word(&self, at: usize) -> u32 {
        // SAFETY: in the header of a frame that is ours, aligned.
        unsafe { self.at(at).cast::<u32>().read() }
    }

    fn half(&self, at: usize) -> usize {
        // SAFETY: as above.
        usize::from(unsafe { self.at(at).cast::<u16>().read() })
    }
}

impl AsFd for PacketRing {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for PacketRing {
    fn drop(&mut self) {
        // SAFETY: the mapping of `open`, to which nothing borrowed points any more.
        unsafe { libc::munmap(self.map.as_ptr().cast(), BYTES) };
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::CString;
    use std::net::UdpSocket;
    use std::process::Command;
    use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

    use super::*;
    use crate::sys::bpf::{ONLY_UDP, WHOLE, jump};
    use crate::sys::poll::{self, Interest};

    /// `ip` with these words; whether it succeeded.
    fn ip(words: &str) -> bool {
        Command::new("ip").args(words.split(' ')).status().is_ok_and(|status| status.success())
    }

    /// Makes a device that swallows what it is given.
    fn hole() -> bool {
        ip("link add hole0 type veth peer name hole1")
            && ip("addr add 192.0.2.1/24 dev hole0")
            && ip("link set hole0 up")
            && ip("link set hole1 up")
            // There is nobody of whom it could be asked for.
            && ip("neigh add 192.0.2.2 lladdr 02:00:00:00:00:02 dev hole0")
    }

    /// A network of its own with such a device; false where there can be none.
    fn alone() -> bool {
        // SAFETY: no pointers; this thread alone changes places.
        let moved = unsafe { libc::unshare(libc::CLONE_NEWNET) } == 0;
        moved && hole()
    }

    fn device() -> u32 {
        socket::interface_index(&CString::new("hole0").unwrap()).unwrap()
    }

    /// A ring that sees all UDP of that device, and a socket that sends by it.
    fn ring() -> Option<(PacketRing, UdpSocket)> {
        if !alone() {
            eprintln!("skipped: root and network namespaces are needed");
            return None;
        }
        let mut ring = match PacketRing::open() {
            Err(error) if error.raw_os_error() == Some(libc::ENOPROTOOPT) => {
                eprintln!("skipped: an emulator of another processor has no packet rings");
                return None;
            }
            ring => ring.unwrap(),
        };
        let outgoing = jump(0x15, u32::from(libc::PACKET_OUTGOING), 1, 0);
        let mut program = vec![bpf::op(bpf::LOAD_WORD, bpf::PACKET_TYPE), outgoing];
        program.push(bpf::op(RETURN, 0));
        program.extend(ONLY_UDP);
        program.push(bpf::op(RETURN, WHOLE));
        ring.filter(&program).unwrap();
        ring.watch(device()).unwrap();
        let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
        socket.connect("192.0.2.2:443").unwrap();
        settle(&mut ring, &socket);
        Some((ring, socket))
    }

    /// Waits until packets leave: a device that has just come up throws some away.
    fn settle(ring: &mut PacketRing, socket: &UdpSocket) {
        let start = Instant::now();
        while ring.peek().is_none() {
            assert!(start.elapsed() < Duration::from_secs(20), "nothing leaves");
            socket.send(&[0]).unwrap();
            std::thread::sleep(Duration::from_millis(1));
        }
        while ring.peek().is_some() {
            ring.release();
        }
    }

    fn payload(ring: &mut PacketRing) -> Option<(Frame, Vec<u8>)> {
        let frame = ring.peek()?;
        let bytes = ring.bytes()[28..].to_vec();
        ring.release();
        Some((frame, bytes))
    }

    #[test]
    fn what_leaves_is_seen_in_its_order_and_once() {
        let Some((mut ring, socket)) = ring() else { return };
        assert_eq!(ring.peek(), None);
        // More than there are frames, so that it goes round.
        for round in 0..5u32 {
            for n in 0..200u32 {
                socket.send(&(200 * round + n).to_be_bytes()).unwrap();
            }
            let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_nanos() as u64;
            let mut last = 0;
            for n in 0..200u32 {
                let (frame, bytes) = payload(&mut ring).unwrap();
                assert_eq!(bytes, (200 * round + n).to_be_bytes());
                assert!(frame.whole && !frame.losing, "{frame:?}");
                assert!((last..=now).contains(&frame.stamp) && now - frame.stamp < 20 * SECOND);
                last = frame.stamp;
            }
            assert_eq!((ring.peek(), ring.bytes().len()), (None, 0));
        }
        assert_eq!(ring.missed(), 0);
        // 1500 bytes are whole, and what is longer is not.
        socket.send(&[7; 1472]).unwrap();
        let (frame, bytes) = payload(&mut ring).unwrap();
        assert_eq!((frame.whole, bytes.len()), (true, 1472));
        socket.send(&[7]).unwrap();
        ring.peek().unwrap();
        assert!(ring.bytes().as_ptr().cast::<u32>().is_aligned());
        ring.release();
        assert!(ip("link set hole0 mtu 4000"));
        socket.send(&[7; 2000]).unwrap();
        assert!(!payload(&mut ring).unwrap().0.whole);
    }

    #[test]
    fn what_there_is_no_room_for_is_counted_and_told() {
        let Some((mut ring, socket)) = ring() else { return };
        for n in 0..FRAMES as u32 + 100 {
            socket.send(&n.to_be_bytes()).unwrap();
        }
        for n in 0..FRAMES as u32 {
            let (frame, bytes) = payload(&mut ring).unwrap();
            assert_eq!((bytes, frame.losing), (n.to_be_bytes().to_vec(), false));
        }
        assert_eq!(ring.peek(), None);
        socket.send(&[1]).unwrap();
        assert!(payload(&mut ring).unwrap().0.losing);
        assert_eq!((ring.missed(), ring.missed()), (100, 0));
        socket.send(&[1]).unwrap();
        assert!(!payload(&mut ring).unwrap().0.losing);
    }

    #[test]
    fn it_can_be_waited_for_and_change_its_filter() {
        let Some((mut ring, socket)) = ring() else { return };
        let ready = |ring: &PacketRing| {
            let mut interests = [Interest::read(ring)];
            poll::wait(&mut interests, Some(0)).unwrap();
            interests[0].is_ready()
        };
        assert!(!ready(&ring));
        socket.send(&[1]).unwrap();
        assert!(ready(&ring));
        payload(&mut ring).unwrap();
        assert!(!ready(&ring));
        ring.filter(&[bpf::op(RETURN, 0)]).unwrap();
        socket.send(&[2]).unwrap();
        assert_eq!(payload(&mut ring), None);
        ring.filter(&[bpf::op(RETURN, WHOLE)]).unwrap();
        socket.send(&[3]).unwrap();
        assert_eq!(payload(&mut ring).unwrap().1, [3]);
    }

    #[test]
    fn a_device_may_go_and_come_back() {
        let Some((mut ring, _)) = ring() else { return };
        assert!(ip("link del hole0"));
        let mut interests = [Interest::read(&ring)];
        poll::wait(&mut interests, Some(0)).unwrap();
        assert!(interests[0].is_ready());
        assert_eq!(ring.error().and_then(|error| error.raw_os_error()), Some(libc::ENETDOWN));
        poll::wait(&mut interests, Some(0)).unwrap();
        assert!(!interests[0].is_ready() && ring.error().is_none());
        assert_eq!(ring.peek(), None);
        assert!(hole());
        ring.watch(device()).unwrap();
        let socket = UdpSocket::bind("192.0.2.1:0").unwrap();
        socket.connect("192.0.2.2:443").unwrap();
        settle(&mut ring, &socket);
    }
}
