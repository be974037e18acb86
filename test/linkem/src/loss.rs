// SPDX-License-Identifier: GPL-2.0-or-later
//! Which packets a link loses.
//!
//! Every decision is a function of seed, direction and packet index alone, or, for
//! outages, of seed and time: the random numbers are a hash of these and not taken
//! from a running generator. So two runs that send the same packets lose the same
//! ones, however long the program in between took and whatever jitter or queue is set.

use crate::{Direction, MS, Nanos};

/// What a random number is for; keeps the sequences apart.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Is the packet lost?
    Loss = 1,
    /// Does the Gilbert-Elliott chain change its state after the packet?
    Transition = 2,
    /// How much is the packet delayed?
    Jitter = 3,
    /// How soon does RED drop the next packet?
    Red = 4,
}

/// Random numbers that are a function of their index.
#[derive(Clone, Copy, Debug)]
pub struct Random {
    key: u64,
}

impl Random {
    /// The numbers of one seed and direction.
    pub fn new(seed: u64, direction: Direction) -> Random {
        let direction = match direction {
            Direction::Ab => 0x6162,
            Direction::Ba => 0x6261,
        };
        Random { key: mix(mix(seed) ^ direction) }
    }

    /// The numbers of one seed, the same for both directions.
    pub fn of_both(seed: u64) -> Random {
        Random { key: mix(mix(seed)) }
    }

    /// A number in [0, 1).
    pub fn unit(&self, purpose: Purpose, index: u64) -> f64 {
        let key = mix(self.key ^ ((purpose as u64) << 56));
        // 53 bits: what an f64 holds exactly.
        (mix(key.wrapping_add(index)) >> 11) as f64 / (1u64 << 53) as f64
    }
}

/// The output function of SplitMix64 (Steele, Lea, Flood, OOPSLA 2014).
fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// A loss model; probabilities in 0..=1, times in ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Model {
    /// Each packet is lost independently.
    Bernoulli(f64),
    /// The Gilbert-Elliott model as in tc-netem(8), `loss gemodel`.
    GilbertElliott {
        /// Good to bad, after a packet.
        p: f64,
        /// Bad to good, after a packet.
        r: f64,
        /// Loss in the bad state (1-h).
        bad_loss: f64,
        /// Loss in the good state (1-k).
        good_loss: f64,
    },
    /// Outages by time: everything is lost while one lasts. Both lengths are exponentially
    /// distributed, as those of a Gilbert-Elliott chain are geometrically in packets; but how
    /// long one lasts does not depend on how much is sent meanwhile. It is the hop that fails,
    /// so both directions fail at the same times.
    Outages {
        /// Mean time from the end of one to the next.
        gap: f64,
        /// Mean time that one lasts.
        length: f64,
    },
}

impl Model {
    /// A percentage; the percent sign may be written.
    pub fn bernoulli(text: &str) -> Result<Model, String> {
        Ok(Model::Bernoulli(percent(text)?))
    }

    /// `P [R [1-H [1-K]]]` in percent; what is left out is as in tc-netem(8):
    /// r = 1-p, 1-h = 100 %, 1-k = 0.
    pub fn gilbert_elliott(text: &str) -> Result<Model, String> {
        let values = text.split_whitespace().map(percent).collect::<Result<Vec<_>, _>>()?;
        let at = |index: usize, default: f64| values.get(index).copied().unwrap_or(default);
        match values.len() {
            1..=4 => Ok(Model::GilbertElliott {
                p: values[0],
                r: at(1, 1.0 - values[0]),
                bad_loss: at(2, 1.0),
                good_loss: at(3, 0.0),
            }),
            _ => Err(format!("'{text}': wanted 'P [R [1-H [1-K]]]' in percent")),
        }
    }

