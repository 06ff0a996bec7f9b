//! What the stores are: versions, durability asked for, set and observed, settings, disk, memory.

use super::{
    super::{
        marks::Marks,
        number::{NONE, beside, megabytes, percent, short},
        page::{Section, Table},
    },
    charts, contenders,
};
use crate::bench::results::{Contender, Durability, Kept, Results, Round};

/// The tier of a store, as it stands on each of its rows: `t3`, `t1 (asked t3)!`.
pub(super) fn tier(contender: &Contender, marks: &mut Marks) -> String {
    let Some(kept) = &contender.store else { return NONE.into() };
    let Durability { asked, set, broken, .. } = &kept.durability;
    let mut text = set.clone().unwrap_or_else(|| "unknown".into());
    if let Some(asked) = asked.as_ref().filter(|a| Some(*a) != set.as_ref()) {
        text.push_str(&format!(" (asked {asked})"));
    }
    if *broken {
        text.push_str(marks.broken());
    }
    text
}

/// The tier alone, for charts.
pub(super) fn short_tier(contender: &Contender) -> String {
    let durability = contender.store.as_ref().map(|k| &k.durability);
    let set = durability.and_then(|d| d.set.clone()).unwrap_or_default();
    if durability.is_some_and(|d| d.broken) { set + "!" } else { set }
}

/// What a tier promises.
pub(super) fn promise(tier: &str) -> &'static str {
    match tier {
        "t0" => "volatile",
        "t1" => "surviving the end of the process",
        "t2" => "with bounded loss when the machine crashes",
        "t3" => "durable when acknowledged",
        _ => "of unknown durability",
    }
}

/// Syncs for each acknowledged write.
pub(super) fn syncs(contender: &Contender) -> String {
    let seen = contender.store.as_ref().and_then(|k| k.durability.syncs);
    seen.map_or(NONE.into(), short)
}

/// Every store: what it is, and what it promises.
pub(super) fn stores(results: &Results) -> Option<Section> {
    let mut table = Table::new(&[
        "<",
        "<product",
        "<version",
        "<talked to by",
        "<records as",
        "<asked",
        "<set",
        "syncs/write",
    ]);
    let mut marks = Marks::default();
    let mut footnotes = Vec::new();
    for c in contenders(results) {
        let Some(kept) = &c.store else {
            footnotes.extend(c.refused.as_ref().map(|why| format!("- {}: {why}", c.name)));
            continue;
        };
        let durability = &kept.durability;
        let broken = if durability.broken { marks.broken() } else { "" };
        let or = |text: &Option<String>, other: &str| text.clone().unwrap_or_else(|| other.into());
        let format = kept.format.as_ref().map_or(String::new(), |f| format!(" ({f})"));
        table.rows.push(vec![
            format!("{}{}", c.name, marks.lossy(c.proof.as_ref())),
            kept.product.clone(),
            kept.version.clone(),
            connection(kept),
            format!("{}{format}", kept.layout),
            or(&durability.asked, "its usual"),
            format!("{}{broken}", or(&durability.set, "unknown")),
            syncs(c),
        ]);
        footnotes.extend(durability.remark.as_ref().map(|r| format!("{}: {r}", c.name)));
        footnotes.extend(c.refused.as_ref().map(|why| format!("- {}: {why}", c.name)));
    }
    let nothing = table.rows.is_empty() && footnotes.is_empty();
    let mut all = marks.footnotes();
    all.extend(footnotes);
    (!nothing).then(|| Section {
        title: "The stores".into(),
        about: "Durability as asked for, as its settings give it, and syncs counted for each \
                acknowledged write in a pass of its own that was not timed."
            .into(),
        table: table.without_empty_columns(),
        footnotes: all,
        ..Section::default()
    })
}

fn connection(kept: &Kept) -> String {
    match &kept.server {
        Some(server) => format!("{}, a private {server}", kept.connection),
        None => kept.connection.clone(),
    }
}

