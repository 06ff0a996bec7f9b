//! A bar for each competitor, from 0, with its interval as whiskers.

use super::{
    super::{
        markup::escaped,
        number::{short, whole},
        summary::Standing,
    },
    Canvas, WIDTH, fitted,
    scale::{Axis, Scale},
    text_width,
    tone::Tone,
};
use steelyard_results::Figure;

const STEP: f64 = 25.0;
const THICK: f64 = 14.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 4.0;

/// Bars, from above.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Bars(pub Vec<Bar>);

/// A bar.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Bar {
    /// Whose it is.
    pub name: String,
    /// What stands beside the name: the tier of a store.
    pub note: String,
    /// How it stands among those that it may be compared with.
    pub standing: Standing,
    pub value: Figure,
    /// What comes on top of it, paler: log files on top of data.
    pub more: Option<f64>,
    /// Whether it is a count, which is told to the last one.
    pub counted: bool,
    /// Marks behind its figure.
    pub mark: String,
    /// In which time half of the operations were answered, and 99 of 100; for looks that have columns.
    pub latency: Option<[String; 2]>,
}

impl Bar {
    /// How far it reaches, with all that lies on it.
    pub(crate) fn end(&self) -> f64 {
        (self.value.middle + self.more.unwrap_or(0.0)).max(self.value.high.unwrap_or(0.0))
    }

    fn figure(&self) -> String {
        let more = self.more.map_or(String::new(), |m| format!(" + {}", short(m)));
        let word = match self.standing.place.word() {
            "" => String::new(),
            word => format!(" {word}"),
        };
        let middle = self.value.middle;
        let figure = if self.counted { whole(middle as u64) } else { short(middle) };
        format!("{figure}{more}{}{word}", self.mark)
    }

    /// Colour says who leads, which the figure says too; names say whose a bar is.
    fn tone(&self) -> Tone {
        if self.standing.marked { Tone(0) } else { Tone(7) }
    }
}

impl Bars {
    pub(crate) fn height(&self) -> f64 {
        TOP + self.step() * self.0.len().max(1) as f64 + BOTTOM
    }

    /// True where names are too long to stand beside their bars, and so stand above.
    fn is_stacked(&self) -> bool {
        self.widest() > 96.0
    }

    fn widest(&self) -> f64 {
        self.0.iter().map(|b| text_width(&b.noted())).fold(0.0, f64::max)
    }

    fn step(&self) -> f64 {
        if self.is_stacked() { STEP + 14.0 } else { STEP }
    }

    pub(crate) fn words(&self) -> String {
        let each = |b: &Bar| match (b.value.low, b.value.high) {
            (Some(low), Some(high)) => {
                format!("{} {} (from {} to {})", b.noted(), b.figure(), short(low), short(high))
            }
            _ => format!("{} {}", b.noted(), b.figure()),
        };
        self.0.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        let stacked = self.is_stacked();
        let left = if stacked { 2.0 } else { (self.widest() + 10.0).max(44.0) };
        let figures = self.0.iter().map(|b| text_width(&b.figure())).fold(0.0, f64::max);
        let right = WIDTH - (figures + 10.0).clamp(30.0, 150.0);
        let axis = Axis::of(Scale::Linear, self.0.iter().map(Bar::end));
        let x = |v: f64| left + (right - left) * axis.place(v);
        let places: Vec<_> = axis.ticks().into_iter().map(|(v, text)| (x(v), text)).collect();
        canvas.ticks(&places, TOP, self.height() - BOTTOM);
        for (i, bar) in self.0.iter().enumerate() {
            let top = TOP + self.step() * i as f64;
            let middle = top + self.step() - STEP / 2.0;
            bar.draw(canvas, left, middle, &x);
            let (at, down, anchor) = match stacked {
                true => (left, top + 12.0, "start"),
                false => (left - 6.0, middle + 4.0, "end"),
            };
            canvas.add(format_args!(
                "<text x=\"{at:.1}\" y=\"{down:.1}\" text-anchor=\"{anchor}\">{} <tspan class=\"muted\">{}</tspan></text>",
                escaped(&fitted(&bar.name, WIDTH - text_width(&bar.note) - 8.0)),
                escaped(&bar.note)
            ));
        }
    }
}

impl Bar {
    fn draw(&self, canvas: &mut Canvas, left: f64, y: f64, x: &dyn Fn(f64) -> f64) {
        let middle = x(self.value.middle);
        let top = y - THICK / 2.0;
        canvas.add(format_args!(
            "<g class=\"{}\"><rect x=\"{left:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{THICK}\" class=\"solid\"/>",
            self.tone().class(),
            middle - left,
        ));
        if let Some(more) = self.more {
            canvas.add(format_args!(
                "<rect x=\"{middle:.1}\" y=\"{top:.1}\" width=\"{:.1}\" height=\"{THICK}\" class=\"pale\"/>",
                x(self.value.middle + more) - middle
            ));
        }
        canvas.add(format_args!("</g>"));
        if let Some((low, high)) = self.value.low.zip(self.value.high) {
            let (low, high) = (x(low), x(high));
            let up = y - 4.0;
            canvas.add(format_args!(
                "<path d=\"M{low:.1} {y:.1}H{high:.1}M{low:.1} {up:.1}v8M{high:.1} {up:.1}v8\" class=\"whisker\"/>"
            ));
        }
        canvas.text(x(self.end()) + 6.0, y + 4.0, "start", "", &self.figure());
    }

    /// The name with what stands beside it.
    fn noted(&self) -> String {
        format!("{} {}", self.name, self.note).trim_end().to_owned()
    }
}
