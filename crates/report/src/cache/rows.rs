//! The tables of single rows: what a call takes, of what, and how long single ones took.

use super::super::{
    marks::Marks,
    number::{NONE, beside, fixed, ranged, short, whole},
    page::{Role, Section, Table},
    stores::rate_bars,
    tables::{self, SHARES, at, ranked},
};
use steelyard_results::{Cell, Histogram, Phase, Results};

fn most(histogram: Option<&Histogram>) -> String {
    let counted = histogram.filter(|h| h.count() > 0);
    counted.map_or(NONE.into(), |h| short(h.max() as f64 / 1e3))
}

/// Calls as fast as they are answered.
pub(super) fn closed(results: &Results, phase: &Phase) -> Section {
    let base = tables::share_of_baseline(results);
    let mut table = Table::new(&["<", "rank", "µs", "user", "system", "calls/s", &base]);
    table.add_column("system calls");
    SHARES.iter().for_each(|(_, head)| table.add_column(head));
    table.add_column("max");
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
                    beside(s.user_ns / 1e3, s.ns.middle / 1e3),
                    beside(s.system_ns / 1e3, s.ns.middle / 1e3),
                    short(1e9 / s.ns.middle),
                    tables::versus(results, contender, s, &mut marks),
                    cell.system_calls.map_or(NONE.into(), calls),
                ]);
                row.extend(SHARES.iter().map(|(share, _)| at(response, *share)));
                let stall = response.map_or("", |response| marks.stall(response));
                row.push(most(response) + stall);
            }
            None => refusals.extend(tables::refusal(cell)),
        }
        row.resize(table.columns.len(), NONE.into());
        table.rows.push(row);
    }
    let mut footnotes = marks.footnotes();
    footnotes.extend(refusals);
    Section {
        title: title(phase),
        about: match results.cells.iter().any(|c| c.phase == phase.id && c.latency.is_some()) {
            true => format!("{} {}.", phase.about, super::super::stores::CLOSED),
            false => phase.about.clone(),
        },
        brief: phase.about.clone(),
        table: table.without_empty_columns(),
        footnotes,
        charts: rate_bars(results, phase, title(phase), "calls", |_| String::new())
            .into_iter()
            .collect(),
        role: Role::Operation(phase.id.clone()),
        ..Section::default()
    }
}

/// System calls, to two decimals: of a thousandth no more is known than that it is hardly any.
fn calls(n: f64) -> String {
    if n < 0.1 { short(n) } else { fixed(n, 2) }
}

fn title(phase: &Phase) -> String {
    match phase.concurrency {
        0 | 1 => phase.name.clone(),
        n => format!("{}, {n} connections", phase.name),
    }
}

/// Calls at planned moments.
pub(super) fn open(results: &Results, phase: &Phase) -> Section {
    let mut table = Table::new(&["<", "calls/s"]);
    SHARES.iter().for_each(|(_, head)| table.add_column(head));
    for head in ["max", "service p50", "service p99", "lag p99", "planned", "late"] {
        table.add_column(head);
    }
    let (mut marks, mut footnotes) = (Marks::default(), Vec::new());
    for c in super::contenders(results) {
        let Some(cell) = results.cell(&c.name, &phase.id) else { continue };
        let mut row = vec![c.name.clone()];
        match (&cell.summary, &cell.latency) {
            (Some(s), Some(latency)) => {
                row[0] = tables::name(c, cell, &mut marks) + marks.behind(cell);
                row.push(short(1e9 / s.ns.middle));
                row.extend(SHARES.iter().map(|(share, _)| at(Some(&latency.response), *share)));
                row.push(most(Some(&latency.response)));
                let (service, lag) = (latency.service.as_ref(), latency.lag.as_ref());
                row.extend([at(service, 0.5), at(service, 0.99), at(lag, 0.99)]);
                let tally = cell.tally.unwrap_or_default();
                row.extend([whole(tally.planned()), whole(tally.late)]);
            }
            _ => footnotes.extend(tables::refusal(cell)),
        }
        row.resize(table.columns.len(), NONE.into());
        table.rows.push(row);
    }
    let mut notes = marks.footnotes();
    notes.extend(footnotes);
    let rate = super::super::stores::planned(phase, &Cell::default());
    Section {
        title: format!("{}: response at a planned rate", title(phase)),
        about: format!(
            "{} Microseconds from the moment a call was planned to its answer, at {} calls a second; \
             the plan does not wait for answers. service: from sending. lag: from the planned moment \
             to sending. planned: calls in all. late: sent over 1 ms after their moment.",
            phase.about,
            rate.map_or(NONE.into(), short)
        ),
        brief: format!(
            "Latency while {} calls a second are sent at planned moments. It counts from the planned moment.",
            rate.map_or(NONE.into(), short)
        ),
        table,
        footnotes: notes,
        charts: super::super::stores::distribution(results, phase).into_iter().collect(),
        ..Section::default()
    }
}
