// SPDX-License-Identifier: GPL-2.0-or-later
//! Sidekick: a thread that reports to cooperating senders which of their packets got here.
//!
//! What to say, and when, is the business of [`pemi_sidekick`]; here are a UDP port, a
//! look at the packets, and a clock. Packets pass whatever becomes of it.

use std::io;
use std::num::{NonZeroU8, NonZeroU16};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use pemi_sidekick::Interval;
use pemi_sidekick::router::Stats;
use serde_json::{Value, json};

use crate::config::{Config, Mode};
use crate::sys::poll::Waker;
use crate::sys::{privileges, thread};

mod envelope;
mod error;
mod filter;
mod port;
pub mod tap;
mod worker;

use error::Error;
use worker::Worker;

const STACK: usize = 256 << 10;

/// What it works by. With others it starts anew.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Settings {
    port: u16,
    interval: Interval,
    threshold: NonZeroU8,
    /// Clients behind other devices get no answer. Without a list all devices will do.
    devices: Option<Vec<String>>,
}

impl Settings {
    /// None if it is not to run.
    fn of(config: &Config) -> Option<Settings> {
        let sidekick = &config.sidekick;
        if !sidekick.enabled || config.mode == Mode::Bridged {
            return None;
        }
        let any = config.device.is_empty() && config.network.is_empty();
        Some(Settings {
            port: sidekick.port,
            interval: interval(&sidekick.interval),
            threshold: u8::try_from(sidekick.threshold)
                .ok()
                .and_then(NonZeroU8::new)
                .unwrap_or(NonZeroU8::MAX),
            devices: (!any).then(|| config.device.clone()),
        })
    }
}

/// What the option says; it has been checked.
fn interval(text: &str) -> Interval {
    let count = |unit| text.strip_suffix(unit)?.parse().ok().and_then(NonZeroU16::new);
    match (count("ms"), count("p")) {
        (Some(millis), _) => Interval::Millis(millis),
        (None, Some(packets)) => Interval::Packets(packets),
        (None, None) => Interval::Adaptive,
    }
}

/// How it goes.
#[derive(Clone, Copy, Debug, Default)]
struct Snapshot {
    stats: Stats,
    /// Packets that may be missing in the reports though they came, and messages that
    /// could not be sent.
    errors: u64,
}

/// What the thread and the main thread have in common. (Channels would do, but each kind
/// of them takes several KB of code.)
#[derive(Debug)]
struct Shared {
    waker: Waker,
    stop: AtomicBool,
    reset: AtomicBool,
    snapshot: Mutex<Snapshot>,
}

#[derive(Debug)]
struct Running {
    settings: Settings,
    shared: Arc<Shared>,
    thread: JoinHandle<io::Result<()>>,
}

/// The thread, if it is to run and can.
#[derive(Debug, Default)]
pub(crate) struct Sidekick {
    enabled: bool,
    running: Option<Running>,
    error: Option<String>,
}

impl Sidekick {
    /// Starts, ends, or starts it anew, as `config` says; if that changes nothing it
    /// goes on.
    pub fn configure(&mut self, config: &Config) {
        let settings = Settings::of(config);
        self.enabled = settings.is_some();
        let same = self.running.as_ref().map(|running| &running.settings) == settings.as_ref();
        if same && self.error.is_none() {
            return;
        }
        self.stop();
        self.error = None;
        match settings.map(start).transpose() {
            Ok(running) => self.running = running,
            Err(error) => self.fail(&error),
        }
    }

    /// Ends its sessions and the thread.
    pub fn stop(&mut self) {
        if let Some(running) = self.running.take() {
            running.tell(&running.shared.stop);
            // What went wrong was logged when it was noticed.
            let _ = running.thread.join();
        }
    }

    /// To be called now and then: notices that the thread has ended by itself.
    pub fn look(&mut self) {
        if let Some(running) = self.running.take_if(|running| running.thread.is_finished()) {
            self.fail(&match running.thread.join() {
                Ok(Err(error)) => Error::Failed(error),
                _ => Error::Ended,
            });
        }
    }

