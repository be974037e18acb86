// SPDX-License-Identifier: GPL-2.0-or-later
//! The event loop: frames from one interface over a link to the other.
//!
//! One thread does it all, since a hand-over between threads costs a wake-up of
//! tens of microseconds per packet. It waits in `ppoll` until a frame arrives or
//! until the exact time that the next one is due.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use anyhow::{Context, Result, bail};

use crate::frame::{VNET_BYTES, View, assemble};
use crate::link::Link;
use crate::packet_io::{BATCH, Port};
use crate::pipe::Packet;
use crate::sched::{monotonic, wait};
use crate::totals::{DirectionTotals, Output, Totals};
use crate::truth::{Fate, Identity, Truth};
use crate::{Direction, MS, Nanos};

/// Batches taken from one interface before frames that are due are sent.
const ROUNDS: usize = 4;
/// Buffers for as many ordinary frames are kept, so that none is allocated while
/// the link runs below its bandwidth-delay product.
const SPARE_BUFFERS: usize = 4096;
const BUFFER_BYTES: usize = 2048;
/// How often an interface that is down is looked for: the kernel does not tell
/// when it is deleted after that.
const LOOK: Nanos = 100 * MS;

/// A frame on its way.
#[derive(Debug)]
pub struct Frame {
    /// Offload header and frame.
    bytes: Vec<u8>,
    /// For the log, if there is one.
    identity: Option<Identity>,
}

/// One direction: from a port over the link to the other port.
#[derive(Debug)]
struct Lane {
    direction: Direction,
    output: Output,
    last_arrival: Nanos,
}

/// Both directions and what they share.
#[derive(Debug)]
pub struct Forwarder {
    /// The ports by the number of the direction that begins at them.
    ports: [Port; 2],
    link: Link<Frame>,
    lanes: [Lane; 2],
    truth: Option<Truth>,
    lossy_all: bool,
    spare: Vec<Vec<u8>>,
    due: Vec<(Nanos, Frame)>,
}

impl Forwarder {
    /// Connects two ports; the link's directions are a to b and b to a.
    pub fn new(
        ports: [Port; 2],
        link: Link<Frame>,
        truth: Option<Truth>,
        lossy_all: bool,
    ) -> Forwarder {
        let lane = |direction| Lane { direction, output: Output::default(), last_arrival: 0 };
        let lanes = Direction::ALL.map(lane);
        Forwarder {
            ports,
            link,
            lanes,
            truth,
            lossy_all,
            spare: (0..SPARE_BUFFERS).map(|_| vec![0; BUFFER_BYTES]).collect(),
            due: Vec::with_capacity(BATCH),
        }
    }

    /// Forwards until `stop` is readable; an error if an interface vanishes.
    pub fn run(&mut self, stop: &OwnedFd) -> Result<()> {
        let mut down = [false; 2];
        loop {
            let now = monotonic();
            let look = down.contains(&true).then(|| now + LOOK);
            let deadline = self.link.next_deadline().into_iter().chain(look).min();
            let timeout = deadline.map(|deadline| deadline.saturating_sub(now));
            let [first, second] = &self.ports;
            let fds = [first.as_fd(), second.as_fd(), stop.as_fd()];
            let [first, second, stopped] = wait(fds, timeout).context("ppoll")?;
            if stopped {
                return Ok(());
            }
            for (side, ready) in [first, second].into_iter().enumerate() {
                if ready {
                    self.receive(side, &mut down[side])?;
                }
                if down[side] && !self.ports[side].exists() {
                    bail!("interface {} has vanished", self.ports[side].name());
                }
            }
            for side in 0..2 {
                self.deliver(side)?;
            }
        }
    }

