// SPDX-License-Identifier: GPL-2.0-or-later
//! Packets in pairs of which the second goes first, so that the client replies to each.
//!
//! A client that counts to two and fills its acknowledgements up to one size shows nothing of a loss
//! that leaves its count as it was. But each client replies at once to a packet that comes ahead of one
//! with a smaller number, and to that one when it comes (RFC 9000, section 13.2.1). So where packets
//! change places two by two each of them has a reply of its own, and the one without a reply is the
//! one that was lost. A sender takes a packet for lost when one three places later is acknowledged (RFC
//! 9002, section 6.1.1), and so nothing that comes one place later.
//!
//! Packets keep their distance: each goes when another one comes, and waits for two places at
//! most. A reply to each packet is more than the client sends otherwise, so this is for hops that lose
//! packets, and for as long as it repairs some.

use arrayvec::ArrayVec;

use crate::api::Handle;
use crate::repair::expected::Expected;
use crate::store::cache::Id;
use crate::time::{MS, Nanos, Time};

/// Copies of which the answer is awaited (chosen: twice the losses of a very lossy hop within a
/// local round trip at 20 Mbit/s).
pub(crate) const OPEN: usize = 8;
/// A packet waits for the next one no longer than so many halves of their distance (chosen: two
/// places, and a half because none is kept exactly).
const WAIT_HALVES: Nanos = 5;
/// Packets further apart than this do not follow each other (chosen: twice their distance at 5
/// Mbit/s), and their distance follows each by one part in so many.
const APART: Nanos = 5 * MS;
const PART: Nanos = 16;
/// A copy goes as soon as that is at least so many tenths of the packets' distance from when another
/// packet goes (chosen: the reply to it then comes half way between two others, give or take a fifth).
const OFF_TENTHS: Nanos = 3;
/// Packets whose replies tell whether the client plays along; so many before anything is sent again
/// (chosen: of a client that answers half of them three in four are chance in one case of
/// forty); and how many of a hundred have to be answered (chosen: of a hop that loses one in twenty
/// each way nine of ten are).
const TRIAL: u32 = 64;
const FIRST_TRIAL: u32 = 16;
/// A reply to one that went ahead is longer by this than the next one, of a client whose sizes tell (RFC
/// 9000, section 19.3.1: a gap and a range, less a byte where the first range was of 64 packets or
/// more). Of eight so many show that (chosen: half of them).
const LONGER: core::ops::RangeInclusive<i32> = 1..=4;
const SHOWING: u32 = 4;
const ANSWERED_PERCENT: u32 = 75;
/// Copies that nobody needed, less four times those that somebody did, after which replies are taken to name the
/// wrong packets (chosen: on a hop that loses as many replies as packets half of the copies are needed, and
/// a dozen in a row is chance in one case of four thousand).
const VAIN: u32 = 12;
const FIRST_VAIN: u32 = 5;
const NEEDED: u32 = 4;
/// Of so many pauses in a row the last reply before them has to be late by the packets' distance (chosen: one or two may
/// have waited for their host).
const LATE_ENDS: u8 = 3;
/// After so many packets without a repair nothing is won (chosen: as many as make a hop clean), and
/// before the first one after so many (chosen: a hop that loses one in a hundred has lost two).
const IN_VAIN: u64 = 1000;
const FIRST_IN_VAIN: u64 = 500;
/// It is tried again after so many packets, and after twice as many each time (chosen: a download of
/// 1 MB; where it is never of use one packet in a hundred changes places in the end).
const REST: u64 = 800;
const LONGEST_REST: u32 = 7;

/// A packet that waits to be overtaken, or to follow the one that has overtaken it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub handle: Handle,
    pub id: Id,
    until: Time,
    /// It waits no longer than until then, whatever comes.
    latest: Time,
    overtaken: bool,
}

impl Waiting {
    /// Whether the client is to reply to it at once.
    pub fn is_behind(&self) -> bool {
        self.overtaken
    }
}

