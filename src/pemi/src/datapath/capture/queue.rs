// SPDX-License-Identifier: GPL-2.0-or-later
//! The kernel's packet queue as a capture: every packet waits for its verdict.

use std::fs;
use std::io;
use std::ops::Range;

use pemi_engine::{Handle, Nanos, Time};

use super::gathering::{Gathering, Manner};
use super::spare::Spare;
use super::{Capture, Counters, Interests, Seen};
use crate::config::{Capture as Way, Config};
use crate::datapath::error::Error;
use crate::datapath::guard::{self, Beat};
use crate::datapath::nfqueue::message::{self, CHECKSUM_NOT_READY, GSO, Message, Packet};
use crate::datapath::nfqueue::{
    BATCH, Inbox, KERNEL_TABLE, MAX_LEN, Queue, Verdicts, kernel_counters,
};
use crate::sys::poll::{self, Interest};
use crate::sys::{clock, privileges};

/// Binds the queues that `config` asks for.
pub(crate) fn bind(config: &Config) -> Result<Vec<Queue>, Error> {
    (config.queue..=config.queue + (config.queues - 1))
        .map(|queue| {
            let bound = Queue::bind(queue).inspect(|queue| {
                if config.capture != Way::Ring {
                    queue.stamp();
                }
            });
            bound.map_err(|error| {
                let table = fs::read_to_string(KERNEL_TABLE).unwrap_or_default();
                let taken = kernel_counters(&table, queue);
                Error::Refused { queue, error, taken, entitled: privileges::are_kept() }
            })
        })
        .collect()
}

/// A bound queue with the batch that was taken from it last.
#[derive(Debug)]
pub(crate) struct Nfqueue {
    queue: Queue,
    beat: Beat,
    inbox: Inbox,
    /// Datagrams in the inbox.
    filled: usize,
    /// When they were taken. All of them were waiting by then, and none had left, so none can be
    /// the cause of another; asking for each takes a small router some hundred instructions.
    filled_at: Time,
    /// The wall clock then, once somebody has asked: packets are stamped by it.
    wall: Option<u64>,
    /// Which of them is being read, and where its next message begins.
    datagram: usize,
    next: usize,
    /// Where the packet that was taken last is in it.
    packet: Range<usize>,
    gathering: Gathering,
    /// Nothing was in the queue when the last wait ended.
    empty: bool,
    verdicts: Verdicts,
    /// Packets taken from the queue since the start. The number wraps around, as does that
    /// of the verdicts.
    taken: u32,
    /// The same when the last turn began.
    before: u32,
    numbering: Numbering,
    verdict_errors: u32,
}

/// The kernel numbers packets as they come, also those that it cannot hand over.
#[derive(Debug, Default)]
struct Numbering {
    next: Option<u32>,
    missed: u64,
}

impl Numbering {
    /// The number of the last packet, or one less than the first.
    fn last(&self) -> u32 {
        self.next.map_or(0, |next| next.wrapping_sub(1))
    }

    fn seen(&mut self, id: u32) {
        let ahead = self.next.map_or(0, |next| id.wrapping_sub(next).cast_signed());
        match u64::try_from(ahead) {
            Ok(ahead) => {
                self.missed += ahead;
                self.next = Some(id.wrapping_add(1));
            }
            // One processor has numbered it, and another one was faster to hand over.
            Err(_) => self.missed = self.missed.saturating_sub(1),
        }
    }
}

impl Nfqueue {
    /// For a bound queue; `beat` shows the guard that somebody looks after it.
    pub fn new(queue: Queue, beat: Beat) -> Nfqueue {
        beat.works();
        Nfqueue {
            queue,
            beat,
            inbox: Inbox::new(),
            filled: 0,
            filled_at: clock::now(),
            wall: None,
            datagram: 0,
            next: 0,
            packet: 0..0,
            gathering: Gathering::new(Spare::new()),
            empty: false,
            verdicts: Verdicts::new(),
            taken: 0,
            before: 0,
            numbering: Numbering::default(),
            verdict_errors: 0,
        }
    }

    /// How long packets gather from now on.
    pub(super) fn gather(&mut self, manner: Manner) {
        self.gathering.gather(manner);
    }

    /// Packets that were taken and have no verdict yet.
    fn held(&self) -> u32 {
        self.taken.wrapping_sub(self.verdicts.given())
    }

    /// Lets packets and reports gather: whoever waited for them would be woken by each report, and by
    /// the first packet.
    fn pause(&mut self, held: u32, others: &mut Interests, pause: Nanos) -> io::Result<()> {
        others.iter_mut().filter(|other| other.is_end()).for_each(Interest::set_aside);
        self.rest(held, others, Some(pause))?;
        others.iter_mut().filter(|other| other.is_end()).for_each(Interest::take_for_ready);
        self.gathering.paused(self.now());
        Ok(())
    }

    /// Waits, and shows the guard that it does, which would take many pauses in a row for a worker
    /// that stands still.
    fn rest(
        &self,
        held: u32,
        interests: &mut [Interest],
        timeout: Option<Nanos>,
    ) -> io::Result<()> {
        self.beat.waits(held, self.numbering.last());
        poll::wait(interests, timeout)?;
        self.beat.works();
        Ok(())
    }

