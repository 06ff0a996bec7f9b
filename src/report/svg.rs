//! Results as a plain SVG picture: small panels side by side, one for each series.
//!
//! Where phases have sizes, a panel is a curve for each competitor with its interval as a band;
//! otherwise bars with their intervals as whiskers. Colours are told apart by people who do not see
//! red or green (Okabe and Ito, "Color Universal Design", 2008), and each curve is named at its end.

use std::fmt::Write;

use super::{
    number::{short, whole},
    tables::ranked,
};
use crate::bench::results::{Cell, Figure, Results};

const COLOURS: [&str; 8] =
    ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#7f7f7f"];
const WIDTH: f64 = 460.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 84.0;
const TOP: f64 = 34.0;
const BOTTOM: f64 = 40.0;

pub(super) fn svg(results: &Results) -> String {
    let mut names: Vec<&str> = Vec::new();
    for phase in &results.phases {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    let curved = results.phases.iter().any(|p| p.size.is_some());
    let panels: Vec<String> = names
        .iter()
        .map(|name| if curved { curves(results, name) } else { bars(results, name) })
        .collect();
    let columns = panels.len().clamp(1, 2);
    let rows = panels.len().div_ceil(columns).max(1);
    let (width, height) = (WIDTH * columns as f64, HEIGHT * rows as f64);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         height=\"{height}\" font-family=\"system-ui, sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    for (i, panel) in panels.iter().enumerate() {
        let (x, y) = ((i % columns) as f64 * WIDTH, (i / columns) as f64 * HEIGHT);
        let _ = writeln!(out, "<g transform=\"translate({x} {y})\">\n{panel}</g>");
    }
    out.push_str("</svg>\n");
    out
}

fn colour(results: &Results, name: &str) -> &'static str {
    let at = results.competitors.iter().filter(|c| !c.null).position(|c| c.name == name);
    COLOURS[at.unwrap_or(0) % COLOURS.len()]
}

fn title(out: &mut String, text: &str, unit: &str) {
    let _ = writeln!(
        out,
        "<text x=\"{LEFT}\" y=\"18\" font-weight=\"bold\">{} <tspan font-weight=\"normal\" fill=\"#555\">{}</tspan></text>",
        escaped(text),
        escaped(unit)
    );
}

/// Round numbers from 0 up to `top`, five or so.
fn ticks(top: f64) -> Vec<f64> {
    if !(top > 0.0 && top.is_finite()) {
        return vec![0.0];
    }
    let rough = top / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|s| s * power).into_iter().find(|s| *s >= rough).unwrap_or(rough);
    (0..).map(|i| f64::from(i) * step).take_while(|t| *t <= top * 1.0001).collect()
}

