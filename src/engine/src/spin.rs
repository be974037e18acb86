//! The round trip as the spin bit shows it (RFC 9000, section 17.4).
//!
//! Whoever opened the connection turns the bit once a round trip and the other
//! end follows, so the time from a turn going out to the same turn coming back
//! is the round trip beyond this point. It is in the clear. Endpoints are free
//! not to spin, and then send anything: only turns that alternate properly, one
//! out and one back, are believed.

const SPIN_BIT: u8 = 0x20;
/// Proper turns in a row before one counts. A constant bit never turns, and a
/// random one breaks the order within a few packets.
const PROPER: u32 = 3;

/// What a packet did to the bit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Turn {
    /// It went out turned.
    Out,
    /// The last turn that went out came back.
    Back,
    /// The ends do not spin, or not both.
    Odd,
}

/// One flow's spin bit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Spin {
    out: Option<bool>,
    back: Option<bool>,
    /// A turn is under way.
    turned: bool,
    proper: u32,
}

impl Spin {
    /// A packet with a short header and this first byte.
    pub fn look(&mut self, back: bool, first: u8) -> Option<Turn> {
        let bit = first & SPIN_BIT != 0;
        let last = if back { &mut self.back } else { &mut self.out };
        if last.replace(bit)? == bit {
            return None;
        }
        let proper = if back { self.turned && self.out == Some(bit) } else { !self.turned };
        self.turned = !back;
        if !proper {
            self.proper = 0;
            return Some(Turn::Odd);
        }
        if !back {
            return Some(Turn::Out);
        }
        self.proper = self.proper.saturating_add(1);
        (self.proper >= PROPER).then_some(Turn::Back)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn turns_come_back() {
        let mut spin = Spin::default();
        let mut turns = alloc::vec::Vec::new();
        for ms in 0..500 {
            // Every 60 ms a turn goes out; it is back after 50 ms.
            let out = spin.look(false, ((ms / 60 % 2) as u8) << 5);
            let back =
                if ms < 50 { None } else { spin.look(true, (((ms - 50) / 60 % 2) as u8) << 5) };
            turns.extend(out.into_iter().chain(back).map(|turn| (ms, turn)));
        }
        assert_eq!(turns[..2], [(60, Turn::Out), (120, Turn::Out)], "the first few do not count");
        assert_eq!(turns[3..6], [(230, Turn::Back), (240, Turn::Out), (290, Turn::Back)]);
        assert!(turns.iter().all(|(_, turn)| *turn != Turn::Odd));
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
                let turn = spin.look(true, if server { 0x40 } else { bits[1] });
                back += usize::from(turn == Some(Turn::Back));
            }
            // Two coins agree for a while now and then.
            assert!(back < if client || server { 1 } else { 500 }, "{client} {server} {back}");
        }
    }
}
