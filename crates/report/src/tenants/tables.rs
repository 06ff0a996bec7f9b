//! The tables: all numbers of tenants of a store, what the gateway adds, what one more tenant takes, and each operation.

use super::{
    super::{
        chart::{Chart, Line, Lines, Plot, Ratio, Ratios, Scale, tone::Tone},
        lead::on_processor_time,
        marks::Marks,
        number::{NONE, fixed, megabytes, ranged, short, whole},
        page::{Role, Section, Table},
        stores::rate_bars,
        tables::{self, SHARES, at, ranked},
    },
    arms,
};
use steelyard_results::{
    Figure, Phase, Results,
    tenants::{Held, SHARED, Tenants},
};

/// A store with all its numbers of tenants.
pub(super) fn overview(results: &Results, tenants: &Tenants, store: &str) -> Section {
    // On a noisy machine ratios are of another time than the figures beside them.
    let beside = if on_processor_time(results) { "CPU of one table" } else { "of one table" };
    let mut table = Table::new(&[
        "tenants",
        "<",
        "query µs",
        beside,
        "insert µs",
        beside,
        "first query ms",
        "memory MB",
        "disk MB",
        "open files",
        "restart ms",
        "made in s",
    ]);
    let (mut marks, mut refusals) = (Marks::default(), Vec::new());
    for size in tenants.sizes(store) {
        for arm in arms(tenants, store) {
            let Some(held) = tenants.held(store, arm, size) else { continue };
            if let Some(why) = &held.refused {
                refusals.push(format!("- {arm}, {} tenants: {why}", whole(size)));
            }
            let cell = |kind: &str| {
                let phase = results.tenants_phase(kind, store, size)?;
                results.cell(arm, phase).filter(|cell| cell.summary.is_some())
            };
            let time = |kind: &str, per: f64| {
                let summary = cell(kind).and_then(|cell| cell.summary.as_ref());
                summary.map_or(NONE.into(), |s| ranged(&s.ns.scaled(1.0 / per)))
            };
            let mut ratio =
                |kind: &str| match results.tenants_ratio((kind, store, size), arm, SHARED) {
                    Some(v) => format!("{}{}", ranged(&v.shown()), marks.verdict(&v)),
                    None => NONE.into(),
                };
            let (query, insert) = (ratio("query"), ratio("insert"));
            let name = match cell("query") {
                Some(cell) => format!("{arm}{}", marks.of(cell)),
                None => arm.to_owned(),
            };
            let show = |value: Option<f64>, per: f64| value.map_or(NONE.into(), |v| short(v / per));
            table.rows.push(vec![
                whole(size),
                name,
                time("query", 1e3),
                query,
                time("insert", 1e3),
                insert,
                time("touch", 1e6),
                show(held.memory(), 1e6),
                held.disk.map_or(NONE.into(), megabytes),
                held.files().map_or(NONE.into(), |n| whole(n as u64)),
                show(held.restart_ns(), 1e6),
                show(Some(held.making_ns as f64).filter(|ns| *ns > 0.0), 1e9),
            ]);
        }
    }
    let mut footnotes = marks.footnotes();
    footnotes.extend(refusals);
    Section {
        title: format!("{store}: one table, and a database each"),
        about: format!(
            "{} records of each tenant; {} answer a query on average. of one table: the time over that of one table \
             with as many tenants, within the same rounds. first query: of a tenant, since the start of the server. \
             memory, files: of all processes of the server and the gateway, when each tenant was asked once. disk: \
             after a clean end, less what the empty server had.",
            whole(tenants.documents),
            fixed(tenants.answer, 1)
        ),
        brief: "Time, memory, disk and open files by the number of tenants.".into(),
        table: table.without_empty_columns(),
        footnotes,
        charts: charts(results, tenants, store),
        ..Section::default()
    }
}

