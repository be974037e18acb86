// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether gaps show in the sizes of a client's replies: those of one that fills them up to one size
//! never seem to show any.

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Hidden {
    /// Gaps that a copy has closed although no size had shown them, and those that one seemed to show.
    hidden: u8,
    shown: u8,
}

impl Hidden {
    /// A copy has closed a gap that was noticed although its reply was as long as all others.
    pub fn closed(&mut self) {
        self.hidden = self.hidden.saturating_add(1);
    }

    /// A size seemed to show a gap.
    pub fn shown(&mut self) {
        self.shown = self.shown.saturating_add(1);
    }

    /// Whether gaps rather do not show.
    pub fn mostly(&self) -> bool {
        self.hidden > self.shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_hidden_outweighs_what_a_frame_of_the_clients_own_may_show() {
        let mut hidden = Hidden::default();
        assert!(!hidden.mostly(), "nobody knows");
        hidden.closed();
        assert!(hidden.mostly());
        hidden.shown();
        assert!(!hidden.mostly());
        hidden.closed();
        assert!(hidden.mostly());
        (0..300).for_each(|_| hidden.shown());
        assert!(!hidden.mostly());
    }
}
