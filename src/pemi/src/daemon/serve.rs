// SPDX-License-Identifier: GPL-2.0-or-later
//! What the main thread does while the daemon runs: signals, the control socket, ubus, and
//! once a second a look at everything that runs beside it.

use std::net::IpAddr;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use pemi_engine::{FlowInfo, Nanos, Stats};
use serde_json::Value;

use crate::config::flags::RunOptions;
use crate::config::{self, Config, Mode};
use crate::daemon::benefit::Benefit;
use crate::daemon::clients;
use crate::daemon::control::Control;
use crate::daemon::gates::Gates;
use crate::daemon::helped::Helped;
use crate::daemon::history::History;
use crate::daemon::names::Names;
use crate::daemon::object::object;
use crate::daemon::open::settings;
use crate::daemon::request::{Answer, Data, Request};
use crate::daemon::seeing::Seeing;
use crate::daemon::status;
use crate::daemon::trend::Trend;
use crate::daemon::ubus::Ubus;
use crate::daemon::words;
use crate::datapath::direction;
use crate::datapath::guard::Guard;
use crate::datapath::nfqueue::KernelCounters;
use crate::datapath::worker::{Command, Snapshot, Wanted};
use crate::datapath::workers::Workers;
use crate::firewall::table::Firewall;
use crate::log::logger;
use crate::radio::Radio;
use crate::sidekick::Sidekick;
use crate::sys::clock;
use crate::sys::poll::{self, Interest};
use crate::sys::signals::{Signal, Signals};

/// Seconds that a line of the log is about.
const MINUTE: u64 = 60;
/// Flows of a queue that are looked at for what was done for each client, those with the most
/// traffic. All of them would be a quarter of a megabyte a second, in a thread that has no time.
const LOOKED_AT: usize = 128;
/// Seconds from one look at what came of downloads to the next (chosen: a download is over after
/// three without a packet, and then nothing comes that would show it).
const COMPARED: u64 = 5;

/// By which others talk to the daemon.
pub(crate) struct Doors {
    pub signals: Signals,
    pub control: Control,
    pub ubus: Ubus,
}

/// What runs, and what the main thread remembers of it.
pub(crate) struct Daemon {
    options: RunOptions,
    config: Config,
    pub workers: Workers,
    pub guard: Guard,
    pub firewall: Option<Firewall>,
    sidekick: Sidekick,
    radio: Radio,
    helped: Helped,
    gates: Gates,
    seeing: Seeing,
    pub benefit: Benefit,
    /// Flows were looked at since the last second.
    looked: bool,
    history: History,
    pub trend: Trend,
    started: Instant,
    /// Since when the counters count: the start, or the last reset.
    counted: Instant,
    /// What went wrong with the last reload.
    complaints: Vec<String>,
    /// Counters when the minute began of which the log will tell.
    told: Stats,
    seconds: u64,
    /// Packets seen by then, and clients on a radio.
    packets: u64,
    clients: usize,
    /// And at the last two looks at downloads: those that are over show a while after the last packet.
    compared: [u64; 2],
}

/// How serving ends in good order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Stop,
    /// There are new settings that only a new start can put into effect.
    Restart,
}

impl Daemon {
    /// One of which everything runs but Sidekick and the radio's thread, which are started here.
    pub fn new(
        options: RunOptions,
        config: Config,
        workers: Workers,
        guard: Guard,
        firewall: Option<Firewall>,
        seeing: Seeing,
        mut radio: Radio,
    ) -> Daemon {
        let mut sidekick = Sidekick::default();
        sidekick.configure(&config);
        radio.configure(&config);
        let mode = config.mode;
        let compares = config.control_percent > 0;
        let benefit = Benefit::new(&config.device, compares, config.benefit.as_ref());
        let trend = Trend::new(config.benefit.as_deref());
        Daemon {
            options,
            config,
            workers,
            guard,
            firewall,
            sidekick,
            radio,
            helped: Helped::default(),
            gates: Gates::new(mode),
            seeing,
            benefit,
            looked: false,
            history: History::new(),
            trend,
            started: Instant::now(),
            counted: Instant::now(),
            complaints: Vec::new(),
            told: Stats::default(),
            seconds: 0,
            packets: 0,
            clients: 0,
            compared: [0; 2],
        }
    }

