//! Slots found by a key, with a cap: the least recently used one makes room.
//!
//! Strangers' packets fill these tables, so the hash is seeded and nothing
//! grows beyond the cap. Used for flows and for clients.

use alloc::vec::Vec;
use core::hash::{BuildHasher, Hash};

use foldhash::quality::FixedState;
use hashbrown::HashTable;

const NONE: u32 = u32::MAX;

#[derive(Debug)]
struct Slot<K, V> {
    entry: Option<(K, V)>,
    newer: u32,
    older: u32,
}

#[derive(Debug)]
pub(crate) struct Table<K, V> {
    index: HashTable<u32>,
    slots: Vec<Slot<K, V>>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
    hasher: FixedState,
}

impl<K: Hash + Eq, V> Table<K, V> {
    pub fn new(seed: u64) -> Self {
        Table {
            index: HashTable::new(),
            slots: Vec::new(),
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
            hasher: FixedState::with_seed(seed),
        }
    }

    pub fn len(&self) -> usize {
        self.index.len()
    }

    pub fn find(&self, key: &K) -> Option<u32> {
        let hash = self.hasher.hash_one(key);
        self.index.find(hash, |slot| self.key(*slot) == Some(key)).copied()
    }

    fn key(&self, slot: u32) -> Option<&K> {
        self.slots.get(slot as usize)?.entry.as_ref().map(|(key, _)| key)
    }

    pub fn get(&self, slot: u32) -> Option<&V> {
        self.slots.get(slot as usize)?.entry.as_ref().map(|(_, value)| value)
    }

    pub fn get_mut(&mut self, slot: u32) -> Option<&mut V> {
        self.slots.get_mut(slot as usize)?.entry.as_mut().map(|(_, value)| value)
    }

    /// Adds what is not there yet. The caller keeps the cap with
    /// [`Table::oldest`] and [`Table::remove`].
    pub fn insert(&mut self, key: K, value: V) -> u32 {
        let hash = self.hasher.hash_one(&key);
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { entry: None, newer: NONE, older: NONE });
            self.slots.len() as u32 - 1
        });
        self.slots[slot as usize].entry = Some((key, value));
        self.link(slot);
        let (slots, hasher) = (&self.slots, &self.hasher);
        self.index.insert_unique(hash, slot, |slot| {
            slots[*slot as usize].entry.as_ref().map_or(0, |(key, _)| hasher.hash_one(key))
        });
        slot
    }

    pub fn remove(&mut self, slot: u32) -> Option<V> {
        let (key, value) = self.slots.get_mut(slot as usize)?.entry.take()?;
        self.unlink(slot);
        self.free.push(slot);
        let hash = self.hasher.hash_one(&key);
        if let Ok(entry) = self.index.find_entry(hash, |other| *other == slot) {
            entry.remove();
        }
        Some(value)
    }

    /// Marks `slot` as used just now.
    pub fn touch(&mut self, slot: u32) {
        if self.newest != slot {
            self.unlink(slot);
            self.link(slot);
        }
    }

    /// The slot not used for the longest time.
    pub fn oldest(&self) -> Option<u32> {
        (self.oldest != NONE).then_some(self.oldest)
    }

    /// The slot used next after `slot`.
    pub fn newer(&self, slot: u32) -> Option<u32> {
        self.slots.get(slot as usize).map(|s| s.newer).filter(|newer| *newer != NONE)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &V)> + '_ {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(slot, s)| s.entry.as_ref().map(|(_, value)| (slot as u32, value)))
    }

    fn link(&mut self, slot: u32) {
        let older = core::mem::replace(&mut self.newest, slot);
        let s = &mut self.slots[slot as usize];
        (s.newer, s.older) = (NONE, older);
        match self.slots.get_mut(older as usize) {
            Some(older) => older.newer = slot,
            None => self.oldest = slot,
        }
    }

    fn unlink(&mut self, slot: u32) {
        let (newer, older) = {
            let s = &self.slots[slot as usize];
            (s.newer, s.older)
        };
        match self.slots.get_mut(newer as usize) {
            Some(s) => s.older = older,
            None => self.newest = older,
        }
        match self.slots.get_mut(older as usize) {
            Some(s) => s.newer = newer,
            None => self.oldest = newer,
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
        while let Some(slot) = t.oldest() {
            order.push(t.remove(slot).unwrap());
        }
        assert_eq!(order, [10, 40, 0, 30]);
        assert_eq!(t.len(), 0);
    }

    #[test]
    fn slots_are_used_again() {
        let mut t = Table::new(1);
        for k in 0..1000u64 {
            if t.len() == 8 {
                let oldest = t.oldest().unwrap();
                assert_eq!(t.remove(oldest), Some(k - 8));
            }
            let slot = t.insert(k, k);
            assert_eq!(t.find(&k), Some(slot));
            assert!(slot < 8);
        }
        assert_eq!(t.iter().count(), 8);
        assert_eq!(t.newer(t.oldest().unwrap()).and_then(|s| t.get(s)), Some(&993));
    }
}