    /// `GAP LENGTH` in ms.
    pub fn outages(text: &str) -> Result<Model, String> {
        let wrong = || format!("'{text}': wanted 'GAP LENGTH' in ms, each more than 0");
        let values = text.split_whitespace().map(str::parse::<f64>).collect::<Result<Vec<_>, _>>();
        match values.map_err(|_| wrong())?[..] {
            [gap, length] if [gap, length].iter().all(|ms| *ms > 0.0 && *ms <= MAX_OUTAGE_MS) => {
                Ok(Model::Outages { gap: gap * MS as f64, length: length * MS as f64 })
            }
            _ => Err(wrong()),
        }
    }
}

/// An hour: what is longer is not part of a run, and times stay far from the end of their type.
const MAX_OUTAGE_MS: f64 = 3_600_000.0;

fn percent(text: &str) -> Result<f64, String> {
    let value = text.strip_suffix('%').unwrap_or(text);
    match value.parse::<f64>() {
        Ok(value) if (0.0..=100.0).contains(&value) => Ok(value / 100.0),
        _ => Err(format!("'{text}' is not a percentage from 0 to 100")),
    }
}

/// The losses of one direction.
#[derive(Clone, Debug)]
pub struct Loss {
    model: Model,
    random: Random,
    /// Of packets, or of outages and the gaps between them.
    index: u64,
    bad: bool,
    /// When an outage or a gap ends.
    until: Nanos,
}

impl Loss {
    /// The first packet asked about has index 0; a chain begins in the good state, and
    /// outages count from `start`.
    pub fn new(model: Model, seed: u64, direction: Direction, start: Nanos) -> Loss {
        let random = match model {
            Model::Outages { .. } => Random::of_both(seed),
            _ => Random::new(seed, direction),
        };
        // The first gap begins with what ends here.
        let outages = matches!(model, Model::Outages { .. });
        Loss { model, random, index: 0, bad: outages, until: start }
    }

    /// Is the next packet, which comes at `now`, lost?
    pub fn next_is_lost(&mut self, now: Nanos) -> bool {
        match self.model {
            Model::Bernoulli(probability) => {
                let index = self.next();
                self.random.unit(Purpose::Loss, index) < probability
            }
            Model::GilbertElliott { p, r, bad_loss, good_loss } => {
                let index = self.next();
                let loss = self.random.unit(Purpose::Loss, index);
                // As netem: the state that the packet meets decides its fate.
                let lost = loss < if self.bad { bad_loss } else { good_loss };
                let change = self.random.unit(Purpose::Transition, index);
                if change < if self.bad { r } else { p } {
                    self.bad = !self.bad;
                }
                lost
            }
            Model::Outages { gap, length } => {
                while self.until <= now {
                    self.bad = !self.bad;
                    let mean = if self.bad { length } else { gap };
                    let index = self.next();
                    let unit = self.random.unit(Purpose::Transition, index);
                    // At least 1 ns, so that this ends.
                    self.until += ((1.0 - unit).ln() * -mean) as Nanos + 1;
                }
                self.bad
            }
        }
    }

