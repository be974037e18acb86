// SPDX-License-Identifier: GPL-2.0-or-later
//! Copies of downstream packets, in one bounded ring shared by all flows.
//!
//! First in, first out: a packet is worth keeping for a few local round trips
//! only, so age is the right order of eviction, and a ring needs neither
//! allocation nor compaction. Beside the bytes each packet has a small record
//! that links it with the packets of its flow before and after it.

use alloc::boxed::Box;
use alloc::vec;

use crate::time::{Nanos, Time};

/// The smallest cache (chosen: a window of 50 packets), and the largest whose offsets and
/// lengths fit into a record.
const LIMIT: core::ops::RangeInclusive<usize> = 64 * 1024..=1 << 30;
/// Bytes for which there is one record (chosen: less than most data packets have, so that
/// records rarely run out before bytes do).
const BYTES_PER_RECORD: usize = 512;

/// The largest packet that may go later than it came (chosen: what Ethernet carries).
pub(crate) const LARGEST_KEPT: usize = 1500;

/// Packets begin at multiples of this, in bytes: the kernel's messages have them there, too, and
/// what is aligned alike small processors copy twice as fast.
const WORD: usize = 4;

/// Names a packet for as long as it is in the cache, and never another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Id(u64);

/// What is known of one cached packet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// When it was forwarded.
    pub at: Time,
    /// When the last copy of it was sent.
    pub resent_at: Time,
    /// Number within its flow, from 1.
    pub number: u64,
    /// Distance to the flow's packet before this one; 0 if there is none.
    back: u32,
    /// Distance to the flow's packet after this one; 0 if there is none yet.
    forth: u32,
    offset: u32,
    len: u16,
    /// How many copies were sent.
    pub copies: u8,
}

const EMPTY: Record = Record {
    at: Time::ZERO,
    resent_at: Time::ZERO,
    number: 0,
    back: 0,
    forth: 0,
    offset: 0,
    len: 0,
    copies: 0,
};

#[derive(Debug)]
pub(crate) struct Cache {
    bytes: Box<[u8]>,
    /// Length is a power of two, so that an id maps to its place by a mask.
    records: Box<[Record]>,
    /// Id of the oldest packet.
    head: u64,
    /// Id of the next packet.
    tail: u64,
    /// Where the next packet's bytes go.
    write: usize,
}

impl Cache {
    /// A cache of `limit` bytes. There is a record for every [`BYTES_PER_RECORD`]:
    /// smaller packets run out of records before they run out of bytes.
    pub fn new(limit: usize) -> Cache {
        let limit = limit.clamp(*LIMIT.start(), *LIMIT.end());
        let records = (limit / BYTES_PER_RECORD).next_power_of_two();
        Cache {
            bytes: vec![0; limit].into_boxed_slice(),
            records: vec![EMPTY; records].into_boxed_slice(),
            head: 0,
            tail: 0,
            write: 0,
        }
    }

    /// An empty cache of another size in which old ids name nothing.
    pub fn resized(&self, limit: usize) -> Cache {
        Cache { head: self.tail, tail: self.tail, ..Cache::new(limit) }
    }

