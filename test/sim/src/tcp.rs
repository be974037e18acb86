// SPDX-License-Identifier: GPL-2.0-or-later
//! A model of a TCP download, for traffic beside QUIC: CUBIC (RFC 9438) with the
//! delay part of HyStart (RFC 9406), selective acknowledgements, loss detection by
//! three later segments (RFC 6675), retransmission timeout (RFC 6298), delayed
//! acknowledgements. Segments are numbered; there is no handshake but a request.

use bytes::Bytes;
use linkem::{MS, Nanos};

use crate::endpoint::{App, Datagram, Ecn, Endpoint, Progress, REQUEST};
use crate::ranges::Ranges;

/// Bytes of a full segment with 12 bytes of options.
const SEGMENT: usize = 1448;
const INITIAL_WINDOW: f64 = 10.0;
const BETA: f64 = 0.7;
const C: f64 = 0.4;
const MIN_RTO: Nanos = 200 * MS;
const DELAYED_ACK: Nanos = 40 * MS;
/// Selective acknowledgements of one packet.
const SACK_BLOCKS: usize = 3;

/// The sender.
pub struct Server {
    segments: u64,
    started: bool,
    /// All below have arrived.
    acked: u64,
    sacked: Ranges,
    next: u64,
    /// Segments taken for lost and not sent again yet.
    lost: Ranges,
    /// Segments sent again since the last timeout.
    resent: Ranges,
    /// A segment being timed and when it was sent.
    timed: Option<(u64, Nanos)>,
    srtt: Nanos,
    rttvar: Nanos,
    min_rtt: Nanos,
    window: f64,
    threshold: f64,
    /// The window before the last reduction, and when that was.
    before: f64,
    reduced_at: Nanos,
    /// No further reduction until this is acknowledged.
    recovery_until: u64,
    rto_at: Option<Nanos>,
    backoff: u32,
    progress: Progress,
}

impl Server {
    /// A sender that waits for the request.
    pub fn new(app: App) -> Server {
        Server {
            segments: app.bytes().div_ceil(SEGMENT as u64),
            started: false,
            acked: 0,
            sacked: Ranges::default(),
            next: 0,
            lost: Ranges::default(),
            resent: Ranges::default(),
            timed: None,
            srtt: 0,
            rttvar: 0,
            min_rtt: Nanos::MAX,
            window: INITIAL_WINDOW,
            threshold: f64::INFINITY,
            before: 0.0,
            reduced_at: 0,
            recovery_until: 0,
            rto_at: None,
            backoff: 0,
            progress: Progress::default(),
        }
    }

    fn in_flight(&self) -> u64 {
        let gone = self.sacked.count_from(self.acked) + self.lost.count_from(self.acked);
        (self.next - self.acked).saturating_sub(gone)
    }

    fn measure(&mut self, now: Nanos) {
        if let Some((segment, sent)) = self.timed
            && (self.acked > segment || self.sacked.contains(segment))
        {
            self.timed = None;
            let rtt = now - sent;
            self.min_rtt = self.min_rtt.min(rtt);
            if self.srtt == 0 {
                (self.srtt, self.rttvar) = (rtt, rtt / 2);
            } else {
                self.rttvar = (3 * self.rttvar + self.srtt.abs_diff(rtt)) / 4;
                self.srtt = (7 * self.srtt + rtt) / 8;
            }
            let limit = (self.min_rtt / 8).clamp(4 * MS, 16 * MS);
            if self.window < self.threshold && rtt > self.min_rtt + limit {
                self.threshold = self.window;
            }
        }
    }

    fn grow(&mut self, now: Nanos, acked: u64) {
        if self.window < self.threshold {
            self.window += acked as f64;
            return;
        }
        if self.before == 0.0 {
            (self.before, self.reduced_at) = (self.window / BETA, now);
        }
        let t = (now - self.reduced_at) as f64 / 1e9;
        let k = (self.before * (1.0 - BETA) / C).cbrt();
        let target = C * (t - k).powi(3) + self.before;
        // The window of a Reno flow with CUBIC's reduction.
        let rtts = t / (self.srtt.max(1) as f64 / 1e9);
        let reno = self.before * BETA + 3.0 * (1.0 - BETA) / (1.0 + BETA) * rtts;
        let target = target.max(reno).min(1.5 * self.window);
        if target > self.window {
            self.window += (target - self.window) / self.window * acked as f64;
        }
    }

    fn reduce(&mut self, now: Nanos) {
        self.progress.congestion_events += 1;
        self.before = self.window;
        self.reduced_at = now;
        self.window = (self.window * BETA).max(2.0);
        self.threshold = self.window;
        self.recovery_until = self.next;
    }

    fn find_losses(&mut self, now: Nanos) {
        let mut above = 0;
        let mut losses = Vec::new();
        let mut end = self.next;
        for range in self.sacked.descending() {
            if above >= 3 {
                losses.push(range.end..end);
            }
            above += range.end - range.start;
            end = range.start;
        }
        if above >= 3 && end > self.acked {
            losses.push(self.acked..end);
        }
        for range in losses {
            for segment in range.start.max(self.acked)..range.end {
                if self.resent.insert(segment..segment + 1) {
                    self.lost.insert(segment..segment + 1);
                    self.progress.lost_packets += 1;
                    if segment >= self.recovery_until {
                        self.reduce(now);
                    }
                }
            }
        }
    }
}

