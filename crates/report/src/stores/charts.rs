//! The charts of stores: rates, distributions of latency, response under load, disk and memory.

use super::{
    super::{
        chart::{Bar, Bars, Chart, Line, Lines, Plot, Scale},
        number::{NONE, duration, fixed},
        pictures::tone,
        summary,
        tables::ranked,
    },
    contenders, family,
    kept::{Space, short_tier},
    latency::done,
    unit,
};
use steelyard_results::{Cell, Contender, Figure, Histogram, Pace, Phase, Results};

/// The time in which half of the operations were answered, and 99 of 100; a dash for what too few
/// samples tell (rule 16).
pub(crate) fn latency(cell: &Cell) -> Option<[String; 2]> {
    let response = &cell.latency.as_ref()?.response;
    let within = |share| response.quantile(share).map_or(NONE.into(), |q| duration(q.value));
    Some([within(0.5), within(0.99)])
}

/// Operations a second, a bar for each store.
pub(super) fn rates(results: &Results, phase: &Phase) -> Option<Chart> {
    rate_bars(results, phase, phase.name.clone(), unit(phase), short_tier)
}

/// How much is done a second, a bar for each competitor of a phase, with a note of it.
pub(crate) fn rate_bars(
    results: &Results,
    phase: &Phase,
    title: String,
    unit: &str,
    note: fn(&Contender) -> String,
) -> Option<Chart> {
    let standings = summary::standings(results, &phase.id);
    let bars: Vec<Bar> = ranked(results, &phase.id)
        .into_iter()
        .filter_map(|(c, cell)| {
            Some(Bar {
                name: c.name.clone(),
                note: note(c),
                standing: standings.get(&c.name).copied().unwrap_or_default(),
                value: summary::rate(results, c, cell)?,
                mark: if cell.settled { "" } else { "*" }.into(),
                latency: latency(cell),
                ..Bar::default()
            })
        })
        .collect();
    (!bars.is_empty()).then(|| Chart {
        title,
        unit: format!("{}: longer is faster", summary::rate_unit(results, unit)),
        plot: Plot::Bars(Bars(bars)),
    })
}

/// How long single operations of a phase took, from the quick ones to the rare slow ones.
pub(crate) fn distribution(results: &Results, phase: &Phase) -> Option<Chart> {
    let lines: Vec<Line> = contenders(results)
        .filter_map(|c| {
            let latency = results.cell(&c.name, &phase.id)?.latency.as_ref()?;
            let points = shares(&latency.response);
            let name = format!("{} {}", c.name, short_tier(c)).trim_end().to_owned();
            let line = Line { name, tone: tone(results, &c.name), points, dotted: false };
            (!line.points.is_empty()).then_some(line)
        })
        .collect();
    (!lines.is_empty()).then(|| Chart {
        title: format!("{}: latency", phase.name),
        unit: "ms".into(),
        plot: Plot::Lines(Lines {
            lines,
            scales: (Scale::Tail, Scale::Log),
            below: "share of operations answered within".into(),
        }),
    })
}

/// Milliseconds at shares that come closer to all of them, as far as samples go (rule 16).
fn shares(histogram: &Histogram) -> Vec<(f64, Figure)> {
    // Eight steps for each nine.
    (1..=56)
        .map(|step| 1.0 - 10f64.powf(-f64::from(step) / 8.0))
        .map_while(|share| {
            let q = histogram.quantile(share.max(0.25))?;
            let ends = (Some(q.low / 1e6), Some(q.high / 1e6));
            Some((share, Figure { middle: q.value / 1e6, low: ends.0, high: ends.1 }))
        })
        .collect()
}

/// Response time by throughput, where shares of the capacity were tried, and distributions.
pub(super) fn load(results: &Results, phases: &[&Phase]) -> Vec<Chart> {
    let shared: Vec<&Phase> =
        phases.iter().copied().filter(|p| matches!(p.pace, Some(Pace::Share(_)))).collect();
    let mut charts = Vec::new();
    for (share, name) in [(0.5, "half"), (0.99, "99 of 100")] {
        charts.extend(by_throughput(results, &shared, share, name));
    }
    match shared.is_empty() {
        true => charts.extend(phases.iter().filter_map(|p| distribution(results, p))),
        // One of them is enough to see the shape.
        false => charts.extend(usual(&shared).and_then(|p| distribution(results, p))),
    }
    charts
}

