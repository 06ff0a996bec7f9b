//! The tables that pages of several benches have in common.

use super::{
    marks::Marks,
    number::{NONE, bytes, fixed, megabytes, percent, ranged, short, whole},
    page::{Section, Table},
};
use crate::bench::results::{Cell, Contender, Phase, Results};

/// The cells of a phase, the fastest first, then those without figures; never the null competitor.
pub(super) fn ranked<'a>(results: &'a Results, phase: &str) -> Vec<(&'a Contender, &'a Cell)> {
    let mut cells: Vec<_> = results
        .cells
        .iter()
        .filter(|c| c.phase == phase)
        .filter_map(|c| Some((results.competitor(&c.competitor).filter(|k| !k.null)?, c)))
        .collect();
    let time = |cell: &Cell| cell.summary.as_ref().map_or(f64::INFINITY, |s| s.ns.middle);
    cells.sort_by(|a, b| time(a.1).total_cmp(&time(b.1)));
    cells
}

/// A phase as a table: ranks, seconds for a pass, percent of the baseline, rates, processor time,
/// memory.
pub(super) fn phase(results: &Results, phase: &Phase, about: &str) -> Section {
    let base = format!("% of {}", results.baseline);
    let mut table = Table::new(&[
        "<",
        "rank",
        "seconds",
        &base,
        "records/s",
        "MB/s",
        "user s",
        "system s",
        "allocs",
        "peak",
    ]);
    let mut marks = Marks::default();
    let mut refusals = Vec::new();
    for (contender, cell) in ranked(results, &phase.id) {
        let Some(s) = &cell.summary else {
            if let Some(why) = &cell.refused {
                refusals.push(format!("{}: {why}", contender.name));
            }
            let mut row = vec![contender.name.clone()];
            row.resize(table.columns.len(), NONE.into());
            table.rows.push(row);
            continue;
        };
        let pass = phase.units as f64 / 1e9;
        let versus = match (&s.versus, contender.name == results.baseline) {
            (_, true) => "100".into(),
            (Some(v), _) => format!("{}{}", ranged(&v.ratio.scaled(100.0)), marks.verdict(v)),
            (None, _) => NONE.into(),
        };
        let rate = (cell.bytes > 0 && cell.units > 0)
            .then(|| cell.bytes as f64 / cell.units as f64 / s.ns.middle * 1e3);
        let memory = cell.memory.unwrap_or_default();
        let name = format!(
            "{}{}{}",
            contender.name,
            marks.lossy(contender.proof.as_ref()),
            marks.of(cell)
        );
        table.rows.push(vec![
            name,
            s.group.to_string(),
            ranged(&s.ns.scaled(pass)),
            versus,
            short(1e9 / s.ns.middle),
            rate.map_or(NONE.into(), short),
            short(s.user_ns * pass),
            short(s.system_ns * pass),
            memory.allocations.map_or(NONE.into(), |a| fixed(a, 1)),
            memory.peak.map_or(NONE.into(), bytes),
        ]);
    }
    let mut footnotes = marks.footnotes();
    footnotes.extend(refusals.into_iter().map(|r| format!("- {r}")));
    Section {
        title: about.to_owned(),
        about: format!("{} One pass is {} records.", phase.about, whole(phase.units)),
        table: table.without_empty_columns(),
        footnotes,
    }
}

/// Sizes of all records in each format: as they are, in gzip, in zstd.
pub(super) fn sizes(results: &Results) -> Section {
    let wraps = ["", "gzip", "zstd"];
    let base = |wrap: &str| {
        let size = results.competitor(&results.baseline)?.sizes.get(wrap).copied();
        size.map(|s| s as f64)
    };
    let mut table = Table::new(&["<", "MB", "%", "gzip MB", "%", "zstd MB", "%", "bytes/record"]);
    let mut contenders: Vec<&Contender> =
        results.competitors.iter().filter(|c| !c.null && !c.sizes.is_empty()).collect();
    contenders.sort_by_key(|c| c.sizes.get("").copied().unwrap_or(u64::MAX));
    let mut marks = Marks::default();
    for c in contenders {
        let mut row = vec![format!("{}{}", c.name, marks.lossy(c.proof.as_ref()))];
        for wrap in wraps {
            let size = c.sizes.get(wrap).copied();
            row.push(size.map_or(NONE.into(), megabytes));
            let share = size.zip(base(wrap)).map(|(s, b)| percent(s as f64, b));
            row.push(share.unwrap_or(NONE.into()));
        }
        let each = c.sizes.get("").map(|s| *s as f64 / results.dataset.records.max(1) as f64);
        row.push(each.map_or(NONE.into(), |b| fixed(b, 0)));
        table.rows.push(row);
    }
    Section {
        title: "Sizes".into(),
        about: format!(
            "All {} records in one file; % is of {} in the same column.",
            whole(results.dataset.records),
            results.baseline
        ),
        table: table.without_empty_columns(),
        footnotes: marks.footnotes(),
    }
}

/// What did not come back as it was; `None` where everything did.
pub(super) fn fidelity(results: &Results) -> Option<Section> {
    let mut table =
        Table::new(&["<", "came back equal", "refused", "<the first that did not", "<declared"]);
    for c in &results.competitors {
        let Some(proof) = c.proof.as_ref().filter(|p| p.equal < p.records) else { continue };
        table.rows.push(vec![
            c.name.clone(),
            format!("{} of {}", whole(proof.equal), whole(proof.records)),
            whole(proof.refused),
            proof.first.clone().unwrap_or(NONE.into()),
            if proof.declared.is_empty() { NONE.into() } else { proof.declared.clone() },
        ]);
    }
    (!table.rows.is_empty()).then(|| Section {
        title: "Fidelity".into(),
        about:
            "Before anything was timed, every record was written, read back and compared by value."
                .into(),
        table,
        footnotes: Vec::new(),
    })
}
