// SPDX-License-Identifier: GPL-2.0-or-later
//! What is done about one gap: how many copies at first, how many attempts in all, how
//! long the replies to them may take, and whether replies are held meanwhile.
//!
//! All of it follows from what is known when the gap shows. Nothing here looks at a
//! packet or remembers anything.

use crate::infer::sign::SignKind;
use crate::repair::gap::PACKET_THRESHOLD;
use crate::time::Nanos;
use crate::tunables::Tunables;

/// The reply to an attempt is overdue after one and a half local round trips and a margin
/// (chosen: the second half is for what the copy may wait behind).
const SPAN_PERCENT: Nanos = 150;
/// ... and as much of the time for which a client collects a batch (chosen: one that just began
/// and the reading of it).
const BATCH_PERCENT: Nanos = 150;

/// Local round trips for which replies are held in a row before the hop is proven, where they hardly
/// name their packets (chosen: a copy's reply takes one, and comes as much later as that is uncertain).
const UNSURE_RTTS: Nanos = 2;

/// Before the hop is proven nothing is held for longer than one part in so many of the sender's round
/// trip, and nothing where a copy takes as long (chosen: held in vain it costs a download in slow start
/// as much; where the hop is most of the path a loss that is told costs little more).
const DEAR_PART: Nanos = 2;

/// Copies of a window at most (chosen: with a loss in a hundred as many as the share allows).
pub(crate) const WINDOW_WIDTH: usize = 8;

/// What is known when a reply has revealed a gap.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    pub tunables: Tunables,
    /// What revealed the gap.
    pub sign: SignKind,
    /// Sizes show nothing, so that only an answer tells that a copy was needed.
    pub silent: bool,
    /// Signs of this kind have mostly meant nothing on this flow.
    pub weak: bool,
    /// Attempts have worked well enough, and the client's replies do not clump.
    pub armed: bool,
    /// The local round trip, and how much later than that a reply is still on time.
    pub rtt: Nanos,
    pub margin: Nanos,
    /// The sender's, without queues.
    pub round_trip: Nanos,
    /// Replies keep so close to it that they name their packet.
    pub sharp: bool,
    /// A copy has repaired a gap of this flow lately, ...
    pub proven: bool,
    /// ... or enough copies have for width to pay more than it costs.
    pub very_lossy: bool,
    /// The hop has lost nothing for long, ...
    pub clean: bool,
    /// ... or attempts over it were in vain for which no repair has made up.
    pub in_vain: bool,
    /// How the client replies: after so many packets, or rarely, ...
    pub decimating: bool,
    pub replies_often: bool,
    /// ... in batches that take this long (0 if it does not), ...
    pub batch_wait: Nanos,
    /// ... and so rarely that this much has to be waited in addition.
    pub thin_reply_wait: Nanos,
    /// The sender pauses again and again.
    pub pauses: bool,
    /// Copies and their replies may be held up for this long.
    pub held_up: Nanos,
    /// Packets whose replies were due between the previous reply and this one.
    pub since_reply: usize,
    /// Packets of which one is missing, if timing tells only that.
    pub window: Option<usize>,
    /// Copies that the budget allows for a first attempt.
    pub allowed: usize,
    /// Number of the packet most likely lost, 0 if none is likely, and of packets sent.
    pub missing: u64,
    pub sent: u64,
    /// Replies may be held, and for no longer than this.
    pub conceal: Option<Nanos>,
    /// Whether it is asked what a copy overtakes.
    pub heeds_overtaking: bool,
}

/// How many packets the first attempt covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Width {
    Packets(usize),
    /// All that could equally well have triggered the reply.
    Ambiguous,
}

/// What is done about the gap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Attempt {
    pub width: Width,
    /// Copies in the first attempt at most, whatever the width.
    pub allowed: usize,
    /// Attempts to be made in all.
    pub attempts: u32,
    /// How long the reply to one may take.
    pub span: Nanos,
    /// Replies are held, for no longer than this in a row.
    pub hold: Option<Nanos>,
}

