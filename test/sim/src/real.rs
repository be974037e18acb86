// SPDX-License-Identifier: GPL-2.0-or-later
//! The simulator against real time: what real QUIC stacks reached over emulated links of the same rates, as
//! `test/mininet/measured.py` has measured it, beside what is simulated.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use indicatif::ProgressBar;
use serde::Deserialize;
use toml::{Table, Value};

use crate::matrix;
use crate::run::{Assist, Outcome, run_all};
use crate::scenario::Scenario;

/// How far a simulated goodput may be from the measured one, as a share of it (the issue's).
pub const WITHIN: f64 = 0.2;

/// The file that `measured.py` writes.
#[derive(Debug, Deserialize)]
struct File {
    rows: Vec<Measured>,
}

/// Runs of one kind over the same links.
#[derive(Clone, Debug, Deserialize)]
struct Measured {
    assist: String,
    stack: String,
    cc: String,
    bytes: u64,
    loss_percent: f64,
    wan_mbit: f64,
    wan_delay_ms: f64,
    wifi_mbit: f64,
    wifi_delay_ms: f64,
    wifi_queue_bytes: u64,
    runs: Vec<Figures>,
}

/// What came of some runs, or of one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct Figures {
    /// Mbit/s, of several runs their mean.
    pub goodput_mbps: f64,
    packets: u64,
    lost: u64,
    told: u64,
    replies: u64,
}

/// Both beside each other.
#[derive(Clone, Debug)]
pub struct Row {
    /// Path, stack and help.
    pub name: String,
    /// In real time, and over how many runs.
    pub measured: (Figures, usize),
    /// In virtual time.
    pub simulated: Figures,
}

/// How late a host of the testbed is: options of [`crate::scenario::Flow`].
struct Lateness {
    wake_ms: f64,
    reply_ms: f64,
    pause_percent: f64,
    pause_ms: f64,
    handshake_ms: f64,
}

/// Measured with help at 100 Mbit/s on a machine of two cores that did nothing else: quinn's replies leave 50 us after the
/// newest packet that they are about in the middle, 110 us at the 90th percentile and 180 us at the 99th; quic-go's
/// after 80, 200 and 450 us. From the server's first flight to the client's next it takes quinn 0.4 to 0.6 and
/// quic-go 0.8 to 1.2 ms.
const QUINN_HOST: Lateness =
    Lateness { wake_ms: 0.05, reply_ms: 0.1, pause_percent: 0.0, pause_ms: 0.0, handshake_ms: 0.5 };
/// Go's runtime stands still now and then: at 100 Mbit/s, with help, the oldest packet that a reply is about has waited for more
/// than 2 to 4 ms in two replies of a hundred, some of them because the sender had nothing to send. How often it
/// does by itself is chosen: with it downloads at 100 Mbit/s are as fast as they were (6 and 7 % of the
/// losses told, simulated 9 to 11; 2.4 packets a reply, simulated 2.2).
const QUIC_GO_HOST: Lateness =
    Lateness { wake_ms: 0.1, reply_ms: 0.2, pause_percent: 0.5, pause_ms: 4.0, handshake_ms: 1.0 };

impl Figures {
    fn of(outcome: &Outcome) -> Figures {
        let flow = &outcome.flows[0];
        Figures {
            goodput_mbps: flow.goodput_mbps,
            packets: flow.inference.packets,
            lost: flow.inference.losses,
            told: flow.told,
            replies: flow.up_packets,
        }
    }

    /// All of them together.
    fn mean(all: impl ExactSizeIterator<Item = Figures>) -> Figures {
        let runs = all.len().max(1) as f64;
        let sum = all.fold(Figures::default(), |sum, one| Figures {
            goodput_mbps: sum.goodput_mbps + one.goodput_mbps,
            packets: sum.packets + one.packets,
            lost: sum.lost + one.lost,
            told: sum.told + one.told,
            replies: sum.replies + one.replies,
        });
        Figures { goodput_mbps: sum.goodput_mbps / runs, ..sum }
    }

    /// Losses of the hop that the sender was told of, percent of them.
    pub fn told_percent(&self) -> f64 {
        100.0 * self.told as f64 / self.lost.max(1) as f64
    }

