// SPDX-License-Identifier: GPL-2.0-or-later
//! A packet queue of the kernel (NFQUEUE): packets in by the batch, verdicts
//! out by the batch.

mod ffi;
pub mod message;

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};

use crate::sys::socket;
use ffi::{MESSAGE_WORDS, Socket, Verdict};
use message::Message;

/// Packets taken from the kernel at a time. Verdicts leave at the end of the
/// batch at the latest, so this bounds what the first packet waits.
pub(crate) const BATCH: usize = 16;
/// A whole packet (65535 bytes at most) with its attributes. Only the pages
/// that packets really fill are ever backed by memory.
const SLOT: usize = 65536 + 4096;
/// Verdicts sent to the kernel at a time.
const VERDICTS: usize = 64;
/// Bytes that may wait in the kernel; more is let go unseen (fail-open). The kernel doubles the
/// number and counts a full packet as 2,304 bytes, so there is room for about 900: what
/// 100 Mbit/s bring in 90 ms, and 1 Gbit/s in 9 ms. If the daemon and its guard both stand
/// still, no more than these wait with them; a daemon that runs empties the buffer in less.
const RECEIVE_BUFFER: u32 = 1 << 20;
/// Packets that may wait in the kernel, held ones included. More than fit into the receive
/// buffer, however small they are (a message takes 700 bytes or more): those beyond the
/// buffer are numbered before they are let go, so they can be counted; those beyond this
/// length are not.
pub(crate) const MAX_LEN: u32 = 4096;
/// Further than any two packets of a queue are numbered apart, and not so far that the
/// kernel takes what lies ahead for what lies behind.
const AHEAD: u32 = 1 << 30;
/// The beginning of a message, with the packet's number in it.
const HEAD: usize = 32;
/// Attempts to hand over verdicts when the kernel is short of memory.
const ATTEMPTS: usize = 16;

/// A bound queue.
#[derive(Debug)]
pub(crate) struct Queue {
    socket: Socket,
    id: u16,
}

impl Queue {
    /// Binds queue number `id`.
    pub fn bind(id: u16) -> io::Result<Queue> {
        let queue = Queue { socket: Socket::open()?, id };
        socket::set_buffer(queue.as_fd(), socket::Buffer::Receive, RECEIVE_BUFFER);
        // Overflow is counted by the kernel (`user_dropped`) and harmless
        // because of fail-open; as a socket error it would hide other ones.
        socket::set_option(queue.as_fd(), libc::SOL_NETLINK, libc::NETLINK_NO_ENOBUFS, &[1])?;
        let mut words = [0; MESSAGE_WORDS];
        let len = ffi::put_bind(&mut words, id, MAX_LEN);
        queue.socket.send(&as_bytes(&words)[..len])?;
        queue.await_answer()?;
        Ok(queue)
    }

    /// From now on the kernel says of packets when they came, as for any socket that asks for that. Where it
    /// does not, none is taken to have waited.
    pub fn stamp(&self) {
        let _ = socket::set_option(self.as_fd(), libc::SOL_SOCKET, libc::SO_TIMESTAMP, &[1]);
    }

    /// Waits for the answer to the bind request. Packets may come before it;
    /// they are let go.
    fn await_answer(&self) -> io::Result<()> {
        let mut buffer = vec![0; SLOT];
        let mut verdicts = Verdicts::new();
        loop {
            let len = match self.socket.receive(&mut buffer) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                other => other?,
            };
            let mut at = 0;
            while let Some((message, next)) = message::next(&buffer[..len], at) {
                at = next;
                match message {
                    Message::Packet(packet) => verdicts.accept(self, packet.id, None, false)?,
                    Message::Answer(0) => return verdicts.flush(self),
                    Message::Answer(error) => return Err(io::Error::from_raw_os_error(error)),
                    Message::Other => {}
                }
            }
        }
    }

    /// Lets go all that waits, also what has been read already. `near` is the number of a
    /// packet that came not long ago, within the last billion.
    pub fn release_all(&self, near: u32) -> io::Result<()> {
        let mut words = [0; MESSAGE_WORDS];
        let all = Verdict::AcceptAll;
        let len = ffi::put_verdict(&mut words, self.id, near.wrapping_add(AHEAD), all);
        self.socket.send(&as_bytes(&words)[..len])
    }

    /// Takes one message without looking at it, but for the number of its packet; `None` if
    /// it has none. Does not wait.
    pub fn skip(&self) -> io::Result<Option<u32>> {
        let mut head = [0; HEAD];
        let len = self.socket.receive_head(&mut head)?;
        Ok(message::packet_id(&head[..len]))
    }

    /// The number of the queue.
    pub fn id(&self) -> u16 {
        self.id
    }
}