/// A packet that was not answered, and its copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Open {
    pub id: Id,
    pub opened: Time,
    /// When its copy goes, or has gone.
    pub sent: Time,
    pub gone: bool,
    pub attempts: u8,
}

impl Open {
    pub fn new(id: Id, now: Time) -> Open {
        Open { id, opened: now, sent: now, gone: false, attempts: 0 }
    }
}

/// What is done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It waits, and who waited goes.
    Waits,
    /// It goes ahead of the one that waits.
    Ahead,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Pairs {
    on: bool,
    /// The client has answered most of the last ones, and has been asked at all.
    along: bool,
    asked: bool,
    /// It is asked whether its sizes tell; the size of the last reply to one that went ahead, and how many
    /// of these were longer than the next.
    unsized_only: bool,
    ahead: i32,
    longer: u32,
    /// They do: nothing is won here.
    needless: bool,
    /// When the last packet came, and the mean distance of those that follow each other.
    last: Option<Time>,
    spacing: Nanos,
    waiting: Option<Waiting>,
    pub open: ArrayVec<Open, OPEN>,
    pub expected: Expected,
    /// The packet that was answered last went ahead: replies show the one behind it as missing until
    /// that is answered as well.
    pub gap: bool,
    /// Packets of the trial under way, and those of them that were answered.
    tried: u32,
    answered: u32,
    /// The number of the packet at the last repair, or at the beginning.
    repaired: u64,
    /// Something was repaired since the beginning.
    of_use: bool,
    vain: u32,
    /// How often in a row the reply to the last packet before a pause was late by their distance.
    late_ends: u8,
    /// From which packet on it may be tried again, or after which time if something was repaired
    /// since; and how often it was in vain.
    rests_until: u64,
    clean_since: Option<Time>,
    failures: u32,
}

impl Pairs {
    pub fn is_on(&self) -> bool {
        self.on
    }

    /// Whether it may be tried at this packet, when the flow's last repair was at that time; where
    /// `unsized_only` not if sizes have told before.
    pub fn may_begin(&self, packet: u64, last_repair: Time, unsized_only: bool) -> bool {
        let lossy_again = self.clean_since.is_some_and(|since| last_repair > since);
        let told = self.needless && unsized_only;
        !self.on && !told && (packet >= self.rests_until || lossy_again)
    }

    /// Begins while packets are so far apart; where `unsized_only` it ends if sizes tell. Of a client that
    /// plays `along`, as another flow has shown, what is lost goes again from the first packet on.
    pub fn begin(&mut self, packet: u64, spacing: Nanos, unsized_only: bool, along: bool) {
        *self = Pairs {
            on: true,
            along,
            unsized_only,
            spacing,
            repaired: packet,
            failures: self.failures,
            needless: self.needless,
            ..Pairs::default()
        };
    }

    /// Whether it is done because all replies are of one size.
    pub fn for_alike(&self) -> bool {
        self.unsized_only
    }

    /// Ends it; what still waits has to go.
    // Inlined it takes 30 bytes more on MIPS.
    #[inline(never)]
    pub fn end(&mut self) -> Option<Waiting> {
        self.on = false;
        self.open.clear();
        self.expected.clear();
        self.waiting.take()
    }

    /// Ends it for a time, because it is of no use: the client does not play along, or (`clean`)
    /// nothing was lost, in which case a repair ends the rest.
    pub fn rest(&mut self, now: Time, packet: u64, clean: bool) -> Option<Waiting> {
        self.rests_until = packet + (REST << self.failures.min(LONGEST_REST));
        self.clean_since = clean.then_some(now);
        self.failures = self.failures.saturating_add(1);
        self.end()
    }

    /// Whether nothing was lost while they changed places the last time, and they are not to do so again
    /// before this packet.
    pub fn found_clean(&self, packet: u64) -> bool {
        !self.on && self.clean_since.is_some() && packet < self.rests_until
    }

