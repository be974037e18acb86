// SPDX-License-Identifier: GPL-2.0-or-later
//! What clients are called: by the leases of dnsmasq, and by files of hosts. Where these
//! cannot be read nobody has a name.

use std::fs;
use std::net::IpAddr;

use pemi_radio::mac::Mac;

/// What dnsmasq has given away: a line each, with time, whose it is, address and name.
const LEASES: &str = "/tmp/dhcp.leases";
/// Files of hosts, the second one odhcpd's: an address and its names a line.
const HOSTS: [&str; 2] = ["/etc/hosts", "/tmp/hosts/odhcpd"];
/// The longest part of a name in DNS.
const LONGEST: usize = 63;

/// All names.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Names {
    stations: Vec<(Mac, String)>,
    addresses: Vec<(IpAddr, String)>,
}

impl Names {
    /// As the files have them now.
    pub fn read() -> Names {
        let mut names = Names::default();
        names.leases(&text(LEASES));
        HOSTS.iter().for_each(|file| names.hosts(&text(file)));
        names
    }

    /// That of a client; none if nobody knows it.
    pub fn of(&self, mac: Option<Mac>, addresses: &[IpAddr]) -> Option<&str> {
        let of_station = self.stations.iter().find(|(station, _)| Some(*station) == mac);
        let of_address = || self.addresses.iter().find(|(address, _)| addresses.contains(address));
        let name = of_station.map(|(_, name)| name).or_else(|| of_address().map(|(_, name)| name));
        name.map(String::as_str)
    }

    fn leases(&mut self, text: &str) {
        for line in text.lines() {
            let [_, station, address, name, ..] = words(line)[..] else { continue };
            let Some(name) = valid(name) else { continue };
            // Of IPv6 there is another number in the place of the station's address.
            self.stations.extend(mac(station).map(|mac| (mac, name.clone())));
            self.addresses.extend(address.parse().ok().map(|address| (address, name)));
        }
    }

    fn hosts(&mut self, text: &str) {
        for line in text.lines() {
            let [address, name, ..] = words(line)[..] else { continue };
            let Ok(address) = address.parse::<IpAddr>() else { continue };
            // The first part of it is what people call it.
            let Some(name) = name.split('.').next().and_then(valid) else { continue };
            self.addresses.push((address, name));
        }
    }
}

fn words(line: &str) -> Vec<&str> {
    line.split_ascii_whitespace().collect()
}

fn mac(text: &str) -> Option<Mac> {
    let mut bytes = [0; 6];
    let mut parts = text.split(':');
    for byte in &mut bytes {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(Mac(bytes))
}

/// Clients choose their names, and terminals heed more than letters.
fn valid(name: &str) -> Option<String> {
    let plain = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    (plain && !name.is_empty() && name.len() <= LONGEST).then(|| name.to_string())
}

/// What a file says; nothing if it cannot be read.
fn text(file: &str) -> String {
    fs::read_to_string(file).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leases_and_hosts() {
        let mut names = Names::default();
        names.leases(
            "1763800000 02:00:00:00:02:00 192.0.2.9 phone 01:02:00:00:00:02:00\n\
             1763800000 02:00:00:00:03:00 192.0.2.10 * *\n\
             1763800000 02:00:00:00:04:00 192.0.2.11 \u{1b}[31mred *\n\
             duid 00:01:00:01:2a\n\
             1763800000 12345 2001:db8::9 tablet 00:01\n",
        );
        names.hosts(
            "# br-lan 0001 lan laptop 0\n192.0.2.12\tprinter.lan printer\n127.0.0.1 localhost\n",
        );
        let station = |last| Some(Mac([2, 0, 0, 0, last, 0]));
        let address = |text: &str| [text.parse().unwrap()];
        assert_eq!(names.of(station(2), &[]), Some("phone"));
        assert_eq!(names.of(station(9), &address("192.0.2.9")), Some("phone"));
        assert_eq!(names.of(station(3), &address("192.0.2.10")), None);
        assert_eq!(names.of(station(4), &address("192.0.2.11")), None);
        assert_eq!(names.of(None, &address("2001:db8::9")), Some("tablet"));
        assert_eq!(names.of(None, &address("192.0.2.12")), Some("printer"));
        assert_eq!(names.of(None, &[]), None);
    }
}
