//! What was left after a kill in the middle of writes, and how long it took until there was an answer.

use super::{
    super::{
        marks::Marks,
        number::{NONE, ranged, whole},
        page::{Section, Table},
        tables,
    },
    contenders,
    kept::tier,
};
use steelyard_results::{Recovery, Results};

pub(super) fn section(results: &Results) -> Option<Section> {
    let mut table = Table::new(&[
        "<",
        "<durability",
        "answers after s",
        "acknowledged",
        "of them lost",
        "there before",
        "of them lost",
    ]);
    let mut marks = Marks::default();
    let mut footnotes = Vec::new();
    for phase in results.phases.iter().filter(|phase| phase.kind == "recover") {
        for c in contenders(results) {
            let Some(cell) = results.cell(&c.name, &phase.id) else { continue };
            let all: Vec<Recovery> = cell.rounds.iter().filter_map(|r| r.recovery).collect();
            if all.is_empty() {
                footnotes.extend(tables::refusal(cell));
                continue;
            }
            let sum = |of: fn(&Recovery) -> u64| whole(all.iter().map(of).sum());
            let seconds = cell.summary.as_ref().map(|s| s.ns.scaled(1e-9));
            table.rows.push(vec![
                tables::name(c, cell, &mut marks),
                tier(c, &mut marks),
                seconds.map_or(NONE.into(), |s| ranged(&s)),
                sum(|r| r.acknowledged),
                sum(|r| r.lost),
                sum(|r| r.earlier),
                sum(|r| r.earlier_lost),
            ]);
        }
    }
    let mut all = marks.footnotes();
    all.extend(footnotes);
    (!table.rows.is_empty() || !all.is_empty()).then(|| Section {
        title: "After a crash".into(),
        about: "All processes of the server were killed (SIGKILL) while writes were on their way, and \
                it was started again on its data; of a store without a server, another process that \
                wrote to it was killed, and the store opened again. answers after: from then until a \
                new client has its first answer. acknowledged: writes that were answered before, of \
                all rounds. This is a crash of the process, not of the machine: what the process had \
                handed to the system is still there, synced or not. So t1 and t3 may lose nothing, t2 \
                what it still held back itself, t0 everything."
            .into(),
        brief: "The server was killed during writes and started again: the time until it answered, and the \
                writes that it lost."
            .into(),
        table: table.without_empty_columns(),
        footnotes: all,
        ..Section::default()
    })
}
