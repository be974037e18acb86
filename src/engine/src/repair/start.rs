// SPDX-License-Identifier: GPL-2.0-or-later
//! The first flight: where a loss costs most and inference has nothing to go
//! on yet.
//!
//! The first server datagrams are sent twice, and the handshake datagrams
//! again if the client stays silent. What that is worth stands beside
//! [`Tunables`]' `first_flight_copies`.

use arrayvec::ArrayVec;

use crate::measure::hop::HopState;
use crate::store::cache::Id;
use crate::time::{MS, Nanos, Time};
use crate::tunables::Tunables;

/// Client datagrams after which the handshake is surely over, if the last one had a short
/// header (chosen: one more than the handshake of RFC 9001, section 4 needs).
const HANDSHAKE_REPLIES: u32 = 4;
/// Handshake datagrams kept for the timer (chosen: more than a certificate chain takes).
pub(crate) const MAX_FLIGHT: usize = 12;
/// How often a silent client gets the first flight again (chosen: with doubled waits that is
/// half a second).
const CLIENT_ATTEMPTS: u32 = 4;
/// How often a silent server gets the client's first flight again: it is not one of ours, and
/// gets no more than one copy.
const SERVER_ATTEMPTS: u32 = 1;
/// A client is silent when nothing has come for this many local round trips ...
const SILENT_RTTS: Nanos = 3;
/// ... and this much more (chosen: as long as it may take a client to check a certificate).
const SILENT_SLACK: Nanos = 5 * MS;

#[derive(Clone, Debug)]
pub(crate) struct Start {
    tunables: Tunables,
    duplicates: u32,
    flight: ArrayVec<Id, MAX_FLIGHT>,
    timeout: Option<Time>,
    first_timeout: Nanos,
    tries: u32,
    max_tries: u32,
    replies: u32,
    over: bool,
}

impl Start {
    /// For a connection whose beginning is seen.
    pub fn new(hop: HopState, tunables: Tunables) -> Start {
        let copies = tunables.first_flight_copies();
        let duplicates = if hop == HopState::Clean { 0 } else { copies };
        Start {
            tunables,
            duplicates,
            flight: ArrayVec::new(),
            timeout: None,
            first_timeout: tunables.first_flight_timeout(),
            tries: 0,
            max_tries: CLIENT_ATTEMPTS,
            replies: 0,
            over: false,
        }
    }

    /// For what the client sends at the beginning.
    pub fn mirrored(tunables: Tunables) -> Start {
        Start {
            first_timeout: tunables.server_timeout(),
            max_tries: SERVER_ATTEMPTS,
            ..Start::new(HopState::Clean, tunables)
        }
    }

    /// Both ends have spoken and the hop has a past. Only what a client of ours began
    /// has a beginning that is worth copies.
    pub fn established(&mut self, hop: HopState, client_began: bool) {
        if hop == HopState::Clean {
            self.duplicates = 0;
        }
        if !client_began {
            *self = Start::over(self.tunables);
        }
    }

    /// For a connection that was picked up in its middle: there is nothing to do.
    pub fn over(tunables: Tunables) -> Start {
        Start { over: true, ..Start::new(HopState::Clean, tunables) }
    }

    pub fn is_over(&self) -> bool {
        self.over
    }

    pub fn deadline(&self) -> Option<Time> {
        self.timeout
    }

    fn span(&self, rtt: Nanos) -> Nanos {
        if rtt > 0 { SILENT_RTTS * rtt + SILENT_SLACK } else { self.first_timeout }
    }

    /// Takes note of a server's datagram; true if it is to be sent twice.
    pub fn on_data(&mut self, now: Time, id: Id, long: bool, rtt: Nanos) -> bool {
        if long && !self.over {
            if self.timeout.is_none() {
                self.tries = 0;
            }
            let _ = self.flight.try_push(id);
            self.timeout = Some(now + self.span(rtt));
        }
        let twice = self.duplicates > 0;
        self.duplicates = self.duplicates.saturating_sub(1);
        twice
    }

    /// Takes note of a client's datagram; true if it ends the handshake.
    pub fn on_reply(&mut self, now: Time, long: bool, rtt: Nanos) -> bool {
        self.replies += 1;
        if !long {
            self.timeout = None;
            self.flight.clear();
            self.over |= self.replies > HANDSHAKE_REPLIES;
        } else if self.timeout.is_some() {
            self.timeout = Some(now + self.span(rtt));
        }
        self.over
    }

    /// The client was silent for too long: gives what to resend.
    pub fn on_timeout(&mut self, now: Time) -> ArrayVec<Id, MAX_FLIGHT> {
        self.timeout = None;
        if self.tries >= self.max_tries {
            return ArrayVec::new();
        }
        self.tries += 1;
        self.timeout = Some(now + (self.first_timeout << self.tries));
        self.flight.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::cache::Cache;

    #[test]
    fn twelve_twice_unless_the_hop_is_clean() {
        let id = Cache::new(1 << 16).push(Time::ZERO, 1, None, &[0]).unwrap();
        let twice = |hop| {
            let mut start = Start::new(hop, Tunables::DEFAULT);
            (0..20).filter(|_| start.on_data(Time::ZERO, id, false, 0)).count()
        };
        assert_eq!((twice(HopState::New), twice(HopState::Clean)), (12, 0));
    }

    #[test]
    fn a_silent_client_gets_the_flight_again_a_few_times() {
        let id = Cache::new(1 << 16).push(Time::ZERO, 1, None, &[0]).unwrap();
        let mut start = Start::new(HopState::New, Tunables::DEFAULT);
        start.on_data(Time::ZERO, id, true, 0);
        start.on_data(Time::ZERO, id, true, 0);
        let mut copies = 0;
        while let Some(at) = start.deadline() {
            copies += start.on_timeout(at).len();
        }
        assert_eq!(copies, 8);
        start.on_data(Time::ZERO, id, true, 0);
        assert!(!start.on_reply(Time::ZERO, false, 0));
        assert_eq!(start.deadline(), None, "it spoke");
    }

    #[test]
    fn ends_with_a_short_header_after_a_few_replies() {
        let mut start = Start::new(HopState::New, Tunables::DEFAULT);
        let ends: alloc::vec::Vec<bool> = [true, true, false, true, true, false]
            .into_iter()
            .map(|long| start.on_reply(Time::ZERO, long, 0))
            .collect();
        assert_eq!(ends, [false, false, false, false, false, true]);
        assert!(Start::over(Tunables::DEFAULT).is_over());
    }
}
