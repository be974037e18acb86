// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether anybody reports what became of the packets to a client, and how many reports may be
//! awaited.
//!
//! What a driver answers nobody knows before it was asked: a client may be behind a cable or
//! another access point, or its driver may have forgotten how. So the first packets to a client
//! are a trial. It is passed as soon as a few reports have come, and failed when none comes; after
//! a while it is made again, since people carry their devices about.

use crate::time::{MS, Nanos, SEC, Time};

/// Reports awaited at a time, of one client. mt76 can follow 125 frames of a station and calls
/// those beyond them lost, although they may have arrived (`MT_PACKET_ID_MASK`).
const AWAITED: u32 = 100;
/// Reports by which a trial is passed, and missing ones by which it is failed (chosen: a
/// handshake has as many packets).
const TRIAL: u32 = 8;
/// Reports, with those missing, after which older ones count half (chosen: some tens of
/// milliseconds of a download).
const MEMORY: u32 = 64;
/// Until a client that nobody reports of is tried again (chosen: as long as somebody stays in one
/// room at least).
const AGAIN: Nanos = 60 * SEC;
/// Not counted as missing for so long after a report: the client sleeps, and its packets wait at
/// the access point (a beacon interval of 102.4 ms, and what is sent after it).
const ASLEEP: Nanos = 150 * MS;
/// A report counts for so much of what is known of their delay: one in so many, as TCP weighs its
/// samples of the round trip (RFC 6298).
const LAG_SHARE: Nanos = 8;

/// What is known of the reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// None has come yet.
    Trial,
    /// They come.
    Come,
    /// They do not come. Since when?
    Missing(Time),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Reports {
    state: State,
    awaited: u32,
    came: u32,
    missing: u32,
    last: Option<Time>,
    /// When anything came from the client.
    heard: Option<Time>,
    /// How long after its packet a report comes.
    lag: Nanos,
}

impl Reports {
    pub fn new() -> Reports {
        Reports {
            state: State::Trial,
            awaited: 0,
            came: 0,
            missing: 0,
            last: None,
            heard: None,
            lag: 0,
        }
    }

    /// Whether reports come, or may yet come, so that nothing need be guessed.
    pub fn expected(&self) -> bool {
        !matches!(self.state, State::Missing(_))
    }

    /// Whether the trial is over, and how it went.
    pub fn proven(&self) -> Option<bool> {
        match self.state {
            State::Trial => None,
            State::Come => Some(true),
            State::Missing(_) => Some(false),
        }
    }

    /// Whether packets are worth being sent in the way that is reported of.
    pub fn worth_asking(&mut self, now: Time) -> bool {
        if let State::Missing(since) = self.state
            && now.since(since) >= AGAIN
        {
            self.try_again();
        }
        self.expected()
    }

    /// A trial that was failed is made again: the client is with another access point, or with this
    /// one anew, and that none came while it was with none says nothing of what will.
    pub fn try_again(&mut self) {
        if !self.expected() {
            *self = Reports { awaited: self.awaited, heard: self.heard, ..Reports::new() };
        }
    }

    /// Something has come from the client.
    pub fn heard(&mut self, now: Time) {
        self.heard = Some(now);
    }

    /// Whether one more may be awaited.
    pub fn has_room(&self) -> bool {
        self.awaited < AWAITED
    }

    /// One more is awaited.
    pub fn asked(&mut self) {
        self.awaited += 1;
    }

    /// What was to be reported of was not sent.
    pub fn withdrawn(&mut self) {
        self.awaited = self.awaited.saturating_sub(1);
    }

    /// How long after its packet a report comes of late; 0 if none has come.
    pub fn lag(&self) -> Nanos {
        self.lag
    }

    /// A report has come of a packet that was sent at `sent`, perhaps too late to be of use.
    pub fn came(&mut self, now: Time, sent: Time, in_time: bool) {
        let lag = now.since(sent);
        self.lag = match self.last.replace(now) {
            Some(_) => self.lag + (lag - self.lag) / LAG_SHARE,
            None => lag,
        };
        if !in_time {
            // It was counted as missing.
            self.missing = self.missing.saturating_sub(1);
            return;
        }
        self.awaited = self.awaited.saturating_sub(1);
        self.came += 1;
        if self.state == State::Trial && self.came >= TRIAL {
            self.state = State::Come;
        }
        self.fade();
    }

