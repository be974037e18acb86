//! How many copies may be sent.
//!
//! Two bounds. *Tokens* keep needless copies rare where nothing is lost: they
//! are earned by repairs that were seen to work and spent by every copy. The
//! *share* is the configured limit of airtime for a flow beyond what the sender
//! would have had to send again by itself.

use crate::hop::HopState;
use crate::recent::Recent;
use crate::refill::USUAL_WIDTH;

/// Tokens are counted in thousandths.
const ONE: i32 = 1000;
/// Earned with each forwarded packet.
const PER_PACKET: i32 = 2;
const PER_HEAL: i32 = 8 * ONE;
const CAP: i32 = 48 * ONE;
/// A heal within this many forwarded packets proves the hop lossy ...
const PROVEN_PACKETS: u64 = 600;
/// ... and guarantees this many copies at a time ...
const PROVEN_COPIES: usize = 8;
/// ... until so many were sent in vain.
const PROVEN_DEBT: i32 = -8 * ONE;
/// This many heals within [`LOSSY_PACKETS`] say that the hop loses more than
/// about 1.5 %: width pays more than it costs.
const LOSSY_HEALS: usize = 6;
const LOSSY_PACKETS: u64 = 400;
/// Copies allowed beyond the configured share, so that short flows get help.
const SHARE_ALLOWANCE: u64 = 48;

/// Copies on mere suspicion are sent while all that filled no hole are together
/// below this share, in percent: on a lossy hop they are worth that much. On a
/// very lossy one only the configured share limits them.
const SUSPICION_PERCENT: u64 = 9;

#[derive(Clone, Debug)]
pub(crate) struct Budget {
    tokens: i32,
    heals: Recent<u64, 8>,
    /// Copies beyond one for each hole that was seen filled.
    extra: u64,
    packets: u64,
}

impl Budget {
    pub fn new(hop: HopState) -> Budget {
        let mut heals = Recent::new();
        let tokens = match hop {
            HopState::Clean => ONE,
            HopState::New => 12 * ONE,
            HopState::Lossy => {
                heals.push(0);
                CAP
            }
            HopState::VeryLossy => {
                for _ in 0..8 {
                    heals.push(0);
                }
                CAP
            }
        };
        Budget { tokens, heals, extra: 0, packets: 0 }
    }

    pub fn forwarded(&mut self) {
        self.packets += 1;
        self.tokens = (self.tokens + PER_PACKET).min(CAP);
    }

    /// A copy was sent, for whatever reason.
    pub fn copied(&mut self) {
        self.extra += 1;
    }

    /// A copy filled a hole: the sender did not have to send it, so it is not
    /// airtime that the share has to limit.
    pub fn repaired(&mut self) {
        self.extra = self.extra.saturating_sub(1);
    }

    /// A copy was sent for a hole.
    pub fn spend(&mut self) {
        self.tokens = self.tokens.saturating_sub(ONE).max(-CAP);
    }

    /// A reply came when a copy's answer was due and showed the hole filled.
    pub fn healed(&mut self) {
        self.heals.push(self.packets);
        self.tokens = (self.tokens + PER_HEAL).min(CAP);
        if self.very_lossy() {
            self.tokens = CAP;
        }
    }

    fn heals_within(&self, packets: u64) -> usize {
        self.heals.iter().filter(|at| at.saturating_add(packets) > self.packets).count()
    }

    /// Whether a repair worked lately.
    pub fn proven(&self) -> bool {
        self.heals_within(PROVEN_PACKETS) > 0
    }

    /// Whether a copy may be sent on mere suspicion.
    pub fn speculative(&self) -> bool {
        let percent = if self.very_lossy() { 100 } else { SUSPICION_PERCENT };
        self.proven() && self.extra.saturating_mul(100) < self.packets * percent
    }

    /// Copies allowed for a first attempt: a few are always free to go, or a
    /// hop could never be proven lossy.
    pub fn first_attempt(&self, sharp: bool) -> usize {
        self.tokens(sharp).max(USUAL_WIDTH)
    }

    pub fn very_lossy(&self) -> bool {
        self.heals_within(LOSSY_PACKETS) >= LOSSY_HEALS
    }

    /// Copies that the tokens allow now. Where timing is not `sharp` a first
    /// attempt often misses, and copies in vain prove nothing.
    pub fn tokens(&self, sharp: bool) -> usize {
        let tokens = (self.tokens.max(0) / ONE) as usize;
        if self.proven() && (self.tokens > PROVEN_DEBT || !sharp) {
            tokens.max(PROVEN_COPIES)
        } else {
            tokens
        }
    }

    /// Whether one more copy stays within the configured share.
    pub fn within_share(&self, percent: u32) -> bool {
        percent > 0
            && self.extra < SHARE_ALLOWANCE + self.packets.saturating_mul(u64::from(percent)) / 100
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_spent_and_earned() {
        let mut b = Budget::new(HopState::New);
        assert_eq!(b.tokens(true), 12);
        for _ in 0..12 {
            b.spend();
        }
        assert_eq!((b.tokens(true), b.proven()), (0, false));
        b.healed();
        assert_eq!((b.tokens(true), b.proven()), (8, true));
        for _ in 0..8 {
            b.spend();
        }
        assert_eq!(b.tokens(true), 8, "guaranteed while proven");
        for _ in 0..24 {
            b.spend();
        }
        assert_eq!((b.tokens(true), b.tokens(false)), (0, 8), "unless all was in vain");
        for _ in 0..601 {
            b.forwarded();
        }
        assert_eq!((b.tokens(false), b.proven()), (0, false));
    }

    #[test]
    fn what_the_hop_has_shown_sets_the_start() {
        assert_eq!(Budget::new(HopState::Clean).tokens(true), 1);
        assert_eq!(Budget::new(HopState::Lossy).tokens(true), 48);
        assert!(Budget::new(HopState::Lossy).proven());
        assert!(!Budget::new(HopState::Lossy).very_lossy());
        assert!(Budget::new(HopState::VeryLossy).very_lossy());
    }

    #[test]
    fn suspicion_is_for_lossy_hops_and_has_a_limit() {
        let copies = |hop| {
            let mut b = Budget::new(hop);
            (0..500)
                .filter(|_| {
                    b.forwarded();
                    let copy = b.speculative();
                    if copy {
                        b.copied();
                    }
                    copy
                })
                .count()
        };
        assert_eq!((copies(HopState::New), copies(HopState::Lossy)), (0, 45));
    }

    #[test]
    fn the_share_is_a_hard_limit() {
        let mut b = Budget::new(HopState::VeryLossy);
        let mut copies = 0;
        for _ in 0..1000 {
            b.forwarded();
            b.healed();
            while b.within_share(10) {
                b.copied();
                copies += 1;
            }
        }
        assert_eq!(copies, 148);
        b.repaired();
        assert!(b.within_share(10), "what filled a hole is not counted");
        assert!(!Budget::new(HopState::New).within_share(0));
    }
}
