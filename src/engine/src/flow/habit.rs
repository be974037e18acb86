// SPDX-License-Identifier: GPL-2.0-or-later
//! What a flow keeps of how its client acknowledges for the client's next flow, and what it takes
//! up of what others kept.

use super::Flow;
use crate::flow::context::Context;
use crate::measure::habit::Habit;
use crate::rules::Rule;

/// Packets after which a steady habit is kept (chosen: twenty replies to ten packets each, as many
/// as show that all are of one size, and half as many again).
const KEPT_AFTER: u64 = 300;

impl Flow {
    /// Takes up the habit that the client's first counts are those of, or keeps one that this flow
    /// has had for long enough.
    pub(super) fn follow_habit(&mut self, cx: &mut Context<'_>) {
        if !cx.config.has(Rule::Habit) {
            return;
        }
        if let Some(count) = self.rhythm.first_counts() {
            if let Some(habit) = cx.hop.habits.of(cx.now, count) {
                self.rhythm.take_up(habit);
                self.sizes.expect_alike(habit.alike);
                self.paired_before = habit.paired;
            }
        } else if self.packets >= KEPT_AFTER {
            self.keep_habit(cx, false);
        }
    }

    /// Keeps what the client counts to, and whether its replies are all of one size; `paired` if they are and a
    /// loss has shown while packets changed places.
    pub(super) fn keep_habit(&self, cx: &mut Context<'_>, paired: bool) {
        if let Some((count, timer)) = self.rhythm.known_count(paired) {
            let alike = paired || self.sizes.all_alike();
            cx.hop.habits.keep(cx.now, Habit { count, alike, paired, timer });
        }
    }
}
