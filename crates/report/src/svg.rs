//! All charts of a page as one plain SVG picture, side by side, on white.

use std::fmt::Write;

use super::{
    chart::{Chart, WIDTH, tone::LIGHT},
    markup::escaped,
    page::Page,
};

/// Room around each chart, and above it for its title.
const MARGIN: f64 = 20.0;
const TITLE: f64 = 30.0;

pub(super) fn svg(page: &Page) -> String {
    let charts: Vec<&Chart> = page.sections.iter().flat_map(|s| &s.charts).collect();
    let columns = charts.len().clamp(1, 2);
    let width = (WIDTH + MARGIN) * columns as f64 + MARGIN;
    let mut panels = String::new();
    let mut y = MARGIN;
    for row in charts.chunks(columns) {
        for (i, chart) in row.iter().enumerate() {
            let x = MARGIN + (WIDTH + MARGIN) * i as f64;
            // Writing to a string does not fail.
            let _ = writeln!(
                panels,
                "<g transform=\"translate({x} {y})\">\n<text y=\"12\" class=\"title\">{} <tspan class=\"muted\">{}</tspan></text>\n<g transform=\"translate(0 {TITLE})\">\n{}</g></g>",
                escaped(&chart.title),
                escaped(&chart.unit),
                chart.drawn()
            );
        }
        y += TITLE + MARGIN + row.iter().map(|c| c.height()).fold(0.0, f64::max);
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {y}\" width=\"{width}\" height=\"{y}\" class=\"chart\" font-family=\"system-ui, sans-serif\" font-size=\"12\">\n\
         <title>{}</title>\n<style>\n{}</style>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n{panels}</svg>\n",
        escaped(&page.title),
        LIGHT.style(),
    )
}
