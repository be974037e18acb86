// SPDX-License-Identifier: GPL-2.0-or-later
//! What a run adds up to.

use serde::Serialize;

/// What was sent to the other shim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sent {
    /// Datagrams of the program.
    pub sources: u64,
    /// Packets to recover them from.
    pub repairs: u64,
    /// Datagrams of the program that were too large for the path, and dropped.
    pub too_large: u64,
}

/// What came from the other shim.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Received {
    /// Datagrams of the program.
    pub sources: u64,
    /// Packets to recover them from.
    pub repairs: u64,
    /// Datagrams that did not come and were computed.
    pub recovered: u64,
    /// Datagrams that are known to be missing and could not be computed. Of a group of
    /// which nothing came at all, nobody knows.
    pub unrecoverable: u64,
    /// Sources among these that had been delivered or recovered before; dropped.
    pub duplicates: u64,
    /// Sources among these whose groups were forgotten; dropped.
    pub late: u64,
    /// Packets that no shim of ours sends; dropped.
    pub malformed: u64,
}

/// One end's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Totals {
    /// To the other shim.
    pub sent: Sent,
    /// From the other shim.
    pub received: Received,
}

impl Totals {
    /// Of several conversations.
    pub fn add(&mut self, other: &Totals) {
        let Totals { sent, received } = other;
        self.sent.sources += sent.sources;
        self.sent.repairs += sent.repairs;
        self.sent.too_large += sent.too_large;
        self.received.sources += received.sources;
        self.received.repairs += received.repairs;
        self.received.recovered += received.recovered;
        self.received.unrecoverable += received.unrecoverable;
        self.received.duplicates += received.duplicates;
        self.received.late += received.late;
        self.received.malformed += received.malformed;
    }
}