/// The phase at about three quarters of the capacity.
fn usual<'a>(phases: &[&'a Phase]) -> Option<&'a Phase> {
    let away = |p: &Phase| match p.pace {
        Some(Pace::Share(share)) => (share - 0.75).abs(),
        _ => f64::INFINITY,
    };
    phases.iter().copied().min_by(|a, b| away(a).total_cmp(&away(b)))
}

fn by_throughput(results: &Results, phases: &[&Phase], share: f64, name: &str) -> Option<Chart> {
    let lines: Vec<Line> = contenders(results)
        .filter_map(|c| {
            let point = |p: &&Phase| {
                let cell = results.cell(&c.name, &p.id)?;
                let q = cell.latency.as_ref()?.response.quantile(share)?;
                let figure = Figure {
                    middle: q.value / 1e6,
                    low: Some(q.low / 1e6),
                    high: Some(q.high / 1e6),
                };
                Some((done(p, cell)?, figure))
            };
            let mut points: Vec<(f64, Figure)> = phases.iter().filter_map(point).collect();
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
            let name = format!("{} {}", c.name, short_tier(c)).trim_end().to_owned();
            let tone = tone(results, &c.name);
            (!points.is_empty()).then_some(Line { name, tone, points, dotted: true })
        })
        .collect();
    let loads: Vec<String> = phases
        .iter()
        .filter_map(|p| match p.pace {
            Some(Pace::Share(share)) => Some(fixed(100.0 * share, 0)),
            _ => None,
        })
        .collect();
    let first = phases.first()?;
    (!lines.is_empty()).then(|| Chart {
        title: format!("{} under load: {name} are answered within", family(first)),
        unit: "ms".into(),
        plot: Plot::Lines(Lines {
            lines,
            scales: (Scale::Log, Scale::Log),
            below: format!("{}/s, at {} % of capacity", unit(first), loads.join(", ")),
        }),
    })
}

/// Disk beside the records themselves, and memory.
pub(super) fn space(results: &Results) -> Vec<Chart> {
    let megabytes = |n: u64| Figure { middle: n as f64 / 1e6, ..Figure::default() };
    let mut disk: Vec<Bar> = results
        .dataset
        .sizes
        .iter()
        .map(|(wrap, size)| Bar {
            name: if wrap.is_empty() { "JSON lines".into() } else { format!("in {wrap}") },
            value: megabytes(*size),
            ..Bar::default()
        })
        .collect();
    let mut memory = Vec::new();
    let known = disk.len();
    for c in contenders(results) {
        let space = Space::of(results, c);
        let bar = |value: u64, more: Option<u64>| Bar {
            name: c.name.clone(),
            note: short_tier(c),
            value: megabytes(value),
            more: more.filter(|m| *m > 0).map(|m| m as f64 / 1e6),
            ..Bar::default()
        };
        disk.extend(space.data.map(|data| bar(data, space.logs)));
        memory.extend(space.memory.map(|memory| bar(memory, None)));
    }
    let least = |bars: &mut [Bar]| bars.sort_by(|a, b| a.value.middle.total_cmp(&b.value.middle));
    disk[known..].sort_by(|a, b| {
        let all = |bar: &Bar| bar.value.middle + bar.more.unwrap_or(0.0);
        all(a).total_cmp(&all(b))
    });
    least(&mut memory);
    let chart = |title: &str, unit: &str, bars: Vec<Bar>| Chart {
        title: title.into(),
        unit: unit.into(),
        plot: Plot::Bars(Bars(bars)),
    };
    let mut charts = Vec::new();
    if disk.len() > known {
        charts.push(chart("Disk", "MB: less is better; paler: log files", disk));
    }
    if !memory.is_empty() {
        charts.push(chart("Memory of servers", "MB at most: less is better", memory));
    }
    charts
}
