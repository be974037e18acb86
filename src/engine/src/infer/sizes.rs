// SPDX-License-Identifier: GPL-2.0-or-later
//! Gaps as the size of encrypted acknowledgements gives them away.
//!
//! An ACK frame with one more range is two bytes longer (RFC 9000, section
//! 19.3), and shrinks again when the gap is closed. Everything else that
//! changes the size of a reply is noise here: longer delay fields, window
//! updates in the same or in a packet of their own, ranges that cross 64,
//! acknowledged acknowledgements.

use crate::infer::floor::Floor;
use crate::infer::restless::Restless;
use crate::infer::sign::{GapSign, SignKind};
use crate::time::Time;

pub(crate) use facts::{Facts, Reading};

mod facts;

/// Bytes by which a new gap makes a reply longer: two fields of one byte (RFC 9000, section
/// 19.3.1), which take a second byte each from 64 on (section 16).
const STEP: core::ops::RangeInclusive<i32> = 2..=4;
/// Replies this much shorter than the usual one are something else, until a second one of the
/// same size confirms them (chosen: one range less is still an acknowledgement). Real clients
/// send small packets of their own beside acknowledgements.
const SHORTER: i32 = -2;
/// No repair makes a reply this much shorter, in bytes (chosen: one more than [`SHORTER`]).
const TOO_SHORT: i32 = -3;
/// Replies of an odd size in a row that show that all of them look like that now: shorter ones,
/// and longer ones (chosen: one may be a frame of the client's own, and longer ones are more
/// often).
const SHORTER_CONFIRMED: u32 = 2;
const LONGER_CONFIRMED: u32 = 3;
/// Replies one byte above the usual size in a row that show that one byte is a longer field and
/// not a gap (chosen: as [`SHORTER_CONFIRMED`]).
const ONES_SETTLE: u32 = 2;
/// Early replies of decimating clients may carry a small frame as well, of this many bytes
/// (chosen: a window update, RFC 9000, section 19.10, has up to seventeen and usually six).
const EARLY_EXTRA: i32 = 12;
/// A client replies to each of the next few packets after a gap: those replies belong to the
/// same one (chosen: as many as the packet threshold of RFC 9002, section 6.1.1).
const SAME_GAP: u64 = 3;
/// Around the 64th packet the fields of an acknowledgement take a second byte (RFC 9000, section
/// 16).
const FIELDS_GROW: core::ops::RangeInclusive<u64> = 60..=80;
/// A client whose frames for flow control wait while there is a gap sends this much less in the
/// first reply to one, in bytes (measured: msquic, 46 bytes and then mostly 35 to 37; by up to five
/// bytes shorter are the small packets of others' own).
const SHRINK: core::ops::RangeInclusive<i32> = -11..=-7;
/// Acknowledgements of one size in a row that show that their size says nothing (chosen: with one
/// of three bytes more for a gap, four in a row are of a client that fills all up to one size).
const ALIKE: u32 = 3;
/// ... and so many that it never will (chosen: of Chromium's, of which four in five are as long as
/// the one before, one in seventy has as many alike before it).
const ALWAYS_ALIKE: u32 = 20;

#[derive(Clone, Debug)]
pub(crate) struct Sizes {
    /// Size of a reply without a gap; `None` before the first.
    base: Option<i32>,
    /// Size of the last reply that was not noise.
    last: i32,
    floor: Floor,
    odd_size: i32,
    odd_run: u32,
    /// A size at which the client sends small packets of its own.
    aside: i32,
    /// The last reply, and it alone, was one range shorter than usual.
    dipped: bool,
    ones: u32,
    /// Replies since the last gap opened.
    since_gap: u32,
    /// Size of the one reply that showed a gap that was abandoned: the usual
    /// size from now on, or something else of the client's own?
    unconfirmed: Option<i32>,
    /// Trigger of the last reply that opened a gap.
    marked: u64,
    /// Acknowledgements before the last one that were as long.
    alike: u32,
    /// Another flow's were all of one size, and so are this one's so far.
    expected_alike: bool,
    /// Size before a gap made replies shorter.
    full: Option<i32>,
    /// Whether sizes vary for other reasons than gaps.
    pub restless: Restless,
    /// A reply that may show a gap, if the next one is like it.
    awaited: Option<(i32, Time)>,
}

impl Sizes {
    pub fn new() -> Sizes {
        Sizes {
            base: None,
            last: 0,
            floor: Floor::new(),
            odd_size: 0,
            odd_run: 0,
            aside: 0,
            dipped: false,
            ones: 0,
            since_gap: 0,
            unconfirmed: None,
            marked: 0,
            alike: 0,
            expected_alike: false,
            full: None,
            restless: Restless::default(),
            awaited: None,
        }
    }

