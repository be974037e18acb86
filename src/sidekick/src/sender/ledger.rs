// SPDX-License-Identifier: GPL-2.0-or-later
//! The log of what was sent, the sums over it, and what a quACK says about them.

use std::boxed::Box;
use std::collections::VecDeque;
use std::time::Duration;
use std::vec::Vec;

use pemi_quack::{AnyQuack, Identifier, Missing, Quack, Width};

use super::Options;

/// A missing packet stays in the sums for so many times the tolerance: if it arrives
/// after all, they are still right.
const HOLD: u32 = 8;

/// And if no other quACK comes, it is lost after so many times and the quACKs' interval:
/// it may come that much later, then a quACK must be due, and that one may be late as well.
const WAIT: u32 = 3;

/// A [`Ledger`] whatever its width.
pub(super) trait Books {
    /// False if the packet is too short to be counted.
    fn on_sent(&mut self, now: Duration, tag: u64, payload: &[u8]) -> bool;
    /// The router counts from nothing.
    fn begin(&mut self);
    /// The next quACK can be expected by `next`.
    fn on_quack(&mut self, next: Duration, age: Duration, quack: &AnyQuack) -> Outcome;
    fn next_lost(&mut self, now: Duration) -> Option<u64>;
    /// When a packet that is missing will have been so for long enough.
    fn due(&self) -> Option<Duration>;
    /// Packets reported, and those of them that were there after all.
    fn counts(&self) -> (u64, u64);
}

/// What became of a quACK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Outcome {
    /// It tells of the packets until its last one.
    Decoded,
    /// It does not; the sums were set to the router's.
    Undecodable,
    /// Its last packet is not in the log, or sums have to be taken over and two packets
    /// of the log have that one's identifier.
    Unknown,
}

/// For the width that the options have.
pub(super) fn books(options: &Options) -> Box<dyn Books + Send> {
    match options.width {
        Width::Bits16 => Box::new(Ledger::<u16>::new(options)),
        Width::Bits32 => Box::new(Ledger::<u32>::new(options)),
        Width::Bits64 => Box::new(Ledger::<u64>::new(options)),
    }
}

/// An identifier of one of the three widths.
trait Wide: Identifier {
    fn read(bytes: &[u8]) -> Option<Self>;
    fn of(quack: &AnyQuack) -> Option<&Quack<Self>>;
}

macro_rules! wide {
    ($type:ty, $variant:ident) => {
        impl Wide for $type {
            fn read(bytes: &[u8]) -> Option<$type> {
                bytes.first_chunk().map(|bytes| <$type>::from_be_bytes(*bytes))
            }

            fn of(quack: &AnyQuack) -> Option<&Quack<$type>> {
                match quack {
                    AnyQuack::$variant(quack) => Some(quack),
                    _ => None,
                }
            }
        }
    };
}

wide!(u16, Bits16);
wide!(u32, Bits32);
wide!(u64, Bits64);

/// What is known of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// Nothing.
    Open,
    /// The router got a later one but not this; lost if it stays so until then.
    Suspect(Duration),
    /// Reported lost.
    Lost,
    /// Sent close to the packet where counting began, so it may have been counted
    /// already: nothing will be said about it.
    Unsure,
    /// The router has it.
    Arrived,
}

#[derive(Clone, Copy, Debug)]
struct Packet {
    tag: u64,
    sent_at: Duration,
    fate: Fate,
    /// A quACK has shown that it had not come when later ones had.
    missing: bool,
}

struct Ledger<I> {
    offset: usize,
    limit: usize,
    tolerance: Duration,
    /// Over all that is in the log and what the router had before.
    sent: Quack<I>,
    /// Whether `sent` can be compared with the router's.
    in_step: bool,
    /// Identifiers of the log, oldest first: apart from the rest, as decoding wants them.
    ids: VecDeque<I>,
    /// The rest, one for each.
    packets: VecDeque<Packet>,
    /// Of the suspects, the earliest.
    due: Option<Duration>,
    /// To be reported.
    lost: VecDeque<u64>,
    losses: u64,
    spurious: u64,
}

impl<I: Wide> Ledger<I> {
    fn new(options: &Options) -> Ledger<I> {
        Ledger {
            offset: options.offset.into(),
            limit: options.log_limit.max(1),
            tolerance: options.tolerance,
            sent: Quack::new(options.threshold),
            in_step: false,
            ids: VecDeque::new(),
            packets: VecDeque::new(),
            due: None,
            lost: VecDeque::new(),
            losses: 0,
            spurious: 0,
        }
    }

