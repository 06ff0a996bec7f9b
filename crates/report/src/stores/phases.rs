//! The tables of capacity: each phase with the columns of the originals, and all phases at a glance.

use super::{
    super::{
        lead::{be_faster, on_processor_time},
        marks::Marks,
        number::{NONE, beside, ranged, short, whole},
        page::{Listing, Role, Section, Table},
        tables::{self, ranked},
        words::one_of,
    },
    charts, contenders, is_asked_for,
    kept::tier,
    unit,
};
use steelyard_results::{Cell, Contender, Phase, Results, Statement, Summary, Tally};

/// Rates of every store in every phase; `None` where a single phase says it all.
pub(super) fn overview(results: &Results) -> Option<Section> {
    let phases: Vec<&Phase> = results.phases.iter().filter(|p| is_asked_for(p)).collect();
    let heads: Vec<String> = phases.iter().map(|p| format!("{} ({}/s)", p.name, unit(p))).collect();
    let mut all = vec!["<", "<durability"];
    all.extend(heads.iter().map(String::as_str));
    let mut table = Table::new(&all);
    let mut marks = Marks::default();
    for c in contenders(results).filter(|c| c.refused.is_none()) {
        let mut row =
            vec![format!("{}{}", c.name, marks.lossy(c.proof.as_ref())), tier(c, &mut marks)];
        for phase in &phases {
            let summary = results.cell(&c.name, &phase.id).and_then(|cell| cell.summary.as_ref());
            row.push(summary.map_or(NONE.into(), |s| {
                let first = if is_first(s) { " 1st" } else { "" };
                format!("{}{first}", short(1e9 / s.ns.middle))
            }));
        }
        table.rows.push(row);
    }
    let first =
        || format!("1st: no other of the same durability was shown to {}", be_faster(results));
    let mut footnotes: Vec<String> = table.shows(" 1st").then(first).into_iter().collect();
    let elapsed = if on_processor_time(results) { " Rates are of elapsed time." } else { "" };
    footnotes.extend(marks.footnotes());
    (phases.len() > 1 && !table.rows.is_empty()).then(|| Section {
        title: "At a glance".into(),
        about: format!(
            "Operations a second, one after another as fast as they are answered.{elapsed}"
        ),
        table,
        footnotes,
        role: Role::Glance,
        ..Section::default()
    })
}

/// A phase as a table: user, system, total, real, as the originals had it, and what they left out.
pub(super) fn phase(results: &Results, phase: &Phase) -> Section {
    let base = tables::share_of_baseline(results);
    let rate = format!("{}/s", unit(phase));
    let mut table = Table::new(&[
        "<",
        "rank",
        "<durability",
        "user",
        "system",
        "total",
        "real",
        "server CPU",
        &rate,
        &base,
    ]);
    let cells = ranked(results, &phase.id);
    let troubles = troubles(&cells);
    troubles.iter().for_each(|(head, _)| table.add_column(head));
    let mut marks = Marks::default();
    let mut refusals = Vec::new();
    for (contender, cell) in cells {
        let mut row = vec![contender.name.clone(), NONE.into(), tier(contender, &mut marks)];
        match &cell.summary {
            Some(s) => {
                let seconds = operations(phase, cell) / 1e9;
                let real = s.ns.scaled(seconds);
                let part = |ns: f64| beside(ns * seconds, real.middle);
                row[0] = tables::name(contender, cell, &mut marks);
                row[1] = tables::rank(s);
                row.extend([
                    part(s.user_ns),
                    part(s.system_ns),
                    part(s.user_ns + s.system_ns),
                    ranged(&real),
                    server(cell).map_or(NONE.into(), part),
                    short(1e9 / s.ns.middle),
                    versus(results, contender, cell, &mut marks),
                ]);
                let tally = cell.tally.unwrap_or_default();
                row.extend(troubles.iter().map(|(_, of)| whole(of(&tally))));
            }
            None => refusals.extend(tables::refusal(cell)),
        }
        row.resize(table.columns.len(), NONE.into());
        table.rows.push(row);
    }
    let mut footnotes = marks.footnotes();
    footnotes.extend(refusals);
    Section {
        title: phase.name.clone(),
        about: format!("{} Seconds for {}.", phase.about, counted(phase)),
        brief: phase.about.clone(),
        table: table.without_empty_columns(),
        footnotes,
        charts: charts::rates(results, phase).into_iter().collect(),
        listings: listings(results, phase),
        role: Role::Operation(phase.id.clone()),
    }
}

/// The statements of a phase, in the order of its table.
pub(super) fn listings(results: &Results, phase: &Phase) -> Vec<Listing> {
    let of_cell = |(contender, cell): (&Contender, &Cell)| -> Vec<Listing> {
        let listing = |statement: &Statement| Listing {
            head: contender.name.clone(),
            statement: statement.text.clone(),
            plan: statement.plan.clone(),
        };
        cell.statements.iter().map(listing).collect()
    };
    ranked(results, &phase.id).into_iter().flat_map(of_cell).collect()
}

/// True where no other store of the same durability was shown to be faster.
fn is_first(summary: &Summary) -> bool {
    summary.group == 1
}

/// Operations in one timed window.
pub(super) fn operations(phase: &Phase, cell: &Cell) -> f64 {
    (if phase.units > 0 { phase.units } else { cell.units }) as f64
}

/// Nanoseconds of processor time that the server used for each operation; `None` where it is not
/// ours to look at.
pub(crate) fn server(cell: &Cell) -> Option<f64> {
    let seen = cell.rounds.iter().filter_map(|round| Some((round, round.server?)));
    let (used, operations) = seen.fold((0, 0), |(used, operations), (round, server)| {
        (used + server.user_ns + server.system_ns, operations + cell.units_of(round))
    });
    (operations > 0).then(|| used as f64 / operations as f64)
}

/// Percent of the baseline's time, marked where the two promise different things.
/// Percent of the baseline's time, and what follows.
pub(super) fn versus(
    results: &Results,
    contender: &Contender,
    cell: &Cell,
    marks: &mut Marks,
) -> String {
    let Some(summary) = &cell.summary else { return NONE.into() };
    let mut text = tables::versus(results, contender, summary, marks);
    let base = results.competitor(&results.baseline).filter(|base| base.store.is_some());
    if summary.versus.is_some() && base.is_some_and(|base| !base.ranks_with(contender)) {
        text.push_str(marks.unlike(&results.baseline));
    }
    text
}

/// `200,000 records`, `1 query`.
fn counted(phase: &Phase) -> String {
    let unit = unit(phase);
    match phase.units {
        // Of a phase that lasted so many seconds.
        0 => format!("all {unit} of a window"),
        1 => format!("1 {}", one_of(unit)),
        n => format!("{} {unit}", whole(n)),
    }
}

/// A column of what went wrong.
type Trouble = (&'static str, fn(&Tally) -> u64);

/// The columns of what went wrong, where anything did (rule 2).
pub(super) fn troubles(cells: &[(&Contender, &Cell)]) -> Vec<Trouble> {
    let all: [Trouble; 3] =
        [("failed", |t| t.failed), ("timed out", |t| t.timed_out), ("missed", |t| t.missed)];
    let met = |of: fn(&Tally) -> u64| cells.iter().any(|c| c.1.tally.is_some_and(|t| of(&t) > 0));
    all.into_iter().filter(|(_, of)| met(*of)).collect()
}
