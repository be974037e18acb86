// SPDX-License-Identifier: GPL-2.0-or-later
//! A QUIC client that only receives, with the acknowledgement habits of stacks
//! other than quinn ([`habit`]). It speaks to quinn-proto's server.

mod habit;
mod skips;
mod space;
pub(crate) mod wire;

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use linkem::{MS, Nanos};

use crate::endpoint::{App, Datagram, Ecn, Endpoint, Progress, REQUEST, STAMP_LEN};
use crate::random::Random;
use crate::ranges::Ranges;
use crate::scenario::ClientKind;
use crate::session::{Kind, Messages, TAG_LEN, parameters_body};
use habit::Habit;
use skips::Skips;
use space::{Sent, Space};
use wire::{Frame, Level, Reader, put_varint};

/// From the arrival of data to the application's reading it.
const APPLICATION_DELAY: Nanos = 60_000;
/// Before a round trip is known (RFC 9002, section 6.2.2: twice 333 ms and more).
const FIRST_PTO: Nanos = 999 * MS;
/// Streams that the server may open at a time.
const STREAMS: u64 = 100;
/// Frames that a client puts beside its acknowledgements wait for so many while there is a gap.
const BESIDE_WAITS: u32 = 16;
/// All datagrams with Initial packets (RFC 9000, section 14.1).
const INITIAL_DATAGRAM: usize = 1200;

/// The client.
pub struct Client {
    habit: Habit,
    app: App,
    random: Random,
    source: [u8; 8],
    destination: Vec<u8>,
    spaces: [Space; 3],
    crypto: [Crypto; 2],
    messages: Messages,
    phase: Phase,
    rtt: Option<Nanos>,
    timeouts: u32,
    streams: BTreeMap<u64, Stream>,
    /// Those that have ended, of which a sender may send something again that it takes for lost.
    finished: BTreeSet<u64>,
    stream_limit: u64,
    app_at: Option<Nanos>,
    only_acks: u32,
    progress: Progress,
}

/// How far the handshake is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    Hello,
    Handshake,
    Connected,
    Confirmed,
    Closed,
}

/// Bytes of CRYPTO frames, put in order.
#[derive(Default)]
struct Crypto {
    pieces: BTreeMap<u64, Vec<u8>>,
    read: u64,
}

#[derive(Default)]
struct Stream {
    ranges: Ranges,
    /// Bytes that the application has read.
    read: u64,
    end: Option<u64>,
    stamp: [u8; STAMP_LEN],
    granted: u64,
}

impl Client {
    /// A client that connects now; `None` if the kind is not modelled here.
    pub fn new(kind: ClientKind, app: App, seed: u64) -> Option<Client> {
        let habit = Habit::of(kind)?;
        let mut random = Random::new(seed);
        let source = random.next().to_be_bytes();
        let mut spaces: [Space; 3] = Default::default();
        let mut hello = Vec::new();
        Kind::ClientHello.write(&parameters_body(&parameters(&habit, &source)), &mut hello);
        spaces[0].pending.push(crypto_frame(0, &hello));
        Some(Client {
            habit,
            app,
            destination: random.next().to_be_bytes().to_vec(),
            random,
            source,
            spaces,
            crypto: Default::default(),
            messages: Messages::default(),
            phase: Phase::Hello,
            rtt: None,
            timeouts: 0,
            streams: BTreeMap::new(),
            finished: BTreeSet::new(),
            stream_limit: STREAMS,
            app_at: None,
            only_acks: 0,
            progress: Progress::default(),
        })
    }

    /// The server leaves out a packet number after so many, of those of data, on average; 0 for none
    /// beyond its own.
    pub fn with_skips(mut self, every: u64) -> Client {
        let random = Random::new(self.random.next());
        self.spaces[Level::Data as usize].skips = Skips::new(every, random);
        self
    }