    /// Takes the router's sums; the log begins with the packet that it got last. Where
    /// two may be that one, a wrong choice would make all between them missing: then the
    /// next quACK, which hardly has the same last packet, is waited for. False if so.
    fn resync(&mut self, received: &Quack<I>, position: usize) -> bool {
        let (last, later) = (self.ids.get(position), self.ids.iter().skip(position + 1));
        self.in_step = !later.copied().any(|id| Some(&id) == last);
        if !self.in_step {
            return false;
        }
        self.ids.drain(..position);
        self.packets.drain(..position);
        let (_, in_flight) = self.ids.make_contiguous().split_at(1);
        self.sent.resync(received, in_flight);
        let last = self.packets.front().map_or(Duration::ZERO, |packet| packet.sent_at);
        let unsure = last.saturating_add(self.tolerance);
        for (index, packet) in self.packets.iter_mut().enumerate() {
            packet.missing = false;
            if index == 0 {
                packet.fate = Fate::Arrived;
            } else if packet.sent_at <= unsure && packet.fate != Fate::Lost {
                packet.fate = Fate::Unsure;
            }
        }
        true
    }

    /// Takes what is missing out of the sums, but not yet what may still come, and
    /// what is settled out of the log, but not the packet that the router got last:
    /// the next quACK may name the same. `seen` is by when a packet had to be sent, so
    /// that the router would have it.
    fn settle(&mut self, next: Duration, seen: Duration, position: usize, missing: &Missing<I>) {
        missing.identifiers.iter().for_each(|id| self.sent.remove(*id));
        let hold = self.tolerance.saturating_mul(HOLD);
        // Half of the threshold is left for what comes.
        let room = self.sent.threshold() / 2;
        let mut crowd = missing.lost.len().saturating_sub(room);
        let mut keep = Vec::new();
        let mut lost = missing.lost.iter().peekable();
        let settled = missing.settled.min(self.ids.len());
        for index in 0..settled {
            let (id, mut packet) = (self.ids[index], self.packets[index]);
            if lost.next_if_eq(&&index).is_some() {
                packet.missing = true;
                let leaves = crowd > 0 || packet.sent_at.saturating_add(hold) <= seen;
                crowd = crowd.saturating_sub(1);
                self.judge(next, seen, leaves, &mut packet);
                if !leaves {
                    self.sent.insert(id);
                    keep.push((id, packet));
                }
            } else {
                if packet.fate == Fate::Lost && missing.indeterminate.binary_search(&index).is_err()
                {
                    self.spurious += 1;
                }
                if index == position {
                    packet.fate = Fate::Arrived;
                    keep.push((id, packet));
                }
            }
        }
        self.ids.drain(..settled);
        self.packets.drain(..settled);
        for (id, packet) in keep.into_iter().rev() {
            self.ids.push_front(id);
            self.packets.push_front(packet);
        }
    }

    /// A packet is missing. `certain`: there will be no better time to say so.
    fn judge(&mut self, next: Duration, seen: Duration, certain: bool, packet: &mut Packet) {
        let open = matches!(packet.fate, Fate::Open | Fate::Suspect(_));
        if open && (certain || packet.sent_at.saturating_add(self.tolerance) <= seen) {
            packet.fate = Fate::Lost;
            self.report(packet.tag);
        } else if packet.fate == Fate::Open {
            packet.fate = Fate::Suspect(next.saturating_add(self.tolerance.saturating_mul(WAIT)));
        }
    }

    fn report(&mut self, tag: u64) {
        self.losses += 1;
        // A caller that does not ask must not fill the memory.
        if self.lost.len() >= self.limit {
            self.lost.pop_front();
        }
        self.lost.push_back(tag);
    }

    /// What was sent after the router's last packet and would have reached it before
    /// the quACK left. It stays in the sums until later quACKs say the same.
    fn judge_in_flight(&mut self, seen: Duration, position: usize) {
        for index in position..self.packets.len() {
            let packet = &mut self.packets[index];
            if packet.sent_at.saturating_add(self.tolerance) >= seen {
                break;
            }
            if packet.fate == Fate::Open {
                packet.fate = Fate::Lost;
                let tag = packet.tag;
                self.report(tag);
            }
        }
    }

    fn find_due(&mut self) {
        let due = |packet: &Packet| match packet.fate {
            Fate::Suspect(due) => Some(due),
            _ => None,
        };
        self.due = self.packets.iter().filter_map(due).min();
    }

