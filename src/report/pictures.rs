//! The charts that pages of several benches have in common, made from results.

use super::{
    chart::{Bar, Bars, Chart, Line, Lines, Plot, Scale, tone::Tone},
    number::whole,
    tables::ranked,
};
use crate::bench::results::{Basis, Figure, Phase, Results};

/// The looks of a competitor, the same in all charts of a page.
pub(super) fn tone(results: &Results, name: &str) -> Tone {
    let at = results.competitors.iter().filter(|c| !c.null).position(|c| c.name == name);
    Tone(at.unwrap_or(0))
}

/// Seconds for one pass of a phase, a bar for each competitor; `None` where nobody has any.
pub(super) fn pass(results: &Results, phase: &Phase) -> Option<Chart> {
    let scale = phase.units as f64 / 1e9;
    let bars: Vec<Bar> = ranked(results, &phase.id)
        .into_iter()
        .filter_map(|(c, cell)| {
            let s = cell.summary.as_ref()?;
            Some(Bar {
                name: c.name.clone(),
                first: s.group == 1 && s.ns.low.is_some(),
                value: s.ns.scaled(scale),
                mark: if cell.settled { "" } else { "*" }.into(),
                ..Bar::default()
            })
        })
        .collect();
    let what = match results.figures() {
        Basis::Elapsed => "seconds",
        Basis::Processor => "CPU seconds",
    };
    (!bars.is_empty()).then(|| Chart {
        title: phase.name.clone(),
        unit: format!("{what} for {} records", whole(phase.units)),
        plot: Plot::Bars(Bars(bars)),
    })
}

/// Megabytes of all records, a chart for each wrap.
pub(super) fn sizes(results: &Results) -> Vec<Chart> {
    let mut wraps: Vec<&str> =
        results.competitors.iter().flat_map(|c| c.sizes.keys()).map(String::as_str).collect();
    wraps.sort_unstable();
    wraps.dedup();
    let chart = |wrap: &str| {
        let mut sizes: Vec<(u64, &str)> = results
            .competitors
            .iter()
            .filter(|c| !c.null)
            .filter_map(|c| Some((*c.sizes.get(wrap)?, c.name.as_str())))
            .collect();
        sizes.sort_unstable();
        let least = sizes.first().map_or(0, |s| s.0);
        let bar = |(size, name): (u64, &str)| Bar {
            name: name.into(),
            first: size == least,
            value: Figure { middle: size as f64 / 1e6, ..Figure::default() },
            ..Bar::default()
        };
        Chart {
            title: if wrap.is_empty() { "Size".into() } else { format!("Size in {wrap}") },
            unit: "MB".into(),
            plot: Plot::Bars(Bars(sizes.into_iter().map(bar).collect())),
        }
    };
    wraps.into_iter().map(chart).collect()
}

/// Seconds by number of objects, a chart for each series.
pub(super) fn curves(results: &Results) -> Vec<Chart> {
    let mut names: Vec<&str> = Vec::new();
    for phase in results.phases.iter().filter(|p| p.size.is_some()) {
        if !names.contains(&phase.name.as_str()) {
            names.push(&phase.name);
        }
    }
    names.into_iter().map(|name| curve(results, name)).collect()
}

fn curve(results: &Results, series: &str) -> Chart {
    let mut lines = Vec::new();
    for contender in results.competitors.iter().filter(|c| !c.null) {
        let of = |p: &Phase| {
            let size = p.size? as f64;
            let summary = results.cell(&contender.name, &p.id)?.summary.as_ref()?;
            Some((size, summary.ns.scaled(size / 1e9)))
        };
        let phases = results.phases.iter().filter(|p| p.name == series);
        let mut points: Vec<(f64, Figure)> = phases.filter_map(of).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        if !points.is_empty() {
            let tone = tone(results, &contender.name);
            let dotted = points.len() <= 12;
            lines.push(Line { name: contender.name.clone(), tone, points, dotted });
        }
    }
    Chart {
        title: series.into(),
        unit: "seconds".into(),
        plot: Plot::Lines(Lines {
            lines,
            scales: (Scale::Linear, Scale::Linear),
            below: "objects".into(),
        }),
    }
}
