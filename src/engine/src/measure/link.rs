// SPDX-License-Identifier: GPL-2.0-or-later
//! When does the hop take a packet up?
//!
//! A hop that is hardly faster than the way before it has packets wait whenever a copy goes between
//! them: each copy puts off all replies by the time of one packet, and a reply that is late by that names
//! the wrong packet. On a slower one they wait anyway. So the hop's queue is kept in mind: what was sent to
//! this client, and how long the hop takes for it. That time is known from above: what was sent before a probe
//! had passed when the probe did, so no stretch of packets took longer than from its beginning until then. One
//! begins with a packet, or when the probe before had passed, and the longer it is, the less does it matter when
//! exactly. The least of that is right once the hop was busy for a while. Where probes say again and again that
//! the model is right, packets count as sent when the hop takes them up. Where they do not, because others use
//! the hop or its rate varies, there is no model.

use crate::store::least::Least;
use crate::store::recent::Recent;
use crate::time::{MS, Nanos, SEC, Time, US};

/// A stretch may begin with one packet in so many, and so many of these are remembered (chosen: sixty
/// packets in all, over which a host that is late makes less than a hundredth).
const EVERY: u32 = 8;
const STRETCHES: usize = 8;
/// Stretches with fewer bytes tell nothing (chosen: so many packets that a host's lateness in the quickest
/// probe is a hundredth of what they take).
const LEAST_BYTES: u32 = 8 * 1024;
/// ... but those of a packet that a probe went right behind: all that it waited for was that (chosen: the shortest
/// of which a whole number of KiB is told).
const LEAST_PACKET: u32 = 1024;
/// No stretch has as many (chosen: more than a hundred of the longest packets).
const MOST_BYTES: u32 = 1 << 24;
/// Stretches that took longer were not without a pause (chosen: that many packets at 1 Mbit/s).
const LONGEST_STRETCH: Nanos = SEC;
/// The grain of a stretch's beginning (chosen: its bits last for a quarter of an hour).
const GRAIN: Nanos = 256;
/// A probe had passed so much sooner than it seemed, as hosts are late (chosen: most are by no more). What
/// begins with one goes on from probe to probe while it has no pause, so that this matters less and less.
const LATE: Nanos = 100 * US;
const LATE_GRAINS: u32 = (LATE / GRAIN) as u32;
/// So many are a stretch at most.
const LONGEST_GRAINS: u32 = (LONGEST_STRETCH / GRAIN) as u32;
/// The window of the least time for packets (as BBR's of the highest rate, some round trips and more).
const WINDOW: Nanos = 10 * SEC;
/// A probe agrees that came within this part of what a full packet takes of when it was expected (chosen:
/// half of what tells a packet from its neighbour).
const AGREES_PART: i32 = 4;
/// ... and one disagrees that came sooner than that, or this part of it later (chosen: twice as much; what is
/// between may be a host that was late, and at 50 Mbit/s mostly is).
const DISAGREES_PART: i32 = 2;
/// A rate that is known from above has a queue seem longer than it is by up to this part of it (chosen: an eighth, as
/// one in eight of another hop's would agree by chance).
const SURELY_PART: i32 = 8;
/// Where a full packet takes less there is no model (chosen: that part of it is what schedulers make of a
/// probe).
const SHORTEST: Nanos = 200 * US;
/// So many probes that waited have to agree (chosen: one in four of another hop's would by chance) ...
const AGREED: u8 = 4;
/// ... and no more count, so that two that do not are enough to end it. Until so many have, it is asked.
const AGREED_MOST: u8 = 2 * AGREED;
/// One that waited for longer than this, in parts of a full packet, counts twice (chosen: three packets, so that
/// one in a dozen of another hop's would agree by chance).
const FAR_PARTS: i32 = 3 * AGREES_PART;
/// Until that is decided probes go more often, but no more of them than this (chosen: four times as many as
/// have to agree, as most are behind nothing; a hop that others use is not asked for ever).
const QUESTIONS: u8 = 8 * AGREED;
/// A round trip and the time of its probe agree but for this (chosen: what a host takes to send it and to hand
/// the answer on, and less than probes are apart).
const PROBE_ERROR: Nanos = MS;
/// A full packet, a probe (an echo request of the usual size), and what a link adds to a packet (Ethernet's
/// header), in bytes.
const FULL_BYTES: u32 = 1500;
const PROBE_BYTES: u32 = 98;
const LINK_BYTES: u32 = 14;
/// What passed behind a longer queue tells nothing of the rate, as some of it may have been dropped (chosen:
/// less than slow hops' buffers hold, which are made for fast ones).
const LATEST: i32 = 100_000_000;
/// No queue is longer (chosen: as long as a probe may be under way).
const LONGEST: Nanos = 500 * MS;