impl AsRawFd for Queue {
    fn as_raw_fd(&self) -> RawFd {
        self.socket.as_raw_fd()
    }
}

impl AsFd for Queue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        socket::borrow(self)
    }
}

/// Room for a batch of messages from the kernel.
#[derive(Debug)]
pub(crate) struct Inbox {
    buffer: Box<[u8]>,
    lengths: [usize; BATCH],
}

impl Inbox {
    /// An empty one.
    pub fn new() -> Inbox {
        Inbox { buffer: vec![0; BATCH * SLOT].into_boxed_slice(), lengths: [0; BATCH] }
    }

    /// Takes what is waiting, up to [`BATCH`] datagrams; 0 if there is none.
    /// An error means that the queue is gone.
    pub fn fill(&mut self, queue: &Queue) -> io::Result<usize> {
        match queue.socket.receive_batch(&mut self.buffer, SLOT, &mut self.lengths) {
            Ok(count) => Ok(count),
            Err(error) if is_passing(&error) => Ok(0),
            Err(error) => Err(error),
        }
    }

    /// Datagram `index` of the batch.
    pub fn datagram(&mut self, index: usize) -> &mut [u8] {
        let start = index * SLOT;
        &mut self.buffer[start..start + self.lengths[index]]
    }
}

impl Default for Inbox {
    fn default() -> Self {
        Inbox::new()
    }
}

/// Verdicts that have not yet been sent, in wire order.
#[derive(Debug)]
pub(crate) struct Verdicts {
    words: Box<[u32]>,
    used: usize,
    given: u32,
    /// One of those that have not been sent lets a packet go on.
    accepted: bool,
    /// Where the last one begins that lets go on all packets up to one, if nothing came after it.
    all: Option<usize>,
}

impl Verdicts {
    /// None yet.
    pub fn new() -> Verdicts {
        Verdicts {
            words: vec![0; VERDICTS * MESSAGE_WORDS].into_boxed_slice(),
            used: 0,
            given: 0,
            accepted: false,
            all: None,
        }
    }

    /// Adds the verdict that lets packet `id` go on. With a new mark, if one is given, it comes
    /// by our rules once more, which see the mark: a chain in a later hook would cost every packet
    /// of the router for this one.
    /// `alone` says that no other packet waits that has been taken: then packets one after the
    /// other go on by one message, and the kernel has to find none of them.
    pub fn accept(
        &mut self,
        queue: &Queue,
        id: u32,
        mark: Option<u32>,
        alone: bool,
    ) -> io::Result<()> {
        if mark.is_some() || !alone {
            return self.add(queue, Verdict::Accept { mark }, id);
        }
        if let Some(all) = self.all {
            // In the place of the one before it, which it includes.
            ffi::renumber(&mut self.words[all..], id);
            self.given = self.given.wrapping_add(1);
            return Ok(());
        }
        self.add(queue, Verdict::AcceptAll, id)
    }

    /// Adds the verdict that drops packet `id`.
    pub fn discard(&mut self, queue: &Queue, id: u32) -> io::Result<()> {
        self.add(queue, Verdict::Drop, id)
    }

