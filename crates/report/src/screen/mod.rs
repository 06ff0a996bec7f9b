//! One screen of a terminal: what was measured and where, what makes it doubtful, one table of rates and factors,
//! the answer in a few sentences, and the commands that show more.
//!
//! A pure function of results and the terminal's width: at most [`LINES`] lines, none wider than the terminal.
//! `table.rs` chooses what stands in the table, `answer.rs` says what the verdicts allow, `warnings.rs` has a line for each
//! reason to doubt the figures, `lines.rs` sets text.

mod answer;
mod lines;
mod table;
mod tenants;
mod warnings;

use self::lines::{Lines, Weight, pad};
use super::{
    marks::starts,
    number::{bytes, fixed},
    visible::made_visible,
    words::{list, one_of, records},
};
use steelyard_results::Results;

/// The most lines of a screen.
pub const LINES: usize = 45;
/// The most lines of the title.
const TITLE: usize = 2;
/// The narrowest screen that is set, in columns.
pub const NARROWEST: usize = 40;
/// Below so many columns a line says too little: warnings are in several, where a run has so many lines.
const ROOMY: usize = 60;
const ROOMY_LINES: usize = 25;
/// A screen whose terminal says nothing of its width, in columns.
pub const USUAL: usize = 80;

/// How a screen looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Columns of the terminal; below [`NARROWEST`] it is taken for that.
    pub width: usize,
    /// Whether it shows bold and dim text.
    pub styled: bool,
    /// Whether the results are kept, so that `steelyard report` has them.
    pub kept: bool,
}

/// The runs of a bench (one, or those of the tour) on one screen.
pub fn screen(runs: &[Results], look: Look) -> String {
    let runs: Vec<_> = runs.iter().map(made_visible).collect();
    let width = look.width.max(NARROWEST);
    let mut answers: Vec<String> = Vec::new();
    let mut ends = Lines::new(width);
    for run in &runs {
        let answer = answer::answer(run);
        // Of several runs each says of what.
        answers.extend(match (runs.len(), answer.is_empty()) {
            (_, true) => None,
            (1, _) => Some(answer),
            _ => Some(format!("{}: {answer}", kind(run))),
        });
    }
    for (n, answer) in answers.iter().enumerate() {
        let head = if n == 0 { "ANSWER  " } else { "        " };
        ends.wrapped(Weight::Bold, head, answer, answer::LINES / answers.len().max(1));
    }
    ends.blank();
    more(&mut ends, runs.len(), look.kept);
    let room = LINES.saturating_sub(ends.len());
    let mut all = Lines::new(width);
    for (n, run) in runs.iter().enumerate() {
        let rest = room.saturating_sub(all.len());
        one(&mut all, run, rest / (runs.len() - n));
    }
    all.append(ends);
    all.text(look.styled)
}

/// What was measured, the warnings and the table of a run, in so many lines, with a blank one behind them.
fn one(lines: &mut Lines, results: &Results, room: usize) {
    let begin = lines.len();
    lines.paragraph(Weight::Bold, &title(results), TITLE);
    lines.cut(Weight::Dim, &place(results));
    let warnings = warnings::warnings(results);
    let shown = warnings.len().min(warnings::MOST);
    for (n, warning) in warnings[..shown].iter().enumerate() {
        let more = match (n + 1 == shown, warnings.len() - shown) {
            (true, hidden @ 1..) => format!(" (+{hidden} more in the report)"),
            _ => String::new(),
        };
        let warning = format!("warning: {warning}");
        match lines.width() < ROOMY && room >= ROOMY_LINES {
            true => lines.paragraph(Weight::Plain, &(warning + &more), 3),
            false => lines.cut_before(Weight::Plain, &warning, &more),
        }
    }
    lines.blank();
    let used = lines.len() - begin;
    let table = if results.bench == "tenants" { tenants::table } else { table::table };
    table(lines, results, room.saturating_sub(used + 1));
    lines.blank();
}

/// What a run is about, in a word.
fn kind(results: &Results) -> &'static str {
    match results.bench.as_str() {
        "objects" => "Objects",
        "stores" => "Stores",
        "cache" => "memcached clients",
        "tenants" => "Tenants",
        _ => "Formats",
    }
}

