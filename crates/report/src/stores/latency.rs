//! The tables of latency: how long single operations took, in closed loops and in open ones.

use super::{
    super::{
        marks::Marks,
        number::{NONE, fixed, short, whole},
        page::{Role, Section, Table},
        tables::{self, ranked},
    },
    charts, families, family, is_open,
    kept::tier,
    phases::{operations, troubles},
    unit,
};
use steelyard_results::{Cell, Contender, Histogram, Pace, Phase, Results};

/// The shares that are shown of every distribution.
pub(crate) const SHARES: [(f64, &str); 4] =
    [(0.5, "p50"), (0.9, "p90"), (0.99, "p99"), (0.999, "p99.9")];

/// What the latencies of a closed loop do not show.
pub(crate) const CLOSED: &str = "A closed loop waits for each answer before it sends the \
    next, so a stall delays few operations and hides in these figures";

/// Milliseconds at a share of a distribution; `-` where fewer than 10 samples lie beyond (rule 16).
pub(super) fn at(histogram: &Histogram, share: f64) -> String {
    histogram.quantile(share).map_or(NONE.into(), |q| milliseconds(q.value))
}

fn milliseconds(ns: f64) -> String {
    short(ns / 1e6)
}

/// Single operations of a phase that was timed as a whole, too.
pub(super) fn closed(results: &Results, phase: &Phase) -> Option<Section> {
    let cells: Vec<_> =
        ranked(results, &phase.id).into_iter().filter(|c| c.1.latency.is_some()).collect();
    if cells.is_empty() {
        return None;
    }
    let mut table = Table::new(&["<", "<durability", "samples"]);
    SHARES.iter().for_each(|(_, head)| table.add_column(head));
    table.add_column("max");
    let mut marks = Marks::default();
    for (contender, cell) in cells {
        let Some(latency) = &cell.latency else { continue };
        let stall = marks.stall(&latency.response);
        let mut row = vec![
            tables::name(contender, cell, &mut marks),
            tier(contender, &mut marks),
            whole(latency.response.count()),
        ];
        row.extend(SHARES.iter().map(|(share, _)| at(&latency.response, *share)));
        row.push(milliseconds(latency.response.max() as f64) + stall);
        table.rows.push(row);
    }
    let open = if results.phases.iter().any(is_open) { ": see the open loop below" } else { "" };
    Some(Section {
        title: format!("{}: latency", phase.name),
        about: format!("Milliseconds for one of the {}. {CLOSED}{open}.", unit(phase)),
        table,
        footnotes: marks.footnotes(),
        charts: charts::distribution(results, phase).into_iter().collect(),
        role: Role::Operation(phase.id.clone()),
        ..Section::default()
    })
}

/// Phases in which operations were sent at planned moments: a section for each family of shares, and
/// for each other one.
pub(super) fn open(results: &Results) -> Vec<Section> {
    families(results, is_open).into_iter().map(|name| section(results, name)).collect()
}

fn section(results: &Results, name: &str) -> Section {
    let phases: Vec<&Phase> =
        results.phases.iter().filter(|p| is_open(p) && family(p) == name).collect();
    let shares = phases.iter().any(|p| matches!(p.pace, Some(Pace::Share(_))));
    let rows: Vec<(&Phase, &Contender, &Cell)> = results
        .competitors
        .iter()
        .filter(|c| !c.null)
        .flat_map(|c| {
            phases.iter().filter_map(move |p| Some((*p, c, results.cell(&c.name, &p.id)?)))
        })
        .collect();
    let cells: Vec<(&Contender, &Cell)> = rows.iter().map(|r| (r.1, r.2)).collect();
    let troubles = troubles(&cells);
    let mut heads = vec!["<", "<durability", "load", "planned/s", "done/s"];
    heads.extend(SHARES.iter().map(|s| s.1));
    heads.extend(["max", "service p50", "service p99", "lag p99", "planned", "late", "skipped"]);
    heads.extend(troubles.iter().map(|t| t.0));
    let mut table = Table::new(&heads);
    let mut marks = Marks::default();
    let mut footnotes = Vec::new();
    for (phase, contender, cell) in rows {
        let mut row = vec![
            contender.name.clone(),
            tier(contender, &mut marks),
            load(phase),
            planned(phase, cell).map_or(NONE.into(), short),
        ];
        if let Some(why) = tables::refusal(cell) {
            footnotes.push(format!("{why} ({})", load(phase)));
        } else {
            row[0] = tables::name(contender, cell, &mut marks) + marks.behind(cell);
            row.extend(figures(phase, cell));
            let tally = cell.tally.unwrap_or_default();
            row.extend(troubles.iter().map(|(_, of)| whole(of(&tally))));
        }
        row.resize(heads.len(), NONE.into());
        table.rows.push(row);
    }
    let mut notes = marks.footnotes();
    notes.extend(footnotes);
    let how = match shares {
        true => "at a share of each store's own capacity",
        false => "at a rate that was fixed beforehand",
    };
    let title = match shares {
        true => format!("{name} under load"),
        false => format!("{name}: response at a planned rate"),
    };
    Section {
        title,
        about: format!(
            "Milliseconds from the moment an operation was planned to its answer, {how}; the plan \
             does not wait for answers. service: from sending. lag: from the planned moment to \
             sending. planned: operations in all. late: sent over 1 ms after their moment. skipped: never sent."
        ),
        brief: format!(
            "Latency while operations are sent at planned moments, {how}. It counts from the planned moment."
        ),
        table: table.without_empty_columns(),
        footnotes: notes,
        charts: charts::load(results, &phases),
        ..Section::default()
    }
}

/// What was planned: `75 %`, `200/s`.
fn load(phase: &Phase) -> String {
    match phase.pace {
        Some(Pace::Share(share)) => format!("{} %", fixed(100.0 * share, 0)),
        Some(Pace::Fixed(rate)) => format!("{}/s even", short(rate)),
        Some(Pace::Poisson(rate)) => format!("{}/s", short(rate)),
        Some(Pace::Free) | None => NONE.into(),
    }
}

/// Operations a second that were planned.
pub(crate) fn planned(phase: &Phase, cell: &Cell) -> Option<f64> {
    cell.offered.or(match phase.pace? {
        Pace::Fixed(rate) | Pace::Poisson(rate) => Some(rate),
        Pace::Free | Pace::Share(_) => None,
    })
}

/// Operations a second that were done.
pub(super) fn done(phase: &Phase, cell: &Cell) -> Option<f64> {
    let seconds: f64 = cell.rounds.iter().map(|r| r.ns as f64 / 1e9).sum();
    let done = match cell.tally {
        Some(tally) => tally.done as f64,
        None => operations(phase, cell) * cell.rounds.len() as f64,
    };
    (seconds > 0.0).then(|| done / seconds)
}

fn figures(phase: &Phase, cell: &Cell) -> Vec<String> {
    let mut row = vec![done(phase, cell).map_or(NONE.into(), short)];
    let Some(latency) = &cell.latency else { return row };
    row.extend(SHARES.iter().map(|(share, _)| at(&latency.response, *share)));
    row.push(milliseconds(latency.response.max() as f64));
    let of = |h: &Option<Histogram>, share| h.as_ref().map_or(NONE.into(), |h| at(h, share));
    row.extend([of(&latency.service, 0.5), of(&latency.service, 0.99), of(&latency.lag, 0.99)]);
    let tally = cell.tally.unwrap_or_default();
    row.extend([whole(tally.planned()), whole(tally.late), whole(tally.skipped)]);
    row
}
