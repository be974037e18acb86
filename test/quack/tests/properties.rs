// SPDX-License-Identifier: GPL-2.0-or-later
//! Random packets, random losses: decoding finds what the oracle knows.

use std::num::NonZeroU8;

use pemi_quack::{AnyQuack, DecodeError, Identifier, Missing, Quack, REORDERED};
use pemi_quack_tests::oracle;
use pemi_quack_tests::plain::{Plain, prime};
use proptest::prelude::*;

/// Something that can be checked with identifiers of every width.
trait Check {
    fn check<I: Identifier>(
        &self,
        bits: u32,
        narrow: impl Fn(u64) -> I + Copy,
        wide: impl Fn(I) -> u64 + Copy,
    ) -> Result<(), TestCaseError>;
}

fn every_width(check: &impl Check) -> Result<(), TestCaseError> {
    check.check(16, |id| id as u16, u64::from)?;
    check.check(32, |id| id as u32, u64::from)?;
    check.check(64, |id| id, |id| id)
}

fn nonzero(threshold: u8) -> NonZeroU8 {
    NonZeroU8::new(threshold).expect("not zero")
}

/// What one run is made of: identifiers and whether each is lost.
#[derive(Clone, Debug)]
struct Packets {
    threshold: u8,
    sent: Vec<(u64, bool)>,
    /// Sent before the log begins, all received: the count starts there.
    before: u16,
}

/// Identifiers of which many are the same, many are at the edges of the
/// fields, and the rest is anything.
fn identifier() -> impl Strategy<Value = u64> {
    prop_oneof![
        0..6u64,
        (0..70u64).prop_map(|n| u64::MAX - n),
        (0..20u64).prop_map(|n| 0xffff_fff0_0000_fff0 + n),
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
        any::<u64>(),
    ]
}

fn packets(most: usize) -> impl Strategy<Value = Packets> {
    let threshold = prop_oneof![1..30u8, 1..=255u8];
    let share = prop_oneof![Just(0.0), Just(0.02), Just(0.3), Just(1.0)];
    (threshold, share, 0..most, prop_oneof![Just(0u16), any::<u16>(), 65_000..=65_535u16])
        .prop_flat_map(|(threshold, share, len, before)| {
            let packet = (identifier(), prop::bool::weighted(share));
            prop::collection::vec(packet, len).prop_map(move |sent| Packets {
                threshold,
                sent,
                before,
            })
        })
}

/// Sums of sender and receiver, and the log.
fn both<I: Identifier>(
    packets: &Packets,
    narrow: impl Fn(u64) -> I,
) -> (Quack<I>, Quack<I>, Vec<I>) {
    // Only their count matters, so they are as good as zeros.
    let mut bytes = Vec::new();
    Quack::<I>::new(nonzero(packets.threshold)).write(nonzero(255), &mut bytes);
    bytes[3..5].copy_from_slice(&packets.before.to_be_bytes());
    let mut sent = Quack::parse(&bytes).expect("a quACK");
    let mut received = sent.clone();
    let mut log = Vec::new();
    for &(id, lost) in &packets.sent {
        let id = narrow(id);
        log.push(id);
        sent.insert(id);
        if !lost {
            received.insert(id);
        }
    }
    (sent, received, log)
}

/// Without the widths.
fn widened<I: Identifier>(missing: Missing<I>, wide: impl Fn(I) -> u64) -> Missing<u64> {
    Missing {
        lost: missing.lost,
        indeterminate: missing.indeterminate,
        identifiers: missing.identifiers.into_iter().map(wide).collect(),
        settled: missing.settled,
    }
}

