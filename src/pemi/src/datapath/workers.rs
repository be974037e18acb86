// SPDX-License-Identifier: GPL-2.0-or-later
//! The queue threads, as the main thread sees them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pemi_engine::Nanos;

use crate::config::Config;
use crate::datapath::capture::Capture;
use crate::datapath::error::Error;
use crate::datapath::outlet::Sockets;
use crate::datapath::teller::Teller;
use crate::datapath::worker::{Command, Line, Snapshot, Wanted, Worker};
use crate::log::item::Item;
use crate::sys::channel::{self, Sender};
use crate::sys::poll::{self, Interest, Waker};
use crate::sys::reply::{self, Reply};
use crate::sys::{privileges, thread};

const STACK: usize = 256 << 10;
/// Commands that may wait for a worker; one that hangs takes none, and whoever asks hears nothing.
const COMMANDS: usize = 64;
/// A worker answers within microseconds unless the machine stands still.
const PATIENCE: Duration = Duration::from_millis(300);
/// The time that all of them get to end. With the patience above, SIGTERM ends the daemon within a second
/// though one of them hangs.
const FAREWELL: Duration = Duration::from_millis(300);
/// Examinations in a row, a second apart once one was not answered, without an answer, after which a worker counts as
/// hung. There are no examinations while the whole process is stopped.
const SILENCE: u32 = 10;

/// So many examinations in a row are spared while no packets come (chosen: flows that have ended
/// leave the tables without any, and are to be seen to).
const SPARED: u32 = 9;

/// The main thread's side of a worker.
struct Thread {
    queue: u16,
    commands: Sender<Command>,
    waker: Arc<Waker>,
    thread: JoinHandle<io::Result<()>>,
    /// Packets were taken in since the last examination.
    moved: Arc<AtomicBool>,
    /// Examinations without an answer.
    silent: u32,
}

impl Thread {
    fn tell(&self, command: Command) {
        // A worker that has ended is noticed by `Workers::look`.
        let _ = self.commands.send(command);
        self.waker.wake();
    }
}

/// All workers.
pub struct Workers {
    list: Vec<Thread>,
    /// Ready when one of them has ended.
    ended: Arc<Waker>,
    /// What was found at the last examination, and how often it has stood for another since.
    found: Vec<Snapshot>,
    spared: u32,
}

impl Workers {
    /// None yet.
    pub fn new() -> Result<Workers, Error> {
        let ended = Waker::new().map_err(Error::Waker)?;
        Ok(Workers { list: Vec::new(), ended: Arc::new(ended), found: Vec::new(), spared: 0 })
    }

    /// Starts a worker for `capture`. `teller` is made for its waker.
    pub fn start(
        &mut self,
        config: &Config,
        capture: impl Capture + Send + 'static,
        events: Sender<Item>,
        wanted: Wanted,
        teller: impl FnOnce(Arc<Waker>) -> Box<dyn Teller>,
    ) -> Result<(), Error> {
        let queue = capture.id();
        let waker = Arc::new(Waker::new().map_err(Error::Waker)?);
        let (commands, orders) = channel::channel(COMMANDS);
        let sockets = Sockets::open(config).map_err(|error| Error::Refused {
            queue,
            error,
            taken: None,
            entitled: privileges::are_kept(),
        })?;
        let teller = Some(teller(waker.clone()));
        let moved = Arc::new(AtomicBool::new(true));
        let line = Line {
            commands: orders,
            waker: waker.clone(),
            moved: moved.clone(),
            events,
            wanted,
            teller,
        };
        let worker = Worker::new(config, capture, sockets, line);
        let (priority, ended) = (config.realtime_priority, self.ended.clone());
        let work = move || {
            let result = worker.run(priority);
            ended.wake();
            result
        };
        let thread = thread::start(&format!("pemi-queue-{queue}"), STACK, Box::new(work))
            .map_err(Error::Thread)?;
        self.list.push(Thread { queue, commands, waker, thread, moved, silent: 0 });
        Ok(())
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.list.len()
    }

    /// Tells all of them the same.
    pub fn tell(&self, command: impl Fn() -> Command) {
        self.list.iter().for_each(|worker| worker.tell(command()));
    }

    /// Asks all of them. The answer of a worker that takes too long is `None`.
    pub fn ask<T>(&self, command: impl Fn(Reply<T>) -> Command) -> Vec<Option<T>> {
        let expected: Vec<_> = self
            .list
            .iter()
            .map(|worker| {
                let (to, from) = reply::pair();
                worker.tell(command(to));
                from
            })
            .collect();
        let start = Instant::now();
        let left = || PATIENCE.saturating_sub(start.elapsed());
        expected.into_iter().map(|from| from.wait(left())).collect()
    }

    /// The counters of those that answer.
    pub fn snapshots(&self) -> Vec<Snapshot> {
        self.ask(Command::Snapshot).into_iter().flatten().collect()
    }

    /// The same, to be called once a second, so that a worker that hangs is found. While no packets
    /// come nobody is woken for it, but now and then: counters stand still then.
    pub fn examine(&mut self) -> Vec<Snapshot> {
        let busy =
            |worker: &Thread| worker.moved.swap(false, Ordering::Relaxed) || worker.silent > 0;
        // All of them have to be asked whether they have moved.
        let busy = self.list.iter().filter(|worker| busy(worker)).count() > 0;
        self.spared = if busy || self.spared >= SPARED { 0 } else { self.spared + 1 };
        if self.spared > 0 {
            return self.found.clone();
        }
        let answers = self.ask(Command::Snapshot);
        for (worker, answer) in self.list.iter_mut().zip(&answers) {
            worker.silent = if answer.is_some() { 0 } else { worker.silent + 1 };
        }
        self.found = answers.into_iter().flatten().collect();
        self.found.clone()
    }

    /// An error if one of them has ended by itself, or hangs.
    pub fn look(&mut self) -> Result<(), Error> {
        let fails = |worker: &Thread| worker.thread.is_finished() || worker.silent >= SILENCE;
        let Some(at) = self.list.iter().position(fails) else { return Ok(()) };
        let queue = self.list[at].queue;
        if !self.list[at].thread.is_finished() {
            return Err(Error::Silent { queue, seconds: SILENCE });
        }
        match self.list.remove(at).thread.join() {
            Ok(Err(error)) => log::error!("queue {queue}: {error}"),
            _ => log::error!("queue {queue}: its thread ended"),
        }
        Err(Error::Gone { queue })
    }

    /// Has all of them let everything go and end. Gives whether they have. A worker
    /// that hangs ends with the process.
    pub fn stop(self) -> bool {
        self.tell(|| Command::Stop);
        let start = Instant::now();
        while !self.list.iter().all(|worker| worker.thread.is_finished()) {
            let left = FAREWELL.saturating_sub(start.elapsed());
            if left.is_zero() {
                log::error!("a packet queue does not answer; it is left behind");
                return false;
            }
            // Woken when one of them is about to end, so soon after that it has.
            let left = left.min(Duration::from_millis(5)).as_nanos() as Nanos;
            let _ = poll::wait(&mut [Interest::read(&self)], Some(left));
            self.ended.clear();
        }
        // Errors were logged when they were noticed.
        self.list.into_iter().for_each(|worker| drop(worker.thread.join()));
        true
    }
}

impl AsFd for Workers {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.ended.as_fd()
    }
}
