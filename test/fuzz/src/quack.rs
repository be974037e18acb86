// SPDX-License-Identifier: GPL-2.0-or-later
//! Target `quack`. The first byte says what the others are: a quACK as it came
//! from the network, or packets.

use std::num::NonZeroU8;

use pemi_quack::{AnyQuack, Identifier, Missing, Quack};
use pemi_quack_tests::oracle;
use pemi_quack_tests::plain::prime;
use pemi_quack_tests::scene::{Scene, numbers};

/// Calls everything with `data`.
pub fn run(data: &[u8]) {
    let Some((kind, data)) = data.split_first() else { return };
    match kind % 6 {
        0 => stranger(data, |id| id as u16),
        1 => stranger(data, |id| id as u32),
        2 => stranger(data, |id| id),
        3 => packets(data, 16, |id| id as u16, u64::from),
        4 => packets(data, 32, |id| id as u32, u64::from),
        _ => packets(data, 64, |id| id, |id| id),
    }
}

fn threshold(byte: u8) -> NonZeroU8 {
    NonZeroU8::new(byte).unwrap_or(NonZeroU8::MIN)
}

/// Bytes that claim to be a quACK.
fn stranger<I: Identifier>(data: &[u8], narrow: impl Fn(u64) -> I) {
    let mut written = Vec::new();
    if let Ok(any) = AnyQuack::parse(data) {
        any.write(NonZeroU8::MAX, &mut written);
        assert_eq!(written, data, "one form only");
    }
    let Ok(received) = Quack::<I>::parse(data) else { return };
    assert_eq!(written, data, "both parsers agree");
    // A log that has what the receiver is said to have got last.
    let mut log: Vec<I> = numbers(data.len() as u64).take(40).map(narrow).collect();
    log.extend(received.last());
    log.extend(log.first().copied());
    let mut sent = Quack::new(threshold(data.last().copied().unwrap_or(1) % 32));
    log.iter().for_each(|&id| sent.insert(id));
    for found in [
        sent.decode(&log, &received),
        sent.difference(&received).decode(&log),
        received.difference(&sent).decode(&log),
    ]
    .into_iter()
    .flatten()
    {
        sound(&found, &log);
    }
    sent.resync(&received, &log);
    let found = sent.difference(&received).decode(&log);
    let possible = received.threshold() >= log.len();
    assert_eq!(found.is_ok(), possible, "all of the log is missing: {found:?}");
}

/// True of every answer, right or wrong.
fn sound<I: Identifier>(found: &Missing<I>, log: &[I]) {
    let ascending = |list: &[usize]| list.windows(2).all(|pair| pair[0] < pair[1]);
    assert!(ascending(&found.lost) && ascending(&found.indeterminate));
    assert!(found.settled <= log.len());
    let all = found.lost.iter().chain(&found.indeterminate);
    assert!(all.clone().all(|index| *index < found.settled));
    assert!(found.lost.len() <= found.len() && found.len() <= all.count());
}

/// Two bytes a packet: its identifier, of few, so that many are the same, and
/// what becomes of it. Checked against the oracle.
fn packets<I: Identifier>(
    data: &[u8],
    bits: u32,
    narrow: impl Fn(u64) -> I,
    wide: impl Fn(I) -> u64,
) {
    let Some((&[sums, others], packets)) = data.split_first_chunk() else { return };
    let mut sent = Quack::new(threshold(sums));
    let mut received = Quack::new(threshold(others));
    let (mut log, mut lost) = (Vec::new(), Vec::new());
    for &[id, fate] in packets.as_chunks().0 {
        // The first are the same modulo the prime of some width.
        let id = match id {
            0..16 => u64::MAX - u64::from(id) % 64,
            16..32 => prime([16, 32, 64][usize::from(id) % 3]) - 1 + u64::from(id) % 4,
            _ => u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15),
        };
        let id = narrow(id);
        log.push(id);
        sent.insert(id);
        lost.push(fate < 16);
        if fate >= 16 {
            received.insert(id);
        }
    }
    let mut bytes = Vec::new();
    received.write(threshold(others), &mut bytes);
    assert_eq!(Quack::parse(&bytes).as_ref(), Ok(&received));

    let gone = lost.iter().filter(|lost| **lost).count();
    let possible = gone <= sent.threshold().min(received.threshold());
    let found = sent.difference(&received).decode(&log);
    let residues: Vec<u64> = log.iter().map(|&id| wide(id) % prime(bits)).collect();
    let expected = oracle::missing(&residues, &lost);
    match found {
        Ok(found) => {
            let identifiers: Vec<u64> = found.identifiers.iter().map(|&id| wide(id)).collect();
            let found = Missing {
                lost: found.lost,
                indeterminate: found.indeterminate,
                identifiers,
                settled: found.settled,
            };
            assert_eq!(found, expected);
        }
        Err(error) => assert!(!possible, "{error}: {gone} of {}", log.len()),
    }
    // Those after the last one received are in flight. Which ones those are can
    // be ambiguous where identifiers are the same, so no oracle here.
    if let Ok(found) = sent.decode(&log, &received) {
        sound(&found, &log);
        found.identifiers.iter().for_each(|&id| sent.remove(id));
        let missing = sent.count().wrapping_sub(received.count());
        assert_eq!(usize::from(missing), log.len() - found.settled);
        let mut resynced = received.clone();
        resynced.resync(&received, &log[found.settled..]);
        let common = sent.threshold().min(resynced.threshold());
        assert_eq!(sent.sums()[..common], resynced.sums()[..common]);
    }
}

/// Quacks of every width, whole and cut, and packets of every kind.
pub fn seeds() -> Vec<Vec<u8>> {
    fn quack<I: Identifier>(kind: u8, threshold: u8, narrow: impl Fn(u64) -> I) -> Vec<u8> {
        let scene = Scene::new(threshold.into(), 30, usize::from(threshold % 7));
        let (_, received) = scene.quacks(&scene.log(narrow), threshold);
        let mut bytes = vec![kind];
        received.write(NonZeroU8::MAX, &mut bytes);
        bytes
    }
    let mut seeds = Vec::new();
    for threshold in [1, 2, 8, 20, 60] {
        seeds.push(quack(0, threshold, |id| id as u16));
        seeds.push(quack(1, threshold, |id| id as u32));
        seeds.push(quack(2, threshold, |id| id));
        for kind in 3..6 {
            for share in [0u8, 8, 32, 255] {
                let fates = numbers(u64::from(share)).take(50).flat_map(|random| {
                    let fate = if (random >> 8) as u8 >= share { 200 } else { 0 };
                    [random as u8, fate]
                });
                seeds.push([kind, threshold, 40].into_iter().chain(fates).collect());
            }
        }
    }
    seeds
}
