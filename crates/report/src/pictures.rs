//! The charts that pages of several benches have in common, made from results.

use super::{
    chart::{Bar, Bars, Chart, Line, Lines, Plot, Scale, Scatter, Spot, Trail, tone::Tone},
    names, summary,
    tables::ranked,
};
use steelyard_results::{Contender, Figure, Phase, Results};

/// The looks of a competitor, the same in all charts of a page.
pub(super) fn tone(results: &Results, name: &str) -> Tone {
    let at = results.competitors.iter().filter(|c| !c.null).position(|c| c.name == name);
    Tone(at.unwrap_or(0))
}

/// Operations a second in a phase, a bar for each competitor; `None` where nobody has any.
pub(super) fn pass(results: &Results, phase: &Phase) -> Option<Chart> {
    let standings = summary::standings(results, &phase.id);
    let bars: Vec<Bar> = ranked(results, &phase.id)
        .into_iter()
        .filter_map(|(c, cell)| {
            Some(Bar {
                name: c.name.clone(),
                standing: standings.get(&c.name).copied().unwrap_or_default(),
                value: summary::rate(results, c, cell)?,
                mark: if cell.settled { "" } else { "*" }.into(),
                ..Bar::default()
            })
        })
        .collect();
    let unit = if phase.unit.is_empty() { "records" } else { &phase.unit };
    (!bars.is_empty()).then(|| Chart {
        title: phase.name.clone(),
        unit: format!("{}: longer is faster", summary::rate_unit(results, unit)),
        plot: Plot::Bars(Bars(bars)),
    })
}

/// What is read from files, or from memory where no files were measured, or loaded as objects; and what
/// is written.
const WAYS: [(&str, [&str; 3]); 2] =
    [("reading", ["read", "decode", "load"]), ("writing", ["write", "encode", "create+dump"])];

/// Size against speed, a chart for reading and one for writing: a point for each format and packing.
pub(super) fn trade_offs(results: &Results) -> Vec<Chart> {
    WAYS.iter().filter_map(|(doing, names)| trade_off(results, doing, names)).collect()
}

fn trade_off(results: &Results, doing: &str, names: &[&str]) -> Option<Chart> {
    let largest = results.phases.iter().filter_map(|p| p.size).max();
    let phase = |name: &str| {
        results.phases.iter().find(|phase| phase.name == name && phase.size == largest)
    };
    let way = names.iter().find(|name| phase(name).is_some())?;
    let mut wraps: Vec<&String> = results.competitors.iter().flat_map(|c| c.sizes.keys()).collect();
    wraps.sort();
    wraps.dedup();
    let packed = |wrap: &str| match wrap {
        "" => phase(way),
        wrap => phase(&format!("{way}-{wrap}")).or_else(|| phase(&format!("{way}+{wrap}"))),
    };
    let kinds: Vec<(&String, &Phase)> =
        wraps.into_iter().filter_map(|wrap| Some((wrap, packed(wrap)?))).collect();
    let trail = |c: &Contender| {
        let spot = |(kind, (wrap, phase)): (usize, &(&String, &Phase))| {
            let size = *c.sizes.get(*wrap)? as f64 / 1e6;
            let cell = results.cell(&c.name, &phase.id)?;
            let rate = summary::rate(results, c, cell)?.middle;
            (size > 0.0 && rate.is_finite() && rate > 0.0).then_some(Spot { size, rate, kind })
        };
        let spots: Vec<Spot> = kinds.iter().enumerate().filter_map(spot).collect();
        (!spots.is_empty()).then(|| Trail { name: c.name.clone(), spots })
    };
    let trails: Vec<Trail> =
        results.competitors.iter().filter(|c| !c.null).filter_map(trail).collect();
    let unit = if results.bench == "objects" { "objects" } else { "records" };
    let kind = |(wrap, _): &(&String, &Phase)| match wrap.as_str() {
        "" => "plain".to_owned(),
        wrap => format!("in {}", names::format(wrap)),
    };
    (trails.len() > 1).then(|| Chart {
        title: format!("Size against {doing} speed"),
        unit: format!("{}: above on the left is better", summary::rate_unit(results, unit)),
        plot: Plot::Scatter(Scatter {
            trails,
            kinds: kinds.iter().map(kind).collect(),
            below: "MB for all, to the left is smaller".into(),
        }),
    })
}

/// Objects a second by how many there are, a chart for each series.
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
            Some((size, summary.ns.inverse(1e9)))
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
        unit: format!("{}: higher is faster", summary::rate_unit(results, "objects")),
        plot: Plot::Lines(Lines {
            lines,
            scales: (Scale::Log, Scale::Linear),
            below: "objects in all".into(),
        }),
    }
}
