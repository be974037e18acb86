// SPDX-License-Identifier: GPL-2.0-or-later
//! Slots found by a key, with a cap: the least recently used one makes room.
//!
//! Anybody's packets fill these tables, so the hash is seeded, nothing grows
//! beyond the cap, and what anybody can put in stands in a list of its own: a
//! flood of it pushes out nothing but itself. Used for flows and for clients.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;
use hashbrown::HashTable;

const NONE: u32 = u32::MAX;

/// Which of the two lists of a table an entry is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Anybody can put such an entry in: it makes room for the next one.
    Passing,
    /// It has shown that it is worth its place.
    Settled,
}

#[derive(Debug)]
struct Slot<K> {
    key: Option<K>,
    standing: Standing,
    newer: u32,
    older: u32,
}

/// Values in pieces, apart from their slots: one may have some kilobytes, so growing neither
/// moves what is there nor leaves room for as much again, and what is looked at for every
/// packet stands close together.
#[derive(Debug)]
struct Values<V>(Vec<Vec<Option<V>>>);

impl<V> Values<V> {
    /// Values in a piece (chosen: some 100 KiB of flows).
    const PIECE: usize = 32;

    fn get(&self, slot: u32) -> Option<&V> {
        self.0.get(slot as usize / Self::PIECE)?.get(slot as usize % Self::PIECE)?.as_ref()
    }

    fn get_mut(&mut self, slot: u32) -> Option<&mut V> {
        let piece = self.0.get_mut(slot as usize / Self::PIECE)?;
        piece.get_mut(slot as usize % Self::PIECE)?.as_mut()
    }

    /// Puts a value into a slot; none is left out.
    fn set(&mut self, slot: u32, value: V) {
        let (piece, place) = (slot as usize / Self::PIECE, slot as usize % Self::PIECE);
        if piece == self.0.len() {
            self.0.push(Vec::with_capacity(Self::PIECE));
        }
        if let Some(piece) = self.0.get_mut(piece) {
            match piece.get_mut(place) {
                Some(there) => *there = Some(value),
                None => piece.push(Some(value)),
            }
        }
    }

    fn take(&mut self, slot: u32) -> Option<V> {
        let piece = self.0.get_mut(slot as usize / Self::PIECE)?;
        piece.get_mut(slot as usize % Self::PIECE)?.take()
    }

    fn iter(&self) -> impl Iterator<Item = (u32, &V)> + '_ {
        let values = self.0.iter().flatten();
        (0..).zip(values).filter_map(|(slot, value)| Some((slot, value.as_ref()?)))
    }
}

/// The ends of one list, and how many there are between them.
#[derive(Debug)]
struct List {
    newest: u32,
    oldest: u32,
    len: usize,
}

impl List {
    const EMPTY: List = List { newest: NONE, oldest: NONE, len: 0 };
}

#[derive(Debug)]
pub(crate) struct Table<K, V> {
    index: HashTable<u32>,
    slots: Vec<Slot<K>>,
    values: Values<V>,
    free: Vec<u32>,
    passing: List,
    settled: List,
    hasher: FixedState,
}

impl<K: Hash + Eq, V> Table<K, V> {
    pub fn new(seed: u64) -> Self {
        Table {
            index: HashTable::new(),
            slots: Vec::new(),
            values: Values(Vec::new()),
            free: Vec::new(),
            passing: List::EMPTY,
            settled: List::EMPTY,
            hasher: FixedState::with_seed(seed),
        }
    }

    /// Entries of this standing.
    pub fn len(&self, standing: Standing) -> usize {
        self.list(standing).len
    }

    fn list(&self, standing: Standing) -> &List {
        match standing {
            Standing::Passing => &self.passing,
            Standing::Settled => &self.settled,
        }
    }

    fn list_mut(&mut self, standing: Standing) -> &mut List {
        match standing {
            Standing::Passing => &mut self.passing,
            Standing::Settled => &mut self.settled,
        }
    }

    /// What nobody else can tell beforehand of a key.
    pub fn hash(&self, key: &K) -> u64 {
        self.hasher.hash_one(key)
    }

    pub fn find(&self, key: &K) -> Option<u32> {
        let hash = self.hash(key);
        self.index.find(hash, |slot| self.key(*slot) == Some(key)).copied()
    }

    fn key(&self, slot: u32) -> Option<&K> {
        self.slots.get(slot as usize)?.key.as_ref()
    }

