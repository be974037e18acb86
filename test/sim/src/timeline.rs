// SPDX-License-Identifier: GPL-2.0-or-later
//! Draws the time line of a flow: its packets over time, what was lost and
//! copied, when client packets were held, what that did to its goodput; and one
//! repair close up.

mod canvas;
mod closeup;
mod overview;
mod story;

use anyhow::ensure;

use crate::trace::Trace;
use canvas::{Canvas, Shape};
use story::Story;

const WIDTH: f64 = 1120.0;
/// Where the axes begin and end.
const LEFT: f64 = 92.0;
const RIGHT: f64 = WIDTH - 36.0;

/// The time line as an SVG document.
pub fn draw(trace: &Trace, flow: usize) -> anyhow::Result<String> {
    let flows = trace.truths.len();
    ensure!(flow < flows, "there is no flow {flow}: the scenario has {flows}, counted from 0");
    let story = Story::of(trace, flow);
    let mut canvas = Canvas::new(WIDTH, format!("Time line of {}", trace.name));
    heading(&mut canvas, trace, flow);
    let mut bottom = overview::draw(&mut canvas, &story, 92.0);
    if let Some(span) = story.episode() {
        bottom = closeup::draw(&mut canvas, &story, span, bottom + 44.0);
    }
    Ok(canvas.finish(bottom + 14.0))
}

fn heading(canvas: &mut Canvas, trace: &Trace, flow: usize) {
    let outcome = &trace.outcome;
    let mut title = format!("{}, seed {}", trace.name, outcome.seed);
    if outcome.flows.len() > 1 {
        title += &format!(", flow {flow}");
    }
    title += match outcome.assist {
        crate::run::Assist::Off => ", without help",
        crate::run::Assist::On => "",
        crate::run::Assist::Lossless => ", without losses on the hop",
    };
    canvas.text("title", "start", LEFT, 28.0, &title);
    let result = &outcome.flows[flow];
    let score = &result.inference;
    let mut text = format!("{:.2} Mbit/s", result.goodput_mbps);
    if let Some(seconds) = result.fct_s {
        text += &format!(" in {seconds:.2} s");
    }
    text += &format!(" · {} lost on the hop, {} repaired", score.losses, score.repaired);
    let needless = score.copies - score.copies_needed;
    text += &format!(" · {} copies, {needless} needless", score.copies);
    text += &format!(" · {} congestion events", result.congestion_events);
    canvas.text("muted", "start", LEFT, 50.0, &text);
    legend(canvas, 72.0);
}

fn legend(canvas: &mut Canvas, y: f64) {
    let mut x = LEFT;
    let keys = [
        ("arrived dots big", Some(Shape::Dot), "arrived at the client", 152.0),
        ("lost marks", Some(Shape::Cross), "lost on the hop", 122.0),
        ("copy dots big", Some(Shape::Dot), "copy, needed", 106.0),
        ("needless dots big", Some(Shape::Dot), "copy, needless", 118.0),
        ("wan dots big", Some(Shape::Dot), "dropped on the WAN", 148.0),
        ("band", None, "client packets held", 0.0),
    ];
    for (class, shape, name, width) in keys {
        let middle = (x + 6.0, y - 4.5);
        match shape {
            Some(shape) => canvas.scatter(class, shape, [middle]),
            None => canvas.rect(class, (x, y - 11.0), (x + 13.0, y + 2.0)),
        }
        canvas.text("", "start", x + 18.0, y, name);
        x += width + 24.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Assist;
    use crate::scenario::{Flow, LossModel, Scenario, Wifi};
    use crate::trace::record;

    fn drawing(loss: LossModel, assist: Assist, flow: usize) -> anyhow::Result<String> {
        let scenario = Scenario {
            wifi: Wifi { loss_down: loss, ..Wifi::default() },
            flows: vec![Flow { bytes: 1_000_000, ..Flow::default() }],
            ..Scenario::default()
        };
        draw(&record("a test".into(), &scenario, assist, 1).unwrap(), flow)
    }

    #[test]
    fn a_run_is_drawn_with_all_that_happened() {
        let text = drawing(LossModel::Percent(2.0), Assist::On, 0).unwrap();
        for part in ["lost marks", "copy dots", "band", "lost flight", "held bar", "Goodput"] {
            assert!(text.contains(part), "{part}");
        }
        assert!(text.len() < 1_000_000 && text.ends_with("</svg>\n"));
    }

    #[test]
    fn a_run_without_events_is_drawn_as_well() {
        for assist in [Assist::Off, Assist::On] {
            let text = drawing(LossModel::None, assist, 0).unwrap();
            assert!(text.contains("arrived dots") && !text.contains("lost flight"));
        }
    }

    #[test]
    fn a_flow_that_is_not_there_is_an_error() {
        let error = drawing(LossModel::None, Assist::Off, 3).unwrap_err().to_string();
        assert_eq!(error, "there is no flow 3: the scenario has 1, counted from 0");
    }
}
