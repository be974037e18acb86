//! `pemi run`: starts the packet paths and looks after them.

use std::env;
use std::fs::{self, File};
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsFd;
use std::os::unix::process::CommandExt;
use std::process;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use log::LevelFilter;
use pemi_engine::{FlowInfo, Nanos, Stats};
use serde_json::{Value, json};

use crate::cli::RunOptions;
use crate::config::{self, Config, Mode};
use crate::control::Control;
use crate::firewall::Firewall;
use crate::history::History;
use crate::nfqueue::{KERNEL_TABLE, KernelCounters, kernel_counters};
use crate::path::{Command, Path, Snapshot, Wanted};
use crate::poll::{self, Interest, Waker};
use crate::reply::{self, Reply};
use crate::request::{Answer, Request};
use crate::sidekick::Sidekick;
use crate::signals::{Signal, Signals};
use crate::ubus::Ubus;
use crate::writer::Writer;
use crate::{direction, logger, privileges, sched, status};

const STACK: usize = 256 << 10;
/// A packet path answers within microseconds unless the machine stands still.
const PATIENCE: Duration = Duration::from_millis(500);
const MINUTE: u64 = 60;

struct Worker {
    queue: u16,
    commands: Sender<Command>,
    waker: Arc<Waker>,
    thread: JoinHandle<io::Result<()>>,
}

impl Worker {
    fn tell(&self, command: Command) {
        // A path that has ended is noticed by `Daemon::dead`.
        let _ = self.commands.send(command);
        self.waker.wake();
    }

    fn ask<T>(&self, command: impl FnOnce(Reply<T>) -> Command) -> Option<T> {
        let (to, from) = reply::pair();
        self.tell(command(to));
        from.wait(PATIENCE)
    }
}

struct Daemon {
    options: RunOptions,
    config: Config,
    workers: Vec<Worker>,
    firewall: Option<Firewall>,
    sidekick: Sidekick,
    history: History,
    started: Instant,
    /// Since when the counters count: the start, or the last reset.
    counted: Instant,
    /// What went wrong with the last reload.
    complaints: Vec<String>,
    /// Counters at the last line of totals.
    told: Stats,
    seconds: u64,
}

/// How serving ends in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Stop,
    /// With settings that only a new start can take.
    Restart,
}

/// Runs until it is told to stop; the error is for standard error.
pub fn run(options: RunOptions) -> Result<(), String> {
    logger::init(options.log_level.unwrap_or(LevelFilter::Info));
    let (config, warnings) = settings(&options)?;
    logger::init(config.log_level);
    warnings.iter().for_each(|warning| log::warn!("{warning}"));
    if let Some(user) = &options.user {
        privileges::give_up(user).map_err(|e| format!("--user {user}: {e}"))?;
    }
    let mut signals = Signals::take().map_err(|e| format!("signals: {e}"))?;
    let events = match &options.events {
        Some(path) => Some(File::create(path).map_err(|e| format!("{}: {e}", path.display()))?),
        None => None,
    };
    let wanted = Wanted::new(events.is_some(), config.log_level);
    let mut control = Control::open(&config.control)
        .map_err(|e| format!("option 'control': {}: {e}", config.control.display()))?;
    let writer = Writer::start(events).map_err(|e| format!("writer thread: {e}"))?;
    let ended = Arc::new(Waker::new().map_err(|e| format!("eventfd: {e}"))?);
    let mut workers = Vec::new();
    for queue in config.queue..=config.queue + (config.queues - 1) {
        match start(&config, queue, &writer, wanted, &ended) {
            Ok(worker) => workers.push(worker),
            Err(error) => {
                workers.drain(..).for_each(stop);
                writer.stop();
                return Err(error);
            }
        }
    }
    if let Err(error) = sched::lock_memory() {
        log::debug!("memory is not locked: {error}");
    }
    log::info!(
        "started version={} queue={} queues={} device={} port={}",
        env!("CARGO_PKG_VERSION"),
        config.queue,
        config.queues,
        match (config.device.is_empty(), config.network.is_empty()) {
            (false, _) => config.device.join(","),
            (true, true) => "any".into(),
            (true, false) => "none".into(),
        },
        config.port.iter().map(u16::to_string).collect::<Vec<_>>().join(",")
    );
    let firewall = match config.firewall {
        config::Firewall::None => None,
        // After the queues: the first packet finds somebody there.
        config::Firewall::Nft => Firewall::start(&config)
            .inspect_err(|error| log::error!("firewall: {error}; packets pass unhelped"))
            .ok(),
    };
    for name in direction::absent(&config.device) {
        log::warn!(
            "device {name} does not exist yet; its packets are told apart by port until it comes"
        );
    }
    let mut daemon = Daemon {
        options,
        config,
        workers,
        firewall,
        sidekick: Sidekick::default(),
        history: History::new(),
        started: Instant::now(),
        counted: Instant::now(),
        complaints: Vec::new(),
        told: Stats::default(),
        seconds: 0,
    };
    daemon.sidekick.configure(&daemon.config);
    let result = daemon.serve(&mut signals, &mut control, &ended);
    daemon.sidekick.stop();
    let last = daemon.snapshots();
    let dropped = unhelped(&last, &kernel(&last));
    let failed: u32 = last.iter().map(|path| path.inject_errors).sum();
    // Before the queues: what comes meanwhile passes.
    drop(daemon.firewall.take());
    daemon.workers.drain(..).for_each(stop);
    log::info!(
        "stopped {} queue_dropped={dropped} inject_errors={failed}",
        totals(&status::total(&last))
    );
    drop(control);
    writer.stop();
    match result? {
        End::Stop => Ok(()),
        End::Restart => Err(again()),
    }
}

