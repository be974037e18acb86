// SPDX-License-Identifier: GPL-2.0-or-later
//! Notices that packets go to clients which a ring does not show.

use pemi_engine::{MS, Nanos, SEC, Time};

/// For so long clients must go on without a pause (chosen: a second that nobody helps in).
const LONG: Nanos = SEC;
/// What is a pause. A client whose server has fallen silent sends less and less often (RFC 9002,
/// section 6.2.1), one that gets its answers goes on.
const PAUSE: Nanos = 200 * MS;

/// Since when clients have sent what only somebody sends who is answered, and nothing to them was
/// seen.
#[derive(Debug, Default)]
pub(super) struct Silence {
    since: Option<Time>,
    last: Time,
}

impl Silence {
    /// Such a packet has come; whether it cannot be that nothing goes to clients.
    pub fn heard(&mut self, now: Time) -> bool {
        if now.since(self.last) > PAUSE {
            self.since = None;
        }
        self.last = now;
        now.since(*self.since.get_or_insert(now)) >= LONG
    }

    /// A packet to a client was seen.
    pub fn broken(&mut self) {
        self.since = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether packets of clients so far apart, the last after `until`, are told.
    fn told(apart: Nanos, until: Nanos, seen: Option<Nanos>) -> bool {
        let mut silence = Silence::default();
        (0..=until / apart).any(|n| {
            if seen.is_some_and(|seen| n * apart > seen && (n - 1) * apart <= seen) {
                silence.broken();
            }
            silence.heard(Time::ZERO + 5 * SEC + n * apart)
        })
    }

    #[test]
    fn who_goes_on_for_a_second_is_answered() {
        assert!(told(20 * MS, SEC, None) && told(200 * MS, SEC, None));
        assert!(!told(20 * MS, 999 * MS, None));
        assert!(!told(20 * MS, 1900 * MS, Some(950 * MS)), "something was seen");
        assert!(told(20 * MS, 2000 * MS, Some(950 * MS)));
        assert!(!told(210 * MS, 60 * SEC, None), "in vain");
    }
}