    /// Takes what waits at a port onto the link.
    fn receive(&mut self, side: usize, down: &mut bool) -> Result<()> {
        let Forwarder { ports, link, lanes, truth, lossy_all, spare, .. } = self;
        let port = &mut ports[side];
        let lane = &mut lanes[side];
        let mtu = port.mtu() as usize;
        let name = port.name().to_owned();
        for _ in 0..ROUNDS {
            let result = port.receive(|received| {
                let mut bytes = spare.pop().unwrap_or_default();
                assemble(&mut bytes, received.bytes, received.tag);
                let frame = &bytes[VNET_BYTES..];
                let view = View::of(frame);
                if view.network_bytes > mtu {
                    if lane.output.oversized == 0 {
                        eprintln!(
                            "linkem: warning: {name}: a frame of {} bytes, put together by \
                             offloads (MTU {mtu}); it counts as one packet. Switch off gro, gso \
                             and tso where it comes from",
                            frame.len()
                        );
                    }
                    lane.output.oversized += 1;
                }
                // Frames of one batch may have been stamped on different cores.
                lane.last_arrival = lane.last_arrival.max(received.at);
                let at = lane.last_arrival;
                let packet = Packet {
                    bytes: frame.len() as u32,
                    network_bytes: view.network_bytes as u32,
                    lossy: view.measured || *lossy_all,
                    // An experiment's flows differ in protocol or ports.
                    flow: u32::from(view.protocol) << 24
                        ^ u32::from(view.ports.0) << 16
                        ^ u32::from(view.ports.1),
                    item: Frame {
                        identity: truth.as_ref().map(|_| Identity::new(at, lane.direction, &view)),
                        bytes,
                    },
                };
                link.push(at, lane.direction, 0, packet);
            });
            match result {
                Ok(count) => {
                    *down = false;
                    if count < BATCH {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.raw_os_error() == Some(libc::ENETDOWN) => {
                    *down = true;
                    break;
                }
                Err(error) => return Err(error).with_context(|| format!("interface {name}")),
            }
        }
        Ok(())
    }

    /// Sends what has come out of a direction by now, and logs what will not.
    fn deliver(&mut self, side: usize) -> Result<()> {
        let lane = &mut self.lanes[side];
        let to = &self.ports[1 - side];
        let now = monotonic();
        let direction = lane.direction;
        self.link.advance(now);
        while let Some((frame, why)) = self.link.pop_dropped(direction) {
            log(&self.truth, lane, &frame, Fate::Dropped(why));
            recycle(&mut self.spare, frame);
        }
        loop {
            let due = &mut self.due;
            while due.len() < BATCH {
                match self.link.pop_due(direction, now) {
                    Some(frame) => due.push(frame),
                    None => break,
                }
            }
            if due.is_empty() {
                return Ok(());
            }
            let sent = match to.send(due.iter().map(|(_, frame)| &frame.bytes[..])) {
                Ok(sent) => sent,
                Err(error) => {
                    if error.raw_os_error() == Some(libc::ENXIO) && !to.exists() {
                        bail!("interface {} has vanished", to.name());
                    }
                    if lane.output.send_errors == 0 {
                        eprintln!("linkem: warning: {}: send: {error}", to.name());
                    }
                    // The first of the batch is what was refused.
                    lane.output.send_errors += 1;
                    let (_, frame) = due.remove(0);
                    log(&self.truth, lane, &frame, Fate::Unsent);
                    recycle(&mut self.spare, frame);
                    continue;
                }
            };
            let out = monotonic();
            for (due, frame) in due.drain(..sent) {
                lane.output.delivered += 1;
                lane.output.lateness.record(out.saturating_sub(due));
                log(&self.truth, lane, &frame, Fate::Delivered(out));
                recycle(&mut self.spare, frame);
            }
        }
    }

    /// Adds up and ends the log; the totals stand even if the log failed.
    pub fn finish(mut self) -> (Totals, Result<()>) {
        let mut under_way = self.link.drain();
        let totals = [0, 1].map(|side| {
            let lane = &mut self.lanes[side];
            let under_way = std::mem::take(&mut under_way[side]);
            for frame in &under_way {
                log(&self.truth, lane, frame, Fate::Unsent);
            }
            DirectionTotals::new(
                self.link.counts(lane.direction),
                self.link.max_queue_bytes(lane.direction),
                &lane.output,
                under_way.len() as u64,
                self.ports[side].socket_dropped(),
            )
        });
        let logged = self.truth.map_or(Ok(()), Truth::finish);
        let [ab, ba] = totals;
        (Totals { ab, ba }, logged.context("cannot write the log"))
    }
}

fn log(truth: &Option<Truth>, lane: &mut Lane, frame: &Frame, fate: Fate) {
    if let (Some(truth), Some(identity)) = (truth, frame.identity)
        && !truth.log(identity, fate)
    {
        lane.output.log_dropped += 1;
    }
}

/// Keeps the buffer of a frame for the next one.
fn recycle(spare: &mut Vec<Vec<u8>>, frame: Frame) {
    if frame.bytes.capacity() <= 2 * BUFFER_BYTES {
        spare.push(frame.bytes);
    }
}
