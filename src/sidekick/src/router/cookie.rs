//! Proof that who asks receives at the address that he asks from. Nothing is kept for
//! who has not shown it.

use core::net::SocketAddr;

use siphasher::sip::SipHasher24;

use super::session::octets;
use super::{Micros, SEC};

/// A cookie is good for the rest of the minute that it was made in and the next one.
const EPOCH: Micros = 60 * SEC;
/// Cookies that can be handed out in a row: those of so long a time.
const SAVED: Micros = SEC / 10;

#[derive(Clone, Debug)]
pub(super) struct Cookies {
    key: [u8; 16],
    /// Time between two of them.
    apart: Micros,
    /// When there is one again, or how long there has been one.
    ready: Micros,
}

impl Cookies {
    pub fn new(key: [u8; 16], per_s: u32) -> Cookies {
        Cookies { key, apart: SEC / Micros::from(per_s.max(1)), ready: 0 }
    }

    /// For `client`, unless there were too many lately.
    pub fn hand_out(&mut self, now: Micros, client: SocketAddr) -> Option<u64> {
        let ready = self.ready.max(now.saturating_sub(SAVED));
        if ready > now {
            return None;
        }
        self.ready = ready.saturating_add(self.apart);
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

    #[test]
    fn so_many_a_second() {
        let client: SocketAddr = "192.0.2.1:5000".parse().unwrap();
        let mut cookies = Cookies::new([1; 16], 500);
        let mut handed_out = 0;
        for now in (10 * SEC..12 * SEC).step_by(20) {
            handed_out += u32::from(cookies.hand_out(now, client).is_some());
        }
        assert!((1_000..=1_051).contains(&handed_out), "{handed_out}");
    }
}
