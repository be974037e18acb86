// SPDX-License-Identifier: GPL-2.0-or-later
//! What runs beside the main thread, how it is started, and how it is ended in good order.

use crate::config::flags::RunOptions;
use crate::config::{self, Config};
use crate::daemon::open::Opened;
use crate::daemon::seeing::Seeing;
use crate::daemon::serve::{Daemon, Doors, unhelped};
use crate::daemon::status;
use crate::daemon::teller::Subscription;
use crate::daemon::ubus::Ubus;
use crate::daemon::words;
use crate::datapath::capture::queue::Nfqueue;
use crate::datapath::capture::ring::Rings;
use crate::datapath::direction;
use crate::datapath::guard::Guard;
use crate::datapath::nfqueue::Queue;
use crate::datapath::teller::Teller;
use crate::datapath::worker::Wanted;
use crate::datapath::workers::Workers;
use crate::firewall::table::Firewall;
use crate::log::writer::Writer;
use crate::radio::Radio;
use crate::sys::sched;

/// Starts the writer, the workers, the firewall rules, Sidekick and the radio's thread.
pub(crate) fn start(
    opened: Opened,
    options: RunOptions,
) -> Result<(Daemon, Doors, Writer), String> {
    let Opened { mut config, signals, queues, guard, control, events } = opened;
    let wanted = Wanted::new(events.is_some(), config.log_level);
    let writer = Writer::start(events).map_err(|e| format!("writer thread: {e}"))?;
    let radio = Radio::new().map_err(|e| format!("radio: {e}"))?;
    let mut workers = Workers::new().map_err(|e| e.to_string())?;
    if let Err(error) = employ(&mut workers, &config, queues, &guard, &writer, &radio, wanted) {
        workers.stop();
        writer.stop();
        return Err(error);
    }
    if let Err(error) = sched::lock_memory() {
        log::debug!("memory is not locked: {error}");
    }
    announce(&config);
    let mut seeing = Seeing::of(&config);
    // Before the rules: where no ring can be had there are none for it.
    seeing.look(&mut config, &workers.snapshots());
    // After the workers, so that the first packet finds somebody there.
    let firewall = match config.firewall {
        config::Firewall::None | config::Firewall::Nobody => None,
        config::Firewall::Nft => Firewall::start(&config)
            .inspect_err(|error| log::error!("firewall: {error}; packets pass unhelped"))
            .ok(),
    };
    for name in direction::absent(&config.device) {
        log::warn!("device {name} does not exist yet: ports tell packets apart");
    }
    let doors = Doors { signals, control, ubus: Ubus::new(config.ubus.as_deref()) };
    Ok((Daemon::new(options, config, workers, guard, firewall, seeing, radio), doors, writer))
}

/// Starts a worker for each queue. Here it is decided by which capture packets are seen.
fn employ(
    workers: &mut Workers,
    config: &Config,
    queues: Vec<Queue>,
    guard: &Guard,
    writer: &Writer,
    radio: &Radio,
    wanted: Wanted,
) -> Result<(), String> {
    for (index, queue) in queues.into_iter().enumerate() {
        let capture = Rings::new(Nfqueue::new(queue, guard.beat(index)), config);
        let teller = |waker| Box::new(Subscription::new(radio.share(), waker)) as Box<dyn Teller>;
        workers
            .start(config, capture, writer.sender(), wanted, teller)
            .map_err(|e| e.to_string())?;
    }
    Ok(())
}

fn announce(config: &Config) {
    let clients = match (config.device.is_empty(), config.network.is_empty()) {
        (false, _) => config.device.join(", "),
        (true, true) => "any device".into(),
        (true, false) => "no device, since no network is up".into(),
    };
    let ports: Vec<_> = config.port.iter().map(u16::to_string).collect();
    log::info!(
        "started: version {}, for clients at {clients}, servers at UDP port {}, with {} packet \
         queues from number {} on",
        env!("CARGO_PKG_VERSION"),
        ports.join(", "),
        config.queues,
        config.queue
    );
}

/// Ends all of it, in the order that lets no packet be lost.
pub(crate) fn close(mut daemon: Daemon, doors: Doors, writer: Writer) {
    daemon.stop_helpers();
    daemon.benefit.close();
    daemon.trend.close();
    let Daemon { workers, guard, firewall, .. } = daemon;
    let last = workers.snapshots();
    let dropped = unhelped(&last, &status::kernel(&last));
    let failed: u32 = last.iter().map(|worker| worker.outlet.copy_errors).sum();
    // Before the queues: what comes meanwhile passes.
    firewall.iter().for_each(Firewall::retire);
    if workers.stop() {
        // The guard has the queues' sockets, too, and lets go what has come since.
        drop(guard);
    } else {
        guard.outlive();
    }
    // After them, since with its chains all goes that waits in a queue.
    drop(firewall);
    log::info!("{}", words::end(&status::total(&last), dropped, failed));
    drop(doors);
    writer.stop();
}