    fn add(&mut self, queue: &Queue, verdict: Verdict, id: u32) -> io::Result<()> {
        if self.words.len() - self.used < MESSAGE_WORDS {
            self.flush(queue)?;
        }
        self.all = matches!(verdict, Verdict::AcceptAll).then_some(self.used);
        self.used += ffi::put_verdict(&mut self.words[self.used..], queue.id, id, verdict) / 4;
        self.given = self.given.wrapping_add(1);
        self.accepted |= !matches!(verdict, Verdict::Drop);
        Ok(())
    }

    /// Sends what has been added if it lets a packet go on.
    pub fn flush_accepted(&mut self, queue: &Queue) -> io::Result<()> {
        if self.accepted { self.flush(queue) } else { Ok(()) }
    }

    /// How many have been added, from the beginning. It wraps around.
    pub fn given(&self) -> u32 {
        self.given
    }

    /// Sends what has been added. An error means that the queue is gone.
    pub fn flush(&mut self, queue: &Queue) -> io::Result<()> {
        if self.used == 0 {
            return Ok(());
        }
        let len = self.used * 4;
        (self.used, self.accepted, self.all) = (0, false, None);
        let messages = &as_bytes(&self.words)[..len];
        let mut result = Ok(());
        for _ in 0..ATTEMPTS {
            result = queue.socket.send(messages);
            match &result {
                Err(error) if is_passing(error) => {}
                _ => break,
            }
        }
        result
    }
}

impl Default for Verdicts {
    fn default() -> Self {
        Verdicts::new()
    }
}

/// Whether trying again may help.
fn is_passing(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EINTR | libc::ENOBUFS | libc::ENOMEM))
}

fn as_bytes(words: &[u32]) -> &[u8] {
    socket::bytes_of(words)
}

/// What the kernel reports of a bound queue.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct KernelCounters {
    /// Netlink address of the process that bound it, usually its process id.
    pub owner: u32,
    /// Packets that were let go unseen (or lost, without fail-open) because the queue was full.
    pub kernel_dropped: u32,
    /// The same, because the socket buffer was full.
    pub user_dropped: u32,
}

impl KernelCounters {
    /// Packets that the daemon did not get to see.
    pub fn dropped(&self) -> u32 {
        self.kernel_dropped.saturating_add(self.user_dropped)
    }
}

/// Where the kernel lists its bound queues.
pub(crate) const KERNEL_TABLE: &str = "/proc/net/netfilter/nfnetlink_queue";