    /// One has not come in time, of a packet that was sent at `sent`. Of a client that was not
    /// heard since then this says nothing: it is away, or nobody knows yet where it is, and what
    /// is sent to it waits for an answer to ARP.
    pub fn missed(&mut self, now: Time, sent: Time) {
        self.awaited = self.awaited.saturating_sub(1);
        let asleep = self.last.is_some_and(|last| now.since(last) < ASLEEP);
        if asleep || self.heard.is_none_or(|heard| heard < sent) {
            return;
        }
        self.missing += 1;
        if self.missing >= TRIAL && self.missing > self.came {
            self.state = State::Missing(now);
        }
        self.fade();
    }

    fn fade(&mut self) {
        if self.came + self.missing >= MEMORY {
            self.came /= 2;
            self.missing /= 2;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: i64) -> Time {
        Time::ZERO + ms * MS
    }

    #[test]
    fn a_trial_is_passed_by_reports_and_failed_without() {
        let mut reports = Reports::new();
        for n in 1..=i64::from(TRIAL) {
            assert!(reports.state == State::Trial && reports.worth_asking(at(n)));
            reports.asked();
            reports.came(at(n), at(n), true);
        }
        assert_eq!(reports.state, State::Come);
        let mut silent = Reports::new();
        silent.heard(at(50));
        (0..TRIAL).for_each(|_| silent.missed(at(100), at(50)));
        assert!(!silent.expected() && !silent.worth_asking(at(101)));
        assert!(silent.worth_asking(at(100) + AGAIN) && silent.state == State::Trial);
    }

    #[test]
    fn elsewhere_they_are_tried_anew() {
        let mut reports = Reports::new();
        (0..=TRIAL).for_each(|_| reports.asked());
        reports.heard(at(60));
        (0..TRIAL).for_each(|_| reports.missed(at(100), at(50)));
        assert!(!reports.worth_asking(at(500)));
        reports.try_again();
        assert!(reports.worth_asking(at(501)) && reports.proven().is_none());
        assert_eq!(reports.awaited, 1, "that one may still come");
        (0..TRIAL).for_each(|n| reports.came(at(600), at(600 - i64::from(n)), true));
        reports.try_again();
        assert_eq!(reports.proven(), Some(true));
    }

    #[test]
    fn reports_that_cease_are_noticed_and_sleep_is_not_mistaken_for_it() {
        let mut reports = Reports::new();
        (0..1000).for_each(|n| reports.came(at(n), at(n), true));
        reports.heard(at(2000));
        (0..100).for_each(|_| reports.missed(at(1050), at(1000)));
        assert!(reports.expected(), "the client may sleep");
        let mut missed = 0;
        while reports.worth_asking(at(2000)) {
            reports.missed(at(2000), at(1950));
            missed += 1;
        }
        assert!((TRIAL..=MEMORY).contains(&missed), "{missed}");
    }

    #[test]
    fn of_a_client_that_is_away_nothing_is_learned() {
        let mut reports = Reports::new();
        reports.heard(at(99));
        (0..1000).for_each(|n| reports.missed(at(150 + n), at(100 + n)));
        assert!(reports.proven().is_none(), "it may be looked for");
        reports.heard(at(1200));
        (0..TRIAL).for_each(|_| reports.missed(at(1210), at(1160)));
        assert_eq!(reports.proven(), Some(false));
    }

    #[test]
    fn their_delay_is_that_of_late() {
        let mut reports = Reports::new();
        assert_eq!(reports.lag(), 0);
        reports.came(at(2), at(0), true);
        assert_eq!(reports.lag(), 2 * MS);
        reports.came(at(130), at(0), false);
        assert_eq!(reports.lag(), 18 * MS, "one does not tell of the next");
        (200..300).for_each(|n| reports.came(at(n), at(n - 130), false));
        assert!((129 * MS..=130 * MS).contains(&reports.lag()));
    }

    #[test]
    fn so_many_are_awaited_at_a_time() {
        let mut reports = Reports::new();
        while reports.has_room() {
            reports.asked();
        }
        assert_eq!(reports.awaited, AWAITED);
        reports.came(at(1), at(0), true);
        reports.withdrawn();
        reports.missed(at(1), at(0));
        assert_eq!(reports.awaited, AWAITED - 3);
        reports.came(at(2), at(0), false);
        assert_eq!(reports.awaited, AWAITED - 3, "it was not awaited any more");
    }
}
