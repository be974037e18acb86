// SPDX-License-Identifier: GPL-2.0-or-later
//! Which of the router's devices the helped clients are behind: by them it is known which access
//! points are looked at, and whose word counts on who has an address.
//!
//! Anyone behind a device can have the kernel note an address as theirs there, where it takes
//! addresses of other networks (`rp_filter` 0, and always for IPv6). A host of another network of
//! the router must not take a client's address away from it, so neighbours of other devices
//! are not learned.

use pemi_radio::link::Link;

/// The helped devices, as they are now.
#[derive(Debug, Default)]
pub(super) struct Realm {
    /// None: any device will do.
    helped: Option<Vec<Link>>,
    /// Of other devices, by their numbers, whether they are VLANs of a bridge with helped ports.
    /// As many as the router has devices.
    vlans: Vec<(u32, bool)>,
}

impl Realm {
    /// Of these devices; none: of all.
    pub fn of(helped: Option<Vec<Link>>) -> Realm {
        Realm { helped, vlans: Vec::new() }
    }

    /// Whether neighbours are those of the other one as well.
    pub fn is_like(&self, other: &Realm) -> bool {
        self.helped == other.helped
    }

    /// Whether an access point is of it, or any: it is a helped device, a port of one, or a
    /// port of the bridge whose VLAN the helped device is.
    pub fn has_access_point(&self, access_point: Option<&Link>) -> bool {
        let Some(helped) = &self.helped else { return true };
        access_point.is_some_and(|it| helped.iter().any(|device| belongs(it, device)))
    }

    /// Whether neighbours of the device of this number are of it: it is a helped one, the bridge of
    /// a helped port, or a VLAN of that bridge. `link` tells of a device.
    pub fn has_neighbours(&mut self, device: u32, link: impl FnOnce(u32) -> Option<Link>) -> bool {
        let Some(helped) = &self.helped else { return true };
        if helped.iter().any(|it| it.index == device || it.master == Some(device)) {
            return true;
        }
        if helped.iter().all(|it| it.master.is_none()) {
            return false;
        }
        if let Some((_, known)) = self.vlans.iter().find(|(index, _)| *index == device) {
            return *known;
        }
        let Some(lower) = link(device).map(|it| it.lower) else { return false };
        let is = lower.is_some() && helped.iter().any(|it| it.master == lower);
        self.vlans.push((device, is));
        is
    }
}

fn belongs(access_point: &Link, device: &Link) -> bool {
    access_point.index == device.index
        || access_point.master.is_some_and(|bridge| {
            bridge == device.index || device.lower.is_some_and(|lower| lower == bridge)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn link(index: u32, master: Option<u32>, lower: Option<u32>) -> Link {
        Link { index, name: String::new(), master, lower }
    }

    fn realm(helped: Link) -> Realm {
        Realm::of(Some(vec![helped]))
    }

    #[test]
    fn access_points_of_the_helped_devices() {
        let access_point = link(7, Some(3), None);
        for (device, expected) in [
            (link(7, Some(3), None), true),
            (link(3, None, None), true),
            // br-lan.10 over br-lan.
            (link(20, None, Some(3)), true),
            (link(4, None, None), false),
            (link(20, None, Some(4)), false),
        ] {
            let has = realm(device.clone()).has_access_point(Some(&access_point));
            assert_eq!(has, expected, "{device:?}");
        }
        let alone = link(7, None, None);
        let mut bridge = realm(link(3, None, None));
        assert!(!bridge.has_access_point(Some(&alone)), "a bridge of its own");
        assert!(!bridge.has_access_point(None), "nobody knows what it is");
        assert!(Realm::of(None).has_access_point(Some(&alone)));
        assert!(!bridge.has_neighbours(7, |_| Some(alone)), "its host is behind the port alone");
    }

    #[test]
    fn neighbours_of_the_helped_devices() {
        const GUEST: u32 = 9;
        let guest = |_| Some(link(GUEST, None, None));
        let unasked = |_| unreachable!("it is known without");
        let mut bridge = realm(link(3, None, None));
        assert!(bridge.has_neighbours(3, unasked));
        assert!(!bridge.has_neighbours(GUEST, guest));
        // A network of its own over the same bridge.
        assert!(!bridge.has_neighbours(20, |_| Some(link(20, None, Some(3)))));
        let mut vlan = realm(link(20, None, Some(3)));
        assert!(vlan.has_neighbours(20, unasked));
        assert!(!vlan.has_neighbours(3, |_| Some(link(3, None, None))));
        assert!(Realm::of(None).has_neighbours(GUEST, unasked));
        assert!(!Realm::of(Some(vec![])).has_neighbours(GUEST, guest), "none is there yet");
    }

    #[test]
    fn neighbours_of_a_helped_port_are_those_of_its_bridge() {
        let mut port = realm(link(7, Some(3), None));
        assert!(port.has_neighbours(7, |_| unreachable!("it is known without")));
        assert!(port.has_neighbours(3, |_| unreachable!("it is known without")));
        assert!(port.has_neighbours(20, |_| Some(link(20, None, Some(3)))));
        assert!(port.has_neighbours(20, |_| unreachable!("it was asked before")));
        assert!(!port.has_neighbours(21, |_| Some(link(21, None, Some(4)))));
        assert!(!port.has_neighbours(22, |_| None), "it has gone");
        assert!(port.has_neighbours(22, |_| Some(link(22, None, Some(3)))), "and came back");
    }

    #[test]
    fn a_port_that_joins_another_bridge_has_other_neighbours() {
        let (before, after) = (realm(link(7, Some(3), None)), realm(link(7, Some(4), None)));
        assert!(!before.is_like(&after) && before.is_like(&realm(link(7, Some(3), None))));
        assert!(!Realm::of(None).is_like(&after) && Realm::of(None).is_like(&Realm::of(None)));
    }
}
