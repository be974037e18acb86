// SPDX-License-Identifier: GPL-2.0-or-later
//! One answer from one thread to another. Channels can do that, too, but are 8 KB of
//! code on MIPS for each kind of answer.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

#[derive(Debug)]
enum State<T> {
    Waiting,
    Answered(T),
    /// The thread that was asked has gone.
    Gone,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of the thread that is asked. If it goes without an answer, nobody waits any
/// longer.
#[derive(Debug)]
pub struct Reply<T>(Arc<Shared<T>>);

/// The end of the thread that asks.
#[derive(Debug)]
pub struct Expected<T>(Arc<Shared<T>>);

/// Both ends.
pub fn pair<T>() -> (Reply<T>, Expected<T>) {
    let shared = Arc::new(Shared { state: Mutex::new(State::Waiting), changed: Condvar::new() });
    (Reply(shared.clone()), Expected(shared))
}

impl<T> Reply<T> {
    /// Answers. Whoever asked may have given up waiting.
    pub fn send(self, answer: T) {
        *self.0.lock() = State::Answered(answer);
    }
}

impl<T> Drop for Reply<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        if matches!(*state, State::Waiting) {
            *state = State::Gone;
        }
        drop(state);
        self.0.changed.notify_one();
    }
}

impl<T> Expected<T> {
    /// The answer, if there is one within `patience`.
    pub fn wait(self, patience: Duration) -> Option<T> {
        let waiting = |state: &mut State<T>| matches!(state, State::Waiting);
        let (mut state, _) = self
            .0
            .changed
            .wait_timeout_while(self.0.lock(), patience, waiting)
            .unwrap_or_else(PoisonError::into_inner);
        match std::mem::replace(&mut *state, State::Gone) {
            State::Answered(answer) => Some(answer),
            State::Waiting | State::Gone => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::thread;
    use std::time::Instant;

    const LONG: Duration = Duration::from_secs(20);

    #[test]
    fn an_answer_arrives_before_or_while_it_is_waited_for() {
        let (reply, expected) = pair();
        reply.send(7);
        assert_eq!(expected.wait(Duration::ZERO), Some(7));
        let (reply, expected) = pair();
        let thread = thread::spawn(move || reply.send(8));
        assert_eq!(expected.wait(LONG), Some(8));
        thread.join().unwrap();
    }

    #[test]
    fn nobody_waits_for_who_is_gone_or_slow() {
        let start = Instant::now();
        let (reply, expected) = pair::<u8>();
        let thread = thread::spawn(move || drop(reply));
        assert_eq!(expected.wait(LONG), None);
        thread.join().unwrap();
        let (reply, expected) = pair::<u8>();
        assert_eq!(expected.wait(Duration::from_millis(1)), None);
        reply.send(1);
        assert!(start.elapsed() < LONG);
    }
}
