// SPDX-License-Identifier: GPL-2.0-or-later
//! The parameters of a channel and of who uses it, and their presets.

mod check;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::errors::Errors;

/// The presets, each with its source.
const PRESETS: &str = include_str!("../presets.toml");
/// Airs that lose a chosen share, which stand for no radio.
const LOSSY: &str = include_str!("../lossy.toml");

/// What a preset is made of.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// What it stands for, in a line.
    pub about: String,
    /// What all stations have in common.
    pub radio: Radio,
    /// Between the access points and the client that is measured.
    pub link: LinkSettings,
    /// The client's power save; none: it is always awake.
    pub sleep: Option<Sleep>,
    /// The client moves from one access point to the other.
    pub roam: Option<Roam>,
    /// Other clients of the same access point with traffic of their own.
    pub neighbours: Vec<Neighbour>,
}

/// How radios send.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Radio {
    /// A frame is given up after so many attempts.
    pub attempts: u32,
    /// Frames in an aggregate at most.
    pub aggregate: u32,
    /// After a frame that was given up, the sender tells the receiver by a block ack
    /// request; without, the receiver waits for its window or its timer.
    pub bar: bool,
}

impl Default for Radio {
    fn default() -> Radio {
        Radio { attempts: 10, aggregate: 64, bar: true }
    }
}

/// How it is between two stations.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct LinkSettings {
    /// Mbit/s of data frames on the air.
    pub rate_mbit: f64,
    /// Rate and errors of a distance instead of `rate_mbit` and `errors.by_attempt`.
    pub distance: Option<Distance>,
    /// Which attempts fail.
    pub errors: Errors,
}

impl Default for LinkSettings {
    fn default() -> LinkSettings {
        LinkSettings { rate_mbit: 65.0, distance: None, errors: Errors::default() }
    }
}

impl LinkSettings {
    /// Mbit/s of data frames on the air.
    pub fn rate_mbit(&self) -> f64 {
        self.distance.map_or(self.rate_mbit, Distance::rate_mbit)
    }

    /// Mbit/s that come through in good times, as a rate control expects them: what
    /// the attempts leave of the rate.
    pub fn goodput_mbit(&self) -> f64 {
        let errors = self.errors();
        let mut reached = 1.0;
        let mut attempts = 1.0;
        for by_attempt in &errors.by_attempt {
            reached *= 1.0 - (1.0 - errors.good) * (1.0 - by_attempt);
            attempts += reached;
        }
        self.rate_mbit() / attempts
    }

    /// Which attempts fail, those of the distance among them.
    pub fn errors(&self) -> Errors {
        let mut errors = self.errors.clone();
        if let Some(distance) = self.distance {
            errors.by_attempt = distance.by_attempt().to_vec();
        }
        errors
    }
}

/// How far a client is from its access point.
///
/// The rates are those of HT at 20 MHz with a long guard interval that need a good,
/// a middling and a weak signal; the probabilities are the retry tables of
/// private-octopus/c4, `scripts/wifiretry.py`, without their first entry, which is
/// the transmission itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Distance {
    /// The same room.
    Near,
    /// The next room.
    Mid,
    /// The edge of coverage.
    Far,
}

impl Distance {
    fn rate_mbit(self) -> f64 {
        match self {
            Distance::Near => 65.0,
            Distance::Mid => 39.0,
            Distance::Far => 13.0,
        }
    }

    fn by_attempt(self) -> &'static [f64] {
        match self {
            Distance::Near => &[0.3, 0.125, 0.04, 0.5, 0.25],
            Distance::Mid => &[0.61, 0.42, 0.4, 0.45, 0.8, 0.05],
            Distance::Far => &[0.99, 0.25, 0.5, 0.625, 0.8, 0.08],
        }
    }
}

/// Power save as phones and laptops do it between packets.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Sleep {
    /// Falls asleep after so long without a frame, ms. What comes for it then waits
    /// at the access point for the next beacon.
    pub after_ms: f64,
}

/// Moving between two access points of one network.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Roam {
    /// Mean time between two moves, ms.
    pub every_ms: f64,
    /// Neither side hears the other meanwhile, ms; what the old access point still
    /// sends is gone.
    pub silence_ms: f64,
}

