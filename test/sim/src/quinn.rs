// SPDX-License-Identifier: GPL-2.0-or-later
//! quinn-proto in virtual time, as client or server.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use linkem::Nanos;
use quinn_proto::congestion::{BbrConfig, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, Connection, ConnectionHandle, ConnectionId, ConnectionIdGenerator, DatagramEvent,
    Dir, EcnCodepoint, EndpointConfig, Event, ReadError, ServerConfig, StreamEvent, StreamId,
    TransportConfig,
};

use crate::endpoint::{App, Datagram, Ecn, Endpoint, Progress, REQUEST, STAMP_LEN};
use crate::random::Random;
use crate::scenario::{CongestionControl, Flow};
use crate::senders::{self, Bbr3Config, HystartConfig, RollbackConfig};
use crate::session::Plain;

/// From the arrival of data to the application's reading it. Real clients read in
/// another task, so window updates go out on their own, this much after the
/// acknowledgement (10 to 160 us on quinn's captures).
const APPLICATION_DELAY: Nanos = 60_000;

/// The address in the simulated connections; the simulator routes by flow.
const PEER: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)), 443);

/// One end of a connection.
pub struct Quinn {
    epoch: Instant,
    endpoint: quinn_proto::Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    server: bool,
    app: App,
    /// The stream of the request.
    request: Option<StreamId>,
    requested: bool,
    /// Bytes of a download or an upload that are still to be written.
    unwritten: u64,
    call: Option<Frames>,
    /// Streams of frames that are being read: bytes so far and their time stamp.
    incoming: BTreeMap<StreamId, Incoming>,
    readable_at: Option<Nanos>,
    progress: Progress,
    replies: Vec<Datagram>,
    buffer: Vec<u8>,
    /// Of a controller with a pacing rate of its own: when the next packet may go.
    paced: Option<Nanos>,
    /// When it was last asked for packets.
    transmitted: Nanos,
}

/// The sender's side of a call.
struct Frames {
    next_at: Nanos,
    interval: Nanos,
    left: u64,
    frame_bytes: u64,
    /// Frames that wait for a stream: when they were made.
    waiting: std::collections::VecDeque<Nanos>,
    /// Frames being written: stream and bytes left.
    open: Vec<(StreamId, u64)>,
}

#[derive(Default)]
struct Incoming {
    stamp: Vec<u8>,
}