    /// Serves until it is told to stop, or until something is gone that nothing works
    /// without.
    pub fn serve(&mut self, doors: &mut Doors) -> Result<End, String> {
        let Doors { signals, control, ubus } = doors;
        let second = Duration::from_secs(1);
        let mut next = Instant::now() + second;
        ubus.tick();
        loop {
            let mut interests = vec![Interest::read(&*signals), Interest::read(&self.workers)];
            interests.extend(self.guard.interest());
            interests.extend(self.firewall.as_ref().map(Interest::read));
            interests.extend(control.interests());
            interests.extend(ubus.interest());
            interests.push(self.radio.opened());
            let due = self.firewall.as_ref().and_then(Firewall::due).unwrap_or(next);
            let wait = match control.is_pending() {
                true => Duration::ZERO,
                false => next.min(due).saturating_duration_since(Instant::now()),
            };
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
            self.workers.look().map_err(|e| e.to_string())?;
            self.guard.look();
            if let Some(firewall) = &mut self.firewall {
                firewall.work();
            }
            self.radio.heed();
            self.turn_gates(None);
            control.serve(|request| self.answer(request));
            ubus.serve(|request| self.answer(request));
            if Instant::now() >= next {
                next += second;
                if next < Instant::now() {
                    // The machine stood still, and there are no samples of that time.
                    next = Instant::now() + second;
                }
                self.tick();
                ubus.tick();
            }
        }
    }

