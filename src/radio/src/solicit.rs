// SPDX-License-Identifier: GPL-2.0-or-later
//! Whom to ask for its address after it has come to an access point.
//!
//! A client that moves forgets whose the router's address is and asks for it (ARP, or neighbour
//! discovery). If it does so before the access point lets its packets through, the question is lost
//! and comes again after a second, and until then the client sends nothing. Whoever is asked for
//! its own address learns whose the router's is from the question (RFC 826; RFC 4861, section
//! 7.2.3), so the router asks, until it is answered.

use std::time::Duration;

use crate::neighbour::Neighbour;

/// After it has come a client is asked first (chosen: a handshake of WPA2 takes some ten
/// milliseconds), and then after twice as long each time.
const FIRST: Duration = Duration::from_millis(20);
/// So often at most: the last time when the client is about to ask again itself.
const TIMES: u32 = 6;
/// So many addresses are asked for at a time; more are left to themselves, since whoever comes
/// and goes decides how many there are.
const MOST: usize = 64;

/// Questions to come.
#[derive(Clone, Debug, Default)]
pub struct Solicit(Vec<Pending>);

#[derive(Clone, Copy, Debug)]
struct Pending {
    neighbour: Neighbour,
    due: Duration,
    asked: u32,
}

impl Solicit {
    /// The station that has this address has come.
    pub fn came(&mut self, now: Duration, neighbour: Neighbour) {
        self.answered(&neighbour);
        if self.0.len() < MOST && !neighbour.fixed {
            self.0.push(Pending { neighbour, due: now.saturating_add(FIRST), asked: 0 });
        }
    }

    /// The kernel has heard from it.
    pub fn answered(&mut self, neighbour: &Neighbour) {
        self.0.retain(|pending| pending.neighbour.address != neighbour.address);
    }

    /// Whom to ask now.
    pub fn next(&mut self, now: Duration) -> Option<Neighbour> {
        let at = self.0.iter().position(|pending| pending.due <= now)?;
        let pending = &mut self.0[at];
        pending.asked += 1;
        pending.due = now.saturating_add(FIRST.saturating_mul(1 << pending.asked.min(TIMES)));
        let neighbour = pending.neighbour;
        if pending.asked >= TIMES {
            self.0.swap_remove(at);
        }
        Some(neighbour)
    }

    /// When there is somebody to ask.
    pub fn deadline(&self) -> Option<Duration> {
        self.0.iter().map(|pending| pending.due).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mac::Mac;

    fn neighbour(host: u8) -> Neighbour {
        let address = [192, 0, 2, host].into();
        Neighbour {
            address,
            mac: Mac([2, 0, 0, 0, 0, host]),
            device: 3,
            reachable: false,
            fixed: false,
        }
    }

    /// When it is asked, in milliseconds.
    fn asked(solicit: &mut Solicit) -> Vec<u128> {
        let mut asked = Vec::new();
        while let Some(due) = solicit.deadline() {
            assert_eq!(solicit.next(due - Duration::from_nanos(1)), None);
            assert_eq!(solicit.next(due), Some(neighbour(9)));
            asked.push(due.as_millis());
        }
        asked
    }

    #[test]
    fn a_client_that_comes_is_asked_until_it_answers_and_not_for_ever() {
        let mut solicit = Solicit::default();
        solicit.came(Duration::from_millis(100), neighbour(9));
        assert_eq!(asked(&mut solicit.clone()), [120, 160, 240, 400, 720, 1360]);
        assert!(solicit.next(Duration::from_millis(120)).is_some());
        solicit.answered(&neighbour(8));
        assert!(solicit.deadline().is_some());
        solicit.answered(&neighbour(9));
        assert_eq!(solicit.deadline(), None);
    }

    #[test]
    fn one_that_comes_again_is_asked_anew_and_strangers_are_not_without_end() {
        let mut solicit = Solicit::default();
        for ms in 0..1000 {
            solicit.came(Duration::from_millis(ms), neighbour(9));
        }
        assert_eq!(asked(&mut solicit.clone())[0], 1019);
        solicit.came(Duration::ZERO, Neighbour { fixed: true, ..neighbour(9) });
        assert_eq!(solicit.deadline(), None, "what was said stays as it is");
        (0..=255).for_each(|host| solicit.came(Duration::ZERO, neighbour(host)));
        assert_eq!(solicit.0.len(), MOST);
    }
}
