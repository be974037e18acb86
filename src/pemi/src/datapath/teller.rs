// SPDX-License-Identifier: GPL-2.0-or-later
//! What access points tell, as a worker hears it. Who asks them, and how, is none of its business.

use std::fmt::Debug;
use std::net::IpAddr;

use pemi_engine::{Radio, Station, Time};

/// Something that was told of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Told {
    /// What was counted.
    Counted(IpAddr, Radio),
    /// Its station came, went or is elsewhere, and when that was heard.
    Station(IpAddr, Time, Station),
}

/// Somebody who tells. Neither call waits for a radio; the worker's waker says when there is
/// something to take.
pub(crate) trait Teller: Debug + Send {
    /// For the next two seconds this client's counts are wanted as often as they can be had.
    fn watch(&self, client: IpAddr);

    /// The oldest that was not taken yet.
    fn take(&self) -> Option<Told>;
}
