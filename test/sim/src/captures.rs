// SPDX-License-Identifier: GPL-2.0-or-later
//! The engine's inference on packet logs of real stacks: a log is replayed to it
//! offline, and what it marks and copies is held against the truth in the log.
//!
//! Copies do not arrive in a recording. A gap stays open for the client, the
//! engine tries again, finds that no gap closes and abandons them, soon for good: what
//! is scored here is only whether it notices losses and names the packet, under
//! the worst conditions. Repairs are for the simulator and the testbed to judge.

mod judge;
mod log;
mod replay;
mod show;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Serialize;

use judge::{Judged, Loss};
use replay::Flow;

/// The scores of one log, all flows in it together.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Score {
    /// The log's name.
    pub name: String,
    /// Packets to the clients.
    pub packets_down: u64,
    /// Of these, lost on the hop.
    pub losses: u64,
    /// Of these, followed by no packet that arrived within 16 ms: no reply can
    /// tell of them in time.
    pub tails: u64,
    /// Losses that a mark explains or of which a copy was sent within 20 ms.
    ///
    /// A mark ([`pemi_engine::EventKind::Loss`]) explains a loss that it names, or
    /// else one at whose first four replies it was made. These are the first that
    /// can know of it: they came a bare round trip or more after the next packet
    /// that arrived. A mark explains one loss only. Later than 20 ms after it, it
    /// is of no use, but true.
    pub noticed: u64,
    /// Of these, losses that are no tails.
    pub noticed_without_tails: u64,
    /// Losses whose mark came in time and names the very packet.
    pub named: u64,
    /// Losses of which a copy was sent within 20 ms.
    pub copied: u64,
    /// Losses explained by a mark that came too late for them to be noticed by it.
    pub late_marks: u64,
    /// Marks that explain no loss. Gaps from before the router are among them.
    pub false_marks: u64,
    /// The same for 1000 packets to the clients.
    pub false_per_1000: f64,
    /// Copies sent, of whatever packet.
    pub copies: u64,
}

impl Score {
    /// Share of the losses that was noticed; 1 of none.
    pub fn recall(&self) -> f64 {
        share(self.noticed, self.losses)
    }

    /// The same of those that are no tails.
    pub fn recall_without_tails(&self) -> f64 {
        share(self.noticed_without_tails, self.losses - self.tails)
    }

    fn new(name: &str, flows: &[(Flow, Judged)]) -> Score {
        let mut score = Score { name: name.into(), ..Score::default() };
        for (flow, judged) in flows {
            let count = |pick: &dyn Fn(&Loss) -> bool| {
                judged.losses.iter().filter(|loss| pick(loss)).count() as u64
            };
            let names = |loss: &Loss| {
                loss.marked().is_some_and(|mark| flow.marks[mark].packet == loss.packet)
            };
            score.packets_down += flow.sent.len() as u64;
            score.losses += judged.losses.len() as u64;
            score.tails += count(&|loss| loss.tail);
            score.noticed += count(&Loss::noticed);
            score.noticed_without_tails += count(&|loss| loss.noticed() && !loss.tail);
            score.named += count(&names);
            score.copied += count(&|loss| loss.copied);
            score.late_marks += count(&|loss| loss.late);
            score.false_marks += judged.false_marks.len() as u64;
            score.copies += flow.copies.len() as u64;
        }
        score.false_per_1000 = 1000.0 * score.false_marks as f64 / score.packets_down.max(1) as f64;
        score
    }
}

fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 1.0 } else { part as f64 / whole as f64 }
}

/// A log that was replayed and scored.
pub struct Report {
    /// The scores.
    pub score: Score,
    flows: Vec<(Flow, Judged)>,
}

impl Report {
    /// Every loss with what became of it and every false mark, in order of time.
    pub fn details(&self) -> String {
        self.flows.iter().map(|(flow, judged)| show::details(flow, judged)).collect()
    }
}

/// Where the logs of the repository are.
pub fn default_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("captures")
}

/// Replays all logs (`.csv`, `.csv.gz`) of a folder, in the order of their names.
pub fn reports(dir: &Path) -> anyhow::Result<Vec<Report>> {
    let context = || format!("cannot read the packet logs in {}", dir.display());
    let mut logs = Vec::new();
    for entry in std::fs::read_dir(dir).with_context(context)? {
        let path = entry.with_context(context)?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let Some(stem) = name.strip_suffix(".gz").unwrap_or(name).strip_suffix(".csv") {
            logs.push((stem.to_owned(), path));
        }
    }
    ensure!(!logs.is_empty(), "no packet log (*.csv, *.csv.gz) in {}", dir.display());
    logs.sort();
    logs.into_iter()
        .map(|(name, path)| {
            let seen = log::read(&path).with_context(|| format!("in {}", path.display()))?;
            let flows = replay::replay(&seen).into_iter().map(|flow| {
                let judged = judge::judge(&flow);
                (flow, judged)
            });
            let flows: Vec<_> = flows.collect();
            Ok(Report { score: Score::new(&name, &flows), flows })
        })
        .collect()
}

/// The scores of all logs of a folder.
pub fn score(dir: &Path) -> anyhow::Result<Vec<Score>> {
    Ok(reports(dir)?.into_iter().map(|report| report.score).collect())
}

/// The scores for people to read.
pub fn table(scores: &[Score]) -> String {
    show::table(scores)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_logs_of_the_repository_are_scored() {
        let scores = score(&default_dir()).unwrap();
        let counts: Vec<_> =
            scores.iter().map(|s| (s.name.as_str(), s.packets_down, s.losses)).collect();
        let expected = [
            ("chromium-quicgo-loss0-seed9", 5750, 0),
            ("chromium-quicgo-loss1-seed7", 5746, 56),
            ("chromium-quicgo-loss1-seed8", 5802, 67),
            ("curl-quicgo-loss0-seed1", 3759, 0),
            ("curl-quicgo-loss1-seed1", 3747, 35),
            ("curl-quicgo-loss1-seed2", 3712, 41),
            ("msquic-quicgo-loss0-seed1", 3708, 0),
            ("msquic-quicgo-loss1-seed1", 3693, 34),
            ("msquic-quicgo-loss1-seed2", 3663, 38),
            ("quicgo-5MB-loss1-seed3", 3648, 33),
            ("quicgo-rtc-loss1-seed22", 2991, 13),
            ("quinn-5MB-loss1-seed4", 3579, 40),
            ("quinn-rtc-loss1-seed21", 2694, 31),
            ("s2n-quicgo-loss0-seed1", 3690, 0),
            ("s2n-quicgo-loss1-seed1", 3695, 34),
            ("s2n-quicgo-loss1-seed2", 3667, 38),
        ];
        assert_eq!(counts, expected);
        for score in &scores {
            assert!(score.noticed <= score.losses && score.named <= score.noticed, "{score:?}");
            assert!(score.noticed_without_tails + score.tails <= score.losses, "{score:?}");
        }
    }

    #[test]
    fn a_folder_without_logs_is_an_error() {
        let error = score(&default_dir().join("nowhere")).unwrap_err();
        assert!(error.to_string().contains("nowhere"), "{error}");
    }
}
