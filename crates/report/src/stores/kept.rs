//! What the stores are: versions, durability asked for, set and observed, settings, disk, memory.

use super::{
    super::{
        marks::Marks,
        number::{NONE, beside, megabytes, percent, short, whole},
        page::{Role, Section, Table},
    },
    charts, contenders,
};
use steelyard_results::{Contender, Disk, Durability, Kept, Results, Round};

/// The tier of a store, as it stands on each of its rows: `t3`, `t3 by settings`, `t1 (asked t3)!`.
pub(super) fn tier(contender: &Contender, marks: &mut Marks) -> String {
    let Some(kept) = &contender.store else { return NONE.into() };
    let Durability { asked, set, broken, .. } = &kept.durability;
    let class = kept.durability.class();
    let mut text = class.name();
    let other =
        |tier: &Option<String>| tier.clone().filter(|tier| !text.starts_with(tier.as_str()));
    match (other(asked), other(set)) {
        (Some(asked), _) => text.push_str(&format!(" (asked {asked})")),
        (None, Some(set)) if kept.durability.is_less_than_set() => {
            text.push_str(&format!(" (set {set})"));
        }
        _ => {}
    }
    if *broken {
        text.push_str(marks.broken());
    }
    text
}

/// The tier alone, for charts.
pub(super) fn short_tier(contender: &Contender) -> String {
    let class = contender.store.as_ref().map(|k| k.durability.class());
    class.map_or(String::new(), |class| class.name() + if class.is_broken() { "!" } else { "" })
}

/// What its data lie on, and how long a synced write takes there: `ext4, sync 1.2 ms`.
fn lies(durability: &Durability) -> String {
    let Some(lies) = &durability.medium else { return NONE.into() };
    let memory = lies.volatile.as_ref().map_or("", |_| " (memory)");
    let sync = lies.sync().map(|took| format!(", sync {took}")).unwrap_or_default();
    format!("{}{memory}{sync}", lies.filesystem)
}

/// Syncs for each acknowledged write.
fn syncs(contender: &Contender) -> String {
    let seen = contender.store.as_ref().and_then(|k| k.durability.syncs);
    seen.map_or(NONE.into(), short)
}

