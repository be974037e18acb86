// SPDX-License-Identifier: GPL-2.0-or-later
//! Whether the sizes of a client's replies vary for other reasons than gaps.

/// Bytes by which neither a gap nor a few make a reply longer: a size that varies for other reasons
/// is odd as often as even.
const NO_GAP: [i32; 2] = [3, 7];
/// The share of such replies follows each by one part in this many (chosen: those of a second at
/// 10 Mbit/s), and from this share on, in 1024ths, a size alone means nothing (chosen: a client that
/// makes one reply in eight longer by one to six bytes has 43; in the packet logs less than one in
/// a hundred is like that).
const PART: i32 = 128;
const FROM: i32 = 20;
/// At first it follows faster, as if so many had come before (chosen: the fewest with which one such reply
/// alone is not enough, so two are).
const AT_FIRST: i32 = 52;
/// Bytes by which one more range makes a reply longer (RFC 9000, section 19.3.1).
const ONE_RANGE: i32 = 2;

/// Replies that show it still before it closes tell that it was a gap (chosen: one may be as long by
/// chance).
const SHOWN_AGAIN: u8 = 2;

/// How many replies are longer by what no gap is.
#[derive(Clone, Debug, Default)]
pub(crate) struct Restless {
    /// Replies that came, counted up to [`PART`].
    seen: i32,
    /// Their share, in 1024ths.
    share: i32,
    /// What it was before the last one, if that was longer by this and nothing has come since that
    /// was judged; and how many have shown it since.
    before: Option<i32>,
    shown_again: u8,
}

impl Restless {
    pub fn is(&self) -> bool {
        self.share >= FROM
    }

    /// Takes in a reply that is so much longer than the usual one, while so many gaps are open.
    pub fn note(&mut self, open: usize, excess: i32) {
        if open > 0 {
            let still = excess >= ONE_RANGE;
            self.shown_again = self.shown_again.saturating_add(u8::from(still));
            return;
        }
        let odd = NO_GAP.contains(&excess);
        (self.before, self.shown_again) = (odd.then_some(self.share), 0);
        let sample = if odd { 1024 } else { 0 };
        self.seen = (self.seen + 1).min(PART);
        self.share += (sample - self.share) / (self.seen + AT_FIRST).min(PART);
    }

    /// The gap that the last one showed has closed when the reply to a copy was due: if others have shown
    /// it as well it was one, and came with a longer field.
    pub fn closed_by_copy(&mut self) {
        if self.shown_again >= SHOWN_AGAIN {
            self.share = self.before.take().unwrap_or(self.share);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_vary_where_replies_are_longer_by_what_no_gap_is() {
        let after = |replies: [i32; 4]| {
            let mut restless = Restless::default();
            replies.iter().cycle().take(160).for_each(|excess| restless.note(0, *excess));
            restless.is()
        };
        assert!(after([0, 3, 0, 0]) && after([0, 0, 7, 1]));
        assert!(!after([0, 2, 4, 1]), "gaps make them so much longer");
    }

    #[test]
    fn of_the_first_replies_two_are_enough_and_one_is_not() {
        let mut restless = Restless::default();
        restless.note(0, 3);
        assert!(!restless.is());
        (0..20).for_each(|_| restless.note(0, 0));
        restless.note(0, 3);
        assert!(restless.is());
    }

    #[test]
    fn a_gap_with_a_longer_field_is_none_of_them() {
        let after = |shown: &[i32]| {
            let mut restless = Restless::default();
            for _ in 0..40 {
                restless.note(0, 0);
                restless.note(0, 3);
                shown.iter().for_each(|excess| restless.note(1, *excess));
                restless.closed_by_copy();
            }
            restless
        };
        assert!(!after(&[3, 3]).is() && !after(&[2, 5, 0]).is());
        assert!(after(&[]).is() && after(&[3, 0]).is(), "it may be by chance");
        let mut restless = after(&[3, 3]);
        (0..3).for_each(|_| restless.note(0, 3));
        restless.note(0, 0);
        restless.closed_by_copy();
        assert!(restless.is(), "what came since was judged");
    }
}
