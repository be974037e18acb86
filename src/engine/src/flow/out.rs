// SPDX-License-Identifier: GPL-2.0-or-later
//! What the engine has decided and the caller has not fetched yet.

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::net::IpAddr;

use crate::api::{Event, Handle, Outcome, Ticket};
use crate::store::cache::Id;

/// Actions for which there is room from the start (chosen: all that one flow holds, and the
/// copies for its gaps, without growing).
const ROOM: usize = 1024;
/// Outcomes that wait to be fetched; those beyond are lost (chosen: somebody asks once a second).
const OUTCOMES: usize = 64;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Queued {
    Release(Handle),
    Inject(Id),
    Send { id: Id, ticket: Option<Ticket>, original: Option<Handle> },
    Probe(IpAddr),
    Watch(IpAddr),
    Event(Event),
}

/// The queue of actions. One call into the engine puts in a bounded number:
/// at most what one flow holds, and one attempt's copies for each of its gaps.
#[derive(Debug)]
pub(crate) struct Out {
    queue: VecDeque<Queued>,
    events: bool,
    outcomes: Vec<Outcome>,
}

impl Out {
    pub fn new(events: bool) -> Out {
        let outcomes = Vec::with_capacity(OUTCOMES);
        Out { queue: VecDeque::with_capacity(ROOM), events, outcomes }
    }

    pub fn want_events(&mut self, events: bool) {
        self.events = events;
    }

    pub fn push(&mut self, action: Queued) {
        self.queue.push_back(action);
    }

    pub fn event(&mut self, event: impl FnOnce() -> Event) {
        if self.events {
            self.queue.push_back(Queued::Event(event()));
        }
    }

    pub fn outcome(&mut self, outcome: Outcome) {
        if self.outcomes.len() < OUTCOMES {
            self.outcomes.push(outcome);
        }
    }

    /// The networks of the outcomes, to be changed where they have other numbers.
    pub fn networks_mut(&mut self) -> impl Iterator<Item = &mut u8> {
        self.outcomes.iter_mut().map(|outcome| &mut outcome.network)
    }

    pub fn take_outcomes(&mut self) -> Vec<Outcome> {
        self.outcomes.drain(..).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn pop(&mut self) -> Option<Queued> {
        self.queue.pop_front()
    }
}
