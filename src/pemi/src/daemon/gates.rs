// SPDX-License-Identifier: GPL-2.0-or-later
//! Which clients pass as they are: those whose radio loses nothing, from their next pause on.
//!
//! While packets of a client wait in the queue, one that went past it would overtake them. So
//! a gate that is closed has an effect only when the client is silent, and one that has opened has
//! it at once: what comes by the queue comes later than what did not.

use std::net::IpAddr;

use crate::config::Mode;
use crate::firewall::clean::Member;
use crate::radio::news::Clean;

/// So often it is said again who passes; the rules forget it after three times as long.
const AGAIN_S: u64 = 20;

/// Who passes.
#[derive(Debug)]
pub struct Gates {
    mode: Mode,
    passing: Vec<Member>,
    /// Seconds since it was said.
    said_s: u64,
}

impl Gates {
    /// Nobody passes yet. On a bridge clients are known by their stations.
    pub fn new(mode: Mode) -> Gates {
        Gates { mode, passing: Vec::new(), said_s: 0 }
    }

    /// Gives who is to pass, if that is to be said. `second` says that a second has passed since
    /// this was asked so; in between nobody can be silent.
    ///
    /// `is_silent` tells whether no packet of a client came by the queue meanwhile, or, with
    /// `None`, of no client at all.
    pub fn turn(
        &mut self,
        clean: &[Clean],
        second: bool,
        is_silent: &dyn Fn(Option<IpAddr>) -> bool,
    ) -> Option<Vec<Member>> {
        self.said_s += u64::from(second);
        let mut next = Vec::new();
        for client in clean {
            let mut all = !client.addresses.is_empty();
            for address in &client.addresses {
                let silent = is_silent(Some(*address));
                all &= silent;
                let member = Member::from(*address);
                if self.mode == Mode::Routed && (silent || self.passing.contains(&member)) {
                    next.push(member);
                }
            }
            let member = Member::station(client.mac.0);
            if self.mode == Mode::Bridged
                && (all || is_silent(None) || self.passing.contains(&member))
            {
                next.push(member);
            }
        }
        let again = self.said_s >= AGAIN_S && !next.is_empty();
        if next == self.passing && !again {
            return None;
        }
        self.said_s = 0;
        self.passing.clone_from(&next);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pemi_radio::mac::Mac;

    fn client(host: u8) -> Clean {
        Clean { mac: Mac([2, 0, 0, 0, 0, host]), addresses: vec![address(host)] }
    }

    fn address(host: u8) -> IpAddr {
        IpAddr::from([192, 0, 2, host])
    }

    fn members(hosts: &[u8]) -> Vec<Member> {
        hosts.iter().map(|host| address(*host).into()).collect()
    }

    #[test]
    fn a_gate_closes_in_a_pause_and_opens_at_once() {
        let mut gates = Gates::new(Mode::Routed);
        let both = [client(1), client(2)];
        assert_eq!(gates.turn(&both, true, &|_| false), None, "nobody is silent");
        let second = |it: Option<IpAddr>| it == Some(address(2));
        assert_eq!(gates.turn(&both, true, &second), Some(members(&[2])));
        assert_eq!(gates.turn(&both, true, &|_| true), Some(members(&[1, 2])));
        assert_eq!(gates.turn(&both, true, &|_| false), None, "it stays so");
        assert_eq!(gates.turn(&both[..1], false, &|_| false), Some(members(&[1])));
        assert_eq!(gates.turn(&both, false, &|_| false), None, "no gate closes in between");
        assert_eq!(gates.turn(&[], false, &|_| false), Some(vec![]));
        assert_eq!(gates.turn(&[], false, &|_| false), None);
    }

    #[test]
    fn on_a_bridge_whoever_has_no_address_is_silent_when_all_are() {
        let mut gates = Gates::new(Mode::Bridged);
        let station = |host| Member::station([2, 0, 0, 0, 0, host]);
        let both = [client(1), Clean { addresses: vec![], ..client(2) }];
        let second = |it: Option<IpAddr>| it == Some(address(2));
        assert_eq!(gates.turn(&both, true, &second), None);
        let first = |it: Option<IpAddr>| it == Some(address(1));
        assert_eq!(gates.turn(&both, true, &first), Some(vec![station(1)]));
        assert_eq!(gates.turn(&both, true, &|_| true), Some(vec![station(1), station(2)]));
    }

    #[test]
    fn who_passes_is_said_again() {
        let mut gates = Gates::new(Mode::Routed);
        let said = |gates: &mut Gates, clean: &[Clean]| {
            (0..100).filter(|_| gates.turn(clean, true, &|_| true).is_some()).count()
        };
        assert_eq!(said(&mut gates, &[client(1)]), 5);
        assert_eq!(said(&mut gates, &[]), 1, "nobody is to be said once");
    }
}
