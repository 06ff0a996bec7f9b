//! A dot for each comparison, with its interval, on both sides of 1: what is better and what worse.

use super::{
    Canvas, WIDTH, fitted,
    scale::{Axis, Scale},
    text_width,
    tone::Tone,
};
use steelyard_results::{Figure, Verdict};

const STEP: f64 = 22.0;
const TOP: f64 = 4.0;
const BOTTOM: f64 = 24.0;

/// Comparisons, from above.
#[derive(Debug, Clone, PartialEq, Default)]
pub(crate) struct Ratios(pub Vec<Ratio>);

/// A comparison.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ratio {
    /// What is compared.
    pub name: String,
    /// Time over time.
    pub ratio: Figure,
    pub verdict: Verdict,
}

impl Ratio {
    /// Its looks: the shape says the same as the colour.
    fn tone(&self) -> Tone {
        match self.verdict {
            Verdict::Faster => Tone(2),
            Verdict::Alike | Verdict::CannotTell | Verdict::Untested => Tone(15),
            Verdict::Slower => Tone(9),
        }
    }

    fn figure(&self) -> String {
        let word = match self.verdict {
            Verdict::Faster => " faster",
            Verdict::Alike => " =",
            Verdict::CannotTell => " ?",
            Verdict::Untested => "",
            Verdict::Slower => " slower",
        };
        format!("{:.2}{word}", self.ratio.middle)
    }
}

impl Ratios {
    pub(crate) fn height(&self) -> f64 {
        TOP + STEP * self.0.len().max(1) as f64 + BOTTOM
    }

    pub(crate) fn words(&self) -> String {
        let each = |r: &Ratio| format!("{}: {}", r.name, r.figure());
        self.0.iter().map(each).collect::<Vec<_>>().join(", ")
    }

    pub(crate) fn draw(&self, canvas: &mut Canvas) {
        let names = self.0.iter().map(|r| text_width(&r.name)).fold(0.0, f64::max);
        let left = (names + 12.0).clamp(44.0, 190.0);
        let right = WIDTH - 84.0;
        let ends = |f: &Figure| [f.middle, f.low.unwrap_or(f.middle), f.high.unwrap_or(f.middle)];
        // 1 is always there to look at, and a little to both of its sides.
        let values = self.0.iter().flat_map(|r| ends(&r.ratio)).chain([0.95, 1.05]);
        let axis = Axis::of(Scale::Log, values);
        let x = |v: f64| left + (right - left) * axis.place(v);
        let bottom = self.height() - BOTTOM;
        let places: Vec<_> = axis.ticks().into_iter().map(|(v, text)| (x(v), text)).collect();
        canvas.ticks(&places, TOP, bottom);
        let one = x(1.0);
        canvas.add(format_args!("<path d=\"M{one:.1} {TOP}V{bottom:.1}\" class=\"axis\"/>"));
        for (i, ratio) in self.0.iter().enumerate() {
            let y = TOP + STEP * (i as f64 + 0.5);
            if let Some((low, high)) = ratio.ratio.low.zip(ratio.ratio.high) {
                let (low, high, up) = (x(low), x(high), y - 4.0);
                canvas.add(format_args!(
                    "<path d=\"M{low:.1} {y:.1}H{high:.1}M{low:.1} {up:.1}v8M{high:.1} {up:.1}v8\" class=\"whisker\"/>"
                ));
            }
            let shape = ratio.tone().shape(x(ratio.ratio.middle), y);
            canvas.add(format_args!("<g class=\"{} solid\">{shape}</g>", ratio.tone().class()));
            canvas.text(left - 8.0, y + 4.0, "end", "", &fitted(&ratio.name, left - 10.0));
            canvas.text(right + 8.0, y + 4.0, "start", "", &ratio.figure());
        }
    }
}
