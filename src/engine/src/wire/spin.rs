// SPDX-License-Identifier: GPL-2.0-or-later
//! The round trip as the spin bit shows it (RFC 9000, section 17.4).
//!
//! Whoever opened the connection changes the bit once a round trip and the other
//! end follows, so the time from such an edge going out to the same edge coming back
//! is the round trip beyond this point. It is in the clear. Endpoints are free
//! not to spin, and then send anything: only edges that alternate properly, one
//! out and one back, are believed.

/// The spin bit of the first byte of a short header (RFC 9000, section 17.3.1).
const SPIN_BIT: u8 = 0x20;
/// Proper edges in a row before one counts. A constant bit has no edge, and a
/// random one breaks the order within a few packets (chosen: one random bit in eight gets here).
const PROPER: u32 = 3;

/// What a packet did to the bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Edge {
    /// One went out.
    Out,
    /// The last one that went out came back.
    Back,
    /// The ends do not spin, or not both.
    Odd,
}

/// One flow's spin bit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spin {
    out: Option<bool>,
    back: Option<bool>,
    /// An edge is under way.
    under_way: bool,
    proper: u32,
}

impl Spin {
    /// A packet with a short header and this first byte.
    pub fn look(&mut self, back: bool, first: u8) -> Option<Edge> {
        let bit = first & SPIN_BIT != 0;
        let last = if back { &mut self.back } else { &mut self.out };
        if last.replace(bit)? == bit {
            return None;
        }
        let proper = if back { self.under_way && self.out == Some(bit) } else { !self.under_way };
        self.under_way = !back;
        if !proper {
            self.proper = 0;
            return Some(Edge::Odd);
        }
        if !back {
            return Some(Edge::Out);
        }
        self.proper = self.proper.saturating_add(1);
        (self.proper >= PROPER).then_some(Edge::Back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edges_come_back() {
        let mut spin = Spin::default();
        let mut edges = alloc::vec::Vec::new();
        for ms in 0..500 {
            // Every 60 ms an edge goes out; it is back after 50 ms.
            let out = spin.look(false, ((ms / 60 % 2) as u8) << 5);
            let back =
                if ms < 50 { None } else { spin.look(true, (((ms - 50) / 60 % 2) as u8) << 5) };
            edges.extend(out.into_iter().chain(back).map(|edge| (ms, edge)));
        }
        assert_eq!(edges[..2], [(60, Edge::Out), (120, Edge::Out)], "the first few do not count");
        assert_eq!(edges[3..6], [(230, Edge::Back), (240, Edge::Out), (290, Edge::Back)]);
        assert!(edges.iter().all(|(_, edge)| *edge != Edge::Odd));
    }

    #[test]
    fn ends_that_do_not_spin_show_nothing() {
        let mut random = 7u64;
        for (client, server) in [(true, false), (false, true), (false, false), (true, true)] {
            let mut spin = Spin::default();
            let mut back = 0;
            for _ in 0..3000 {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                // Constant where it is not random.
                let bits = [(random >> 40) as u8, (random >> 50) as u8];
                spin.look(false, if client { 0x40 } else { bits[0] });
                let edge = spin.look(true, if server { 0x40 } else { bits[1] });
                back += usize::from(edge == Some(Edge::Back));
            }
            // Two coins agree for a while now and then.
            assert!(back < if client || server { 1 } else { 500 }, "{client} {server} {back}");
        }
    }
}