impl Check for Packets {
    fn check<I: Identifier>(
        &self,
        bits: u32,
        narrow: impl Fn(u64) -> I + Copy,
        wide: impl Fn(I) -> u64 + Copy,
    ) -> Result<(), TestCaseError> {
        let (sent, received, log) = both(self, narrow);
        let lost: Vec<bool> = self.sent.iter().map(|(_, lost)| *lost).collect();
        let gone = lost.iter().filter(|lost| **lost).count();
        let found = sent.difference(&received).decode(&log);
        if gone > usize::from(self.threshold) {
            let missing = gone as u16;
            let threshold = self.threshold;
            prop_assert_eq!(found, Err(DecodeError::TooMany { missing, threshold }));
            return Ok(());
        }
        let residues: Vec<u64> = log.iter().map(|&id| wide(id) % prime(bits)).collect();
        let expected = oracle::missing(&residues, &lost);
        prop_assert_eq!(found.map(|found| widened(found, wide)), Ok(expected.clone()));
        prop_assert_eq!(expected.identifiers.len(), gone);

        // Both told of each other over the wire, in fewer sums if they do.
        let mut bytes = Vec::new();
        received.write(nonzero(gone.max(1) as u8), &mut bytes);
        let fewer = Quack::<I>::parse(&bytes).expect("a quACK");
        let found = sent.difference(&fewer).decode(&log);
        prop_assert_eq!(found.map(|found| widened(found, wide)), Ok(expected.clone()));
        prop_assert!(AnyQuack::parse(&bytes).is_ok_and(|any| any.width().bytes() == I::SIZE));

        // Without the missing ones the sender's sums are the receiver's.
        let mut forgotten = sent.clone();
        expected.identifiers.iter().for_each(|&id| forgotten.remove(narrow(id)));
        prop_assert_eq!(forgotten.sums(), received.sums());
        prop_assert_eq!(forgotten.count(), received.count());

        // The other way round the receiver is ahead.
        let by = gone as u16;
        let back = received.difference(&sent).decode(&log);
        if gone > 0 {
            prop_assert_eq!(back, Err(DecodeError::Ahead { by }));
        }
        Ok(())
    }
}

/// The same with the last packets in flight.
struct Flying {
    packets: Packets,
    flying: Vec<u64>,
    swap: usize,
}

impl Check for Flying {
    fn check<I: Identifier>(
        &self,
        bits: u32,
        narrow: impl Fn(u64) -> I + Copy,
        wide: impl Fn(I) -> u64 + Copy,
    ) -> Result<(), TestCaseError> {
        let mut packets = self.packets.clone();
        // The last one not in flight arrived.
        packets.sent.push((0x1234_5678_9abc_def0, false));
        let gone = packets.sent.iter().filter(|(_, lost)| *lost).count();
        let (mut sent, mut received, mut log) = both(&packets, narrow);
        for &id in &self.flying {
            log.push(narrow(id));
            sent.insert(narrow(id));
        }
        if gone > usize::from(packets.threshold) {
            let (missing, threshold) = (gone as u16, packets.threshold);
            let found = sent.decode(&log, &received);
            prop_assert_eq!(found, Err(DecodeError::TooMany { missing, threshold }));
            sent.resync(&received, &log[packets.sent.len()..]);
        } else {
            let settled = packets.sent.len();
            let lost: Vec<bool> = packets.sent.iter().map(|(_, lost)| *lost).collect();
            let residues: Vec<u64> = log.iter().map(|&id| wide(id) % prime(bits)).collect();
            let expected = oracle::missing(&residues[..settled], &lost);
            let found = sent.decode(&log, &received);
            prop_assert_eq!(found.map(|found| widened(found, wide)), Ok(expected.clone()));
            expected.identifiers.iter().for_each(|&id| sent.remove(narrow(id)));
        }
        // What is in flight arrives, a bit out of order, and all is well.
        log.drain(..packets.sent.len() - 1);
        let mut arriving: Vec<I> = self.flying.iter().map(|&id| narrow(id)).collect();
        if let Some(last) = arriving.len().checked_sub(1 + self.swap) {
            arriving[last..].rotate_left(1);
        }
        arriving.iter().for_each(|&id| received.insert(id));
        let found = sent.decode(&log, &received).map(|found| found.identifiers);
        prop_assert_eq!(found, Ok(vec![]));
        Ok(())
    }
}

/// Sums that are nobody's.
struct Garbage(Vec<u8>, Vec<u64>);

impl Check for Garbage {
    fn check<I: Identifier>(
        &self,
        _: u32,
        narrow: impl Fn(u64) -> I + Copy,
        _: impl Fn(I) -> u64 + Copy,
    ) -> Result<(), TestCaseError> {
        let log: Vec<I> = self.1.iter().map(|&id| narrow(id)).collect();
        if let Ok(quack) = Quack::<I>::parse(&self.0) {
            let mut bytes = Vec::new();
            quack.write(nonzero(255), &mut bytes);
            prop_assert_eq!(&bytes, &self.0);
            let mut sent = Quack::new(nonzero(20));
            log.iter().for_each(|&id| sent.insert(id));
            let _ = sent.decode(&log, &quack);
            let _ = quack.difference(&sent).decode(&log);
        }
        Ok(())
    }
}

/// Mostly a header that passes.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let format =
        prop_oneof![Just(2u8), Just(4), Just(8), Just(0x82), Just(0x84), Just(0x88), any::<u8>()];
    let head = (prop_oneof![9 => Just(1u8), 1 => any::<u8>()], format, 0..9u8, any::<u16>());
    (head, any::<bool>(), prop::collection::vec(any::<u8>(), 80)).prop_map(
        |((version, format, threshold, count), fits, mut rest)| {
            let ids = usize::from(threshold) + usize::from(format >> 7);
            if fits {
                rest.truncate(ids * usize::from(format & 0x7f));
            }
            let [high, low] = count.to_be_bytes();
            [&[version, format, threshold, high, low][..], &rest].concat()
        },
    )
}