fn charts(results: &Results, tenants: &Tenants, store: &str) -> Vec<Chart> {
    let sizes = tenants.sizes(store);
    let line = |n: usize, arm: &str, of: &dyn Fn(u64) -> Option<Figure>| Line {
        name: arm.to_owned(),
        tone: Tone(n),
        points: sizes.iter().filter_map(|size| Some((*size as f64, of(*size)?))).collect(),
        dotted: true,
    };
    let lines = |title: &str, unit: &str, of: &dyn Fn(&str, u64) -> Option<Figure>| {
        let arms = arms(tenants, store);
        let lines: Vec<Line> = (arms.iter().enumerate())
            .map(|(n, arm)| line(n, arm, &|size| of(arm, size)))
            .filter(|line| line.points.len() > 1)
            .collect();
        (!lines.is_empty()).then(|| Chart {
            title: format!("{store}: {title}"),
            unit: unit.into(),
            plot: Plot::Lines(Lines {
                lines,
                scales: (Scale::Log, Scale::Log),
                below: "tenants".into(),
            }),
        })
    };
    let times = |kind: &str, arm: &str, size: u64| {
        let phase = results.tenants_phase(kind, store, size)?;
        Some(results.cell(arm, phase)?.summary.as_ref()?.ns.scaled(1e-3))
    };
    let plain = |value: Option<f64>| {
        value.filter(|v| *v > 0.0).map(|middle| Figure { middle, ..Figure::default() })
    };
    let held = |arm: &str, size: u64, of: fn(&Held) -> Option<f64>| {
        plain(tenants.held(store, arm, size).and_then(of))
    };
    let ratios: Vec<Ratio> = (sizes.iter())
        .flat_map(|size| arms(tenants, store).into_iter().map(move |arm| (*size, arm)))
        .filter_map(|(size, arm)| {
            let versus = results.tenants_ratio(("query", store, size), arm, SHARED)?;
            let name = format!("{arm}, {}", whole(size));
            Some(Ratio { name, ratio: versus.shown(), verdict: versus.verdict })
        })
        .collect();
    let ratios = (!ratios.is_empty()).then(|| Chart {
        title: format!("{store}: queries beside one table"),
        unit: "time over that of one table: right of 1 is slower".into(),
        plot: Plot::Ratios(Ratios(ratios)),
    });
    [
        ratios,
        lines("a query", "µs: lower is faster", &|arm, size| times("query", arm, size)),
        lines("an insert", "µs: lower is faster", &|arm, size| times("insert", arm, size)),
        lines("memory", "MB", &|arm, size| {
            held(arm, size, |held| held.memory().map(|bytes| bytes / 1e6))
        }),
        lines("disk", "MB", &|arm, size| {
            held(arm, size, |held| held.disk.map(|bytes| bytes as f64 / 1e6))
        }),
        lines("open files", "files and sockets", &|arm, size| held(arm, size, Held::files)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// What the gateway adds.
pub(super) fn gateway(results: &Results) -> Option<Section> {
    let ratio = if on_processor_time(results) { "CPU ratio" } else { "ratio" };
    let mut table = Table::new(&["<", "with it, µs", "without, µs", ratio, "adds µs"]);
    let mut marks = Marks::default();
    for contrast in &results.contrasts {
        let Some(versus) = &contrast.versus else { continue };
        let time = |cell: &(String, String)| {
            Some(results.cell(&cell.0, &cell.1)?.summary.as_ref()?.ns.scaled(1e-3))
        };
        let (Some(with), Some(without)) = (time(&contrast.of), time(&contrast.to)) else {
            continue;
        };
        table.rows.push(vec![
            contrast.about.replace(" through the gateway", ""),
            ranged(&with),
            ranged(&without),
            format!("{}{}", ranged(&versus.shown()), marks.verdict(versus)),
            short(with.middle - without.middle),
        ]);
    }
    (!table.rows.is_empty()).then(|| Section {
        title: "What the gateway costs".into(),
        about: "The time of a database each behind the gateway over that of the same databases opened by the client, \
                within the same rounds. The gateway checks the key, looks the tenant up for each lease, and has \
                revisions; it answers in JSON."
            .into(),
        table,
        footnotes: marks.footnotes(),
        ..Section::default()
    })
}

/// What one more tenant takes.
pub(super) fn each(tenants: &Tenants) -> Option<Section> {
    let mut table = Table::new(&["<", "<", "memory kB", "disk kB", "open files", "restart ms"]);
    for store in tenants.stores() {
        for arm in arms(tenants, store) {
            let of = |of: fn(&Held) -> Option<f64>, per: f64| {
                tenants.each(store, arm, of).map_or(NONE.into(), |v| short(v / per))
            };
            let row = [
                of(Held::memory, 1e3),
                of(|held| held.disk.map(|bytes| bytes as f64), 1e3),
                of(Held::files, 1.0),
                of(Held::restart_ns, 1e6),
            ];
            if row.iter().any(|text| text != NONE) {
                table.rows.push([vec![store.to_owned(), arm.to_owned()], row.into()].concat());
            }
        }
    }
    (!table.rows.is_empty()).then(|| Section {
        title: "What one more tenant takes".into(),
        about: format!(
            "The difference between the most and the fewest tenants with which all databases stay open (or, without \
             such, of all), over their number; of disk that is mostly the {} records. At most {} were open at once: \
             beyond, memory and files hardly grow.",
            whole(tenants.documents),
            whole(tenants.open)
        ),
        table: table.without_empty_columns(),
        ..Section::default()
    })
}

/// An operation with so many tenants.
pub(super) fn operation(results: &Results, phase: &Phase) -> Option<Section> {
    let own = phase.tenants.as_ref()?;
    let mut table = Table::new(&["<", "rank", "µs", "user", "system"]);
    SHARES.iter().for_each(|(_, head)| table.add_column(head));
    table.add_column("max");
    table.add_column("n");
    let (mut marks, mut refusals) = (Marks::default(), Vec::new());
    for (contender, cell) in ranked(results, &phase.id) {
        let mut row = vec![contender.name.clone()];
        match &cell.summary {
            Some(s) => {
                row[0] = tables::name(contender, cell, &mut marks);
                let response = cell.latency.as_ref().map(|l| &l.response);
                row.extend([
                    tables::rank(s),
                    ranged(&s.ns.scaled(1e-3)),
                    short(s.user_ns / 1e3),
                    short(s.system_ns / 1e3),
                ]);
                row.extend(SHARES.iter().map(|(share, _)| at(response, *share)));
                let most = response.filter(|h| h.count() > 0);
                row.push(most.map_or(NONE.into(), |h| short(h.max() as f64 / 1e3)));
                row.push(whole(cell.tally.map_or(0, |tally| tally.done)));
            }
            None => refusals.extend(tables::refusal(cell)),
        }
        row.resize(table.columns.len(), NONE.into());
        table.rows.push(row);
    }
    let mut footnotes = marks.footnotes();
    footnotes.extend(refusals);
    Some(Section {
        title: format!("{}, {}", phase.name, super::counted(own.tenants, "tenant")),
        about: format!(
            "{} {}. user, system: processor time of client, server and gateway. n: operations in all rounds.",
            phase.about,
            super::super::stores::CLOSED
        ),
        brief: phase.about.clone(),
        table: table.without_empty_columns(),
        footnotes,
        charts: rate_bars(results, phase, phase.name.clone(), &phase.unit, |_| String::new())
            .into_iter()
            .collect(),
        role: Role::Operation(phase.id.clone()),
        ..Section::default()
    })
}
