// SPDX-License-Identifier: GPL-2.0-or-later
//! The sender: which frame to send again, and for whom.

use std::collections::VecDeque;

use super::packet::Cause;
use super::playout::GIVE_UP;

#[derive(Debug)]
struct Frame {
    number: u32,
    /// When it was due.
    since: u64,
    /// When it was sent again.
    again: Option<u64>,
    /// Of the last time.
    tag: u64,
}

/// Frames sent of late. Times are in nanoseconds.
#[derive(Debug, Default)]
pub struct Source {
    /// Without gaps, oldest first.
    frames: VecDeque<Frame>,
    next_tag: u64,
    sent: u64,
    for_nack: u64,
    for_quack: u64,
}

impl Source {
    /// A tag for a packet that is no frame.
    pub fn other(&mut self) -> u64 {
        self.next_tag += 1;
        self.next_tag
    }

    /// A frame is sent, the first time or again; its tag.
    pub fn on_sent(&mut self, now: u64, number: u32, cause: Cause) -> u64 {
        let tag = self.other();
        self.sent += 1;
        match cause {
            Cause::Due => {
                while self.frames.front().is_some_and(|frame| frame.since + GIVE_UP <= now) {
                    self.frames.pop_front();
                }
                self.frames.push_back(Frame { number, since: now, again: None, tag });
            }
            Cause::Nack | Cause::Quack => {
                if let Some(frame) = self.find(number) {
                    (frame.again, frame.tag) = (Some(now), tag);
                }
                let count =
                    if cause == Cause::Nack { &mut self.for_nack } else { &mut self.for_quack };
                *count += 1;
            }
        }
        tag
    }

    fn find(&mut self, number: u32) -> Option<&mut Frame> {
        let first = self.frames.front()?.number;
        self.frames.get_mut(number.checked_sub(first)? as usize)
    }

    /// Whether to send a frame that the receiver asks for. If it was sent again less than
    /// a round trip ago, the receiver could not know when it asked.
    pub fn on_nack(&mut self, now: u64, number: u32, rtt: u64) -> bool {
        let known = |again| now >= again + rtt + rtt / 16;
        self.find(number)
            .is_some_and(|frame| now < frame.since + GIVE_UP && frame.again.is_none_or(known))
    }

    /// Which frame to send, now that the packet with this tag is lost: none if it was
    /// sent again since, for that packet speaks for itself.
    pub fn on_lost(&mut self, now: u64, tag: u64) -> Option<u32> {
        let frame = self.frames.iter().rev().find(|frame| frame.tag == tag)?;
        (now < frame.since + GIVE_UP).then_some(frame.number)
    }

    /// Packets with frames, and of them those sent again for a NACK and for a quACK.
    pub fn counts(&self) -> (u64, u64, u64) {
        (self.sent, self.for_nack, self.for_quack)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000;
    const RTT: u64 = 48 * MS;

    #[test]
    fn one_loss_is_mended_once_whoever_tells_first() {
        let mut source = Source::default();
        let first = source.on_sent(0, 0, Cause::Due);
        let second = source.on_sent(20 * MS, 1, Cause::Due);
        // By a quACK, then by a NACK of half a round trip ago.
        assert_eq!(source.on_lost(42 * MS, first), Some(0));
        let again = source.on_sent(42 * MS, 0, Cause::Quack);
        assert!(!source.on_nack(68 * MS, 0, RTT));
        // That was lost as well: the quACK says so.
        assert_eq!(source.on_lost(80 * MS, again), Some(0));
        source.on_sent(80 * MS, 0, Cause::Quack);
        // And once more; this time no quACK says so.
        assert!(source.on_nack(132 * MS, 0, RTT));
        // The other way round.
        assert!(source.on_nack(90 * MS, 1, RTT));
        source.on_sent(90 * MS, 1, Cause::Nack);
        assert_eq!(source.on_lost(91 * MS, second), None);
        assert_eq!(source.counts(), (5, 1, 2));
    }

    #[test]
    fn what_nobody_waits_for_is_forgotten() {
        let mut source = Source::default();
        let tag = source.on_sent(0, 0, Cause::Due);
        assert_eq!(source.on_lost(GIVE_UP, tag), None);
        assert!(!source.on_nack(GIVE_UP, 0, RTT));
        assert!(!source.on_nack(0, 1, RTT), "never sent");
        for number in 1..1000 {
            source.on_sent(u64::from(number) * 20 * MS, number, Cause::Due);
        }
        assert_eq!(source.frames.len(), 50);
        assert_eq!(source.on_lost(20_000 * MS, tag), None);
    }
}