    /// Counters back to zero.
    pub fn reset(&self) {
        if let Some(running) = &self.running {
            running.tell(&running.shared.reset);
        }
    }

    /// What the user should know.
    pub fn error(&self) -> Option<&str> {
        self.error.as_deref()
    }

    /// Its part of the status.
    pub fn status(&self) -> Value {
        let Snapshot { stats, errors } =
            self.running.as_ref().map(Running::snapshot).unwrap_or_default();
        let counters = [
            ("sessions", stats.sessions.into()),
            ("quacks", stats.quacks),
            ("quack_bytes", stats.quack_bytes),
            ("packets", stats.packets),
            ("losses", stats.losses),
            ("late", stats.late),
            ("refused", stats.refused),
            ("ignored", stats.ignored),
            ("evicted", stats.evicted),
            ("errors", errors),
        ];
        let mut status = json!({"enabled": self.enabled});
        for (name, value) in counters {
            status[name] = value.into();
        }
        status
    }

    fn fail(&mut self, error: &Error) {
        log::error!("{error}; packets pass as without it");
        self.error = Some(error.to_string());
    }
}

impl Running {
    fn tell(&self, what: &AtomicBool) {
        what.store(true, Ordering::Relaxed);
        self.shared.waker.wake();
    }

    fn snapshot(&self) -> Snapshot {
        *self.shared.snapshot.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(settings: Settings) -> Result<Running, Error> {
    let shared = Arc::new(Shared {
        waker: Waker::new().map_err(Error::Waker)?,
        stop: AtomicBool::new(false),
        reset: AtomicBool::new(false),
        snapshot: Mutex::default(),
    });
    let worker = Worker::open(&settings, shared.clone())?;
    let work = move || {
        // Its packet socket comes and goes with the sessions.
        privileges::keep_in_thread(&[privileges::NET_RAW]);
        worker.run()
    };
    let thread = thread::start("pemi-sidekick", STACK, Box::new(work)).map_err(Error::Thread)?;
    log::info!("sidekick answers at UDP port {}", settings.port);
    Ok(Running { settings, shared, thread })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_packets_or_time_or_adaptive() {
        let number = |n| NonZeroU16::new(n).unwrap();
        assert_eq!(interval("2p"), Interval::Packets(number(2)));
        assert_eq!(interval("1000ms"), Interval::Millis(number(1000)));
        assert_eq!(interval("adaptive"), Interval::Adaptive);
    }

    #[test]
    fn settings_say_who_is_answered() {
        let mut config = Config::default();
        assert_eq!(Settings::of(&config), None);
        config.sidekick.enabled = true;
        assert_eq!(Settings::of(&config).unwrap().devices, None);
        config.network = vec!["lan".into()];
        assert_eq!(Settings::of(&config).unwrap().devices, Some(vec![]));
        config.device = vec!["br-lan".into()];
        assert_eq!(Settings::of(&config).unwrap().devices, Some(vec!["br-lan".into()]));
        config.mode = Mode::Bridged;
        assert_eq!(Settings::of(&config), None);
    }

    #[test]
    fn a_port_that_is_taken_is_named_and_tried_again() {
        let taken = std::net::UdpSocket::bind("[::]:0").unwrap();
        let mut config = Config::default();
        config.sidekick.enabled = true;
        config.sidekick.port = taken.local_addr().unwrap().port();
        let mut sidekick = Sidekick::default();
        sidekick.configure(&config);
        let error = sidekick.error().unwrap();
        assert!(error.contains("option 'sidekick.port'"), "{error}");
        assert_eq!(sidekick.status()["enabled"], true);
        drop(taken);
        sidekick.configure(&config);
        // Without the right to look at packets there is another error.
        assert!(sidekick.error().is_none_or(|error| error.contains("CAP_NET_RAW")));
        sidekick.stop();
        assert_eq!(sidekick.status()["sessions"], 0);
    }
}
