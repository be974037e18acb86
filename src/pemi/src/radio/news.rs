// SPDX-License-Identifier: GPL-2.0-or-later
//! What the radio tells of clients, for whoever decides about their packets: facts with their
//! times, in the order in which they were learned.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use pemi_engine::Time;
use pemi_radio::mac::Mac;
use pemi_radio::meter::Worth;

use crate::sys::poll::Waker;

/// So much may wait for a reader, a second's worth of 100 clients that are helped. Of more, the
/// oldest go: what was counted long ago is of no use to a packet.
const MOST: usize = 1024;

/// What happened to the packets for one client between two looks at its station. A station with
/// several addresses has a sample for each of them, all with the same figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RadioSample {
    /// An address of the client.
    pub client: IpAddr,
    /// The look before, by [`crate::sys::clock`].
    pub from: Time,
    /// This one: the answer had come by then.
    pub to: Time,
    /// Packets that left the radio, also those that were lost.
    pub sent: u32,
    /// Packets lost after all attempts.
    pub lost: u32,
    /// What `lost` is good for. Only of [`Worth::Exact`] it is the number of packets lost, and
    /// of [`Worth::AtMost`] a limit; with the others nothing is known.
    pub quality: Worth,
    /// Packets in the station's own queue at the end; zero also where the kernel does not tell.
    pub queued: u32,
    /// Packets that this queue dropped: the radio had no room, which is congestion and not loss.
    pub drops: u32,
}

/// What became of a client's station.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is there since it associated, or one of its addresses became known.
    Joined,
    /// It left, or the access point did. Whether it comes back elsewhere is not known.
    Left,
    /// It is with another access point, or associated again: counters began anew, round trips
    /// of before mean nothing, and what was under way may be lost without having been counted.
    Moved,
}

/// Something new.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// The counters were looked at.
    Sample(RadioSample),
    /// The station came or went.
    Station {
        /// An address of the client.
        client: IpAddr,
        /// When that was heard.
        at: Time,
        /// What.
        change: Change,
    },
}

/// Where a client is now, as [`super::share::Share::place`] tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of the access point's network device: what is sent to `mac` by a socket bound to
    /// it goes over this radio.
    pub interface: u32,
    /// The station's address.
    pub mac: Mac,
    /// What losses counted there are good for.
    pub quality: Worth,
}

/// A client whose radio loses nothing: its gate is closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clean {
    /// Its station's address.
    pub mac: Mac,
    /// Its addresses on the internet, as far as they are known.
    pub addresses: Vec<IpAddr>,
}

/// What is new to one reader. The reader's own waker is woken whenever there is something.
#[derive(Debug)]
pub struct Inbox {
    waiting: Mutex<VecDeque<News>>,
    waker: Arc<Waker>,
}

impl Inbox {
    /// Empty; `waker` is what the reader waits for already.
    pub fn new(waker: Arc<Waker>) -> Inbox {
        Inbox { waiting: Mutex::default(), waker }
    }

    /// Takes the oldest. Never waits for the radio.
    pub fn take(&self) -> Option<News> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    /// Adds to it.
    pub(super) fn put(&self, news: &[News]) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.extend(news);
        let too_many = waiting.len().saturating_sub(MOST);
        waiting.drain(..too_many);
        drop(waiting);
        self.waker.wake();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_stay_when_nobody_reads() {
        let inbox = Inbox::new(Arc::new(Waker::new().unwrap()));
        let news = |second: u64| News::Station {
            client: IpAddr::from([192, 0, 2, 9]),
            at: Time::from_nanos(second),
            change: Change::Joined,
        };
        for second in 0..2000 {
            inbox.put(&[news(second)]);
        }
        assert_eq!(inbox.take(), Some(news(2000 - MOST as u64)));
        assert_eq!(std::iter::from_fn(|| inbox.take()).count(), MOST - 1);
    }
}
