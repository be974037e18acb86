// SPDX-License-Identifier: GPL-2.0-or-later
//! A link with its two directions: two pipes, or a Wi-Fi hop whose directions share
//! the air.

use crate::pipe::{Counts, Dropped, Packet, Pipe};
use crate::wifi::Wifi;
use crate::{Direction, Nanos};

/// Both directions of a link.
#[derive(Debug)]
pub enum Link<T> {
    /// Directions that do not know of each other.
    Pipes(Box<[Pipe<T>; 2]>),
    /// One radio channel for both.
    Wifi(Box<Wifi<T>>),
}

impl<T> Link<T> {
    /// A packet enters at `at`; `client` is whose it is, which only Wi-Fi heeds.
    pub fn push(&mut self, at: Nanos, direction: Direction, client: usize, packet: Packet<T>) {
        match self {
            Link::Pipes(pipes) => pipes[direction as usize].push(at, packet),
            Link::Wifi(wifi) => wifi.push(at, direction, client, packet),
        }
    }

    /// Lets everything happen that happens until `now`.
    pub fn advance(&mut self, now: Nanos) {
        match self {
            Link::Pipes(pipes) => pipes.iter_mut().for_each(|pipe| pipe.advance(now)),
            Link::Wifi(wifi) => wifi.advance(now),
        }
    }

    /// When to call [`Link::advance`] and [`Link::pop_due`] next, if nothing enters.
    pub fn next_deadline(&self) -> Option<Nanos> {
        match self {
            Link::Pipes(pipes) => pipes.iter().filter_map(Pipe::next_deadline).min(),
            Link::Wifi(wifi) => wifi.next_deadline(),
        }
    }

    /// A packet that comes out by `now`, with the time that it was due.
    pub fn pop_due(&mut self, direction: Direction, now: Nanos) -> Option<(Nanos, T)> {
        match self {
            Link::Pipes(pipes) => pipes[direction as usize].pop_due(now),
            Link::Wifi(wifi) => wifi.pop_due(direction),
        }
    }

    /// A packet that will not come out.
    pub fn pop_dropped(&mut self, direction: Direction) -> Option<(T, Dropped)> {
        match self {
            Link::Pipes(pipes) => pipes[direction as usize].pop_dropped(),
            Link::Wifi(wifi) => wifi.pop_dropped(direction),
        }
    }

    /// How often a client has come to another access point by now.
    pub fn moves(&self, client: usize, now: Nanos) -> u32 {
        match self {
            Link::Pipes(_) => 0,
            Link::Wifi(wifi) => wifi.moves(client, now),
        }
    }

    /// Whether a client is with an access point, and not on its way to another one.
    pub fn is_there(&self, client: usize, now: Nanos) -> bool {
        match self {
            Link::Pipes(_) => true,
            Link::Wifi(wifi) => wifi.is_there(client, now),
        }
    }

    /// Empties both directions of what is still under way.
    pub fn drain(&mut self) -> [Vec<T>; 2] {
        match self {
            Link::Pipes(pipes) => pipes.each_mut().map(Pipe::drain),
            Link::Wifi(wifi) => wifi.drain(),
        }
    }

    /// What has gone through a direction so far.
    pub fn counts(&self, direction: Direction) -> Counts {
        match self {
            Link::Pipes(pipes) => pipes[direction as usize].counts(),
            Link::Wifi(wifi) => wifi.counts(direction),
        }
    }

    /// The most bytes that ever waited at once.
    pub fn max_queue_bytes(&self, direction: Direction) -> u64 {
        match self {
            Link::Pipes(pipes) => pipes[direction as usize].max_queue_bytes(),
            Link::Wifi(wifi) => wifi.max_queue_bytes(direction),
        }
    }
}
