// SPDX-License-Identifier: GPL-2.0-or-later
//! When a flow is let go.

use super::*;
use crate::time::SEC;
use crate::wire::packet::tests::{v4, v4_back};
use crate::wire::quic::V1;
use crate::wire::quic::tests::long;

/// The second in which a flow that never loses anything is let go.
fn let_go_at(release_after: Option<Nanos>) -> Option<i64> {
    let mut engine = Engine::new(Config { release_after, ..Config::default() }, 1);
    let initial = v4(&long(V1, 0, 1200));
    let short = v4(&[0x40; 40]);
    let data = v4_back(&[0x40; 200]);
    (0..100).find(|second| {
        let packet = if *second == 0 { &initial } else { &short };
        let now = Time::ZERO + second * SEC;
        let verdict = engine.on_packet(now, Direction::Up, packet, Handle(1));
        while engine.next_action().is_some() {}
        let bypassed = engine.stats(now).flows_bypassed == 1;
        assert_eq!(verdict == Verdict::Bypass, bypassed);
        if !bypassed {
            engine.on_packet(now, Direction::Down, &data, Handle(2));
            while engine.next_action().is_some() {}
        }
        bypassed
    })
}

#[test]
fn a_clean_flow_is_let_go() {
    assert_eq!(let_go_at(Some(30 * SEC)), Some(31));
    assert_eq!(let_go_at(Some(5 * SEC)), Some(6));
    assert_eq!(let_go_at(None), None);
}
