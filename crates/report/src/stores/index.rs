//! What indexes cost: the time to make them, their size on disk, and what they add to a write.

use super::{
    super::{
        marks::Marks,
        number::{NONE, megabytes, ranged, short, whole},
        page::{Section, Table},
        tables,
    },
    contenders,
    kept::{middle, tier},
};
use steelyard_results::{IndexCost, Results};

pub(super) fn section(results: &Results) -> Option<Section> {
    let mut table = Table::new(&[
        "<",
        "<phase",
        "<durability",
        "made in s",
        "index MB",
        "writes/s without",
        "writes/s with",
        "a write takes",
    ]);
    let mut marks = Marks::default();
    let mut footnotes = Vec::new();
    let mut writes = 0;
    for phase in results.phases.iter().filter(|phase| phase.kind == "index") {
        for c in contenders(results) {
            let Some(cell) = results.cell(&c.name, &phase.id) else { continue };
            let all: Vec<IndexCost> = cell.rounds.iter().filter_map(|round| round.index).collect();
            let Some(first) = all.first() else {
                footnotes.extend(tables::refusal(cell));
                continue;
            };
            writes = first.writes;
            let rate = |of: fn(&IndexCost) -> u64| {
                let ns = middle(all.iter().map(of).collect()).unwrap_or(0);
                (ns > 0).then(|| first.writes as f64 * 1e9 / ns as f64)
            };
            let (without, with) = (rate(|i| i.without_ns), rate(|i| i.with_ns));
            // Within each round: what slows one slows the other.
            let serial = results.family.as_ref().map_or(0.0, |family| family.autocorrelation);
            let ratio = IndexCost::ratio(&cell.rounds, serial, 1.0 - results.plan.level);
            let seconds = cell.summary.as_ref().map(|s| s.ns.scaled(phase.units as f64 / 1e9));
            let rate = |rate: Option<f64>| rate.map_or(NONE.into(), short);
            table.rows.push(vec![
                tables::name(c, cell, &mut marks),
                phase.name.clone(),
                tier(c, &mut marks),
                seconds.map_or(NONE.into(), |s| ranged(&s)),
                middle(all.iter().filter_map(|i| i.bytes).collect()).map_or(NONE.into(), megabytes),
                rate(without),
                rate(with),
                ratio.map_or(NONE.into(), |ratio| format!("{} times", ranged(&ratio))),
            ]);
        }
    }
    let mut all = marks.footnotes();
    all.extend(footnotes);
    (!table.rows.is_empty()).then(|| Section {
        title: "What an index costs".into(),
        about: format!(
            "index MB: as the store says, the settled store with it less the same without it (of those \
             that do not say, what it grew by on disk). writes: the same \
             {} writes of one record each, one after another, before and after it was made; they \
             change the indexed fields and change them back. a write takes: the time with it over the \
             time without it, in the same rounds, with its {} % interval.",
            whole(writes),
            short(100.0 * results.plan.level)
        ),
        brief: "The time to build an index, its size, and how much slower a write becomes with it.".into(),
        table: table.without_empty_columns(),
        footnotes: all,
        ..Section::default()
    })
}
