// SPDX-License-Identifier: GPL-2.0-or-later
//! Which addresses a station has, as the kernel's table of neighbours tells.
//!
//! An address stays with its station until another one has it: a telephone that sleeps is soon
//! no neighbour any more, and is still the same client.

use std::net::IpAddr;

use pemi_radio::mac::Mac;
use pemi_radio::neighbour::Neighbour;

/// So many addresses of a station are kept: one of IPv4, and those that IPv6 makes for a day
/// each and keeps for a week. With more the oldest goes, so a client that makes many displaces
/// nobody else's.
const MOST_OF_ONE: usize = 8;
/// So many are kept together, of wired clients as well. Chosen: as many neighbours as Linux has.
const MOST: usize = 1024;

/// All that is known, whoever was heard of last at the end.
#[derive(Debug, Default)]
pub(super) struct Directory(Vec<Neighbour>);

impl Directory {
    /// Takes what the kernel said.
    pub fn learn(&mut self, new: Neighbour) {
        self.0.retain(|known| known.address != new.address);
        let of_it = self.0.iter().filter(|known| known.mac == new.mac).count();
        let oldest = match (of_it, self.0.len()) {
            (MOST_OF_ONE.., _) => self.0.iter().position(|known| known.mac == new.mac),
            (_, MOST..) => Some(0),
            _ => None,
        };
        oldest.map(|at| self.0.remove(at));
        self.0.push(new);
    }

    /// The addresses of a station, in their order, those of IPv4 first.
    pub fn of(&self, mac: Mac) -> Vec<IpAddr> {
        let mut found = Vec::new();
        for known in self.0.iter().filter(|known| known.mac == mac) {
            let at = found.partition_point(|address| *address < known.address);
            found.insert(at, known.address);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn neighbour(host: u16, mac: u8) -> Neighbour {
        let [high, low] = host.to_be_bytes();
        let address = IpAddr::from([192, 0, high, low]);
        Neighbour { address, mac: Mac([2, 0, 0, 0, 0, mac]) }
    }

    #[test]
    fn an_address_goes_to_who_has_it_now() {
        let mut directory = Directory::default();
        directory.learn(neighbour(9, 1));
        directory.learn(neighbour(4, 1));
        let address = |host| IpAddr::from([192, 0, 0, host]);
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 1])), [address(4), address(9)]);
        directory.learn(neighbour(9, 2));
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 1])), [address(4)]);
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 2])), [address(9)]);
    }

    #[test]
    fn who_makes_many_displaces_itself() {
        let mut directory = Directory::default();
        directory.learn(neighbour(0xffff, 2));
        (0..5000).for_each(|host| directory.learn(neighbour(host, 1)));
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 1])).len(), MOST_OF_ONE);
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 2])).len(), 1);
        (0..5000).for_each(|host| directory.learn(neighbour(host, (host / 4 % 256) as u8)));
        assert_eq!(directory.0.len(), MOST);
    }
}