    /// How much longer than usual a reply of `size` is.
    pub fn excess(&self, size: i32) -> i32 {
        self.base.map_or(0, |base| size - base)
    }

    /// Whether a reply of `size` is one of many of one size.
    pub fn constant(&self, size: i32) -> bool {
        size == self.last && self.alike >= ALIKE
    }

    /// Whether replies have been of one size for so long that this client's always are.
    pub fn always_constant(&self, size: i32) -> bool {
        size == self.last && self.all_alike()
    }

    /// Whether they were, at last.
    pub fn all_alike(&self) -> bool {
        self.alike >= if self.expected_alike { ALIKE } else { ALWAYS_ALIKE }
    }

    /// Acknowledgements of one size in a row.
    pub fn alike(&self) -> u32 {
        self.alike
    }

    /// Those of another flow of this client were all of one size, or not; the first one here that is
    /// of another size shows that this flow's are not.
    pub fn expect_alike(&mut self, alike: bool) {
        self.expected_alike = alike;
    }

    /// Judges a reply.
    pub fn read(&mut self, facts: &Facts) -> Reading {
        self.floor.replied();
        if facts.open == 0
            && let Some(level) = self.unconfirmed.take()
            && facts.size >= level
        {
            self.rebase(level);
        }
        let base = *self.base.get_or_insert(facts.size);
        let mut excess = facts.size - base;
        if excess == 0 && facts.size == self.aside {
            self.aside = 0;
        }
        // Unless the usual size is that of small packets of the client's own.
        if (base - self.aside).abs() > 1 {
            self.restless.note(facts.open, excess);
        }
        let mut by_floor = false;
        if facts.open == 0
            && (1..*STEP.end()).contains(&excess)
            && !FIELDS_GROW.contains(&facts.beat.trigger)
            && self.floor.is_just_below(base)
        {
            by_floor = excess == 1;
            excess += 1;
        }
        let late = facts.beat.timer || !(facts.beat.fast || facts.explained);
        let longer_delay = facts.counts_high && late && (1..=*STEP.end()).contains(&excess);
        if longer_delay {
            // The delay field of a late reply has one byte more.
            excess = if excess >= 3 { excess - 1 } else { 0 };
        }
        let mut reading = if facts.open == 0 && longer_delay && excess == 0 {
            Reading::Plain
        } else if facts.open == 0 {
            self.read_closed(facts, excess, by_floor)
        } else {
            self.read_open(facts, excess)
        };
        if let Reading::NewGap(sign) = reading
            && facts.beat.adjacent
            && sign.kind != SignKind::Rhythm
        {
            if facts.open == 0 {
                self.unconfirmed = Some(facts.size);
            } else {
                self.base = self.base.map(|base| base + sign.step);
            }
            reading = Reading::Upstream;
        }
        if let Reading::Noise = reading {
            if facts.open == 0 && excess < 0 {
                self.aside = facts.size;
            }
        } else {
            let alike = facts.size == self.last;
            self.alike = if alike { self.alike.saturating_add(1) } else { 0 };
            self.expected_alike &= alike;
            self.last = facts.size;
            self.since_gap = self.since_gap.saturating_add(1);
        }
        if let Reading::NewGap(_) = reading {
            self.since_gap = 0;
            self.marked = self.marked.max(facts.beat.trigger);
        }
        reading
    }

    // Inlined it takes 100 bytes more on MIPS.
    #[inline(never)]
    fn sign(&self, facts: &Facts, kind: SignKind) -> Reading {
        let step = (facts.size - self.last).clamp(*STEP.start(), *STEP.end());
        let kind = match kind {
            _ if facts.beat.early && facts.counts_high => SignKind::Rhythm,
            SignKind::Step if step > *STEP.start() => SignKind::LongStep,
            kind => kind,
        };
        let silent = self.constant(facts.size);
        let shown = self.awaited.map_or(facts.now, |(_, at)| at);
        Reading::NewGap(GapSign { step, excess: self.excess(facts.size), kind, silent, shown })
    }

