// SPDX-License-Identifier: GPL-2.0-or-later
//! One repair close up: the packets' flights over the hop, and the client's
//! packets at the router, with the time for which they were held.

use super::canvas::{Canvas, Scale, Shape};
use super::story::{Flight, Kind, Story};
use super::{LEFT, RIGHT};

const HEADING: f64 = 36.0;
const REPLIES: f64 = 108.0;
const ROWS: usize = 5;
/// Room for words.
const WORDS: f64 = 112.0;
/// Height of a packet, as far as there is room.
const ROW: f64 = 15.0;
const HIGHEST: f64 = 420.0;

/// Draws what happened in the span from `top` on; gives where it ends.
pub fn draw(canvas: &mut Canvas, story: &Story, span: (f64, f64), top: f64) -> f64 {
    let seen =
        |flight: &&Flight| flight.sent < span.1 && flight.arrived.unwrap_or(flight.sent) > span.0;
    let flights: Vec<&Flight> = story.flights.iter().filter(seen).collect();
    let numbers = flights.iter().map(|flight| f64::from(flight.number));
    let lowest = numbers.clone().fold(f64::MAX, f64::min);
    let highest = numbers.fold(0.0, f64::max);
    let graph_top = top + HEADING;
    let height = ((highest - lowest + 2.0) * ROW).min(HIGHEST);
    let graph_bottom = graph_top + height;
    let bottom = graph_bottom + REPLIES;
    let time = Scale { values: span, pixels: (LEFT, RIGHT) };
    let x = |ms: f64| time.at(ms.clamp(span.0, span.1));
    let packet = Scale { values: (lowest - 1.0, highest + 1.0), pixels: (graph_bottom, graph_top) };

    canvas.text("title", "start", LEFT, top, "Close up");
    let text = "packets on their way from the router to the client; below, the client's packets \
                at the router, with the time for which they were held";
    canvas.text("muted", "start", LEFT, top + 20.0, text);
    for ms in time.ticks(10).0 {
        canvas.line("grid", (x(ms), graph_top), (x(ms), bottom));
        canvas.text("muted", "middle", x(ms), bottom + 18.0, &format!("{ms:.0} ms"));
    }
    for number in packet.ticks(6).0.into_iter().filter(|number| number.fract() == 0.0) {
        let y = packet.at(number);
        canvas.line("grid", (LEFT, y), (RIGHT, y));
        canvas.text("muted", "end", LEFT - 8.0, y + 4.5, &format!("{number:.0}"));
    }
    for (from, to) in story.holds.iter().filter(|(from, to)| *to > span.0 && *from < span.1) {
        canvas.rect("band", (x(*from), graph_top), (x(*to), bottom));
        if x(*to) - x(*from) >= WORDS {
            let text = format!("held for {:.1} ms", to - from);
            canvas.text("strong", "start", x(*from) + 6.0, graph_top + 16.0, &text);
        }
    }
    for flight in &flights {
        let y = packet.at(f64::from(flight.number));
        let class = match (flight.kind, flight.gone) {
            (_, true) => "lost",
            (Kind::Original, false) => "arrived",
            (Kind::Needed, false) => "copy",
            (Kind::Needless, false) => "needless",
        };
        let end = flight.arrived.unwrap_or(flight.sent + 1.0);
        canvas.path(&format!("{class} flight"), &[(x(flight.sent), y), (x(end), y)]);
        let (style, shape) =
            if flight.gone { ("marks", Shape::Cross) } else { ("dots big", Shape::Dot) };
        if end <= span.1 {
            canvas.scatter(&format!("{class} {style}"), shape, [(x(end), y)]);
        }
    }
    replies(canvas, story, span, &x, (graph_bottom, bottom));
    bottom + 24.0
}

fn replies(
    canvas: &mut Canvas,
    story: &Story,
    span: (f64, f64),
    x: &dyn Fn(f64) -> f64,
    (top, bottom): (f64, f64),
) {
    canvas.line("axis", (LEFT, top), (RIGHT, top));
    canvas.line("axis", (LEFT, bottom), (RIGHT, bottom));
    canvas.text("muted", "end", LEFT - 8.0, top + 24.0, "replies");
    // In turns on a few rows, so that bars do not hide each other.
    let inside = |ms: f64| (span.0..=span.1).contains(&ms);
    let replies = story.replies.iter().filter(|reply| reply.went >= span.0 && reply.came <= span.1);
    for (index, reply) in replies.enumerate() {
        let y = top + 14.0 + (index % ROWS) as f64 * ROW;
        if reply.went - reply.came > 0.01 {
            canvas.path("held bar", &[(x(reply.came), y), (x(reply.went), y)]);
        }
        if inside(reply.came) {
            canvas.scatter("arrived dots big", Shape::Dot, [(x(reply.came), y)]);
        }
    }
    let mut free = LEFT;
    for ms in story.marks.iter().filter(|ms| inside(**ms)) {
        canvas.line("held line", (x(*ms), top), (x(*ms), bottom));
        if x(*ms) - free >= WORDS {
            canvas.text("strong", "end", x(*ms) - 6.0, bottom - 8.0, "loss inferred");
            free = x(*ms);
        }
    }
}