/// The beginning of a stretch, in few bytes because every client has some of these: the low bits of
/// its [`grains`], and of the bytes sent before.
#[derive(Clone, Copy, Debug, Default)]
struct Stretch {
    since: u32,
    before: u32,
}

/// The low bits of how often [`GRAIN`] has passed.
fn grains(at: Time) -> u32 {
    (at.as_nanos() / GRAIN.unsigned_abs()) as u32
}

/// A probe that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Probe {
    at: Time,
    /// When in the model all that was sent before will have passed.
    free: Time,
    /// The low bits of the bytes sent before.
    sent: u32,
    /// The next packet goes before it, if that comes at the same time.
    behind: bool,
    /// That packet, if there is one.
    packet: Stretch,
}

/// The model of one client's hop.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    /// When all that was sent will have passed.
    free: Time,
    /// The low bits of bytes and packets so far.
    sent: u32,
    packets: u32,
    stretches: Recent<Stretch, STRETCHES>,
    /// The least time for 1024 bytes, and of how many KiB that was.
    kib: Least<WINDOW>,
    told_by: u32,
    agreed: u8,
    probe: Probe,
    /// What began when a probe had passed, and has had no pause since.
    passed: Stretch,
    /// How often it was asked since something waited whether the model is right; 0 where it is.
    questions: u8,
}

impl Link {
    pub fn new(now: Time) -> Link {
        Link {
            free: now,
            sent: 0,
            packets: 0,
            stretches: Recent::new(),
            kib: Least::new(now),
            told_by: LEAST_BYTES >> 10,
            agreed: 0,
            probe: Probe::default(),
            passed: Stretch::default(),
            questions: 0,
        }
    }

    /// A packet is sent on; gives when the model takes it up.
    pub fn sent(&mut self, now: Time, len: usize) -> Time {
        let bytes = len as u32 + LINK_BYTES;
        if now.since(self.free) > LONGEST_STRETCH {
            self.stretches.clear();
        }
        if self.packets.is_multiple_of(EVERY) {
            self.stretches.push(Stretch { since: grains(now), before: self.sent });
        }
        self.packets = self.packets.wrapping_add(1);
        self.sent = self.sent.wrapping_add(bytes);
        let at = self.free.max(now);
        self.free = (at + self.takes(bytes)).min(now + LONGEST);
        if self.probe.behind && self.probe.at == now {
            self.probe.packet = Stretch { since: grains(now), before: self.probe.sent };
            (self.probe.free, self.probe.sent) = (self.free, self.sent);
            self.probe.behind = false;
        }
        at
    }

    /// How long the model takes for this much.
    // Inlined it takes 160 bytes more on MIPS.
    #[inline(never)]
    fn takes(&self, bytes: u32) -> Nanos {
        self.kib.get().map_or(0, |kib| (kib * Nanos::from(bytes)) >> 10)
    }

    /// A probe goes out, `behind` the packet in hand if that goes to the client.
    pub fn probe(&mut self, now: Time, behind: bool) {
        if self.is_undecided() {
            self.questions += 1;
        }
        let packet = Stretch { since: 0, before: self.sent };
        self.probe = Probe { at: now, free: self.free, sent: self.sent, behind, packet };
    }