    /// Packets for one reply.
    pub fn per_reply(&self) -> f64 {
        self.packets as f64 / self.replies.max(1) as f64
    }
}

impl Row {
    /// The simulated goodput as a multiple of the measured one.
    pub fn ratio(&self) -> f64 {
        self.simulated.goodput_mbps / self.measured.0.goodput_mbps
    }

    /// Whether they are as close as they have to be.
    pub fn holds(&self) -> bool {
        (self.ratio() - 1.0).abs() <= WITHIN
    }
}

/// The repository's file.
pub fn default_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../mininet/measured.json")
}

/// Simulates what a file says was measured, with options changed as for `sim run`.
pub fn compare(
    file: &Path,
    seeds: u64,
    changes: &[String],
    progress: impl Fn(usize) -> ProgressBar,
) -> anyhow::Result<Vec<Row>> {
    let text = std::fs::read_to_string(file)
        .with_context(|| format!("cannot read {}; measured.py writes it", file.display()))?;
    let File { rows } =
        serde_json::from_str(&text).with_context(|| format!("in {}", file.display()))?;
    let scenarios = rows.iter().map(|row| row.scenario(changes));
    let scenarios: Vec<(Scenario, Assist)> = scenarios.collect::<anyhow::Result<_>>()?;
    let jobs: Vec<_> = scenarios
        .iter()
        .flat_map(|(scenario, assist)| (1..=seeds).map(move |seed| (scenario, *assist, seed)))
        .collect();
    ensure!(seeds > 0, "there is nothing to compare with without a seed");
    let bar = progress(jobs.len());
    let outcomes = run_all(&jobs, &bar)?;
    bar.finish_and_clear();
    let simulated = outcomes.chunks(seeds as usize);
    Ok(rows.iter().zip(simulated).map(|(row, runs)| row.beside(runs)).collect())
}

impl Measured {
    fn name(&self) -> String {
        let Measured { wan_mbit, wifi_mbit, stack, assist, .. } = self;
        format!("{wan_mbit} Mbit/s, Wi-Fi {wifi_mbit}, {stack}, {assist}")
    }

    fn beside(&self, runs: &[Outcome]) -> Row {
        Row {
            name: self.name(),
            measured: (Figures::mean(self.runs.iter().copied()), self.runs.len()),
            simulated: Figures::mean(runs.iter().map(Figures::of)),
        }
    }

    /// The same links and ends, and how it is run.
    fn scenario(&self, changes: &[String]) -> anyhow::Result<(Scenario, Assist)> {
        let (client, cc, host) = match (&*self.stack, &*self.cc) {
            ("quinn", cc) => ("quinn", cc, QUINN_HOST),
            ("quicgo", "newreno") => ("quic_go", "quic_go", QUIC_GO_HOST),
            (stack, cc) => bail!("{stack} with {cc} is not simulated"),
        };
        let assist = match &*self.assist {
            "off" => Assist::Off,
            "pemi" => Assist::On,
            "lossless" => Assist::Lossless,
            other => bail!("{other} is not simulated"),
        };
        let mut loss = Table::new();
        loss.insert("percent".into(), self.loss_percent.into());
        let wifi = [
            ("rate_mbit", self.wifi_mbit.into()),
            ("delay_ms", self.wifi_delay_ms.into()),
            ("queue_bytes", Value::Integer(self.wifi_queue_bytes.try_into()?)),
            ("loss_down", Value::Table(loss.clone())),
            ("loss_up", Value::Table(loss)),
        ];
        let wan = [("rate_mbit", self.wan_mbit.into()), ("delay_ms", self.wan_delay_ms.into())];
        let flow = [
            ("bytes", Value::Integer(self.bytes.try_into()?)),
            ("client", client.into()),
            ("cc", cc.into()),
            ("wake_ms", host.wake_ms.into()),
            ("reply_ms", host.reply_ms.into()),
            ("pause_percent", host.pause_percent.into()),
            ("pause_ms", host.pause_ms.into()),
            ("handshake_ms", host.handshake_ms.into()),
        ];
        // As the daemon that was measured.
        let engine = [("gathers", true.into())];
        let text = Table::from_iter([
            ("wifi".to_owned(), table(wifi)),
            ("wan".to_owned(), table(wan)),
            ("engine".to_owned(), table(engine)),
            ("flow".to_owned(), Value::Array(vec![table(flow)])),
        ]);
        Ok((matrix::parse(&toml::to_string(&text)?, changes)?, assist))
    }
}

