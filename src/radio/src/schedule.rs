// SPDX-License-Identifier: GPL-2.0-or-later
//! When to ask the kernel for what. A question holds a lock of the radio's, may cost a
//! command to its firmware, and with ath10k's peer statistics up to a second.

use std::time::Duration;

use crate::mac::Mac;

/// Of a whole interface, always: flows may be offloaded, and nobody sees them.
const IDLE: Duration = Duration::from_secs(1);
/// Of a station whose flows are being helped.
const HELPING: Duration = Duration::from_millis(100);
/// It is no longer helped when nobody has said so for this long.
const HELPED: Duration = Duration::from_secs(2);
/// All questions together may take one part of so many of the time.
const SHARE: u32 = 100;
/// Between two questions for one station because somebody has to know at once.
const AT_ONCE: Duration = Duration::from_millis(5);

/// What to ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ask {
    /// All stations of this interface.
    Interface(u32),
    /// One station.
    Station(u32, Mac),
}

/// One question that is asked again and again.
#[derive(Clone, Copy, Debug)]
struct Poll {
    ask: Ask,
    asked: Option<Duration>,
    /// Not to wait for as long as usual.
    hurried: bool,
    /// How long the last answer took.
    took: Duration,
    /// When somebody last said that it is needed.
    needed: Duration,
}

impl Poll {
    fn period(&self, all: Duration) -> Duration {
        let wanted = match self.ask {
            Ask::Interface(_) if !self.hurried => IDLE,
            _ => HELPING,
        };
        wanted.max(all.saturating_mul(SHARE))
    }

    fn due(&self, all: Duration) -> Duration {
        self.asked.map_or(Duration::ZERO, |asked| asked.saturating_add(self.period(all)))
    }
}

/// All questions.
#[derive(Clone, Debug, Default)]
pub struct Schedule {
    polls: Vec<Poll>,
}

impl Schedule {
    /// Says which interfaces are to be asked; those that were not before, at once.
    pub fn interfaces(&mut self, interfaces: &[u32]) {
        self.polls.retain(|poll| match poll.ask {
            Ask::Interface(index) | Ask::Station(index, _) => interfaces.contains(&index),
        });
        for index in interfaces {
            self.need(Duration::ZERO, Ask::Interface(*index));
        }
    }

    /// Says that a packet for this station, which is being helped, was seen now.
    pub fn helping(&mut self, now: Duration, interface: u32, mac: Mac) {
        let elsewhere = |poll: &Poll| matches!(poll.ask, Ask::Station(index, who) if who == mac && index != interface);
        self.polls.retain(|poll| !elsewhere(poll));
        self.need(now, Ask::Station(interface, mac));
    }

    /// Says that an interface has to be asked again soon, for instance after an event; not at
    /// once, because stations decide how many events there are.
    pub fn hurry(&mut self, interface: u32) {
        for poll in self.polls.iter_mut().filter(|poll| poll.ask == Ask::Interface(interface)) {
            poll.hurried = true;
        }
    }

    /// What to ask now: what has been due for longest.
    pub fn next(&mut self, now: Duration) -> Option<Ask> {
        self.polls.retain(|poll| match poll.ask {
            Ask::Interface(_) => true,
            Ask::Station(..) => now.saturating_sub(poll.needed) < HELPED,
        });
        let all = self.all();
        let first = self.polls.iter().min_by_key(|poll| poll.due(all))?;
        (first.due(all) <= now).then_some(first.ask)
    }

    /// When there is something to ask. Nothing if there is nobody to be asked about.
    pub fn deadline(&self) -> Option<Duration> {
        let all = self.all();
        self.polls.iter().map(|poll| poll.due(all)).min()
    }

    /// Says that it was asked, from when to when.
    pub fn asked(&mut self, ask: Ask, from: Duration, to: Duration) {
        for poll in self.polls.iter_mut().filter(|poll| poll.ask == ask) {
            poll.asked = Some(from);
            poll.hurried = false;
            poll.took = to.saturating_sub(from);
        }
    }

    /// Says that the driver does not answer this question at all; it is not asked again before the
    /// next list of interfaces.
    pub fn refused(&mut self, ask: Ask) {
        self.polls.retain(|poll| poll.ask != ask);
    }

    /// Whether this station may be asked about out of turn, because something is to be decided
    /// now: seldom enough, and only where an answer comes quickly.
    pub fn may_ask_at_once(&self, now: Duration, interface: u32, mac: Mac) -> bool {
        let ask = Ask::Station(interface, mac);
        let Some(poll) = self.polls.iter().find(|poll| poll.ask == ask) else { return false };
        let Some(asked) = poll.asked else { return true };
        let least = AT_ONCE.max(poll.took.saturating_mul(SHARE));
        poll.took.saturating_mul(SHARE) <= HELPING && now.saturating_sub(asked) >= least
    }

    /// What one round of all questions takes.
    fn all(&self) -> Duration {
        self.polls.iter().fold(Duration::ZERO, |sum, poll| sum.saturating_add(poll.took))
    }

