//! A line for each competitor, with its interval as a band, and its name at its end or below.

use super::{
    super::number::short,
    Canvas, WIDTH, fitted,
    scale::{Axis, Scale},
    text_width,
    tone::Tone,
};
use steelyard_results::Figure;

const LEFT: f64 = 52.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 40.0;
/// How high it is at least, without a key.
const HEIGHT: f64 = 270.0;
/// Names are at least so far apart.
const APART: f64 = 14.0;
/// A line of the key.
const KEY: f64 = 18.0;
/// Room for the piece of line beside a name of the key.
const SAMPLE: f64 = 36.0;
/// The size of small text beside that of other text.
const SMALL: f64 = 11.0 / 12.0;

/// Lines over one axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Lines {
    /// The lines.
    pub lines: Vec<Line>,
    /// How the two axes are laid out.
    pub scales: (Scale, Scale),
    /// What stands below the axis from left to right.
    pub below: String,
}

/// A line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Line {
    /// Whose it is.
    pub name: String,
    pub tone: Tone,
    /// Its points, from left to right.
    pub points: Vec<(f64, Figure)>,
    /// Whether every point is marked: where they are few.
    pub dotted: bool,
}

impl Lines {
    pub(crate) fn height(&self) -> f64 {
        let beside = (TOP + BOTTOM + APART * (self.lines.len() as f64 + 1.0)).max(HEIGHT);
        if self.is_keyed() { HEIGHT + self.key_height() } else { beside }
    }

    /// True where names are too long to stand at the ends of lines, and so stand below.
    fn is_keyed(&self) -> bool {
        self.lines.iter().any(|l| text_width(&l.name) > 84.0)
    }

    fn key_height(&self) -> f64 {
        6.0 + KEY * self.lines.len().div_ceil(self.key_columns()) as f64
    }

    /// Two where the names are short enough.
    fn key_columns(&self) -> usize {
        let wide = (WIDTH - LEFT) / 2.0 - SAMPLE;
        if self.lines.iter().all(|l| SMALL * text_width(&l.name) < wide) { 2 } else { 1 }
    }

    pub(crate) fn words(&self) -> String {
        let each = |l: &Line| match (l.points.first(), l.points.last()) {
            (Some(a), Some(b)) => {
                format!("{} goes from {} to {}", l.name, short(a.1.middle), short(b.1.middle))
            }
            _ => format!("{} has no points", l.name),
        };
        self.lines.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        let keyed = self.is_keyed();
        let names = self.lines.iter().map(|l| text_width(&l.name)).fold(0.0, f64::max);
        let right = if keyed { WIDTH - 12.0 } else { WIDTH - names - 24.0 };
        let bottom = self.height() - BOTTOM - if keyed { self.key_height() } else { 0.0 };
        let points = || self.lines.iter().flat_map(|l| &l.points);
        let across = Axis::of(self.scales.0, points().map(|p| p.0));
        let ends = |f: &Figure| [f.middle, f.low.unwrap_or(f.middle), f.high.unwrap_or(f.middle)];
        let up = Axis::of(self.scales.1, points().flat_map(|p| ends(&p.1)));
        let x = |v: f64| LEFT + (right - LEFT) * across.place(v);
        let y = |v: f64| bottom - (bottom - TOP) * up.place(v);
        for (tick, text) in up.ticks() {
            let y = y(tick);
            canvas.add(format_args!("<path d=\"M{LEFT} {y:.1}H{right:.1}\" class=\"grid\"/>"));
            canvas.text(LEFT - 6.0, y + 4.0, "end", "muted", &text);
        }
        let places: Vec<_> = across.ticks().into_iter().map(|(v, text)| (x(v), text)).collect();
        canvas.ticks(&places, TOP, bottom);
        canvas.text((LEFT + right) / 2.0, bottom + 32.0, "middle", "muted", &self.below);
        // No band lies over a line.
        self.lines.iter().for_each(|line| line.draw_band(canvas, &x, &y));
        self.lines.iter().for_each(|line| line.draw(canvas, &x, &y));
        match keyed {
            true => self.key(canvas, bottom + BOTTOM),
            false => self.names(canvas, right, bottom, &y),
        }
    }

    /// Names below, each beside a piece of its line.
    fn key(&self, canvas: &mut Canvas, top: f64) {
        let columns = self.key_columns();
        let wide = (WIDTH - LEFT) / columns as f64;
        for (i, line) in self.lines.iter().enumerate() {
            let x = LEFT + wide * (i % columns) as f64;
            let y = top + 12.0 + KEY * (i / columns) as f64;
            canvas.add(format_args!(
                "<g class=\"{}\"><path d=\"M{x:.1} {y:.1}h26\" class=\"line\" stroke-dasharray=\"{}\"/><g class=\"solid\">{}</g></g>",
                line.tone.class(),
                line.tone.dashes(),
                line.tone.shape(x + 13.0, y)
            ));
            canvas.text(
                x + 32.0,
                y + 4.0,
                "start",
                "small",
                &fitted(&line.name, (wide - SAMPLE) / SMALL),
            );
        }
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
            canvas.text(right + 18.0, at + 4.0, "start", "", &line.name);
        }
    }
}

impl Line {
    fn draw_band(&self, canvas: &mut Canvas, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
        let upper = self.points.iter().map(|p| (p.0, p.1.high.unwrap_or(p.1.middle)));
        let lower = self.points.iter().rev().map(|p| (p.0, p.1.low.unwrap_or(p.1.middle)));
        let band: Vec<String> =
            upper.chain(lower).map(|v| format!("{:.1},{:.1}", x(v.0), y(v.1))).collect();
        canvas.add(format_args!(
            "<polygon points=\"{}\" class=\"band {}\"/>",
            band.join(" "),
            self.tone.class()
        ));
    }

    fn draw(&self, canvas: &mut Canvas, x: &dyn Fn(f64) -> f64, y: &dyn Fn(f64) -> f64) {
        let corner = |p: &(f64, Figure)| format!("{:.1},{:.1}", x(p.0), y(p.1.middle));
        let line: Vec<String> = self.points.iter().map(corner).collect();
        canvas.add(format_args!(
            "<g class=\"{}\"><polyline points=\"{}\" class=\"line\" stroke-dasharray=\"{}\"/>",
            self.tone.class(),
            line.join(" "),
            self.tone.dashes()
        ));
        // Of many points some are marked, so that a line is known by its shape everywhere.
        let every = if self.dotted { 1 } else { self.points.len().div_ceil(5).max(1) };
        let marked = self.points.iter().rev().step_by(every);
        let shapes: String = marked.map(|p| self.tone.shape(x(p.0), y(p.1.middle))).collect();
        canvas.add(format_args!("<g class=\"solid\">{shapes}</g></g>"));
    }
}
