// SPDX-License-Identifier: GPL-2.0-or-later
//! How the daemon gets to see packets, and how it lets them go on.
//!
//! A [`Worker`](crate::datapath::worker::Worker) knows packets only through [`Capture`]:
//! another way to see them is another implementation, in a file of its own below this one.
//! There are the kernel's packet queue ([`queue`]), and packet rings beside it ([`ring`]).
//!
//! A capture need not be able to hold what it shows. A packet ring shows
//! copies of packets that have passed: it gives them no handle, and their true times. It
//! has to show such a packet before the reply that the packet has caused.

use std::fmt;
use std::io;

use arrayvec::ArrayVec;
use pemi_engine::{Handle, Nanos, Time};

use crate::config::{Config, MOST_RINGS};
use crate::datapath::bridge::Header;
use crate::sys::poll::Interest;

mod gathering;
pub(crate) mod queue;
pub(crate) mod ring;
mod spare;

/// What one wait is for: a worker's waker, its two sockets for echo replies and two for reports,
/// the queue, and a ring for each device.
pub(crate) type Interests = ArrayVec<Interest, { 6 + MOST_RINGS }>;

/// A packet as a capture shows it. Its bytes are those of [`Capture::bytes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    /// The name under which it waits for its verdict. None: it has passed already. Only
    /// packets that the engine never holds may come without: those on their way down,
    /// while losses are repaired on the way down only.
    pub handle: Option<Handle>,
    /// When it was taken in, and so has an effect.
    pub at: Time,
    /// For how long it had waited for that, if that is known; clocks may be set.
    pub waited: Nanos,
    /// Indexes of the interfaces by which it came in and is to leave; 0: unknown.
    pub devices: (u32, u32),
    /// Where these are bridges, the indexes of their ports; 0: unknown.
    pub ports: (u32, u32),
    /// Its packet mark so far.
    pub mark: u32,
    /// Where the capture knows it, the link-layer header with which it leaves.
    pub header: Option<Header>,
    /// It is neither cut nor several packets in one.
    pub whole: bool,
    /// Its UDP checksum was left to the hardware, which has not filled it in.
    pub checksum_missing: bool,
    /// Packets before it have passed that nobody will show.
    pub missed: bool,
}

/// Devices to the servers that are remembered (chosen: more than a router has at a time).
pub(crate) const MOST_WAYS: usize = 4;

/// What a capture counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Counters {
    /// Packets that passed without having been shown, because nobody took them in time.
    pub missed: u64,
    /// Verdicts that the kernel refused, those for packets that the guard has let go aside.
    pub verdict_errors: u32,
    /// Why packets are not seen as the settings say.
    pub trouble: Option<Trouble>,
    /// Beside a ring, the devices by which clients' packets leave, by their indexes; 0: no further
    /// ones.
    pub ways: [u32; MOST_WAYS],
    /// Flows that were let go beside a ring. The number wraps around.
    pub let_go: u32,
}

/// Why there are no rings though somebody wants them; until new settings come the queue has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// The kernel refuses, with this number.
    Refused(i32),
    /// What leaves by a device are several packets in one, or such as are not whole in a ring.
    Merged,
    /// A packet that was sent for a trial was not seen, or not as it was.
    Untrue,
    /// Nothing is seen though clients get answers.
    Silent,
}

impl Trouble {
    fn refused(error: &io::Error) -> Trouble {
        Trouble::Refused(error.raw_os_error().unwrap_or(0))
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Refused(number) => {
                write!(f, "the kernel gives no ring: {}", io::Error::from_raw_os_error(*number))
            }
            Trouble::Merged => {
                f.write_str("a device is handed several packets in one, or some above 1500 bytes")
            }
            Trouble::Untrue => f.write_str("a packet sent for a trial was not in the ring"),
            Trouble::Silent => {
                f.write_str("nothing was seen though clients get answers: hardware may forward it")
            }
        }
    }
}

/// A source of packets that wait for a verdict, or have passed.
pub(crate) trait Capture {
    /// What it uses now, for `status`.
    fn name(&self) -> &'static str;

    /// Its number: for log lines, the name of its thread and `status`.
    fn id(&self) -> u16;

    /// The time, on the clock by which packets are stamped.
    fn now(&self) -> Time;

    /// Takes new settings.
    fn configure(&mut self, config: &Config);

    /// Waits until a packet has come, one of `others` is ready, or the time is over; it may
    /// end sooner. While packets gather nobody waits for reports, which are taken for ready then. What
    /// the capture itself waits for it adds to the end of `others`.
    fn wait(&mut self, others: &mut Interests, timeout: Option<Nanos>) -> io::Result<()>;

    /// Takes in a batch of what has come, without waiting. Gives whether there may be more.
    /// An error means that the capture is of no use any more.
    fn fill(&mut self) -> io::Result<bool>;

    /// The next packet of the batch.
    fn take(&mut self) -> Option<Seen>;

    /// The IP packet that was taken last.
    fn bytes(&mut self) -> &mut [u8];

    /// Lets a packet go on; with a new mark, if one is given, by way of the firewall's rules that
    /// heed it. This takes effect at the next [`Capture::flush`] at the latest, and packets go on
    /// in the order of these calls.
    fn accept(&mut self, handle: Handle, mark: Option<u32>) -> io::Result<()>;

    /// Takes a packet out, because it was sent in another way. Takes effect as above.
    fn discard(&mut self, handle: Handle) -> io::Result<()>;

    /// Gives the verdicts to the kernel if a packet is among them that goes on: what is sent
    /// afterwards is behind it on the wire.
    fn flush_accepted(&mut self) -> io::Result<()>;

    /// Gives the verdicts to the kernel. What is sent afterwards is behind them on the wire.
    fn flush(&mut self) -> io::Result<()>;

    /// Lets everything go that still waits; nothing is asked of the capture afterwards.
    fn close(&mut self) -> io::Result<()>;

    /// What it has counted since the last [`Capture::reset`].
    fn counters(&self) -> Counters;

    /// Counts what was missed from zero.
    fn reset(&mut self);
}
