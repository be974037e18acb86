// SPDX-License-Identifier: GPL-2.0-or-later
//! What the thread and everybody else have in common. No call waits for the radio: locks are
//! held while something is copied, never while the kernel is asked.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::news::{Inbox, News, Place};
use super::view::View;
use crate::sys::poll::Waker;

/// Clients that somebody helps now; more than stations are remembered makes no sense.
const MOST_HELPED: usize = pemi_radio::stations::MOST;

/// All of it.
#[derive(Debug)]
pub struct Share {
    /// Wakes the thread.
    pub(super) waker: Waker,
    /// It is to end.
    pub(super) stop: AtomicBool,
    view: Mutex<View>,
    helped: Mutex<Vec<IpAddr>>,
    readers: Mutex<Vec<Arc<Inbox>>>,
}

impl Share {
    /// Where this client is; nothing if it is on no radio of this router, as far as is known.
    pub fn place(&self, client: IpAddr) -> Option<Place> {
        locked(&self.view).place(client)
    }

    /// Says that packets for this client are being helped now. To be said again at least once
    /// in two seconds, as long as it is true: meanwhile its station is asked about ten times a
    /// second.
    pub fn helping(&self, client: IpAddr) {
        let mut helped = locked(&self.helped);
        if helped.len() < MOST_HELPED && !helped.contains(&client) {
            helped.push(client);
            drop(helped);
            self.waker.wake();
        }
    }

    /// A new reader, who is told everything from now on, until it drops what it gets here.
    pub fn subscribe(&self, waker: Arc<Waker>) -> Arc<Inbox> {
        let inbox = Arc::new(Inbox::new(waker));
        locked(&self.readers).push(inbox.clone());
        inbox
    }

    /// Has all readers told.
    pub(super) fn tell(&self, news: &[News]) {
        let mut readers = locked(&self.readers);
        // Whoever is the only one to know a reader is this list.
        readers.retain(|inbox| Arc::strong_count(inbox) > 1);
        readers.iter().for_each(|inbox| inbox.put(news));
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