proptest! {
    #[test]
    fn decoding_is_the_set_difference(packets in packets(120)) {
        every_width(&packets)?;
    }

    #[test]
    fn packets_in_flight_are_not_missing(
        packets in packets(60),
        flying in prop::collection::vec(any::<u64>(), 0..40),
        swap in 0..REORDERED,
    ) {
        // Identifiers of their own, with 16 bits as well.
        let flying = flying.iter().zip(0u64..).map(|(id, n)| (id << 16) | (0x2000 + n)).collect();
        let mut packets = packets;
        packets.sent.retain(|(id, _)| !(0x2000..0x2100).contains(&(id & 0xffff)) && id & 0xffff != 0xdef0);
        every_width(&Flying { packets, flying, swap })?;
    }

    #[test]
    fn the_same_sums_as_by_definition(
        ids in prop::collection::vec(identifier(), 0..20),
        threshold in 1..=255u8,
    ) {
        let mut quack = Quack::<u32>::new(nonzero(threshold));
        let mut plain = Plain::<32>::new(threshold.into());
        for &id in &ids {
            quack.insert(id as u32);
            plain.insert(u64::from(id as u32));
        }
        let sums: Vec<u64> = quack.sums().iter().map(|&sum| sum.into()).collect();
        prop_assert_eq!(sums, plain.sums);
        let mut quack = Quack::<u64>::new(nonzero(threshold));
        let mut plain = Plain::<64>::new(threshold.into());
        for &id in &ids {
            quack.insert(id);
            plain.insert(id);
        }
        prop_assert_eq!(quack.sums(), plain.sums);
    }

    #[test]
    fn removing_undoes_inserting(
        ids in prop::collection::vec(identifier(), 1..40),
        threshold in 1..=60u8,
    ) {
        let empty = Quack::<u64>::new(nonzero(threshold));
        let mut quack = empty.clone();
        ids.iter().for_each(|&id| quack.insert(id));
        ids.iter().rev().for_each(|&id| quack.remove(id));
        prop_assert_eq!(quack.sums(), empty.sums());
        prop_assert_eq!(quack.count(), 0);
    }

    #[test]
    fn bytes_of_anyones(bytes in bytes(), ids in prop::collection::vec(identifier(), 0..40)) {
        every_width(&Garbage(bytes, ids))?;
    }
}

/// Other sums than the sender's are noticed: with all but one as a check, even
/// a wrong bit is.
#[test]
fn a_wrong_bit_is_noticed() {
    let scene = pemi_quack_tests::scene::Scene::new(7, 300, 4);
    let log = scene.log(|id| id as u32);
    let (sent, received) = scene.quacks(&log, 8);
    let mut bytes = Vec::new();
    received.write(nonzero(8), &mut bytes);
    for bit in 24..bytes.len() * 8 {
        let mut wrong = bytes.clone();
        wrong[bit / 8] ^= 1 << (bit % 8);
        let Ok(wrong) = Quack::parse(&wrong) else { continue };
        let found = sent.decode(&log, &wrong);
        assert!(found.is_err(), "bit {bit}: {found:?}");
    }
}

/// More than half of all counts.
#[test]
fn a_long_outage() {
    let mut sent = Quack::<u32>::new(nonzero(8));
    let received = sent.clone();
    for (missing, id) in (1u32..=70_000).zip(1000u32..) {
        sent.insert(id);
        let found = sent.difference(&received).missing();
        let expected = match missing {
            1..=8 => Ok(missing as usize),
            9..=32_767 => Err(DecodeError::TooMany { missing: missing as u16, threshold: 8 }),
            32_768..=65_535 => Err(DecodeError::Ahead { by: (65_536 - missing) as u16 }),
            // The count alone cannot tell; the sums do.
            65_536..=65_544 => Ok((missing - 65_536) as usize),
            _ => Err(DecodeError::TooMany { missing: (missing - 65_536) as u16, threshold: 8 }),
        };
        assert_eq!(found, expected, "{missing}");
    }
    let mut sent = Quack::<u32>::new(nonzero(8));
    let log: Vec<u32> = (1000..1000 + 65_540).collect();
    log.iter().for_each(|&id| sent.insert(id));
    assert_eq!(sent.difference(&received).decode(&log), Err(DecodeError::NotInLog));
}