/// Starts the same program with the same arguments in the place of this one.
/// If it comes back at all, then with an error.
fn again() -> String {
    let mut arguments = env::args_os();
    let program = arguments.next().unwrap_or_default();
    let error = process::Command::new(&program).args(arguments).exec();
    format!("{} cannot be started again: {error}", program.display())
}

/// The configuration: file, then flags.
fn settings(options: &RunOptions) -> Result<(Config, Vec<String>), String> {
    let (mut config, warnings) = match &options.config {
        Some(file) => config::load(file).map_err(|error| error.lines(file).join("\n"))?,
        None => (Config::default(), Vec::new()),
    };
    options.apply(&mut config);
    Ok((config, warnings))
}

fn start(
    config: &Config,
    queue: u16,
    writer: &Writer,
    wanted: Wanted,
    ended: &Arc<Waker>,
) -> Result<Worker, String> {
    let waker = Arc::new(Waker::new().map_err(|e| format!("eventfd: {e}"))?);
    let (commands, receiver) = mpsc::channel();
    let path = Path::open(config, queue, receiver, waker.clone(), writer.sender(), wanted)
        .map_err(|error| {
            let table = fs::read_to_string(KERNEL_TABLE).unwrap_or_default();
            explain(queue, &error, kernel_counters(&table, queue), privileges::are_kept())
        })?;
    let (priority, ended) = (config.realtime_priority, ended.clone());
    let thread = thread::Builder::new()
        .name(format!("pemi-queue-{queue}"))
        .stack_size(STACK)
        .spawn(move || {
            let result = path.run(priority);
            ended.wake();
            result
        })
        .map_err(|e| format!("thread: {e}"))?;
    Ok(Worker { queue, commands, waker, thread })
}

/// Why a queue cannot be had, in words that help. The kernel refuses a queue
/// that is taken and a lack of rights alike (EPERM), so its list has to tell;
/// who is not root cannot read that, but knows whether he is `entitled`.
fn explain(queue: u16, error: &io::Error, taken: Option<KernelCounters>, entitled: bool) -> String {
    let refused = error.raw_os_error() == Some(libc::EPERM);
    if taken.is_some() || refused && entitled {
        let owner = taken.map(|taken| format!(" (process {}, most likely)", taken.owner));
        return format!(
            "queue {queue}: {error}: another program has it{}: is another pemi running? \
             Otherwise choose another number (option queue)",
            owner.unwrap_or_default()
        );
    }
    let likely = match error.raw_os_error() {
        Some(libc::EPERM | libc::EACCES) => {
            "CAP_NET_ADMIN and CAP_NET_RAW are needed: run as root or give them"
        }
        Some(libc::EPROTONOSUPPORT | libc::EOPNOTSUPP | libc::ENOENT | libc::EINVAL) => {
            "the kernel has no NFQUEUE support: install kmod-nft-queue"
        }
        _ => "see the kernel log",
    };
    format!("queue {queue}: {error}: {likely}")
}

