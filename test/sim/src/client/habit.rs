// SPDX-License-Identifier: GPL-2.0-or-later
//! When and how the modelled clients acknowledge.

use linkem::{MS, Nanos};

use crate::scenario::ClientKind;

/// A client's habits. Sources: the packet logs in `test/sim/captures` for Chromium
/// and quic-go, the stacks' code for the others.
#[derive(Clone, Copy, Debug)]
pub struct Habit {
    /// Packets until an acknowledgement is sent at once.
    pub every: u32,
    /// The first packets of a connection, and how many until an acknowledgement.
    pub opening: (u64, u32),
    /// From the first unacknowledged packet to an acknowledgement.
    pub timer: Timer,
    /// So many packets after a new gap are acknowledged at once, each.
    pub gap_run: u32,
    /// A packet that closes a gap is acknowledged at once.
    pub close_at_once: bool,
    /// Ranges in a frame at most.
    pub ranges: usize,
    /// Counts of ECN marks are reported.
    pub ecn: bool,
    /// On each so-manieth datagram that only acknowledges: a PING and so many bytes.
    pub ping: Option<(u32, usize)>,
    /// What is added to datagrams that only acknowledge.
    pub padding: Padding,
    /// From the packet that asks for it to the acknowledgement: from, to, ns.
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

/// How datagrams that only acknowledge are filled up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Padding {
    /// Not at all.
    None,
    /// To this many bytes.
    To(usize),
    /// By a random number of bytes up to this.
    Random(u64),
}

impl Habit {
    /// That of a client; `None` for those that are not modelled here.
    pub fn of(kind: ClientKind) -> Option<Habit> {
        let quinn = Habit {
            every: 2,
            opening: (0, 2),
            timer: Timer::Fixed(25 * MS),
            gap_run: 1,
            close_at_once: true,
            ranges: 64,
            ecn: true,
            ping: None,
            padding: Padding::None,
            delay: (0, 0),
            window: 1_250_000,
        };
        Some(match kind {
            ClientKind::Quinn | ClientKind::Tcp => return None,
            ClientKind::Every2 => quinn,
            ClientKind::Every1 => Habit { every: 1, ..quinn },
            ClientKind::Every10 => Habit { every: 10, opening: (100, 2), ..quinn },
            ClientKind::Delayed => {
                Habit { every: u32::MAX, gap_run: 0, close_at_once: false, ..quinn }
            }
            ClientKind::Chromium => Habit {
                every: 10,
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
        })
    }
}