/// Connection IDs that a seed determines.
struct Ids(Random);

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        ConnectionId::new(&self.0.next().to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        8
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

impl Quinn {
    /// A server that waits for a connection.
    pub fn server(epoch: Instant, app: App, flow: &Flow, seed: u64) -> Quinn {
        let mut config = ServerConfig::new(Arc::new(Plain), Arc::new(Plain));
        config.transport_config(Arc::new(transport(flow.cc, flow.first_flight)));
        let endpoint = endpoint(Some(config), seed);
        let paced = (flow.cc == CongestionControl::Bbr3).then_some(0);
        Quinn { paced, ..Quinn::new(epoch, endpoint, true, app) }
    }

    /// A client that connects now.
    pub fn client(
        epoch: Instant,
        app: App,
        congestion: CongestionControl,
        seed: u64,
        now: Nanos,
    ) -> Quinn {
        let mut config = ClientConfig::new(Arc::new(Plain));
        config.transport_config(Arc::new(transport(congestion, 0)));
        let first_id = Random::new(seed ^ 0x1d).next();
        config
            .initial_dst_cid_provider(Arc::new(move || ConnectionId::new(&first_id.to_be_bytes())));
        let mut quinn = Quinn::new(epoch, endpoint(None, seed), false, app);
        let connection = quinn
            .endpoint
            .connect(quinn.instant(now), config, PEER, "server")
            .expect("the configuration is complete");
        quinn.connection = Some(connection);
        quinn
    }

    fn new(epoch: Instant, endpoint: quinn_proto::Endpoint, server: bool, app: App) -> Quinn {
        Quinn {
            epoch,
            endpoint,
            connection: None,
            server,
            app,
            request: None,
            requested: false,
            unwritten: 0,
            call: None,
            incoming: BTreeMap::new(),
            readable_at: None,
            progress: Progress::default(),
            replies: Vec::new(),
            buffer: Vec::with_capacity(1500),
            paced: None,
            transmitted: 0,
        }
    }

    fn instant(&self, now: Nanos) -> Instant {
        self.epoch + Duration::from_nanos(now)
    }

    /// Lets the connection's events happen; tells whether there were any.
    fn events(&mut self, now: Nanos) -> bool {
        let Some((handle, connection)) = &mut self.connection else { return false };
        let mut any = false;
        while let Some(event) = connection.poll_endpoint_events() {
            any = true;
            if let Some(event) = self.endpoint.handle_event(*handle, event) {
                connection.handle_event(event);
            }
        }
        while let Some(event) = connection.poll() {
            any = true;
            match event {
                Event::Connected if !self.server => {
                    let id = connection.streams().open(Dir::Bi).expect("the first stream");
                    let mut stream = connection.send_stream(id);
                    stream.write(REQUEST).expect("a few bytes always fit");
                    match self.app {
                        App::Upload { bytes } => self.unwritten = bytes,
                        _ => stream.finish().expect("not finished yet"),
                    }
                    self.request = Some(id);
                    if let App::Call { two_way: true, .. } = self.app {
                        self.call = frames(self.app, now);
                    }
                }
                Event::Stream(StreamEvent::Opened { dir }) => {
                    while let Some(id) = connection.streams().accept(dir) {
                        match dir {
                            Dir::Bi => self.request = Some(id),
                            Dir::Uni => drop(self.incoming.insert(id, Incoming::default())),
                        }
                    }
                    self.readable_at.get_or_insert(now + APPLICATION_DELAY);
                }
                Event::Stream(StreamEvent::Readable { .. }) => {
                    self.readable_at.get_or_insert(now + APPLICATION_DELAY);
                }
                _ => {}
            }
        }
        any
    }

    /// The application reads what has come.
    fn read(&mut self, now: Nanos) {
        let Some((_, connection)) = &mut self.connection else { return };
        if let Some(id) = self.request {
            let (bytes, finished) = read_stream(connection, id, |_| ());
            if self.server == self.app.is_upload() {
                self.progress.bytes += bytes;
            }
            if self.server && finished && !self.requested {
                self.requested = true;
                match self.app {
                    App::Download { bytes } => self.unwritten = bytes,
                    App::Call { .. } => self.call = frames(self.app, now),
                    App::Upload { .. } => {}
                }
            }
        }
        let (progress, server) = (&mut self.progress, self.server);
        self.incoming.retain(|id, incoming| {
            let (bytes, finished) = read_stream(connection, *id, |chunk| {
                let wanted = STAMP_LEN.saturating_sub(incoming.stamp.len());
                incoming.stamp.extend(&chunk[..wanted.min(chunk.len())]);
            });
            if !server {
                progress.bytes += bytes;
            }
            if finished && let Ok(stamp) = incoming.stamp[..].try_into() {
                progress.frame_delays.push(now - u64::from_be_bytes(stamp));
            }
            !finished
        });
        if self.server == self.app.is_upload() && self.progress.bytes >= self.app.bytes() {
            self.progress.done_at.get_or_insert(now);
        }
    }

    /// The application writes what there is to write and the stack takes.
    fn write(&mut self, now: Nanos) {
        let Some((_, connection)) = &mut self.connection else { return };
        if let Some(id) = self.request {
            while self.unwritten > 0 {
                let Some(written) = write_zeros(connection, id, self.unwritten) else { break };
                self.unwritten -= written;
                if self.unwritten == 0 {
                    let _ = connection.send_stream(id).finish();
                }
            }
        }
        let Some(call) = &mut self.call else { return };
        while call.left > 0 && call.next_at <= now {
            call.waiting.push_back(call.next_at);
            call.next_at += call.interval;
            call.left -= 1;
        }
        while let Some(made) = call.waiting.front()
            && let Some(id) = connection.streams().open(Dir::Uni)
        {
            let stamp = made.to_be_bytes();
            connection.send_stream(id).write(&stamp).expect("a few bytes fit a new stream");
            call.waiting.pop_front();
            call.open.push((id, call.frame_bytes - STAMP_LEN as u64));
        }
        call.open.retain_mut(|(id, left)| {
            while *left > 0 {
                let Some(written) = write_zeros(connection, *id, *left) else { break };
                *left -= written;
            }
            if *left == 0 {
                let _ = connection.send_stream(*id).finish();
            }
            *left > 0
        });
    }
}

impl Endpoint for Quinn {
    fn receive(&mut self, now: Nanos, datagram: Datagram) {
        let at = self.instant(now);
        let ecn = match datagram.ecn {
            Ecn::NotEct => None,
            Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        };
        let bytes = BytesMut::from(datagram.bytes);
        self.buffer.clear();
        let event = self.endpoint.handle(at, PEER, None, ecn, bytes, &mut self.buffer);
        match event {
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.buffer.clear();
                match self.endpoint.accept(incoming, at, &mut self.buffer, None) {
                    Ok(connection) => self.connection = Some(connection),
                    Err(error) => {
                        let response = error.response.map(|response| response.size);
                        self.replies.extend(response.map(|size| reply(&self.buffer[..size])));
                    }
                }
            }
            Some(DatagramEvent::ConnectionEvent(_, event)) => {
                if let Some((_, connection)) = &mut self.connection {
                    connection.handle_event(event);
                }
            }
            Some(DatagramEvent::Response(response)) => {
                self.replies.push(reply(&self.buffer[..response.size]));
            }
            None => {}
        }
    }

    fn next_timeout(&mut self) -> Option<Nanos> {
        let epoch = self.epoch;
        let connection = self.connection.as_mut().and_then(|(_, connection)| {
            let at = connection.poll_timeout()?.saturating_duration_since(epoch);
            Some(at.as_nanos() as Nanos)
        });
        let frame = self.call.as_ref().filter(|call| call.left > 0).map(|call| call.next_at);
        let paced = self.paced.filter(|at| *at > self.transmitted);
        [connection, self.readable_at, frame, paced].into_iter().flatten().min()
    }

    fn on_timeout(&mut self, now: Nanos) {
        let at = self.instant(now);
        if let Some((_, connection)) = &mut self.connection {
            connection.handle_timeout(at);
        }
        if self.readable_at.take_if(|at| *at <= now).is_some() {
            self.read(now);
        }
    }

    fn transmit(&mut self, now: Nanos, out: &mut Vec<Datagram>) {
        out.append(&mut self.replies);
        self.transmitted = now;
        loop {
            let mut any = self.events(now);
            self.write(now);
            let at = self.instant(now);
            if let Some((_, connection)) = &mut self.connection {
                self.buffer.clear();
                while self.paced.is_none_or(|paced| paced <= now)
                    && let Some(sent) = connection.poll_transmit(at, 1, &mut self.buffer)
                {
                    any = true;
                    if let Some(paced) = &mut self.paced {
                        let rate = connection.congestion_state().metrics().pacing_rate;
                        let takes = rate.map_or(0, |rate| 8_000_000_000 * sent.size as u64 / rate);
                        *paced = now + takes;
                    }
                    let bytes = Bytes::copy_from_slice(&self.buffer[..sent.size]);
                    let ecn = if sent.ecn.is_some() { Ecn::Ect0 } else { Ecn::NotEct };
                    out.push(Datagram { bytes, ecn });
                    self.buffer.clear();
                }
            }
            if !any {
                return;
            }
        }
    }

    fn done_at(&self) -> Option<Nanos> {
        self.progress.done_at
    }

    fn progress(&self) -> Progress {
        let mut progress = self.progress.clone();
        if let Some((_, connection)) = &self.connection {
            let path = connection.stats().path;
            progress.congestion_events = path.congestion_events;
            progress.lost_packets = path.lost_packets;
        }
        progress
    }
}