fn stop(worker: Worker) {
    worker.tell(Command::Stop);
    // Errors were told when they were noticed.
    let _ = worker.thread.join();
}

fn totals(s: &Stats) -> String {
    format!(
        "packets_down={} packets_up={} flows={} inferred={} repaired={} upstream={} congestion={} resent={} held={} late={}",
        s.packets_down,
        s.packets_up,
        s.flows_active,
        s.losses_inferred,
        s.losses_repaired,
        s.losses_upstream,
        s.losses_congestion,
        s.resent_packets,
        s.concealed_held,
        s.concealed_late
    )
}

impl Daemon {
    fn serve(
        &mut self,
        signals: &mut Signals,
        control: &mut Control,
        ended: &Waker,
    ) -> Result<End, String> {
        let second = Duration::from_secs(1);
        let mut next = Instant::now() + second;
        let mut ubus = Ubus::new(self.config.ubus.as_deref());
        ubus.tick();
        loop {
            let mut interests = vec![Interest::read(signals), Interest::read(ended)];
            interests.extend(self.firewall.as_ref().map(Interest::read));
            interests.extend(control.descriptors().map(|fd| Interest::read(&fd.as_fd())));
            interests.extend(ubus.interest());
            let due = self.firewall.as_ref().and_then(Firewall::due).unwrap_or(next);
            let wait = next.min(due).saturating_duration_since(Instant::now());
            poll::wait(&mut interests, Some(wait.as_nanos() as Nanos))
                .map_err(|e| format!("poll: {e}"))?;
            while let Some(signal) = signals.pending() {
                match signal {
                    Signal::Stop => return Ok(End::Stop),
                    Signal::Reload => {
                        if self.reload().is_break() {
                            return Ok(End::Restart);
                        }
                    }
                }
            }
            if let Some(queue) = self.dead() {
                return Err(format!(
                    "queue {queue} is gone; packets pass unhelped until the service restarts"
                ));
            }
            if let Some(firewall) = &mut self.firewall {
                firewall.work();
            }
            control.serve(|request| self.answer(request));
            ubus.serve(|request| self.answer(request));
            if Instant::now() >= next {
                next += second;
                if next < Instant::now() {
                    // The machine stood still; samples of that time are gone.
                    next = Instant::now() + second;
                }
                self.tick();
                ubus.tick();
            }
        }
    }

    /// A queue whose thread has ended by itself.
    fn dead(&mut self) -> Option<u16> {
        let at = self.workers.iter().position(|worker| worker.thread.is_finished())?;
        let worker = self.workers.remove(at);
        match worker.thread.join() {
            Ok(Err(error)) => log::error!("queue {}: {error}", worker.queue),
            _ => log::error!("queue {}: its thread ended", worker.queue),
        }
        Some(worker.queue)
    }

    fn snapshots(&self) -> Vec<Snapshot> {
        self.workers.iter().filter_map(|worker| worker.ask(Command::Snapshot)).collect()
    }

    fn tick(&mut self) {
        let total = status::total(&self.snapshots());
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
        self.history.sample(unix, &total);
        self.sidekick.look();
        self.seconds += 1;
        let packets = |s: &Stats| s.packets_down + s.packets_up;
        if self.seconds.is_multiple_of(MINUTE) && packets(&total) != packets(&self.told) {
            log::info!("totals {}", totals(&total));
            self.told = total;
        }
    }

    /// Reads the configuration again and acts on it, or says that this takes a
    /// new start.
    fn reload(&mut self) -> ControlFlow<()> {
        match settings(&self.options) {
            Ok((config, warnings)) => {
                let anew = config.restart_for(&self.config);
                if !anew.is_empty() {
                    log::info!("starting anew for changed options: {}", anew.join(", "));
                    return ControlFlow::Break(());
                }
                warnings.iter().for_each(|warning| log::warn!("{warning}"));
                self.complaints.clear();
                log::set_max_level(config.log_level);
                self.config = config;
                self.configure();
                if let Some(firewall) = &mut self.firewall {
                    firewall.configure(&self.config);
                }
                self.sidekick.configure(&self.config);
                log::info!("configuration read again; flows kept");
            }
            Err(error) => {
                self.complaints = error.lines().map(str::to_string).collect();
                self.complaints
                    .iter()
                    .for_each(|line| log::error!("{line}; the last good configuration stays"));
            }
        }
        ControlFlow::Continue(())
    }

