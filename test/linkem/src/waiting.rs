// SPDX-License-Identifier: GPL-2.0-or-later
//! What waits in front of the link, by the queue discipline.

use crate::Nanos;
use crate::fq::FairQueue;
use crate::pipe::Packet;
use crate::queue::{Discipline, Queue};
use crate::red::Red;

/// What `none` may hold nevertheless: the memory of the machine is not unlimited.
pub const SAFETY_BYTES: u64 = 256 << 20;

/// Packets in front of the link.
#[derive(Debug)]
pub enum Waiting<T> {
    /// All in one queue.
    One(Queue<Packet<T>>),
    /// All in one queue that RED guards.
    Red(Queue<Packet<T>>, Red),
    /// A queue for each flow.
    Fair(FairQueue<Packet<T>>),
}

impl<T> Waiting<T> {
    /// An empty queue; `red` makes what the discipline of this name needs.
    pub fn new(discipline: Discipline, limit_bytes: u64, red: impl FnOnce() -> Red) -> Waiting<T> {
        match discipline {
            Discipline::FqCodel => Waiting::Fair(FairQueue::new(limit_bytes)),
            Discipline::Red => Waiting::Red(Queue::new(limit_bytes, discipline), red()),
            Discipline::None => Waiting::One(Queue::new(SAFETY_BYTES, discipline)),
            Discipline::Droptail | Discipline::Codel => {
                Waiting::One(Queue::new(limit_bytes, discipline))
            }
        }
    }

    /// Queues a packet; what is dropped for it, or it itself, goes to `drop`.
    pub fn push(&mut self, at: Nanos, packet: Packet<T>, mut drop: impl FnMut(Packet<T>)) {
        let (bytes, flow) = (packet.bytes, packet.flow);
        let refused = match self {
            Waiting::One(queue) => queue.push(at, packet, bytes),
            Waiting::Red(queue, red) => {
                if red.admits(at, queue.bytes()) {
                    queue.push(at, packet, bytes)
                } else {
                    Err(packet)
                }
            }
            Waiting::Fair(queue) => return queue.push(at, flow, packet, bytes, drop),
        };
        if let Err(packet) = refused {
            drop(packet);
        }
    }

    /// The next packet; what the discipline drops on the way goes to `drop`.
    pub fn pop(&mut self, at: Nanos, drop: impl FnMut(Packet<T>)) -> Option<Packet<T>> {
        match self {
            Waiting::One(queue) => queue.pop(at, drop).map(|(packet, _)| packet),
            Waiting::Red(queue, red) => {
                let (packet, _) = queue.pop(at, drop)?;
                if queue.is_empty() {
                    red.emptied(at);
                }
                Some(packet)
            }
            Waiting::Fair(queue) => queue.pop(at, drop),
        }
    }

    /// A packet finds an idle link and need not wait; gives whether it may pass.
    pub fn passes_by(&mut self, at: Nanos) -> bool {
        match self {
            Waiting::One(queue) => {
                queue.passed_by();
                true
            }
            Waiting::Red(_, red) => red.admits(at, 0),
            Waiting::Fair(_) => true,
        }
    }

    /// Nothing waits.
    pub fn is_empty(&self) -> bool {
        match self {
            Waiting::One(queue) | Waiting::Red(queue, _) => queue.is_empty(),
            Waiting::Fair(queue) => queue.is_empty(),
        }
    }

    /// The most bytes that ever waited at once.
    pub fn max_bytes(&self) -> u64 {
        match self {
            Waiting::One(queue) | Waiting::Red(queue, _) => queue.max_bytes(),
            Waiting::Fair(queue) => queue.max_bytes(),
        }
    }

    /// Empties the queue.
    pub fn drain(&mut self) -> Vec<T> {
        match self {
            Waiting::One(queue) | Waiting::Red(queue, _) => {
                queue.drain().map(|packet| packet.item).collect()
            }
            Waiting::Fair(queue) => queue.drain().map(|packet| packet.item).collect(),
        }
    }
}
