//! Data larger than memory: rates while the server's cache holds only a share of the data.

use super::{
    super::{
        chart::{Chart, Line, Lines, Plot, Scale},
        marks::Marks,
        number::{NONE, fixed, megabytes, ranged},
        page::{Section, Table},
        pictures::tone,
        tables,
    },
    contenders, families, family,
    kept::{middle, short_tier, tier},
    latency::at,
    unit,
};
use steelyard_results::{Cell, Contender, Figure, Phase, Results, Room};

fn is_limited(phase: &Phase) -> bool {
    phase.room.is_some()
}

/// A section for each phase that was done with several sizes of the cache.
pub(super) fn sections(results: &Results) -> Vec<Section> {
    families(results, is_limited).into_iter().filter_map(|name| section(results, name)).collect()
}

/// The phases of a family with their sizes, the largest cache first.
fn sizes<'a>(results: &'a Results, name: &str) -> Vec<(&'a Phase, Room)> {
    let of = |phase: &'a Phase| Some((phase, phase.room.filter(|_| family(phase) == name)?));
    let mut sizes: Vec<_> = results.phases.iter().filter_map(of).collect();
    sizes.sort_by(|a, b| b.1.share.total_cmp(&a.1.share).then(a.1.warm.cmp(&b.1.warm)));
    sizes
}

fn section(results: &Results, name: &str) -> Option<Section> {
    let sizes = sizes(results, name);
    let (first, _) = sizes.first()?;
    let rate = format!("{}/s", unit(first));
    let mut table = Table::new(&[
        "<",
        "<durability",
        "cache",
        "<state",
        &rate,
        "p50",
        "p99",
        "max",
        "memory MB",
    ]);
    let mut marks = Marks::default();
    let mut refusals = Vec::new();
    for c in contenders(results) {
        for (phase, room) in &sizes {
            let Some(cell) = results.cell(&c.name, &phase.id) else { continue };
            let Some(summary) = &cell.summary else {
                let why = tables::refusal(cell);
                refusals.extend(why.filter(|why| !refusals.contains(why)));
                continue;
            };
            let response = cell.latency.as_ref().map(|latency| &latency.response);
            let within = |share| response.map_or(NONE.into(), |h| at(h, share));
            let memory = cell.rounds.iter().filter_map(|r| r.server).map(|s| s.memory).collect();
            table.rows.push(vec![
                tables::name(c, cell, &mut marks),
                tier(c, &mut marks),
                format!("{} %", fixed(100.0 * room.share, 0)),
                state(*room).into(),
                ranged(&summary.ns.inverse(1e9)),
                within(0.5),
                within(0.99),
                response.map_or(NONE.into(), |h| fixed(h.max() as f64 / 1e6, 2)),
                middle(memory).map_or(NONE.into(), megabytes),
            ]);
        }
    }
    let mut footnotes = marks.footnotes();
    footnotes.extend(refusals);
    (!table.rows.is_empty() || !footnotes.is_empty()).then(|| Section {
        title: format!("{name}: data larger than the cache"),
        about: "cache: the size of the store's own cache, as a share of what the data take on disk. \
                cold: it was just started or opened, and its files dropped from the system's page \
                cache. warm: after the same operations once before. The system's page cache is not \
                limited (by no control group either), so a store that reads through it has more memory \
                than its own cache; the settings below say how large that was. Milliseconds for one."
            .into(),
        brief: "Rates while the store's own cache holds only a share of the data. cold: caches are empty; \
                warm: the same operations ran once before. Higher is faster."
            .into(),
        table: table.without_empty_columns(),
        footnotes,
        charts: charts(results, name, &sizes),
        ..Section::default()
    })
}

fn state(room: Room) -> &'static str {
    if room.warm { "warm" } else { "cold" }
}

/// A chart for the cold caches and one for the warm ones.
fn charts(results: &Results, name: &str, sizes: &[(&Phase, Room)]) -> Vec<Chart> {
    [false, true].into_iter().filter_map(|warm| chart(results, name, sizes, warm)).collect()
}

fn chart(results: &Results, name: &str, sizes: &[(&Phase, Room)], warm: bool) -> Option<Chart> {
    let rate = |cell: &Cell| Some(cell.summary.as_ref()?.ns.inverse(1e9));
    let line = |c: &Contender| {
        let point = |(phase, room): &(&Phase, Room)| {
            let rate: Figure = rate(results.cell(&c.name, &phase.id)?)?;
            (room.warm == warm).then_some((100.0 * room.share, rate))
        };
        let mut points: Vec<_> = sizes.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let name = format!("{} {}", c.name, short_tier(c)).trim_end().to_owned();
        let tone = tone(results, &c.name);
        (!points.is_empty()).then_some(Line { name, tone, points, dotted: true })
    };
    let lines: Vec<Line> = contenders(results).filter_map(line).collect();
    let (unit, state) = (unit(sizes.first()?.0), if warm { "warm" } else { "cold" });
    (!lines.is_empty()).then(|| Chart {
        title: format!("{name}, {state}: rate by the size of the cache"),
        unit: format!("{unit}/s"),
        plot: Plot::Lines(Lines {
            lines,
            scales: (Scale::Log, Scale::Log),
            below: "cache in % of the data".into(),
        }),
    })
}
