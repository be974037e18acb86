// SPDX-License-Identifier: GPL-2.0-or-later
//! Packets of which somebody will report what became of them, in the order in which they were
//! sent.
//!
//! A report comes once, out of order, late, or never. So each packet has a number of its own,
//! its ticket; what waited for too long counts as one without a report, and what is older than
//! any report is forgotten. All of it is bounded by the number of places.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use crate::api::Ticket;
use crate::store::cache::Id;
use crate::time::{MS, Nanos, Time};

/// A report that comes later is none: drivers that have lost track of a frame call it lost after
/// a while (mt76 after 250 ms, `MT_TX_STATUS_SKB_TIMEOUT`). Chosen: longer than a frame with all
/// its retries is on its way on a loaded hop.
const ANSWER: Nanos = 50 * MS;
/// After this nobody will say anything more of a packet (chosen: twice mt76's time).
const FORGET: Nanos = 500 * MS;
/// Places (chosen: what ten busy stations may have under way, a power of two).
const PLACES: usize = 1024;

/// A packet that was sent, and whose it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Sent {
    /// Where its flow is in the table, and when that flow began: another one may have its place.
    pub flow: u32,
    pub born: Time,
    pub client: IpAddr,
    pub id: Id,
    /// How often it was sent before.
    pub attempt: u8,
    pub at: Time,
}

/// How far its report is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wait {
    Open,
    Overdue,
    Over,
}

#[derive(Debug)]
pub(crate) struct Tickets {
    /// Number of the oldest.
    first: u32,
    places: VecDeque<(Sent, Wait)>,
    /// How many from the oldest on are known not to be open.
    seen: usize,
}

impl Tickets {
    pub fn new() -> Tickets {
        Tickets { first: 0, places: VecDeque::new(), seen: 0 }
    }

    /// Gives a packet its ticket; none if there is no place.
    pub fn issue(&mut self, sent: Sent) -> Option<Ticket> {
        if self.places.capacity() == 0 {
            // Nothing is needed where nobody reports anything.
            self.places.reserve_exact(PLACES);
        }
        if self.places.len() >= PLACES {
            return None;
        }
        self.places.push_back((sent, Wait::Open));
        Some(Ticket(self.first.wrapping_add(self.places.len() as u32 - 1)))
    }

    /// The packet with this ticket, of which a report has come, and whether it is in time.
    pub fn settle(&mut self, ticket: Ticket) -> Option<(Sent, bool)> {
        let place = ticket.0.wrapping_sub(self.first) as usize;
        let (sent, wait) = self.places.get_mut(place)?;
        let was = core::mem::replace(wait, Wait::Over);
        (was != Wait::Over).then_some((*sent, was == Wait::Open))
    }

    /// The packets of this flow of which a report may still come, in the order in which they were
    /// sent.
    pub fn open(&self, flow: u32, born: Time) -> impl Iterator<Item = &Sent> {
        let open = self.places.iter().skip(self.seen).filter(|(_, wait)| *wait == Wait::Open);
        open.map(|(sent, _)| sent).filter(move |sent| (sent.flow, sent.born) == (flow, born))
    }

    /// The next packet that has waited for too long; forgets what is done with.
    pub fn overdue(&mut self, now: Time) -> Option<Sent> {
        let late = |(sent, wait): &mut (Sent, Wait)| match wait {
            Wait::Open if now.since(sent.at) <= ANSWER => None,
            Wait::Open => {
                *wait = Wait::Overdue;
                Some(Some(*sent))
            }
            Wait::Overdue | Wait::Over => Some(None),
        };
        while let Some(found) = self.places.get_mut(self.seen).and_then(late) {
            self.seen += 1;
            if found.is_some() {
                return found;
            }
        }
        while let Some((sent, wait)) = self.places.front() {
            let needed = match wait {
                Wait::Open => true,
                Wait::Overdue => now.since(sent.at) <= FORGET,
                Wait::Over => false,
            };
            if needed {
                break;
            }
            self.places.pop_front();
            self.first = self.first.wrapping_add(1);
            self.seen = self.seen.saturating_sub(1);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::cache::Cache;
    use alloc::vec::Vec;

    fn at(ms: i64) -> Time {
        Time::ZERO + ms * MS
    }

    fn sent(ms: i64) -> Sent {
        let id = Cache::new(0).push(at(ms), 1, None, &[1]).unwrap();
        let client = [192, 0, 2, 1].into();
        Sent { flow: 7, born: Time::ZERO, client, id, attempt: 0, at: at(ms) }
    }

    #[test]
    fn each_ticket_is_settled_once_in_any_order() {
        let mut tickets = Tickets { first: u32::MAX - 1, ..Tickets::new() };
        let issued: Vec<Ticket> = (0..4).map(|ms| tickets.issue(sent(ms)).unwrap()).collect();
        assert_eq!(issued[3], Ticket(1));
        for n in [2, 0, 3, 1] {
            assert_eq!(tickets.settle(issued[n]), Some((sent(n as i64), true)));
            assert_eq!(tickets.settle(issued[n]), None);
            assert_eq!(tickets.overdue(at(4)), None);
        }
        assert!(tickets.places.is_empty());
        assert_eq!((tickets.settle(Ticket(2)), tickets.settle(Ticket(9))), (None, None));
    }

    #[test]
    fn a_late_report_is_none_and_one_that_never_comes_is_told_once() {
        let mut tickets = Tickets::new();
        let issued: Vec<Ticket> = (0..3).map(|n| tickets.issue(sent(20 * n)).unwrap()).collect();
        assert_eq!(tickets.overdue(at(50)), None);
        assert_eq!(tickets.settle(issued[1]), Some((sent(20), true)));
        assert_eq!(tickets.overdue(at(89)), Some(sent(0)));
        assert_eq!(tickets.overdue(at(90)), None, "the third may still come");
        assert_eq!(tickets.settle(issued[0]), Some((sent(0), false)));
        assert_eq!(tickets.overdue(at(91)), Some(sent(40)));
        assert_eq!(tickets.overdue(at(540)), None);
        assert_eq!(tickets.places.len(), 1);
        assert_eq!(tickets.overdue(at(541)), None);
        assert!(tickets.places.is_empty(), "it is older than any report");
        assert_eq!(tickets.settle(issued[2]), None);
    }

    #[test]
    fn there_are_only_so_many_places() {
        let mut tickets = Tickets::new();
        assert_eq!((0..5_000).filter(|_| tickets.issue(sent(1)).is_some()).count(), PLACES);
        assert_eq!(core::iter::from_fn(|| tickets.overdue(at(600))).count(), PLACES);
        assert!(tickets.issue(sent(600)).is_some());
    }
}
