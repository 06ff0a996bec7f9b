//! What a million operations cost: processor time of client and server, and bytes written to disks.

use super::{
    super::{
        lead::hides_processor_time,
        marks::Marks,
        number::{NONE, beside, short},
        page::{Section, Table},
    },
    contenders, is_open, is_part,
    kept::tier,
    phases::server,
};
use steelyard_results::{Cell, Phase, Results};

/// A line for each phase and store. Of phases whose operations are few and large (an index, a restart)
/// nobody does a million.
pub(super) fn section(results: &Results) -> Option<Section> {
    const SINGLE: [&str; 5] = ["", "prepare", "index", "settle", "recover"];
    let mut table = Table::new(&[
        "<phase",
        "<",
        "<durability",
        "client CPU s",
        "server CPU s",
        "CPU s",
        "written MB",
    ]);
    let mut marks = Marks::default();
    let counts = |p: &&Phase| !is_open(p) && !is_part(p) && !SINGLE.contains(&p.kind.as_str());
    for phase in results.phases.iter().filter(counts) {
        for c in contenders(results) {
            let Some(cell) = results.cell(&c.name, &phase.id) else { continue };
            let Some(summary) = &cell.summary else { continue };
            // A nanosecond for one is a thousandth of a second for a million.
            let client = (summary.user_ns + summary.system_ns) / 1e3;
            let server = server(cell).map(|ns| ns / 1e3);
            let known = !hides_processor_time(c, cell);
            let all = client + server.unwrap_or(0.0);
            let of_all = |text: String| if known { text } else { NONE.into() };
            table.rows.push(vec![
                phase.name.clone(),
                c.name.clone(),
                tier(c, &mut marks),
                beside(client, all),
                server.map_or(NONE.into(), |s| beside(s, all)),
                of_all(short(all)),
                of_all(written(cell).map_or(NONE.into(), short)),
            ]);
        }
    }
    (!table.rows.is_empty()).then(|| Section {
        title: "What a million operations cost".into(),
        about: "Processor seconds of this program (the client) and of the private server, and \
                megabytes that both had written to disks, scaled from what was done to a million \
                operations of each phase; written only where that was 1,000 or more. Written is counted \
                by the kernel, log files filled with zeros beforehand (PostgreSQL: 16 MB each) in full. \
                What an earlier phase changed may be written in a later one, so what reads are said to \
                have written can be of the writes before them. CPU and written are not known (-) of a \
                server of your own."
            .into(),
        brief: "Processor time of client and server, and bytes written to disk, for a million operations."
            .into(),
        table: table.without_empty_columns(),
        footnotes: marks.footnotes(),
        ..Section::default()
    })
}

/// Megabytes written to disks for a million operations; of few operations they are mostly what earlier
/// phases had put off.
fn written(cell: &Cell) -> Option<f64> {
    const FEWEST: u64 = 1_000;
    let bytes: u64 =
        cell.rounds.iter().map(|r| r.written + r.server.map_or(0, |server| server.written)).sum();
    let operations: u64 = cell.rounds.iter().map(|round| cell.units_of(round)).sum();
    (operations >= FEWEST).then(|| bytes as f64 / operations as f64)
}
