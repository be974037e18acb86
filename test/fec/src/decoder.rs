// SPDX-License-Identifier: GPL-2.0-or-later
//! Delivers datagrams as they come, and those that were lost as soon as enough of
//! their group is there.

use std::collections::VecDeque;

use crate::totals::Received;
use crate::wire::{self, Packet};

/// Groups that are remembered: about a hundred milliseconds of a fast download.
const WINDOW: u32 = 256;

/// One direction's receiver. Groups come and go in the order of their numbers; what is
/// kept of them is bounded by their number and size.
#[derive(Debug, Default)]
pub struct Decoder {
    /// By number, without gaps.
    groups: VecDeque<Group>,
    /// The number of the first of these.
    first: u32,
    /// What has come so far.
    pub received: Received,
}

#[derive(Debug, Default)]
struct Group {
    /// Those delivered, by their indices; without content once nothing is missing.
    sources: Vec<(u8, Vec<u8>)>,
    repairs: Vec<(u8, Vec<u8>)>,
    /// How many sources and repairs it has; known from any of the repairs.
    counts: Option<(u8, u8)>,
    complete: bool,
}

impl Group {
    fn has(&self, index: u8) -> bool {
        self.sources.iter().any(|(known, _)| *known == index)
    }

    /// Sources that have not been delivered, as far as can be told.
    fn missing(&self) -> usize {
        let seen = self.sources.iter().map(|(index, _)| usize::from(*index) + 1).max();
        let sources = self.counts.map(|(sources, _)| sources.into()).or(seen).unwrap_or(0);
        sources.saturating_sub(self.sources.len())
    }
}

impl Decoder {
    /// A packet from the other shim; datagrams to deliver go to `deliver`.
    pub fn push(&mut self, bytes: &[u8], mut deliver: impl FnMut(&[u8])) {
        let Some(packet) = Packet::parse(bytes) else {
            self.received.malformed += 1;
            return;
        };
        let (Packet::Source { group: number, .. } | Packet::Repair { group: number, .. }) = packet;
        match packet {
            Packet::Source { .. } => self.received.sources += 1,
            Packet::Repair { .. } => self.received.repairs += 1,
        }
        let Some(place) = self.place(number) else {
            self.received.late += u64::from(matches!(packet, Packet::Source { .. }));
            return;
        };
        let group = &mut self.groups[place];
        match packet {
            Packet::Source { index, datagram, .. } => {
                if group.has(index) {
                    self.received.duplicates += 1;
                    return;
                }
                deliver(datagram);
                let kept = if group.complete { Vec::new() } else { datagram.to_vec() };
                group.sources.push((index, kept));
            }
            Packet::Repair { index, sources, repairs, symbol, .. } => {
                let fits = group.repairs.first().is_none_or(|(_, other)| {
                    other.len() == symbol.len() && group.counts == Some((sources, repairs))
                });
                if !fits || group.repairs.iter().any(|(known, _)| *known == index) {
                    self.received.malformed += u64::from(!fits);
                    return;
                }
                group.counts = Some((sources, repairs));
                if !group.complete {
                    group.repairs.push((index, symbol.to_vec()));
                }
            }
        }
        self.recover(place, deliver);
    }

    /// No more will come: what is still missing stays so.
    pub fn finish(&mut self) {
        while !self.groups.is_empty() {
            self.forget();
        }
    }

    /// The place of a group, made if it is a new one; none if it is too old.
    fn place(&mut self, number: u32) -> Option<usize> {
        let ahead = number.wrapping_sub(self.first);
        // A number from before the window looks as one far ahead of it.
        if ahead >= u32::MAX / 2 {
            return None;
        }
        // After a long silence the whole window is of the past.
        if ahead as usize >= self.groups.len() + WINDOW as usize {
            self.finish();
            self.first = number;
        }
        while number.wrapping_sub(self.first) as usize >= self.groups.len() {
            self.groups.push_back(Group::default());
            if self.groups.len() > WINDOW as usize {
                self.forget();
            }
        }
        Some(number.wrapping_sub(self.first) as usize)
    }

    fn forget(&mut self) {
        if let Some(group) = self.groups.pop_front() {
            self.received.unrecoverable += group.missing() as u64;
            self.first = self.first.wrapping_add(1);
        }
    }

    fn recover(&mut self, place: usize, mut deliver: impl FnMut(&[u8])) {
        let group = &mut self.groups[place];
        let Some((sources, repairs)) = group.counts else { return };
        if group.complete || group.missing() > group.repairs.len() {
            return;
        }
        if group.missing() > 0 {
            let length = group.repairs[0].1.len();
            if group.sources.iter().any(|(_, source)| wire::symbol_length(source.len()) > length)
                || group.sources.iter().any(|(index, _)| *index >= sources)
            {
                // These repairs are not of these sources.
                self.received.malformed += 1;
                group.repairs.clear();
                return;
            }
            let known = group.sources.iter();
            let known = known.map(|(n, source)| (usize::from(*n), wire::symbol(source, length)));
            let repair = group.repairs.iter().map(|(n, symbol)| (usize::from(*n), symbol));
            let restored = reed_solomon_simd::decode(sources.into(), repairs.into(), known, repair)
                .expect("symbols of one even length, and enough of them");
            for (index, symbol) in restored {
                let Some(datagram) = wire::datagram(&symbol) else {
                    self.received.malformed += 1;
                    continue;
                };
                self.received.recovered += 1;
                deliver(datagram);
                group.sources.push((index as u8, Vec::new()));
            }
        }
        group.complete = true;
        // Only which there were is needed from here on.
        group.repairs.clear();
        group.sources.iter_mut().for_each(|(_, source)| *source = Vec::new());
    }
}
