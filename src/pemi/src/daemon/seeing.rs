// SPDX-License-Identifier: GPL-2.0-or-later
//! How packets to clients are seen: by rings where somebody asks for them and they can be had,
//! otherwise by the queue.

use serde_json::Value;

use crate::config::{Capture, Config, Firewall};
use crate::daemon::object::object;
use crate::datapath::worker::Snapshot;
use crate::sys::socket::interface_name;

/// Why there are no rings though they are asked for.
#[derive(Debug, Default)]
pub(crate) struct Seeing {
    reason: Option<String>,
}

impl Seeing {
    /// With settings as they were read, of which other options may speak against rings.
    pub fn of(config: &Config) -> Seeing {
        let wanted = config.capture == Capture::Ring;
        Seeing { reason: config.against_rings().filter(|_| wanted).map(str::to_string) }
    }

    /// Looks whether a worker has given up its rings. Then the settings change, for good or until they
    /// are read again, and everybody has to be told: true.
    pub fn look(&mut self, config: &mut Config, workers: &[Snapshot]) -> bool {
        let mut troubles = workers.iter().filter_map(|worker| worker.capture.trouble);
        let Some(trouble) = troubles.next().filter(|_| config.rings()) else { return false };
        log::warn!("no rings: {trouble}; packets to clients come by the queue");
        config.capture = Capture::Queue;
        self.reason = Some(trouble.to_string());
        true
    }

    /// The devices, with their indexes, by which what rings show comes, and how many flows were let
    /// go beside them.
    pub fn shown(config: &Config, workers: &[Snapshot]) -> (Vec<(u32, String)>, u32) {
        let mut devices = Vec::new();
        if config.rings() {
            let indexes = workers.iter().flat_map(|worker| worker.capture.ways);
            let named = indexes.filter_map(|index| Some((index, interface_name(index)?)));
            devices.extend(named.filter(|(_, name)| !config.device.contains(name)));
            devices.sort_unstable();
            devices.dedup();
        }
        let let_go = workers.iter().map(|worker| worker.capture.let_go);
        (devices, let_go.fold(0, u32::wrapping_add))
    }

    /// What the user should know.
    pub fn error(&self, config: &Config) -> Option<String> {
        let reason = self.reason.as_ref()?;
        let rules = match config.firewall {
            Firewall::None => "; rules of your own have to bring packets to clients there",
            Firewall::Nft | Firewall::Nobody => "",
        };
        Some(format!("option 'capture': the queue is used and no ring: {reason}{rules}"))
    }

    /// Its part of the status.
    pub fn json(&self, config: &Config) -> Value {
        let used = if config.rings() { "ring" } else { "queue" };
        object(vec![("used", used.into()), ("reason", self.reason.clone().into())])
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::config::{Mode, Repair};
    use crate::datapath::capture::{Counters, Trouble};

    fn config() -> Config {
        let device = vec!["br-lan".into()];
        Config { device, repair: Repair::Infer, capture: Capture::Ring, ..Config::default() }
    }

    fn worker(trouble: Option<Trouble>) -> Snapshot {
        let capture = Counters { trouble, ..Counters::default() };
        Snapshot { capture, ..Snapshot::default() }
    }

    #[test]
    fn other_options_may_speak_against_rings() {
        let seeing = Seeing::of(&config());
        assert_eq!(seeing.json(&config()), json!({"used": "ring", "reason": null}));
        assert_eq!(seeing.error(&config()), None);
        let bridged = Config { mode: Mode::Bridged, ..config() };
        let seeing = Seeing::of(&bridged);
        assert_eq!(seeing.json(&bridged)["used"], "queue");
        assert!(seeing.error(&bridged).unwrap().contains("mode is not 'routed'"));
        // Nobody has asked.
        for capture in [Capture::Auto, Capture::Queue] {
            let quiet = Config { capture, ..bridged.clone() };
            assert_eq!(Seeing::of(&quiet).error(&quiet), None);
            assert!(!quiet.rings() && !Config { capture, ..config() }.rings());
        }
    }

    #[test]
    fn the_other_side_is_where_clients_packets_leave_beside_a_ring() {
        // Of the loopback, in every network namespace; nobody has so large a number.
        let ways = [1, 0, u32::MAX, 1];
        let workers = [u32::MAX, 3].map(|let_go| {
            let capture = Counters { ways, let_go, ..Counters::default() };
            Snapshot { capture, ..Snapshot::default() }
        });
        assert_eq!(Seeing::shown(&config(), &workers), (vec![(1, "lo".to_string())], 2));
        let client = Config { device: vec!["lo".into()], ..config() };
        assert!(Seeing::shown(&client, &workers).0.is_empty());
        let queue = Config { capture: Capture::Queue, ..config() };
        assert!(Seeing::shown(&queue, &workers).0.is_empty());
    }

    #[test]
    fn a_worker_that_gives_up_makes_the_queue_do_once() {
        let mut config = config();
        let mut seeing = Seeing::of(&config);
        assert!(!seeing.look(&mut config, &[worker(None)]) && config.rings());
        let workers = [worker(None), worker(Some(Trouble::Silent))];
        assert!(seeing.look(&mut config, &workers) && !config.rings());
        assert!(!seeing.look(&mut config, &workers), "it was told already");
        assert_eq!(seeing.json(&config)["used"], "queue");
        let error = seeing.error(&config).unwrap();
        assert!(error.contains("hardware") && error.contains("rules of your own"), "{error}");
    }
}
