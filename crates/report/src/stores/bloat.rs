//! What rewriting all records did to the disk.

use super::{
    super::{
        chart::{Bar, Bars, Chart, Plot},
        marks::Marks,
        number::{NONE, beside, fixed, megabytes, short},
        page::{Section, Table},
        tables,
    },
    contenders,
    kept::{middle, short_tier, tier},
};
use steelyard_results::{Bloat, Bytes, Cell, Contender, Figure, Results};

/// A moment at which the disk was looked at, and what it took then.
type Step = (&'static str, fn(&Bloat) -> Option<Bytes>);

/// Every store, after each phase that rewrites.
pub(super) fn section(results: &Results) -> Option<Section> {
    let mut table = Table::new(&[
        "<",
        "<durability",
        "before MB",
        "of it logs",
        "after MB",
        "of it logs",
        "settled MB",
        "of it logs",
        "times before",
        "settling s",
    ]);
    let mut marks = Marks::default();
    let mut footnotes = Vec::new();
    let mut bars = Vec::new();
    for (c, cell) in rewrites(results) {
        let all: Vec<Bloat> = cell.rounds.iter().filter_map(|round| round.bloat).collect();
        if all.is_empty() {
            let unseen = || format!("- {}: its disk usage cannot be read from here", c.name);
            footnotes.push(tables::refusal(cell).unwrap_or_else(unseen));
            continue;
        }
        let of =
            |part: &dyn Fn(&Bloat) -> Option<u64>| middle(all.iter().filter_map(part).collect());
        let total = |of_bloat: fn(&Bloat) -> Option<Bytes>| of(&|b| Some(of_bloat(b)?.total()));
        let logs = |of_bloat: fn(&Bloat) -> Option<Bytes>| of(&|b| Some(of_bloat(b)?.logs));
        let steps: [Step; 3] = [
            ("before", |b| Some(b.before)),
            ("rewritten", |b| Some(b.after)),
            ("settled", |b| b.settled),
        ];
        let mut row = vec![tables::name(c, cell, &mut marks), tier(c, &mut marks)];
        for (what, bytes) in steps {
            let (all, logs) = (total(bytes), logs(bytes));
            row.push(all.map_or(NONE.into(), megabytes));
            row.push(
                logs.zip(all)
                    .map_or(NONE.into(), |(logs, all)| beside(logs as f64 / 1e6, all as f64 / 1e6)),
            );
            bars.extend(all.map(|all| Bar {
                name: format!("{}, {what}", c.name),
                note: short_tier(c),
                value: Figure { middle: all as f64 / 1e6, ..Figure::default() },
                ..Bar::default()
            }));
        }
        let before = total(steps[0].1).unwrap_or(0);
        let last = total(steps[2].1).or(total(steps[1].1)).unwrap_or(0);
        let times = (before > 0).then(|| fixed(last as f64 / before as f64, 2));
        row.push(times.unwrap_or(NONE.into()));
        let settling = of(&|b| b.settled.map(|_| b.settle_ns));
        row.push(settling.map_or(NONE.into(), |ns| short(ns as f64 / 1e9)));
        table.rows.push(row);
    }
    let mut all = marks.footnotes();
    all.extend(footnotes);
    (!table.rows.is_empty()).then(|| Section {
        title: "The disk after all records were rewritten".into(),
        about: "Megabytes on disk, data and log files together, less what an empty store has: before, \
                with the store settled; after every record was written again; and after the store had \
                cleaned up (checkpoint, vacuum, compaction), where it has that to do. The last time \
                every record was written as it was, so the records take as much as before."
            .into(),
        brief: "Megabytes on disk before every record was rewritten, after it, and after the store had \
                cleaned up."
            .into(),
        table: table.without_empty_columns(),
        footnotes: all,
        charts: vec![Chart {
            title: "Disk after rewriting".into(),
            unit: "MB: less is better".into(),
            plot: Plot::Bars(Bars(bars)),
        }],
        ..Section::default()
    })
}

fn rewrites(results: &Results) -> impl Iterator<Item = (&Contender, &Cell)> {
    contenders(results).flat_map(move |c| {
        let phases = results.phases.iter().filter(|phase| phase.kind == "rewrite");
        phases.filter_map(move |phase| Some((c, results.cell(&c.name, &phase.id)?)))
    })
}