    /// Tells the packet paths the settings and what to tell of.
    fn configure(&self) {
        let events = Wanted::new(self.options.events.is_some(), log::max_level());
        for worker in &self.workers {
            worker.tell(Command::Configure(Box::new(self.config.clone()), events));
        }
    }

    fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Status => Ok(self.status()),
            Request::Flows { limit } => {
                let mut flows: Vec<FlowInfo> = self
                    .workers
                    .iter()
                    .filter_map(|worker| worker.ask(|to| Command::Flows(limit, to)))
                    .flatten()
                    .collect();
                flows.sort_unstable_by_key(|flow| std::cmp::Reverse(flow.bytes_down));
                flows.truncate(limit);
                Ok(json!({"flows": status::flows(&flows)}))
            }
            Request::History { seconds, skip } => {
                Ok(json!({"history": self.history.json(seconds, skip)}))
            }
            Request::Reset => {
                self.workers.iter().for_each(|worker| worker.tell(Command::Reset));
                self.sidekick.reset();
                self.counted = Instant::now();
                self.history.reset();
                Ok(json!({}))
            }
            Request::Log { level } => {
                log::set_max_level(level);
                self.configure();
                Ok(json!({}))
            }
        }
    }

    fn status(&self) -> Value {
        let paths = self.snapshots();
        let kernel = kernel(&paths);
        let mut errors = self.complaints.clone();
        errors.extend(
            direction::absent(&self.config.device)
                .map(|name| format!("device {name} does not exist")),
        );
        errors.extend(
            self.config.absent.iter().map(|name| format!("network {name} has no device now")),
        );
        let firewall = self.firewall.as_ref();
        errors.extend(firewall.and_then(Firewall::error).map(str::to_string));
        if firewall.is_none() && self.config.firewall != config::Firewall::None {
            errors.push("firewall rules are not loaded; see the log of the start".into());
        }
        errors.extend(self.sidekick.error().map(str::to_string));
        let dropped = unhelped(&paths, &kernel);
        if dropped > 0 {
            errors.push(format!("{dropped} packets passed unhelped: the queue was full"));
        }
        if paths.iter().any(|path| path.realtime_refused) {
            errors.push("no real-time priority: repairs come late while the router is busy".into());
        }
        if paths.len() < self.workers.len() {
            errors.push("a packet queue does not answer".into());
        }
        let mode = if self.config.mode == Mode::Routed { "routed" } else { "bridged" };
        let uptime_s = self.started.elapsed().as_secs();
        let counted_s = self.counted.elapsed().as_secs();
        let log_dropped = logger::dropped();
        status::status(&status::Facts {
            uptime_s,
            counted_s,
            hour: self.history.hour(),
            mode,
            paths: &paths,
            kernel: &kernel,
            log_dropped,
            sidekick: self.sidekick.status(),
            errors,
        })
    }
}

/// Packets that passed, or were dropped, without the daemon having seen them.
fn unhelped(paths: &[Snapshot], kernel: &[KernelCounters]) -> u64 {
    let missed: u64 = paths.iter().map(|path| path.missed).sum();
    missed + kernel.iter().map(|counters| u64::from(counters.dropped())).sum::<u64>()
}

/// The kernel's counters of the same queues.
fn kernel(paths: &[Snapshot]) -> Vec<KernelCounters> {
    let table = fs::read_to_string(KERNEL_TABLE).unwrap_or_default();
    paths.iter().map(|path| kernel_counters(&table, path.queue).unwrap_or_default()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_that_is_taken_is_told_from_a_lack_of_rights() {
        let error = io::Error::from_raw_os_error(libc::EPERM);
        let taken = KernelCounters { owner: 4242, ..KernelCounters::default() };
        let text = explain(7, &error, Some(taken), true);
        assert!(text.contains("queue 7") && text.contains("process 4242"), "{text}");
        let text = explain(7, &error, None, false);
        assert!(text.contains("queue 7") && text.contains("CAP_NET_ADMIN"), "{text}");
        let text = explain(7, &error, None, true);
        assert!(text.contains("another program has it: is another pemi"), "{text}");
        let text = explain(7, &io::Error::from_raw_os_error(libc::ENOENT), None, true);
        assert!(text.contains("kmod-nft-queue"), "{text}");
    }
}
