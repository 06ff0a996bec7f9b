//! A bar for each competitor, from 0, with its interval as whiskers.

use super::{
    super::{markup::escaped, number::short},
    Canvas, WIDTH, fitted,
    scale::{Axis, Scale},
    text_width,
    tone::Tone,
};
use crate::bench::results::Figure;

const STEP: f64 = 25.0;
const THICK: f64 = 14.0;
const BOTTOM: f64 = 24.0;
const TOP: f64 = 4.0;

/// Bars, from above.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::report) struct Bars(pub Vec<Bar>);

/// A bar.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::report) struct Bar {
    /// Whose it is.
    pub name: String,
    /// What stands beside the name: the tier of a store.
    pub note: String,
    /// Whether it stands out: no other was shown to be better.
    pub first: bool,
    pub value: Figure,
    /// What comes on top of it, paler: log files on top of data.
    pub more: Option<f64>,
    /// Marks behind its figure.
    pub mark: String,
}

impl Bar {
    fn end(&self) -> f64 {
        (self.value.middle + self.more.unwrap_or(0.0)).max(self.value.high.unwrap_or(0.0))
    }

    fn figure(&self) -> String {
        let more = self.more.map_or(String::new(), |m| format!(" + {}", short(m)));
        let first = if self.first { " 1st" } else { "" };
        format!("{}{more}{}{first}", short(self.value.middle), self.mark)
    }

    /// Colour says who is first, which the figure says too; names say whose a bar is.
    fn tone(&self) -> Tone {
        if self.first { Tone(0) } else { Tone(7) }
    }
}

impl Bars {
    pub fn height(&self) -> f64 {
        TOP + STEP * self.0.len().max(1) as f64 + BOTTOM
    }

    pub fn words(&self) -> String {
        let each = |b: &Bar| match (b.value.low, b.value.high) {
            (Some(low), Some(high)) => {
                format!("{} {} (from {} to {})", b.name, b.figure(), short(low), short(high))
            }
            _ => format!("{} {}", b.name, b.figure()),
        };
        self.0.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    pub fn draw(&self, canvas: &mut Canvas) {
        let noted = |b: &Bar| match b.note.as_str() {
            "" => b.name.clone(),
            note => format!("{} {note}", b.name),
        };
        let widest = self.0.iter().map(|b| text_width(&noted(b))).fold(0.0, f64::max);
        let left = (widest + 10.0).clamp(44.0, 190.0);
        let figures = self.0.iter().map(|b| text_width(&b.figure())).fold(0.0, f64::max);
        let right = WIDTH - (figures + 10.0).clamp(30.0, 140.0);
        let axis = Axis::of(Scale::Linear, self.0.iter().map(Bar::end));
        let x = |v: f64| left + (right - left) * axis.place(v);
        let bottom = self.height() - BOTTOM;
        for (tick, text) in axis.ticks() {
            let x = x(tick);
            canvas.add(format_args!("<path d=\"M{x:.1} {TOP}V{bottom:.1}\" class=\"grid\"/>"));
            canvas.text(x, bottom + 16.0, "middle", "muted", &text);
        }
        for (i, bar) in self.0.iter().enumerate() {
            let y = TOP + STEP * (i as f64 + 0.5);
            let width = x(bar.value.middle) - left;
            canvas.add(format_args!(
                "<g class=\"{}\"><rect x=\"{left:.1}\" y=\"{:.1}\" width=\"{width:.1}\" height=\"{THICK}\" class=\"solid\"/>",
                bar.tone().class(),
                y - THICK / 2.0,
            ));
            if let Some(more) = bar.more {
                canvas.add(format_args!(
                    "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{THICK}\" class=\"pale\"/>",
                    left + width,
                    y - THICK / 2.0,
                    x(bar.value.middle + more) - left - width
                ));
            }
            canvas.add(format_args!("</g>"));
            if let Some((low, high)) = bar.value.low.zip(bar.value.high) {
                let (low, high) = (x(low), x(high));
                let up = y - 4.0;
                canvas.add(format_args!(
                    "<path d=\"M{low:.1} {y:.1}H{high:.1}M{low:.1} {up:.1}v8M{high:.1} {up:.1}v8\" class=\"whisker\"/>"
                ));
            }
            let note = if bar.note.is_empty() { 0.0 } else { text_width(&bar.note) + 4.0 };
            canvas.add(format_args!(
                "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{} <tspan class=\"muted\">{}</tspan></text>",
                left - 6.0,
                y + 4.0,
                escaped(&fitted(&bar.name, left - 8.0 - note)),
                escaped(&bar.note)
            ));
            canvas.text(x(bar.end()) + 6.0, y + 4.0, "start", "", &bar.figure());
        }
    }
}