    /// A packet came.
    pub fn came(&mut self, now: Time) {
        if let Some(pause) = self.last.replace(now).map(|last| now.since(last))
            && pause < APART
        {
            self.spacing += (pause - self.spacing) / PART;
        }
    }

    /// How far apart packets come that follow each other.
    pub fn spacing(&self) -> Nanos {
        self.spacing
    }

    /// How long a packet waits for the next one.
    // Inlined it takes 200 bytes more on MIPS.
    #[inline(never)]
    pub fn patience(&self) -> Nanos {
        self.spacing * WAIT_HALVES / 2
    }

    /// Whose turn it is.
    pub fn turn(&self) -> Turn {
        match self.waiting {
            Some(waiting) if !waiting.overtaken => Turn::Ahead,
            Some(_) | None => Turn::Waits,
        }
    }

    /// One waits from now on, for no longer than `cap`; the one that waited before goes.
    pub fn wait(&mut self, now: Time, handle: Handle, id: Id, cap: Nanos) -> Option<Waiting> {
        let latest = now + cap;
        let until = latest.min(now + self.patience());
        self.waiting.replace(Waiting { handle, id, until, latest, overtaken: false })
    }

    /// Another one has gone ahead of the one that waits.
    pub fn overtaken(&mut self, now: Time) {
        let until = now + self.patience();
        if let Some(waiting) = &mut self.waiting {
            (waiting.overtaken, waiting.until) = (true, until.min(waiting.latest));
        }
    }

    /// When something is to be done: one has waited for long enough, or a copy is due.
    pub fn deadline(&self) -> Option<Time> {
        let copies = self.open.iter().filter(|open| !open.gone).map(|open| open.sent);
        copies.chain(self.waiting.map(|waiting| waiting.until)).min()
    }

    /// The one that waits, if that has been long enough.
    pub fn overdue(&mut self, now: Time) -> Option<Waiting> {
        self.waiting.take_if(|waiting| waiting.until <= now)
    }

    /// When a copy is to go so that the reply to it comes between those to other packets, of which
    /// the last one went at `last`.
    pub fn between(&self, now: Time, last: Time) -> Time {
        let (since, spacing) = (now.since(last), self.spacing);
        let off = spacing * OFF_TENTHS / 10;
        if since < off {
            last + spacing / 2
        } else if since <= spacing - off || since > 2 * spacing {
            now
        } else {
            now.max(last + spacing * 3 / 2)
        }
    }

    /// A packet was not answered, and its copy goes then; false if there is no room.
    pub fn follow(&mut self, open: Open, at: Time) -> bool {
        self.open.try_push(Open { sent: at, gone: false, ..open }).is_ok()
    }

    /// A copy that goes now.
    pub fn due(&mut self, now: Time) -> Option<Id> {
        let open = self.open.iter_mut().find(|open| !open.gone && open.sent <= now)?;
        (open.gone, open.sent) = (true, now);
        open.attempts = open.attempts.saturating_add(1);
        Some(open.id)
    }

    /// The size of the reply to a packet that went `ahead`, or behind.
    pub fn sized(&mut self, ahead: bool, size: i32) {
        if ahead {
            self.ahead = size;
        } else if LONGER.contains(&(self.ahead - size)) {
            self.longer += 1;
        }
    }

    /// The reply to the last packet before a pause was so late. Who takes the round trip for shorter than it is by
    /// the distance of packets takes each reply for one to the next packet, and the first of each burst for lost; only
    /// behind the last one there is none. By how much it is longer, if that has shown often enough.
    pub fn ended(&mut self, off: Nanos) -> Option<Nanos> {
        let shifted = off > self.spacing / 2 && off < self.spacing * 3 / 2;
        self.late_ends = if shifted { self.late_ends + 1 } else { 0 };
        if self.late_ends < LATE_ENDS {
            return None;
        }
        self.late_ends = 0;
        self.expected.clear();
        Some(off)
    }