    fn packet(&mut self, now: Nanos, packet: &wire::Packet<'_>, ect0: bool) {
        // Keys come with the handshake; a packet that is ahead of them is lost.
        let ready = match packet.level {
            Level::Initial => true,
            Level::Handshake => self.phase >= Phase::Handshake,
            Level::Data => self.phase >= Phase::Connected,
        };
        if !ready || self.phase == Phase::Closed {
            return;
        }
        if let Some(source) = packet.source {
            self.destination = source.to_vec();
        }
        let space = &mut self.spaces[packet.level as usize];
        let expected = space.expected();
        let number = wire::expand(expected, packet.number, packet.number_len);
        // Of a copy that comes very late the shortened number is completed wrongly, so that
        // it does not decrypt.
        if number != packet.authentic || !space.receive(now, number, ect0) {
            return;
        }
        let mut reader = Reader(packet.frames);
        let mut eliciting = false;
        while !reader.0.is_empty() {
            let Some(frame) = wire::frame(&mut reader) else { break };
            eliciting |= !matches!(frame, Frame::Padding | Frame::Ack(_) | Frame::Close);
            self.frame(now, packet.level, frame);
        }
        if eliciting {
            let rtt = self.rtt.unwrap_or(100 * MS);
            let space = &mut self.spaces[packet.level as usize];
            if packet.level == Level::Data {
                space.ask(now, number, expected, &self.habit, rtt, &mut self.random);
            } else {
                space.reply_at = Some(now);
            }
        }
    }

    fn frame(&mut self, now: Nanos, level: Level, frame: Frame<'_>) {
        match frame {
            Frame::Ack(ranges) => {
                let rtt = self.spaces[level as usize].acked(now, &ranges);
                self.rtt = [self.rtt, rtt].into_iter().flatten().min();
                self.timeouts = 0;
            }
            Frame::Crypto { offset, data } if level != Level::Data => {
                self.crypto[level as usize].push(offset, data, &mut self.messages);
                self.handshake();
            }
            Frame::Stream { id, .. } if self.finished.contains(&id) => {}
            Frame::Stream { id, offset, data, last } => {
                let window = self.habit.window;
                let stream = self
                    .streams
                    .entry(id)
                    .or_insert_with(|| Stream { granted: window, ..Stream::default() });
                let end = offset + data.len() as u64;
                stream.ranges.insert(offset..end);
                for (at, byte) in (offset..end).zip(data).take(STAMP_LEN) {
                    if let Some(place) = stream.stamp.get_mut(at as usize) {
                        *place = *byte;
                    }
                }
                if last {
                    stream.end = Some(end);
                }
                self.app_at.get_or_insert(now + APPLICATION_DELAY);
            }
            Frame::HandshakeDone => {
                self.phase = self.phase.max(Phase::Confirmed);
                for space in &mut self.spaces[..2] {
                    *space = Space::default();
                }
            }
            Frame::Close => self.phase = Phase::Closed,
            _ => {}
        }
    }

    fn handshake(&mut self) {
        while let Some((kind, _)) = self.messages.take() {
            match (kind, self.phase) {
                (Kind::ServerHello, Phase::Hello) => self.phase = Phase::Handshake,
                (Kind::Finished, Phase::Handshake) => {
                    self.phase = Phase::Connected;
                    let mut finished = Vec::new();
                    Kind::Finished.write(&[], &mut finished);
                    self.spaces[1].pending.push(crypto_frame(0, &finished));
                    // Stream 0 with length and end.
                    let mut request = vec![0x0b, 0];
                    put_varint(&mut request, REQUEST.len() as u64);
                    request.extend_from_slice(REQUEST);
                    self.spaces[2].pending.push(request);
                }
                _ => {}
            }
        }
    }

