// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the sender heeds losses.
//!
//! A sender that does not slow down when it learns of losses gains nothing from their being hidden, and
//! its model of the path suffers from acknowledgements that wait and from repairs: quinn's BBR takes
//! two that come close together for bandwidth and overflows the queue before the router from then on.
//! One reply that is held can do that, so such a sender has to be known before anything is done. Others are
//! harmed by replies that wait alone: see [`super::tolerance`].
//!
//! What shows it first is its first flight. A sender that goes by RFC 9002 sends 10 packets and waits
//! for acknowledgements, and some send 32 (quic-go, Chromium's servers); one with far more in the
//! first round trip goes by something else. It is left alone, and watched: what is not hidden shows
//! whether it slows down after a loss of which it was told, and when it has done so often enough it is
//! helped like any other.

use super::tolerance::Tolerance;
use crate::time::{Nanos, Time};

/// Packets in the first flight of a sender that goes by RFC 9002 (chosen: a quarter more than the 32
/// of the largest initial windows that are common).
const LARGEST_FLIGHT: u32 = 40;
/// So few packets before the first flight are the end of the handshake, and settings (chosen).
const GREETING: u32 = 4;
/// After a pause of one part in this many of a round trip the first flight is over (chosen: what waits
/// for acknowledgements leaves a longer one, and what a full queue spaces a shorter one).
const PAUSE_PART: Nanos = 8;
/// Doubt whether a sender heeds losses, at first and at most, and as much as it takes to leave it
/// alone. With a slower round trip after a loss there is less of it, else one more (chosen: seven in
/// a row acquit; a rate that wavers by itself, in fewer than one round trip in four, does not).
const MOST: u8 = 32;
const ALONE: u8 = 12;
const ACQUITS: u8 = 3;
/// A round trip with less than this many eighths of the packets of those before is slower (RFC 9438,
/// section 4.6: a window is cut to 0.7, and RFC 9002, section 7.3.2: to half).
const SLOWER: u32 = 7;
/// Fewer packets in a round trip tell nothing (chosen: one more or less is an eighth).
const LEAST: u32 = 8;
/// Round trips between that in which the sender is told and that which shows what it does: half a round
/// trip until it hears, half until that is seen, and as it may fall anywhere into one, one more.
const DELAY: u8 = 1;
/// After a pause of so many round trips the counts are of another time (chosen).
const FORGOTTEN: Nanos = 8;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Before or in the first flight.
    Flight,
    /// Nothing speaks against it.
    Heeds,
    Watched,
}

/// The packets of each round trip, and how they follow losses.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    state: State,
    doubt: u8,
    /// The sender was told of a loss in the current round trip.
    told: bool,
    /// ... or in an earlier one: packets until then, and round trips until it is judged.
    pending: Option<(u32, u8)>,
    /// When the current round trip or the first flight began, its packets and those of the round trip before.
    since: Time,
    packets: u32,
    before: u32,
    pub tolerance: Tolerance,
}

impl Sender {
    pub fn new() -> Sender {
        Sender {
            state: State::Flight,
            doubt: MOST,
            told: false,
            pending: None,
            since: Time::ZERO,
            packets: 0,
            before: 0,
            tolerance: Tolerance::new(),
        }
    }

    /// A packet of the sender's with a short header, this long after the one before; and its round
    /// trip.
    pub fn forwarded(&mut self, now: Time, pause: Nanos, round_trip: Nanos) {
        match self.state {
            State::Flight => self.in_flight(now, pause, round_trip),
            State::Heeds if !self.tolerance.tells() => {}
            State::Heeds | State::Watched => self.count(now, pause, round_trip.max(1)),
        }
    }

    fn in_flight(&mut self, now: Time, pause: Nanos, round_trip: Nanos) {
        let first = self.packets == 0;
        if first {
            self.since = now;
        }
        let over = pause > round_trip / PAUSE_PART && !first || now.since(self.since) > round_trip;
        self.packets += 1;
        if over && self.packets > GREETING {
            self.state = State::Heeds;
        } else if over {
            (self.since, self.packets) = (now, 1);
        } else if self.packets > LARGEST_FLIGHT {
            self.state = State::Watched;
            (self.since, self.packets) = (now, 0);
        }
    }

    fn count(&mut self, now: Time, pause: Nanos, round_trip: Nanos) {
        let forgotten = now.since(self.since) >= FORGOTTEN * round_trip;
        if forgotten || pause > round_trip {
            // It had nothing to send, or waited for a timeout.
            (self.told, self.pending) = (false, None);
            self.tolerance.paused();
        }
        if forgotten {
            (self.since, self.packets, self.before) = (now, 0, 0);
        }
        while now.since(self.since) >= round_trip {
            self.since = self.since + round_trip;
            self.end_round_trip();
        }
        self.packets += 1;
    }

