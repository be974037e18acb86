// SPDX-License-Identifier: GPL-2.0-or-later
//! How many copies may be sent.
//!
//! Two bounds. *Tokens* keep needless copies rare where nothing is lost: they
//! are earned by repairs that were seen to work and spent by every copy. The
//! *share* is the configured limit of airtime for a flow beyond what the sender
//! would have had to send again by itself.

use crate::measure::hop::HopState;
use crate::store::recent::Recent;
use crate::tunables::Tunables;

/// Tokens are counted in thousandths of a copy.
const ONE: i32 = 1000;
/// Copies that a clean hop has at first (chosen: one is enough to find out that it is not).
const CLEAN_COPIES: i32 = 1;
/// Repairs that are remembered (chosen: a few more than make a hop very lossy).
const REPAIRS: usize = 8;

#[derive(Clone, Debug)]
pub(crate) struct Budget {
    tunables: Tunables,
    tokens: i32,
    repairs: Recent<u64, REPAIRS>,
    /// Copies beyond one for each gap that was repaired.
    extra: u64,
    packets: u64,
}

impl Budget {
    pub fn new(hop: HopState, tunables: Tunables) -> Budget {
        let mut repairs = Recent::new();
        let cap = tunables.budget_cap() * ONE;
        let tokens = match hop {
            HopState::Clean => CLEAN_COPIES * ONE,
            HopState::New => tunables.budget_new() * ONE,
            HopState::Lossy => {
                repairs.push(0);
                cap
            }
            HopState::VeryLossy => {
                (0..REPAIRS).for_each(|_| repairs.push(0));
                cap
            }
        };
        Budget { tunables, tokens, repairs, extra: 0, packets: 0 }
    }

    /// A packet was sent on; `late` if the host may be so late that a reply names a window of packets.
    pub fn forwarded(&mut self, late: bool) {
        self.packets += 1;
        let earned = if late && self.proven() {
            self.tunables.budget_per_late_packet()
        } else {
            self.tunables.budget_per_packet()
        };
        self.tokens = (self.tokens + earned).min(self.cap());
    }

    /// A copy was sent, for whatever reason.
    pub fn copied(&mut self) {
        self.extra += 1;
    }

    /// A copy repaired a gap: the sender did not have to send that packet, so it is not airtime
    /// that the share has to limit.
    pub fn repaired(&mut self) {
        self.extra = self.extra.saturating_sub(1);
    }

    /// A copy was sent for a gap.
    pub fn spend(&mut self) {
        self.tokens = self.tokens.saturating_sub(ONE).max(-self.cap());
    }

    /// A reply came when the reply to a copy was due, and showed the gap closed.
    pub fn earn(&mut self) {
        self.repairs.push(self.packets);
        let earned = self.tunables.budget_per_repair() * ONE;
        self.tokens = (self.tokens + earned).min(self.cap());
        if self.very_lossy() {
            self.tokens = self.cap();
        }
    }

    /// Tokens that can be saved up.
    fn cap(&self) -> i32 {
        self.tunables.budget_cap() * ONE
    }

    fn repairs_within(&self, packets: u64) -> usize {
        self.repairs.iter().filter(|at| at.saturating_add(packets) > self.packets).count()
    }

    /// Whether a gap was repaired within the last few hundred packets.
    pub fn proven(&self) -> bool {
        self.repairs_within(self.tunables.proven_packets()) > 0
    }

    /// Whether a copy may be sent on mere suspicion.
    pub fn speculative(&self) -> bool {
        let percent = if self.very_lossy() { 100 } else { self.tunables.suspicion_percent() };
        self.proven() && self.leaves_one(0, percent)
    }

    /// Copies allowed for a first attempt: some are always free to go, or a hop could never
    /// be proven lossy. More of them where a reply names but a `window` of packets: one would mostly be
    /// another packet's, and prove nothing.
    pub fn first_attempt(&self, sharp: bool, window: bool) -> usize {
        let tunables = &self.tunables;
        let wide = window || self.proven();
        let free = if wide { tunables.usual_width() } else { tunables.free_copies() };
        self.tokens(sharp).max(free)
    }

    pub fn very_lossy(&self) -> bool {
        self.repairs_within(self.tunables.very_lossy_packets())
            >= self.tunables.very_lossy_repairs()
    }