    fn next(&mut self) -> u64 {
        self.index += 1;
        self.index - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(model: Model, seed: u64, direction: Direction, count: usize) -> Vec<bool> {
        let mut loss = Loss::new(model, seed, direction, 0);
        (0..count).map(|_| loss.next_is_lost(0)).collect()
    }

    fn ratio(pattern: &[bool]) -> f64 {
        pattern.iter().filter(|lost| **lost).count() as f64 / pattern.len() as f64
    }

    #[test]
    fn bernoulli_loses_the_asked_share() {
        for percent in [0.0, 0.1, 1.0, 5.0, 50.0, 100.0] {
            let p: f64 = percent / 100.0;
            let count = 200_000;
            let got = ratio(&pattern(Model::Bernoulli(p), 7, Direction::Ab, count));
            let deviation = (p * (1.0 - p) / count as f64).sqrt();
            assert!((got - p).abs() <= 4.0 * deviation, "{percent} %: {got}");
        }
    }

    #[test]
    fn same_seed_same_losses_other_seed_or_direction_others() {
        let model = Model::Bernoulli(0.1);
        let one = pattern(model, 1, Direction::Ab, 10_000);
        assert_eq!(one, pattern(model, 1, Direction::Ab, 10_000));
        assert_ne!(one, pattern(model, 2, Direction::Ab, 10_000));
        let back = pattern(model, 1, Direction::Ba, 10_000);
        // Independent: both lose the same packet in about 1 % of the cases.
        let both = one.iter().zip(&back).filter(|(a, b)| **a && **b).count();
        assert!((50..150).contains(&both), "{both}");
    }

    #[test]
    fn bernoulli_losses_are_independent_of_their_predecessor() {
        let pattern = pattern(Model::Bernoulli(0.2), 3, Direction::Ab, 200_000);
        let after_loss: Vec<bool> =
            pattern.windows(2).filter(|pair| pair[0]).map(|pair| pair[1]).collect();
        assert!((ratio(&after_loss) - 0.2).abs() < 0.01);
    }

    #[test]
    fn gilbert_elliott_mean_loss_and_burst_length() {
        // Simple Gilbert: all is lost in the bad state, nothing in the good one.
        let model = Model::gilbert_elliott("1 25 100 0").unwrap();
        let pattern = pattern(model, 11, Direction::Ab, 500_000);
        // Stationary share of the bad state: p / (p + r).
        assert!((ratio(&pattern) - 0.01 / 0.26).abs() < 0.002);
        let bursts = pattern.windows(2).filter(|w| !w[0] && w[1]).count();
        let lost = pattern.iter().filter(|lost| **lost).count();
        // Geometric with mean 1 / r.
        assert!((lost as f64 / bursts as f64 - 4.0).abs() < 0.15);
    }

    #[test]
    fn gilbert_elliott_loses_in_both_states() {
        let model = Model::gilbert_elliott("10% 30% 50% 2%").unwrap();
        let got = ratio(&pattern(model, 5, Direction::Ba, 400_000));
        assert!((got - (0.1 * 0.5 + 0.3 * 0.02) / 0.4).abs() < 0.003);
    }

    #[test]
    fn gilbert_elliott_defaults_are_those_of_netem() {
        assert_eq!(
            Model::gilbert_elliott("25"),
            Ok(Model::GilbertElliott { p: 0.25, r: 0.75, bad_loss: 1.0, good_loss: 0.0 })
        );
        for wrong in ["", "1 2 3 4 5", "1 x", "101", "-1", "NaN"] {
            assert!(Model::gilbert_elliott(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn outages_have_their_lengths_however_much_is_sent() {
        let model = Model::outages("300 50").unwrap();
        for step in [MS / 4, 3 * MS] {
            let mut loss = Loss::new(model, 9, Direction::Ab, 0);
            let lost: Vec<bool> = (0..4_000_000 * MS / 4 / step)
                .map(|number| loss.next_is_lost(number * step))
                .collect();
            assert!((ratio(&lost) - 50.0 / 350.0).abs() < 0.005, "{}", ratio(&lost));
            let outages = lost.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            let length = lost.iter().filter(|lost| **lost).count() as u64 * step / outages as u64;
            // Those between two packets are not seen.
            assert!((48 * MS..54 * MS).contains(&length), "{length}");
        }
    }

    #[test]
    fn outages_strike_both_directions_at_the_same_times_and_begin_with_a_gap() {
        let model = Model::outages("100 1000").unwrap();
        let start = 77 * MS;
        let at = |direction, seed| {
            let mut loss = Loss::new(model, seed, direction, start);
            (0..20_000).map(|ms| loss.next_is_lost(start + ms * MS)).collect::<Vec<bool>>()
        };
        let down = at(Direction::Ab, 1);
        assert_eq!(down, at(Direction::Ba, 1));
        assert_ne!(down, at(Direction::Ab, 2));
        assert!((1..50).all(|seed| !at(Direction::Ab, seed)[0]));
    }

    #[test]
    fn outages_need_two_times() {
        for wrong in ["", "1", "1 2 3", "0 5", "5 -1", "x 1", "NaN 1", "inf 1", "1 3600001"] {
            assert!(Model::outages(wrong).is_err(), "{wrong}");
        }
    }
}