    /// The application reads, which renews credit.
    fn read(&mut self, now: Nanos) {
        let pending = &mut self.spaces[Level::Data as usize].pending;
        let progress = &mut self.progress;
        let window = self.habit.window;
        let finished = &mut self.finished;
        self.streams.retain(|id, stream| {
            let prefix = stream.ranges.prefix();
            progress.bytes += prefix - stream.read;
            stream.read = prefix;
            if stream.end == Some(prefix) {
                if *id != 0 {
                    finished.insert(*id);
                    progress.frame_delays.push(now - u64::from_be_bytes(stream.stamp));
                }
                return *id == 0;
            }
            if stream.end.is_none() && prefix + window - stream.granted >= window / 8 {
                stream.granted = prefix + window;
                let mut frame = vec![0x11];
                put_varint(&mut frame, *id);
                put_varint(&mut frame, stream.granted);
                pending.push(frame);
            }
            true
        });
        let finished = self.finished.len() as u64;
        if finished + STREAMS - self.stream_limit >= STREAMS / 8 {
            self.stream_limit = finished + STREAMS;
            let mut frame = vec![0x13];
            put_varint(&mut frame, self.stream_limit);
            pending.push(frame);
        }
        if progress.bytes >= self.app.bytes() {
            progress.done_at.get_or_insert(now);
        }
    }

    /// A datagram with one packet of a level, if there is something to send.
    fn build(&mut self, now: Nanos, level: Level) -> Option<Datagram> {
        let space = &mut self.spaces[level as usize];
        let due = space.reply_at.is_some_and(|at| at <= now);
        if !due && space.pending.is_empty() {
            return None;
        }
        let mut frames = Vec::new();
        let acknowledged = due.then(|| space.acknowledge(now, &self.habit, &mut frames));
        let sent = std::mem::take(&mut space.pending);
        let only_acks = sent.is_empty();
        frames.extend(sent.iter().flatten());
        let mut eliciting = !only_acks;
        if only_acks && level == Level::Data {
            self.only_acks += 1;
            if let Some((every, extra)) = self.habit.ping
                && self.only_acks.is_multiple_of(every)
            {
                eliciting = true;
                frames.push(0x01);
                frames.resize(frames.len() + extra, 0);
            }
            let waited = self.only_acks.is_multiple_of(BESIDE_WAITS);
            if self.habit.beside > 0 && (waited || !space.has_gap()) {
                eliciting = true;
                frames.resize(frames.len() + self.habit.beside, 0);
            }
        }
        let (number, number_len) = space.take_number();
        let mut bytes = match level {
            Level::Data => vec![0x40 | (number_len as u8 - 1)],
            _ => vec![0xc0 | (level as u8 * 2) << 4 | (number_len as u8 - 1), 0, 0, 0, 1],
        };
        if level == Level::Data {
            bytes.extend_from_slice(&self.destination);
            let have = bytes.len() + number_len + frames.len() + TAG_LEN;
            let fill = self.habit.padding.fill(have, only_acks, &mut self.random);
            frames.resize(frames.len() + fill, 0);
        } else {
            for id in [&self.destination[..], &self.source] {
                bytes.push(id.len() as u8);
                bytes.extend_from_slice(id);
            }
            if level == Level::Initial {
                bytes.push(0);
                let have = bytes.len() + 2 + number_len + frames.len() + TAG_LEN;
                frames.resize(frames.len() + INITIAL_DATAGRAM.saturating_sub(have), 0);
            }
            let len = number_len + frames.len() + TAG_LEN;
            bytes.extend_from_slice(&(len as u16 | 0x4000).to_be_bytes());
        }
        bytes.extend_from_slice(&(number as u32).to_be_bytes()[4 - number_len..]);
        bytes.extend_from_slice(&frames);
        bytes.resize(bytes.len() + TAG_LEN - size_of::<u64>(), 0);
        bytes.extend_from_slice(&number.to_be_bytes());
        if eliciting || acknowledged.is_some() {
            let sent = Sent { frames: sent, acknowledged: acknowledged.flatten(), at: now };
            space.sent.insert(number, sent);
        }
        Some(Datagram { bytes: Bytes::from(bytes), ecn: Ecn::NotEct })
    }

