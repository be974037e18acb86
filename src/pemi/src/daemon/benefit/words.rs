// SPDX-License-Identifier: GPL-2.0-or-later
//! What came of the comparison, in a sentence.

use super::estimate::{Estimate, ONE};

/// Less than this nobody feels, however certain it is: to look at packets at all may cost a little (chosen).
const LITTLE: u32 = ONE / 50;

/// What is known of a network.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub estimate: Option<Estimate>,
    pub helped: usize,
    pub alone: usize,
    /// Help is off because it did harm, for so many seconds more.
    pub back_s: Option<u64>,
    /// Chance leaves flows alone at all.
    pub compares: bool,
}

/// What it comes to, for programs.
pub fn verdict(known: &Known) -> &'static str {
    match known.estimate.and_then(|it| it.between) {
        _ if known.back_s.is_some() => "stands back",
        Some((low, high)) if low >= ONE - LITTLE && high <= ONE + LITTLE => "no difference",
        Some((low, _)) if low > ONE => "helps",
        Some((_, high)) if high < ONE => "harms",
        Some(_) => "no difference",
        None if !known.compares => "not compared",
        None => "unknown",
    }
}

/// The sentence.
pub fn sentence(known: &Known) -> String {
    let counts = format!("{} helped, {} left alone", known.helped, known.alone);
    let times = |it: Estimate| match it.between {
        Some((low, high)) => {
            let (low, high) = (thousandths(low), thousandths(high));
            format!("{} times as fast ({low} to {high}; {counts})", thousandths(it.ratio))
        }
        None => format!("{} times as fast ({counts})", thousandths(it.ratio)),
    };
    match (verdict(known), known.estimate) {
        ("stands back", Some(it)) => {
            let hours = known.back_s.unwrap_or(0).div_ceil(3600);
            format!(
                "Help is off: with it downloads were {}. It is tried again in {hours} h.",
                times(it)
            )
        }
        ("helps" | "harms", Some(it)) => format!("With help, downloads were {}.", times(it)),
        ("no difference", Some(it)) => {
            format!("No difference yet: with help, downloads were {}.", times(it))
        }
        _ if !known.compares => {
            "Nothing to compare: option control_percent leaves no flow alone.".into()
        }
        _ => format!("Too few downloads of more than 500 kB to tell yet ({counts})."),
    }
}

/// Thousandths with two digits that matter.
fn thousandths(value: u32) -> String {
    match value {
        0..995 => format!("0.{:02}", (value + 5) / 10),
        995..9950 => format!("{}.{}", (value + 50) / 1000, (value + 50) / 100 % 10),
        _ => ((value.saturating_add(500)) / 1000).to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn known(ratio: u32, between: Option<(u32, u32)>) -> Known {
        let estimate = Some(Estimate { ratio, between });
        Known { estimate, helped: 212, alone: 14, back_s: None, compares: true }
    }

    #[test]
    fn sentences() {
        let helps = known(1804, Some((1512, 2196)));
        assert_eq!(
            sentence(&helps),
            "With help, downloads were 1.8 times as fast (1.5 to 2.2; 212 helped, 14 left alone)."
        );
        let same = known(1010, Some((940, 1100)));
        assert_eq!(verdict(&same), "no difference");
        assert!(
            sentence(&same).starts_with("No difference yet: with help, downloads were 1.0 times")
        );
        let little = [(997, 999), (980, 990), (1001, 1020)];
        assert!(little.iter().all(|it| verdict(&known(1000, Some(*it))) == "no difference"));
        assert_eq!(verdict(&known(985, Some((979, 990)))), "harms");
        assert_eq!(verdict(&known(1020, Some((1001, 1021)))), "helps");
        let harms = known(804, Some((700, 910)));
        assert!(sentence(&harms).contains("0.80 times as fast (0.70 to 0.91;"));
        let back = Known { back_s: Some(86_000), ..harms };
        assert_eq!(verdict(&back), "stands back");
        assert!(sentence(&back).ends_with("It is tried again in 24 h."));
        let few = Known { estimate: None, alone: 0, helped: 3, ..same };
        assert!(sentence(&few).ends_with("to tell yet (3 helped, 0 left alone)."));
        assert_eq!(verdict(&known(2000, None)), "unknown");
        let off = Known { compares: false, ..few };
        assert_eq!((verdict(&few), verdict(&off)), ("unknown", "not compared"));
        assert!(sentence(&off).contains("control_percent"));
    }

    #[test]
    fn numbers() {
        let texts = [0, 4, 994, 995, 1049, 1050, 9949, 9950, 12_499, u32::MAX].map(thousandths);
        assert_eq!(
            texts,
            ["0.00", "0.00", "0.99", "1.0", "1.0", "1.1", "9.9", "10", "12", "4294967"]
        );
    }
}