/// Every store: what it is, and what it promises.
pub(super) fn stores(results: &Results) -> Option<Section> {
    let mut table = Table::new(&[
        "<",
        "<product",
        "<version",
        "<connection",
        "<client",
        "<records as",
        "<asked",
        "<set",
        "syncs/write",
        "<observed",
        "<data lie on",
    ]);
    let mut marks = Marks::default();
    let mut footnotes = Vec::new();
    for c in contenders(results) {
        let Some(kept) = &c.store else { continue };
        let durability = &kept.durability;
        let broken = if durability.broken { marks.broken() } else { "" };
        let or = |text: &Option<String>, other: &str| text.clone().unwrap_or_else(|| other.into());
        let format = kept.format.as_ref().map_or(String::new(), |f| format!(" ({f})"));
        table.rows.push(vec![
            format!("{}{}", c.name, marks.lossy(c.proof.as_ref())),
            kept.product.clone(),
            kept.version.clone(),
            connection(kept),
            if kept.client.is_empty() { NONE.into() } else { kept.client.clone() },
            format!("{}{format}", kept.layout),
            or(&durability.asked, "default"),
            format!("{}{broken}", or(&durability.set, "unknown")),
            syncs(c),
            durability.class().name(),
            lies(durability),
        ]);
        footnotes.extend(durability.remark.as_ref().map(|r| format!("{}: {r}", c.name)));
    }
    let nothing = table.rows.is_empty() && footnotes.is_empty();
    let mut all = marks.footnotes();
    all.extend(footnotes);
    (!nothing).then(|| Section {
        title: "The stores".into(),
        about: "Durability as asked for, as the settings give it, and as found by the syncs of each \
                acknowledged write, which were counted in a pass that was not timed. By settings: \
                they were not counted. Data in memory (tmpfs, ramfs) are t1 at most. sync: what a synced \
                write of 4 KiB took where the data lie, the median of 5 and their range, when that store \
                was looked at."
            .into(),
        table: table.without_empty_columns(),
        footnotes: all,
        role: Role::Method,
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
pub(super) fn middle(mut values: Vec<u64>) -> Option<u64> {
    values.sort_unstable();
    let (low, high) =
        (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(low.midpoint(*high))
}

/// Disk and memory of a store in bytes, as far as they were looked at.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Space {
    /// Data and logs together.
    pub total: Option<u64>,
    pub data: Option<u64>,
    pub logs: Option<u64>,
    /// Data files on disk for a million records. Logs are as large for any number of them.
    pub disk_million: Option<u64>,
    /// What its server's memory has grown by for a million records.
    pub memory_million: Option<u64>,
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
        let million = |least: u64, of: fn(&Disk) -> u64| {
            let known = disk.iter().filter(|d| d.records >= least);
            middle(known.map(|d| (of(d) as f64 * 1e6 / d.records as f64) as u64).collect())
        };
        Space {
            total: middle(disk.iter().map(Disk::total).collect()),
            disk_million: million(DISK_SCALED, |d| d.data),
            memory_million: million(MEMORY_SCALED, |d| d.memory.saturating_sub(d.memory_empty))
                .filter(|n| *n > 0),
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
    let heads = [
        "<",
        "<durability",
        "disk MB",
        "% of raw",
        "of it logs",
        "memory MB",
        "written MB",
        "data MB/million",
        "memory MB/million",
    ];
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
        any |= space.total.is_some() || space.memory.is_some();
        let show = |n: Option<u64>| n.map_or(NONE.into(), megabytes);
        table.rows.push(vec![
            c.name.clone(),
            tier(c, &mut marks),
            show(space.total),
            space.total.map_or(NONE.into(), share),
            space.logs.map_or(NONE.into(), |l| {
                beside(l as f64 / 1e6, space.total.unwrap_or(l) as f64 / 1e6)
            }),
            show(space.memory),
            show(space.written),
            show(space.disk_million),
            show(space.memory_million),
        ]);
    }
    any.then(|| Section {
        title: "Disk and memory".into(),
        about: format!(
            "Bytes allocated on disk at the end, data and log files together, less what an empty \
             store has, the median over starts. memory: the most the server had at the end of a \
             timed window, what is shared counted once (Pss). written: what the server wrote to \
             disks during all timed windows of a round, as the kernel counts it (write_bytes of \
             /proc/PID/io): whole pages, and new files of a log that are filled with zeros beforehand \
             (PostgreSQL: 16 MB each) in full. /million: for a million records. data: \
             the data files without logs, from {} records on. memory: what it grew by from the empty \
             server, from {} records on; with fewer, caches and connections are most of it.{}",
            whole(DISK_SCALED),
            whole(MEMORY_SCALED),
            scaled(results)
        ),
        brief: "What the records take on disk at the end of the run, and the most memory that each \
                server had."
            .into(),
        table: table.without_empty_columns(),
        footnotes: marks.footnotes(),
        charts: charts::space(results), ..Section::default() })
}

/// Fewer records say nothing of a million: most of what they take is what any number of them would.
const DISK_SCALED: u64 = 10_000;
/// A server's memory holds more that does not depend on them: buffers that fill, connections.
const MEMORY_SCALED: u64 = 100_000;

/// Says that figures for a million records were scaled up, where they were.
fn scaled(results: &Results) -> String {
    let of = |c: &Contender| {
        let disk = c.store.as_ref().map_or(&[][..], |kept| &kept.disk);
        disk.iter().map(|d| d.records).filter(|n| *n >= DISK_SCALED).max()
    };
    match contenders(results).filter_map(of).max() {
        Some(most) if most < 1_000_000 => format!(" Scaled up from {} records.", whole(most)),
        _ => String::new(),
    }
}