    /// When all that is not acknowledged is to be sent again.
    fn pto_at(&self) -> Option<Nanos> {
        let since = self.spaces.iter().filter_map(Space::waiting_since).max()?;
        let pto = self.rtt.map_or(FIRST_PTO, |rtt| 3 * rtt + 25 * MS);
        Some(since + (pto << self.timeouts.min(6)))
    }
}

impl Endpoint for Client {
    fn receive(&mut self, now: Nanos, datagram: Datagram) {
        for packet in wire::packets(&datagram.bytes, TAG_LEN) {
            self.packet(now, &packet, datagram.ecn == Ecn::Ect0);
        }
    }

    fn next_timeout(&mut self) -> Option<Nanos> {
        let replies = self.spaces.iter().filter_map(|space| space.reply_at);
        replies.chain(self.app_at).chain(self.pto_at()).min()
    }

    fn on_timeout(&mut self, now: Nanos) {
        if self.app_at.take_if(|at| *at <= now).is_some() {
            self.read(now);
        }
        if self.pto_at().is_some_and(|at| at <= now) {
            self.timeouts += 1;
            for space in &mut self.spaces {
                space.lose_all();
            }
        }
    }

    fn transmit(&mut self, now: Nanos, out: &mut Vec<Datagram>) {
        for level in [Level::Initial, Level::Handshake, Level::Data] {
            out.extend(self.build(now, level));
        }
    }

    fn done_at(&self) -> Option<Nanos> {
        self.progress.done_at
    }

    fn progress(&self) -> Progress {
        self.progress.clone()
    }
}

impl Crypto {
    fn push(&mut self, offset: u64, data: &[u8], messages: &mut Messages) {
        self.pieces.insert(offset, data.to_vec());
        while let Some((&offset, piece)) = self.pieces.first_key_value()
            && offset <= self.read
        {
            let known = (self.read - offset) as usize;
            if known < piece.len() {
                messages.push(&piece[known..]);
                self.read = offset + piece.len() as u64;
            }
            self.pieces.pop_first();
        }
    }
}

fn crypto_frame(offset: u64, data: &[u8]) -> Vec<u8> {
    let mut frame = vec![0x06];
    put_varint(&mut frame, offset);
    put_varint(&mut frame, data.len() as u64);
    frame.extend_from_slice(data);
    frame
}

/// Transport parameters (RFC 9000, section 18.2).
fn parameters(habit: &Habit, source: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut integer = |id: u64, value: u64| {
        let mut bytes = Vec::new();
        put_varint(&mut bytes, value);
        put_varint(&mut out, id);
        put_varint(&mut out, bytes.len() as u64);
        out.append(&mut bytes);
    };
    integer(0x01, 30_000);
    integer(0x03, 1472);
    integer(0x04, 1 << 40);
    for id in [0x05, 0x06, 0x07] {
        integer(id, habit.window);
    }
    integer(0x09, STREAMS);
    put_varint(&mut out, 0x0f);
    put_varint(&mut out, source.len() as u64);
    out.extend_from_slice(source);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A packet with a PING, whose number is shortened to a byte.
    fn ping(number: u64) -> Datagram {
        let mut bytes = vec![0x40, 0, 0, 0, 0, 0, 0, 0, 0, number as u8, 0x01];
        bytes.extend_from_slice(&[0; TAG_LEN - size_of::<u64>()]);
        bytes.extend_from_slice(&number.to_be_bytes());
        Datagram { bytes: Bytes::from(bytes), ecn: Ecn::NotEct }
    }

    #[test]
    fn a_copy_that_comes_very_late_is_no_other_packet() {
        let app = App::Download { bytes: 1 };
        let mut client = Client::new(ClientKind::QuicGo, app, 1).unwrap();
        client.phase = Phase::Connected;
        for number in 0..300 {
            client.receive(number * MS, ping(number));
        }
        assert_eq!(client.spaces[Level::Data as usize].expected(), 300);
        // 90 is short for 346 by now.
        client.receive(301 * MS, ping(90));
        assert_eq!(client.spaces[Level::Data as usize].expected(), 300);
    }
}