    /// More are missing than the sums can name. When a link was gone for a while, they
    /// follow each other: looks for so many in a row that the sums fit.
    fn burst(&self, received: &Quack<I>, position: usize) -> Option<Missing<I>> {
        // With fewer bits, a wrong place would fit too often.
        if received.sums().len() * I::SIZE < 8 {
            return None;
        }
        let mut guess = received.clone();
        let mut missing = Missing { settled: position + 1, ..Missing::default() };
        let mut open = Vec::new();
        for (index, (&id, packet)) in self.ids.iter().zip(&self.packets).enumerate() {
            if index > position {
                guess.insert(id);
            } else if packet.missing {
                guess.insert(id);
                missing.lost.push(index);
            } else if index < position && packet.fate != Fate::Arrived {
                open.push(index);
            }
        }
        let length = usize::from(self.sent.count().wrapping_sub(guess.count()));
        let first = open.get(..length).filter(|first| !first.is_empty())?;
        first.iter().for_each(|&index| guess.insert(self.ids[index]));
        let fits =
            |guess: &Quack<I>| self.sent.sums().iter().zip(guess.sums()).all(|(a, b)| a == b);
        let mut windows = open.windows(length);
        let mut window = windows.next()?;
        while !fits(&guess) {
            guess.remove(self.ids[*window.first()?]);
            window = windows.next()?;
            guess.insert(self.ids[*window.last()?]);
        }
        missing.lost.extend(window);
        missing.lost.sort_unstable();
        missing.identifiers = missing.lost.iter().map(|&index| self.ids[index]).collect();
        Some(missing)
    }
}

impl<I: Wide> Books for Ledger<I> {
    fn on_sent(&mut self, now: Duration, tag: u64, payload: &[u8]) -> bool {
        let Some(id) = payload.get(self.offset..).and_then(I::read) else { return false };
        if self.ids.len() >= self.limit {
            // If it was lost, the sums will not fit any more and be set anew.
            self.ids.pop_front();
            self.packets.pop_front();
        }
        if self.in_step {
            self.sent.insert(id);
        }
        self.ids.push_back(id);
        self.packets.push_back(Packet { tag, sent_at: now, fate: Fate::Open, missing: false });
        true
    }

    fn begin(&mut self) {
        self.in_step = false;
    }

    fn on_quack(&mut self, next: Duration, age: Duration, quack: &AnyQuack) -> Outcome {
        let Some(received) = I::of(quack) else { return Outcome::Unknown };
        let Some(last) = received.last() else {
            // Of no packets: whatever was counted before is forgotten.
            self.in_step = false;
            return Outcome::Decoded;
        };
        let log: &[I] = self.ids.make_contiguous();
        let Some(position) = log.iter().position(|id| *id == last) else { return Outcome::Unknown };
        let Some(seen) =
            self.packets.get(position).map(|packet| packet.sent_at.saturating_add(age))
        else {
            return Outcome::Unknown;
        };
        let mut outcome = Outcome::Decoded;
        let mut missing = None;
        if self.in_step {
            missing = self.sent.decode(log, received).ok();
            missing = missing.or_else(|| self.burst(received, position));
            if missing.is_none() {
                outcome = Outcome::Undecodable;
            }
        }
        match missing {
            Some(missing) => self.settle(next, seen, position, &missing),
            None if self.resync(received, position) => {}
            None if outcome == Outcome::Undecodable => return outcome,
            None => return Outcome::Unknown,
        }
        let later = self.ids.iter().position(|id| *id == last).map_or(0, |index| index + 1);
        self.judge_in_flight(seen, later);
        self.find_due();
        outcome
    }

    fn next_lost(&mut self, now: Duration) -> Option<u64> {
        if self.due.is_some_and(|due| due <= now) {
            for index in 0..self.packets.len() {
                let packet = &mut self.packets[index];
                if matches!(packet.fate, Fate::Suspect(due) if due <= now) {
                    packet.fate = Fate::Lost;
                    let tag = packet.tag;
                    self.report(tag);
                }
            }
            self.find_due();
        }
        self.lost.pop_front()
    }

    fn due(&self) -> Option<Duration> {
        if self.lost.is_empty() { self.due } else { Some(Duration::ZERO) }
    }

    fn counts(&self) -> (u64, u64) {
        (self.losses, self.spurious)
    }
}
