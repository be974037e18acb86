// SPDX-License-Identifier: GPL-2.0-or-later
//! Items from several threads for one, at most so many. The standard library's channels are of
//! three kinds, which together are 8 KB of code on MIPS for each kind of item.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    arrived: Condvar,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    room: usize,
    /// Nobody takes any more.
    abandoned: bool,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An end to hand items to; its clones are ends of the same channel.
#[derive(Debug)]
pub struct Sender<T>(Arc<Shared<T>>);

/// The end at which they are taken.
#[derive(Debug)]
pub struct Receiver<T>(Arc<Shared<T>>);

/// Why an item was not taken over; here it is again.
#[derive(Debug, PartialEq, Eq)]
pub enum Refused<T> {
    /// There is no room.
    Full(T),
    /// Nobody takes any more.
    Abandoned(T),
}

/// Both ends, with room for so many items.
pub fn channel<T>(room: usize) -> (Sender<T>, Receiver<T>) {
    let state = Mutex::new(State { items: VecDeque::new(), room, abandoned: false });
    let shared = Arc::new(Shared { state, arrived: Condvar::new() });
    (Sender(shared.clone()), Receiver(shared))
}

impl<T> Sender<T> {
    /// Hands an item over; does not wait for room.
    pub fn send(&self, item: T) -> Result<(), Refused<T>> {
        let mut state = self.0.lock();
        if state.abandoned {
            return Err(Refused::Abandoned(item));
        }
        if state.items.len() >= state.room {
            return Err(Refused::Full(item));
        }
        state.items.push_back(item);
        drop(state);
        self.0.arrived.notify_one();
        Ok(())
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Sender<T> {
        Sender(self.0.clone())
    }
}

impl<T> Receiver<T> {
    /// The next item, if there is one already.
    pub fn take(&self) -> Option<T> {
        self.0.lock().items.pop_front()
    }

    /// The next item; waits until there is one, or for as long as is said.
    pub fn wait(&self, patience: Option<Duration>) -> Option<T> {
        let (arrived, state) = (&self.0.arrived, self.0.lock());
        let empty = |state: &mut State<T>| state.items.is_empty();
        let mut state = match patience {
            None => arrived.wait_while(state, empty).unwrap_or_else(PoisonError::into_inner),
            Some(patience) => {
                let waited = arrived.wait_timeout_while(state, patience, empty);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.items.pop_front()
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.abandoned = true;
        let items = std::mem::take(&mut state.items);
        drop(state);
        // What an item does when it is dropped is no business of those who hold the other ends.
        drop(items);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;

    const LONG: Option<Duration> = Some(Duration::from_secs(20));

    #[test]
    fn items_arrive_in_order_and_no_more_than_there_is_room_for() {
        let (sender, receiver) = channel(2);
        assert_eq!(receiver.take(), None);
        assert_eq!(sender.send(1), Ok(()));
        assert_eq!(sender.clone().send(2), Ok(()));
        assert_eq!(sender.send(3), Err(Refused::Full(3)));
        assert_eq!(
            (receiver.take(), receiver.wait(None), receiver.take()),
            (Some(1), Some(2), None)
        );
        assert_eq!(receiver.wait(Some(Duration::from_millis(1))), None);
        assert_eq!(sender.send(4), Ok(()));
    }

    #[test]
    fn who_waits_is_woken() {
        let (sender, receiver) = channel(1);
        let thread = thread::spawn(move || (receiver.wait(LONG), receiver.wait(None)));
        sender.send(7).unwrap();
        while sender.send(8).is_err() {
            thread::yield_now();
        }
        assert_eq!(thread.join().unwrap(), (Some(7), Some(8)));
    }

    #[test]
    fn what_nobody_takes_any_more_is_dropped_and_refused() {
        let (sender, receiver) = channel(1);
        let item = Arc::new(());
        sender.send(item.clone()).unwrap();
        drop(receiver);
        assert_eq!(Arc::strong_count(&item), 1);
        assert!(matches!(sender.send(item), Err(Refused::Abandoned(_))));
    }
}