/// The settings of every store, a line each.
pub(super) fn settings(results: &Results) -> Vec<String> {
    let lines = contenders(results).filter_map(|c| {
        let kept = c.store.as_ref()?;
        let set: Vec<String> = kept.settings.iter().map(|(k, v)| format!("{k} = {v}")).collect();
        let set = if set.is_empty() { String::new() } else { format!("; {}", set.join(", ")) };
        Some(format!("{}: {} {}, {}{set}", c.name, kept.product, kept.version, kept.url))
    });
    lines.collect()
}

/// The median of some numbers.
fn middle(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    values.get(values.len() / 2).copied()
}

/// Disk and memory of a store in bytes, as far as they were looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Space {
    pub data: Option<u64>,
    pub logs: Option<u64>,
    /// The most its server had at the end of a window.
    pub memory: Option<u64>,
    /// What its server had written to disks over all phases of a round, the median.
    pub written: Option<u64>,
}

impl Space {
    pub(super) fn of(results: &Results, contender: &Contender) -> Space {
        let disk = contender.store.as_ref().map_or(&[][..], |k| &k.disk);
        let cells = results.cells.iter().filter(|c| c.competitor == contender.name);
        let rounds: Vec<&Round> = cells.flat_map(|c| &c.rounds).collect();
        let used = || rounds.iter().filter_map(|r| r.server);
        let mut numbers: Vec<u32> =
            rounds.iter().filter(|r| r.server.is_some()).map(|r| r.round).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let written = |round: u32| {
            let of = rounds.iter().filter(|r| r.round == round);
            of.filter_map(|r| r.server).map(|s| s.written).sum::<u64>()
        };
        Space {
            data: middle(disk.iter().map(|d| d.data).collect()),
            logs: middle(disk.iter().map(|d| d.logs).collect()),
            memory: used().map(|s| s.memory).max(),
            written: middle(numbers.into_iter().map(written).collect()),
        }
    }
}

/// Disk and memory beside the records themselves; `None` where nothing was weighed.
pub(super) fn space(results: &Results) -> Option<Section> {
    let raw = results.dataset.sizes.get("").copied();
    let share = |n: u64| raw.map_or(NONE.into(), |raw| percent(n as f64, raw as f64));
    let heads = ["<", "<durability", "data MB", "% of raw", "logs MB", "memory MB", "written MB"];
    let mut table = Table::new(&heads);
    for (wrap, size) in &results.dataset.sizes {
        let name = match wrap.as_str() {
            "" => "records as JSON lines".to_owned(),
            wrap => format!("the same in {wrap}"),
        };
        let mut row = vec![name, NONE.into(), megabytes(*size), share(*size)];
        row.resize(heads.len(), NONE.into());
        table.rows.push(row);
    }
    let mut marks = Marks::default();
    let mut any = false;
    for c in contenders(results).filter(|c| c.store.is_some()) {
        let space = Space::of(results, c);
        any |= space.data.is_some() || space.memory.is_some();
        let show = |n: Option<u64>| n.map_or(NONE.into(), megabytes);
        table.rows.push(vec![
            c.name.clone(),
            tier(c, &mut marks),
            show(space.data),
            space.data.map_or(NONE.into(), share),
            space.logs.map_or(NONE.into(), |l| {
                beside(l as f64 / 1e6, space.data.unwrap_or(l).max(l) as f64 / 1e6)
            }),
            show(space.memory),
            show(space.written),
        ]);
    }
    any.then(|| Section {
        title: "Disk and memory".into(),
        about: "Bytes allocated on disk after the store had settled, less what an empty one has, \
                the median over starts; log files apart. memory: the most its server had at the end \
                of a timed window, what is shared counted once. written: what the server wrote to \
                disks during all timed windows of a round."
            .into(),
        table: table.without_empty_columns(),
        footnotes: marks.footnotes(),
        charts: charts::space(results),
    })
}
