// SPDX-License-Identifier: GPL-2.0-or-later
//! What really happened on the hop to the clients, or to the servers, and what the engine's work
//! was worth by it. Definitions as in the testbed's scoring.

use linkem::{MS, Nanos};
use serde::Serialize;

/// The sender's own repair crosses the whole path twice and starts after that;
/// so much more is still ahead of it.
const MARGIN: Nanos = 5 * MS;

/// One transmission over the hop.
#[derive(Clone, Copy, Debug)]
pub struct Transmission {
    /// When the router sent it.
    pub at: Nanos,
    /// What became of it.
    pub fate: Fate,
}

/// What became of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Still under way when the run ended.
    UnderWay,
    /// Taken by the radio.
    Lost,
    /// Dropped by the queue.
    Dropped,
    /// Arrived then.
    Arrived(Nanos),
}

/// The transmissions of each packet of a flow; the first is the original.
#[derive(Clone, Debug, Default)]
pub struct Truth {
    /// By the packet's number.
    pub packets: Vec<Vec<Transmission>>,
}

/// Scores of the engine.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Inference {
    /// Originals that the router sent on.
    pub packets: u64,
    /// Of these, lost on the hop.
    pub losses: u64,
    /// Of these, those of which a copy was sent, in time or not.
    pub noticed: u64,
    /// Of these, those of which a copy arrived before the sender's own repair could.
    pub repaired: u64,
    /// Copies.
    pub copies: u64,
    /// Of these, those before which no transmission of the packet had arrived.
    pub copies_needed: u64,
}

impl Truth {
    /// The router sends a packet; gives the index of the transmission.
    pub fn sent(&mut self, number: u32, at: Nanos) -> usize {
        let number = number as usize;
        if self.packets.len() <= number {
            self.packets.resize(number + 1, Vec::new());
        }
        self.packets[number].push(Transmission { at, fate: Fate::UnderWay });
        self.packets[number].len() - 1
    }

    /// Its fate is known.
    pub fn ended(&mut self, number: u32, index: usize, fate: Fate) {
        self.packets[number as usize][index].fate = fate;
    }

    /// What the copies were worth, on a path with this round trip.
    pub fn score(&self, rtt: Nanos) -> Inference {
        let mut score = Inference::default();
        for transmissions in &self.packets {
            let [original, copies @ ..] = &transmissions[..] else { continue };
            score.packets += 1;
            score.copies += copies.len() as u64;
            let gone = |t: &Transmission| matches!(t.fate, Fate::Lost | Fate::Dropped);
            let mut all_gone = gone(original);
            for copy in copies {
                score.copies_needed += u64::from(all_gone);
                all_gone &= gone(copy);
            }
            if original.fate == Fate::Lost {
                score.losses += 1;
                score.noticed += u64::from(!copies.is_empty());
                let limit = original.at + rtt + MARGIN;
                let in_time = |t: &Transmission| matches!(t.fate, Fate::Arrived(at) if at <= limit);
                score.repaired += u64::from(copies.iter().any(in_time));
            }
        }
        score
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_is_needed_until_one_has_arrived() {
        let mut truth = Truth::default();
        let fates = [Fate::Lost, Fate::Lost, Fate::Arrived(30 * MS), Fate::Arrived(31 * MS)];
        for fate in fates {
            let index = truth.sent(0, 0);
            truth.ended(0, index, fate);
        }
        let index = truth.sent(1, 0);
        truth.ended(1, index, Fate::Arrived(MS));
        let expected = Inference {
            packets: 2,
            losses: 1,
            noticed: 1,
            repaired: 1,
            copies: 3,
            copies_needed: 2,
        };
        assert_eq!(truth.score(50 * MS), expected);
        assert_eq!(truth.score(20 * MS).repaired, 0, "too late");
    }
}