    /// A reply of about the size that one more gap makes.
    fn read_step(&mut self, facts: &Facts, excess: i32, by_floor: bool) -> Reading {
        let restless = facts.repeats && self.restless.is();
        // One byte more than the smallest is mostly a frame of the client's own that comes now and then: a gap
        // is still there in the next reply, which is close where packets are.
        let unsure = by_floor && facts.close && !facts.counts_high;
        if (restless || unsure) && !self.repeated(facts, excess) {
            return if unsure { Reading::Unsure } else { Reading::Plain };
        }
        let kind = match by_floor {
            _ if restless => SignKind::Repeated,
            true => SignKind::Floor,
            false => SignKind::Step,
        };
        let sign = self.sign(facts, kind);
        self.awaited = None;
        sign
    }

    /// Where sizes vary for other reasons only one more range and nothing else is a sign, and only
    /// if a second reply shows it as well.
    fn repeated(&mut self, facts: &Facts, excess: i32) -> bool {
        if self.awaited.is_some_and(|(size, _)| size == facts.size) {
            return true;
        }
        let one_range = excess == *STEP.start();
        self.awaited = one_range.then_some((facts.size, facts.now));
        false
    }

    /// Whether a reply is the first that is shorter because of a gap.
    fn shrinks(&self, facts: &Facts, excess: i32) -> bool {
        let steady = self.alike >= ALIKE && self.base == Some(self.last);
        facts.shrinks
            && steady
            && SHRINK.contains(&excess)
            && facts.beat.fast
            && !facts.beat.timer
            && facts.beat.count > 1
    }

    /// An early reply that is not about the gap marked last.
    fn new_early(&self, facts: &Facts) -> bool {
        facts.beat.early && facts.beat.trigger > self.marked + SAME_GAP
    }

    /// Whether a reply is one of the small packets of the client's own that are about as long as acknowledgements.
    fn is_aside(&self, facts: &Facts, excess: i32) -> bool {
        excess <= SHORTER && facts.size == self.aside && !facts.counts_high
    }

    fn read_closed(&mut self, facts: &Facts, excess: i32, by_floor: bool) -> Reading {
        let size = facts.size;
        let odd = excess > *STEP.end() || excess < SHORTER || self.is_aside(facts, excess);
        if !odd {
            self.odd_run = 0;
        } else if (size - self.odd_size).abs() <= 1 {
            self.odd_run += 1;
        } else {
            (self.odd_size, self.odd_run) = (size, 1);
        }
        let dips = excess == SHORTER && !odd && !facts.counts_high;
        let dipped = core::mem::replace(&mut self.dipped, dips);
        if dipped && size - self.last == -SHORTER {
            // A range that has gone does not come back. A gap may have begun in the very reply after that; if the
            // same size comes again, alone, it was none.
            self.aside = self.last;
        }
        if STEP.contains(&excess) {
            return self.read_step(facts, excess, by_floor);
        }
        self.awaited = None;
        if self.shrinks(facts, excess) {
            self.full = self.base;
            let sign = self.sign(facts, SignKind::Shorter);
            self.base = Some(size - STEP.start());
            self.odd_run = 0;
            return sign;
        }
        if facts.beat.skipped && (SHORTER..=1).contains(&excess) {
            // The gap is new, and an old range was pruned in the same reply.
            self.base = Some(size - STEP.start());
            return self.sign(facts, SignKind::Skip);
        }
        let rhythm = self.new_early(facts)
            && (excess <= *STEP.end() || (excess <= EARLY_EXTRA && facts.beat.ones >= 2))
            && (excess >= TOO_SHORT || facts.beat.count == 1 || size > self.last);
        if rhythm {
            let sign = self.sign(facts, SignKind::Rhythm);
            // An early reply's delay field is a byte shorter, its gap two
            // longer: this is what the base would have been.
            self.base = Some(size - STEP.start());
            self.odd_run = 0;
            return sign;
        }
        if odd {
            let confirmed = if excess < 0 { SHORTER_CONFIRMED } else { LONGER_CONFIRMED };
            if self.odd_run < confirmed {
                return Reading::Noise;
            }
            self.base = Some(size);
            self.odd_run = 0;
            self.floor.clear();
        } else if facts.explained || excess <= 0 {
            if excess <= SHORTER {
                self.floor.clear();
            }
            self.base = Some(size);
            self.floor.push(size);
        }
        Reading::Plain
    }