    fn seen(&mut self, packet: Packet) -> Seen {
        self.taken = self.taken.wrapping_add(1);
        self.numbering.seen(packet.id);
        self.packet = packet.payload;
        let waited = match packet.stamp {
            0 => 0,
            stamp => self.wall.get_or_insert_with(clock::wall).wrapping_sub(stamp).cast_signed(),
        };
        Seen {
            handle: Some(Handle(packet.id)),
            at: self.filled_at,
            waited,
            devices: (packet.indev, packet.outdev),
            ports: packet.ports,
            mark: packet.mark,
            header: packet.header,
            whole: !packet.truncated && packet.info & GSO == 0,
            checksum_missing: packet.info & CHECKSUM_NOT_READY != 0,
            missed: false,
        }
    }
}

impl Capture for Nfqueue {
    fn name(&self) -> &'static str {
        "queue"
    }

    fn id(&self) -> u16 {
        self.queue.id()
    }

    fn now(&self) -> Time {
        clock::now()
    }

    fn configure(&mut self, _: &Config) {}

    fn wait(&mut self, others: &mut Interests, mut timeout: Option<Nanos>) -> io::Result<()> {
        let held = self.held();
        let lately = self.taken.wrapping_sub(self.before);
        self.before = self.taken;
        if let Some(pause) = self.gathering.pause(self.now(), lately, held > 0) {
            let pause = timeout.map_or(pause, |timeout| timeout.min(pause));
            return self.pause(held, others, pause);
        }
        if held > 0 {
            // A worker that holds packets and does not move counts as hung for the guard.
            timeout = Some(timeout.map_or(guard::MOVE, |timeout| timeout.min(guard::MOVE)));
        }
        others.push(Interest::read(&self.queue));
        self.rest(held, others, timeout)?;
        let came = others.last().is_some_and(Interest::is_ready);
        self.gathering.waited(self.now(), came);
        self.empty = !came;
        Ok(())
    }

    fn fill(&mut self) -> io::Result<bool> {
        // Where a report woke the worker, nobody need be asked for packets.
        let empty = std::mem::take(&mut self.empty);
        self.filled = if empty { 0 } else { self.inbox.fill(&self.queue)? };
        (self.filled_at, self.wall) = (self.now(), None);
        (self.datagram, self.next) = (0, 0);
        Ok(self.filled == BATCH)
    }

    fn take(&mut self) -> Option<Seen> {
        while self.datagram < self.filled {
            let datagram = self.inbox.datagram(self.datagram);
            let Some((message, next)) = message::next(datagram, self.next) else {
                (self.datagram, self.next) = (self.datagram + 1, 0);
                continue;
            };
            self.next = next;
            match message {
                Message::Packet(packet) => return Some(self.seen(packet)),
                Message::Answer(0) | Message::Other => {}
                // The guard has let the packet go before us.
                Message::Answer(libc::ENOENT) if self.beat.was_stood_in_for() => {}
                Message::Answer(_) => self.verdict_errors = self.verdict_errors.saturating_add(1),
            }
        }
        None
    }

    fn bytes(&mut self) -> &mut [u8] {
        &mut self.inbox.datagram(self.datagram)[self.packet.clone()]
    }

    fn accept(&mut self, handle: Handle, mark: Option<u32>) -> io::Result<()> {
        self.verdicts.accept(&self.queue, handle.0, mark, self.held() == 1)
    }

    fn discard(&mut self, handle: Handle) -> io::Result<()> {
        self.verdicts.discard(&self.queue, handle.0)
    }

    fn flush_accepted(&mut self) -> io::Result<()> {
        self.verdicts.flush_accepted(&self.queue)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.verdicts.flush(&self.queue)
    }

    /// Closing a queue makes the kernel drop what waits in it, so it is emptied before.
    fn close(&mut self) -> io::Result<()> {
        self.flush()?;
        self.empty = false;
        // Packets go on coming. After as many as can wait, all that waited have gone.
        for _ in 0..MAX_LEN {
            self.fill()?;
            if self.filled == 0 {
                break;
            }
            while let Some(seen) = self.take() {
                if let Some(handle) = seen.handle {
                    self.accept(handle, None)?;
                }
            }
            self.flush()?;
        }
        // What the guard had read and not let go when it ended.
        self.queue.release_all(self.numbering.last())
    }

    fn counters(&self) -> Counters {
        Counters {
            missed: self.numbering.missed,
            verdict_errors: self.verdict_errors,
            ..Counters::default()
        }
    }

    fn reset(&mut self) {
        self.numbering.missed = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_in_the_numbering_are_packets_missed() {
        for (ids, missed) in [
            (&[7, 8, 9][..], 0),
            (&[7, 9, 12], 3),
            (&[u32::MAX, 0, 2], 1),
            (&[4, 6, 5, 7], 0),
            (&[4, 3], 0),
        ] {
            let mut numbering = Numbering::default();
            ids.iter().for_each(|id| numbering.seen(*id));
            assert_eq!(numbering.missed, missed, "{ids:?}");
        }
    }
}
