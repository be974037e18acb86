// SPDX-License-Identifier: GPL-2.0-or-later
//! What the two ends of a flow have in common.

use bytes::Bytes;
use linkem::Nanos;
use serde::Serialize;

/// Explicit congestion notification (RFC 3168).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ecn {
    /// Not ECN-capable.
    NotEct,
    /// ECN-capable, ECT(0).
    Ect0,
}

/// A datagram without its IP and UDP (or TCP) headers.
#[derive(Clone, Debug)]
pub struct Datagram {
    /// What it carries.
    pub bytes: Bytes,
    /// As sent.
    pub ecn: Ecn,
}

/// One end of a flow: packets and times in, packets out.
pub trait Endpoint {
    /// A datagram has arrived.
    fn receive(&mut self, now: Nanos, datagram: Datagram);
    /// When [`Endpoint::on_timeout`] is wanted.
    fn next_timeout(&mut self) -> Option<Nanos>;
    /// That time has come.
    fn on_timeout(&mut self, now: Nanos);
    /// Appends what is to be sent now. Called after each of the above.
    fn transmit(&mut self, now: Nanos, out: &mut Vec<Datagram>);
    /// When the receiver had everything.
    fn done_at(&self) -> Option<Nanos>;
    /// What this end saw.
    fn progress(&self) -> Progress;
}

/// What an end of a flow saw.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Progress {
    /// Bytes that the receiver's application has got.
    pub bytes: u64,
    /// When the receiver had everything.
    pub done_at: Option<Nanos>,
    /// Generation to complete arrival of each frame that arrived, ns.
    pub frame_delays: Vec<Nanos>,
    /// Congestion events of the sender (RFC 9002, section 7.3.2).
    pub congestion_events: u64,
    /// Packets that the sender took for lost.
    pub lost_packets: u64,
}

/// What a flow carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum App {
    /// So many bytes to the client.
    Download {
        /// How many.
        bytes: u64,
    },
    /// So many bytes to the server.
    Upload {
        /// How many.
        bytes: u64,
    },
    /// Video frames to the client, each on a stream of its own.
    Call {
        /// How many.
        frames: u64,
        /// Time from frame to frame.
        interval: Nanos,
        /// Bytes of a frame.
        frame_bytes: u64,
        /// The client sends the same to the server.
        two_way: bool,
    },
}

impl App {
    /// Bytes that the receiver gets when all goes well.
    pub fn bytes(self) -> u64 {
        match self {
            App::Download { bytes } | App::Upload { bytes } => bytes,
            App::Call { frames, frame_bytes, .. } => frames * frame_bytes,
        }
    }

    /// Whether it is the server that gets them.
    pub fn is_upload(self) -> bool {
        matches!(self, App::Upload { .. })
    }
}

/// What a client asks its server.
pub const REQUEST: &[u8] = b"GET /\r\n";

/// Times of generation travel in the first bytes of a frame.
pub const STAMP_LEN: usize = 8;
