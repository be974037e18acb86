// SPDX-License-Identifier: GPL-2.0-or-later
//! Gives datagrams their place in a group and makes the group's repairs.

use std::time::{Duration, Instant};

use crate::wire::{self, Packet};

/// How many datagrams a group has, and how many packets it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// Datagrams of a group.
    pub k: usize,
    /// These and their repairs.
    pub n: usize,
}

impl Code {
    /// Of a group that is not full: no lower a share than that of a full one.
    fn repairs(self, sources: usize) -> usize {
        (sources * (self.n - self.k)).div_ceil(self.k)
    }
}

/// One direction's sender.
#[derive(Debug)]
pub struct Encoder {
    code: Code,
    flush: Duration,
    group: u32,
    sources: Vec<Vec<u8>>,
    deadline: Option<Instant>,
    /// Repairs made.
    pub repairs: u64,
}

impl Encoder {
    /// A group that is not full after `flush` gets its repairs nevertheless.
    pub fn new(code: Code, flush: Duration) -> Encoder {
        let sources = Vec::with_capacity(code.k);
        Encoder { code, flush, group: 0, sources, deadline: None, repairs: 0 }
    }

    /// A datagram of at most 65000 bytes; the packets to send now go to `send`.
    pub fn push(&mut self, now: Instant, datagram: &[u8], mut send: impl FnMut(Vec<u8>)) {
        let index = self.sources.len() as u8;
        send(Packet::Source { group: self.group, index, datagram }.to_bytes());
        self.sources.push(datagram.to_vec());
        if self.sources.len() == self.code.k {
            self.finish(send);
        } else if self.deadline.is_none() {
            self.deadline = Some(now + self.flush);
        }
    }

    /// When to call [`Encoder::on_timeout`].
    pub fn timeout(&self) -> Option<Instant> {
        self.deadline
    }

    /// Ends a group that has waited for long enough.
    pub fn on_timeout(&mut self, now: Instant, send: impl FnMut(Vec<u8>)) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.finish(send);
        }
    }

    fn finish(&mut self, mut send: impl FnMut(Vec<u8>)) {
        let sources = self.sources.len();
        let repairs = self.code.repairs(sources);
        let longest = self.sources.iter().map(Vec::len).max().unwrap_or(0);
        let length = wire::symbol_length(longest);
        let symbols = self.sources.iter().map(|source| wire::symbol(source, length));
        let made = reed_solomon_simd::encode(sources, repairs, symbols)
            .expect("symbols of one even length, and as many as promised");
        for (index, symbol) in made.iter().enumerate() {
            self.repairs += 1;
            send(
                Packet::Repair {
                    group: self.group,
                    index: index as u8,
                    sources: sources as u8,
                    repairs: repairs as u8,
                    symbol,
                }
                .to_bytes(),
            );
        }
        self.sources.clear();
        self.deadline = None;
        self.group = self.group.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FLUSH: Duration = Duration::from_millis(5);

    fn kinds(packets: &[Vec<u8>]) -> Vec<&'static str> {
        let kind = |bytes: &Vec<u8>| match Packet::parse(bytes) {
            Some(Packet::Source { .. }) => "source",
            Some(Packet::Repair { .. }) => "repair",
            None => "nothing",
        };
        packets.iter().map(kind).collect()
    }

    #[test]
    fn sources_go_at_once_and_repairs_after_the_last() {
        let mut encoder = Encoder::new(Code { k: 2, n: 3 }, FLUSH);
        let now = Instant::now();
        let mut sent = Vec::new();
        encoder.push(now, b"one", |packet| sent.push(packet));
        assert_eq!(kinds(&sent), ["source"]);
        encoder.push(now, b"three", |packet| sent.push(packet));
        assert_eq!(kinds(&sent), ["source", "source", "repair"]);
        assert_eq!(encoder.timeout(), None);
        encoder.push(now, b"five", |packet| sent.push(packet));
        let last = Packet::parse(&sent[3]);
        assert_eq!(last, Some(Packet::Source { group: 1, index: 0, datagram: b"five" }));
    }

    #[test]
    fn a_group_that_is_not_full_is_not_left_without_repairs() {
        let mut encoder = Encoder::new(Code { k: 10, n: 14 }, FLUSH);
        let now = Instant::now();
        let mut sent = Vec::new();
        for _ in 0..3 {
            encoder.push(now, b"some", |packet| sent.push(packet));
        }
        assert_eq!(encoder.timeout(), Some(now + FLUSH));
        encoder.on_timeout(now + FLUSH / 2, |_| panic!("too early"));
        encoder.on_timeout(now + FLUSH, |packet| sent.push(packet));
        // 3 of 10 have 2 of 4 repairs.
        assert_eq!(kinds(&sent[3..]), ["repair", "repair"]);
        assert_eq!(encoder.timeout(), None);
    }
}