    /// A packet that should be answered was, or was not. Whether the client shows that it does not
    /// play along.
    pub fn tells(&mut self, answered: bool) -> bool {
        self.tried += 1;
        self.answered += u32::from(answered);
        if self.tried < if self.asked { TRIAL } else { FIRST_TRIAL } {
            return false;
        }
        let needless = self.unsized_only && !self.asked && self.longer >= SHOWING;
        self.needless |= needless;
        self.along = self.answered * 100 >= self.tried * ANSWERED_PERCENT && !needless;
        (self.asked, self.tried, self.answered) = (true, 0, 0);
        !self.along
    }

    /// Whether the client is known to play along.
    pub fn plays_along(&self) -> bool {
        self.along
    }

    /// A copy was needed.
    pub fn repaired(&mut self, packet: u64) {
        (self.repaired, self.of_use) = (packet, true);
        self.vain = self.vain.saturating_sub(NEEDED);
    }

    /// A copy was not needed. Whether too many were not.
    pub fn needless(&mut self) -> bool {
        self.vain += 1;
        self.vain >= if self.of_use { VAIN } else { FIRST_VAIN }
    }

    /// Whether replies show a gap that is to be hidden, or may do so. That of two packets that changed
    /// places is hidden, too, of a client that plays along: where packets between them were dropped before
    /// the router, the sender sees more than one place between the two.
    pub fn hides_gap(&self) -> bool {
        self.gap && self.along || self.expected.suspects()
    }

