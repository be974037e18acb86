// SPDX-License-Identifier: GPL-2.0-or-later
//! What one address may take in a while, so that there is something left for others.

use core::net::IpAddr;

use siphasher::sip::SipHasher24;

use super::session::octets;
use super::{MS, Micros};

const WHILE: Micros = 100 * MS;
/// For one address in that time. A client has eight sessions at most.
const SHARE: u8 = 8;
/// Addresses share counters, by a hash that nobody else can tell.
const COUNTERS: usize = 1024;

#[derive(Clone, Debug)]
pub(super) struct Shares {
    key: [u8; 16],
    taken: Box<[u8]>,
    since: Micros,
}

impl Shares {
    pub fn new(key: [u8; 16]) -> Shares {
        Shares { key, taken: vec![0; COUNTERS].into_boxed_slice(), since: 0 }
    }

    /// Takes one of those of `ip`, if there is one left. The whole address counts with IPv6,
    /// too: all clients of a network are in one prefix of 64 bits.
    pub fn take(&mut self, now: Micros, ip: IpAddr) -> bool {
        if now.saturating_sub(self.since) >= WHILE {
            self.since = now;
            self.taken.fill(0);
        }
        let hash = SipHasher24::new_with_key(&self.key).hash(&octets(ip));
        let Some(taken) = self.taken.get_mut(hash as usize % COUNTERS) else { return false };
        let left = *taken < SHARE;
        *taken += u8::from(left);
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_takes_its_share_and_leaves_the_rest() {
        let mut shares = Shares::new([3; 16]);
        let [greedy, other]: [IpAddr; 2] = ["fd00::1", "fd00::2"].map(|text| text.parse().unwrap());
        let mut taken = |now, ip| (0..100).filter(|_| shares.take(now, ip)).count();
        assert_eq!((taken(WHILE, greedy), taken(WHILE, other)), (8, 8));
        assert_eq!((taken(2 * WHILE - 1, greedy), taken(2 * WHILE, greedy)), (0, 8));
    }
}
