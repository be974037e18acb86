// SPDX-License-Identifier: GPL-2.0-or-later
//! What the daemon opens before it has threads: the settings, the rights that it keeps,
//! queues, guard, control socket and event file.

use std::fs::File;

use crate::config::flags::RunOptions;
use crate::config::{self, Config};
use crate::daemon::control::Control;
use crate::datapath::capture::queue;
use crate::datapath::guard::Guard;
use crate::datapath::nfqueue::Queue;
use crate::log::logger;
use crate::sys::signals::Signals;
use crate::sys::{privileges, seccomp};

/// All of it.
pub(crate) struct Opened {
    pub config: Config,
    pub signals: Signals,
    pub queues: Vec<Queue>,
    pub guard: Guard,
    pub control: Control,
    pub events: Option<File>,
}

/// Opens it; the error is for standard error.
pub(crate) fn open(options: &RunOptions) -> Result<Opened, String> {
    let (config, warnings) = settings(options)?;
    logger::init(config.log_level);
    warnings.iter().for_each(|warning| log::warn!("{warning}"));
    if let Some(user) = &options.user {
        privileges::give_up(user).map_err(|e| format!("--user {user}: {e}"))?;
    }
    if let Some(file) = &options.seccomp {
        seccomp::install(file).map_err(|e| format!("--seccomp {}: {e}", file.display()))?;
    }
    let signals = Signals::take().map_err(|e| format!("signals: {e}"))?;
    let queues = match config.firewall {
        config::Firewall::Nobody => Vec::new(),
        _ => queue::bind(&config).map_err(|e| e.to_string())?,
    };
    // The guard is a copy of this process: of one thread, and of what is open now.
    let guard = Guard::start(&queues, config.realtime_priority)
        .map_err(|e| format!("memory for the queue guard: {e}"))?;
    let events = match &options.events {
        Some(path) => Some(File::create(path).map_err(|e| format!("{}: {e}", path.display()))?),
        None => None,
    };
    let control = Control::open(&config.control)
        .map_err(|e| format!("option 'control': {}: {e}", config.control.display()))?;
    Ok(Opened { config, signals, queues, guard, control, events })
}

/// The configuration: the file, then the flags. It has to fit into memory with both.
pub(crate) fn settings(options: &RunOptions) -> Result<(Config, Vec<String>), String> {
    let (mut config, warnings) = match &options.config {
        Some(file) => config::load(file).map_err(|error| error.lines(file).join("\n"))?,
        None => (Config::default(), Vec::new()),
    };
    options.apply(&mut config);
    config::fits(&config)?;
    Ok((config, warnings))
}