    /// One came back after so long, so much later than the quickest of late; gives how much of that the queue
    /// explains.
    pub fn probed(&mut self, now: Time, rtt: Nanos, late: Nanos) -> Nanos {
        let probe = self.probe;
        // It leaves a little after it was asked for.
        let left = now - rtt;
        if left.since(probe.at).abs() > PROBE_ERROR {
            return 0;
        }
        // Neither is longer than a second, and 32 bits are half the code on MIPS.
        let wait = probe.free.since(left).clamp(0, LONGEST) as i32;
        let late = late.clamp(0, SEC) as i32;
        let passed = grains(left + Nanos::from(late));
        let before = self.takes(FULL_BYTES);
        let mut goes_on = false;
        if late <= LATEST {
            let stretches = self.stretches;
            stretches.iter().for_each(|stretch| _ = self.served(now, stretch, passed, LEAST_BYTES));
            // A packet that was lost or overtaken is nothing to wait for. The more probes, the less is the quickest
            // of them late.
            if before > 0 && late > before as i32 / AGREES_PART {
                let slack = LATE_GRAINS / u32::from(self.questions).max(1);
                self.served(now, probe.packet, passed.wrapping_add(slack), LEAST_PACKET);
            }
            let passed = passed.wrapping_add(LATE_GRAINS);
            goes_on = self.served(now, self.passed, passed, LEAST_BYTES);
        }
        if !goes_on {
            // It may have waited on its way back as well, and what it waits for right behind a packet the model has
            // no shorter than it is. After a long queue nothing began in time.
            let began = if before > 0 && self.was_behind() { late.min(wait) } else { late };
            let began = grains(left + Nanos::from(began));
            let since = if late <= LATEST { began } else { began.wrapping_sub(LONGEST_GRAINS) };
            self.passed = Stretch { since, before: probe.sent };
        }
        let error = late - wait;
        // A client can have it be anything, so what is made of it may wrap.
        let full = self.takes(FULL_BYTES) as i32;
        let close = full / AGREES_PART;
        let latest = full / DISAGREES_PART;
        // It would have been shorter with a higher rate that is known by now, but no shorter than that.
        let known = Nanos::from(wait) * Nanos::from(full) / before.max(1);
        let wait_by_now = known.clamp(0, Nanos::from(wait)) as i32;
        let sooner = late < wait_by_now - close - wait_by_now / SURELY_PART;
        if sooner || error > latest + LATE as i32 {
            self.agreed /= 2;
        } else if error <= latest && wait > close {
            let more = 1 + u8::from(error >= -latest && wait > close.wrapping_mul(FAR_PARTS));
            self.agreed = (self.agreed + more).min(AGREED_MOST);
        }
        if self.free > now {
            self.free = (self.free + Nanos::from(error)).clamp(now, now + LONGEST);
        }
        if self.agreed >= AGREED_MOST {
            self.questions = 0;
        } else if self.questions == 0 && wait.max(late) > close {
            self.questions = 1;
        }
        Nanos::from(wait)
    }

    /// What was sent from the beginning of a stretch until the probe had passed by then; gives whether no
    /// other took less time for as much, so that it had no pause. Fewer bytes than the `least` tell nothing.
    #[inline(never)]
    fn served(&mut self, now: Time, stretch: Stretch, passed: u32, least: u32) -> bool {
        let bytes = self.probe.sent.wrapping_sub(stretch.before);
        let took = passed.wrapping_sub(stretch.since);
        // What began after the probe seems to be long ago.
        if !(least..MOST_BYTES).contains(&bytes) || took > LONGEST_GRAINS {
            return false;
        }
        let kib = ((Nanos::from(took) * GRAIN) << 10) / Nanos::from(bytes);
        let quickest = self.kib.push(now, kib);
        if quickest {
            self.told_by = bytes >> 10;
        }
        quickest
    }

    /// A probe was quicker than the quickest by this much: stretches took as much longer than was thought.
    pub fn took_longer(&mut self, now: Time, by: Nanos) {
        if let Some(kib) = self.kib.get() {
            self.kib = Least::new(now);
            _ = self.kib.push(now, kib + Nanos::from(by as u32 / self.told_by));
        }
    }

    /// Whether packets wait, and how long is not known for certain.
    pub fn is_undecided(&self) -> bool {
        (1..QUESTIONS).contains(&self.questions)
    }

    /// Whether the last probe went right behind a packet.
    pub fn was_behind(&self) -> bool {
        self.probe.packet.before != self.probe.sent
    }

    /// Whether the next probe goes right behind a packet, as every second one does while it is undecided: what comes
    /// from the client and has one sent comes when the hop mostly sends nothing.
    pub fn asks_behind(&self) -> bool {
        self.is_undecided() && !self.questions.is_multiple_of(2)
    }

    /// How long a full packet takes, if the model is right.
    pub fn full(&self) -> Option<Nanos> {
        let full = self.takes(FULL_BYTES);
        (self.agreed >= AGREED && full >= SHORTEST).then_some(full)
    }

    /// How much longer that is than what a probe takes.
    pub fn longer(&self) -> Nanos {
        self.takes(FULL_BYTES - PROBE_BYTES)
    }
}

#[cfg(test)]
mod tests;
