// SPDX-License-Identifier: GPL-2.0-or-later
//! A client of a hop.

use std::collections::VecDeque;

use crate::Nanos;
use crate::channel::Station;
use crate::hop::Way;
use crate::hop::reorder::Reorder;

/// What a hop knows of one client; pairs are by [`Way`].
#[derive(Debug)]
pub(super) struct Client<T> {
    pub station: Station,
    /// The number of its access point.
    pub access_point: usize,
    /// Rises with each move.
    pub association: u32,
    pub sequences: [u16; 2],
    pub reorder: [Reorder<T>; 2],
    /// What waits on the channel.
    pub airtime: [Nanos; 2],
    /// The last frame.
    pub active: Nanos,
    /// A beacon that its sleep goes by.
    pub first_beacon: Nanos,
    /// It sleeps until then.
    pub wakes: Option<Nanos>,
    /// The next move.
    pub moves: Option<Nanos>,
    /// It moves until then.
    pub silent_until: Nanos,
    /// What it wants to send after the move.
    pub held: VecDeque<(u32, T)>,
}

impl<T> Client<T> {
    pub fn new(station: Station, first_beacon: Nanos, moves: Option<Nanos>) -> Client<T> {
        Client {
            station,
            access_point: 0,
            association: 0,
            sequences: [0, 0],
            reorder: [Reorder::new(), Reorder::new()],
            airtime: [0, 0],
            active: 0,
            first_beacon,
            wakes: None,
            moves,
            silent_until: 0,
            held: VecDeque::new(),
        }
    }

    /// When something is due that concerns a packet.
    pub fn deadline(&self) -> Option<Nanos> {
        let held = (!self.held.is_empty()).then_some(self.silent_until);
        let [down, up] = &self.reorder;
        [down.deadline(), up.deadline(), self.wakes, held].into_iter().flatten().min()
    }

    /// Takes out what waits here.
    pub fn drain(&mut self) -> impl Iterator<Item = (Way, T)> + use<T> {
        let [down, up] = &mut self.reorder;
        let down: Vec<T> = down.end().collect();
        let up: Vec<T> = up.end().chain(self.held.drain(..).map(|(_, item)| item)).collect();
        let down = down.into_iter().map(|item| (Way::Down, item));
        down.chain(up.into_iter().map(|item| (Way::Up, item)))
    }
}
