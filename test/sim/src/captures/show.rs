// SPDX-License-Identifier: GPL-2.0-or-later
//! Scores and details for people to read.

use std::fmt::Write;

use linkem::Nanos;

use super::Score;
use super::judge::{Judged, Loss};
use super::replay::{Flow, Mark};

/// Replies shown before a false mark.
const BEFORE: usize = 8;

/// The scores, one line for each log.
pub fn table(scores: &[Score]) -> String {
    let mut text = format!(
        "{:30} {:>7} {:>6} {:>5} {:>13} {:>12} {:>5} {:>6} {:>4} {:>5} {:>6} {:>6}\n",
        "log",
        "packets",
        "losses",
        "tails",
        "noticed",
        "no tails",
        "named",
        "copied",
        "late",
        "false",
        "/ 1000",
        "copies"
    );
    for score in scores {
        let percent = |part: u64, share: f64| format!("{part} {:5.1} %", 100.0 * share);
        let _ = writeln!(
            text,
            "{:30} {:7} {:6} {:5} {:>13} {:>12} {:5} {:6} {:4} {:5} {:6.2} {:6}",
            score.name,
            score.packets_down,
            score.losses,
            score.tails,
            percent(score.noticed, score.recall()),
            percent(score.noticed_without_tails, score.recall_without_tails()),
            score.named,
            score.copied,
            score.late_marks,
            score.false_marks,
            score.false_per_1000,
            score.copies,
        );
    }
    text
}

/// Losses and false marks of a flow in order of time.
pub fn details(flow: &Flow, judged: &Judged) -> String {
    let losses = judged.losses.iter().map(|l| (flow.sent[l.packet as usize - 1].at, loss(flow, l)));
    let marks = judged.false_marks.iter().map(|m| &flow.marks[*m]);
    let mut lines: Vec<(Nanos, String)> =
        losses.chain(marks.map(|m| (m.at, false_mark(flow, judged, m)))).collect();
    lines.sort_by_key(|(at, _)| *at);
    lines.into_iter().map(|(at, line)| format!("{:9.4} s  {line}\n", at as f64 / 1e9)).collect()
}

fn loss(flow: &Flow, loss: &Loss) -> String {
    let packet = loss.packet;
    let at = flow.sent[packet as usize - 1].at;
    let mut text = format!("loss  packet {packet:5}");
    let next = flow.sent[packet as usize..].iter().find(|sent| !sent.lost);
    match next {
        Some(next) => {
            let _ = write!(text, ", next one after {:.1} ms", ms(next.at - at));
        }
        None => text += ", nothing follows",
    }
    match loss.mark.map(|mark| &flow.marks[mark]) {
        Some(mark) if loss.late => {
            let _ = write!(text, ": TOO LATE, {:.1} ms, as {}", ms(mark.at - at), mark.packet);
        }
        Some(mark) if mark.packet == packet => text += ": named",
        Some(mark) => {
            let _ = write!(text, ": noticed as {}", mark.packet);
        }
        None if loss.copied => text += ": copied without a mark",
        None if loss.tail => text += ": TAIL, not noticed",
        None => text += ": MISSED",
    }
    match loss.mark.map(|mark| &flow.marks[mark]) {
        Some(mark) => {
            match loss.replies.clone().position(|reply| reply == mark.reply) {
                Some(index) => {
                    let _ = write!(text, ", reply {} of 4", index + 1);
                }
                None => text += ", not at one of its replies",
            }
            text += if loss.copied { ", copied" } else { ", NOT COPIED" };
        }
        None => {
            let before = loss.replies.start.saturating_sub(BEFORE / 2)..loss.replies.start;
            let _ = write!(
                text,
                "; replies {} | {}",
                replies(flow, before, at),
                replies(flow, loss.replies.clone(), at)
            );
        }
    }
    text
}

fn false_mark(flow: &Flow, judged: &Judged, mark: &Mark) -> String {
    let reply = flow.replies[mark.reply];
    let mut text = format!("FALSE packet {:5}, reply of {} bytes", mark.packet, reply.len);
    let before = judged.losses.iter().rev().find(|loss| sent_at(flow, loss.packet) < mark.at);
    if let Some(loss) = before {
        let _ = write!(
            text,
            ", {:.1} ms after loss {} ({})",
            ms(mark.at - sent_at(flow, loss.packet)),
            loss.packet,
            if loss.noticed() { "noticed" } else { "missed" }
        );
    }
    let from = mark.reply.saturating_sub(BEFORE);
    let to = (mark.reply + 5).min(flow.replies.len());
    let _ = write!(
        text,
        "; replies {} | {} | {}",
        replies(flow, from..mark.reply, mark.at),
        replies(flow, mark.reply..mark.reply + 1, mark.at),
        replies(flow, mark.reply + 1..to, mark.at)
    );
    text
}

/// Each as bytes, packets sent since the reply before, ms since `from`.
fn replies(flow: &Flow, range: std::ops::Range<usize>, from: Nanos) -> String {
    let sent_by =
        |at: Nanos| flow.sent.partition_point(|s| s.at + super::replay::BARE_ROUND_TRIP <= at);
    let words = range.map(|index| {
        let reply = flow.replies[index];
        let before = index.checked_sub(1).map_or(0, |index| sent_by(flow.replies[index].at));
        let after = reply.at as f64 - from as f64;
        format!("{}/{}/{:+.1}", reply.len, sent_by(reply.at) - before, after / 1e6)
    });
    words.collect::<Vec<_>>().join(" ")
}

fn sent_at(flow: &Flow, packet: u64) -> Nanos {
    flow.sent[packet as usize - 1].at
}

fn ms(span: Nanos) -> f64 {
    span as f64 / 1e6
}
