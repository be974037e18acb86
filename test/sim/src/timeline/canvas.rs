// SPDX-License-Identifier: GPL-2.0-or-later
//! An SVG drawing, readable on light and dark paper.

use std::collections::HashSet;
use std::fmt::Write;

/// Colours by their meaning; the same as in the testbed's figures where both
/// have one.
const STYLE: &str = r#"
  svg { --paper: #ffffff; --ink: #1d2330; --muted: #5f6878; --grid: #e2e5ea; --arrived: #2563c9;
    --lost: #d02f2f; --copy: #12894a; --needless: #8b94a3; --held: #7d52c9; --wan: #d0701f;
    font: 13px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
  @media (prefers-color-scheme: dark) { svg { --paper: #14171d; --ink: #e8ebf1; --muted: #9aa4b5;
    --grid: #2f3644; --arrived: #6ea4ff; --lost: #ff6b66; --copy: #3fcf84; --needless: #7c8799;
    --held: #b394f5; --wan: #f0954d; } }
  text { fill: var(--ink); }
  .paper { fill: var(--paper); }
  text.muted { fill: var(--muted); }
  text.title { font-size: 17px; font-weight: 600; }
  text.strong { font-weight: 600; }
  .grid { stroke: var(--grid); } .axis { stroke: var(--muted); }
  path { fill: none; stroke-linecap: round; stroke-linejoin: round; }
  .arrived { stroke: var(--arrived); } .lost { stroke: var(--lost); }
  .copy { stroke: var(--copy); } .needless { stroke: var(--needless); }
  .held { stroke: var(--held); } .wan { stroke: var(--wan); }
  .dots { stroke-width: 2.2; } .middling { stroke-width: 4; } .marks { stroke-width: 1.8; } .big { stroke-width: 6; }
  .ticks { stroke-width: 1.4; stroke-linecap: butt; }
  .flight { stroke-width: 2.6; } .line { stroke-width: 2; } .bar { stroke-width: 5; }
  .band { fill: var(--held); opacity: .2; } .block { fill: var(--held); } path.area { fill: var(--arrived); opacity: .16; }
"#;

/// Where the points of a shape are joined up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// A dot as wide as the class's stroke.
    Dot,
    /// A cross.
    Cross,
    /// A vertical stroke of this height around the point.
    Tick(u32),
}

/// A drawing being made.
#[derive(Debug)]
pub struct Canvas {
    body: String,
    width: f64,
    label: String,
}

impl Canvas {
    /// An empty one; the label is for those who cannot see it.
    pub fn new(width: f64, label: String) -> Canvas {
        Canvas { body: String::new(), width, label }
    }

    /// The drawing as a document of this height.
    pub fn finish(self, height: f64) -> String {
        let Canvas { body, width, label } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
             viewBox=\"0 0 {width} {height}\" role=\"img\" aria-label=\"{}\"><style>{STYLE}</style>\n\
             <rect class=\"paper\" width=\"{width}\" height=\"{height}\"/>\n{body}</svg>\n",
            escape(&label)
        )
    }

    /// Text; `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, class: &str, anchor: &str, x: f64, y: f64, text: &str) {
        let text = escape(text);
        self.add(format_args!(
            "<text class=\"{class}\" text-anchor=\"{anchor}\" x=\"{x:.1}\" y=\"{y:.1}\">{text}</text>"
        ));
    }

    /// A straight line.
    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.add(format_args!(
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        ));
    }

    /// An area between two corners.
    pub fn rect(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.add(format_args!(
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{:.1}\"/>",
            from.0,
            from.1,
            to.0 - from.0,
            to.1 - from.1
        ));
    }

    /// A line through points, or, of the class `area`, what they surround.
    pub fn path(&mut self, class: &str, points: &[(f64, f64)]) {
        let mut data = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            let _ = write!(data, "{}{x:.1} {y:.1}", if index == 0 { 'M' } else { 'L' });
        }
        self.add(format_args!("<path class=\"{class}\" d=\"{data}\"/>"));
    }

    /// The same shape at many points, once for each pixel.
    pub fn scatter(
        &mut self,
        class: &str,
        shape: Shape,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) {
        let mut taken = HashSet::new();
        let mut data = String::new();
        for (x, y) in points {
            let pixel = (x.round() as i32, y.round() as i32);
            if !taken.insert(pixel) {
                continue;
            }
            let _ = match shape {
                Shape::Dot => write!(data, "M{x:.1} {y:.1}h0"),
                Shape::Cross => {
                    write!(data, "M{:.1} {:.1}l7 7m0-7l-7 7", x - 3.5, y - 3.5)
                }
                Shape::Tick(height) => {
                    write!(data, "M{x:.1} {:.1}v{height}", y - f64::from(height) / 2.0)
                }
            };
        }
        if !data.is_empty() {
            self.add(format_args!("<path class=\"{class}\" d=\"{data}\"/>"));
        }
    }

    fn add(&mut self, element: std::fmt::Arguments<'_>) {
        self.body.write_fmt(element).expect("a string takes everything");
        self.body.push('\n');
    }
}

/// An axis: values to pixels.
#[derive(Clone, Copy, Debug)]
pub struct Scale {
    /// The values at both ends.
    pub values: (f64, f64),
    /// The pixels there.
    pub pixels: (f64, f64),
}

impl Scale {
    /// Where a value is.
    pub fn at(&self, value: f64) -> f64 {
        let share = (value - self.values.0) / (self.values.1 - self.values.0).max(1e-9);
        self.pixels.0 + share * (self.pixels.1 - self.pixels.0)
    }

    /// Round values on it, about so many, with the decimals that they need.
    pub fn ticks(&self, count: usize) -> (Vec<f64>, usize) {
        let (from, to) = self.values;
        let rough = (to - from).max(1e-9) / count as f64;
        let power = 10f64.powf(rough.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].map(|factor| factor * power);
        let step = step.into_iter().find(|step| *step >= rough * 0.999).unwrap_or(rough);
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let first = (from / step - 1e-9).ceil() as i64;
        let last = (to / step + 1e-9).floor() as i64;
        ((first..=last).map(|n| n as f64 * step).collect(), decimals)
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scales_have_round_ticks() {
        let scale = |from, to| Scale { values: (from, to), pixels: (0.0, 100.0) };
        assert_eq!(scale(0.0, 4.3).ticks(8), (vec![0.0, 1.0, 2.0, 3.0, 4.0], 0));
        assert_eq!(
            scale(0.0, 1.0).ticks(5),
            (vec![0.0, 0.2, 0.4, 0.6000000000000001, 0.8, 1.0], 1)
        );
        assert_eq!(scale(2031.0, 2049.0).ticks(4).0, [2035.0, 2040.0, 2045.0]);
        assert_eq!(scale(10.0, 20.0).at(15.0), 50.0);
    }

    #[test]
    fn points_of_one_pixel_are_drawn_once() {
        let mut canvas = Canvas::new(100.0, "a <test>".into());
        canvas.scatter("dots", Shape::Dot, (0..1000).map(|n| (n as f64 / 1000.0, 5.0)));
        let text = canvas.finish(50.0);
        assert_eq!(text.matches("h0").count(), 2);
        assert!(text.contains("a &lt;test&gt;"));
    }
}
