//! Pictures, as SVG: what stands in one ([`Chart`]), and how it is drawn.
//!
//! Charts are drawn once for all looks: with classes and `currentColor`, which a style sheet beside
//! them gives ink ([`tone`]). They are narrow (a phone shows one at about its own size) and as high
//! as they need to be. Series are told apart by name, dash and shape, not by colour alone.
//!
//! To add a kind: a file with `draw(&self, &mut Canvas)` and an arm in [`Plot`].

mod bars;
mod lines;
mod ratios;
mod scale;
mod scatter;
pub(super) mod tone;

use std::fmt::{Arguments, Write};

pub(super) use self::{
    bars::{Bar, Bars},
    lines::{Line, Lines},
    ratios::{Ratio, Ratios},
    scale::Scale,
    scatter::{Scatter, Spot, Trail},
};

/// How wide every chart is, in its own units.
pub(super) const WIDTH: f64 = 400.0;

/// A picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Chart {
    /// What it shows, in a few words.
    pub title: String,
    /// What its figures are, in a few words: `seconds for 18,881 records`.
    pub unit: String,
    /// What it is.
    pub plot: Plot,
}

/// A kind of picture.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Plot {
    /// A bar for each competitor, with whiskers.
    Bars(Bars),
    /// A line for each competitor, with a band.
    Lines(Lines),
    /// A dot for each comparison, with whiskers, about 1.
    Ratios(Ratios),
    /// A point for each competitor, by size and rate.
    Scatter(Scatter),
}

impl Chart {
    /// How high it is.
    pub(crate) fn height(&self) -> f64 {
        match &self.plot {
            Plot::Bars(bars) => bars.height(),
            Plot::Lines(lines) => lines.height(),
            Plot::Ratios(ratios) => ratios.height(),
            Plot::Scatter(scatter) => scatter.height(),
        }
    }

    /// The same in words, for who does not see it.
    pub(crate) fn words(&self) -> String {
        match &self.plot {
            Plot::Bars(bars) => bars.words(),
            Plot::Lines(lines) => lines.words(),
            Plot::Ratios(ratios) => ratios.words(),
            Plot::Scatter(scatter) => scatter.words(),
        }
    }

    /// What stands inside of its `svg` element.
    pub(crate) fn drawn(&self) -> String {
        let mut canvas = Canvas::default();
        match &self.plot {
            Plot::Bars(bars) => bars.draw(&mut canvas),
            Plot::Lines(lines) => lines.draw(&mut canvas),
            Plot::Ratios(ratios) => ratios.draw(&mut canvas),
            Plot::Scatter(scatter) => scatter.draw(&mut canvas),
        }
        canvas.0
    }
}

/// What is drawn on.
#[derive(Default)]
pub(crate) struct Canvas(String);

impl Canvas {
    /// Adds an element, or several.
    fn add(&mut self, element: Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.0.write_fmt(element);
        self.0.push('\n');
    }

    /// Adds the lines and the texts of an axis from left to right: each tick at its place.
    fn ticks(&mut self, places: &[(f64, String)], top: f64, bottom: f64) {
        for (x, _) in places {
            self.add(format_args!("<path d=\"M{x:.1} {top}V{bottom:.1}\" class=\"grid\"/>"));
        }
        for (x, text) in written(places) {
            self.text(*x, bottom + 16.0, "middle", "muted", text);
        }
    }

    /// Adds a text; `anchor` is `start`, `middle` or `end`.
    fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) {
        let text = super::markup::escaped(text);
        self.add(format_args!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" class=\"{class}\">{text}</text>"
        ));
    }
}

/// Which of these places along an axis, with their texts, are written: those that do not run into one
/// written before.
fn written(places: &[(f64, String)]) -> impl Iterator<Item = &(f64, String)> {
    let mut free = f64::NEG_INFINITY;
    places.iter().filter(move |(x, text)| {
        let half = text_width(text) / 2.0;
        let fits = x - half > free;
        if fits {
            free = x + half + 5.0;
        }
        fits
    })
}

/// About how wide a text is, at 12 units a line: enough to leave room for it.
fn text_width(text: &str) -> f64 {
    text.chars().map(|c| if c.is_uppercase() || c == '%' { 8.4 } else { 6.7 }).sum()
}

/// As much of a name as fits, with a sign that there is more.
fn fitted(name: &str, width: f64) -> String {
    if text_width(name) <= width {
        return name.to_owned();
    }
    let mut text = String::new();
    for c in name.chars() {
        if text_width(&text) + 14.0 > width {
            break;
        }
        text.push(c);
    }
    text + "…"
}