/// Decides what is done.
pub(crate) fn plan(facts: &Facts) -> Attempt {
    let span = span(facts);
    Attempt {
        width: width(facts),
        allowed: facts.allowed,
        attempts: attempts(facts),
        span,
        hold: facts
            .conceal
            .filter(|_| worth_holding(facts))
            .map(|cap| cap.min(longest(facts)).min(worthwhile(facts))),
    }
}

fn width(facts: &Facts) -> Width {
    let by_rhythm = facts.sign == SignKind::Rhythm;
    let usual = facts.tunables.usual_width();
    // A weak sign that is a loss after all names its packet no better than others do.
    if !facts.armed || facts.weak && !facts.proven {
        Width::Packets(1)
    } else if let Some(window) = facts.window {
        Width::Packets(window.min(WINDOW_WIDTH))
    } else if facts.batch_wait > 0 {
        // Any packet of the batch.
        Width::Packets(facts.since_reply + 1)
    } else if facts.very_lossy && !(facts.sharp && facts.replies_often) {
        let window = if facts.decimating && by_rhythm { 0 } else { facts.since_reply };
        Width::Packets(usual.max(window))
    } else if by_rhythm || facts.replies_often {
        Width::Ambiguous
    } else {
        Width::Packets(usual.max(facts.since_reply))
    }
}

fn attempts(facts: &Facts) -> u32 {
    let worth = match facts.sign {
        // A skip names its packet surely or is none at all.
        SignKind::Skip => 1,
        _ if facts.weak => 1,
        // A copy that is not answered was not needed, or was lost itself.
        _ if facts.silent => 1,
        SignKind::Rhythm => facts.tunables.attempts_by_rhythm(),
        SignKind::Step
        | SignKind::LongStep
        | SignKind::Floor
        | SignKind::Shorter
        | SignKind::Repeated => facts.tunables.attempts(),
    };
    // Most marks on a hop that loses nothing are none, and where timing is sharp the first try rarely
    // misses a loss.
    if !facts.armed || !facts.proven && (facts.sharp || unsure(facts)) {
        1
    } else if (worth > 1 || facts.silent && !facts.weak) && facts.very_lossy {
        // A copy is lost as easily as anything else.
        worth + 1
    } else {
        worth
    }
}

/// What a copy's reply takes, of a client that does not wait with it.
fn answered_after(facts: &Facts) -> Nanos {
    facts.rtt * SPAN_PERCENT / 100 + facts.margin
}

fn span(facts: &Facts) -> Nanos {
    let thin = match facts.batch_wait {
        _ if facts.sign == SignKind::Rhythm => 0,
        0 => facts.thin_reply_wait,
        wait => wait * BATCH_PERCENT / 100,
    };
    answered_after(facts) + facts.held_up + thin
}

/// Whether replies hardly name their packets: neither one each nor a few that all go again.
fn unsure(facts: &Facts) -> bool {
    !facts.sharp && facts.window.is_none()
}

/// A copy that goes ahead of the third packet after the gap arrives before any reply can
/// make the sender count a loss. On a hop that is not known to lose packets that is enough.
///
/// What is held in vain there costs the sender as long, and in a slow start every round has signs that
/// mean nothing, a packet number that the sender has left out among them. So nothing waits once a hop
/// has lost nothing for long, nor where replies hardly name their packets once one attempt was in vain.
fn worth_holding(facts: &Facts) -> bool {
    let overtakes = facts.heeds_overtaking
        && facts.sharp
        && facts.missing > 0
        && facts.sent < facts.missing + PACKET_THRESHOLD;
    let doubtful =
        facts.clean || facts.in_vain && unsure(facts) || answered_after(facts) > dear(facts);
    facts.armed && (facts.proven || !overtakes && !doubtful)
}

/// Where no copy has repaired anything yet, most signs mean nothing: in a slow start every round
/// has some, and its end is not to be put off.
fn longest(facts: &Facts) -> Nanos {
    if facts.proven {
        return Nanos::MAX;
    }
    let rtts = if unsure(facts) { UNSURE_RTTS } else { facts.tunables.unproven_rtts() };
    (rtts * facts.rtt + facts.held_up).min(dear(facts))
}

