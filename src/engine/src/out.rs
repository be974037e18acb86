//! What the engine has decided and the caller has not fetched yet.

use alloc::collections::VecDeque;
use core::net::IpAddr;

use crate::api::{Event, Handle};
use crate::cache::Id;

#[derive(Clone, Copy, Debug)]
pub(crate) enum Queued {
    Release(Handle),
    Inject(Id),
    Probe(IpAddr),
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
        Out { queue: VecDeque::with_capacity(1024), events }
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
