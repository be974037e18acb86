// SPDX-License-Identifier: GPL-2.0-or-later
//! Messages to send, in buffers that are used again.

use core::net::{IpAddr, SocketAddr};
use core::ops::Range;

use pemi_quack::Message;

/// Messages that wait at most; there are more only if nobody takes them.
const MOST: usize = 256;

/// By which way a message came, and the answer leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Via {
    /// The index of the device.
    pub device: u32,
    /// The router's address that the message was sent to.
    pub local: IpAddr,
}

/// A message to send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sending<'a> {
    /// Where to.
    pub to: SocketAddr,
    /// By which way.
    pub via: Via,
    /// The message.
    pub bytes: &'a [u8],
}

#[derive(Clone, Debug, Default)]
pub(super) struct Outbox {
    bytes: Vec<u8>,
    waiting: Vec<(SocketAddr, Via, Range<usize>)>,
    taken: usize,
}

impl Outbox {
    pub fn put(&mut self, to: SocketAddr, via: Via, message: &Message<'_>) {
        self.put_with(to, via, message, |_| {});
    }

    /// With more bytes after those of the message. How many there are in all.
    pub fn put_with(
        &mut self,
        to: SocketAddr,
        via: Via,
        message: &Message<'_>,
        more: impl FnOnce(&mut Vec<u8>),
    ) -> usize {
        if self.taken == self.waiting.len() {
            self.taken = 0;
            self.waiting.clear();
            self.bytes.clear();
        } else if self.waiting.len() >= MOST {
            return 0;
        }
        let start = self.bytes.len();
        message.write(&mut self.bytes);
        more(&mut self.bytes);
        self.waiting.push((to, via, start..self.bytes.len()));
        self.bytes.len() - start
    }

    pub fn take(&mut self) -> Option<Sending<'_>> {
        let (to, via, range) = self.waiting.get(self.taken)?;
        self.taken += 1;
        Some(Sending { to: *to, via: *via, bytes: self.bytes.get(range.clone())? })
    }
}