fn table<const N: usize>(values: [(&str, Value); N]) -> Value {
    Value::Table(values.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
}

/// The rows for people to read.
pub fn show(rows: &[Row]) -> String {
    let head = ["", "real: Mbit/s", "told", "a reply", "simulated", "told", "a reply", "ratio"];
    let [name, real, told, reply, simulated, also_told, also_reply, ratio] = head;
    let mut text = format!(
        "  {name:40} {real:>17} {told:>6} {reply:>7} {simulated:>12} {also_told:>6} \
         {also_reply:>7} {ratio:>6}\n"
    );
    for row in rows {
        let (measured, runs) = row.measured;
        let mark = if row.holds() { ' ' } else { '!' };
        text += &format!("{mark} {:40} {:12.2} ({runs:2})", row.name, measured.goodput_mbps);
        for (figures, goodput) in [(measured, None), (row.simulated, Some(12))] {
            if let Some(width) = goodput {
                text += &format!(" {:width$.2}", figures.goodput_mbps);
            }
            text += &format!(" {:4.0} % {:7.2}", figures.told_percent(), figures.per_reply());
        }
        text += &format!(" {:6.2}\n", row.ratio());
    }
    text
}

/// An error that names the rows that are further apart than they may be.
pub fn check(rows: &[Row]) -> anyhow::Result<()> {
    let apart = rows.iter().filter(|row| !row.holds());
    let names: Vec<_> = apart.map(|row| row.name.as_str()).collect();
    ensure!(names.is_empty(), "not within {WITHIN} of what was measured: {}", names.join("; "));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(stack: &str, cc: &str, goodput_mbps: f64) -> String {
        let run = format!(
            r#"{{"seed": 1, "goodput_mbps": {goodput_mbps}, "packets": 1600, "copies": 0,
                "lost": 16, "told": 16, "replies": 800}}"#
        );
        format!(
            r#"{{"made": {{}}, "rows": [{{"assist": "off", "stack": "{stack}", "cc": "{cc}",
                "bytes": 2000000, "loss_percent": 1.0, "wan_mbit": 10, "wan_delay_ms": 10,
                "wifi_mbit": 20, "wifi_delay_ms": 1, "wifi_queue_bytes": 262144,
                "runs": [{run}, {run}]}}]}}"#
        )
    }

    fn rows(text: &str) -> anyhow::Result<Vec<Row>> {
        let name = format!("pemi-sim-real-{}-{}.json", std::process::id(), text.len());
        let path = std::env::temp_dir().join(name);
        std::fs::write(&path, text).unwrap();
        let rows = compare(&path, 2, &[], |_| ProgressBar::hidden());
        std::fs::remove_file(path).unwrap();
        rows
    }

    #[test]
    fn what_is_far_from_what_was_measured_is_an_error() {
        let near = rows(&measured("quinn", "cubic", 5.5)).unwrap();
        let [row] = &near[..] else { panic!("{near:?}") };
        assert_eq!((row.measured.1, row.measured.0.per_reply()), (2, 2.0));
        assert!((50.0..150.0).contains(&row.simulated.told_percent()), "{row:?}");
        // Two runs of 2 MB scatter; nothing does that much.
        let far = rows(&measured("quinn", "cubic", 50.0)).unwrap();
        let error = check(&far).unwrap_err().to_string();
        assert!(error.contains("10 Mbit/s, Wi-Fi 20, quinn, off"), "{error}");
        assert!(show(&far).lines().nth(1).is_some_and(|line| line.starts_with('!')));
    }

    #[test]
    fn what_is_not_modelled_is_named() {
        let error = rows(&measured("quiche", "bbr", 5.5)).unwrap_err().to_string();
        assert!(error.contains("quiche with bbr"), "{error}");
    }
}
