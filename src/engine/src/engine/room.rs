// SPDX-License-Identifier: GPL-2.0-or-later
//! Which flows leave the table before their end: those that make room for others, and those that
//! were let go and are to be helped again.

use core::net::IpAddr;

use super::Engine;
use crate::store::table::Standing;
use crate::time::{Nanos, SEC, Time};

/// A flow that was let go and of which nothing has come for so long comes by us again because
/// somebody wants it to (chosen: far longer than a packet that was under way when it was let go
/// waits anywhere).
const BACK: Nanos = SEC;
/// The share of one client in a full table, one in so many (chosen: a few busy clients do not
/// come in each other's way).
const CLIENT_SHARE: usize = 4;
/// In a full table a flow that was in use within this time stays (chosen: somebody who makes many
/// flows is not to push out a call that sends every 20 ms).
const IN_USE: Nanos = SEC;
/// Flows looked at for one that may make room (chosen: bounds the time for one packet).
const LOOK: usize = 64;

impl Engine {
    /// The flow found for a packet, unless it was let go long ago. Then whoever had it pass us has
    /// changed his mind, because its client loses packets by now: it is forgotten, and the packet is
    /// the first of a flow that begins in the middle.
    pub(super) fn unless_taken_up(&mut self, now: Time, found: Option<u32>) -> Option<u32> {
        let slot = found?;
        let back = self.flows.get(slot).is_some_and(|flow| flow.was_let_go_by(now - BACK));
        if back {
            self.remove_flow(now, slot);
        }
        found.filter(|_| !back)
    }

    /// Whether there is room for one more flow of `receiver`, if need be in the place
    /// of another one.
    pub(super) fn make_room(&mut self, now: Time, receiver: IpAddr) -> bool {
        let limit = self.config.max_flows.max(1);
        if self.flows.len(Standing::Settled) < limit {
            return true;
        }
        let Some(oldest) = self.flows.oldest(Standing::Settled) else { return false };
        let share = limit.div_ceil(CLIENT_SHARE) as u32;
        let flows_of =
            |hop: Option<u32>| hop.and_then(|hop| self.hops.get(hop)).map_or(0, |h| h.flows);
        let greedy = flows_of(self.hops.find(&receiver)) >= share;
        let mut look =
            core::iter::successors(Some(oldest), |slot| self.flows.newer(*slot)).take(LOOK);
        // A client that has more than its share makes room first, and the one that asks before
        // all others.
        let leaves = look.find(|slot| {
            self.flows.get(*slot).is_some_and(|flow| match greedy {
                true => flow.receiver_address() == receiver,
                false => flows_of(flow.hop_slot) > share,
            })
        });
        let idle = self.flows.get(oldest).is_none_or(|flow| now.since(flow.last_seen) >= IN_USE);
        let Some(leaves) = leaves.or((idle && !greedy).then_some(oldest)) else { return false };
        self.remove_flow(now, leaves);
        self.stats.flows_evicted += 1;
        true
    }

    /// Removes the oldest flows of this standing until there are no more than `limit`.
    pub(super) fn crowd_out(&mut self, now: Time, standing: Standing, limit: usize) {
        while self.flows.len(standing) > limit {
            let Some(oldest) = self.flows.oldest(standing) else { break };
            self.remove_flow(now, oldest);
            self.stats.flows_evicted += u64::from(standing == Standing::Settled);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Config, Direction, Handle, Verdict};
    use crate::time::MS;
    use crate::wire::packet::tests::{v4, v4_back};
    use crate::wire::quic::V1;
    use crate::wire::quic::tests::long;

    #[test]
    fn a_flow_that_was_let_go_and_comes_back_is_helped_again() {
        let mut engine =
            Engine::new(Config { release_after: Some(2 * SEC), ..Config::default() }, 1);
        let (reply, data) = (v4(&[0x40; 40]), v4_back(&[0x40; 200]));
        let mut now = Time::ZERO;
        let mut show = |engine: &mut Engine, pause: Nanos, up: &[u8]| {
            now = now + pause;
            engine.on_packet(now, Direction::Up, up, Handle(1));
            let verdict = engine.on_packet(now, Direction::Down, &data, Handle(2));
            while engine.next_action().is_some() {}
            (verdict, engine.stats(now).flows_bypassed)
        };
        show(&mut engine, 0, &v4(&long(V1, 0, 1200)));
        let let_go = (0..).take_while(|_| show(&mut engine, 100 * MS, &reply).1 == 0).count();
        assert_eq!(let_go, 20);
        for _ in 0..100 {
            // What is on its way yet, or where nobody minds the mark.
            assert_eq!(show(&mut engine, 100 * MS, &reply), (Verdict::Bypass, 1));
        }
        assert_eq!(show(&mut engine, BACK, &reply), (Verdict::Forward, 0));
        (0..4).for_each(|_| assert_eq!(show(&mut engine, MS, &reply), (Verdict::Forward, 0)));
        assert_eq!(engine.stats(now).flows_protected, 1, "it was recognised in its middle");
    }
}
