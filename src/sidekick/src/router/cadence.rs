// SPDX-License-Identifier: GPL-2.0-or-later
//! When a flow's next packet is due, learned from when the last ones came.
//!
//! A period is what many of the recent arrivals came after an earlier one; so packets
//! in between (acknowledgements, lost packets sent again) do not hide it, and lost ones
//! do not either. With a period known, a loop holds its phase: an arrival that fits
//! moves both a little, one that does not moves neither.

use super::{MS, Micros};

/// Arrivals that are remembered.
const RECENT: usize = 16;
/// Of them, those that come a period after another one for it to be a period.
const ENOUGH: u32 = 10;
/// Arrivals between two looks at whether there is a (better) period.
const LOOK: u8 = 8;
/// Looks without a period until the one there was is given up.
const PATIENCE: u8 = 2;
/// Of the last 16 arrivals and lates so many at least have to fit.
const FITTING: u32 = 10;
/// As long as so many do there is no need to look.
const STEADY: u32 = 13;
const SHORTEST: u32 = 4_000;
const LONGEST: u32 = 250_000;
/// No packet is late before this is over.
const LEAST_MARGIN: u32 = 1_500;
/// Packets late in a row after which the sender is taken to have paused.
const IN_A_ROW: u8 = 3;
/// Arrivals off the beat, a period from each other, that move it.
const IN_STEP: u8 = 3;

/// How an arrival goes with the beat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arrival {
    /// There is no beat, or it is not known where in it the sender is.
    Free,
    /// It was due.
    OnBeat,
    /// Shortly after one that was due.
    SameBeat,
    /// At another time.
    OffBeat,
}

#[derive(Clone, Copy, Debug)]
struct Beat {
    period: u32,
    /// When the next one is due; none after a pause, until two arrivals are a period apart.
    due: Option<Micros>,
    /// Mean distance of arrivals from when they were due, times 16.
    deviation: u32,
    /// When the last one that fitted came.
    last: Micros,
    late_in_row: u8,
    stray: Micros,
    in_step: u8,
}

/// What a period explains.
#[derive(Clone, Copy, Debug)]
struct Found {
    period: u32,
    /// Arrivals that came a period after another one.
    count: u32,
    /// The closer, the more.
    weight: u32,
    /// How much later than that, all in all.
    sum: i32,
    /// The same without sign.
    distances: u32,
}

#[derive(Clone, Debug)]
pub(super) struct Cadence {
    /// Without their upper half: what is more than an hour ago does not matter.
    times: [u32; RECENT],
    known: usize,
    at: usize,
    beat: Option<Beat>,
    /// Which of the last arrivals fitted, one bit each; a late packet did not.
    fits: u16,
    until_look: u8,
    failed: u8,
}

impl Cadence {
    pub fn new() -> Cadence {
        Cadence {
            times: [0; RECENT],
            known: 0,
            at: 0,
            beat: None,
            fits: 0,
            until_look: LOOK,
            failed: 0,
        }
    }

    /// Time from one packet to the next, if it is known.
    pub fn period(&self) -> Option<u32> {
        self.beat.map(|beat| beat.period)
    }

    /// When the next packet is late.
    pub fn late_at(&self) -> Option<Micros> {
        let beat = self.beat.as_ref()?;
        Some(beat.due?.saturating_add(beat.margin().into()))
    }

    /// How much a packet may come later than it is due.
    #[cfg(test)]
    pub fn margin(&self) -> Option<u32> {
        self.beat.map(|beat| beat.margin())
    }

    /// The packet that was due is late; the next one is watched for.
    pub fn missed(&mut self) {
        let Some(beat) = &mut self.beat else { return };
        self.fits <<= 1;
        beat.late_in_row += 1;
        beat.due = match beat.due {
            Some(due) if beat.late_in_row < IN_A_ROW => Some(due.saturating_add(beat.step())),
            _ => {
                beat.late_in_row = 0;
                None
            }
        };
    }

    /// A packet has come.
    pub fn on_arrival(&mut self, now: Micros) -> Arrival {
        let arrival = self.place(now);
        if let Some(time) = self.times.get_mut(self.at) {
            *time = now as u32;
        }
        self.at = (self.at + 1) % RECENT;
        self.known = (self.known + 1).min(RECENT);
        self.fits =
            self.fits << 1 | u16::from(matches!(arrival, Arrival::OnBeat | Arrival::SameBeat));
        self.until_look -= 1;
        if self.until_look == 0 {
            self.until_look = LOOK;
            self.look(now);
        }
        arrival
    }

