// SPDX-License-Identifier: GPL-2.0-or-later
//! The whole run: packet numbers over time, a lane for each kind of event, and
//! the goodput.

use super::canvas::{Canvas, Scale, Shape};
use super::story::{Flight, Kind, Story};
use super::{LEFT, RIGHT};

const GRAPH: f64 = 300.0;
const LANE: f64 = 17.0;
const GOODPUT: f64 = 110.0;
/// Widths of the goodput's steps in ms, and how many there may be.
const STEPS: [f64; 10] = [10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 1e4];
const MOST_STEPS: f64 = 110.0;

/// Draws it from `top` on; gives where it ends.
pub fn draw(canvas: &mut Canvas, story: &Story, top: f64) -> f64 {
    let time = Scale { values: (0.0, story.end / 1e3), pixels: (LEFT, RIGHT) };
    let x = |ms: f64| time.at(ms / 1e3);
    let lanes_top = top + GRAPH + 12.0;
    let lanes = lanes(story);
    let goodput_top = lanes_top + lanes.len() as f64 * LANE + 34.0;
    let bottom = goodput_top + GOODPUT;

    let (seconds, decimals) = time.ticks(10);
    for second in seconds {
        let at = time.at(second);
        canvas.line("grid", (at, top), (at, bottom));
        canvas.text("muted", "middle", at, bottom + 18.0, &format!("{second:.decimals$} s"));
    }
    graph(canvas, story, &x, top);
    for (index, lane) in lanes.iter().enumerate() {
        let y = lanes_top + (index as f64 + 0.5) * LANE;
        canvas.text("muted", "end", LEFT - 8.0, y + 4.5, lane.name);
        canvas.line("grid", (LEFT, y + LANE / 2.0), (RIGHT, y + LANE / 2.0));
        canvas.scatter(lane.class, Shape::Tick(12), lane.times.iter().map(|ms| (x(*ms), y)));
        for (from, to) in &lane.spans {
            // However short, it is to be seen.
            let right = x(*to).max(x(*from) + 1.5);
            canvas.rect("block", (x(*from), y - 6.0), (right, y + 6.0));
        }
    }
    goodput(canvas, story, &x, goodput_top);
    bottom + 24.0
}

fn graph(canvas: &mut Canvas, story: &Story, x: &dyn Fn(f64) -> f64, top: f64) {
    let bottom = top + GRAPH;
    let highest = f64::from(story.highest);
    let number = Scale { values: (0.0, highest * 1.03), pixels: (bottom, top) };
    for packet in number.ticks(6).0 {
        let y = number.at(packet);
        canvas.line("grid", (LEFT, y), (RIGHT, y));
        canvas.text("muted", "end", LEFT - 8.0, y + 4.5, &format!("{packet:.0}"));
    }
    canvas.text("strong", "start", LEFT + 10.0, top + 18.0, "Packet number");
    for (from, to) in &story.holds {
        canvas.rect("band", (x(*from), top), (x(*to).max(x(*from) + 1.0), bottom));
    }
    let point = |ms: f64, packet: u32| (x(ms), number.at(f64::from(packet)));
    let arrived = |kind: Kind| {
        let flights = story.flights.iter().filter(move |flight| flight.kind == kind);
        flights.filter_map(move |flight| Some(point(flight.arrived?, flight.number)))
    };
    canvas.scatter("arrived dots", Shape::Dot, arrived(Kind::Original));
    let dropped = story.dropped.iter().map(|(ms, packet)| point(*ms, *packet));
    canvas.scatter("wan dots middling", Shape::Dot, dropped);
    canvas.scatter("needless dots big", Shape::Dot, arrived(Kind::Needless));
    let lost = story.flights.iter().filter(|flight| is_loss(flight));
    canvas.scatter("lost marks", Shape::Cross, lost.map(|f| point(f.sent, f.number)));
    // On top of the crosses, which almost hide them else.
    canvas.scatter("copy dots big", Shape::Dot, arrived(Kind::Needed));
    canvas.line("axis", (LEFT, bottom), (RIGHT, bottom));
}

fn is_loss(flight: &Flight) -> bool {
    flight.gone && flight.kind == Kind::Original
}

struct Lane {
    name: &'static str,
    class: &'static str,
    times: Vec<f64>,
    spans: Vec<(f64, f64)>,
}

/// The same events again, each kind by itself: in the graph they lie on top of
/// each other.
fn lanes(story: &Story) -> Vec<Lane> {
    let lane = |name, class, times| Lane { name, class, times, spans: Vec::new() };
    let copies = |kind: Kind| {
        let copies = story.flights.iter().filter(|flight| flight.kind == kind);
        copies.map(|flight| flight.sent).collect()
    };
    let lost = story.flights.iter().filter(|flight| is_loss(flight));
    let dropped = story.dropped.iter().map(|(ms, _)| *ms).collect();
    let mut lanes = vec![
        lane("lost", "lost ticks", lost.map(|flight| flight.sent).collect()),
        lane("copied", "copy ticks", copies(Kind::Needed)),
        lane("needlessly", "needless ticks", copies(Kind::Needless)),
        lane("held", "held ticks", Vec::new()),
        lane("WAN drops", "wan ticks", dropped),
    ];
    lanes[3].spans = story.holds.clone();
    lanes
}

fn goodput(canvas: &mut Canvas, story: &Story, x: &dyn Fn(f64) -> f64, top: f64) {
    let bottom = top + GOODPUT;
    let step = STEPS.into_iter().find(|step| story.end / step <= MOST_STEPS).unwrap_or(6e4);
    let mut bytes = vec![0u64; (story.end / step).ceil() as usize];
    for (ms, packet) in &story.bytes {
        if let Some(bytes) = bytes.get_mut((ms / step) as usize) {
            *bytes += u64::from(*packet);
        }
    }
    let values = bytes.iter().enumerate().map(|(index, bytes)| {
        // The last step ends with the run.
        let length = step.min(story.end - index as f64 * step);
        *bytes as f64 * 8e-3 / length.max(step / 4.0)
    });
    let values: Vec<f64> = values.collect();
    let most = values.iter().copied().fold(1e-3, f64::max);
    let rate = Scale { values: (0.0, most * 1.08), pixels: (bottom, top) };
    let (ticks, decimals) = rate.ticks(4);
    for value in ticks {
        let y = rate.at(value);
        canvas.line("grid", (LEFT, y), (RIGHT, y));
        canvas.text("muted", "end", LEFT - 8.0, y + 4.5, &format!("{value:.decimals$}"));
    }
    let mut line = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let from = index as f64 * step;
        line.push((x(from), rate.at(*value)));
        line.push((x((from + step).min(story.end)), rate.at(*value)));
    }
    let mut area = vec![(LEFT, bottom)];
    area.extend(&line);
    area.push((RIGHT, bottom));
    canvas.path("area", &area);
    canvas.path("arrived line", &line);
    canvas.line("axis", (LEFT, bottom), (RIGHT, bottom));
    let text = format!("Goodput in Mbit/s: packets that arrived, each counted once, per {step} ms");
    canvas.text("strong", "start", LEFT, top - 8.0, &text);
}