/// Finds a queue in the text of [`KERNEL_TABLE`].
pub(crate) fn kernel_counters(table: &str, id: u16) -> Option<KernelCounters> {
    table.lines().find_map(|line| {
        // queue owner waiting copy_mode copy_range kernel_dropped user_dropped last_id 1
        let mut fields = line.split_ascii_whitespace().map(str::parse::<u32>);
        if fields.next()?.ok()? != u32::from(id) {
            return None;
        }
        let owner = fields.next()?.ok()?;
        let kernel_dropped = fields.nth(3)?.ok()?;
        let user_dropped = fields.next()?.ok()?;
        Some(KernelCounters { owner, kernel_dropped, user_dropped })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attribute header: length and type in the byte order of the machine.
    fn header(len: u16, kind: u16) -> Vec<u8> {
        [len.to_ne_bytes(), kind.to_ne_bytes()].concat()
    }

    fn netlink(len: u32, kind: u16, flags: u16, queue: u16) -> Vec<u8> {
        let mut bytes = len.to_ne_bytes().to_vec();
        bytes.extend(kind.to_ne_bytes());
        bytes.extend(flags.to_ne_bytes());
        bytes.extend([0; 8]);
        bytes.extend([0, 0]);
        bytes.extend(queue.to_be_bytes());
        bytes
    }

    #[test]
    fn builds_a_verdict() {
        let mut words = [0; MESSAGE_WORDS];
        let len = ffi::put_verdict(&mut words, 5443, 0x0a0b_0c0d, Verdict::Accept { mark: None });
        let mut expected = netlink(32, 0x0301, 1, 5443);
        expected.extend(header(12, 2));
        expected.extend([0, 0, 0, 1, 0x0a, 0x0b, 0x0c, 0x0d]);
        assert_eq!(&as_bytes(&words)[..len], expected);
    }

    #[test]
    fn builds_a_verdict_with_a_mark() {
        let mut words = [0; MESSAGE_WORDS];
        let len = ffi::put_verdict(
            &mut words,
            1,
            0xffff_fffe,
            Verdict::Accept { mark: Some(0x1000_0002) },
        );
        let mut expected = netlink(40, 0x0301, 1, 1);
        expected.extend(header(12, 2));
        // NF_REPEAT: the rules see the mark.
        expected.extend([0, 0, 0, 4, 0xff, 0xff, 0xff, 0xfe]);
        expected.extend(header(8, 3));
        expected.extend([0x10, 0, 0, 2]);
        assert_eq!(&as_bytes(&words)[..len], expected);
    }

    #[test]
    fn packets_one_after_the_other_go_on_by_one_message() {
        // Nothing is sent before there is no more room. An emulator has no such sockets.
        let Ok(socket) = Socket::open() else { return };
        let queue = Queue { socket, id: 1 };
        let mut verdicts = Verdicts::new();
        for id in 5..8 {
            verdicts.accept(&queue, id, None, true).unwrap();
        }
        assert_eq!((verdicts.used, verdicts.given()), (8, 3));
        assert_eq!(as_bytes(&verdicts.words)[28..32], [0, 0, 0, 7]);
        // While others wait, and with a mark, a packet goes by itself, and none is taken back.
        verdicts.accept(&queue, 9, None, false).unwrap();
        verdicts.accept(&queue, 8, None, true).unwrap();
        verdicts.discard(&queue, 10).unwrap();
        verdicts.accept(&queue, 11, None, true).unwrap();
        assert_eq!((verdicts.used, verdicts.given()), (5 * 8, 7));
    }

    #[test]
    fn builds_a_verdict_for_all() {
        let mut words = [0; MESSAGE_WORDS];
        let len = ffi::put_verdict(&mut words, 5443, 0xffff_ffff, Verdict::AcceptAll);
        let mut expected = netlink(32, 0x0303, 1, 5443);
        expected.extend(header(12, 2));
        expected.extend([0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff]);
        assert_eq!(&as_bytes(&words)[..len], expected);
    }

    #[test]
    fn builds_the_bind_request() {
        let mut words = [0; MESSAGE_WORDS];
        let len = ffi::put_bind(&mut words, 7, 4096);
        let mut expected = netlink(64, 0x0302, 1 | 4, 7);
        expected.extend(header(8, 1));
        expected.extend([1, 0, 0, 0]);
        expected.extend(header(9, 2));
        expected.extend([0, 0, 0xff, 0xff, 2, 0, 0, 0]);
        expected.extend(header(8, 3));
        expected.extend([0, 0, 0x10, 0]);
        expected.extend(header(8, 4));
        expected.extend([0, 0, 0, 1]);
        expected.extend(header(8, 5));
        expected.extend([0, 0, 0, 1]);
        assert_eq!(&as_bytes(&words)[..len], expected);
        assert_eq!(len, expected.len());
    }

    #[test]
    fn reads_the_kernel_table() {
        let table =
            "    1   4242     0 2 65535     0     0        9  1\n 5443 -42 0 2 65535 0 0 1 1\n";
        assert_eq!(
            kernel_counters(table, 1),
            Some(KernelCounters { owner: 4242, kernel_dropped: 0, user_dropped: 0 })
        );
        assert_eq!(kernel_counters(table, 2), None);
        let table = " 5443 3000000001 7 2 65535 3 5 99 1\n";
        assert_eq!(
            kernel_counters(table, 5443),
            Some(KernelCounters { owner: 3_000_000_001, kernel_dropped: 3, user_dropped: 5 })
        );
        assert_eq!(kernel_counters("5443 garbage", 5443), None);
    }
}