    fn read_open(&mut self, facts: &Facts, excess: i32) -> Reading {
        let size = facts.size;
        let level = self.excess(self.last);
        if let Some(full) = self.full.take_if(|full| size > *full + SHORTER) {
            self.rebase(size.min(full));
            return Reading::Closed;
        }
        self.ones = if excess == 1 { self.ones + 1 } else { 0 };
        let too_short = excess <= TOO_SHORT;
        if too_short || self.is_aside(facts, excess) {
            // No repair makes a reply that short, but the base may be wrong.
            let confirmed = (size - self.odd_size).abs() <= 1 && self.odd_run > 0;
            (self.odd_size, self.odd_run) = (size, 1);
            if !confirmed || facts.at_once || too_short && size <= self.aside {
                return Reading::Noise;
            }
        } else {
            self.odd_run = 0;
        }
        let settled = self.ones >= ONES_SETTLE && facts.all_tried;
        if excess <= 0 && facts.prunes && !facts.copy_due && !facts.tells_first && !facts.all_tried
        {
            // The gaps are still there: other ranges are not, as the sender has seen them.
            self.base = Some(size - STEP.start() * facts.open as i32);
            return Reading::Plain;
        }
        let fell = self.last - size;
        let by_copy = facts.copy_due || facts.tells_first && !facts.beat.fast && !facts.explained;
        let one_up = by_copy && !facts.missed && (fell > 0 || !facts.prunes);
        // One byte less may be a range before the gap that takes a byte less, as the sender has seen a part of it.
        let one_up = one_up && !self.floor.is_below(size - 1);
        if excess <= 0 || (excess == 1 && (one_up || settled)) {
            if facts.prunes && !settled && (1..facts.open).contains(&facts.due) {
                // The others cannot have closed yet.
                self.base = Some(size - STEP.start() * (facts.open - 1) as i32);
                return Reading::OneClosed;
            }
            // Never raise the base when a gap closes: the delay field of the reply that shows it
            // may be a byte longer.
            let base = self.base.unwrap_or(size);
            self.base = Some(if self.ones >= ONES_SETTLE { size } else { base.min(size) });
            if let Some(full) = self.full.take() {
                self.base = Some(full);
            }
            return Reading::Closed;
        }
        if facts.open > 1 && (fell >= 2 || (fell == 1 && facts.copy_due)) {
            return Reading::OneClosed;
        }
        if self.new_early(facts) && excess >= 2 && excess < level + 2 && excess >= level - 1 {
            return self.sign(facts, SignKind::Rhythm);
        }
        let rise = excess - level;
        if facts.close && self.makes_up_two(facts, excess, rise) {
            let sign = self.sign(facts, SignKind::Step);
            self.awaited = None;
            return sign;
        }
        match rise {
            _ if excess == 1 || facts.repeats && self.restless.is() => Reading::Plain,
            rise if STEP.contains(&rise) => self.sign(facts, SignKind::Step),
            rise if rise > *STEP.end() => Reading::Noise,
            _ => Reading::Plain,
        }
    }

    /// Whether one more gap shows although replies have become only one byte longer: the one before came
    /// with a longer field, which is none by now. Two replies in a row have to be of that size.
    fn makes_up_two(&mut self, facts: &Facts, excess: i32, rise: i32) -> bool {
        let one_more = excess == STEP.start() * (facts.open as i32 + 1);
        if one_more && rise == 1 {
            self.awaited = Some((facts.size, facts.now));
            return false;
        }
        let again = self.awaited.is_some_and(|(size, _)| size == facts.size);
        if one_more && rise == 0 && again {
            return true;
        }
        self.awaited = None;
        false
    }

    /// All gaps have closed; `by_floor` if only the floor had shown them.
    pub fn closed(&mut self, by_floor: bool) {
        self.ones = 0;
        self.floor.closed(by_floor);
    }

    /// A gap was abandoned while others are `left`: its range stays until the sender prunes
    /// it.
    pub fn abandoned(&mut self, step: i32, left: usize) {
        if left > 0 {
            // A longer field that came with the gap may be gone by now.
            let rest = self.last - STEP.start() * left as i32;
            self.base = self.base.map(|base| (base + step).min(rest).max(base));
            self.floor.clear();
        } else {
            self.abandoned_all();
        }
    }

    /// No gap is followed any more: what the last reply showed is the new
    /// usual, but one reply alone may have been something else.
    // Inlined it takes 290 bytes more on MIPS.
    #[inline(never)]
    pub fn abandoned_all(&mut self) {
        self.ones = 0;
        if self.since_gap == 0 {
            self.unconfirmed = Some(self.last);
        } else {
            self.rebase(self.last);
        }
    }

    /// What is now is the new usual.
    // Inlined it takes 160 bytes more on MIPS.
    #[inline(never)]
    pub fn rebase(&mut self, size: i32) {
        self.ones = 0;
        self.full = None;
        self.awaited = None;
        self.unconfirmed = None;
        self.base = Some(size);
        self.last = size;
        self.floor.clear();
    }
}

#[cfg(test)]
mod tests;
