// SPDX-License-Identifier: GPL-2.0-or-later
//! A sender of a thousand packets learns which of them did not arrive, from one quACK:
//!
//! ```sh
//! cargo run -p pemi-quack --example missing 3 141 592
//! ```

use std::error::Error;
use std::num::NonZeroU8;

use pemi_quack::{Missing, Quack};

const PACKETS: usize = 1000;
/// How many missing packets a quACK can name.
const THRESHOLD: NonZeroU8 = NonZeroU8::new(8).unwrap();

/// Stands for 32 bits of an encrypted packet: they look random and differ from packet to packet.
fn identifier(packet: usize) -> u32 {
    (packet as u32).wrapping_mul(0x9e37_79b9).rotate_left(15).wrapping_mul(0x85eb_ca6b)
}

/// What the sender finds out if the packets of `lost` do not arrive, and how many bytes told it.
fn tell(lost: &[usize]) -> Result<(Missing<u32>, usize), Box<dyn Error>> {
    let log: Vec<u32> = (0..PACKETS).map(identifier).collect();

    let mut received = Quack::new(THRESHOLD);
    let arrived = log.iter().enumerate().filter(|(packet, _)| !lost.contains(packet));
    arrived.for_each(|(_, &identifier)| received.insert(identifier));
    let mut message = Vec::new();
    received.write(THRESHOLD, &mut message);

    // Nothing but the message gets from the one to the other.
    let quack = Quack::parse(&message)?;
    let mut sent = Quack::new(THRESHOLD);
    log.iter().for_each(|&identifier| sent.insert(identifier));
    let missing = sent.decode(&log, &quack)?;

    // They count no more; otherwise they would use up the threshold for ever.
    missing.identifiers.iter().for_each(|&identifier| sent.remove(identifier));
    Ok((missing, message.len()))
}

fn main() -> Result<(), Box<dyn Error>> {
    let lost = std::env::args().skip(1).map(|word| word.parse()).collect::<Result<Vec<_>, _>>()?;
    let (missing, bytes) = tell(&lost)?;
    println!("{bytes} bytes tell that of {PACKETS} packets {:?} are lost", missing.lost);
    Ok(())
}

#[test]
fn three_are_named_and_nine_are_too_many() {
    let (missing, bytes) = tell(&[3, 141, 592]).expect("no more than the threshold");
    assert_eq!((missing.lost, bytes), (vec![3, 141, 592], 41));
    let nine: Vec<usize> = (10..19).collect();
    let error = tell(&nine).expect_err("more than the threshold");
    assert_eq!(error.to_string(), "9 packets are missing, the threshold is 8");
}