    fn place(&mut self, now: Micros) -> Arrival {
        let Some(beat) = &self.beat else { return Arrival::Free };
        let (margin, period) = (beat.margin(), beat.period);
        let Some(due) = beat.due else {
            // After a pause. One packet alone may be any.
            let in_step = self.follows(now as u32, period, margin).is_some();
            if let Some(beat) = &mut self.beat {
                beat.due = in_step.then(|| now.saturating_add(beat.step()));
                beat.last = now;
            }
            return if in_step { Arrival::OnBeat } else { Arrival::Free };
        };
        let Some(beat) = &mut self.beat else { return Arrival::Free };
        let away = distance(now, due);
        if away.unsigned_abs() <= margin {
            beat.follow(now, due, away);
            Arrival::OnBeat
        } else if now.saturating_sub(beat.last) <= margin.into() {
            Arrival::SameBeat
        } else {
            beat.off(now, due);
            Arrival::OffBeat
        }
    }

    /// How far from exactly `period` before `time` the nearest of the recent arrivals is.
    fn follows(&self, time: u32, period: u32, tolerance: u32) -> Option<i32> {
        let wanted = time.wrapping_sub(period);
        let mut nearest = None;
        let mut limit = tolerance;
        for earlier in self.times {
            let off = wanted.wrapping_sub(earlier).cast_signed();
            if off.unsigned_abs() <= limit {
                limit = off.unsigned_abs();
                nearest = Some(off);
            }
        }
        nearest
    }

    /// The arrival so many before the last one.
    fn before(&self, back: usize) -> u32 {
        let at = (self.at + 2 * RECENT - 1 - back) % RECENT;
        self.times.get(at).copied().unwrap_or_default()
    }

    /// Looks for a period in the recent arrivals, whether or not there is one.
    fn look(&mut self, now: Micros) {
        if self.known < RECENT {
            return;
        }
        let fitting = self.fits.count_ones();
        if self.beat.is_some() && fitting >= STEADY {
            self.failed = 0;
            return;
        }
        match (self.beat, self.search()) {
            (Some(beat), Some(found)) if stays(&beat, &found, fitting) => self.failed = 0,
            (_, Some(found)) => self.begin(now, &found),
            (Some(_), None) if fitting < FITTING => {
                self.failed += 1;
                if self.failed >= PATIENCE {
                    self.beat = None;
                }
            }
            (_, None) => {}
        }
    }

    fn begin(&mut self, now: Micros, found: &Found) {
        let mut beat = Beat {
            period: found.period,
            due: None,
            deviation: found.deviation().saturating_mul(16),
            last: now,
            late_in_row: 0,
            stray: 0,
            in_step: 0,
        };
        if self.follows(now as u32, beat.period, beat.margin()).is_some() {
            beat.due = Some(now.saturating_add(beat.step()));
        }
        self.beat = Some(beat);
        self.fits = u16::MAX;
        self.failed = 0;
    }

    /// The time that explains the recent arrivals best.
    fn search(&self) -> Option<Found> {
        let tolerance = self.tolerance();
        let mut best: Option<Found> = None;
        for apart in 1..=3 {
            for back in 0..RECENT / 2 {
                let period = self.before(back).wrapping_sub(self.before(back + apart));
                if !(SHORTEST..=LONGEST).contains(&period) {
                    continue;
                }
                let found = self.matches(period, tolerance);
                if found.count >= ENOUGH && best.is_none_or(|best| found.weight > best.weight) {
                    best = Some(found);
                }
            }
        }
        let best = best?;
        // Several periods look like a period, too, and so they do if there are others between.
        let part = [3, 2].into_iter().find_map(|part| {
            let found = self.matches(best.period / part, tolerance);
            let enough = found.count >= ENOUGH && found.count * 3 >= best.count * 2;
            (enough && found.period >= SHORTEST).then_some(found)
        });
        let found = part.unwrap_or(best);
        let off = found.sum / found.count.max(1).cast_signed();
        let period = found.period.saturating_add_signed(off);
        Some(self.matches(period.clamp(SHORTEST, LONGEST), tolerance))
    }