    /// Whether nothing was won for long.
    pub fn in_vain(&self, packet: u64) -> bool {
        packet > self.repaired + if self.of_use { IN_VAIN } else { FIRST_IN_VAIN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::cache::{Cache, Trail};
    use crate::time::US;

    fn at(us: Nanos) -> Time {
        Time::ZERO + MS * 1000 + us * US
    }

    fn id() -> Id {
        let mut cache = Cache::new(1 << 16);
        Trail::default().push(&mut cache, at(0), 1, &[0; 64]).expect("there is room")
    }

    fn on() -> Pairs {
        let mut pairs = Pairs::default();
        pairs.begin(100, MS, true, false);
        (0..200).for_each(|n| pairs.came(at(1200 * n)));
        pairs
    }

    #[test]
    fn each_second_packet_goes_ahead_of_one_that_waits_for_two_places_at_most() {
        let mut pairs = on();
        assert!((pairs.spacing() - 1200 * US).abs() < 20 * US, "{}", pairs.spacing());
        assert_eq!(pairs.turn(), Turn::Waits);
        assert!(pairs.wait(at(0), Handle(1), id(), 100 * MS).is_none());
        assert_eq!(pairs.turn(), Turn::Ahead);
        pairs.overtaken(at(1200));
        assert_eq!(pairs.turn(), Turn::Waits);
        let goes = pairs.wait(at(2400), Handle(3), id(), 100 * MS).expect("one has waited");
        assert_eq!((goes.handle, goes.is_behind()), (Handle(1), true));
        assert!(pairs.overdue(at(5300)).is_none());
        let alone = pairs.overdue(at(5400)).expect("nothing came");
        assert_eq!((alone.handle, alone.is_behind()), (Handle(3), false));
        assert_eq!(pairs.deadline(), None);
    }

    #[test]
    fn what_waits_goes_at_the_end() {
        let mut pairs = on();
        pairs.wait(at(0), Handle(1), id(), MS);
        assert_eq!(pairs.deadline(), Some(at(1000)), "no longer than anything is held");
        assert!(pairs.end().is_some_and(|waiting| waiting.handle == Handle(1)));
        assert!(!pairs.is_on() && pairs.end().is_none());
    }

    #[test]
    fn a_round_trip_that_is_too_short_shows_where_bursts_end() {
        let mut pairs = on();
        let distance = pairs.spacing();
        for off in [distance, distance, 0, distance, distance, 2 * distance, distance, distance] {
            assert_eq!(pairs.ended(off), None, "now and then a reply is late");
        }
        assert_eq!(pairs.ended(distance), Some(distance));
        assert_eq!(pairs.ended(distance), None, "it is longer by now");
    }

    #[test]
    fn copies_go_between_packets() {
        let pairs = on();
        let us = |since| pairs.between(at(since), at(0)).since(at(0)) / US;
        assert!((590..610).contains(&us(100)), "{}", us(100));
        assert_eq!(us(600), 600);
        assert!((1780..1820).contains(&us(1000)), "{}", us(1000));
        assert_eq!(us(5000), 5000, "no other packet is near");
    }

    #[test]
    fn a_copy_goes_once_and_there_is_an_end_of_room() {
        let mut pairs = on();
        let open = Open::new(id(), at(0));
        assert!(pairs.follow(open, at(600)));
        assert_eq!((pairs.deadline(), pairs.due(at(599))), (Some(at(600)), None));
        assert!(pairs.due(at(600)).is_some() && pairs.due(at(601)).is_none());
        assert_eq!(pairs.deadline(), None);
        assert!((1..OPEN).all(|_| pairs.follow(open, at(600))) && !pairs.follow(open, at(600)));
    }

    #[test]
    fn a_client_that_does_not_play_along_is_asked_less_and_less_often() {
        let mut pairs = on();
        assert!((0..15).all(|n| !pairs.tells(n % 2 == 0)) && pairs.tells(false));
        pairs.rest(at(0), 200, false);
        assert!(!pairs.may_begin(999, at(1), true) && pairs.may_begin(1000, at(1), true));
        pairs.begin(1000, MS, true, false);
        pairs.rest(at(0), 1100, false);
        assert!(!pairs.may_begin(2699, at(1), true) && pairs.may_begin(2700, at(1), true));
        pairs.begin(2700, MS, true, false);
        assert!((0..16).all(|_| !pairs.tells(true)) && pairs.plays_along());
        assert!((0..63).all(|n| !pairs.tells(n % 10 > 0)), "one in ten may be lost");
        assert!(!pairs.tells(true));
    }

    #[test]
    fn a_client_whose_sizes_tell_is_left_to_them() {
        let answers = |sizes: [i32; 2], unsized_only| {
            let mut pairs = Pairs::default();
            pairs.begin(0, MS, unsized_only, false);
            let ended = (0..16).any(|n| {
                pairs.sized(n % 2 == 0, sizes[n % 2]);
                pairs.tells(true)
            });
            pairs.rest(at(0), 100, false);
            (ended, pairs.may_begin(u64::MAX, at(1), true))
        };
        assert_eq!(answers([38, 36], true), (true, false));
        assert_eq!(answers([36, 36], true), (false, true), "all of one size");
        assert_eq!(answers([44, 36], true), (false, true), "something else");
        assert_eq!(answers([38, 36], false), (false, true), "they vary anyway");
    }

    #[test]
    fn a_client_that_is_known_is_asked_nothing_but_what_its_sizes_are() {
        let known = || {
            let mut pairs = Pairs::default();
            pairs.begin(0, MS, true, true);
            assert!(pairs.plays_along(), "from the first packet on");
            pairs
        };
        let mut pairs = known();
        assert!((0..79).all(|n| !pairs.tells(n % 10 > 0)));
        let mut another = known();
        let ended = (0..16).any(|n| {
            another.sized(n % 2 == 0, [38, 36][n % 2]);
            another.tells(true)
        });
        assert!(ended, "it is another one with the same count");
    }

    #[test]
    fn without_repairs_it_ends_until_there_is_one() {
        let mut pairs = on();
        pairs.repaired(600);
        assert!(!pairs.in_vain(1600) && pairs.in_vain(1601));
        assert!(!pairs.found_clean(1601));
        pairs.rest(at(10), 1601, true);
        assert!(pairs.found_clean(2400) && !pairs.found_clean(2401));
        assert!(!pairs.may_begin(1700, at(9), true) && pairs.may_begin(1700, at(11), true));
    }
}
