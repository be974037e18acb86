// SPDX-License-Identifier: GPL-2.0-or-later
//! What drivers mean by `tx_failed`. README.md says where each was read.

/// What a driver counts as failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counting {
    /// Packets lost after all attempts.
    Losses,
    /// These and every retry: what was lost is the difference of the two counters.
    LossesAndRetries,
    /// Nobody has read the driver, or it counts reports of hardware whose meaning is unknown:
    /// not more than this was lost.
    AtMost,
}

impl Counting {
    /// By the driver's name, as ethtool tells it.
    pub fn of(driver: &str) -> Counting {
        match driver {
            // mt7915, mt7916; mt7981, mt7986; mt7996, mt7992, mt7990.
            "mt7915e" | "mt798x-wmac" | "mt7996e" => Counting::LossesAndRetries,
            // mt7603; mt7628, mt7688; mt7921, mt7922; mt7925.
            "mt7603e" | "mt76_wmac" | "mt7921e" | "mt7925e" | "mac80211_hwsim" => Counting::Losses,
            _ if ["ath9k", "ath10k", "ath11k"].iter().any(|name| begins(driver, name)) => {
                Counting::Losses
            }
            _ => Counting::AtMost,
        }
    }
}

/// ath10k_pci and ath10k_ahb count alike; ath9k_htc is another driver, whose firmware retries.
fn begins(driver: &str, name: &str) -> bool {
    driver.strip_prefix(name).is_some_and(|bus| matches!(bus, "" | "_pci" | "_ahb"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_at_most() {
        assert_eq!(Counting::of("mt798x-wmac"), Counting::LossesAndRetries);
        for driver in ["ath9k", "ath10k_ahb", "ath11k_pci", "ath11k", "mt76_wmac"] {
            assert_eq!(Counting::of(driver), Counting::Losses, "{driver}");
        }
        for driver in ["", "ath9k_htc", "ath12k_pci", "mt7615e", "mt7915e_hif", "iwlwifi"] {
            assert_eq!(Counting::of(driver), Counting::AtMost, "{driver}");
        }
    }
}