fn reply(bytes: &[u8]) -> Datagram {
    Datagram { bytes: Bytes::copy_from_slice(bytes), ecn: Ecn::NotEct }
}

fn frames(app: App, now: Nanos) -> Option<Frames> {
    let App::Call { frames, interval, frame_bytes, .. } = app else { return None };
    Some(Frames {
        next_at: now,
        interval,
        left: frames,
        frame_bytes,
        waiting: Default::default(),
        open: Vec::new(),
    })
}

fn endpoint(server: Option<ServerConfig>, seed: u64) -> quinn_proto::Endpoint {
    let mut random = Random::new(seed);
    let mut rng_seed = [0; 32];
    for chunk in rng_seed.chunks_exact_mut(8) {
        chunk.copy_from_slice(&random.next().to_le_bytes());
    }
    let ids = random.next();
    let mut config = EndpointConfig::new(Arc::new(Plain));
    config.rng_seed(Some(rng_seed));
    config.cid_generator(move || Box::new(Ids(Random::new(ids))));
    quinn_proto::Endpoint::new(Arc::new(config), server.map(Arc::new), true, None)
}

fn transport(congestion: CongestionControl, first_flight: u64) -> TransportConfig {
    let mut config = TransportConfig::default();
    // One datagram a call: batches would leave back to back like single ones.
    config.enable_segmentation_offload(false);
    match congestion {
        CongestionControl::Cubic if first_flight > 0 => {
            let mut cubic = CubicConfig::default();
            cubic.initial_window(first_flight * senders::PACKET);
            config.congestion_controller_factory(Arc::new(cubic));
        }
        CongestionControl::Cubic => {}
        CongestionControl::Newreno => {
            config.congestion_controller_factory(Arc::new(NewRenoConfig::default()));
        }
        CongestionControl::Bbr => {
            config.congestion_controller_factory(Arc::new(BbrConfig::default()));
        }
        CongestionControl::Bbr3 => {
            config.congestion_controller_factory(Arc::new(Bbr3Config));
        }
        CongestionControl::Hystart => {
            config.congestion_controller_factory(Arc::new(HystartConfig::RFC));
        }
        CongestionControl::Rollback => {
            config.congestion_controller_factory(Arc::new(RollbackConfig));
        }
        CongestionControl::QuicGo => {
            config.congestion_controller_factory(Arc::new(HystartConfig::QUIC_GO));
        }
    }
    config
}

/// Writes as much of what is left as the stack takes, without a copy; nothing if it takes none.
fn write_zeros(connection: &mut Connection, id: StreamId, left: u64) -> Option<u64> {
    static ZEROS: [u8; 65_536] = [0; 65_536];
    let len = left.min(ZEROS.len() as u64) as usize;
    let mut chunk = [Bytes::from_static(&ZEROS[..len])];
    let written = connection.send_stream(id).write_chunks(&mut chunk).ok()?;
    Some(written.bytes as u64)
}

/// Reads all that is there; gives the bytes and whether the stream has ended.
fn read_stream(
    connection: &mut Connection,
    id: StreamId,
    mut each: impl FnMut(&[u8]),
) -> (u64, bool) {
    let mut stream = connection.recv_stream(id);
    let mut bytes = 0;
    let mut finished = false;
    if let Ok(mut chunks) = stream.read(true) {
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => {
                    bytes += chunk.bytes.len() as u64;
                    each(&chunk.bytes);
                }
                Ok(None) => {
                    finished = true;
                    break;
                }
                Err(ReadError::Blocked | ReadError::Reset(_)) => break,
            }
        }
        let _ = chunks.finalize();
    }
    (bytes, finished)
}