    fn tick(&mut self) {
        let workers = self.workers.examine();
        if self.seeing.look(&mut self.config, &workers) {
            self.configure();
            if let Some(firewall) = &mut self.firewall {
                firewall.configure(&self.config);
            }
        }
        if let Some(firewall) = &mut self.firewall {
            let (devices, let_go) = Seeing::shown(&self.config, &workers);
            firewall.shorten(devices);
            firewall.let_go(let_go);
        }
        let total = status::total(&workers);
        let sample = self.history.sample(clock::unix(), &total);
        self.trend.add(&sample);
        self.sidekick.look();
        self.radio.look();
        self.seconds += 1;
        let packets = |s: &Stats| s.packets_down + s.packets_up;
        let silent = packets(&total) == self.packets;
        self.packets = packets(&total);
        // What was looked at a moment ago tells of that moment only.
        let known = !std::mem::take(&mut self.looked);
        let before = std::mem::replace(&mut self.clients, self.radio.clients());
        if self.clients > 0 && !silent {
            self.look_at_flows();
        }
        self.turn_gates(Some((silent, known)));
        if let Some(firewall) = &mut self.firewall {
            // Who has just come is to be helped from the first packet on.
            firewall.second(silent && self.clients <= before);
        }
        if self.seconds.is_multiple_of(COMPARED) {
            self.compare();
        }
        if self.seconds.is_multiple_of(MINUTE) {
            let before = std::mem::replace(&mut self.told, total);
            words::minute(&total, &before).iter().for_each(|line| log::info!("{line}"));
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
                self.seeing = Seeing::of(&self.config);
                self.configure();
                if let Some(firewall) = &mut self.firewall {
                    firewall.configure(&self.config);
                }
                self.sidekick.configure(&self.config);
                self.radio.configure(&self.config);
                let compares = self.config.control_percent > 0;
                self.benefit.configure(&self.config.device, compares);
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

    /// Takes what came of downloads, and has those networks stand back where help does harm.
    fn compare(&mut self) {
        let [before, last] = self.compared;
        self.compared = [last, self.packets];
        if before != self.packets {
            let answers = self.workers.ask(Command::Outcomes);
            let outcomes: Vec<_> = answers.into_iter().flatten().flatten().collect();
            self.benefit.take(&outcomes);
        }
        if let Some(networks) = self.benefit.turn() {
            self.workers.tell(|| Command::StandBack(networks));
        }
    }

    /// Gives the workers the settings, and says which events are wanted.
    fn configure(&self) {
        let events = Wanted::new(self.options.events.is_some(), log::max_level());
        self.workers.tell(|| Command::Configure(Box::new(self.config.clone()), events));
    }

    fn answer(&mut self, request: Request) -> Answer {
        match request {
            Request::Status => Ok(self.status().into()),
            Request::Clients { limit, skip } => {
                self.look_at_flows();
                self.looked = true;
                let firewall = self.firewall.as_ref();
                let facts = clients::Facts {
                    view: &self.radio.view(),
                    passing: firewall.map(Firewall::passing).unwrap_or_default(),
                    helped: &self.helped,
                    names: &Names::read(),
                    helping: self.is_helping(),
                };
                Ok(clients::clients(&facts, limit, skip).into())
            }
            Request::Flows { limit } => {
                let mut flows = self.flows(limit);
                flows.sort_unstable_by_key(|flow| std::cmp::Reverse(flow.bytes_down));
                flows.truncate(limit);
                Ok(Data::Flows(flows))
            }
            Request::Benefit => Ok(self.benefit.json().into()),
            Request::History { seconds, skip } => {
                Ok(object(vec![("history", self.history.json(seconds, skip))]).into())
            }
            Request::Trend { span, limit, skip } => Ok(self.trend.json(span, limit, skip).into()),
            Request::Reset => {
                self.workers.tell(|| Command::Reset);
                self.sidekick.reset();
                self.helped.reset();
                self.benefit.reset();
                self.counted = Instant::now();
                self.history.reset();
                Ok(object(Vec::new()).into())
            }
            Request::Log { level } => {
                log::set_max_level(level);
                self.configure();
                Ok(object(Vec::new()).into())
            }
        }
    }

    /// Those with the most traffic of each queue.
    fn flows(&self, limit: usize) -> Vec<FlowInfo> {
        let answers = self.workers.ask(|to| Command::Flows(limit, to));
        answers.into_iter().flatten().flatten().collect()
    }

    /// Adds up what was done for each client, and has the radio ask more often about those for
    /// whom something is done.
    fn look_at_flows(&mut self) {
        let flows = self.flows(LOOKED_AT);
        for client in self.helped.look(self.started.elapsed().as_secs(), &flows) {
            self.radio.helping(client);
        }
    }

    /// Has clients that lose something come by the queue at once, and, when a second is over, those
    /// that lose nothing pass as they are, if they were silent in it: because all of them were, or
    /// where it is known of each.
    fn turn_gates(&mut self, second: Option<(bool, bool)>) {
        let Some(firewall) = &mut self.firewall else { return };
        let is_silent = |client: Option<IpAddr>| match second {
            Some((true, _)) => true,
            Some((false, true)) => client.is_some_and(|client| self.helped.is_silent(client)),
            Some((false, false)) | None => false,
        };
        let clean = self.radio.clean();
        if let Some(passing) = self.gates.turn(&clean, second.is_some(), &is_silent) {
            firewall.let_pass(passing);
        }
    }

    /// Whether anybody is to be helped.
    fn is_helping(&self) -> bool {
        self.config.firewall != config::Firewall::Nobody
    }

    fn status(&self) -> Value {
        let paths = self.workers.snapshots();
        let kernel = status::kernel(&paths);
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
        if firewall.is_none() && self.config.firewall == config::Firewall::Nft {
            errors.push("firewall rules are not loaded; see the log".into());
        }
        errors.extend(self.seeing.error(&self.config));
        errors.extend(self.sidekick.error().map(str::to_string));
        errors.extend(self.benefit.errors());
        let radio = self.radio.view();
        errors.extend(self.radio.error().map(str::to_string));
        errors.extend(clients::error(&radio));
        let dropped = unhelped(&paths, &kernel);
        if dropped > 0 {
            errors.push(format!("{dropped} packets passed unhelped: the daemon did not keep up"));
        }
        if paths.iter().any(|path| path.realtime_refused) {
            errors.push("no real-time priority: repairs come late while the router is busy".into());
        }
        errors.extend(self.guard.error().map(str::to_string));
        if paths.len() < self.workers.count() {
            errors.push("a packet queue does not answer".into());
        }
        let mode = if self.config.mode == Mode::Routed { "routed" } else { "bridged" };
        let uptime_s = self.started.elapsed().as_secs();
        let counted_s = self.counted.elapsed().as_secs();
        let log_dropped = logger::dropped();
        let mut answer = status::status(&status::Facts {
            uptime_s,
            counted_s,
            hour: self.history.hour(),
            mode,
            paths: &paths,
            kernel: &kernel,
            log_dropped,
            errors,
        });
        answer["capture"] = self.seeing.json(&self.config);
        answer["sidekick"] = self.sidekick.status();
        answer["radio"] = clients::radio(&radio);
        answer["radio"]["passing"] =
            firewall.map_or(0, |it| clients::passing(&radio, it.passing())).into();
        answer["helping"] = self.is_helping().into();
        answer["resting"] = firewall.is_some_and(Firewall::is_resting).into();
        answer
    }

    /// Ends what works beside the queues.
    pub fn stop_helpers(&mut self) {
        self.sidekick.stop();
        self.radio.stop();
    }
}

/// Packets that passed, or were dropped, without the daemon having seen them.
pub(crate) fn unhelped(paths: &[Snapshot], kernel: &[KernelCounters]) -> u64 {
    let missed: u64 = paths.iter().map(|path| path.capture.missed).sum();
    missed + kernel.iter().map(|counters| u64::from(counters.dropped())).sum::<u64>()
}
