// SPDX-License-Identifier: GPL-2.0-or-later
//! What the engine has decided and the caller has not fetched yet.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use crate::api::{Event, Handle, Ticket};
use crate::store::cache::Id;

/// Actions for which there is room from the start (chosen: all that one flow holds, and the
/// copies for its gaps, without growing).
const ROOM: usize = 1024;

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
}

impl Out {
    pub fn new(events: bool) -> Out {
        Out { queue: VecDeque::with_capacity(ROOM), events }
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

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    pub fn pop(&mut self) -> Option<Queued> {
        self.queue.pop_front()
    }
}
