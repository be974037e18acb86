// SPDX-License-Identifier: GPL-2.0-or-later
//! What any kernel answers to anybody. (An emulator of one processor translates such messages for
//! another one in part only, so this is no unit test.)

use pemi_radio::radio::{Events, Radio};
use pemi_radio::route::{Changes, Route};

/// Every network namespace has this device.
#[test]
fn the_loopback_device_is_there() {
    let mut route = Route::open().unwrap();
    let link = route.link("lo").unwrap();
    assert_eq!((link.name.as_str(), link.master), ("lo", None));
    assert_eq!(route.link_of(link.index), Some(link));
    assert_eq!(route.link("a name of 16 byt"), None);
    assert_eq!(route.link_of(u32::MAX >> 1), None);
    route.neighbours(|_| {}).unwrap();
    assert_eq!(Changes::open().unwrap().hear().unwrap(), None);
}

/// With a radio or without: one of two answers, and nothing to hear yet.
#[test]
fn a_machine_without_a_radio_says_so() {
    match Radio::open() {
        Ok(mut radio) => drop(radio.interfaces().unwrap()),
        Err(error) => assert_eq!(error.kind(), std::io::ErrorKind::NotFound),
    }
    assert_eq!(Events::without_radio().unwrap().hear().unwrap(), None);
}
