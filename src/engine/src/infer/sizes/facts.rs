// SPDX-License-Identifier: GPL-2.0-or-later
//! What the size of a reply is judged with, and what it says.

use crate::infer::rhythm::Beat;
use crate::infer::sign::GapSign;
use crate::time::Time;

/// What a reply's size is judged with.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Facts {
    pub now: Time,
    pub size: i32,
    /// Gaps open now.
    pub open: usize,
    /// The reply to some forwarded packet is due now.
    pub explained: bool,
    /// The reply to a copy is due now, and explains this one better than the reply to a
    /// forwarded packet.
    pub copy_due: bool,
    /// A reply no longer than usual while no copy can have been answered has shed ranges.
    pub prunes: bool,
    /// No reply before this one can have told of some copy, and this one can.
    pub tells_first: bool,
    /// Open gaps that a copy can have closed by now.
    pub due: usize,
    /// Every open gap has had its last attempt, and the reply to that was due.
    pub all_tried: bool,
    /// More was missed than the copies that went can have filled.
    pub missed: bool,
    /// Packets follow each other so closely that the next reply is near, and several gaps are open at a time.
    pub close: bool,
    /// It came right after another one.
    pub at_once: bool,
    /// Replies that become shorter are heeded, and a sign has to be repeated where sizes vary.
    pub shrinks: bool,
    pub repeats: bool,
    /// The client counts to six or more.
    pub counts_high: bool,
    pub beat: Beat,
}

/// What the size of a reply says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Nothing new.
    Plain,
    /// Not an acknowledgement like the others.
    Noise,
    /// One more gap.
    NewGap(GapSign),
    /// One more gap if the next one says so as well.
    Unsure,
    /// One more gap that no packet of this hop has left.
    Upstream,
    /// No gap is left.
    Closed,
    /// One of several gaps has closed.
    OneClosed,
}
