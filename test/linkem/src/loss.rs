// SPDX-License-Identifier: GPL-2.0-or-later
//! Which packets a link loses.
//!
//! Every decision is a function of seed, direction and packet index alone: the
//! random numbers are a hash of these and not taken from a running generator.
//! So two runs that send the same packets lose the same ones, however long the
//! program in between took and whatever jitter or queue is set.

use crate::Direction;

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

/// A loss model; probabilities in 0..=1.
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
}

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
    index: u64,
    bad: bool,
}

impl Loss {
    /// The first packet asked about has index 0; a chain begins in the good state.
    pub fn new(model: Model, random: Random) -> Loss {
        Loss { model, random, index: 0, bad: false }
    }

    /// Is the next packet lost?
    pub fn next_is_lost(&mut self) -> bool {
        let index = self.index;
        self.index += 1;
        let loss = self.random.unit(Purpose::Loss, index);
        match self.model {
            Model::Bernoulli(probability) => loss < probability,
            Model::GilbertElliott { p, r, bad_loss, good_loss } => {
                // As netem: the state that the packet meets decides its fate.
                let lost = loss < if self.bad { bad_loss } else { good_loss };
                let change = self.random.unit(Purpose::Transition, index);
                if change < if self.bad { r } else { p } {
                    self.bad = !self.bad;
                }
                lost
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(model: Model, seed: u64, direction: Direction, count: usize) -> Vec<bool> {
        let mut loss = Loss::new(model, Random::new(seed, direction));
        (0..count).map(|_| loss.next_is_lost()).collect()
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
}
