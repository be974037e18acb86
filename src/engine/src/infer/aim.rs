// SPDX-License-Identifier: GPL-2.0-or-later
//! Which packet a reply belongs to, as far as its time tells.

use crate::measure::rtt::LocalRtt;
use crate::store::cache::{Cache, Id, Trail};
use crate::time::{Nanos, Time};

/// Packets that could have triggered one reply that are counted (chosen: from here on it names
/// none of them anyway).
const MOST_SIMILAR: usize = 16;

/// What has to be known of a reply to judge its rhythm.
pub(crate) struct Reply {
    pub now: Time,
    /// Its size above the usual.
    pub excess: i32,
    /// The reply to a copy is due now.
    pub copy_due: bool,
    /// It is one of many of one size.
    pub constant: bool,
    /// ... and this client's always are.
    pub always_constant: bool,
    /// Only counts that are mostly the same are heeded.
    pub regular_only: bool,
    /// Packets sent down so far.
    pub sent: u64,
    /// Time since the reply before, if there was one.
    pub since_last: Option<Nanos>,
    /// How far apart packets are sent down.
    pub spacing: Nanos,
}

/// Which packet triggered a reply, as far as its time tells.
pub(crate) struct Aim {
    /// When a packet was forwarded that triggers a reply at this time.
    pub due: Time,
    pub trigger: Id,
    /// Its number in the flow.
    pub number: u64,
    /// The reply came when the reply to that packet was due.
    pub fast: bool,
    /// Distance from when the reply to the nearest packet was due.
    pub error: Nanos,
    /// Packets that may as well have triggered it, with this one.
    pub similar: u64,
    /// No other packet can have triggered it.
    pub certain: bool,
    /// Since the reply to the newest packet that can have triggered it was due.
    pub late: Nanos,
}

/// Finds that packet; none if the trail has none.
pub(crate) fn aim(reply: &Reply, rtt: &LocalRtt, trail: &mut Trail, cache: &Cache) -> Option<Aim> {
    let due = reply.now - rtt.get();
    let window = rtt.aim();
    let latest = trail.around(cache, due + window).floor;
    let similar = trail.within(cache, due - window, due + window).take(MOST_SIMILAR).count() as u64;
    let (nearest, offset) = trail.nearest(cache, due)?;
    let fast = offset.abs() <= window;
    let trigger = if fast { nearest } else { latest? };
    let newest = latest.and_then(|id| cache.record(id)).map_or(due, |record| record.at);
    Some(Aim {
        due,
        trigger,
        number: cache.record(trigger)?.number,
        fast,
        error: offset.abs(),
        similar,
        certain: fast && similar <= 1 && !reply.copy_due && rtt.sharp(),
        late: due.since(newest).max(0),
    })
}