impl Endpoint for Server {
    fn receive(&mut self, now: Nanos, datagram: Datagram) {
        if &datagram.bytes[..] == REQUEST {
            self.started = true;
            return;
        }
        let mut numbers = datagram
            .bytes
            .chunks_exact(8)
            .map(|bytes| u64::from_be_bytes(bytes.try_into().expect("eight bytes")));
        let Some(acked) = numbers.next() else { return };
        let newly = acked.saturating_sub(self.acked);
        self.acked = self.acked.max(acked);
        while let (Some(start), Some(end)) = (numbers.next(), numbers.next()) {
            self.sacked.insert(start..end);
        }
        self.sacked.remove_below(self.acked);
        self.lost.remove_below(self.acked);
        self.resent.remove_below(self.acked);
        self.measure(now);
        if newly > 0 {
            self.backoff = 0;
            self.rto_at = None;
            if self.acked > self.recovery_until || self.recovery_until == 0 {
                self.grow(now, newly);
            }
        }
        self.find_losses(now);
    }

    fn next_timeout(&mut self) -> Option<Nanos> {
        self.rto_at
    }

    fn on_timeout(&mut self, now: Nanos) {
        if self.rto_at.take_if(|at| *at <= now).is_some() {
            self.backoff += 1;
            self.reduce(now);
            self.window = 1.0;
            self.timed = None;
            self.resent = Ranges::default();
            for segment in self.acked..self.next {
                if !self.sacked.contains(segment) {
                    self.lost.insert(segment..segment + 1);
                }
            }
        }
    }

    fn transmit(&mut self, now: Nanos, out: &mut Vec<Datagram>) {
        if !self.started {
            return;
        }
        while self.in_flight() < self.window as u64 {
            let segment = if let Some(first) = self.lost.first() {
                self.lost.remove_below(first + 1);
                self.resent.insert(first..first + 1);
                first
            } else if self.next < self.segments {
                self.next += 1;
                self.timed.get_or_insert((self.next - 1, now));
                self.next - 1
            } else {
                break;
            };
            let mut bytes = vec![0; SEGMENT];
            bytes[..8].copy_from_slice(&segment.to_be_bytes());
            out.push(Datagram { bytes: Bytes::from(bytes), ecn: Ecn::NotEct });
        }
        if self.acked < self.next && self.rto_at.is_none() {
            let rto = if self.srtt == 0 { 1000 * MS } else { self.srtt + 4 * self.rttvar };
            self.rto_at = Some(now + (rto.max(MIN_RTO) << self.backoff.min(6)));
        }
    }

    fn done_at(&self) -> Option<Nanos> {
        self.progress.done_at
    }

    fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

/// The receiver.
pub struct Client {
    app: App,
    received: Ranges,
    unacknowledged: u32,
    reply_at: Option<Nanos>,
    request_at: Option<Nanos>,
    progress: Progress,
}

impl Client {
    /// A receiver that asks now.
    pub fn new(app: App, now: Nanos) -> Client {
        Client {
            app,
            received: Ranges::default(),
            unacknowledged: 0,
            reply_at: None,
            request_at: Some(now),
            progress: Progress::default(),
        }
    }
}

impl Endpoint for Client {
    fn receive(&mut self, now: Nanos, datagram: Datagram) {
        let Some(head) = datagram.bytes.first_chunk() else { return };
        let segment = u64::from_be_bytes(*head);
        self.request_at = None;
        let in_order = segment == self.received.prefix() && self.received.largest() < Some(segment);
        self.received.insert(segment..segment + 1);
        self.unacknowledged += 1;
        let due = if in_order && self.unacknowledged < 2 { now + DELAYED_ACK } else { now };
        self.reply_at = Some(self.reply_at.map_or(due, |at| at.min(due)));
        self.progress.bytes = self.received.prefix() * SEGMENT as u64;
        if self.progress.bytes >= self.app.bytes() {
            self.progress.done_at.get_or_insert(now);
        }
    }

    fn next_timeout(&mut self) -> Option<Nanos> {
        self.reply_at.or(self.request_at)
    }

    fn on_timeout(&mut self, _: Nanos) {}

    fn transmit(&mut self, now: Nanos, out: &mut Vec<Datagram>) {
        if self.request_at.is_some_and(|at| at <= now) {
            self.request_at = Some(now + 1000 * MS);
            out.push(Datagram { bytes: Bytes::from_static(REQUEST), ecn: Ecn::NotEct });
        }
        if self.reply_at.take_if(|at| *at <= now).is_some() {
            self.unacknowledged = 0;
            let mut bytes = self.received.prefix().to_be_bytes().to_vec();
            let ranges = self.received.descending().take(SACK_BLOCKS);
            for range in ranges.filter(|range| range.start > 0) {
                bytes.extend_from_slice(&range.start.to_be_bytes());
                bytes.extend_from_slice(&range.end.to_be_bytes());
            }
            out.push(Datagram { bytes: Bytes::from(bytes), ecn: Ecn::NotEct });
        }
    }

    fn done_at(&self) -> Option<Nanos> {
        self.progress.done_at
    }

    fn progress(&self) -> Progress {
        self.progress.clone()
    }
}
