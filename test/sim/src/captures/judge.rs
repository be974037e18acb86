// SPDX-License-Identifier: GPL-2.0-or-later
//! Holds marks and copies against the losses of a log. The definitions are at
//! [`Score`](super::Score).

use std::ops::Range;

use linkem::{MS, Nanos};

use super::replay::{BARE_ROUND_TRIP, Flow};

/// A loss with nothing behind it for so long is a tail.
const FOLLOWED_WITHIN: Nanos = 16 * MS;
/// A loss is noticed within this.
const NOTICED_WITHIN: Nanos = 20 * MS;
/// ... at one of so many replies.
const REPLIES: usize = 4;

/// What was found out about a flow.
#[derive(Clone, Debug, Default)]
pub struct Judged {
    /// In the order of the packets.
    pub losses: Vec<Loss>,
    /// Marks that explain none of them.
    pub false_marks: Vec<usize>,
}

/// A packet that was lost.
#[derive(Clone, Debug)]
pub struct Loss {
    /// Its number, as the engine counts.
    pub packet: u64,
    /// Nothing that arrived followed in time.
    pub tail: bool,
    /// The replies at which it can be noticed.
    pub replies: Range<usize>,
    /// The mark that explains it.
    pub mark: Option<usize>,
    /// There is one, but it came too late.
    pub late: bool,
    /// A copy was sent in time.
    pub copied: bool,
}

impl Loss {
    /// The mark, if it came in time.
    pub fn marked(&self) -> Option<usize> {
        self.mark.filter(|_| !self.late)
    }

    /// Whether a mark or a copy shows it, in time.
    pub fn noticed(&self) -> bool {
        self.marked().is_some() || self.copied
    }
}

/// Judges the engine's work on a flow.
pub fn judge(flow: &Flow) -> Judged {
    let mut losses: Vec<Loss> = flow
        .sent
        .iter()
        .enumerate()
        .filter(|(_, sent)| sent.lost)
        .map(|(index, _)| loss(flow, index))
        .collect();
    let mut used = vec![false; flow.marks.len()];
    // A mark that names a loss belongs to it; the others to the first that they
    // can be about.
    for by_name in [true, false] {
        for loss in losses.iter_mut().filter(|loss| loss.mark.is_none()) {
            let at = flow.sent[loss.packet as usize - 1].at;
            loss.mark = flow.marks.iter().enumerate().position(|(index, mark)| {
                let fits = if by_name {
                    mark.packet == loss.packet
                } else {
                    loss.replies.contains(&mark.reply)
                };
                fits && mark.at > at && !used[index]
            });
            if let Some(mark) = loss.mark {
                used[mark] = true;
                loss.late = flow.marks[mark].at > at + NOTICED_WITHIN;
            }
        }
    }
    let false_marks = (0..used.len()).filter(|mark| !used[*mark]).collect();
    Judged { losses, false_marks }
}

fn loss(flow: &Flow, index: usize) -> Loss {
    let at = flow.sent[index].at;
    let packet = index as u64 + 1;
    let next = flow.sent[index + 1..].iter().find(|sent| !sent.lost).map(|sent| sent.at);
    let first = next.map_or(flow.replies.len(), |next| {
        flow.replies.partition_point(|reply| reply.at < next + BARE_ROUND_TRIP)
    });
    Loss {
        packet,
        tail: next.is_none_or(|next| next - at > FOLLOWED_WITHIN),
        replies: first..(first + REPLIES).min(flow.replies.len()),
        mark: None,
        late: false,
        copied: flow
            .copies
            .iter()
            .any(|(when, copy)| *copy == packet && (at..=at + NOTICED_WITHIN).contains(when)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::captures::replay::{Mark, Reply, Sent};

    /// Packets every millisecond, a reply to each that arrives, 3 ms later.
    fn flow(lost: &[u64], marks: &[(u64, u64)], copies: &[(u64, u64)]) -> Flow {
        let sent = (1..=40).map(|n| Sent { at: n * MS, lost: lost.contains(&n) });
        let sent: Vec<Sent> = sent.collect();
        let replies: Vec<Reply> = sent
            .iter()
            .filter(|sent| !sent.lost)
            .map(|sent| Reply { at: sent.at + 3 * MS, len: 30 })
            .collect();
        let marks = marks.iter().map(|(ms, packet)| {
            let at = ms * MS;
            let reply = replies.iter().position(|reply| reply.at == at).unwrap();
            Mark { at, packet: *packet, reply }
        });
        let marks = marks.collect();
        let copies = copies.iter().map(|(ms, packet)| (ms * MS, *packet)).collect();
        Flow { sent, replies, marks, copies }
    }

    fn marks(judged: &Judged) -> Vec<Option<usize>> {
        judged.losses.iter().map(|loss| loss.mark).collect()
    }

    #[test]
    fn the_first_four_replies_count() {
        // The reply to packet 11, which comes at 14 ms, is the first to know.
        let judge_mark = |ms| judge(&flow(&[10], &[(ms, 7)], &[]));
        for ms in [14, 17] {
            let judged = judge_mark(ms);
            assert_eq!((marks(&judged), judged.false_marks.len()), (vec![Some(0)], 0), "{ms} ms");
        }
        for ms in [12, 18] {
            let judged = judge_mark(ms);
            assert_eq!((marks(&judged), judged.false_marks.len()), (vec![None], 1), "{ms} ms");
        }
    }

    #[test]
    fn a_mark_explains_one_loss_and_best_the_one_it_names() {
        let judged = judge(&flow(&[10, 12], &[(16, 12), (17, 3)], &[]));
        assert_eq!(marks(&judged), [Some(1), Some(0)]);
        let judged = judge(&flow(&[10, 12], &[(16, 12)], &[]));
        assert_eq!(marks(&judged), [None, Some(0)]);
        let judged = judge(&flow(&[10], &[(14, 10), (15, 9)], &[]));
        assert_eq!(judged.false_marks, [1], "a second mark for one loss");
        let judged = judge(&flow(&[10], &[(12, 10)], &[]));
        assert_eq!(marks(&judged), [Some(0)], "a guess, but right");
    }

    #[test]
    fn a_copy_notices_too_if_it_comes_in_time() {
        let copied = |ms| judge(&flow(&[10], &[], &[(ms, 10)])).losses[0].noticed();
        assert_eq!([9, 10, 30, 31].map(copied), [false, true, true, false]);
    }

    #[test]
    fn tails_have_nothing_behind_them() {
        let lost: Vec<u64> = (10..=30).chain([40]).collect();
        let judged = judge(&flow(&lost, &[], &[]));
        let tails: Vec<u64> =
            judged.losses.iter().filter(|loss| loss.tail).map(|loss| loss.packet).collect();
        assert_eq!(tails, [10, 11, 12, 13, 14, 40]);
        // The mark for the first of them comes at 34 ms: too late, but not false.
        let judged = judge(&flow(&lost, &[(34, 10)], &[]));
        assert_eq!(marks(&judged)[0], Some(0));
        assert!(!judged.losses[0].noticed() && judged.false_marks.is_empty());
    }
}