fn label(v: f64) -> String {
    let text = short(v);
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn curves(results: &Results, series: &str) -> String {
    let mut lines: Vec<(&str, Vec<(f64, Figure)>)> = Vec::new();
    for contender in results.competitors.iter().filter(|c| !c.null) {
        let mut points: Vec<(f64, Figure)> = results
            .phases
            .iter()
            .filter(|p| p.name == series)
            .filter_map(|p| {
                let size = p.size? as f64;
                let summary = results.cell(&contender.name, &p.id)?.summary.as_ref()?;
                Some((size, summary.ns.scaled(size / 1e9)))
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !points.is_empty() {
            lines.push((&contender.name, points));
        }
    }
    let all = || lines.iter().flat_map(|l| &l.1);
    let right = all().map(|p| p.0).fold(0.0, f64::max);
    let top = all().map(|p| p.1.high.unwrap_or(p.1.middle)).fold(0.0, f64::max);
    let x = |v: f64| LEFT + (WIDTH - LEFT - RIGHT) * if right > 0.0 { v / right } else { 0.0 };
    let y = |v: f64| {
        HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * if top > 0.0 { v.max(0.0) / top } else { 0.0 }
    };
    let mut out = String::new();
    title(&mut out, series, "seconds by objects");
    for t in ticks(top) {
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {:.1}H{:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            LEFT,
            y(t),
            WIDTH - RIGHT,
            LEFT - 6.0,
            y(t) + 4.0,
            label(t)
        );
    }
    for t in ticks(right) {
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(t),
            HEIGHT - BOTTOM + 16.0,
            whole(t as u64)
        );
    }
    for (name, points) in &lines {
        let ink = colour(results, name);
        let corner = |v: &(f64, f64)| format!("{:.1},{:.1}", x(v.0), y(v.1));
        let upper = points.iter().map(|p| (p.0, p.1.high.unwrap_or(p.1.middle)));
        let lower = points.iter().rev().map(|p| (p.0, p.1.low.unwrap_or(p.1.middle)));
        let band: Vec<String> = upper.chain(lower).map(|v| corner(&v)).collect();
        let line: Vec<String> = points.iter().map(|p| corner(&(p.0, p.1.middle))).collect();
        let _ = writeln!(
            out,
            "<polygon points=\"{}\" fill=\"{ink}\" opacity=\"0.2\"/><polyline points=\"{}\" fill=\"none\" stroke=\"{ink}\" stroke-width=\"1.5\"/>",
            band.join(" "),
            line.join(" ")
        );
    }
    // Names at the ends of their curves, pushed apart where they would overlap.
    let mut ends: Vec<(f64, &str)> =
        lines.iter().filter_map(|(n, p)| p.last().map(|p| (y(p.1.middle), *n))).collect();
    ends.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut last = f64::NEG_INFINITY;
    for (at, name) in ends {
        let at = at.max(last + 12.0);
        last = at;
        let _ = writeln!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" fill=\"{}\">{}</text>",
            WIDTH - RIGHT + 6.0,
            at + 4.0,
            colour(results, name),
            escaped(name)
        );
    }
    out
}

fn bars(results: &Results, series: &str) -> String {
    let Some(phase) = results.phases.iter().find(|p| p.name == series) else {
        return String::new();
    };
    let scale = phase.units as f64 / 1e9;
    let cells: Vec<(&str, &Cell, Figure)> = ranked(results, &phase.id)
        .into_iter()
        .filter_map(|(c, cell)| {
            Some((c.name.as_str(), cell, cell.summary.as_ref()?.ns.scaled(scale)))
        })
        .collect();
    let top = cells.iter().map(|c| c.2.high.unwrap_or(c.2.middle)).fold(0.0, f64::max);
    let x = |v: f64| LEFT + (WIDTH - LEFT - RIGHT) * if top > 0.0 { v.max(0.0) / top } else { 0.0 };
    let step = (HEIGHT - TOP - BOTTOM) / cells.len().max(1) as f64;
    let mut out = String::new();
    title(&mut out, series, &format!("seconds for {} records", whole(phase.units)));
    for t in ticks(top) {
        let _ = writeln!(
            out,
            "<path d=\"M{:.1} {TOP}V{:.1}\" stroke=\"#ddd\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
            x(t),
            HEIGHT - BOTTOM,
            x(t),
            HEIGHT - BOTTOM + 16.0,
            label(t)
        );
    }
    for (i, (name, cell, seconds)) in cells.iter().enumerate() {
        let y = TOP + step * (i as f64 + 0.5);
        let thick = (step * 0.6).min(18.0);
        let mark = if cell.settled { "" } else { "*" };
        let _ = writeln!(
            out,
            "<rect x=\"{LEFT}\" y=\"{:.1}\" width=\"{:.1}\" height=\"{thick:.1}\" fill=\"{}\"/><text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            y - thick / 2.0,
            x(seconds.middle) - LEFT,
            colour(results, name),
            LEFT - 6.0,
            y + 4.0,
            escaped(name)
        );
        if let Some((low, high)) = seconds.low.zip(seconds.high) {
            let _ = writeln!(
                out,
                "<path d=\"M{:.1} {y:.1}H{:.1}M{:.1} {:.1}v6M{:.1} {:.1}v6\" stroke=\"#000\"/>",
                x(low),
                x(high),
                x(low),
                y - 3.0,
                x(high),
                y - 3.0
            );
        }
        let end = x(seconds.high.unwrap_or(seconds.middle)) + 6.0;
        let _ = writeln!(
            out,
            "<text x=\"{end:.1}\" y=\"{:.1}\">{}{mark}</text>",
            y + 4.0,
            short(seconds.middle)
        );
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        assert_eq!(ticks(100_000.0)[..3], [0.0, 20_000.0, 40_000.0]);
        assert_eq!(ticks(0.9).len(), 5);
        assert_eq!(ticks(4.0), [0.0, 1.0, 2.0, 3.0, 4.0]);
        assert_eq!(ticks(0.0), [0.0]);
        assert_eq!(ticks(f64::NAN), [0.0]);
    }

    #[test]
    fn names_cannot_break_the_picture() {
        assert_eq!(escaped("<a & \"b\">"), "&lt;a &amp; &quot;b&quot;&gt;");
    }
}
