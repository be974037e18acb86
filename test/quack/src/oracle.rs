// SPDX-License-Identifier: GPL-2.0-or-later
//! What decoding has to find, from knowing everything.

use std::collections::BTreeMap;

use pemi_quack::Missing;

/// What is missing of a log of residues if `lost` says of each whether it is.
pub fn missing(log: &[u64], lost: &[bool]) -> Missing<u64> {
    let mut all: BTreeMap<u64, (usize, usize)> = BTreeMap::new();
    for (&id, &lost) in log.iter().zip(lost) {
        let (sent, gone) = all.entry(id).or_default();
        *sent += 1;
        *gone += usize::from(lost);
    }
    let mut found = Missing { settled: log.len(), ..Missing::default() };
    for (index, id) in log.iter().enumerate() {
        match all[id] {
            (_, 0) => {}
            (sent, gone) if sent == gone => found.lost.push(index),
            _ => found.indeterminate.push(index),
        }
    }
    for (&id, &(_, gone)) in &all {
        found.identifiers.extend(std::iter::repeat_n(id, gone));
    }
    found
}
