// SPDX-License-Identifier: GPL-2.0-or-later
//! When packets come densely they gather for a moment before they are read. Each wake-up costs
//! a small router as much as forwarding a packet does, and a thread of real-time priority is
//! woken by every single one. With reports there are two for each packet; they gather as well.

use pemi_engine::{MS, Nanos, Time};

use super::spare::Spare;

/// What a packet waits at most where the processor has time: little beside a hop's round trip.
const SHORTEST: Nanos = MS / 5;
/// How often in a row the next packet has to come at once: a few packets together, as an
/// application sends them, are over before anything could gather.
const DENSE: u32 = 4;
/// Packets in a pause for which it was worth it.
const WORTH: u32 = 2;

/// How long packets gather.
#[derive(Clone, Copy, Debug)]
pub(super) struct Manner {
    /// A pause lasts as long as that many turns like the last one. Forwarding takes longer than the
    /// queue's thread does; with fewer turns, others could hand over no more packets in a pause
    /// than the turn took in, so batches would not grow.
    turns: Nanos,
    /// What a packet waits at most where a batch takes as long as that itself.
    longest: Nanos,
    /// Also while replies are held, which may go on by what is read next: they wait as long.
    holding: bool,
}

/// Packets wait on their way to clients and back.
pub(super) const BOTH: Manner = Manner { turns: 4, longest: 8 * MS / 10, holding: true };
/// The same where a wake-up takes time from nobody: packets that leave together blur what replies tell
/// (measured in forty downloads at 50 and 100 Mbit/s: 31.4 Mbit/s in the mean, 27.8 with the former).
const SPARING: Manner = Manner { turns: 1, longest: 4 * MS / 10, holding: true };
/// Only what clients send waits: half as many packets or fewer, and as far apart as what others
/// take for two or more. One that is held would wait for longer than a hop's round trip.
pub(super) const REPLIES: Manner = Manner { turns: 16, longest: 2 * MS, holding: false };

/// Whether packets come densely, and how long to let them gather.
#[derive(Debug)]
pub(super) struct Gathering {
    manner: Manner,
    spare: Spare,
    /// How often in a row a packet came as soon as in a pause.
    soon: u32,
    /// The last wait was a pause, and nothing cut it short.
    paused: bool,
    /// When the last wait ended.
    woken: Option<Time>,
    /// The pause that would follow, or follows, the last turn, and when it begins.
    pause: Nanos,
    begin: Time,
}

impl Gathering {
    pub fn new(spare: Spare) -> Gathering {
        Gathering {
            manner: BOTH,
            spare,
            soon: 0,
            paused: false,
            woken: None,
            pause: 0,
            begin: Time::ZERO,
        }
    }

    /// From now on packets gather like this.
    pub fn gather(&mut self, manner: Manner) {
        self.manner = manner;
    }

    /// How long to pause before the next packets, if at all, when the last turn took in `taken` and
    /// replies are `held` or not.
    pub fn pause(&mut self, now: Time, taken: u32, held: bool) -> Option<Nanos> {
        if self.paused && taken < WORTH {
            self.soon = 0;
        }
        let turn = self.woken.map_or(0, |woken| now.since(woken));
        self.begin = now;
        let manner = if self.spare.look(now) { SPARING } else { self.manner };
        self.pause = (manner.turns * turn).clamp(SHORTEST, manner.longest);
        self.paused = false;
        (self.soon >= DENSE && (manner.holding || !held)).then_some(self.pause)
    }

    /// A pause has ended.
    pub fn paused(&mut self, now: Time) {
        self.paused = now.since(self.begin) >= self.pause;
        self.woken = Some(now);
    }