/// `Formats: 18,881 MARC records of catalog.mrc, 31.2 MB as marc21`.
fn title(results: &Results) -> String {
    let mut of = format!("{} of {}", records(&results.dataset), results.dataset.name);
    if let Some(workload) = &results.workload {
        of = format!("workload {}, {of}", workload.name);
    }
    match results.bench.as_str() {
        "cache" => return super::cache::title(results),
        "tenants" => return super::tenants::title(results),
        _ => {}
    }
    let base = results.competitor(&results.baseline).and_then(|c| c.sizes.get(""));
    let size = match (base, results.dataset.sizes.get("")) {
        (Some(size), _) => format!(", {} as {}", bytes(*size), results.baseline),
        (None, Some(size)) => format!(", {} as JSON lines", bytes(*size)),
        _ => String::new(),
    };
    format!("{}: {of}{size}", kind(results))
}

/// `AMD EPYC, 2 cores, virtual machine; 12 rounds in 41 s`.
fn place(results: &Results) -> String {
    let machine = &results.machine;
    let cores =
        if machine.cores == 1 { "1 core".into() } else { format!("{} cores", machine.cores) };
    let mut parts: Vec<String> = vec![machine.cpu.clone(), cores];
    parts.retain(|part| !part.is_empty());
    if machine.virtual_machine == Some(true) {
        parts.push("virtual machine".into());
    }
    let rounds = match (fewest(results), starts(results)) {
        (_, 1) => "1 round".to_owned(),
        (least, most) if least < most => format!("{least} to {most} rounds"),
        (_, n) => format!("{n} rounds"),
    };
    format!("{}; {rounds} in {} s", parts.join(", "), fixed(results.seconds, 0))
}

/// The rounds of that number of tenants that had the fewest.
fn fewest(results: &Results) -> u32 {
    let Some(tenants) = &results.tenants else { return u32::MAX };
    let of = |store: &&str| {
        let sizes = tenants.sizes(store);
        sizes.into_iter().map(|size| results.tenants_rounds(store, size).0).collect::<Vec<_>>()
    };
    let all = tenants.stores().iter().flat_map(of).filter(|rounds| *rounds > 0).min();
    all.unwrap_or(u32::MAX)
}

/// The commands that show more; on a narrow screen without what they are for, and in two lines where they have to be,
/// as a command that is cut is none.
fn more(lines: &mut Lines, runs: usize, kept: bool) {
    const WIDEST: usize = 79;
    let mut say = |what: &str, command: &str| {
        let what = if lines.width() < WIDEST { String::new() } else { pad(what, 34, false) };
        lines.paragraph(Weight::Dim, &(what + command), 2);
    };
    match kept {
        true => {
            say("All tables, intervals and notes:", "steelyard report");
            say("As a page with charts:", "steelyard report --format html > report.html");
        }
        false => say("All tables, intervals and notes:", "run it with --full or --out FILE"),
    }
    if runs > 1 {
        say("On your own records:", "steelyard bench formats FILE");
        say("", "steelyard bench keep --records FILE");
    }
}

/// `reading`: an operation of a phase as a rate: `records/s`.
fn rate_unit(results: &Results, phase: &steelyard_results::Phase) -> String {
    let unit = match (phase.unit.is_empty(), results.bench.as_str()) {
        (false, _) => phase.unit.as_str(),
        (true, "objects") => "objects",
        (true, "cache") => "calls",
        _ => "records",
    };
    format!("{unit}/s")
}

/// `1 store` or `3 stores`, and who they are.
fn named(names: &[&str]) -> String {
    const FEW: usize = 4;
    match names.len() {
        0..=FEW => list(names),
        n => format!("{}, {} and {} more", names[0], names[1], n - 2),
    }
}

/// The name of what many of are called so, for one or many.
fn counted(count: usize, many: &str) -> String {
    match count {
        1 => format!("1 {}", one_of(many)),
        n => format!("{n} {many}"),
    }
}

#[cfg(test)]
mod tests;