    /// How far from a period two arrivals may be: so little that random ones seldom fit.
    fn tolerance(&self) -> u32 {
        let span = self.before(0).wrapping_sub(self.before(RECENT - 1));
        (span / (RECENT as u32 - 1) / 8).min(LONGEST / 8)
    }

    /// How well this period explains the recent arrivals.
    fn matches(&self, period: u32, tolerance: u32) -> Found {
        let mut found = Found { period, count: 0, weight: 0, sum: 0, distances: 0 };
        let tolerance = tolerance.min(period / 6);
        for time in self.times {
            if let Some(off) = self.follows(time, period, tolerance) {
                found.count += 1;
                found.weight += 16 - 16 * off.unsigned_abs() / tolerance.max(1);
                found.sum += off;
                found.distances += off.unsigned_abs();
            }
        }
        found
    }
}

/// Whether what there is goes on in spite of what was found.
fn stays(beat: &Beat, found: &Found, fitting: u32) -> bool {
    let same = beat.period.abs_diff(found.period) <= beat.period / 4;
    fitting >= if same { FITTING / 2 } else { FITTING }
}

impl Found {
    fn deviation(&self) -> u32 {
        self.distances / self.count.max(1)
    }
}

impl Beat {
    fn step(&self) -> Micros {
        self.period.into()
    }

    fn margin(&self) -> u32 {
        (self.deviation / 4).max(LEAST_MARGIN).min(self.period / 2)
    }

    /// One came when it was due. The loop is damped well at these gains.
    fn follow(&mut self, now: Micros, due: Micros, away: i32) {
        self.period = self.period.saturating_add_signed(away / 32).clamp(SHORTEST / 2, 2 * LONGEST);
        self.due = Some(due.saturating_add_signed((away / 4).into()).saturating_add(self.step()));
        self.deviation = self.deviation - self.deviation / 16 + away.unsigned_abs();
        self.last = now;
        self.late_in_row = 0;
        self.in_step = 0;
    }

    /// One came at another time.
    fn off(&mut self, now: Micros, due: Micros) {
        // If many come so, there is more jitter than was thought.
        let slot = due.saturating_sub(self.step());
        let away = distance(now, slot).unsigned_abs().min(self.period / 2);
        if self.late_in_row > 0 && away < self.period / 2 {
            self.deviation = self.deviation - self.deviation / 64 + away / 4;
        }
        let since = u32::try_from(now.saturating_sub(self.stray)).unwrap_or(u32::MAX);
        self.stray = now;
        if since.abs_diff(self.period) > self.margin() {
            self.in_step = 1;
            return;
        }
        self.in_step += 1;
        if self.in_step >= IN_STEP {
            self.in_step = 0;
            self.late_in_row = 0;
            self.last = now;
            self.due = Some(now.saturating_add(self.step()));
        }
    }
}

