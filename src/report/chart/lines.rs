//! A line for each competitor, with its interval as a band, and its name at its end.

use super::{
    Canvas, WIDTH, fitted,
    scale::{Axis, Scale},
    text_width,
    tone::Tone,
};
use crate::bench::results::Figure;

const LEFT: f64 = 52.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 40.0;
/// Names are at least so far apart.
const APART: f64 = 14.0;

/// Lines over one axis.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct Lines {
    /// The lines.
    pub lines: Vec<Line>,
    /// How the two axes are laid out.
    pub scales: (Scale, Scale),
    /// What stands below the axis from left to right.
    pub below: String,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::report) struct Line {
    /// Whose it is.
    pub name: String,
    pub tone: Tone,
    /// Its points, from left to right.
    pub points: Vec<(f64, Figure)>,
    /// Whether every point is marked: where they are few.
    pub dotted: bool,
}

impl Lines {
    pub fn height(&self) -> f64 {
        (TOP + BOTTOM + APART * (self.lines.len() as f64 + 1.0)).max(270.0)
    }

    pub fn words(&self) -> String {
        let number = super::super::number::short;
        let each = |l: &Line| match (l.points.first(), l.points.last()) {
            (Some(a), Some(b)) => {
                format!("{} goes from {} to {}", l.name, number(a.1.middle), number(b.1.middle))
            }
            _ => format!("{} has no points", l.name),
        };
        self.lines.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    pub fn draw(&self, canvas: &mut Canvas) {
        let height = self.height();
        let names = self.lines.iter().map(|l| text_width(&l.name)).fold(0.0, f64::max);
        let right = WIDTH - (names + 22.0).clamp(40.0, 160.0);
        let points = || self.lines.iter().flat_map(|l| &l.points);
        let across = Axis::of(self.scales.0, points().map(|p| p.0));
        let ends = |f: &Figure| [f.middle, f.low.unwrap_or(f.middle), f.high.unwrap_or(f.middle)];
        let up = Axis::of(self.scales.1, points().flat_map(|p| ends(&p.1)));
        let bottom = height - BOTTOM;
        let x = |v: f64| LEFT + (right - LEFT) * across.place(v);
        let y = |v: f64| bottom - (bottom - TOP) * up.place(v);
        for (tick, text) in up.ticks() {
            let y = y(tick);
            canvas.add(format_args!("<path d=\"M{LEFT} {y:.1}H{right:.1}\" class=\"grid\"/>"));
            canvas.text(LEFT - 6.0, y + 4.0, "end", "muted", &text);
        }
        let mut free = f64::NEG_INFINITY;
        for (tick, text) in across.ticks() {
            let (x, half) = (x(tick), text_width(&text) / 2.0);
            canvas.add(format_args!("<path d=\"M{x:.1} {TOP}V{bottom:.1}\" class=\"grid\"/>"));
            if x - half > free {
                free = x + half + 4.0;
                canvas.text(x, bottom + 16.0, "middle", "muted", &text);
            }
        }
        canvas.text((LEFT + right) / 2.0, bottom + 32.0, "middle", "muted", &self.below);
        for line in &self.lines {
            line.draw(canvas, &x, &y);
        }
        self.names(canvas, right, bottom, &y);
    }

    /// Names at the ends of their lines, pushed apart where they would overlap.
    fn names(&self, canvas: &mut Canvas, right: f64, bottom: f64, y: &dyn Fn(f64) -> f64) {
        let mut ends: Vec<(f64, &Line)> =
            self.lines.iter().filter_map(|l| l.points.last().map(|p| (y(p.1.middle), l))).collect();
        ends.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut last = f64::NEG_INFINITY;
        for end in &mut ends {
            end.0 = end.0.max(last + APART);
            last = end.0;
        }
        let mut next = bottom + APART;
        for end in ends.iter_mut().rev() {
            end.0 = end.0.min(next - APART);
            next = end.0;
        }
        for (at, line) in ends {
            let shape = line.tone.shape(right + 10.0, at);
            canvas.add(format_args!("<g class=\"{} solid\">{shape}</g>", line.tone.class()));
            let name = fitted(&line.name, WIDTH - right - 18.0);
            canvas.text(right + 18.0, at + 4.0, "start", "", &name);
        }
    }
}

impl Line {
    fn draw(&self, canvas: &mut Canvas, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
        let corner = |v: (f64, f64)| format!("{:.1},{:.1}", x(v.0), y(v.1));
        let joined = |corners: Vec<String>| corners.join(" ");
        let upper = self.points.iter().map(|p| (p.0, p.1.high.unwrap_or(p.1.middle)));
        let lower = self.points.iter().rev().map(|p| (p.0, p.1.low.unwrap_or(p.1.middle)));
        let band = joined(upper.chain(lower).map(corner).collect());
        let line = joined(self.points.iter().map(|p| corner((p.0, p.1.middle))).collect());
        canvas.add(format_args!(
            "<g class=\"{}\"><polygon points=\"{band}\" class=\"band\"/><polyline points=\"{line}\" class=\"line\" stroke-dasharray=\"{}\"/>",
            self.tone.class(),
            self.tone.dashes()
        ));
        let marked = if self.dotted {
            &self.points[..]
        } else {
            self.points.last().map_or(&[][..], std::slice::from_ref)
        };
        let shapes: String =
            marked.iter().map(|p| self.tone.shape(x(p.0), y(p.1.middle))).collect();
        canvas.add(format_args!("<g class=\"solid\">{shapes}</g></g>"));
    }
}