    pub fn limit(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of the packets held now.
    pub fn used(&self) -> usize {
        match self.record(Id(self.head)) {
            Some(oldest) => {
                let start = oldest.offset as usize;
                if start < self.write {
                    self.write - start
                } else {
                    self.bytes.len() - start + self.write
                }
            }
            None => 0,
        }
    }

    fn slot(&self, id: u64) -> usize {
        // The mask is smaller than `usize::MAX` on every target.
        (id & (self.records.len() as u64 - 1)) as usize
    }

    /// Takes in a packet of the flow whose newest packet is `previous`.
    /// `None` if the packet alone is too large for the cache.
    pub fn push(
        &mut self,
        at: Time,
        number: u64,
        previous: Option<Id>,
        packet: &[u8],
    ) -> Option<Id> {
        let len = u16::try_from(packet.len()).ok()?;
        if packet.len() > self.bytes.len() {
            return None;
        }
        if self.write + packet.len() > self.bytes.len() {
            // What lies between here and the end is of the lap before.
            self.evict_from(self.write, self.bytes.len());
            self.write = 0;
        }
        self.evict_from(self.write, self.write + packet.len());
        if self.tail - self.head == self.records.len() as u64 {
            self.head += 1;
        }
        let id = Id(self.tail);
        let offset = self.write as u32;
        self.bytes[self.write..self.write + packet.len()].copy_from_slice(packet);
        self.write += packet.len().next_multiple_of(WORD);
        self.tail += 1;
        let back = previous.map_or(0, |p| u32::try_from(id.0 - p.0).unwrap_or(0));
        if let Some(previous) = previous.and_then(|p| self.record_mut(p)) {
            previous.forth = back;
        }
        let slot = self.slot(id.0);
        self.records[slot] = Record { at, number, back, offset, len, ..EMPTY };
        Some(id)
    }

    /// Takes in once more, as the newest, a packet that was kept under `id` until it went.
    pub fn again(&mut self, at: Time, number: u64, previous: Option<Id>, id: Id) -> Option<Id> {
        let mut bytes = [0; LARGEST_KEPT];
        let packet = self.packet(id).filter(|packet| packet.len() <= bytes.len())?;
        let len = packet.len();
        bytes[..len].copy_from_slice(packet);
        self.push(at, number, previous, &bytes[..len])
    }

    /// Forgets the oldest packets while they lie in `from..to`.
    fn evict_from(&mut self, from: usize, to: usize) {
        while let Some(oldest) = self.record(Id(self.head)) {
            let offset = oldest.offset as usize;
            if offset < from || offset >= to {
                break;
            }
            self.head += 1;
        }
    }

    pub fn record(&self, id: Id) -> Option<&Record> {
        (id.0 >= self.head && id.0 < self.tail).then(|| &self.records[self.slot(id.0)])
    }

    pub fn record_mut(&mut self, id: Id) -> Option<&mut Record> {
        let slot = self.slot(id.0);
        (id.0 >= self.head && id.0 < self.tail).then(|| &mut self.records[slot])
    }

    pub fn packet(&self, id: Id) -> Option<&[u8]> {
        let record = self.record(id)?;
        let start = record.offset as usize;
        self.bytes.get(start..start + usize::from(record.len))
    }

    /// The packet of the same flow before this one.
    pub fn before(&self, id: Id) -> Option<Id> {
        Some(self.step_back(id, self.record(id)?)?.0)
    }

    /// The packet of the same flow after this one.
    pub fn after(&self, id: Id) -> Option<Id> {
        Some(self.step_forth(id, self.record(id)?)?.0)
    }

    /// The packet of the same flow before this one, and its record; `here` is that of this one.
    /// A search goes many steps for a reply, so each of them looks one record up and not three.
    fn step_back(&self, id: Id, here: &Record) -> Option<(Id, &Record)> {
        let before = Id(id.0.checked_sub(u64::from(here.back))?);
        self.record(before).filter(|_| here.back > 0).map(|record| (before, record))
    }

    /// The same for the packet after this one.
    fn step_forth(&self, id: Id, here: &Record) -> Option<(Id, &Record)> {
        let after = Id(id.0 + u64::from(here.forth));
        self.record(after).filter(|_| here.forth > 0).map(|record| (after, record))
    }
}

/// One flow's packets in the cache.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Trail {
    newest: Option<Id>,
    /// Where the last search ended; the next one is usually a step away.
    cursor: Option<Id>,
}

/// The two packets of a flow that surround a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Around {
    /// The last one forwarded at that moment or before.
    pub floor: Option<Id>,
    /// The first one forwarded after it.
    pub ceil: Option<Id>,
}

impl Trail {
    pub fn push(&mut self, cache: &mut Cache, at: Time, number: u64, packet: &[u8]) -> Option<Id> {
        let id = cache.push(at, number, self.newest, packet)?;
        self.newest = Some(id);
        Some(id)
    }

    /// A packet that was kept under `id` has gone.
    pub fn again(&mut self, cache: &mut Cache, at: Time, number: u64, id: Id) -> Option<Id> {
        let id = cache.again(at, number, self.newest, id)?;
        self.newest = Some(id);
        Some(id)
    }

    pub fn newest(&self, cache: &Cache) -> Option<Id> {
        self.newest.filter(|id| cache.record(*id).is_some())
    }

    /// Finds the packets around `moment`. Steps from where the last search
    /// ended, so a search costs as many steps as packets were sent since.
    pub fn around(&mut self, cache: &Cache, moment: Time) -> Around {
        let held = |id: Option<Id>| id.and_then(|id| Some((id, cache.record(id)?)));
        let Some(newest) = held(self.newest) else {
            return Around::default();
        };
        let (mut here, mut record) = held(self.cursor).unwrap_or(newest);
        let mut ceil = cache.step_forth(here, record);
        while let Some(next) = ceil.filter(|(_, next)| next.at <= moment) {
            (here, record) = next;
            ceil = cache.step_forth(here, record);
        }
        while record.at > moment {
            ceil = Some((here, record));
            match cache.step_back(here, record) {
                Some(before) => (here, record) = before,
                None => {
                    self.cursor = Some(here);
                    return Around { floor: None, ceil: Some(here) };
                }
            }
        }
        self.cursor = Some(here);
        Around { floor: Some(here), ceil: ceil.map(|(id, _)| id) }
    }

    /// The packet forwarded nearest to `moment`, and how much later it was.
    pub fn nearest(&mut self, cache: &Cache, moment: Time) -> Option<(Id, Nanos)> {
        let around = self.around(cache, moment);
        let offset =
            |id: Option<Id>| id.and_then(|id| cache.record(id).map(|r| (id, r.at.since(moment))));
        match (offset(around.floor), offset(around.ceil)) {
            (Some(floor), Some(ceil)) => Some(if -floor.1 <= ceil.1 { floor } else { ceil }),
            (floor, ceil) => floor.or(ceil),
        }
    }

