// SPDX-License-Identifier: GPL-2.0-or-later
//! What the acknowledgements of a TCP client say of losses that were reported.
//!
//! They are not encrypted, so nothing about them need be guessed from their times: one that
//! reaches the end of what was lost shows it repaired, and until then those that name a hole, or
//! the same byte again, are what makes the sender slow down (RFC 5681, section 3.2; RFC 6675).

use crate::wire::packet::Segment;
use crate::wire::segment::reaches;

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cumulative {
    /// Up to where the client has acknowledged.
    newest: Option<u32>,
    /// The end of the furthest loss that is to be concealed.
    lost: Option<u32>,
}

/// What a client's segment tells of the losses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tells {
    /// Everything has arrived.
    Repaired,
    /// There is a hole.
    Hole,
    /// Nothing of them, or something else besides.
    Nothing,
}

impl Cumulative {
    /// Whether the client has acknowledged this segment.
    pub fn has(&self, segment: &Segment) -> bool {
        let reached = |newest| segment.length > 0 && reaches(newest, segment.end);
        self.newest.is_some_and(reached)
    }

    /// This segment was lost, while others are concealed or as the `first`. Whether
    /// acknowledgements can tell of it.
    pub fn lost(&mut self, segment: &Segment, first: bool) -> bool {
        if segment.length == 0 {
            return false;
        }
        let further = self.lost.filter(|lost| !first && reaches(*lost, segment.end));
        self.lost = further.or(Some(segment.end));
        true
    }

    /// What a segment of the client's tells.
    pub fn reply(&mut self, segment: &Segment) -> Tells {
        let number = segment.acknowledges;
        let before = self.newest;
        if before.is_none_or(|newest| reaches(number, newest)) {
            self.newest = Some(number);
        }
        if self.lost.is_some_and(|lost| reaches(number, lost)) {
            return Tells::Repaired;
        }
        let again = before.is_some_and(|newest| reaches(newest, number));
        match segment.pure && (segment.selective || again) {
            true => Tells::Hole,
            false => Tells::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data(end: u32) -> Segment {
        Segment {
            source_port: 443,
            destination_port: 50000,
            end,
            length: 1448,
            acknowledges: 1,
            pure: false,
            selective: false,
        }
    }

    fn acknowledgement(number: u32, selective: bool) -> Segment {
        Segment { end: 1, length: 0, acknowledges: number, pure: true, selective, ..data(0) }
    }

    #[test]
    fn until_the_lost_byte_is_reached_there_is_a_hole() {
        // Across the end of the numbers.
        let at = |n: u32| (u32::MAX - 3000).wrapping_add(n * 1448);
        let mut client = Cumulative::default();
        assert_eq!(client.reply(&acknowledgement(at(0), false)), Tells::Nothing);
        assert!(client.lost(&data(at(3)), true));
        // What came before the hole is news.
        assert_eq!(client.reply(&acknowledgement(at(2), false)), Tells::Nothing);
        assert_eq!(client.reply(&acknowledgement(at(2), false)), Tells::Hole);
        assert_eq!(client.reply(&acknowledgement(at(2), true)), Tells::Hole);
        assert!(!client.has(&data(at(3))));
        // One more, and one before it.
        assert!(client.lost(&data(at(5)), false) && client.lost(&data(at(4)), false));
        assert_eq!(client.reply(&acknowledgement(at(4), true)), Tells::Hole);
        assert_eq!(client.reply(&acknowledgement(at(4), false)), Tells::Hole);
        assert!(client.has(&data(at(3))));
        assert_eq!(client.reply(&acknowledgement(at(5), true)), Tells::Repaired);
        assert!(client.lost(&data(at(4)), true), "another episode");
        assert_eq!(client.reply(&acknowledgement(at(4), false)), Tells::Repaired);
    }

    #[test]
    fn what_is_more_than_an_acknowledgement_tells_of_no_hole() {
        let mut client = Cumulative::default();
        client.reply(&acknowledgement(1000, false));
        client.lost(&data(5000), true);
        let request = Segment { pure: false, length: 50, ..acknowledgement(1000, true) };
        assert_eq!(client.reply(&request), Tells::Nothing);
    }

    #[test]
    fn a_lost_acknowledgement_leaves_no_hole() {
        let mut client = Cumulative::default();
        assert!(!client.lost(&acknowledgement(7, false), true));
        client.reply(&acknowledgement(1000, false));
        assert!(!client.has(&acknowledgement(7, false)), "who knows");
    }
}
