// SPDX-License-Identifier: GPL-2.0-or-later
//! Proof that who asks receives at the address that he asks from. Nothing is kept for
//! who has not shown it.

use core::net::SocketAddr;

use siphasher::sip::SipHasher24;

use super::seen::Seen;
use super::session::octets;
use super::shares::Shares;
use super::{Micros, SEC};

/// A cookie is good for the rest of the minute that it was made in and the next one.
const EPOCH: Micros = 60 * SEC;
/// Cookies that can be handed out in a row: those of so long a time.
const SAVED: Micros = SEC / 10;
/// Binary logarithms of the bits for who asked in vain, 20,000 a second, and for who did not.
const ASKED: u32 = 19;
const SERVED: u32 = 15;

/// Cookies at a limited rate. Half of them are for whoever comes first. The other half is
/// for those who ask again from the same address and port, a second or two after they got
/// none: who floods with addresses that are not his has another one each time, and a set of
/// them that he repeats has been served before.
#[derive(Clone, Debug)]
pub(super) struct Cookies {
    key: [u8; 16],
    first: Bucket,
    again: Bucket,
    asked: Seen,
    served: Seen,
    shares: Shares,
}

#[derive(Clone, Copy, Debug)]
struct Bucket {
    /// Time between two.
    apart: Micros,
    /// When there is one again, or how long there has been one.
    ready: Micros,
}

impl Bucket {
    fn take(&mut self, now: Micros) -> bool {
        let ready = self.ready.max(now.saturating_sub(SAVED));
        if ready > now {
            return false;
        }
        self.ready = ready.saturating_add(self.apart);
        true
    }
}

impl Cookies {
    pub fn new(key: [u8; 16], per_s: u32) -> Cookies {
        let half = Bucket { apart: 2 * SEC / Micros::from(per_s.max(1)), ready: 0 };
        Cookies {
            key,
            first: half,
            again: half,
            asked: Seen::new(ASKED),
            served: Seen::new(SERVED),
            shares: Shares::new(key),
        }
    }

    /// For `client`, unless there were too many lately.
    pub fn hand_out(&mut self, now: Micros, client: SocketAddr) -> Option<u64> {
        // In the place of a time: no cookie is made with it.
        let name = self.cookie(client, u64::MAX);
        let mut waits = || self.asked.contains(now, name) && !self.served.contains(now, name);
        let is_due = self.first.take(now)
            || waits() && self.shares.take(now, client.ip()) && self.again.take(now);
        if !is_due {
            self.asked.insert(now, name);
            return None;
        }
        self.served.insert(now, name);
        Some(self.cookie(client, now / EPOCH))
    }

    pub fn is_good(&self, now: Micros, client: SocketAddr, cookie: u64) -> bool {
        let epoch = now / EPOCH;
        [Some(epoch), epoch.checked_sub(1)]
            .into_iter()
            .flatten()
            .any(|epoch| cookie == self.cookie(client, epoch))
    }

    /// Never zero: that is a sender's way to say that it has none.
    fn cookie(&self, client: SocketAddr, epoch: u64) -> u64 {
        let mut message = [0; 26];
        let (ip, rest) = message.split_at_mut(16);
        let (port, time) = rest.split_at_mut(2);
        ip.copy_from_slice(&octets(client.ip()));
        port.copy_from_slice(&client.port().to_be_bytes());
        time.copy_from_slice(&epoch.to_be_bytes());
        SipHasher24::new_with_key(&self.key).hash(&message).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_for_the_same_address_for_a_minute_or_two() {
        let client: SocketAddr = "192.0.2.1:5000".parse().unwrap();
        let now = 7 * EPOCH + 5;
        let mut cookies = Cookies::new([1; 16], 10);
        let cookie = cookies.hand_out(now, client).unwrap();
        assert!(cookies.is_good(now, client, cookie));
        assert!(cookies.is_good(9 * EPOCH - 1, client, cookie));
        assert!(!cookies.is_good(9 * EPOCH, client, cookie));
        assert!(!cookies.is_good(now - EPOCH, client, cookie));
        assert!(!cookies.is_good(now, client, 0));
        for other in ["192.0.2.1:5001", "192.0.2.2:5000", "[2001:db8::1]:5000"] {
            assert!(!cookies.is_good(now, other.parse().unwrap(), cookie), "{other}");
        }
        assert!(!Cookies::new([2; 16], 10).is_good(now, client, cookie));
        // The same address written another way.
        assert!(cookies.is_good(now, "[::ffff:192.0.2.1]:5000".parse().unwrap(), cookie));
        assert!(cookies.is_good(0, client, cookies.cookie(client, 0)));
    }

    fn client(number: u64) -> SocketAddr {
        let [.., a, b, c, d] = number.to_be_bytes();
        SocketAddr::from(([10, b, c, d], 1024 + u16::from(a)))
    }

    #[test]
    fn so_many_a_second() {
        let mut cookies = Cookies::new([1; 16], 500);
        let mut handed_out = 0;
        for (number, now) in (10 * SEC..12 * SEC).step_by(20).enumerate() {
            handed_out += u32::from(cookies.hand_out(now, client(number as u64)).is_some());
        }
        // Nobody asks again; so many are taken for somebody that does.
        assert!((500..=1_051).contains(&handed_out), "{handed_out}");
    }

    /// Asks twelve times amid a flood, and once more for each a second later. Tells how many
    /// have got a cookie.
    fn honest(flood: impl Fn(u64) -> SocketAddr) -> usize {
        let mut cookies = Cookies::new([1; 16], 500);
        let honest = |number| SocketAddr::from(([192, 0, 2, number], 5000));
        let mut got = [false; 12];
        for (number, now) in (10 * SEC..16 * SEC).step_by(50).enumerate() {
            cookies.hand_out(now, flood(number as u64));
            // In the second half, each of them twice.
            let (second, part) = (now / SEC, now % SEC);
            if (13..15).contains(&second) && part.is_multiple_of(80_000) {
                let at = (part / 80_000) as usize;
                if let Some(got) = got.get_mut(at) {
                    *got |= cookies.hand_out(now, honest(at as u8)).is_some();
                }
            }
        }
        got.iter().filter(|got| **got).count()
    }

    #[test]
    fn who_asks_again_gets_one_whatever_others_do() {
        // An address of its own each time, a few again and again, and one with many ports.
        assert_eq!(honest(client), 12);
        assert_eq!(honest(|number| client(number % 250)), 12);
        let ports = |number| SocketAddr::from(([10, 0, 0, 1], 1024 + (number % 25_000) as u16));
        assert_eq!(honest(ports), 12);
        // The addresses of the others, with other ports.
        let theirs = |number: u64| {
            SocketAddr::from(([192, 0, 2, (number % 12) as u8], 6000 + (number % 50_000) as u16))
        };
        assert_eq!(honest(theirs), 12);
    }
}