    pub fn get(&self, slot: u32) -> Option<&V> {
        self.values.get(slot)
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut V> {
        self.values.get_mut(slot)
    }

    /// Adds what is not there yet; it is [`Standing::Passing`]. The caller keeps the
    /// cap with [`Table::oldest`] and [`Table::remove`].
    pub fn insert(&mut self, key: K, value: V) -> u32 {
        let hash = self.hasher.hash_one(&key);
        let slot = self.free.pop().unwrap_or_else(|| {
            let standing = Standing::Passing;
            self.slots.push(Slot { key: None, standing, newer: NONE, older: NONE });
            self.slots.len() as u32 - 1
        });
        if let Some(s) = self.slots.get_mut(slot as usize) {
            s.key = Some(key);
        }
        self.values.set(slot, value);
        self.link(slot, Standing::Passing);
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.index.insert_unique(hash, slot, |slot| {
            slots.get(*slot as usize).and_then(|s| s.key.as_ref()).map_or(0, |k| hasher.hash_one(k))
        });
        slot
    }

    pub fn remove(&mut self, slot: u32) -> Option<V> {
        let key = self.slots.get_mut(slot as usize)?.key.take()?;
        let value = self.values.take(slot);
        self.unlink(slot);
        self.free.push(slot);
        let hash = self.hasher.hash_one(&key);
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        value
    }

    /// Marks `slot` as used just now.
    pub fn touch(&mut self, slot: u32) {
        let Some(standing) = self.slots.get(slot as usize).map(|s| s.standing) else { return };
        if self.list(standing).newest != slot {
            self.unlink(slot);
            self.link(slot, standing);
        }
    }

    /// Moves `slot` to the other list, as the one used just now.
    pub fn set_standing(&mut self, slot: u32, standing: Standing) {
        self.unlink(slot);
        self.link(slot, standing);
    }

    /// The slot of this standing that was not used for the longest time.
    pub fn oldest(&self, standing: Standing) -> Option<u32> {
        Some(self.list(standing).oldest).filter(|oldest| *oldest != NONE)
    }

    /// The slot of the same standing used next after `slot`.
    pub fn newer(&self, slot: u32) -> Option<u32> {
        self.slots.get(slot as usize).map(|s| s.newer).filter(|newer| *newer != NONE)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &V)> + '_ {
        self.values.iter()
    }

    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut V> {
        self.values.0.iter_mut().flatten().flatten()
    }

    fn link(&mut self, slot: u32, standing: Standing) {
        let list = self.list_mut(standing);
        list.len += 1;
        let older = core::mem::replace(&mut list.newest, slot);
        if older == NONE {
            list.oldest = slot;
        }
        if let Some(s) = self.slots.get_mut(slot as usize) {
            (s.standing, s.newer, s.older) = (standing, NONE, older);
        }
        if let Some(older) = self.slots.get_mut(older as usize) {
            older.newer = slot;
        }
    }

    fn unlink(&mut self, slot: u32) {
        let Some(s) = self.slots.get(slot as usize) else { return };
        let (standing, newer, older) = (s.standing, s.newer, s.older);
        self.list_mut(standing).len -= 1;
        match self.slots.get_mut(newer as usize) {
            Some(s) => s.older = older,
            None => self.list_mut(standing).newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(s) => s.newer = newer,
            None => self.list_mut(standing).oldest = newer,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn least_recently_used_order() {
        let mut t = Table::new(7);
        let slots: Vec<u32> = (0..5u64).map(|k| t.insert(k, k * 10)).collect();
        t.touch(slots[0]);
        t.touch(slots[3]);
        assert_eq!(t.remove(slots[2]), Some(20));
        assert_eq!(t.find(&2), None);
        let mut order = Vec::new();
        while let Some(slot) = t.oldest(Standing::Passing) {
            order.push(t.remove(slot).unwrap());
        }
        assert_eq!(order, [10, 40, 0, 30]);
        assert_eq!(t.len(Standing::Passing), 0);
    }

    #[test]
    fn slots_are_used_again() {
        let mut t = Table::new(1);
        for k in 0..1000u64 {
            if t.len(Standing::Passing) == 8 {
                let oldest = t.oldest(Standing::Passing).unwrap();
                assert_eq!(t.remove(oldest), Some(k - 8));
            }
            let slot = t.insert(k, k);
            assert_eq!(t.find(&k), Some(slot));
            assert!(slot < 8);
        }
        assert_eq!(t.iter().count(), 8);
        let oldest = t.oldest(Standing::Passing).unwrap();
        assert_eq!(t.newer(oldest).and_then(|s| t.get(s)), Some(&993));
    }

    #[test]
    fn each_standing_has_an_order_of_its_own() {
        let mut t = Table::new(3);
        let slots: Vec<u32> = (0..4u64).map(|k| t.insert(k, k)).collect();
        t.set_standing(slots[2], Standing::Settled);
        t.set_standing(slots[0], Standing::Settled);
        t.touch(slots[2]);
        assert_eq!((t.len(Standing::Passing), t.len(Standing::Settled)), (2, 2));
        assert_eq!(t.oldest(Standing::Passing), Some(slots[1]));
        assert_eq!(t.oldest(Standing::Settled), Some(slots[0]));
        assert_eq!(t.newer(slots[0]), Some(slots[2]));
        assert_eq!(t.newer(slots[2]), None);
        assert_eq!(t.remove(slots[0]), Some(0));
        t.set_standing(slots[2], Standing::Passing);
        assert_eq!((t.len(Standing::Passing), t.len(Standing::Settled)), (3, 0));
        assert_eq!(t.oldest(Standing::Settled), None);
        assert_eq!(t.find(&2), Some(slots[2]));
    }
}