    fn need(&mut self, now: Duration, ask: Ask) {
        match self.polls.iter_mut().find(|poll| poll.ask == ask) {
            Some(poll) => poll.needed = now,
            None => self.polls.push(Poll {
                ask,
                asked: None,
                hurried: false,
                took: Duration::ZERO,
                needed: now,
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAC: Mac = Mac([2, 0, 0, 0, 2, 0]);

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    /// Asks whatever is due until `end`, each question taking `took`; gives when what was asked.
    fn run(
        schedule: &mut Schedule,
        from: Duration,
        end: Duration,
        took: Duration,
    ) -> Vec<(Duration, Ask)> {
        let (mut now, mut asked) = (from, Vec::new());
        while let Some(due) = schedule.deadline() {
            now = now.max(due);
            if now >= end {
                break;
            }
            if let Some(ask) = schedule.next(now) {
                asked.push((now, ask));
                schedule.asked(ask, now, now + took);
                now += took;
            }
        }
        asked
    }

    #[test]
    fn once_a_second_when_nothing_flows() {
        let mut schedule = Schedule::default();
        assert_eq!((schedule.next(ms(0)), schedule.deadline()), (None, None));
        schedule.interfaces(&[3, 4]);
        let asked = run(&mut schedule, ms(50), ms(3000), Duration::ZERO);
        assert_eq!(asked.len(), 6);
        assert_eq!(asked[..2], [(ms(50), Ask::Interface(3)), (ms(50), Ask::Interface(4))]);
        assert_eq!(asked[2].0, ms(1050));
        // The last question was that of 2,050.
        schedule.hurry(4);
        assert_eq!(schedule.next(ms(2149)), None);
        assert_eq!(schedule.next(ms(2150)), Some(Ask::Interface(4)));
        schedule.interfaces(&[3]);
        assert_eq!(schedule.next(ms(2150)), None);
    }

    #[test]
    fn a_driver_that_does_not_answer_keeps_nobody_else_waiting() {
        let mut schedule = Schedule::default();
        schedule.interfaces(&[3, 4]);
        schedule.refused(Ask::Interface(3));
        let asked = run(&mut schedule, ms(0), ms(3000), Duration::ZERO);
        assert!(asked.len() == 3 && asked.iter().all(|(_, ask)| *ask == Ask::Interface(4)));
        schedule.interfaces(&[3, 4]);
        assert_eq!(schedule.next(ms(3000)), Some(Ask::Interface(3)), "with the next list");
    }

    #[test]
    fn ten_times_a_second_while_helping_and_two_seconds_longer() {
        let mut schedule = Schedule::default();
        schedule.interfaces(&[3]);
        schedule.helping(ms(0), 3, MAC);
        schedule.helping(ms(500), 3, MAC);
        let asked = run(&mut schedule, ms(0), ms(10_000), ms(0));
        let of_it: Vec<_> = asked.iter().filter(|(_, ask)| *ask == Ask::Station(3, MAC)).collect();
        assert_eq!((of_it.len(), of_it[24].0), (25, ms(2400)));
        // It roams: nobody asks the interface that it has left.
        schedule.helping(ms(10_000), 3, MAC);
        schedule.interfaces(&[3, 4]);
        schedule.helping(ms(10_001), 4, MAC);
        let asked = run(&mut schedule, ms(10_001), ms(10_100), ms(0));
        assert!(asked.contains(&(ms(10_001), Ask::Station(4, MAC))));
        assert!(!asked.iter().any(|(_, ask)| *ask == Ask::Station(3, MAC)));
    }

    #[test]
    fn all_questions_together_take_a_hundredth_of_the_time() {
        for stations in [1, 3, 20] {
            let mut schedule = Schedule::default();
            schedule.interfaces(&[3]);
            let end = ms(60_000);
            for number in 0..stations {
                // A moment in the future: it is helped until the end.
                schedule.helping(end, 3, Mac([2, 0, 0, 0, 0, number]));
            }
            // What firmware takes for an answer.
            let took = ms(4);
            let asked = run(&mut schedule, ms(0), end, took);
            let first_round = usize::from(stations) + 1;
            let busy = took * (asked.len() - first_round) as u32;
            assert!(busy <= end / SHARE, "{stations}: {busy:?}");
            assert!(busy >= end / SHARE * 8 / 10, "{stations}: {busy:?}");
        }
    }

    #[test]
    fn out_of_turn_only_where_it_is_cheap() {
        let mut schedule = Schedule::default();
        schedule.interfaces(&[3]);
        assert!(!schedule.may_ask_at_once(ms(0), 3, MAC), "nobody helps it");
        schedule.helping(ms(0), 3, MAC);
        assert!(schedule.may_ask_at_once(ms(0), 3, MAC));
        let ask = Ask::Station(3, MAC);
        schedule.asked(ask, ms(0), Duration::from_micros(74));
        assert!(!schedule.may_ask_at_once(ms(7), 3, MAC), "100 times 74 us");
        assert!(schedule.may_ask_at_once(ms(8), 3, MAC));
        schedule.asked(ask, ms(8), ms(8));
        assert!(!schedule.may_ask_at_once(ms(12), 3, MAC));
        schedule.asked(ask, ms(20), ms(22));
        assert!(!schedule.may_ask_at_once(ms(10_000), 3, MAC), "2 ms are too long");
    }
}