    /// The sender learns of what may be a loss.
    pub fn told(&mut self) {
        self.told |= self.state == State::Watched;
    }

    /// A copy has repaired a loss, of which the sender has learned unless replies were held; its round trip.
    pub fn repaired(&mut self, held: bool, round_trip: Nanos) {
        if held {
            self.tolerance.held_well(round_trip);
        } else {
            self.told |= self.tolerance.tells();
        }
    }

    /// Whether nothing is to be done for its packets.
    pub fn left_alone(&self) -> bool {
        self.state == State::Watched
    }

    fn end_round_trip(&mut self) {
        let packets = self.packets;
        let most = packets.max(self.before);
        if self.state == State::Watched {
            self.pending = match self.pending.take() {
                Some((most, 0)) => {
                    self.judge(most, packets);
                    None
                }
                Some((most, left)) => Some((most.max(packets), left - 1)),
                None if self.told => Some((most, DELAY)),
                None => None,
            };
        } else {
            self.tolerance.round_trip(packets, most, self.told);
        }
        (self.before, self.packets, self.told) = (packets, 0, false);
    }

    fn judge(&mut self, most: u32, packets: u32) {
        if most < LEAST {
            return;
        }
        let slower = packets * 8 < most * SLOWER;
        self.doubt = match slower {
            true => self.doubt - ACQUITS.min(self.doubt),
            false => MOST.min(self.doubt + 1),
        };
        if self.doubt < ALONE {
            self.state = State::Heeds;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::{MS, US};

    const ROUND_TRIP: Nanos = 50 * MS;

    /// So many packets, this far apart, after a pause.
    fn burst(sender: &mut Sender, now: &mut Time, pause: Nanos, apart: Nanos, packets: u32) {
        for n in 0..packets {
            let gap = if n == 0 { pause } else { apart };
            *now = *now + gap;
            sender.forwarded(*now, gap, ROUND_TRIP);
        }
    }

    /// A sender whose first flight is so large.
    fn after_flight(packets: u32) -> (Sender, Time) {
        let (mut sender, mut now) = (Sender::new(), Time::ZERO);
        burst(&mut sender, &mut now, 0, MS, 3);
        burst(&mut sender, &mut now, 49 * MS, 500 * US, packets);
        (sender, now)
    }

    #[test]
    fn a_large_first_flight_is_left_alone() {
        assert!(!after_flight(LARGEST_FLIGHT).0.left_alone());
        assert!(after_flight(LARGEST_FLIGHT + 1).0.left_alone());
    }

    #[test]
    fn later_flights_may_be_of_any_size() {
        let (mut sender, mut now) = after_flight(10);
        burst(&mut sender, &mut now, 40 * MS, 100 * US, 1000);
        assert!(!sender.left_alone());
        let (mut sender, mut now) = after_flight(32);
        burst(&mut sender, &mut now, 20 * MS, 100 * US, 1000);
        assert!(!sender.left_alone(), "a pause ends the first");
    }

    #[test]
    fn who_slows_down_after_losses_is_helped() {
        let (mut sender, mut now) = after_flight(100);
        let mut round_trips = 0;
        while sender.left_alone() && round_trips < 100 {
            // Told in each fourth round trip, and slower after it.
            if round_trips % 4 == 0 {
                sender.told();
            }
            let apart = if round_trips % 4 == 2 { 2 * MS } else { MS };
            burst(&mut sender, &mut now, apart, apart, (ROUND_TRIP / apart) as u32);
            round_trips += 1;
        }
        assert!((25..=40).contains(&round_trips), "{round_trips}");
    }

    #[test]
    fn who_does_not_is_left_alone() {
        let (mut sender, mut now) = after_flight(100);
        for round_trip in 0..1000 {
            if round_trip % 3 == 0 {
                sender.told();
            }
            // A sender that probes for bandwidth: a slower round trip in eight.
            let apart = if round_trip % 8 == 1 { MS * 4 / 3 } else { MS };
            burst(&mut sender, &mut now, apart, apart, (ROUND_TRIP / apart) as u32);
            assert!(sender.left_alone(), "{round_trip}");
        }
    }

    #[test]
    fn a_pause_is_no_answer() {
        let (mut sender, mut now) = after_flight(100);
        for _ in 0..100 {
            burst(&mut sender, &mut now, MS, MS, 100);
            sender.told();
            burst(&mut sender, &mut now, 60 * MS, 2 * MS, 100);
            assert!(sender.left_alone());
        }
    }
}