    /// A wait for packets has ended, with one or without: something else may have come before it.
    pub fn waited(&mut self, now: Time, came: bool) {
        let soon = now.since(self.begin) < self.pause;
        self.soon = if soon { self.soon + u32::from(came) } else { 0 };
        self.woken = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A turn that takes `turn` after each wait, and packets every `apart`.
    struct Played {
        gathering: Gathering,
        now: Time,
        taken: u32,
    }

    impl Played {
        fn new() -> Played {
            Played::with(Spare::always(false))
        }

        fn with(spare: Spare) -> Played {
            Played { gathering: Gathering::new(spare), now: Time::ZERO, taken: 0 }
        }

        /// One wait and one turn; gives how long the pause was.
        fn step(&mut self, apart: Nanos, turn: Nanos) -> Option<Nanos> {
            let pause = self.gathering.pause(self.now, self.taken, false);
            if let Some(pause) = pause {
                self.now = self.now + pause;
                self.taken = (pause / apart) as u32;
                self.gathering.paused(self.now);
            } else {
                self.now = self.now + apart;
                self.taken = 1;
                self.gathering.waited(self.now, true);
            }
            self.now = self.now + turn;
            pause
        }
    }

    #[test]
    fn dense_packets_gather_and_sparse_ones_never() {
        for (apart, dense) in [(MS / 20, true), (MS / 10, true), (MS / 4, false), (MS, false)] {
            let mut played = Played::new();
            let pauses = (0..100).filter(|_| played.step(apart, MS / 50).is_some()).count();
            assert_eq!(pauses > 90, dense, "{apart}");
            assert!(dense || pauses == 0, "{apart}");
        }
    }

    #[test]
    fn the_first_packets_of_a_burst_wait_for_nothing() {
        let mut played = Played::new();
        for _ in 0..DENSE {
            assert_eq!(played.step(MS / 20, MS / 50), None);
        }
        assert_eq!(played.step(MS / 20, MS / 50), Some(SHORTEST));
    }

    #[test]
    fn a_pause_is_bounded_and_grows_with_the_turn() {
        for (turn, pause) in [(0, SHORTEST), (MS / 8, MS / 2), (50 * MS, BOTH.longest)] {
            let mut played = Played::new();
            for _ in 0..DENSE {
                played.step(MS / 20, turn);
            }
            assert_eq!(played.step(MS / 20, turn), Some(pause), "{turn}");
        }
    }

    #[test]
    fn pauses_are_short_where_processors_have_time() {
        for (turn, pause) in
            [(MS / 8, SHORTEST), (3 * MS / 10, 3 * MS / 10), (50 * MS, SPARING.longest)]
        {
            for manner in [BOTH, REPLIES] {
                let mut played = Played::with(Spare::always(true));
                played.gathering.gather(manner);
                let pauses = (0..100).filter_map(|_| played.step(MS / 20, turn));
                assert_eq!(pauses.max(), Some(pause), "{turn}");
            }
        }
    }

    #[test]
    fn replies_alone_gather_where_others_take_long() {
        let pauses = |manner| {
            let mut played = Played::new();
            played.gathering.gather(manner);
            (0..100).filter_map(|_| played.step(7 * MS / 10, 3 * MS / 20)).max()
        };
        assert_eq!((pauses(REPLIES), pauses(BOTH)), (Some(REPLIES.longest), None));
    }

    #[test]
    fn replies_that_are_held_gather_where_a_pause_is_short() {
        for (manner, spare, gathers) in
            [(BOTH, false, true), (REPLIES, true, true), (REPLIES, false, false)]
        {
            let mut played = Played::with(Spare::always(spare));
            played.gathering.gather(manner);
            while played.step(MS / 20, 0).is_none() {}
            let pause = played.gathering.pause(played.now, WORTH, true);
            assert_eq!(pause.is_some(), gathers);
        }
    }

    #[test]
    fn reports_between_packets_do_not_keep_them_from_gathering() {
        let mut played = Played::new();
        for _ in 0..DENSE {
            assert_eq!(played.gathering.pause(played.now, 0, false), None);
            played.now = played.now + MS / 20;
            played.gathering.waited(played.now, false);
            assert_eq!(played.step(MS / 20, 0), None);
        }
        assert_eq!(played.step(MS / 20, 0), Some(SHORTEST));
    }

    #[test]
    fn a_pause_that_was_cut_short_says_nothing() {
        let mut played = Played::new();
        while played.step(MS / 20, 0).is_none() {}
        assert!(played.gathering.pause(played.now, WORTH, false).is_some());
        played.gathering.paused(played.now + SHORTEST / 10);
        assert!(played.gathering.pause(played.now, 0, false).is_some());
    }

    #[test]
    fn a_pause_in_which_hardly_anything_came_is_the_last() {
        let mut played = Played::new();
        while played.step(MS / 20, 0).is_none() {}
        played.taken = WORTH - 1;
        assert_eq!(played.step(2 * MS, 0), None);
        for _ in 0..10 {
            assert_eq!(played.step(2 * MS, 0), None);
        }
    }
}
