// SPDX-License-Identifier: GPL-2.0-or-later
//! What the guard does.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;

use arrayvec::ArrayVec;
use pemi_engine::Time;

use super::{LOOK, Pulse, QUEUES, process};
use crate::datapath::nfqueue::Queue;
use crate::sys::clock::now;
use crate::sys::poll::{self, Interest};

/// Looks without a move after which the guard stands in. The worker may have stopped just
/// after a look that still saw a move, so packets wait for three looks at most, 225 ms.
const LOOKS: u32 = 2;
/// Packets read between two verdicts, and between two looks at the worker, while standing in.
const BATCH: usize = 64;

/// What the guard takes a worker to be doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nothing waits.
    Idle,
    /// Something waits or has waited, and the worker has not moved for this many looks.
    Busy(u32),
    /// It stands still, and the guard lets its packets go.
    Still,
}

/// What the guard knows of one worker.
#[derive(Debug)]
struct Watch {
    pulse: Pulse,
    turns: u32,
    state: State,
}

impl Watch {
    fn new(pulse: Pulse) -> Watch {
        Watch { pulse, turns: 0, state: State::Idle }
    }

    /// Whether the worker has moved since this was asked last.
    fn has_moved(&mut self) -> bool {
        let turns = self.pulse.turns.load(Ordering::Acquire);
        let before = std::mem::replace(&mut self.turns, turns);
        turns != before
    }

    /// A packet has come after a time without any.
    fn wake(&mut self) {
        self.has_moved();
        self.state = State::Busy(0);
    }

    /// To be called at every look; `any_waits` tells of packets that nobody has read.
    fn look(&mut self, any_waits: impl FnOnce() -> bool) {
        let moved = self.has_moved();
        // A worker that was stopped amid its work may have read packets without having
        // shown that it holds them.
        let waits = self.turns.is_multiple_of(2);
        let holds = || self.pulse.held.load(Ordering::Relaxed) > 0;
        self.state = match self.state {
            _ if moved => State::Busy(0),
            State::Still => State::Still,
            _ if waits && !holds() && !any_waits() => State::Idle,
            State::Busy(looks) if looks + 1 >= LOOKS => {
                self.pulse.stood_in.fetch_add(1, Ordering::Relaxed);
                State::Still
            }
            State::Busy(looks) => State::Busy(looks + 1),
            State::Idle => State::Busy(1),
        };
    }

    /// Lets everything go, what waits and what is still to be read, unless the worker moves.
    /// The guard does nothing about errors: without the queue the daemon ends. The kernel's
    /// answers say at most that a packet had gone already, whichever process reads them.
    fn stand_in(&mut self, queue: &Queue) {
        let mut near = self.pulse.last.load(Ordering::Relaxed);
        loop {
            let _ = queue.release_all(near);
            let mut packets = 0;
            for _ in 0..BATCH {
                if self.has_moved() {
                    self.state = State::Busy(0);
                    break;
                }
                match queue.skip() {
                    Ok(Some(id)) => (near, packets) = (id, packets + 1),
                    Ok(None) => {}
                    Err(_) => break,
                }
            }
            if packets == 0 {
                return;
            }
            self.pulse.last.store(near, Ordering::Relaxed);
        }
    }
}

/// Watches until the daemon has ended, which closes `lifeline`.
pub fn run(lifeline: &impl AsFd, queues: &[Queue], pulses: &[Pulse]) {
    let mut watches: ArrayVec<(&Queue, Watch), QUEUES> =
        queues.iter().zip(pulses).map(|(queue, pulse)| (queue, Watch::new(*pulse))).collect();
    // The time of the next look. Without one the guard waits for a packet.
    let mut next: Option<Time> = None;
    loop {
        let mut interests = ArrayVec::<Interest, { QUEUES + 1 }>::new();
        interests.push(Interest::read(lifeline));
        interests.extend(watches.iter().map(|(queue, watch)| {
            let by_packet = next.is_none() || watch.state == State::Still;
            if by_packet { Interest::read(*queue) } else { Interest::none() }
        }));
        // If the wait fails, the next one follows at once: that is one look too many.
        let _ = poll::wait(&mut interests, next.map(|at| at.since(now())));
        if interests[0].is_ready() {
            // Closing the queue makes the kernel drop what waits in it, and a process takes
            // its time to end.
            for (queue, watch) in &mut watches {
                watch.wake();
                watch.stand_in(queue);
                process::close(*queue);
            }
            return;
        }
        let time = now();
        let due = next.is_some_and(|at| at <= time);
        for ((queue, watch), interest) in watches.iter_mut().zip(&interests[1..]) {
            if due {
                watch.look(|| any_waits(queue));
            } else if watch.state == State::Idle && interest.is_ready() {
                watch.wake();
            }
            if watch.state == State::Still {
                watch.stand_in(queue);
            }
        }
        let busy = watches.iter().any(|(_, watch)| matches!(watch.state, State::Busy(_)));
        next = match next {
            _ if !busy => None,
            Some(at) if !due => Some(at),
            _ => Some(time + LOOK),
        };
    }
}

fn any_waits(queue: &Queue) -> bool {
    let mut interest = [Interest::read(queue)];
    let _ = poll::wait(&mut interest, Some(0));
    interest[0].is_ready()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::datapath::guard::Beat;
    use std::sync::atomic::AtomicU32;

    fn both() -> (Watch, Beat) {
        let [turns, held, last, stood_in] =
            [(); 4].map(|()| &*Box::leak(Box::new(AtomicU32::new(0))));
        let pulse = Pulse { turns, held, last, stood_in };
        (Watch::new(pulse), Beat(pulse))
    }

    /// The states of a worker after each of some looks.
    fn looks<const N: usize>(watch: &mut Watch, any_waits: [bool; N]) -> [State; N] {
        any_waits.map(|any_waits| {
            watch.look(|| any_waits);
            watch.state
        })
    }

    #[test]
    fn who_does_not_move_though_packets_wait_stands_still() {
        let (mut watch, beat) = both();
        beat.works();
        beat.waits(0, 1);
        watch.wake();
        assert_eq!(
            looks(&mut watch, [true, true, false]),
            [State::Busy(1), State::Still, State::Still]
        );
        assert!(beat.was_stood_in_for());
        beat.works();
        beat.waits(0, 1);
        assert_eq!(looks(&mut watch, [true, false]), [State::Busy(0), State::Idle]);
        // Another one was busy, so nobody was woken.
        assert_eq!(looks(&mut watch, [true, true]), [State::Busy(1), State::Still]);
    }

    #[test]
    fn who_stopped_amid_its_work_or_holds_packets_has_something_to_do() {
        let (mut watch, beat) = both();
        beat.works();
        assert_eq!(looks(&mut watch, [false; 3]), [State::Busy(0), State::Busy(1), State::Still]);
        let (mut watch, beat) = both();
        beat.works();
        beat.waits(1, 7);
        assert_eq!(looks(&mut watch, [false; 3]), [State::Busy(0), State::Busy(1), State::Still]);
    }

    #[test]
    fn who_moves_or_has_nothing_to_do_does_not_stand_still() {
        let (mut watch, beat) = both();
        assert_eq!(looks(&mut watch, [false; 9]), [State::Idle; 9]);
        watch.wake();
        for _ in 0..9 {
            beat.works();
            beat.waits(3, 7);
            assert_eq!(looks(&mut watch, [true; 2]), [State::Busy(0), State::Busy(1)]);
        }
        assert!(!beat.was_stood_in_for());
    }
}