/// A sender that pauses, as in a call, has no more to send, so that a smaller window costs it little; and what the
/// client waits for comes a round trip after the sender knows, and not before if replies are held.
fn worthwhile(facts: &Facts) -> Nanos {
    if facts.pauses { facts.round_trip } else { Nanos::MAX }
}

/// What costs the sender more than it is worth where most signs mean nothing.
fn dear(facts: &Facts) -> Nanos {
    facts.round_trip / DEAR_PART
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::time::MS;

    /// A hop that is known to lose packets now and then, and a client that acknowledges
    /// every second packet on time.
    const LOSSY: Facts = Facts {
        tunables: Tunables::DEFAULT,
        sign: SignKind::Step,
        silent: false,
        weak: false,
        armed: true,
        rtt: 2 * MS,
        margin: MS,
        round_trip: 50 * MS,
        sharp: true,
        proven: true,
        very_lossy: false,
        clean: false,
        in_vain: false,
        decimating: false,
        replies_often: true,
        batch_wait: 0,
        held_up: 0,
        thin_reply_wait: 0,
        pauses: false,
        since_reply: 5,
        window: None,
        allowed: 8,
        missing: 10,
        sent: 20,
        conceal: Some(100 * MS),
        heeds_overtaking: true,
    };
    /// The same hop before a copy has repaired a gap.
    const NEW: Facts = Facts { proven: false, ..LOSSY };

    #[test]
    fn a_usual_gap() {
        let attempt = plan(&LOSSY);
        let expected = Attempt {
            width: Width::Ambiguous,
            allowed: 8,
            attempts: 2,
            span: 4 * MS,
            hold: Some(100 * MS),
        };
        assert_eq!(attempt, expected);
    }

    #[test]
    fn what_hardly_works_gets_one_copy() {
        let width = |facts: Facts| plan(&facts).width;
        let lossy = Facts { very_lossy: true, batch_wait: 3 * MS, ..LOSSY };
        assert_eq!(width(Facts { weak: true, proven: false, ..lossy }), Width::Packets(1));
        assert_eq!(width(Facts { armed: false, ..lossy }), Width::Packets(1));
        let attempt = plan(&Facts { armed: false, ..lossy });
        assert_eq!((attempt.attempts, attempt.hold), (1, None));
    }

    #[test]
    fn what_has_mostly_meant_nothing_is_tried_once_and_as_widely_where_gaps_are_repaired() {
        let attempt = plan(&Facts { weak: true, ..LOSSY });
        assert_eq!((attempt.width, attempt.attempts), (Width::Ambiguous, 1));
    }

    #[test]
    fn the_width_is_what_the_client_leaves_in_doubt() {
        let width = |facts: Facts| plan(&facts).width;
        let rarely = Facts { replies_often: false, ..LOSSY };
        assert_eq!(width(Facts { batch_wait: 3 * MS, ..LOSSY }), Width::Packets(6));
        assert_eq!(width(rarely), Width::Packets(5));
        assert_eq!(width(Facts { since_reply: 1, ..rarely }), Width::Packets(3));
        assert_eq!(width(Facts { window: Some(5), ..LOSSY }), Width::Packets(5));
        assert_eq!(width(Facts { window: Some(12), ..LOSSY }), Width::Packets(8), "but no more");
        assert_eq!(width(Facts { sign: SignKind::Rhythm, ..rarely }), Width::Ambiguous);
    }

    #[test]
    fn on_a_very_lossy_hop_width_pays() {
        let width = |facts: Facts| plan(&facts).width;
        let lossy = Facts { very_lossy: true, ..LOSSY };
        assert_eq!(width(lossy), Width::Ambiguous, "timing names the packet");
        assert_eq!(width(Facts { sharp: false, ..lossy }), Width::Packets(5));
        let chromium =
            Facts { decimating: true, replies_often: false, sign: SignKind::Rhythm, ..lossy };
        assert_eq!(width(chromium), Width::Packets(3));
        assert_eq!(plan(&chromium).attempts, 4);
        assert_eq!(plan(&Facts { sign: SignKind::Skip, ..lossy }).attempts, 1);
    }

    #[test]
    fn a_hop_that_lost_nothing_yet_gets_one_attempt() {
        assert_eq!(plan(&NEW).attempts, 1);
        assert_eq!(plan(&Facts { sharp: false, ..NEW }).attempts, 1);
        assert_eq!(plan(&Facts { sharp: false, ..LOSSY }).attempts, 2);
    }

    #[test]
    fn nothing_is_held_where_signs_have_meant_nothing() {
        let hold = |facts: Facts| plan(&facts).hold;
        let unsure = Facts { sharp: false, ..NEW };
        assert_eq!(hold(unsure), Some(4 * MS), "the first one may be a loss");
        assert_eq!(hold(Facts { in_vain: true, ..unsure }), None);
        assert_eq!(
            hold(Facts { in_vain: true, ..NEW }),
            Some(8 * MS),
            "replies name their packets"
        );
        let window = Facts { window: Some(3), in_vain: true, ..unsure };
        assert_eq!(hold(window), Some(8 * MS), "they name a few");
        assert_eq!(hold(Facts { clean: true, ..NEW }), None);
        let proven = Facts { clean: true, in_vain: true, sharp: false, ..LOSSY };
        assert_eq!(hold(proven), Some(100 * MS));
    }

    #[test]
    fn on_a_new_hop_that_is_most_of_the_path_nothing_is_held_for_long() {
        let hold = |round_trip| plan(&Facts { round_trip: round_trip * MS, ..NEW }).hold;
        assert_eq!([hold(16), hold(12), hold(8)], [Some(8 * MS), Some(6 * MS), Some(4 * MS)]);
        assert_eq!(hold(7), None, "the reply to a copy takes more than half of it");
        let waits = Facts { batch_wait: 4 * MS, held_up: 2 * MS, round_trip: 20 * MS, ..NEW };
        assert_eq!(
            plan(&waits).hold,
            Some(10 * MS),
            "a client that replies late has no farther hop"
        );
        assert_eq!(plan(&Facts { round_trip: 7 * MS, ..LOSSY }).hold, Some(100 * MS));
    }

    #[test]
    fn rare_replies_may_take_longer_unless_rhythm_told() {
        let thin = Facts { thin_reply_wait: 6 * MS, ..LOSSY };
        assert_eq!(plan(&thin).span, 10 * MS);
        assert_eq!(plan(&Facts { batch_wait: 2 * MS, ..thin }).span, 7 * MS);
        assert_eq!(plan(&Facts { sign: SignKind::Rhythm, ..thin }).span, 4 * MS);
    }

    #[test]
    fn of_a_sender_that_pauses_nothing_is_held_for_longer_than_it_takes_itself() {
        assert_eq!(plan(&Facts { pauses: true, ..LOSSY }).hold, Some(50 * MS));
    }

    #[test]
    fn on_a_new_hop_replies_are_held_briefly_and_only_if_a_copy_comes_too_late() {
        assert_eq!(plan(&NEW).hold, Some(8 * MS));
        let in_time = Facts { sent: 12, ..NEW };
        assert_eq!(plan(&in_time).hold, None);
        assert_eq!(plan(&Facts { sent: 13, ..NEW }).hold, Some(8 * MS), "the third is out");
        assert_eq!(plan(&Facts { proven: true, ..in_time }).hold, Some(100 * MS));
        assert_eq!(plan(&Facts { heeds_overtaking: false, ..in_time }).hold, Some(8 * MS));
        assert_eq!(plan(&Facts { missing: 0, sent: 2, ..NEW }).hold, Some(8 * MS));
        assert_eq!(plan(&Facts { conceal: None, ..LOSSY }).hold, None);
    }

    #[test]
    fn what_an_answer_would_have_shown_is_not_tried_again() {
        let silent = Facts { sign: SignKind::Rhythm, silent: true, ..LOSSY };
        assert_eq!(plan(&silent).attempts, 1);
        let very_lossy = Facts { very_lossy: true, ..silent };
        assert_eq!(plan(&very_lossy).attempts, 2, "a copy is lost as well");
    }
}
