//! The table of `bench tenants`: a row for each way with each number of tenants, and what it takes.

use super::{
    super::{
        lead::on_processor_time,
        number::{NONE, bytes, fixed, short, whole},
    },
    lines::{Lines, Weight, columns, fit, pad},
    table::factor,
};
use steelyard_results::{
    Results, Verdict,
    tenants::{Held, SHARED, Tenants},
};

/// Columns between columns.
const GAP: usize = 1;
/// The most lines of the legend.
const LEGEND: usize = 3;

/// The heads, and how many of the last of them may be left out for want of room.
const HEADS: [[&str; 2]; 11] = [
    ["", "tenants"],
    ["", ""],
    ["query", "µs"],
    ["vs one", "table"],
    ["insert", "µs"],
    ["vs one", "table"],
    ["first", "ms"],
    ["", "memory"],
    ["", "disk"],
    ["", "files"],
    ["restart", "ms"],
];

/// Adds the table, in so many lines at most.
pub(super) fn table(lines: &mut Lines, results: &Results, room: usize) {
    let Some(tenants) = &results.tenants else { return };
    let mut rows: Vec<Vec<String>> = Vec::new();
    let stores = tenants.stores();
    for store in &stores {
        if stores.len() > 1 {
            rows.push(vec![(*store).to_owned()]);
        }
        for size in tenants.sizes(store) {
            for (n, arm) in tenants.arms(store).into_iter().enumerate() {
                rows.push(row(results, tenants, (store, arm, size), n == 0));
            }
        }
    }
    let room = room.saturating_sub(2 + LEGEND).max(3);
    let hidden = fewer(&mut rows, tenants, room);
    let widths = widths(&rows, lines.width());
    if rows.is_empty() {
        return;
    }
    for line in 0..2 {
        let heads = HEADS.iter().map(|head| head[line].to_owned()).collect::<Vec<_>>();
        lines.spans(vec![(Weight::Dim, set(&heads, &widths))]);
    }
    for row in &rows {
        match row.len() {
            1 => lines.cut(Weight::Bold, &row[0]),
            _ => lines.spans(vec![(Weight::Plain, set(row, &widths))]),
        }
    }
    lines.paragraph(Weight::Dim, &legend(results, &rows, hidden, tenants), LEGEND);
}

fn row(
    results: &Results,
    tenants: &Tenants,
    (store, arm, size): (&str, &str, u64),
    first: bool,
) -> Vec<String> {
    let time = |kind: &str, per: f64| {
        let phase = results.tenants_phase(kind, store, size);
        let summary = phase.and_then(|id| results.cell(arm, id)?.summary.as_ref());
        summary.map_or(NONE.into(), |s| short(s.ns.middle / per))
    };
    let ratio = |kind: &str| match results.tenants_ratio((kind, store, size), arm, SHARED) {
        _ if arm == SHARED => String::new(),
        None => NONE.into(),
        Some(v) => {
            let mark = match v.verdict {
                Verdict::Alike => "=",
                Verdict::CannotTell | Verdict::Untested => "?",
                Verdict::Faster | Verdict::Slower => "",
            };
            factor(v.ratio.middle) + mark
        }
    };
    let held = tenants.held(store, arm, size);
    let of = |of: &dyn Fn(&Held) -> Option<String>| held.and_then(of).unwrap_or(NONE.into());
    vec![
        if first { whole(size) } else { String::new() },
        arm.to_owned(),
        time("query", 1e3),
        ratio("query"),
        time("insert", 1e3),
        ratio("insert"),
        time("touch", 1e6),
        of(&|held| held.memory().map(|n| size_of(n as u64))),
        of(&|held| held.disk.map(size_of)),
        of(&|held| held.files().map(|n| whole(n as u64))),
        of(&|held| held.restart_ns().map(|ns| fixed(ns / 1e6, 0))),
    ]
}

/// `31M`, `7.6G`: in few columns.
fn size_of(n: u64) -> String {
    let text = bytes(n);
    match text.split_once(' ') {
        Some((number, unit)) => format!("{number}{}", unit[..1].to_uppercase()),
        None => text,
    }
}

/// Leaves out what has no room: of each store the numbers between the fewest and the most tenants, then the fewest;
/// says how many rows those were.
fn fewer(rows: &mut Vec<Vec<String>>, tenants: &Tenants, room: usize) -> usize {
    let all = rows.len();
    let stores = tenants.stores();
    let mut sizes: Vec<u64> = stores.iter().flat_map(|store| tenants.sizes(store)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let middle = sizes.get(1..sizes.len().saturating_sub(1)).unwrap_or_default();
    let first = sizes.first().filter(|_| sizes.len() > 1);
    for size in middle.iter().chain(first) {
        if rows.len() <= room {
            break;
        }
        let (size, mut within) = (whole(*size), false);
        rows.retain(|row| {
            if row.len() == 1 || !row[0].is_empty() {
                within = row.len() > 1 && row[0] == size;
            }
            !within
        });
    }
    rows.truncate(room);
    all - rows.len()
}

/// The widths of as many columns as have room.
fn widths(rows: &[Vec<String>], room: usize) -> Vec<usize> {
    let mut widths = Vec::new();
    let mut used = 0;
    for (at, heads) in HEADS.iter().enumerate() {
        let cells = rows.iter().filter_map(|row| row.get(at).filter(|_| row.len() > 1));
        let cells = cells.map(|text| columns(text)).max().unwrap_or(0);
        let head = heads.iter().map(|head| columns(head)).max().unwrap_or(0);
        let width = cells.max(head);
        let gap = if at == 0 { 0 } else { GAP };
        if used + gap + width > room {
            break;
        }
        used += gap + width;
        widths.push(width);
    }
    widths
}

/// A row, its columns as wide as these; the name stands left.
fn set(row: &[String], widths: &[usize]) -> String {
    let mut text = String::new();
    for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
        if at > 0 {
            text += &" ".repeat(GAP);
        }
        text += &pad(&fit(cell, *width), *width, at != 1);
    }
    text
}

fn legend(results: &Results, rows: &[Vec<String>], hidden: usize, tenants: &Tenants) -> String {
    let has = |mark: char| rows.iter().flatten().any(|cell| cell.ends_with(mark));
    let time = if on_processor_time(results) { "processor time" } else { "time" };
    let mut parts = vec![format!("1.1x: 1.1 times the {time} of one table")];
    if has('=') {
        parts.push("= alike within 3 %".into());
    }
    if has('?') {
        parts.push("? not shown to differ".into());
    }
    parts.push("first: a tenant's first query since the start".into());
    parts.push(format!("{} databases open at most", whole(tenants.open)));
    if hidden > 0 {
        parts.push(format!("+{hidden} rows in the report"));
    }
    parts.join("; ")
}
