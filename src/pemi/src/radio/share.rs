// SPDX-License-Identifier: GPL-2.0-or-later
//! What the thread and everybody else have in common. No call waits for the radio: locks are
//! held while something is copied, never while the kernel is asked.

use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::book::{Book, find};
use super::gate::FRESH;
use super::news::{Clean, Inbox, Place};
use super::view::View;
use crate::sys::clock;
use crate::sys::poll::Waker;

/// Clients that somebody helps now; more than stations are remembered makes no sense.
const MOST_HELPED: usize = pemi_radio::stations::MOST;

/// All of it. It outlives the thread, so that readers and histories stay when that starts anew.
#[derive(Debug)]
pub struct Share {
    /// Wakes the thread.
    pub(super) waker: Waker,
    /// The number of the thread whose turn it is. One that a radio keeps waiting may come back
    /// after its end.
    turn: AtomicU32,
    book: Mutex<Book>,
    /// Apart from the book, which is locked for longer.
    places: Mutex<Vec<(IpAddr, Place)>>,
    helped: Mutex<Vec<IpAddr>>,
    readers: Mutex<Vec<Arc<Inbox>>>,
    /// Wakes whoever lets clean clients pass, when one of them is none any more.
    pub(super) opened: Waker,
    /// After so many seconds without a loss a gate closes; none does with 0.
    release_s: AtomicU32,
    gates: Mutex<Gates>,
}

/// Closed gates, and when that was true.
#[derive(Debug, Default)]
struct Gates {
    at: Duration,
    closed: Vec<Clean>,
}

impl Share {
    /// With nothing in it.
    pub(super) fn new() -> io::Result<Share> {
        Ok(Share {
            waker: Waker::new()?,
            turn: AtomicU32::new(0),
            book: Mutex::default(),
            places: Mutex::default(),
            helped: Mutex::default(),
            readers: Mutex::default(),
            opened: Waker::new()?,
            release_s: AtomicU32::new(0),
            gates: Mutex::default(),
        })
    }

    /// Clients whose radio loses nothing; nobody when the thread does not come to look.
    pub(super) fn clean(&self) -> Vec<Clean> {
        let gates = locked(&self.gates);
        if now().saturating_sub(gates.at) < FRESH { gates.closed.clone() } else { Vec::new() }
    }

    /// Says after how many seconds gates close; 0: never.
    pub(super) fn release_after(&self, seconds: u32) {
        self.release_s.store(seconds, Ordering::Relaxed);
    }

    /// Where this client is; nothing if it is on no radio of this router, as far as is known.
    /// Not for each packet: another thread may have the lock for some microseconds.
    pub fn place(&self, client: IpAddr) -> Option<Place> {
        find(&locked(&self.places), client)
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

    /// How many addresses of clients are known to be on a radio.
    pub(super) fn clients(&self) -> usize {
        locked(&self.places).len()
    }

    /// A copy of what people are shown.
    pub(super) fn view(&self) -> View {
        locked(&self.book).view(now())
    }

    /// Has the thread end, and gives the number of the next one.
    pub(super) fn next_turn(&self) -> u32 {
        let turn = self.turn.fetch_add(1, Ordering::Relaxed).wrapping_add(1);
        self.waker.wake();
        turn
    }

    /// Whether the thread of this number is to go on.
    pub(super) fn is_turn(&self, turn: u32) -> bool {
        self.turn.load(Ordering::Relaxed) == turn
    }

    /// Who was helped since this was asked last.
    pub(super) fn helped(&self) -> Vec<IpAddr> {
        std::mem::take(&mut locked(&self.helped))
    }

    /// Changes the book, and has everybody know what is new; not if another thread's turn has
    /// come. (Were it made anew for each kind of change, that would be 2 KB of code each.)
    pub(super) fn write(&self, turn: u32, change: &mut dyn FnMut(&mut Book)) {
        let mut book = locked(&self.book);
        if !self.is_turn(turn) {
            return;
        }
        change(&mut book);
        let news = book.news(now());
        book.places().clone_into(&mut locked(&self.places));
        self.judge(&book);
        drop(book);
        if news.is_empty() {
            return;
        }
        let mut readers = locked(&self.readers);
        // Whoever is the only one to know a reader is this list.
        readers.retain(|inbox| Arc::strong_count(inbox) > 1);
        readers.iter().for_each(|inbox| inbox.put(&news));
    }

    fn judge(&self, book: &Book) {
        let (now, release_s) = (now(), self.release_s.load(Ordering::Relaxed));
        let closed = match release_s {
            0 => Vec::new(),
            _ => book.clean(now, Duration::from_secs(release_s.into())),
        };
        let mut gates = locked(&self.gates);
        if gates.closed.iter().any(|before| !closed.contains(before)) {
            self.opened.wake();
        }
        *gates = Gates { at: now, closed };
    }
}

/// The time, as durations count it here: by the daemon's one clock.
pub(super) fn now() -> Duration {
    Duration::from_nanos(clock::now().as_nanos())
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
