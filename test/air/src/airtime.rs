// SPDX-License-Identifier: GPL-2.0-or-later
//! How long things take on the air (IEEE 802.11-2020, OFDM at 20 MHz and HT).

use crate::{Nanos, US};

/// A slot of the contention.
pub const SLOT: Nanos = 9 * US;
/// Between the frames of one exchange.
pub const SIFS: Nanos = 16 * US;
/// Training and signal fields of an HT PPDU.
const HT_PREAMBLE: Nanos = 40 * US;
/// The same of an old one, in which control and management frames are sent.
const LEGACY_PREAMBLE: Nanos = 20 * US;
/// A compressed block acknowledgement of 32 bytes at 24 Mbit/s, with preamble.
const BLOCK_ACK: Nanos = 32 * US;
/// An acknowledgement of 14 bytes at 24 Mbit/s, with preamble.
const ACK: Nanos = 28 * US;
/// Frame check sequence and delimiter of each frame in an aggregate.
const MPDU_EXTRA_BYTES: u32 = 8;
/// Mbit/s of control and management frames: the highest mandatory OFDM rate.
const BASIC_MBIT: f64 = 24.0;

/// What an aggregate lasts at most: the PPDU limit that drivers keep to.
pub const AGGREGATE_LIMIT: Nanos = 4_000 * US;
/// Sequence numbers that an aggregate spans at most: the block ack's bitmap.
pub const AGGREGATE_SPAN: u16 = 64;

/// The bits of one frame in an aggregate.
pub fn mpdu(bytes: u32, mbit: f64) -> Nanos {
    bits(bytes + MPDU_EXTRA_BYTES, mbit)
}

/// What comes before the first bit of an aggregate.
pub fn before_aggregate() -> Nanos {
    HT_PREAMBLE
}

/// What comes after its last.
pub fn after_aggregate() -> Nanos {
    SIFS + BLOCK_ACK
}

/// A frame that goes alone at the basic rate, with its acknowledgement if it has one.
pub fn plain(bytes: u32, acknowledged: bool) -> Nanos {
    let answer = if acknowledged { SIFS + ACK } else { 0 };
    LEGACY_PREAMBLE + bits(bytes, BASIC_MBIT) + answer
}

fn bits(bytes: u32, mbit: f64) -> Nanos {
    (f64::from(bytes) * 8_000.0 / mbit).round() as Nanos
}

/// An access category: who wins the air against whom.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Category {
    /// Also management.
    Voice,
    /// Of video.
    Video,
    /// Everything that nobody marked.
    BestEffort,
    /// What may wait.
    Background,
}

impl Category {
    /// All, the most urgent first.
    pub const ALL: [Category; 4] =
        [Category::Voice, Category::Video, Category::BestEffort, Category::Background];

    /// That of a traffic identifier (table 10-1).
    pub fn of_tid(tid: u8) -> Category {
        match tid & 7 {
            1 | 2 => Category::Background,
            4 | 5 => Category::Video,
            6 | 7 => Category::Voice,
            _ => Category::BestEffort,
        }
    }

    /// Its contention at an access point or at a client: hostapd's defaults, which
    /// let an access point's best effort back off no further than 63 slots.
    pub fn contention(self, access_point: bool) -> Contention {
        let (aifsn, least, most) = match (self, access_point) {
            (Category::Voice, true) => (1, 3, 7),
            (Category::Voice, false) => (2, 3, 7),
            (Category::Video, true) => (1, 7, 15),
            (Category::Video, false) => (2, 7, 15),
            (Category::BestEffort, true) => (3, 15, 63),
            (Category::BestEffort, false) => (3, 15, 1023),
            (Category::Background, _) => (7, 15, 1023),
        };
        Contention { aifsn, least, most }
    }
}

/// The parameters of an access category.
#[derive(Clone, Copy, Debug)]
pub struct Contention {
    /// Slots after SIFS before the backoff counts.
    pub aifsn: u32,
    /// The contention window after a success.
    pub least: u32,
    /// What it doubles up to.
    pub most: u32,
}
