// SPDX-License-Identifier: GPL-2.0-or-later
//! When and how the modelled clients acknowledge.

use linkem::{MS, Nanos};

use crate::random::Random;
use crate::scenario::ClientKind;

/// A client's habits. Sources: the packet logs in `test/sim/captures` for Chromium, quic-go,
/// ngtcp2, s2n-quic and msquic; what was measured of Firefox; the stacks' code and the drafts for
/// the others.
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    /// Packets until an acknowledgement is sent at once; the same each time or something between.
    pub every: (u32, u32),
    /// The first packets of a connection, and how many until an acknowledgement.
    pub opening: (u64, u32),
    /// From the first unacknowledged packet to an acknowledgement.
    pub timer: Timer,
    /// So many packets after a new gap are acknowledged at once, each.
    pub gap_run: u32,
    /// How far beyond a gap the first of these is: 1 for the next packet (the reordering
    /// threshold of draft-ietf-quic-ack-frequency).
    pub gap_after: u64,
    /// A packet that closes a gap is acknowledged at once.
    pub close_at_once: bool,
    /// Ranges in a frame at most.
    pub ranges: usize,
    /// Counts of ECN marks are reported.
    pub ecn: bool,
    /// On each so-manieth datagram that only acknowledges: a PING and so many bytes.
    pub ping: Option<(u32, usize)>,
    /// What is added to datagrams.
    pub padding: Padding,
    /// Bytes of other frames in each of these, but not while there is a gap.
    pub beside: usize,
    /// From the packet or the timer that asks for it to the acknowledgement: from, to, ns.
    pub delay: (Nanos, Nanos),
    /// A stream's credit; renewed when an eighth is used.
    pub window: u64,
}

/// The longest delay of an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub enum Timer {
    /// Always the same.
    Fixed(Nanos),
    /// A quarter of the path's round trip, but at least 1 ms.
    QuarterRtt,
}

/// How datagrams are filled up, those with other frames only to a size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Not at all.
    None,
    /// To this many bytes.
    To(usize),
    /// By a random number of bytes up to this.
    Random(u64),
    /// One in so many, by 1 up to so many bytes.
    Now(u64, u64),
    /// Times of so many packets, each of one or two bytes.
    Times(u32),
}

impl Padding {
    /// Bytes that are added to a datagram of `have` bytes, which may do nothing but acknowledge.
    pub fn fill(self, have: usize, only_acks: bool, random: &mut Random) -> usize {
        match self {
            Padding::To(size) => size.saturating_sub(have),
            _ if !only_acks => 0,
            Padding::None => 0,
            Padding::Random(most) => random.below(most + 1) as usize,
            Padding::Now(one_in, most) if random.below(one_in) == 0 => {
                random.below(most) as usize + 1
            }
            Padding::Now(..) => 0,
            Padding::Times(packets) => (0..packets).map(|_| 1 + random.below(2) as usize).sum(),
        }
    }
}

impl Habit {
    /// That of a client; `None` for those that are not modelled here.
    pub fn of(kind: ClientKind) -> Option<Habit> {
        let quinn = Habit {
            every: (2, 2),
            opening: (0, 2),
            timer: Timer::Fixed(25 * MS),
            gap_run: 1,
            gap_after: 1,
            close_at_once: true,
            ranges: 64,
            ecn: true,
            ping: None,
            padding: Padding::None,
            beside: 0,
            delay: (0, 0),
            window: 1_250_000,
        };
        Some(match kind {
            ClientKind::Quinn | ClientKind::Tcp => return None,
            ClientKind::Every2 => quinn,
            ClientKind::Every1 => Habit { every: (1, 1), ..quinn },
            ClientKind::Every10 => Habit { every: (10, 10), opening: (100, 2), ..quinn },
            ClientKind::Delayed => {
                Habit { every: (u32::MAX, u32::MAX), gap_run: 0, close_at_once: false, ..quinn }
            }
            ClientKind::Chromium => Habit {
                every: (10, 10),
                opening: (100, 2),
                timer: Timer::QuarterRtt,
                gap_run: 4,
                ranges: 255,
                ecn: false,
                ping: Some((20, 4)),
                delay: (200_000, 300_000),
                window: 6_000_000,
                ..quinn
            },
            ClientKind::QuicGo => {
                Habit { ranges: 32, ping: Some((20, 0)), delay: (20_000, 120_000), ..quinn }
            }
            ClientKind::Padded => Habit { padding: Padding::To(200), ..quinn },
            ClientKind::RandomPadding => Habit { padding: Padding::Random(32), ..quinn },
            _ => Habit::of_others(kind, quinn)?,
        })
    }

    /// Those of the stacks, or of habits, with which the engine was not built.
    fn of_others(kind: ClientKind, quinn: Habit) -> Option<Habit> {
        // What most of them have in common: nothing is said of ECN, and a moment passes between
        // a packet and its acknowledgement. Connection IDs are 4 bytes longer here than in the
        // logs, and so is what is padded to a size that follows from theirs.
        let other = Habit { ecn: false, ping: Some((20, 0)), delay: (50_000, 250_000), ..quinn };
        let patient = Habit { gap_run: 0, close_at_once: false, ..other };
        let asked = Habit {
            every: (16, 16),
            opening: (600, 2),
            timer: Timer::QuarterRtt,
            ecn: true,
            ..patient
        };
        Some(match kind {
            ClientKind::Ngtcp2 => {
                Habit { timer: Timer::Fixed(8 * MS), padding: Padding::To(46), ..other }
            }
            ClientKind::S2n => {
                Habit { every: (10, 10), ping: Some((5, 0)), padding: Padding::To(47), ..other }
            }
            ClientKind::Every4 => {
                Habit { every: (4, 4), ping: Some((5, 0)), padding: Padding::To(50), ..other }
            }
            ClientKind::Msquic => Habit { ping: None, beside: 11, ..other },
            ClientKind::Irregular => Habit { every: (5, 9), ..other },
            ClientKind::Patient => Habit { padding: Padding::Now(8, 6), ..patient },
            ClientKind::AckFrequency => asked,
            ClientKind::AckFrequencyThird => {
                Habit { gap_run: 1, gap_after: 3, close_at_once: true, ..asked }
            }
            ClientKind::Timestamps => Habit { padding: Padding::Times(8), ..other },
            ClientKind::Varying => Habit { padding: Padding::Now(4, 6), ..other },
            ClientKind::Tquic => patient,
            ClientKind::Aioquic => Habit {
                every: (u32::MAX, u32::MAX),
                timer: Timer::Fixed(MS),
                ping: None,
                ..patient
            },
            _ => return None,
        })
    }
}
