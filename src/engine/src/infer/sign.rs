// SPDX-License-Identifier: GPL-2.0-or-later
//! The signs by which a reply reveals a gap.

use crate::rules::Rule;
use crate::time::Time;

/// How a gap showed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct GapSign {
    /// Size step, 2 to 4 bytes.
    pub step: i32,
    /// Step above the base.
    pub excess: i32,
    pub kind: SignKind,
    /// The reply's size showed nothing, so that of the reply to its repair will not either.
    pub silent: bool,
    /// When the first reply that showed it came.
    pub shown: Time,
}

/// What revealed a gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignKind {
    /// The two bytes of one more range.
    Step,
    /// Three or four bytes: a range and something else, or something else
    /// alone.
    LongStep,
    /// Two bytes above the smallest recent size, but only one above the last.
    Floor,
    /// The rhythm of a decimating client.
    Rhythm,
    /// One packet more than a steady count, and nothing else.
    Skip,
    /// Some bytes less: frames of the client's own wait while there is a gap.
    Shorter,
    /// The two bytes in two replies in a row of a client whose sizes vary for other reasons.
    Repeated,
}

impl SignKind {
    /// How many kinds there are.
    pub const COUNT: usize = 7;

    /// Whether it is a reply's size that shows the gap.
    pub fn by_size(self) -> bool {
        !matches!(self, SignKind::Rhythm | SignKind::Skip)
    }

    /// The rule that sees such signs.
    pub fn rule(self) -> Rule {
        match self {
            SignKind::Step | SignKind::LongStep => Rule::Size,
            SignKind::Floor => Rule::Floor,
            SignKind::Rhythm => Rule::Rhythm,
            SignKind::Skip => Rule::Skip,
            SignKind::Shorter => Rule::Shorter,
            SignKind::Repeated => Rule::Repeat,
        }
    }
}
