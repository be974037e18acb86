// SPDX-License-Identifier: GPL-2.0-or-later
//! Who has been seen in the last seconds, out of any number: a Bloom filter that forgets.
//!
//! It says "seen" of a few that were not, and of none that was that it was not.

use super::{Micros, SEC};

/// Bits set for each name.
const MARKS: u32 = 3;
/// A generation takes new names for so long, and is asked for as long again.
const GENERATION: Micros = 2 * SEC;

#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Binary logarithm of the bits of a generation; three indexes fit into a name.
    size: u32,
    /// Without memory as long as nobody has been seen.
    generations: [Vec<u32>; 2],
    /// When the first of them began.
    began: Micros,
}

impl Seen {
    pub fn new(size: u32) -> Seen {
        Seen { size: size.min(u64::BITS / MARKS), generations: Default::default(), began: 0 }
    }

    /// Names are random numbers, as hashes are.
    pub fn contains(&mut self, now: Micros, name: u64) -> bool {
        self.age(now);
        self.generations.iter().any(|bits| {
            self.marks(name).all(|(word, bit)| bits.get(word).is_some_and(|word| word & bit != 0))
        })
    }

    pub fn insert(&mut self, now: Micros, name: u64) {
        self.age(now);
        let marks = self.marks(name);
        let words = 1 << self.size.saturating_sub(u32::BITS.ilog2());
        let [bits, _] = &mut self.generations;
        bits.resize(words, 0);
        for (word, bit) in marks {
            if let Some(word) = bits.get_mut(word) {
                *word |= bit;
            }
        }
    }

    fn marks(&self, name: u64) -> impl Iterator<Item = (usize, u32)> + use<> {
        let size = self.size;
        (0..MARKS).map(move |mark| {
            let index = (name >> (mark * size)) as usize & ((1 << size) - 1);
            (index / u32::BITS as usize, 1 << (index % u32::BITS as usize))
        })
    }

    fn age(&mut self, now: Micros) {
        let age = now.saturating_sub(self.began);
        if age < GENERATION {
            return;
        }
        self.began = now;
        let [newer, older] = &mut self.generations;
        // Who has been seen by nobody since takes no memory.
        *older = if age < 2 * GENERATION { std::mem::take(newer) } else { Vec::new() };
        *newer = Vec::new();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::random::Random;

    #[test]
    fn remembers_for_some_seconds_and_then_takes_no_memory() {
        let mut seen = Seen::new(19);
        let mut names = Random::new(5);
        let start = 100 * SEC;
        let known: Vec<u64> = (0..40_000).map(|_| names.next()).collect();
        for (name, at) in known.iter().zip((start..).step_by(50)) {
            seen.insert(at, *name);
        }
        let now = start + 2 * SEC;
        assert!(known.iter().all(|name| seen.contains(now, *name)));
        // Twenty thousand a second, and few others are taken for one of them.
        let wrong = (0..10_000).filter(|_| seen.contains(now, names.next())).count();
        assert!(wrong < 300, "{wrong}");
        assert!(!known.iter().any(|name| seen.contains(now + 3 * GENERATION, *name)));
        assert!(seen.generations.iter().all(|bits| bits.capacity() == 0));
    }
}