/// Another client with its own traffic, which comes in bursts.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(default, deny_unknown_fields)]
pub struct Neighbour {
    /// Between it and the access point.
    pub link: LinkSettings,
    /// Mbit/s towards it, on average.
    pub down_mbit: f64,
    /// Mbit/s from it, on average.
    pub up_mbit: f64,
    /// Packets of 1,500 bytes that come at once.
    pub burst: u32,
}

impl Default for Neighbour {
    fn default() -> Neighbour {
        Neighbour { link: LinkSettings::default(), down_mbit: 2.0, up_mbit: 0.2, burst: 10 }
    }
}

impl Settings {
    /// The preset of a name, or what loses a chosen share; the error tells which there are.
    pub fn preset(name: &str) -> Result<Settings, String> {
        let mut presets = Settings::presets();
        presets.append(&mut Settings::lossy());
        presets.remove(name).ok_or_else(|| {
            let names: Vec<String> = presets.into_keys().collect();
            format!("'{name}' is none of {}", names.join(", "))
        })
    }

    /// All presets by their names.
    pub fn presets() -> BTreeMap<String, Settings> {
        toml::from_str(PRESETS).expect("tested: the file in this crate is valid")
    }

    /// Airs that lose a chosen share of the packets, by their names.
    pub fn lossy() -> BTreeMap<String, Settings> {
        toml::from_str(LOSSY).expect("tested: the file in this crate is valid")
    }

    /// The same air on which every frame is tried until it arrives: what the losses
    /// cost shows against this.
    pub fn without_loss(mut self) -> Settings {
        self.radio.attempts = u32::MAX;
        self.roam = None;
        self
    }

    /// These, if they make sense; the error names what does not and what would.
    pub fn checked(self) -> Result<Settings, String> {
        check::check(&self).map(|()| self)
    }

    /// Settings from a file's text, in the form of one preset.
    pub fn parse(text: &str) -> Result<Settings, String> {
        toml::from_str::<Settings>(text).map_err(|error| error.to_string())?.checked()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_can_be_named_and_says_what_it_is() {
        let names: Vec<String> = Settings::presets().into_keys().collect();
        assert_eq!(
            names,
            [
                "bursts",
                "busy",
                "clean",
                "crowded",
                "far",
                "good",
                "poor",
                "poor-no-bar",
                "roam",
                "sleepy"
            ]
        );
        for name in names {
            assert!(!Settings::preset(&name).unwrap().about.is_empty());
        }
        let error = Settings::preset("perfect").unwrap_err();
        assert!(error.contains("poor-no-bar"), "{error}");
    }

    #[test]
    fn a_lossy_air_loses_what_its_name_says() {
        for (name, settings) in Settings::lossy() {
            let settings = settings.checked().unwrap();
            let percent = 100.0 * settings.link.errors.good.powi(settings.radio.attempts as i32);
            let plain = name.strip_suffix("-no-bar");
            let name_of_rate = plain.unwrap_or(&name);
            let (kind, rate) = name_of_rate.split_once('-').unwrap_or((name_of_rate, "65"));
            let promised: f64 = kind.strip_prefix("lossy").map_or(0.0, |it| it.parse().unwrap());
            assert!((percent - promised).abs() < 0.06, "{name}: {percent}");
            assert_eq!(settings.link.rate_mbit(), rate.parse().unwrap());
            assert_eq!(settings.radio.bar, plain.is_none());
            assert_eq!(Settings::preset(&name).unwrap().about, settings.about);
        }
    }

    #[test]
    fn a_distance_brings_its_rate_and_its_errors() {
        let far = Settings::preset("far").unwrap().link;
        assert_eq!((far.rate_mbit(), far.errors().by_attempt[0]), (13.0, 0.99));
        let poor = Settings::preset("poor").unwrap();
        assert_eq!((poor.link.rate_mbit(), poor.link.errors().bad), (65.0, 0.9));
        assert!(poor.radio.bar && !Settings::preset("poor-no-bar").unwrap().radio.bar);
    }

    #[test]
    fn says_what_is_wrong_in_a_file() {
        assert!(Settings::parse("radio.atempts = 4").unwrap_err().contains("atempts"));
    }
}