    /// Copies that the tokens allow now. Where timing is not `sharp` a first
    /// attempt often misses, and copies in vain prove nothing.
    pub fn tokens(&self, sharp: bool) -> usize {
        let tokens = (self.tokens.max(0) / ONE) as usize;
        if self.proven() && (self.tokens > -self.tunables.proven_debt() * ONE || !sharp) {
            tokens.max(self.tunables.proven_copies())
        } else {
            tokens
        }
    }

    /// Whether one more copy stays within the configured share.
    pub fn within_share(&self, percent: u32) -> bool {
        percent > 0 && self.leaves_one(self.tunables.share_allowance(), percent)
    }

    /// Whether one more copy beyond `free` ones is within so many of a hundred packets.
    // Inlined it takes 50 to 110 bytes more on MIPS.
    #[inline(never)]
    fn leaves_one(&self, free: u64, percent: u32) -> bool {
        let charged = (self.extra + 1).saturating_sub(free);
        charged.saturating_mul(100) <= self.packets.saturating_mul(u64::from(percent))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_spent_and_earned() {
        let mut b = Budget::new(HopState::New, Tunables::DEFAULT);
        assert_eq!((b.tokens(true), b.first_attempt(true, false)), (6, 6));
        for _ in 0..6 {
            b.spend();
        }
        assert_eq!((b.tokens(true), b.proven()), (0, false));
        assert_eq!(b.first_attempt(true, false), 1, "or the hop could never be proven lossy");
        assert_eq!(b.first_attempt(true, true), 3, "of a window one proves nothing");
        b.earn();
        assert_eq!((b.tokens(true), b.proven()), (8, true));
        for _ in 0..8 {
            b.spend();
        }
        assert_eq!(b.tokens(true), 8, "guaranteed while proven");
        for _ in 0..24 {
            b.spend();
        }
        assert_eq!((b.tokens(true), b.tokens(false)), (0, 8), "unless all was in vain");
        assert_eq!(b.first_attempt(true, false), 3, "the usual width on a lossy hop");
        for _ in 0..601 {
            b.forwarded(false);
        }
        assert_eq!((b.tokens(false), b.proven()), (0, false));
    }

    #[test]
    fn what_the_hop_has_shown_sets_the_start() {
        assert_eq!(Budget::new(HopState::Clean, Tunables::DEFAULT).tokens(true), 1);
        assert_eq!(Budget::new(HopState::Lossy, Tunables::DEFAULT).tokens(true), 48);
        assert!(Budget::new(HopState::Lossy, Tunables::DEFAULT).proven());
        assert!(!Budget::new(HopState::Lossy, Tunables::DEFAULT).very_lossy());
        assert!(Budget::new(HopState::VeryLossy, Tunables::DEFAULT).very_lossy());
    }

    #[test]
    fn suspicion_is_for_lossy_hops_and_has_a_limit() {
        let copies = |hop| {
            let mut b = Budget::new(hop, Tunables::DEFAULT);
            (0..500)
                .filter(|_| {
                    b.forwarded(false);
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
    fn packets_earn_what_a_late_host_costs_where_the_hop_is_proven() {
        let spent = |hop, late| {
            let mut b = Budget::new(hop, Tunables::DEFAULT);
            (0..96).for_each(|_| b.spend());
            (0..250).for_each(|_| b.forwarded(late));
            b.tokens
        };
        assert_eq!(spent(HopState::Lossy, true) - spent(HopState::Lossy, false), 250 * 58);
        assert_eq!(spent(HopState::New, true), spent(HopState::New, false), "nothing is proven");
    }

    #[test]
    fn the_share_is_a_hard_limit() {
        let mut b = Budget::new(HopState::VeryLossy, Tunables::DEFAULT);
        let mut copies = 0;
        for _ in 0..1000 {
            b.forwarded(false);
            b.earn();
            while b.within_share(10) {
                b.copied();
                copies += 1;
            }
        }
        assert_eq!(copies, 148);
        b.repaired();
        assert!(b.within_share(10), "what repaired a gap is not counted");
        assert!(!Budget::new(HopState::New, Tunables::DEFAULT).within_share(0));
    }
}
