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
/// With more the oldest of those goes that is no station's: a wired host may have as many
/// hardware addresses as it likes, and a station only those with which it has associated.
const MOST: usize = 1024;

/// All that is known, whoever was heard of last at the end.
#[derive(Debug, Default)]
pub(super) struct Directory(Vec<Neighbour>);

impl Directory {
    /// Takes what the kernel said. `is_station` tells whether somebody is on an access point.
    pub fn learn(&mut self, new: Neighbour, is_station: impl Fn(Mac) -> bool) {
        self.0.retain(|known| known.address != new.address);
        let of_it = self.0.iter().filter(|known| known.mac == new.mac).count();
        let oldest = match (of_it, self.0.len()) {
            (MOST_OF_ONE.., _) => self.0.iter().position(|known| known.mac == new.mac),
            (_, MOST..) => {
                Some(self.0.iter().position(|known| !is_station(known.mac)).unwrap_or(0))
            }
            _ => None,
        };
        oldest.map(|at| self.0.remove(at));
        self.0.push(new);
    }

    /// What the kernel said of a station's addresses.
    pub fn neighbours(&self, mac: Mac) -> impl Iterator<Item = Neighbour> {
        self.0.iter().filter(move |known| known.mac == mac).copied()
    }

    /// The addresses of a station, in their order, those of IPv4 first.
    pub fn of(&self, mac: Mac) -> Vec<IpAddr> {
        let mut found = Vec::new();
        for known in self.neighbours(mac) {
            let at = found.partition_point(|address| *address < known.address);
            found.insert(at, known.address);
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The only one that is on an access point.
    const STATION: Mac = Mac([2, 0, 0, 0, 0, 2]);

    fn learn(directory: &mut Directory, host: u16, mac: u8) {
        directory.learn(neighbour(host, mac), |mac| mac == STATION);
    }

    fn neighbour(host: u16, mac: u8) -> Neighbour {
        let [high, low] = host.to_be_bytes();
        let address = IpAddr::from([192, 0, high, low]);
        Neighbour {
            address,
            mac: Mac([2, 0, 0, 0, 0, mac]),
            device: 3,
            reachable: true,
            fixed: false,
        }
    }

    #[test]
    fn an_address_goes_to_who_has_it_now() {
        let mut directory = Directory::default();
        learn(&mut directory, 9, 1);
        learn(&mut directory, 4, 1);
        let address = |host| IpAddr::from([192, 0, 0, host]);
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 1])), [address(4), address(9)]);
        learn(&mut directory, 9, 2);
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 1])), [address(4)]);
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 2])), [address(9)]);
    }

    #[test]
    fn who_makes_many_displaces_itself() {
        let mut directory = Directory::default();
        learn(&mut directory, 0xffff, 2);
        (0..5000).for_each(|host| learn(&mut directory, host, 1));
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 1])).len(), MOST_OF_ONE);
        assert_eq!(directory.of(Mac([2, 0, 0, 0, 0, 2])).len(), 1);
        let others = |host: u16| (host / 4 % 256) as u8 | 4;
        (0..5000).for_each(|host| learn(&mut directory, host, others(host)));
        assert_eq!(directory.0.len(), MOST);
        assert_eq!(directory.of(STATION).len(), 1, "no wired host displaces a station");
    }
}