    /// Packets forwarded in `from..=to`, newest first.
    pub fn within<'a>(
        &mut self,
        cache: &'a Cache,
        from: Time,
        to: Time,
    ) -> impl Iterator<Item = (Id, &'a Record)> + use<'a> {
        let floor = self.around(cache, to).floor;
        let mut next = floor.and_then(|id| Some((id, cache.record(id)?)));
        core::iter::from_fn(move || {
            let (id, record) = next.filter(|(_, record)| record.at >= from)?;
            next = cache.step_back(id, record);
            Some((id, record))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn at(us: u64) -> Time {
        Time::from_nanos(us * 1000)
    }

    #[test]
    fn stays_within_its_bound_and_keeps_the_newest() {
        let mut cache = Cache::new(64 * 1024);
        let mut trail = Trail::default();
        let mut ids = Vec::new();
        for n in 0..1000u64 {
            let packet = vec![n as u8; 900 + (n as usize * 37) % 600];
            ids.push((n, packet.len(), trail.push(&mut cache, at(n), n, &packet).unwrap()));
            assert!(cache.used() <= cache.limit());
        }
        let alive = ids.iter().filter(|(_, _, id)| cache.record(*id).is_some()).count();
        assert!((40..=64).contains(&alive), "{alive} packets of about 1200 bytes in 64 KiB");
        for (n, len, id) in ids.iter().rev().take(alive) {
            assert_eq!(cache.packet(*id), Some(&vec![*n as u8; *len][..]));
        }
        assert_eq!(cache.packet(ids[0].2), None);
    }

    #[test]
    fn small_packets_run_out_of_records() {
        let mut cache = Cache::new(64 * 1024);
        let first = cache.push(at(0), 1, None, &[1; 40]).unwrap();
        for n in 1..128 {
            cache.push(at(n), n, None, &[2; 40]);
        }
        assert!(cache.record(first).is_some());
        cache.push(at(200), 200, None, &[3; 40]);
        assert!(cache.record(first).is_none());
    }

    #[test]
    fn oversized_packets_are_not_kept() {
        assert_eq!(Cache::new(64 * 1024).push(at(0), 1, None, &[0; 65536]), None);
    }

    #[test]
    fn two_flows_interleaved() {
        let mut cache = Cache::new(64 * 1024);
        let (mut a, mut b) = (Trail::default(), Trail::default());
        for n in 0..20 {
            a.push(&mut cache, at(n * 10), n, b"a");
            b.push(&mut cache, at(n * 10 + 5), n, b"b");
        }
        let numbers = |trail: &mut Trail, from, to| -> Vec<u64> {
            trail.within(&cache, at(from), at(to)).map(|(_, r)| r.number).collect()
        };
        assert_eq!(numbers(&mut a, 30, 50), [5, 4, 3]);
        assert_eq!(numbers(&mut b, 30, 50), [4, 3]);
        let number = |id: Option<Id>| id.and_then(|id| cache.record(id)).map(|r| r.number);
        for (moment, floor, ceil) in
            [(55, Some(5), Some(6)), (12, Some(1), Some(2)), (500, Some(19), None)]
        {
            let found = a.around(&cache, at(moment));
            assert_eq!((number(found.floor), number(found.ceil)), (floor, ceil), "{moment}");
        }
        assert_eq!(number(b.around(&cache, at(1)).ceil), Some(0));
        assert_eq!(b.around(&cache, at(1)).floor, None);
        let (id, offset) = a.nearest(&cache, at(97)).unwrap();
        assert_eq!((number(Some(id)), offset), (Some(10), 3000));
    }

    #[test]
    fn another_size_forgets_all() {
        let mut cache = Cache::new(64 * 1024);
        let mut trail = Trail::default();
        let old = trail.push(&mut cache, at(1), 1, &[1; 1000]).unwrap();
        let mut cache = cache.resized(128 * 1024);
        let new = trail.push(&mut cache, at(2), 2, &[2; 1000]).unwrap();
        assert!(cache.record(old).is_none() && cache.before(new).is_none());
        assert_eq!(cache.packet(new), Some(&[2; 1000][..]));
    }

    #[test]
    fn a_trail_outlives_its_packets() {
        let mut cache = Cache::new(64 * 1024);
        let mut trail = Trail::default();
        trail.push(&mut cache, at(1), 1, &[0; 1000]);
        for n in 0..100 {
            cache.push(at(n), n, None, &[0; 1000]);
        }
        assert_eq!(trail.nearest(&cache, at(1)), None);
        assert!(trail.push(&mut cache, at(200), 2, &[0; 1000]).is_some());
        assert_eq!(trail.around(&cache, at(300)).ceil, None);
        assert_eq!(cache.before(trail.newest(&cache).unwrap()), None);
    }
}
