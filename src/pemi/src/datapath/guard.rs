// SPDX-License-Identifier: GPL-2.0-or-later
//! A second process, which lets packets go while the daemon stands still.
//!
//! A queue belongs to its socket, and a child of the daemon has the same socket: it can read
//! packets and give verdicts in the daemon's place. It does so when a worker has
//! something to do and has not moved between looks; when the worker moves again, the guard
//! goes back to looking. It looks by the clock, not at each packet, and not at all while
//! nothing comes. A thread would not do: SIGSTOP stops all threads of a process.
//!
//! It is forked before there are other threads, and not started from the program's file. So
//! it needs neither that file nor `/proc` (a jail may have neither), shares nearly all of
//! its memory with the daemon, and has the sockets without being sent them.

use std::ffi::CStr;
use std::io;
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};

use pemi_engine::{MS, Nanos};

use crate::datapath::nfqueue::Queue;
use crate::sys::poll::{self, Interest};

mod process;
mod watch;

/// What `ps` shows. It has nothing of the daemon's name: a signal to all that bear that name
/// is to leave the guard alone.
const NAME: &CStr = c"queue-guard";
/// The time between two looks of the guard.
const LOOK: Nanos = 75 * MS;
/// A worker that holds packets moves at least this often, to show that it is alive.
pub const MOVE: Nanos = LOOK / 2;
/// The time that the guard gets to end by itself before it is killed.
const FAREWELL: Nanos = 100 * MS;
/// The largest number of queues, which is that of the option `queues`.
const QUEUES: usize = 8;
/// Numbers that are shared for each queue. They fill a cache line, so that no two workers
/// write to the same one; only the first of them are used.
const LINE: usize = 16;

/// What the two processes tell each other of a queue.
#[derive(Clone, Copy, Debug)]
struct Pulse {
    /// Counts the beginnings and the ends of the worker's waits. While it is even, the worker
    /// waits.
    turns: &'static AtomicU32,
    /// How many packets the worker holds. The number is right while it waits.
    held: &'static AtomicU32,
    /// The number of the last packet that the worker has seen.
    last: &'static AtomicU32,
    /// How often the guard has stood in.
    stood_in: &'static AtomicU32,
}

/// With this a worker shows the guard that it is alive.
#[derive(Debug)]
pub struct Beat(Pulse);

impl Beat {
    /// To be called before a wait, with the number of packets that the worker holds and the
    /// number of the last one that it has seen.
    pub fn waits(&self, held: u32, last: u32) {
        self.0.held.store(held, Ordering::Relaxed);
        self.0.last.store(last, Ordering::Relaxed);
        self.0.turns.fetch_add(1, Ordering::Release);
    }

    /// To be called after a wait, and once before the first one: until then the queue has
    /// waited for its worker.
    pub fn works(&self) {
        self.0.turns.fetch_add(1, Ordering::Release);
    }

    /// Whether the guard has ever let packets go, of which the worker does not know which.
    pub fn was_stood_in_for(&self) -> bool {
        self.0.stood_in.load(Ordering::Relaxed) > 0
    }
}

/// The daemon's end of the guard. The guard ends with the value.
#[derive(Debug)]
pub struct Guard {
    pulses: Vec<Pulse>,
    /// The process, and the stream to it, which is closed when the process ends.
    child: Option<(process::Child, UnixStream)>,
    error: Option<String>,
    told: u32,
}

impl Guard {
    /// Starts the guard for these queues. This has to happen while there is one thread only.
    /// With a real-time priority the guard goes before the workers, since they may be what
    /// keeps the processor busy.
    pub fn start(queues: &[Queue], realtime_priority: u8) -> io::Result<Guard> {
        let (lines, _) = process::shared::<{ QUEUES * LINE }>()?.as_chunks::<LINE>();
        let pulses: Vec<Pulse> = lines
            .iter()
            .take(queues.len())
            .map(|[turns, held, last, stood_in, ..]| Pulse { turns, held, last, stood_in })
            .collect();
        let priority = (realtime_priority > 0).then_some(realtime_priority + 1);
        let child = process::fork(|lifeline| {
            process::settle(NAME, priority);
            watch::run(lifeline, queues, &pulses);
        });
        let mut guard = Guard { pulses, child: None, error: None, told: 0 };
        match child {
            Ok(child) => guard.child = Some(child),
            Err(error) => guard.fail(&format!("cannot be started: {error}")),
        }
        Ok(guard)
    }

    /// What the worker of queue `index` needs to show that it is alive.
    pub fn beat(&self, index: usize) -> Beat {
        Beat(self.pulses[index])
    }

    /// What to wait for.
    pub fn interest(&self) -> Option<Interest> {
        self.child.as_ref().map(|(_, stream)| Interest::read(stream))
    }

    /// Notices that the guard has ended, and that it has stood in for a worker.
    pub fn look(&mut self) {
        if self.child.as_mut().is_some_and(|(child, _)| child.has_ended()) {
            self.child = None;
            self.fail("has ended");
        }
        let times = self.pulses.iter().map(|pulse| pulse.stood_in.load(Ordering::Relaxed)).sum();
        if times != self.told {
            self.told = times;
            log::warn!("the daemon stood still {times} times; packets passed unhelped meanwhile");
        }
    }

    /// Why there is no guard; `None` if there is one.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Leaves the guard running. It ends when this process does.
    pub fn outlive(mut self) {
        std::mem::forget(self.child.take());
    }

    fn fail(&mut self, what: &str) {
        let error = format!(
            "the queue guard {what}: should the daemon stand still, packets wait until the \
             service restarts"
        );
        log::error!("{error}");
        self.error = Some(error);
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        let Some((_child, stream)) = &self.child else { return };
        // The guard lets go what still waits, and ends. If it does not, it is killed.
        let _ = stream.shutdown(Shutdown::Write);
        let _ = poll::wait(&mut [Interest::read(stream)], Some(FAREWELL));
    }
}