/// From `earlier` to `later`, as far as it matters here.
fn distance(later: Micros, earlier: Micros) -> i32 {
    let far = 10_000 * MS;
    // Not one bounded distance with a sign, of which compilers make something else (`pemi_engine::Time`).
    if later >= earlier {
        (later - earlier).min(far) as i32
    } else {
        -((earlier - later).min(far) as i32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::random::Random;

    /// The cadence after arrivals at these times; lates as they become so.
    fn after(times: impl IntoIterator<Item = Micros>) -> Cadence {
        let mut cadence = Cadence::new();
        times.into_iter().for_each(|now| {
            feed(&mut cadence, now);
        });
        cadence
    }

    fn feed(cadence: &mut Cadence, now: Micros) -> (usize, Arrival) {
        let mut late = 0;
        while cadence.late_at().is_some_and(|at| at <= now) {
            cadence.missed();
            late += 1;
        }
        (late, cadence.on_arrival(now))
    }

    /// Every 20 ms from 1 s on.
    fn beat(n: u64) -> Micros {
        1_000 * MS + n * 20 * MS
    }

    #[test]
    fn a_steady_flow_is_late_a_margin_after_it_is_due() {
        let cadence = after((0..20).map(beat));
        assert_eq!(cadence.period(), Some(20_000));
        assert_eq!(cadence.late_at(), Some(beat(20) + 1_500));
        // Nothing is known of the first few.
        assert_eq!(after((0..15).map(beat)).late_at(), None);
    }

    #[test]
    fn the_margin_follows_the_jitter() {
        let mut random = Random::new(1);
        let mut jitter = |most: u64| random.below(2 * most) as i64 - most as i64;
        let mut cadence = after((0..400).map(|n| beat(n).saturating_add_signed(jitter(2_000))));
        let period = cadence.period().expect("a cadence");
        assert!(period.abs_diff(20_000) < 400, "{period}");
        // 2 ms at most are 1 ms on average, and the loop adds some.
        let margin = cadence.margin().expect("a cadence");
        assert!((3_500..6_500).contains(&margin), "{margin}");
        // Less of it, and the margin shrinks; the phase stays.
        for n in 400..600 {
            feed(&mut cadence, beat(n).saturating_add_signed(jitter(100)));
        }
        let late = cadence.late_at().expect("a cadence");
        assert!(late.abs_diff(beat(600) + 1_500) < 300, "{late}");
    }

    #[test]
    fn what_comes_off_the_beat_moves_nothing() {
        let mut cadence = after((0..20).map(beat));
        for n in 20..60 {
            if n % 5 == 0 {
                // Lost, and sent again.
                assert_eq!(feed(&mut cadence, beat(n) + 4_000), (1, Arrival::OffBeat));
            } else {
                assert_eq!(feed(&mut cadence, beat(n)), (0, Arrival::OnBeat));
                assert_eq!(feed(&mut cadence, beat(n) + 300), (0, Arrival::SameBeat));
            }
            assert_eq!(cadence.late_at(), Some(beat(n + 1) + 1_500));
        }
        assert_eq!(cadence.period(), Some(20_000));
    }

    #[test]
    fn acknowledgements_in_between_do_not_hide_it() {
        let acks = (0..30).map(|n| beat(2 * n) + 7_000);
        let mut times: Vec<Micros> = (0..60).map(beat).chain(acks).collect();
        times.sort_unstable();
        let cadence = after(times);
        assert_eq!(cadence.period(), Some(20_000));
        assert_eq!(cadence.late_at(), Some(beat(60) + 1_500));
    }

    #[test]
    fn after_a_pause_two_packets_tell_where_it_is() {
        let mut cadence = after((0..20).map(beat));
        // Three lates, then silence.
        assert_eq!(feed(&mut cadence, beat(100) + 9_000).0, 3);
        assert_eq!(cadence.late_at(), None);
        // Not the last one's period: the first one may have been sent again.
        feed(&mut cadence, beat(101));
        assert_eq!(cadence.late_at(), None);
        assert_eq!(feed(&mut cadence, beat(102)), (0, Arrival::OnBeat));
        assert_eq!(cadence.late_at(), Some(beat(103) + 1_500));
    }

    #[test]
    fn a_moved_phase_and_another_period_are_found() {
        let mut cadence = after((0..20).map(beat));
        (20..24).for_each(|n| {
            feed(&mut cadence, beat(n) + 8_000);
        });
        assert_eq!(cadence.late_at(), Some(beat(24) + 8_000 + 1_500));
        for (period, packets) in [(10 * MS, 24), (20 * MS, 24), (50 * MS, 24), (33_366, 24)] {
            let mut now = Micros::from(cadence.before(0));
            for _ in 0..packets {
                now += period;
                feed(&mut cadence, now);
            }
            assert_eq!(cadence.period().map(u64::from), Some(period));
            assert_eq!(cadence.late_at(), Some(now + period + 1_500));
        }
    }

    #[test]
    fn a_fast_flow_has_none_and_neither_have_random_ones() {
        assert_eq!(after((0..500).map(|n| n * 1_000)).period(), None);
        let mut random = Random::new(2);
        let mut cadence = Cadence::new();
        let (mut now, mut known) = (0, 0);
        for _ in 0..2_000 {
            now += random.below(100_000);
            feed(&mut cadence, now);
            known += u32::from(cadence.late_at().is_some());
        }
        assert!(known < 400, "{known}");
    }

    #[test]
    fn any_clock_will_do() {
        let mut random = Random::new(3);
        let mut cadence = Cadence::new();
        for round in 0..20_000 {
            let now = match round % 7 {
                0 => random.next(),
                1 => Micros::MAX - random.below(50_000),
                n => n * 20 * MS + random.below(2_000),
            };
            feed(&mut cadence, now);
        }
    }
}
